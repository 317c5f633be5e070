// The fake driver's way to run the library's own element-wise kernels: it reads their text.
//
// Only what src/models/kernel/cuda/elementwise/cuda_pointwise.c writes for tensors that are run
// through in one go, in f32, f16 and integers, with the few functions below: enough for models of a
// test to have real segments on the fake driver. What is not understood has no kernel here.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "op/half.h"
#include "support/fake/fake_cuda_state.h"

enum { OPERANDS_MAX = 16, STEPS_MAX = 32 };

typedef struct operand {
    char type[8];
    bool moves;  // otherwise it is one element for all
} operand;

typedef struct call {
    char function[16];  // "" for a plain value
    char arguments[3][40];
    size_t argument_count;
} call;

typedef struct pointwise {
    size_t width;
    char output_type[8];
    operand operands[OPERANDS_MAX];
    size_t operand_count;
    call calls[STEPS_MAX];  // t0, t1, ... and the last one: y
    size_t call_count;
} pointwise;

// ---- the text ---------------------------------------------------------------------------------

static bool read_operand(const char *text, size_t index, operand *out_operand) {
    char wanted[48];
    snprintf(wanted, sizeof(wanted), " *x%zu;\n", index);
    const char *place = strstr(text, wanted);
    if (place == NULL) {
        return false;
    }
    const char *begin = place;
    while (begin > text && begin[-1] != ' ') {
        begin--;
    }
    snprintf(out_operand->type, sizeof(out_operand->type), "%.*s", (int)(place - begin), begin);
    snprintf(wanted, sizeof(wanted), " o%zu = group;", index);
    out_operand->moves = strstr(text, wanted) != NULL;
    return true;
}

static bool read_call(const char *line, call *out_call) {
    char list[128];
    static const char cast[] = "convert<decltype(y)>(";
    memset(out_call, 0, sizeof(*out_call));
    if (strncmp(line, cast, strlen(cast)) == 0) {
        out_call->argument_count = 1;
        return sscanf(line + strlen(cast), "%39[x0-9])", out_call->arguments[0]) == 1;
    }
    if (sscanf(line, "op_%15[A-Za-z](%127[^;]", out_call->function, list) != 2) {
        out_call->function[0] = '\0';
        out_call->argument_count = 1;
        return sscanf(line, "%39[xty0-9];", out_call->arguments[0]) == 1;
    }
    char *rest = list;
    rest[strlen(rest) - 1] = '\0';  // the parenthesis
    for (char *word = strtok_r(rest, ", ", &rest); word != NULL;
         word = strtok_r(NULL, ", ", &rest)) {
        if (out_call->argument_count == 3 || strlen(word) > 39) {
            return false;
        }
        strcpy(out_call->arguments[out_call->argument_count++], word);
    }
    return out_call->argument_count > 0;
}

static bool read_calls(const char *text, pointwise *out) {
    const char *body = strstr(text, "::type y;\n");
    for (body = body != NULL ? strchr(body, '\n') : NULL; body != NULL; body = strchr(body, '\n')) {
        body += 1 + strspn(body + 1, " ");
        if (strncmp(body, "result", 6) == 0) {
            return out->call_count > 0;
        }
        const char *value = strstr(body, " = ");
        if (value == NULL || out->call_count == STEPS_MAX ||
            !read_call(value + 3, &out->calls[out->call_count++])) {
            return false;
        }
    }
    return false;
}

static bool read_pointwise(const char *text, pointwise *out) {
    memset(out, 0, sizeof(*out));
    const char *width = strstr(text, "#define WIDTH ");
    const char *arguments = strstr(text, "struct pointwise_arguments {");
    if (width == NULL || arguments == NULL || strstr(arguments, "i64 extent[") != NULL ||
        sscanf(width, "#define WIDTH %zu", &out->width) != 1 ||
        sscanf(arguments, "struct pointwise_arguments { i64 groups; %7s *y;", out->output_type) !=
            1) {
        return false;
    }
    while (out->operand_count < OPERANDS_MAX &&
           read_operand(arguments, out->operand_count, &out->operands[out->operand_count])) {
        out->operand_count++;
    }
    return read_calls(arguments, out);
}

// ---- elements ---------------------------------------------------------------------------------

static bool load(const char *type, const char *address, size_t index, float *out_value) {
    if (strcmp(type, "float") == 0) {
        memcpy(out_value, address + 4 * index, sizeof(*out_value));
    } else if (strcmp(type, "f16") == 0) {
        uint16_t bits;
        memcpy(&bits, address + 2 * index, sizeof(bits));
        rondo__half_to_float_array(RONDO_DTYPE_F16, &bits, out_value, 1);
    } else if (strcmp(type, "i64") == 0) {
        int64_t number;
        memcpy(&number, address + 8 * index, sizeof(number));
        *out_value = (float)number;
    } else {
        return false;
    }
    return true;
}

static void store(const char *type, char *address, size_t index, float value) {
    if (strcmp(type, "float") == 0) {
        memcpy(address + 4 * index, &value, sizeof(value));
    } else if (strcmp(type, "i64") == 0) {
        const int64_t number = (int64_t)value;
        memcpy(address + 8 * index, &number, sizeof(number));
    } else {
        uint16_t bits;
        rondo__half_from_float_array(RONDO_DTYPE_F16, &value, &bits, 1);
        memcpy(address + 2 * index, &bits, sizeof(bits));
    }
}

typedef struct function {
    const char *name;
    size_t argument_count;
} function;

static const function functions[] = {
    {"", 1},        {"Neg", 1}, {"Abs", 1}, {"Relu", 1}, {"Exp", 1}, {"Sqrt", 1},   {"Tanh", 1},
    {"Sigmoid", 1}, {"Add", 2}, {"Sub", 2}, {"Mul", 2},  {"Div", 2}, {"Affine", 3}, {"Saturate", 1},
};

static float compute(const char *name, const float *a) {
    switch (name[0]) {
        case 'N':
            return -a[0];
        case 'R':
            return a[0] > 0 ? a[0] : 0;
        case 'E':
            return expf(a[0]);
        case 'T':
            return tanhf(a[0]);
        case 'M':
            return a[0] * a[1];
        case 'D':
            return a[0] / a[1];
        case 'A':
            return strcmp(name, "Abs") == 0   ? fabsf(a[0])
                   : strcmp(name, "Add") == 0 ? a[0] + a[1]
                                              : a[0] * a[1] + a[2];
        case 'S':
            return strcmp(name, "Saturate") == 0
                       ? (isfinite(a[0]) ? fminf(fmaxf(a[0], -65504.0f), 65504.0f) : a[0])
                   : strcmp(name, "Sub") == 0  ? a[0] - a[1]
                   : strcmp(name, "Sqrt") == 0 ? sqrtf(a[0])
                                               : 1 / (1 + expf(-a[0]));
        default:
            return a[0];
    }
}

static float get_argument(const char *word, const float *x, const float *t) {
    unsigned bits = 0;
    if (sscanf(word, "__int_as_float(0x%x)", &bits) == 1) {
        float value;
        memcpy(&value, &bits, sizeof(value));
        return value;
    }
    const size_t index = (size_t)strtoul(word + 1, NULL, 10) % STEPS_MAX;
    return word[0] == 'x' ? x[index] : t[index];
}

// ---- a kernel ---------------------------------------------------------------------------------

bool fake_pointwise_is_known(const char *text) {
    pointwise kernel;
    if (!read_pointwise(text, &kernel)) {
        return false;
    }
    float unused;
    const float nothing[4] = {0};
    bool is_known = load(kernel.output_type, (const char *)nothing, 0, &unused);
    for (size_t i = 0; i < kernel.operand_count; i++) {
        is_known = is_known && load(kernel.operands[i].type, (const char *)nothing, 0, &unused);
    }
    for (size_t c = 0; c < kernel.call_count; c++) {
        bool is_there = false;
        for (size_t f = 0; f < sizeof(functions) / sizeof(functions[0]); f++) {
            is_there = is_there || (strcmp(functions[f].name, kernel.calls[c].function) == 0 &&
                                    functions[f].argument_count == kernel.calls[c].argument_count);
        }
        is_known = is_known && is_there;
    }
    return is_known;
}

void fake_pointwise_run(const char *text, const void *arguments, size_t argument_bytes) {
    pointwise kernel;
    int64_t groups;
    char *pointers[1 + OPERANDS_MAX];
    (void)argument_bytes;
    if (!read_pointwise(text, &kernel)) {
        return;
    }
    memcpy(&groups, arguments, sizeof(groups));
    memcpy(pointers, (const char *)arguments + 8, (1 + kernel.operand_count) * sizeof(char *));
    for (size_t e = 0; e < (size_t)groups * kernel.width; e++) {
        float x[OPERANDS_MAX + STEPS_MAX] = {0};
        float t[STEPS_MAX] = {0};
        for (size_t i = 0; i < kernel.operand_count; i++) {
            (void)load(kernel.operands[i].type, pointers[1 + i], kernel.operands[i].moves ? e : 0,
                       &x[i]);
        }
        for (size_t c = 0; c < kernel.call_count; c++) {
            float a[3] = {0};
            for (size_t k = 0; k < kernel.calls[c].argument_count; k++) {
                a[k] = get_argument(kernel.calls[c].arguments[k], x, t);
            }
            t[c] = compute(kernel.calls[c].function, a);
        }
        store(kernel.output_type, pointers[0], e, t[kernel.call_count - 1]);
    }
}

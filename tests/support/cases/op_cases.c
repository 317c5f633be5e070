// SPDX-License-Identifier: Apache-2.0
#include "support/cases/op_cases.h"

#include <ctype.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "kernel/kernel.h"
#include "op/bounds.h"
#include "op/op.h"
#include "op/support.h"
#include "rondo/device.h"
#include "support/cases/kernel_replay.h"

enum { TENSORS_MAX = 50, GUARD_BYTES = 256, GUARD = 0xA5, POISON = 0xFF };

// ---- reading a case ---------------------------------------------------------------------------

typedef struct parsed_case {
    rondo__op op;
    size_t input_count, output_count;
    rondo_tensor inputs[TENSORS_MAX];
    bool is_known[TENSORS_MAX];
    bool has_float;   // a T: to be run again in half precision
    bool has_spoilt;  // an input that special values went into
    unsigned unread;
} parsed_case;

static uint32_t random_state;

static uint32_t next_random(void) {
    random_state = random_state * 1664525u + 1013904223u;
    return random_state >> 8;
}

static double next_uniform(void) {
    return (double)next_random() / 16777216.0;
}

static void store(rondo_tensor *tensor, int64_t index, double value) {
    const size_t bytes = rondo_dtype_get_bytes(tensor->dtype);
    char *element = (char *)tensor->data + (size_t)index * bytes;
    if (tensor->dtype == RONDO_DTYPE_C64 || tensor->dtype == RONDO_DTYPE_C128) {
        const double parts[2] = {value, (double)index};
        rondo__convert_elements(RONDO_DTYPE_F64, parts,
                                bytes == 8 ? RONDO_DTYPE_F32 : RONDO_DTYPE_F64, element, 2);
        return;
    }
    rondo__convert_elements(RONDO_DTYPE_F64, &value, tensor->dtype, element, 1);
}

static double fetch(rondo_dtype dtype, const void *data, int64_t index) {
    const rondo_tensor tensor = {.dtype = dtype, .data = (void *)(uintptr_t)data};
    return rondo__tensor_get_number(&tensor, index);
}

static rondo_dtype parse_dtype(const char *name, rondo_dtype real, bool *out_is_real) {
    *out_is_real = strcmp(name, "T") == 0;
    if (*out_is_real) {
        return real;
    }
    for (int d = 1; d < RONDO_DTYPE_COUNT; d++) {
        if (strcmp(rondo_dtype_get_name((rondo_dtype)d), name) == 0) {
            return (rondo_dtype)d;
        }
    }
    return RONDO_DTYPE_NONE;
}

// About as many deviations from 0 as the digits of the type reach.
static double get_far(rondo_dtype dtype) {
    return dtype == RONDO_DTYPE_F16 ? 512.0 : dtype == RONDO_DTYPE_BF16 ? 32.0 : 577350.0;
}

static void fill_values(rondo_tensor *tensor, const char *values) {
    const int64_t count = rondo_shape_get_count(&tensor->shape), *e = tensor->shape.extent;
    const double limit = strchr("ink", values[0]) != NULL ? atof(values + 1) : 0.0;
    char *at = NULL;
    if (values[0] == '=') {
        const char *text = values + 1;
        for (int64_t i = 0; i < count; i++) {
            store(tensor, i, strtod(text, &at));
            text = *at == ',' ? at + 1 : values + 1;
        }
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        const double u = next_uniform(), least = -65504.0;
        double value = values[0] == 'p' ? 0.1 + 1.9 * u : 2.0 * u - 1.0;
        if (values[0] == 'f') {
            value += get_far(tensor->dtype);
        } else if (values[0] == 'i') {
            value = floor(u * limit);
        } else if (values[0] == 'n' || values[0] == 'k') {
            value = floor(u * 2.0 * limit) - limit;
        } else if (values[0] == 't') {
            value = i % e[1] > i / e[1] + e[1] - e[0] ? least : 0.0;
        }
        store(tensor, i, value);
    }
}

// Puts special values among those of a float tensor.
static void spoil_values(rondo_tensor *tensor, op_case_values how) {
    static const double not_finite[] = {(double)NAN, (double)INFINITY, -(double)INFINITY};
    const double tiny[] = {tensor->dtype == RONDO_DTYPE_F16 ? 6e-8 : 1e-40, -0.0, 0.0,
                           tensor->dtype == RONDO_DTYPE_F16 ? -6e-8 : -1e-40};
    const int64_t count = rondo_shape_get_count(&tensor->shape);
    if (how == OP_CASE_NOT_FINITE && count > 0) {
        for (int64_t i = 0; i < 3 + count / 200; i++) {
            store(tensor, (int64_t)(next_uniform() * (double)count), not_finite[i % 3]);
        }
    }
    for (int64_t i = 0; i < count && how == OP_CASE_ALL_NAN; i++) {
        store(tensor, i, (double)NAN);
    }
    for (int64_t i = 0; i < count && how == OP_CASE_TINY; i += 2) {
        store(tensor, i, tiny[next_random() % 4]);
    }
}

static bool parse_input(const char *token, rondo_dtype real, op_case_values how,
                        parsed_case *parsed) {
    char name[16] = "";
    rondo_shape shape = {0};
    bool is_real = false;
    const size_t index = parsed->input_count++;
    if (strcmp(token, "-") == 0) {
        return true;
    }
    const char *open = strchr(token, '['), *close = strchr(token, ']');
    if (index >= TENSORS_MAX || open == NULL || close == NULL) {
        return false;
    }
    (void)snprintf(name, sizeof(name), "%.*s", (int)(open - token), token);
    const rondo_dtype dtype = parse_dtype(name, real, &is_real);
    parsed->has_float = parsed->has_float || is_real;
    for (const char *at = open + 1; at < close;) {
        char *end = NULL;
        shape.extent[shape.rank++] = strtoll(at, &end, 10);
        at = *end == ',' ? end + 1 : end;
    }
    if (rondo_tensor_init(dtype, &shape, &parsed->inputs[index]) != RONDO_STATUS_OK) {
        return false;
    }
    const char *values = close[1] == ':' ? close + 2 : "u";
    fill_values(&parsed->inputs[index], values);
    parsed->is_known[index] = strchr("w=kt", values[0]) != NULL;
    if (rondo__dtype_is_float(dtype) && !parsed->is_known[index] && values[0] != 'v') {
        spoil_values(&parsed->inputs[index], how);
        parsed->has_spoilt = true;
    }
    return true;
}

enum { LIST_MAX = 32 };

// "Mul,Add," as strings.
static rondo_status take_strings(rondo__op *op, const char *name, char *list) {
    rondo__attribute attribute = {
        .name = rondo__strdup(name),
        .kind = RONDO__ATTRIBUTE_STRINGS,
        .strings = rondo__calloc(LIST_MAX, sizeof(char *)),
    };
    char *rest = NULL;
    for (char *at = strtok_r(list, ",", &rest); at != NULL && attribute.count < LIST_MAX;
         at = strtok_r(NULL, ",", &rest)) {
        attribute.strings[attribute.count++] = rondo__strdup(at);
    }
    return rondo__op_take_attribute(op, &attribute);
}

// "0.5,1.0," as floats.
static rondo_status take_floats(rondo__op *op, const char *name, const char *list) {
    rondo__attribute attribute = {
        .name = rondo__strdup(name),
        .kind = RONDO__ATTRIBUTE_FLOATS,
        .floats = rondo__calloc(LIST_MAX, sizeof(float)),
    };
    for (const char *at = list; *at != '\0' && attribute.count < LIST_MAX;) {
        char *end = NULL;
        attribute.floats[attribute.count++] = strtof(at, &end);
        at = end + (*end != '\0');
    }
    return rondo__op_take_attribute(op, &attribute);
}

static rondo_status parse_attribute(rondo__op *op, char *token) {
    char *value = strchr(token, '=');
    int64_t ints[LIST_MAX];
    size_t count = 0;
    char *end = NULL;
    *value++ = '\0';
    if (*value == '\'') {
        return rondo__op_set_string(op, token, value + 1);
    }
    const long long number = strtoll(value, &end, 10);
    if (end != value && *end == '\0') {
        return rondo__op_set_int(op, token, number);
    }
    if (strchr(value, ',') != NULL && isalpha((unsigned char)*value)) {
        return take_strings(op, token, value);
    }
    if (strchr(value, ',') != NULL && strchr(value, '.') != NULL) {
        return take_floats(op, token, value);
    }
    if (strchr(value, ',') != NULL) {
        for (char *at = value; *at != '\0' && count < LIST_MAX;) {
            ints[count++] = strtoll(at, &end, 10);
            at = *end == ',' ? end + 1 : end;
        }
        return rondo__op_set_ints(op, token, ints, count);
    }
    const float real = strtof(value, &end);
    if (end != value && *end == '\0') {
        return rondo__op_set_float(op, token, real);
    }
    return rondo__op_set_string(op, token, value);
}

static void free_case(parsed_case *parsed) {
    for (size_t i = 0; i < parsed->input_count && i < TENSORS_MAX; i++) {
        rondo_tensor_deinit(&parsed->inputs[i]);
    }
    rondo__op_deinit(&parsed->op);
}

static bool parse_case(const op_case *source, rondo_dtype real, op_case_values how,
                       parsed_case *out_parsed) {
    char text[512], *keep = NULL;
    const char *dot = strrchr(source->op, '.');
    char domain[40] = "";
    parsed_case parsed = {.output_count = (size_t)source->outputs};
    bool is_good = true;

    (void)snprintf(domain, sizeof domain, "%.*s", dot != NULL ? (int)(dot - source->op) : 0,
                   source->op);
    parsed.op.def = rondo__op_lookup(domain, dot != NULL ? dot + 1 : source->op, source->opset);
    if (parsed.op.def == NULL) {
        return false;
    }
    parsed.op.name = strdup("case");
    parsed.op.opset = source->opset;
    random_state = 1;
    (void)snprintf(text, sizeof(text), "%s", source->inputs);
    for (char *token = strtok_r(text, " ", &keep); token != NULL && is_good;
         token = strtok_r(NULL, " ", &keep)) {
        is_good = parse_input(token, real, how, &parsed);
    }
    (void)snprintf(text, sizeof(text), "%s", source->attributes);
    for (char *token = strtok_r(text, " ", &keep); token != NULL && is_good;
         token = strtok_r(NULL, " ", &keep)) {
        if (strncmp(token, "unread=", 7) == 0) {
            parsed.unread = (unsigned)strtoul(token + 7, NULL, 10);
            continue;
        }
        is_good = parse_attribute(&parsed.op, token) == RONDO_STATUS_OK;
    }
    if (!is_good) {
        free_case(&parsed);
        return false;
    }
    *out_parsed = parsed;
    return true;
}

// ---- running it -------------------------------------------------------------------------------

typedef struct device_run {
    rondo_device *device;
    rondo_stream *stream;
    rondo__weight_account account;
    rondo__weight_list weights;
    rondo__kernel *kernel;
    size_t input_count, output_count;
    void *inputs[TENSORS_MAX], *outputs[TENSORS_MAX];
    void *workspace;
    void *host;  // as large as the largest output with its guard
    bool is_strict;
    bool is_quotient;  // whose NaN has either sign, as processors have it; narrow floats have one
    bool is_rounded;   // f32 results, of f16 that was rounded on the way
    size_t output_bytes[TENSORS_MAX];
} device_run;

static rondo_status poison(device_run *run) {
    for (size_t i = 0; i < run->output_count; i++) {
        rondo_status status =
            rondo_stream_fill(run->stream, run->outputs[i], POISON, 1, run->output_bytes[i]);
        if (status == RONDO_STATUS_OK) {
            status = rondo_stream_fill(run->stream, (char *)run->outputs[i] + run->output_bytes[i],
                                       GUARD, 1, GUARD_BYTES);
        }
        if (status != RONDO_STATUS_OK) {
            return status;
        }
    }
    return rondo_stream_synchronize(run->stream);
}

static rondo_status launch(device_run *run) {
    return run->kernel->launch(run->kernel, run->stream, (const void *const *)run->inputs,
                               run->outputs, run->workspace);
}

// Largest |result - wanted| over the larger of 1 and the largest |wanted|; exact for integers.
// Strict: over the largest |wanted| alone, and within few roundings.
static bool is_close(const device_run *run, const rondo_tensor *wanted, char *message,
                     size_t message_bytes) {
    const void *result = run->host;
    const bool is_strict = run->is_strict;
    const int64_t count = rondo_shape_get_count(&wanted->shape);
    double largest = is_strict ? 1e-30 : 1.0;
    const double single = is_strict ? 1e-6 : run->is_rounded ? 1e-3 : 2e-5;
    const double tolerance = wanted->dtype == RONDO_DTYPE_F32    ? single
                             : wanted->dtype == RONDO_DTYPE_F64  ? 1e-12
                             : wanted->dtype == RONDO_DTYPE_F16  ? 1e-2
                             : wanted->dtype == RONDO_DTYPE_BF16 ? 2e-2
                                                                 : 0.0;
    for (int64_t i = 0; i < count; i++) {
        const double value = fabs(fetch(wanted->dtype, wanted->data, i));
        largest = isfinite(value) && value > largest ? value : largest;
    }
    for (int64_t i = 0; i < count; i++) {
        const double want = fetch(wanted->dtype, wanted->data, i);
        const double got = fetch(wanted->dtype, result, i);
        const size_t bytes = rondo_dtype_get_bytes(wanted->dtype), at = (size_t)i * bytes;
        if (!rondo__dtype_is_float(wanted->dtype) && !(run->is_quotient && isnan(want + got)) &&
            memcmp((const char *)result + at, (const char *)wanted->data + at, bytes) != 0) {
            // Of 64 bits, more differ than a double shows.
            (void)snprintf(message, message_bytes, "element %lld is %.17g, not %.17g", (long long)i,
                           got, want);
            return false;
        }
        if ((isnan(want) && isnan(got)) || (isinf(want) && isinf(got) && (want > 0) == (got > 0))) {
            continue;
        }
        if (!(fabs(got - want) / largest <= tolerance)) {
            (void)snprintf(message, message_bytes, "element %lld is %g, not %g (largest %g)",
                           (long long)i, got, want, largest);
            return false;
        }
    }
    return true;
}

static bool check_outputs(device_run *run, const rondo_tensor *wanted, const char *mode,
                          char *message, size_t message_bytes) {
    for (size_t i = 0; i < run->output_count; i++) {
        char difference[120];
        const size_t bytes = run->output_bytes[i];
        if (rondo_stream_copy(run->stream, run->host, run->outputs[i], bytes + GUARD_BYTES,
                              RONDO_COPY_DEVICE_TO_HOST) != RONDO_STATUS_OK ||
            rondo_stream_synchronize(run->stream) != RONDO_STATUS_OK) {
            (void)snprintf(message, message_bytes, "%s: %s", mode, rondo_error_get_last()->message);
            return false;
        }
        for (size_t g = 0; g < GUARD_BYTES; g++) {
            if (((const uint8_t *)run->host)[bytes + g] != GUARD) {
                (void)snprintf(message, message_bytes, "%s: output %zu: wrote behind its end", mode,
                               i);
                return false;
            }
        }
        if (wanted[i].dtype != RONDO_DTYPE_NONE &&
            !is_close(run, &wanted[i], difference, sizeof difference)) {
            (void)snprintf(message, message_bytes, "%s: output %zu: %s (%s)", mode, i, difference,
                           run->kernel->implementation);
            return false;
        }
    }
    return true;
}

static rondo_status put_inputs(device_run *run, const parsed_case *parsed) {
    rondo_status status = rondo__weight_list_settle(&run->weights);
    run->input_count = parsed->input_count;
    for (size_t i = 0; i < parsed->input_count && status == RONDO_STATUS_OK; i++) {
        const size_t bytes = rondo_tensor_get_bytes(&parsed->inputs[i]);
        const bool is_owned = (run->kernel->owned_inputs >> i & 1) != 0;
        if (parsed->inputs[i].dtype == RONDO_DTYPE_NONE || is_owned || bytes == 0) {
            continue;
        }
        status = rondo_memory_allocate(run->device, RONDO_MEMORY_DEVICE, bytes, &run->inputs[i]);
        if (status == RONDO_STATUS_OK) {
            status = rondo_stream_copy(run->stream, run->inputs[i], parsed->inputs[i].data, bytes,
                                       RONDO_COPY_HOST_TO_DEVICE);
        }
    }
    return status;
}

// Places as large as the kernel was told.
static rondo_status make_outputs(device_run *run, const rondo__tensor_info *outputs, size_t count) {
    rondo_status status = RONDO_STATUS_OK;
    size_t most = 0;
    run->output_count = count;
    for (size_t i = 0; i < count && status == RONDO_STATUS_OK; i++) {
        const rondo_tensor shell = {.dtype = outputs[i].dtype, .shape = outputs[i].shape};
        run->output_bytes[i] = rondo_tensor_get_bytes(&shell);
        most = run->output_bytes[i] > most ? run->output_bytes[i] : most;
        status = rondo_memory_allocate(run->device, RONDO_MEMORY_DEVICE,
                                       run->output_bytes[i] + GUARD_BYTES, &run->outputs[i]);
    }
    if (status == RONDO_STATUS_OK && run->kernel->workspace_bytes > 0) {
        status = rondo_memory_allocate(run->device, RONDO_MEMORY_DEVICE,
                                       run->kernel->workspace_bytes, &run->workspace);
    }
    run->host = malloc(most + GUARD_BYTES);
    return run->host == NULL ? RONDO_STATUS_NO_MEMORY : status;
}

static void end_run(device_run *run) {
    if (run->stream != NULL && rondo_stream_synchronize(run->stream) != RONDO_STATUS_OK) {
        printf("     (the stream failed: %s)\n", rondo_error_get_last()->message);
    }
    for (size_t i = 0; i < TENSORS_MAX; i++) {
        rondo_memory_free(run->device, run->inputs[i]);
        rondo_memory_free(run->device, run->outputs[i]);
    }
    rondo_memory_free(run->device, run->workspace);
    rondo__kernel_destroy(run->kernel);
    rondo__weight_list_cut(&run->weights, 0);
    rondo__weight_store_destroy(run->account.store);
    if (run->stream == NULL) {
        rondo_stream_destroy(run->account.stream);
    }
    free(run->host);
}

// With output 0 in the place of each input that the kernel says it may take over.
static bool run_in_place(device_run *run, const rondo_tensor *wanted, char *message,
                         size_t message_bytes) {
    for (size_t i = 0; i < TENSORS_MAX; i++) {
        if ((run->kernel->in_place_inputs >> i & 1) == 0 || run->inputs[i] == NULL) {
            continue;
        }
        void *const kept = run->inputs[i];
        rondo_status status = poison(run);
        if (status == RONDO_STATUS_OK && run->output_bytes[0] > 0) {
            status = rondo_stream_copy(run->stream, run->outputs[0], kept, run->output_bytes[0],
                                       RONDO_COPY_DEVICE_TO_DEVICE);
        }
        run->inputs[i] = run->outputs[0];
        if (run->kernel->join_output != NULL) {
            run->kernel->join_output(run->kernel);
        }
        if (status == RONDO_STATUS_OK) {
            status = launch(run);
        }
        run->inputs[i] = kept;
        if (status != RONDO_STATUS_OK) {
            (void)snprintf(message, message_bytes, "in place: %s", rondo_error_get_last()->message);
            return false;
        }
        if (!check_outputs(run, wanted, "in place", message, message_bytes)) {
            return false;
        }
    }
    return true;
}

// What is done with a kernel: put on the stream once, run and compared, or that in all modes.
typedef enum run_mode { ISSUE, COMPARE_EAGER, COMPARE } run_mode;

// Whether it is told that it works in place, and from then on can do nothing else.
static bool stays_in_place(const device_run *run) {
    return run->kernel->join_output != NULL && run->kernel->in_place_inputs != 0;
}

// Eager, in place, then replayed, of a capture and of a graph made node by node.
static bool run_modes(device_run *run, run_mode mode, const rondo_tensor *wanted, char *message,
                      size_t message_bytes) {
    bool is_good = false;
    rondo_status status = poison(run);
    if (status == RONDO_STATUS_OK) {
        status = launch(run);
    }
    if (status == RONDO_STATUS_OK &&
        (!check_outputs(run, wanted, "eager", message, message_bytes) ||
         (!stays_in_place(run) && !run_in_place(run, wanted, message, message_bytes)))) {
        return false;
    }
    const bool is_enough = mode == COMPARE_EAGER && run->kernel->workspace_bytes == 0;
    if (status == RONDO_STATUS_OK && (is_enough || run->kernel->capture == RONDO__CAPTURE_NEVER)) {
        return true;
    }
    if (status == RONDO_STATUS_OK) {
        status = poison(run);
    }
    for (int turn = 0; turn < 2 && status == RONDO_STATUS_OK; turn++) {
        status = kernel_replay(run->kernel, run->stream, (const void *const *)run->inputs,
                               run->outputs, run->workspace, turn > 0);
        if (status == RONDO_STATUS_OK) {
            is_good = check_outputs(run, wanted, "replayed", message, message_bytes);
            status = is_good ? poison(run) : RONDO_STATUS_OK;
        }
        if (!is_good) {
            break;
        }
    }
    if (status != RONDO_STATUS_OK) {
        (void)snprintf(message, message_bytes, "%s: %s", rondo_status_get_name(status),
                       rondo_error_get_last()->message);
        is_good = false;
    }
    return is_good && (!stays_in_place(run) || run_in_place(run, wanted, message, message_bytes));
}

// cuDNN's tensor core engines let infinities of x vanish or spread. Attention takes keys in tiles:
// of a key that one row sees, what is not finite makes NaN of the others. The host cuts a transform
// by its factors: infinity less infinity is NaN. Keys that a known mask hides are not read.
typedef enum outcome { PASSED, FAILED, FAILED_AS_KNOWN, UNSUPPORTED } outcome;

static bool is_excused_op(const op_case *source) {
    return strcmp(source->op, "DFT") == 0 || strcmp(source->op, "STFT") == 0 ||
           strstr(source->inputs, ":t") != NULL ||
           (strstr(source->op, "Attention") != NULL && strcmp(source->op, "rondo.Attention") != 0 &&
            strcmp(source->op, "LinearAttention") != 0);
}

static bool issue(device_run *run, char *message, size_t message_bytes) {
    const rondo_status status = launch(run);
    if (status != RONDO_STATUS_OK) {
        (void)snprintf(message, message_bytes, "%s: %s", rondo_status_get_name(status),
                       rondo_error_get_last()->message);
    }
    return status == RONDO_STATUS_OK;
}

// What a GPU's kernel writes whose shapes depend on data: results as large as they can be, and how
// much it found. Returns the number of outputs; 0: on failure.
static size_t expect_count(const parsed_case *parsed, const rondo__tensor_info *inputs,
                           rondo__tensor_info *outputs, rondo_tensor *wanted) {
    const size_t last = rondo__op_get_count_output(parsed->op.def);
    const rondo_shape one = {.rank = 1, .extent = {1}};
    rondo__op_bound bound;
    if (rondo_tensor_init(RONDO_DTYPE_I64, &one, &wanted[last]) != RONDO_STATUS_OK) {
        return 0;
    }
    for (size_t i = 0; i < parsed->output_count; i++) {
        if (!rondo__op_get_bound(&parsed->op, inputs, parsed->input_count, i, &bound)) {
            return 0;
        }
        if (i == 0) {
            store(&wanted[last], 0, (double)wanted[0].shape.extent[bound.axis]);
        }
        outputs[i].shape = bound.shape;
    }
    outputs[last] =
        (rondo__tensor_info){.dtype = RONDO_DTYPE_I64, .is_shape_known = true, .shape = one};
    return last + 1;
}

static outcome run_parsed(rondo_stream *stream, run_mode mode, parsed_case *parsed, bool is_strict,
                          char *message, size_t message_bytes) {
    rondo_device *device = rondo_stream_get_device(stream);
    rondo__tensor_info inputs[TENSORS_MAX] = {0}, outputs[TENSORS_MAX] = {0};
    const rondo_tensor *tensors[TENSORS_MAX] = {0};
    rondo_tensor wanted[TENSORS_MAX] = {0};
    device_run run = {
        .device = device,
        .stream = stream,
        .is_strict = is_strict,
        .is_quotient = strcmp(parsed->op.def->name, "QuantizeLinear") == 0,
        .is_rounded = parsed->inputs[0].dtype == RONDO_DTYPE_F16 &&
                      (strcmp(parsed->op.def->name, "NormMatMul") == 0 ||
                       (strcmp(parsed->op.def->name, "MatMul") == 0 && parsed->output_count > 1)),
    };
    outcome result = FAILED;

    for (size_t i = 0; i < parsed->input_count; i++) {
        const rondo_tensor *tensor = &parsed->inputs[i];
        tensors[i] = tensor->dtype != RONDO_DTYPE_NONE ? tensor : NULL;
        inputs[i] = (rondo__tensor_info){
            .dtype = tensor->dtype,
            .is_shape_known = true,
            .shape = tensor->shape,
            .constant = parsed->is_known[i] ? tensor : NULL,
        };
    }
    rondo__compute compute = {
        .op = &parsed->op,
        .input_count = parsed->input_count,
        .output_count = parsed->output_count,
        .inputs = tensors,
        .outputs = wanted,
    };
    rondo_status status = rondo__op_compute(&compute);
    for (size_t i = 0; i < parsed->output_count; i++) {
        if ((parsed->unread >> i & 1u) != 0) {
            rondo_tensor_deinit(&wanted[i]);
            continue;
        }
        outputs[i] = (rondo__tensor_info){
            .dtype = wanted[i].dtype, .is_shape_known = true, .shape = wanted[i].shape};
    }
    size_t output_count = parsed->output_count;
    if (status == RONDO_STATUS_OK && !rondo_device_is_host(device) &&
        parsed->op.def->bound != NULL) {
        output_count = expect_count(parsed, inputs, outputs, wanted);
        status = output_count > 0 ? RONDO_STATUS_OK : RONDO_STATUS_INTERNAL;
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__weight_store_create(device, RONDO_MEMORY_DEVICE, &run.account.store);
    }
    run.account.stream = stream;
    if (status == RONDO_STATUS_OK && stream == NULL) {
        status = rondo_stream_create(device, NULL, &run.account.stream);
    }
    rondo__weight_list_init(&run.account, &run.weights);
    const rondo__kernel_request request = {
        .device = device,
        .weights = &run.weights,
        .op = &parsed->op,
        .input_count = parsed->input_count,
        .inputs = inputs,
        .output_count = output_count,
        .outputs = outputs,
    };
    if (status == RONDO_STATUS_OK) {
        status = rondo__kernel_prepare(&request, &run.kernel);
        status = status == RONDO_STATUS_OK ? kernel_restore(&request, &run.kernel) : status;
        if (status == RONDO_STATUS_UNSUPPORTED) {
            result = UNSUPPORTED;
        }
    }
    if (status == RONDO_STATUS_OK) {
        status = put_inputs(&run, parsed);
    }
    if (status == RONDO_STATUS_OK) {
        status = make_outputs(&run, outputs, output_count);
    }
    if (status == RONDO_STATUS_OK) {
        const bool runs = mode == ISSUE ? issue(&run, message, message_bytes)
                                        : run_modes(&run, mode, wanted, message, message_bytes);
        const bool is_half_cudnn = run.kernel->implementation != NULL &&
                                   strcmp(run.kernel->implementation, "cudnn") == 0 &&
                                   wanted[0].dtype == RONDO_DTYPE_F16;
        result = runs ? PASSED : is_half_cudnn ? FAILED_AS_KNOWN : FAILED;
    } else {
        const rondo_error *error = rondo_error_get_last();
        (void)snprintf(message, message_bytes, "%s: %s: %s %s", rondo_status_get_name(status),
                       error->call, error->message, error->driver_name);
    }
    end_run(&run);
    for (size_t i = 0; i < TENSORS_MAX; i++) {
        rondo_tensor_deinit(&wanted[i]);
    }
    return result;
}

static void run_case(rondo_stream *stream, run_mode mode, const op_case *source, op_case_values how,
                     op_case_counts *counts) {
    static const char *const names[] = {"", " not finite", " all NaN", " tiny", "", " long"};
    const rondo_dtype reals[] = {RONDO_DTYPE_F32, RONDO_DTYPE_F16, RONDO_DTYPE_BF16};
    const bool is_bfloat = how == OP_CASE_BFLOAT;
    const bool is_spoilt = how != OP_CASE_PLAIN && how != OP_CASE_LONG && !is_bfloat;
    if (is_bfloat && strncmp(source->op, "rondo.", 6) == 0) {
        return;  // passes make such ops of f32 and f16
    }
    for (size_t r = is_bfloat ? 2 : 0; r < (is_bfloat ? 3 : 2); r++) {
        char message[640] = "";
        parsed_case parsed;
        outcome result = FAILED;
        bool has_float = false;
        if (parse_case(source, reals[r], how, &parsed)) {
            has_float = parsed.has_float;
            if ((r > 0 && !has_float) || (is_spoilt && !parsed.has_spoilt)) {
                free_case(&parsed);
                return;
            }
            result =
                run_parsed(stream, mode, &parsed, how == OP_CASE_LONG, message, sizeof(message));
            free_case(&parsed);
        } else {
            (void)snprintf(message, sizeof(message), "the case cannot be read");
        }
        const bool is_excused =
            result == FAILED_AS_KNOWN || (result == FAILED && has_float && is_excused_op(source));
        if (result == FAILED || result == FAILED_AS_KNOWN) {
            result = is_excused && how == OP_CASE_NOT_FINITE ? FAILED_AS_KNOWN : FAILED;
        }
        counts->passed += result == PASSED;
        counts->failed += result == FAILED;
        counts->excused += result == FAILED_AS_KNOWN;
        counts->unsupported += result == UNSUPPORTED;
        if (result != PASSED) {
            printf("%s %s %s%s {%s} {%s}: %s\n",
                   result == FAILED        ? "FAIL"
                   : result == UNSUPPORTED ? "none"
                                           : "known",
                   source->op, has_float ? rondo_dtype_get_name(reals[r]) : "", names[how],
                   source->inputs, source->attributes, message);
        }
    }
}

// Number `index` of the cases that are run with these values; NULL behind the last.
static const op_case *get_case(op_case_values values, size_t index) {
    const struct {
        const op_case *cases;
        size_t count;
    } lists[] = {{op_cases, op_case_count},
                 {op_product_cases, op_product_case_count},
                 {op_norm_cases, op_norm_case_count},
                 {op_narrow_cases, op_narrow_case_count},
                 {op_attention_cases, op_attention_case_count},
                 {op_byte_cases, op_byte_case_count},
                 {op_counted_cases, op_counted_case_count}};
    if (values == OP_CASE_LONG) {
        return index < op_long_case_count ? &op_long_cases[index] : NULL;
    }
    for (size_t l = 0; l < sizeof lists / sizeof lists[0]; l++) {
        if (index < lists[l].count) {
            return &lists[l].cases[index];
        }
        index -= lists[l].count;
    }
    return NULL;
}

// `in_out_count` counts the cases of such ops, of which a part takes its share.
static bool is_wanted(const char *filter, const op_case *c, size_t *in_out_count) {
    char name[64] = "";
    unsigned part = 1, parts = 1;
    if (filter != NULL && sscanf(filter, "%u/%u", &part, &parts) != 2) {
        (void)sscanf(filter, "%63[^@]", name);
        (void)sscanf(filter + strlen(name), "@%u/%u", &part, &parts);
    }
    return parts > 0 && strstr(c->op, name) != NULL && (*in_out_count)++ % parts == part - 1;
}

bool op_cases_run(const char *device_name, const char *filter, op_case_values values,
                  op_case_counts *out_counts) {
    rondo_device *device = NULL;
    rondo_stream *stream = NULL;

    *out_counts = (op_case_counts){0};
    if (rondo_device_open(device_name, &device) != RONDO_STATUS_OK) {
        printf("%s: %s\n", device_name, rondo_error_get_last()->message);
        return false;
    }
    if (rondo_stream_create(device, NULL, &stream) != RONDO_STATUS_OK) {
        printf("%s: %s\n", device_name, rondo_error_get_last()->message);
        rondo_device_release(device);
        return false;
    }
    const op_case *source;
    size_t count = 0;
    // A launch is recorded alike whatever the values: those that are not plain run eagerly alone,
    // but where something stays in a workspace for the next launch.
    const run_mode mode = values == OP_CASE_PLAIN ? COMPARE : COMPARE_EAGER;
    for (size_t i = 0; (source = get_case(values, i)) != NULL; i++) {
        if (is_wanted(filter, source, &count)) {
            run_case(stream, mode, source, values, out_counts);
        }
    }
    rondo_stream_destroy(stream);
    rondo_device_release(device);
    return true;
}

static void issue_all(rondo_stream *stream, const char *filter, op_case_values values,
                      op_case_counts *counts) {
    const op_case *source;
    size_t count = 0;
    for (size_t i = 0; (source = get_case(values, i)) != NULL; i++) {
        if (is_wanted(filter, source, &count)) {
            run_case(stream, ISSUE, source, values, counts);
        }
    }
}

void op_cases_visit_one(const op_case *source, op_case_visitor visit, void *user_data) {
    parsed_case parsed;
    if (parse_case(source, RONDO_DTYPE_F32, OP_CASE_PLAIN, &parsed)) {
        visit(user_data, &parsed.op, parsed.inputs, parsed.is_known, parsed.input_count,
              parsed.output_count);
        free_case(&parsed);
    }
}

void op_cases_visit(op_case_visitor visit, void *user_data) {
    const op_case *source;
    for (size_t i = 0; (source = get_case(OP_CASE_PLAIN, i)) != NULL; i++) {
        op_cases_visit_one(source, visit, user_data);
    }
}

void op_cases_issue(rondo_stream *stream, const char *filter, op_case_counts *out_counts) {
    *out_counts = (op_case_counts){0};
    issue_all(stream, filter, OP_CASE_PLAIN, out_counts);
    issue_all(stream, filter, OP_CASE_LONG, out_counts);
}

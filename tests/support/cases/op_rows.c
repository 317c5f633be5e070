// SPDX-License-Identifier: Apache-2.0

#include "support/cases/op_rows.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "op/support.h"
#include "support/test.h"
#include "tensor/elements.h"

enum { TENSOR_MAX = 18, WORD_MAX = 4096, VALUE_MAX = 1024 };

typedef struct tensor_list {
    double tolerance;  // 0: the usual one
    size_t count;
    rondo_tensor tensors[TENSOR_MAX];  // dtype NONE: "-"
} tensor_list;

// ---- reading rows

static const char *next_word(const char *text, char *word) {
    size_t length = 0;
    while (*text == ' ') {
        text++;
    }
    while (*text != '\0' && *text != ' ') {
        assert_true(length + 1 < WORD_MAX);
        word[length++] = *text++;
    }
    word[length] = '\0';
    return text;
}

static rondo_dtype find_dtype(const char *name, size_t length) {
    for (int d = 1; d < RONDO_DTYPE_COUNT; d++) {
        const char *text = rondo_dtype_get_name((rondo_dtype)d);
        if (strlen(text) == length && strncmp(text, name, length) == 0) {
            return (rondo_dtype)d;
        }
    }
    fail_msg("\"%s\" does not start with a type", name);
    return RONDO_DTYPE_NONE;
}

// Reads a string up to a comma or the end, and moves *text behind it.
static void read_string(const char **text, char *buffer, rondo_string *out_string) {
    static const char codes[] = "sctn";
    static const char meanings[] = " ,\t\n";
    size_t size = 0;
    for (; **text != '\0' && **text != ','; ++*text) {
        char c = **text;
        if (c == '\\') {
            const char *code = strchr(codes, *++*text);
            assert_non_null(code);
            c = meanings[code - codes];
        }
        buffer[size++] = c;
    }
    *out_string = (rondo_string){.data = buffer, .size = size};
    *text += **text == ',';
}

static void read_strings(const char *text, const rondo_shape *shape, rondo_tensor *out_tensor) {
    static char buffers[VALUE_MAX][128];
    rondo_string strings[VALUE_MAX] = {{0}};
    int64_t count = rondo_shape_get_count(shape);
    assert_true(count <= VALUE_MAX);
    for (int64_t i = 0; i < count; i++) {
        read_string(&text, buffers[i], &strings[i]);
    }
    assert_int_equal(rondo_tensor_init_strings(shape, strings, out_tensor), RONDO_STATUS_OK);
}

static void read_tensor(const char *word, rondo_tensor *out_tensor);

// Reads "{a;b}", "<a>" or "<>".
static void read_nested(const char *word, rondo_tensor *out_tensor) {
    char inner[WORD_MAX];
    rondo_tensor items[TENSOR_MAX] = {{0}};
    size_t count = 0;
    size_t length = strlen(word);
    bool is_sequence = word[0] == '{';
    assert_true(length >= 2 && word[length - 1] == (is_sequence ? '}' : '>'));
    memcpy(inner, word + 1, length - 2);
    inner[length - 2] = '\0';
    char *part = inner;
    while (*part != '\0') {
        char *end = is_sequence ? strchr(part, ';') : NULL;
        if (end != NULL) {
            *end = '\0';
        }
        assert_true(count < TENSOR_MAX);
        read_tensor(part, &items[count++]);
        part = end != NULL ? end + 1 : part + strlen(part);
    }
    rondo_status status = is_sequence
                              ? rondo_tensor_init_sequence(items, count, out_tensor)
                              : rondo_tensor_init_optional(count > 0 ? items : NULL, out_tensor);
    assert_int_equal(status, RONDO_STATUS_OK);
    for (size_t i = 0; i < count; i++) {
        rondo_tensor_deinit(&items[i]);
    }
}

static bool is_complex(rondo_dtype dtype) {
    return dtype == RONDO_DTYPE_C64 || dtype == RONDO_DTYPE_C128;
}

static rondo_dtype get_part(rondo_dtype dtype) {
    return dtype == RONDO_DTYPE_C64 ? RONDO_DTYPE_F32 : RONDO_DTYPE_F64;
}

static bool is_real(rondo_dtype dtype) {
    return rondo__dtype_is_float(dtype) ||
           (rondo__dtype_is_narrow(dtype) && !rondo__dtype_is_narrow_integer(dtype));
}

// Fills a tensor from "1*0.5": seed and factor of the pattern.
static void read_pattern(const char *text, rondo_tensor *tensor) {
    char *at = NULL;
    const size_t seed = strtoul(text, &at, 10);
    const double factor = *at == '*' ? strtod(at + 1, &at) : 0.125;
    const size_t count = (size_t)rondo_shape_get_count(&tensor->shape);
    assert_true(at != text && *at == '\0');
    for (size_t i = 0; i < count; i++) {
        const double value = ((double)((i * 37 + seed * 11) % 23) - 11.0) * factor;
        char *element = (char *)tensor->data + i * rondo_dtype_get_bytes(tensor->dtype);
        rondo__convert_elements(RONDO_DTYPE_F64, &value, tensor->dtype, element, 1);
    }
}

// Reads "f32[2,3]:1,2" and the other forms of op_rows.h.
static void read_tensor(const char *word, rondo_tensor *out_tensor) {
    if (word[0] == '{' || word[0] == '<') {
        read_nested(word, out_tensor);
        return;
    }
    const char *bracket = strchr(word, '[');
    assert_non_null(bracket);
    rondo_dtype dtype = find_dtype(word, (size_t)(bracket - word));
    rondo_shape shape = {0};
    char *at = NULL;
    const char *text = bracket + 1;
    while (*text != ']') {
        assert_true(shape.rank < RONDO_RANK_MAX);
        shape.extent[shape.rank++] = strtoll(text, &at, 10);
        text = *at == ',' ? at + 1 : at;
    }
    int64_t count = rondo_shape_get_count(&shape);
    text += text[1] == ':' ? 2 : 1;
    if (dtype == RONDO_DTYPE_STRING) {
        read_strings(text, &shape, out_tensor);
        return;
    }
    assert_int_equal(rondo_tensor_init(dtype, &shape, out_tensor), RONDO_STATUS_OK);
    if (is_complex(dtype)) {  // its parts are
        dtype = get_part(dtype);
        count *= 2;
    }
    if (*text == '~') {
        read_pattern(text + 1, out_tensor);
        return;
    }
    union {
        int64_t whole;
        uint64_t large;
        double real;
    } value = {0};
    rondo_dtype wide = is_real(dtype)             ? RONDO_DTYPE_F64
                       : dtype == RONDO_DTYPE_U64 ? RONDO_DTYPE_U64
                                                  : RONDO_DTYPE_I64;
    for (int64_t i = 0; i < count; i++) {
        if (*text != '\0') {
            if (wide == RONDO_DTYPE_F64) {
                value.real = strtod(text, &at);
            } else if (wide == RONDO_DTYPE_U64) {
                value.large = strtoull(text, &at, 10);
            } else {
                value.whole = strtoll(text, &at, 10);
            }
            assert_true(at != text);
            text = *at == ',' ? at + 1 : at;
        }
        // Infinity is infinity, where a type has it.
        static const rondo__narrow_rule rule = {.is_unbounded = true};
        rondo__convert_elements_by(
            wide, &value, dtype,
            (char *)out_tensor->data + (size_t)i * rondo_dtype_get_bytes(dtype), 1, &rule);
    }
}

static void read_tensors(const char *text, tensor_list *out_list) {
    char word[WORD_MAX];
    memset(out_list, 0, sizeof *out_list);
    for (text = next_word(text, word); word[0] != '\0'; text = next_word(text, word)) {
        assert_true(out_list->count < TENSOR_MAX);
        if (word[0] == '~') {
            out_list->tolerance = strtod(word + 1, NULL);
            continue;
        }
        if (strcmp(word, "-") != 0) {
            read_tensor(word, &out_list->tensors[out_list->count]);
        }
        out_list->count++;
    }
}

static void free_tensors(tensor_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        rondo_tensor_deinit(&list->tensors[i]);
    }
}

static void set_list(rondo__op *op, const char *name, bool is_real, const char *text) {
    rondo__attribute attribute = {.kind =
                                      is_real ? RONDO__ATTRIBUTE_FLOATS : RONDO__ATTRIBUTE_INTS};
    attribute.name = rondo__strdup(name);
    attribute.ints = is_real ? NULL : rondo__calloc(VALUE_MAX, sizeof(int64_t));
    attribute.floats = is_real ? rondo__calloc(VALUE_MAX, sizeof(float)) : NULL;
    while (*text != '\0') {
        char *at = NULL;
        assert_true(attribute.count < VALUE_MAX);
        if (is_real) {
            attribute.floats[attribute.count++] = strtof(text, &at);
        } else {
            attribute.ints[attribute.count++] = strtoll(text, &at, 10);
        }
        assert_true(at != text);
        text = *at == ',' ? at + 1 : at;
    }
    assert_int_equal(rondo__op_take_attribute(op, &attribute), RONDO_STATUS_OK);
}

static void set_words(rondo__op *op, const char *name, const char *text) {
    static char buffers[VALUE_MAX][128];
    const char *words[VALUE_MAX];
    size_t count = 0;
    for (rondo_string word; *text != '\0'; count++) {
        assert_true(count < VALUE_MAX);
        read_string(&text, buffers[count], &word);
        buffers[count][word.size] = '\0';
        words[count] = buffers[count];
    }
    assert_int_equal(rondo__op_set_strings(op, name, words, count), RONDO_STATUS_OK);
}

// Turns each \s of a text into a blank.
static const char *set_blanks(char *text) {
    char *to = text;
    for (const char *from = text; *from != '\0'; from++) {
        const bool is_blank = from[0] == '\\' && from[1] == 's';
        from += is_blank;
        *to++ = is_blank ? ' ' : *from;
    }
    *to = '\0';
    return text;
}

static void set_attribute(rondo__op *op, char *word) {
    char *value = strchr(word, '=');
    rondo_status status = RONDO_STATUS_OK;
    assert_non_null(value);
    *value++ = '\0';
    if (value[0] == '\0' || value[1] != ':') {
        status = rondo__op_set_int(op, word, strtoll(value, NULL, 10));
    } else if (value[0] == 'f') {
        status = rondo__op_set_float(op, word, strtof(value + 2, NULL));
    } else if (value[0] == 's') {
        status = rondo__op_set_string(op, word, set_blanks(value + 2));
    } else if (value[0] == 'S') {
        set_words(op, word, value + 2);
    } else if (value[0] == 'T') {
        rondo_tensor tensor;
        read_tensor(value + 2, &tensor);
        status = rondo__op_set_tensor(op, word, &tensor);
        rondo_tensor_deinit(&tensor);
    } else {
        set_list(op, word, value[0] == 'F', value + 2);
    }
    assert_int_equal(status, RONDO_STATUS_OK);
}

static void make_op(const op_row *row, rondo__op *out_op) {
    char word[WORD_MAX];
    memset(out_op, 0, sizeof *out_op);
    char domain[64] = "";
    const char *dot = strrchr(row->op, '.');
    (void)snprintf(domain, sizeof domain, "%.*s", dot != NULL ? (int)(dot - row->op) : 0, row->op);
    out_op->def = rondo__op_lookup(domain, dot != NULL ? dot + 1 : row->op, row->opset);
    if (out_op->def == NULL) {
        fail_msg("no op %s at opset %d", row->op, row->opset);
    }
    out_op->opset = row->opset;
    out_op->name = rondo__strdup("the_node");
    const char *text = next_word(row->attributes, word);
    for (; word[0] != '\0'; text = next_word(text, word)) {
        set_attribute(out_op, word);
    }
}

// ---- running

static rondo_status run(const rondo__op *op, const tensor_list *inputs, tensor_list *outputs) {
    const rondo_tensor *pointers[TENSOR_MAX];
    for (size_t i = 0; i < inputs->count; i++) {
        bool is_absent = inputs->tensors[i].dtype == RONDO_DTYPE_NONE;
        pointers[i] = is_absent ? NULL : &inputs->tensors[i];
    }
    rondo_status status = rondo__op_check(op);
    if (status != RONDO_STATUS_OK) {
        return status;
    }
    rondo__compute compute = {.op = op,
                              .input_count = inputs->count,
                              .output_count = outputs->count,
                              .inputs = pointers,
                              .outputs = outputs->tensors};
    return rondo__op_compute(&compute);
}

static bool is_close(rondo_dtype dtype, double got, double want, double tolerance) {
    if (isnan(want) || isinf(want) || !rondo__dtype_is_float(dtype)) {
        return isnan(want) ? isnan(got) != 0 : got == want;
    }
    double usual = dtype == RONDO_DTYPE_F16 || dtype == RONDO_DTYPE_BF16 ? 8e-3 : 1e-6;
    double relative = tolerance > 0.0 ? tolerance : usual;
    return fabs(got - want) <= relative * (fabs(want) > 1.0 ? fabs(want) : 1.0);
}

static void compare_output(const op_row *row, size_t i, const rondo_tensor *got,
                           const rondo_tensor *want, double tolerance) {
    if (got->dtype != want->dtype || !rondo_shape_is_equal(&got->shape, &want->shape)) {
        char a[96];
        char b[96];
        fail_msg("%s \"%s\" %s: output %zu is %s %s, expected %s %s", row->op, row->inputs,
                 row->attributes, i, rondo_dtype_get_name(got->dtype),
                 rondo_shape_format(&got->shape, a, sizeof a), rondo_dtype_get_name(want->dtype),
                 rondo_shape_format(&want->shape, b, sizeof b));
    }
    for (int64_t k = 0; k < rondo_shape_get_count(&want->shape); k++) {
        if (rondo__dtype_is_nested(want->dtype)) {
            compare_output(row, i, rondo_tensor_get_item(got, (size_t)k),
                           rondo_tensor_get_item(want, (size_t)k), tolerance);
            continue;
        }
        if (want->dtype == RONDO_DTYPE_STRING) {
            const rondo_string *a = (const rondo_string *)got->data + k;
            const rondo_string *b = (const rondo_string *)want->data + k;
            if (rondo__string_compare(a, b) != 0 || a->data[a->size] != '\0') {
                fail_msg(
                    "%s \"%s\" %s: element %lld of output %zu is \"%.*s\", expected "
                    "\"%s\"",
                    row->op, row->inputs, row->attributes, (long long)k, i, (int)a->size, a->data,
                    b->data);
            }
            continue;
        }
        if (is_complex(want->dtype)) {
            const size_t bytes = rondo_dtype_get_bytes(want->dtype);
            if (memcmp((const char *)got->data + (size_t)k * bytes,
                       (const char *)want->data + (size_t)k * bytes, bytes) != 0) {
                fail_msg("%s \"%s\" %s: element %lld of output %zu is another", row->op,
                         row->inputs, row->attributes, (long long)k, i);
            }
            continue;
        }
        double a = rondo__tensor_get_number(got, k);
        double b = rondo__tensor_get_number(want, k);
        // Whole numbers may be too large for a double: compare them as they are.
        bool is_right = is_real(want->dtype)
                            ? is_close(want->dtype, a, b, tolerance)
                            : rondo__tensor_get_int(got, k) == rondo__tensor_get_int(want, k);
        if (!is_right) {
            fail_msg("%s \"%s\" %s: element %lld of output %zu is %.9g, expected %.9g", row->op,
                     row->inputs, row->attributes, (long long)k, i, a, b);
        }
    }
}

static void compare(const op_row *row, const tensor_list *outputs, const tensor_list *expected) {
    for (size_t i = 0; i < expected->count; i++) {
        if (expected->tensors[i].dtype != RONDO_DTYPE_NONE) {
            compare_output(row, i, &outputs->tensors[i], &expected->tensors[i],
                           expected->tolerance);
        }
    }
}

static void check_failure(const op_row *row, const rondo__op *op, const tensor_list *inputs) {
    char status_name[WORD_MAX];
    char *at = NULL;
    const size_t wanted = strtoul(row->expected + 1, &at, 10);
    const char *part = next_word(at, status_name);
    while (*part == ' ') {
        part++;
    }
    tensor_list outputs = {.count = wanted > 0 ? wanted : 1};
    rondo_status status = run(op, inputs, &outputs);
    const rondo_error *error = rondo_error_get_last();
    if (strcmp(rondo_status_get_name(status), status_name) != 0 ||
        strstr(error->message, part) == NULL || strcmp(error->op, "the_node") != 0) {
        fail_msg("%s \"%s\" %s: got %s \"%s\" of \"%s\", expected %s", row->op, row->inputs,
                 row->attributes, rondo_status_get_name(status), error->message, error->op,
                 row->expected);
    }
    // Nothing may be left in outputs that were to be allocated.
    assert_int_equal(outputs.tensors[0].dtype, RONDO_DTYPE_NONE);
}

typedef struct countdown {
    size_t left;
    bool has_fired;
} countdown;

static bool fail_nth(void *user_data) {
    countdown *count = user_data;
    if (count->left == 0) {
        count->has_fired = true;
        return true;
    }
    count->left--;
    return false;
}

static void sweep_failures(const op_row *row, const rondo__op *op, const tensor_list *inputs,
                           const tensor_list *expected) {
    for (size_t n = 0;; n++) {
        countdown count = {.left = n};
        tensor_list outputs = {.count = expected->count};
        rondo__memory_set_fault(fail_nth, &count);
        rondo_status status = run(op, inputs, &outputs);
        rondo__memory_set_fault(NULL, NULL);
        if (!count.has_fired) {
            assert_int_equal(status, RONDO_STATUS_OK);
            free_tensors(&outputs);
            return;
        }
        if (status != RONDO_STATUS_NO_MEMORY) {
            fail_msg("%s \"%s\": allocation %zu failed, but the status is %s", row->op, row->inputs,
                     n, rondo_status_get_name(status));
        }
        for (size_t i = 0; i < outputs.count; i++) {
            assert_int_equal(outputs.tensors[i].dtype, RONDO_DTYPE_NONE);
        }
    }
}

static void check_inference(const op_row *row, const rondo__op *op, const tensor_list *inputs,
                            const tensor_list *outputs) {
    rondo__tensor_info in[TENSOR_MAX] = {{0}};
    rondo__tensor_info out[TENSOR_MAX] = {{0}};
    bool has_nested = false;
    for (size_t i = 0; i < inputs->count; i++) {
        in[i].dtype = inputs->tensors[i].dtype;
        in[i].is_shape_known = !rondo__dtype_is_nested(in[i].dtype);
        in[i].shape = inputs->tensors[i].shape;
        has_nested = has_nested || rondo__dtype_is_nested(in[i].dtype);
    }
    rondo__infer infer = {.op = op,
                          .input_count = inputs->count,
                          .output_count = outputs->count,
                          .inputs = in,
                          .outputs = out};
    assert_int_equal(rondo__op_infer(&infer), RONDO_STATUS_OK);
    for (size_t i = 0; i < outputs->count; i++) {
        if (has_nested) {
            continue;  // nothing is known of what comes out of a sequence
        }
        if (out[i].dtype != outputs->tensors[i].dtype) {
            fail_msg("%s: output %zu is inferred as %s", row->op, i,
                     rondo_dtype_get_name(out[i].dtype));
        }
        if (!out[i].is_shape_known) {
            assert_true(infer.is_data_dependent || infer.needed_inputs != 0);
        } else if (!rondo_shape_is_equal(&out[i].shape, &outputs->tensors[i].shape)) {
            char text[96];
            fail_msg("%s: output %zu is inferred as %s", row->op, i,
                     rondo_shape_format(&out[i].shape, text, sizeof text));
        }
    }
}

static void check_row(const op_row *row) {
    rondo__op op;
    tensor_list inputs;
    tensor_list expected;
    make_op(row, &op);
    read_tensors(row->inputs, &inputs);
    if (row->expected[0] == '!') {
        check_failure(row, &op, &inputs);
    } else {
        read_tensors(row->expected, &expected);
        tensor_list outputs = {.count = expected.count};
        rondo_status status = run(&op, &inputs, &outputs);
        if (status != RONDO_STATUS_OK) {
            fail_msg("%s \"%s\" %s: %s", row->op, row->inputs, row->attributes,
                     rondo_error_get_last()->message);
        }
        compare(row, &outputs, &expected);
        check_inference(row, &op, &inputs, &outputs);
        for (size_t i = 0; i < outputs.count; i++) {
            // What is taken from a sequence shares its bytes.
            bool is_shared = inputs.count > 0 && rondo__dtype_is_nested(inputs.tensors[0].dtype);
            if (is_shared || !rondo__dtype_is_plain(outputs.tensors[i].dtype)) {
                rondo_tensor_deinit(&outputs.tensors[i]);
                continue;
            }
            memset(outputs.tensors[i].data, 0x5a, rondo_tensor_get_bytes(&outputs.tensors[i]));
        }
        assert_int_equal(run(&op, &inputs, &outputs), RONDO_STATUS_OK);
        compare(row, &outputs, &expected);
        free_tensors(&outputs);
        sweep_failures(row, &op, &inputs, &expected);
        free_tensors(&expected);
    }
    free_tensors(&inputs);
    rondo__op_deinit(&op);
}

void op_rows_check(const op_row *rows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        check_row(&rows[i]);
    }
}

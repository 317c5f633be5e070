#include "support/op_probe.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "op/support.h"
#include "rondo/status.h"

enum { LIST_MAX = 64 };

static void require(rondo_status status) {
    if (status != RONDO_STATUS_OK) {
        fail_msg("%s: %s", rondo_status_get_name(status), rondo_error_get_last()->message);
    }
}

void op_probe_init(op_probe *test, const char *domain, const char *name, int32_t opset) {
    memset(test, 0, sizeof *test);
    test->op.def = rondo__op_lookup(domain, name, opset);
    if (test->op.def == NULL) {
        fail_msg("no op %s at version %d", name, opset);
    }
    test->op.name = rondo__strdup("node");
    assert_non_null(test->op.name);
    test->op.opset = opset;
    test->output_count = 1;
}

static void clear_outputs(op_probe *test) {
    for (size_t i = 0; i < OP_PROBE_OUTPUT_MAX; i++) {
        rondo_tensor_deinit(&test->outputs[i]);
    }
}

void op_probe_deinit(op_probe *test) {
    for (size_t i = 0; i < test->input_count; i++) {
        rondo_tensor_deinit(&test->inputs[i]);
    }
    clear_outputs(test);
    rondo__op_deinit(&test->op);
}

void op_probe_set_int(op_probe *test, const char *name, int64_t value) {
    require(rondo__op_set_int(&test->op, name, value));
}

void op_probe_set_float(op_probe *test, const char *name, double value) {
    require(rondo__op_set_float(&test->op, name, (float)value));
}

void op_probe_set_string(op_probe *test, const char *name, const char *value) {
    require(rondo__op_set_string(&test->op, name, value));
}

static size_t parse_list(const char *text, double *out_values) {
    size_t count = 0;
    while (*text != '\0') {
        assert_true(count < LIST_MAX);
        char *end;
        out_values[count++] = strtod(text, &end);
        assert_true(end != text);
        text = *end == ',' ? end + 1 : end;
    }
    return count;
}

void op_probe_set_ints(op_probe *test, const char *name, const char *text) {
    double values[LIST_MAX];
    int64_t ints[LIST_MAX];
    const size_t count = parse_list(text, values);
    for (size_t i = 0; i < count; i++) {
        ints[i] = (int64_t)values[i];
    }
    require(rondo__op_set_ints(&test->op, name, ints, count));
}

void op_probe_set_floats(op_probe *test, const char *name, const char *text) {
    double values[LIST_MAX];
    rondo__attribute attribute = {.kind = RONDO__ATTRIBUTE_FLOATS};
    attribute.count = parse_list(text, values);
    attribute.name = rondo__strdup(name);
    attribute.floats = rondo__calloc(attribute.count + 1, sizeof(float));
    assert_true(attribute.name != NULL && attribute.floats != NULL);
    for (size_t i = 0; i < attribute.count; i++) {
        attribute.floats[i] = (float)values[i];
    }
    require(rondo__op_take_attribute(&test->op, &attribute));
}

void op_probe_set_strings(op_probe *test, const char *name, const char *text) {
    rondo__attribute attribute = {.kind = RONDO__ATTRIBUTE_STRINGS};
    attribute.name = rondo__strdup(name);
    attribute.strings = rondo__calloc(LIST_MAX, sizeof(char *));
    assert_true(attribute.name != NULL && attribute.strings != NULL);
    while (*text != '\0') {
        assert_true(attribute.count < LIST_MAX);
        const size_t length = strcspn(text, ",");
        attribute.strings[attribute.count] = rondo__strndup(text, length);
        assert_non_null(attribute.strings[attribute.count++]);
        text += length;
        text += *text == ',';
    }
    require(rondo__op_take_attribute(&test->op, &attribute));
}

rondo_shape op_probe_parse_shape(const char *text) {
    rondo_shape shape = {0};
    while (*text != '\0') {
        assert_true(shape.rank < RONDO_RANK_MAX);
        char *end;
        shape.extent[shape.rank++] = strtoll(text, &end, 10);
        assert_true(end != text);
        text = *end == 'x' ? end + 1 : end;
    }
    return shape;
}

static rondo_tensor *add_input(op_probe *test, rondo_dtype dtype, const char *shape_text,
                               double **out_values, size_t *out_count) {
    assert_true(test->input_count < OP_PROBE_INPUT_MAX);
    const rondo_shape shape = op_probe_parse_shape(shape_text);
    rondo_tensor *tensor = &test->inputs[test->input_count++];
    require(rondo_tensor_init(dtype, &shape, tensor));
    *out_count = (size_t)rondo_shape_get_count(&shape);
    *out_values = malloc((*out_count + 1) * sizeof(double));
    assert_non_null(*out_values);
    return tensor;
}

void op_probe_add_pattern(op_probe *test, rondo_dtype dtype, const char *shape, int seed,
                          double scale) {
    double *values;
    size_t count;
    const rondo_tensor *tensor = add_input(test, dtype, shape, &values, &count);
    for (size_t i = 0; i < count; i++) {
        values[i] = (double)((int)((i * 37 + (size_t)seed * 11) % 23) - 11) * scale;
    }
    rondo__convert_elements(RONDO_DTYPE_F64, values, dtype, tensor->data, count);
    free(values);
}

void op_probe_add_values(op_probe *test, rondo_dtype dtype, const char *shape,
                         const double *values) {
    double *copy;
    size_t count;
    const rondo_tensor *tensor = add_input(test, dtype, shape, &copy, &count);
    memcpy(copy, values, count * sizeof *copy);
    rondo__convert_elements(RONDO_DTYPE_F64, copy, dtype, tensor->data, count);
    free(copy);
}

void op_probe_add_tensor(op_probe *test, const rondo_tensor *tensor) {
    assert_true(test->input_count < OP_PROBE_INPUT_MAX);
    rondo_tensor_retain(tensor, &test->inputs[test->input_count++]);
}

void op_probe_add_absent(op_probe *test) {
    assert_true(test->input_count < OP_PROBE_INPUT_MAX);
    test->input_count++;
}

rondo_status op_probe_run(op_probe *test, size_t output_count) {
    const rondo_tensor *inputs[OP_PROBE_INPUT_MAX];
    for (size_t i = 0; i < test->input_count; i++) {
        inputs[i] = test->inputs[i].dtype == RONDO_DTYPE_NONE ? NULL : &test->inputs[i];
    }
    clear_outputs(test);
    test->output_count = output_count;
    rondo__compute compute = {
        .op = &test->op,
        .input_count = test->input_count,
        .output_count = output_count,
        .inputs = inputs,
        .outputs = test->outputs,
    };
    return rondo__op_compute(&compute);
}

static void compare_elements(const rondo_tensor *actual, const double *expected, double tolerance) {
    const int64_t count = rondo_shape_get_count(&actual->shape);
    for (int64_t i = 0; i < count; i++) {
        const double value = rondo__tensor_get_number(actual, i);
        if (value == expected[i] || (isnan(value) && isnan(expected[i]))) {
            continue;
        }
        if (!(fabs(value - expected[i]) <= tolerance * (1.0 + fabs(expected[i])))) {
            fail_msg("element %lld is %.9g, expected %.9g", (long long)i, value, expected[i]);
        }
    }
}

static void compare_kind(const rondo_tensor *actual, rondo_dtype dtype, const rondo_shape *shape) {
    char actual_text[96];
    char expected_text[96];
    if (actual->dtype != dtype || !rondo_shape_is_equal(&actual->shape, shape)) {
        fail_msg("output is %s %s, expected %s %s", rondo_dtype_get_name(actual->dtype),
                 rondo_shape_format(&actual->shape, actual_text, sizeof actual_text),
                 rondo_dtype_get_name(dtype),
                 rondo_shape_format(shape, expected_text, sizeof expected_text));
    }
}

void op_probe_check(op_probe *test, size_t output, rondo_dtype dtype, const char *shape,
                    const double *expected, double tolerance) {
    require(op_probe_run(test, test->output_count > output ? test->output_count : output + 1));
    const rondo_shape expected_shape = op_probe_parse_shape(shape);
    compare_kind(&test->outputs[output], dtype, &expected_shape);
    compare_elements(&test->outputs[output], expected, tolerance);
}

void op_probe_check_fails(op_probe *test, rondo_status status, const char *part) {
    const rondo_status actual = op_probe_run(test, test->output_count);
    if (actual != status) {
        fail_msg("status is %s, expected %s", rondo_status_get_name(actual),
                 rondo_status_get_name(status));
    }
    if (strstr(rondo_error_get_last()->message, part) == NULL) {
        fail_msg("message \"%s\" does not contain \"%s\"", rondo_error_get_last()->message, part);
    }
}

void op_probe_compare(const rondo_tensor *actual, const rondo_tensor *expected, double tolerance) {
    compare_kind(actual, expected->dtype, &expected->shape);
    const size_t count = (size_t)rondo_shape_get_count(&expected->shape);
    double *values = malloc((count + 1) * sizeof *values);
    assert_non_null(values);
    rondo__convert_elements(expected->dtype, expected->data, RONDO_DTYPE_F64, values, count);
    compare_elements(actual, values, tolerance);
    free(values);
}

// SPDX-License-Identifier: Apache-2.0

#include "support/cases/op_probe.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "op/support.h"
#include "rondo/status.h"
#include "support/test.h"

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
}

void op_probe_deinit(op_probe *test) {
    for (size_t i = 0; i < test->input_count; i++) {
        rondo_tensor_deinit(&test->inputs[i]);
    }
    rondo_tensor_deinit(&test->output);
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

void op_probe_set_ints(op_probe *test, const char *name, const char *text) {
    int64_t ints[LIST_MAX];
    size_t count = 0;
    while (*text != '\0') {
        char *end;
        assert_true(count < LIST_MAX);
        ints[count++] = strtoll(text, &end, 10);
        assert_true(end != text);
        text = *end == ',' ? end + 1 : end;
    }
    require(rondo__op_set_ints(&test->op, name, ints, count));
}

void op_probe_add_tensor(op_probe *test, const rondo_tensor *tensor) {
    assert_true(test->input_count < OP_PROBE_INPUT_MAX);
    rondo_tensor_share(tensor, &test->inputs[test->input_count++]);
}

void op_probe_add_absent(op_probe *test) {
    assert_true(test->input_count < OP_PROBE_INPUT_MAX);
    test->input_count++;
}

void op_probe_run(op_probe *test) {
    const rondo_tensor *inputs[OP_PROBE_INPUT_MAX];
    for (size_t i = 0; i < test->input_count; i++) {
        inputs[i] = test->inputs[i].dtype == RONDO_DTYPE_NONE ? NULL : &test->inputs[i];
    }
    rondo_tensor_deinit(&test->output);
    rondo__compute compute = {
        .op = &test->op,
        .input_count = test->input_count,
        .output_count = 1,
        .inputs = inputs,
        .outputs = &test->output,
    };
    require(rondo__op_compute(&compute));
}

void op_probe_compare(const rondo_tensor *actual, const rondo_tensor *expected, double tolerance) {
    char texts[2][96];
    if (actual->dtype != expected->dtype ||
        !rondo_shape_is_equal(&actual->shape, &expected->shape)) {
        fail_msg("output is %s %s, expected %s %s", rondo_dtype_get_name(actual->dtype),
                 rondo_shape_format(&actual->shape, texts[0], sizeof texts[0]),
                 rondo_dtype_get_name(expected->dtype),
                 rondo_shape_format(&expected->shape, texts[1], sizeof texts[1]));
    }
    for (int64_t i = 0; i < rondo_shape_get_count(&actual->shape); i++) {
        const double got = rondo__tensor_get_number(actual, i);
        const double want = rondo__tensor_get_number(expected, i);
        const bool is_same = got == want || (isnan(got) && isnan(want));
        const double allowed = isfinite(want) ? tolerance * (1.0 + fabs(want)) : 0.0;
        if (!is_same && !(fabs(got - want) <= allowed)) {
            fail_msg("element %lld is %.9g, expected %.9g", (long long)i, got, want);
        }
    }
}

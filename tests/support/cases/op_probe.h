// support/cases/op_probe.h — one op, run through its inference and reference, for tests whose
// tensors are computed; where they can be written down, a row of op_rows.h is shorter.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "op/op.h"
#include "rondo/tensor.h"

enum { OP_PROBE_INPUT_MAX = 16 };

typedef struct op_probe {
    rondo__op op;
    size_t input_count;
    rondo_tensor inputs[OP_PROBE_INPUT_MAX];  // dtype NONE: absent
    rondo_tensor output;
} op_probe;

// The op must be registered. `domain` is "" or "rondo".
void op_probe_init(op_probe *test, const char *domain, const char *name, int32_t opset);
void op_probe_deinit(op_probe *test);

void op_probe_set_int(op_probe *test, const char *name, int64_t value);
void op_probe_set_float(op_probe *test, const char *name, double value);
void op_probe_set_string(op_probe *test, const char *name, const char *value);
// `text` holds numbers between commas: "1,2,3".
void op_probe_set_ints(op_probe *test, const char *name, const char *text);

void op_probe_add_tensor(op_probe *test, const rondo_tensor *tensor);
void op_probe_add_absent(op_probe *test);

// Runs the op for its first output; a failure ends the test.
void op_probe_run(op_probe *test);
// Compares two tensors: dtypes, shapes and elements.
void op_probe_compare(const rondo_tensor *actual, const rondo_tensor *expected, double tolerance);

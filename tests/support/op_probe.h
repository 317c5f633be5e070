// support/op_probe.h — one op, run through its inference and reference, for tests.
//
// Inputs are given by value or as a pattern that any language can make again, so that expected
// numbers can be computed elsewhere. Any mismatch ends the test with both values.
#ifndef RONDO_TESTS_OP_PROBE_H
#define RONDO_TESTS_OP_PROBE_H

#include <stddef.h>
#include <stdint.h>

#include "op/op.h"
#include "rondo/tensor.h"

enum { OP_PROBE_INPUT_MAX = 16, OP_PROBE_OUTPUT_MAX = 8 };

typedef struct op_probe {
    rondo__op op;
    size_t input_count;
    rondo_tensor inputs[OP_PROBE_INPUT_MAX];  // dtype NONE: absent
    size_t output_count;
    rondo_tensor outputs[OP_PROBE_OUTPUT_MAX];
} op_probe;

// The op must be registered. `domain` is "" or "rondo".
void op_probe_init(op_probe *test, const char *domain, const char *name, int32_t opset);
void op_probe_deinit(op_probe *test);

void op_probe_set_int(op_probe *test, const char *name, int64_t value);
void op_probe_set_float(op_probe *test, const char *name, double value);
void op_probe_set_string(op_probe *test, const char *name, const char *value);
// `text` holds numbers between commas: "1,2,3".
void op_probe_set_ints(op_probe *test, const char *name, const char *text);
void op_probe_set_floats(op_probe *test, const char *name, const char *text);
// `text` holds words between commas.
void op_probe_set_strings(op_probe *test, const char *name, const char *text);

// "2x3x4" is a shape; "" a scalar.
rondo_shape op_probe_parse_shape(const char *text);
// Element i is ((i * 37 + seed * 11) mod 23 - 11) * scale, computed in double.
void op_probe_add_pattern(op_probe *test, rondo_dtype dtype, const char *shape, int seed,
                          double scale);
void op_probe_add_values(op_probe *test, rondo_dtype dtype, const char *shape,
                         const double *values);
void op_probe_add_tensor(op_probe *test, const rondo_tensor *tensor);
void op_probe_add_absent(op_probe *test);

// Runs the op for `output_count` outputs, freeing those of the run before.
rondo_status op_probe_run(op_probe *test, size_t output_count);
// Runs the op and compares output `output`: not (|difference| <= tolerance * (1 + |expected|))
// fails.
void op_probe_check(op_probe *test, size_t output, rondo_dtype dtype, const char *shape,
                    const double *expected, double tolerance);
// Runs the op, which must fail with `status` and a message that contains `part`.
void op_probe_check_fails(op_probe *test, rondo_status status, const char *part);

// Compares two tensors: dtypes, shapes and elements.
void op_probe_compare(const rondo_tensor *actual, const rondo_tensor *expected, double tolerance);

#endif  // RONDO_TESTS_OP_PROBE_H

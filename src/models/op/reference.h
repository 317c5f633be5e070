// op/reference.h — what the plain references of the heavier ops share: tensors as doubles.
//
// Most of them work in three steps: widen the inputs to doubles, compute on doubles, narrow the
// result to the dtype of the output. That gives one body for all element types, exact integers up
// to 2^53, and sums that are better than those of any kernel they are the oracle of.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "op/op.h"
#include "op/support.h"
#include "rondo/tensor.h"

// The elements of `tensor` as doubles; NULL (and OK) for a NULL tensor.
//
// Errors:    NO_MEMORY.
// Ownership: free with rondo__free.
RONDO_MUST_USE rondo_status rondo__widen(const rondo_tensor *tensor, double **out_values);

// Writes one output of a compute, with the dtype and shape that inference gave. An output that is
// not used is skipped.
//
// Errors:    as rondo__compute_get_inferred.
RONDO_MUST_USE rondo_status rondo__narrow(rondo__compute *compute, size_t output,
                                          const double *values);

// The same, with a rule for narrow floats.
//
// Errors:    as rondo__narrow.
RONDO_MUST_USE rondo_status rondo__narrow_by(rondo__compute *compute, size_t output,
                                             const double *values, const rondo__narrow_rule *rule);

// The same for an output that interpolates: integers are rounded to nearest even, and clamped.
//
// Errors:    as rondo__narrow.
RONDO_MUST_USE rondo_status rondo__narrow_rounded(rondo__compute *compute, size_t output,
                                                  double *values);

// The input, or NULL when it is absent.
static inline const rondo_tensor *rondo__compute_get_input(const rondo__compute *compute,
                                                           size_t input) {
    return rondo__compute_has_input(compute, input) ? compute->inputs[input] : NULL;
}

enum { RONDO__SCRATCH_MAX = 72 };

// The arrays of one compute. Zero-initialise to start. After a failure `status` stays set and later
// calls give NULL, so that a compute checks once, before it calculates.
typedef struct rondo__scratch {
    rondo_status status;
    size_t count;
    double *arrays[RONDO__SCRATCH_MAX];
} rondo__scratch;

// A zero-filled array, freed by rondo__scratch_end.
double *rondo__scratch_create(rondo__scratch *scratch, int64_t count);
// The elements of `tensor` as doubles, freed by rondo__scratch_end; NULL for a NULL tensor.
double *rondo__scratch_widen(rondo__scratch *scratch, const rondo_tensor *tensor);
// Frees the arrays.
//
// Returns:   the status.
// Errors:    what was set in `status`.
rondo_status rondo__scratch_end(rondo__scratch *scratch);
// The same; where nothing has failed, `values` become the output first (rondo__narrow).
rondo_status rondo__scratch_end_as(rondo__scratch *scratch, rondo__compute *compute, size_t output,
                                   const double *values);

// Checks that input `first` is f16, bf16, f32 or f64, and that those of the inputs
// first + 1 .. first + count - 1 that are present have the same dtype.
//
// Errors:    UNSUPPORTED (not a float), BAD_DATA (they differ).
RONDO_MUST_USE rondo_status rondo__infer_check_float(const rondo__infer *infer, size_t first,
                                                     size_t count);

// Rounds to nearest even and clamps to the range of an integer dtype; NaN becomes 0. Floats are
// left as they are.
double rondo__saturate(double value, rondo_dtype dtype);

// The step of an exact sum of 8-bit products, as ONNX Runtime requantises: in f32 each, scales are
// multiplied and divided, then the sum is multiplied; ties go to even. A tie in f32 is a tie.
double rondo__requantize(double sum, double x_scale, double w_scale, double y_scale, double y_zero,
                         rondo_dtype dtype);

// The greater of two; NaN wins.
static inline double rondo__maximum(double a, double b) {
    return a > b || a != a ? a : b;
}

// One line of an op table.
#define RONDO_OP_ENTRY(op_name, first_opset, last_opset, least_inputs, most_inputs, least_outputs, \
                       most_outputs, attribute_list, infer_function, ...)                          \
    RONDO_OP_ROW(OP, op_name, first_opset, last_opset, least_inputs, most_inputs, least_outputs,   \
                 most_outputs, .capture = RONDO__CAPTURE_YES, .attributes = (attribute_list),      \
                 .infer = (infer_function), .compute = __VA_ARGS__)

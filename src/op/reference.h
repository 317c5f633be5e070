// op/reference.h — what the plain references of the heavier ops share: tensors as doubles, shapes.
//
// Most references work in three steps: widen the inputs to doubles, compute on doubles, narrow the
// result to the dtype of the output. That gives one body for all element types, exact integers up
// to 2^53 and sums that are better than those of any kernel they are the oracle of.
#ifndef RONDO_OP_REFERENCE_H
#define RONDO_OP_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "op/op.h"
#include "rondo/tensor.h"

// Refuses a model: BAD_DATA with "Conv: attribute strides ...". `format` is a literal.
#define RONDO_OP_FAIL(op, ...) rondo__reference_fail((op), __FILE__, __LINE__, __func__, __VA_ARGS__)
RONDO_PRINTF(5, 6)
rondo_status rondo__reference_fail(const rondo__op *op, const char *file, int32_t line,
                                   const char *call, const char *format, ...);

// f32, f64, f16 and bf16.
bool rondo__dtype_is_float(rondo_dtype dtype);

// True when `axis`, counted from the end when negative, is one of `rank`; writes it normalised.
bool rondo__axis_normalize(int64_t axis, int32_t rank, int32_t *out_axis);

// Product of extents [begin, end); the shape was checked before.
int64_t rondo__shape_get_span(const rondo_shape *shape, int32_t begin, int32_t end);

// A shape from extents; rank at most RONDO_RANK_MAX.
rondo_shape rondo__shape_make(int32_t rank, const int64_t *extents);

// A zero-filled array of doubles; count 0 gives a valid address.
//
// Errors:    NO_MEMORY.
// Ownership: free with rondo__free.
// Threads:   safe.
RONDO_MUST_USE rondo_status rondo__doubles_create(int64_t count, double **out_values);

// The elements of `tensor` as doubles (booleans as 0 and 1).
//
// Errors:    NO_MEMORY.
// Ownership: free with rondo__free.
// Threads:   safe.
RONDO_MUST_USE rondo_status rondo__widen(const rondo_tensor *tensor, double **out_values);

// Writes doubles as elements of `dtype`. Integers are truncated toward zero and saturate; NaN
// becomes 0 there.
void rondo__narrow(const double *values, int64_t count, rondo_dtype dtype, void *out_data);

// The same for one output of a compute: gets its address and narrows into it.
//
// Errors:    as rondo__compute_get_output.
// Threads:   safe.
RONDO_MUST_USE rondo_status rondo__narrow_output(rondo__compute *compute, size_t output,
                                                 rondo_dtype dtype, const rondo_shape *shape,
                                                 const double *values);

// Reads an integer tensor (i32 or i64, or whatever integer) of at most `capacity` elements.
//
// Errors:    BAD_DATA (more elements than fit, or a floating dtype; `what` names it).
// Threads:   safe.
RONDO_MUST_USE rondo_status rondo__read_ints(const rondo__op *op, const rondo_tensor *tensor,
                                             const char *what, size_t capacity, int64_t *out_values,
                                             size_t *out_count);

#endif  // RONDO_OP_REFERENCE_H

// op/support.h — what families of ops share: axes, integer inputs, dtype lists, strided copies.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "op/op.h"
#include "rondo/status.h"
#include "rondo/tensor.h"
#include "tensor/elements.h"
#include "tensor/narrow.h"

// X(dtype suffix, C type) over the dtypes that C can calculate with.
#define RONDO_OP_FLOAT_MAP(X) X(F32, float) X(F64, double)
#define RONDO_OP_SIGNED_MAP(X) X(I8, int8_t) X(I16, int16_t) X(I32, int32_t) X(I64, int64_t)
#define RONDO_OP_UNSIGNED_MAP(X) X(U8, uint8_t) X(U16, uint16_t) X(U32, uint32_t) X(U64, uint64_t)
#define RONDO_OP_INTEGER_MAP(X) RONDO_OP_SIGNED_MAP(X) RONDO_OP_UNSIGNED_MAP(X)
#define RONDO_OP_NUMERIC_MAP(X) RONDO_OP_FLOAT_MAP(X) RONDO_OP_INTEGER_MAP(X)

enum { RONDO_OP_STRIDED_RANK_MAX = 2 * RONDO_RANK_MAX };

// The dtype of an ONNX TensorProto.DataType number; NONE for those without one (float6e2m3, ...),
// which op/element_types.h names.
rondo_dtype rondo__dtype_from_onnx(int64_t data_type);
// What `compute` sees of a dtype when the op lacks NATIVE_HALF: f32 for f16 and bf16.
rondo_dtype rondo__dtype_widen(rondo_dtype dtype);

// Fails with BAD_DATA when two inputs that must have the same dtype differ.
RONDO_MUST_USE rondo_status rondo__infer_check_same_dtype(const rondo__infer *infer, size_t first,
                                                          size_t second);

// Fails with UNSUPPORTED when an input is neither I8 nor U8.
RONDO_MUST_USE rondo_status rondo__infer_check_bytes(const rondo__infer *infer, size_t input);

// Output 0 has input 0's dtype and shape.
RONDO_MUST_USE rondo_status rondo__infer_like_input(rondo__infer *infer);

// Turns an axis in [-rank, rank) into [0, rank).
//
// Errors:    BAD_DATA.
RONDO_MUST_USE rondo_status rondo__op_resolve_axis(const rondo__op *op, int64_t axis, int32_t rank,
                                                   int32_t *out_axis);

// Resolves a list of axes into a bit mask; an axis given twice is refused.
//
// Errors:    BAD_DATA.
RONDO_MUST_USE rondo_status rondo__op_resolve_axes(const rondo__op *op, const int64_t *axes,
                                                   size_t count, int32_t rank, uint32_t *out_mask);

// Element `index` of an integer or bool tensor.
int64_t rondo__tensor_get_int(const rondo_tensor *tensor, int64_t index);
// Element `index` of any tensor.
double rondo__tensor_get_number(const rondo_tensor *tensor, int64_t index);

// Reads an integer tensor of rank 0 or 1. `what` names it in messages.
//
// Errors:    BAD_DATA (rank, dtype, or more than `capacity` elements), UNSUPPORTED (more than
//            RONDO_RANK_MAX where that is the capacity: a shape, or axes, of a larger rank).
RONDO_MUST_USE rondo_status rondo__op_read_ints(const rondo__op *op, const char *what,
                                                const rondo_tensor *tensor, size_t capacity,
                                                int64_t *out_values, size_t *out_count);

// Converts `count` elements as Cast does: floats go to integers towards zero (beyond 64 bits:
// nearest limit, NaN to 0), wider integers wrap, anything but zero is true; narrow floats round to
// nearest even and stay within their limits. Complex numbers and strings are not converted.
void rondo__convert_elements(rondo_dtype from, const void *source, rondo_dtype to,
                             void *destination, size_t count);

// The same, with what Cast's attributes say of narrow types (NULL: their defaults).
void rondo__convert_elements_by(rondo_dtype from, const void *source, rondo_dtype to,
                                void *destination, size_t count, const rondo__narrow_rule *rule);

// Row-major strides in elements; out_strides has rank entries.
void rondo__shape_get_strides(const rondo_shape *shape, int64_t *out_strides);

// The product of extents first .. last - 1; the shape is known to have a count.
int64_t rondo__shape_multiply(const rondo_shape *shape, int32_t first, int32_t last);

// Fills a dense destination of the given extents from a source read at element strides (0 repeats,
// negative reverses). `source` is the address of element (0, 0, ...).
//
// Shapes:    rank up to RONDO_OP_STRIDED_RANK_MAX.
void rondo__copy_strided(size_t element_bytes, int32_t rank, const int64_t *extent,
                         const int64_t *source_stride, const void *source, void *destination);

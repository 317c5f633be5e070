// op/arrange/op_index.c — reading and writing at computed positions: Gather, GatherElements,
// GatherND, Scatter, ScatterElements, ScatterND, OneHot, TensorScatter.
//
// Every index is checked before it is used; one out of range is BAD_DATA, never a stray access.
// SPDX-License-Identifier: Apache-2.0
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "op/op.h"
#include "op/support.h"

static rondo_status check_index_dtype(const rondo__infer *infer, size_t input) {
    rondo_dtype dtype = infer->inputs[input].dtype;
    if (dtype != RONDO_DTYPE_I32 && dtype != RONDO_DTYPE_I64) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "the indices are %s; they must be i32 or i64",
                             rondo_dtype_get_name(dtype));
    }
    return RONDO_STATUS_OK;
}

// Reads index `at` and wraps a negative one. Returns -1 when it is outside [-extent, extent).
static inline int64_t read_index(const rondo_tensor *indices, int64_t at, int64_t extent) {
    int64_t index = indices->dtype == RONDO_DTYPE_I64 ? ((const int64_t *)indices->data)[at]
                                                      : ((const int32_t *)indices->data)[at];
    if (index < 0) {
        index += extent;
    }
    return index >= 0 && index < extent ? index : -1;
}

static rondo_status fail_index(const rondo__op *op, const rondo_tensor *indices, int64_t at,
                               int64_t extent) {
    return RONDO_OP_FAIL(op, BAD_DATA, "index %lld is outside [%lld, %lld)",
                         (long long)rondo__tensor_get_int(indices, at), (long long)-extent,
                         (long long)extent);
}

// ---- Gather -----------------------------------------------------------------------------------

static rondo_status infer_gather(rondo__infer *infer) {
    const rondo_shape *x = &infer->inputs[0].shape;
    const rondo_shape *indices = &infer->inputs[1].shape;
    int32_t axis = 0;
    RETURN_IF_ERROR(check_index_dtype(infer, 1));
    RETURN_IF_ERROR(
        rondo__op_resolve_axis(infer->op, rondo__op_get_int(infer->op, "axis", 0), x->rank, &axis));
    rondo_shape shape = {0};
    if (x->rank - 1 + indices->rank > RONDO_RANK_MAX) {
        return rondo__op_fail_unsupported(infer->op, "result of rank above 8");
    }
    for (int32_t d = 0; d < axis; ++d) {
        shape.extent[shape.rank++] = x->extent[d];
    }
    for (int32_t d = 0; d < indices->rank; ++d) {
        shape.extent[shape.rank++] = indices->extent[d];
    }
    for (int32_t d = axis + 1; d < x->rank; ++d) {
        shape.extent[shape.rank++] = x->extent[d];
    }
    return rondo__infer_set_output(infer, 0, infer->inputs[0].dtype, &shape);
}

static rondo_status compute_gather(rondo__compute *compute) {
    const rondo_tensor *input = compute->inputs[0];
    const rondo_tensor *indices = compute->inputs[1];
    const rondo_shape *x = &input->shape;
    int32_t axis = 0;
    RETURN_IF_ERROR(rondo__op_resolve_axis(compute->op, rondo__op_get_int(compute->op, "axis", 0),
                                           x->rank, &axis));
    void *output = NULL;
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &output));
    int64_t outer = rondo__shape_multiply(x, 0, axis);
    int64_t extent = x->extent[axis];
    int64_t count = rondo_shape_get_count(&indices->shape);
    size_t bytes =
        (size_t)rondo__shape_multiply(x, axis + 1, x->rank) * rondo_dtype_get_bytes(input->dtype);
    if (bytes == 0) {
        return RONDO_STATUS_OK;
    }
    uint8_t *to = output;
    for (int64_t o = 0; o < outer; ++o) {
        const uint8_t *from = (const uint8_t *)input->data + (size_t)(o * extent) * bytes;
        for (int64_t i = 0; i < count; ++i) {
            int64_t index = read_index(indices, i, extent);
            if (index < 0) {
                return fail_index(compute->op, indices, i, extent);
            }
            memcpy(to, from + (size_t)index * bytes, bytes);
            to += bytes;
        }
    }
    return RONDO_STATUS_OK;
}

// ---- GatherElements ---------------------------------------------------------------------------

// Data and indices have one rank, and indices stay inside data on all axes but `axis`.
static rondo_status check_elements(const rondo__infer *infer, int32_t *out_axis) {
    const rondo_shape *x = &infer->inputs[0].shape;
    const rondo_shape *indices = &infer->inputs[1].shape;
    RETURN_IF_ERROR(check_index_dtype(infer, 1));
    RETURN_IF_ERROR(rondo__op_resolve_axis(infer->op, rondo__op_get_int(infer->op, "axis", 0),
                                           x->rank, out_axis));
    bool fits = x->rank == indices->rank;
    for (int32_t d = 0; fits && d < x->rank; ++d) {
        fits = d == *out_axis || indices->extent[d] <= x->extent[d];
    }
    if (!fits) {
        char a[80];
        char b[80];
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "indices %s do not fit data %s",
                             rondo_shape_format(indices, a, sizeof a),
                             rondo_shape_format(x, b, sizeof b));
    }
    return RONDO_STATUS_OK;
}

static rondo_status infer_gather_elements(rondo__infer *infer) {
    int32_t axis = 0;
    RETURN_IF_ERROR(check_elements(infer, &axis));
    return rondo__infer_set_output(infer, 0, infer->inputs[0].dtype, &infer->inputs[1].shape);
}

// A row of indices along the last axis: element i of the data lies `step` * i + index * `stride`
// behind its beginning.
typedef struct index_row {
    const rondo_tensor *indices;
    int64_t extent, count, stride, step;
} index_row;

static index_row describe_row(const rondo_shape *data, const rondo_tensor *indices, int32_t axis) {
    const int32_t last = indices->shape.rank - 1;
    return (index_row){.indices = indices,
                       .extent = data->extent[axis],
                       .count = indices->shape.extent[last],
                       .stride = rondo__shape_multiply(data, axis + 1, data->rank),
                       .step = axis == last ? 0 : 1};
}

// The indices of a row: of 32 bits, or of 64 bits, along another axis or along the last.
typedef enum index_kind { INDEX_NARROW, INDEX_WIDE, INDEX_WIDE_LAST } index_kind;

// Moves elements of `data` to a row of `elements`, or, for a scatter, the other way. Returns the
// index that is out of range, or -1.
static inline int64_t move_row(const index_row *row, int64_t first, size_t bytes, uint8_t *data,
                               uint8_t *elements, bool is_scatter, index_kind kind) {
    const index_row r = *row;  // which no element that is written can be part of
    const int64_t *wide = (const int64_t *)r.indices->data + first;
    const int32_t *narrow = (const int32_t *)r.indices->data + first;
    for (int64_t i = 0; i < r.count; ++i) {
        int64_t index = kind == INDEX_NARROW ? narrow[i] : wide[i];
        index += index < 0 ? r.extent : 0;
        if ((uint64_t)index >= (uint64_t)r.extent) {
            return first + i;
        }
        const int64_t place = kind == INDEX_WIDE_LAST ? index : r.step * i + index * r.stride;
        uint8_t *at = data + (size_t)place * bytes;
        uint8_t *element = elements + (size_t)i * bytes;
        memcpy(is_scatter ? at : element, is_scatter ? element : at, bytes);
    }
    return -1;
}

#define MOVE_ROW(scatters, kind)                                            \
    (bytes == 1   ? move_row(row, first, 1, data, elements, scatters, kind) \
     : bytes == 2 ? move_row(row, first, 2, data, elements, scatters, kind) \
     : bytes == 4 ? move_row(row, first, 4, data, elements, scatters, kind) \
     : bytes == 8 ? move_row(row, first, 8, data, elements, scatters, kind) \
                  : move_row(row, first, 16, data, elements, scatters, kind))

#define DEFINE_MOVE_ROW(name, scatters)                                                 \
    static int64_t name(const index_row *row, int64_t first, size_t bytes, void *data,  \
                        void *elements) {                                               \
        if (row->indices->dtype != RONDO_DTYPE_I64) {                                   \
            return MOVE_ROW(scatters, INDEX_NARROW);                                    \
        }                                                                               \
        return row->step == 0 && row->stride == 1 ? MOVE_ROW(scatters, INDEX_WIDE_LAST) \
                                                  : MOVE_ROW(scatters, INDEX_WIDE);     \
    }
DEFINE_MOVE_ROW(gather_row, false)
DEFINE_MOVE_ROW(scatter_row, true)

// Where, in the data, the row of indices begins whose first one is `at`.
static int64_t find_row(const rondo_shape *data, const rondo_shape *indices, int32_t axis,
                        int64_t at) {
    int64_t offset = 0, stride = 1;
    for (int32_t d = indices->rank - 1; d >= 0; --d) {
        offset += d == axis ? 0 : at % indices->extent[d] * stride;
        at /= indices->extent[d];
        stride *= data->extent[d];
    }
    return offset;
}

static rondo_status compute_gather_elements(rondo__compute *compute) {
    const rondo_tensor *input = compute->inputs[0];
    const rondo_tensor *indices = compute->inputs[1];
    int32_t axis = 0;
    RETURN_IF_ERROR(rondo__op_resolve_axis(compute->op, rondo__op_get_int(compute->op, "axis", 0),
                                           input->shape.rank, &axis));
    void *output = NULL;
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &output));
    size_t bytes = rondo_dtype_get_bytes(input->dtype);
    int64_t count = rondo_shape_get_count(&indices->shape);
    const index_row row = describe_row(&input->shape, indices, axis);
    for (int64_t at = 0; at < count; at += row.count) {
        const int64_t begin = find_row(&input->shape, &indices->shape, axis, at);
        const int64_t failed =
            gather_row(&row, at, bytes, (uint8_t *)input->data + (size_t)begin * bytes,
                       (uint8_t *)output + (size_t)at * bytes);
        if (failed >= 0) {
            return fail_index(compute->op, indices, failed, row.extent);
        }
    }
    return RONDO_STATUS_OK;
}

// ---- GatherND ---------------------------------------------------------------------------------

static rondo_status infer_gather_nd(rondo__infer *infer) {
    const rondo_shape *x = &infer->inputs[0].shape;
    const rondo_shape *indices = &infer->inputs[1].shape;
    int64_t batch = rondo__op_get_int(infer->op, "batch_dims", 0);
    RETURN_IF_ERROR(check_index_dtype(infer, 1));
    if (x->rank < 1 || indices->rank < 1 || batch < 0 || batch >= indices->rank ||
        batch >= x->rank) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "batch_dims %lld does not fit ranks %d and %d",
                             (long long)batch, x->rank, indices->rank);
    }
    int64_t depth = indices->extent[indices->rank - 1];
    if (depth < 1 || depth > x->rank - batch) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "indices of %lld parts do not fit rank %d",
                             (long long)depth, x->rank);
    }
    for (int32_t d = 0; d < batch; ++d) {
        if (x->extent[d] != indices->extent[d]) {
            return RONDO_OP_FAIL(infer->op, BAD_DATA, "batch extent %d differs: %lld and %lld", d,
                                 (long long)x->extent[d], (long long)indices->extent[d]);
        }
    }
    rondo_shape shape = {0};
    int32_t first = (int32_t)(batch + depth);
    if (indices->rank - 1 + x->rank - first > RONDO_RANK_MAX) {
        return rondo__op_fail_unsupported(infer->op, "result of rank above 8");
    }
    for (int32_t d = 0; d < indices->rank - 1; ++d) {
        shape.extent[shape.rank++] = indices->extent[d];
    }
    for (int32_t d = first; d < x->rank; ++d) {
        shape.extent[shape.rank++] = x->extent[d];
    }
    return rondo__infer_set_output(infer, 0, infer->inputs[0].dtype, &shape);
}

// Element offset of the position that tuple `tuple` of the indices names, from axis `first` on.
static inline rondo_status locate_tuple(const rondo__op *op, const rondo_shape *data,
                                        const int64_t *strides, const rondo_tensor *indices,
                                        int64_t tuple, int32_t first, int64_t *out_offset) {
    int64_t depth = indices->shape.extent[indices->shape.rank - 1];
    int64_t offset = 0;
    for (int64_t k = 0; k < depth; ++k) {
        int64_t extent = data->extent[first + k];
        int64_t index = read_index(indices, tuple * depth + k, extent);
        if (index < 0) {
            return fail_index(op, indices, tuple * depth + k, extent);
        }
        offset += index * strides[first + k];
    }
    *out_offset = offset;
    return RONDO_STATUS_OK;
}

// Most rows are short, and a call takes longer than to copy one of them.
static inline void copy_row(uint8_t *to, const uint8_t *from, size_t bytes) {
    if (bytes == 4) {
        memcpy(to, from, 4);
    } else if (bytes == 8) {
        memcpy(to, from, 8);
    } else if (bytes >= 16 && bytes <= 32) {
        uint64_t head[2], tail[2];  // which may overlap
        memcpy(head, from, 16);
        memcpy(tail, from + bytes - 16, 16);
        memcpy(to, head, 16);
        memcpy(to + bytes - 16, tail, 16);
    } else {
        memcpy(to, from, bytes);
    }
}

static rondo_status compute_gather_nd(rondo__compute *compute) {
    const rondo_tensor *input = compute->inputs[0];
    const rondo_tensor *indices = compute->inputs[1];
    const rondo_shape *x = &input->shape;
    int32_t batch = (int32_t)rondo__op_get_int(compute->op, "batch_dims", 0);
    int64_t depth = indices->shape.extent[indices->shape.rank - 1];
    int32_t first = batch + (int32_t)depth;
    void *output = NULL;
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &output));
    int64_t strides[RONDO_RANK_MAX];
    rondo__shape_get_strides(x, strides);
    int64_t batches = rondo__shape_multiply(x, 0, batch);
    int64_t batch_stride = rondo__shape_multiply(x, batch, x->rank);
    int64_t tuples = rondo__shape_multiply(&indices->shape, batch, indices->shape.rank - 1);
    size_t element_bytes = rondo_dtype_get_bytes(input->dtype);
    size_t bytes = (size_t)rondo__shape_multiply(x, first, x->rank) * element_bytes;
    const uint8_t *from = input->data;
    uint8_t *to = output;
    const bool are_pairs = depth == 2 && indices->dtype == RONDO_DTYPE_I64;
    for (int64_t b = 0; b < batches; ++b, from += (size_t)batch_stride * element_bytes) {
        for (int64_t i = b * tuples; i < (b + 1) * tuples; ++i) {
            const int64_t *pair = are_pairs ? (const int64_t *)indices->data + 2 * i : NULL;
            int64_t offset = 0;
            if (are_pairs && (uint64_t)pair[0] < (uint64_t)x->extent[batch] &&
                (uint64_t)pair[1] < (uint64_t)x->extent[batch + 1]) {
                offset = pair[0] * strides[batch] + pair[1] * strides[batch + 1];
            } else {
                RETURN_IF_ERROR(locate_tuple(compute->op, x, strides, indices, i, batch, &offset));
            }
            if (bytes > 0) {
                copy_row(to, from + (size_t)offset * element_bytes, bytes);
                to += bytes;
            }
        }
    }
    return RONDO_STATUS_OK;
}

// ---- how scattered values meet what is there --------------------------------------------------

typedef enum reduction {
    REDUCTION_NONE,
    REDUCTION_ADD,
    REDUCTION_MUL,
    REDUCTION_MAX,
    REDUCTION_MIN,
    REDUCTION_UNKNOWN
} reduction;

static reduction get_reduction(const rondo__op *op) {
    static const char *const names[] = {"none", "add", "mul", "max", "min"};
    const char *text = rondo__op_get_string(op, "reduction", "none");
    for (int i = 0; i < 5; ++i) {
        if (strcmp(text, names[i]) == 0) {
            return (reduction)i;
        }
    }
    return REDUCTION_UNKNOWN;
}

static rondo_status check_reduction(const rondo__op *op) {
    return get_reduction(op) == REDUCTION_UNKNOWN
               ? rondo__op_fail_unsupported(op, "attribute reduction")
               : RONDO_STATUS_OK;
}

// target[i] = target[i] (reduction) update[i]. Integers add and multiply in 64 unsigned bits, so
// that they wrap. NaN wins in max and min.
#define DEFINE_REDUCE(name, type, wide)                                                         \
    static void reduce_##name(reduction how, void *target, const void *update, int64_t count) { \
        type *y = target;                                                                       \
        const type *u = update;                                                                 \
        for (int64_t i = 0; i < count; ++i) {                                                   \
            switch (how) {                                                                      \
                case REDUCTION_ADD:                                                             \
                    y[i] = (type)((wide)y[i] + (wide)u[i]);                                     \
                    break;                                                                      \
                case REDUCTION_MUL:                                                             \
                    y[i] = (type)((wide)y[i] * (wide)u[i]);                                     \
                    break;                                                                      \
                case REDUCTION_MAX:                                                             \
                    y[i] = y[i] < u[i] || u[i] != u[i] ? u[i] : y[i];                           \
                    break;                                                                      \
                case REDUCTION_MIN:                                                             \
                    y[i] = y[i] > u[i] || u[i] != u[i] ? u[i] : y[i];                           \
                    break;                                                                      \
                default:                                                                        \
                    y[i] = u[i];                                                                \
                    break;                                                                      \
            }                                                                                   \
        }                                                                                       \
    }
#define DEFINE_REDUCE_FLOAT(name, type) DEFINE_REDUCE(name, type, type)
#define DEFINE_REDUCE_INTEGER(name, type) DEFINE_REDUCE(name, type, uint64_t)
RONDO_OP_FLOAT_MAP(DEFINE_REDUCE_FLOAT)
RONDO_OP_INTEGER_MAP(DEFINE_REDUCE_INTEGER)

static void reduce_elements(reduction how, rondo_dtype dtype, void *target, const void *update,
                            int64_t count) {
    switch (dtype) {
#define REDUCE_CASE(name, type)                    \
    case RONDO_DTYPE_##name:                       \
        reduce_##name(how, target, update, count); \
        break;
        RONDO_OP_NUMERIC_MAP(REDUCE_CASE)
#undef REDUCE_CASE
        default:
            memcpy(target, update, (size_t)count * rondo_dtype_get_bytes(dtype));
            break;
    }
}

// Bool, strings, narrow and complex numbers can be moved, but not calculated with.
static rondo_status check_scatter_dtype(const rondo__infer *infer) {
    RETURN_IF_ERROR(rondo__infer_check_same_dtype(infer, 0, 2));
    RETURN_IF_ERROR(check_index_dtype(infer, 1));
    RETURN_IF_ERROR(check_reduction(infer->op));
    rondo_dtype dtype = infer->inputs[0].dtype;
    if (!rondo__dtype_is_float(dtype) && !rondo__dtype_is_integer(dtype) &&
        get_reduction(infer->op) != REDUCTION_NONE) {
        return rondo__op_fail_dtype(infer->op, 0, dtype);
    }
    return RONDO_STATUS_OK;
}

// Output 0 starts as a copy of input 0, unless it lies there.
static rondo_status copy_data(rondo__compute *compute, void **out_data) {
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, out_data));
    size_t bytes = rondo_tensor_get_bytes(compute->inputs[0]);
    if (bytes > 0 && *out_data != compute->inputs[0]->data) {
        memcpy(*out_data, compute->inputs[0]->data, bytes);
    }
    return RONDO_STATUS_OK;
}

// ---- ScatterElements, Scatter -----------------------------------------------------------------

static rondo_status infer_scatter_elements(rondo__infer *infer) {
    int32_t axis = 0;
    RETURN_IF_ERROR(check_scatter_dtype(infer));
    RETURN_IF_ERROR(check_elements(infer, &axis));
    if (!rondo_shape_is_equal(&infer->inputs[1].shape, &infer->inputs[2].shape)) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "indices and updates must have one shape");
    }
    return rondo__infer_like_input(infer);
}

// As scatter_row, for values that meet what is there.
static int64_t reduce_row(const index_row *row, int64_t first, reduction how, rondo_dtype dtype,
                          uint8_t *data, const uint8_t *updates) {
    const size_t bytes = rondo_dtype_get_bytes(dtype);
    for (int64_t i = 0; i < row->count; ++i) {
        const int64_t index = read_index(row->indices, first + i, row->extent);
        if (index < 0) {
            return first + i;
        }
        reduce_elements(how, dtype, data + (size_t)(row->step * i + index * row->stride) * bytes,
                        updates + (size_t)i * bytes, 1);
    }
    return -1;
}

static rondo_status compute_scatter_elements(rondo__compute *compute) {
    const rondo_tensor *input = compute->inputs[0];
    const rondo_tensor *indices = compute->inputs[1];
    reduction how = get_reduction(compute->op);
    int32_t axis = 0;
    RETURN_IF_ERROR(rondo__op_resolve_axis(compute->op, rondo__op_get_int(compute->op, "axis", 0),
                                           input->shape.rank, &axis));
    void *output = NULL;
    RETURN_IF_ERROR(copy_data(compute, &output));
    const size_t bytes = rondo_dtype_get_bytes(input->dtype);
    const int64_t count = rondo_shape_get_count(&indices->shape);
    const index_row row = describe_row(&input->shape, indices, axis);
    for (int64_t at = 0; at < count; at += row.count) {
        const int64_t begin = find_row(&input->shape, &indices->shape, axis, at);
        uint8_t *data = (uint8_t *)output + (size_t)begin * bytes;
        uint8_t *updates = (uint8_t *)compute->inputs[2]->data + (size_t)at * bytes;
        const int64_t failed = how == REDUCTION_NONE
                                   ? scatter_row(&row, at, bytes, data, updates)
                                   : reduce_row(&row, at, how, input->dtype, data, updates);
        if (failed >= 0) {
            return fail_index(compute->op, indices, failed, row.extent);
        }
    }
    return RONDO_STATUS_OK;
}

// ---- ScatterND --------------------------------------------------------------------------------

static rondo_status infer_scatter_nd(rondo__infer *infer) {
    const rondo_shape *x = &infer->inputs[0].shape;
    const rondo_shape *indices = &infer->inputs[1].shape;
    const rondo_shape *updates = &infer->inputs[2].shape;
    RETURN_IF_ERROR(check_scatter_dtype(infer));
    int64_t depth = indices->rank > 0 ? indices->extent[indices->rank - 1] : -1;
    if (x->rank < 1 || depth < 0 || depth > x->rank) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "indices of %lld parts do not fit rank %d",
                             (long long)depth, x->rank);
    }
    int32_t outer = indices->rank - 1;
    int32_t inner = x->rank - (int32_t)depth;
    bool fits = updates->rank == outer + inner;
    for (int32_t d = 0; fits && d < outer; ++d) {
        fits = updates->extent[d] == indices->extent[d];
    }
    for (int32_t d = 0; fits && d < inner; ++d) {
        fits = updates->extent[outer + d] == x->extent[depth + d];
    }
    if (!fits) {
        char a[80];
        char b[80];
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "updates %s do not fit indices %s",
                             rondo_shape_format(updates, a, sizeof a),
                             rondo_shape_format(indices, b, sizeof b));
    }
    return rondo__infer_like_input(infer);
}

static rondo_status compute_scatter_nd(rondo__compute *compute) {
    const rondo_tensor *input = compute->inputs[0];
    const rondo_tensor *indices = compute->inputs[1];
    const rondo_tensor *updates = compute->inputs[2];
    const rondo_shape *x = &input->shape;
    reduction how = get_reduction(compute->op);
    int32_t depth = (int32_t)indices->shape.extent[indices->shape.rank - 1];
    void *output = NULL;
    RETURN_IF_ERROR(copy_data(compute, &output));
    int64_t strides[RONDO_RANK_MAX];
    rondo__shape_get_strides(x, strides);
    int64_t tuples = rondo__shape_multiply(&indices->shape, 0, indices->shape.rank - 1);
    int64_t block = rondo__shape_multiply(x, depth, x->rank);
    size_t bytes = rondo_dtype_get_bytes(input->dtype);
    for (int64_t i = 0; i < tuples && block > 0; ++i) {
        int64_t offset = 0;
        RETURN_IF_ERROR(locate_tuple(compute->op, x, strides, indices, i, 0, &offset));
        uint8_t *target = (uint8_t *)output + (size_t)offset * bytes;
        const uint8_t *update = (const uint8_t *)updates->data + (size_t)(i * block) * bytes;
        if (how == REDUCTION_NONE) {
            memcpy(target, update, (size_t)block * bytes);
        } else {
            reduce_elements(how, input->dtype, target, update, block);
        }
    }
    return RONDO_STATUS_OK;
}

// ---- OneHot -----------------------------------------------------------------------------------

static rondo_status infer_one_hot(rondo__infer *infer) {
    const rondo_shape *indices = &infer->inputs[0].shape;
    infer->outputs[0].dtype = infer->inputs[2].dtype;
    int32_t axis = 0;
    for (size_t i = 0; i < 2; ++i) {
        rondo_dtype dtype = infer->inputs[i].dtype;
        if (!rondo__dtype_is_float(dtype) && !rondo__dtype_is_integer(dtype)) {
            return rondo__op_fail_dtype(infer->op, i, dtype);
        }
    }
    if (rondo_shape_get_count(&infer->inputs[1].shape) != 1 ||
        rondo_shape_get_count(&infer->inputs[2].shape) != 2) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "depth must be one number, values must be two");
    }
    if (indices->rank == RONDO_RANK_MAX) {
        return rondo__op_fail_unsupported(infer->op, "result of rank above 8");
    }
    RETURN_IF_ERROR(rondo__op_resolve_axis(infer->op, rondo__op_get_int(infer->op, "axis", -1),
                                           indices->rank + 1, &axis));
    if (infer->inputs[1].constant == NULL) {
        return rondo__infer_needs_value(infer, 1);
    }
    double depth = rondo__tensor_get_number(infer->inputs[1].constant, 0);
    if (!(depth >= 0.0 && depth < 9e15)) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "depth is %g", depth);
    }
    rondo_shape shape = {.rank = indices->rank + 1};
    for (int32_t d = 0; d < shape.rank; ++d) {
        shape.extent[d] = d < axis ? indices->extent[d] : d > axis ? indices->extent[d - 1] : 0;
    }
    shape.extent[axis] = (int64_t)depth;
    return rondo__infer_set_output(infer, 0, infer->inputs[2].dtype, &shape);
}

static rondo_status compute_one_hot(rondo__compute *compute) {
    const rondo_tensor *indices = compute->inputs[0];
    const rondo_tensor *values = compute->inputs[2];
    const rondo_shape *shape = &compute->inferred[0].shape;
    int32_t axis = 0;
    RETURN_IF_ERROR(rondo__op_resolve_axis(compute->op, rondo__op_get_int(compute->op, "axis", -1),
                                           shape->rank, &axis));
    int64_t depth = shape->extent[axis];
    int64_t inner = rondo__shape_multiply(shape, axis + 1, shape->rank);
    int64_t count = rondo_shape_get_count(shape);
    size_t bytes = rondo_dtype_get_bytes(values->dtype);
    void *output = NULL;
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &output));
    const int64_t repeat = 0;
    rondo__copy_strided(bytes, 1, &count, &repeat, values->data, output);
    for (int64_t i = 0; count > 0 && i < count / depth; ++i) {
        // Anything outside [-depth, depth) has no position: the row stays off.
        double number = rondo__tensor_get_number(indices, i);
        if (!(number >= -(double)depth && number < (double)depth)) {
            continue;
        }
        int64_t index = (int64_t)number;
        index = index < 0 ? index + depth : index;
        int64_t at = (i / inner * depth + index) * inner + i % inner;
        memcpy((uint8_t *)output + (size_t)at * bytes, (const uint8_t *)values->data + bytes,
               bytes);
    }
    return RONDO_STATUS_OK;
}

// ---- TensorScatter ----------------------------------------------------------------------------

// The axis along which a cache is written, which is not that of batches.
static rondo_status get_cache_axis(const rondo__op *op, int32_t rank, int32_t *out_axis) {
    RETURN_IF_ERROR(rondo__op_resolve_axis(op, rondo__op_get_int(op, "axis", -2), rank, out_axis));
    if (*out_axis == 0) {
        return RONDO_OP_FAIL(op, BAD_DATA, "attribute axis selects the axis of batches");
    }
    return RONDO_STATUS_OK;
}

static rondo_status check_cache_mode(const rondo__op *op) {
    const char *mode = rondo__op_get_string(op, "mode", "linear");
    if (strcmp(mode, "linear") != 0 && strcmp(mode, "circular") != 0) {
        return rondo__op_fail_unsupported(op, "attribute mode");
    }
    return RONDO_STATUS_OK;
}

static rondo_status infer_tensor_scatter(rondo__infer *infer) {
    const rondo_shape *past = &infer->inputs[0].shape;
    const rondo_shape *update = &infer->inputs[1].shape;
    int32_t axis;
    RETURN_IF_ERROR(get_cache_axis(infer->op, past->rank, &axis));
    RETURN_IF_ERROR(rondo__infer_check_same_dtype(infer, 0, 1));
    bool is_fit = update->rank == past->rank && update->extent[axis] <= past->extent[axis];
    for (int32_t d = 0; is_fit && d < past->rank; ++d) {
        is_fit = d == axis || update->extent[d] == past->extent[d];
    }
    if (!is_fit) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "the update does not fit the cache");
    }
    if (rondo__infer_has_input(infer, 2)) {
        const rondo__tensor_info *places = &infer->inputs[2];
        if (places->dtype != RONDO_DTYPE_I64) {
            return rondo__op_fail_dtype(infer->op, 2, places->dtype);
        }
        if (places->shape.rank != 1 || places->shape.extent[0] != past->extent[0]) {
            return RONDO_OP_FAIL(infer->op, BAD_DATA, "there is not one write index a batch");
        }
    }
    return rondo__infer_like_input(infer);
}

// Where writing starts in each batch must leave room for the update, unless it wraps around.
static rondo_status check_write_indices(const rondo__compute *compute, int64_t room,
                                        bool is_circular) {
    const rondo_tensor *places = compute->inputs[2];
    for (int64_t b = 0; b < places->shape.extent[0]; ++b) {
        const int64_t at = ((const int64_t *)places->data)[b];
        if (at < 0 || (!is_circular && at > room)) {
            return RONDO_OP_FAIL(compute->op, BAD_DATA, "write index %lld is outside [0, %lld]",
                                 (long long)at, (long long)(is_circular ? INT64_MAX : room));
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status compute_tensor_scatter(rondo__compute *compute) {
    const rondo_tensor *past = compute->inputs[0];
    const rondo_tensor *update = compute->inputs[1];
    const bool has_places = rondo__compute_has_input(compute, 2);
    const bool is_circular =
        strcmp(rondo__op_get_string(compute->op, "mode", "linear"), "circular") == 0;
    int32_t axis;
    RETURN_IF_ERROR(get_cache_axis(compute->op, past->shape.rank, &axis));
    const int64_t most = past->shape.extent[axis], steps = update->shape.extent[axis];
    if (has_places) {
        RETURN_IF_ERROR(check_write_indices(compute, most - steps, is_circular));
    }
    void *output = NULL;
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &output));
    const size_t row = rondo_dtype_get_bytes(past->dtype) *
                       (size_t)rondo__shape_multiply(&past->shape, axis + 1, past->shape.rank);
    const int64_t lines = rondo__shape_multiply(&past->shape, 0, axis);
    const int64_t lines_a_batch = rondo__shape_multiply(&past->shape, 1, axis);
    if (row == 0 || lines * most == 0) {
        return RONDO_STATUS_OK;
    }
    if (output != past->data) {
        memcpy(output, past->data, rondo_tensor_get_bytes(past));
    }
    for (int64_t line = 0; line < lines; ++line) {
        const int64_t first =
            has_places ? ((const int64_t *)compute->inputs[2]->data)[line / lines_a_batch] : 0;
        for (int64_t i = 0; i < steps; ++i) {
            const int64_t at = (first % most + i) % most;
            memcpy((uint8_t *)output + (size_t)(line * most + at) * row,
                   (const uint8_t *)update->data + (size_t)(line * steps + i) * row, row);
        }
    }
    return RONDO_STATUS_OK;
}

// ---- the table --------------------------------------------------------------------------------

static const char *const axis_attributes[] = {"axis", NULL};
static const char *const gather_nd_attributes[] = {"batch_dims", NULL};
static const char *const reduction_attributes[] = {"reduction", NULL};
static const char *const scatter_attributes[] = {"axis", "reduction", NULL};
static const char *const cache_attributes[] = {"axis", "mode", NULL};

#define ENTRY(op, first, last, inputs, half, attribute_list, infer_function, compute_function, \
              ...)                                                                             \
    RONDO_OP_ROW(OP, op, first, last, inputs, inputs, 1, 1, .flags = half,                     \
                 .capture = RONDO__CAPTURE_YES, .attributes = attribute_list,                  \
                 .infer = infer_function, .compute = compute_function, .check = __VA_ARGS__)
#define HALF RONDO__OP_NATIVE_HALF
#define PLACE RONDO__OP_IN_PLACE

const rondo__op_def rondo__op_table_index[] = {
    ENTRY(Gather, 1, 28, 2, HALF, axis_attributes, infer_gather, compute_gather, NULL,
          .strings = RONDO__INPUT_0, .is_fallible = true, .moved = RONDO__INPUT_0),
    ENTRY(GatherElements, 11, 28, 2, HALF, axis_attributes, infer_gather_elements,
          compute_gather_elements, NULL, .strings = RONDO__INPUT_0, .is_fallible = true,
          .moved = RONDO__INPUT_0),
    ENTRY(GatherND, 11, 28, 2, HALF, gather_nd_attributes, infer_gather_nd, compute_gather_nd, NULL,
          .strings = RONDO__INPUT_0, .is_fallible = true, .moved = RONDO__INPUT_0),
    ENTRY(OneHot, 9, 28, 3, HALF, axis_attributes, infer_one_hot, compute_one_hot, NULL,
          .strings = RONDO__INPUT_2, .moved = RONDO__INPUT_2),
    ENTRY(Scatter, 9, 10, 3, PLACE, axis_attributes, infer_scatter_elements,
          compute_scatter_elements, NULL, .strings = RONDO__INPUT_0 | RONDO__INPUT_2,
          .is_fallible = true, .moved = RONDO__INPUT_0 | RONDO__INPUT_2),
    ENTRY(ScatterElements, 11, 28, 3, PLACE, scatter_attributes, infer_scatter_elements,
          compute_scatter_elements, check_reduction, .strings = RONDO__INPUT_0 | RONDO__INPUT_2,
          .is_fallible = true, .moved = RONDO__INPUT_0 | RONDO__INPUT_2),
    ENTRY(ScatterND, 11, 28, 3, PLACE, reduction_attributes, infer_scatter_nd, compute_scatter_nd,
          check_reduction, .strings = RONDO__INPUT_0 | RONDO__INPUT_2, .is_fallible = true,
          .moved = RONDO__INPUT_0 | RONDO__INPUT_2),
    RONDO_OP_ROW(OP, TensorScatter, 24, RONDO_OP_OPSET_MAX, 2, 3, 1, 1, .flags = HALF | PLACE,
                 .capture = RONDO__CAPTURE_YES, .attributes = cache_attributes,
                 .infer = infer_tensor_scatter, .compute = compute_tensor_scatter,
                 .check = check_cache_mode, .is_fallible = true,
                 .moved = RONDO__INPUT_0 | RONDO__INPUT_1),
    {0},
};

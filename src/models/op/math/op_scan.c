// op/math/op_scan.c — ops that run along one axis: ArgMax, ArgMin, CumProd, CumSum.
// SPDX-License-Identifier: Apache-2.0
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "op/math/binary.h"
#include "op/op.h"
#include "op/support.h"

// ---- ArgMax, ArgMin ---------------------------------------------------------------------------

// The position of the best of `extent` elements that lie `stride` apart. NaN counts as best, as in
// numpy.
typedef int64_t (*find_kernel)(const void *x, int64_t extent, int64_t stride, bool takes_last);

#define DEFINE_FIND(name, suffix, type, is_better)                                \
    static int64_t name##_##suffix(const void *x, int64_t extent, int64_t stride, \
                                   bool takes_last) {                             \
        type best = *(const type *)x;                                             \
        int64_t place = 0;                                                        \
        for (int64_t i = 1; i < extent; ++i) {                                    \
            const type v = ((const type *)x)[i * stride];                         \
            if ((is_better) || (takes_last && v == best)) {                       \
                best = v;                                                         \
                place = i;                                                        \
            }                                                                     \
        }                                                                         \
        return place;                                                             \
    }
#define DEFINE_FIND_FLOAT(suffix, type)                                                       \
    DEFINE_FIND(find_max, suffix, type, v > best || (v != v && (best == best || takes_last))) \
    DEFINE_FIND(find_min, suffix, type, v < best || (v != v && (best == best || takes_last)))
#define DEFINE_FIND_INTEGER(suffix, type)         \
    DEFINE_FIND(find_max, suffix, type, v > best) \
    DEFINE_FIND(find_min, suffix, type, v < best)
RONDO_OP_FLOAT_MAP(DEFINE_FIND_FLOAT)
RONDO_OP_INTEGER_MAP(DEFINE_FIND_INTEGER)

static const find_kernel max_kernels[RONDO_DTYPE_COUNT] = {RONDO_OP_NUMERIC_KERNELS(find_max)};
static const find_kernel min_kernels[RONDO_DTYPE_COUNT] = {RONDO_OP_NUMERIC_KERNELS(find_min)};

static rondo_status infer_arg(rondo__infer *infer) {
    const rondo_shape *x = &infer->inputs[0].shape;
    rondo_dtype dtype = infer->inputs[0].dtype;
    int32_t axis = 0;
    if (max_kernels[rondo__dtype_widen(dtype)] == NULL) {
        return rondo__op_fail_dtype(infer->op, 0, dtype);
    }
    RETURN_IF_ERROR(
        rondo__op_resolve_axis(infer->op, rondo__op_get_int(infer->op, "axis", 0), x->rank, &axis));
    if (x->extent[axis] == 0) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "axis %d is empty: it has no best element", axis);
    }
    bool keeps = rondo__op_get_int(infer->op, "keepdims", 1) != 0;
    rondo_shape shape = {0};
    for (int32_t d = 0; d < x->rank; ++d) {
        if (d != axis || keeps) {
            shape.extent[shape.rank++] = d == axis ? 1 : x->extent[d];
        }
    }
    return rondo__infer_set_output(infer, 0, RONDO_DTYPE_I64, &shape);
}

static rondo_status compute_arg(rondo__compute *compute, const find_kernel *kernels) {
    const rondo_tensor *input = compute->inputs[0];
    const rondo_shape *x = &input->shape;
    bool takes_last = rondo__op_get_int(compute->op, "select_last_index", 0) != 0;
    int32_t axis = 0;
    RETURN_IF_ERROR(rondo__op_resolve_axis(compute->op, rondo__op_get_int(compute->op, "axis", 0),
                                           x->rank, &axis));
    void *output = NULL;
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &output));
    int64_t *y = output;
    int64_t outer = rondo__shape_multiply(x, 0, axis);
    int64_t inner = rondo__shape_multiply(x, axis + 1, x->rank);
    int64_t extent = x->extent[axis];
    size_t bytes = rondo_dtype_get_bytes(input->dtype);
    for (int64_t o = 0; o < outer; ++o) {
        for (int64_t i = 0; i < inner; ++i) {
            const uint8_t *from =
                (const uint8_t *)input->data + (size_t)(o * extent * inner + i) * bytes;
            *y++ = kernels[input->dtype](from, extent, inner, takes_last);
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status compute_arg_max(rondo__compute *compute) {
    return compute_arg(compute, max_kernels);
}

static rondo_status compute_arg_min(rondo__compute *compute) {
    return compute_arg(compute, min_kernels);
}

// ---- CumProd, CumSum --------------------------------------------------------------------------

// Adds or multiplies along a line of elements `stride` apart, which may be negative.
typedef void (*line_kernel)(const void *x, void *y, int64_t extent, int64_t stride,
                            bool is_exclusive);

#define DEFINE_LINE(name, suffix, type, accumulator, start, operator)                      \
    static void name##_##suffix(const void *in, void *out, int64_t extent, int64_t stride, \
                                bool is_exclusive) {                                       \
        const type *x = in;                                                                \
        type *y = out;                                                                     \
        accumulator value = start;                                                         \
        for (int64_t i = 0; i < extent; ++i) {                                             \
            const accumulator before = value;                                              \
            value operator(accumulator) x[i * stride];                                     \
            y[i * stride] = (type)(is_exclusive ? before : value);                         \
        }                                                                                  \
    }
#define DEFINE_LINES(name, start, operator)                             \
    DEFINE_LINE(name, F32, float, double, start, operator)              \
    DEFINE_LINE(name, F64, double, double, start, operator)             \
    DEFINE_LINE(name, I32, int32_t, uint64_t, start, operator)          \
    DEFINE_LINE(name, I64, int64_t, uint64_t, start, operator)          \
    DEFINE_LINE(name, U32, uint32_t, uint64_t, start, operator)         \
    DEFINE_LINE(name, U64, uint64_t, uint64_t, start, operator)         \
    static const line_kernel name##_kernels[RONDO_DTYPE_COUNT] = {      \
        [RONDO_DTYPE_F32] = name##_F32, [RONDO_DTYPE_F64] = name##_F64, \
        [RONDO_DTYPE_I32] = name##_I32, [RONDO_DTYPE_I64] = name##_I64, \
        [RONDO_DTYPE_U32] = name##_U32, [RONDO_DTYPE_U64] = name##_U64, \
    };
DEFINE_LINES(cumprod, 1, *=)
DEFINE_LINES(cumsum, 0, +=)

static rondo_status infer_cumulative(rondo__infer *infer) {
    rondo_dtype dtype = infer->inputs[0].dtype;
    rondo_dtype axis_dtype = infer->inputs[1].dtype;
    if (cumsum_kernels[rondo__dtype_widen(dtype)] == NULL) {
        return rondo__op_fail_dtype(infer->op, 0, dtype);
    }
    if ((axis_dtype != RONDO_DTYPE_I32 && axis_dtype != RONDO_DTYPE_I64) ||
        rondo_shape_get_count(&infer->inputs[1].shape) != 1) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "the axis must be one i32 or i64 number");
    }
    return rondo__infer_like_input(infer);
}

static rondo_status compute_cumulative(rondo__compute *compute, const line_kernel *kernels) {
    const rondo_tensor *input = compute->inputs[0];
    const rondo_shape *x = &input->shape;
    bool is_exclusive = rondo__op_get_int(compute->op, "exclusive", 0) != 0;
    bool is_reverse = rondo__op_get_int(compute->op, "reverse", 0) != 0;
    int32_t axis = 0;
    RETURN_IF_ERROR(rondo__op_resolve_axis(
        compute->op, rondo__tensor_get_int(compute->inputs[1], 0), x->rank, &axis));
    void *output = NULL;
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &output));
    int64_t outer = rondo__shape_multiply(x, 0, axis);
    int64_t inner = rondo__shape_multiply(x, axis + 1, x->rank);
    int64_t extent = x->extent[axis];
    size_t bytes = rondo_dtype_get_bytes(input->dtype);
    for (int64_t o = 0; extent > 0 && o < outer; ++o) {
        for (int64_t i = 0; i < inner; ++i) {
            int64_t first = o * extent * inner + i + (is_reverse ? (extent - 1) * inner : 0);
            size_t at = (size_t)first * bytes;
            kernels[input->dtype]((const uint8_t *)input->data + at, (uint8_t *)output + at, extent,
                                  is_reverse ? -inner : inner, is_exclusive);
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status compute_cumprod(rondo__compute *compute) {
    return compute_cumulative(compute, cumprod_kernels);
}

static rondo_status compute_cumsum(rondo__compute *compute) {
    return compute_cumulative(compute, cumsum_kernels);
}

// ---- the table --------------------------------------------------------------------------------

static const char *const arg_attributes[] = {"axis", "keepdims", NULL};
static const char *const arg_12_attributes[] = {"axis", "keepdims", "select_last_index", NULL};
static const char *const cumulative_attributes[] = {"exclusive", "reverse", NULL};

#define ENTRY(op, first, last, inputs, attribute_list, infer_function, ...)                \
    RONDO_OP_ROW(OP, op, first, last, inputs, inputs, 1, 1, .capture = RONDO__CAPTURE_YES, \
                 .attributes = attribute_list, .infer = infer_function, .compute = __VA_ARGS__)

const rondo__op_def rondo__op_table_scan[] = {
    ENTRY(ArgMax, 1, 11, 1, arg_attributes, infer_arg, compute_arg_max),
    ENTRY(ArgMax, 12, 28, 1, arg_12_attributes, infer_arg, compute_arg_max),
    ENTRY(ArgMin, 1, 11, 1, arg_attributes, infer_arg, compute_arg_min),
    ENTRY(ArgMin, 12, 28, 1, arg_12_attributes, infer_arg, compute_arg_min),
    ENTRY(CumProd, 26, 28, 2, cumulative_attributes, infer_cumulative, compute_cumprod,
          .is_fallible = true, .half = {HALF_STAYS, HALF_WIDE, HALF_POWER}),
    ENTRY(CumSum, 11, 28, 2, cumulative_attributes, infer_cumulative, compute_cumsum,
          .is_fallible = true, .half = {HALF_LONG_SUM | HALF_CARRIES, HALF_WIDE, HALF_SUMMED}),
    {0},
};

// op/math/op_scan.c — ops that run along one axis: ArgMax, ArgMin, CumProd, CumSum.
// SPDX-License-Identifier: Apache-2.0
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "op/math/binary.h"
#include "op/math/scan.h"
#include "op/op.h"
#include "op/support.h"

// ---- ArgMax, ArgMin ---------------------------------------------------------------------------

enum {
    FIND_COLUMNS = 128,  // columns that are looked through side by side
    FIND_LANES = 16,     // a line is looked through as so many columns
};

// NaN counts as best, as in numpy. find_columns writes the positions of the best of `extent`
// elements that lie `step` apart, for each of `columns` that stand side by side; find_line returns
// the one of elements in a row.
typedef void (*find_columns)(const void *x, int64_t extent, int64_t step, int64_t columns,
                             bool takes_last, int64_t *places);
typedef int64_t (*find_line)(const void *x, int64_t extent, bool takes_last);
typedef struct find_kernel {
    find_columns columns;
    find_line line;
} find_kernel;

// Conditions without branches, which become vector code. `wins` and `ties` compare v with best.
#define DEFINE_FIND(name, suffix, type, beats, wins, ties)                                         \
    static void name##_columns_##suffix(const void *x, int64_t extent, int64_t step,               \
                                        int64_t columns, bool takes_last, int64_t *places) {       \
        type bests[FIND_COLUMNS];                                                                  \
        int place[FIND_COLUMNS];                                                                   \
        const int takes_ties = takes_last;                                                         \
        for (int64_t first = 0; first < columns; first += FIND_COLUMNS) {                          \
            const type *from = (const type *)x + first;                                            \
            const int64_t width = columns - first < FIND_COLUMNS ? columns - first : FIND_COLUMNS; \
            for (int64_t c = 0; c < width; ++c) {                                                  \
                bests[c] = from[c];                                                                \
                place[c] = 0;                                                                      \
            }                                                                                      \
            for (int i = 1; i < (int)extent; ++i) {                                                \
                const type *row = from + i * step;                                                 \
                for (int64_t c = 0; c < width; ++c) {                                              \
                    const type v = row[c], best = bests[c];                                        \
                    const int takes = (wins) | (takes_ties & (ties));                              \
                    bests[c] = takes ? v : best;                                                   \
                    place[c] = takes ? i : place[c];                                               \
                }                                                                                  \
            }                                                                                      \
            for (int64_t c = 0; c < width; ++c) {                                                  \
                places[first + c] = place[c];                                                      \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static int64_t name##_line_##suffix(const void *x, int64_t extent, bool takes_last) {          \
        int64_t places[FIND_LANES];                                                                \
        const int64_t rows = extent / FIND_LANES;                                                  \
        int64_t place = 0;                                                                         \
        type best = *(const type *)x;                                                              \
        if (rows == 0) {                  /* a short one, without a branch on what is found */     \
            uint32_t equal = 0, none = 0; /* which are the best, which are NaN */                  \
            for (int64_t k = 1; k < extent; ++k) {                                                 \
                const type v = ((const type *)x)[k];                                               \
                best = v beats best ? v : best;                                                    \
            }                                                                                      \
            for (int64_t k = 0; k < extent; ++k) {                                                 \
                const type v = ((const type *)x)[k];                                               \
                equal |= (uint32_t)(v == best) << k;                                               \
                none |= (uint32_t)(v != v) << k;                                                   \
            }                                                                                      \
            equal = none != 0 ? none : equal;                                                      \
            return takes_last ? 31 - __builtin_clz(equal) : __builtin_ctz(equal);                  \
        }                                                                                          \
        name##_columns_##suffix(x, rows, FIND_LANES, FIND_LANES, takes_last, places);              \
        for (int64_t k = 0; k < FIND_LANES + extent % FIND_LANES; ++k) {                           \
            const int64_t at =                                                                     \
                k < FIND_LANES ? places[k] * FIND_LANES + k : (rows - 1) * FIND_LANES + k;         \
            const type v = ((const type *)x)[at];                                                  \
            if ((wins) || ((ties) && (takes_last ? at > place : at < place))) {                    \
                best = v;                                                                          \
                place = at;                                                                        \
            }                                                                                      \
        }                                                                                          \
        return place;                                                                              \
    }                                                                                              \
    static const find_kernel name##_##suffix = {name##_columns_##suffix, name##_line_##suffix};
#define DEFINE_FIND_FLOAT(suffix, type)                                              \
    DEFINE_FIND(find_max, suffix, type, >, (v > best) | ((v != v) & (best == best)), \
                (v == best) | ((v != v) & (best != best)))                           \
    DEFINE_FIND(find_min, suffix, type, <, (v < best) | ((v != v) & (best == best)), \
                (v == best) | ((v != v) & (best != best)))
#define DEFINE_FIND_INTEGER(suffix, type)                       \
    DEFINE_FIND(find_max, suffix, type, >, v > best, v == best) \
    DEFINE_FIND(find_min, suffix, type, <, v < best, v == best)
RONDO_OP_FLOAT_MAP(DEFINE_FIND_FLOAT)
RONDO_OP_INTEGER_MAP(DEFINE_FIND_INTEGER)

#define FIND_ENTRY(suffix, type) [RONDO_DTYPE_##suffix] = &FIND_NAME(suffix),
#define FIND_NAME(suffix) find_max_##suffix
static const find_kernel *const max_kernels[RONDO_DTYPE_COUNT] = {RONDO_OP_NUMERIC_MAP(FIND_ENTRY)};
#undef FIND_NAME
#define FIND_NAME(suffix) find_min_##suffix
static const find_kernel *const min_kernels[RONDO_DTYPE_COUNT] = {RONDO_OP_NUMERIC_MAP(FIND_ENTRY)};

int64_t rondo__find_greatest(const float *x, int64_t count) {
    return find_max_line_F32(x, count, false);
}

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
    if (x->extent[axis] > INT32_MAX) {
        return rondo__op_fail_unsupported(infer->op, "axis of more than 2147483647 elements");
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

static rondo_status compute_arg(rondo__compute *compute, const find_kernel *const *kernels) {
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
    const find_kernel *kernel = kernels[input->dtype];
    for (int64_t o = 0; o < outer; ++o, y += inner) {
        const uint8_t *from = (const uint8_t *)input->data + (size_t)(o * extent * inner) * bytes;
        if (inner == 1) {
            *y = kernel->line(from, extent, takes_last);
        } else {
            kernel->columns(from, extent, inner, inner, takes_last, y);
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

enum { LINES = 512 };  // side by side: elements of a row that are read at once

// Adds or multiplies along `lines` lines that begin beside each other, each of elements `stride`
// apart, which may be negative.
typedef void (*line_kernel)(const void *x, void *y, int64_t extent, int64_t stride, int64_t lines,
                            bool is_exclusive);

#define DEFINE_LINE(name, suffix, type, accumulator, start, operator)                      \
    static void name##_##suffix(const void *in, void *out, int64_t extent, int64_t stride, \
                                int64_t lines, bool is_exclusive) {                        \
        accumulator value = start, values[LINES];                                          \
        const type *restrict x = in;                                                       \
        type *restrict y = out;                                                            \
        for (int64_t i = 0; lines == 1 && i < extent; ++i) {                               \
            const accumulator before = value;                                              \
            value operator(accumulator) x[i * stride];                                     \
            y[i * stride] = (type)(is_exclusive ? before : value);                         \
        }                                                                                  \
        for (int64_t line = 0; line < lines; ++line) {                                     \
            values[line] = start;                                                          \
        }                                                                                  \
        for (int64_t i = 0; lines > 1 && i < extent; ++i, x += stride, y += stride) {      \
            for (int64_t line = 0; !is_exclusive && line < lines; ++line) {                \
                values[line] operator(accumulator) x[line];                                \
                y[line] = (type)values[line];                                              \
            }                                                                              \
            for (int64_t line = 0; is_exclusive && line < lines; ++line) {                 \
                const accumulator before = values[line];                                   \
                values[line] operator(accumulator) x[line];                                \
                y[line] = (type)before;                                                    \
            }                                                                              \
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
        for (int64_t i = 0; i < inner; i += LINES) {
            int64_t first = o * extent * inner + i + (is_reverse ? (extent - 1) * inner : 0);
            size_t at = (size_t)first * bytes;
            kernels[input->dtype]((const uint8_t *)input->data + at, (uint8_t *)output + at, extent,
                                  is_reverse ? -inner : inner,
                                  inner - i < LINES ? inner - i : LINES, is_exclusive);
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

// op/math/op_reduce.c — the Reduce ops.
//
// Neighbouring axes that are both kept or both reduced are joined; then the input is read once, in
// memory order, row by row. A row of the last joined axis either falls into one accumulator (it is
// reduced) or is added element by element to a row of accumulators (it is kept). Floats accumulate
// in double, integers in 64 wrapping bits, Max and Min in the element type itself.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "op/math/binary.h"
#include "op/math/scan.h"
#include "op/op.h"
#include "op/support.h"

// ---- which axes -------------------------------------------------------------------------------

// ReduceSum takes its axes as an input from opset 13, the others from 18.
static bool has_axes_input(const rondo__op *op) {
    return op->opset >= (op->def->id == RONDO__OP_ReduceSum ? 13 : 18);
}

// The mask of reduced axes; with none reduced (noop_with_empty_axes) each element is a set of its
// own, so that ReduceSumSquare still squares. `axes` is the value of input 1 or NULL when absent.
static rondo_status read_reduced(const rondo__op *op, const rondo_shape *x,
                                 const rondo_tensor *axes, uint32_t *out_mask) {
    int64_t values[RONDO_RANK_MAX];
    size_t count = 0;
    const int64_t *list = values;
    if (axes != NULL) {
        RETURN_IF_ERROR(rondo__op_read_ints(op, "axes", axes, RONDO_RANK_MAX, values, &count));
    } else if (!has_axes_input(op)) {
        list = rondo__op_get_ints(op, "axes", &count);
    }
    if (count == 0) {
        bool keeps_all = rondo__op_get_int(op, "noop_with_empty_axes", 0) != 0;
        *out_mask = keeps_all ? 0 : (1u << x->rank) - 1u;
        return RONDO_STATUS_OK;
    }
    return rondo__op_resolve_axes(op, list, count, x->rank, out_mask);
}

static rondo_status infer_reduce(rondo__infer *infer, const rondo_dtype *dtypes) {
    const rondo_shape *x = &infer->inputs[0].shape;
    rondo_dtype dtype = infer->inputs[0].dtype;
    const rondo_tensor *axes = NULL;
    size_t i = 0;
    while (dtypes[i] != RONDO_DTYPE_NONE && dtypes[i] != rondo__dtype_widen(dtype)) {
        ++i;
    }
    if (dtypes[i] == RONDO_DTYPE_NONE) {
        return rondo__op_fail_dtype(infer->op, 0, dtype);
    }
    infer->outputs[0].dtype = dtype;
    if (rondo__infer_has_input(infer, 1)) {
        axes = infer->inputs[1].constant;
        // Of an input without elements, the value is known.
        if (axes == NULL && rondo_shape_get_count(&infer->inputs[1].shape) > 0) {
            return rondo__infer_needs_value(infer, 1);
        }
    }
    uint32_t mask = 0;
    RETURN_IF_ERROR(read_reduced(infer->op, x, axes, &mask));
    bool keeps = rondo__op_get_int(infer->op, "keepdims", 1) != 0;
    rondo_shape shape = {0};
    for (int32_t d = 0; d < x->rank; ++d) {
        bool is_reduced = (mask >> d & 1u) != 0;
        if (!is_reduced || keeps) {
            shape.extent[shape.rank++] = is_reduced ? 1 : x->extent[d];
        }
    }
    return rondo__infer_set_output(infer, 0, dtype, &shape);
}

// ---- walking the input ------------------------------------------------------------------------

typedef struct reduce_walk {
    int32_t rank;                    // of joined axes; the last one is the row
    int64_t extent[RONDO_RANK_MAX];  // of the input
    int64_t stride[RONDO_RANK_MAX];  // of the accumulators; 0 where reduced
    int64_t row_count;
} reduce_walk;

static void walk_init(reduce_walk *walk, const rondo_shape *x, uint32_t mask) {
    *walk = (reduce_walk){0};
    bool is_reduced[RONDO_RANK_MAX];
    for (int32_t d = 0; d < x->rank; ++d) {
        bool now = (mask >> d & 1u) != 0;
        if (walk->rank > 0 && is_reduced[walk->rank - 1] == now) {
            walk->extent[walk->rank - 1] *= x->extent[d];
        } else {
            is_reduced[walk->rank] = now;
            walk->extent[walk->rank++] = x->extent[d];
        }
    }
    if (walk->rank == 0) {
        is_reduced[0] = true;
        walk->extent[walk->rank++] = 1;
    }
    int64_t stride = 1;
    walk->row_count = 1;
    for (int32_t d = walk->rank - 1; d >= 0; --d) {
        walk->stride[d] = is_reduced[d] ? 0 : stride;
        stride *= is_reduced[d] ? 1 : walk->extent[d];
        walk->row_count *= d < walk->rank - 1 ? walk->extent[d] : 1;
    }
}

// a[i * a_stride] takes x[i]; a_stride is 0 or 1. b is a second row at the same place (the maxima
// of LogSumExp) or NULL.
typedef void (*row_kernel)(const void *x, int64_t count, void *a, int64_t a_stride, const void *b);

static void walk_run(const reduce_walk *walk, row_kernel kernel, const void *x, size_t x_bytes,
                     void *a, size_t a_bytes, const double *b) {
    int64_t index[RONDO_RANK_MAX] = {0};
    int64_t offset = 0;
    int32_t last = walk->rank - 1;
    int64_t length = walk->extent[last];
    if (length == 0) {
        return;
    }
    const uint8_t *from = x;
    for (int64_t row = 0; row < walk->row_count; ++row) {
        kernel(from, length, (uint8_t *)a + (size_t)offset * a_bytes, walk->stride[last],
               b != NULL ? b + offset : NULL);
        from += (size_t)length * x_bytes;
        for (int32_t d = last - 1; d >= 0; --d) {
            offset += walk->stride[d];
            if (++index[d] < walk->extent[d]) {
                break;
            }
            offset -= walk->stride[d] * walk->extent[d];
            index[d] = 0;
        }
    }
}

// Defines row kernel name_suffix; `expression` is of the accumulator t and the element v.
#define ROW_KERNEL(name, suffix, type, accumulator, expression)                            \
    static void name##_##suffix(const void *x_, int64_t count, void *a_, int64_t a_stride, \
                                const void *b_) {                                          \
        typedef accumulator A;                                                             \
        const type *x = x_;                                                                \
        const double *b = b_;                                                              \
        A *a = a_;                                                                         \
        (void)b;                                                                           \
        if (a_stride == 0) {                                                               \
            A t = *a;                                                                      \
            for (int64_t i = 0, k = 0; i < count; ++i) {                                   \
                const type v = x[i];                                                       \
                t = (A)(expression);                                                       \
                (void)k;                                                                   \
            }                                                                              \
            *a = t;                                                                        \
        } else {                                                                           \
            for (int64_t i = 0, k = 0; i < count; ++i, ++k) {                              \
                const type v = x[i];                                                       \
                const A t = a[i];                                                          \
                a[i] = (A)(expression);                                                    \
            }                                                                              \
        }                                                                                  \
    }

// The element types of sums, products and norms. In 64 unsigned bits, sums and products of signed
// numbers come out right when cut to the element type.
#define WHOLE_MAP(X) X(I32, int32_t) X(I64, int64_t) X(U32, uint32_t) X(U64, uint64_t)

#define DEFINE_SUM_FLOAT(suffix, type) ROW_KERNEL(sum, suffix, type, double, t + (A)v)
#define DEFINE_SUM_WHOLE(suffix, type) ROW_KERNEL(sum, suffix, type, uint64_t, t + (A)v)
RONDO_OP_FLOAT_MAP(DEFINE_SUM_FLOAT)
WHOLE_MAP(DEFINE_SUM_WHOLE)

#define DEFINE_PROD_FLOAT(suffix, type) ROW_KERNEL(prod, suffix, type, double, t *(A)v)
#define DEFINE_PROD_WHOLE(suffix, type) ROW_KERNEL(prod, suffix, type, uint64_t, t *(A)v)
RONDO_OP_FLOAT_MAP(DEFINE_PROD_FLOAT)
WHOLE_MAP(DEFINE_PROD_WHOLE)

#define DEFINE_L1_FLOAT(suffix, type) ROW_KERNEL(l1, suffix, type, double, t + fabs((A)v))
#define DEFINE_L1_SIGNED(suffix, type) \
    ROW_KERNEL(l1, suffix, type, uint64_t, v < 0 ? t - (A)v : t + (A)v)
RONDO_OP_FLOAT_MAP(DEFINE_L1_FLOAT)
DEFINE_L1_SIGNED(I32, int32_t)
DEFINE_L1_SIGNED(I64, int64_t)
#define l1_U32 sum_U32
#define l1_U64 sum_U64

#define DEFINE_SQUARES_FLOAT(suffix, type) \
    ROW_KERNEL(squares, suffix, type, double, t + (A)v * (A)v)
#define DEFINE_SQUARES_WHOLE(suffix, type) \
    ROW_KERNEL(squares, suffix, type, uint64_t, t + (A)v * (A)v)
RONDO_OP_FLOAT_MAP(DEFINE_SQUARES_FLOAT)
WHOLE_MAP(DEFINE_SQUARES_WHOLE)

// For results that are not whole even where the elements are.
#define DEFINE_SUM_WIDE(suffix, type) ROW_KERNEL(sum_wide, suffix, type, double, t + (A)v)
#define DEFINE_SQUARES_WIDE(suffix, type) \
    ROW_KERNEL(squares_wide, suffix, type, double, t + (A)v * (A)v)
WHOLE_MAP(DEFINE_SUM_WIDE)
WHOLE_MAP(DEFINE_SQUARES_WIDE)

// The two rounds of LogSumExp: the greatest element, then the sum of exp(v - greatest). An infinite
// greatest element stands for itself.
#define DEFINE_GREATEST(suffix, type) \
    ROW_KERNEL(greatest, suffix, type, double, (A)v > t || (A)v != (A)v ? (A)v : t)
#define DEFINE_EXPONENTS(suffix, type)          \
    ROW_KERNEL(exponents, suffix, type, double, \
               t + (isinf(b[k]) ? (A)((A)v == b[k]) : exp((A)v - b[k])))
ROW_KERNEL(greatest_each, F32, float, double, (A)v > t || (A)v != (A)v ? (A)v : t)
static void greatest_F32(const void *x, int64_t count, void *a, int64_t a_stride, const void *b) {
    if (a_stride == 0) {  // count is not 0
        x = (const float *)x + rondo__find_greatest(x, count);
        count = 1;
    }
    greatest_each_F32(x, count, a, a_stride, b);
}
DEFINE_GREATEST(F64, double)
WHOLE_MAP(DEFINE_GREATEST)
RONDO_OP_FLOAT_MAP(DEFINE_EXPONENTS)
WHOLE_MAP(DEFINE_EXPONENTS)

// NaN wins.
#define DEFINE_MAX_FLOAT(suffix, type) ROW_KERNEL(max, suffix, type, type, v > t || v != v ? v : t)
#define DEFINE_MIN_FLOAT(suffix, type) ROW_KERNEL(min, suffix, type, type, v < t || v != v ? v : t)
#define DEFINE_MAX_INTEGER(suffix, type) ROW_KERNEL(max, suffix, type, type, v > t ? v : t)
#define DEFINE_MIN_INTEGER(suffix, type) ROW_KERNEL(min, suffix, type, type, v < t ? v : t)
RONDO_OP_FLOAT_MAP(DEFINE_MAX_FLOAT)
RONDO_OP_FLOAT_MAP(DEFINE_MIN_FLOAT)
RONDO_OP_INTEGER_MAP(DEFINE_MAX_INTEGER)
RONDO_OP_INTEGER_MAP(DEFINE_MIN_INTEGER)
ROW_KERNEL(max, BOOL, uint8_t, uint8_t, v != 0 || t != 0)
ROW_KERNEL(min, BOOL, uint8_t, uint8_t, v != 0 && t != 0)

#define WHOLE_KERNELS(name)                                         \
    [RONDO_DTYPE_I32] = name##_I32, [RONDO_DTYPE_I64] = name##_I64, \
    [RONDO_DTYPE_U32] = name##_U32, [RONDO_DTYPE_U64] = name##_U64
#define KERNEL_TABLE(name, ...) static const row_kernel name[RONDO_DTYPE_COUNT] = {__VA_ARGS__};
KERNEL_TABLE(sum_kernels, RONDO_OP_FLOAT_KERNELS(sum), WHOLE_KERNELS(sum))
KERNEL_TABLE(prod_kernels, RONDO_OP_FLOAT_KERNELS(prod), WHOLE_KERNELS(prod))
KERNEL_TABLE(l1_kernels, RONDO_OP_FLOAT_KERNELS(l1), WHOLE_KERNELS(l1))
KERNEL_TABLE(square_kernels, RONDO_OP_FLOAT_KERNELS(squares), WHOLE_KERNELS(squares))
KERNEL_TABLE(wide_sum_kernels, RONDO_OP_FLOAT_KERNELS(sum), WHOLE_KERNELS(sum_wide))
KERNEL_TABLE(wide_square_kernels, RONDO_OP_FLOAT_KERNELS(squares), WHOLE_KERNELS(squares_wide))
KERNEL_TABLE(greatest_kernels, RONDO_OP_FLOAT_KERNELS(greatest), WHOLE_KERNELS(greatest))
KERNEL_TABLE(exponent_kernels, RONDO_OP_FLOAT_KERNELS(exponents), WHOLE_KERNELS(exponents))
KERNEL_TABLE(max_kernels, RONDO_OP_NUMERIC_KERNELS(max), [RONDO_DTYPE_BOOL] = max_BOOL)
KERNEL_TABLE(min_kernels, RONDO_OP_NUMERIC_KERNELS(min), [RONDO_DTYPE_BOOL] = min_BOOL)

static const rondo_dtype sum_dtypes[] = {RONDO_DTYPE_F32, RONDO_DTYPE_F64, RONDO_DTYPE_I32,
                                         RONDO_DTYPE_I64, RONDO_DTYPE_U32, RONDO_DTYPE_U64,
                                         RONDO_DTYPE_NONE};
static const rondo_dtype extreme_dtypes[] = {RONDO_DTYPE_F32, RONDO_DTYPE_F64,  RONDO_DTYPE_I8,
                                             RONDO_DTYPE_I16, RONDO_DTYPE_I32,  RONDO_DTYPE_I64,
                                             RONDO_DTYPE_U8,  RONDO_DTYPE_U16,  RONDO_DTYPE_U32,
                                             RONDO_DTYPE_U64, RONDO_DTYPE_BOOL, RONDO_DTYPE_NONE};

static rondo_status infer_sum(rondo__infer *infer) {
    return infer_reduce(infer, sum_dtypes);
}

static rondo_status infer_extreme(rondo__infer *infer) {
    return infer_reduce(infer, extreme_dtypes);
}

// ---- the references ---------------------------------------------------------------------------

// What every compute function starts with.
typedef struct reduction {
    const rondo_tensor *input;
    void *output;
    int64_t output_count;
    double reduced_count;  // elements that fall into one result
    reduce_walk walk;
} reduction;

static rondo_status begin(rondo__compute *compute, reduction *out_reduction) {
    reduction r = {.input = compute->inputs[0]};
    const rondo_tensor *axes = rondo__compute_has_input(compute, 1) ? compute->inputs[1] : NULL;
    uint32_t mask = 0;
    RETURN_IF_ERROR(read_reduced(compute->op, &r.input->shape, axes, &mask));
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &r.output));
    r.output_count = rondo_shape_get_count(&compute->inferred[0].shape);
    r.reduced_count = 1.0;
    for (int32_t d = 0; d < r.input->shape.rank; ++d) {
        r.reduced_count *= (mask >> d & 1u) != 0 ? (double)r.input->shape.extent[d] : 1.0;
    }
    walk_init(&r.walk, &r.input->shape, mask);
    *out_reduction = r;
    return RONDO_STATUS_OK;
}

// One accumulator of 8 bytes for each result, all starting as `start`.
static rondo_status make_accumulators(const reduction *r, uint64_t start, uint64_t **out_values) {
    uint64_t *values = rondo__calloc((size_t)r->output_count, sizeof *values);
    if (values == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (int64_t i = 0; start != 0 && i < r->output_count; ++i) {
        values[i] = start;
    }
    *out_values = values;
    return RONDO_STATUS_OK;
}

static uint64_t get_bits(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static void run_kernel(const reduction *r, const row_kernel *kernels, uint64_t *accumulators,
                       const double *b) {
    walk_run(&r->walk, kernels[r->input->dtype], r->input->data,
             rondo_dtype_get_bytes(r->input->dtype), accumulators, sizeof *accumulators, b);
}

// Accumulators to elements: doubles where they are doubles, otherwise wrapping whole numbers.
static void store(const reduction *r, bool are_doubles, const uint64_t *accumulators) {
    rondo__convert_elements(are_doubles ? RONDO_DTYPE_F64 : RONDO_DTYPE_U64, accumulators,
                            r->input->dtype, r->output, (size_t)r->output_count);
}

// Sums, products and norms. `finish` turns accumulators into results, or is NULL.
static rondo_status compute_accumulated(rondo__compute *compute, const row_kernel *kernels,
                                        double start, bool is_wide,
                                        double (*finish)(double value, double count)) {
    reduction r;
    RETURN_IF_ERROR(begin(compute, &r));
    bool are_doubles = is_wide || rondo__dtype_is_float(r.input->dtype);
    uint64_t *accumulators = NULL;
    RETURN_IF_ERROR(
        make_accumulators(&r, are_doubles ? get_bits(start) : (uint64_t)start, &accumulators));
    run_kernel(&r, kernels, accumulators, NULL);
    for (int64_t i = 0; finish != NULL && i < r.output_count; ++i) {
        double value;
        memcpy(&value, &accumulators[i], sizeof value);
        accumulators[i] = get_bits(finish(value, r.reduced_count));
    }
    store(&r, are_doubles, accumulators);
    rondo__free(accumulators);
    return RONDO_STATUS_OK;
}

static double finish_mean(double value, double count) {
    return value / count;
}

static double finish_root(double value, double count) {
    (void)count;
    return sqrt(value);
}

static double finish_log(double value, double count) {
    (void)count;
    return log(value);
}

static rondo_status compute_l1(rondo__compute *compute) {
    return compute_accumulated(compute, l1_kernels, 0.0, false, NULL);
}

static rondo_status compute_l2(rondo__compute *compute) {
    return compute_accumulated(compute, wide_square_kernels, 0.0, true, finish_root);
}

static rondo_status compute_log_sum(rondo__compute *compute) {
    return compute_accumulated(compute, wide_sum_kernels, 0.0, true, finish_log);
}

// Of whole numbers: their sum, wrapped to 64 bits, by their count, towards 0. A double would not
// hold every sum.
static rondo_status compute_whole_mean(rondo__compute *compute) {
    reduction r;
    uint64_t *sums = NULL;
    RETURN_IF_ERROR(begin(compute, &r));
    const int64_t count = r.reduced_count > 0.0 ? (int64_t)r.reduced_count : 1;
    RETURN_IF_ERROR(make_accumulators(&r, 0, &sums));
    run_kernel(&r, sum_kernels, sums, NULL);
    for (int64_t i = 0; i < r.output_count; ++i) {
        sums[i] = r.input->dtype == RONDO_DTYPE_U64 ? sums[i] / (uint64_t)count
                                                    : (uint64_t)((int64_t)sums[i] / count);
    }
    store(&r, false, sums);
    rondo__free(sums);
    return RONDO_STATUS_OK;
}

static rondo_status compute_mean(rondo__compute *compute) {
    if (rondo__dtype_is_integer(compute->inputs[0]->dtype)) {
        return compute_whole_mean(compute);
    }
    return compute_accumulated(compute, wide_sum_kernels, 0.0, true, finish_mean);
}

static rondo_status compute_prod(rondo__compute *compute) {
    return compute_accumulated(compute, prod_kernels, 1.0, false, NULL);
}

static rondo_status compute_sum(rondo__compute *compute) {
    return compute_accumulated(compute, sum_kernels, 0.0, false, NULL);
}

static rondo_status compute_sum_square(rondo__compute *compute) {
    return compute_accumulated(compute, square_kernels, 0.0, false, NULL);
}

static rondo_status compute_log_sum_exp(rondo__compute *compute) {
    reduction r;
    RETURN_IF_ERROR(begin(compute, &r));
    rondo_status status = RONDO_STATUS_OK;
    uint64_t *sums = NULL;
    uint64_t *greatest = NULL;
    RETURN_IF_ERROR(make_accumulators(&r, get_bits(-(double)INFINITY), &greatest));
    status = make_accumulators(&r, 0, &sums);
    if (status != RONDO_STATUS_OK) {
        goto free_greatest;
    }
    run_kernel(&r, greatest_kernels, greatest, NULL);
    run_kernel(&r, exponent_kernels, sums, (const double *)(const void *)greatest);
    for (int64_t i = 0; i < r.output_count; ++i) {
        double sum;
        double base;
        memcpy(&sum, &sums[i], sizeof sum);
        memcpy(&base, &greatest[i], sizeof base);
        sums[i] = get_bits(log(sum) + base);
    }
    store(&r, true, sums);
    rondo__free(sums);
free_greatest:
    rondo__free(greatest);
    return status;
}

// Fills the output with the weakest value of its dtype: what an empty set gives.
static void fill_weakest(const reduction *r, bool is_max) {
    size_t bytes = rondo_dtype_get_bytes(r->input->dtype);
    uint64_t weakest = 0;
    switch (r->input->dtype) {
        case RONDO_DTYPE_F32:
        case RONDO_DTYPE_F64: {
            double infinite = is_max ? -(double)INFINITY : (double)INFINITY;
            rondo__convert_elements(RONDO_DTYPE_F64, &infinite, r->input->dtype, &weakest, 1);
            break;
        }
        case RONDO_DTYPE_BOOL:
            weakest = is_max ? 0 : 1;
            break;
        case RONDO_DTYPE_U8:
        case RONDO_DTYPE_U16:
        case RONDO_DTYPE_U32:
        case RONDO_DTYPE_U64:
            weakest = is_max ? 0 : UINT64_MAX;
            break;
        default: {
            int64_t least = INT64_MIN >> (64 - 8 * (int)bytes);
            weakest = (uint64_t)(is_max ? least : ~least);
            break;
        }
    }
    const int64_t repeat = 0;
    rondo__copy_strided(bytes, 1, &r->output_count, &repeat, &weakest, r->output);
}

static rondo_status compute_extreme(rondo__compute *compute, const row_kernel *kernels,
                                    bool is_max) {
    reduction r;
    RETURN_IF_ERROR(begin(compute, &r));
    size_t bytes = rondo_dtype_get_bytes(r.input->dtype);
    fill_weakest(&r, is_max);
    walk_run(&r.walk, kernels[r.input->dtype], r.input->data, bytes, r.output, bytes, NULL);
    return RONDO_STATUS_OK;
}

static rondo_status compute_max(rondo__compute *compute) {
    return compute_extreme(compute, max_kernels, true);
}

static rondo_status compute_min(rondo__compute *compute) {
    return compute_extreme(compute, min_kernels, false);
}

// ---- the table --------------------------------------------------------------------------------

static const char *const attribute_names[] = {"axes", "keepdims", NULL};
static const char *const input_names[] = {"keepdims", "noop_with_empty_axes", NULL};

#define ENTRY(op, first, last, inputs, attribute_list, infer_function, ...)           \
    RONDO_OP_ROW(OP, op, first, last, 1, inputs, 1, 1, .capture = RONDO__CAPTURE_YES, \
                 .attributes = attribute_list, .infer = infer_function, .compute = __VA_ARGS__)
// Axes as an attribute below opset `change`, as an input from there on.
#define ENTRIES(op, change, infer_function, ...)                               \
    ENTRY(op, 1, (change)-1, 1, attribute_names, infer_function, __VA_ARGS__), \
        ENTRY(op, change, RONDO_OP_OPSET_MAX, 2, input_names, infer_function, __VA_ARGS__)

const rondo__op_def rondo__op_table_reduce[] = {
    ENTRIES(ReduceL1, 18, infer_sum, compute_l1,
            .half = {HALF_LONG_SUM | HALF_CARRIES, HALF_WIDE, HALF_SUMMED}),
    ENTRIES(ReduceL2, 18, infer_sum, compute_l2, .half = {HALF_STAYS, HALF_FINE, HALF_POWER}),
    ENTRIES(ReduceLogSum, 18, infer_sum, compute_log_sum,
            .half = {HALF_STAYS | HALF_TRACED, HALF_PLAIN, HALF_LOGARITHM}),
    ENTRIES(ReduceLogSumExp, 18, infer_sum, compute_log_sum_exp, .half.kind = HALF_BOUNDED),
    ENTRIES(ReduceMax, 18, infer_extreme, compute_max, .half.kind = HALF_CARRIES),
    ENTRIES(ReduceMean, 18, infer_sum, compute_mean, .half.kind = HALF_CARRIES),
    ENTRIES(ReduceMin, 18, infer_extreme, compute_min, .half.kind = HALF_CARRIES),
    ENTRIES(ReduceProd, 18, infer_sum, compute_prod, .half = {HALF_STAYS, HALF_WIDE, HALF_POWER}),
    ENTRIES(ReduceSum, 13, infer_sum, compute_sum,
            .half = {HALF_LONG_SUM | HALF_CARRIES, HALF_WIDE, HALF_SUMMED}),
    ENTRIES(ReduceSumSquare, 18, infer_sum, compute_sum_square,
            .half = {HALF_STAYS, HALF_WIDE, HALF_POWER}),
    {0},
};

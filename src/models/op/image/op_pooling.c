// op/image/op_pooling.c — sliding and global pools, and MaxUnpool.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "op/image/convolution.h"
#include "op/image/pooling.h"
#include "op/op.h"
#include "op/reference.h"

// ---- sliding pools ----------------------------------------------------------------------------

static rondo_status infer_pool(rondo__infer *infer) {
    RETURN_IF_ERROR(rondo__infer_check_float(infer, 0, 1));
    rondo__pool pool;
    RETURN_IF_ERROR(rondo__pool_init(infer->op, &infer->inputs[0].shape, false, &pool));
    return rondo__infer_set_output(infer, 0, infer->inputs[0].dtype, &pool.output);
}

static rondo_status infer_max_pool(rondo__infer *infer) {
    const rondo_dtype dtype = infer->inputs[0].dtype;
    if (!rondo__dtype_is_float(dtype) && dtype != RONDO_DTYPE_I8 && dtype != RONDO_DTYPE_U8) {
        return rondo__op_fail_dtype(infer->op, 0, dtype);
    }
    rondo__pool pool;
    RETURN_IF_ERROR(rondo__pool_init(infer->op, &infer->inputs[0].shape, false, &pool));
    RETURN_IF_ERROR(rondo__infer_set_output(infer, 0, dtype, &pool.output));
    return rondo__infer_set_output(infer, 1, RONDO_DTYPE_I64, &pool.output);
}

static rondo_status compute_max_pool(rondo__compute *compute) {
    const rondo_tensor *x = compute->inputs[0];
    rondo__pool pool;
    RETURN_IF_ERROR(rondo__pool_init(compute->op, &x->shape, false, &pool));
    void *indices = NULL;
    if (rondo__compute_wants_output(compute, 1)) {
        RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 1, &indices));
    }
    const double lowest = x->dtype == RONDO_DTYPE_I8   ? INT8_MIN
                          : x->dtype == RONDO_DTYPE_U8 ? 0.0
                                                       : -(double)INFINITY;
    rondo__scratch scratch = {0};
    const double *wide = rondo__scratch_widen(&scratch, x);
    double *y = rondo__scratch_create(&scratch, rondo_shape_get_count(&pool.output));
    if (scratch.status == RONDO_STATUS_OK) {
        const bool column_major = rondo__op_get_int(compute->op, "storage_order", 0) != 0;
        rondo__pool_run_max(&pool, wide, lowest, y, indices, column_major);
    }
    return rondo__scratch_end_as(&scratch, compute, 0, y);
}

// rondo.PoolGradient(dy, x) with the attributes of a MaxPool, and channels_last: for each pixel the
// sum of dy of the windows whose maximum it is.

static rondo_status init_pool_gradient(const rondo__op *op, const rondo_shape *dy,
                                       const rondo_shape *x, rondo__pool *out_pool) {
    const bool is_last = rondo__op_get_int(op, "channels_last", 0) != 0;
    RETURN_IF_ERROR(rondo__pool_init(op, x, is_last, out_pool));
    return rondo_shape_is_equal(&out_pool->output, dy)
               ? RONDO_STATUS_OK
               : RONDO_OP_FAIL(op, BAD_DATA, "dy has not the shape of the result");
}

static rondo_status infer_pool_gradient(rondo__infer *infer) {
    const rondo__tensor_info *inputs = infer->inputs;
    rondo__pool pool;
    RETURN_IF_ERROR(rondo__infer_check_float(infer, 0, 1));
    RETURN_IF_ERROR(rondo__infer_check_float(infer, 1, 1));
    RETURN_IF_ERROR(init_pool_gradient(infer->op, &inputs[0].shape, &inputs[1].shape, &pool));
    return rondo__infer_set_output(infer, 0, inputs[1].dtype, &inputs[1].shape);
}

static rondo_status compute_pool_gradient(rondo__compute *compute) {
    const rondo_shape *shape = &compute->inputs[1]->shape;
    rondo__pool pool;
    RETURN_IF_ERROR(init_pool_gradient(compute->op, &compute->inputs[0]->shape, shape, &pool));
    const bool is_last = rondo__op_get_int(compute->op, "channels_last", 0) != 0;
    const int64_t all = rondo_shape_get_count(shape);
    const int64_t changes = rondo_shape_get_count(&pool.output);
    rondo__scratch scratch = {0};
    double *lists[5] = {rondo__scratch_widen(&scratch, compute->inputs[0]),
                        rondo__scratch_widen(&scratch, compute->inputs[1])};
    for (size_t i = 2; i < 5; ++i) {  // y, places, dx
        lists[i] = rondo__scratch_create(&scratch, i == 4 ? all : changes);
    }
    double *planes[2] = {lists[0], lists[1]}, *last = lists[4];
    for (size_t i = 0; i < 2 && is_last; ++i) {
        planes[i] = rondo__scratch_create(&scratch, i == 0 ? changes : all);
        if (scratch.status == RONDO_STATUS_OK) {
            rondo__transpose_planes(lists[i], pool.batch,
                                    i == 0 ? pool.output_span : pool.input_span, pool.channels,
                                    planes[i]);
        }
    }
    if (is_last) {
        last = rondo__scratch_create(&scratch, all);
    }
    if (scratch.status == RONDO_STATUS_OK) {
        int64_t *places = (int64_t *)(void *)lists[3];
        rondo__pool_run_max(&pool, planes[1], -(double)INFINITY, lists[2], places, false);
        for (int64_t i = 0; i < changes; ++i) {
            lists[4][places[i]] += planes[0][i];
        }
        if (is_last) {
            rondo__transpose_planes(lists[4], pool.batch, pool.channels, pool.input_span, last);
        }
    }
    return rondo__scratch_end_as(&scratch, compute, 0, last);
}

static rondo_status compute_average_pool(rondo__compute *compute) {
    rondo__pool pool;
    RETURN_IF_ERROR(rondo__pool_init(compute->op, &compute->inputs[0]->shape, false, &pool));
    rondo__scratch scratch = {0};
    const double *x = rondo__scratch_widen(&scratch, compute->inputs[0]);
    double *y = rondo__scratch_create(&scratch, rondo_shape_get_count(&pool.output));
    if (scratch.status == RONDO_STATUS_OK) {
        const bool includes_pad = rondo__op_get_int(compute->op, "count_include_pad", 0) != 0;
        rondo__pool_run_average(&pool, x, includes_pad, y);
    }
    return rondo__scratch_end_as(&scratch, compute, 0, y);
}

static rondo_status read_norm(const rondo__op *op, int64_t *out_p) {
    *out_p = rondo__op_get_int(op, "p", 2);
    if (*out_p < 1) {
        return RONDO_OP_FAIL(op, BAD_DATA, "attribute p is %lld, it must be at least 1",
                             (long long)*out_p);
    }
    return RONDO_STATUS_OK;
}

static rondo_status infer_lp_pool(rondo__infer *infer) {
    int64_t p;
    RETURN_IF_ERROR(read_norm(infer->op, &p));
    return infer_pool(infer);
}

static rondo_status compute_lp_pool(rondo__compute *compute) {
    int64_t p;
    RETURN_IF_ERROR(read_norm(compute->op, &p));
    rondo__pool pool;
    RETURN_IF_ERROR(rondo__pool_init(compute->op, &compute->inputs[0]->shape, false, &pool));
    rondo__scratch scratch = {0};
    const double *x = rondo__scratch_widen(&scratch, compute->inputs[0]);
    double *y = rondo__scratch_create(&scratch, rondo_shape_get_count(&pool.output));
    if (scratch.status == RONDO_STATUS_OK) {
        rondo__pool_run_norm(&pool, x, (double)p, y);
    }
    return rondo__scratch_end_as(&scratch, compute, 0, y);
}

// ---- global pools -----------------------------------------------------------------------------

static rondo_status infer_global(rondo__infer *infer) {
    RETURN_IF_ERROR(rondo__infer_check_float(infer, 0, 1));
    rondo_shape shape = infer->inputs[0].shape;
    if (shape.rank < 2) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "input X has rank %d, at least 2 is needed",
                             shape.rank);
    }
    for (int32_t i = 2; i < shape.rank; i++) {
        shape.extent[i] = 1;
    }
    return rondo__infer_set_output(infer, 0, infer->inputs[0].dtype, &shape);
}

static rondo_status infer_global_lp(rondo__infer *infer) {
    int64_t p;
    RETURN_IF_ERROR(read_norm(infer->op, &p));
    return infer_global(infer);
}

typedef double (*plane_function)(const double *values, int64_t count, int64_t p);

static double get_mean(const double *values, int64_t count, int64_t p) {
    (void)p;
    double sum = 0.0;
    for (int64_t i = 0; i < count; i++) {
        sum += values[i];
    }
    return sum / (double)count;
}

static double get_maximum(const double *values, int64_t count, int64_t p) {
    (void)p;
    double best = -(double)INFINITY;
    for (int64_t i = 0; i < count; i++) {
        if (values[i] > best || isnan(values[i])) {
            best = values[i];
        }
        if (isnan(best)) {
            break;
        }
    }
    return best;
}

static double get_norm(const double *values, int64_t count, int64_t p) {
    double sum = 0.0;
    for (int64_t i = 0; i < count; i++) {
        sum += pow(fabs(values[i]), (double)p);
    }
    return pow(sum, 1.0 / (double)p);
}

static rondo_status compute_global(rondo__compute *compute, plane_function reduce) {
    const rondo_shape *shape = &compute->inputs[0]->shape;
    const int64_t planes = shape->extent[0] * shape->extent[1];
    const int64_t span = rondo__shape_multiply(shape, 2, shape->rank);
    const int64_t p = rondo__op_get_int(compute->op, "p", 2);
    rondo__scratch scratch = {0};
    const double *x = rondo__scratch_widen(&scratch, compute->inputs[0]);
    double *y = rondo__scratch_create(&scratch, planes);
    if (scratch.status == RONDO_STATUS_OK) {
        for (int64_t i = 0; i < planes; i++) {
            y[i] = reduce(x + i * span, span, p);
        }
    }
    return rondo__scratch_end_as(&scratch, compute, 0, y);
}

static rondo_status compute_global_average(rondo__compute *compute) {
    return compute_global(compute, get_mean);
}

static rondo_status compute_global_max(rondo__compute *compute) {
    return compute_global(compute, get_maximum);
}

static rondo_status compute_global_lp(rondo__compute *compute) {
    return compute_global(compute, get_norm);
}

// ---- MaxUnpool --------------------------------------------------------------------------------

// The input shape of the pool that made x and its indices, unless output_shape says otherwise.
static rondo_status get_unpooled_shape(const rondo__op *op, const rondo_shape *x,
                                       rondo_shape *out_shape) {
    if (x->rank < 3) {
        return RONDO_OP_FAIL(op, BAD_DATA, "input X has rank %d, at least 3 is needed", x->rank);
    }
    const int32_t rank = x->rank - 2;
    int64_t kernel[RONDO__SPATIAL_MAX];
    int64_t stride[RONDO__SPATIAL_MAX];
    size_t count;
    if (rondo__op_get_ints(op, "kernel_shape", &count) == NULL) {
        return RONDO_OP_FAIL(op, BAD_DATA, "attribute kernel_shape is missing");
    }
    RETURN_IF_ERROR(rondo__window_read_positive(op, "kernel_shape", rank, kernel));
    RETURN_IF_ERROR(rondo__window_read_positive(op, "strides", rank, stride));
    const int64_t *pads = rondo__op_get_ints(op, "pads", &count);
    if (pads != NULL && count != 2 * (size_t)rank) {
        return RONDO_OP_FAIL(op, BAD_DATA, "attribute pads has %zu entries, %d are expected", count,
                             2 * rank);
    }
    *out_shape = *x;
    for (int32_t i = 0; i < rank; i++) {
        const int64_t cut_begin = pads == NULL ? 0 : pads[i];
        const int64_t cut_end = pads == NULL ? 0 : pads[rank + i];
        int64_t extent;
        if (cut_begin < 0 || cut_end < 0 || cut_begin > INT32_MAX || cut_end > INT32_MAX) {
            return RONDO_OP_FAIL(op, BAD_DATA, "attribute pads has a negative or absurd entry");
        }
        if (!rondo__mul_i64(x->extent[2 + i] - 1, stride[i], &extent) ||
            !rondo__add_i64(extent, kernel[i] - cut_begin - cut_end, &extent) || extent < 0) {
            return RONDO_OP_FAIL(op, BAD_DATA,
                                 "attributes kernel_shape, strides, pads give no extent on "
                                 "spatial axis %d",
                                 i);
        }
        out_shape->extent[2 + i] = extent;
    }
    return RONDO_STATUS_OK;
}

static rondo_status infer_max_unpool(rondo__infer *infer) {
    const rondo__tensor_info *inputs = infer->inputs;
    RETURN_IF_ERROR(rondo__infer_check_float(infer, 0, 1));
    infer->outputs[0].dtype = inputs[0].dtype;
    if (inputs[1].dtype != RONDO_DTYPE_I64 ||
        !rondo_shape_is_equal(&inputs[0].shape, &inputs[1].shape)) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "input I must be i64 and have X's shape");
    }
    rondo_shape shape;
    RETURN_IF_ERROR(get_unpooled_shape(infer->op, &inputs[0].shape, &shape));
    if (rondo__infer_has_input(infer, 2)) {
        if (inputs[2].constant == NULL) {
            return rondo__infer_needs_value(infer, 2);
        }
        int64_t extents[RONDO_RANK_MAX];
        size_t count;
        RETURN_IF_ERROR(rondo__op_read_ints(infer->op, "output_shape", inputs[2].constant,
                                            RONDO_RANK_MAX, extents, &count));
        if (count != (size_t)shape.rank) {
            return RONDO_OP_FAIL(infer->op, BAD_DATA, "output_shape has %zu entries, X has rank %d",
                                 count, shape.rank);
        }
        memcpy(shape.extent, extents, count * sizeof extents[0]);
    }
    return rondo__infer_set_output(infer, 0, inputs[0].dtype, &shape);
}

static rondo_status compute_max_unpool(rondo__compute *compute) {
    const rondo__op *op = compute->op;
    const rondo_tensor *x = compute->inputs[0];
    const rondo_shape *shape = &compute->inferred[0].shape;
    const int64_t output_count = rondo_shape_get_count(shape);
    rondo_shape pooled;  // the extents that the indices count in
    RETURN_IF_ERROR(get_unpooled_shape(op, &x->shape, &pooled));
    const int64_t pooled_count = rondo_shape_get_count(&pooled);
    const int64_t *indices = compute->inputs[1]->data;
    rondo__scratch scratch = {0};
    const double *wide = rondo__scratch_widen(&scratch, x);
    double *y = rondo__scratch_create(&scratch, output_count);
    if (scratch.status != RONDO_STATUS_OK) {
        return rondo__scratch_end(&scratch);
    }
    const int64_t count = rondo_shape_get_count(&x->shape);
    for (int64_t i = 0; i < count; i++) {
        int64_t index = indices[i];
        bool is_inside = index >= 0 && index < pooled_count;
        // A larger output_shape keeps the position of each element: same index on every axis.
        int64_t at = 0;
        int64_t step = 1;
        for (int32_t k = shape->rank - 1; is_inside && k >= 0; k--) {
            const int64_t place = index % pooled.extent[k];
            index /= pooled.extent[k];
            is_inside = place < shape->extent[k];
            at += place * step;
            step *= shape->extent[k];
        }
        if (!is_inside) {
            scratch.status = RONDO_OP_FAIL(op, BAD_DATA, "index %lld of input I is out of range",
                                           (long long)indices[i]);
            return rondo__scratch_end(&scratch);
        }
        y[at] = wide[i];
    }
    scratch.status = rondo__narrow(compute, 0, y);
    return rondo__scratch_end(&scratch);
}

static const char *const max_attributes[] = {
    "auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "storage_order", "strides", NULL};
static const char *const average_attributes[] = {
    "auto_pad",     "ceil_mode", "count_include_pad", "dilations",
    "kernel_shape", "pads",      "strides",           NULL};
static const char *const average_1_attributes[] = {"auto_pad", "kernel_shape", "pads", "strides",
                                                   NULL};
static const char *const lp_attributes[] = {"auto_pad", "ceil_mode", "dilations", "kernel_shape",
                                            "p",        "pads",      "strides",   NULL};
static const char *const no_attributes[] = {NULL};
static const char *const global_lp_attributes[] = {"p", NULL};
static const char *const unpool_attributes[] = {"kernel_shape", "pads", "strides", NULL};

const rondo__op_def rondo__op_table_pooling[] = {
    RONDO_OP_ENTRY(MaxPool, 1, 28, 1, 1, 1, 2, max_attributes, infer_max_pool, compute_max_pool),
    RONDO_OP_ROW(FUSED, PoolGradient, 1, RONDO_OP_OPSET_MAX, 2, 2, 1, 1,
                 .flags = RONDO__OP_INTERNAL, .capture = RONDO__CAPTURE_YES,
                 .infer = infer_pool_gradient, .compute = compute_pool_gradient,
                 .half.kind = HALF_PRODUCT),
    RONDO_OP_ENTRY(AveragePool, 1, 6, 1, 1, 1, 1, average_1_attributes, infer_pool,
                   compute_average_pool),
    RONDO_OP_ENTRY(AveragePool, 7, 28, 1, 1, 1, 1, average_attributes, infer_pool,
                   compute_average_pool),
    RONDO_OP_ENTRY(LpPool, 2, 28, 1, 1, 1, 1, lp_attributes, infer_lp_pool, compute_lp_pool),
    RONDO_OP_ENTRY(GlobalAveragePool, 1, 28, 1, 1, 1, 1, no_attributes, infer_global,
                   compute_global_average),
    RONDO_OP_ENTRY(GlobalMaxPool, 1, 28, 1, 1, 1, 1, no_attributes, infer_global,
                   compute_global_max),
    RONDO_OP_ENTRY(GlobalLpPool, 2, 28, 1, 1, 1, 1, global_lp_attributes, infer_global_lp,
                   compute_global_lp),
    RONDO_OP_ENTRY(MaxUnpool, 9, 28, 2, 3, 1, 1, unpool_attributes, infer_max_unpool,
                   compute_max_unpool, .is_fallible = true),
    {.name = NULL},
};

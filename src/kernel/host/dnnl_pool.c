// kernel/host/dnnl_pool.c — AveragePool in both layouts, and LRN, with oneDNN. (MaxPool is our own:
// oneDNN's drops NaN.)
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "kernel/host/dnnl_kernel.h"
#include "kernel/host/host_families.h"
#include "op/pooling.h"

enum { LONG_WINDOW = 1024 };  // taps from which on oneDNN's sums, one by one in f32, lose digits

typedef struct pool {
    rondo__pool shape;
    dnnl_alg_kind_t algorithm;
    dnnl_format_tag_t tag;
    rondo__dnnl_window window;
} pool;

// oneDNN derives nothing: padding at the end must make the output extents exact. Ceiling mode asks
// for more than the model's padding, which changes what an average over padding divides by.
static bool init_window(pool *one, bool counts_padding) {
    const rondo__window *from = &one->shape.window;
    rondo__dnnl_window *to = &one->window;
    to->rank = from->rank;
    for (int32_t i = 0; i < from->rank; ++i) {
        const int64_t extent = (from->kernel[i] - 1) * from->dilation[i] + 1;
        const int64_t pad_end =
            (from->output[i] - 1) * from->stride[i] + extent - from->input[i] - from->pad_begin[i];
        // A window wholly inside the padding has no value in oneDNN.
        if (from->pad_begin[i] >= extent || pad_end >= extent ||
            (counts_padding && pad_end > from->pad_end[i])) {
            return false;
        }
        to->kernel[i] = from->kernel[i];
        to->stride[i] = from->stride[i];
        to->dilation[i] = from->dilation[i] - 1;
        to->pad_begin[i] = from->pad_begin[i];
        to->pad_end[i] = pad_end;
    }
    return true;
}

static dnnl_format_tag_t get_tag(int32_t rank, bool channels_last) {
    switch (rank) {
        case 3:
            return channels_last ? dnnl_nwc : dnnl_ncw;
        case 4:
            return channels_last ? dnnl_nhwc : dnnl_nchw;
        default:
            return channels_last ? dnnl_ndhwc : dnnl_ncdhw;
    }
}

static dnnl_status_t build(const pool *one, rondo__dnnl_kernel *kernel) {
    const rondo__pool *shape = &one->shape;
    const int rank = shape->window.rank + 2;
    dnnl_dims_t x_dims = {shape->batch, shape->channels};
    dnnl_dims_t y_dims = {shape->batch, shape->channels};
    for (int i = 2; i < rank; ++i) {
        x_dims[i] = shape->window.input[i - 2];
        y_dims[i] = shape->window.output[i - 2];
    }
    rondo__dnnl_layout x = NULL;
    rondo__dnnl_layout y = NULL;
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_primitive_desc_t description = NULL;
    dnnl_status_t status = rondo__dnnl_layout_create(rank, x_dims, one->tag, &x);
    if (status == dnnl_success) {
        status = rondo__dnnl_layout_create(rank, y_dims, one->tag, &y);
    }
    if (status == dnnl_success) {
        status = rondo__dnnl_attributes_create(false, &attributes);
    }
    if (status == dnnl_success) {
        status = rondo__dnnl_describe_pool(kernel->engine, one->algorithm, x, y, &one->window,
                                           attributes, &description);
    }
    if (status == dnnl_success) {
        status = rondo__dnnl_kernel_set_primitive(kernel, description);
    }
    if (status == dnnl_success) {
        status = rondo__dnnl_kernel_bind(kernel, DNNL_ARG_SRC, RONDO__DNNL_INPUT, 0, x);
    }
    if (status == dnnl_success) {
        status = rondo__dnnl_kernel_bind(kernel, DNNL_ARG_DST, RONDO__DNNL_OUTPUT, 0, y);
    }
    if (attributes != NULL) {
        (void)dnnl_primitive_attr_destroy(attributes);
    }
    rondo__dnnl_layout_destroy(x);
    rondo__dnnl_layout_destroy(y);
    return status;
}

rondo_status rondo__host_prepare_average_pool(const rondo__kernel_request *request,
                                              rondo__kernel **out_kernel) {
    const rondo__op *op = request->op;
    const rondo_shape *x = &request->inputs[0].shape;
    const bool channels_last = rondo__op_get_int(op, "channels_last", 0) != 0;
    const bool counts_padding = rondo__op_get_int(op, "count_include_pad", 0) != 0;
    if (request->inputs[0].dtype != RONDO_DTYPE_F32 || x->rank < 3 || x->rank > 5) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    pool one = {
        .algorithm =
            counts_padding ? dnnl_pooling_avg_include_padding : dnnl_pooling_avg_exclude_padding,
        .tag = get_tag(x->rank, channels_last),
    };
    RETURN_IF_ERROR(rondo__pool_init(op, x, channels_last, &one.shape));
    double taps = 1.0;
    for (int32_t i = 0; i < one.shape.window.rank; ++i) {
        taps *= (double)one.shape.window.kernel[i];
    }
    if (taps > LONG_WINDOW) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    if (!init_window(&one, counts_padding)) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    rondo__dnnl_kernel *kernel = NULL;
    RETURN_IF_ERROR(rondo__dnnl_kernel_create(request, &kernel));
    const dnnl_status_t status = build(&one, kernel);
    if (status != dnnl_success) {
        rondo__kernel_destroy(&kernel->head.base);
        return rondo__dnnl_convert_status(status, "preparing a pool");
    }
    *out_kernel = &kernel->head.base;
    return RONDO_STATUS_OK;
}

rondo_status rondo__host_prepare_lrn(const rondo__kernel_request *request,
                                     rondo__kernel **out_kernel) {
    const rondo__op *op = request->op;
    const rondo_shape *shape = &request->inputs[0].shape;
    const int64_t size = rondo__op_get_int(op, "size", 0);
    // oneDNN's window is centred; an even size is not.
    if (request->inputs[0].dtype != RONDO_DTYPE_F32 || shape->rank != 4 || size % 2 == 0) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    rondo__dnnl_kernel *kernel = NULL;
    RETURN_IF_ERROR(rondo__dnnl_kernel_create(request, &kernel));
    rondo__dnnl_layout x = NULL;
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_primitive_desc_t description = NULL;
    dnnl_status_t status = rondo__dnnl_layout_create(4, shape->extent, dnnl_nchw, &x);
    if (status == dnnl_success) {
        status = rondo__dnnl_attributes_create(false, &attributes);
    }
    if (status == dnnl_success) {
        status = rondo__dnnl_describe_lrn(
            kernel->engine, x, size, rondo__op_get_float(op, "alpha", 1e-4f),
            rondo__op_get_float(op, "beta", 0.75f), rondo__op_get_float(op, "bias", 1.0f),
            attributes, &description);
    }
    if (status == dnnl_success) {
        status = rondo__dnnl_kernel_set_primitive(kernel, description);
    }
    if (status == dnnl_success) {
        status = rondo__dnnl_kernel_bind(kernel, DNNL_ARG_SRC, RONDO__DNNL_INPUT, 0, x);
    }
    if (status == dnnl_success) {
        status = rondo__dnnl_kernel_bind(kernel, DNNL_ARG_DST, RONDO__DNNL_OUTPUT, 0, x);
    }
    if (attributes != NULL) {
        (void)dnnl_primitive_attr_destroy(attributes);
    }
    rondo__dnnl_layout_destroy(x);
    if (status != dnnl_success) {
        rondo__kernel_destroy(&kernel->head.base);
        return rondo__dnnl_convert_status(status, "preparing a local response normalisation");
    }
    *out_kernel = &kernel->head.base;
    return RONDO_STATUS_OK;
}

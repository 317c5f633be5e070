// kernel/host/dnnl_convolution.c — Conv and rondo.Conv with oneDNN.
//
// y = act(conv(x, w) + b + z): b goes in as the primitive's bias, z as a sum post-op, which adds to
// what y holds already: z is copied to y first, or lies there. (A binary post-op would read z in
// place, but oneDNN's quickest implementations refuse it: on AVX-512 the residual convolutions of
// ResNet-50 took half as long again with it.) act is the kernel's ending.
//
// The weight is reordered once into the layout that the primitive asks for; x, z and y stay in the
// layout of the program (planes, or channels last), because a reorder of activations per run would
// cost more than the better layout brings.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "kernel/host/dnnl_ahead.h"
#include "kernel/host/dnnl_kernel.h"
#include "kernel/host/host_families.h"
#include "op/convolution.h"

typedef struct convolution {
    rondo__convolution shape;
    bool channels_last;
    bool has_bias;
    bool has_addend;
    bool is_weight_constant;
    double multiply_adds, bytes;  // of a run
    rondo__activation activation;
    float alpha, beta;
} convolution;

// The layouts of one primitive; destroyed together.
typedef struct layouts {
    rondo__dnnl_layout x, y, w_any, w_file, bias;
} layouts;

static dnnl_format_tag_t get_data_tag(int rank, bool channels_last) {
    switch (rank) {
        case 3:
            return channels_last ? dnnl_nwc : dnnl_ncw;
        case 4:
            return channels_last ? dnnl_nhwc : dnnl_nchw;
        default:
            return channels_last ? dnnl_ndhwc : dnnl_ncdhw;
    }
}

static dnnl_format_tag_t get_weight_tag(int rank, bool is_grouped) {
    switch (rank) {
        case 3:
            return is_grouped ? dnnl_goiw : dnnl_oiw;
        case 4:
            return is_grouped ? dnnl_goihw : dnnl_oihw;
        default:
            return is_grouped ? dnnl_goidhw : dnnl_oidhw;
    }
}

static dnnl_status_t create_layouts(const convolution *conv, layouts *out) {
    const rondo__convolution *shape = &conv->shape;
    int rank = shape->window.rank + 2;
    bool is_grouped = shape->group > 1;
    dnnl_dims_t x = {shape->batch, shape->channels};
    dnnl_dims_t y = {shape->batch, shape->filters};
    dnnl_dims_t w = {0};
    int axis = 0;
    if (is_grouped) {
        w[axis++] = shape->group;
    }
    w[axis++] = shape->filters / shape->group;
    w[axis++] = shape->channels / shape->group;
    for (int i = 0; i < shape->window.rank; ++i) {
        x[2 + i] = shape->window.input[i];
        y[2 + i] = shape->window.output[i];
        w[axis++] = shape->window.kernel[i];
    }
    dnnl_format_tag_t data_tag = get_data_tag(rank, conv->channels_last);
    dnnl_status_t status = rondo__dnnl_layout_create(rank, x, data_tag, &out->x);
    if (status == dnnl_success) {
        status = rondo__dnnl_layout_create(rank, y, data_tag, &out->y);
    }
    if (status == dnnl_success) {
        status = rondo__dnnl_layout_create(axis, w, dnnl_format_tag_any, &out->w_any);
    }
    if (status == dnnl_success) {
        status = rondo__dnnl_layout_create(axis, w, get_weight_tag(rank, is_grouped), &out->w_file);
    }
    if (status == dnnl_success && conv->has_bias) {
        status = rondo__dnnl_layout_create(1, &shape->filters, dnnl_a, &out->bias);
    }
    return status;
}

static void destroy_layouts(layouts *all) {
    rondo__dnnl_layout_destroy(all->x);
    rondo__dnnl_layout_destroy(all->y);
    rondo__dnnl_layout_destroy(all->w_any);
    rondo__dnnl_layout_destroy(all->w_file);
    rondo__dnnl_layout_destroy(all->bias);
}

static dnnl_status_t describe(const convolution *conv, const layouts *all, dnnl_engine_t engine,
                              dnnl_primitive_desc_t *out_description) {
    rondo__dnnl_window window = {.rank = conv->shape.window.rank};
    for (int i = 0; i < window.rank; ++i) {
        window.stride[i] = conv->shape.window.stride[i];
        window.dilation[i] = conv->shape.window.dilation[i] - 1;
        window.pad_begin[i] = conv->shape.window.pad_begin[i];
        window.pad_end[i] = conv->shape.window.pad_end[i];
    }
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_status_t status = rondo__dnnl_attributes_create(conv->has_addend, &attributes);
    if (status != dnnl_success) {
        return status;
    }
    status =
        rondo__dnnl_describe_convolution(engine, dnnl_convolution_direct, all->x,
                                         conv->is_weight_constant ? all->w_any : all->w_file,
                                         all->bias, all->y, &window, attributes, out_description);
    (void)dnnl_primitive_attr_destroy(attributes);
    return status;
}

static dnnl_status_t build(const rondo__kernel_request *request, const convolution *conv,
                           const layouts *all, rondo__dnnl_kernel *kernel) {
    const rondo_tensor *weight = request->inputs[1].constant;
    dnnl_primitive_desc_t description = NULL;
    dnnl_status_t status = describe(conv, all, kernel->engine, &description);
    if (status == dnnl_success) {
        status = rondo__dnnl_kernel_set_primitive(kernel, description);
    }
    if (status == dnnl_success) {
        status = rondo__dnnl_kernel_bind(kernel, DNNL_ARG_SRC, RONDO__DNNL_INPUT, 0, all->x);
    }
    if (status == dnnl_success && weight != NULL) {
        rondo__dnnl_const_layout wanted =
            dnnl_primitive_desc_query_md(description, dnnl_query_weights_md, 0);
        status = rondo__dnnl_kernel_bind_packed(kernel, DNNL_ARG_WEIGHTS, request->weights, weight,
                                                all->w_file, wanted);
    } else if (status == dnnl_success) {
        status =
            rondo__dnnl_kernel_bind(kernel, DNNL_ARG_WEIGHTS, RONDO__DNNL_INPUT, 1, all->w_file);
    }
    if (status == dnnl_success && conv->has_bias) {
        status = rondo__dnnl_kernel_bind(kernel, DNNL_ARG_BIAS, RONDO__DNNL_INPUT, 2, all->bias);
    }
    const int64_t output_count = rondo_shape_get_count(&request->outputs[0].shape);
    if (conv->has_addend) {
        kernel->addend_input = 3;
        kernel->head.base.in_place_inputs = UINT64_C(1) << 3;
        kernel->addend_bytes = (size_t)output_count * sizeof(float);
    }
    rondo__dnnl_kernel_set_ending(kernel, conv->activation, conv->alpha, conv->beta, output_count);
    if (status == dnnl_success) {
        status = rondo__dnnl_kernel_bind(kernel, DNNL_ARG_DST, RONDO__DNNL_OUTPUT, 0, all->y);
    }
    return status;
}

static bool has_input(const rondo__kernel_request *request, size_t input) {
    return input < request->input_count && request->inputs[input].dtype != RONDO_DTYPE_NONE;
}

static rondo_status read_request(const rondo__kernel_request *request, convolution *out_conv) {
    const rondo__op *op = request->op;
    const rondo_shape *x = &request->inputs[0].shape;
    const rondo_shape *w = &request->inputs[1].shape;
    const rondo_shape *y = &request->outputs[0].shape;
    *out_conv = (convolution){
        .channels_last = rondo__op_get_int(op, "channels_last", 0) != 0,
        .has_bias = has_input(request, 2),
        .has_addend = has_input(request, 3),
        .is_weight_constant = request->inputs[1].constant != NULL,
        .activation = (rondo__activation)rondo__activation_parse(
            rondo__op_get_string(op, "activation", "none")),
        .alpha = rondo__op_get_float(op, "alpha", 0.0f),
        .beta = rondo__op_get_float(op, "beta", 0.0f),
    };
    if (request->inputs[0].dtype != RONDO_DTYPE_F32 || x->rank < 3 || x->rank > 5) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    RETURN_IF_ERROR(rondo__convolution_init(op, x, w, out_conv->channels_last, &out_conv->shape));
    out_conv->multiply_adds = (double)rondo_shape_get_count(y) *
                              (double)(out_conv->shape.channels / out_conv->shape.group) *
                              (double)out_conv->shape.kernel_span;
    out_conv->bytes = ((double)rondo_shape_get_count(x) + (double)rondo_shape_get_count(w) +
                       (double)rondo_shape_get_count(y)) *
                      sizeof(float);
    return RONDO_STATUS_OK;
}

static dnnl_status_t describe_wanted(const void *wanted, dnnl_engine_t engine,
                                     dnnl_primitive_desc_t *out_description) {
    layouts all = {0};
    dnnl_status_t status = create_layouts(wanted, &all);
    if (status == dnnl_success) {
        status = describe(wanted, &all, engine, out_description);
    }
    destroy_layouts(&all);
    return status;
}

void rondo__host_survey_convolution(const rondo__kernel_request *request) {
    convolution conv;
    if (!rondo__host_takes_row_convolution(request) &&
        read_request(request, &conv) == RONDO_STATUS_OK) {
        rondo__dnnl_ahead_want(request->ahead, describe_wanted, &conv, sizeof conv,
                               rondo__dnnl_choose_threads(conv.multiply_adds, conv.bytes));
    }
}

rondo_status rondo__host_prepare_convolution(const rondo__kernel_request *request,
                                             rondo__kernel **out_kernel) {
    convolution conv;
    RETURN_IF_ERROR(read_request(request, &conv));
    rondo__dnnl_kernel *kernel = NULL;
    RETURN_IF_ERROR(rondo__dnnl_kernel_create(request, &kernel));
    layouts all = {0};
    const int32_t former =
        rondo__dnnl_kernel_describe_begin(kernel, conv.multiply_adds, conv.bytes);
    dnnl_status_t status = create_layouts(&conv, &all);
    if (status == dnnl_success) {
        status = build(request, &conv, &all, kernel);
    }
    rondo__dnnl_kernel_describe_end(former);
    destroy_layouts(&all);
    if (status != dnnl_success) {
        rondo__kernel_destroy(&kernel->head.base);
        return rondo__dnnl_convert_status(status, "preparing a convolution");
    }
    *out_kernel = &kernel->head.base;
    return RONDO_STATUS_OK;
}

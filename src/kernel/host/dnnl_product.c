// kernel/host/dnnl_product.c — large matrix products against a constant b with oneDNN, whose
// kernels block for every cache level: a fifth to a half quicker than our tiles (host_product.c)
// from a million multiply-adds on. Smaller ones gain nothing, and pay for calling a primitive.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "kernel/host/dnnl_kernel.h"
#include "kernel/host/host_families.h"
#include "kernel/host/product_form.h"

enum { LARGE_MULTIPLY_ADDS = 1024 * 1024 };

typedef struct layouts {
    rondo__dnnl_layout a, b_any, b_file, bias, y;
} layouts;

static dnnl_status_t create_layouts(const rondo__product_form *form, layouts *out) {
    const rondo__product *product = &form->product;
    const dnnl_dim_t a_dims[2] = {product->m, product->k};
    const dnnl_dim_t b_dims[2] = {product->k, product->n};
    const dnnl_dim_t y_dims[2] = {product->m, product->n};
    const dnnl_dim_t bias_dims[2] = {1, product->n};
    dnnl_status_t status = rondo__dnnl_layout_create(2, a_dims, dnnl_ab, &out->a);
    if (status == dnnl_success) {
        status = rondo__dnnl_layout_create(2, b_dims, dnnl_format_tag_any, &out->b_any);
    }
    if (status == dnnl_success) {
        status = rondo__dnnl_layout_create(2, b_dims, product->trans_b ? dnnl_ba : dnnl_ab,
                                           &out->b_file);
    }
    if (status == dnnl_success) {
        status = rondo__dnnl_layout_create(2, y_dims, dnnl_ab, &out->y);
    }
    if (status == dnnl_success && form->bias_input >= 0) {
        status = rondo__dnnl_layout_create(2, bias_dims, dnnl_ab, &out->bias);
    }
    return status;
}

static void destroy_layouts(layouts *all) {
    rondo__dnnl_layout_destroy(all->a);
    rondo__dnnl_layout_destroy(all->b_any);
    rondo__dnnl_layout_destroy(all->b_file);
    rondo__dnnl_layout_destroy(all->bias);
    rondo__dnnl_layout_destroy(all->y);
}

static dnnl_status_t describe(const rondo__product_form *form, const layouts *all,
                              dnnl_engine_t engine, dnnl_primitive_desc_t *out_description) {
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_status_t status = rondo__dnnl_attributes_create(form->z_input >= 0, &attributes);
    if (status != dnnl_success) {
        return status;
    }
    status = rondo__dnnl_describe_matmul(engine, all->a, all->b_any, all->bias, all->y, attributes,
                                         out_description);
    (void)dnnl_primitive_attr_destroy(attributes);
    return status;
}

static dnnl_status_t build(const rondo__kernel_request *request, const rondo__product_form *form,
                           const layouts *all, rondo__dnnl_kernel *kernel) {
    dnnl_primitive_desc_t description = NULL;
    dnnl_status_t status = describe(form, all, kernel->engine, &description);
    if (status == dnnl_success) {
        status = rondo__dnnl_kernel_set_primitive(kernel, description);
    }
    if (status == dnnl_success) {
        status = rondo__dnnl_kernel_bind(kernel, DNNL_ARG_SRC, RONDO__DNNL_INPUT, 0, all->a);
    }
    if (status == dnnl_success) {
        rondo__dnnl_const_layout wanted =
            dnnl_primitive_desc_query_md(description, dnnl_query_weights_md, 0);
        status = rondo__dnnl_kernel_bind_packed(kernel, DNNL_ARG_WEIGHTS, request->weights,
                                                request->inputs[1].constant, all->b_file, wanted);
    }
    if (status == dnnl_success && form->bias_input >= 0) {
        status = rondo__dnnl_kernel_bind(kernel, DNNL_ARG_BIAS, RONDO__DNNL_INPUT,
                                         (size_t)form->bias_input, all->bias);
    }
    const int64_t output_count = rondo_shape_get_count(&request->outputs[0].shape);
    if (form->z_input >= 0) {
        kernel->addend_input = (size_t)form->z_input;
        kernel->head.base.in_place_inputs = UINT64_C(1) << form->z_input;
        kernel->addend_bytes = (size_t)output_count * sizeof(float);
    }
    rondo__dnnl_kernel_set_ending(kernel, form->activation, form->alpha, form->beta, output_count);
    if (status == dnnl_success) {
        status = rondo__dnnl_kernel_bind(kernel, DNNL_ARG_DST, RONDO__DNNL_OUTPUT, 0, all->y);
    }
    return status;
}

rondo_status rondo__host_prepare_large_product(const rondo__kernel_request *request,
                                               rondo__kernel **out_kernel) {
    rondo__product_form form;
    RETURN_IF_ERROR(rondo__product_form_init(&form, request));
    const rondo__product *product = &form.product;
    const double work = (double)product->m * (double)product->n * (double)product->k;
    if (product->batch_count != 1 || form.b_count != 1 || product->trans_a || product->m < 16 ||
        form.scale != 1.0f || request->inputs[1].constant == NULL || work < LARGE_MULTIPLY_ADDS) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    rondo__dnnl_kernel *kernel = NULL;
    RETURN_IF_ERROR(rondo__dnnl_kernel_create(request, &kernel));
    layouts all = {0};
    dnnl_status_t status = create_layouts(&form, &all);
    if (status == dnnl_success) {
        status = build(request, &form, &all, kernel);
    }
    destroy_layouts(&all);
    if (status != dnnl_success) {
        rondo__kernel_destroy(&kernel->head.base);
        return rondo__dnnl_convert_status(status, "preparing a matrix product");
    }
    *out_kernel = &kernel->head.base;
    return RONDO_STATUS_OK;
}

// SPDX-License-Identifier: Apache-2.0

#include "kernel/host/dnnl_compat.h"

#include <string.h>

#include "base/memory.h"

#if DNNL_VERSION_MAJOR >= 3

dnnl_status_t rondo__dnnl_layout_create(int rank, const dnnl_dim_t *dims, dnnl_format_tag_t tag,
                                        rondo__dnnl_layout *out_layout) {
    *out_layout = NULL;
    return dnnl_memory_desc_create_with_tag(out_layout, rank, dims, dnnl_f32, tag);
}

void rondo__dnnl_layout_destroy(rondo__dnnl_layout layout) {
    if (layout != NULL) {
        (void)dnnl_memory_desc_destroy(layout);
    }
}

size_t rondo__dnnl_layout_write(rondo__dnnl_const_layout layout, void *out_bytes, size_t capacity) {
    size_t bytes = 0;
    if (dnnl_memory_desc_get_blob(NULL, &bytes, layout) != dnnl_success) {
        return 0;
    }
    if (bytes <= capacity && dnnl_memory_desc_get_blob(out_bytes, &bytes, layout) != dnnl_success) {
        return 0;
    }
    return bytes;
}

dnnl_status_t rondo__dnnl_append_sum(dnnl_post_ops_t post_ops) {
    return dnnl_post_ops_append_sum(post_ops, 1.0f, 0, dnnl_data_type_undef);
}

dnnl_status_t rondo__dnnl_describe_convolution(
    dnnl_engine_t engine, dnnl_alg_kind_t algorithm, rondo__dnnl_const_layout x,
    rondo__dnnl_const_layout w, rondo__dnnl_const_layout bias, rondo__dnnl_const_layout y,
    const rondo__dnnl_window *window, const_dnnl_primitive_attr_t attributes,
    dnnl_primitive_desc_t *out_description) {
    return dnnl_convolution_forward_primitive_desc_create(
        out_description, engine, dnnl_forward_inference, algorithm, x, w, bias, y, window->stride,
        window->dilation, window->pad_begin, window->pad_end, attributes);
}

dnnl_status_t rondo__dnnl_describe_pool(dnnl_engine_t engine, dnnl_alg_kind_t algorithm,
                                        rondo__dnnl_const_layout x, rondo__dnnl_const_layout y,
                                        const rondo__dnnl_window *window,
                                        const_dnnl_primitive_attr_t attributes,
                                        dnnl_primitive_desc_t *out_description) {
    return dnnl_pooling_forward_primitive_desc_create(
        out_description, engine, dnnl_forward_inference, algorithm, x, y, window->stride,
        window->kernel, window->dilation, window->pad_begin, window->pad_end, attributes);
}

dnnl_status_t rondo__dnnl_describe_matmul(dnnl_engine_t engine, rondo__dnnl_const_layout a,
                                          rondo__dnnl_const_layout b, rondo__dnnl_const_layout bias,
                                          rondo__dnnl_const_layout y,
                                          const_dnnl_primitive_attr_t attributes,
                                          dnnl_primitive_desc_t *out_description) {
    return dnnl_matmul_primitive_desc_create(out_description, engine, a, b, bias, y, attributes);
}

dnnl_status_t rondo__dnnl_describe_lrn(dnnl_engine_t engine, rondo__dnnl_const_layout x,
                                       dnnl_dim_t size, float alpha, float beta, float bias,
                                       const_dnnl_primitive_attr_t attributes,
                                       dnnl_primitive_desc_t *out_description) {
    return dnnl_lrn_forward_primitive_desc_create(out_description, engine, dnnl_forward_inference,
                                                  dnnl_lrn_across_channels, x, x, size, alpha, beta,
                                                  bias, attributes);
}

#else  // oneDNN 2.x

dnnl_status_t rondo__dnnl_layout_create(int rank, const dnnl_dim_t *dims, dnnl_format_tag_t tag,
                                        rondo__dnnl_layout *out_layout) {
    *out_layout = NULL;
    dnnl_memory_desc_t *layout = rondo__malloc(sizeof *layout);
    if (layout == NULL) {
        return dnnl_out_of_memory;
    }
    dnnl_status_t status = dnnl_memory_desc_init_by_tag(layout, rank, dims, dnnl_f32, tag);
    if (status != dnnl_success) {
        rondo__free(layout);
        return status;
    }
    *out_layout = layout;
    return dnnl_success;
}

void rondo__dnnl_layout_destroy(rondo__dnnl_layout layout) {
    rondo__free(layout);
}

// oneDNN zeroes a descriptor before it fills it in, so that padding is no difference.
size_t rondo__dnnl_layout_write(rondo__dnnl_const_layout layout, void *out_bytes, size_t capacity) {
    if (sizeof *layout <= capacity) {
        memcpy(out_bytes, layout, sizeof *layout);
    }
    return sizeof *layout;
}

dnnl_status_t rondo__dnnl_append_sum(dnnl_post_ops_t post_ops) {
    return dnnl_post_ops_append_sum(post_ops, 1.0f);
}

dnnl_status_t rondo__dnnl_describe_convolution(
    dnnl_engine_t engine, dnnl_alg_kind_t algorithm, rondo__dnnl_const_layout x,
    rondo__dnnl_const_layout w, rondo__dnnl_const_layout bias, rondo__dnnl_const_layout y,
    const rondo__dnnl_window *window, const_dnnl_primitive_attr_t attributes,
    dnnl_primitive_desc_t *out_description) {
    dnnl_convolution_desc_t operation;
    dnnl_status_t status = dnnl_dilated_convolution_forward_desc_init(
        &operation, dnnl_forward_inference, algorithm, x, w, bias, y, window->stride,
        window->dilation, window->pad_begin, window->pad_end);
    return status != dnnl_success
               ? status
               : dnnl_primitive_desc_create(out_description, &operation, attributes, engine, NULL);
}

dnnl_status_t rondo__dnnl_describe_pool(dnnl_engine_t engine, dnnl_alg_kind_t algorithm,
                                        rondo__dnnl_const_layout x, rondo__dnnl_const_layout y,
                                        const rondo__dnnl_window *window,
                                        const_dnnl_primitive_attr_t attributes,
                                        dnnl_primitive_desc_t *out_description) {
    dnnl_pooling_v2_desc_t operation;
    dnnl_status_t status = dnnl_pooling_v2_forward_desc_init(
        &operation, dnnl_forward_inference, algorithm, x, y, window->stride, window->kernel,
        window->dilation, window->pad_begin, window->pad_end);
    return status != dnnl_success
               ? status
               : dnnl_primitive_desc_create(out_description, &operation, attributes, engine, NULL);
}

dnnl_status_t rondo__dnnl_describe_matmul(dnnl_engine_t engine, rondo__dnnl_const_layout a,
                                          rondo__dnnl_const_layout b, rondo__dnnl_const_layout bias,
                                          rondo__dnnl_const_layout y,
                                          const_dnnl_primitive_attr_t attributes,
                                          dnnl_primitive_desc_t *out_description) {
    dnnl_matmul_desc_t operation;
    dnnl_status_t status = dnnl_matmul_desc_init(&operation, a, b, bias, y);
    return status != dnnl_success
               ? status
               : dnnl_primitive_desc_create(out_description, &operation, attributes, engine, NULL);
}

dnnl_status_t rondo__dnnl_describe_lrn(dnnl_engine_t engine, rondo__dnnl_const_layout x,
                                       dnnl_dim_t size, float alpha, float beta, float bias,
                                       const_dnnl_primitive_attr_t attributes,
                                       dnnl_primitive_desc_t *out_description) {
    dnnl_lrn_desc_t operation;
    dnnl_status_t status = dnnl_lrn_forward_desc_init(
        &operation, dnnl_forward_inference, dnnl_lrn_across_channels, x, size, alpha, beta, bias);
    return status != dnnl_success
               ? status
               : dnnl_primitive_desc_create(out_description, &operation, attributes, engine, NULL);
}

#endif

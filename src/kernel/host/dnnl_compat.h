// kernel/host/dnnl_compat.h — the oneDNN calls we use, the same for oneDNN 2.6 (Debian 12) and 3.x.
//
// 2.x makes a primitive in two steps (op descriptor, then primitive descriptor) and has memory
// descriptors by value; 3.x makes it in one and hides them. Here memory descriptors are owned
// pointers, and each primitive descriptor is made by one call. Statuses are oneDNN's own: what a
// primitive cannot do is an expected answer, not an error.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_KERNEL_HOST_DNNL_COMPAT_H
#define RONDO_KERNEL_HOST_DNNL_COMPAT_H

#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_version.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if DNNL_VERSION_MAJOR >= 3
typedef dnnl_memory_desc_t rondo__dnnl_layout;
typedef const_dnnl_memory_desc_t rondo__dnnl_const_layout;
#else
typedef dnnl_memory_desc_t *rondo__dnnl_layout;
typedef const dnnl_memory_desc_t *rondo__dnnl_const_layout;
#endif

// An f32 layout with a format tag; dnnl_format_tag_any lets the primitive choose.
// Destroy it with rondo__dnnl_layout_destroy.
dnnl_status_t rondo__dnnl_layout_create(int rank, const dnnl_dim_t *dims, dnnl_format_tag_t tag,
                                        rondo__dnnl_layout *out_layout);
void rondo__dnnl_layout_destroy(rondo__dnnl_layout layout);  // NULL is fine

// The layout as bytes: the same for the same layout. Returns how many there are, and writes them
// where `capacity` is enough; 0 when oneDNN fails.
size_t rondo__dnnl_layout_write(rondo__dnnl_const_layout layout, void *out_bytes, size_t capacity);

// Adds what the destination held before.
dnnl_status_t rondo__dnnl_append_sum(dnnl_post_ops_t post_ops);

typedef struct rondo__dnnl_window {
    int rank;  // spatial axes
    dnnl_dims_t stride;
    dnnl_dims_t dilation;  // counted from 0: 0 is dense
    dnnl_dims_t pad_begin;
    dnnl_dims_t pad_end;
    dnnl_dims_t kernel;  // pools only
} rondo__dnnl_window;

dnnl_status_t rondo__dnnl_describe_convolution(
    dnnl_engine_t engine, dnnl_alg_kind_t algorithm, rondo__dnnl_const_layout x,
    rondo__dnnl_const_layout w, rondo__dnnl_const_layout bias, rondo__dnnl_const_layout y,
    const rondo__dnnl_window *window, const_dnnl_primitive_attr_t attributes,
    dnnl_primitive_desc_t *out_description);
dnnl_status_t rondo__dnnl_describe_pool(dnnl_engine_t engine, dnnl_alg_kind_t algorithm,
                                        rondo__dnnl_const_layout x, rondo__dnnl_const_layout y,
                                        const rondo__dnnl_window *window,
                                        const_dnnl_primitive_attr_t attributes,
                                        dnnl_primitive_desc_t *out_description);
dnnl_status_t rondo__dnnl_describe_matmul(dnnl_engine_t engine, rondo__dnnl_const_layout a,
                                          rondo__dnnl_const_layout b, rondo__dnnl_const_layout bias,
                                          rondo__dnnl_const_layout y,
                                          const_dnnl_primitive_attr_t attributes,
                                          dnnl_primitive_desc_t *out_description);
dnnl_status_t rondo__dnnl_describe_lrn(dnnl_engine_t engine, rondo__dnnl_const_layout x,
                                       dnnl_dim_t size, float alpha, float beta, float bias,
                                       const_dnnl_primitive_attr_t attributes,
                                       dnnl_primitive_desc_t *out_description);

#endif  // RONDO_KERNEL_HOST_DNNL_COMPAT_H

// kernel/cuda/product/cuda_rotate.c — rondo.Rotate; see rotate.cu.
// SPDX-License-Identifier: Apache-2.0
#include "cu_sources.h"
#include "kernel/cuda/cuda_families.h"
#include "op/fused/rotate.h"

enum { THREADS = 128, RANK = 4 };

// The extents of a shape of at most RANK axes, with ones in front.
static void pad(const rondo_shape *shape, int64_t *extents) {
    for (int32_t d = 0; d < RANK; d++) {
        const int32_t at = d + shape->rank - RANK;
        extents[d] = at >= 0 ? shape->extent[at] : 1;
    }
}

static void push_strides(rondo__step *step, const rondo_shape *shape) {
    int64_t extents[RANK], strides[RANK], stride = 1;
    pad(shape, extents);
    for (int d = RANK - 1; d >= 0; d--) {
        strides[d] = extents[d] == 1 ? 0 : stride;
        stride *= extents[d];
    }
    for (int d = 0; d < RANK; d++) {
        rondo__step_int(step, strides[d]);
    }
}

// The strides of batch, row and column of angles that are the same for all heads.
static void push_line_strides(rondo__step *step, const rondo_shape *shape) {
    int64_t extents[RANK];
    pad(shape, extents);
    const int64_t column = extents[3] == 1 ? 0 : 1, row = extents[2] == 1 ? 0 : extents[3];
    rondo__step_int(step, extents[0] == 1 ? 0 : extents[2] * extents[3]);
    rondo__step_int(step, row);
    rondo__step_int(step, column);
}

static void add_heads(rondo__cuda_kernel *kernel) {
    const rondo__tensor_info *x = rondo__cuda_input(kernel, 0);
    const rondo__tensor_info *cosines = rondo__cuda_input(kernel, 1);
    const rondo__tensor_info *sines = rondo__cuda_input(kernel, 2);
    rondo__rotate_heads h;
    rondo__defines defines = {0};
    int64_t of_cosines[RANK], of_sines[RANK], turned = 0;
    if (!rondo__cuda_check(
            kernel, rondo__rotate_read_heads(kernel->request->op, &x->shape, &cosines->shape,
                                             &sines->shape, kernel->request->output_count, &h))) {
        return;
    }
    const int64_t pairs = rondo_shape_get_count(&x->shape) / 2, half = h.width / 2;
    int64_t width = 16 / (int64_t)rondo_dtype_get_bytes(x->dtype);
    while (half % width != 0) {
        width /= 2;
    }
    if (pairs / width > INT32_MAX) {
        rondo__cuda_refuse(kernel, "as many elements");
        return;
    }
    for (size_t i = 0; i < (size_t)h.turned; i++) {
        turned += h.heads[i];
    }
    pad(&cosines->shape, of_cosines);
    pad(&sines->shape, of_sines);
    rondo__define_type(&defines, "T", x->dtype);
    rondo__define_int(&defines, "WIDTH", width);
    rondo__define_int(&defines, "PARTS", (int64_t)h.count);
    rondo__define_int(&defines, "ANGLES_ARE_WIDE",
                      of_cosines[RANK - 1] == h.width && of_sines[RANK - 1] == h.width);
    rondo__step *step = rondo__cuda_add_launch(kernel, rondo__cu_rotate, &defines, "rotate_heads",
                                               (pairs / width + THREADS - 1) / THREADS, THREADS);
    rondo__step_int(step, pairs / width);
    rondo__step_input(step, 0);
    rondo__step_input(step, 1);
    rondo__step_input(step, 2);
    rondo__step_int(step, half);
    rondo__step_int(step, h.all);
    rondo__step_int(step, x->shape.extent[1]);
    rondo__step_int(step, turned);
    push_line_strides(step, &cosines->shape);
    push_line_strides(step, &sines->shape);
    for (size_t i = 0; i < h.count; i++) {
        rondo__step_output(step, i);
    }
    for (size_t i = 0; i < h.count; i++) {
        rondo__step_int(step, h.heads[i]);
    }
}

void rondo__cuda_prepare_rotate(rondo__cuda_kernel *kernel) {
    const rondo__tensor_info *x = rondo__cuda_input(kernel, 0);
    const rondo__tensor_info *cosines = rondo__cuda_input(kernel, 1);
    const rondo__tensor_info *sines = rondo__cuda_input(kernel, 2);
    rondo__defines defines = {0};
    int64_t extents[RANK];
    if (!rondo__cuda_is_float(x->dtype) || cosines->dtype != x->dtype || sines->dtype != x->dtype ||
        x->shape.rank > RANK) {
        rondo__cuda_refuse(kernel, "tensors of these types or ranks");
        return;
    }
    if (rondo__op_find(kernel->request->op, "heads") != NULL) {
        add_heads(kernel);
        return;
    }
    pad(&x->shape, extents);
    const int64_t half = extents[RANK - 1] / 2;
    int64_t width = 16 / (int64_t)rondo_dtype_get_bytes(x->dtype);
    while (half % width != 0) {
        width /= 2;
    }
    // Few rows are spread over threads before threads take many elements.
    const int64_t pairs = rondo_shape_get_count(&x->shape) / 2;
    while (width > 1 && pairs / width < 8192) {
        width /= 2;
    }
    rondo__define_type(&defines, "T", x->dtype);
    rondo__define_int(&defines, "WIDTH", width);
    rondo__step *step = rondo__cuda_add_launch(kernel, rondo__cu_rotate, &defines, "rotate",
                                               (pairs / width + THREADS - 1) / THREADS, THREADS);
    rondo__step_int(step, pairs / width);
    rondo__step_input(step, 0);
    rondo__step_input(step, 1);
    rondo__step_input(step, 2);
    rondo__step_output(step, 0);
    rondo__step_int(step, half);
    for (int d = 0; d < RANK - 1; d++) {
        rondo__step_int(step, extents[d]);
    }
    push_strides(step, &cosines->shape);
    push_strides(step, &sines->shape);
}

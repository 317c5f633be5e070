// kernel/cuda/convolution/cuda_pool_gradient.c — rondo.PoolGradient; see pool_gradient.cu.
// SPDX-License-Identifier: Apache-2.0
#include "cu_sources.h"
#include "kernel/cuda/cuda_families.h"
#include "op/image/pooling.h"

void rondo__cuda_prepare_pool_gradient(rondo__cuda_kernel *kernel) {
    const rondo__tensor_info *dy = rondo__cuda_input(kernel, 0);
    const rondo__tensor_info *x = rondo__cuda_input(kernel, 1);
    const bool is_last = rondo__op_get_int(kernel->request->op, "channels_last", 0) != 0;
    rondo__defines defines = {0};
    rondo__pool pool;
    if (!rondo__cuda_check(kernel,
                           rondo__pool_init(kernel->request->op, &x->shape, is_last, &pool))) {
        return;
    }
    const rondo__window *w = &pool.window;
    if (w->rank != 2 || w->dilation[0] != 1 || w->dilation[1] != 1 ||
        !rondo__cuda_is_float(x->dtype) || !rondo__cuda_is_float(dy->dtype)) {
        rondo__cuda_refuse(kernel, "images of this type, rank or dilation");
        return;
    }
    const int64_t inner = is_last ? pool.channels : 1;
    int64_t width = 16 / (int64_t)rondo_dtype_get_bytes(x->dtype);
    while (inner % width != 0) {
        width /= 2;
    }
    const struct {
        const char *name;
        int64_t value;
    } list[] = {{"INNER", inner},
                {"WIDTH", width},
                {"HEIGHT", w->input[0]},
                {"WIDE", w->input[1]},
                {"OUT_HEIGHT", w->output[0]},
                {"OUT_WIDE", w->output[1]},
                {"TAPS_Y", w->kernel[0]},
                {"TAPS_X", w->kernel[1]},
                {"STRIDE_Y", w->stride[0]},
                {"STRIDE_X", w->stride[1]},
                {"BEFORE_Y", w->pad_begin[0]},
                {"BEFORE_X", w->pad_begin[1]}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        rondo__define_int(&defines, list[i].name, list[i].value);
    }
    rondo__define_type(&defines, "T", x->dtype);
    rondo__define_type(&defines, "D", dy->dtype);
    const int64_t packs = rondo_shape_get_count(&x->shape) / width;
    rondo__step *step =
        rondo__cuda_add_launch(kernel, rondo__cu_pool_gradient, &defines, "pool_gradient",
                               rondo__cuda_blocks(packs), RONDO__CUDA_BLOCK);
    rondo__step_input(step, 0);
    rondo__step_input(step, 1);
    rondo__step_output(step, 0);
    rondo__step_int(step, packs);
}

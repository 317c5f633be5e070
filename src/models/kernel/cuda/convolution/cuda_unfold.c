// kernel/cuda/convolution/cuda_unfold.c — rondo.Unfold; see unfold.cu.
// SPDX-License-Identifier: Apache-2.0
#include "cu_sources.h"
#include "kernel/cuda/convolution/cuda_window.h"
#include "kernel/cuda/cuda_families.h"

void rondo__cuda_prepare_unfold(rondo__cuda_kernel *kernel) {
    const rondo__tensor_info *x = rondo__cuda_input(kernel, 0);
    const rondo_shape *y = &rondo__cuda_output(kernel, 0)->shape;
    rondo__window w;
    rondo__defines defines = {0};
    if (!rondo__cuda_spread_window(kernel, &x->shape, y, false, NULL, &w)) {
        return;
    }
    const struct {
        const char *name;
        int64_t value;
    } list[] = {
        {"CHANNELS", x->shape.extent[1]}, {"HEIGHT", w.in[1]},       {"WIDE", w.in[2]},
        {"OUT_HEIGHT", w.out[1]},         {"OUT_WIDE", w.out[2]},    {"TAPS_Y", w.kernel[1]},
        {"TAPS_X", w.kernel[2]},          {"STRIDE_Y", w.stride[1]}, {"STRIDE_X", w.stride[2]},
        {"GAP_Y", w.dilation[1]},         {"GAP_X", w.dilation[2]},  {"BEFORE_Y", w.before[1]},
        {"BEFORE_X", w.before[2]}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        rondo__define_int(&defines, list[i].name, list[i].value);
    }
    rondo__define_bytes(&defines, "T", rondo_dtype_get_bytes(x->dtype));
    int64_t width = 16 / (int64_t)rondo_dtype_get_bytes(x->dtype);
    while (w.out[1] * w.out[2] % width != 0) {
        width /= 2;
    }
    const int64_t all = rondo_shape_get_count(y) / width;
    rondo__define_int(&defines, "WIDTH", width);
    // So many that the last thread does not count beyond.
    rondo__define_word(&defines, "INDEX", all < INT64_C(1) << 30 ? "u32" : "i64");
    rondo__step *step = rondo__cuda_add_launch(kernel, rondo__cu_unfold, &defines, "unfold",
                                               rondo__cuda_blocks(all), RONDO__CUDA_BLOCK);
    rondo__step_input(step, 0);
    rondo__step_output(step, 0);
    rondo__step_int(step, all);
}

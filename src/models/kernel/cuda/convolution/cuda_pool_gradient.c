// kernel/cuda/convolution/cuda_pool_gradient.c — rondo.PoolGradient; see pool_gradient.cu.
// SPDX-License-Identifier: Apache-2.0
#include "cu_sources.h"
#include "kernel/cuda/cuda_families.h"
#include "op/image/pooling.h"

enum { APART_TAPS_MAX = 16, TILE_MOST = 16, PACKS_MOST = 8, SHARED_MAX = 40 << 10 };

// Pixels of a block, of which each axis has so many, with the windows that reach into them.
typedef struct tile {
    int64_t pixels[2], reach[2], packs, width;
} tile;

static int64_t at_most(int64_t value, int64_t most) {
    return value < most ? value : most;
}

// The largest whose windows fit into shared memory; those of small images are split by channels.
static bool choose_tile(const rondo__window *w, int64_t inner, int64_t width, tile *out) {
    for (; width >= 1; width /= 2) {
        for (int64_t packs = PACKS_MOST; packs >= 1; packs /= 2) {
            for (int64_t side = TILE_MOST; side >= 4; side /= 2) {
                tile t = {.packs = at_most(packs, inner / width), .width = width};
                for (int d = 0; d < 2; ++d) {
                    t.pixels[d] = at_most(side, w->input[d]);
                    t.reach[d] =
                        at_most((t.pixels[d] + w->kernel[d] - 2) / w->stride[d] + 1, w->output[d]);
                }
                if (t.reach[0] * t.reach[1] * t.packs * width * 2 <= SHARED_MAX) {
                    *out = t;
                    return true;
                }
            }
        }
    }
    return false;
}

// Windows of few pixels side by side, which have all pixels.
static bool are_apart(const rondo__window *w) {
    bool apart = w->kernel[0] * w->kernel[1] <= APART_TAPS_MAX;
    for (int d = 0; d < 2; ++d) {
        apart = apart && w->kernel[d] == w->stride[d] && w->pad_begin[d] == 0 &&
                w->input[d] == w->output[d] * w->stride[d];
    }
    return apart;
}

// `packs`: of x.
static void add_apart(rondo__cuda_kernel *kernel, rondo__defines *defines, const rondo__window *w,
                      int64_t packs, bool is_single) {
    const int64_t windows = packs / (w->kernel[0] * w->kernel[1]), row = w->kernel[1];
    rondo__define_int(defines, "RUN", is_single && (row == 2 || row == 4) ? row : 1);
    rondo__step *step =
        rondo__cuda_add_launch(kernel, rondo__cu_pool_gradient, defines, "pool_gradient_apart",
                               rondo__cuda_blocks(windows), RONDO__CUDA_BLOCK);
    rondo__step_input(step, 0);
    rondo__step_input(step, 1);
    rondo__step_output(step, 0);
    rondo__step_int(step, windows);
    if (windows >= INT64_C(1) << 32) {
        rondo__cuda_refuse(kernel, "so many windows");
    }
}

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
    tile t;
    if (w->kernel[0] * w->kernel[1] > UINT16_MAX || !choose_tile(w, inner, width, &t)) {
        rondo__cuda_refuse(kernel, "windows of so many pixels");
        return;
    }
    const struct {
        const char *name;
        int64_t value;
    } list[] = {{"INNER", inner},
                {"WIDTH", t.width},
                {"PACKS", t.packs},
                {"TILE_Y", t.pixels[0]},
                {"TILE_X", t.pixels[1]},
                {"REACH_Y", t.reach[0]},
                {"REACH_X", t.reach[1]},
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
    if (are_apart(w)) {
        add_apart(kernel, &defines, w, rondo_shape_get_count(&x->shape) / t.width, inner == 1);
        return;
    }
    const int64_t outer = rondo_shape_get_count(&x->shape) / (inner * w->input[0] * w->input[1]);
    const int64_t groups = (inner / t.width + t.packs - 1) / t.packs;
    const int64_t tiles = outer * groups * ((w->input[0] + t.pixels[0] - 1) / t.pixels[0]) *
                          ((w->input[1] + t.pixels[1] - 1) / t.pixels[1]);
    rondo__step *step = rondo__cuda_add_launch(kernel, rondo__cu_pool_gradient, &defines,
                                               "pool_gradient", tiles, RONDO__CUDA_BLOCK);
    rondo__step_input(step, 0);
    rondo__step_input(step, 1);
    rondo__step_output(step, 0);
    rondo__step_int(step, tiles);
}

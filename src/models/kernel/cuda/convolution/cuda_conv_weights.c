// kernel/cuda/convolution/cuda_conv_weights.c — rondo.ConvWeights (cu/convolution/conv_weights.cu).
// SPDX-License-Identifier: Apache-2.0
#include "cu_sources.h"
#include "kernel/cuda/cuda_families.h"
#include "op/image/window.h"

enum {
    IMAGE_RANK = 4,
    STEP = 32,  // pixels at a time
    STAGES = 4,
    BLOCKS_WANTED = 264,
    STEPS_MIN = 8,  // of a part
    PART_BYTES_MAX = 64 << 20,
    PAD = 8,  // halves behind a row of shared memory
};

typedef struct plan {
    rondo__window window;
    int64_t filters, channels, columns, pixels;
    int64_t tile_m, tile_n, parts, part_pixels;
    bool is_last, is_tensor;
} plan;

static int64_t divide_up(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

static void choose_tiles(rondo__cuda_kernel *kernel, plan *p) {
    rondo_device_info info = {.struct_size = sizeof info};
    if (!rondo__cuda_check(kernel, rondo_device_get_info(kernel->device, &info))) {
        return;
    }
    p->is_tensor = p->is_last && p->filters % 8 == 0 && info.arch_major >= 8 &&
                   rondo__cuda_input(kernel, 0)->dtype == RONDO_DTYPE_F16 &&
                   rondo__cuda_input(kernel, 1)->dtype == RONDO_DTYPE_F16;
    if (p->is_tensor) {
        p->tile_m = p->filters <= 64 ? 64 : 128;
        p->tile_n = p->columns <= 64 ? 64 : 128;
    } else {
        p->tile_m = p->filters <= 32 ? 32 : 64;
        p->tile_n = p->columns <= 16 ? 16 : 64;
    }
    const int64_t tiles = divide_up(p->filters, p->tile_m) * divide_up(p->columns, p->tile_n);
    const int64_t steps = divide_up(p->pixels, STEP);
    const int64_t room = PART_BYTES_MAX / (p->filters * p->columns * (int64_t)sizeof(float));
    int64_t parts = BLOCKS_WANTED / tiles;
    parts = parts < steps / STEPS_MIN ? parts : steps / STEPS_MIN;
    parts = parts < room ? parts : room;
    parts = parts < 1 ? 1 : parts;
    p->part_pixels = divide_up(steps, parts) * STEP;
    p->parts = divide_up(p->pixels, p->part_pixels);
}

static bool read_plan(rondo__cuda_kernel *kernel, plan *p) {
    const rondo_shape *dy = &rondo__cuda_input(kernel, 0)->shape;
    const rondo_shape *x = &rondo__cuda_input(kernel, 1)->shape;
    p->is_last = rondo__op_get_int(kernel->request->op, "channels_last", 0) != 0;
    if (x->rank != IMAGE_RANK || !rondo__cuda_is_float(rondo__cuda_input(kernel, 0)->dtype) ||
        !rondo__cuda_is_float(rondo__cuda_input(kernel, 1)->dtype)) {
        rondo__cuda_refuse(kernel, "images of this type or rank");
        return false;
    }
    p->filters = dy->extent[p->is_last ? 3 : 1];
    p->channels = x->extent[p->is_last ? 3 : 1];
    if (!rondo__cuda_check(
            kernel, rondo__window_init(kernel->request->op, 2, x->extent + (p->is_last ? 1 : 2),
                                       NULL, &p->window))) {
        return false;
    }
    p->columns = p->channels * p->window.kernel[0] * p->window.kernel[1];
    p->pixels = dy->extent[0] * p->window.output[0] * p->window.output[1];
    if (x->extent[0] * p->window.input[0] * p->window.input[1] >= INT32_MAX ||
        p->columns >= INT32_MAX / 2) {
        rondo__cuda_refuse(kernel, "images of so many pixels");
        return false;
    }
    choose_tiles(kernel, p);
    return kernel->status == RONDO_STATUS_OK;
}

static void define_plan(rondo__defines *defines, const plan *p) {
    const rondo__window *w = &p->window;
    const struct {
        const char *name;
        int64_t value;
    } list[] = {{"FILTERS", p->filters},       {"CHANNELS", p->channels},
                {"HEIGHT", w->input[0]},       {"WIDE", w->input[1]},
                {"OUT_HEIGHT", w->output[0]},  {"OUT_WIDE", w->output[1]},
                {"TAPS_Y", w->kernel[0]},      {"TAPS_X", w->kernel[1]},
                {"STRIDE_Y", w->stride[0]},    {"STRIDE_X", w->stride[1]},
                {"GAP_Y", w->dilation[0]},     {"GAP_X", w->dilation[1]},
                {"BEFORE_Y", w->pad_begin[0]}, {"BEFORE_X", w->pad_begin[1]},
                {"TILE_M", p->tile_m},         {"TILE_N", p->tile_n},
                {"LAST", p->is_last},          {"PACKED", p->channels % 8 == 0}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        rondo__define_int(defines, list[i].name, list[i].value);
    }
}

static void push(rondo__step *step, const plan *p, rondo__address parts) {
    rondo__step_input(step, 0);
    rondo__step_input(step, 1);
    rondo__step_address(step, parts);
    rondo__step_output(step, 0);
    rondo__step_int(step, p->pixels);
    rondo__step_int(step, p->parts);
    rondo__step_int(step, p->part_pixels);
}

void rondo__cuda_prepare_conv_weights(rondo__cuda_kernel *kernel) {
    rondo__defines defines = {0};
    plan p = {0};
    if (!read_plan(kernel, &p)) {
        return;
    }
    define_plan(&defines, &p);
    rondo__define_type(&defines, "D", rondo__cuda_input(kernel, 0)->dtype);
    rondo__define_type(&defines, "T", rondo__cuda_input(kernel, 1)->dtype);
    const rondo__address parts = rondo__address_workspace(rondo__cuda_reserve_workspace(
        kernel, (size_t)(p.parts * p.filters * p.columns) * sizeof(float)));
    rondo__step *step = rondo__cuda_add_launch(
        kernel, p.is_tensor ? rondo__cu_conv_weights_tensor : rondo__cu_conv_weights, &defines,
        p.is_tensor ? "weights_tensor" : "weights_plain", divide_up(p.columns, p.tile_n),
        RONDO__CUDA_BLOCK);
    if (step != NULL) {
        step->launch.grid[1] = (uint32_t)divide_up(p.filters, p.tile_m);
        step->launch.grid[2] = (uint32_t)p.parts;
        step->launch.shared_bytes =
            p.is_tensor ? (uint32_t)(STAGES * STEP * (p.tile_m + p.tile_n + 2 * PAD) * 2) : 0;
    }
    push(step, &p, parts);
    push(rondo__cuda_add_launch(kernel, rondo__cu_conv_weights, &defines, "weights_join",
                                rondo__cuda_blocks(p.filters * p.columns), RONDO__CUDA_BLOCK),
         &p, parts);
}

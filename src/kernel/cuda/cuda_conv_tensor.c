// kernel/cuda/cuda_conv_tensor.c — the plans of conv_tensor.cu: which tiles and splits are worth
// timing for a convolution.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/cuda/cuda_conv_tensor.h"

#include <stdbool.h>

#include "cu_sources.h"

typedef struct tensor_tile {
    int64_t m, n;
    int32_t warps_m, warps_n;
    int32_t stages;
    bool is_wgmma;  // Hopper's own instruction; other chips take the rest
} tensor_tile;

static const tensor_tile tensor_tiles[] = {
    {64, 32, 4, 2, 6, true},   {64, 64, 4, 2, 5, true},   {64, 64, 4, 4, 5, true},
    {64, 32, 4, 1, 6, true},   {64, 64, 4, 1, 5, true},   {64, 128, 4, 2, 4, true},
    {128, 64, 8, 1, 4, true},  {128, 128, 8, 1, 4, true}, {32, 64, 1, 4, 4, false},
    {64, 32, 2, 2, 4, false},  {32, 32, 2, 2, 4, false},  {64, 64, 2, 2, 4, false},
    {128, 64, 4, 2, 3, false}, {64, 128, 2, 4, 3, false}, {128, 128, 2, 4, 3, false},
    {16, 64, 1, 4, 4, false},
};

enum {
    TILE_K = 64,
    SPLIT_MAX = 8,  // blocks of a cluster that every chip with clusters takes
    PLANS_MAX = 24,
    HOPPER = 9,  // compute capability 9.0, the one with wgmma
};

typedef struct tensor_plan {
    const tensor_tile *tile;
    int32_t split;
} tensor_plan;

static int64_t divide_up(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

static bool is_point(const rondo__window *window) {
    for (int d = 0; d < 3; d++) {
        if (window->kernel[d] != 1 || window->stride[d] != 1 || window->before[d] != 0 ||
            window->after[d] != 0) {
            return false;
        }
    }
    return true;
}

bool rondo__cuda_is_stem(const rondo__cuda_kernel *kernel,
                         const rondo__cuda_convolution *convolution) {
    rondo_device_info info = {.struct_size = sizeof info};
    const rondo__window *window = &convolution->window;
    return convolution->dtype == RONDO_DTYPE_F16 && window->channels_last &&
           convolution->groups == 1 && window->channels_in % 8 != 0 && window->channels_in <= 16 &&
           window->in[0] == 1 && window->kernel[0] == 1 &&
           rondo_device_get_info(kernel->device, &info) == RONDO_STATUS_OK && info.arch_major >= 8;
}

static bool suits(const rondo__cuda_kernel *kernel, const rondo__cuda_convolution *convolution,
                  rondo_device_info *out_info) {
    const rondo__window *window = &convolution->window;
    const int64_t most = INT64_C(1) << 31;
    if (convolution->dtype != RONDO_DTYPE_F16 || !window->channels_last ||
        convolution->groups != 1 || window->in[0] != 1 || window->kernel[0] != 1 ||
        window->before[0] != 0 || window->stride[0] != 1) {
        return false;
    }
    if (window->channels_in % 8 != 0 && !rondo__cuda_is_stem(kernel, convolution)) {
        return false;
    }
    if (convolution->pixels >= most || window->batch * window->in[1] * window->in[2] >= most) {
        return false;
    }
    return rondo_device_get_info(kernel->device, out_info) == RONDO_STATUS_OK &&
           out_info->arch_major >= 8;
}

// Tiles whose blocks fill the chip without a split, and splits that fill it where they do not.
static size_t list_plans(const rondo__cuda_kernel *kernel,
                         const rondo__cuda_convolution *convolution, tensor_plan *out_plans) {
    rondo_device_info info = {.struct_size = sizeof info};
    size_t count = 0;
    if (!suits(kernel, convolution, &info)) {
        return 0;
    }
    const int64_t units = info.compute_units > 0 ? info.compute_units : 1;
    const int64_t steps = divide_up(convolution->weight_pitch, TILE_K);
    const bool has_clusters = info.arch_major >= 9;

    for (size_t t = 0; t < sizeof(tensor_tiles) / sizeof(tensor_tiles[0]); t++) {
        const tensor_tile *tile = &tensor_tiles[t];
        const bool is_hopper = info.arch_major == HOPPER && info.arch_minor == 0;
        if (tile->is_wgmma && !is_hopper) {
            continue;
        }
        const int64_t tiles = divide_up(convolution->pixels, tile->m) *
                              divide_up(convolution->window.channels_out, tile->n);
        // Tiles much larger than the work, or far more of them than the chip runs at once.
        if ((tile->m > 32 && tile->m >= 2 * convolution->pixels) ||
            (tile->n > 32 && tile->n >= 2 * convolution->window.channels_out) ||
            (tile->m * tile->n < 64 * 64 && tiles > 6 * units)) {
            continue;
        }
        for (int32_t split = 1; split <= SPLIT_MAX && count < PLANS_MAX; split *= 2) {
            if (split > 1 && (!has_clusters || steps < split || tiles * split > 3 * units)) {
                break;
            }
            if (tiles * split * 4 < units && split < SPLIT_MAX && steps >= split * 2 &&
                has_clusters) {
                continue;  // too few blocks; a larger split is coming
            }
            out_plans[count++] = (tensor_plan){tile, split};
        }
    }
    return count;
}

size_t rondo__cuda_count_tensor_plans(const rondo__cuda_kernel *kernel,
                                      const rondo__cuda_convolution *convolution) {
    tensor_plan plans[PLANS_MAX];
    return list_plans(kernel, convolution, plans);
}

void rondo__cuda_add_tensor_plan(rondo__cuda_kernel *kernel,
                                 const rondo__cuda_convolution *convolution, size_t plan) {
    const rondo__window *window = &convolution->window;
    rondo__defines defines = {0};
    tensor_plan plans[PLANS_MAX];

    const size_t count = list_plans(kernel, convolution, plans);
    if (plan >= count) {
        rondo__cuda_refuse(kernel, "a tensor core plan of this number");
        return;
    }
    const tensor_tile *tile = plans[plan].tile;
    const int32_t split = plans[plan].split;
    rondo__define_int(&defines, "TILE_M", tile->m);
    rondo__define_int(&defines, "TILE_N", tile->n);
    rondo__define_int(&defines, "TILE_K", TILE_K);
    rondo__define_int(&defines, "STAGES", tile->stages);
    rondo__define_int(&defines, "WARPS_M", tile->warps_m);
    rondo__define_int(&defines, "WARPS_N", tile->warps_n);
    rondo__define_int(&defines, "SPLIT", split);
    rondo__define_int(&defines, "WGMMA", tile->is_wgmma);
    if (tile->is_wgmma) {
        rondo__define_option(&defines, "--gpu-architecture=sm_90a");
    }
    rondo__define_int(&defines, "EAGER_WEIGHTS", convolution->w.space == RONDO__ADDRESS_FIXED);
    rondo__define_int(&defines, "POINT", is_point(window));
    rondo__define_int(&defines, "ACTIVATION", convolution->epilogue.activation);
    rondo__define_int(&defines, "STEM", rondo__cuda_is_stem(kernel, convolution));
    rondo__step *step =
        rondo__cuda_add_launch(kernel, rondo__cu_conv_tensor, &defines, "conv_tensor", split,
                               (uint32_t)(32 * tile->warps_m * tile->warps_n));
    if (step != NULL) {
        const int64_t stage_bytes = (tile->m + tile->n) * TILE_K * 2;
        const int64_t buffer_bytes = stage_bytes * tile->stages;
        const int64_t sum_bytes = tile->m * (tile->n + 4) * 4;
        step->launch.grid[1] = (uint32_t)divide_up(window->channels_out, tile->n);
        step->launch.grid[2] = (uint32_t)divide_up(convolution->pixels, tile->m);
        step->launch.shared_bytes = (uint32_t)(buffer_bytes > sum_bytes ? buffer_bytes : sum_bytes);
        if (step->launch.grid[2] > 65535 || step->launch.grid[1] > 65535) {
            rondo__cuda_refuse(kernel, "more tiles than a grid holds");
        }
    }
    rondo__step_address(step, convolution->x);
    rondo__step_address(step, convolution->w);
    rondo__step_epilogue_addresses(step, &convolution->epilogue);
    rondo__step_address(step, convolution->y);
    rondo__step_int(step, convolution->pixels);
    rondo__step_int(step, window->channels_out);
    rondo__step_int(step, convolution->weight_pitch);
    rondo__step_int(step, window->channels_in);
    rondo__step_int(step, window->in[1]);
    rondo__step_int(step, window->in[2]);
    rondo__step_int(step, window->out[1]);
    rondo__step_int(step, window->out[2]);
    rondo__step_int(step, window->kernel[2]);
    rondo__step_int(step, window->stride[1]);
    rondo__step_int(step, window->stride[2]);
    rondo__step_int(step, window->dilation[1]);
    rondo__step_int(step, window->dilation[2]);
    rondo__step_int(step, window->before[1]);
    rondo__step_int(step, window->before[2]);
    rondo__step_int(step, convolution->taps);
    rondo__step_float(step, (double)convolution->epilogue.alpha);
    rondo__step_float(step, (double)convolution->epilogue.beta);
}

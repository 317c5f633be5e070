// kernel/cuda/convolution/cuda_conv_tensor.c — the plans of conv_tensor.cu and conv_tma.cu: which
// tiles and splits are worth timing for a convolution, and what each may take.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/cuda/convolution/cuda_conv_tensor.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "cu_sources.h"
#include "device/device.h"
#include "kernel/cuda/convolution/cuda_conv_tma.h"

// Times are what an H200 takes, in nanoseconds: a step along K (64 elements) takes `latency`, or
// `share` for each block on the same multiprocessor where that is more; to begin and to write
// results takes `block`; to join the sums of split tiles `join` for each doubling
// (bench/results/models/tuning_h200.md). On other chips they serve to put plans in an order.
typedef struct tensor_tile {
    int64_t m, n;
    int32_t warps_m, warps_n;  // of conv_tensor.cu; 0: conv_tma.cu's
    int32_t stages;
    double latency, share, block, join;
} tensor_tile;

static const tensor_tile tensor_tiles[] = {
    {64, 32, 0, 0, 6, 200, 125, 1300, 700},    {64, 32, 0, 0, 10, 150, 125, 1300, 700},
    {64, 64, 0, 0, 5, 210, 165, 1500, 800},    {64, 64, 0, 0, 8, 160, 165, 1500, 800},
    {64, 128, 0, 0, 4, 250, 250, 1800, 1100},  {64, 128, 0, 0, 7, 220, 250, 1800, 1100},
    {128, 64, 0, 0, 4, 260, 250, 1800, 1100},  {128, 64, 0, 0, 7, 240, 250, 1800, 1100},
    {128, 128, 0, 0, 3, 380, 330, 2600, 1800}, {128, 128, 0, 0, 5, 340, 330, 2600, 1800},
    {32, 64, 1, 4, 4, 138, 314, 1403, 700},    {64, 32, 2, 2, 4, 440, 283, 1424, 700},
    {32, 32, 2, 2, 4, 172, 197, 1419, 700},    {64, 64, 2, 2, 4, 85, 344, 2003, 800},
    {128, 64, 4, 2, 3, 797, 672, 2553, 1100},  {64, 128, 2, 4, 3, 320, 610, 2371, 1100},
    {128, 128, 2, 4, 3, 1619, 59, 3909, 1800}, {16, 64, 1, 4, 4, 95, 201, 1264, 600},
};
static const double bytes_per_ns = 2871;

enum {
    TILE_K = 64,
    SPLIT_MAX = 8,  // blocks of a cluster that every chip with clusters takes
    PLANS_MAX = RONDO__CUDA_TENSOR_PLANS,
    LISTED_MAX = 96,
    GRID_MAX = 65535,
    WARP = 32,
};

typedef struct tensor_plan {
    const tensor_tile *tile;
    int32_t split;
    double cost_ns;  // estimated
    double work_ns;  // the same, were memory no limit
} tensor_plan;

static bool is_tma(const tensor_tile *tile) {
    return tile->warps_m == 0;
}

static int64_t get_group_channels(const rondo__cuda_convolution *convolution) {
    return convolution->window.channels_in / convolution->groups;
}

static int64_t get_group_filters(const rondo__cuda_convolution *convolution) {
    return convolution->window.channels_out / convolution->groups;
}

// Of all groups: a tile has filters of one.
static int64_t count_filter_tiles(const rondo__cuda_convolution *convolution,
                                  const tensor_tile *tile) {
    return convolution->groups * rondo__divide_up(get_group_filters(convolution), tile->n);
}

static bool suits(const rondo__cuda_kernel *kernel, const rondo__cuda_convolution *convolution,
                  rondo_device_info *out_info) {
    const rondo__window *window = &convolution->window;
    const int64_t most = INT64_C(1) << 31;
    if (convolution->dtype != RONDO_DTYPE_F16 || !window->channels_last ||
        get_group_channels(convolution) % 8 != 0 ||
        (convolution->groups > 1 && get_group_filters(convolution) % 8 != 0) ||
        window->in[0] != 1 || window->kernel[0] != 1 || window->before[0] != 0 ||
        window->stride[0] != 1) {
        return false;
    }
    if (convolution->pixels >= most || window->batch * window->in[1] * window->in[2] >= most) {
        return false;
    }
    return rondo__device_get_facts(kernel->device, out_info) == RONDO_STATUS_OK &&
           out_info->arch_major >= 8;
}

// Taps in a step along K, where that is always the same whole number, and more than one.
static int64_t count_step_taps(const rondo__cuda_convolution *convolution) {
    const int64_t channels = get_group_channels(convolution);
    return !rondo__cuda_is_point(&convolution->window) && channels < TILE_K &&
                   TILE_K % channels == 0
               ? TILE_K / channels
               : 0;
}

static rondo__cuda_tma_tile get_tma_tile(const tensor_tile *tile, int32_t split) {
    return (rondo__cuda_tma_tile){tile->m, tile->n, tile->stages, split};
}

static int64_t get_thread_count(const tensor_tile *tile) {
    return is_tma(tile) ? 2 * tile->m + WARP : WARP * tile->warps_m * tile->warps_n;
}

// Sums of other blocks come behind the buffers; a block's own go into them.
static int64_t get_shared_bytes(const rondo__cuda_convolution *convolution, const tensor_tile *tile,
                                int32_t split) {
    if (is_tma(tile)) {
        const rondo__cuda_tma_tile tma = get_tma_tile(tile, split);
        return rondo__cuda_get_tma_bytes(convolution, &tma);
    }
    const int64_t buffer_bytes = (tile->m + tile->n) * TILE_K * 2 * tile->stages;
    const int64_t sum_bytes = tile->m * (tile->n + 4) * 4;
    if (split > 1) {
        return buffer_bytes + sum_bytes;
    }
    return buffer_bytes > sum_bytes ? buffer_bytes : sum_bytes;
}

static int64_t count_tiles(const rondo__cuda_convolution *convolution, const tensor_tile *tile) {
    return rondo__divide_up(convolution->pixels, tile->m) * count_filter_tiles(convolution, tile);
}

// A multiprocessor takes its blocks in rounds of as many as its memory and threads allow; what they
// read and write takes its time, too.
static tensor_plan estimate(const rondo_device_info *info,
                            const rondo__cuda_convolution *convolution, const tensor_tile *tile,
                            int32_t split) {
    const rondo__window *window = &convolution->window;
    const int64_t units = info->compute_units > 0 ? info->compute_units : 1;
    const int64_t by_threads = 2048 / get_thread_count(tile);
    const int64_t by_memory =
        rondo__cuda_get_shared_bytes(info) / (get_shared_bytes(convolution, tile, split) + 1024);
    int64_t beside = by_memory < by_threads ? by_memory : by_threads;
    beside = beside > 0 ? beside : 1;
    const int64_t blocks = rondo__divide_up(count_tiles(convolution, tile) * split, units);
    const double steps = (double)rondo__divide_up(
        rondo__divide_up(convolution->weight_pitch, TILE_K), (int64_t)split);
    double time_ns = 0;
    const int64_t rounds[] = {blocks / beside, blocks % beside > 0 ? 1 : 0};
    const int64_t blocks_of[] = {beside, blocks % beside};
    for (size_t i = 0; i < 2; i++) {
        const double shared = tile->share * (double)blocks_of[i];
        const double step_ns = shared > tile->latency ? shared : tile->latency;
        time_ns += (double)rounds[i] * (steps * step_ns + tile->block);
    }
    const double pixels_in = (double)window->batch * (double)window->in[1] * (double)window->in[2];
    const double results = (double)convolution->pixels * (double)window->channels_out;
    const double second_in = convolution->has_second ? (double)convolution->pixels *
                                                           (double)convolution->second.channels_in
                                                     : 0.0;
    const double bytes = 2 * (pixels_in * (double)window->channels_in + second_in +
                              (double)convolution->weight_pitch * (double)window->channels_out +
                              (convolution->epilogue.has_residual ? results : 0.0)) +
                         results * (double)rondo_dtype_get_bytes(convolution->y_dtype);
    const double memory_ns = bytes / bytes_per_ns;
    double joining_ns = 0;
    for (int32_t part = 1; part < split; part *= 2) {
        joining_ns += tile->join;
    }
    return (tensor_plan){
        .tile = tile,
        .split = split,
        .cost_ns = (time_ns > memory_ns ? time_ns : memory_ns) + joining_ns,
        .work_ns = time_ns + joining_ns,
    };
}

static int compare_costs(const void *a, const void *b) {
    const tensor_plan *x = a;
    const tensor_plan *y = b;
    if (x->cost_ns != y->cost_ns) {
        return x->cost_ns < y->cost_ns ? -1 : 1;
    }
    if (x->work_ns != y->work_ns) {
        return x->work_ns < y->work_ns ? -1 : 1;
    }
    return x->tile != y->tile ? (x->tile < y->tile ? -1 : 1) : x->split - y->split;
}

// Whether the tile is much larger than the work, or much too small for it.
static bool is_odd(const rondo__cuda_convolution *convolution, const tensor_tile *tile,
                   int64_t units) {
    return (tile->m > 32 && tile->m >= 2 * convolution->pixels) ||
           (tile->n > 32 && tile->n >= 2 * get_group_filters(convolution)) ||
           (tile->m * tile->n < 64 * 64 && count_tiles(convolution, tile) > 6 * units);
}

static bool has_same_code(const rondo__cuda_convolution *convolution, const tensor_tile *less,
                          const tensor_tile *more, int32_t split) {
    const rondo__cuda_tma_tile a = get_tma_tile(less, split), b = get_tma_tile(more, split);
    return is_tma(less) && is_tma(more) && less->m == more->m && less->n == more->n &&
           less->stages < more->stages &&
           rondo__cuda_get_tma_stages(convolution, &a) ==
               rondo__cuda_get_tma_stages(convolution, &b);
}

// Whether the tile differs from one beside it by buffers alone, which it has no steps for: from the
// one before it, and does not hold them; or from the one behind it, which holds more, in a product
// whose blocks have a multiprocessor each. Those are faster in a network, where they would pile up
// beside those of the launch before, and slower alone, so that no contest finds out. Convolutions
// of images have branches, whose blocks should lie side by side.
static bool is_spare(const rondo_device_info *info, const rondo__cuda_convolution *convolution,
                     const tensor_tile *tile, int32_t split) {
    const tensor_tile *end = tensor_tiles + sizeof tensor_tiles / sizeof tensor_tiles[0];
    const tensor_tile *less = tile > tensor_tiles ? tile - 1 : tile, *more = tile + 1;
    if (has_same_code(convolution, less, tile, split) &&
        get_shared_bytes(convolution, less, split) == get_shared_bytes(convolution, tile, split)) {
        return true;
    }
    return convolution->window.in[1] == 1 && more < end &&
           has_same_code(convolution, tile, more, split) &&
           count_tiles(convolution, tile) * split <= info->compute_units &&
           get_shared_bytes(convolution, more, split) <= rondo__cuda_get_shared_bytes(info);
}

// Plans with the tile: as it is, and split where its blocks do not fill the chip.
static size_t add_plans(const rondo_device_info *info, const rondo__cuda_convolution *convolution,
                        const tensor_tile *tile, size_t count, tensor_plan *plans) {
    const int64_t units = info->compute_units > 0 ? info->compute_units : 1;
    const int64_t steps = rondo__divide_up(convolution->weight_pitch, TILE_K);
    const int64_t tiles = count_tiles(convolution, tile);
    const bool has_clusters = info->arch_major >= 9;
    for (int32_t split = 1; split <= SPLIT_MAX && count < LISTED_MAX; split *= 2) {
        if (split > 1 && (!has_clusters || steps < split || tiles * split > 3 * units)) {
            break;
        }
        if (tiles * split * 4 < units && split < SPLIT_MAX && steps >= split * 2 && has_clusters) {
            continue;  // too few blocks; a larger split is coming
        }
        if (get_shared_bytes(convolution, tile, split) > rondo__cuda_get_shared_bytes(info)) {
            break;
        }
        if (!is_spare(info, convolution, tile, split)) {
            plans[count++] = estimate(info, convolution, tile, split);
        }
    }
    return count;
}

// The plans that are worth timing, the best by estimate first.
static size_t list_plans(const rondo__cuda_kernel *kernel,
                         const rondo__cuda_convolution *convolution, tensor_plan *out_plans) {
    tensor_plan plans[LISTED_MAX];
    rondo_device_info info = {.struct_size = sizeof info};
    size_t count = 0;
    if (!suits(kernel, convolution, &info)) {
        return 0;
    }
    const int64_t units = info.compute_units > 0 ? info.compute_units : 1;
    const bool has_tma = convolution->groups == 1 && rondo__cuda_suits_tma(kernel, convolution);
    for (int takes_odd = 0; takes_odd < 2 && count == 0; takes_odd++) {
        for (size_t t = 0; t < sizeof(tensor_tiles) / sizeof(tensor_tiles[0]); t++) {
            const tensor_tile *tile = &tensor_tiles[t];
            const bool has_grid = rondo__divide_up(convolution->pixels, tile->m) <= GRID_MAX &&
                                  count_filter_tiles(convolution, tile) <= GRID_MAX;
            if (has_grid &&
                (is_tma(tile) ? has_tma : !convolution->has_second && convolution->x_depth == 0) &&
                (takes_odd != 0 || !is_odd(convolution, tile, units))) {
                count = add_plans(&info, convolution, tile, count, plans);
            }
        }
    }
    qsort(plans, count, sizeof plans[0], compare_costs);
    count = count < PLANS_MAX ? count : PLANS_MAX;
    memcpy(out_plans, plans, count * sizeof plans[0]);
    return count;
}

size_t rondo__cuda_count_tensor_plans(const rondo__cuda_kernel *kernel,
                                      const rondo__cuda_convolution *convolution) {
    tensor_plan plans[PLANS_MAX];
    return list_plans(kernel, convolution, plans);
}

void rondo__cuda_describe_tensor_plan(const rondo__cuda_kernel *kernel,
                                      const rondo__cuda_convolution *convolution, size_t plan,
                                      char *text, size_t text_bytes) {
    tensor_plan plans[PLANS_MAX];
    const size_t count = list_plans(kernel, convolution, plans);
    const tensor_tile *tile = plan < count ? plans[plan].tile : NULL;
    if (tile == NULL) {
        (void)snprintf(text, text_bytes, "tensor ?");
        return;
    }
    if (is_tma(tile)) {
        (void)snprintf(text, text_bytes, "tma %lldx%lld stages %d split %d", (long long)tile->m,
                       (long long)tile->n, (int)tile->stages, (int)plans[plan].split);
        return;
    }
    (void)snprintf(text, text_bytes, "tensor %lldx%lld %d %d mma split %d", (long long)tile->m,
                   (long long)tile->n, (int)tile->warps_m, (int)tile->warps_n,
                   (int)plans[plan].split);
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
    if (is_tma(tile)) {
        const rondo__cuda_tma_tile tma = get_tma_tile(tile, split);
        rondo__cuda_add_tma(kernel, convolution, &tma);
        return;
    }
    const rondo__cuda_ending ending = rondo__cuda_get_ending(convolution);
    rondo__define_int(&defines, "TILE_M", tile->m);
    rondo__define_int(&defines, "TILE_N", tile->n);
    rondo__define_int(&defines, "TILE_K", TILE_K);
    rondo__define_int(&defines, "STAGES", tile->stages);
    rondo__define_int(&defines, "WARPS_M", tile->warps_m);
    rondo__define_int(&defines, "WARPS_N", tile->warps_n);
    rondo__define_int(&defines, "SPLIT", split);
    rondo__define_int(&defines, "EAGER_WEIGHTS", rondo__address_is_fixed(&convolution->w));
    rondo__define_int(&defines, "POINT", rondo__cuda_is_point(window));
    rondo__define_int(&defines, "ACTIVATION", convolution->epilogue.activation);
    rondo__define_type(&defines, "Y", convolution->y_dtype);
    rondo__define_int(&defines, "STEP_TAPS", count_step_taps(convolution));
    rondo__define_int(&defines, "GROUPED", convolution->groups > 1);
    rondo__define_ending(&defines, &ending);
    rondo__step *step =
        rondo__cuda_add_launch(kernel, rondo__cu_conv_tensor, &defines, "conv_tensor", split,
                               (uint32_t)get_thread_count(tile));
    if (step != NULL) {
        step->launch.grid[1] = (uint32_t)count_filter_tiles(convolution, tile);
        step->launch.grid[2] = (uint32_t)rondo__divide_up(convolution->pixels, tile->m);
        step->launch.shared_bytes = (uint32_t)get_shared_bytes(convolution, tile, split);
    }
    rondo__step_address(step, convolution->x);
    rondo__step_address(step, convolution->w);
    rondo__step_ending(step, &ending);
    if (convolution->groups > 1) {
        rondo__step_int(step, get_group_filters(convolution));
    }
    rondo__step_int(step, get_group_channels(convolution));
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
}

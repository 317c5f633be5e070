// kernel/cuda/product/cuda_byte_plan.c — see cuda_byte_plan.h.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/cuda/product/cuda_byte_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

// In nanoseconds of an H200: a step along the inner extent takes `latency`, or `share` for each
// block on the same multiprocessor where that is more; to begin and to write results takes `block`.
// Fitted to plans of halves (bench/results/models/tuning_h200.md), whose tiles have rows of as many
// bytes, half the elements and half the speed; those of tiles with 256 columns, and with 3 stages
// on Hopper, are guesses. They only serve to put plans in an order.
static const rondo__byte_tile byte_tiles[] = {
    {64, 64, 4, 2, 5, true, 141, 309, 1885},    {64, 32, 4, 1, 6, true, 264, 204, 1423},
    {64, 64, 4, 1, 5, true, 135, 269, 1841},    {64, 128, 4, 2, 4, true, 615, 84, 2529},
    {128, 64, 8, 1, 4, true, 590, 85, 2843},    {128, 128, 8, 1, 4, true, 574, 300, 3780},
    {128, 128, 8, 1, 3, true, 574, 290, 3780},  {128, 256, 8, 2, 4, true, 800, 800, 6000},
    {32, 64, 1, 4, 4, false, 138, 314, 1403},   {64, 32, 2, 2, 4, false, 440, 283, 1424},
    {32, 32, 2, 2, 4, false, 172, 197, 1419},   {64, 64, 2, 2, 4, false, 85, 344, 2003},
    {128, 64, 4, 2, 3, false, 797, 672, 2553},  {64, 128, 2, 4, 3, false, 320, 610, 2371},
    {128, 128, 2, 4, 3, false, 1619, 59, 3909}, {16, 64, 1, 4, 4, false, 95, 201, 1264},
};
static const double bytes_per_ns = 2871;
static const double split_ns = 1105;  // for each doubling

enum {
    SPLIT_MAX = 8,  // blocks of a cluster that every chip with clusters takes
    LISTED_MAX = 64,
    GRID_MAX = 65535,
    HOPPER = 9,  // compute capability 9.0, the one with wgmma
};

static int64_t get_shared_bytes(const rondo__byte_tile *tile) {
    const int64_t buffer_bytes = (tile->m + tile->n) * RONDO__BYTE_STEP_BYTES * tile->stages;
    const int64_t sum_bytes = tile->m * (tile->n + 4) * 4;
    return buffer_bytes > sum_bytes ? buffer_bytes : sum_bytes;
}

static int64_t count_tiles(const rondo__byte_work *work, const rondo__byte_tile *tile) {
    return rondo__divide_up(work->rows, tile->m) * rondo__divide_up(work->columns, tile->n);
}

static int64_t count_steps(const rondo__byte_work *work) {
    return rondo__divide_up(work->row_bytes, RONDO__BYTE_STEP_BYTES);
}

// A multiprocessor takes its blocks in rounds of as many as its memory and threads allow; what they
// read and write takes its time, too.
static double estimate_ns(const rondo_device_info *info, const rondo__byte_work *work,
                          const rondo__byte_tile *tile, int32_t split) {
    const int64_t shared_bytes = info->arch_major >= 9                            ? 227 << 10
                                 : info->arch_major == 8 && info->arch_minor == 0 ? 163 << 10
                                                                                  : 99 << 10;
    const int64_t units = info->compute_units > 0 ? info->compute_units : 1;
    const int64_t by_threads = 2048 / (32 * tile->warps_m * tile->warps_n);
    const int64_t by_memory = shared_bytes / (get_shared_bytes(tile) + 1024);
    int64_t beside = by_memory < by_threads ? by_memory : by_threads;
    beside = beside > 0 ? beside : 1;
    const int64_t blocks = rondo__divide_up(count_tiles(work, tile) * split, units);
    const double steps = (double)rondo__divide_up(count_steps(work), (int64_t)split);
    double time_ns = 0;
    const int64_t rounds[] = {blocks / beside, blocks % beside > 0 ? 1 : 0};
    const int64_t blocks_of[] = {beside, blocks % beside};
    for (size_t i = 0; i < 2; i++) {
        const double shared = tile->share * (double)blocks_of[i];
        const double step_ns = shared > tile->latency ? shared : tile->latency;
        time_ns += (double)rounds[i] * (steps * step_ns + tile->block);
    }
    const double memory_ns = work->moved_bytes / bytes_per_ns;
    double joining_ns = 0;
    for (int32_t part = 1; part < split; part *= 2) {
        joining_ns += split_ns;
    }
    return (time_ns > memory_ns ? time_ns : memory_ns) + joining_ns;
}

static int compare_costs(const void *a, const void *b) {
    const rondo__byte_plan *x = a;
    const rondo__byte_plan *y = b;
    if (x->cost_ns != y->cost_ns) {
        return x->cost_ns < y->cost_ns ? -1 : 1;
    }
    return x->tile != y->tile ? (x->tile < y->tile ? -1 : 1) : x->split - y->split;
}

// Whether the tile is much larger than the work, or much too small for it.
static bool is_odd(const rondo__byte_work *work, const rondo__byte_tile *tile, int64_t units) {
    return (tile->m > 32 && tile->m >= 2 * work->rows) ||
           (tile->n > 32 && tile->n >= 2 * work->columns) ||
           (tile->m * tile->n < 64 * 64 && count_tiles(work, tile) > 6 * units);
}

// Plans with the tile: as it is, and split where its blocks do not fill the chip.
static size_t add_plans(const rondo_device_info *info, const rondo__byte_work *work,
                        const rondo__byte_tile *tile, size_t count, rondo__byte_plan *plans) {
    const int64_t units = info->compute_units > 0 ? info->compute_units : 1;
    const int64_t steps = count_steps(work);
    const int64_t tiles = count_tiles(work, tile);
    const bool has_clusters = info->arch_major >= 9;
    for (int32_t split = 1; split <= SPLIT_MAX && count < LISTED_MAX; split *= 2) {
        if (split > 1 && (!has_clusters || steps < split || tiles * split > 3 * units)) {
            break;
        }
        if (tiles * split * 4 < units && split < SPLIT_MAX && steps >= split * 2 && has_clusters) {
            continue;  // too few blocks; a larger split is coming
        }
        plans[count++] = (rondo__byte_plan){tile, split, estimate_ns(info, work, tile, split)};
    }
    return count;
}

size_t rondo__byte_plan_list(const rondo__cuda_kernel *kernel, const rondo__byte_work *work,
                             rondo__byte_plan out_plans[RONDO__BYTE_PLANS]) {
    rondo__byte_plan plans[LISTED_MAX];
    rondo_device_info info = {.struct_size = sizeof info};
    size_t count = 0;
    if (rondo_device_get_info(kernel->device, &info) != RONDO_STATUS_OK || info.arch_major < 8) {
        return 0;
    }
    const int64_t units = info.compute_units > 0 ? info.compute_units : 1;
    const bool is_hopper = info.arch_major == HOPPER && info.arch_minor == 0;
    for (int takes_odd = 0; takes_odd < 2 && count == 0; takes_odd++) {
        for (size_t t = 0; t < sizeof(byte_tiles) / sizeof(byte_tiles[0]); t++) {
            const rondo__byte_tile *tile = &byte_tiles[t];
            const bool has_grid = rondo__divide_up(work->rows, tile->m) <= GRID_MAX &&
                                  rondo__divide_up(work->columns, tile->n) <= GRID_MAX;
            if (has_grid && (is_hopper || !tile->is_wgmma) &&
                (takes_odd != 0 || !is_odd(work, tile, units))) {
                count = add_plans(&info, work, tile, count, plans);
            }
        }
    }
    qsort(plans, count, sizeof plans[0], compare_costs);
    count = count < RONDO__BYTE_PLANS ? count : RONDO__BYTE_PLANS;
    memcpy(out_plans, plans, count * sizeof plans[0]);
    return count;
}

void rondo__byte_plan_describe(const rondo__byte_plan *plan, char *text, size_t text_bytes) {
    const rondo__byte_tile *tile = plan->tile;
    (void)snprintf(text, text_bytes, "tensor %lldx%lld %d %d %s stages %d split %d",
                   (long long)tile->m, (long long)tile->n, (int)tile->warps_m, (int)tile->warps_n,
                   tile->is_wgmma ? "wgmma" : "mma", (int)tile->stages, (int)plan->split);
}

void rondo__byte_plan_define(rondo__defines *defines, const rondo__byte_plan *plan) {
    const rondo__byte_tile *tile = plan->tile;
    rondo__define_int(defines, "TILE_M", tile->m);
    rondo__define_int(defines, "TILE_N", tile->n);
    rondo__define_int(defines, "STAGES", tile->stages);
    rondo__define_int(defines, "WARPS_M", tile->warps_m);
    rondo__define_int(defines, "WARPS_N", tile->warps_n);
    rondo__define_int(defines, "SPLIT", plan->split);
    rondo__define_int(defines, "WGMMA", tile->is_wgmma);
    if (tile->is_wgmma) {
        rondo__define_option(defines, "--gpu-architecture=sm_90a");
    }
}

void rondo__byte_plan_shape(rondo__step *step, const rondo__byte_plan *plan,
                            const rondo__byte_work *work) {
    if (step != NULL) {
        step->launch.grid[1] = (uint32_t)rondo__divide_up(work->columns, plan->tile->n);
        step->launch.grid[2] = (uint32_t)rondo__divide_up(work->rows, plan->tile->m);
        step->launch.shared_bytes = (uint32_t)get_shared_bytes(plan->tile);
    }
}

// kernel/cuda/product/cuda_byte_plan.h — how byte_tensor.cu may cut a product: the tiles there are,
// which of them and which splits are worth timing, and what each may take.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/cuda/cuda_steps.h"

enum {
    RONDO__BYTE_PLANS = 24,        // at most
    RONDO__BYTE_STEP_BYTES = 128,  // of a row of either operand, in one step along it
};

typedef struct rondo__byte_tile {
    int64_t m, n;
    int32_t warps_m, warps_n;
    int32_t stages;
    bool is_wgmma;  // Hopper's own instruction; other chips take the rest
    double latency, share, block;
} rondo__byte_tile;

// A product of two operands whose rows lie along the inner extent.
typedef struct rondo__byte_work {
    int64_t rows, columns;  // of the result
    int64_t row_bytes;      // of an operand's row
    double moved_bytes;     // read and written by all
} rondo__byte_work;

typedef struct rondo__byte_plan {
    const rondo__byte_tile *tile;
    int32_t split;   // blocks of a cluster that share a tile
    double cost_ns;  // estimated
} rondo__byte_plan;

// The plans that are worth timing on this device, the best by estimate first; none before
// capability 8.0.
size_t rondo__byte_plan_list(const rondo__cuda_kernel *kernel, const rondo__byte_work *work,
                             rondo__byte_plan out_plans[RONDO__BYTE_PLANS]);

// "tensor 64x32 4 1 wgmma stages 6 split 2": tile, warps, instruction, stages, split.
void rondo__byte_plan_describe(const rondo__byte_plan *plan, char *text, size_t text_bytes);

// TILE_M and what else the kernel is compiled for.
void rondo__byte_plan_define(rondo__defines *defines, const rondo__byte_plan *plan);

// Sets grid and shared memory of the launch: (split, column tiles, row tiles).
void rondo__byte_plan_shape(rondo__step *step, const rondo__byte_plan *plan,
                            const rondo__byte_work *work);

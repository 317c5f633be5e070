// kernel/host/convolution/winograd.h — convolutions with 3 x 3 taps and no steps by Winograd's way
// (simd_winograd.c): tiles of m x m positions, of which each takes (m + 2)^2 products of a channel
// with a filter instead of 9 m^2. So m = 4 does a quarter of the multiply-adds, m = 2 a 2.25th.
//
//   v [n * n, tiles, channels]    from x
//   sums [n * n, tiles, filters]  n * n matrix products with the turned filters
//   y                             from sums
//
// Errors beside the largest number of a tile: m = 2 as the sums in order, m = 4 three times as
// many. What is not finite would reach all positions of a tile, so a run says when it has met such
// a sum; the caller then convolves in order.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "kernel/host/simd/simd.h"
#include "kernel/weights/weight_store.h"
#include "op/image/convolution.h"

typedef struct rondo__winograd {
    const rondo__simd *simd;
    rondo__convolution shape;
    int32_t m;              // 0: not this way
    int64_t rows, columns;  // of tiles, of one image
    int64_t tiles;          // of all images
    int64_t blocks;         // parts of them that fit in the cache
    int64_t block_tiles;    // most of one block
    int64_t parts;          // threads' shares of the blocks
    const float *panels;    // n * n matrices
    bool streams;           // they do not stay in the cache
    size_t part_floats;     // workspace of a part
} rondo__winograd;

// Whether this is a convolution that gains by it, and how it is cut; out->m is 0 if not.
void rondo__winograd_plan(const rondo__simd *simd, const rondo__convolution *shape,
                          rondo__winograd *out_winograd);

// Turns the filters of a constant.
//
// Errors:    as rondo__weight_list_add.
// Ownership: the list's.
RONDO_MUST_USE rondo_status rondo__winograd_keep(rondo__winograd *winograd,
                                                 rondo__weight_list *list,
                                                 const rondo_tensor *constant);

size_t rondo__winograd_get_bytes(const rondo__winograd *winograd);  // of the workspace

// x and y have channels last, y rows y_row elements apart; bias and z may be NULL.
typedef struct rondo__winograd_call {
    const float *x, *bias, *z, *zeros;  // zeros: of all channels
    float low, high;
    rondo__activation activation;  // what is no clamp, or NONE
    float alpha, beta;
    float *y;
    int64_t y_row;
    float *work;
} rondo__winograd_call;

// Convolves with the workers' help. False: a sum was not finite, and y is not to be used.
bool rondo__winograd_run(const rondo__winograd *winograd, const rondo__winograd_call *call);

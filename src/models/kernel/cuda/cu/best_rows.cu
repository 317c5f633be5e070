// best_rows.cu - rondo.BestRows: of each column of scores the rows above a threshold, the best first.
//
//   best_keys    a block a column: a key for each score, made of the score and the row's number (all bits set for a
//                score that is too low), and the number of rows that the column will take
//   (sort.cu)    the first keys of each column, sorted
//   best_write   a block a column: writes the rows that the keys name, behind those of earlier columns
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"
#include "rondo_keys.cuh"
#include "rondo_ranks.cuh"

#define NO_KEY (~(u64)0)

struct keys_arguments {
    i64 count, width;  // scores [count, width]
    i64 first, most;
    double threshold;
    const float *scores;
    u64 *keys;    // [columns, count]
    u32 *counts;  // [columns]
};
extern "C" __global__ void __launch_bounds__(256) best_keys(const keys_arguments a) {
    take_turn();
    __shared__ u32 scratch[8];
    u32 mine = 0, total;
    u64 *keys = a.keys + blockIdx.x * a.count;
    for (i64 i = threadIdx.x; i < a.count; i += 256) {
        const float own = a.scores[i * a.width + a.first + blockIdx.x];
        const bool is_above = own > a.threshold;
        const u64 rank = ~(u32)key_of(own);
        keys[i] = is_above ? rank << 32 | (u32)i : NO_KEY;
        mine += is_above ? 1 : 0;
    }
    rank_in_block(mine, scratch, &total);
    if (threadIdx.x == 0) {
        a.counts[blockIdx.x] = total < a.most ? total : (u32)a.most;
    }
}

struct write_arguments {
    i64 columns, width, row;  // rows [count, row]
    i64 first, label, kept;
    const float *scores, *rows;
    const u64 *keys;    // [columns, kept]
    const u32 *counts;  // [columns]
    float *out_rows;    // NULL: not wanted; so are the next two
    float *out_scores;
    i64 *out_labels;
    i64 *found;
};
extern "C" __global__ void __launch_bounds__(256) best_write(const write_arguments a) {
    take_turn();
    __shared__ u32 scratch[8];
    u32 mine = 0, before, all = 0;
    for (i64 c = threadIdx.x; c < a.columns; c += 256) {
        all += a.counts[c];
        mine += c < blockIdx.x ? a.counts[c] : 0;
    }
    rank_in_block(mine, scratch, &before);
    rank_in_block(all, scratch, &all);
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        *a.found = all;
    }
    const u64 *keys = a.keys + blockIdx.x * a.kept;
    const u32 count = a.counts[blockIdx.x];
    for (u32 k = threadIdx.x; k < count; k += 256) {
        if (a.out_scores != 0) {
            a.out_scores[before + k] = a.scores[(i64)(u32)keys[k] * a.width + a.first + blockIdx.x];
        }
        if (a.out_labels != 0) {
            a.out_labels[before + k] = a.label + blockIdx.x;
        }
    }
    for (i64 k = threadIdx.x; a.out_rows != 0 && k < count * a.row; k += 256) {
        a.out_rows[before * a.row + k] = a.rows[(i64)(u32)keys[k / a.row] * a.row + k % a.row];
    }
}

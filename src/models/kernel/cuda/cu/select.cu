// select.cu - elements that are not 0, in their order: NonZero, Compress, and the groups of Unique.
//
//   select_count   how many each tile of TILE elements has
//   select_scan    how many stand before each tile, and all of them
//   then a walk over the tiles again: select_non_zero, or select_places and select_rows
//
// What is one tile is counted by the walk itself: `sums` is NULL then.
//
// Each place follows from counts alone, so the order is that of the elements, whatever runs first.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"
#include "rondo_ranks.cuh"

#ifndef RONDO_T
#define RONDO_T float
#endif
typedef RONDO_T T;
#ifndef RONDO_W
#define RONDO_W u32  // a word of a row
#endif
typedef RONDO_W W;
#ifndef RANK
#define RANK 4
#endif

#define EACH 8  // elements of a thread, beside each other
#define TILE (256 * EACH)

struct count_arguments {
    i64 count;
    const T *x;
    u32 *sums;  // by tile
};
extern "C" __global__ void __launch_bounds__(256) select_count(const count_arguments a) {
    take_turn();
    __shared__ u32 scratch[8];
    for (i64 tile = blockIdx.x; tile * TILE < a.count; tile += gridDim.x) {
        u32 mine = 0, total;
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const i64 i = tile * TILE + k * 256 + threadIdx.x;
            mine += i < a.count && convert<bool>(a.x[i]) ? 1 : 0;
        }
        rank_in_block(mine, scratch, &total);
        if (threadIdx.x == 0) {
            a.sums[tile] = total;
        }
    }
}

// One block.
struct scan_arguments {
    i64 tiles;
    u32 *sums;   // of each tile; then of all before it
    i64 *found;  // of all
};
extern "C" __global__ void __launch_bounds__(256) select_scan(const scan_arguments a) {
    take_turn();
    __shared__ u32 scratch[8];
    u32 carry = 0;
    for (i64 first = 0; first < a.tiles; first += TILE) {
        const i64 own = first + threadIdx.x * EACH;
        u32 sums[EACH], mine = 0, total;
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            sums[k] = own + k < a.tiles ? a.sums[own + k] : 0;
            mine += sums[k];
        }
        u32 before = carry + rank_in_block(mine, scratch, &total);
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            if (own + k < a.tiles) {
                a.sums[own + k] = before;
            }
            before += sums[k];
        }
        carry += total;
    }
    if (threadIdx.x == 0) {
        *a.found = carry;
    }
}

// What a walk goes over.
struct walk_arguments {
    i64 count;
    const T *x;
    const u32 *sums;  // NULL: there is one tile, and `found` is to be written
    i64 *found;
};

// Which of its EACH elements from `first` on a thread picks, one bit each; *rank: how many stand
// before them; *found: all of them.
__device__ __forceinline__ u32 pick(const walk_arguments &a, i64 tile, i64 first, u32 *scratch,
                                    u32 *rank, i64 *found) {
    u32 picked = 0, total;
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        picked |= first + k < a.count && convert<bool>(a.x[first + k]) ? 1u << k : 0u;
    }
    *rank = rank_in_block(__popc(picked), scratch, &total);
    if (a.sums != 0) {
        *rank += a.sums[tile];
        *found = *a.found;
    } else {
        *found = total;
        if (threadIdx.x == 0) {
            *a.found = total;
        }
    }
    return picked;
}

struct non_zero_arguments {
    walk_arguments walk;
    i64 *y;  // [RANK, found]
    i64 extent[RANK];
};
extern "C" __global__ void __launch_bounds__(256) select_non_zero(const non_zero_arguments a) {
    take_turn();
    __shared__ u32 scratch[8];
    for (i64 tile = blockIdx.x; tile * TILE < a.walk.count; tile += gridDim.x) {
        const i64 first = tile * TILE + threadIdx.x * EACH;
        u32 rank;
        i64 found;
        const u32 picked = pick(a.walk, tile, first, scratch, &rank, &found);
        for (int k = 0; k < EACH; k++) {
            if ((picked >> k & 1u) == 0) {
                continue;
            }
            u32 rest = (u32)(first + k);
#pragma unroll
            for (int d = RANK - 1; d >= 0; d--) {
                const u32 extent = (u32)a.extent[d];
                a.y[d * found + rank] = rest % extent;
                rest /= extent;
            }
            rank++;
        }
    }
}

struct places_arguments {
    walk_arguments walk;
    u32 *places;  // [found]: where each picked one stands
    u32 *ranks;   // [count]: the latest picked one up to each element; may be NULL
};
extern "C" __global__ void __launch_bounds__(256) select_places(const places_arguments a) {
    take_turn();
    __shared__ u32 scratch[8];
    for (i64 tile = blockIdx.x; tile * TILE < a.walk.count; tile += gridDim.x) {
        const i64 first = tile * TILE + threadIdx.x * EACH;
        u32 rank;
        i64 found;
        const u32 picked = pick(a.walk, tile, first, scratch, &rank, &found);
        for (int k = 0; k < EACH && first + k < a.walk.count; k++) {
            if ((picked >> k & 1u) != 0) {
                a.places[rank++] = (u32)(first + k);
            }
            if (a.ranks != 0) {
                a.ranks[first + k] = rank - 1;
            }
        }
    }
}

// y[o][g][i] = x[o][places[g]][i]
struct rows_arguments {
    i64 outer, extent, inner;  // of x, in words
    const W *x;
    const u32 *places;
    const i64 *found;
    W *y;
};
extern "C" __global__ void __launch_bounds__(256) select_rows(const rows_arguments a) {
    take_turn();
    const i64 found = *a.found, count = a.outer * found * a.inner;
    for (i64 n = (i64)blockIdx.x * 256 + threadIdx.x; n < count; n += (i64)gridDim.x * 256) {
        i64 i, g, o;
        if (count < 0x7fffffff) {
            const u32 row = (u32)n / (u32)a.inner;
            i = (u32)n % (u32)a.inner;
            g = row % (u32)found;
            o = row / (u32)found;
        } else {
            i = n % a.inner;
            g = n / a.inner % found;
            o = n / a.inner / found;
        }
        a.y[n] = a.x[(o * a.extent + a.places[g]) * a.inner + i];
    }
}

// bits_rows.cu - products of a few rows of f16 with weights of 4 bits on tensor cores, without a copy of them:
// weights are the left operand, so that no row of it is empty, and go from memory into registers.
//
// A lane reads 16 bytes of a column of b, 32 numbers along k, and makes pairs of f16 out of them: numbers j and
// j + 4 of a word, whose bits stand where 1024 + number has them. What stands where along k is one for the sum, as
// long as rows of a stand likewise, so their halves are put together in the same pairs. The warps of a block have a
// part of k each, in turn; their sums are joined in a fixed order.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"
#include "rondo_mma.cuh"

typedef f16 T;
#include "rondo_bits.cuh"

#ifndef ROW_TILES
#define ROW_TILES 1  // of 8 rows of a
#endif
#ifndef COLUMN_TILES
#define COLUMN_TILES 1  // of 16 columns of b
#endif
#ifndef BLOCK
#define BLOCK 32  // numbers that share a scale; a multiple of 32
#endif

enum {
    WARPS = 8,
    DEPTH = 128,  // numbers along k that a warp reads of each column at once
    AT_ONCE = COLUMN_TILES > 2 ? 1 : 2,
    TILES = ROW_TILES * COLUMN_TILES,
};

struct held_weights {
    pack<u32, 4> words;
    u32 scale, zero;  // a pair each; of the zero point, 1024 more
};

__device__ __forceinline__ held_weights fetch_weights(const bits_arguments &p, i64 n, i64 k) {
    held_weights held = {};
    if (k < p.k) {
        n = n < p.n ? n : p.n - 1;
        const i64 block = n * p.blocks + k / BLOCK;
        held.words = *(const pack<u32, 4> *)(p.b + n * p.row_bytes + k / 2);
        held.scale = p.scales[block].bits * 0x10001u;
        held.zero = (0x6400u + (u32)get_zero(p, n, k / BLOCK)) * 0x10001u;
    }
    return held;
}

// What the warp reads first comes as far as the second-level cache while the kernel before still runs.
__device__ __forceinline__ void ask_first(const bits_arguments &p, i64 n0, i64 first) {
#pragma unroll
    for (int i = 0; i < AT_ONCE * COLUMN_TILES * 2; i++) {
        const i64 n = n0 + i % (COLUMN_TILES * 2) * 8;
        const i64 k = first + i / (COLUMN_TILES * 2) * WARPS * DEPTH;
        if ((threadIdx.x & 3) == 0 && n < p.n && k < p.k) {
            asm volatile("prefetch.global.L2 [%0];" ::"l"(p.b + n * p.row_bytes + k / 2));
        }
    }
}

// Numbers j and j + 4 of the word.
__device__ __forceinline__ u32 make_pair(const held_weights &held, int word, int j) {
    const u32 pair = (held.words.value[word] >> (4 * j) & 0x000f000fu) | 0x64006400u;
    u32 centred, scaled;
    asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(centred) : "r"(pair), "r"(held.zero));
    asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(scaled) : "r"(centred), "r"(held.scale));
    return scaled;
}

extern "C" __global__ void __launch_bounds__(WARPS * 32) bits_rows(const bits_arguments p) {
    release_successor();
    __shared__ float sums[WARPS][TILES * 128];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, place = lane & 3;
    const i64 n0 = (i64)blockIdx.x * 16 * COLUMN_TILES + (lane >> 2);
    const i64 m0 = (i64)blockIdx.y * 8 * ROW_TILES + (lane >> 2);
    float sum[COLUMN_TILES][ROW_TILES][4] = {};
    ask_first(p, n0, warp * DEPTH);
    await_predecessors();
#pragma unroll 1
    for (i64 first = warp * DEPTH; first < p.k; first += WARPS * DEPTH * AT_ONCE) {
        held_weights held[AT_ONCE][COLUMN_TILES][2];
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
#pragma unroll
            for (int c = 0; c < COLUMN_TILES * 2; c++) {
                held[u][c / 2][c % 2] =
                    fetch_weights(p, n0 + c * 8, first + u * WARPS * DEPTH + place * 32);
            }
        }
#pragma unroll
        for (int step = 0; step < AT_ONCE * 4; step++) {
            const int u = step / 4, word = step % 4;
            const i64 k = first + u * WARPS * DEPTH + place * 32 + word * 8;
            u32 rows[ROW_TILES][4];  // in pairs as those of weights
#pragma unroll
            for (int i = 0; i < ROW_TILES; i++) {
                pack<u32, 4> row = {};
                if (m0 + i * 8 < p.m && k < p.k) {
                    row = *(const pack<u32, 4> *)(p.a + (m0 + i * 8) * p.k + k);
                }
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    rows[i][j] = __byte_perm(row.value[j / 2], row.value[j / 2 + 2],
                                             j % 2 == 0 ? 0x5410 : 0x7632);
                }
            }
#pragma unroll
            for (int c = 0; c < COLUMN_TILES; c++) {
#pragma unroll
                for (int j = 0; j < 4; j += 2) {
                    const u32 weights[4] = {
                        make_pair(held[u][c][0], word, j), make_pair(held[u][c][1], word, j),
                        make_pair(held[u][c][0], word, j + 1), make_pair(held[u][c][1], word, j + 1)};
#pragma unroll
                    for (int i = 0; i < ROW_TILES; i++) {
                        const u32 pairs[2] = {rows[i][j], rows[i][j + 1]};
                        mma_f16(sum[c][i], weights, pairs);
                    }
                }
            }
        }
    }
#pragma unroll
    for (int s = 0; s < TILES * 4; s++) {
        sums[warp][s * 32 + lane] = sum[s / 4 / ROW_TILES][s / 4 % ROW_TILES][s % 4];
    }
    __syncthreads();
    for (int at = threadIdx.x; at < TILES * 128; at += WARPS * 32) {
        const int s = at / 32, tile = s / 4;
        const i64 n = n0 + tile / ROW_TILES * 16 + s % 4 / 2 * 8;
        const i64 m = (i64)blockIdx.y * 8 * ROW_TILES + tile % ROW_TILES * 8 + place * 2 + s % 2;
        float value = 0.0f;
#pragma unroll
        for (int w = 0; w < WARPS; w++) {
            value += sums[w][at];
        }
        if (n < p.n && m < p.m) {
            value += p.bias != 0 ? convert<float>(p.bias[n]) : 0.0f;
            p.y[m * p.n + n] = convert<T>(value);
        }
    }
}

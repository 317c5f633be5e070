// bits_tensor.cu - products of f16 with weights of 2, 4 or 8 bits on tensor cores. A tile of weights becomes
// f16 in shared memory; the next one is fetched, as it is stored, while this one is multiplied. Where tiles
// are few, SPLIT blocks of a cluster have a part of k each; each of the first finishes a share of the sums,
// which the others send into its memory. The order of additions is fixed.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"
#include "rondo_cluster.cuh"
#include "rondo_mma.cuh"

typedef f16 T;
#include "rondo_bits.cuh"

#ifndef TILE_M
#define TILE_M 64  // rows of a block: 16 or 64
#endif
#ifndef BLOCK
#define BLOCK 32  // numbers that share a scale
#endif
#ifndef SPLIT
#define SPLIT 1  // blocks of a cluster that share a tile, each with a part of k
#endif

// 4 warps: of 16 rows each has 16 of 64 columns; of 64 rows two by two have 32 rows and 32 columns.
enum {
    TILE_N = 64,
    TILE_K = 64,
    PITCH = TILE_K + 8,
    TENSOR_THREADS = 128,
    WARP_M = TILE_M == 16 ? 16 : 32,
    WARP_N = TILE_M == 16 ? 16 : 32,
    WARPS_M = TILE_M / WARP_M,
    M_BLOCKS = WARP_M / 16,
    N_PAIRS = WARP_N / 16,
    GROUP_WORDS = 16 * BITS / 32,  // of 16 numbers, which are of one block
    TILE_HALVES = (TILE_M + TILE_N) * PITCH,
    SUMS = M_BLOCKS * 2 * N_PAIRS * 4,  // of a thread
    FINISHERS = SPLIT < SUMS / 2 ? SPLIT : SUMS / 2,
    SHARE = SUMS / FINISHERS,
};

// The 32 numbers of a thread: half a row of the tile of weights.
struct held_weights {
    pack<u32, GROUP_WORDS> words[2];
    float scale[2], zero[2];
};

__device__ __forceinline__ void fetch_weights(const bits_arguments &p, i64 n0, i64 k0,
                                              held_weights &held) {
    const i64 n = n0 + (threadIdx.x >> 1), k = k0 + (threadIdx.x & 1) * 32;
#pragma unroll
    for (int g = 0; g < 2; g++) {
        const i64 at = k + g * 16;
        held.scale[g] = held.zero[g] = 0.0f;
        held.words[g] = pack<u32, GROUP_WORDS>();
        if (n < p.n && at < p.blocks * p.block) {
            const i64 block = at / BLOCK;
            held.words[g] =
                *(const pack<u32, GROUP_WORDS> *)(p.b + n * p.row_bytes + at / PARTS);
            held.scale[g] = convert<float>(p.scales[n * p.blocks + block]);
            held.zero[g] = get_zero(p, n, block);
        }
    }
}

__device__ __forceinline__ void store_weights(u16 *tile, const held_weights &held) {
    u16 *row = tile + (threadIdx.x >> 1) * PITCH + (threadIdx.x & 1) * 32;
#pragma unroll
    for (int g = 0; g < 2; g++) {
        pack<u32, 4> pairs[2];
#pragma unroll
        for (int i = 0; i < 16; i += 2) {
            float pair[2];
#pragma unroll
            for (int v = 0; v < 2; v++) {
                const u32 word = held.words[g].value[(i + v) / (4 * PARTS)];
                const u32 number = word >> ((i + v) % (4 * PARTS) * BITS) & MASK;
                pair[v] = centre_number(number, held.zero[g]) * held.scale[g];
            }
            pairs[i / 8].value[i / 2 % 4] = pack_halves(pair[0], pair[1]);
        }
        pack<u32, 4> *to = (pack<u32, 4> *)(row + g * 16);
        to[0] = pairs[0];
        to[1] = pairs[1];
    }
}

__device__ __forceinline__ void copy_rows(const bits_arguments &p, u16 *tile, i64 m0, i64 k0) {
    enum { PIECES = TILE_K / 8 };
#pragma unroll
    for (int i = 0; i < TILE_M * PIECES / TENSOR_THREADS; i++) {
        const int at = threadIdx.x + i * TENSOR_THREADS, row = at / PIECES, piece = at % PIECES * 8;
        const bool is_there = m0 + row < p.m && k0 + piece < p.k;  // k is a multiple of 8
        copy_16(tile + row * PITCH + piece,
                is_there ? p.a + (m0 + row) * p.k + k0 + piece : p.a, is_there);
    }
}

__device__ __forceinline__ void multiply_tiles(const u16 *a, const u16 *b,
                                               float (&sum)[M_BLOCKS][2 * N_PAIRS][4]) {
    const int lane = threadIdx.x & 31;
#pragma unroll
    for (int s = 0; s < TILE_K / 16; s++) {
        u32 of_a[M_BLOCKS][4];
#pragma unroll
        for (int i = 0; i < M_BLOCKS; i++) {
            load_blocks(of_a[i], a + (i * 16 + (lane & 15)) * PITCH + s * 16 + (lane >> 4) * 8);
        }
#pragma unroll
        for (int j = 0; j < N_PAIRS; j++) {
            u32 of_b[4];
            load_blocks(of_b, b + (j * 16 + (lane >> 4) * 8 + (lane & 7)) * PITCH + s * 16 +
                                  (lane >> 3 & 1) * 8);
            const u32 first[2] = {of_b[0], of_b[1]}, second[2] = {of_b[2], of_b[3]};
#pragma unroll
            for (int i = 0; i < M_BLOCKS; i++) {
                mma_f16(sum[i][2 * j], of_a[i], first);
                mma_f16(sum[i][2 * j + 1], of_a[i], second);
            }
        }
    }
}

#if SPLIT > 1
// Makes the share of the sums that this block finishes those of all parts; `received` is
// [SPLIT][SHARE / 2][TENSOR_THREADS][2].
__device__ __forceinline__ void join_parts(float *received, int part, float *sums) {
    cluster_meet();  // all are through with their tiles, which lie there
#pragma unroll
    for (int i = 0; i < SUMS; i += 2) {
        const int at = (part * SHARE + i % SHARE) * TENSOR_THREADS + 2 * threadIdx.x;
        store_remote(address_in_block(shared_address(received + at), i / SHARE), sums[i], sums[i + 1]);
    }
    cluster_meet();
#pragma unroll
    for (int i = 0; i < SUMS; i++) {
        float sum = 0.0f;
        if (i / SHARE == part) {
#pragma unroll
            for (int s = 0; s < SPLIT; s++) {
                sum += received[(s * SHARE + i % SHARE / 2 * 2) * TENSOR_THREADS + 2 * threadIdx.x +
                                i % 2];
            }
        }
        sums[i] = sum;
    }
}
#endif

// The grid is (column tiles times SPLIT, row tiles).
extern "C" __global__ void
#if SPLIT > 1
__cluster_dims__(SPLIT, 1, 1)
#endif
__launch_bounds__(TENSOR_THREADS) bits_tensor(const bits_arguments p) {
    release_successor();
    extern __shared__ __align__(16) u8 memory[];
    u16 *const tiles[2] = {(u16 *)memory, (u16 *)memory + TILE_HALVES};
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    const int row = warp % WARPS_M * WARP_M, column = warp / WARPS_M * WARP_N;
    const int part = blockIdx.x % SPLIT;
    const i64 m0 = (i64)blockIdx.y * TILE_M, n0 = (i64)(blockIdx.x / SPLIT) * TILE_N;
    const i64 steps = (p.k + TILE_K - 1) / TILE_K;
    const i64 first = steps * part / SPLIT * TILE_K, end = steps * (part + 1) / SPLIT * TILE_K;
    if (blockIdx.y == 0) {
        ask_early(p, n0, TILE_N, part * TENSOR_THREADS + threadIdx.x, SPLIT * TENSOR_THREADS);
    }
    await_predecessors();
    float sum[M_BLOCKS][2 * N_PAIRS][4] = {};
    held_weights held;
    int stage = 0;
    copy_rows(p, tiles[0], m0, first);
    fetch_weights(p, n0, first, held);
    store_weights(tiles[0] + TILE_M * PITCH, held);
    wait_copies();
    __syncthreads();
    for (i64 k = first + TILE_K;; k += TILE_K) {
        const bool goes_on = k < end;
        if (goes_on) {  // while the tiles at hand are multiplied
            copy_rows(p, tiles[stage ^ 1], m0, k);
            fetch_weights(p, n0, k, held);
        }
        multiply_tiles(tiles[stage] + row * PITCH, tiles[stage] + (TILE_M + column) * PITCH, sum);
        if (!goes_on) {
            break;
        }
        stage ^= 1;
        store_weights(tiles[stage] + TILE_M * PITCH, held);
        wait_copies();
        __syncthreads();
    }
#if SPLIT > 1
    join_parts((float *)memory, part, &sum[0][0][0]);
#endif
#pragma unroll
    for (int i = 0; i < SUMS; i++) {
        const int block = i / (2 * N_PAIRS * 4), j = i / 4 % (2 * N_PAIRS), e = i % 4;
        const i64 m = m0 + row + block * 16 + (lane >> 2) + (e >> 1) * 8;
        const i64 n = n0 + column + j * 8 + (lane & 3) * 2 + (e & 1);
        if (m < p.m && n < p.n && i / SHARE == part) {
            const float bias = p.bias != 0 ? convert<float>(p.bias[n]) : 0.0f;
            p.y[m * p.n + n] = convert<T>(sum[block][j][e] + bias);
        }
    }
}

// attention_tensor.cu - attention as in attention.cu, in f16 on tensor cores. A block has four warps. Each
// keeps 16 rows of q in registers; KEY_WARPS of them have the same rows and share the keys of a tile.
// The scores of a warp are the left operand of the second product without leaving their registers.
//
//   memory   k [tile keys][width + 8], v [v_width][tile keys + 8]: the 8 halves behind each row let the
//            32 lanes of a warp read from as many banks
//
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"
#include "rondo_mma.cuh"

typedef f16 T;
#ifndef WIDTH
#define WIDTH 64  // of q and k
#endif
#ifndef V_WIDTH
#define V_WIDTH 64
#endif
#ifndef KEY_WARPS
#define KEY_WARPS 1  // 1, 2 or 4
#endif
#ifndef KEYS
#define KEYS 32  // of a warp and tile; a multiple of 16
#endif
#ifndef K_IS_WIDE
#define K_IS_WIDE 0  // rows of k are whole 16 bytes
#endif
#ifndef V_IS_WIDE
#define V_IS_WIDE 0
#endif

#include "rondo_attention.cuh"

enum {
    THREADS = 128,
    STEPS = (WIDTH + 15) / 16,
    K_PITCH = STEPS * 16 + 8,
    V_BLOCKS = (V_WIDTH + 7) / 8,
    TILE = KEYS * KEY_WARPS,
    V_PITCH = TILE + 8,
    BLOCK_ROWS = 64 / KEY_WARPS,
    TILE_BYTES = (TILE * K_PITCH + V_BLOCKS * 8 * V_PITCH) * 2,
    MERGE_BYTES = KEY_WARPS > 1 ? 64 * (V_WIDTH + 2) * 4 : 0,
    BYTES = TILE_BYTES > MERGE_BYTES ? TILE_BYTES : MERGE_BYTES,
};

__device__ __forceinline__ u32 get_pair(const u16 *at) {
    return *(const u32 *)at;
}

// Keys `first` on, zeros behind the last and in the columns that fill up a step.
__device__ __forceinline__ void load_k(u16 *tile, const f16 *k, i64 first, i64 end,
                                       const strides &s) {
    if (K_IS_WIDE) {
        for (int at = threadIdx.x; at < TILE * (STEPS * 2); at += THREADS) {
            const int row = at / (STEPS * 2), column = at % (STEPS * 2) * 8;
            uint4 value = {0u, 0u, 0u, 0u};
            if (first + row < end && column < WIDTH) {
                value = *(const uint4 *)(k + (first + row) * s.row + column);
            }
            *(uint4 *)(tile + row * K_PITCH + column) = value;
        }
        return;
    }
    const bool is_turned = s.column != 1 && s.row == 1;
    for (int at = threadIdx.x; at < TILE * STEPS * 16; at += THREADS) {
        const int row = is_turned ? at % TILE : at / (STEPS * 16);
        const int column = is_turned ? at / TILE : at % (STEPS * 16);
        tile[row * K_PITCH + column] = first + row < end && column < WIDTH
                                           ? k[(first + row) * s.row + column * s.column].bits
                                           : (u16)0;
    }
}

// The same of v, turned: neighbouring threads take neighbouring keys.
__device__ __forceinline__ void load_v(u16 *tile, const f16 *v, i64 first, i64 end,
                                       const strides &s) {
    if (V_IS_WIDE) {
        for (int at = threadIdx.x; at < TILE * V_BLOCKS; at += THREADS) {
            const int row = at % TILE, column = at / TILE * 8;
            pack<u16, 8> value = {{0, 0, 0, 0, 0, 0, 0, 0}};
            if (first + row < end) {
                value = *(const pack<u16, 8> *)(v + (first + row) * s.row + column);
            }
#pragma unroll
            for (int i = 0; i < 8; i++) {
                tile[(column + i) * V_PITCH + row] = value.value[i];
            }
        }
        return;
    }
    for (int at = threadIdx.x; at < TILE * V_BLOCKS * 8; at += THREADS) {
        const int row = at % TILE, column = at / TILE;
        tile[column * V_PITCH + row] = first + row < end && column < V_WIDTH
                                           ? v[(first + row) * s.row + column * s.column].bits
                                           : (u16)0;
    }
}

__device__ __forceinline__ u32 load_q(const f16 *q, i64 row, int column, i64 rows,
                                      const strides &s) {
    u32 pair = 0;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        if (row < rows && column + i < WIDTH) {
            pair |= (u32)q[row * s.row + (column + i) * s.column].bits << (16 * i);
        }
    }
    return pair;
}

// Over the four lanes of a row.
__device__ __forceinline__ float row_max(float x) {
    x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}
__device__ __forceinline__ float row_sum(float x) {
    x += __shfl_xor_sync(0xffffffffu, x, 1);
    return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

// The grid is (row tiles, heads, batch).
extern "C" __global__ void __launch_bounds__(128) attention_tensor(const attention_arguments a) {
    take_turn();
    __shared__ uint4 memory[(BYTES + 15) / 16];
    u16 *k_tile = (u16 *)memory, *v_tile = k_tile + TILE * K_PITCH;
    const int warp = threadIdx.x >> 5, g = (threadIdx.x & 31) >> 2, t = threadIdx.x & 3;
    const int slice = warp % KEY_WARPS, row_in_block = warp / KEY_WARPS * 16 + g;
    const i64 head = blockIdx.y, batch = blockIdx.z;
    const i64 row = (i64)blockIdx.x * BLOCK_ROWS + row_in_block;
    const f16 *q = a.q + find(a.at_q, batch, head, 0), *k = a.k + find(a.at_k, batch, head, 0);
    const f16 *v = a.v + find(a.at_v, batch, head, 0);
    const float scale = (float)a.scale;

    u32 of_q[STEPS][4];
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            of_q[s][i] =
                load_q(q, row + (i & 1) * 8, s * 16 + 2 * t + (i >> 1) * 8, a.m, a.at_q);
        }
    }
    float sums[V_BLOCKS][4], peak[2] = {-infinity(), -infinity()}, total[2] = {0.0f, 0.0f};
#pragma unroll
    for (int j = 0; j < V_BLOCKS; j++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            sums[j][i] = 0.0f;
        }
    }
    for (i64 key = 0; key < a.n; key += TILE) {
        __syncthreads();
        load_k(k_tile, k, key, a.n, a.at_k);
        load_v(v_tile, v, key, a.n, a.at_v);
        __syncthreads();
        float score[KEYS / 8][4];
#pragma unroll
        for (int j = 0; j < KEYS / 8; j++) {
#pragma unroll
            for (int i = 0; i < 4; i++) {
                score[j][i] = 0.0f;
            }
#pragma unroll
            for (int s = 0; s < STEPS; s++) {
                const u16 *from = k_tile + (slice * KEYS + j * 8 + g) * K_PITCH + s * 16 + 2 * t;
                const u32 of_k[2] = {get_pair(from), get_pair(from + 8)};
                mma_f16(score[j], of_q[s], of_k);
            }
        }
        const i64 mine = key + slice * KEYS + 2 * t;
#pragma unroll
        for (int r = 0; r < 2; r++) {  // rows g and g + 8
            float highest = peak[r], added = 0.0f;
#pragma unroll
            for (int at = 0; at < KEYS / 4; at++) {
                float &x = score[at >> 1][r * 2 + (at & 1)];
                const i64 of = mine + (at >> 1) * 8 + (at & 1);
                x *= scale;
                if (a.mask != 0 && row + r * 8 < a.m && of < a.n) {
                    x += half_to_float(
                        a.mask[find(a.at_mask, batch, head, row + r * 8) + of * a.at_mask.column]);
                }
                highest = of < a.n ? fmaxf(highest, x) : highest;
            }
            highest = row_max(highest);
            const float kept = weight_of(peak[r], highest);
#pragma unroll
            for (int at = 0; at < KEYS / 4; at++) {
                float &x = score[at >> 1][r * 2 + (at & 1)];
                x = mine + (at >> 1) * 8 + (at & 1) < a.n ? weight_of(x, highest) : 0.0f;
                added += x;
            }
            peak[r] = highest;
            total[r] = total[r] * kept + row_sum(added);
#pragma unroll
            for (int j = 0; j < V_BLOCKS; j++) {
                sums[j][r * 2] *= kept;
                sums[j][r * 2 + 1] *= kept;
            }
        }
#pragma unroll
        for (int s = 0; s < KEYS / 16; s++) {
            const float(&x)[4] = score[2 * s], (&z)[4] = score[2 * s + 1];
            const u32 weights[4] = {pack_halves(x[0], x[1]), pack_halves(x[2], x[3]),
                                    pack_halves(z[0], z[1]), pack_halves(z[2], z[3])};
#pragma unroll
            for (int j = 0; j < V_BLOCKS; j++) {
                const u16 *from = v_tile + (j * 8 + g) * V_PITCH + slice * KEYS + s * 16 + 2 * t;
                const u32 of_v[2] = {get_pair(from), get_pair(from + 8)};
                mma_f16(sums[j], weights, of_v);
            }
        }
    }
    if (KEY_WARPS == 1) {
#pragma unroll
        for (int at = 0; at < V_BLOCKS * 4; at++) {
            const int r = at >> 1 & 1, column = (at >> 2) * 8 + 2 * t + (at & 1);
            if (row + r * 8 < a.m && column < V_WIDTH) {
                a.y[find(a.at_y, batch, head, row + r * 8) + column] =
                    half_from_float(sums[at >> 2][at & 3] / total[r]);
            }
        }
        return;
    }
    // The warps of the same rows put their parts together: [KEY_WARPS][BLOCK_ROWS][V_WIDTH + 2].
    float *parts = (float *)memory;
    __syncthreads();
#pragma unroll
    for (int r = 0; r < 2; r++) {
        float *part = parts + (slice * BLOCK_ROWS + row_in_block + r * 8) * (V_WIDTH + 2);
        if (t == 0) {
            part[V_WIDTH] = peak[r];
            part[V_WIDTH + 1] = total[r];
        }
#pragma unroll
        for (int at = 0; at < V_BLOCKS * 2; at++) {
            const int column = (at >> 1) * 8 + 2 * t + (at & 1);
            if (column < V_WIDTH) {
                part[column] = sums[at >> 1][r * 2 + (at & 1)];
            }
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < BLOCK_ROWS * V_WIDTH; i += THREADS) {
        const int line = i / V_WIDTH, column = i % V_WIDTH;
        const i64 to = (i64)blockIdx.x * BLOCK_ROWS + line;
        float highest = -infinity(), sum = 0.0f, all = 0.0f;
        for (int s = 0; s < KEY_WARPS; s++) {
            highest =
                fmaxf(highest, parts[(s * BLOCK_ROWS + line) * (V_WIDTH + 2) + V_WIDTH]);
        }
        for (int s = 0; s < KEY_WARPS; s++) {
            const float *part = parts + (s * BLOCK_ROWS + line) * (V_WIDTH + 2);
            const float weight = weight_of(part[V_WIDTH], highest);
            sum += part[column] * weight;
            all += part[V_WIDTH + 1] * weight;
        }
        if (to < a.m) {
            a.y[find(a.at_y, batch, head, to) + column] = half_from_float(sum / all);
        }
    }
}

// attention_gradient_tensor.cu - the kernels of attention_gradient.cu in f16 on tensor cores, 64 rows or keys
// a block: a warp keeps 16 of them as left operands in registers, and TILE of the others lie in shared
// memory. Scores are the left operand of the second product without leaving their registers. Rows look
// at their keys twice.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"
#include "rondo_activation.cuh"
#include "rondo_mma.cuh"
#include "rondo_attention_gradient.cuh"

#define ROWS 64
#define TILE (WIDTH > 64 ? 32 : 64)
#define STEPS (WIDTH / 16)
#define BLOCKS (TILE / 8)
#define PITCH (WIDTH + 8)

// Rows `first` on; zeros behind the last.
__device__ __forceinline__ void load_tile(u16 *tile, const f16 *from, i64 pitch, int first, int end) {
    for (int at = threadIdx.x; at < TILE * (WIDTH / 8); at += 128) {
        const int row = at / (WIDTH / 8), column = at % (WIDTH / 8) * 8;
        const bool is_there = first + row < end;
        copy_16(tile + row * PITCH + column, is_there ? from + (first + row) * pitch + column : from,
                is_there);
    }
}
__device__ __forceinline__ void load_left(u32 (&out)[STEPS][4], const f16 *from, i64 pitch, int row,
                                          int end) {
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int at = row + (i & 1) * 8, column = s * 16 + 2 * (threadIdx.x & 3) + (i >> 1) * 8;
            out[s][i] = at < end ? *(const u32 *)(from + at * pitch + column) : 0u;
        }
    }
}
// sum = left tile'
__device__ __forceinline__ void multiply(float (&sum)[BLOCKS][4], const u32 (&left)[STEPS][4],
                                         const u16 *tile) {
    const int lane = threadIdx.x & 31;
    const u16 *from = tile + ((lane >> 4) * 8 + (lane & 7)) * PITCH + (lane >> 3 & 1) * 8;
#pragma unroll
    for (int j = 0; j < BLOCKS; j += 2) {
#pragma unroll
        for (int e = 0; e < 4; e++) {
            sum[j][e] = sum[j + 1][e] = 0.0f;
        }
#pragma unroll
        for (int s = 0; s < STEPS; s++) {
            u32 block[4];
            load_blocks(block, from + j * 8 * PITCH + s * 16);
            const u32 first[2] = {block[0], block[1]}, second[2] = {block[2], block[3]};
            mma_f16(sum[j], left[s], first);
            mma_f16(sum[j + 1], left[s], second);
        }
    }
}
// sum += left tile
__device__ __forceinline__ void add_product(float (&sum)[STEPS * 2][4], const float (&left)[BLOCKS][4],
                                            const u16 *tile) {
    const int lane = threadIdx.x & 31;
    const u16 *from = tile + (lane & 15) * PITCH + (lane >> 4) * 8;
#pragma unroll
    for (int s = 0; s < TILE / 16; s++) {
        const float(&x)[4] = left[2 * s], (&z)[4] = left[2 * s + 1];
        const u32 four[4] = {pack_halves(x[0], x[1]), pack_halves(x[2], x[3]),
                             pack_halves(z[0], z[1]), pack_halves(z[2], z[3])};
#pragma unroll
        for (int j = 0; j < STEPS; j++) {
            u32 block[4];
            load_blocks_turned(block, from + s * 16 * PITCH + j * 16);
            const u32 first[2] = {block[0], block[1]}, second[2] = {block[2], block[3]};
            mma_f16(sum[2 * j], four, first);
            mma_f16(sum[2 * j + 1], four, second);
        }
    }
}
__device__ __forceinline__ void write(f16 *to, i64 pitch, int row, int end,
                                      const float (&sum)[STEPS * 2][4], float factor) {
#pragma unroll
    for (int j = 0; j < STEPS * 2; j++) {
#pragma unroll
        for (int r = 0; r < 2; r++) {
            if (row + r * 8 < end) {
                *(u32 *)(to + (row + r * 8) * pitch + j * 8 + 2 * (threadIdx.x & 3)) =
                    pack_halves(sum[j][r * 2] * factor, sum[j][r * 2 + 1] * factor);
            }
        }
    }
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
// exp; what is made of it becomes halves, for which the instruction is precise enough.
__device__ __forceinline__ float power(float x) {
    return power_of_two(x * 1.4426950408889634f);
}

extern "C" __global__ void __launch_bounds__(128) gradient_rows(const gradient_arguments a) {
    take_turn();
    __shared__ uint4 k_memory[TILE * PITCH / 8];
    __shared__ uint4 v_memory[TILE * PITCH / 8];
    u16 *const k_tile = (u16 *)k_memory, *const v_tile = (u16 *)v_memory;
    const view w(a);
    const int lane = threadIdx.x & 31, t = lane & 3, m = (int)a.m, n = (int)a.n;
    const int row = (int)blockIdx.x * ROWS + (threadIdx.x >> 5) * 16 + (lane >> 2);
    const int last = ((int)blockIdx.x + 1) * ROWS, keys = CAUSAL && last < n ? last : n;
    const float scale = (float)a.scale;
    const int seen[2] = {CAUSAL && row + 1 < n ? row + 1 : n, CAUSAL && row + 9 < n ? row + 9 : n};
    u32 of_q[STEPS][4], of_dy[STEPS][4];
    load_left(of_q, w.q, w.pitch, row, m);
    load_left(of_dy, w.dy, w.v_pitch, row, m);
    float peak[2] = {-infinity(), -infinity()}, total[2] = {0.0f, 0.0f}, mean[2] = {0.0f, 0.0f};
    float sum[STEPS * 2][4] = {};
    for (int turn = 0; turn < 2; turn++) {
        for (int key = 0; key < keys; key += TILE) {
            __syncthreads();
            load_tile(k_tile, w.k, w.pitch, key, n);
            load_tile(v_tile, w.v, w.v_pitch, key, n);
            wait_copies();
            __syncthreads();
            float score[BLOCKS][4], change[BLOCKS][4];
            multiply(score, of_q, k_tile);
            multiply(change, of_dy, v_tile);
            float highest[2] = {peak[0], peak[1]};
#pragma unroll
            for (int at = 0; at < BLOCKS * 4; at++) {
                const int r = at >> 1 & 1, here = key + (at >> 2) * 8 + 2 * t + (at & 1);
                float &x = score[at >> 2][at & 3];
                x = here < seen[r] ? x * scale : -infinity();
                highest[r] = fmaxf(highest[r], x);
            }
            if (turn == 1) {
#pragma unroll
                for (int at = 0; at < BLOCKS * 4; at++) {
                    const int r = at >> 1 & 1;
                    float &x = score[at >> 2][at & 3];
                    const float p = power(x - peak[r]);
                    x = p == 0.0f ? 0.0f : p * (change[at >> 2][at & 3] - mean[r]);
                }
                add_product(sum, score, k_tile);
                continue;
            }
#pragma unroll
            for (int r = 0; r < 2; r++) {
                highest[r] = row_max(highest[r]);
                const float base = highest[r] == -infinity() ? 0.0f : highest[r];
                const float kept = power(peak[r] - base);
                float one = 0.0f, two = 0.0f;
#pragma unroll
                for (int at = 0; at < BLOCKS * 2; at++) {
                    const int j = at >> 1, e = r * 2 + (at & 1);
                    const float p = power(score[j][e] - base);
                    one += p;
                    two = fmaf(p, p == 0.0f ? 0.0f : change[j][e], two);
                }
                peak[r] = highest[r];
                total[r] = total[r] * kept + row_sum(one);
                mean[r] = mean[r] * kept + row_sum(two);
            }
        }
#pragma unroll
        for (int r = 0; r < 2 && turn == 0; r++) {  // from now on the logarithm of the sum
            peak[r] += logf(total[r]);
            mean[r] /= total[r];
            if (t == 0 && row + r * 8 < m) {
                w.rows[row + r * 8] = make_float2(peak[r], mean[r]);
            }
        }
        if (a.dq == 0) {
            return;
        }
    }
    write(a.dq + w.at_q, a.out_pitch, row, m, sum, scale);
}

extern "C" __global__ void __launch_bounds__(128) gradient_keys(const gradient_arguments a) {
    take_turn();
    __shared__ uint4 q_memory[TILE * PITCH / 8];
    __shared__ uint4 dy_memory[TILE * PITCH / 8];
    u16 *const q_tile = (u16 *)q_memory, *const dy_tile = (u16 *)dy_memory;
    __shared__ float2 held[TILE];
    const view w(a);
    const int lane = threadIdx.x & 31, t = lane & 3, m = (int)a.m, n = (int)a.n;
    const int key = (int)blockIdx.x * ROWS + (threadIdx.x >> 5) * 16 + (lane >> 2);
    const float scale = (float)a.scale;
    u32 of_k[STEPS][4], of_v[STEPS][4];
    load_left(of_k, w.k, w.pitch, key, n);
    load_left(of_v, w.v, w.v_pitch, key, n);
    float of_dk[STEPS * 2][4] = {}, of_dv[STEPS * 2][4] = {};
    for (int row = CAUSAL ? (int)blockIdx.x * ROWS : 0; row < m; row += TILE) {
        __syncthreads();
        load_tile(q_tile, w.q, w.pitch, row, m);
        load_tile(dy_tile, w.dy, w.v_pitch, row, m);
        if (threadIdx.x < TILE && row + (int)threadIdx.x < m) {
            held[threadIdx.x] = w.rows[row + (int)threadIdx.x];
        }
        wait_copies();
        __syncthreads();
        float score[BLOCKS][4], change[BLOCKS][4];
        multiply(score, of_k, q_tile);
        multiply(change, of_v, dy_tile);
#pragma unroll
        for (int at = 0; at < BLOCKS * 4; at++) {
            const int place = (at >> 2) * 8 + 2 * t + (at & 1), own = key + (at >> 1 & 1) * 8;
            const bool is_seen = row + place < m && own < n && (!CAUSAL || own <= row + place);
            float &x = score[at >> 2][at & 3], &y = change[at >> 2][at & 3];
            const float2 of = held[is_seen ? place : 0];
            x = is_seen ? power(x * scale - of.x) : 0.0f;
            y = is_seen ? x * (y - of.y) : 0.0f;
        }
        add_product(of_dv, score, dy_tile);
        add_product(of_dk, change, q_tile);
    }
    if (a.dk != 0) {
        write(a.dk + w.at_k, a.out_pitch, key, n, of_dk, scale);
    }
    if (a.dv != 0) {
        write(a.dv + w.at_v, a.out_v_pitch, key, n, of_dv, 1.0f);
    }
}

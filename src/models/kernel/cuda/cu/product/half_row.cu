// half_row.cu - one row of f16 times a matrix whose rows (outputs) are contiguous in k: rondo.RowProduct on tensor cores.
//
// A block makes 16 outputs; its warps have 256 numbers along k each, in turns.
// A lane holds two turns in registers, which it asks for before the kernel's turn: nothing of the row is in them. They
// are the left operand; the row is a column of the right one.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"
#include "rondo_activation.cuh"
#include "rondo_mma.cuh"
#include "rondo_row.cuh"

typedef f16 T;
#ifndef RONDO_Y
#define RONDO_Y T  // or wider
#endif
typedef RONDO_Y Y;
#ifndef TURNS
#define TURNS 1
#endif
#ifndef NORMALISED
#define NORMALISED 0
#endif
#ifndef EARLY
#define EARLY 1  // weights are constants
#endif
#ifndef BLOCKS_BESIDE
#define BLOCKS_BESIDE 1
#endif

#include "rondo_row_arguments.cuh"

enum { WARPS = 8, THREADS = WARPS * 32, SPAN = 256, HELD = TURNS < 2 ? TURNS : 2, OUTPUTS = 16 };

struct held_rows {
    pack<u32, 4> of[2][8];  // rows g and g + 8 of the left operand: 8 numbers of each 32
};

__device__ __forceinline__ const T *find_row(const row_arguments &p, int which) {
    const i64 n = (i64)blockIdx.x * OUTPUTS + ((threadIdx.x & 31) >> 2) + which * 8;
    return p.b + (n < p.n ? n : p.n - 1) * p.k;
}

// What is behind k is zeros: the row is, too.
__device__ __forceinline__ void fetch_rows(const row_arguments &p, int turn, held_rows &held) {
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const T *row = find_row(p, r);
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const i64 k = (i64)(turn * WARPS + (threadIdx.x >> 5)) * SPAN + i * 32 + (threadIdx.x & 3) * 8;
            held.of[r][i] = pack<u32, 4>();
            if (k < p.k) {
                held.of[r][i] = *(const pack<u32, 4> *)(row + k);
            }
        }
    }
}

// What is held later comes as far as the second-level cache.
__device__ __forceinline__ void ask_rows(const row_arguments &p, int turn) {
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const i64 k = (i64)(turn * WARPS + (threadIdx.x >> 5)) * SPAN + (threadIdx.x & 3) * 64;
        if (k < p.k) {
            asm volatile("prefetch.global.L2 [%0];" ::"l"(find_row(p, r) + k));
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_BESIDE) half_row(const row_arguments p) {
    release_successor();
    __shared__ pack<u32, 4> memory[TURNS * THREADS];  // 8 numbers of the row each
    __shared__ float sums[WARPS][16];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    held_rows held[HELD];
    if (!EARLY) {
        await_predecessors();
    }
#pragma unroll
    for (int t = 0; t < HELD; t++) {
        fetch_rows(p, t, held[t]);
    }
#pragma unroll
    for (int t = HELD; t < TURNS; t++) {
        ask_rows(p, t);
    }
    if (EARLY) {
        await_predecessors();
    }
    pack<u32, 4> own[TURNS];
    load_row<THREADS>(p.a, p.k, own);  // before the sums' addends, which nothing waits for so soon
    const i64 n = (i64)blockIdx.x * OUTPUTS + threadIdx.x;
    float addend = 0.0f;
    if (threadIdx.x < OUTPUTS && n < p.n) {
        addend = (p.bias != 0 ? convert<float>(p.bias[n]) : 0.0f) + (p.z != 0 ? convert<float>(p.z[n]) : 0.0f);
    }
    if (NORMALISED) {
        pack<u32, 4> gain[TURNS];
        load_row<THREADS>(p.gain, p.k, gain);
        normalise_row<WARPS>(p.k, (float)p.epsilon, gain, own);
    }
#pragma unroll
    for (int t = 0; t < TURNS; t++) {
        memory[t * THREADS + threadIdx.x] = own[t];
    }
    __syncwarp();  // a warp writes what it reads
    float sum[4][4] = {};
#pragma unroll
    for (int t = 0; t < TURNS; t++) {
#pragma unroll
        for (int i = 0; i < 8; i++) {
            pack<u32, 4> row = pack<u32, 4>();
            if (lane < 4) {
                row = memory[(t * WARPS + warp) * 32 + i * 4 + lane];
            }
            const pack<u32, 4> &x = held[t % HELD].of[0][i], &y = held[t % HELD].of[1][i];
            const u32 left[4] = {x.value[0], y.value[0], x.value[1], y.value[1]};
            const u32 right[4] = {x.value[2], y.value[2], x.value[3], y.value[3]};
            const u32 first[2] = {row.value[0], row.value[1]}, second[2] = {row.value[2], row.value[3]};
            mma_f16(sum[i % 2 * 2], left, first);
            mma_f16(sum[i % 2 * 2 + 1], right, second);
        }
        if (t + HELD < TURNS) {
            fetch_rows(p, t + HELD, held[t % HELD]);
        }
    }
    if (lane % 4 == 0) {
        sums[warp][lane / 4] = (sum[0][0] + sum[1][0]) + (sum[2][0] + sum[3][0]);
        sums[warp][lane / 4 + 8] = (sum[0][2] + sum[1][2]) + (sum[2][2] + sum[3][2]);
    }
    __syncthreads();
    if (threadIdx.x < OUTPUTS && n < p.n) {
        float value = addend;
#pragma unroll
        for (int w = 0; w < WARPS; w++) {
            value += sums[w][threadIdx.x];
        }
        p.y[n] = convert<Y>(activate_by_number(p.activation, value, (float)p.alpha, (float)p.beta));
    }
}

// half_few.cu - two to eight rows of f16 times a matrix whose rows (outputs) are contiguous in k: rondo.RowProduct on
// tensor cores.
//
// A block makes 16 outputs at a time, or 8 and their gates; its warps have 256 numbers along k each, in turns. Weights
// are the left operand; rows are columns of the right one and stay in registers, as long as there is room.
//
// Weights that are one turn of one tile are in registers before the kernel's turn: nothing of the rows is in them. Others
// come through rings in shared memory, as far as those go before the turn, and then a stage as soon as one has been read.
// Each lane has a ring of its own for what it alone reads, so it waits for nobody's copies.
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
#ifndef WHOLE
#define WHOLE 0  // k is that of all turns
#endif
#ifndef STAGES
#define STAGES 0  // of the ring; 0: weights are one tile of one turn
#endif
#ifndef NORMALISED
#define NORMALISED 0  // of two turns at most, which are held
#endif
#ifndef GATED
#define GATED 0
#endif

#include "rondo_row_arguments.cuh"

enum {
    WARPS = 8,
    THREADS = WARPS * 32,
    SPAN = 256,   // numbers along k of a warp
    AT_ONCE = 2,  // pieces of a stage
    PARTS = 8 / AT_ONCE,
    UNITS = TURNS * PARTS,  // stages of a tile
    HELD = NORMALISED ? TURNS : 1,  // turns of the rows; another one is on its way
    OUTPUTS = GATED ? 8 : 16,
    IN_REGISTERS = STAGES == 0,
};

// Where along k this lane's numbers of a step begin.
__device__ __forceinline__ i64 find_place(int turn, int step) {
    return (i64)(turn * WARPS + (threadIdx.x >> 5)) * SPAN + step * 32 + (threadIdx.x & 3) * 8;
}

#include "rondo_few_rows.cuh"

// Where the row of weights begins that is row g, or g + 8, of the left operand.
__device__ __forceinline__ const T *find_weights(const row_arguments &p, i64 tile, int c) {
    const i64 n = tile * OUTPUTS + ((threadIdx.x & 31) >> 2) + (GATED ? 0 : c * 8);
    return (GATED && c == 0 ? p.gate : p.b) + (n < p.n ? n : p.n - 1) * p.k;
}

// Asks for a unit of the block's tile `round`, or of a later one. What is behind k is zeros: the rows are, too.
__device__ __forceinline__ void ask(const row_arguments &p, i64 tiles, int round, int unit, piece *to) {
    const i64 tile = blockIdx.x + (i64)(round + unit / UNITS) * gridDim.x;
    if (tile < tiles) {
#pragma unroll
        for (int c = 0; c < 2; c++) {
            const T *from = find_weights(p, tile, c);
#pragma unroll
            for (int s = 0; s < AT_ONCE; s++) {
                const i64 at = find_place(unit % UNITS / PARTS, unit % PARTS * AT_ONCE + s);
                copy_16((u16 *)(to + (s * 2 + c) * THREADS), from + at, (WHOLE || at < p.k));
            }
        }
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
}

extern "C" __global__ void __launch_bounds__(THREADS, HELD == 1 ? 2 : 1) half_few(const row_arguments p) {
    release_successor();
    extern __shared__ __align__(16) u8 memory[];
    __shared__ float sums[2][WARPS][4][32];
    piece *const ring = (piece *)memory + threadIdx.x;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const i64 tiles = (p.n + OUTPUTS - 1) / OUTPUTS;
    piece held[PIECES][2];
#pragma unroll
    for (int i = 0; IN_REGISTERS && i < PIECES * 2; i++) {
        held[i / 2][i % 2] = piece();
        if (WHOLE || find_place(0, i / 2) < p.k) {
            held[i / 2][i % 2] = *(const piece *)(find_weights(p, blockIdx.x, i % 2) + find_place(0, i / 2));
        }
    }
#pragma unroll
    for (int i = 0; !IN_REGISTERS && i < STAGES; i++) {
        ask(p, tiles, 0, i, ring + i * AT_ONCE * 2 * THREADS);
    }
    await_predecessors();
    piece rows[HELD][PIECES], next[PIECES];
#pragma unroll
    for (int t = 0; t < HELD; t++) {
        load_pieces(p.a, p.m, p.k, t, rows[t]);
    }
    if (NORMALISED) {
        normalise_pieces<WARPS>(p.gain, p.k, (float)p.epsilon, rows);
    }
    int stage = 0;
    for (int round = 0; blockIdx.x + (i64)round * gridDim.x < tiles; round++) {
        // What this thread finishes: of the sums' element c in all warps.
        const int c = threadIdx.x >> 5;
        const i64 n = (blockIdx.x + (i64)round * gridDim.x) * OUTPUTS + (lane >> 2) + (c >= 2 ? 8 : 0);
        const i64 m = (lane & 3) * 2 + c % 2;
        const bool is_there = c < (GATED ? 2 : 4) && n < p.n && m < p.m;
        float addend = 0.0f;
        if (is_there) {
            addend = (p.bias != 0 ? convert<float>(p.bias[n]) : 0.0f) +
                     (p.z != 0 ? convert<float>(p.z[m * p.n + n]) : 0.0f);
        }
        float sum[2][4] = {};
#pragma unroll 1
        for (int turn = 0; turn < TURNS; turn += HELD) {
            if (TURNS > HELD) {
                load_pieces(p.a, p.m, p.k, turn + 1 < TURNS ? turn + 1 : 0, next);
            }
#pragma unroll
            for (int u = 0; u < HELD * PARTS; u++) {
                if (!IN_REGISTERS) {
                    asm volatile("cp.async.wait_group %0;" ::"n"(IN_REGISTERS ? 0 : STAGES - 1) : "memory");
                }
                piece *const own = ring + stage * AT_ONCE * 2 * THREADS;
#pragma unroll
                for (int s = 0; s < AT_ONCE; s++) {
                    const int step = u % PARTS * AT_ONCE + s;
                    const piece x = IN_REGISTERS ? held[step][0] : own[s * 2 * THREADS];
                    const piece y = IN_REGISTERS ? held[step][1] : own[(s * 2 + 1) * THREADS];
                    const piece &row = rows[u / PARTS][step];
                    const u32 left[4] = {x.value[0], y.value[0], x.value[1], y.value[1]};
                    const u32 right[4] = {x.value[2], y.value[2], x.value[3], y.value[3]};
                    const u32 front[2] = {row.value[0], row.value[1]}, back[2] = {row.value[2], row.value[3]};
                    mma_f16(sum[0], left, front);
                    mma_f16(sum[1], right, back);
                }
                if (!IN_REGISTERS) {
                    ask(p, tiles, round, turn * PARTS + u + STAGES, own);
                    stage = stage + 1 == STAGES ? 0 : stage + 1;
                }
            }
#pragma unroll
            for (int i = 0; TURNS > HELD && i < PIECES; i++) {
                rows[0][i] = next[i];
            }
        }
#pragma unroll
        for (int i = 0; i < 4; i++) {
            sums[round & 1][warp][i][lane] = sum[0][i] + sum[1][i];
        }
        __syncthreads();  // the round before last has been read by all
        if (is_there) {
            float value = addend, other = 0.0f;
#pragma unroll
            for (int w = 0; w < WARPS; w++) {
                value += sums[round & 1][w][c][lane];
                other += GATED ? sums[round & 1][w][(c + 2) & 3][lane] : 0.0f;
            }
            const float end = activate_by_number(p.activation, value, (float)p.alpha, (float)p.beta);
            p.y[m * p.n + n] = convert<Y>(GATED ? end * other : end);
        }
    }
}

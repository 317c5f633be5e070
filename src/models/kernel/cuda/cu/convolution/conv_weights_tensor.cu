// conv_weights_tensor.cu - the product of conv_weights.cu on tensor cores: f16 with channels last, sums in
// float, tiles of TILE_M x TILE_N, STEP pixels at a time. Both operands lie pixel by pixel, so ldmatrix
// turns them. With PACKED a pack of 8 channels is one asynchronous copy, STAGES buffers deep; otherwise
// (images of few channels) elements go through registers.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"
#include "rondo_mma.cuh"
#include "rondo_conv_weights.cuh"

#define STEP 32
#define STAGES 4
#define WARPS_M 2
#define WARPS_N 4
#define FRAGMENTS_M (TILE_M / WARPS_M / 16)
#define FRAGMENTS_N (TILE_N / WARPS_N / 8)
#define PITCH_A (TILE_M + 8)
#define PITCH_B (TILE_N + 8)
#define STAGE (STEP * (PITCH_A + PITCH_B))
#define LINES 16  // threads of a row
#define PIECES_A (TILE_M / 8)
#define PIECES_B (TILE_N / 8)
#define SINGLES (STEP * TILE_N / 256)  // elements of a thread without packs

extern "C" __global__ void __launch_bounds__(256) weights_tensor(const weights_arguments a) {
    extern __shared__ __align__(16) u8 memory[];
    u16 *const tiles = (u16 *)memory;
    take_turn();
    const int thread = threadIdx.x, lane = thread & 31, warp = thread >> 5;
    const int warp_m = warp / WARPS_N, warp_n = warp % WARPS_N;
    const int m0 = blockIdx.y * TILE_M, n0 = blockIdx.x * TILE_N;
    const i64 begin = blockIdx.z * a.part_pixels;
    const i64 end = begin + a.part_pixels < a.pixels ? begin + a.part_pixels : a.pixels;
    const int steps = end > begin ? (int)((end - begin + STEP - 1) / STEP) : 0;
    const u16 *const x = (const u16 *)a.x;
    const u16 *const dy = (const u16 *)a.dy;

    const column_place packed(n0 + thread % PIECES_B * 8);
    auto fetch = [&](int step) {
        u16 *to = tiles + step % STAGES * STAGE;
#pragma unroll
        for (int i = thread; i < STEP * PIECES_A; i += 256) {
            const int row = i / PIECES_A, piece = i % PIECES_A;
            const i64 p = begin + (i64)step * STEP + row;
            const bool is_there = p < end && m0 + piece * 8 < FILTERS;
            copy_16(to + row * PITCH_A + piece * 8,
                    dy + (is_there ? p * FILTERS + m0 + piece * 8 : 0), is_there);
        }
        to += STEP * PITCH_A;
        if (PACKED) {
#pragma unroll
            for (int row = thread / PIECES_B; row < STEP; row += 256 / PIECES_B) {
                const i64 p = begin + (i64)step * STEP + row;
                const i64 at = p < end ? packed.find(p) : -1;
                copy_16(to + row * PITCH_B + thread % PIECES_B * 8, x + (at < 0 ? 0 : at), at >= 0);
            }
        }
    };
    const column_place single(n0 + thread % TILE_N);
    u16 held[PACKED ? 1 : SINGLES];
    auto load = [&](int step) {
#pragma unroll
        for (int i = 0; i < SINGLES && !PACKED; i++) {
            const i64 p = begin + (i64)step * STEP + thread / TILE_N + i * (256 / TILE_N);
            const i64 at = p < end ? single.find(p) : -1;
            held[i] = at < 0 ? (u16)0 : x[at];
        }
    };
    auto store = [&](int step) {
        u16 *to = tiles + step % STAGES * STAGE + STEP * PITCH_A;
#pragma unroll
        for (int i = 0; i < SINGLES && !PACKED; i++) {
            to[(thread / TILE_N + i * (256 / TILE_N)) * PITCH_B + thread % TILE_N] = held[i];
        }
    };

    float sum[FRAGMENTS_M][FRAGMENTS_N][4];
#pragma unroll
    for (int i = 0; i < FRAGMENTS_M; i++) {
#pragma unroll
        for (int j = 0; j < FRAGMENTS_N; j++) {
#pragma unroll
            for (int e = 0; e < 4; e++) {
                sum[i][j][e] = 0.0f;
            }
        }
    }
#pragma unroll
    for (int s = 0; s < STAGES - 1; s++) {
        if (s < steps) {
            fetch(s);
            load(s);
            store(s);
        }
        asm volatile("cp.async.commit_group;");
    }
    for (int step = 0; step < steps; step++) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2));
        __syncthreads();
        const int next = step + STAGES - 1;
        if (next < steps) {
            fetch(next);
            load(next);
        }
        asm volatile("cp.async.commit_group;");
        const u16 *tile_a = tiles + step % STAGES * STAGE;
        const u16 *tile_b = tile_a + STEP * PITCH_A;
#pragma unroll
        for (int k = 0; k < STEP; k += 16) {
            u32 left[FRAGMENTS_M][4], right[FRAGMENTS_N][2];
#pragma unroll
            for (int i = 0; i < FRAGMENTS_M; i++) {
                const int m = warp_m * (TILE_M / WARPS_M) + i * 16 + (lane >> 3 & 1) * 8;
                load_blocks_turned(left[i], tile_a + (k + (lane >> 4) * 8 + (lane & 7)) * PITCH_A + m);
            }
#pragma unroll
            for (int j = 0; j < FRAGMENTS_N; j += 2) {
                u32 four[4];
                const int n = warp_n * (TILE_N / WARPS_N) + j * 8 + (lane >> 4) * 8;
                load_blocks_turned(four,
                                   tile_b + (k + (lane >> 3 & 1) * 8 + (lane & 7)) * PITCH_B + n);
                right[j][0] = four[0];
                right[j][1] = four[1];
                right[j + 1][0] = four[2];
                right[j + 1][1] = four[3];
            }
#pragma unroll
            for (int i = 0; i < FRAGMENTS_M; i++) {
#pragma unroll
                for (int j = 0; j < FRAGMENTS_N; j++) {
                    mma_f16(sum[i][j], left[i], right[j]);
                }
            }
        }
        if (next < steps) {
            store(next);  // a buffer that was read a step ago
        }
    }
    P *part = a.parts + (i64)blockIdx.z * FILTERS * COLUMNS;
#pragma unroll
    for (int i = 0; i < FRAGMENTS_M; i++) {
#pragma unroll
        for (int j = 0; j < FRAGMENTS_N; j++) {
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const int m = m0 + warp_m * (TILE_M / WARPS_M) + i * 16 + (e >> 1) * 8 + (lane >> 2);
                const int n = n0 + warp_n * (TILE_N / WARPS_N) + j * 8 + (lane & 3) * 2 + (e & 1);
                if (m < FILTERS && n < COLUMNS) {
                    part[(i64)m * COLUMNS + n] = convert<P>(sum[i][j][e]);
                }
            }
        }
    }
}

// conv_weights.cu - how a convolution's result changes with its weights, as a product whose inner extent
// are the pixels of all images:
//
//   dw [FILTERS, taps * CHANNELS] = dy' [FILTERS, pixels] times what each tap of a window saw
//
// Pixels are parted among blocks; each part's sums go to a workspace, and weights_join adds them up in
// the order of parts and puts the taps last. weights_plain takes any type and layout; see also
// conv_weights_tensor.cu.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"
#include "rondo_conv_weights.cuh"

#define STEP 32
#define OWN_M (TILE_M / 16)
#define OWN_N (TILE_N / 16)

extern "C" __global__ void __launch_bounds__(256) weights_plain(const weights_arguments a) {
    __shared__ float left[STEP][TILE_M + 1], right[STEP][TILE_N + 1];
    take_turn();
    const int thread = threadIdx.x, row = thread / 16, line = thread % 16;
    const int m0 = blockIdx.y * TILE_M, n0 = blockIdx.x * TILE_N;
    const i64 begin = blockIdx.z * a.part_pixels;
    const i64 end = begin + a.part_pixels < a.pixels ? begin + a.part_pixels : a.pixels;
    float sum[OWN_M][OWN_N];
#pragma unroll
    for (int i = 0; i < OWN_M; i++) {
#pragma unroll
        for (int j = 0; j < OWN_N; j++) {
            sum[i][j] = 0.0f;
        }
    }
    for (i64 p0 = begin; p0 < end; p0 += STEP) {
        // Neighbours in memory are pixels, or channels where they come last.
        for (int i = thread; i < STEP * TILE_M; i += 256) {
            const int k = LAST ? i / TILE_M : i % STEP, m = LAST ? i % TILE_M : i / STEP;
            left[k][m] = p0 + k < end && m0 + m < FILTERS
                             ? convert<float>(a.dy[find_change(p0 + k, m0 + m)])
                             : 0.0f;
        }
        for (int i = thread; i < STEP * TILE_N; i += 256) {
            const int k = LAST ? i / TILE_N : i % STEP, n = LAST ? i % TILE_N : i / STEP;
            const i64 at = p0 + k < end ? column_place(n0 + n).find(p0 + k) : -1;
            right[k][n] = at >= 0 ? convert<float>(a.x[at]) : 0.0f;
        }
        __syncthreads();
#pragma unroll 8
        for (int k = 0; k < STEP; k++) {
            float m[OWN_M], n[OWN_N];
#pragma unroll
            for (int i = 0; i < OWN_M; i++) {
                m[i] = left[k][row + i * 16];
            }
#pragma unroll
            for (int j = 0; j < OWN_N; j++) {
                n[j] = right[k][line + j * 16];
            }
#pragma unroll
            for (int i = 0; i < OWN_M; i++) {
#pragma unroll
                for (int j = 0; j < OWN_N; j++) {
                    sum[i][j] = fmaf(m[i], n[j], sum[i][j]);
                }
            }
        }
        __syncthreads();
    }
    P *part = a.parts + (i64)blockIdx.z * FILTERS * COLUMNS;
#pragma unroll
    for (int i = 0; i < OWN_M; i++) {
#pragma unroll
        for (int j = 0; j < OWN_N; j++) {
            const int m = m0 + row + i * 16, n = n0 + line + j * 16;
            if (m < FILTERS && n < COLUMNS) {
                part[(i64)m * COLUMNS + n] = convert<P>(sum[i][j]);
            }
        }
    }
}

#ifndef IS_WHOLE
#define IS_WHOLE 0  // there is one part
#endif
// The sum of a weight's parts; weights as parts have them, taps before channels.
__device__ __forceinline__ float sum_parts(const weights_arguments &a, i64 at) {
    float sum = 0.0f;
    if (IS_WHOLE) {
        return sum + convert<float>(a.parts[at]);
    }
#pragma unroll 8
    for (i64 part = 0; part < a.part_count; part++) {
        sum += convert<float>(a.parts[part * FILTERS * COLUMNS + at]);
    }
    return sum;
}

// Neighbours are channels in what is read, taps in what is written: a block has CHUNK channels of a
// filter (0: as many weights as threads).
extern "C" __global__ void __launch_bounds__(256) weights_join(const weights_arguments a) {
    take_turn();
#if CHUNK > 0
    __shared__ float held[CHUNK * TAPS_Y * TAPS_X];
    const int taps = TAPS_Y * TAPS_X, chunks = (CHANNELS + CHUNK - 1) / CHUNK;
    for (i64 block = blockIdx.x; block < (i64)FILTERS * chunks; block += gridDim.x) {
        const i64 filter = block / chunks;
        const int first = (int)(block - filter * chunks) * CHUNK;
        const int count = CHANNELS - first < CHUNK ? CHANNELS - first : CHUNK;
        __syncthreads();
#pragma unroll 4
        for (int i = threadIdx.x; i < CHUNK * taps; i += 256) {
            const int tap = i / CHUNK, channel = i % CHUNK;
            if (channel < count) {
                held[channel * taps + tap] =
                    sum_parts(a, filter * COLUMNS + tap * CHANNELS + first + channel);
            }
        }
        __syncthreads();
        for (int i = threadIdx.x; i < count * taps; i += 256) {
            a.dw[(filter * CHANNELS + first) * taps + i] = held[i];
        }
    }
#else
    const i64 count = (i64)FILTERS * COLUMNS;
    for (i64 i = (i64)blockIdx.x * 256 + threadIdx.x; i < count; i += (i64)gridDim.x * 256) {
        const i64 filter = i / COLUMNS;
        const int column = (int)(i - filter * COLUMNS);
        const int tap = column / CHANNELS, channel = column - tap * CHANNELS;
        a.dw[(filter * CHANNELS + channel) * (TAPS_Y * TAPS_X) + tap] = sum_parts(a, i);
    }
#endif
}

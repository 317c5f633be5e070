// global_average.cu - the mean over all positions of channels-last images.
//
// A block has a slice of SLICE times WIDTH channels: SLICE neighbouring threads read one position of it, and
// the others the next ones. Where images are few and large, SPLIT blocks of a cluster share the positions, and
// send their sums to the first of them. The order of additions is fixed.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"

#ifndef RONDO_T
#define RONDO_T float
#endif
typedef RONDO_T T;
#ifndef WIDTH
#define WIDTH 1  // neighbouring channels of a thread
#endif
#ifndef SLICE
#define SLICE 2  // a power of two up to 32
#endif
#ifndef SPLIT
#define SPLIT 1
#endif

enum { THREADS = 256, WARPS = THREADS / 32, ROWS = THREADS / SLICE, CHANNELS = SLICE * WIDTH };

struct global_arguments {
    const T *x;
    T *y;
    i64 positions, channels;
};

#if SPLIT > 1
#include "rondo_cluster.cuh"

// Puts two sums where the first block of the cluster finds them.
__device__ __forceinline__ void send(const float *own, float a, float b) {
    store_remote(address_in_block(shared_address(own), 0), a, b);
}
#endif

// Sums of every ROWS-th position from `first` to `end`: parts of 64 terms in float, added up in double.
__device__ __forceinline__ void sum_positions(const T *x, i64 first, i64 end, i64 pitch,
                                              float (&sums)[WIDTH]) {
    double all[WIDTH];
#pragma unroll
    for (int v = 0; v < WIDTH; v++) {
        all[v] = 0.0;
    }
    for (; first < end; first += 64 * ROWS) {
        const i64 stop = end < first + 64 * ROWS ? end : first + 64 * ROWS;
        float part[WIDTH];
#pragma unroll
        for (int v = 0; v < WIDTH; v++) {
            part[v] = 0.0f;
        }
#pragma unroll 4
        for (i64 p = first; p < stop; p += ROWS) {
            const pack<T, WIDTH> in = *(const pack<T, WIDTH> *)(x + p * pitch);
#pragma unroll
            for (int v = 0; v < WIDTH; v++) {
                part[v] += convert<float>(in.value[v]);
            }
        }
#pragma unroll
        for (int v = 0; v < WIDTH; v++) {
            all[v] += (double)part[v];
        }
    }
#pragma unroll
    for (int v = 0; v < WIDTH; v++) {
        sums[v] = (float)all[v];
    }
}

// The grid is (slices of channels times SPLIT, images).
extern "C" __global__ void
#if SPLIT > 1
__cluster_dims__(SPLIT, 1, 1)
#endif
__launch_bounds__(THREADS) global_average(const global_arguments a) {
    extern __shared__ float memory[];  // of all blocks of the cluster, then of the warps: their sums
    take_turn();
    float *const received = memory, *const parts = memory + SPLIT * CHANNELS;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, place = threadIdx.x % SLICE;
    const u32 rank = blockIdx.x % SPLIT;
    const i64 slice = (i64)(blockIdx.x / SPLIT) * CHANNELS, channel = slice + place * WIDTH;
    const i64 share = (a.positions + SPLIT - 1) / SPLIT, begin = rank * share;
    const i64 end = begin + share < a.positions ? begin + share : a.positions;
    const T *x = a.x + (i64)blockIdx.y * a.positions * a.channels + channel;
    float sums[WIDTH] = {};
    if (channel < a.channels) {
        sum_positions(x, begin + threadIdx.x / SLICE, end, a.channels, sums);
    }
#if SPLIT > 1
    cluster_meet();  // the first block is there
#endif
#pragma unroll
    for (int v = 0; v < WIDTH; v++) {
#pragma unroll
        for (int step = 16; step >= SLICE; step >>= 1) {
            sums[v] += __shfl_xor_sync(0xffffffffu, sums[v], step);
        }
        if (lane < SLICE) {
            parts[warp * CHANNELS + place * WIDTH + v] = sums[v];
        }
    }
    __syncthreads();
    for (int c = threadIdx.x * 2; c < CHANNELS; c += 2 * THREADS) {
        float two[2] = {0.0f, 0.0f};
#pragma unroll
        for (int w = 0; w < WARPS; w++) {
            two[0] += parts[w * CHANNELS + c];
            two[1] += parts[w * CHANNELS + c + 1];
        }
#if SPLIT > 1
        send(received + rank * CHANNELS + c, two[0], two[1]);
    }
    cluster_meet();
    for (int c = threadIdx.x * 2; rank == 0 && c < CHANNELS; c += 2 * THREADS) {
        float two[2] = {0.0f, 0.0f};
#pragma unroll
        for (int r = 0; r < SPLIT; r++) {
            two[0] += received[r * CHANNELS + c];
            two[1] += received[r * CHANNELS + c + 1];
        }
#endif
#pragma unroll
        for (int i = 0; i < 2; i++) {
            if (slice + c + i < a.channels) {
                a.y[(i64)blockIdx.y * a.channels + slice + c + i] =
                    convert<T>(two[i] / (float)a.positions);
            }
        }
    }
}

// pack_filters.cu - filters of halves whose channels come last, from those whose taps do: a block has CHUNK
// channels of a filter, which lie together in what it reads.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"

#ifndef TAPS
#define TAPS 9
#define CHUNK 64  // even
#endif

struct pack_filters_arguments {
    const u16 *from;  // [filters, channels, TAPS]; channels are even
    u16 *to;          // [filters, TAPS, channels], filters pitch apart
    i64 filters, channels, pitch;
};

extern "C" __global__ void __launch_bounds__(256) pack_filters(const pack_filters_arguments a) {
    take_turn();
    __shared__ u32 held[CHUNK * TAPS / 2];
    const i64 chunks = (a.channels + CHUNK - 1) / CHUNK;
    for (i64 block = blockIdx.x; block < a.filters * chunks; block += gridDim.x) {
        const i64 filter = block / chunks, first = (block - filter * chunks) * CHUNK;
        const int count = (int)(a.channels - first < CHUNK ? a.channels - first : CHUNK);
        const u32 *from = (const u32 *)(a.from + (filter * a.channels + first) * TAPS);
        __syncthreads();
        for (int i = threadIdx.x; i < count * TAPS / 2; i += 256) {
            held[i] = from[i];
        }
        __syncthreads();
        const u16 *halves = (const u16 *)held;
        for (int i = threadIdx.x; i < TAPS * (CHUNK / 2); i += 256) {
            const int tap = i / (CHUNK / 2), channel = i % (CHUNK / 2) * 2;
            if (channel < count) {
                *(u32 *)(a.to + filter * a.pitch + tap * a.channels + first + channel) =
                    (u32)halves[channel * TAPS + tap] | (u32)halves[(channel + 1) * TAPS + tap] << 16;
            }
        }
    }
}

// noise.cu - half precision numbers between -1 and 1 for timing: zeros run faster than data. And a
// look at memory, which then fills the caches without a write that has to leave them later. And a
// neighbour that does nothing but begin early and wait, as kernels of a network do.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"

struct noise_arguments {
    u16 *y;
    i64 count;
};

extern "C" __global__ void __launch_bounds__(256) noise(const noise_arguments a) {
    for (i64 n = (i64)blockIdx.x * 256 + threadIdx.x; n < a.count; n += (i64)gridDim.x * 256) {
        u32 h = (u32)n * 2654435761u;
        h ^= h >> 15;
        h *= 2246822519u;
        h ^= h >> 13;
        a.y[n] = half_from_float((float)(i32)h * (1.0f / 2147483648.0f)).bits;
    }
}

struct look_arguments {
    uint4 *x;
    i64 count;
};

extern "C" __global__ void __launch_bounds__(256) look(const look_arguments a) {
    u32 seen = 0;
    for (i64 n = (i64)blockIdx.x * 256 + threadIdx.x; n < a.count; n += (i64)gridDim.x * 256) {
        const uint4 x = a.x[n];
        seen |= x.x & x.y & x.z & x.w;
    }
    if (seen == 0x80018001u) {  // never of noise by chance alone, but the compiler cannot know
        a.x[0].x = seen;
    }
}

extern "C" __global__ void __launch_bounds__(128) neighbour() {
    take_turn();
}

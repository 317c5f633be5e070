// rondo_extremes.cuh - what spans the steps of a dynamic quantisation.
// SPDX-License-Identifier: Apache-2.0

#ifndef NAN_WINS
#define NAN_WINS 1  // otherwise it is passed over
#endif

// The smallest and the largest of 0 and all values.
struct extremes {
    float low, high;
    __device__ __forceinline__ void meet(const extremes &other) {
        low = other.low < low || (NAN_WINS && other.low != other.low) ? other.low : low;
        high = other.high > high || (NAN_WINS && other.high != other.high) ? other.high : high;
    }
};

__device__ __forceinline__ extremes warp_extremes(extremes mine) {
#pragma unroll
    for (int step = 16; step > 0; step >>= 1) {
        extremes other;
        other.low = __shfl_xor_sync(0xffffffffu, mine.low, step);
        other.high = __shfl_xor_sync(0xffffffffu, mine.high, step);
        mine.meet(other);
    }
    return mine;
}

// Of the whole block; every thread gets the result. Threads: a multiple of 32.
__device__ __forceinline__ extremes block_extremes(extremes mine) {
    __shared__ extremes warps[32];
    const int lane = threadIdx.x & 31, count = (int)blockDim.x >> 5;
    mine = warp_extremes(mine);
    __syncthreads();
    if (lane == 0) {
        warps[threadIdx.x >> 5] = mine;
    }
    __syncthreads();
    extremes all = {0.0f, 0.0f};
    if (lane < count) {
        all = warps[lane];
    }
    return warp_extremes(all);
}

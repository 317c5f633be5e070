// rondo_ranks.cuh - places of what is picked: how many are picked by the threads before one's own.
// SPDX-License-Identifier: Apache-2.0

// The sum over the threads of the block before this one; *total is that over all of them. Threads: a
// multiple of 32. `scratch` has a word of shared memory for each warp.
__device__ __forceinline__ u32 rank_in_block(u32 mine, u32 *scratch, u32 *total) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    u32 sum = mine;
#pragma unroll
    for (int step = 1; step < 32; step <<= 1) {
        const u32 other = __shfl_up_sync(0xffffffffu, sum, step);
        sum += lane >= step ? other : 0;
    }
    __syncthreads();  // an earlier call's words were read
    if (lane == 31) {
        scratch[warp] = sum;
    }
    __syncthreads();
    u32 before = 0, all = 0;
    for (int w = 0; w < warps; w++) {
        const u32 part = scratch[w];
        before += w < warp ? part : 0;
        all += part;
    }
    *total = all;
    return before + sum - mine;
}

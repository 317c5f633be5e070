// group_norm_held.cu - an image's slice is in the registers of a cluster of CLUSTER blocks, which show
// each other their moments in shared memory: x is read once, by one launch. See rondo_group_norm.cuh.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_group_norm.cuh"

#ifndef CLUSTER
#define CLUSTER 1
#endif

#if CLUSTER > 1
#include "rondo_cluster.cuh"

__device__ __forceinline__ float2 load_from_block(const float2 *own, u32 rank) {
    float2 v;
    asm volatile("ld.shared::cluster.v2.f32 {%0, %1}, [%2];"
                 : "=f"(v.x), "=f"(v.y)
                 : "r"(address_in_block(shared_address(own), rank))
                 : "memory");
    return v;
}
#endif

extern "C" __global__ void
#if CLUSTER > 1
__cluster_dims__(CLUSTER, 1, 1)
#endif
__launch_bounds__(THREADS) image_normalization_held(const image_arguments a) {
    extern __shared__ float2 memory[];
    take_turn();
    float2 *const sets = memory, *const scales = memory + COLUMNS * PITCH;
    const place p = find_place(a, CLUSTER);
    float pivot[UNITS], mean[UNITS], square[UNITS];
    held h;
    load(h, a.x + p.first, p.step, p.count);
    find_pivots(a, p, pivot);
    const by_channel c = load_channels(a, p);
    find_moments(h, pivot, mean, square);
    const float share = 1.0f / ((float)a.pixels * GROUP);
#if CLUSTER > 1
    float2 *const own = scales + GROUPS;  // moments in this block's pixels
    join_block(sets, p, mean, square, [&](int g, float2 found) { own[g] = found; });
    cluster_meet();
    for (int g = threadIdx.x; g < GROUPS; g += THREADS) {
        float2 all[CLUSTER];
        float n[CLUSTER], sum = 0.0f, squares = 0.0f;
#pragma unroll
        for (int r = 0; r < CLUSTER; r++) {
            n[r] = (float)count_part(a, r) * GROUP;
            all[r] = load_from_block(&own[g], r);
        }
#pragma unroll
        for (int r = 0; r < CLUSTER; r++) {
            sum += n[r] * all[r].x;
        }
        const float middle = sum * share;
#pragma unroll
        for (int r = 0; r < CLUSTER; r++) {
            const float away = all[r].x - middle;
            squares += all[r].y + n[r] * away * away;
        }
        scales[g] = find_scale(make_float2(middle, squares), share, a.epsilon);
    }
    __syncthreads();
    // All of this block's reading is done; no block leaves while others read its memory.
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#else
    join_block(sets, p, mean, square, [&](int g, float2 found) {
        scales[g] = find_scale(found, share, a.epsilon);
    });
    __syncthreads();
#endif
    store(a, p, h, pivot, c, scales, a.y + p.first);
#if CLUSTER > 1
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
#endif
}

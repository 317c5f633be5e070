// group_norm_parts.cu - image_moments leaves the moments of parts of the pixels in the workspace, and
// image_normalization joins and applies them. See rondo_group_norm.cuh.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_group_norm.cuh"

// The grid is the parts of all slices of all images, for both.
extern "C" __global__ void __launch_bounds__(THREADS) image_moments(const image_arguments a) {
    extern __shared__ float2 memory[];
    take_turn();
    float2 *const sets = memory;
    const place p = find_place(a, (u32)a.parts);
    float pivot[UNITS], mean[UNITS], square[UNITS];
    held h;
    load(h, a.x + p.first, p.step, p.count);
    find_pivots(a, p, pivot);
    find_moments(h, pivot, mean, square);
    for (int done = PACKS; done < p.count; done += PACKS) {
        float new_mean[UNITS], new_square[UNITS];
        load(h, a.x + p.first + done * p.step, p.step, p.count - done);
        find_moments(h, pivot, new_mean, new_square);
        const float share = (float)h.count / (float)(done + h.count);
#pragma unroll
        for (int u = 0; u < UNITS; u++) {
            const float away = new_mean[u] - mean[u];
            mean[u] += away * share;
            square[u] += new_square[u] + away * share * away * (float)(done * UNIT);
        }
    }
    float2 *moments = a.moments + p.task * GROUPS * a.parts + p.part;
    join_block(sets, p, mean, square, [&](int g, float2 found) { moments[g * a.parts] = found; });
}

extern "C" __global__ void __launch_bounds__(THREADS) image_normalization(const image_arguments a) {
    extern __shared__ float2 memory[];
    take_turn();
    float2 *const scales = memory;
    const place p = find_place(a, (u32)a.parts);
    float pivot[UNITS];
    held h;
    load(h, a.x + p.first, p.step, p.count);
    find_pivots(a, p, pivot);
    const by_channel c = load_channels(a, p);
    const float share = 1.0f / ((float)a.pixels * GROUP);
    for (int first = 0; first < GROUPS; first += THREADS / TEAM) {
        const int g = first + (int)threadIdx.x / TEAM;
        const float2 *moments = a.moments + (p.task * GROUPS + g) * a.parts;
        const float2 found =
            join<8>(g < GROUPS ? (int)a.parts : 0, share, [&](int i, float &n) {
                n = (float)count_part(a, i) * GROUP;
                return moments[i];
            });
        if (g < GROUPS && threadIdx.x % TEAM == 0) {
            scales[g] = find_scale(found, share, a.epsilon);
        }
    }
    __syncthreads();
    store(a, p, h, pivot, c, scales, a.y + p.first);
    for (int done = PACKS; done < p.count; done += PACKS) {
        load(h, a.x + p.first + done * p.step, p.step, p.count - done);
        store(a, p, h, pivot, c, scales, a.y + p.first + done * p.step);
    }
}

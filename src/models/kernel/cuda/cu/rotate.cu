// rotate.cu - rondo.Rotate: y = x * cosines + r * sines, r being x with the halves of its rows swapped and the
// first of them negated. A thread has WIDTH pairs.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"

#ifndef RONDO_T
#define RONDO_T float
#endif
typedef RONDO_T T;
#ifndef WIDTH
#define WIDTH 1
#endif

struct rotate_arguments {
    i64 packs;  // of pairs
    const T *x;
    const T *cosines;
    const T *sines;
    T *y;
    i64 half;
    i64 extent[3];                    // of rows
    i64 cosine_stride[4], sine_stride[4];  // the last one along a row: 1 or 0
};

__device__ __forceinline__ float load(const T *from, i64 at, i64 stride) {
    return convert<float>(from[at * stride]);
}

extern "C" __global__ void __launch_bounds__(128) rotate(const rotate_arguments a) {
    take_turn();
    for (i64 n = (i64)blockIdx.x * 128 + threadIdx.x; n < a.packs; n += (i64)gridDim.x * 128) {
        const i64 row_packs = a.half / WIDTH, row = n / row_packs, at = n % row_packs * WIDTH;
        const i64 i2 = row % a.extent[2], i1 = row / a.extent[2] % a.extent[1];
        const i64 i0 = row / a.extent[2] / a.extent[1];
        const i64 of_cosines =
            i0 * a.cosine_stride[0] + i1 * a.cosine_stride[1] + i2 * a.cosine_stride[2];
        const i64 of_sines = i0 * a.sine_stride[0] + i1 * a.sine_stride[1] + i2 * a.sine_stride[2];
        const i64 first = row * 2 * a.half + at;
        const pack<T, WIDTH> low = *(const pack<T, WIDTH> *)(a.x + first);
        const pack<T, WIDTH> high = *(const pack<T, WIDTH> *)(a.x + first + a.half);
        pack<T, WIDTH> y_low, y_high;
#pragma unroll
        for (int v = 0; v < WIDTH; v++) {
            const float u = convert<float>(low.value[v]), w = convert<float>(high.value[v]);
            const T *cosines = a.cosines + of_cosines, *sines = a.sines + of_sines;
            const i64 j = at + v;
            y_low.value[v] = convert<T>(u * load(cosines, j, a.cosine_stride[3]) -
                                        w * load(sines, j, a.sine_stride[3]));
            y_high.value[v] = convert<T>(w * load(cosines, j + a.half, a.cosine_stride[3]) +
                                         u * load(sines, j + a.half, a.sine_stride[3]));
        }
        *(pack<T, WIDTH> *)(a.y + first) = y_low;
        *(pack<T, WIDTH> *)(a.y + first + a.half) = y_high;
    }
}

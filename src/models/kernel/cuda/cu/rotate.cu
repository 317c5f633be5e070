// rotate.cu - rondo.Rotate: y = x * cosines + r * sines, r being x with the halves of its rows swapped and the
// first of them negated. A thread has WIDTH pairs. rotate_heads does the same for the first heads of rows that have
// several kinds of them side by side, and gives each kind a tensor of its own with heads in front of rows.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"

#ifndef RONDO_T
#define RONDO_T float
#endif
typedef RONDO_T T;
#ifndef WIDTH
#define WIDTH 1
#endif

#ifndef PARTS
#define PARTS 1  // outputs of rotate_heads
#endif
#ifndef ANGLES_ARE_WIDE
#define ANGLES_ARE_WIDE 0  // 1: those of a row lie beside each other, and begin at whole packs
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

struct heads_arguments {
    i64 packs;  // of pairs
    const T *x;
    const T *cosines;
    const T *sines;
    i64 half, heads, rows, turned;  // heads of all parts, and those that are turned
    i64 cosine_stride[3], sine_stride[3];  // of batch, row, and column: 1 or 0
    T *y[PARTS];
    i64 count[PARTS];  // heads of each
};

__device__ __forceinline__ pack<T, WIDTH> load_angles(const T *from, i64 at, i64 stride) {
    if (ANGLES_ARE_WIDE) {
        return *(const pack<T, WIDTH> *)(from + at);
    }
    pack<T, WIDTH> angles;
#pragma unroll
    for (int v = 0; v < WIDTH; v++) {
        angles.value[v] = from[(at + v) * stride];
    }
    return angles;
}

extern "C" __global__ void __launch_bounds__(128)
rotate_heads(const __grid_constant__ heads_arguments a) {
    take_turn();
    const i64 n = (i64)blockIdx.x * 128 + threadIdx.x;
    if (n >= a.packs) {
        return;
    }
    const u32 row_packs = (u32)(a.half / WIDTH), heads = (u32)a.heads, rows = (u32)a.rows;
    const i64 at = (i64)((u32)n % row_packs) * WIDTH;
    const u32 line = (u32)n / row_packs, head = line % heads, all_row = line / heads;
    const i64 batch = all_row / rows, row = all_row % rows;
    const T *const x = a.x + (i64)line * 2 * a.half + at;
    pack<T, WIDTH> low = *(const pack<T, WIDTH> *)x;
    pack<T, WIDTH> high = *(const pack<T, WIDTH> *)(x + a.half);
    if (head < (u32)a.turned) {
        const T *const cosines = a.cosines + batch * a.cosine_stride[0] + row * a.cosine_stride[1];
        const T *const sines = a.sines + batch * a.sine_stride[0] + row * a.sine_stride[1];
        const pack<T, WIDTH> low_cosine = load_angles(cosines, at, a.cosine_stride[2]);
        const pack<T, WIDTH> high_cosine = load_angles(cosines, at + a.half, a.cosine_stride[2]);
        const pack<T, WIDTH> low_sine = load_angles(sines, at, a.sine_stride[2]);
        const pack<T, WIDTH> high_sine = load_angles(sines, at + a.half, a.sine_stride[2]);
#pragma unroll
        for (int v = 0; v < WIDTH; v++) {
            const float u = convert<float>(low.value[v]), w = convert<float>(high.value[v]);
            low.value[v] = convert<T>(u * convert<float>(low_cosine.value[v]) -
                                      w * convert<float>(low_sine.value[v]));
            high.value[v] = convert<T>(w * convert<float>(high_cosine.value[v]) +
                                       u * convert<float>(high_sine.value[v]));
        }
    }
    T *to = a.y[0];
    u32 first = 0, count = (u32)a.count[0];
#pragma unroll
    for (int part = 1; part < PARTS; part++) {
        if (head >= first + count) {
            first += count;
            count = (u32)a.count[part];
            to = a.y[part];
        }
    }
    to += ((batch * count + (head - first)) * rows + row) * 2 * a.half + at;
    *(pack<T, WIDTH> *)to = low;
    *(pack<T, WIDTH> *)(to + a.half) = high;
}

// conv_depthwise.cu - depthwise convolution with bias, residual and activation, channels last. It is
// bound by memory and latency, so it is best done directly.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"
#include "rondo_activation.cuh"
#include "rondo_convolution.cuh"

#ifndef WIDTH
#define WIDTH 1  // channels of a thread
#endif
#ifndef COLUMNS
#define COLUMNS 1  // of the output, of a thread
#endif
#ifndef KERNEL1
#define KERNEL1 1
#define KERNEL2 1
#define STRIDE1 1
#define STRIDE2 1
#endif
#ifndef EAGER_WEIGHTS
#define EAGER_WEIGHTS 0  // 1: nothing ever writes w, and a thread holds its filters in registers
#endif

// Depthwise, channels last, two spatial extents: a thread makes WIDTH channels of one position.
// w is [taps, channels].
extern "C" __global__ void __launch_bounds__(128) conv_depthwise(const conv_arguments p) {
    take_turn();
    const u32 slices = (u32)(p.groups / WIDTH);
    const u32 total = slices * (u32)(p.batch * p.out[1] * p.out[2]);
    const u32 n = blockIdx.x * 128 + threadIdx.x;
    if (n >= total) {
        return;
    }
    const u32 channel = n % slices * WIDTH, pixel = n / slices;
    const int o2 = pixel % (u32)p.out[2], o1 = pixel / (u32)p.out[2] % (u32)p.out[1];
    const u32 image = pixel / (u32)p.out[2] / (u32)p.out[1];
    const T *x = p.x + image * p.x_image + channel;
    const int first1 = o1 * (int)p.stride[1] - (int)p.before[1];
    const int first2 = o2 * (int)p.stride[2] - (int)p.before[2];
    float sum[WIDTH];
#pragma unroll
    for (int v = 0; v < WIDTH; v++) {
        sum[v] = p.bias != 0 ? convert<float>(p.bias[channel + v]) : 0.0f;
    }
    for (int k1 = 0; k1 < (int)p.kernel[1]; k1++) {
        const int i1 = first1 + k1 * (int)p.dilation[1];
        if (i1 < 0 || i1 >= (int)p.in[1]) {
            continue;
        }
#pragma unroll 3
        for (int k2 = 0; k2 < (int)p.kernel[2]; k2++) {
            const int i2 = first2 + k2 * (int)p.dilation[2];
            if (i2 < 0 || i2 >= (int)p.in[2]) {
                continue;
            }
            const pack<T, WIDTH> in =
                *(const pack<T, WIDTH> *)(x + (i1 * (int)p.in[2] + i2) * (i64)p.groups);
            const pack<T, WIDTH> w =
                *(const pack<T, WIDTH> *)(p.w + (k1 * (int)p.kernel[2] + k2) * p.groups + channel);
#pragma unroll
            for (int v = 0; v < WIDTH; v++) {
                sum[v] += convert<float>(in.value[v]) * convert<float>(w.value[v]);
            }
        }
    }
    const i64 at = (i64)pixel * p.groups + channel;
    pack<T, WIDTH> result;
    if (p.z != 0) {
        const pack<T, WIDTH> z = *(const pack<T, WIDTH> *)(p.z + at);
#pragma unroll
        for (int v = 0; v < WIDTH; v++) {
            sum[v] += convert<float>(z.value[v]);
        }
    }
#pragma unroll
    for (int v = 0; v < WIDTH; v++) {
        result.value[v] = convert<T>(
            activate_by_number(p.activation, sum[v], (float)p.alpha, (float)p.beta));
    }
    *(pack<T, WIDTH> *)(p.y + at) = result;
}

// A row of the filters of WIDTH channels.
__device__ __forceinline__ void read_filter_row(const T *w, int pitch,
                                                pack<T, WIDTH> (&row)[KERNEL2]) {
#pragma unroll
    for (int k2 = 0; k2 < KERNEL2; k2++) {
        row[k2] = *(const pack<T, WIDTH> *)(w + k2 * pitch);
    }
}

// The same for filters whose extents and strides are known: a thread makes COLUMNS neighbours of a
// row, and reads each of their inputs once a row of the filter. No dilation. There is no branch
// between rows, so that the reads of all rows are under way at once.
extern "C" __global__ void __launch_bounds__(128) conv_depthwise_rows(const conv_arguments p) {
    enum { SPAN = (COLUMNS - 1) * STRIDE2 + KERNEL2 };
    release_successor();
    const u32 slices = (u32)(p.groups / WIDTH), runs = ((u32)p.out[2] + COLUMNS - 1) / COLUMNS;
    const u32 n = blockIdx.x * 128 + threadIdx.x;
    const u32 channel = n % slices * WIDTH, row = n / slices / runs;
    const int o2 = n / slices % runs * COLUMNS, o1 = row % (u32)p.out[1];
    const int first1 = o1 * STRIDE1 - (int)p.before[1], first2 = o2 * STRIDE2 - (int)p.before[2];
    const int pitch = (int)p.groups, in1 = (int)p.in[1], in2 = (int)p.in[2];
    const T *w = p.w + channel;
    pack<T, WIDTH> filter[EAGER_WEIGHTS ? KERNEL1 : 1][KERNEL2];
    if (EAGER_WEIGHTS) {
#pragma unroll
        for (int k1 = 0; k1 < KERNEL1; k1++) {
            read_filter_row(w + k1 * KERNEL2 * pitch, pitch, filter[EAGER_WEIGHTS ? k1 : 0]);
        }
    }
    await_predecessors();
    if (n >= slices * runs * (u32)(p.batch * p.out[1])) {
        return;
    }
    const T *x = p.x + row / (u32)p.out[1] * p.x_image + channel;
    float sum[COLUMNS][WIDTH];
#pragma unroll
    for (int o = 0; o < COLUMNS; o++) {
#pragma unroll
        for (int v = 0; v < WIDTH; v++) {
            sum[o][v] = p.bias != 0 ? convert<float>(p.bias[channel + v]) : 0.0f;
        }
    }
#pragma unroll
    for (int k1 = 0; k1 < KERNEL1; k1++) {
        const int i1 = first1 + k1;
        pack<T, WIDTH> in[SPAN];
#pragma unroll
        for (int i = 0; i < SPAN; i++) {
            const int i2 = first2 + i;
            in[i] = pack<T, WIDTH>();
            if (i1 >= 0 && i1 < in1 && i2 >= 0 && i2 < in2) {
                in[i] = *(const pack<T, WIDTH> *)(x + (i64)(i1 * in2 + i2) * pitch);
            }
        }
        if (!EAGER_WEIGHTS) {
            read_filter_row(w + k1 * KERNEL2 * pitch, pitch, filter[0]);
        }
#pragma unroll
        for (int k2 = 0; k2 < KERNEL2; k2++) {
#pragma unroll
            for (int o = 0; o < COLUMNS; o++) {
#pragma unroll
                for (int v = 0; v < WIDTH; v++) {
                    sum[o][v] += convert<float>(in[o * STRIDE2 + k2].value[v]) *
                                 convert<float>(filter[EAGER_WEIGHTS ? k1 : 0][k2].value[v]);
                }
            }
        }
    }
#pragma unroll
    for (int o = 0; o < COLUMNS; o++) {
        if (o2 + o >= (int)p.out[2]) {
            return;
        }
        const i64 at = ((i64)row * p.out[2] + o2 + o) * p.groups + channel;
        pack<T, WIDTH> result, z = pack<T, WIDTH>();
        if (p.z != 0) {
            z = *(const pack<T, WIDTH> *)(p.z + at);
        }
#pragma unroll
        for (int v = 0; v < WIDTH; v++) {
            const float value = p.z != 0 ? sum[o][v] + convert<float>(z.value[v]) : sum[o][v];
            result.value[v] = convert<T>(
                activate_by_number(p.activation, value, (float)p.alpha, (float)p.beta));
        }
        *(pack<T, WIDTH> *)(p.y + at) = result;
    }
}

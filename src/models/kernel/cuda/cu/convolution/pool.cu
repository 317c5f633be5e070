// pool.cu - MaxPool, AveragePool and LpPool over up to three spatial extents, in both layouts. With channels
// last, WIDTH neighbouring channels go together.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"

#ifndef RONDO_T
#define RONDO_T float
#endif
typedef RONDO_T T;
#ifndef AVERAGE
#define AVERAGE 0
#endif
#ifndef NORM
#define NORM 0  // the p-norm of the window
#endif
#ifndef RONDO_A
#define RONDO_A compute_of<T>::type  // the accumulator
#endif
#ifndef WIDTH
#define WIDTH 1
#endif
#ifndef SQUARE
#define SQUARE 0  // n: the kernel is 1 x n x n
#endif
#ifndef CHANNELS_LAST
#define CHANNELS_LAST 0
#endif

struct pool_arguments {
    i64 groups;  // outputs / WIDTH
    const T *x;
    T *y;
    i64 *indices;  // may be NULL; channels first only
    i64 channels;  // in groups of WIDTH when channels are last
    i64 in[3], out[3];
    i64 kernel[3], stride[3], dilation[3], before[3], after[3];
    i64 include_pad, column_major;
    double p;  // of the norm
};

// x to the p; the common ones without pow.
__device__ __forceinline__ double power(double x, double p) {
    return p == 1.0 ? x : (p == 2.0 ? x * x : (p == 0.5 ? sqrt(x) : pow(x, p)));
}

extern "C" __global__ void __launch_bounds__(256) pool(const pool_arguments a) {
    take_turn();
    typedef RONDO_A C;
    const int in0 = (int)a.in[0], in1 = (int)a.in[1], in2 = (int)a.in[2];
    for (i64 g = (i64)blockIdx.x * 256 + threadIdx.x; g < a.groups; g += (i64)gridDim.x * 256) {
        i64 rest = g;
        int c = 0, o[3];
        if (CHANNELS_LAST) {
            c = (int)(rest % a.channels);
            rest /= a.channels;
        }
#pragma unroll
        for (int d = 2; d >= 0; d--) {
            o[d] = (int)(rest % a.out[d]);
            rest /= a.out[d];
        }
        const i64 image = rest;  // channels first: image and channel together
        const T *x = a.x + image * in0 * in1 * in2 * (CHANNELS_LAST ? a.channels * WIDTH : 1);
        C value[WIDTH];
        int count = 0;
        i64 best = -1;
#pragma unroll
        for (int v = 0; v < WIDTH; v++) {
            value[v] = (C)0;
        }
        bool any = false;
        for (int k0 = 0; k0 < (int)a.kernel[0]; k0++) {
            const int i0 = o[0] * (int)a.stride[0] - (int)a.before[0] + k0 * (int)a.dilation[0];
            for (int k1 = 0; k1 < (int)a.kernel[1]; k1++) {
                const int i1 =
                    o[1] * (int)a.stride[1] - (int)a.before[1] + k1 * (int)a.dilation[1];
                for (int k2 = 0; k2 < (int)a.kernel[2]; k2++) {
                    const int i2 =
                        o[2] * (int)a.stride[2] - (int)a.before[2] + k2 * (int)a.dilation[2];
                    if (i0 < 0 || i1 < 0 || i2 < 0 || i0 >= in0 || i1 >= in1 || i2 >= in2) {
                        count += i0 < in0 + (int)a.after[0] && i1 < in1 + (int)a.after[1] &&
                                         i2 < in2 + (int)a.after[2] && a.include_pad
                                     ? 1
                                     : 0;
                        continue;
                    }
                    count++;
                    const i64 at = ((i64)i0 * in1 + i1) * in2 + i2;
                    pack<T, WIDTH> in;
                    if (CHANNELS_LAST) {
                        in = *(const pack<T, WIDTH> *)(x + (at * a.channels + c) * WIDTH);
                    } else {
                        in.value[0] = x[at];
                    }
#pragma unroll
                    for (int v = 0; v < WIDTH; v++) {
                        const C next = convert<C>(in.value[v]);
                        if (NORM) {
                            value[v] += (C)power(fabs((double)next), a.p);
                        } else if (AVERAGE) {
                            value[v] = (C)(value[v] + next);
                        } else if (!any || next > value[v] ||
                                   (next != next && value[v] == value[v])) {
                            value[v] = next;
                            best = a.column_major ? (i64)i0 + in0 * (i1 + (i64)in1 * i2) : at;
                        }
                    }
                    any = true;
                }
            }
        }
        pack<T, WIDTH> result;
#pragma unroll
        for (int v = 0; v < WIDTH; v++) {
            if (NORM) {
                result.value[v] = convert<T>((C)power((double)value[v], 1.0 / a.p));
            } else {
                result.value[v] =
                    convert<T>(AVERAGE ? (C)(value[v] / (C)(count > 0 ? count : 1)) : value[v]);
            }
        }
        *(pack<T, WIDTH> *)(a.y + g * WIDTH) = result;
        if (!CHANNELS_LAST && a.indices != 0) {
            a.indices[g] = image * in0 * in1 * in2 + best;
        }
    }
}

// MaxPool and AveragePool over SQUARE x SQUARE windows of channels-last images. A position outside the
// image is drawn in to its border, which the window holds too, so that all loads are unconditional and
// fly together; windows of an average are inside.
extern "C" __global__ void __launch_bounds__(128) pool_square(const pool_arguments a) {
    take_turn();
    typedef compute_of<T>::type C;
    const u32 channels = (u32)a.channels, out1 = (u32)a.out[1], out2 = (u32)a.out[2];
    const int in1 = (int)a.in[1], in2 = (int)a.in[2];
    const u32 g = blockIdx.x * 128 + threadIdx.x;
    if (g >= a.groups) {
        return;
    }
    const u32 c = g % channels, o2 = g / channels % out2, o1 = g / channels / out2 % out1;
    const u32 image = g / channels / out2 / out1;
    const T *x = a.x + ((i64)image * in1 * in2 * channels + c) * WIDTH;
    const int first1 = (int)(o1 * (u32)a.stride[1]) - (int)a.before[1];
    const int first2 = (int)(o2 * (u32)a.stride[2]) - (int)a.before[2];
    const int side = SQUARE > 0 ? SQUARE : 1;
    pack<T, WIDTH> in[side * side];
#pragma unroll
    for (int k1 = 0; k1 < side; k1++) {
        const int i1 = min(max(first1 + k1, 0), in1 - 1);
#pragma unroll
        for (int k2 = 0; k2 < side; k2++) {
            const int i2 = min(max(first2 + k2, 0), in2 - 1);
            in[k1 * side + k2] =
                *(const pack<T, WIDTH> *)(x + ((i64)i1 * in2 + i2) * channels * WIDTH);
        }
    }
    pack<T, WIDTH> result;
#pragma unroll
    for (int v = 0; v < WIDTH; v++) {
        C value = convert<C>(in[0].value[v]);
#pragma unroll
        for (int k = 1; k < side * side; k++) {
            const C next = convert<C>(in[k].value[v]);
            value = AVERAGE ? (C)(value + next) : next > value || next != next ? next : value;
        }
        result.value[v] = convert<T>(AVERAGE ? (C)(value / (C)(side * side)) : value);
    }
    *(pack<T, WIDTH> *)(a.y + (i64)g * WIDTH) = result;
}

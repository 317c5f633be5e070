// conv_transpose.cu - ConvTranspose in plain arithmetic, up to three spatial extents, channels first.
//
// Outputs whose places leave the same rest when divided by the stride see the same taps of the filter,
// and neighbours among them see neighbouring inputs. So the outputs fall into stride^n phases, and each
// phase is a convolution of its own over just the taps that count:
//
//     o + before = phase + stride * q        taps t with t * dilation = phase, modulo the stride
//     i = (o + before - t * dilation) / stride
//
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"

#ifndef RONDO_T
#define RONDO_T float
#endif
typedef RONDO_T T;
#ifndef RONDO_A
#define RONDO_A float  // of sums
#endif
typedef RONDO_A A;
#ifndef COLUMNS
#define COLUMNS 4  // sixteens of filters that a block makes
#endif

struct transpose_arguments {
    const T *x;     // [batch, groups * in_channels, in]
    const T *w;     // [groups * in_channels, out_channels, kernel]
    const T *bias;  // may be NULL
    T *y;
    i64 batch, groups, in_channels, out_channels;  // channels of one group
    i64 in[3], out[3], kernel[3], stride[3], dilation[3], before[3];
    i64 step[3];   // from a tap of a phase to the next one
    i64 width[3];  // outputs of a phase along the extent, at most
};

// One phase along one extent.
struct phase_part {
    int first, count;  // taps: first, first + step, ...
    int base;          // o of the first output; o = base + stride * q
    int outputs;
    int origin;        // i of that output seen through the first tap; later taps see lower ones
    int back;          // how much lower
};
__device__ __forceinline__ phase_part find_part(const transpose_arguments &a, int d, int phase) {
    const int stride = (int)a.stride[d], dilation = (int)a.dilation[d], step = (int)a.step[d];
    phase_part part;
    part.first = dilation == 1 ? phase : 0;
    while (part.first < step && (i64)part.first * dilation % stride != phase) {
        part.first++;
    }
    const int kernel = (int)a.kernel[d];
    part.count = part.first < step && part.first < kernel ? (kernel - part.first + step - 1) / step
                                                          : 0;
    part.base = (int)((phase - a.before[d]) % stride);
    part.base += part.base < 0 ? stride : 0;
    const int out = (int)a.out[d];
    part.outputs = part.base < out ? (out - part.base + stride - 1) / stride : 0;
    part.origin = (int)((part.base + a.before[d] - (i64)part.first * dilation) / stride);
    part.back = (int)((i64)step * dilation / stride);
    return part;
}

// A block makes 64 outputs of one phase, for 16 * COLUMNS filters of one group. The grid is (tiles of
// outputs * phases, tiles of filters, groups).
extern "C" __global__ void __launch_bounds__(256) conv_transpose(const transpose_arguments a) {
    take_turn();
    __shared__ A tile_x[16][65];
    __shared__ A tile_w[16][16 * COLUMNS + 1];
    const i64 tiles = (a.batch * a.width[0] * a.width[1] * a.width[2] + 63) / 64;
    const i64 group = blockIdx.z, filter = (i64)blockIdx.y * 16 * COLUMNS;
    int phase = (int)(blockIdx.x / tiles);
    phase_part part[3];
#pragma unroll
    for (int d = 2; d >= 0; d--) {
        part[d] = find_part(a, d, phase % (int)a.stride[d]);
        phase /= (int)a.stride[d];
    }
    const i64 positions = (i64)part[0].outputs * part[1].outputs * part[2].outputs;
    const i64 first = blockIdx.x % tiles * 64;
    if (first >= a.batch * positions) {
        return;
    }
    const i64 in_span = a.in[0] * a.in[1] * a.in[2], out_span = a.out[0] * a.out[1] * a.out[2];
    const int kernel1 = (int)a.kernel[1], kernel2 = (int)a.kernel[2];
    const int taps = (int)a.kernel[0] * kernel1 * kernel2;
    const int phase_taps = part[0].count * part[1].count * part[2].count;
    const i64 depth = a.in_channels * phase_taps;

    // What this thread loads: one output's inputs, and filters.
    const int my_m = threadIdx.x & 63, my_k = threadIdx.x >> 6;
    const i64 m = first + my_m;
    const bool has_output = m < a.batch * positions;
    i64 rest = has_output ? m % positions : 0;
    const int q2 = (int)(rest % (part[2].outputs > 0 ? part[2].outputs : 1));
    rest /= part[2].outputs > 0 ? part[2].outputs : 1;
    const int q1 = (int)(rest % (part[1].outputs > 0 ? part[1].outputs : 1));
    const int q0 = (int)(rest / (part[1].outputs > 0 ? part[1].outputs : 1));
    const int i0 = q0 + part[0].origin, i1 = q1 + part[1].origin, i2 = q2 + part[2].origin;
    const T *x = a.x + ((has_output ? m / positions : 0) * a.groups + group) * a.in_channels * in_span;
    const T *w = a.w + group * a.in_channels * a.out_channels * taps;

    const int row = threadIdx.x >> 4, column = threadIdx.x & 15;
    A sum[4][COLUMNS];
#pragma unroll
    for (int i = 0; i < 4; i++) {
#pragma unroll
        for (int j = 0; j < COLUMNS; j++) {
            sum[i][j] = (A)0;
        }
    }
    for (i64 k0 = 0; k0 < depth; k0 += 16) {
#pragma unroll
        for (int s = 0; s < 4; s++) {
            const i64 k = k0 + my_k + 4 * s;
            A value = (A)0;
            if (has_output && k < depth) {
                const int c = (int)(k / phase_taps), tap = (int)(k % phase_taps);
                const int t2 = tap % part[2].count, t1 = tap / part[2].count % part[1].count;
                const int t0 = tap / part[2].count / part[1].count;
                const int at0 = i0 - t0 * part[0].back, at1 = i1 - t1 * part[1].back;
                const int at2 = i2 - t2 * part[2].back;
                if (at0 >= 0 && at1 >= 0 && at2 >= 0 && at0 < (int)a.in[0] &&
                    at1 < (int)a.in[1] && at2 < (int)a.in[2]) {
                    value = convert<A>(
                        x[c * in_span + ((i64)at0 * a.in[1] + at1) * a.in[2] + at2]);
                }
            }
            tile_x[my_k + 4 * s][my_m] = value;
        }
#pragma unroll
        for (int s = 0; s < COLUMNS; s++) {
            const int at = threadIdx.x + 256 * s;
            const int n = at % (16 * COLUMNS), ks = at / (16 * COLUMNS);
            const i64 k = k0 + ks;
            A value = (A)0;
            if (k < depth && filter + n < a.out_channels) {
                const i64 c = k / phase_taps;
                const int tap = (int)(k % phase_taps);
                const int t2 = part[2].first + tap % part[2].count * (int)a.step[2];
                const int t1 =
                    part[1].first + tap / part[2].count % part[1].count * (int)a.step[1];
                const int t0 =
                    part[0].first + tap / part[2].count / part[1].count * (int)a.step[0];
                value = convert<A>(w[(c * a.out_channels + filter + n) * taps +
                                     (t0 * kernel1 + t1) * kernel2 + t2]);
            }
            tile_w[ks][n] = value;
        }
        __syncthreads();
#pragma unroll
        for (int s = 0; s < 16; s++) {
            A left[4], right[COLUMNS];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                left[i] = tile_x[s][column + 16 * i];
            }
#pragma unroll
            for (int j = 0; j < COLUMNS; j++) {
                right[j] = tile_w[s][row + 16 * j];
            }
#pragma unroll
            for (int i = 0; i < 4; i++) {
#pragma unroll
                for (int j = 0; j < COLUMNS; j++) {
                    sum[i][j] += left[i] * right[j];
                }
            }
        }
        __syncthreads();
    }
    // Neighbouring threads have neighbouring outputs of the phase.
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const i64 out = first + column + 16 * i;
        if (out >= a.batch * positions) {
            continue;
        }
        i64 left = out % positions;
        const i64 o2 = part[2].base + left % part[2].outputs * a.stride[2];
        left /= part[2].outputs;
        const i64 o1 = part[1].base + left % part[1].outputs * a.stride[1];
        const i64 o0 = part[0].base + left / part[1].outputs * a.stride[0];
        const i64 image = out / positions * a.groups * a.out_channels;
#pragma unroll
        for (int j = 0; j < COLUMNS; j++) {
            const i64 n = filter + row + 16 * j;
            if (n < a.out_channels) {
                const i64 channel = group * a.out_channels + n;
                const A bias = a.bias != 0 ? convert<A>(a.bias[channel]) : (A)0;
                a.y[(image + channel) * out_span + (o0 * a.out[1] + o1) * a.out[2] + o2] =
                    convert<T>(sum[i][j] + bias);
            }
        }
    }
}

// For few filters in a group, above all one: a thread makes one output.
extern "C" __global__ void __launch_bounds__(256)
conv_transpose_each(const transpose_arguments a) {
    take_turn();
    const i64 in_span = a.in[0] * a.in[1] * a.in[2], out_span = a.out[0] * a.out[1] * a.out[2];
    const i64 count = a.batch * a.groups * a.out_channels * out_span;
    const int kernel1 = (int)a.kernel[1], kernel2 = (int)a.kernel[2];
    const int taps = (int)a.kernel[0] * kernel1 * kernel2;
    for (i64 n = (i64)blockIdx.x * 256 + threadIdx.x; n < count; n += (i64)gridDim.x * 256) {
        const i64 place = n % out_span, plane = n / out_span;
        const i64 channel = plane % (a.groups * a.out_channels);
        const i64 image = plane / (a.groups * a.out_channels), group = channel / a.out_channels;
        const i64 o[3] = {place / a.out[2] / a.out[1], place / a.out[2] % a.out[1],
                          place % a.out[2]};
        const T *x = a.x + (image * a.groups + group) * a.in_channels * in_span;
        const T *w = a.w + (group * a.in_channels * a.out_channels + channel % a.out_channels) * taps;
        A sum = a.bias != 0 ? convert<A>(a.bias[channel]) : (A)0;
        int at[3];
        phase_part part[3];
#pragma unroll
        for (int d = 0; d < 3; d++) {
            const i64 shifted = o[d] + a.before[d];
            part[d] = find_part(a, d, (int)(shifted % a.stride[d]));
            at[d] = (int)((shifted - (i64)part[d].first * a.dilation[d]) / a.stride[d]);
        }
        for (int t0 = 0; t0 < part[0].count; t0++) {
            const int i0 = at[0] - t0 * part[0].back;
            for (int t1 = 0; t1 < part[1].count; t1++) {
                const int i1 = at[1] - t1 * part[1].back;
                for (int t2 = 0; t2 < part[2].count; t2++) {
                    const int i2 = at[2] - t2 * part[2].back;
                    if (i0 < 0 || i1 < 0 || i2 < 0 || i0 >= (int)a.in[0] || i1 >= (int)a.in[1] ||
                        i2 >= (int)a.in[2]) {
                        continue;
                    }
                    const i64 from = ((i64)i0 * a.in[1] + i1) * a.in[2] + i2;
                    const int tap = ((part[0].first + t0 * (int)a.step[0]) * kernel1 +
                                     part[1].first + t1 * (int)a.step[1]) * kernel2 +
                                    part[2].first + t2 * (int)a.step[2];
                    for (i64 c = 0; c < a.in_channels; c++) {
                        sum += convert<A>(x[c * in_span + from]) *
                               convert<A>(w[c * a.out_channels * taps + tap]);
                    }
                }
            }
        }
        a.y[n] = convert<T>(sum);
    }
}

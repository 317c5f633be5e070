// deform.cu - DeformConv: what each tap sees of each channel is read at its own place and laid out as
// the columns of a matrix (deform_columns), which the filters then multiply (deform_product).
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"
#include "rondo_activation.cuh"
#include "tile_product.cuh"

#ifndef RONDO_T
#define RONDO_T float
#endif
typedef RONDO_T T;
#ifndef RONDO_A
#define RONDO_A float  // of columns and sums
#endif
typedef RONDO_A A;

struct deform_arguments {
    const T *x;       // [batch, channels, in]
    const T *w;       // [filters, channels / groups, taps]
    const T *offset;  // [batch, 2 * offset_groups * taps, out]
    const T *bias;    // may be NULL
    const T *mask;    // [batch, offset_groups * taps, out], may be NULL
    T *y;
    A *columns;  // [batch, channels, taps, out]
    i64 batch, channels, filters, groups, offset_groups;
    i64 in[2], out[2], kernel[2], stride[2], dilation[2], before[2];
};

extern "C" __global__ void __launch_bounds__(256) deform_columns(const deform_arguments a) {
    take_turn();
    const i64 span = a.out[0] * a.out[1], taps = a.kernel[0] * a.kernel[1];
    const i64 count = a.batch * a.channels * taps * span;
    for (i64 n = (i64)blockIdx.x * 256 + threadIdx.x; n < count; n += (i64)gridDim.x * 256) {
        const i64 place = n % span, tap = n / span % taps, channel = n / span / taps % a.channels;
        const i64 image = n / span / taps / a.channels;
        const i64 part = channel / (a.channels / a.offset_groups);
        const i64 at = (image * a.offset_groups + part) * taps + tap;
        const double row =
            (double)(place / a.out[1] * a.stride[0] - a.before[0] +
                     tap / a.kernel[1] * a.dilation[0]) +
            convert<double>(a.offset[2 * at * span + place]);
        const double column =
            (double)(place % a.out[1] * a.stride[1] - a.before[1] +
                     tap % a.kernel[1] * a.dilation[1]) +
            convert<double>(a.offset[(2 * at + 1) * span + place]);
        double sum = 0.0;
        if (row > -1.0 && row < (double)a.in[0] && column > -1.0 && column < (double)a.in[1]) {
            const T *plane = a.x + (image * a.channels + channel) * a.in[0] * a.in[1];
            const i64 top = (i64)floor(row), left = (i64)floor(column);
            for (i64 r = top; r < top + 2; r++) {
                for (i64 c = left; c < left + 2; c++) {
                    if (r >= 0 && r < a.in[0] && c >= 0 && c < a.in[1]) {
                        sum += convert<double>(plane[r * a.in[1] + c]) *
                               (1.0 - fabs(row - (double)r)) * (1.0 - fabs(column - (double)c));
                    }
                }
            }
        }
        a.columns[n] = (A)(a.mask != 0 ? sum * convert<double>(a.mask[at * span + place]) : sum);
    }
}

struct load_filters {
    const T *w;
    i64 first, count, depth;
    __device__ __forceinline__ A operator()(i64 i, i64 k) const {
        return first + i < count ? convert<A>(w[(first + i) * depth + k]) : (A)0;
    }
};
struct load_places {
    const A *columns;
    i64 first, count;
    __device__ __forceinline__ A operator()(i64 k, i64 j) const {
        return first + j < count ? columns[k * count + first + j] : (A)0;
    }
};

// The grid is (tiles of places, tiles of a group's filters, images and groups).
extern "C" __global__ void __launch_bounds__(256) deform_product(const deform_arguments a) {
    take_turn();
    const i64 span = a.out[0] * a.out[1], outer = a.filters / a.groups;
    const i64 depth = a.channels / a.groups * a.kernel[0] * a.kernel[1];
    const i64 n0 = (i64)blockIdx.x * 64, m0 = (i64)blockIdx.y * 64;
    const int row = threadIdx.x >> 4, column = threadIdx.x & 15;
    for (i64 b = blockIdx.z; b < a.batch * a.groups; b += gridDim.z) {
        const i64 image = b / a.groups, group = b % a.groups;
        const load_filters load_a = {a.w + group * outer * depth, m0, outer, depth};
        const load_places load_b = {a.columns + b * depth * span, n0, span};
        A sum[4][4];
        tile_product<A>(depth, sum, load_a, load_b);
#pragma unroll
        for (int i = 0; i < 4; i++) {
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const i64 m = m0 + row + 16 * i, n = n0 + column + 16 * j;
                if (m < outer && n < span) {
                    const i64 filter = group * outer + m;
                    const A bias = a.bias != 0 ? convert<A>(a.bias[filter]) : (A)0;
                    a.y[(image * a.filters + filter) * span + n] = convert<T>(sum[i][j] + bias);
                }
            }
        }
    }
}

// conv_plain.cu - convolution with bias, residual and activation in plain arithmetic, for any layout,
// group count and up to three spatial extents.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"
#include "rondo_activation.cuh"
#include "rondo_convolution.cuh"
#include "tile_product.cuh"

#ifndef CHANNELS_LAST
#define CHANNELS_LAST 1  // of x, y and z, and the order of w
#endif

struct load_pixels {
    const conv_arguments &p;
    const T *x;
    i64 first, count, positions;
    __device__ __forceinline__ float operator()(i64 i, i64 k) const {
        const i64 m = first + i;
        if (m >= count) {
            return 0.0f;
        }
        const int at = (int)(m % positions);
        const int channels = (int)p.in_channels, kernel2 = (int)p.kernel[2];
        const int taps = kernel2 * (int)p.kernel[1] * (int)p.kernel[0];
        const int c = CHANNELS_LAST ? (int)k % channels : (int)k / taps;
        const int tap = CHANNELS_LAST ? (int)k / channels : (int)k % taps;
        const int k2 = tap % kernel2, k1 = tap / kernel2 % (int)p.kernel[1];
        const int k0 = tap / kernel2 / (int)p.kernel[1];
        const int o2 = at % (int)p.out[2], o1 = at / (int)p.out[2] % (int)p.out[1];
        const int o0 = at / (int)p.out[2] / (int)p.out[1];
        const int i0 = o0 * (int)p.stride[0] - (int)p.before[0] + k0 * (int)p.dilation[0];
        const int i1 = o1 * (int)p.stride[1] - (int)p.before[1] + k1 * (int)p.dilation[1];
        const int i2 = o2 * (int)p.stride[2] - (int)p.before[2] + k2 * (int)p.dilation[2];
        if (i0 < 0 || i1 < 0 || i2 < 0 || i0 >= (int)p.in[0] || i1 >= (int)p.in[1] ||
            i2 >= (int)p.in[2]) {
            return 0.0f;
        }
        const i64 position = ((i64)i0 * p.in[1] + i1) * p.in[2] + i2;
        return convert<float>(
            x[m / positions * p.x_image + position * p.x_position + c * p.x_channel]);
    }
};
struct load_filters {
    const T *w;
    i64 first, count, depth;
    __device__ __forceinline__ float operator()(i64 k, i64 j) const {
        return first + j < count ? convert<float>(w[(first + j) * depth + k]) : 0.0f;
    }
};

// The grid is (pixel tiles, filter tiles, groups).
extern "C" __global__ void __launch_bounds__(256) conv_plain(const conv_arguments p) {
    take_turn();
    const i64 positions = p.out[0] * p.out[1] * p.out[2], pixels = p.batch * positions;
    const i64 depth = p.kernel[0] * p.kernel[1] * p.kernel[2] * p.in_channels;
    const i64 m0 = (i64)blockIdx.x * 64, n0 = (i64)blockIdx.y * 64, group = blockIdx.z;
    const load_pixels load_a = {p, p.x + group * p.in_channels * p.x_channel, m0, pixels,
                                positions};
    const load_filters load_b = {p.w + group * p.out_channels * depth, n0, p.out_channels, depth};
    float sum[4][4];
    tile_product<float>(depth, sum, load_a, load_b);
    const int row = threadIdx.x >> 4, column = threadIdx.x & 15;
#pragma unroll
    for (int i = 0; i < 4; i++) {
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const i64 m = m0 + row + 16 * i, n = n0 + column + 16 * j;
            if (m >= pixels || n >= p.out_channels) {
                continue;
            }
            const i64 filter = group * p.out_channels + n;
            const i64 at = m / positions * p.y_image + m % positions * p.y_position +
                           filter * p.y_channel;
            float value = sum[i][j];
            if (p.bias != 0) {
                value += convert<float>(p.bias[filter]);
            }
            if (p.z != 0) {
                value += convert<float>(p.z[at]);
            }
            p.y[at] = convert<T>(
                activate_by_number(p.activation, value, (float)p.alpha, (float)p.beta));
        }
    }
}

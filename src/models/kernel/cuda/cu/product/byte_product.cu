// byte_product.cu - products of 8-bit integers, exact: MatMulInteger, QLinearMatMul, ConvInteger and
// QLinearConv. A block makes a 64 x 64 tile: 256 threads, 4 x 4 elements each, 32 steps of the inner
// extent at a time through shared memory, four steps in one word and one instruction.
//
// Unsigned bytes are taken less 128, and so are their zero points, so that one signed product serves
// all pairs of types. Zero points are subtracted at the end:
//   sum (a - p)(b - q) = sum ab - q sum a - p sum b + depth p q
// and the sums of the operands are made only where a zero point asks for them.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"
#include "rondo_quantize.cuh"
#include "rondo_bytes.cuh"
#include "rondo_activation.cuh"
#include "rondo_byte_ending.cuh"

#ifndef RONDO_SUM
#define RONDO_SUM i32  // i64 where the inner extent is so long that 32 bits could overflow
#endif
typedef RONDO_SUM Sum;
#ifndef X_IS_WHOLE
#define X_IS_WHOLE 0  // rows of x are whole words; of a convolution: the channels of a pixel
#endif
#ifndef WORDS
#define WORDS 1  // of a row of x at a time where there are few rows: 4 needs rows of 16 bytes
#endif
#ifndef ROWS
#define ROWS 1  // of these
#endif
#ifndef W_IS_PACKED
#define W_IS_PACKED 0  // w is [columns][pitch], signed, zeros behind the end of each
#endif

__device__ __forceinline__ void add_dot(i32 &sum, u32 a, u32 b) {
    sum = dot_bytes(a, b, sum);
}
__device__ __forceinline__ void add_dot(i64 &sum, u32 a, u32 b) {
    sum += dot_bytes(a, b, 0);
}
__device__ __forceinline__ Sum warp_total(Sum x) {
#pragma unroll
    for (int step = 16; step > 0; step >>= 1) {
        x += __shfl_xor_sync(0xffffffffu, x, step);
    }
    return x;
}

// Sums of a product and of both operands to an element of y, the `to`th.
__device__ __forceinline__ Y finish(const ending &e, i64 dot, i64 x_sum, i64 w_sum, i64 row,
                                    i64 column, i64 to) {
    const i64 p = X_HAS_ZERO ? read_zero(e.x_zero, e.x_zeros, row, X_IS_UNSIGNED) : 0;
    const i64 q = W_HAS_ZERO ? read_zero(e.w_zero, e.w_zeros, column, W_IS_UNSIGNED) : 0;
    column_ending<Y> end;
    end.load(e, column);
    return end.run(e, dot - q * x_sum - p * w_sum + e.depth * p * q, row, column,
                   e.z != 0 ? e.z[to] : 0.0f);
}

// ---- the tile ---------------------------------------------------------------------------------

struct tile_sums {
    Sum dot[4][4];
    Sum a[4], b[4];
};

// load_a(i, word) and load_b(j, word) return 0 outside. Of an operand that lies along the inner
// extent neighbouring threads take neighbouring words, otherwise neighbouring rows.
template <bool SUMS_A, bool SUMS_B, typename LoadA, typename LoadB>
__device__ __forceinline__ void byte_tile(i64 words, tile_sums &sums, const LoadA &load_a,
                                          const LoadB &load_b) {
    __shared__ u32 tile_a[8][68];
    __shared__ u32 tile_b[8][68];
    const int row = threadIdx.x >> 4, column = threadIdx.x & 15;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        sums.a[i] = 0;
        sums.b[i] = 0;
#pragma unroll
        for (int j = 0; j < 4; j++) {
            sums.dot[i][j] = 0;
        }
    }
    for (i64 first = 0; first < words; first += 8) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int at = threadIdx.x + i * 256;
            const int wa = at & 7, ma = at >> 3;
            const int wb = LoadB::lies_along ? at & 7 : at >> 6;
            const int nb = LoadB::lies_along ? at >> 3 : at & 63;
            tile_a[wa][ma] = first + wa < words ? load_a(ma, first + wa) : 0u;
            tile_b[wb][nb] = first + wb < words ? load_b(nb, first + wb) : 0u;
        }
        __syncthreads();
#pragma unroll
        for (int s = 0; s < 8; s++) {
            u32 a[4], b[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                a[i] = tile_a[s][row + 16 * i];
                b[i] = tile_b[s][column + 16 * i];
                if (SUMS_A) {
                    add_dot(sums.a[i], a[i], 0x01010101u);
                }
                if (SUMS_B) {
                    add_dot(sums.b[i], b[i], 0x01010101u);
                }
            }
#pragma unroll
            for (int i = 0; i < 4; i++) {
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    add_dot(sums.dot[i][j], a[i], b[j]);
                }
            }
        }
        __syncthreads();
    }
}

// Rows that lie along the inner extent.
template <bool IS_WHOLE, bool IS_UNSIGNED>
struct load_rows {
    static const bool lies_along = true;
    const u8 *base;
    i64 first, count, depth;
    __device__ __forceinline__ u32 operator()(i64 i, i64 word) const {
        if (first + i >= count) {
            return 0;
        }
        const u8 *from = base + (first + i) * depth + word * 4;
        if (IS_WHOLE) {
            return *(const u32 *)from ^ (IS_UNSIGNED ? 0x80808080u : 0u);
        }
        u32 value = 0;
#pragma unroll
        for (int b = 0; b < 4; b++) {
            if (word * 4 + b < depth) {
                value |= (u32)(u8)(from[b] ^ (IS_UNSIGNED ? 0x80 : 0)) << (8 * b);
            }
        }
        return value;
    }
};

// Columns of [depth][count].
template <bool IS_UNSIGNED>
struct load_columns {
    static const bool lies_along = false;
    const u8 *base;
    i64 first, count, depth;
    __device__ __forceinline__ u32 operator()(i64 j, i64 word) const {
        u32 value = 0;
#pragma unroll
        for (int b = 0; b < 4; b++) {
            const i64 k = word * 4 + b;
            if (first + j < count && k < depth) {
                value |= (u32)(u8)(base[k * count + first + j] ^ (IS_UNSIGNED ? 0x80 : 0))
                         << (8 * b);
            }
        }
        return value;
    }
};

template <bool IS_PACKED>
struct w_loader {
    typedef load_columns<W_IS_UNSIGNED != 0> type;
};
template <>
struct w_loader<true> {
    typedef load_rows<true, false> type;
};

// ---- matrices ---------------------------------------------------------------------------------

struct matmul_arguments {
    const u8 *x;
    const u8 *w;
    Y *y;
    i64 m, n, k, pitch;                           // pitch: of a packed column
    i64 batch_extent[4], x_batch[4], w_batch[4];  // strides in matrices
    ending end;
};

__device__ __forceinline__ void find_batch(const matmul_arguments &p, i64 *at_x, i64 *at_w) {
    i64 batch = blockIdx.z;
    *at_x = 0;
    *at_w = 0;
#pragma unroll
    for (int d = 3; d >= 0; d--) {
        const i64 i = batch % p.batch_extent[d];
        batch /= p.batch_extent[d];
        *at_x += i * p.x_batch[d];
        *at_w += i * p.w_batch[d];
    }
}

extern "C" __global__ void __launch_bounds__(256) byte_matmul(const matmul_arguments p) {
    take_turn();
    i64 at_x, at_w;
    find_batch(p, &at_x, &at_w);
    const i64 m0 = (i64)blockIdx.y * 64, n0 = (i64)blockIdx.x * 64;
    const i64 w_depth = W_IS_PACKED ? p.pitch : p.k;
    const load_rows<X_IS_WHOLE != 0, X_IS_UNSIGNED != 0> load_x = {p.x + at_x * p.m * p.k, m0, p.m,
                                                                   p.k};
    const w_loader<W_IS_PACKED != 0>::type load_w = {p.w + at_w * p.n * w_depth, n0, p.n, w_depth};
    tile_sums sums;
    byte_tile<W_HAS_ZERO != 0, X_HAS_ZERO != 0>((p.k + 3) / 4, sums, load_x, load_w);
    const int row = threadIdx.x >> 4, column = threadIdx.x & 15;
#pragma unroll
    for (int i = 0; i < 4; i++) {
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const i64 m = m0 + row + 16 * i, n = n0 + column + 16 * j;
            if (m < p.m && n < p.n) {
                const i64 to = ((i64)blockIdx.z * p.m + m) * p.n + n;
                p.y[to] = finish(p.end, sums.dot[i][j], sums.a[i], sums.b[j], at_x * p.m + m,
                                 at_w * p.n + n, to);
            }
        }
    }
}

// Few rows with packed weights are bound by reading these: a warp makes a column of all rows, WORDS
// words of it at a time.
extern "C" __global__ void __launch_bounds__(256) byte_vector(const matmul_arguments p) {
    take_turn();
    const int lane = threadIdx.x & 31;
    const i64 n = (i64)blockIdx.x * 8 + (threadIdx.x >> 5), words = (p.k + 3) / 4;
    if (n >= p.n) {
        return;
    }
    const load_rows<X_IS_WHOLE != 0, X_IS_UNSIGNED != 0> load_x = {p.x, 0, p.m, p.k};
    Sum dot[ROWS], x_sum[ROWS], w_sum = 0;
#pragma unroll
    for (int m = 0; m < ROWS; m++) {
        dot[m] = 0;
        x_sum[m] = 0;
    }
#pragma unroll 4
    for (i64 word = lane * WORDS; word < words; word += 32 * WORDS) {
        const pack<u32, WORDS> w = *(const pack<u32, WORDS> *)(p.w + n * p.pitch + word * 4);
#pragma unroll
        for (int m = 0; m < ROWS; m++) {
            pack<u32, WORDS> x;
            if (WORDS > 1) {
                x = *(const pack<u32, WORDS> *)(p.x + m * p.k + word * 4);
            } else {
                x.value[0] = load_x(m, word);
            }
#pragma unroll
            for (int i = 0; i < WORDS; i++) {
                const u32 four = x.value[i] ^ (WORDS > 1 && X_IS_UNSIGNED ? 0x80808080u : 0u);
                add_dot(dot[m], four, w.value[i]);
                if (W_HAS_ZERO) {
                    add_dot(x_sum[m], four, 0x01010101u);
                }
            }
        }
#pragma unroll
        for (int i = 0; X_HAS_ZERO && i < WORDS; i++) {
            add_dot(w_sum, w.value[i], 0x01010101u);
        }
    }
    w_sum = X_HAS_ZERO ? warp_total(w_sum) : 0;
#pragma unroll
    for (int m = 0; m < ROWS; m++) {
        dot[m] = warp_total(dot[m]);
        x_sum[m] = W_HAS_ZERO ? warp_total(x_sum[m]) : 0;
        if (lane == 0) {
            p.y[m * p.n + n] = finish(p.end, dot[m], x_sum[m], w_sum, m, n, m * p.n + n);
        }
    }
}

// ---- convolutions -----------------------------------------------------------------------------

// Of the tile, a are the filters and b the pixels, so that neighbouring threads write neighbouring
// pixels.
struct conv_arguments {
    const u8 *x;
    const u8 *w;  // packed: [filters][taps][channels in words], signed; direct: as ONNX has it
    Y *y;
    i64 batch, groups, in_channels, out_channels;  // channels of one group
    i64 in[3], out[3], kernel[3], stride[3], dilation[3], before[3];
    i64 x_channel, x_position, y_channel, y_position;  // strides
    i64 words;                                         // of one tap
    i64 pitch;                                         // of a packed filter
    ending end;
};

struct load_pixels {
    static const bool lies_along = false;
    const conv_arguments &p;
    const u8 *x;  // of the group and image of this thread's pixel
    int first[3];
    bool is_inside;
    u32 padding;  // the zero point, less 128 where bytes are
    __device__ __forceinline__ u32 operator()(i64, i64 word) const {
        if (!is_inside) {
            return 0;
        }
        const int words = (int)p.words, tap = (int)word / words;
        const int channel = ((int)word - tap * words) * 4;
        const int kernel2 = (int)p.kernel[2], kernel1 = (int)p.kernel[1];
        const int i0 = first[0] + tap / kernel2 / kernel1 * (int)p.dilation[0];
        const int i1 = first[1] + tap / kernel2 % kernel1 * (int)p.dilation[1];
        const int i2 = first[2] + tap % kernel2 * (int)p.dilation[2];
        const bool is_seen = i0 >= 0 && i1 >= 0 && i2 >= 0 && i0 < (int)p.in[0] &&
                             i1 < (int)p.in[1] && i2 < (int)p.in[2];
        const u8 *from = x + channel * p.x_channel +
                         (((i64)i0 * p.in[1] + i1) * p.in[2] + i2) * p.x_position;
        if (X_IS_WHOLE) {
            return is_seen ? *(const u32 *)from ^ (X_IS_UNSIGNED ? 0x80808080u : 0u)
                           : padding * 0x01010101u;
        }
        u32 value = 0;
#pragma unroll
        for (int b = 0; b < 4; b++) {
            if (channel + b < (int)p.in_channels) {
                const u32 byte =
                    is_seen ? (u32)(u8)(from[b * p.x_channel] ^ (X_IS_UNSIGNED ? 0x80 : 0)) : padding;
                value |= byte << (8 * b);
            }
        }
        return value;
    }
};

// Where a pixel of all images begins in y, or x with its strides and positions.
__device__ __forceinline__ i64 find_image(const conv_arguments &p, i64 image, i64 group,
                                          i64 positions, i64 channels, i64 channel_stride) {
    return image * positions * p.groups * channels + group * channels * channel_stride;
}

// The grid is (pixel tiles, filter tiles, groups).
extern "C" __global__ void __launch_bounds__(256) byte_conv(const conv_arguments p) {
    take_turn();
    const i64 positions = p.out[0] * p.out[1] * p.out[2], pixels = p.batch * positions;
    const i64 span = p.in[0] * p.in[1] * p.in[2], group = blockIdx.z;
    const i64 words = p.kernel[0] * p.kernel[1] * p.kernel[2] * p.words;
    const i64 m0 = (i64)blockIdx.y * 64, n0 = (i64)blockIdx.x * 64;
    const i64 pixel = n0 + (threadIdx.x & 63), image = pixel / positions;
    const int at = (int)(pixel - image * positions);
    const load_rows<true, false> load_w = {p.w + group * p.out_channels * p.pitch, m0,
                                           p.out_channels, p.pitch};
    const load_pixels load_x = {
        p,
        p.x + find_image(p, image, group, span, p.in_channels, p.x_channel),
        {at / (int)p.out[2] / (int)p.out[1] * (int)p.stride[0] - (int)p.before[0],
         at / (int)p.out[2] % (int)p.out[1] * (int)p.stride[1] - (int)p.before[1],
         at % (int)p.out[2] * (int)p.stride[2] - (int)p.before[2]},
        pixel < pixels,
        (u32)(u8)read_zero(p.end.x_zero, 1, 0, X_IS_UNSIGNED != 0)};
    tile_sums sums;
    byte_tile<X_HAS_ZERO != 0, W_HAS_ZERO != 0>(words, sums, load_w, load_x);
    const int row = threadIdx.x >> 4, column = threadIdx.x & 15;
#pragma unroll
    for (int i = 0; i < 4; i++) {
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const i64 m = m0 + row + 16 * i, n = n0 + column + 16 * j;
            if (m < p.out_channels && n < pixels) {
                const i64 to =
                    find_image(p, n / positions, group, positions, p.out_channels, p.y_channel) +
                    m * p.y_channel + n % positions * p.y_position;
                p.y[to] = finish(p.end, sums.dot[i][j], sums.b[j], sums.a[i], 0,
                                 group * p.out_channels + m, to);
            }
        }
    }
}

// Groups of few filters (depthwise convolutions): a thread an element, without tiles.
extern "C" __global__ void __launch_bounds__(256) byte_conv_direct(const conv_arguments p) {
    take_turn();
    const i64 positions = p.out[0] * p.out[1] * p.out[2], span = p.in[0] * p.in[1] * p.in[2];
    const i64 filters = p.groups * p.out_channels, count = p.batch * filters * positions;
    const int taps = (int)(p.kernel[0] * p.kernel[1] * p.kernel[2]);
    const int q = read_zero(p.end.x_zero, 1, 0, X_IS_UNSIGNED != 0);
    for (i64 i = (i64)blockIdx.x * 256 + threadIdx.x; i < count; i += (i64)gridDim.x * 256) {
        const i64 image = i / positions / filters;
        const i64 filter = i / p.y_channel % filters;  // the channel or the position is innermost
        const int at = (int)(i / p.y_position % positions);
        const int first0 = at / (int)p.out[2] / (int)p.out[1] * (int)p.stride[0] - (int)p.before[0];
        const int first1 = at / (int)p.out[2] % (int)p.out[1] * (int)p.stride[1] - (int)p.before[1];
        const int first2 = at % (int)p.out[2] * (int)p.stride[2] - (int)p.before[2];
        const u8 *x = p.x + find_image(p, image, filter / p.out_channels, span, p.in_channels,
                                       p.x_channel);
        const u8 *w = p.w + filter * p.in_channels * taps;
        const int zero = read_zero(p.end.w_zero, p.end.w_zeros, filter, W_IS_UNSIGNED != 0);
        i32 sum = 0;
        for (int tap = 0; tap < taps; tap++) {
            const int i0 = first0 + tap / (int)p.kernel[2] / (int)p.kernel[1] * (int)p.dilation[0];
            const int i1 = first1 + tap / (int)p.kernel[2] % (int)p.kernel[1] * (int)p.dilation[1];
            const int i2 = first2 + tap % (int)p.kernel[2] * (int)p.dilation[2];
            if (i0 < 0 || i1 < 0 || i2 < 0 || i0 >= (int)p.in[0] || i1 >= (int)p.in[1] ||
                i2 >= (int)p.in[2]) {
                continue;
            }
            const i64 from = (((i64)i0 * p.in[1] + i1) * p.in[2] + i2) * p.x_position;
            for (int c = 0; c < (int)p.in_channels; c++) {
                const int value = (i8)(x[c * p.x_channel + from] ^ (X_IS_UNSIGNED ? 0x80 : 0));
                const int weight = (i8)(w[c * taps + tap] ^ (W_IS_UNSIGNED ? 0x80 : 0));
                sum += (value - q) * (weight - zero);
            }
        }
        column_ending<Y> end;
        end.load(p.end, filter);
        p.y[i] = end.run(p.end, sum, 0, filter, p.end.z != 0 ? p.end.z[i] : 0.0f);
    }
}

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

#ifndef RONDO_Y
#define RONDO_Y i32  // i32: the sums themselves; otherwise steps of this type
#endif
typedef RONDO_Y Y;
#ifndef RONDO_S
#define RONDO_S float  // scales
#endif
typedef RONDO_S S;
#ifndef RONDO_SUM
#define RONDO_SUM i32  // i64 where the inner extent is so long that 32 bits could overflow
#endif
typedef RONDO_SUM Sum;
#ifndef A_IS_UNSIGNED
#define A_IS_UNSIGNED 0
#endif
#ifndef B_IS_UNSIGNED
#define B_IS_UNSIGNED 0
#endif
#ifndef A_HAS_ZERO
#define A_HAS_ZERO 1  // after the 128 is taken off
#endif
#ifndef B_HAS_ZERO
#define B_HAS_ZERO 1
#endif
#ifndef A_IS_WHOLE
#define A_IS_WHOLE 0  // rows of a are whole words
#endif
#ifndef B_IS_PACKED
#define B_IS_PACKED 0  // b is [n][words], signed, zeros behind its end
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

// ---- what happens to a sum --------------------------------------------------------------------

// Parameters of a go by row and those of b by column; each has one value or as many as it counts.
struct ending {
    const u8 *a_zero, *b_zero;  // may be NULL
    i64 a_zeros, b_zeros;
    const S *a_scale, *b_scale, *y_scale;
    i64 a_scales, b_scales;
    const Y *y_zero;  // may be NULL
    const i32 *bias;  // by row; may be NULL
    i64 depth;        // inner extent
};

template <typename To>
struct finisher {
    static __device__ __forceinline__ To run(const ending &e, i64 value, i64 row, i64 column) {
        double sum = (double)value;
        if (e.bias != 0) {
            sum += (double)e.bias[row];
        }
        const double a = (double)convert<compute_of<S>::type>(
            e.a_scale[e.a_scales == 1 ? 0 : row % e.a_scales]);
        const double b = (double)convert<compute_of<S>::type>(
            e.b_scale[e.b_scales == 1 ? 0 : column % e.b_scales]);
        const double y = (double)convert<compute_of<S>::type>(e.y_scale[0]);
        return quantize<To>(sum * (a * b) / y, e.y_zero != 0 ? e.y_zero[0] : (To)0);
    }
};
template <>
struct finisher<i32> {
    static __device__ __forceinline__ i32 run(const ending &, i64 value, i64, i64) {
        return (i32)value;
    }
};
template <>
struct finisher<float> {  // the gates of DynamicQuantizeLSTM
    static __device__ __forceinline__ float run(const ending &e, i64 value, i64, i64 column) {
        const float a = convert<float>(e.a_scale[0]);
        return (float)value *
               (a * convert<float>(e.b_scale[e.b_scales == 1 ? 0 : column % e.b_scales]));
    }
};

__device__ __forceinline__ Y finish(const ending &e, i64 dot, i64 a_sum, i64 b_sum, i64 row,
                                    i64 column) {
    const i64 p = A_HAS_ZERO ? read_zero(e.a_zero, e.a_zeros, row, A_IS_UNSIGNED) : 0;
    const i64 q = B_HAS_ZERO ? read_zero(e.b_zero, e.b_zeros, column, B_IS_UNSIGNED) : 0;
    return finisher<Y>::run(e, dot - q * a_sum - p * b_sum + e.depth * p * q, row, column);
}

// ---- the tile ---------------------------------------------------------------------------------

struct tile_sums {
    Sum dot[4][4];
    Sum a[4], b[4];
};

// load_a(i, word) and load_b(j, word) return 0 outside. Of an operand that lies along the inner
// extent neighbouring threads take neighbouring words, otherwise neighbouring rows.
template <typename LoadA, typename LoadB>
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
                if (B_HAS_ZERO) {
                    add_dot(sums.a[i], a[i], 0x01010101u);
                }
                if (A_HAS_ZERO) {
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
struct b_loader {
    typedef load_columns<B_IS_UNSIGNED != 0> type;
};
template <>
struct b_loader<true> {
    typedef load_rows<true, false> type;
};

// ---- matrices ---------------------------------------------------------------------------------

struct matmul_arguments {
    const u8 *a;
    const u8 *b;
    Y *y;
    i64 m, n, k, words;  // of four steps
    i64 batch_extent[4], a_batch[4], b_batch[4];  // strides in matrices
    ending end;
};

__device__ __forceinline__ void find_batch(const matmul_arguments &p, i64 *at_a, i64 *at_b) {
    i64 batch = blockIdx.z;
    *at_a = 0;
    *at_b = 0;
#pragma unroll
    for (int d = 3; d >= 0; d--) {
        const i64 i = batch % p.batch_extent[d];
        batch /= p.batch_extent[d];
        *at_a += i * p.a_batch[d];
        *at_b += i * p.b_batch[d];
    }
}

extern "C" __global__ void __launch_bounds__(256) byte_matmul(const matmul_arguments p) {
    take_turn();
    i64 at_a, at_b;
    find_batch(p, &at_a, &at_b);
    const i64 m0 = (i64)blockIdx.y * 64, n0 = (i64)blockIdx.x * 64;
    const i64 b_depth = B_IS_PACKED ? p.words * 4 : p.k;
    const load_rows<A_IS_WHOLE != 0, A_IS_UNSIGNED != 0> load_a = {p.a + at_a * p.m * p.k, m0, p.m,
                                                                   p.k};
    const b_loader<B_IS_PACKED != 0>::type load_b = {p.b + at_b * p.n * b_depth, n0, p.n, b_depth};
    tile_sums sums;
    byte_tile(p.words, sums, load_a, load_b);
    const int row = threadIdx.x >> 4, column = threadIdx.x & 15;
#pragma unroll
    for (int i = 0; i < 4; i++) {
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const i64 m = m0 + row + 16 * i, n = n0 + column + 16 * j;
            if (m < p.m && n < p.n) {
                p.y[((i64)blockIdx.z * p.m + m) * p.n + n] =
                    finish(p.end, sums.dot[i][j], sums.a[i], sums.b[j], at_a * p.m + m,
                           at_b * p.n + n);
            }
        }
    }
}

// Few rows with a packed b are bound by reading it: a warp a column, one row after another.
extern "C" __global__ void __launch_bounds__(256) byte_vector(const matmul_arguments p) {
    take_turn();
    const int lane = threadIdx.x & 31;
    const i64 n = (i64)blockIdx.x * 8 + (threadIdx.x >> 5), m = blockIdx.y;
    if (n >= p.n) {
        return;
    }
    const load_rows<A_IS_WHOLE != 0, A_IS_UNSIGNED != 0> load_a = {p.a, 0, p.m, p.k};
    const load_rows<true, false> load_b = {p.b, 0, p.n, p.words * 4};
    Sum dot = 0, a_sum = 0, b_sum = 0;
#pragma unroll 4
    for (i64 word = lane; word < p.words; word += 32) {
        const u32 a = load_a(m, word), b = load_b(n, word);
        add_dot(dot, a, b);
        if (B_HAS_ZERO) {
            add_dot(a_sum, a, 0x01010101u);
        }
        if (A_HAS_ZERO) {
            add_dot(b_sum, b, 0x01010101u);
        }
    }
    dot = warp_total(dot);
    a_sum = B_HAS_ZERO ? warp_total(a_sum) : 0;
    b_sum = A_HAS_ZERO ? warp_total(b_sum) : 0;
    if (lane == 0) {
        p.y[m * p.n + n] = finish(p.end, dot, a_sum, b_sum, m, n);
    }
}

// ---- convolutions -----------------------------------------------------------------------------

// a are the filters and b the pixels, so that neighbouring threads write neighbouring pixels.
struct conv_arguments {
    const u8 *x;
    const u8 *w;  // packed: [filters][taps][channels in words], signed; direct: as ONNX has it
    Y *y;
    i64 batch, groups, in_channels, out_channels;  // channels of one group
    i64 in[3], out[3], kernel[3], stride[3], dilation[3], before[3];
    i64 words;  // of one tap
    ending end;
};

struct load_pixels {
    static const bool lies_along = false;
    const conv_arguments &p;
    const u8 *x;  // of the group and image of this thread's pixel
    i64 span;     // of a channel
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
        const u8 *from = x + channel * span + (((i64)i0 * p.in[1] + i1) * p.in[2] + i2);
        u32 value = 0;
#pragma unroll
        for (int b = 0; b < 4; b++) {
            if (channel + b < (int)p.in_channels) {
                const u32 byte =
                    is_seen ? (u32)(u8)(from[b * span] ^ (B_IS_UNSIGNED ? 0x80 : 0)) : padding;
                value |= byte << (8 * b);
            }
        }
        return value;
    }
};

// The grid is (pixel tiles, filter tiles, groups).
extern "C" __global__ void __launch_bounds__(256) byte_conv(const conv_arguments p) {
    take_turn();
    const i64 positions = p.out[0] * p.out[1] * p.out[2], pixels = p.batch * positions;
    const i64 span = p.in[0] * p.in[1] * p.in[2], group = blockIdx.z;
    const i64 words = p.kernel[0] * p.kernel[1] * p.kernel[2] * p.words;
    const i64 m0 = (i64)blockIdx.y * 64, n0 = (i64)blockIdx.x * 64;
    const i64 pixel = n0 + (threadIdx.x & 63), image = pixel / positions;
    const int at = (int)(pixel - image * positions);
    const load_rows<true, false> load_a = {p.w + group * p.out_channels * words * 4, m0,
                                           p.out_channels, words * 4};
    const load_pixels load_b = {
        p,
        p.x + (image * p.groups + group) * p.in_channels * span,
        span,
        {at / (int)p.out[2] / (int)p.out[1] * (int)p.stride[0] - (int)p.before[0],
         at / (int)p.out[2] % (int)p.out[1] * (int)p.stride[1] - (int)p.before[1],
         at % (int)p.out[2] * (int)p.stride[2] - (int)p.before[2]},
        pixel < pixels,
        (u32)(u8)read_zero(p.end.b_zero, 1, 0, B_IS_UNSIGNED != 0)};
    tile_sums sums;
    byte_tile(words, sums, load_a, load_b);
    const int row = threadIdx.x >> 4, column = threadIdx.x & 15;
#pragma unroll
    for (int i = 0; i < 4; i++) {
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const i64 m = m0 + row + 16 * i, n = n0 + column + 16 * j;
            if (m < p.out_channels && n < pixels) {
                const i64 filter = group * p.out_channels + m;
                const i64 to = (n / positions * p.groups * p.out_channels + filter) * positions +
                               n % positions;
                p.y[to] = finish(p.end, sums.dot[i][j], sums.a[i], sums.b[j], filter, 0);
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
    const int q = read_zero(p.end.b_zero, 1, 0, B_IS_UNSIGNED != 0);
    for (i64 i = (i64)blockIdx.x * 256 + threadIdx.x; i < count; i += (i64)gridDim.x * 256) {
        const int at = (int)(i % positions);
        const i64 filter = i / positions % filters, image = i / positions / filters;
        const int first0 = at / (int)p.out[2] / (int)p.out[1] * (int)p.stride[0] - (int)p.before[0];
        const int first1 = at / (int)p.out[2] % (int)p.out[1] * (int)p.stride[1] - (int)p.before[1];
        const int first2 = at % (int)p.out[2] * (int)p.stride[2] - (int)p.before[2];
        const u8 *x = p.x + (image * p.groups + filter / p.out_channels) * p.in_channels * span;
        const u8 *w = p.w + filter * p.in_channels * taps;
        const int zero = read_zero(p.end.a_zero, p.end.a_zeros, filter, A_IS_UNSIGNED != 0);
        i32 sum = 0;
        for (int tap = 0; tap < taps; tap++) {
            const int i0 = first0 + tap / (int)p.kernel[2] / (int)p.kernel[1] * (int)p.dilation[0];
            const int i1 = first1 + tap / (int)p.kernel[2] % (int)p.kernel[1] * (int)p.dilation[1];
            const int i2 = first2 + tap % (int)p.kernel[2] * (int)p.dilation[2];
            if (i0 < 0 || i1 < 0 || i2 < 0 || i0 >= (int)p.in[0] || i1 >= (int)p.in[1] ||
                i2 >= (int)p.in[2]) {
                continue;
            }
            const i64 from = ((i64)i0 * p.in[1] + i1) * p.in[2] + i2;
            for (int c = 0; c < (int)p.in_channels; c++) {
                const int value = (i8)(x[c * span + from] ^ (B_IS_UNSIGNED ? 0x80 : 0));
                const int weight = (i8)(w[c * taps + tap] ^ (A_IS_UNSIGNED ? 0x80 : 0));
                sum += (value - q) * (weight - zero);
            }
        }
        p.y[i] = finisher<Y>::run(p.end, sum, filter, 0);
    }
}

// Packs computed weights, a thread a word.
struct pack_arguments {
    i64 count;  // of words
    const u8 *w;
    u32 *packed;
    i64 channels, taps, words;  // of one tap
};
extern "C" __global__ void __launch_bounds__(256) pack_filters(const pack_arguments p) {
    take_turn();
    for (i64 i = (i64)blockIdx.x * 256 + threadIdx.x; i < p.count; i += (i64)gridDim.x * 256) {
        const i64 channel = i % p.words * 4, tap = i / p.words % p.taps;
        const i64 filter = i / p.words / p.taps;
        u32 value = 0;
#pragma unroll
        for (int b = 0; b < 4; b++) {
            if (channel + b < p.channels) {
                const u8 byte = p.w[(filter * p.channels + channel + b) * p.taps + tap];
                value |= (u32)(u8)(byte ^ (A_IS_UNSIGNED ? 0x80 : 0)) << (8 * b);
            }
        }
        p.packed[i] = value;
    }
}

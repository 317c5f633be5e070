// byte_pack.cu - operands that byte_tensor.cu and byte_product.cu cannot read as they lie: weights that
// are computed are packed before each product, constant ones once on the host; and rows of x that
// are no whole words are made longer.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"
#include "rondo_bytes.cuh"

#ifndef W_IS_UNSIGNED
#define W_IS_UNSIGNED 0
#endif

// From any order to [columns][taps][channels in words], signed, with zeros behind the end of each
// column, and the sums of the columns. A warp a column.
struct pack_arguments {
    const u8 *w;
    u32 *packed;
    i32 *sums;
    i64 columns, taps, channels;
    i64 column_stride, tap_stride, channel_stride;
    i64 words, pitch_words;  // of a tap, of a column
};
extern "C" __global__ void __launch_bounds__(256) pack_weights(const pack_arguments p) {
    take_turn();
    const int lane = threadIdx.x & 31;
    const i64 column = (i64)blockIdx.x * 8 + (threadIdx.x >> 5);
    if (column >= p.columns) {
        return;
    }
    const u8 *from = p.w + column * p.column_stride;
    i32 sum = 0;
    for (i64 word = lane; word < p.pitch_words; word += 32) {
        const i64 tap = word / p.words, channel = word % p.words * 4;
        u32 value = 0;
#pragma unroll
        for (int b = 0; b < 4; b++) {
            if (tap < p.taps && channel + b < p.channels) {
                const u8 byte = from[tap * p.tap_stride + (channel + b) * p.channel_stride];
                value |= (u32)(u8)(byte ^ (W_IS_UNSIGNED ? 0x80 : 0)) << (8 * b);
            }
        }
        p.packed[column * p.pitch_words + word] = value;
        sum = dot_bytes(value, 0x01010101u, sum);
    }
#pragma unroll
    for (int step = 16; step > 0; step >>= 1) {
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
    }
    if (lane == 0) {
        p.sums[column] = sum;
    }
}

// Rows of `width` bytes become rows of whole words, with their zero point behind the end. A thread a
// word.
struct pad_arguments {
    i64 count;  // of words
    const u8 *x;
    u32 *padded;
    i64 width, words;
    const u8 *zero;  // may be NULL: 0
    i64 zeros;       // one, or one for each row, over and over
};
extern "C" __global__ void __launch_bounds__(256) pad_rows(const pad_arguments p) {
    take_turn();
    for (i64 i = (i64)blockIdx.x * 256 + threadIdx.x; i < p.count; i += (i64)gridDim.x * 256) {
        const i64 row = i / p.words, at = i % p.words * 4;
        const u32 zero = p.zero != 0 ? p.zero[find_parameter(p.zeros, row)] : 0u;
        u32 value = 0;
#pragma unroll
        for (int b = 0; b < 4; b++) {
            value |= (at + b < p.width ? (u32)p.x[row * p.width + at + b] : zero) << (8 * b);
        }
        p.padded[i] = value;
    }
}

// rondo_bits.cuh - what the products with weights of few bits are given (op/math/bits_product.h). T is
// the type of a, scales and y.
// SPDX-License-Identifier: Apache-2.0

#ifndef BITS
#define BITS 4
#endif
#ifndef ZEROS
#define ZEROS 0  // 0: 2^(BITS - 1); 1: packed; 2: numbers of type T
#endif

enum { MASK = (1 << BITS) - 1, PARTS = 8 / BITS };

struct bits_arguments {
    const T *a;
    const u8 *b;
    const T *scales;
    const void *zeros;    // may be NULL
    const i32 *groups;    // may be NULL
    const T *bias;        // may be NULL
    T *y;
    i64 m, n, k;
    i64 block, blocks;    // numbers, and blocks of a column
    i64 row_bytes, zero_bytes;  // of a column
    faults told;
};

__device__ __forceinline__ float get_zero(const bits_arguments &p, i64 n, i64 block) {
    if (ZEROS == 1) {
        const u32 byte = ((const u8 *)p.zeros)[n * p.zero_bytes + block / PARTS];
        return (float)(byte >> (block % PARTS * BITS) & MASK);
    }
    return ZEROS == 2 ? convert<float>(((const T *)p.zeros)[n * p.blocks + block])
                      : (float)(1 << (BITS - 1));
}

// number - zero. A conversion takes longer than what makes the bits of 2^23 + number, from which a whole
// zero is taken exactly.
__device__ __forceinline__ float centre_number(u32 number, float zero) {
    const float moved = __uint_as_float(0x4b000000u | number);
    return ZEROS == 2 ? moved - 8388608.0f - zero : moved - (8388608.0f + zero);
}

// Columns of b come as far as the second-level cache while the kernel before still runs, a line of 128 bytes for each
// of `threads`.
__device__ __forceinline__ void ask_early(const bits_arguments &p, i64 first, i64 count, int thread, int threads) {
    const i64 end = first + count < p.n ? first + count : p.n, bytes = (end - first) * p.row_bytes;
    for (i64 at = (i64)thread * 128; at < bytes; at += threads * 128) {
        asm volatile("prefetch.global.L2 [%0];" ::"l"(p.b + first * p.row_bytes + at));
    }
}

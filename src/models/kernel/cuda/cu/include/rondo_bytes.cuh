// rondo_bytes.cuh - four 8-bit integers in a word, and their zero points. Unsigned bytes are taken less
// 128 (the highest bit flipped), so that one signed product serves all.
// SPDX-License-Identifier: Apache-2.0

// sum + the four products of signed bytes.
__device__ __forceinline__ i32 dot_bytes(u32 a, u32 b, i32 sum) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 610
    return __dp4a((int)a, (int)b, sum);
#else
#pragma unroll
    for (int i = 0; i < 4; i++) {
        sum += (i32)(i8)(a >> (8 * i)) * (i32)(i8)(b >> (8 * i));
    }
    return sum;
#endif
}
// Where row or column `at` finds its parameter: one serves all, or each has one, over and over.
__device__ __forceinline__ i64 find_parameter(i64 count, i64 at) {
    return count == 1 ? 0 : at < count ? at : at % count;
}
#ifndef COLUMNS_WRAP
#define COLUMNS_WRAP 1  // 0: parameters by column are one or as many as there are columns
#endif
__device__ __forceinline__ i64 find_column(i64 count, i64 at) {
    return COLUMNS_WRAP ? find_parameter(count, at) : count == 1 ? 0 : at;
}
__device__ __forceinline__ int read_zero(const u8 *zero, i64 count, i64 at, bool is_unsigned) {
    if (zero == 0) {
        return is_unsigned ? -128 : 0;
    }
    const u8 value = zero[find_parameter(count, at)];
    return is_unsigned ? (int)value - 128 : (int)(i8)value;
}

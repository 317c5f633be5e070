// rondo_keys.cuh - numbers that sort as values do.
// SPDX-License-Identifier: Apache-2.0

// Unsigned numbers in the order of the values.
template <typename From>
__device__ __forceinline__ u64 key_of(From x) {
    const bool is_signed = (From)-1 < (From)0;
    return is_signed ? (u64)(i64)x ^ 0x8000000000000000ull : (u64)x;
}
__device__ __forceinline__ u64 key_of(float x) {
    const u32 bits = __float_as_uint(x + 0.0f);  // -0 is 0
    return x != x ? 0xffffffffu : (bits >> 31 ? ~bits : bits | 0x80000000u);
}
__device__ __forceinline__ u64 key_of(double x) {
    const u64 bits = (u64)__double_as_longlong(x + 0.0);
    return x != x ? ~(u64)0 : (bits >> 63 ? ~bits : bits | 0x8000000000000000ull);
}

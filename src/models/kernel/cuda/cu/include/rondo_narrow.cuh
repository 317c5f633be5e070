// rondo_narrow.cuh - elements of 8, 4 and 2 bits: one a byte, in its low bits. They are calculated with
// as float or i32, which they turn into by themselves; back by convert, with the rules of Cast.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_UNBOUNDED
#define RONDO_UNBOUNDED 0  // beyond the limits of an 8-bit float is NaN or infinity
#endif
#ifndef RONDO_ROUNDING
#define RONDO_ROUNDING 0  // of powers of two: 0 up, 1 down, 2 nearest
#endif

__device__ __forceinline__ float power_of_two(int exponent) {
    return __uint_as_float((u32)(exponent + 127) << 23);
}
__device__ __forceinline__ float no_number() {
    return __int_as_float(0x7fc00000);
}

// The largest finite magnitude, what lies above it, and what is no number, as on the host.
template <int FRACTION, int BIAS, u32 SIGN, u32 LARGEST, u32 BEYOND, u32 NO_NUMBER>
struct small_float {
    u8 bits;
    __device__ __forceinline__ operator float() const {
        const u32 magnitude = bits & (SIGN - 1);
        if ((NO_NUMBER == 0x80 && bits == 0x80) || (magnitude > LARGEST && magnitude != BEYOND)) {
            return no_number();
        }
        float value = BEYOND == NO_NUMBER ? no_number() : infinity();
        if (magnitude <= LARGEST) {
            const int exponent = (int)(magnitude >> FRACTION);
            const u32 hidden = exponent > 0 ? 1u << FRACTION : 0;
            const u32 fraction = (magnitude & ((1u << FRACTION) - 1)) | hidden;
            value = (float)fraction * power_of_two((exponent > 0 ? exponent : 1) - BIAS - FRACTION);
        }
        return bits & SIGN ? -value : value;
    }
    static __device__ __forceinline__ u8 add_sign(u32 magnitude, u32 sign) {
        return (u8)(magnitude & SIGN ? magnitude : magnitude | sign);
    }
    static __device__ __forceinline__ u8 encode(float x) {
        const u32 word = __float_as_uint(x), sign = word >> 31 ? SIGN : 0;
        const int least = 1 - BIAS;
        if (x != x) {
            return add_sign(NO_NUMBER, sign);
        }
        u32 magnitude = LARGEST + 1;
        if (fabsf(x) < infinity()) {
            int exponent = (int)(word >> 23 & 0xff) - 127;
            exponent = exponent < least ? least : exponent;
            const float units = rintf(fabsf(x) * power_of_two(FRACTION - exponent));
            magnitude = ((u32)(exponent - least) << FRACTION) + (u32)units;
        }
        if (magnitude > LARGEST) {
            return add_sign(RONDO_UNBOUNDED ? BEYOND : LARGEST, sign);
        }
        return (u8)(magnitude == 0 && NO_NUMBER == 0x80 ? 0 : magnitude | sign);
    }
};
typedef small_float<1, 1, 0x08, 0x07, 0x07, 0x08> f4e2m1;
typedef small_float<3, 7, 0x80, 0x7e, 0x7f, 0x7f> f8e4m3fn;
typedef small_float<3, 8, 0x80, 0x7f, 0x80, 0x80> f8e4m3fnuz;
typedef small_float<2, 15, 0x80, 0x7b, 0x7c, 0x7e> f8e5m2;
typedef small_float<2, 16, 0x80, 0x7f, 0x80, 0x80> f8e5m2fnuz;

// A power of two.
struct f8e8m0 {
    u8 bits;
    __device__ __forceinline__ operator float() const {
        return bits == 0xff ? no_number()
               : bits == 0  ? __uint_as_float(0x00400000u)
                            : __uint_as_float((u32)bits << 23);
    }
    static __device__ __forceinline__ u8 encode(float x) {
        u32 word = __float_as_uint(x) & 0x7fffffffu;
        if (x != x) {
            return 0xff;
        }
        int code = -1;
        if (word >= 0x7f800000u) {
            code = 0xff;
        } else if (word > 0) {
            code = (int)(word >> 23);
            if (code == 0) {  // not normal: shifted until it looks as if it were
                code = 1;
                for (; word < 0x00800000u; word <<= 1) {
                    code--;
                }
            }
            const u32 fraction = word & 0x007fffffu;
            code += (RONDO_ROUNDING == 0 && fraction > 0) ||
                    (RONDO_ROUNDING == 2 && fraction >= 0x00400000u);
        }
        return (u8)(code >= 0 && code <= 0xfe ? code
                    : RONDO_UNBOUNDED         ? 0xff
                    : code < 0                ? 0
                                              : 0xfe);
    }
};

template <int BITS, bool IS_SIGNED>
struct small_int {
    u8 bits;
    __device__ __forceinline__ operator i32() const {
        const i32 value = bits & ((1 << BITS) - 1), top = 1 << (BITS - 1);
        return IS_SIGNED ? (value ^ top) - top : value;
    }
};
typedef small_int<4, true> i4;
typedef small_int<4, false> u4;
typedef small_int<2, true> i2;
typedef small_int<2, false> u2;

template <int F, int B, u32 S, u32 L, u32 O, u32 N>
struct compute_of<small_float<F, B, S, L, O, N>> {
    typedef float type;
};
template <>
struct compute_of<f8e8m0> {
    typedef float type;
};
template <int BITS, bool IS_SIGNED>
struct compute_of<small_int<BITS, IS_SIGNED>> {
    typedef i32 type;
};
template <int F, int B, u32 S, u32 L, u32 O, u32 N>
struct converter<small_float<F, B, S, L, O, N>> {
    static __device__ __forceinline__ small_float<F, B, S, L, O, N> run(float x) {
        small_float<F, B, S, L, O, N> y;
        y.bits = small_float<F, B, S, L, O, N>::encode(x);
        return y;
    }
};
template <>
struct converter<f8e8m0> {
    static __device__ __forceinline__ f8e8m0 run(float x) {
        f8e8m0 y;
        y.bits = f8e8m0::encode(x);
        return y;
    }
};
template <int BITS, bool IS_SIGNED>
struct converter<small_int<BITS, IS_SIGNED>> {
    static __device__ __forceinline__ small_int<BITS, IS_SIGNED> run(i32 x) {
        small_int<BITS, IS_SIGNED> y;
        y.bits = (u8)((u32)x & ((1u << BITS) - 1));
        return y;
    }
};

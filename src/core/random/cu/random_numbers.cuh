// random_numbers.cuh - from random words to numbers, bit for bit the same on the host and on CUDA.
//
// One text for both: plain C that is compiled into the library, and CUDA C for NVRTC. Only what
// IEEE 754 defines to the last bit is used: conversions, +, -, *, /, sqrt, and fused multiply-add
// where it is written; compilers must fuse nothing on their own. No library function is exact
// enough: log, sin and cos are series here, good to about one unit in the last place.
// SPDX-License-Identifier: Apache-2.0
#ifdef __CUDACC__
#define RONDO_FMA_F32(a, b, c) __fmaf_rn((a), (b), (c))
#define RONDO_FMA_F64(a, b, c) __fma_rn((a), (b), (c))
#define RONDO_DIVIDE_F32(a, b) __fdiv_rn((a), (b))
#define RONDO_SQRT_F32(a) __fsqrt_rn(a)
#define RONDO_SQRT_F64(a) __dsqrt_rn(a)
#else
#define RONDO_FMA_F32(a, b, c) __builtin_fmaf((a), (b), (c))
#define RONDO_FMA_F64(a, b, c) __builtin_fma((a), (b), (c))
#define RONDO_DIVIDE_F32(a, b) ((a) / (b))
#define RONDO_SQRT_F32(a) __builtin_sqrtf(a)
#define RONDO_SQRT_F64(a) __builtin_sqrt(a)
#endif

RONDO_RANDOM_INLINE float rondo_bits_to_f32(unsigned int bits) {
    union {
        unsigned int bits;
        float value;
    } x;
    x.bits = bits;
    return x.value;
}
RONDO_RANDOM_INLINE unsigned int rondo_bits_of_f32(float value) {
    union {
        float value;
        unsigned int bits;
    } x;
    x.value = value;
    return x.bits;
}
RONDO_RANDOM_INLINE double rondo_bits_to_f64(unsigned long long bits) {
    union {
        unsigned long long bits;
        double value;
    } x;
    x.bits = bits;
    return x.value;
}
RONDO_RANDOM_INLINE unsigned long long rondo_bits_of_f64(double value) {
    union {
        double value;
        unsigned long long bits;
    } x;
    x.value = value;
    return x.bits;
}

// In [low, top]. `shift` leaves as many bits of the word as the element's significand has, and
// `step` is 2^(shift - 32), so that the unit interval is met exactly; top is the largest element
// below the upper end, for what rounding would lift onto it.
RONDO_RANDOM_INLINE float rondo_uniform_f32(unsigned int word, int shift, float step, float low,
                                            float range, float top) {
    const float value = RONDO_FMA_F32((float)(int)(word >> shift) * step, range, low);
    return value < top ? value : top;
}
RONDO_RANDOM_INLINE double rondo_uniform_f64(unsigned int word0, unsigned int word1, double low,
                                             double range, double top) {
    const unsigned long long word = (unsigned long long)word1 << 32 | word0;
    const double unit = (double)(long long)(word >> 11) * 0x1p-53;
    const double value = RONDO_FMA_F64(unit, range, low);
    return value < top ? value : top;
}

// Two independent standard normal numbers (Box and Muller, 1958): the radius from one word, the
// angle from the other.
RONDO_RANDOM_INLINE void rondo_normal_f32(unsigned int radius_word, unsigned int angle_word,
                                          float *out_first, float *out_second) {
    // u in (0, 1], and its logarithm: u = m 2^e with m from sqrt(1/2) to sqrt(2), s = (m-1)/(m+1),
    // log u = e log 2 + 2 (s + s^3/3 + s^5/5 + ...).
    const float u = RONDO_FMA_F32((float)radius_word, 0x1p-32f, 0x1p-33f);
    const unsigned int shifted = rondo_bits_of_f32(u) + (0x3f800000u - 0x3f3504f3u);
    const float e = (float)((int)(shifted >> 23) - 127);
    const float m = rondo_bits_to_f32((shifted & 0x007fffffu) + 0x3f3504f3u);
    const float f = m - 1.0f;
    const float s = RONDO_DIVIDE_F32(f, 2.0f + f);
    const float z = s * s;
    float t = RONDO_FMA_F32(z, 1.0f / 9, 1.0f / 7);
    t = RONDO_FMA_F32(t, z, 1.0f / 5);
    t = RONDO_FMA_F32(t, z, 1.0f / 3);
    t = t * z;
    const float s2 = s + s;
    const float log_m = RONDO_FMA_F32(s2, t, s2);
    const float log_u = RONDO_FMA_F32(e, 0x1.62e43p-1f, log_m);
    const float radius = RONDO_SQRT_F32(-2.0f * log_u);

    // The word is a part of a full turn: the nearest quarter, and x, at most an eighth from it.
    const unsigned int quarter = (angle_word + 0x20000000u) >> 30;
    const float x = (float)(int)(angle_word - (quarter << 30)) * 0x1.921fb6p-30f;
    const float y = x * x;
    float sine = RONDO_FMA_F32(y, 1.0f / 362880, -1.0f / 5040);
    sine = RONDO_FMA_F32(sine, y, 1.0f / 120);
    sine = RONDO_FMA_F32(sine, y, -1.0f / 6);
    sine = RONDO_FMA_F32(sine * y, x, x);
    float cosine = RONDO_FMA_F32(y, 1.0f / 40320, -1.0f / 720);
    cosine = RONDO_FMA_F32(cosine, y, 1.0f / 24);
    cosine = RONDO_FMA_F32(cosine, y, -1.0f / 2);
    cosine = RONDO_FMA_F32(cosine, y, 1.0f);
    const float a = (quarter & 1u) ? sine : cosine;
    const float b = (quarter & 1u) ? cosine : sine;
    *out_first = radius * (((quarter + 1u) & 2u) ? -a : a);
    *out_second = radius * ((quarter & 2u) ? -b : b);
}

// The same in double precision, from 64-bit words.
RONDO_RANDOM_INLINE void rondo_normal_f64(unsigned long long radius_word,
                                          unsigned long long angle_word, double *out_first,
                                          double *out_second) {
    const double u = RONDO_FMA_F64((double)(long long)(radius_word >> 11), 0x1p-53, 0x1p-54);
    const unsigned long long shifted =
        rondo_bits_of_f64(u) + (0x3ff0000000000000ull - 0x3fe6a09e667f3bcdull);
    const double e = (double)((int)(shifted >> 52) - 1023);
    const double m = rondo_bits_to_f64((shifted & 0x000fffffffffffffull) + 0x3fe6a09e667f3bcdull);
    const double f = m - 1.0;
    const double s = f / (2.0 + f);
    const double z = s * s;
    double t = RONDO_FMA_F64(z, 1.0 / 23, 1.0 / 21);
    t = RONDO_FMA_F64(t, z, 1.0 / 19);
    t = RONDO_FMA_F64(t, z, 1.0 / 17);
    t = RONDO_FMA_F64(t, z, 1.0 / 15);
    t = RONDO_FMA_F64(t, z, 1.0 / 13);
    t = RONDO_FMA_F64(t, z, 1.0 / 11);
    t = RONDO_FMA_F64(t, z, 1.0 / 9);
    t = RONDO_FMA_F64(t, z, 1.0 / 7);
    t = RONDO_FMA_F64(t, z, 1.0 / 5);
    t = RONDO_FMA_F64(t, z, 1.0 / 3);
    t = t * z;
    const double s2 = s + s;
    const double log_m = RONDO_FMA_F64(s2, t, s2);
    const double log_u = RONDO_FMA_F64(e, 0x1.62e42fefa39efp-1, log_m);
    const double radius = RONDO_SQRT_F64(-2.0 * log_u);

    const unsigned long long quarter = (angle_word + 0x2000000000000000ull) >> 62;
    const double x = (double)(long long)(angle_word - (quarter << 62)) * 0x1.921fb54442d18p-62;
    const double y = x * x;
    double sine = RONDO_FMA_F64(y, 1.0 / 355687428096000, -1.0 / 1307674368000);
    sine = RONDO_FMA_F64(sine, y, 1.0 / 6227020800);
    sine = RONDO_FMA_F64(sine, y, -1.0 / 39916800);
    sine = RONDO_FMA_F64(sine, y, 1.0 / 362880);
    sine = RONDO_FMA_F64(sine, y, -1.0 / 5040);
    sine = RONDO_FMA_F64(sine, y, 1.0 / 120);
    sine = RONDO_FMA_F64(sine, y, -1.0 / 6);
    sine = RONDO_FMA_F64(sine * y, x, x);
    double cosine = RONDO_FMA_F64(y, 1.0 / 20922789888000, -1.0 / 87178291200);
    cosine = RONDO_FMA_F64(cosine, y, 1.0 / 479001600);
    cosine = RONDO_FMA_F64(cosine, y, -1.0 / 3628800);
    cosine = RONDO_FMA_F64(cosine, y, 1.0 / 40320);
    cosine = RONDO_FMA_F64(cosine, y, -1.0 / 720);
    cosine = RONDO_FMA_F64(cosine, y, 1.0 / 24);
    cosine = RONDO_FMA_F64(cosine, y, -1.0 / 2);
    cosine = RONDO_FMA_F64(cosine, y, 1.0);
    const double a = (quarter & 1u) ? sine : cosine;
    const double b = (quarter & 1u) ? cosine : sine;
    *out_first = radius * (((quarter + 1u) & 2u) ? -a : a);
    *out_second = radius * ((quarter & 2u) ? -b : b);
}

// An event of probability p happens when its word is below this: exact for every multiple of
// 2^-32.
RONDO_RANDOM_INLINE unsigned long long rondo_threshold_f32(float probability) {
    const float scaled = probability * 4294967296.0f;
    if (!(scaled > 0.0f)) {
        return 0;
    }
    if (scaled >= 4294967296.0f) {
        return 4294967296ull;
    }
    const unsigned long long whole = (unsigned long long)scaled;
    return whole + ((float)whole < scaled ? 1u : 0u);
}
RONDO_RANDOM_INLINE unsigned long long rondo_threshold_f64(double probability) {
    const double scaled = probability * 4294967296.0;
    if (!(scaled > 0.0)) {
        return 0;
    }
    if (scaled >= 4294967296.0) {
        return 4294967296ull;
    }
    const unsigned long long whole = (unsigned long long)scaled;
    return whole + ((double)whole < scaled ? 1u : 0u);
}

// Between half or bfloat16 bits and float; round to nearest even. Every NaN becomes 0x7fff.
RONDO_RANDOM_INLINE unsigned short rondo_f16_bits(float value) {
#ifdef __CUDACC__
    unsigned short bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
#else
    const unsigned int all = rondo_bits_of_f32(value);
    const unsigned int sign = (all >> 16) & 0x8000u, size = all & 0x7fffffffu;
    // Adding 1/2 leaves a subnormal's 2^-24 steps in the low bits.
    const unsigned int small =
        rondo_bits_of_f32(rondo_bits_to_f32(size) + 0.5f) - 0x3f000000u;
    const unsigned int normal = (size + 0xfffu + ((size >> 13) & 1u) - 0x38000000u) >> 13;
    const unsigned int finite = size < 0x38800000u ? small : normal;
    const unsigned int bits = sign | (size < 0x477ff000u ? finite : 0x7c00u);
    return (unsigned short)(size > 0x7f800000u ? 0x7fffu : bits);
#endif
}
RONDO_RANDOM_INLINE float rondo_f16_value(unsigned short bits) {
#ifdef __CUDACC__
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
#else
    const unsigned int sign = (unsigned int)(bits & 0x8000u) << 16;
    const unsigned int size = (unsigned int)(bits & 0x7fffu) << 13;
    // Scaling by 2^112 moves the exponent, subnormals included; infinity and NaN are set apart.
    const unsigned int scaled = rondo_bits_of_f32(rondo_bits_to_f32(size) * 0x1p112f);
    return rondo_bits_to_f32(sign | (size >= 0x0f800000u ? size | 0x7f800000u : scaled));
#endif
}
RONDO_RANDOM_INLINE unsigned short rondo_bf16_bits(float value) {
    const unsigned int all = rondo_bits_of_f32(value);
    const unsigned int bits = (all + 0x7fffu + ((all >> 16) & 1u)) >> 16;
    return (unsigned short)((all & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : bits);
}
RONDO_RANDOM_INLINE float rondo_bf16_value(unsigned short bits) {
    return rondo_bits_to_f32((unsigned int)bits << 16);
}

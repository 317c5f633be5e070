// kernel/host/simd/simd_math.h — functions of one value in a form that compilers vectorise: no
// branches, no calls, no tables. Polynomials were fitted on Chebyshev nodes of the stated interval.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

#define RONDO_INLINE static inline __attribute__((always_inline))

RONDO_INLINE float math_select(int condition, float yes, float no) {
    return condition ? yes : no;
}

RONDO_INLINE float math_from_bits(int32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

RONDO_INLINE int32_t math_to_bits(float value) {
    int32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

// exp(x) = 2^n * the result, which is exp(r), r in [-ln 2 / 2, ln 2 / 2].
RONDO_INLINE float math_exp_part(float x, int32_t *out_n) {
    const float magic = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
    float shifted = x * 1.44269504f + magic;
    float n = shifted - magic;
    float r = x - n * 0.693359375f;
    r = r + n * 2.12194440e-4f;
    float p = 0.001394858118146658f;
    p = p * r + 0.008375128731131554f;
    p = p * r + 0.041666217148303986f;
    p = p * r + 0.16666415333747864f;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    *out_n = math_to_bits(shifted) - math_to_bits(magic);
    return p;
}

RONDO_INLINE float math_power_of_two(int32_t n) {
    return math_from_bits((int32_t)((uint32_t)(n + 127) << 23));
}

// The clamped ends give infinity and zero by themselves, since 2^n is applied in two halves;
// denormal results are kept.
RONDO_INLINE float math_exp(float x) {
    float clamped = math_select(x > 90.0f, 90.0f, x);
    clamped = math_select(clamped < -105.0f, -105.0f, clamped);
    int32_t n;
    float p = math_exp_part(clamped, &n);
    int32_t half = n >> 1;
    return p * math_power_of_two(half) * math_power_of_two(n - half);
}

// For x <= 0; what would be denormal is zero, as 2^-127 has the bits of zero.
RONDO_INLINE float math_exp_negative(float x) {
    int32_t n;
    float p = math_exp_part(math_select(x < -88.3f, -88.3f, x), &n);
    return p * math_power_of_two(n);
}

// exp(x) - 1 for x <= 0: its series down to -0.5, where the difference would lose digits.
RONDO_INLINE float math_expm1_negative(float x) {
    float p = 2.48015873e-5f;
    p = p * x + 1.98412698e-4f;
    p = p * x + 1.38888889e-3f;
    p = p * x + 8.33333333e-3f;
    p = p * x + 0.0416666667f;
    p = p * x + 0.166666667f;
    p = p * x + 0.5f;
    return math_select(x < -0.5f, math_exp_negative(x) - 1.0f, x + x * x * p);
}

// With an exponential of what is not above 0, which needs one limit and one power of two.
RONDO_INLINE float math_sigmoid(float x) {
    float power = math_exp_negative(-fabsf(x));
    return math_select(x < 0.0f, power, 1.0f) / (1.0f + power);
}

// A polynomial in x^2 on [0, 0.625], otherwise (1 - p) / (1 + p), p = exp(-2 |x|), with the sign of
// x.
RONDO_INLINE float math_tanh(float x) {
    float magnitude = fabsf(x);
    float square = x * x;
    float p = -0.005664775148034096f;
    p = p * square + 0.020595679059624672f;
    p = p * square - 0.05372267961502075f;
    p = p * square + 0.13331149518489838f;
    p = p * square - 0.3333326280117035f;
    float small = magnitude + magnitude * square * p;
    float power = math_exp_negative(-2.0f * magnitude);
    float large = (1.0f - power) / (1.0f + power);
    return copysignf(math_select(magnitude > 0.625f, large, small), x);
}

// A polynomial in x^2 on [0, 1], otherwise 1 - 1 / Q(|x|)^8, the form of Hastings (Approximations
// for Digital Computers, 1955) with Q refitted to degree 7 on [1, 4].
RONDO_INLINE float math_erf(float x) {
    float magnitude = fabsf(x);
    magnitude = math_select(magnitude > 4.0f, 4.0f, magnitude);
    float square = magnitude * magnitude;
    float p = 7.882497448008507e-05f;
    p = p * square - 0.0008018855005502701f;
    p = p * square + 0.005189312156289816f;
    p = p * square - 0.02685432881116867f;
    p = p * square + 0.11283597350120544f;
    p = p * square - 0.3761262595653534f;
    p = p * square + 1.1283791065216064f;
    float q = 0.0005478703533299267f;
    q = q * magnitude - 0.004051902797073126f;
    q = q * magnitude + 0.017997754737734795f;
    q = q * magnitude - 0.03369852527976036f;
    q = q * magnitude + 0.07479687035083771f;
    q = q * magnitude + 0.04842546209692955f;
    q = q * magnitude + 0.15971602499485016f;
    q = q * magnitude + 0.9963785409927368f;
    q = q * q;
    q = q * q;
    float large = 1.0f - 1.0f / (q * q);
    return copysignf(math_select(magnitude > 1.0f, large, magnitude * p), x);
}

// log(1 + x) for x in [0, 1]: 2 artanh(s), s = x / (2 + x), as its series.
RONDO_INLINE float math_log_1p(float x) {
    float s = x / (2.0f + x);
    float square = s * s;
    float p = 0.076923077f;
    p = p * square + 0.090909091f;
    p = p * square + 0.11111111f;
    p = p * square + 0.14285714f;
    p = p * square + 0.2f;
    p = p * square + 0.33333333f;
    return 2.0f * (s + s * square * p);
}

RONDO_INLINE float math_clip(float x, float low, float high) {
    float raised = math_select(x < low, low, x);
    return math_select(raised > high, high, raised);
}

// Maximum and minimum hand NaN on, as numpy does.
RONDO_INLINE float math_maximum(float a, float b) {
    return math_select((a > b) | (a != a), a, b);
}

RONDO_INLINE float math_minimum(float a, float b) {
    return math_select((a < b) | (a != a), a, b);
}

// kernel/host/simd/simd_plain.c — loops of one op over elements of any type: functions that
// rondo.Elementwise does not have, comparisons, logic, whole numbers, conversions.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdint.h>

#include "kernel/host/simd/simd_level.h"
#include "kernel/host/simd/simd_math.h"

// ---- functions --------------------------------------------------------------------------------

// A polynomial in t^2 on [0, 1], t = |x| or 1 / |x|; NaN stays.
RONDO_INLINE float get_arc_tangent(float x) {
    const float magnitude = fabsf(x);
    const int is_steep = magnitude > 1.0f;
    const float t = math_select(is_steep, 1.0f / magnitude, magnitude);
    const float square = t * t;
    float p = -0.0024470390f;
    p = p * square + 0.013750340f;
    p = p * square - 0.036270268f;
    p = p * square + 0.062843695f;
    p = p * square - 0.086731762f;
    p = p * square + 0.11037996f;
    p = p * square - 0.14279111f;
    p = p * square + 0.19999766f;
    p = p * square - 0.33333332f;
    const float angle = t + t * square * p;
    return copysignf(math_select(is_steep, 1.57079633f - angle, angle), x);
}

// x tanh(log(1 + e^x)) = x n / (n + 2), n = e^x (e^x + 2), which is x from some 20 on.
RONDO_INLINE float get_mish(float x) {
    const float power = math_exp(math_select(x > 30.0f, 30.0f, x));
    const float n = power * (power + 2.0f);
    return math_select(x > 30.0f, x, x * (n / (n + 2.0f)));
}

#define TURNS_MAX 8192.0f  // beyond it the quarter turns below lose digits

// Sine for quarter = 0, cosine for 1: x less the nearest multiple of pi / 2, in three parts, and
// a polynomial of either on [-pi / 4, pi / 4].
RONDO_INLINE float get_wave(float x, int32_t quarter) {
    const float magic = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
    const float shifted = x * 0.636619772f + magic;
    const float n = shifted - magic;
    const int32_t turns = math_to_bits(shifted) + quarter;
    float r = x - n * 1.5703125f;
    r = r - n * 4.83751297e-4f;
    r = r - n * 7.54978995e-8f;
    const float z = r * r;
    const float sine = r + r * z * (-0.166666667f + z * (0.00833333183f - z * 1.98400643e-4f));
    const float cosine =
        1.0f - 0.5f * z + z * z * (0.0416666646f + z * (-0.00138882884f + z * 2.45450623e-5f));
    const float value = math_select((turns & 1) != 0, cosine, sine);
    return math_select((turns & 2) != 0, -value, value);
}

static int is_far(const float *x, int64_t count) {
    int far = 0;
    for (int64_t i = 0; i < count; ++i) {
        far |= !(fabsf(x[i]) <= TURNS_MAX);
    }
    return far;
}

// The smallest loops first: each part is looked through for what is far.
enum { WAVE_PART = 256 };

#define DEFINE_WAVE(name, quarter, function)                                                   \
    static void plain_##name(const void *a, const void *b, int64_t a_step, int64_t b_step,     \
                             void *y_, int64_t count) {                                        \
        (void)b, (void)a_step, (void)b_step;                                                   \
        for (int64_t first = 0; first < count; first += WAVE_PART) {                           \
            const float *x = (const float *)a + first;                                         \
            float *y = (float *)y_ + first;                                                    \
            const int64_t part = count - first < WAVE_PART ? count - first : WAVE_PART;        \
            if (is_far(x, part)) {                                                             \
                for (int64_t i = 0; i < part; ++i) {                                           \
                    y[i] = (float)function((double)x[i]);                                      \
                }                                                                              \
                continue;                                                                      \
            }                                                                                  \
            RONDO_VECTORISE for (int64_t i = 0; i < part; ++i) y[i] = get_wave(x[i], quarter); \
        }                                                                                      \
    }
DEFINE_WAVE(Sin_f32, 0, sin)
DEFINE_WAVE(Cos_f32, 1, cos)

// ---- one operand and two ----------------------------------------------------------------------

#define DEFINE_PLAIN_UNARY(name, from, to, expression)                                     \
    static void plain_##name(const void *a, const void *b, int64_t a_step, int64_t b_step, \
                             void *y_, int64_t count) {                                    \
        (void)b, (void)a_step, (void)b_step;                                               \
        const from *values = a;                                                            \
        to *y = y_;                                                                        \
        RONDO_VECTORISE for (int64_t i = 0; i < count; ++i) {                              \
            const from u = values[i];                                                      \
            y[i] = (to)(expression);                                                       \
        }                                                                                  \
    }

// Steps are 1, or 0 for one element that stands for all.
#define DEFINE_PLAIN_BINARY(name, from, to, expression)                                      \
    static void plain_##name(const void *a_, const void *b_, int64_t a_step, int64_t b_step, \
                             void *y_, int64_t count) {                                      \
        const from *a = a_, *b = b_;                                                         \
        to *y = y_;                                                                          \
        if (a_step != 0 && b_step != 0) {                                                    \
            RONDO_VECTORISE for (int64_t i = 0; i < count; ++i) {                            \
                const from u = a[i], v = b[i];                                               \
                y[i] = (to)(expression);                                                     \
            }                                                                                \
        } else if (a_step != 0) {                                                            \
            const from v = *b;                                                               \
            RONDO_VECTORISE for (int64_t i = 0; i < count; ++i) {                            \
                const from u = a[i];                                                         \
                y[i] = (to)(expression);                                                     \
            }                                                                                \
        } else {                                                                             \
            const from u = *a;                                                               \
            RONDO_VECTORISE for (int64_t i = 0; i < count; ++i) {                            \
                const from v = b_step != 0 ? b[i] : *b;                                      \
                y[i] = (to)(expression);                                                     \
            }                                                                                \
        }                                                                                    \
    }

DEFINE_PLAIN_UNARY(Atan_f32, float, float, get_arc_tangent(u))
DEFINE_PLAIN_UNARY(Mish_f32, float, float, get_mish(u))
DEFINE_PLAIN_UNARY(Round_f32, float, float, rintf(u))
DEFINE_PLAIN_UNARY(Sign_f32, float, float, u != u ? u : (float)(u > 0.0f) - (float)(u < 0.0f))
DEFINE_PLAIN_UNARY(IsNaN_f32, float, uint8_t, u != u)
DEFINE_PLAIN_UNARY(IsInf_f32, float, uint8_t, fabsf(u) == INFINITY)
DEFINE_PLAIN_UNARY(Not_bool, uint8_t, uint8_t, u == 0)
DEFINE_PLAIN_BINARY(PRelu_f32, float, float, math_select(u < 0.0f, u *v, u))
DEFINE_PLAIN_BINARY(And_bool, uint8_t, uint8_t, (u != 0) & (v != 0))
DEFINE_PLAIN_BINARY(Or_bool, uint8_t, uint8_t, (u != 0) | (v != 0))
DEFINE_PLAIN_BINARY(Xor_bool, uint8_t, uint8_t, (u != 0) ^ (v != 0))

#define DEFINE_COMPARISONS(suffix, type)                                \
    DEFINE_PLAIN_BINARY(Less_##suffix, type, uint8_t, u < v)            \
    DEFINE_PLAIN_BINARY(LessOrEqual_##suffix, type, uint8_t, u <= v)    \
    DEFINE_PLAIN_BINARY(Greater_##suffix, type, uint8_t, u > v)         \
    DEFINE_PLAIN_BINARY(GreaterOrEqual_##suffix, type, uint8_t, u >= v) \
    DEFINE_PLAIN_BINARY(Equal_##suffix, type, uint8_t, u == v)
DEFINE_COMPARISONS(f32, float)
DEFINE_COMPARISONS(i64, int64_t)
DEFINE_COMPARISONS(i32, int32_t)

// Sums wrap; unsigned, so that none is undefined.
#define DEFINE_ARITHMETIC(suffix, type)                  \
    DEFINE_PLAIN_BINARY(Add_##suffix, type, type, u + v) \
    DEFINE_PLAIN_BINARY(Sub_##suffix, type, type, u - v) \
    DEFINE_PLAIN_BINARY(Mul_##suffix, type, type, u *v)
DEFINE_ARITHMETIC(i64, uint64_t)
DEFINE_ARITHMETIC(i32, uint32_t)

// ---- conversions ------------------------------------------------------------------------------

// Towards zero; what lies beyond is the nearest limit, NaN is 0.
RONDO_INLINE int64_t cut_to_whole(float u) {
    const int is_low = u < -9223372036854775808.0f, is_high = u >= 9223372036854775808.0f;
    const float inside = math_select(is_low | is_high | (u != u), 0.0f, u);
    const int64_t whole = (int64_t)inside;
    return is_low ? INT64_MIN : is_high ? INT64_MAX : whole;
}

// What fits into 32 bits goes through them, as AVX2 has no conversion to 64.
static void plain_Cast_f32_i64(const void *a, const void *b, int64_t a_step, int64_t b_step,
                               void *y_, int64_t count) {
    enum { CAST_PART = 128 };
    const float *x = a;
    int64_t *y = y_;
    (void)b, (void)a_step, (void)b_step;
    for (int64_t first = 0; first < count; first += CAST_PART, x += CAST_PART, y += CAST_PART) {
        const int64_t part = count - first < CAST_PART ? count - first : CAST_PART;
        int fits = 1;
        for (int64_t i = 0; i < part; ++i) {
            fits &= fabsf(x[i]) < 2147483648.0f;
        }
        if (fits != 0) {
            for (int64_t i = 0; i < part; ++i) {
                y[i] = (int64_t)(int32_t)x[i];
            }
        } else {
            for (int64_t i = 0; i < part; ++i) {
                y[i] = cut_to_whole(x[i]);
            }
        }
    }
}
DEFINE_PLAIN_UNARY(Cast_f32_i32, float, int32_t, (int32_t)(uint32_t)(uint64_t)cut_to_whole(u))
DEFINE_PLAIN_UNARY(Cast_i64_f32, int64_t, float, u)
DEFINE_PLAIN_UNARY(Cast_i64_i32, int64_t, int32_t, (int32_t)(uint32_t)(uint64_t)u)
DEFINE_PLAIN_UNARY(Cast_i32_i64, int32_t, int64_t, u)
DEFINE_PLAIN_UNARY(Cast_bool_f32, uint8_t, float, u != 0)
DEFINE_PLAIN_UNARY(Cast_bool_i64, uint8_t, int64_t, u != 0)
DEFINE_PLAIN_UNARY(Cast_f32_bool, float, uint8_t, u != 0.0f)
DEFINE_PLAIN_UNARY(Cast_i64_bool, int64_t, uint8_t, u != 0)

#define ENTRY(name) [RONDO__PLAIN_##name] = plain_##name,
const rondo__plain_loop RONDO_SIMD_NAME(rondo__simd_plain)[RONDO__PLAIN_COUNT] = {
    RONDO__PLAIN_MAP(ENTRY)};

// kernel/host/simd/simd_byte_loops.c — loops between 8-bit numbers and floats for one instruction
// set.
//
// Every step is rounded as written: this file is compiled without fused multiply-adds.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stddef.h>
#include <string.h>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "kernel/host/simd/simd_byte_level.h"

// Adding and taking away 1.5 * 2^23 rounds to nearest, ties to even, within +-2^22.
#define ROUND(x) (((x) + 12582912.0f) - 12582912.0f)

// Floats compare as integers once the lower bits of negative ones are turned over, and compilers
// vectorise minima of integers. (-0 then comes before 0, which no result shows.)
static bool find_range(const float *x, int64_t count, float *out_low, float *out_high) {
    int32_t low = 0, high = 0, largest = 0;
    RONDO_VECTORISE
    for (int64_t i = 0; i < count; ++i) {
        int32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        const int32_t size = bits & INT32_MAX;
        const int32_t key = bits ^ ((bits >> 31) & INT32_MAX);
        low = key < low ? key : low;
        high = key > high ? key : high;
        largest = size > largest ? size : largest;
    }
    low ^= (low >> 31) & INT32_MAX;
    memcpy(out_low, &low, sizeof low);
    memcpy(out_high, &high, sizeof high);
    return largest < 0x7f800000;  // infinity
}

// Before the zero point is added, steps of 8 bits lie within +-512 of 0, those of 16 within
// +-131072. Limits are met as whole numbers, because compilers make masks of comparisons of floats.
// NaN becomes 0.
static RONDO_BYTE_INLINE int32_t get_step(float quotient, int32_t most_bits, int32_t zero,
                                          int32_t low, int32_t high) {
    int32_t bits;
    float step;
    memcpy(&bits, &quotient, sizeof bits);
    const int32_t size = bits & INT32_MAX, is_number = -(int32_t)(size <= 0x7f800000);
    bits = (size < most_bits ? size : most_bits) | (bits & INT32_MIN);
    memcpy(&step, &bits, sizeof step);
    int32_t whole = (int32_t)ROUND(step) + zero;
    whole = whole < low ? low : whole;
    whole = whole > high ? high : whole;
    return whole & is_number;
}

#define DEFINE_QUANTIZE_LOOP(name, type, low, high, most, divisor, shift)                    \
    static void name(const float *x, const float *scale, const int32_t *zero, int64_t count, \
                     type *y) {                                                              \
        RONDO_VECTORISE                                                                      \
        for (int64_t i = 0; i < count; ++i) {                                                \
            y[i] = (type)get_step(x[i] / scale[divisor], most, zero[shift], low, high);      \
        }                                                                                    \
    }
#define DEFINE_QUANTIZE(name, type, low, high, most)                   \
    DEFINE_QUANTIZE_LOOP(quantize_##name, type, low, high, most, 0, 0) \
    DEFINE_QUANTIZE_LOOP(quantize_each_##name, type, low, high, most, i, i)
enum { SIZE_512 = 0x44000000, SIZE_131072 = 0x48000000 };  // floats, by their bits
DEFINE_QUANTIZE(i8, int8_t, -128, 127, SIZE_512)
DEFINE_QUANTIZE(u8, uint8_t, 0, 255, SIZE_512)
DEFINE_QUANTIZE(i16, int16_t, -32768, 32767, SIZE_131072)
DEFINE_QUANTIZE(u16, uint16_t, 0, 65535, SIZE_131072)

#define DEFINE_QUANTIZE_EITHER(name, signed_type, unsigned_type)                                  \
    static void name(const float *x, const float *scale, int64_t scale_step, const int32_t *zero, \
                     bool is_signed, int64_t count, void *y) {                                    \
        if (scale_step == 0 && is_signed) {                                                       \
            quantize_##signed_type(x, scale, zero, count, y);                                     \
        } else if (scale_step == 0) {                                                             \
            quantize_##unsigned_type(x, scale, zero, count, y);                                   \
        } else if (is_signed) {                                                                   \
            quantize_each_##signed_type(x, scale, zero, count, y);                                \
        } else {                                                                                  \
            quantize_each_##unsigned_type(x, scale, zero, count, y);                              \
        }                                                                                         \
    }
DEFINE_QUANTIZE_EITHER(quantize, i8, u8)
DEFINE_QUANTIZE_EITHER(quantize_words, i16, u16)

#define DEFINE_DEQUANTIZE(name, type)                                              \
    static void dequantize_##name(const type *x, const float *scale, int64_t step, \
                                  const int32_t *zero, int64_t count, float *y) {  \
        if (step == 0) {                                                           \
            const float factor = *scale;                                           \
            const int32_t shift = *zero;                                           \
            RONDO_VECTORISE                                                        \
            for (int64_t i = 0; i < count; ++i) {                                  \
                y[i] = (float)(x[i] - shift) * factor;                             \
            }                                                                      \
            return;                                                                \
        }                                                                          \
        RONDO_VECTORISE                                                            \
        for (int64_t i = 0; i < count; ++i) {                                      \
            y[i] = (float)(x[i] - zero[i]) * scale[i];                             \
        }                                                                          \
    }
DEFINE_DEQUANTIZE(i8, int8_t)
DEFINE_DEQUANTIZE(u8, uint8_t)
DEFINE_DEQUANTIZE(i16, int16_t)
DEFINE_DEQUANTIZE(u16, uint16_t)

static void dequantize(const void *x, bool is_signed, const float *scale, int64_t scale_step,
                       const int32_t *zero, int64_t count, float *y) {
    if (is_signed) {
        dequantize_i8(x, scale, scale_step, zero, count, y);
    } else {
        dequantize_u8(x, scale, scale_step, zero, count, y);
    }
}

static void dequantize_words(const void *x, bool is_signed, const float *scale, int64_t scale_step,
                             const int32_t *zero, int64_t count, float *y) {
    if (is_signed) {
        dequantize_i16(x, scale, scale_step, zero, count, y);
    } else {
        dequantize_u16(x, scale, scale_step, zero, count, y);
    }
}

// The step of a sum: limits are whole, so that keeping the value within them before it is rounded
// does the same as afterwards.
static inline int32_t find_step(float value, float zero, float low, float high) {
    float step = value > low - zero ? value : low - zero;
    step = step < high - zero ? step : high - zero;
    return (int32_t)(ROUND(step) + zero);
}

// NaN, which factors that are no numbers make, becomes 0.
static inline int32_t find_step_of_any(float value, float zero, float low, float high) {
    const int32_t step = find_step(value, zero, low, high);
    return value == value ? step : 0;
}

#if defined(__AVX2__) && RONDO_BYTE_WIDTH == 8
// Steps from eight sums, without their zero, which must fit with their bias; *low and *high keep
// the least and the greatest. What is beyond the largest whole number is as good as 2^16.
static RONDO_BYTE_INLINE __m256i find_eight(const int32_t *sums, __m256i bias, __m256 factor,
                                            __m256i *low, __m256i *high) {
    const __m256i from = _mm256_loadu_si256((const __m256i *)(const void *)sums);
    const __m256i sum = _mm256_add_epi32(from, bias);
    const __m256 value = _mm256_mul_ps(_mm256_cvtepi32_ps(sum), factor);
    *low = _mm256_min_epi32(*low, from);
    *high = _mm256_max_epi32(*high, from);
    return _mm256_cvtps_epi32(_mm256_min_ps(value, _mm256_set1_ps(65536.0f)));
}

// Whether a sum wraps with this bias.
static bool is_beyond(__m256i low, __m256i high, __m256i bias) {
    const __m256i least = _mm256_add_epi32(low, bias), most = _mm256_add_epi32(high, bias);
    const __m256i wrapped = _mm256_or_si256(
        _mm256_and_si256(_mm256_xor_si256(low, least), _mm256_xor_si256(bias, least)),
        _mm256_and_si256(_mm256_xor_si256(high, most), _mm256_xor_si256(bias, most)));
    return _mm256_movemask_ps(_mm256_castsi256_ps(wrapped)) != 0;
}

// Groups of 32 sums, of finite factors: packing narrows to the limits. The last group may overlap
// the one before. Returns how many sums, or -1 where one does not fit.
static int64_t requantize_packed(const int32_t *sums, int32_t bias, float factor, int32_t zero,
                                 bool is_signed, int64_t count, uint8_t *y) {
    enum { PACKED = 32 };
    const __m256i biases = _mm256_set1_epi32(bias), zeros = _mm256_set1_epi16((int16_t)zero);
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const __m256 factors = _mm256_set1_ps(factor);
    __m256i least = _mm256_setzero_si256(), most = least;
    for (int64_t next = 0; next < count && count >= PACKED; next += PACKED) {
        const int64_t i = next < count - PACKED ? next : count - PACKED;
        const __m256i a = find_eight(sums + i, biases, factors, &least, &most);
        const __m256i b = find_eight(sums + i + 8, biases, factors, &least, &most);
        const __m256i c = find_eight(sums + i + 16, biases, factors, &least, &most);
        const __m256i d = find_eight(sums + i + 24, biases, factors, &least, &most);
        const __m256i low = _mm256_adds_epi16(_mm256_packs_epi32(a, b), zeros);
        const __m256i high = _mm256_adds_epi16(_mm256_packs_epi32(c, d), zeros);
        const __m256i bytes =
            is_signed ? _mm256_packs_epi16(low, high) : _mm256_packus_epi16(low, high);
        _mm256_storeu_si256((__m256i *)(void *)(y + i), _mm256_permutevar8x32_epi32(bytes, order));
    }
    if (is_beyond(least, most, biases)) {
        return -1;
    }
    return count >= PACKED ? count : 0;
}
#else
static int64_t requantize_packed(const int32_t *sums, int32_t bias, float factor, int32_t zero,
                                 bool is_signed, int64_t count, uint8_t *y) {
    (void)sums, (void)bias, (void)factor, (void)zero, (void)is_signed, (void)count, (void)y;
    return 0;
}
#endif

// Sums are exact with their bias until they are rounded to f32: in 32 bits, which says no where one
// does not fit, or in f64.
#define DEFINE_REQUANTIZE(name, type, low, high)                                          \
    static bool requantize_near_##name(const int32_t *sums, int32_t bias, float factor,   \
                                       float y_zero, int64_t count, type *y) {            \
        int32_t wrapped = 0;                                                              \
        RONDO_VECTORISE                                                                   \
        for (int64_t i = 0; i < count; ++i) {                                             \
            const int32_t sum = (int32_t)((uint32_t)sums[i] + (uint32_t)bias);            \
            wrapped |= (sums[i] ^ sum) & (bias ^ sum);                                    \
            y[i] = (type)find_step((float)sum * factor, y_zero, low, high);               \
        }                                                                                 \
        return wrapped >= 0;                                                              \
    }                                                                                     \
    static void requantize_##name(const int32_t *sums, int32_t bias, float row_scale,     \
                                  const float *column_scale, float y_scale, float y_zero, \
                                  int64_t count, type *y) {                               \
        const float all = row_scale / y_scale;                                            \
        if (column_scale == NULL && fabsf(all) < INFINITY &&                              \
            requantize_near_##name(sums, bias, all, y_zero, count, y)) {                  \
            return;                                                                       \
        }                                                                                 \
        RONDO_VECTORISE                                                                   \
        for (int64_t i = 0; i < count; ++i) {                                             \
            const float factor =                                                          \
                column_scale == NULL ? all : row_scale * column_scale[i] / y_scale;       \
            const float value = (float)((double)sums[i] + (double)bias) * factor;         \
            y[i] = (type)find_step_of_any(value, y_zero, low, high);                      \
        }                                                                                 \
    }
DEFINE_REQUANTIZE(i8, int8_t, -128.0f, 127.0f)
DEFINE_REQUANTIZE(u8, uint8_t, 0.0f, 255.0f)

static void requantize(const int32_t *sums, int32_t bias, float row_scale,
                       const float *column_scale, float y_scale, int32_t y_zero, bool is_signed,
                       int64_t count, void *y) {
    const float zero = (float)y_zero, all = row_scale / y_scale;
    int64_t done = 0;
    if (column_scale == NULL && fabsf(all) < INFINITY) {
        done = requantize_packed(sums, bias, all, y_zero, is_signed, count, y);
        done = done < 0 ? 0 : done;
    }
    sums += done;
    count -= done;
    if (is_signed) {
        requantize_i8(sums, bias, row_scale, column_scale, y_scale, zero, count,
                      (int8_t *)y + done);
    } else {
        requantize_u8(sums, bias, row_scale, column_scale, y_scale, zero, count,
                      (uint8_t *)y + done);
    }
}

enum { PART = 16 };

#if defined(__AVX2__) && RONDO_BYTE_WIDTH == 8
// Two taps at a time, which one instruction multiplies and adds in pairs of 16 bits.
static RONDO_BYTE_INLINE void add_part(const uint8_t *x, uint8_t flip, const int64_t *places,
                                       const int32_t *weights, int64_t tap_count, int32_t start,
                                       int32_t *sums) {
    const __m128i turned = _mm_set1_epi8((char)flip);
    __m256i low = _mm256_set1_epi32(start), high = low;
    for (int64_t tap = 0; tap < tap_count; tap += 2) {
        const bool is_last = tap + 1 == tap_count;
        const int32_t second = is_last ? 0 : weights[tap + 1];
        const uint8_t *beside = x + places[is_last ? tap : tap + 1];
        const __m256i pair = _mm256_set1_epi32((weights[tap] & 0xffff) | second * 65536);
        const __m128i a = _mm_xor_si128(
            turned, _mm_loadu_si128((const __m128i *)(const void *)(x + places[tap])));
        const __m128i b =
            _mm_xor_si128(turned, _mm_loadu_si128((const __m128i *)(const void *)beside));
        const __m256i first_pairs = _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(a, b));
        const __m256i last_pairs = _mm256_cvtepu8_epi16(_mm_unpackhi_epi8(a, b));
        low = _mm256_add_epi32(low, _mm256_madd_epi16(first_pairs, pair));
        high = _mm256_add_epi32(high, _mm256_madd_epi16(last_pairs, pair));
    }
    _mm256_storeu_si256((__m256i *)(void *)sums, low);
    _mm256_storeu_si256((__m256i *)(void *)(sums + PART / 2), high);
}

// Adds two taps of 32 positions. Each half of a register has its own: sums[i] are of positions 4 i
// to 4 i + 3, and of those 16 further.
static RONDO_BYTE_INLINE void add_pair(const uint8_t *first, const uint8_t *second, __m256i turned,
                                       __m256i weights, __m256i *sums) {
    const __m256i a =
        _mm256_xor_si256(turned, _mm256_loadu_si256((const __m256i *)(const void *)first));
    const __m256i b =
        _mm256_xor_si256(turned, _mm256_loadu_si256((const __m256i *)(const void *)second));
    const __m256i none = _mm256_setzero_si256();
    const __m256i low = _mm256_unpacklo_epi8(a, b), high = _mm256_unpackhi_epi8(a, b);
    const __m256i pairs[4] = {_mm256_unpacklo_epi8(low, none), _mm256_unpackhi_epi8(low, none),
                              _mm256_unpacklo_epi8(high, none), _mm256_unpackhi_epi8(high, none)};
    RONDO_UNROLL
    for (int i = 0; i < 4; ++i) {
        sums[i] = _mm256_add_epi32(sums[i], _mm256_madd_epi16(pairs[i], weights));
    }
}

// The same of two parts.
static RONDO_BYTE_INLINE void add_parts(const uint8_t *x, uint8_t flip, const int64_t *places,
                                        const int32_t *weights, int64_t tap_count, int32_t start,
                                        int32_t *sums) {
    const __m256i turned = _mm256_set1_epi8((char)flip), all = _mm256_set1_epi32(start);
    __m256i found[4] = {all, all, all, all};
    int64_t tap = 0;
    for (; tap + 1 < tap_count; tap += 2) {
        const __m128i two = _mm_loadl_epi64((const __m128i *)(const void *)(weights + tap));
        add_pair(x + places[tap], x + places[tap + 1], turned,
                 _mm256_broadcastd_epi32(_mm_packs_epi32(two, two)), found);
    }
    if (tap < tap_count) {
        add_pair(x + places[tap], x + places[tap], turned, _mm256_set1_epi32(weights[tap] & 0xffff),
                 found);
    }
    __m256i *to = (__m256i *)(void *)sums;
    _mm256_storeu_si256(to, _mm256_permute2x128_si256(found[0], found[1], 0x20));
    _mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(found[2], found[3], 0x20));
    _mm256_storeu_si256(to + 2, _mm256_permute2x128_si256(found[0], found[1], 0x31));
    _mm256_storeu_si256(to + 3, _mm256_permute2x128_si256(found[2], found[3], 0x31));
}
#else
static void add_part(const uint8_t *x, uint8_t flip, const int64_t *places, const int32_t *weights,
                     int64_t tap_count, int32_t start, int32_t *sums) {
    int32_t part[PART];
    for (int64_t k = 0; k < PART; ++k) {
        part[k] = start;
    }
    for (int64_t tap = 0; tap < tap_count; ++tap) {
        const uint8_t *seen = x + places[tap];
        const int32_t weight = weights[tap];
        for (int64_t k = 0; k < PART; ++k) {
            part[k] += weight * (uint8_t)(seen[k] ^ flip);
        }
    }
    memcpy(sums, part, sizeof part);
}
#endif

// Sums of a part stay in registers while the taps go by. Signed numbers are read with their highest
// bit turned over, as unsigned ones that are 128 larger.
static void add_taps(const void *x, bool is_signed, const int64_t *places, const int32_t *weights,
                     int64_t tap_count, int32_t start, int64_t count, int32_t *sums) {
    enum { OFFSET = 128 };
    const uint8_t flip = is_signed ? OFFSET : 0;
    for (int64_t tap = 0; tap < tap_count; ++tap) {
        start -= weights[tap] * flip;
    }
    int64_t i = 0;
#if defined(__AVX2__) && RONDO_BYTE_WIDTH == 8
    for (; i + 2 * PART <= count; i += 2 * PART) {
        add_parts((const uint8_t *)x + i, flip, places, weights, tap_count, start, sums + i);
    }
#endif
    for (; i < count; i += PART) {
        add_part((const uint8_t *)x + i, flip, places, weights, tap_count, start, sums + i);
    }
}

static void widen_i32(const int32_t *x, float *y, int64_t count) {
    RONDO_VECTORISE
    for (int64_t i = 0; i < count; ++i) {
        y[i] = (float)x[i];
    }
}

#if defined(__AVX2__) && RONDO_BYTE_WIDTH == 8
// Bytes 0, 2 to 30 of x, or 1, 3 to 31.
static RONDO_BYTE_INLINE void take_sixteen(const uint8_t *x, bool is_odd, uint8_t *y) {
    const __m128i *from = (const __m128i *)(const void *)x, low = _mm_set1_epi16(255);
    const __m128i a = _mm_loadu_si128(from), b = _mm_loadu_si128(from + 1);
    const __m128i taken = is_odd ? _mm_packus_epi16(_mm_srli_epi16(a, 8), _mm_srli_epi16(b, 8))
                                 : _mm_packus_epi16(_mm_and_si128(a, low), _mm_and_si128(b, low));
    _mm_storeu_si128((__m128i *)(void *)y, taken);
}

// The same of 8 bytes.
static RONDO_BYTE_INLINE void take_eight(const uint8_t *x, bool is_odd, uint8_t *y) {
    const __m128i a = _mm_loadu_si128((const __m128i *)(const void *)x);
    const __m128i words = is_odd ? _mm_srli_epi16(a, 8) : _mm_and_si128(a, _mm_set1_epi16(255));
    _mm_storel_epi64((__m128i *)(void *)y, _mm_packus_epi16(words, words));
}

// The last piece overlaps the one before, and begins a byte earlier, so that it ends with x.
static void take_every_second(const uint8_t *x, uint8_t *y, int64_t count) {
    enum { PIECE = 16, HALF = 8 };
    if (count > PIECE) {
        for (int64_t i = 0; i < count - PIECE; i += PIECE) {
            take_sixteen(x + 2 * i, false, y + i);
        }
        take_sixteen(x + 2 * (count - PIECE) - 1, true, y + count - PIECE);
    } else if (count > HALF) {
        take_eight(x, false, y);
        take_eight(x + 2 * (count - HALF) - 1, true, y + count - HALF);
    } else {
        for (int64_t i = 0; i < count; ++i) {
            y[i] = x[2 * i];
        }
    }
}
#else
static void take_every_second(const uint8_t *x, uint8_t *y, int64_t count) {
    RONDO_VECTORISE
    for (int64_t i = 0; i < count; ++i) {
        y[i] = x[2 * i];
    }
}
#endif

#if defined(RONDO_BYTE_CUTS)
extern const rondo__byte_simd rondo__byte_simd_avx2wide;
extern const rondo__byte_simd rondo__byte_simd_avx512wide;
#endif

const rondo__byte_simd RONDO_SIMD_NAME(rondo__byte_simd) = {
#if defined(__AVX512VNNI__)
    .name = "avx512vnni",
#elif RONDO_BYTE_WIDTH == 16 && RONDO_BYTE_GROUP == 2
    .name = "avx512wide",
#elif RONDO_BYTE_WIDTH == 16
    .name = "avx512",
    .wide = &rondo__byte_simd_avx512wide,
#elif RONDO_BYTE_WIDTH == 8 && RONDO_BYTE_GROUP == 2
    .name = "avx2wide",
#elif RONDO_BYTE_WIDTH == 8
    .name = "avx2",
    .wide = &rondo__byte_simd_avx2wide,
#else
    .name = "baseline",
#endif
    .group = RONDO_BYTE_GROUP,
    .panel_columns = 2 * RONDO_BYTE_WIDTH,
    .tile_rows = RONDO_BYTE_ROWS,
#if defined(RONDO_BYTE_CUTS)
    .wants_cuts = true,
#endif
    .signed_offset = RONDO_BYTE_GROUP == 4 ? 128 : 0,
    .multiply = RONDO_SIMD_NAME(rondo__byte_multiply),
    .prepare_row = RONDO_SIMD_NAME(rondo__byte_prepare_row),
    .pack_block = RONDO_SIMD_NAME(rondo__byte_pack_block),
    .range = find_range,
    .quantize = quantize,
    .dequantize = dequantize,
    .quantize_words = quantize_words,
    .dequantize_words = dequantize_words,
    .requantize = requantize,
    .add_taps = add_taps,
    .widen_i32 = widen_i32,
    .take_every_second = take_every_second,
};

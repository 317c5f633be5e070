// op/half.c — see half.h.
// SPDX-License-Identifier: Apache-2.0

#include "op/half.h"

#include <stdbool.h>

#if defined(__x86_64__) && defined(__GNUC__)
#define HALF_X86 1
#include <immintrin.h>
#endif

// ---- with the processor's own instructions, which give the same bits ---------------------------

#ifdef HALF_X86
enum { LANES = 8 };

__attribute__((target("avx,f16c"))) static size_t widen_fast(const uint16_t *source,
                                                             float *destination, size_t count) {
    size_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        const __m128i bits = _mm_loadu_si128((const __m128i *)(const void *)(source + i));
        _mm256_storeu_ps(destination + i, _mm256_cvtph_ps(bits));
    }
    return i;
}

__attribute__((target("avx,f16c"))) static size_t narrow_fast(const float *source,
                                                              uint16_t *destination, size_t count) {
    size_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        const __m128i bits =
            _mm256_cvtps_ph(_mm256_loadu_ps(source + i), _MM_FROUND_TO_NEAREST_INT);
        _mm_storeu_si128((__m128i *)(void *)(destination + i), bits);
    }
    return i;
}

static bool has_instructions(void) {
    // All that have it have f16c, whose name not all compilers know.
    return __builtin_cpu_supports("avx2");
}
#else
static size_t widen_fast(const uint16_t *source, float *destination, size_t count) {
    (void)source, (void)destination, (void)count;
    return 0;
}

static size_t narrow_fast(const float *source, uint16_t *destination, size_t count) {
    (void)source, (void)destination, (void)count;
    return 0;
}

static bool has_instructions(void) {
    return false;
}
#endif

// ---- arrays -----------------------------------------------------------------------------------

void rondo__half_to_float_array(rondo_dtype dtype, const uint16_t *source, float *destination,
                                size_t count) {
    if (dtype == RONDO_DTYPE_BF16) {
        for (size_t i = 0; i < count; ++i) {
            destination[i] = rondo__bfloat_to_float(source[i]);
        }
    } else {
        for (size_t i = has_instructions() ? widen_fast(source, destination, count) : 0; i < count;
             ++i) {
            destination[i] = rondo_f16_to_float(source[i]);
        }
    }
}

void rondo__half_from_float_array(rondo_dtype dtype, const float *source, uint16_t *destination,
                                  size_t count) {
    if (dtype == RONDO_DTYPE_BF16) {
        for (size_t i = 0; i < count; ++i) {
            destination[i] = rondo__bfloat_from_float(source[i]);
        }
    } else {
        for (size_t i = has_instructions() ? narrow_fast(source, destination, count) : 0; i < count;
             ++i) {
            destination[i] = rondo_f16_from_float(source[i]);
        }
    }
}

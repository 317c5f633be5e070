// kernel/host/simd/simd_level.h — shared parts of the files that are compiled once for each
// instruction set.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string.h>

#include "kernel/host/simd/simd.h"

#if defined(__AVX__)
#include <immintrin.h>
#endif

#ifndef RONDO_SIMD_LEVEL
#define RONDO_SIMD_LEVEL baseline
#endif

// Sanitizers add code to every access, and unrolled tiles then take minutes to compile: their
// builds check the same loops with small tiles that stay loops.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define RONDO_SIMD_CHECKED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RONDO_SIMD_CHECKED 1
#endif

// Floats of one vector register.
#if defined(__AVX512F__)
#define RONDO_SIMD_WIDTH 16
#elif defined(__AVX__)
#define RONDO_SIMD_WIDTH 8
#else
#define RONDO_SIMD_WIDTH 4
#endif

// Rows of a tile of two vectors, and of one of a single vector: as many as leave registers for b
// and a.
#if defined(RONDO_SIMD_CHECKED)
#define RONDO_TILE_ROWS 4
#define RONDO_NARROW_TILE_ROWS 4
#elif defined(__AVX512F__)
#define RONDO_TILE_ROWS 12
#define RONDO_NARROW_TILE_ROWS 12
#elif defined(__AVX__)
#define RONDO_TILE_ROWS 6
#define RONDO_NARROW_TILE_ROWS 12
#elif defined(__aarch64__)
#define RONDO_TILE_ROWS 12
#define RONDO_NARROW_TILE_ROWS 12
#else
#define RONDO_TILE_ROWS 4
#define RONDO_NARROW_TILE_ROWS 8
#endif

// Numbers of k that a tile works off before it looks whether there are more. With more rows than
// with AVX2, four were no quicker.
#if defined(__AVX__) && !defined(__AVX512F__)
#define RONDO_TILE_STEPS 4
#else
#define RONDO_TILE_STEPS 2
#endif

#if defined(RONDO_SIMD_CHECKED)
#define RONDO_UNROLL
#define RONDO_VECTORISE
#elif defined(__clang__)
#define RONDO_UNROLL _Pragma("clang loop unroll(full)")
#define RONDO_VECTORISE _Pragma("clang loop vectorize(assume_safety)")
#else
#define RONDO_UNROLL _Pragma("GCC unroll 16")
#define RONDO_VECTORISE _Pragma("GCC ivdep")
#endif

// The floats of a vector, as a number that compilers do not know: of loops over a vector that they
// count they make single numbers.
static inline __attribute__((always_inline)) int64_t rondo__get_width(void) {
    int64_t width = RONDO_SIMD_WIDTH;
    __asm__("" : "+r"(width));
    return width;
}

// The first `count` numbers of a vector, in all of it: what is left of a row. Stores of a part and
// loads of the whole would wait for each other, so both are of whole registers.
static inline __attribute__((always_inline)) void rondo__load_rest(const float *x, int64_t count,
                                                                   float fill, float *last) {
#if defined(__AVX512F__)
    const __mmask16 mask = (__mmask16)((1u << count) - 1u);
    _mm512_storeu_ps(last, _mm512_mask_loadu_ps(_mm512_set1_ps(fill), mask, x));
#elif defined(__AVX2__)
    const __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32((int32_t)count),
                                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    _mm256_storeu_ps(last, _mm256_blendv_ps(_mm256_set1_ps(fill), _mm256_maskload_ps(x, mask),
                                            _mm256_castsi256_ps(mask)));
#else
    for (int64_t i = 0; i < RONDO_SIMD_WIDTH; ++i) {
        last[i] = i < count ? x[i] : fill;
    }
#endif
}

static inline __attribute__((always_inline)) void rondo__store_rest(const float *last,
                                                                    int64_t count, float *y) {
#if defined(__AVX512F__)
    _mm512_mask_storeu_ps(y, (__mmask16)((1u << count) - 1u), _mm512_loadu_ps(last));
#elif defined(__AVX2__)
    const __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32((int32_t)count),
                                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    _mm256_maskstore_ps(y, mask, _mm256_loadu_ps(last));
#else
    memcpy(y, last, (size_t)count * sizeof(float));
#endif
}

extern const rondo__simd RONDO_SIMD_NAME(rondo__simd);
extern const rondo__plain_loop RONDO_SIMD_NAME(rondo__simd_plain)[RONDO__PLAIN_COUNT];
double RONDO_SIMD_NAME(rondo__simd_sum)(const float *x, int64_t count);
void RONDO_SIMD_NAME(rondo__simd_moments)(const float *x, int64_t count, float center,
                                          double *out_sum, double *out_squares);
float RONDO_SIMD_NAME(rondo__simd_maximum)(const float *x, int64_t count);
float RONDO_SIMD_NAME(rondo__simd_minimum)(const float *x, int64_t count);
double RONDO_SIMD_NAME(rondo__simd_sum_exp)(const float *x, int64_t count, float shift);
void RONDO_SIMD_NAME(rondo__simd_softmax)(const float *x, float *y, int64_t count);
void RONDO_SIMD_NAME(rondo__simd_log_softmax)(const float *x, float *y, int64_t count);
void RONDO_SIMD_NAME(rondo__simd_sum_lines)(const float *x, float *y, double *sums, int64_t count,
                                            bool is_exclusive);
void RONDO_SIMD_NAME(rondo__simd_lstm_step)(const float *gates, float *h, float *c, int64_t count);
void RONDO_SIMD_NAME(rondo__simd_add_changes)(const float *dy, const float *y, const float *x,
                                              const rondo__norm_lanes *lanes, int64_t count);
void RONDO_SIMD_NAME(rondo__simd_apply_changes)(const float *dy, const float *y, const float *x,
                                                const rondo__norm_lanes *lanes, float *dx,
                                                int64_t count);
void RONDO_SIMD_NAME(rondo__simd_list_row_changes)(const float *dy, const float *x,
                                                   const float *scale, float mean, float inverse,
                                                   float *normal, float *change, float *product,
                                                   int64_t count);
void RONDO_SIMD_NAME(rondo__simd_apply_row_changes)(const float *change, const float *normal,
                                                    float one, float two, float inverse, float *dx,
                                                    int64_t count);
void RONDO_SIMD_NAME(rondo__simd_add_products)(const float *a, const float *b, float *y,
                                               int64_t count);
void RONDO_SIMD_NAME(rondo__simd_place_changes)(const float *const *taps, int64_t tap_count,
                                                const float *dy, float *const *targets, bool adds,
                                                int64_t count);
void RONDO_SIMD_NAME(rondo__simd_multiply_tile)(const rondo__tile *tile);
void RONDO_SIMD_NAME(rondo__simd_multiply_bits)(const rondo__bits_tile *tile);
void RONDO_SIMD_NAME(rondo__simd_widen_bits)(const rondo__bits_tile *tile, float *y);
void RONDO_SIMD_NAME(rondo__simd_convolve_depthwise)(const rondo__depthwise *depthwise);
void RONDO_SIMD_NAME(rondo__simd_winograd_in)(const rondo__winograd_tile *tile);
bool RONDO_SIMD_NAME(rondo__simd_winograd_back)(const rondo__winograd_tile *tile);

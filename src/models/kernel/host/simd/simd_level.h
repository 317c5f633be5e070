// kernel/host/simd/simd_level.h — shared parts of the files that are compiled once for each
// instruction set.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/host/simd/simd.h"

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

extern const rondo__simd RONDO_SIMD_NAME(rondo__simd);
extern const rondo__plain_loop RONDO_SIMD_NAME(rondo__simd_plain)[RONDO__PLAIN_COUNT];
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

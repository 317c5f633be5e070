// kernel/host/simd/simd_byte_level.h — shared parts of the files of byte_simd.h, which are compiled
// once for each instruction set.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/host/simd/byte_simd.h"
#include "kernel/host/simd/simd_level.h"

#if defined(__SSE2__)
#define RONDO_BYTE_INTRINSICS 1
#endif

// Columns of one vector of 32-bit sums, numbers of a column that one instruction takes.
#if defined(__AVX512BW__)
#define RONDO_BYTE_WIDTH 16
#elif defined(__AVX2__)
#define RONDO_BYTE_WIDTH 8
#else
#define RONDO_BYTE_WIDTH 4
#endif
#if defined(__AVX2__) && !defined(RONDO_BYTE_WIDE)
#define RONDO_BYTE_GROUP 4
#else
#define RONDO_BYTE_GROUP 2
#endif
#if RONDO_BYTE_GROUP == 4 && !defined(__AVX512VNNI__)
#define RONDO_BYTE_CUTS 1
#endif
#if defined(__SSE2__)
#define RONDO_BYTE_ROWS RONDO_TILE_ROWS
#else
#define RONDO_BYTE_ROWS 4
#endif

#if defined(RONDO_SIMD_CHECKED)
#define RONDO_BYTE_INLINE
#else
#define RONDO_BYTE_INLINE inline __attribute__((always_inline))
#endif

extern const rondo__byte_simd RONDO_SIMD_NAME(rondo__byte_simd);
void RONDO_SIMD_NAME(rondo__byte_multiply)(const rondo__byte_tile *tile);
int32_t RONDO_SIMD_NAME(rondo__byte_prepare_row)(const uint8_t *x, bool is_signed, int64_t count,
                                                 void *row);
void RONDO_SIMD_NAME(rondo__byte_pack_block)(const uint8_t *rows, bool is_signed, int8_t *block,
                                             int32_t *sums);

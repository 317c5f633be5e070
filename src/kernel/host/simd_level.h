// kernel/host/simd_level.h — what the files compiled once for each instruction set share.
#ifndef RONDO_KERNEL_HOST_SIMD_LEVEL_H
#define RONDO_KERNEL_HOST_SIMD_LEVEL_H

#include "kernel/host/simd.h"

#ifndef RONDO_SIMD_LEVEL
#define RONDO_SIMD_LEVEL baseline
#endif

// Floats of one vector register.
#if defined(__AVX512F__)
#define RONDO_SIMD_WIDTH 16
#define RONDO_TILE_ROWS 12
#elif defined(__AVX__)
#define RONDO_SIMD_WIDTH 8
#define RONDO_TILE_ROWS 6
#else
#define RONDO_SIMD_WIDTH 4
#define RONDO_TILE_ROWS 4
#endif

#if defined(__clang__)
#define RONDO_UNROLL _Pragma("clang loop unroll(full)")
#define RONDO_VECTORISE _Pragma("clang loop vectorize(assume_safety)")
#else
#define RONDO_UNROLL _Pragma("GCC unroll 16")
#define RONDO_VECTORISE _Pragma("GCC ivdep")
#endif

extern const rondo__simd RONDO_SIMD_NAME(rondo__simd);
void RONDO_SIMD_NAME(rondo__simd_multiply_tile)(const rondo__tile *tile);

#endif  // RONDO_KERNEL_HOST_SIMD_LEVEL_H

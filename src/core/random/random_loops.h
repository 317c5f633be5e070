// random/random_loops.h — the kernels, what they take, and the loops that do the same on the host,
// compiled for each instruction set.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

typedef enum rondo__random_kernel {
    RONDO__RANDOM_WORDS,
    RONDO__RANDOM_UNIFORM,
    RONDO__RANDOM_UNIFORM_F64,
    RONDO__RANDOM_NORMAL,
    RONDO__RANDOM_NORMAL_F64,
    RONDO__RANDOM_BERNOULLI,
    RONDO__RANDOM_DROPOUT,
    RONDO__RANDOM_SET,
    RONDO__RANDOM_ADVANCE,
    RONDO__RANDOM_KERNEL_COUNT,
} rondo__random_kernel;

// What all but the last two take; 8-byte words, so that C and CUDA lay it out the same. The kernels
// say which of a to threshold they use, and for what.
typedef struct rondo__random_arguments {
    const uint64_t *state;  // seed, offset
    uint64_t relative;      // of the op's first counter to the offset
    uint64_t count;         // elements
    void *out;
    const void *in;
    uint8_t *mask;
    double a, b, c;
    uint64_t bits;
    uint64_t threshold;
    uint64_t dtype;
    uint64_t in_dtype;
    uint64_t is_aligned;  // whole groups may be moved at once
} rondo__random_arguments;

// Each loop does the groups [begin, end) of an op: a group is what one counter gives, four words or
// two numbers of double precision.
typedef void (*rondo__random_loop)(const rondo__random_arguments *arguments, uint64_t begin,
                                   uint64_t end);
typedef struct rondo__random_loops {
    rondo__random_loop run[RONDO__RANDOM_SET];  // by kernel
} rondo__random_loops;

#ifndef RONDO_SIMD_LEVEL
#define RONDO_SIMD_LEVEL baseline
#endif
#define RONDO_RANDOM_JOIN(name, level) name##_##level
#define RONDO_RANDOM_EXPAND(name, level) RONDO_RANDOM_JOIN(name, level)
#define RONDO_RANDOM_NAME(name) RONDO_RANDOM_EXPAND(name, RONDO_SIMD_LEVEL)

extern const rondo__random_loops rondo__random_loops_baseline;
#ifdef RONDO_SIMD_X86
extern const rondo__random_loops rondo__random_loops_avx2;
extern const rondo__random_loops rondo__random_loops_avx512;
#endif
extern const rondo__random_loops RONDO_RANDOM_NAME(rondo__random_loops);

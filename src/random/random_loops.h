// random/random_loops.h — the names of the loops that are compiled for each instruction set.
#ifndef RONDO_RANDOM_RANDOM_LOOPS_H
#define RONDO_RANDOM_RANDOM_LOOPS_H

#include "random/random_internal.h"

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

#endif  // RONDO_RANDOM_RANDOM_LOOPS_H

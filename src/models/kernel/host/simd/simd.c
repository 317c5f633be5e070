// kernel/host/simd/simd.c — see simd.h.
// SPDX-License-Identifier: Apache-2.0

#include "kernel/host/simd/simd.h"

#include <math.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <strings.h>

extern const rondo__simd rondo__simd_baseline;
#ifdef RONDO_SIMD_X86
extern const rondo__simd rondo__simd_avx2;
extern const rondo__simd rondo__simd_avx512;
#endif

// The second name is oneDNN's, whose values are the same.
const char *rondo__simd_get_limit(void) {
    const char *limit = getenv("RONDO_MAX_CPU_ISA");
    return limit != NULL ? limit : getenv("ONEDNN_MAX_CPU_ISA");
}

#ifdef RONDO_SIMD_X86
enum { LEVEL_BASELINE, LEVEL_AVX2, LEVEL_AVX512 };

static int get_allowed_level(void) {
    static const struct {
        const char *name;
        int level;
    } limits[] = {
        {"SSE41", LEVEL_BASELINE}, {"AVX", LEVEL_BASELINE},     {"AVX2", LEVEL_AVX2},
        {"AVX2_VNNI", LEVEL_AVX2}, {"AVX2_VNNI_2", LEVEL_AVX2},
    };
    const char *text = rondo__simd_get_limit();
    for (size_t i = 0; text != NULL && i < sizeof limits / sizeof limits[0]; ++i) {
        if (strcasecmp(text, limits[i].name) == 0) {
            return limits[i].level;
        }
    }
    return LEVEL_AVX512;
}
#endif

static const rondo__simd *choose(void) {
#ifdef RONDO_SIMD_X86
    const int level = get_allowed_level();
    if (level >= LEVEL_AVX512 && __builtin_cpu_supports("avx512f") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl")) {
        return &rondo__simd_avx512;
    }
    if (level >= LEVEL_AVX2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        return &rondo__simd_avx2;
    }
#endif
    return &rondo__simd_baseline;
}

const rondo__simd *rondo__simd_get(void) {
    static _Atomic(const rondo__simd *) kept;
    const rondo__simd *simd = atomic_load_explicit(&kept, memory_order_relaxed);
    if (simd == NULL) {
        simd = choose();
        atomic_store_explicit(&kept, simd, memory_order_relaxed);
    }
    return simd;
}

bool rondo__simd_get_clamp(rondo__activation activation, float alpha, float beta, float *out_low,
                           float *out_high) {
    *out_low = activation == RONDO__ACTIVATION_RELU   ? 0.0f
               : activation == RONDO__ACTIVATION_CLIP ? alpha
                                                      : -INFINITY;
    *out_high = activation == RONDO__ACTIVATION_CLIP ? beta : INFINITY;
    return activation == RONDO__ACTIVATION_NONE || activation == RONDO__ACTIVATION_RELU ||
           activation == RONDO__ACTIVATION_CLIP;
}

void rondo__simd_activate(const rondo__simd *simd, rondo__activation activation, float alpha,
                          float beta, float *y, int64_t count) {
    static const rondo__scalar_op scalar_op[RONDO__ACTIVATION_COUNT] = {
        [RONDO__ACTIVATION_RELU] = RONDO__SCALAR_Relu,
        [RONDO__ACTIVATION_CLIP] = RONDO__SCALAR_Clip,
        [RONDO__ACTIVATION_LEAKY_RELU] = RONDO__SCALAR_LeakyRelu,
        [RONDO__ACTIVATION_SIGMOID] = RONDO__SCALAR_Sigmoid,
        [RONDO__ACTIVATION_TANH] = RONDO__SCALAR_Tanh,
        [RONDO__ACTIVATION_GELU] = RONDO__SCALAR_Gelu,
        [RONDO__ACTIVATION_SILU] = RONDO__SCALAR_Silu,
        [RONDO__ACTIVATION_HARD_SWISH] = RONDO__SCALAR_HardSwish,
        [RONDO__ACTIVATION_GELU_TANH] = RONDO__SCALAR_GeluTanh,
    };
    if (activation != RONDO__ACTIVATION_NONE) {
        simd->unary[scalar_op[activation]](y, y, count, alpha, beta);
    }
}

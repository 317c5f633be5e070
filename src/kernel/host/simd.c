// SPDX-License-Identifier: Apache-2.0

#include "kernel/host/simd.h"

extern const rondo__simd rondo__simd_baseline;
#ifdef RONDO_SIMD_X86
extern const rondo__simd rondo__simd_avx2;
extern const rondo__simd rondo__simd_avx512;
#endif

const rondo__simd *rondo__simd_get(void) {
#ifdef RONDO_SIMD_X86
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
        return &rondo__simd_avx512;
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        return &rondo__simd_avx2;
    }
#endif
    return &rondo__simd_baseline;
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
    };
    if (activation != RONDO__ACTIVATION_NONE) {
        simd->unary[scalar_op[activation]](y, y, count, alpha, beta);
    }
}

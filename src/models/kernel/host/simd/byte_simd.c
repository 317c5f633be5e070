// kernel/host/simd/byte_simd.c — see byte_simd.h.
// SPDX-License-Identifier: Apache-2.0

#include "kernel/host/simd/byte_simd.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "kernel/host/simd/simd.h"

extern const rondo__byte_simd rondo__byte_simd_baseline;
#ifdef RONDO_SIMD_X86
extern const rondo__byte_simd rondo__byte_simd_avx2;
extern const rondo__byte_simd rondo__byte_simd_avx512;
extern const rondo__byte_simd rondo__byte_simd_avx512vnni;

static bool is_vnni_forbidden(void) {
    const char *limit = rondo__simd_get_limit();
    return limit != NULL && strcasecmp(limit, "AVX512_CORE") == 0;
}
#endif

// By the level of the loops of floats; VNNI is asked for beyond it.
int rondo__byte_simd_list(const rondo__byte_simd **out_tables) {
    int count = 0;
    out_tables[count++] = &rondo__byte_simd_baseline;
#ifdef RONDO_SIMD_X86
    const char *level = rondo__simd_get()->name;
    const bool has_avx512 = strcmp(level, rondo__byte_simd_avx512.name) == 0;
    if (has_avx512 || strcmp(level, rondo__byte_simd_avx2.name) == 0) {
        out_tables[count++] = rondo__byte_simd_avx2.wide;
        out_tables[count++] = &rondo__byte_simd_avx2;
    }
    if (has_avx512) {
        out_tables[count++] = rondo__byte_simd_avx512.wide;
        out_tables[count++] = &rondo__byte_simd_avx512;
    }
    if (has_avx512 && !is_vnni_forbidden() && __builtin_cpu_supports("avx512vnni")) {
        out_tables[count++] = &rondo__byte_simd_avx512vnni;
    }
#endif
    return count;
}

const rondo__byte_simd *rondo__byte_simd_get(void) {
    const rondo__byte_simd *tables[RONDO__BYTE_LEVEL_MAX];
    return tables[rondo__byte_simd_list(tables) - 1];
}

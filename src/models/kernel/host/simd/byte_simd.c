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

// 4 x 4 bytes at a time, the last of which overlap those before.
void rondo__byte_take_fourths(const uint8_t *x, uint8_t *y, int64_t y_row, int64_t count) {
    for (int64_t i = 0; i < count; i += 4) {
        const int64_t at = i + 4 <= count ? i : count - 4;
        uint32_t word[4];  // of an i, then of a p
        memcpy(word, x + 4 * at, sizeof word);
        for (int j = 0; j < 2; ++j) {
            const uint32_t change = (word[j] >> 16 ^ word[j + 2]) & 0xffff;
            word[j] ^= change << 16;
            word[j + 2] ^= change;
        }
        for (int j = 0; j < 4; j += 2) {
            const uint32_t change = (word[j] >> 8 ^ word[j + 1]) & 0x00ff00ff;
            word[j] ^= change << 8;
            word[j + 1] ^= change;
        }
        for (int p = 0; p < 4; ++p) {
            memcpy(y + p * y_row + at, word + p, sizeof *word);
        }
    }
}

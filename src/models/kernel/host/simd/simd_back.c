// kernel/host/simd/simd_back.c — loops of the way back through norms and pools.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "kernel/host/simd/simd_level.h"
#include "kernel/host/simd/simd_math.h"

enum { WIDTH = RONDO_SIMD_WIDTH };

typedef float vector __attribute__((vector_size(WIDTH * sizeof(float))));
typedef int32_t mask __attribute__((vector_size(WIDTH * sizeof(float))));

void RONDO_SIMD_NAME(rondo__simd_add_changes)(const float *dy, const float *y, const float *x,
                                              const rondo__norm_lanes *lanes, int64_t count) {
    const float *mean = lanes->mean, *inverse = lanes->inverse;
    float *sum = lanes->sum, *product = lanes->product;
    if (y == NULL) {
        RONDO_VECTORISE
        for (int64_t i = 0; i < count; ++i) {
            sum[i] += dy[i];
            product[i] += dy[i] * ((x[i] - mean[i]) * inverse[i]);
        }
        return;
    }
    RONDO_VECTORISE
    for (int64_t i = 0; i < count; ++i) {
        const float g = math_select(y[i] <= 0.0f, 0.0f, dy[i]);
        sum[i] += g;
        product[i] += g * ((x[i] - mean[i]) * inverse[i]);
    }
}

void RONDO_SIMD_NAME(rondo__simd_apply_changes)(const float *dy, const float *y, const float *x,
                                                const rondo__norm_lanes *lanes, float *dx,
                                                int64_t count) {
    const float *mean = lanes->mean, *inverse = lanes->inverse, *factor = lanes->factor;
    const float *one = lanes->sum, *two = lanes->product;
    if (y == NULL) {
        RONDO_VECTORISE
        for (int64_t i = 0; i < count; ++i) {
            dx[i] = factor[i] * (dy[i] - one[i] - (x[i] - mean[i]) * inverse[i] * two[i]);
        }
        return;
    }
    RONDO_VECTORISE
    for (int64_t i = 0; i < count; ++i) {
        const float g = math_select(y[i] <= 0.0f, 0.0f, dy[i]);
        dx[i] = factor[i] * (g - one[i] - (x[i] - mean[i]) * inverse[i] * two[i]);
    }
}

void RONDO_SIMD_NAME(rondo__simd_list_row_changes)(const float *dy, const float *x,
                                                   const float *scale, float mean, float inverse,
                                                   float *normal, float *change, float *product,
                                                   int64_t count) {
    RONDO_VECTORISE
    for (int64_t i = 0; i < count; ++i) {
        const float n = (x[i] - mean) * inverse, c = dy[i] * scale[i];
        normal[i] = n;
        change[i] = c;
        product[i] = c * n;
    }
}

void RONDO_SIMD_NAME(rondo__simd_apply_row_changes)(const float *change, const float *normal,
                                                    float one, float two, float inverse, float *dx,
                                                    int64_t count) {
    RONDO_VECTORISE
    for (int64_t i = 0; i < count; ++i) {
        dx[i] = inverse * (change[i] - one - normal[i] * two);
    }
}

void RONDO_SIMD_NAME(rondo__simd_add_products)(const float *a, const float *b, float *y,
                                               int64_t count) {
    RONDO_VECTORISE
    for (int64_t i = 0; i < count; ++i) {
        y[i] += a[i] * b[i];
    }
}

// The first of the largest, NaN winning, of the taps from number i on.
static int64_t find_largest(const float *const *taps, int64_t tap_count, int64_t i) {
    int64_t at = 0;
    for (int64_t t = 1; t < tap_count; ++t) {
        const float value = taps[t][i], best = taps[at][i];
        at = value > best || (value != value && best == best) ? t : at;
    }
    return at;
}

void RONDO_SIMD_NAME(rondo__simd_place_changes)(const float *const *taps, int64_t tap_count,
                                                const float *dy, float *const *targets, bool adds,
                                                int64_t count) {
    int64_t i = 0;
    for (; i + WIDTH <= count; i += WIDTH) {
        vector best, value, change;
        mask at = {0};
        memcpy(&best, taps[0] + i, sizeof best);
        memcpy(&change, dy + i, sizeof change);
        for (int64_t t = 1; t < tap_count; ++t) {
            memcpy(&value, taps[t] + i, sizeof value);
            const mask is_larger = (value > best) | ((value != value) & (best == best));
            at = (at & ~is_larger) | (((mask){0} + (int32_t)t) & is_larger);
            best = (vector)(((mask)best & ~is_larger) | ((mask)value & is_larger));
        }
        for (int64_t t = 0; t < tap_count; ++t) {
            vector own = (vector)((mask)change & (at == (int32_t)t)), held;
            if (adds) {
                memcpy(&held, targets[t] + i, sizeof held);
                own += held;
            }
            memcpy(targets[t] + i, &own, sizeof own);
        }
    }
    for (; i < count; ++i) {
        const int64_t at = find_largest(taps, tap_count, i);
        for (int64_t t = 0; t < tap_count; ++t) {
            const float own = t == at ? dy[i] : 0.0f;
            targets[t][i] = adds ? targets[t][i] + own : own;
        }
    }
}

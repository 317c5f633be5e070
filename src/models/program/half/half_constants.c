// program/half/half_constants.c — constants as f16: rounded once, and judged by what rounding does.
// SPDX-License-Identifier: Apache-2.0
#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/crew.h"
#include "base/error.h"
#include "base/memory.h"
#include "op/half.h"
#include "program/half/half_pass.h"

static const float half_largest = 65504.0f;
static const float half_least_normal = 6.103515625e-05f;  // 2^-14

typedef struct entry {
    const void *data;  // the key: bytes of a constant of the program, and how many
    size_t bytes;
    bool is_judged;
    uint32_t traits;
    rondo_tensor half;  // dtype NONE until it is asked for
} entry;

struct rondo__half_cache {
    rondo_dtype dtype;
    size_t count;
    entry *entries;        // ascending by `data`
    pthread_mutex_t lock;  // guards what is known of the entries
};

static int compare_entries(const void *a, const void *b) {
    const uintptr_t x = (uintptr_t)((const entry *)a)->data;
    const uintptr_t y = (uintptr_t)((const entry *)b)->data;
    const size_t m = ((const entry *)a)->bytes;
    const size_t n = ((const entry *)b)->bytes;
    return x < y ? -1 : x > y ? 1 : m < n ? -1 : m > n ? 1 : 0;
}

rondo_dtype rondo__half_get_dtype(const rondo__half_cache *cache) {
    return cache != NULL ? cache->dtype : RONDO_DTYPE_F16;
}

rondo_status rondo__half_cache_create(const rondo_program *program, rondo_dtype dtype,
                                      rondo__half_cache **out_cache) {
    *out_cache = NULL;
    rondo__half_cache *cache = rondo__calloc(1, sizeof *cache);
    if (cache == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    cache->dtype = dtype;
    cache->entries = rondo__calloc(program->value_count + 1, sizeof *cache->entries);
    if (cache->entries == NULL) {
        rondo__free(cache);
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t v = 0; v < program->value_count; ++v) {
        const rondo_tensor *constant = &program->values[v].constant;
        if (constant->dtype == RONDO_DTYPE_F32 && constant->data != NULL) {
            cache->entries[cache->count].data = constant->data;
            cache->entries[cache->count++].bytes = rondo_tensor_get_bytes(constant);
        }
    }
    qsort(cache->entries, cache->count, sizeof *cache->entries, compare_entries);
    (void)pthread_mutex_init(&cache->lock, NULL);
    *out_cache = cache;
    return RONDO_STATUS_OK;
}

void rondo__half_cache_destroy(rondo__half_cache *cache) {
    if (cache == NULL) {
        return;
    }
    for (size_t i = 0; i < cache->count; ++i) {
        rondo_tensor_deinit(&cache->entries[i].half);
    }
    (void)pthread_mutex_destroy(&cache->lock);
    rondo__free(cache->entries);
    rondo__free(cache);
}

// Bytes that several values share have one entry that is used, the one the search finds.
static entry *find(rondo__half_cache *cache, const rondo_tensor *tensor) {
    const entry key = {.data = tensor->data, .bytes = rondo_tensor_get_bytes(tensor)};
    return cache == NULL || cache->count == 0
               ? NULL
               : bsearch(&key, cache->entries, cache->count, sizeof key, compare_entries);
}

typedef struct magnitudes {
    const float *x;
    atomic_int_least32_t largest;  // its bits
} magnitudes;

// Magnitudes of floats are in the order of their bits, so one turn does eight.
static void look_at_magnitudes(void *data, size_t first, size_t last) {
    enum { SIDE_BY_SIDE = 8 };
    magnitudes *m = data;
    const float *x = m->x;
    int32_t largest[SIDE_BY_SIDE] = {0};
    size_t i = first;
    for (; i + SIDE_BY_SIDE <= last; i += SIDE_BY_SIDE) {
        int32_t bits[SIDE_BY_SIDE];
        memcpy(bits, x + i, sizeof bits);
        for (int k = 0; k < SIDE_BY_SIDE; ++k) {
            const int32_t magnitude = bits[k] & INT32_MAX;
            largest[k] = magnitude > largest[k] ? magnitude : largest[k];
        }
    }
    for (; i < last; ++i) {
        int32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        bits &= INT32_MAX;
        largest[0] = bits > largest[0] ? bits : largest[0];
    }
    for (int k = 1; k < SIDE_BY_SIDE; ++k) {
        largest[0] = largest[k] > largest[0] ? largest[k] : largest[0];
    }
    int_least32_t known = atomic_load(&m->largest);
    while (largest[0] > known && !atomic_compare_exchange_weak(&m->largest, &known, largest[0])) {
    }
}

static float find_largest(const float *x, int64_t count) {
    magnitudes m = {.x = x};
    rondo__crew_run((size_t)count, sizeof *x, look_at_magnitudes, &m);
    const int32_t bits = atomic_load(&m.largest);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

// Magnitudes from here on stand for infinity, as in masks; they and NaN do not count when a
// constant is judged.
static const float g_infinite = 1e9f;

static bool is_ordinary(float x) {
    return fabsf(x) < g_infinite;
}

// Whole numbers, some of which f16 would round.
static bool is_whole_and_rounded(const float *x, int64_t count) {
    bool is_rounded = false;
    for (int64_t i = 0; i < count; ++i) {
        if (!is_ordinary(x[i])) {
            continue;
        }
        if (x[i] != floorf(x[i])) {
            return false;
        }
        is_rounded = is_rounded || (fabsf(x[i]) > 2048.0f &&
                                    rondo_f16_to_float(rondo_f16_from_float(x[i])) != x[i]);
    }
    return is_rounded;
}

static uint32_t judge(const rondo_tensor *tensor) {
    const float *x = tensor->data;
    const int64_t count = rondo_shape_get_count(&tensor->shape);
    float largest = find_largest(x, count);
    uint32_t traits = 0;
    if (!is_ordinary(largest)) {
        largest = 0.0f;
        for (int64_t i = 0; i < count; ++i) {
            const float magnitude = fabsf(x[i]);
            if (is_ordinary(magnitude)) {
                largest = magnitude > largest ? magnitude : largest;
            } else if (magnitude <= FLT_MAX) {
                traits |= RONDO__HALF_INFINITE;
            }
        }
    }
    traits |= largest > half_largest ? RONDO__HALF_OVERFLOWS : 0;
    traits |= largest >= 4096.0f ? RONDO__HALF_LARGE : 0;
    traits |= largest > 0.0f && largest < half_least_normal && (traits & RONDO__HALF_INFINITE) == 0
                  ? RONDO__HALF_TINY
                  : 0;
    traits |= is_whole_and_rounded(x, count) ? RONDO__HALF_WHOLE : 0;
    traits |= largest > 0.0f && largest <= 1.0f / 64.0f ? RONDO__HALF_SHRINKS : 0;
    return traits;
}

uint32_t rondo__half_get_traits(rondo__half_cache *cache, const rondo_tensor *tensor) {
    entry *known = find(cache, tensor);
    if (known == NULL) {
        return judge(tensor);
    }
    (void)pthread_mutex_lock(&cache->lock);
    if (!known->is_judged) {
        known->traits = judge(tensor);
        known->is_judged = true;
    }
    const uint32_t traits = known->traits;
    (void)pthread_mutex_unlock(&cache->lock);
    return traits;
}

typedef struct rounding {
    rondo_dtype dtype;
    const float *from;
    uint16_t *to;
} rounding;

static void round_items(void *data, size_t first, size_t last) {
    const rounding *r = data;
    const float *from = r->from + first;
    uint16_t *to = r->to + first;
    const size_t count = last - first;
    const uint32_t infinity = r->dtype == RONDO_DTYPE_F16 ? 0x7c00u : 0x7f80u;
    rondo__half_from_float_array(r->dtype, from, to, count);
    bool has_infinities = false;
    for (size_t i = 0; i < count; ++i) {
        has_infinities |= (to[i] & 0x7fffu) == infinity;
    }
    for (size_t i = 0; has_infinities && i < count; ++i) {
        if ((to[i] & 0x7fffu) == infinity && isfinite(from[i])) {
            to[i] = (uint16_t)(to[i] - 1);  // the largest of that sign
        }
    }
}

static rondo_status round_fresh(rondo_dtype dtype, const rondo_tensor *tensor,
                                rondo_tensor *out_half) {
    RETURN_IF_ERROR(rondo_tensor_init(dtype, &tensor->shape, out_half));
    rounding r = {.dtype = dtype, .from = tensor->data, .to = out_half->data};
    rondo__crew_run((size_t)rondo_shape_get_count(&tensor->shape), sizeof *r.from + sizeof *r.to,
                    round_items, &r);
    return RONDO_STATUS_OK;
}

rondo_status rondo__half_round(rondo__half_cache *cache, const rondo_tensor *tensor,
                               rondo_tensor *out_half) {
    entry *known = find(cache, tensor);
    if (known == NULL) {
        return round_fresh(rondo__half_get_dtype(cache), tensor, out_half);
    }
    rondo_status status = RONDO_STATUS_OK;
    (void)pthread_mutex_lock(&cache->lock);
    if (known->half.dtype == RONDO_DTYPE_NONE) {
        status = round_fresh(cache->dtype, tensor, &known->half);
    }
    if (status == RONDO_STATUS_OK) {
        rondo_tensor_share(&known->half, out_half);
        out_half->shape = tensor->shape;  // the same bytes may be a constant of several shapes
    }
    (void)pthread_mutex_unlock(&cache->lock);
    return status;
}

// ---- what a training step keeps ---------------------------------------------------------------

// Nodes between the scale and its readers may have been no-ops, so that the way back reads the
// variable itself.
void rondo__half_mark_kept(const rondo_program *program, uint8_t class, uint8_t *class_of) {
    for (size_t i = 0; i < program->input_count; ++i) {
        class_of[program->inputs[i]] = class;
    }
    for (size_t n = 0; n < program->node_count; ++n) {
        const rondo__node *node = &program->nodes[n];
        const bool is_of_step = node->precision >= RONDO__PRECISION_TRAINED;
        for (size_t i = 0; i < node->input_count && !is_of_step; ++i) {
            if (node->inputs[i] >= 0 && program->values[node->inputs[i]].producer < 0) {
                class_of[node->inputs[i]] = 0;
            }
        }
    }
}

// kernel/host/dnnl_ahead.c — see dnnl_ahead.h.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/host/dnnl_ahead.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/thread.h"
#include "base/thread_count.h"
#include "kernel/host/dnnl_kernel.h"
#include "kernel/host/host_threads.h"

// A helper is started for so many primitives: with one it would be as long on its way.
enum { HELPERS_MAX = 4, JOBS_PER_HELPER = 4 };

typedef struct job {
    rondo__dnnl_describe describe;
    void *wanted;  // owned
    int32_t threads;
} job;

// Jobs do not change once helpers run.
struct rondo__kernel_ahead {
    job *jobs;
    size_t count;
    size_t capacity;
    atomic_size_t rest;  // the first jobs, which nobody has taken
    atomic_size_t made_count;
    size_t helper_limit;
    size_t helper_count;
    pthread_t helpers[HELPERS_MAX];
};

rondo__kernel_ahead *rondo__kernel_ahead_create(void) {
    int capacity = 0;  // of the cache through which primitives are found
    const int32_t processors = rondo__host_get_processor_count();
    if (processors < 2 || dnnl_get_primitive_cache_capacity(&capacity) != dnnl_success ||
        capacity == 0) {
        return NULL;
    }
    rondo_error saved;
    rondo__error_save(&saved);
    rondo__kernel_ahead *ahead = rondo__calloc(1, sizeof *ahead);
    rondo__error_restore(&saved);
    if (ahead != NULL) {
        rondo__dnnl_hold_cache();
        ahead->helper_limit = processors - 1 < HELPERS_MAX ? (size_t)processors - 1 : HELPERS_MAX;
    }
    return ahead;
}

void rondo__dnnl_ahead_want(rondo__kernel_ahead *ahead, rondo__dnnl_describe describe,
                            const void *wanted, size_t bytes, int32_t threads) {
    rondo_error saved;
    rondo__error_save(&saved);
    const rondo_status status =
        RONDO__ARRAY_RESERVE(ahead->jobs, ahead->capacity, ahead->count + 1);
    void *copy = status == RONDO_STATUS_OK ? rondo__malloc(bytes) : NULL;
    rondo__error_restore(&saved);
    if (copy != NULL) {
        memcpy(copy, wanted, bytes);
        ahead->jobs[ahead->count++] = (job){describe, copy, threads};
    }
}

// ---- helpers ----------------------------------------------------------------------------------

// The last job that nobody has taken.
static const job *take_job(rondo__kernel_ahead *ahead) {
    size_t rest = atomic_load(&ahead->rest);
    while (rest > 0 && !atomic_compare_exchange_weak(&ahead->rest, &rest, rest - 1)) {
    }
    return rest > 0 ? &ahead->jobs[rest - 1] : NULL;
}

// The primitive stays in oneDNN's cache.
static bool make(const job *wanted, dnnl_engine_t engine) {
    dnnl_primitive_desc_t description = NULL;
    dnnl_primitive_t primitive = NULL;
    (void)rondo__host_threads_use(wanted->threads);
    if (wanted->describe(wanted->wanted, engine, &description) != dnnl_success) {
        return false;
    }
    const bool is_made = dnnl_primitive_create(&primitive, description) == dnnl_success;
    if (is_made) {
        (void)dnnl_primitive_destroy(primitive);
    }
    (void)dnnl_primitive_desc_destroy(description);
    return is_made;
}

static void *help(void *data) {
    rondo__kernel_ahead *ahead = data;
    dnnl_engine_t engine = NULL;
    if (dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success) {
        return NULL;
    }
    for (const job *at = take_job(ahead); at != NULL; at = take_job(ahead)) {
        atomic_fetch_add(&ahead->made_count, make(at, engine));
    }
    (void)dnnl_engine_destroy(engine);
    return NULL;
}

void rondo__kernel_ahead_begin(rondo__kernel_ahead *ahead) {
    if (ahead == NULL) {
        return;
    }
    rondo_error saved;
    rondo__error_save(&saved);
    atomic_store(&ahead->rest, ahead->count);
    while (ahead->helper_count < ahead->helper_limit &&
           ahead->count >= (ahead->helper_count + 1) * JOBS_PER_HELPER &&
           rondo__thread_start("rondo-make", help, ahead, &ahead->helpers[ahead->helper_count]) ==
               RONDO_STATUS_OK) {
        ++ahead->helper_count;
    }
    rondo__error_restore(&saved);
}

size_t rondo__dnnl_ahead_count(const rondo__kernel_ahead *ahead) {
    return atomic_load(&ahead->made_count);
}

void rondo__kernel_ahead_destroy(rondo__kernel_ahead *ahead) {
    if (ahead == NULL) {
        return;
    }
    atomic_store(&ahead->rest, 0);
    for (size_t i = 0; i < ahead->helper_count; ++i) {
        (void)pthread_join(ahead->helpers[i], NULL);
    }
    for (size_t i = 0; i < ahead->count; ++i) {
        rondo__free(ahead->jobs[i].wanted);
    }
    rondo__free(ahead->jobs);
    rondo__free(ahead);
    rondo__dnnl_release_cache();
}

// cache/background.c — see background.h.
// SPDX-License-Identifier: Apache-2.0
#include "cache/background.h"

#include "rondo/update.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/thread.h"
#include "device/stream_destroy.h"

typedef enum work_state {
    IDLE,
    ASKED,  // a request is there; the thread may be at work on it
    DONE,   // its result waits to be taken
} work_state;

struct rondo__background {
    rondo_device *device;                      // the cache's
    const rondo_graph_cache_options *options;  // the cache's
    rondo_stream *stream;                      // the thread's
    rondo_graph *recorder;                     // the thread's
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_stopping;  // guarded by lock
    atomic_int state;  // a work_state; written with the lock held
    // Of the thread while ASKED, otherwise of the user.
    rondo_step_function step;
    void *user_data;
    void *copy;  // of the user's data: options->user_data_bytes; NULL: they are not copied
    rondo__cache_clock clock;
    rondo__background_result result;
};

// ---- the thread -------------------------------------------------------------------------------

static uint64_t get_time(const rondo__background *b) {
    return b->clock.now_ns(b->clock.user_data);
}

static rondo_status capture(rondo__background *b) {
    rondo_step_options options = {
        .struct_size = sizeof options, .mode = b->options->mode, .capture_only = true};
    rondo_step_outcome outcome;
    rondo_graph *graph = NULL;
    RETURN_IF_ERROR(
        rondo__cache_create_graph(b->device, b->options, RONDO_KEEP_EXECUTABLE, &graph));
    uint64_t start = get_time(b);
    rondo_status status =
        rondo_graph_capture_step(b->recorder, b->stream, &options, b->step, b->user_data, &outcome);
    uint64_t captured = get_time(b);
    if (status == RONDO_STATUS_OK) {
        status = rondo_graph_update(graph, b->recorder, NULL);
    }
    if (status != RONDO_STATUS_OK) {
        rondo_error failure;
        rondo__error_save(&failure);
        rondo_graph_destroy(graph);
        (void)!rondo_graph_reset(b->recorder);  // it is empty, or on a lost device
        rondo__error_restore(&failure);
        return status;
    }
    b->result.graph = graph;
    b->result.capture_ns = captured - start;
    b->result.executable_ns = get_time(b) - captured;
    return RONDO_STATUS_OK;
}

static void *run_thread(void *argument) {
    rondo__background *b = argument;
    pthread_mutex_lock(&b->lock);
    while (!b->is_stopping) {
        if (atomic_load_explicit(&b->state, memory_order_relaxed) != ASKED) {
            pthread_cond_wait(&b->changed, &b->lock);
            continue;
        }
        pthread_mutex_unlock(&b->lock);
        if (capture(b) != RONDO_STATUS_OK) {
            snprintf(b->result.message, sizeof b->result.message, "%s",
                     rondo_error_get_last()->message);
        }
        pthread_mutex_lock(&b->lock);
        atomic_store_explicit(&b->state, DONE, memory_order_release);
        pthread_cond_broadcast(&b->changed);
    }
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

// ---- its user ---------------------------------------------------------------------------------

static void free_all(rondo__background *b) {
    pthread_cond_destroy(&b->changed);
    pthread_mutex_destroy(&b->lock);
    rondo_graph_destroy(b->recorder);
    rondo__stream_destroy_own(b->stream);
    rondo__free(b->copy);
    rondo__free(b);
}

rondo_status rondo__background_create(rondo_device *device,
                                      const rondo_graph_cache_options *options,
                                      rondo__background **out_background) {
    *out_background = NULL;
    rondo__background *b = rondo__calloc(1, sizeof *b);
    if (b == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    b->device = device;
    b->options = options;
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->changed, NULL);
    rondo_status status = RONDO_STATUS_OK;
    if (options->user_data_bytes > 0) {
        b->copy = rondo__malloc(options->user_data_bytes);
        status = b->copy != NULL ? RONDO_STATUS_OK : RONDO_STATUS_NO_MEMORY;
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_stream_create(device, NULL, &b->stream);
    }
    if (status == RONDO_STATUS_OK) {
        b->stream->is_lent = true;
        status = rondo__cache_create_graph(device, options, RONDO_KEEP_TEMPLATE_ONLY, &b->recorder);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__thread_start("rondo-capture", run_thread, b, &b->thread);
    }
    if (status != RONDO_STATUS_OK) {
        free_all(b);
        return status;
    }
    *out_background = b;
    return RONDO_STATUS_OK;
}

bool rondo__background_is_here(const rondo__background *b) {
    return b != NULL && pthread_equal(b->thread, pthread_self()) != 0;
}

void rondo__background_destroy(rondo__background *b) {
    if (b == NULL) {
        return;
    }
    pthread_mutex_lock(&b->lock);
    b->is_stopping = true;
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
    (void)pthread_join(b->thread, NULL);
    rondo_graph_destroy(b->result.graph);
    free_all(b);
}

bool rondo__background_start(rondo__background *b, void *subject, rondo__cache_clock clock,
                             rondo_step_function step, void *user_data) {
    if (atomic_load_explicit(&b->state, memory_order_relaxed) != IDLE) {
        return false;
    }
    memset(&b->result, 0, sizeof b->result);
    b->result.subject = subject;
    b->clock = clock;
    b->step = step;
    b->user_data = user_data;
    if (b->copy != NULL && user_data != NULL) {
        memcpy(b->copy, user_data, b->options->user_data_bytes);
        b->user_data = b->copy;
    }
    pthread_mutex_lock(&b->lock);
    atomic_store_explicit(&b->state, ASKED, memory_order_relaxed);
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
    return true;
}

bool rondo__background_take(rondo__background *b, rondo__background_result *out_result) {
    if (atomic_load_explicit(&b->state, memory_order_acquire) != DONE) {
        return false;
    }
    *out_result = b->result;
    b->result.graph = NULL;
    atomic_store_explicit(&b->state, IDLE, memory_order_relaxed);
    return true;
}

void rondo__background_wait(rondo__background *b) {
    pthread_mutex_lock(&b->lock);
    while (atomic_load_explicit(&b->state, memory_order_relaxed) == ASKED) {
        pthread_cond_wait(&b->changed, &b->lock);
    }
    pthread_mutex_unlock(&b->lock);
}

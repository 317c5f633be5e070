// Generators and threads: one thread uses a generator at a time and others are refused by name;
// threads with generators of their own do not meet.
//
// No assertions inside the threads: cmocka's belong to the thread that runs the case.
// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>

#include "conformance/random/random_support.h"

enum { SEED = 5, WORDS = 64 };

// ---- several threads at once --------------------------------------------------------------------

enum { THREADS = 16, ROUNDS = 12 };

typedef struct worker {
    suite_context *context;
    pthread_barrier_t *start;
    rondo_generator *generator;
    bool is_shared;  // so calls may be refused
    rondo_stream *stream;
    rondo_graph *graph;
    uint32_t *out;   // draws of the graph, and eager ones
    uint64_t taken;  // draws
    uint64_t last;   // counters before the last replay, where the generator is the thread's own
    rondo_status status;
    char message[512];
} worker;

static bool keep(worker *w, rondo_status status) {
    const bool is_fine =
        status == RONDO_STATUS_OK || (w->is_shared && status == RONDO_STATUS_STATE);
    if (w->status == RONDO_STATUS_OK && !is_fine) {
        w->status = status;
        snprintf(w->message, sizeof w->message, "%s", rondo_error_get_last()->message);
    }
    return status == RONDO_STATUS_OK;
}

static void change_stream(worker *w) {
    rondo_stream_destroy(w->stream);
    w->stream = NULL;
    w->status = rondo_stream_create(w->context->device, NULL, &w->stream);
}

static rondo_status record(worker *w) {
    rondo_status status =
        rondo_graph_capture_begin(w->graph, w->stream, RONDO_CAPTURE_THREAD_LOCAL);
    if (status == RONDO_STATUS_OK) {
        status = suite_draw(w->generator, w->stream, w->out);
    }
    if (status != RONDO_STATUS_OK) {
        rondo_graph_capture_abort(w->graph);
        return status;
    }
    return rondo_graph_capture_end(w->graph);
}

static void *run_worker(void *data) {
    worker *w = data;
    if (!w->is_shared) {
        (void)keep(w, record(w));
    }
    pthread_barrier_wait(w->start);
    for (int round = 0; round < suite_rounds(ROUNDS, 4) && w->status == RONDO_STATUS_OK; ++round) {
        rondo_generator_state seen;
        w->last = w->taken * DRAW_COUNTERS;
        w->taken += keep(w, rondo_graph_replay(w->graph, w->stream));
        w->taken += keep(w, suite_draw(w->generator, w->stream, w->out + WORDS));
        (void)keep(w, rondo_generator_get_state(w->generator, &seen));
        if (round % 4 == 1) {
            change_stream(w);
        }
    }
    return NULL;
}

// Each replays a graph of its own that draws from its generator, and draws eagerly.
static void run_workers(suite_context *context, worker *workers, rondo_generator *shared) {
    pthread_t threads[THREADS];
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, THREADS);
    for (int i = 0; i < THREADS; ++i) {
        worker *w = &workers[i];
        *w = (worker){.context = context,
                      .start = &start,
                      .generator = shared,
                      .is_shared = shared != NULL,
                      .stream = suite_create_stream(context),
                      .graph = suite_create_graph(context, false),
                      .out = suite_allocate(context, RONDO_MEMORY_DEVICE, 2 * WORDS)};
        if (shared == NULL) {
            w->generator = suite_create_generator(context, SEED + (uint64_t)i);
        } else {
            ASSERT_OK(record(w));
        }
    }
    for (int i = 0; i < THREADS; ++i) {
        assert_int_equal(pthread_create(&threads[i], NULL, run_worker, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; ++i) {
        pthread_join(threads[i], NULL);
    }
    pthread_barrier_destroy(&start);
    for (int i = 0; i < THREADS; ++i) {
        if (workers[i].status != RONDO_STATUS_OK) {
            fail_msg("thread %d: %s: %s", i, rondo_status_get_name(workers[i].status),
                     workers[i].message);
        }
    }
}

static void drop_worker(worker *w) {
    rondo_graph_destroy(w->graph);
    rondo_stream_destroy(w->stream);
    suite_free(w->context, RONDO_MEMORY_DEVICE, w->out);
}

SUITE_CASE(test_conformance_random_threads__own_generators_do_not_meet) {
    static worker workers[THREADS];
    run_workers(context, workers, NULL);
    for (int i = 0; i < THREADS; ++i) {
        worker *w = &workers[i];
        const uint64_t seed = SEED + (uint64_t)i;
        ASSERT_DRAWN(context, w->out, seed, w->last);
        ASSERT_DRAWN(context, w->out + WORDS, seed, w->last + DRAW_COUNTERS);
        ASSERT_STANDS(w->generator, seed, w->taken * DRAW_COUNTERS);
        rondo_generator_release(w->generator);
        drop_worker(w);
    }
}

// What was not refused took counters of its own, and what was refused took none.
SUITE_CASE(test_conformance_random_threads__a_shared_generator_loses_no_count) {
    static worker workers[THREADS];
    rondo_generator *generator = suite_create_generator(context, SEED);
    run_workers(context, workers, generator);
    uint64_t taken = 0;
    for (int i = 0; i < THREADS; ++i) {
        taken += workers[i].taken;
        drop_worker(&workers[i]);
    }
    ASSERT_STANDS(generator, SEED, taken * DRAW_COUNTERS);
    rondo_generator_release(generator);
}

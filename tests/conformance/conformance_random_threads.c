// Generators and threads: one thread uses a generator at a time and others are refused by name;
// threads with generators of their own do not meet.
//
// No assertions inside the threads: cmocka's belong to the thread that runs the case.
// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>

#include "base/error.h"
#include "capture/capture.h"
#include "random_support.h"

enum { SEED = 5, WORDS = 64 };

// ---- while a replay is being launched -----------------------------------------------------------

typedef struct duel duel;

// Takes part in a graph behind its generators: runs another thread's call where the generators were
// asked and the graph is not launched yet, and may refuse the replay there.
typedef struct intruder {
    rondo__participant head;
    rondo_status (*call)(duel *d);  // NULL: none
    bool refuses_replay;
    rondo_status status;  // of the call
    char message[240];
    duel *duel;
} intruder;

struct duel {
    suite_context *context;
    rondo_generator *generator;
    rondo_generator *second;
    rondo_stream *streams[2];
    rondo_graph *held;      // draws, and has the intruder
    rondo_graph *other;     // draws
    rondo_graph *outer;     // in which `other` was recorded
    rondo_graph *together;  // draws from the second generator, and from the first
    rondo_graph *spare;
    uint32_t *memory;
    intruder intruder;
};

static void *run_intruder(void *data) {
    intruder *self = data;
    self->status = self->call(self->duel);
    snprintf(self->message, sizeof self->message, "%s", rondo_error_get_last()->message);
    return NULL;
}

static rondo_status intrude(rondo__participant *participant, rondo_stream *stream) {
    intruder *self = (intruder *)participant;
    pthread_t thread;
    (void)stream;
    if (self->call != NULL && pthread_create(&thread, NULL, run_intruder, self) == 0) {
        pthread_join(thread, NULL);
    }
    return self->refuses_replay ? RONDO_FAIL_AS("rondo_graph_replay", STATE, "on purpose")
                                : RONDO_STATUS_OK;
}

static void keep_intruder(rondo__participant *participant) {
    (void)participant;  // the case's
}

static const rondo__participant_type intruder_type = {
    .name = "intruder",
    .prepare_replay = intrude,
    .destroy = keep_intruder,
};

static rondo_status replay_other(duel *d) {
    return rondo_graph_replay(d->other, d->streams[1]);
}
static rondo_status replay_outer(duel *d) {
    return rondo_graph_replay(d->outer, d->streams[1]);
}
static rondo_status replay_together(duel *d) {
    return rondo_graph_replay(d->together, d->streams[1]);
}
static rondo_status draw(duel *d) {
    return suite_draw(d->generator, d->streams[1], d->memory);
}
static rondo_status draw_in_a_capture(duel *d) {
    rondo_status status =
        rondo_graph_capture_begin(d->spare, d->streams[1], RONDO_CAPTURE_THREAD_LOCAL);
    if (status == RONDO_STATUS_OK) {
        status = draw(d);
        rondo_graph_capture_abort(d->spare);
    }
    return status;
}
static rondo_status reserve(duel *d) {
    rondo_random_range range;
    return rondo_generator_reserve(d->generator, d->streams[1], 1, &range);
}
static rondo_status set_seed(duel *d) {
    return rondo_generator_set_seed(d->generator, SEED);
}
static rondo_status get_state(duel *d) {
    rondo_generator_state seen;
    return rondo_generator_get_state(d->generator, &seen);
}
static rondo_status mark_and_rewind(duel *d) {
    rondo_generator_mark mark = {0};
    rondo_status status = rondo_generator_get_mark(d->generator, d->streams[1], &mark);
    return status == RONDO_STATUS_OK ? rondo_generator_rewind(d->generator, d->streams[1], &mark)
                                     : status;
}

static void capture_draws(duel *d, rondo_graph *graph, bool draws_second, rondo_graph *child) {
    rondo__capture *capture = NULL;
    rondo_stream *stream = d->streams[0];
    ASSERT_OK(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
    if (child != NULL) {
        ASSERT_OK(rondo_stream_add_graph(stream, child));
    }
    if (draws_second) {
        ASSERT_OK(suite_draw(d->second, stream, d->memory + WORDS));
    }
    ASSERT_OK(suite_draw(d->generator, stream, d->memory));
    if (graph == d->held) {
        ASSERT_OK(rondo__capture_find(stream, &capture, NULL));
        rondo__capture_add_participant(capture, &d->intruder.head);
    }
    ASSERT_OK(rondo_graph_capture_end(graph));
}

// Static: a case that stops leaves a graph behind that looks at it.
static duel *make_duel(suite_context *context) {
    static duel d;
    d = (duel){.context = context,
               .generator = suite_create_generator(context, SEED),
               .second = suite_create_generator(context, SEED + 1),
               .streams = {suite_create_stream(context), suite_create_stream(context)},
               .held = suite_create_graph(context, false),
               .other = suite_create_graph(context, true),
               .outer = suite_create_graph(context, false),
               .together = suite_create_graph(context, false),
               .spare = suite_create_graph(context, false),
               .memory = suite_allocate(context, RONDO_MEMORY_DEVICE, 2 * WORDS),
               .intruder = {.head.type = &intruder_type, .duel = &d}};
    capture_draws(&d, d.held, false, NULL);
    capture_draws(&d, d.other, false, NULL);
    capture_draws(&d, d.outer, false, d.other);
    capture_draws(&d, d.together, true, NULL);
    return &d;
}

static void drop_duel(duel *d) {
    rondo_graph *const graphs[] = {d->held, d->outer, d->other, d->together, d->spare};
    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; ++i) {
        rondo_graph_destroy(graphs[i]);
    }
    rondo_stream_destroy(d->streams[0]);
    rondo_stream_destroy(d->streams[1]);
    rondo_generator_release(d->generator);
    rondo_generator_release(d->second);
    suite_free(d->context, RONDO_MEMORY_DEVICE, d->memory);
}

// Whatever another thread calls meanwhile is refused and changes nothing; afterwards it may be
// called, whether the replay was launched or not.
static void test_conformance_random_threads__another_thread_is_refused(void **state) {
    static rondo_status (*const calls[])(duel * d) = {
        replay_other,    replay_outer, replay_together,  draw, set_seed, get_state,
        mark_and_rewind, reserve,      draw_in_a_capture};
    enum { CALL_COUNT = sizeof calls / sizeof *calls };
    duel *d = make_duel(suite_get_context(state));
    for (int round = 0; round < suite_rounds(2 * CALL_COUNT, 6); ++round) {
        intruder *i = &d->intruder;
        i->refuses_replay = round % 2 == 1;
        i->call = calls[round / 2];
        ASSERT_OK(rondo_generator_set_seed(d->generator, SEED));
        rondo_status status = rondo_graph_replay(d->held, d->streams[0]);
        assert_int_equal(i->status, RONDO_STATUS_STATE);
        assert_non_null(strstr(i->message, "create one for each thread"));
        assert_int_equal(status, i->refuses_replay ? RONDO_STATUS_STATE : RONDO_STATUS_OK);
        ASSERT_STANDS(d->generator, SEED, i->refuses_replay ? 0 : DRAW_COUNTERS);
        ASSERT_OK(i->call(d));
        ASSERT_OK(suite_draw(d->second, d->streams[1], d->memory));  // of a refused graph
    }
    drop_duel(d);
}

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
    char message[256];
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

static void test_conformance_random_threads__own_generators_do_not_meet(void **state) {
    suite_context *context = suite_get_context(state);
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
static void test_conformance_random_threads__a_shared_generator_loses_no_count(void **state) {
    suite_context *context = suite_get_context(state);
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

static const suite_entry random_threads_cases[] = {
    SUITE_CASE(test_conformance_random_threads__another_thread_is_refused),
    SUITE_CASE(test_conformance_random_threads__own_generators_do_not_meet),
    SUITE_CASE(test_conformance_random_threads__a_shared_generator_loses_no_count),
    {0},
};
SUITE_LIST(random_threads);

// inside_random.c — a generator while a replay that uses it is being launched, when other threads
// are refused by name; and while a stream that used it records without a graph.
//
// No assertions inside the threads: cmocka's belong to the thread that runs the case.
// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>

#include "base/error.h"
#include "capture/capture.h"
#include "conformance/random/random_support.h"
#include "inside/inside_objects.h"

enum { SEED = 5, WORDS = 64 };

typedef struct duel duel;

// Takes part in a graph behind its generators: runs another thread's call where the generators were
// asked and the graph is not launched yet, and may refuse the replay there.
typedef struct intruder {
    rondo__participant head;
    rondo_status (*call)(duel *d);  // NULL: none
    bool refuses_replay;
    rondo_status status;  // of the call
    char message[480];
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
SUITE_CASE(test_inside_random__another_thread_is_refused) {
    static rondo_status (*const calls[])(duel * d) = {
        replay_other,    replay_outer, replay_together,  draw, set_seed, get_state,
        mark_and_rewind, reserve,      draw_in_a_capture};
    enum { CALL_COUNT = sizeof calls / sizeof *calls };
    duel *d = make_duel(context);
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

// A capture that no graph began left no position to wait for: that is said, and passes. (Of the
// program's own captures on CUDA: conformance_random_shared.c.)
SUITE_CASE_EXECUTED(test_inside_random__bare_captures_are_not_followed) {
    rondo_generator *generator = suite_create_generator(context, SEED);
    rondo_stream *stream = suite_create_stream(context);
    rondo_graph *graph = suite_create_graph(context, false);
    uint32_t *memory = suite_allocate(context, RONDO_MEMORY_DEVICE, WORDS);
    ASSERT_OK(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
    ASSERT_OK(suite_draw(generator, stream, memory));
    ASSERT_OK(rondo_graph_capture_end(graph));
    for (uint64_t round = 0; round < 2; ++round) {
        ASSERT_OK(rondo_graph_replay(graph, stream));
        inside_begin_bare(stream);
        ASSERT_STATUS(rondo_graph_replay(graph, context->stream), STATE);
        ASSERT_MESSAGE_HAS("records a capture now");
        inside_drop_template(inside_end_bare(stream));
        ASSERT_OK(rondo_graph_replay(graph, context->stream));
        ASSERT_DRAWN(context, memory, SEED, (2 * round + 1) * DRAW_COUNTERS);
    }
    ASSERT_STANDS(generator, SEED, 4 * DRAW_COUNTERS);
    rondo_graph_destroy(graph);
    rondo_stream_destroy(stream);
    rondo_generator_release(generator);
}

// Generators that several streams use: every replay and every eager draw takes counters of its own,
// as if one had ended before the next began. (conformance_random_threads.c: several threads.)
//
// Nothing here depends on how long something takes: streams with threads of their own are held by
// gates until everything is on them. Where a gate cannot be, a spin only decides how surely a
// mistake would show.
// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>

#include "conformance/random/random_support.h"
#include "support/driver.h"

enum { SEED = 5, WORDS = 64, HISTORY = 4, DRAWS = 4, LATE_US = 3000 };

// ---- who uses the generator -------------------------------------------------------------------

// A graph that draws and keeps its latest draws, the latest first.
typedef struct recorder {
    rondo_graph *graph;
    uint32_t *memory;  // HISTORY places
    int replay_count;
} recorder;

typedef enum use { REPLAY_FIRST, REPLAY_SECOND, DRAW, RESEED, USE_COUNT } use;

typedef struct pair {
    suite_context *context;
    rondo_generator *generator;
    rondo_stream *streams[2];
    recorder recorders[2];
    uint32_t *drawn;  // DRAWS places
    int draw_count;
    uint64_t seed;
    uint64_t offset;
    uint64_t expected[3][DRAWS][2];  // of both recorders and the eager draws: seed, offset
} pair;

static recorder make_recorder(pair *p, rondo_stream *stream) {
    recorder r = {.graph = suite_create_graph(p->context, false),
                  .memory = suite_allocate(p->context, RONDO_MEMORY_DEVICE, HISTORY * WORDS)};
    ASSERT_OK(rondo_graph_capture_begin(r.graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
    for (int i = HISTORY - 1; i > 0; --i) {
        ASSERT_OK(rondo_stream_copy(stream, r.memory + WORDS * i, r.memory + WORDS * (i - 1),
                                    WORDS * 4, RONDO_COPY_DEVICE_TO_DEVICE));
    }
    ASSERT_OK(suite_draw(p->generator, stream, r.memory));
    ASSERT_OK(rondo_graph_capture_end(r.graph));
    return r;
}

static void start_over(pair *p) {
    p->seed = SEED;
    p->offset = 0;
    p->draw_count = 0;
    p->recorders[0].replay_count = 0;
    p->recorders[1].replay_count = 0;
    ASSERT_OK(rondo_generator_set_seed(p->generator, SEED));
}

static pair make_pair(suite_context *context) {
    pair p = {.context = context, .generator = suite_create_generator(context, SEED)};
    for (int i = 0; i < 2; ++i) {
        p.streams[i] = suite_create_stream(context);
        p.recorders[i] = make_recorder(&p, p.streams[i]);
    }
    p.drawn = suite_allocate(context, RONDO_MEMORY_DEVICE, DRAWS * WORDS);
    start_over(&p);
    return p;
}

static void drop_pair(pair *p) {
    for (int i = 0; i < 2; ++i) {
        rondo_graph_destroy(p->recorders[i].graph);
        suite_free(p->context, RONDO_MEMORY_DEVICE, p->recorders[i].memory);
        rondo_stream_destroy(p->streams[i]);
    }
    rondo_generator_release(p->generator);
    suite_free(p->context, RONDO_MEMORY_DEVICE, p->drawn);
}

static void put_use(pair *p, use kind, rondo_stream *stream) {
    if (kind == RESEED) {
        p->seed += 100;
        p->offset = 0;
        ASSERT_OK(rondo_generator_set_seed(p->generator, p->seed));
        return;
    }
    int *count = kind == DRAW ? &p->draw_count : &p->recorders[kind].replay_count;
    if (kind == DRAW) {
        ASSERT_OK(suite_draw(p->generator, stream, p->drawn + WORDS * *count));
    } else {
        ASSERT_OK(rondo_graph_replay(p->recorders[kind].graph, stream));
    }
    p->expected[kind][*count][0] = p->seed;
    p->expected[kind][*count][1] = p->offset;
    *count += 1;
    p->offset += DRAW_COUNTERS;
}

static void check_uses(pair *p) {
    for (int i = 0; i < p->draw_count; ++i) {
        ASSERT_DRAWN(p->context, p->drawn + WORDS * i, p->expected[DRAW][i][0],
                     p->expected[DRAW][i][1]);
    }
    for (int k = 0; k < 2; ++k) {
        int count = p->recorders[k].replay_count;
        for (int i = 0; i < count; ++i) {
            ASSERT_DRAWN(p->context, p->recorders[k].memory + WORDS * (count - 1 - i),
                         p->expected[k][i][0], p->expected[k][i][1]);
        }
    }
    ASSERT_STANDS(p->generator, p->seed, p->offset);
}

// Keeps what is put on the stream from now on from running. NULL where it has run when the
// call returns.
static suite_gate *hold(suite_context *context, rondo_stream *stream) {
    if (context->is_prompt) {
        return NULL;
    }
    suite_gate *gate = suite_gate_create(context);
    ASSERT_OK(suite_gate_enter(gate, stream));
    return gate;
}

static void let_go(suite_gate *gate) {
    if (gate != NULL) {
        suite_gate_open(gate);
    }
}

// All streams have passed it.
static void drop_gate(suite_gate *gate) {
    if (gate != NULL) {
        suite_gate_destroy(gate);
    }
}

// ---- streams that run -------------------------------------------------------------------------

// Four uses on two streams, of which neither may begin before all are there; then the stream of the
// last one begins first. A sample of all orders, in which each use follows each other one.
SUITE_CASE(test_conformance_random_shared__uses_on_two_streams_take_turns) {
    pair p = make_pair(context);
    enum { CHOICES = 2 * USE_COUNT, ALL = CHOICES * CHOICES * CHOICES * CHOICES, SAMPLE = 300 };
    for (int i = 0; i < suite_rounds(SAMPLE, 4); ++i) {
        const int code = i * 1283 % ALL;  // an odd number: no order comes twice
        suite_gate *gates[2];
        start_over(&p);
        gates[0] = hold(context, p.streams[0]);
        gates[1] = hold(context, p.streams[1]);
        int which = 0;
        for (int rest = code, k = 0; k < 4; ++k, rest /= CHOICES) {
            which = rest % 2;
            put_use(&p, (use)(rest / 2 % USE_COUNT), p.streams[which]);
        }
        let_go(gates[which]);
        let_go(gates[which ^ 1]);
        ASSERT_OK(rondo_device_synchronize(context->device));
        check_uses(&p);
        drop_gate(gates[0]);
        drop_gate(gates[1]);
    }
    drop_pair(&p);
}

// ---- streams that record ----------------------------------------------------------------------

// A capture of something else, on a stream that the generator was used on.
static rondo_graph *begin_other_capture(pair *p, rondo_stream *stream) {
    rondo_graph *graph = suite_create_graph(p->context, false);
    ASSERT_OK(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
    ASSERT_OK(rondo_stream_fill(stream, p->drawn + WORDS * (DRAWS - 1), 0, 4, 1));
    return graph;
}

// What the stream was given before the capture comes first, whatever becomes of the capture.
SUITE_CASE(test_conformance_random_shared__streams_that_record_are_followed) {
    pair p = make_pair(context);
    for (int round = 0; round < 6; ++round) {
        bool is_broken = round % 3 == 1;
        bool is_drawn_in = round % 3 == 2;
        start_over(&p);
        suite_gate *gate = hold(context, p.streams[0]);
        put_use(&p, round < 3 ? REPLAY_FIRST : DRAW, p.streams[0]);
        rondo_graph *other = begin_other_capture(&p, p.streams[0]);
        if (is_broken) {
            ASSERT_STATUS(rondo_stream_synchronize(p.streams[0]), STATE);
        } else if (is_drawn_in) {
            ASSERT_OK(suite_draw(p.generator, p.streams[0], p.drawn + WORDS * (DRAWS - 1)));
        }
        put_use(&p, REPLAY_SECOND, p.streams[1]);
        put_use(&p, DRAW, p.streams[1]);
        let_go(gate);
        ASSERT_OK(rondo_stream_synchronize(p.streams[1]));
        if (is_broken) {
            ASSERT_STATUS(rondo_graph_capture_end(other), STATE);
        } else {
            ASSERT_OK(rondo_graph_capture_end(other));
        }
        check_uses(&p);
        drop_gate(gate);
        // And what it is given after the capture.
        gate = hold(context, p.streams[0]);
        put_use(&p, REPLAY_FIRST, p.streams[0]);
        put_use(&p, REPLAY_SECOND, p.streams[1]);
        let_go(gate);
        check_uses(&p);
        drop_gate(gate);
        rondo_graph_destroy(other);
    }
    drop_pair(&p);
}

// The state can be asked for, too, where the last use was on a stream that records now.
SUITE_CASE(test_conformance_random_shared__the_state_is_there_during_a_capture) {
    pair p = make_pair(context);
    put_use(&p, REPLAY_FIRST, p.streams[0]);
    rondo_graph *other = begin_other_capture(&p, p.streams[0]);
    ASSERT_STANDS(p.generator, SEED, DRAW_COUNTERS);
    ASSERT_OK(rondo_graph_capture_end(other));
    put_use(&p, REPLAY_FIRST, p.streams[0]);
    check_uses(&p);
    rondo_graph_destroy(other);
    drop_pair(&p);
}

// A stream that joins a capture of another one.
SUITE_CASE(test_conformance_random_shared__streams_that_join_are_followed) {
    pair p = make_pair(context);
    rondo_event *fork = suite_create_event(context, 0);
    rondo_event *join = suite_create_event(context, 0);
    for (int round = 0; round < 3; ++round) {
        start_over(&p);
        suite_gate *gate = hold(context, p.streams[0]);
        put_use(&p, REPLAY_FIRST, p.streams[0]);
        rondo_graph *other = begin_other_capture(&p, context->stream);
        ASSERT_OK(rondo_event_record(fork, context->stream));
        ASSERT_OK(rondo_stream_wait_event(p.streams[0], fork));
        for (int i = 0; i < round; ++i) {
            // Once in the capture, another wait for it changes nothing.
            ASSERT_OK(rondo_event_record(fork, context->stream));
            ASSERT_OK(rondo_stream_wait_event(p.streams[0], fork));
        }
        put_use(&p, REPLAY_SECOND, p.streams[1]);
        ASSERT_OK(rondo_event_record(join, p.streams[0]));
        ASSERT_OK(rondo_stream_wait_event(context->stream, join));
        let_go(gate);
        ASSERT_OK(rondo_stream_synchronize(p.streams[1]));
        ASSERT_OK(rondo_graph_capture_end(other));
        check_uses(&p);
        drop_gate(gate);
        rondo_graph_destroy(other);
    }
    rondo_event_destroy(fork);
    rondo_event_destroy(join);
    drop_pair(&p);
}

// A capture that the program began without Rondo left no place: that is said, and passes.
SUITE_CASE(test_conformance_random_shared__foreign_captures_are_not_followed) {
    if (!context->is_cuda) {
        print_message("skipped: the host has no captures but Rondo's\n");
        skip();
    }
    pair p = make_pair(context);
    for (int round = 0; round < 2; ++round) {
        put_use(&p, REPLAY_FIRST, p.streams[0]);
        // On the native stream, also after a capture of Rondo's.
        rondo__cu_stream native = rondo_stream_get_native(p.streams[0]);
        const rondo__cuda_api *api = driver_enter(context->device);
        assert_non_null(api);
        assert_int_equal(api->cuStreamBeginCapture(native, RONDO__CU_CAPTURE_MODE_THREAD_LOCAL), 0);
        rondo_status status = rondo_graph_replay(p.recorders[1].graph, p.streams[1]);
        const char *message = rondo_error_get_last()->message;
        bool is_named = strstr(message, "records a capture now") != NULL;
        rondo__cu_graph recorded = NULL;
        assert_int_equal(api->cuStreamEndCapture(native, &recorded), 0);
        assert_int_equal(api->cuGraphDestroy(recorded), 0);
        assert_true(driver_leave(api));
        assert_int_equal(status, RONDO_STATUS_STATE);
        assert_true(is_named);
        put_use(&p, REPLAY_SECOND, p.streams[1]);
        check_uses(&p);
        rondo_graph *other = begin_other_capture(&p, p.streams[0]);
        ASSERT_OK(rondo_graph_capture_end(other));
        rondo_graph_destroy(other);
    }
    drop_pair(&p);
}

// ---- streams that are gone --------------------------------------------------------------------

typedef struct destroyer {
    rondo_stream *stream;
    pthread_barrier_t start;
} destroyer;

static void *run_destroyer(void *data) {
    destroyer *d = data;
    pthread_barrier_wait(&d->start);
    rondo_stream_destroy(d->stream);
    return NULL;
}

// One thread destroys a stream while another thread's replay must come after its work: whichever
// begins first.
SUITE_CASE(test_conformance_random_shared__streams_that_go_are_followed) {
    static destroyer d;
    pair p = make_pair(context);
    for (int round = 0; round < suite_rounds(20, 2); ++round) {
        pthread_t thread;
        start_over(&p);
        d.stream = suite_create_stream(context);
        ASSERT_OK(suite_spin(context, d.stream, LATE_US));
        put_use(&p, REPLAY_FIRST, d.stream);
        pthread_barrier_init(&d.start, NULL, 2);
        assert_int_equal(pthread_create(&thread, NULL, run_destroyer, &d), 0);
        pthread_barrier_wait(&d.start);
        rondo_status status = round % 2 == 0
                                  ? rondo_graph_replay(p.recorders[1].graph, p.streams[1])
                                  : suite_draw(p.generator, p.streams[1], p.drawn);
        pthread_join(thread, NULL);
        pthread_barrier_destroy(&d.start);
        ASSERT_OK(status);
        ASSERT_DRAWN(context, round % 2 == 0 ? p.recorders[1].memory : p.drawn, SEED,
                     DRAW_COUNTERS);
        ASSERT_STANDS(p.generator, SEED, 2 * DRAW_COUNTERS);
    }
    drop_pair(&p);
}

// A stream destroyed in the middle of a capture, which keeps CUDA from waiting for it.
SUITE_CASE(test_conformance_random_shared__streams_that_go_in_a_capture_are_followed) {
    pair p = make_pair(context);
    rondo_event *fork = suite_create_event(context, 0);
    for (int is_origin = 0; is_origin < 2; ++is_origin) {
        start_over(&p);
        rondo_stream *stream = suite_create_stream(context);
        ASSERT_OK(suite_spin(context, stream, LATE_US));
        put_use(&p, REPLAY_FIRST, stream);
        rondo_graph *other = begin_other_capture(&p, is_origin ? stream : context->stream);
        if (!is_origin) {
            ASSERT_OK(rondo_event_record(fork, context->stream));
            ASSERT_OK(rondo_stream_wait_event(stream, fork));
        }
        rondo_stream_destroy(stream);
        put_use(&p, REPLAY_SECOND, p.streams[1]);
        ASSERT_OK(rondo_stream_synchronize(p.streams[1]));
        ASSERT_STATUS(rondo_graph_capture_end(other), STATE);
        check_uses(&p);
        put_use(&p, DRAW, p.streams[0]);
        check_uses(&p);
        rondo_graph_destroy(other);
    }
    rondo_event_destroy(fork);
    drop_pair(&p);
}

// A wrapper that is gone while the native stream lives on and works.
SUITE_CASE(test_conformance_random_shared__wrappers_that_go_are_followed) {
    if (!context->is_cuda) {
        print_message("skipped: the host has no foreign streams\n");
        skip();
    }
    pair p = make_pair(context);
    rondo_stream *owner = suite_create_stream(context);
    for (int round = 0; round < 4; ++round) {
        rondo_stream *wrapper = NULL;
        start_over(&p);
        ASSERT_OK(rondo_stream_wrap(context->device, rondo_stream_get_native(owner), &wrapper));
        ASSERT_OK(suite_spin(context, wrapper, LATE_US));
        put_use(&p, round < 2 ? REPLAY_FIRST : DRAW, wrapper);
        rondo_stream_destroy(wrapper);
        put_use(&p, round % 2 == 0 ? REPLAY_SECOND : REPLAY_FIRST, p.streams[1]);
        put_use(&p, REPLAY_SECOND, owner);
        check_uses(&p);
    }
    rondo_stream_destroy(owner);
    drop_pair(&p);
}

// Generators that several threads use at the same moment: each replay and each eager draw takes
// counters of its own, as if the calls had come one after another in some order.
//
// No assertions inside the threads but the first: cmocka's belong to the thread that runs the case.
#include <pthread.h>
#include <time.h>

#include "backend/capture.h"
#include "base/error.h"
#include "random_support.h"
#include "rondo/control.h"

enum { SEED = 5, WORDS = 64 };

// ---- between the look and the launch ----------------------------------------------------------

// Takes part in a graph behind its generators: holds the thread that replays where the generators
// were asked and the graph is not launched yet, and may refuse the replay there.
typedef struct stop {
    rondo__participant head;
    pthread_mutex_t lock;
    pthread_cond_t change;
    bool is_armed;
    bool is_reached;
    bool is_over;  // the other thread is through
    rondo_status status;
} stop;

// The caller holds the lock. False when that took too long.
static bool wait_for(stop *s, const bool *flag, long milliseconds) {
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_nsec += milliseconds % 1000 * 1000000;
    end.tv_sec += milliseconds / 1000 + end.tv_nsec / 1000000000;
    end.tv_nsec %= 1000000000;
    int code = 0;
    while (!*flag && code == 0) {
        code = pthread_cond_timedwait(&s->change, &s->lock, &end);
    }
    return *flag;
}

static void raise_flag(stop *s, bool *flag) {
    pthread_mutex_lock(&s->lock);
    *flag = true;
    pthread_cond_broadcast(&s->change);
    pthread_mutex_unlock(&s->lock);
}

// Where the other thread has to wait, as it should, this gives up waiting for it after a while: how
// long only decides how surely a thread that does not wait would show.
static rondo_status stop_here(rondo__participant *participant, rondo_stream *stream) {
    stop *s = (stop *)participant;
    (void)stream;
    pthread_mutex_lock(&s->lock);
    if (s->is_armed) {
        s->is_reached = true;
        pthread_cond_broadcast(&s->change);
        (void)wait_for(s, &s->is_over, 30);
    }
    rondo_status status = s->status;
    pthread_mutex_unlock(&s->lock);
    return status == RONDO_STATUS_OK ? RONDO_STATUS_OK
                                     : rondo__error_set(status, 0, "", __FILE__, __LINE__,
                                                        "rondo_graph_replay", "on purpose");
}

static void keep_stop(rondo__participant *participant) {
    (void)participant;  // the case's
}

static const rondo__participant_type stop_type = {
    .name = "stop",
    .prepare_replay = stop_here,
    .destroy = keep_stop,
};

typedef enum rival {
    RIVAL_REPLAYS,
    RIVAL_REPLAYS_RECORDED,  // a graph in which the held one's work is a node
    RIVAL_DRAWS,
    RIVAL_LAUNCHES,
    RIVAL_RESEEDS,
    RIVAL_ASKS,
    RIVAL_COUNT
} rival;

typedef struct duel {
    suite_context *context;
    rondo_generator *generator;
    rondo_stream *streams[2];
    rondo_graph *held;
    rondo_graph *other;
    rondo_graph *outer;
    uint32_t *memory;  // places of the held, the other, the outer graph, and of the rival
    stop stop;
    rival what;
    rondo_status status;
    char message[256];
    rondo_generator_state seen;
} duel;

static rondo_status fill_words(rondo_stream *stream, const rondo_random_range *range, void *data) {
    duel *d = data;
    // The offset as the range says it, to be read back.
    return rondo_stream_copy(stream, d->memory + 3 * WORDS, range->state + 1, 8,
                             RONDO_COPY_DEVICE_TO_DEVICE);
}

static rondo_status act(duel *d) {
    rondo_stream *stream = d->streams[1];
    rondo_status status = RONDO_STATUS_OK;
    switch (d->what) {
        case RIVAL_REPLAYS:
            return rondo_graph_replay(d->other, stream);
        case RIVAL_REPLAYS_RECORDED:
            return rondo_graph_replay(d->outer, stream);
        case RIVAL_DRAWS:
            return suite_draw(d->generator, stream, d->memory + 3 * WORDS);
        case RIVAL_LAUNCHES:
            return rondo_generator_launch(d->generator, stream, DRAW_COUNTERS, fill_words, d);
        case RIVAL_RESEEDS:
            status = rondo_generator_set_seed(d->generator, SEED + 1);
            return status != RONDO_STATUS_OK
                       ? status
                       : suite_draw(d->generator, stream, d->memory + 3 * WORDS);
        default:
            return rondo_generator_get_state(d->generator, &d->seen);
    }
}

static void *run_rival(void *data) {
    duel *d = data;
    pthread_mutex_lock(&d->stop.lock);
    (void)wait_for(&d->stop, &d->stop.is_reached, 5000);
    pthread_mutex_unlock(&d->stop.lock);
    d->status = act(d);
    if (d->status != RONDO_STATUS_OK) {
        snprintf(d->message, sizeof d->message, "%s", rondo_error_get_last()->message);
    }
    raise_flag(&d->stop, &d->stop.is_over);
    return NULL;
}

static void capture_draw(duel *d, rondo_graph *graph, int place, bool has_stop) {
    rondo__capture *capture = NULL;
    ASSERT_OK(rondo_graph_capture_begin(graph, d->streams[0], RONDO_CAPTURE_THREAD_LOCAL));
    ASSERT_OK(suite_draw(d->generator, d->streams[0], d->memory + place * WORDS));
    if (has_stop) {
        ASSERT_OK(rondo__capture_find(d->streams[0], &capture, NULL));
        rondo__capture_add_participant(capture, &d->stop.head);
    }
    ASSERT_OK(rondo_graph_capture_end(graph));
}

// Static: a case that stops leaves a thread and a graph behind that look at it.
static duel *make_duel(suite_context *context) {
    static duel d;
    memset(&d, 0, sizeof d);
    d.context = context;
    d.generator = suite_create_generator(context, SEED);
    d.memory = suite_allocate(context, RONDO_MEMORY_DEVICE, 4 * WORDS);
    d.streams[0] = suite_create_stream(context);
    d.streams[1] = suite_create_stream(context);
    d.stop.head.type = &stop_type;
    pthread_mutex_init(&d.stop.lock, NULL);
    pthread_cond_init(&d.stop.change, NULL);
    d.held = suite_create_graph(context, false);
    d.other = suite_create_graph(context, true);
    d.outer = suite_create_graph(context, false);
    capture_draw(&d, d.held, 0, true);
    capture_draw(&d, d.other, 1, false);
    ASSERT_OK(rondo_graph_capture_begin(d.outer, d.streams[0], RONDO_CAPTURE_THREAD_LOCAL));
    ASSERT_OK(rondo_graph_record(d.other, d.streams[0]));
    ASSERT_OK(suite_draw(d.generator, d.streams[0], d.memory + 2 * WORDS));
    ASSERT_OK(rondo_graph_capture_end(d.outer));
    return &d;
}

static void drop_duel(duel *d) {
    rondo_graph_destroy(d->outer);
    rondo_graph_destroy(d->held);
    rondo_graph_destroy(d->other);
    rondo_stream_destroy(d->streams[0]);
    rondo_stream_destroy(d->streams[1]);
    rondo_generator_release(d->generator);
    suite_free(d->context, RONDO_MEMORY_DEVICE, d->memory);
}

// The first replay is held; what another thread asks of the generator then comes after it.
static rondo_status fight(duel *d, rival what) {
    pthread_t thread;
    d->what = what;
    d->stop.is_reached = false;
    d->stop.is_over = false;
    d->stop.is_armed = true;
    assert_int_equal(pthread_create(&thread, NULL, run_rival, d), 0);
    rondo_status status = rondo_graph_replay(d->held, d->streams[0]);
    // Whoever asserts from now on does so with the thread gone.
    raise_flag(&d->stop, &d->stop.is_reached);  // also if the replay failed before
    pthread_mutex_lock(&d->stop.lock);
    bool is_over = wait_for(&d->stop, &d->stop.is_over, 5000);
    d->stop.is_armed = false;
    pthread_mutex_unlock(&d->stop.lock);
    if (!is_over) {
        fail_msg("the other thread still waits: the replay did not let go of the generator");
    }
    pthread_join(thread, NULL);
    return status;
}

static void check_rival(duel *d, uint64_t offset) {
    if (d->status != RONDO_STATUS_OK) {
        // Its record is of that thread.
        suite_assert_status(rondo__error_set(d->status, 0, "", __FILE__, __LINE__,
                                             "rondo_graph_replay", "%s", d->message),
                            RONDO_STATUS_OK, "the other thread's call", __FILE__, __LINE__);
    }
    uint64_t end = offset + DRAW_COUNTERS;
    uint64_t seed = SEED;
    switch (d->what) {
        case RIVAL_REPLAYS:
            ASSERT_DRAWN(d->context, d->memory + WORDS, SEED, offset);
            break;
        case RIVAL_REPLAYS_RECORDED:
            ASSERT_DRAWN(d->context, d->memory + WORDS, SEED, offset);
            ASSERT_DRAWN(d->context, d->memory + 2 * WORDS, SEED, offset + DRAW_COUNTERS);
            end += DRAW_COUNTERS;
            break;
        case RIVAL_DRAWS:
            ASSERT_DRAWN(d->context, d->memory + 3 * WORDS, SEED, offset);
            break;
        case RIVAL_LAUNCHES:
            suite_read(d->context, &d->seen.offset, d->memory + 3 * WORDS, 8);
            assert_int_equal(d->seen.offset, offset);
            break;
        case RIVAL_RESEEDS:
            ASSERT_DRAWN(d->context, d->memory + 3 * WORDS, SEED + 1, 0);
            seed = SEED + 1;
            end = DRAW_COUNTERS;
            break;
        default:
            assert_int_equal(d->seen.offset, offset);
            end = offset;
            break;
    }
    ASSERT_STANDS(d->generator, seed, end);
}

static void test_conformance_random_threads__a_replay_ends_before_others_begin(void **state) {
    suite_context *context = suite_get_context(state);
    duel *d = make_duel(context);
    for (int round = 0; round < suite_rounds(2 * RIVAL_COUNT, 4); ++round) {
        uint64_t offset = 0;
        ASSERT_OK(rondo_generator_set_seed(d->generator, SEED));
        if (round % 2 == 0) {  // nothing to write, or something
            ASSERT_OK(rondo_graph_replay(d->held, d->streams[0]));
            offset = DRAW_COUNTERS;
        }
        ASSERT_OK(fight(d, (rival)(round / 2)));
        ASSERT_DRAWN(context, d->memory, SEED, offset);
        check_rival(d, offset + DRAW_COUNTERS);
    }
    drop_duel(d);
}

// One that is refused behind the generators takes nothing and holds nobody up.
static void test_conformance_random_threads__a_replay_that_fails_lets_others_in(void **state) {
    suite_context *context = suite_get_context(state);
    duel *d = make_duel(context);
    for (int what = 0; what < suite_rounds(RIVAL_COUNT, 2); ++what) {
        ASSERT_OK(rondo_generator_set_seed(d->generator, SEED));
        ASSERT_OK(suite_draw(d->generator, d->streams[0], d->memory));
        d->stop.status = RONDO_STATUS_STATE;
        ASSERT_STATUS(fight(d, (rival)what), STATE);
        ASSERT_MESSAGE_HAS("on purpose");
        d->stop.status = RONDO_STATUS_OK;
        check_rival(d, DRAW_COUNTERS);
    }
    drop_duel(d);
}

// ---- sixteen threads --------------------------------------------------------------------------

enum { THREADS = 16, ROUNDS = 12, GENERATORS = 3, PLACES = ROUNDS * 3 };

typedef struct worker {
    suite_context *context;
    rondo_generator **generators;
    pthread_barrier_t *all_recorded;
    int number;
    bool has_bodies;
    rondo_stream *stream;
    rondo_graph *inner;
    rondo_graph *graph;
    rondo_graph *spare;
    uint32_t *flag;    // 1
    uint32_t *out;     // of the graph's draws, a place for each generator
    uint32_t *places;  // what was drawn from each generator: PLACES each
    int place_count[GENERATORS];
    rondo_status status;
    char message[256];
} worker;

static void keep(worker *w, rondo_status status) {
    if (w->status == RONDO_STATUS_OK && status != RONDO_STATUS_OK) {
        w->status = status;
        snprintf(w->message, sizeof w->message, "%s", rondo_error_get_last()->message);
    }
}
// Makes the call unless an earlier one failed.
#define STEP(call)                          \
    do {                                    \
        if (w->status == RONDO_STATUS_OK) { \
            keep(w, (call));                \
        }                                   \
    } while (0)

static rondo_status draw(worker *w, rondo_stream *stream, int k) {
    return suite_draw(w->generators[k], stream, w->out + k * WORDS);
}

// Each kind uses others of the generators, in another order.
enum { KINDS = 4 };
static const bool uses[KINDS][GENERATORS] = {
    {true, false, false}, {true, true, false}, {true, true, true}, {true, false, true}};

static void end_capture(worker *w, rondo_graph *graph) {
    if (w->status == RONDO_STATUS_OK) {
        keep(w, rondo_graph_capture_end(graph));
    } else {
        rondo_graph_capture_abort(graph);
    }
}

static void record(worker *w) {
    rondo_stream *stream = w->stream;
    rondo_stream *body = stream;
    rondo_scope scope;
    int kind = w->number % KINDS;
    if (kind == 2) {  // a graph in a graph
        STEP(rondo_graph_capture_begin(w->inner, stream, RONDO_CAPTURE_THREAD_LOCAL));
        STEP(draw(w, stream, 2));
        STEP(draw(w, stream, 0));
        end_capture(w, w->inner);
    }
    STEP(rondo_graph_capture_begin(w->graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
    if (kind == 2) {
        STEP(rondo_graph_record(w->inner, stream));
    }
    if (kind == 3) {
        if (w->has_bodies) {
            STEP(rondo_scope_begin(stream, RONDO_SCOPE_IF, w->flag, 0, &scope));
            STEP(rondo_scope_enter(scope, 0, &body));
        }
        STEP(draw(w, body, 2));
        if (w->has_bodies) {
            STEP(rondo_scope_leave(scope));
            STEP(rondo_scope_end(scope));
        }
    }
    if (kind == 1 || kind == 2) {
        STEP(draw(w, stream, 1));
    }
    if (kind != 2) {
        STEP(draw(w, stream, 0));
    }
    end_capture(w, w->graph);
}

// Copies what was drawn from generator `k` to where nothing else is written.
static void put_away(worker *w, int k) {
    uint32_t *place = w->places + (k * PLACES + w->place_count[k]++) * WORDS;
    STEP(rondo_stream_copy(w->stream, place, w->out + k * WORDS, WORDS * 4,
                           RONDO_COPY_DEVICE_TO_DEVICE));
}

// What others must follow, too: a stream that begins to record, and one that goes.
static void disturb(worker *w, int round) {
    if (round % 4 == 1) {
        STEP(rondo_graph_capture_begin(w->spare, w->stream, RONDO_CAPTURE_THREAD_LOCAL));
        STEP(rondo_stream_fill(w->stream, w->flag, 1, 4, 1));
        end_capture(w, w->spare);
        STEP(rondo_graph_reset(w->spare));
    } else if (round % 4 == 3) {
        rondo_stream_destroy(w->stream);
        w->stream = NULL;
        STEP(rondo_stream_create(w->context->device, &w->stream));
    }
}

static void *run_worker(void *data) {
    worker *w = data;
    rondo_device *device = w->context->device;
    rondo_graph_options options = rondo_graph_options_default();
    options.keep_template = true;
    STEP(rondo_stream_create(device, &w->stream));
    STEP(rondo_graph_create(device, &options, &w->inner));
    STEP(rondo_graph_create(device, NULL, &w->graph));
    STEP(rondo_graph_create(device, NULL, &w->spare));
    STEP(rondo_stream_fill(w->stream, w->flag, 1, 4, 1));
    record(w);
    pthread_barrier_wait(w->all_recorded);  // nobody may ask for a state before
    for (int round = 0; round < suite_rounds(ROUNDS, 4) && w->status == RONDO_STATUS_OK; ++round) {
        rondo_generator_state state = {0};
        int eager = (round + w->number) % GENERATORS;
        STEP(rondo_graph_replay(w->graph, w->stream));
        for (int k = 0; k < GENERATORS; ++k) {
            if (uses[w->number % KINDS][k]) {
                put_away(w, k);
            }
        }
        STEP(draw(w, w->stream, eager));
        put_away(w, eager);
        if (w->number == 0) {
            STEP(rondo_generator_get_state(w->generators[eager], &state));
        }
        if (state.offset % DRAW_COUNTERS != 0) {
            w->status = RONDO_STATUS_INTERNAL;
            snprintf(w->message, sizeof w->message, "a state in the middle of a draw was seen");
        }
        disturb(w, round);
    }
    STEP(rondo_stream_synchronize(w->stream));
    rondo_graph_destroy(w->graph);
    rondo_graph_destroy(w->inner);
    rondo_graph_destroy(w->spare);
    rondo_stream_destroy(w->stream);
    return NULL;
}

// Which draw of the generator's sequence that was.
static uint64_t find_draw(const uint32_t *words, uint64_t seed, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
        uint32_t expected[4];
        rondo_philox_u32(seed, 0, i * DRAW_COUNTERS, expected);
        if (memcmp(words, expected, sizeof expected) == 0) {
            return i;
        }
    }
    return UINT64_MAX;
}

static void check_generator(suite_context *context, rondo_generator *generator, worker *workers,
                            int k) {
    static bool is_seen[THREADS * PLACES];
    static uint32_t words[PLACES * WORDS];
    uint64_t count = 0;
    uint64_t seed = SEED + (uint64_t)k;
    memset(is_seen, 0, sizeof is_seen);
    for (int i = 0; i < THREADS; ++i) {
        count += (uint64_t)workers[i].place_count[k];
    }
    ASSERT_STANDS(generator, seed, count * DRAW_COUNTERS);
    for (int i = 0; i < THREADS; ++i) {
        suite_read(context, words, workers[i].places + k * PLACES * WORDS, sizeof words);
        for (int j = 0; j < workers[i].place_count[k]; ++j) {
            uint64_t place = find_draw(words + j * WORDS, seed, count);
            if (place == UINT64_MAX || is_seen[place]) {
                fail_msg("thread %d, generator %d: draw %d is %s", i, k, j,
                         place == UINT64_MAX ? "none of the sequence's" : "another one's, too");
            }
            is_seen[place] = true;
        }
        ASSERT_DRAWN(context, workers[i].places + k * PLACES * WORDS, seed,
                     find_draw(words, seed, count) * DRAW_COUNTERS);
    }
}

// Graphs that use three generators, in other orders, in graphs in graphs and in bodies; eager
// draws; streams that record and that go. Of all draws no two are the same, and none is left out.
static void test_conformance_random_threads__sixteen_share_three_generators(void **state) {
    suite_context *context = suite_get_context(state);
    static worker workers[THREADS];
    static rondo_generator *generators[GENERATORS];
    static pthread_barrier_t all_recorded;
    pthread_t threads[THREADS];
    pthread_barrier_init(&all_recorded, NULL, THREADS);
    for (int k = 0; k < GENERATORS; ++k) {
        generators[k] = suite_create_generator(context, SEED + (uint64_t)k);
    }
    bool has_bodies = rondo_device_supports(context->device, RONDO_FEATURE_IF) == RONDO_STATUS_OK;
    for (int i = 0; i < THREADS; ++i) {
        workers[i] = (worker){.context = context,
                              .generators = generators,
                              .all_recorded = &all_recorded,
                              .number = i,
                              .has_bodies = has_bodies};
        workers[i].flag = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
        workers[i].out = suite_allocate(context, RONDO_MEMORY_DEVICE, GENERATORS * WORDS);
        workers[i].places =
            suite_allocate(context, RONDO_MEMORY_DEVICE, GENERATORS * PLACES * WORDS);
    }
    for (int i = 0; i < THREADS; ++i) {
        assert_int_equal(pthread_create(&threads[i], NULL, run_worker, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; ++i) {
        pthread_join(threads[i], NULL);
    }
    pthread_barrier_destroy(&all_recorded);
    for (int i = 0; i < THREADS; ++i) {
        if (workers[i].status != RONDO_STATUS_OK) {
            fail_msg("thread %d: %s: %s", i, rondo_status_get_name(workers[i].status),
                     workers[i].message);
        }
    }
    for (int k = 0; k < GENERATORS; ++k) {
        check_generator(context, generators[k], workers, k);
        rondo_generator_release(generators[k]);
    }
    for (int i = 0; i < THREADS; ++i) {
        suite_free(context, RONDO_MEMORY_DEVICE, workers[i].flag);
        suite_free(context, RONDO_MEMORY_DEVICE, workers[i].out);
        suite_free(context, RONDO_MEMORY_DEVICE, workers[i].places);
    }
}

static const suite_entry random_threads_cases[] = {
    SUITE_CASE(test_conformance_random_threads__a_replay_ends_before_others_begin),
    SUITE_CASE(test_conformance_random_threads__a_replay_that_fails_lets_others_in),
    SUITE_CASE(test_conformance_random_threads__sixteen_share_three_generators),
    {0},
};
SUITE_LIST(random_threads);

// Generators that graphs use together: one lock for all, whoever brings them together, and when.
//
// No assertions inside the threads: cmocka's belong to the thread that runs the case.
#include <pthread.h>

#include "backend/capture.h"
#include "base/error.h"
#include "graph/graph_internal.h"
#include "random/random_internal.h"
#include "random_support.h"

enum { SEED = 5, WORDS = 64, COUNT = 6 };

static void create_generators(suite_context *context, rondo_generator **generators, int count) {
    for (int i = 0; i < count; ++i) {
        generators[i] = suite_create_generator(context, SEED + (uint64_t)i);
    }
}

static void release_generators(rondo_generator **generators, int count) {
    for (int i = 0; i < count; ++i) {
        rondo_generator_release(generators[i]);
    }
}

static rondo_status record_draws(rondo_graph *graph, rondo_stream *stream,
                                 rondo_generator *const *generators, int count, uint32_t *out) {
    RETURN_IF_ERROR(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
    rondo_status status = RONDO_STATUS_OK;
    for (int i = 0; i < count && status == RONDO_STATUS_OK; ++i) {
        status = suite_draw(generators[i], stream, out + i * WORDS);
    }
    if (status != RONDO_STATUS_OK) {
        rondo_graph_capture_abort(graph);
        return status;
    }
    return rondo_graph_capture_end(graph);
}

static const rondo__random_group *find_group(rondo_generator *generator) {
    const rondo__random_group *group = rondo__generator_lock(generator);
    rondo__generator_unlock(generator);
    return group;
}

// ---- what a replay takes ----------------------------------------------------------------------

// Takes part behind the generators, and looks at how often their lock is held then.
typedef struct probe {
    rondo__participant head;
    rondo_generator *generator;
    uint32_t depth;
} probe;

static rondo_status look(rondo__participant *participant, rondo_stream *stream) {
    probe *p = (probe *)participant;
    (void)stream;
    p->depth = rondo__generator_lock(p->generator)->depth - 1;
    rondo__generator_unlock(p->generator);
    return RONDO_STATUS_OK;
}

static void keep_probe(rondo__participant *participant) {
    (void)participant;  // the case's
}

static const rondo__participant_type probe_type = {
    .name = "probe",
    .prepare_replay = look,
    .destroy = keep_probe,
};

static size_t count_participants(const rondo_graph *graph) {
    size_t count = 0;
    for (const rondo__participant *p = rondo__graph_get_participants(graph); p != NULL;
         p = p->next) {
        count += 1;
    }
    return count;
}

// Also where a graph in it has some of the generators, too, by itself.
static void test_conformance_random_groups__a_replay_takes_one_lock(void **state) {
    suite_context *context = suite_get_context(state);
    rondo_generator *generators[COUNT];
    uint32_t *out = suite_allocate(context, RONDO_MEMORY_DEVICE, (COUNT + 1) * WORDS);
    rondo_stream *stream = suite_create_stream(context);
    rondo_graph *graph = suite_create_graph(context, false);
    rondo__capture *capture = NULL;
    static probe p;  // a case that stops leaves a graph behind that looks at it
    p = (probe){.head.type = &probe_type};
    create_generators(context, generators, COUNT);
    p.generator = generators[0];
    ASSERT_OK(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
    for (int i = 0; i < COUNT - 1; ++i) {
        ASSERT_OK(suite_draw(generators[i], stream, out + i * WORDS));
    }
    ASSERT_OK(rondo__capture_find(stream, &capture, NULL));
    rondo__capture_add_participant(capture, &p.head);
    ASSERT_OK(rondo_graph_capture_end(graph));
    assert_int_equal(count_participants(graph), 2);  // all generators are one, and the probe
    for (int round = 0; round < 3; ++round) {
        ASSERT_OK(rondo_graph_replay(graph, stream));
        assert_int_equal(p.depth, 1);
        for (int i = 0; i < COUNT - 1; ++i) {
            ASSERT_DRAWN(context, out + i * WORDS, SEED + (uint64_t)i,
                         (uint64_t)round * DRAW_COUNTERS);
        }
    }
    const rondo__random_group *group = find_group(generators[0]);
    for (int i = 1; i < COUNT; ++i) {
        assert_true((find_group(generators[i]) == group) == (i < COUNT - 1));
    }
    // The others' own use goes on as before.
    ASSERT_OK(suite_draw(generators[COUNT - 1], stream, out + COUNT * WORDS));
    ASSERT_OK(suite_draw(generators[1], stream, out));
    ASSERT_DRAWN(context, out, SEED + 1, 3 * DRAW_COUNTERS);
    rondo_graph_destroy(graph);
    rondo_stream_destroy(stream);
    release_generators(generators, COUNT);
    suite_free(context, RONDO_MEMORY_DEVICE, out);
}

// A generator goes, and what follows its group still does; the last graph keeps the rest alive.
static void test_conformance_random_groups__groups_outlive_their_generators(void **state) {
    suite_context *context = suite_get_context(state);
    rondo_generator *generators[COUNT];
    uint32_t *out = suite_allocate(context, RONDO_MEMORY_DEVICE, COUNT * WORDS);
    rondo_stream *stream = suite_create_stream(context);
    rondo_graph *graph = suite_create_graph(context, false);
    create_generators(context, generators, COUNT);
    for (int i = COUNT - 2; i >= 0; --i) {  // in pairs from behind: each follows the one before
        ASSERT_OK(record_draws(graph, stream, generators + i, 2, out));
        ASSERT_OK(rondo_graph_replay(graph, stream));
        ASSERT_OK(rondo_graph_reset(graph));
    }
    release_generators(generators, COUNT - 2);
    ASSERT_OK(record_draws(graph, stream, generators + COUNT - 2, 2, out));
    release_generators(generators + COUNT - 2, 1);
    ASSERT_OK(rondo_graph_replay(graph, stream));
    ASSERT_DRAWN(context, out, SEED + COUNT - 2, 2 * DRAW_COUNTERS);
    ASSERT_DRAWN(context, out + WORDS, SEED + COUNT - 1, DRAW_COUNTERS);
    rondo_graph_destroy(graph);
    ASSERT_STANDS(generators[COUNT - 1], SEED + COUNT - 1, 2 * DRAW_COUNTERS);
    rondo_generator_release(generators[COUNT - 1]);
    rondo_stream_destroy(stream);
    suite_free(context, RONDO_MEMORY_DEVICE, out);
}

// ---- inside launch functions ------------------------------------------------------------------

typedef struct visit {
    rondo_graph *graph;
    rondo_status expected;
    char message[240];
} visit;

// The launch goes well when the replay says what was expected.
static rondo_status replay_inside(rondo_stream *stream, const rondo_random_range *range,
                                  void *data) {
    visit *v = data;
    (void)range;
    rondo_status status = rondo_graph_replay(v->graph, stream);
    snprintf(v->message, sizeof v->message, "%s", rondo_error_get_last()->message);
    return status == v->expected ? RONDO_STATUS_OK : status;
}

// The first replay would change a lock that the launch around it counts on.
static void test_conformance_random_groups__a_launch_keeps_its_lock(void **state) {
    suite_context *context = suite_get_context(state);
    rondo_generator *generators[4];
    uint32_t *out = suite_allocate(context, RONDO_MEMORY_DEVICE, 2 * WORDS);
    rondo_stream *stream = suite_create_stream(context);
    rondo_graph *together = suite_create_graph(context, false);
    visit v = {.graph = suite_create_graph(context, false), .expected = RONDO_STATUS_STATE};
    create_generators(context, generators, 4);
    ASSERT_OK(record_draws(together, stream, generators + 1, 2, out));
    ASSERT_OK(rondo_graph_replay(together, stream));
    rondo_generator *const pair[] = {generators[2], generators[0]};
    ASSERT_OK(record_draws(v.graph, stream, pair, 2, out));
    ASSERT_OK(rondo_generator_launch(generators[1], stream, DRAW_COUNTERS, replay_inside, &v));
    assert_non_null(strstr(v.message, "replay the graph once before"));
    ASSERT_STANDS(generators[0], SEED, 0);
    ASSERT_STANDS(generators[2], SEED + 2, DRAW_COUNTERS);
    ASSERT_OK(rondo_graph_replay(v.graph, stream));
    v.expected = RONDO_STATUS_OK;
    ASSERT_OK(rondo_generator_launch(generators[1], stream, DRAW_COUNTERS, replay_inside, &v));
    ASSERT_STANDS(generators[0], SEED, 2 * DRAW_COUNTERS);
    ASSERT_STANDS(generators[2], SEED + 2, 3 * DRAW_COUNTERS);
    // A later generator is none that somebody holds.
    rondo_generator *const later[] = {generators[2], generators[3]};
    ASSERT_OK(rondo_graph_reset(v.graph));
    ASSERT_OK(record_draws(v.graph, stream, later, 2, out));
    ASSERT_OK(rondo_generator_launch(generators[1], stream, DRAW_COUNTERS, replay_inside, &v));
    ASSERT_STANDS(generators[1], SEED + 1, 4 * DRAW_COUNTERS);
    ASSERT_STANDS(generators[3], SEED + 3, DRAW_COUNTERS);
    rondo_graph_destroy(v.graph);
    rondo_graph_destroy(together);
    rondo_stream_destroy(stream);
    release_generators(generators, 4);
    suite_free(context, RONDO_MEMORY_DEVICE, out);
}

// ---- threads that bring them together at the same moment ----------------------------------------

enum { THREADS = 8, REPLAYS = 5 };

typedef struct worker {
    suite_context *context;
    rondo_generator *pair[2];
    pthread_barrier_t *all_recorded;
    rondo_stream *stream;
    rondo_graph *graph;
    uint32_t *out;
    rondo_status status;
    char message[240];
} worker;

static void *run_worker(void *data) {
    worker *w = data;
    w->status = record_draws(w->graph, w->stream, w->pair, 2, w->out);
    pthread_barrier_wait(w->all_recorded);
    for (int i = 0; i < REPLAYS && w->status == RONDO_STATUS_OK; ++i) {
        w->status = rondo_graph_replay(w->graph, w->stream);
    }
    if (w->status == RONDO_STATUS_OK) {
        w->status = suite_draw(w->pair[0], w->stream, w->out);
    }
    if (w->status != RONDO_STATUS_OK) {
        snprintf(w->message, sizeof w->message, "%s", rondo_error_get_last()->message);
    }
    return NULL;
}

// A ring of pairs, half of them the other way around: every union happens beside others.
static void run_ring(suite_context *context, worker *workers, rondo_generator **generators) {
    pthread_t threads[THREADS];
    pthread_barrier_t all_recorded;
    pthread_barrier_init(&all_recorded, NULL, THREADS);
    for (int i = 0; i < THREADS; ++i) {
        int next = (i + 1) % THREADS;
        workers[i].context = context;
        workers[i].all_recorded = &all_recorded;
        workers[i].pair[i % 2] = generators[i];
        workers[i].pair[1 - i % 2] = generators[next];
        assert_int_equal(pthread_create(&threads[i], NULL, run_worker, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; ++i) {
        pthread_join(threads[i], NULL);
    }
    pthread_barrier_destroy(&all_recorded);
}

static void test_conformance_random_groups__threads_unite_at_once(void **state) {
    suite_context *context = suite_get_context(state);
    rondo_generator *generators[THREADS];
    static worker workers[THREADS];
    memset(workers, 0, sizeof workers);
    for (int i = 0; i < THREADS; ++i) {
        workers[i].stream = suite_create_stream(context);
        workers[i].out = suite_allocate(context, RONDO_MEMORY_DEVICE, 2 * WORDS);
    }
    for (int round = 0; round < suite_rounds(20, 2); ++round) {
        create_generators(context, generators, THREADS);
        for (int i = 0; i < THREADS; ++i) {
            workers[i].graph = suite_create_graph(context, false);
        }
        run_ring(context, workers, generators);
        for (int i = 0; i < THREADS; ++i) {
            if (workers[i].status != RONDO_STATUS_OK) {
                suite_assert_status(
                    rondo__error_set(workers[i].status, 0, "", __FILE__, __LINE__,
                                     "rondo_graph_replay", "%s", workers[i].message),
                    RONDO_STATUS_OK, "a thread's call", __FILE__, __LINE__);
            }
            assert_ptr_equal(find_group(generators[i]), find_group(generators[0]));
        }
        // Each is in two graphs; the first of each pair, of which the eager draws are, is an even
        // one, for two threads.
        for (int i = 0; i < THREADS; ++i) {
            uint64_t draws = 2 * REPLAYS + (i % 2 == 0 ? 2 : 0);
            ASSERT_STANDS(generators[i], SEED + (uint64_t)i, draws * DRAW_COUNTERS);
        }
        for (int i = 0; i < THREADS; ++i) {
            rondo_graph_destroy(workers[i].graph);
        }
        release_generators(generators, THREADS);
    }
    for (int i = 0; i < THREADS; ++i) {
        rondo_stream_destroy(workers[i].stream);
        suite_free(context, RONDO_MEMORY_DEVICE, workers[i].out);
    }
}

static const suite_entry random_groups_cases[] = {
    SUITE_CASE(test_conformance_random_groups__a_replay_takes_one_lock),
    SUITE_CASE(test_conformance_random_groups__groups_outlive_their_generators),
    SUITE_CASE(test_conformance_random_groups__a_launch_keeps_its_lock),
    SUITE_CASE(test_conformance_random_groups__threads_unite_at_once),
    {0},
};
SUITE_LIST(random_groups);

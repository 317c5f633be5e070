// A function of the program that destroys what the call which runs it uses: its stream, its graph,
// the cache, the learned step. All of that is left alone, and nothing is lost.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/memory/memory_support.h"
#include "rondo/graph_cache.h"
#include "rondo/label.h"
#include "rondo/learn.h"
#include "rondo/node.h"
#include "rondo/update.h"

enum { COUNT = 4 };

typedef struct greedy {
    suite_context *context;
    rondo_stream *stream;
    uint32_t *x;     // device; its first element is 1, and 1 more behind each step
    uint32_t *flag;  // device; 1
    rondo_graph *graph;
    rondo_graph_cache *cache;
    rondo_learned *learned;
    bool spares_stream;
    _Atomic int calls;  // a cache's background thread makes some
} greedy;

static rondo_status take_all(rondo_stream *stream, void *user_data) {
    greedy *g = user_data;
    g->calls += 1;
    if (!g->spares_stream) {
        rondo_stream_destroy(stream);
    }
    rondo_graph_destroy(g->graph);
    if (g->cache != NULL) {
        rondo_graph_cache_destroy(g->cache);
    }
    if (g->learned != NULL) {
        const rondo_value value = {.pointer = g->x};
        rondo_learned_destroy(g->learned);
        const rondo_status status = rondo_learned_run(g->learned, g->context->stream, &value, 1);
        if (status != RONDO_STATUS_STATE) {
            return RONDO_STATUS_INTERNAL;
        }
    }
    return suite_affine(g->context, stream, g->x, 1, 1, 1);
}

static rondo_status take_all_learned(rondo_stream *stream, const rondo_value *values,
                                     void *user_data) {
    greedy *g = user_data;
    uint32_t *x = g->x;
    g->x = values[0].pointer;
    const rondo_status status = take_all(stream, user_data);
    g->x = x;
    return status;
}

// ---- the calls that run it --------------------------------------------------------------------

static void replay(greedy *g) {
    memory_replay(g->graph, g->stream);
}

static void by_add_step(greedy *g) {
    size_t count;
    const rondo_status status = rondo_graph_build_begin(g->graph);
    if (status == RONDO_STATUS_UNSUPPORTED) {
        suite_skip("its graphs cannot be built by hand");
    }
    ASSERT_OK(status);
    ASSERT_OK(rondo_graph_add_step(g->graph, NULL, 0, take_all, g, NULL, 0, &count));
    ASSERT_OK(rondo_graph_capture_end(g->graph));
    replay(g);
}

static void by_added_body(greedy *g) {
    static const rondo_body_function bodies[] = {take_all};
    const rondo_work work = {.struct_size = sizeof work,
                             .kind = RONDO_NODE_CONDITIONAL,
                             .scope = RONDO_SCOPE_IF,
                             .predicate = g->flag,
                             .bodies = bodies,
                             .body_count = 1,
                             .user_data = g};
    suite_need(g->context, RONDO_FEATURE_IF);
    ASSERT_OK(rondo_graph_build_begin(g->graph));
    ASSERT_OK(rondo_graph_add_node(g->graph, NULL, 0, &work, NULL));
    ASSERT_OK(rondo_graph_capture_end(g->graph));
    replay(g);
}

static void by_capture_step(greedy *g) {
    const rondo_step_options options = {.struct_size = sizeof options, .capture_only = true};
    rondo_step_outcome outcome;
    g->spares_stream = true;  // it is the program's, and its end breaks the capture
    ASSERT_OK(rondo_graph_capture_step(g->graph, g->stream, &options, take_all, g, &outcome));
    replay(g);
}

// What waits cannot be recorded, so that the step is run once more, at once.
static rondo_status take_all_and_wait(rondo_stream *stream, void *user_data) {
    const rondo_status status = take_all(stream, user_data);
    return status == RONDO_STATUS_OK ? rondo_stream_synchronize(stream) : status;
}

static void by_eager_step(greedy *g) {
    rondo_step_outcome outcome;
    g->spares_stream = true;
    ASSERT_OK(rondo_graph_capture_step(g->graph, g->stream, NULL, take_all_and_wait, g, &outcome));
    assert_int_equal(outcome, RONDO_STEP_RAN_EAGERLY);
}

static void by_recapture(greedy *g) {
    g->spares_stream = true;
    ASSERT_OK(rondo_graph_recapture(g->graph, g->stream, NULL, take_all, g, NULL));
    replay(g);
}

static void by_body(greedy *g) {
    ASSERT_OK(rondo_control_if(g->stream, g->flag, take_all, NULL, g));
    ASSERT_OK(rondo_stream_synchronize(g->stream));
}

static void by_recorded_body(greedy *g) {
    suite_need(g->context, RONDO_FEATURE_IF);
    memory_begin(g->graph, g->stream);
    rondo_graph *graph = g->graph;
    g->graph = NULL;  // a body does not hold the graph, and its capture could be ended by that
    ASSERT_OK(rondo_control_if(g->stream, g->flag, take_all, NULL, g));
    g->graph = graph;
    memory_end(graph);
    replay(g);
}

static void run_cache(greedy *g, rondo_cache_policy policy, bool in_background) {
    const rondo_graph_cache_options options = {
        .struct_size = sizeof options, .policy = policy, .capture_in_background = in_background};
    const uint32_t key = 1;
    rondo_cache_outcome outcome;
    rondo_graph_cache *cache;
    ASSERT_OK(rondo_graph_cache_create(g->context->device, &options, &cache));
    g->cache = cache;
    g->spares_stream = policy == RONDO_CACHE_ALWAYS_CAPTURE && !in_background;
    ASSERT_OK(rondo_graph_cache_run(cache, &key, sizeof key, g->stream, take_all, g, &outcome));
    ASSERT_OK(rondo_stream_synchronize(g->stream));
    ASSERT_OK(rondo_graph_cache_wait(cache));
    g->cache = NULL;
    rondo_graph_cache_destroy(cache);
}

static void by_cache(greedy *g) {
    run_cache(g, RONDO_CACHE_NEVER_CAPTURE, false);
}

static void by_captured_key(greedy *g) {
    run_cache(g, RONDO_CACHE_ALWAYS_CAPTURE, false);
}

static void by_background(greedy *g) {
    run_cache(g, RONDO_CACHE_ALWAYS_CAPTURE, true);
}

static void run_learned(greedy *g, rondo_learned_fallback fallback) {
    const rondo_argument argument = {.struct_size = sizeof argument,
                                     .name = "x",
                                     .extent = sizeof(uint32_t),
                                     .alignment = sizeof(uint32_t),
                                     .memory = RONDO_MEMORY_DEVICE};
    const rondo_learned_options options = {.struct_size = sizeof options, .fallback = fallback};
    const rondo_value value = {.pointer = g->x};
    rondo_learned *learned;
    rondo_status status = rondo_learned_create(g->context->device, &options, &argument, 1,
                                               take_all_learned, g, &learned);
    if (status == RONDO_STATUS_UNSUPPORTED) {
        suite_skip("it learns no steps");
    }
    ASSERT_OK(status);
    g->learned = learned;
    ASSERT_OK(rondo_learned_run(learned, g->stream, &value, 1));
    ASSERT_OK(rondo_stream_synchronize(g->stream));
    g->learned = NULL;
    rondo_learned_destroy(learned);
}

static void by_learned(greedy *g) {
    run_learned(g, RONDO_LEARN_REFUSE);
}

SUITE_CASE(test_conformance_lent__functions_destroy_nothing_of_the_call_that_runs_them) {
    static const struct {
        const char *name;
        void (*run)(greedy *g);
    } rows[] = {
        {"add_step", by_add_step},
        {"added body", by_added_body},
        {"capture_step", by_capture_step},
        {"eager step", by_eager_step},
        {"recapture", by_recapture},
        {"body", by_body},
        {"recorded body", by_recorded_body},
        {"cache, eager", by_cache},
        {"cache, captured", by_captured_key},
        {"cache, background", by_background},
        {"learned", by_learned},
    };
    suite_need_execution(context);
    suite_need(context, RONDO_FEATURE_IF);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        greedy g = {.context = context,
                    .stream = suite_create_stream(context),
                    .x = suite_allocate(context, RONDO_MEMORY_DEVICE, COUNT),
                    .flag = suite_allocate(context, RONDO_MEMORY_DEVICE, COUNT),
                    .graph = suite_create_graph(context, true)};
        suite_set(context, g.x, 1, COUNT);
        suite_set(context, g.flag, 1, COUNT);
        rondo_graph *graph = g.graph;
        if (strncmp(rows[i].name, "cache", 5) == 0 || strcmp(rows[i].name, "learned") == 0 ||
            strcmp(rows[i].name, "body") == 0) {
            g.graph = NULL;  // not of the call
        }
        rows[i].run(&g);
        assert_true(g.calls > 0);
        if (suite_get(context, g.x, 0) != 2) {
            fail_msg("%s: x is %u", rows[i].name, (unsigned)suite_get(context, g.x, 0));
        }
        // All of it is there.
        ASSERT_OK(suite_affine(context, g.stream, g.x, 1, 2, 0));
        ASSERT_OK(rondo_stream_synchronize(g.stream));
        ASSERT_VALUE(context, g.x, 0, 4);
        rondo_graph_destroy(graph);
        rondo_stream_destroy(g.stream);
        suite_free(context, RONDO_MEMORY_DEVICE, g.x);
        suite_free(context, RONDO_MEMORY_DEVICE, g.flag);
    }
}

// ---- a function that ends the capture -----------------------------------------------------------

typedef void (*ending)(rondo_graph *graph);

typedef struct ender {
    greedy g;
    ending end;
} ender;

static void end(rondo_graph *graph) {
    ASSERT_STATUS(rondo_graph_capture_end(graph), STATE);
}

static void destroy(rondo_graph *graph) {
    rondo_graph_destroy(graph);
}

static rondo_status end_capture(rondo_stream *stream, void *user_data) {
    const ender *e = user_data;
    e->end(e->g.graph);
    const rondo_status status = rondo_label_push(stream, "late");
    return status != RONDO_STATUS_OK ? status : suite_affine(e->g.context, stream, e->g.x, 1, 1, 1);
}

// The body's stream is there until its function returns, also when its capture is over.
SUITE_CASE(test_conformance_lent__a_body_that_ends_the_capture_keeps_its_stream) {
    static const ending endings[] = {end, rondo_graph_capture_abort, destroy};
    suite_need(context, RONDO_FEATURE_IF);
    for (size_t i = 0; i < 3; ++i) {
        ender e = {.g = {.context = context,
                         .stream = suite_create_stream(context),
                         .x = suite_allocate(context, RONDO_MEMORY_DEVICE, COUNT),
                         .graph = suite_create_graph(context, true)},
                   .end = endings[i]};
        memory_begin(e.g.graph, e.g.stream);
        ASSERT_STATUS(rondo_control_if(e.g.stream, e.g.x, end_capture, NULL, &e), STATE);
        ASSERT_OK(suite_affine(context, e.g.stream, e.g.x, 1, 1, 1));
        ASSERT_OK(rondo_stream_synchronize(e.g.stream));
        if (i < 2) {
            rondo_graph_destroy(e.g.graph);
        }
        rondo_stream_destroy(e.g.stream);
        suite_free(context, RONDO_MEMORY_DEVICE, e.g.x);
    }
}

// ---- a stream that is kept ---------------------------------------------------------------------

static rondo_status keep_stream(rondo_stream *stream, void *user_data) {
    greedy *g = user_data;
    g->stream = stream;
    return suite_affine(g->context, stream, g->x, 1, 1, 1);
}

// Destroyed later it is left alone, too, and the next build has it.
SUITE_CASE(test_conformance_lent__a_kept_stream_is_not_destroyed) {
    suite_need_execution(context);
    greedy g = {.context = context,
                .x = suite_allocate(context, RONDO_MEMORY_DEVICE, COUNT),
                .graph = suite_create_graph(context, true)};
    suite_set(context, g.x, 1, COUNT);
    for (int round = 0; round < 2; ++round) {
        size_t count;
        if (rondo_graph_build_begin(g.graph) == RONDO_STATUS_UNSUPPORTED) {
            suite_skip("its graphs cannot be built by hand");
        }
        ASSERT_OK(rondo_graph_add_step(g.graph, NULL, 0, keep_stream, &g, NULL, 0, &count));
        rondo_stream_destroy(g.stream);
        ASSERT_OK(rondo_graph_capture_end(g.graph));
        rondo_stream_destroy(g.stream);
        memory_replay(g.graph, context->stream);
        ASSERT_VALUE(context, g.x, 0, 2 + round);
        ASSERT_OK(rondo_graph_reset(g.graph));
    }
    rondo_graph_destroy(g.graph);
    suite_free(context, RONDO_MEMORY_DEVICE, g.x);
}

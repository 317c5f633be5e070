// Graphs in files: recorded, saved, made again with other memory, refused by name.
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include "conformance/control/inside_support.h"
#include "conformance/node/node_support.h"
#include "rondo/update.h"
#include "support/driver_calls.h"

enum { NUMBERS = 64, SYMBOLS = 5 };

typedef struct world {
    suite_context *context;
    rondo_graph *graph, *again;
    uint32_t *x, *far_x;  // recorded with x, made again with far_x
    uint32_t *pinned, *far_pinned;
    rondo_event *event, *far_event;
    rondo_graph_symbol symbols[SYMBOLS], far[SYMBOLS];
    char *path;
} world;

static char g_path[64];

typedef struct addition {
    uint32_t *number;
    uint32_t term;
} addition;

static void run_addition(void *arguments) {
    const addition *given = arguments;
    *given->number += given->term;
}

static void give_symbols(world *w, rondo_graph_symbol symbols[SYMBOLS], uint32_t *x,
                         uint32_t *pinned, rondo_event *event) {
    symbols[0] = (rondo_graph_symbol){"affine", w->context->affine, 0, RONDO_SYMBOL_FUNCTION};
    symbols[1] = (rondo_graph_symbol){"x", x, NUMBERS * sizeof *x, RONDO_SYMBOL_MEMORY};
    symbols[2] = (rondo_graph_symbol){"result", pinned, 16, RONDO_SYMBOL_MEMORY};
    symbols[3] = (rondo_graph_symbol){"event", event, 0, RONDO_SYMBOL_EVENT};
    const union {
        rondo_host_function function;
        void *address;
    } add = {.function = run_addition};
    symbols[4] = (rondo_graph_symbol){"add", add.address, 0, RONDO_SYMBOL_HOST_FUNCTION};
}

static void drop_file(void *path) {
    (void)unlink(path);
}

static world start(void **state) {
    world w = {.context = suite_get_context(state)};
    suite_need_execution(w.context);  // the device that runs nothing shows no arguments
    w.graph = suite_create_graph(w.context, true);
    w.again = suite_create_graph(w.context, true);
    w.x = suite_allocate(w.context, RONDO_MEMORY_DEVICE, NUMBERS);
    w.far_x = suite_allocate(w.context, RONDO_MEMORY_DEVICE, NUMBERS);
    w.pinned = suite_allocate(w.context, RONDO_MEMORY_PINNED, 4);
    w.far_pinned = suite_allocate(w.context, RONDO_MEMORY_PINNED, 4);
    w.event = suite_create_event(w.context, RONDO_EVENT_EXTERNAL);
    w.far_event = suite_create_event(w.context, RONDO_EVENT_EXTERNAL);
    suite_set(w.context, w.x, 1, NUMBERS);
    suite_set(w.context, w.far_x, 1, NUMBERS);
    give_symbols(&w, w.symbols, w.x, w.pinned, w.event);
    give_symbols(&w, w.far, w.far_x, w.far_pinned, w.far_event);
    (void)snprintf(g_path, sizeof g_path, "%s/rondo_graph_XXXXXX", P_tmpdir);
    const int file = mkstemp(g_path);
    assert_true(file >= 0);
    (void)close(file);
    w.path = g_path;
    suite_remember(drop_file, g_path);
    return w;
}

static void finish(world *w) {
    suite_forget(w->path);
    (void)unlink(w->path);
    rondo_event_destroy(w->far_event);
    rondo_event_destroy(w->event);
    suite_free(w->context, RONDO_MEMORY_PINNED, w->far_pinned);
    suite_free(w->context, RONDO_MEMORY_PINNED, w->pinned);
    suite_free(w->context, RONDO_MEMORY_DEVICE, w->far_x);
    suite_free(w->context, RONDO_MEMORY_DEVICE, w->x);
    rondo_graph_destroy(w->again);
    rondo_graph_destroy(w->graph);
}

static void put(world *w, rondo_stream *stream, size_t at, uint32_t factor, uint32_t term) {
    ASSERT_OK(suite_affine(w->context, stream, w->x + at, 1, factor, term));
}

static void save_and_load(world *w) {
    ASSERT_OK(rondo_graph_save(w->graph, w->path, w->symbols, SYMBOLS));
    ASSERT_OK(rondo_graph_load(w->again, w->path, w->far, SYMBOLS));
}

// Both do the same to their own memory, and nothing to the other's.
static void assert_same(world *w, int replays) {
    for (int i = 0; i < replays; ++i) {
        inside_replay_and_wait(w->context, w->graph);
    }
    for (size_t i = 0; i < NUMBERS; ++i) {
        ASSERT_VALUE(w->context, w->far_x, i, i == 0 ? suite_get(w->context, w->far_x, 0) : 1);
    }
    for (int i = 0; i < replays; ++i) {
        inside_replay_and_wait(w->context, w->again);
    }
    for (size_t i = 0; i < NUMBERS; ++i) {
        ASSERT_VALUE(w->context, w->far_x, i, suite_get(w->context, w->x, i));
    }
}

static size_t count_nodes(rondo_graph *graph) {
    size_t count = 0;
    ASSERT_OK(rondo_graph_get_node_count(graph, &count));
    return count;
}

// ---- what is made again -----------------------------------------------------------------------

// Two branches, copies, fills, and what joins them.
SUITE_CASE(test_conformance_graph_file__branches_are_made_again) {
    world w = start(state);
    rondo_stream *stream = w.context->stream;
    rondo_stream *side = suite_create_stream(w.context);
    rondo_event *fork = suite_create_event(w.context, 0);
    rondo_event *join = suite_create_event(w.context, 0);
    inside_begin(w.graph, stream);
    put(&w, stream, 1, 3, 4);
    ASSERT_OK(rondo_event_record(fork, stream));
    ASSERT_OK(rondo_stream_wait_event(side, fork));
    ASSERT_OK(rondo_stream_fill(side, w.x + 8, 5, 4, 3));
    put(&w, side, 8, 7, 1);
    put(&w, stream, 1, 2, 1);
    ASSERT_OK(rondo_stream_copy(stream, w.x + 20, w.x + 1, 4, RONDO_COPY_DEVICE_TO_DEVICE));
    ASSERT_OK(rondo_event_record(join, side));
    ASSERT_OK(rondo_stream_wait_event(stream, join));
    ASSERT_OK(rondo_stream_copy(stream, w.pinned, w.x + 8, 16, RONDO_COPY_DEVICE_TO_HOST));
    ASSERT_OK(rondo_stream_copy(stream, w.x + 30, w.pinned, 8, RONDO_COPY_HOST_TO_DEVICE));
    put(&w, stream, 30, 2, 9);
    ASSERT_OK(rondo_graph_capture_end(w.graph));
    save_and_load(&w);
    assert_int_equal(count_nodes(w.again), count_nodes(w.graph));
    memset(w.pinned, 0, 16);
    memset(w.far_pinned, 0, 16);
    assert_same(&w, 3);
    ASSERT_VALUE(w.context, w.far_x, 8, 36);
    ASSERT_VALUE(w.context, w.far_x, 30, 81);
    assert_int_equal(w.far_pinned[0], 36);
    // What was loaded is a recording as others: it can be saved, too.
    ASSERT_OK(rondo_graph_save(w.again, w.path, w.far, SYMBOLS));
    ASSERT_OK(rondo_graph_reset(w.graph));
    for (int i = 0; i < SYMBOLS; ++i) {
        if ((uintptr_t)w.symbols[i].address % 256 != 0 && i > 0 && i < 3) {
            w.symbols[i].address = w.far[i].address;  // less aligned than what it was recorded with
        }
    }
    ASSERT_OK(rondo_graph_load(w.graph, w.path, w.symbols, SYMBOLS));
    assert_int_equal(count_nodes(w.graph), count_nodes(w.again));
    rondo_event_destroy(join);
    rondo_event_destroy(fork);
    rondo_stream_destroy(side);
    finish(&w);
}

// A host function has a name, and its arguments are bytes with addresses among them.
SUITE_CASE(test_conformance_graph_file__host_functions_are_made_again) {
    world w = start(state);
    rondo_stream *stream = w.context->stream;
    const addition given = {w.pinned + 1, 5};
    inside_begin(w.graph, stream);
    put(&w, stream, 4, 3, 4);
    ASSERT_OK(rondo_stream_copy(stream, w.pinned, w.x + 4, 16, RONDO_COPY_DEVICE_TO_HOST));
    ASSERT_OK(rondo_stream_call_host(stream, "add", run_addition, &given, sizeof given));
    ASSERT_OK(rondo_stream_copy(stream, w.x + 30, w.pinned, 8, RONDO_COPY_HOST_TO_DEVICE));
    ASSERT_OK(rondo_graph_capture_end(w.graph));
    ASSERT_STATUS(rondo_graph_save(w.graph, w.path, w.symbols, SYMBOLS - 1), UNSUPPORTED);
    ASSERT_MESSAGE_HAS("node 2 (host add): its function");
    w.symbols[4].kind = RONDO_SYMBOL_FUNCTION;  // of kernels
    ASSERT_STATUS(rondo_graph_save(w.graph, w.path, w.symbols, SYMBOLS), UNSUPPORTED);
    w.symbols[4].kind = RONDO_SYMBOL_HOST_FUNCTION;
    save_and_load(&w);
    assert_int_equal(count_nodes(w.again), count_nodes(w.graph));
    memset(w.pinned, 0, 16);
    memset(w.far_pinned, 0, 16);
    assert_same(&w, 3);
    ASSERT_VALUE(w.context, w.far_x, 31, 6);
    assert_int_equal(w.far_pinned[1], 6);
    ASSERT_STATUS(rondo_graph_load(w.graph, w.path, w.far, SYMBOLS), STATE);
    ASSERT_OK(rondo_graph_reset(w.graph));
    w.far[4].kind = RONDO_SYMBOL_FUNCTION;
    ASSERT_STATUS(rondo_graph_load(w.graph, w.path, w.far, SYMBOLS), INVALID);
    ASSERT_MESSAGE_HAS("needs the host function add");
    finish(&w);
}

SUITE_CASE(test_conformance_graph_file__graphs_inside_are_made_again) {
    suite_need_children(context);
    world w = start(state);
    rondo_graph *inner = inside_capture_affine(w.context, w.x + 2, 3);
    inside_begin(w.graph, w.context->stream);
    put(&w, w.context->stream, 2, 1, 4);
    ASSERT_OK(rondo_stream_add_graph(w.context->stream, inner));
    put(&w, w.context->stream, 2, 2, 1);
    ASSERT_OK(rondo_graph_capture_end(w.graph));
    save_and_load(&w);
    assert_same(&w, 2);
    rondo_graph_destroy(inner);
    finish(&w);
}

static void put_body(world *w, rondo_scope scope, uint32_t branch, size_t at, uint32_t factor,
                     uint32_t term) {
    rondo_stream *body = NULL;
    ASSERT_OK(rondo_scope_enter(scope, branch, &body));
    put(w, body, at, factor, term);
    put(w, body, at + 1, 1, 1);
    ASSERT_OK(rondo_scope_leave(scope));
}

// If with and without else, a switch with an empty branch, a while in a while.
SUITE_CASE(test_conformance_graph_file__conditionals_are_made_again) {
    suite_need(context, RONDO_FEATURE_IF);
    world w = start(state);
    rondo_stream *stream = w.context->stream;
    rondo_scope scope, inner;
    rondo_stream *body = NULL;
    inside_begin(w.graph, stream);
    put(&w, stream, 1, 1, 1);
    ASSERT_OK(rondo_scope_begin(stream, RONDO_SCOPE_IF, w.x, 0, &scope));
    put_body(&w, scope, 0, 2, 3, 1);
    ASSERT_OK(rondo_scope_end(scope));
    if (!suite_is_swept) {
        ASSERT_OK(rondo_scope_begin(stream, RONDO_SCOPE_IF_ELSE, w.x, 0, &scope));
        put_body(&w, scope, 0, 4, 3, 1);
        put_body(&w, scope, 1, 6, 5, 2);
        ASSERT_OK(rondo_scope_end(scope));
        ASSERT_OK(rondo_scope_begin(stream, RONDO_SCOPE_SWITCH, w.x, 3, &scope));
        put_body(&w, scope, 0, 8, 1, 2);
        put_body(&w, scope, 2, 10, 1, 3);
        ASSERT_OK(rondo_scope_end(scope));
    }
    ASSERT_OK(rondo_stream_fill(stream, w.x + 40, 3, 4, 1));
    ASSERT_OK(rondo_scope_begin(stream, RONDO_SCOPE_WHILE, w.x + 40, 0, &scope));
    ASSERT_OK(rondo_scope_enter(scope, 0, &body));
    ASSERT_OK(rondo_stream_fill(body, w.x + 41, 2, 4, 1));
    ASSERT_OK(rondo_scope_begin(body, RONDO_SCOPE_WHILE, w.x + 41, 0, &inner));
    put_body(&w, inner, 0, 41, 1, UINT32_MAX);
    ASSERT_OK(rondo_scope_end(inner));
    put(&w, body, 40, 1, UINT32_MAX);
    ASSERT_OK(rondo_scope_leave(scope));
    ASSERT_OK(rondo_scope_end(scope));
    put(&w, stream, 1, 2, 0);
    ASSERT_OK(rondo_graph_capture_end(w.graph));
    save_and_load(&w);
    assert_int_equal(count_nodes(w.again), count_nodes(w.graph));
    for (uint32_t predicate = 0; predicate < (suite_is_swept ? 1 : 4); ++predicate) {
        suite_set(w.context, w.x, predicate, 1);
        suite_set(w.context, w.far_x, predicate, 1);
        inside_replay_and_wait(w.context, w.graph);
        inside_replay_and_wait(w.context, w.again);
        for (size_t i = 0; i < NUMBERS; ++i) {
            ASSERT_VALUE(w.context, w.far_x, i, suite_get(w.context, w.x, i));
        }
    }
    finish(&w);
}

SUITE_CASE(test_conformance_graph_file__external_events_are_made_again) {
    world w = start(state);
    inside_begin(w.graph, w.context->stream);
    put(&w, w.context->stream, 1, 2, 1);
    ASSERT_OK(rondo_event_record(w.event, w.context->stream));
    put(&w, w.context->stream, 1, 2, 1);
    ASSERT_OK(rondo_graph_capture_end(w.graph));
    save_and_load(&w);
    inside_replay_and_wait(w.context, w.again);
    ASSERT_OK(rondo_event_synchronize(w.far_event));
    ASSERT_VALUE(w.context, w.far_x, 1, 7);
    finish(&w);
}

// Clusters, cooperative launches, priorities of launches and of streams.
SUITE_CASE(test_conformance_graph_file__launch_attributes_are_made_again) {
    static const struct {
        rondo_launch launch;
        int32_t stream_priority;
    } rows[] = {
        {.launch = {.cluster = {2, 1, 1}}},
        {.launch = {.flags = RONDO_LAUNCH_COOPERATIVE}},
        {.launch = {.priority = 2}},
        {.stream_priority = 3},
        {.launch = {.cluster = {2, 1, 1}, .flags = RONDO_LAUNCH_COOPERATIVE, .priority = 1}},
    };
    world w = start(state);
    const suite_affine_arguments arguments = {w.x, 4, 3, 1};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        const rondo_stream_options options = {.struct_size = sizeof options,
                                              .priority = rows[i].stream_priority};
        rondo_stream *stream = NULL;
        rondo_launch launch = suite_describe_affine(w.context, &arguments);
        launch.grid[0] = 2;
        launch.flags = rows[i].launch.flags;
        launch.priority = rows[i].launch.priority;
        memcpy(launch.cluster, rows[i].launch.cluster, sizeof launch.cluster);
        ASSERT_OK(rondo_stream_create(w.context->device, &options, &stream));
        inside_begin(w.graph, stream);
        const rondo_status status = rondo_stream_launch(stream, &launch);
        if (status == RONDO_STATUS_UNSUPPORTED) {  // clusters, before Hopper
            rondo_graph_capture_abort(w.graph);
        } else {
            rondo_node nodes[2];
            rondo_node_state states[2];
            ASSERT_OK(status);
            ASSERT_OK(rondo_graph_capture_end(w.graph));
            save_and_load(&w);
            rondo_graph *graphs[] = {w.graph, w.again};
            for (int k = 0; k < 2; ++k) {
                states[k] = (rondo_node_state){.struct_size = sizeof states[k]};
                ASSERT_OK(rondo_graph_get_node_handle(graphs[k], 0, &nodes[k]));
                inside_replay_and_wait(w.context, graphs[k]);
                ASSERT_OK(rondo_graph_read_node(graphs[k], nodes[k], &states[k]));
            }
            assert_memory_equal(states[0].cluster, states[1].cluster, sizeof states[0].cluster);
            assert_int_equal(states[0].is_cooperative, states[1].is_cooperative);
            assert_int_equal(states[0].priority, states[1].priority);
            assert_int_equal(states[1].is_cooperative, launch.flags != 0);
            if (w.context->is_cuda) {  // the host's streams have none
                assert_int_equal(states[1].priority, launch.priority + rows[i].stream_priority);
            }
            assert_memory_equal(states[1].cluster, launch.cluster, sizeof launch.cluster);
            ASSERT_VALUE(w.context, w.far_x, 3, suite_get(w.context, w.x, 3));
            ASSERT_OK(rondo_graph_reset(w.again));
        }
        ASSERT_OK(rondo_graph_reset(w.graph));
        rondo_stream_destroy(stream);
    }
    finish(&w);
}

SUITE_CASE(test_conformance_graph_file__an_empty_graph_is_made_again) {
    world w = start(state);
    inside_begin(w.graph, w.context->stream);
    ASSERT_OK(rondo_graph_capture_end(w.graph));
    save_and_load(&w);
    assert_int_equal(count_nodes(w.again), 0);
    inside_replay_and_wait(w.context, w.again);
    finish(&w);
}

// ---- memory that the graph takes --------------------------------------------------------------

static world start_taking(void **state) {
    if (!suite_get_context(state)->is_cuda) {
        suite_skip("the host has no memory in the order of a stream");
    }
    return start(state);
}

static bool has_if(const world *w) {
    return rondo_device_supports(w->context->device, RONDO_FEATURE_IF) == RONDO_STATUS_OK;
}

static uint32_t *take(world *w) {
    void *taken = NULL;
    ASSERT_OK(driver_take(w->context->stream, NUMBERS * sizeof *w->x, &taken));
    return taken;
}

// Twice, at one address where the driver does so; all kinds of nodes use it, also in a body.
SUITE_CASE(test_conformance_graph_file__memory_nodes_are_made_again) {
    world w = start_taking(state);
    rondo_stream *stream = w.context->stream;
    rondo_scope scope;
    inside_begin(w.graph, stream);
    uint32_t *first = take(&w);
    ASSERT_OK(
        rondo_stream_copy(stream, first, w.x, NUMBERS * sizeof *w.x, RONDO_COPY_DEVICE_TO_DEVICE));
    ASSERT_OK(suite_affine(w.context, stream, first + 1, 1, 3, 4));
    ASSERT_OK(driver_copy_default(stream, w.x + 1, first + 1, 4));
    ASSERT_OK(driver_give_back(stream, first));
    uint32_t *second = take(&w);
    ASSERT_OK(rondo_stream_fill(stream, second, 5, 4, NUMBERS));
    ASSERT_OK(suite_affine(w.context, stream, second + 2, 1, 2, 1));
    if (has_if(&w)) {
        rondo_stream *body = NULL;
        ASSERT_OK(rondo_scope_begin(stream, RONDO_SCOPE_IF, w.x, 0, &scope));
        ASSERT_OK(rondo_scope_enter(scope, 0, &body));
        ASSERT_OK(suite_affine(w.context, body, second + 3, 1, 2, 2));
        ASSERT_OK(rondo_scope_leave(scope));
        ASSERT_OK(rondo_scope_end(scope));
    }
    ASSERT_OK(rondo_stream_copy(stream, w.pinned, second + 2, 8, RONDO_COPY_DEVICE_TO_HOST));
    ASSERT_OK(rondo_stream_copy(stream, w.x + 2, second + 2, 8, RONDO_COPY_DEVICE_TO_DEVICE));
    ASSERT_OK(driver_give_back(stream, second));
    put(&w, stream, 2, 1, 1);
    ASSERT_OK(rondo_graph_capture_end(w.graph));
    save_and_load(&w);
    assert_int_equal(count_nodes(w.again), count_nodes(w.graph));
    assert_same(&w, 2);
    ASSERT_VALUE(w.context, w.far_x, 1, 25);
    ASSERT_VALUE(w.context, w.far_x, 2, 12);
    ASSERT_VALUE(w.context, w.far_x, 3, has_if(&w) ? 12 : 5);
    assert_int_equal(w.far_pinned[0], 11);
    ASSERT_OK(rondo_graph_save(w.again, w.path, w.far, SYMBOLS));
    finish(&w);
}

// Two branches, of which each takes its own.
SUITE_CASE(test_conformance_graph_file__memory_of_branches_is_made_again) {
    world w = start_taking(state);
    rondo_stream *stream = w.context->stream;
    rondo_stream *side = suite_create_stream(w.context);
    rondo_event *fork = suite_create_event(w.context, 0);
    rondo_event *join = suite_create_event(w.context, 0);
    void *far_taken = NULL;
    inside_begin(w.graph, stream);
    put(&w, stream, 1, 3, 4);
    ASSERT_OK(rondo_event_record(fork, stream));
    ASSERT_OK(rondo_stream_wait_event(side, fork));
    uint32_t *taken = take(&w);
    ASSERT_OK(driver_take(side, NUMBERS * sizeof *w.x, &far_taken));
    ASSERT_OK(rondo_stream_fill(stream, taken, 5, 4, 4));
    ASSERT_OK(rondo_stream_fill(side, far_taken, 7, 4, 4));
    ASSERT_OK(rondo_stream_copy(stream, w.x + 2, taken, 4, RONDO_COPY_DEVICE_TO_DEVICE));
    ASSERT_OK(rondo_stream_copy(side, w.x + 3, far_taken, 4, RONDO_COPY_DEVICE_TO_DEVICE));
    ASSERT_OK(driver_give_back(side, far_taken));
    ASSERT_OK(rondo_event_record(join, side));
    ASSERT_OK(rondo_stream_wait_event(stream, join));
    ASSERT_OK(driver_give_back(stream, taken));
    put(&w, stream, 3, 2, 1);
    ASSERT_OK(rondo_graph_capture_end(w.graph));
    save_and_load(&w);
    assert_same(&w, 2);
    ASSERT_VALUE(w.context, w.far_x, 2, 5);
    ASSERT_VALUE(w.context, w.far_x, 3, 15);
    rondo_event_destroy(join);
    rondo_event_destroy(fork);
    rondo_stream_destroy(side);
    finish(&w);
}

SUITE_CASE(test_conformance_graph_file__memory_that_cannot_be_made_again_is_refused) {
    world w = start_taking(state);
    rondo_stream *stream = w.context->stream;
    // The program reads it behind the replays.
    inside_begin(w.graph, stream);
    uint32_t *taken = take(&w);
    ASSERT_OK(rondo_stream_fill(stream, taken, 5, 4, NUMBERS));
    ASSERT_OK(rondo_graph_capture_end(w.graph));
    ASSERT_STATUS(rondo_graph_save(w.graph, w.path, w.symbols, SYMBOLS), UNSUPPORTED);
    ASSERT_MESSAGE_HAS("it takes 256 bytes that no node gives back");
    ASSERT_MESSAGE_HAS("free them in the capture");
    ASSERT_OK(rondo_graph_reset(w.graph));
    // A node uses it when it was given back.
    inside_begin(w.graph, stream);
    taken = take(&w);
    ASSERT_OK(rondo_stream_fill(stream, taken, 5, 4, NUMBERS));
    ASSERT_OK(driver_give_back(stream, taken));
    ASSERT_OK(suite_affine(w.context, stream, taken, 1, 2, 1));
    ASSERT_OK(rondo_graph_capture_end(w.graph));
    ASSERT_STATUS(rondo_graph_save(w.graph, w.path, w.symbols, SYMBOLS), UNSUPPORTED);
    ASSERT_MESSAGE_HAS("node 3 (kernel affine): it uses memory that node 0 takes");
    // It is no symbol's.
    w.symbols[2] = (rondo_graph_symbol){"scratch", taken + 4, 64, RONDO_SYMBOL_MEMORY};
    ASSERT_STATUS(rondo_graph_save(w.graph, w.path, w.symbols, SYMBOLS), INVALID);
    ASSERT_MESSAGE_HAS("symbol scratch is memory that node 0 of the graph takes");
    finish(&w);
}

// ---- refusals ---------------------------------------------------------------------------------

static void run_nothing(void *arguments) {
    (void)arguments;
}

SUITE_CASE(test_conformance_graph_file__what_cannot_be_made_again_is_refused) {
    world w = start(state);
    rondo_stream *stream = w.context->stream;
    ASSERT_STATUS(rondo_graph_save(w.graph, w.path, w.symbols, SYMBOLS), STATE);
    inside_begin(w.graph, stream);
    put(&w, stream, 1, 2, 1);
    ASSERT_OK(rondo_stream_call_host(stream, "nothing", run_nothing, NULL, 0));
    ASSERT_OK(rondo_graph_capture_end(w.graph));
    ASSERT_STATUS(rondo_graph_save(w.graph, w.path, w.symbols, SYMBOLS), UNSUPPORTED);
    ASSERT_MESSAGE_HAS("node 1 (host nothing)");
    ASSERT_OK(rondo_graph_reset(w.graph));

    inside_begin(w.graph, stream);
    put(&w, stream, 1, 2, 1);
    ASSERT_OK(rondo_stream_fill(stream, w.x + 3, 1, 4, 8));
    ASSERT_OK(rondo_graph_capture_end(w.graph));
    // A function, memory, or the end of memory that no symbol has.
    ASSERT_STATUS(rondo_graph_save(w.graph, w.path, w.symbols + 1, SYMBOLS - 1), UNSUPPORTED);
    ASSERT_MESSAGE_HAS("node 0 (kernel affine): its function");
    ASSERT_STATUS(rondo_graph_save(w.graph, w.path, w.symbols, 1), UNSUPPORTED);
    ASSERT_MESSAGE_HAS("node 0 (kernel affine)");
    ASSERT_MESSAGE_HAS("an address of no symbol");
    w.symbols[1].byte_count = 5 * sizeof *w.x;
    ASSERT_STATUS(rondo_graph_save(w.graph, w.path, w.symbols, SYMBOLS), UNSUPPORTED);
    ASSERT_MESSAGE_HAS("node 1 (memset): its destination reaches 24 bytes beyond");
    w.symbols[1].byte_count = NUMBERS * sizeof *w.x;
    // Symbols themselves.
    w.symbols[2].name = "x";
    ASSERT_STATUS(rondo_graph_save(w.graph, w.path, w.symbols, SYMBOLS), INVALID);
    ASSERT_MESSAGE_HAS("two symbols x");
    w.symbols[2] = (rondo_graph_symbol){"part", w.x + 4, 4, RONDO_SYMBOL_MEMORY};
    ASSERT_STATUS(rondo_graph_save(w.graph, w.path, w.symbols, SYMBOLS), INVALID);
    ASSERT_MESSAGE_HAS("overlaps");
    w.symbols[2].byte_count = 0;
    ASSERT_STATUS(rondo_graph_save(w.graph, w.path, w.symbols, SYMBOLS), INVALID);
    w.symbols[2].address = NULL;
    ASSERT_STATUS(rondo_graph_save(w.graph, w.path, w.symbols, SYMBOLS), INVALID);
    w.symbols[2] = (rondo_graph_symbol){"part", w.x + 4, 4, 9};
    ASSERT_STATUS(rondo_graph_save(w.graph, w.path, w.symbols, SYMBOLS), INVALID);
    ASSERT_STATUS(rondo_graph_save(w.graph, w.path, NULL, 1), INVALID);
    ASSERT_STATUS(rondo_graph_save(w.graph, NULL, w.far, 1), INVALID);
    ASSERT_STATUS(rondo_graph_save(NULL, w.path, w.far, 1), INVALID);
    finish(&w);
}

SUITE_CASE(test_conformance_graph_file__what_does_not_fit_is_refused) {
    world w = start(state);
    inside_begin(w.graph, w.context->stream);
    put(&w, w.context->stream, 1, 2, 1);
    ASSERT_OK(rondo_graph_capture_end(w.graph));
    ASSERT_OK(rondo_graph_save(w.graph, w.path, w.symbols, SYMBOLS));
    // Only what nodes name is needed.
    ASSERT_OK(rondo_graph_load(w.again, w.path, w.far, 2));
    ASSERT_STATUS(rondo_graph_load(w.again, w.path, w.far, 2), STATE);
    ASSERT_OK(rondo_graph_reset(w.again));
    ASSERT_STATUS(rondo_graph_load(w.again, w.path, w.far + 1, 2), INVALID);
    ASSERT_MESSAGE_HAS("function affine");
    ASSERT_STATUS(rondo_graph_load(w.again, w.path, w.far, 1), INVALID);
    ASSERT_MESSAGE_HAS("memory x");
    w.far[1].byte_count -= 4;
    ASSERT_STATUS(rondo_graph_load(w.again, w.path, w.far, SYMBOLS), INVALID);
    ASSERT_MESSAGE_HAS("memory x has 252 bytes");
    w.far[1].byte_count += 4;
    w.far[1].address = w.far_x + 1;
    ASSERT_STATUS(rondo_graph_load(w.again, w.path, w.far, SYMBOLS), INVALID);
    ASSERT_MESSAGE_HAS("no multiple of");
    ASSERT_STATUS(rondo_graph_load(w.again, "no such file", w.far, SYMBOLS), UNAVAILABLE);
    ASSERT_STATUS(rondo_graph_load(w.again, NULL, w.far, SYMBOLS), INVALID);
    ASSERT_STATUS(rondo_graph_load(NULL, w.path, w.far, SYMBOLS), INVALID);
    w.far[1].address = w.far_x;
    // Cut short; altered.
    FILE *file = fopen(w.path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, -1, SEEK_END), 0);
    const long length = ftell(file) + 1;
    assert_int_equal(fseek(file, 256, SEEK_SET), 0);
    assert_int_equal(fputc(99, file), 99);
    assert_int_equal(fclose(file), 0);
    ASSERT_STATUS(rondo_graph_load(w.again, w.path, w.far, SYMBOLS), BAD_DATA);
    ASSERT_MESSAGE_HAS("graph file was altered");
    assert_int_equal(truncate(w.path, length - 100), 0);
    ASSERT_STATUS(rondo_graph_load(w.again, w.path, w.far, SYMBOLS), BAD_DATA);
    ASSERT_MESSAGE_HAS("cut short");
    // The graph is as it was: it records.
    inside_begin(w.again, w.context->stream);
    put(&w, w.context->stream, 1, 2, 1);
    ASSERT_OK(rondo_graph_capture_end(w.again));
    finish(&w);
}

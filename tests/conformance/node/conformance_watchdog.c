// Replays that stall are told of, with the mark that they have passed; the others are not.
// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <time.h>

#include "conformance/memory/memory_support.h"
#include "rondo/label.h"

enum { COUNT = 4 };

typedef struct listener {
    pthread_mutex_t lock;
    pthread_cond_t told;
    int count;
    rondo_watchdog *watchdog;
    rondo_stream *stream;
    rondo_stall stall;  // the latest, but for texts:
    char graph[64], label[64], text[512];
} listener;

static void take_stall(void *user_data, const rondo_stall *stall) {
    listener *l = user_data;
    pthread_mutex_lock(&l->lock);
    l->count += 1;
    rondo_watchdog_destroy(l->watchdog);  // is left alone here
    l->stall = *stall;
    (void)snprintf(l->graph, sizeof l->graph, "%s", stall->graph);
    (void)snprintf(l->label, sizeof l->label, "%s", stall->last_label);
    (void)snprintf(l->text, sizeof l->text, "%s", stall->text);
    pthread_cond_signal(&l->told);
    pthread_mutex_unlock(&l->lock);
}

// A slow machine may tell of a stall before that, too.
static void wait_for_stall(listener *l, const char *label) {
    pthread_mutex_lock(&l->lock);
    while (l->count == 0 || strcmp(l->label, label) != 0) {
        pthread_cond_wait(&l->told, &l->lock);
    }
    pthread_mutex_unlock(&l->lock);
}

typedef struct scene {
    suite_context *context;
    rondo_stream *stream;
    rondo_graph *graph;
    rondo_watchdog *watchdog;
    uint32_t *x;
} scene;

// Not of a case: the watchdog outlives one that fails.
static listener heard = {.lock = PTHREAD_MUTEX_INITIALIZER, .told = PTHREAD_COND_INITIALIZER};

// Behind what a case that failed has left on its stream.
static void destroy_watchdog(void *object) {
    rondo_status status = rondo_stream_synchronize(heard.stream);
    (void)status;  // the watchdog's own words are there to be written until then
    rondo_watchdog_destroy(object);
}

static void open_scene(void **state, uint64_t timeout_ns, scene *s) {
    suite_context *context = suite_get_context(state);
    *s = (scene){.context = context,
                 .stream = suite_create_stream(context),
                 .graph = memory_create_graph(context, "layers", NULL),
                 .x = suite_allocate(context, RONDO_MEMORY_DEVICE, COUNT)};
    heard.count = 0;
    const rondo_watchdog_options options = {.struct_size = sizeof options,
                                            .timeout_ns = timeout_ns,
                                            .function = take_stall,
                                            .user_data = &heard};
    ASSERT_OK(rondo_watchdog_create(context->device, &options, &s->watchdog));
    suite_remember(destroy_watchdog, s->watchdog);
    heard.watchdog = s->watchdog;
    heard.stream = s->stream;
    suite_set(context, s->x, 1, COUNT);
}

static void close_scene(scene *s) {
    rondo_graph_destroy(s->graph);
    suite_forget(s->watchdog);
    rondo_watchdog_destroy(s->watchdog);
    rondo_watchdog_destroy(NULL);
    rondo_stream_destroy(s->stream);
    suite_free(s->context, RONDO_MEMORY_DEVICE, s->x);
}

static void record_layer(scene *s, const char *label, suite_gate *gate) {
    ASSERT_OK(rondo_label_push(s->stream, label));
    ASSERT_OK(rondo_watchdog_mark(s->watchdog, s->graph, s->stream));
    if (gate != NULL) {
        ASSERT_OK(suite_gate_enter(gate, s->stream));
    }
    ASSERT_OK(suite_affine(s->context, s->stream, s->x, COUNT, 1, 1));
    ASSERT_OK(rondo_label_pop(s->stream));
}

SUITE_CASE_EXECUTED(test_conformance_watchdog__stalls_are_told) {
    suite_gate *gate = suite_gate_create(context);
    scene s;
    open_scene(state, 2 * 1000 * 1000, &s);
    memory_begin(s.graph, s.stream);
    record_layer(&s, "layer0", NULL);
    record_layer(&s, "layer1", gate);
    record_layer(&s, "layer2", NULL);
    memory_end(s.graph);
    ASSERT_OK(rondo_watchdog_replay(s.watchdog, s.graph, s.stream));
    wait_for_stall(&heard, "layer1");
    assert_string_equal(heard.graph, "layers");
    assert_true(heard.stall.mark == 2 && heard.stall.mark_count == 3);
    assert_true(heard.stall.waited_ns >= 2 * 1000 * 1000 && heard.stall.stream > 0);
    assert_non_null(strstr(heard.text, "graph \"layers\" on stream"));
    assert_non_null(strstr(heard.text, "the last mark that it passed is in \"layer1\""));
    assert_non_null(strstr(heard.text, rondo_device_get_name(s.context->device)));
    // Nothing was stopped.
    suite_gate_open(gate);
    ASSERT_OK(rondo_stream_synchronize(s.stream));
    ASSERT_VALUE(s.context, s.x, 0, 4);
    const uint64_t told = rondo_watchdog_get_stall_count(s.watchdog);
    assert_true(told >= 1);
    ASSERT_OK(rondo_watchdog_replay(s.watchdog, s.graph, s.stream));
    ASSERT_OK(rondo_stream_synchronize(s.stream));
    ASSERT_VALUE(s.context, s.x, 0, 7);
    suite_gate_destroy(gate);
    close_scene(&s);
}

// More than a chunk of places has, first of graphs that stay, each with a mark and a replay of its
// own; then of graphs that go, whose places are used again.
SUITE_CASE(test_conformance_watchdog__knows_any_number_of_graphs) {
    enum { MANY = 1030 };
    scene s;
    if (suite_is_swept) {
        suite_skip("every point of so many graphs would take hours");
    }
    open_scene(state, UINT64_C(3600) * 1000 * 1000 * 1000, &s);
    rondo_graph **graphs = calloc(MANY, sizeof *graphs);
    assert_non_null(graphs);
    for (int round = 0; round < 2; ++round) {
        for (uint32_t i = 0; i < MANY; ++i) {
            graphs[i] = memory_create_graph(s.context, "many", NULL);
            memory_begin(graphs[i], s.stream);
            ASSERT_OK(rondo_watchdog_mark(s.watchdog, graphs[i], s.stream));
            ASSERT_OK(suite_affine(s.context, s.stream, s.x, 1, 1, 1));
            memory_end(graphs[i]);
        }
        for (uint32_t i = 0; i < MANY; ++i) {
            ASSERT_OK(rondo_watchdog_replay(s.watchdog, graphs[i], s.stream));
        }
        ASSERT_OK(rondo_stream_synchronize(s.stream));
        ASSERT_VALUE(s.context, s.x, 0, 1 + MANY * (round + 1));
        for (uint32_t i = 0; i < MANY; ++i) {
            rondo_graph_destroy(graphs[i]);
        }
    }
    free(graphs);
    close_scene(&s);
}

SUITE_CASE(test_conformance_watchdog__others_are_not) {
    scene s;
    open_scene(state, UINT64_C(3600) * 1000 * 1000 * 1000, &s);
    memory_begin(s.graph, s.stream);
    record_layer(&s, "layer0", NULL);
    memory_end(s.graph);
    for (int i = 0; i < 20; ++i) {
        ASSERT_OK(rondo_watchdog_replay(s.watchdog, s.graph, s.stream));
    }
    ASSERT_OK(rondo_stream_synchronize(s.stream));
    ASSERT_VALUE(s.context, s.x, 0, 21);
    assert_true(rondo_watchdog_get_stall_count(s.watchdog) == 0 && heard.count == 0);
    // Recorded anew, with other marks.
    ASSERT_OK(rondo_graph_reset(s.graph));
    memory_begin(s.graph, s.stream);
    record_layer(&s, "other", NULL);
    ASSERT_OK(rondo_watchdog_mark(s.watchdog, s.graph, s.stream));
    memory_end(s.graph);
    ASSERT_OK(rondo_watchdog_replay(s.watchdog, s.graph, s.stream));
    ASSERT_OK(rondo_stream_synchronize(s.stream));
    ASSERT_VALUE(s.context, s.x, 0, 22);
    close_scene(&s);
}

SUITE_CASE(test_conformance_watchdog__misuse) {
    scene s;
    open_scene(state, 0, &s);
    ASSERT_STATUS(rondo_watchdog_mark(s.watchdog, s.graph, s.stream), STATE);
    ASSERT_MESSAGE_HAS("does not record graph \"layers\"");
    ASSERT_STATUS(rondo_watchdog_replay(s.watchdog, s.graph, s.stream), STATE);
    ASSERT_OK(rondo_stream_synchronize(s.stream));
    rondo_graph *other = memory_create_graph(s.context, "other", NULL);
    memory_begin(other, s.stream);
    ASSERT_STATUS(rondo_watchdog_mark(s.watchdog, s.graph, s.stream), STATE);
    ASSERT_OK(rondo_watchdog_mark(s.watchdog, other, s.stream));
    memory_end(other);  // a failure breaks nothing
    ASSERT_OK(rondo_watchdog_replay(s.watchdog, other, s.stream));
    ASSERT_OK(rondo_stream_synchronize(s.stream));
    rondo_graph_destroy(other);
    close_scene(&s);
}

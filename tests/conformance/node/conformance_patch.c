// Patched graphs among other objects: kept templates, updates, many nodes, threads.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/node/node_support.h"
#include "conformance/thread_support.h"
#include "rondo/update.h"

enum { COUNT = 4 };

typedef struct scene {
    suite_context *context;
    rondo_stream *stream;
    rondo_graph *graph;
    uint32_t *x;
} scene;

static scene open_scene(suite_context *context, rondo_graph_keeps keep) {
    rondo_graph_options options = {.struct_size = sizeof options, .keep = keep, .label = "patched"};
    scene s = {.context = context,
               .stream = suite_create_stream(context),
               .x = suite_allocate(context, RONDO_MEMORY_DEVICE, COUNT)};
    ASSERT_OK(rondo_graph_create(context->device, &options, &s.graph));
    suite_set(context, s.x, 1, COUNT);
    return s;
}

static void close_scene(scene *s) {
    rondo_graph_destroy(s->graph);
    rondo_stream_destroy(s->stream);
    suite_free(s->context, RONDO_MEMORY_DEVICE, s->x);
}

static void toggle(scene *s, rondo_node node, rondo_toggle toggle) {
    const rondo_patch patch = {.node = node, .toggle = toggle};
    ASSERT_OK(rondo_graph_patch(s->graph, &patch, 1));
}

// ---- templates --------------------------------------------------------------------------------

// A graph that is to keep its executable alone keeps its template for the handles.
SUITE_CASE_EXECUTED(test_conformance_patch__handles_keep_the_template) {
    scene s = open_scene(context, RONDO_KEEP_EXECUTABLE);
    size_t count = 0;
    memory_begin(s.graph, s.stream);
    ASSERT_OK(suite_affine(s.context, s.stream, s.x, COUNT, 1, 1));
    memory_end(s.graph);
    ASSERT_STATUS(rondo_graph_list_edges(s.graph, NULL, 0, &count), STATE);
    ASSERT_OK(rondo_graph_reset(s.graph));

    memory_begin(s.graph, s.stream);
    rondo_node node = node_add_affine(s.context, s.stream, s.x, COUNT, 1, 1);
    memory_end(s.graph);
    static suite_text dot;
    dot = (suite_text){0};
    ASSERT_OK(rondo_graph_dump(s.graph, RONDO_TEXT_DOT, suite_append_text, &dot));
    assert_non_null(strstr(dot.bytes, "affine"));
    ASSERT_OK(node_patch_affine(s.context, s.graph, node, s.x, COUNT, 1, 10));
    memory_replay(s.graph, s.stream);
    ASSERT_VALUE(s.context, s.x, 0, 11);
    ASSERT_OK(rondo_graph_instantiate(s.graph));  // as it was recorded
    memory_replay(s.graph, s.stream);
    ASSERT_VALUE(s.context, s.x, 0, 12);

    ASSERT_OK(rondo_graph_reset(s.graph));  // and the next recording is without handles again
    memory_begin(s.graph, s.stream);
    ASSERT_OK(suite_affine(s.context, s.stream, s.x, COUNT, 1, 1));
    memory_end(s.graph);
    ASSERT_STATUS(rondo_graph_instantiate(s.graph), STATE);
    close_scene(&s);
}

// Also where the template can have one executable at a time, which then goes to the other graph.
SUITE_CASE_EXECUTED(test_conformance_patch__updates_take_what_was_recorded) {
    suite_need(context, RONDO_FEATURE_IF);
    for (int has_branch = 0; has_branch < 2; ++has_branch) {
        scene s = open_scene(context, RONDO_KEEP_TEMPLATE);
        rondo_graph *target = suite_create_graph(context, true);
        memory_begin(s.graph, s.stream);
        const rondo_node node = node_add_affine(context, s.stream, s.x, COUNT, 1, 1);
        if (has_branch != 0) {
            rondo_scope scope;
            ASSERT_OK(rondo_scope_begin(s.stream, RONDO_SCOPE_IF, s.x, 0, &scope));
            ASSERT_OK(rondo_scope_end(scope));
        }
        memory_end(s.graph);
        ASSERT_OK(node_patch_affine(context, s.graph, node, s.x, COUNT, 1, 100));
        memory_replay(s.graph, s.stream);
        ASSERT_VALUE(context, s.x, 0, 101);
        ASSERT_OK(rondo_graph_update(target, s.graph, NULL));
        memory_replay(target, s.stream);
        ASSERT_VALUE(context, s.x, 0, 102);
        rondo_graph_destroy(target);
        close_scene(&s);
    }
}

static rondo_status put_two(rondo_stream *stream, void *user_data) {
    const scene *s = user_data;
    rondo_status status = suite_affine(s->context, stream, s->x, COUNT, 1, 1);
    return status == RONDO_STATUS_OK ? rondo_stream_fill(stream, s->x + 1, 9, 4, 1) : status;
}

// What was switched off or patched in the former work says nothing of the new.
SUITE_CASE_EXECUTED(test_conformance_patch__recaptures_begin_anew) {
    scene s = open_scene(context, RONDO_KEEP_TEMPLATE);
    memory_begin(s.graph, s.stream);
    const rondo_node node = node_add_affine(s.context, s.stream, s.x, COUNT, 1, 1);
    const rondo_work fill = node_fill_work(s.x + 1, 9, 1);
    const rondo_node second = node_add(s.stream, &fill);
    memory_end(s.graph);
    ASSERT_OK(node_patch_affine(s.context, s.graph, node, s.x, COUNT, 1, 100));
    toggle(&s, node, RONDO_TOGGLE_DISABLE);
    toggle(&s, second, RONDO_TOGGLE_DISABLE);
    memory_replay(s.graph, s.stream);
    ASSERT_VALUE(s.context, s.x, 1, 1);
    ASSERT_OK(node_patch_affine(s.context, s.graph, node, s.x, COUNT, 1, 200));
    toggle(&s, node, RONDO_TOGGLE_ENABLE);
    toggle(&s, node, RONDO_TOGGLE_DISABLE);  // for a replay that does not come
    ASSERT_OK(rondo_graph_recapture(s.graph, s.stream, NULL, put_two, &s, NULL));
    memory_replay(s.graph, s.stream);
    ASSERT_VALUE(s.context, s.x, 0, 2);
    ASSERT_VALUE(s.context, s.x, 1, 9);
    close_scene(&s);
}

static void count_call(void *arguments) {
    uint32_t *counter;
    memcpy(&counter, arguments, sizeof counter);
    ++*counter;
}

// ---- many nodes -------------------------------------------------------------------------------

// Adds the second number to the first one's place.
typedef struct addition {
    uint64_t *sum;
    uint64_t number;
} addition;

static void add_number(void *arguments) {
    addition a;
    memcpy(&a, arguments, sizeof a);
    *a.sum += a.number;
}

static rondo_work call_work(const addition *a) {
    return (rondo_work){.struct_size = sizeof(rondo_work),
                        .kind = RONDO_NODE_HOST,
                        .name = "add_number",
                        .function = add_number,
                        .arguments = a,
                        .argument_bytes = sizeof *a};
}

enum { NODES = 100000 };

// Node `i` of three kinds in turns, here and there a host function, and what it will do.
typedef struct many {
    scene s;
    uint32_t *words;
    uint32_t *pinned;
    uint64_t *sum;  // of the numbers of host functions
    suite_affine_arguments arguments[NODES];
    rondo_launch launches[NODES];
    addition additions[NODES];
    rondo_work works[NODES];
    rondo_patch patches[NODES];
} many;

static uint32_t choose_kind(uint32_t i) {
    return i % 1000 == 50 ? 3 : i % 3;
}

static void record_one_of_many(many *m, uint32_t i) {
    rondo_stream *stream = m->s.stream;
    uint32_t *word = &m->words[i];
    const addition nothing = {m->sum, 0};
    const rondo_work fill = node_fill_work(word, 1, 1);
    const rondo_work up =
        node_copy_work(word, &m->pinned[i], sizeof *word, RONDO_COPY_HOST_TO_DEVICE);
    const rondo_work call = call_work(&nothing);
    m->pinned[i] = 3 * i;
    m->patches[i].work = &m->works[i];
    switch (choose_kind(i)) {
        case 0:
            m->patches[i].node = node_add(stream, &fill);
            m->works[i] = node_fill_work(word, i, 1);
            break;
        case 1:
            m->patches[i].node = node_add(stream, &up);
            m->works[i] = node_copy_work(word, &m->pinned[NODES - 1 - i], sizeof *word,
                                         RONDO_COPY_HOST_TO_DEVICE);
            break;
        case 3:
            m->patches[i].node = node_add(stream, &call);
            m->additions[i] = (addition){m->sum, i};
            m->works[i] = call_work(&m->additions[i]);
            break;
        default:
            m->patches[i].node = node_add_affine(m->s.context, stream, word, 1, 1, 0);
            m->arguments[i] = (suite_affine_arguments){word, 1, 1, i};
            m->launches[i] = suite_describe_affine(m->s.context, &m->arguments[i]);
            m->works[i] = node_kernel_work(&m->launches[i]);
            break;
    }
}

SUITE_CASE_EXECUTED(test_conformance_patch__many_nodes_in_one_call) {
    if (suite_is_swept) {
        suite_skip("every point of so many calls would take hours");
    }
    many *m = calloc(1, sizeof *m);
    assert_non_null(m);
    m->s = open_scene(context, RONDO_KEEP_EXECUTABLE);
    m->words = suite_allocate(context, RONDO_MEMORY_DEVICE, NODES);
    m->pinned = suite_allocate(context, RONDO_MEMORY_PINNED, NODES);
    m->sum = (uint64_t *)suite_allocate(context, RONDO_MEMORY_PINNED, 2);
    *m->sum = 0;
    suite_set(context, m->words, 1, NODES);
    memory_begin(m->s.graph, m->s.stream);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < NODES; ++i) {
        record_one_of_many(m, i);
        sum += choose_kind(i) == 3 ? i : 0;
    }
    memory_end(m->s.graph);
    // The last kernel's is wrong: all others are taken back.
    m->works[NODES - 2].kind = RONDO_NODE_FILL;
    ASSERT_STATUS(rondo_graph_patch(m->s.graph, m->patches, NODES), INVALID);
    ASSERT_MESSAGE_HAS("node 99998 (affine)");
    memory_replay(m->s.graph, m->s.stream);
    ASSERT_VALUE(context, m->words, 3, 1);
    ASSERT_VALUE(context, m->words, 4, 12);
    ASSERT_VALUE(context, m->words, 5, 1);
    assert_true(*m->sum == 0);
    m->works[NODES - 2].kind = RONDO_NODE_KERNEL;
    ASSERT_OK(rondo_graph_patch(m->s.graph, m->patches, NODES));
    memory_replay(m->s.graph, m->s.stream);
    for (uint32_t i = 0; i < NODES; i += 3331) {
        const uint32_t expected[] = {i, 3 * (NODES - 1 - i), 1 + i, 1};
        ASSERT_VALUE(context, m->words, i, expected[choose_kind(i)]);
    }
    assert_true(*m->sum == sum);
    suite_free(context, RONDO_MEMORY_DEVICE, m->words);
    suite_free(context, RONDO_MEMORY_PINNED, m->pinned);
    suite_free(context, RONDO_MEMORY_PINNED, m->sum);
    close_scene(&m->s);
    free(m);
}

// ---- errors name what they are about ----------------------------------------------------------

SUITE_CASE_EXECUTED(test_conformance_patch__errors_name_graph_and_node) {
    scene s = open_scene(context, RONDO_KEEP_TEMPLATE);
    rondo_event *event = suite_create_event(s.context, RONDO_EVENT_EXTERNAL);
    uint32_t *seen = suite_allocate(s.context, RONDO_MEMORY_PINNED, COUNT);
    const rondo_work fill = node_fill_work(s.x, 1, 1);
    const rondo_work copy = node_copy_work(s.x, seen, 4, RONDO_COPY_HOST_TO_DEVICE);
    const rondo_work call = {.struct_size = sizeof call,
                             .kind = RONDO_NODE_HOST,
                             .name = "count",
                             .function = count_call,
                             .arguments = &seen,
                             .argument_bytes = sizeof seen};
    memory_begin(s.graph, s.stream);
    const rondo_node kernel_node = node_add_affine(s.context, s.stream, s.x, COUNT, 1, 1);
    const rondo_node fill_node = node_add(s.stream, &fill);
    const rondo_node copy_node = node_add(s.stream, &copy);
    const rondo_node call_node = node_add(s.stream, &call);
    ASSERT_OK(rondo_event_record(event, s.stream));
    rondo_node event_node;
    ASSERT_OK(rondo_stream_get_last_node(s.stream, &event_node));
    memory_end(s.graph);

    const suite_affine_arguments arguments = {s.x, COUNT, 1, 1};
    rondo_launch short_launch = suite_describe_affine(s.context, &arguments);
    short_launch.argument_bytes = 12;
    const rondo_work short_work = node_kernel_work(&short_launch);
    const rondo_work no_fill = node_fill_work(s.x, 1, 0);
    const rondo_work turned = node_copy_work(seen, s.x, 4, RONDO_COPY_DEVICE_TO_HOST);
    const struct {
        rondo_patch patch;
        rondo_status status;
        const char *text;
    } rows[] = {
        {{.node = kernel_node, .work = &short_work}, RONDO_STATUS_INVALID, "node 0 (affine)"},
        {{.node = kernel_node, .work = &fill},
         RONDO_STATUS_INVALID,
         "kind memset, node 0 (affine) of kind kernel"},
        {{.node = fill_node, .work = &no_fill}, RONDO_STATUS_INVALID, "node 1 would fill nothing"},
        {{.node = copy_node, .work = &turned}, RONDO_STATUS_INVALID, "node 2 copies in another"},
        {{.node = call_node, .toggle = RONDO_TOGGLE_DISABLE},
         RONDO_STATUS_UNSUPPORTED,
         "node 3 (count) is a host function"},
        {{.node = event_node, .work = &fill}, RONDO_STATUS_UNSUPPORTED, "node 4 of graph \"patch"},
        {{.node = {UINT64_MAX, 1}, .work = &fill},
         RONDO_STATUS_STATE,
         "graph \"patched\" recorded last"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        suite_assert_status(rondo_graph_patch(s.graph, &rows[i].patch, 1), rows[i].status,
                            rows[i].text, __FILE__, __LINE__);
        ASSERT_MESSAGE_HAS(rows[i].text);
        assert_string_equal(rondo_error_get_last()->op, "patched");
        assert_string_equal(rondo_error_get_last()->call, "rondo_graph_patch");
    }
    rondo_event_destroy(event);
    suite_free(s.context, RONDO_MEMORY_PINNED, seen);
    close_scene(&s);
}

// ---- threads ----------------------------------------------------------------------------------

enum { THREADS = 4 };

typedef struct member {
    suite_context *context;
    rondo_pool *pool;  // of all
    thread_outcome outcome;
} member;

static rondo_status add_affine(const member *self, rondo_stream *stream, uint32_t *x,
                               rondo_node *out_node) {
    rondo_status status = suite_affine(self->context, stream, x, COUNT, 1, 1);
    return status == RONDO_STATUS_OK ? rondo_stream_get_last_node(stream, out_node) : status;
}

// Takes memory and gives it back, records, patches, replays, records again.
static void work_alone(member *self, rondo_stream *stream, rondo_graph *graph, uint32_t *pinned) {
    uint32_t *x = NULL;
    for (uint32_t round = 0; round < (uint32_t)suite_rounds(20, 2); ++round) {
        void *address = NULL;
        rondo_node node = {0};
        STEP(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
        STEP(rondo_pool_allocate(self->pool, stream, COUNT * sizeof *x, &address));
        x = address;
        STEP(rondo_stream_fill(stream, x, self->outcome.number, 4, COUNT));
        STEP(add_affine(self, stream, x, &node));
        STEP(rondo_graph_capture_end(graph));
        for (uint32_t i = 0; i < 8; ++i) {
            const rondo_patch off = {.node = node, .toggle = RONDO_TOGGLE_DISABLE};
            const rondo_patch on = {.node = node, .toggle = RONDO_TOGGLE_ENABLE};
            STEP(node_patch_affine(self->context, graph, node, x, COUNT, 3, round + i));
            STEP(rondo_graph_patch(graph, i % 2 == 0 ? &on : &off, 1));
            STEP(rondo_graph_replay(graph, stream));
            self->outcome.expected +=
                i % 2 == 0 ? self->outcome.number * 3 + round + i : self->outcome.number;
            STEP(rondo_stream_copy(stream, pinned, x, sizeof *x, RONDO_COPY_DEVICE_TO_HOST));
            STEP(rondo_stream_synchronize(stream));
            self->outcome.got += *pinned;
        }
        STEP(rondo_pool_free(self->pool, x));
        STEP(rondo_graph_reset(graph));
    }
}

static void *run_alone(void *data) {
    member *self = data;
    rondo_stream *stream = NULL;
    rondo_graph *graph = NULL;
    void *pinned = NULL;
    STEP(rondo_stream_create(self->context->device, NULL, &stream));
    STEP(rondo_graph_create(self->context->device, NULL, &graph));
    STEP(rondo_memory_allocate(self->context->device, RONDO_MEMORY_PINNED, 64, &pinned));
    if (self->outcome.status == RONDO_STATUS_OK) {
        work_alone(self, stream, graph, pinned);
    }
    rondo_graph_destroy(graph);
    rondo_stream_destroy(stream);
    rondo_memory_free(self->context->device, pinned);
    return NULL;
}

SUITE_CASE_EXECUTED(test_conformance_patch__threads_patch_graphs_of_their_own) {
    rondo_pool *pool = memory_create_pool(context, RONDO_MEMORY_DEVICE);
    member members[THREADS];
    for (uint32_t i = 0; i < THREADS; ++i) {
        members[i] = (member){.context = context, .pool = pool, .outcome.number = i + 1};
        thread_start(&members[i].outcome, run_alone, &members[i]);
    }
    for (int i = 0; i < THREADS; ++i) {
        thread_join(&members[i].outcome);
    }
    for (int i = 0; i < THREADS; ++i) {
        thread_check(&members[i].outcome);
    }
    rondo_pool_release(pool);
}

// One graph that two threads use in turns: one patches, the other one replays.
typedef struct handover {
    member patcher;
    member replayer;
    rondo_graph *graph;
    rondo_stream *stream;
    rondo_node node;
    uint32_t *x;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint32_t turn;  // even: the patcher's
    uint32_t end;
} handover;

static bool await_turn(handover *h, uint32_t turn) {
    pthread_mutex_lock(&h->lock);
    while (h->turn != turn && h->turn < h->end) {
        pthread_cond_wait(&h->changed, &h->lock);
    }
    bool is_over = h->turn >= h->end;
    pthread_mutex_unlock(&h->lock);
    return !is_over;
}

static void end_turn(handover *h, const member *self) {
    pthread_mutex_lock(&h->lock);
    h->turn = self->outcome.status == RONDO_STATUS_OK ? h->turn + 1 : h->end;
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->lock);
}

static void *run_patcher(void *data) {
    handover *h = data;
    member *self = &h->patcher;
    for (uint32_t turn = 0; await_turn(h, turn); turn += 2) {
        STEP(node_patch_affine(self->context, h->graph, h->node, h->x, COUNT, 3, turn));
        end_turn(h, self);
    }
    return NULL;
}

static void *run_replayer(void *data) {
    handover *h = data;
    member *self = &h->replayer;
    for (uint32_t turn = 1; await_turn(h, turn); turn += 2) {
        STEP(rondo_graph_replay(h->graph, h->stream));  // and does not wait
        end_turn(h, self);
    }
    return NULL;
}

SUITE_CASE_EXECUTED(test_conformance_patch__a_graph_is_handed_over_in_turns) {
    scene s = open_scene(context, RONDO_KEEP_EXECUTABLE);
    memory_begin(s.graph, s.stream);
    rondo_node node = node_add_affine(context, s.stream, s.x, COUNT, 1, 1);
    memory_end(s.graph);
    handover h = {.patcher = {.context = context, .outcome.number = 1},
                  .replayer = {.context = context, .outcome.number = 2},
                  .graph = s.graph,
                  .stream = s.stream,
                  .node = node,
                  .x = s.x,
                  .end = 2 * (uint32_t)suite_rounds(200, 4)};
    pthread_mutex_init(&h.lock, NULL);
    pthread_cond_init(&h.changed, NULL);
    thread_start(&h.patcher.outcome, run_patcher, &h);
    thread_start(&h.replayer.outcome, run_replayer, &h);
    thread_join(&h.patcher.outcome);
    thread_join(&h.replayer.outcome);
    thread_check(&h.patcher.outcome);
    thread_check(&h.replayer.outcome);
    uint32_t expected = 1;
    for (uint32_t turn = 0; turn < h.end; turn += 2) {
        expected = expected * 3 + turn;
    }
    ASSERT_OK(rondo_stream_synchronize(s.stream));
    ASSERT_VALUE(context, s.x, 0, expected);
    pthread_cond_destroy(&h.changed);
    pthread_mutex_destroy(&h.lock);
    close_scene(&s);
}

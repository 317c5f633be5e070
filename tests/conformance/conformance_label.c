// Label scopes: which recorded nodes carry which path.
#include "backend/backend.h"
#include "backend/cuda/cuda_device.h"
#include "conformance.h"
#include "graph/graph_internal.h"
#include "rondo/control.h"
#include "rondo/label.h"
#include "rondo/report.h"

// The nodes of a graph are found by what they fill: node i of a test fills word i.
typedef struct scene {
    suite_context *context;
    rondo_graph *graph;
    rondo_stream *a;
    rondo_stream *b;
    rondo_stream *c;
    rondo_event *events[6];
    uint32_t *x;
    uint32_t count;  // words filled so far
} scene;

enum { WORDS = 8192 };

static scene create_scene(suite_context *context) {
    scene s = {.context = context,
               .graph = suite_create_graph(context, true),
               .a = suite_create_stream(context),
               .b = suite_create_stream(context),
               .c = suite_create_stream(context),
               .x = suite_allocate(context, RONDO_MEMORY_DEVICE, WORDS)};
    for (int i = 0; i < 6; ++i) {
        s.events[i] = suite_create_event(context, 0);
    }
    return s;
}

static void destroy_scene(scene *s) {
    rondo_graph_destroy(s->graph);
    for (int i = 0; i < 6; ++i) {
        rondo_event_destroy(s->events[i]);
    }
    rondo_stream_destroy(s->c);
    rondo_stream_destroy(s->b);
    rondo_stream_destroy(s->a);
    suite_free(s->context, RONDO_MEMORY_DEVICE, s->x);
}

static void begin(scene *s) {
    s->count = 0;
    ASSERT_OK(rondo_graph_capture_begin(s->graph, s->a, RONDO_CAPTURE_THREAD_LOCAL));
}

static uint32_t work(scene *s, rondo_stream *stream) {
    assert_true(s->count < WORDS);
    ASSERT_OK(rondo_stream_fill(stream, s->x + s->count, s->count, 4, 1));
    return s->count++;
}

static void order(scene *s, rondo_stream *from, rondo_stream *to, int event) {
    ASSERT_OK(rondo_event_record(s->events[event], from));
    ASSERT_OK(rondo_stream_wait_event(to, s->events[event]));
}

static const char *label_of(scene *s, uint32_t word) {
    const rondo__backend *backend = s->context->device->backend;
    size_t count = 0;
    ASSERT_OK(backend->count_nodes(s->graph->recorded, &count));
    for (size_t i = 0; i < count; ++i) {
        rondo__node_info info;
        ASSERT_OK(backend->describe_node(s->graph->recorded, i, &info));
        if (info.kind == RONDO__NODE_FILL && info.destination == s->x + word) {
            return rondo__graph_get_node_label(s->graph, i);
        }
    }
    fail_msg("no node fills word %u", (unsigned)word);
    return "";
}

static void check_label(scene *s, uint32_t word, const char *label, int line) {
    if (strcmp(label_of(s, word), label) != 0) {
        fail_msg("line %d: word %u is labelled \"%s\", not \"%s\"", line, (unsigned)word,
                 label_of(s, word), label);
    }
}
#define ASSERT_LABEL(scene, word, label) check_label((scene), (word), (label), __LINE__)

static bool append_text(void *user_data, const char *text, size_t bytes) {
    char *dumped = user_data;
    size_t length = strlen(dumped);
    assert_true(length + bytes < 8192);
    memcpy(dumped + length, text, bytes);
    dumped[length + bytes] = '\0';
    return true;
}

static void test_conformance_label__scopes_nest(void **state) {
    suite_context *context = suite_get_context(state);
    scene s = create_scene(context);
    begin(&s);
    uint32_t before = work(&s, s.a);
    ASSERT_OK(rondo_label_push(s.a, "layer3"));
    uint32_t first = work(&s, s.a);
    uint32_t second = work(&s, s.a);
    ASSERT_OK(rondo_label_push(s.a, "attention"));
    assert_string_equal(rondo_label_get_path(s.a), "layer3/attention");
    uint32_t inner = work(&s, s.a);
    ASSERT_OK(rondo_label_pop(s.a));
    uint32_t third = work(&s, s.a);
    ASSERT_OK(rondo_label_push(s.a, "empty"));
    ASSERT_OK(rondo_label_pop(s.a));
    ASSERT_OK(rondo_label_push(s.a, "norm"));
    uint32_t norm = work(&s, s.a);
    ASSERT_OK(rondo_label_pop(s.a));
    ASSERT_OK(rondo_label_pop(s.a));
    uint32_t after = work(&s, s.a);
    ASSERT_OK(rondo_graph_capture_end(s.graph));
    ASSERT_LABEL(&s, before, "");
    ASSERT_LABEL(&s, first, "layer3");
    ASSERT_LABEL(&s, second, "layer3");
    ASSERT_LABEL(&s, inner, "layer3/attention");
    ASSERT_LABEL(&s, third, "layer3");
    ASSERT_LABEL(&s, norm, "layer3/norm");
    ASSERT_LABEL(&s, after, "");
    assert_string_equal(rondo__graph_get_node_label(s.graph, 1000), "");
    // Dumps show it, in both forms.
    char dumped[8192] = "";
    ASSERT_OK(rondo_graph_dump(s.graph, RONDO_DUMP_JSON, append_text, dumped));
    assert_non_null(strstr(dumped, "\"label\": \"layer3/attention\""));
    dumped[0] = '\0';
    ASSERT_OK(rondo_graph_dump(s.graph, RONDO_DUMP_DOT, append_text, dumped));
    assert_non_null(strstr(dumped, "in layer3/attention"));
    // Replays run as ever, and a reset forgets.
    ASSERT_OK(rondo_graph_replay(s.graph, s.b));
    ASSERT_OK(rondo_stream_synchronize(s.b));
    assert_int_equal(suite_get(context, s.x, norm), norm);
    ASSERT_OK(rondo_graph_reset(s.graph));
    assert_string_equal(rondo__graph_get_node_label(s.graph, 1), "");
    begin(&s);
    uint32_t plain = work(&s, s.a);
    ASSERT_OK(rondo_graph_capture_end(s.graph));
    ASSERT_LABEL(&s, plain, "");
    destroy_scene(&s);
}

static void test_conformance_label__streams_forked_inside_carry_it(void **state) {
    suite_context *context = suite_get_context(state);
    scene s = create_scene(context);
    begin(&s);
    uint32_t a1 = work(&s, s.a);
    ASSERT_OK(rondo_label_push(s.a, "x"));
    uint32_t a2 = work(&s, s.a);
    order(&s, s.a, s.b, 0);
    order(&s, s.a, s.c, 1);
    ASSERT_OK(rondo_label_push(s.b, "y"));
    uint32_t b1 = work(&s, s.b);
    ASSERT_OK(rondo_label_push(s.b, "z"));
    uint32_t b2 = work(&s, s.b);
    ASSERT_OK(rondo_label_pop(s.b));
    ASSERT_OK(rondo_label_pop(s.b));
    uint32_t b3 = work(&s, s.b);
    uint32_t c1 = work(&s, s.c);
    uint32_t a3 = work(&s, s.a);
    order(&s, s.c, s.b, 2);
    uint32_t b4 = work(&s, s.b);
    order(&s, s.b, s.a, 3);
    uint32_t a4 = work(&s, s.a);
    ASSERT_OK(rondo_label_pop(s.a));
    uint32_t a5 = work(&s, s.a);
    ASSERT_OK(rondo_graph_capture_end(s.graph));
    ASSERT_LABEL(&s, a1, "");
    ASSERT_LABEL(&s, a2, "x");
    ASSERT_LABEL(&s, b1, "x/y");
    ASSERT_LABEL(&s, b2, "x/y/z");
    ASSERT_LABEL(&s, b3, "x");
    ASSERT_LABEL(&s, c1, "x");
    ASSERT_LABEL(&s, a3, "x");
    ASSERT_LABEL(&s, b4, "x");
    ASSERT_LABEL(&s, a4, "x");
    ASSERT_LABEL(&s, a5, "");
    destroy_scene(&s);
}

// A stream that forked before the scope and joins inside it brings only what it recorded meanwhile.
static void test_conformance_label__older_work_stays_outside(void **state) {
    suite_context *context = suite_get_context(state);
    scene s = create_scene(context);
    begin(&s);
    uint32_t a1 = work(&s, s.a);
    uint32_t a2 = work(&s, s.a);
    order(&s, s.a, s.b, 0);
    uint32_t a3 = work(&s, s.a);
    uint32_t b1 = work(&s, s.b);
    ASSERT_OK(rondo_label_push(s.a, "x"));
    uint32_t b2 = work(&s, s.b);
    uint32_t a4 = work(&s, s.a);
    order(&s, s.b, s.a, 1);
    uint32_t a5 = work(&s, s.a);
    ASSERT_OK(rondo_label_pop(s.a));
    // Two streams of one thread, each with a scope of its own, work by turns.
    order(&s, s.a, s.b, 2);
    ASSERT_OK(rondo_label_push(s.a, "left"));
    ASSERT_OK(rondo_label_push(s.b, "right"));
    uint32_t a6 = work(&s, s.a);
    uint32_t b3 = work(&s, s.b);
    uint32_t a7 = work(&s, s.a);
    ASSERT_OK(rondo_label_pop(s.a));
    ASSERT_OK(rondo_label_pop(s.b));
    order(&s, s.b, s.a, 3);
    ASSERT_OK(rondo_graph_capture_end(s.graph));
    ASSERT_LABEL(&s, a1, "");
    ASSERT_LABEL(&s, a2, "");
    ASSERT_LABEL(&s, a3, "");
    ASSERT_LABEL(&s, b1, "");
    ASSERT_LABEL(&s, b2, "x");
    ASSERT_LABEL(&s, a4, "x");
    ASSERT_LABEL(&s, a5, "x");
    ASSERT_LABEL(&s, a6, "left");
    ASSERT_LABEL(&s, a7, "left");
    ASSERT_LABEL(&s, b3, "right");
    destroy_scene(&s);
}

static void test_conformance_label__scopes_may_span_captures(void **state) {
    suite_context *context = suite_get_context(state);
    scene s = create_scene(context);
    ASSERT_OK(rondo_label_push(s.a, "model"));
    begin(&s);
    uint32_t first = work(&s, s.a);
    ASSERT_OK(rondo_label_push(s.a, "layer"));
    uint32_t second = work(&s, s.a);
    ASSERT_OK(rondo_graph_capture_end(s.graph));
    ASSERT_OK(rondo_label_pop(s.a));
    ASSERT_LABEL(&s, first, "model");
    ASSERT_LABEL(&s, second, "model/layer");
    ASSERT_OK(rondo_graph_reset(s.graph));
    // Without a push inside, too; and a scope that is open before may be closed inside.
    begin(&s);
    first = work(&s, s.a);
    ASSERT_OK(rondo_graph_capture_end(s.graph));
    ASSERT_LABEL(&s, first, "model");
    ASSERT_OK(rondo_graph_reset(s.graph));
    begin(&s);
    first = work(&s, s.a);
    ASSERT_OK(rondo_label_pop(s.a));
    second = work(&s, s.a);
    ASSERT_OK(rondo_graph_capture_end(s.graph));
    ASSERT_LABEL(&s, first, "model");
    ASSERT_LABEL(&s, second, "");
    destroy_scene(&s);
}

static void test_conformance_label__misuse_is_harmless(void **state) {
    suite_context *context = suite_get_context(state);
    scene s = create_scene(context);
    ASSERT_STATUS(rondo_label_pop(s.a), STATE);
    ASSERT_MESSAGE_HAS("no label is open");
    ASSERT_STATUS(rondo_label_push(s.a, NULL), INVALID);
    ASSERT_STATUS(rondo_label_push(s.a, ""), INVALID);
    ASSERT_STATUS(rondo_label_push(NULL, "x"), INVALID);
    ASSERT_STATUS(rondo_label_pop(NULL), INVALID);
    assert_string_equal(rondo_label_get_path(NULL), "");
    begin(&s);
    ASSERT_STATUS(rondo_label_pop(s.a), STATE);
    ASSERT_OK(rondo_label_push(s.a, "a \"quoted\" label"));
    uint32_t word = work(&s, s.a);
    ASSERT_OK(rondo_label_pop(s.a));
    ASSERT_STATUS(rondo_label_pop(s.a), STATE);
    ASSERT_OK(rondo_graph_capture_end(s.graph));
    ASSERT_LABEL(&s, word, "a \"quoted\" label");
    ASSERT_OK(rondo_graph_reset(s.graph));
    // A capture that fails closes what was opened inside, and nothing else.
    ASSERT_OK(rondo_label_push(s.a, "outer"));
    begin(&s);
    ASSERT_OK(rondo_label_push(s.a, "inner"));
    ASSERT_STATUS(rondo_stream_synchronize(s.a), STATE);
    ASSERT_OK(rondo_label_push(s.a, "innermost"));
    ASSERT_STATUS(rondo_graph_capture_end(s.graph), STATE);
    assert_string_equal(rondo_label_get_path(s.a), "outer");
    begin(&s);
    ASSERT_OK(rondo_label_push(s.a, "inner"));
    rondo_graph_capture_abort(s.graph);
    assert_string_equal(rondo_label_get_path(s.a), "outer");
    ASSERT_OK(rondo_label_pop(s.a));
    ASSERT_STATUS(rondo_label_pop(s.a), STATE);
    // A stream may be destroyed with scopes open.
    ASSERT_OK(rondo_label_push(s.b, "left open"));
    destroy_scene(&s);
}

// More nodes than are counted at each scope.
static void test_conformance_label__large_captures(void **state) {
    suite_context *context = suite_get_context(state);
    scene s = create_scene(context);
    char name[32];
    begin(&s);
    for (int layer = 0; layer < 600; ++layer) {
        snprintf(name, sizeof name, "layer%d", layer);
        ASSERT_OK(rondo_label_push(s.a, name));
        (void)work(&s, s.a);
        ASSERT_OK(rondo_label_push(s.a, "inner"));
        (void)work(&s, s.a);
        (void)work(&s, s.a);
        ASSERT_OK(rondo_label_pop(s.a));
        ASSERT_OK(rondo_label_pop(s.a));
    }
    ASSERT_OK(rondo_graph_capture_end(s.graph));
    static const int layers[] = {0, 1, 299, 340, 341, 342, 500, 599};
    for (size_t i = 0; i < sizeof layers / sizeof *layers; ++i) {
        uint32_t word = 3 * (uint32_t)layers[i];
        snprintf(name, sizeof name, "layer%d", layers[i]);
        ASSERT_LABEL(&s, word, name);
        snprintf(name, sizeof name, "layer%d/inner", layers[i]);
        ASSERT_LABEL(&s, word + 1, name);
        ASSERT_LABEL(&s, word + 2, name);
    }
    destroy_scene(&s);
}

static bool has_conditional_labelled(scene *s, const char *label) {
    const rondo__backend *backend = s->context->device->backend;
    size_t count = 0;
    ASSERT_OK(backend->count_nodes(s->graph->recorded, &count));
    for (size_t i = 0; i < count; ++i) {
        rondo__node_info info;
        ASSERT_OK(backend->describe_node(s->graph->recorded, i, &info));
        if (info.kind == RONDO__NODE_CONDITIONAL) {
            return strcmp(rondo__graph_get_node_label(s->graph, i), label) == 0;
        }
    }
    return false;
}

// A conditional node carries the label; work after it goes on as before. Breaks in bodies are told.
static void test_conformance_label__conditional_nodes_carry_it(void **state) {
    suite_context *context = suite_get_context(state);
    if (rondo_device_supports(context->device, RONDO_FEATURE_IF) != RONDO_STATUS_OK) {
        print_message("skipped: %s\n", rondo_error_get_last()->message);
        skip();
    }
    scene s = create_scene(context);
    rondo_scope scope;
    rondo_stream *body = NULL;
    begin(&s);
    ASSERT_OK(rondo_label_push(s.a, "branchy"));
    uint32_t before = work(&s, s.a);
    ASSERT_OK(rondo_scope_begin(s.a, RONDO_SCOPE_IF, s.x, 0, &scope));
    ASSERT_OK(rondo_scope_enter(scope, 0, &body));
    ASSERT_OK(rondo_label_push(body, "inside"));
    ASSERT_OK(rondo_stream_fill(body, s.x + 100, 1, 4, 1));
    ASSERT_OK(rondo_label_pop(body));
    ASSERT_OK(rondo_scope_leave(scope));
    ASSERT_OK(rondo_scope_end(scope));
    uint32_t after = work(&s, s.a);
    ASSERT_OK(rondo_label_pop(s.a));
    uint32_t outside = work(&s, s.a);
    ASSERT_OK(rondo_graph_capture_end(s.graph));
    ASSERT_LABEL(&s, before, "branchy");
    ASSERT_LABEL(&s, after, "branchy");
    ASSERT_LABEL(&s, outside, "");
    assert_true(has_conditional_labelled(&s, "branchy"));
    ASSERT_OK(rondo_graph_reset(s.graph));
    begin(&s);
    ASSERT_OK(rondo_label_push(s.a, "branchy"));
    (void)work(&s, s.a);
    ASSERT_OK(rondo_scope_begin(s.a, RONDO_SCOPE_IF, s.x, 0, &scope));
    ASSERT_OK(rondo_scope_enter(scope, 0, &body));
    ASSERT_OK(rondo_stream_fill(body, s.x + 100, 1, 4, 1));
    ASSERT_STATUS(rondo_stream_synchronize(body), STATE);
    (void)!rondo_scope_leave(scope);
    (void)!rondo_scope_end(scope);
    ASSERT_STATUS(rondo_graph_capture_end(s.graph), STATE);
    rondo_capture_report report = {.struct_size = sizeof report};
    ASSERT_OK(rondo_graph_get_report(s.graph, &report));
    assert_int_equal(report.cause, RONDO_CAUSE_SYNCHRONIZE);
    assert_string_equal(report.label, "branchy");
    assert_string_equal(report.last_node_name, "memset");
    // A scope that is still open at the end is not taken for something else.
    begin(&s);
    ASSERT_OK(rondo_scope_begin(s.a, RONDO_SCOPE_IF, s.x, 0, &scope));
    ASSERT_OK(rondo_scope_enter(scope, 0, &body));
    ASSERT_STATUS(rondo_graph_capture_end(s.graph), STATE);
    ASSERT_OK(rondo_graph_get_report(s.graph, &report));
    assert_int_equal(report.cause, RONDO_CAUSE_OTHER);
    assert_non_null(strstr(report.message, "scope"));
    destroy_scene(&s);
}

// The program's own driver calls, also a fork that Rondo does not see.
static void test_conformance_label__foreign_work_carries_it(void **state) {
    suite_context *context = suite_get_context(state);
    if (context->is_host) {
        print_message("skipped: the host has no foreign work\n");
        skip();
    }
    rondo__cuda_device *device = rondo__cuda_device_of(context->device);
    const rondo__cuda_api *api = device->api;
    rondo__cu_context popped = NULL;
    rondo__cu_event fork = NULL;
    rondo__cu_event join = NULL;
    scene s = create_scene(context);
    rondo__cu_stream a = (rondo__cu_stream)rondo_stream_get_native(s.a);
    rondo__cu_stream b = (rondo__cu_stream)rondo_stream_get_native(s.b);
    rondo__cu_address words = (rondo__cu_address)(uintptr_t)s.x;
    assert_int_equal(api->cuCtxPushCurrent(device->context), 0);
    assert_int_equal(api->cuEventCreate(&fork, RONDO__CU_EVENT_DISABLE_TIMING), 0);
    assert_int_equal(api->cuEventCreate(&join, RONDO__CU_EVENT_DISABLE_TIMING), 0);
    begin(&s);
    ASSERT_OK(rondo_label_push(s.a, "layer3"));
    assert_int_equal(api->cuMemsetD32Async(words + 4 * 0, 0, 1, a), 0);
    assert_int_equal(api->cuEventRecord(fork, a), 0);
    assert_int_equal(api->cuStreamWaitEvent(b, fork, 0), 0);
    assert_int_equal(api->cuMemsetD32Async(words + 4 * 1, 0, 1, b), 0);
    ASSERT_OK(rondo_label_push(s.b, "side"));
    assert_int_equal(api->cuMemsetD32Async(words + 4 * 2, 0, 1, b), 0);
    ASSERT_OK(rondo_label_pop(s.b));
    assert_int_equal(api->cuEventRecord(join, b), 0);
    assert_int_equal(api->cuStreamWaitEvent(a, join, 0), 0);
    assert_int_equal(api->cuMemsetD32Async(words + 4 * 3, 0, 1, a), 0);
    ASSERT_OK(rondo_label_pop(s.a));
    assert_int_equal(api->cuMemsetD32Async(words + 4 * 4, 0, 1, a), 0);
    ASSERT_OK(rondo_graph_capture_end(s.graph));
    ASSERT_LABEL(&s, 0, "layer3");
    ASSERT_LABEL(&s, 1, "layer3");
    ASSERT_LABEL(&s, 2, "layer3/side");
    ASSERT_LABEL(&s, 3, "layer3");
    ASSERT_LABEL(&s, 4, "");
    // Of a break that Rondo did not see, the last good node is the program's own.
    ASSERT_OK(rondo_graph_reset(s.graph));
    begin(&s);
    assert_int_equal(api->cuMemsetD32Async(words, 0, 1, a), 0);
    ASSERT_OK(rondo_label_push(s.a, "layer4"));
    assert_int_equal(api->cuMemsetD32Async(words + 4, 0, 1, a), 0);
    ASSERT_OK(rondo_label_push(s.a, "norm"));
    assert_int_not_equal(api->cuStreamSynchronize(a), 0);
    ASSERT_OK(rondo_label_pop(s.a));
    ASSERT_OK(rondo_label_pop(s.a));
    ASSERT_STATUS(rondo_graph_capture_end(s.graph), STATE);
    rondo_capture_report report = {.struct_size = sizeof report};
    ASSERT_OK(rondo_graph_get_report(s.graph, &report));
    assert_int_equal(report.cause, RONDO_CAUSE_UNSEEN_CALL);
    assert_string_equal(report.label, "layer4/norm");
    assert_int_equal(report.last_node_index, 1);
    assert_string_equal(report.last_node_name, "memset");
    assert_string_equal(report.last_node_label, "layer4");
    assert_int_equal(api->cuEventDestroy(join), 0);
    assert_int_equal(api->cuEventDestroy(fork), 0);
    assert_int_equal(api->cuCtxPopCurrent(&popped), 0);
    destroy_scene(&s);
}

static const suite_entry label_cases[] = {
    SUITE_CASE(test_conformance_label__scopes_nest),
    SUITE_CASE(test_conformance_label__streams_forked_inside_carry_it),
    SUITE_CASE(test_conformance_label__older_work_stays_outside),
    SUITE_CASE(test_conformance_label__scopes_may_span_captures),
    SUITE_CASE(test_conformance_label__misuse_is_harmless),
    SUITE_CASE(test_conformance_label__large_captures),
    SUITE_CASE(test_conformance_label__conditional_nodes_carry_it),
    SUITE_CASE(test_conformance_label__foreign_work_carries_it),
    {NULL, NULL, false},
};
SUITE_LIST(label);

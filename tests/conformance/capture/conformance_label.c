// Label scopes: which recorded nodes carry which path.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/capture/label_support.h"
#include "rondo/inspect.h"
#include "rondo/report.h"
#include "support/driver.h"

SUITE_CASE(test_conformance_label__scopes_nest) {
    label_scene s = label_create_scene(context);
    label_begin(&s);
    uint32_t before = LABEL_WORK(&s, s.a, "");
    ASSERT_OK(rondo_label_push(s.a, "layer3"));
    LABEL_WORK(&s, s.a, "layer3");
    LABEL_WORK(&s, s.a, "layer3");
    ASSERT_OK(rondo_label_push(s.a, "attention"));
    assert_string_equal(rondo_label_get_path(s.a), "layer3/attention");
    uint32_t inner = LABEL_WORK(&s, s.a, "layer3/attention");
    ASSERT_OK(rondo_label_pop(s.a));
    LABEL_WORK(&s, s.a, "layer3");
    ASSERT_OK(rondo_label_push(s.a, "empty"));
    ASSERT_OK(rondo_label_pop(s.a));
    ASSERT_OK(rondo_label_push(s.a, "norm"));
    uint32_t norm = LABEL_WORK(&s, s.a, "layer3/norm");
    ASSERT_OK(rondo_label_pop(s.a));
    ASSERT_OK(rondo_label_pop(s.a));
    LABEL_WORK(&s, s.a, "");
    label_end(&s);
    // Dumps show it, in both forms.
    ASSERT_DUMPED(&s, before, "");
    ASSERT_DUMPED(&s, inner, "layer3/attention");
    // Replays run as ever, and a reset forgets.
    ASSERT_OK(rondo_graph_replay(s.graph, s.b));
    ASSERT_OK(rondo_stream_synchronize(s.b));
    ASSERT_VALUE(context, s.x, norm, norm);
    rondo_graph_node node = {.struct_size = sizeof node};
    ASSERT_STATUS(rondo_graph_get_node(s.graph, 1000, &node), INVALID);
    ASSERT_OK(rondo_graph_reset(s.graph));
    ASSERT_STATUS(rondo_graph_get_node(s.graph, 1, &node), STATE);
    label_begin(&s);
    LABEL_WORK(&s, s.a, "");
    label_end(&s);
    label_destroy_scene(&s);
}

SUITE_CASE(test_conformance_label__streams_forked_inside_carry_it) {
    label_scene s = label_create_scene(context);
    label_begin(&s);
    LABEL_WORK(&s, s.a, "");
    ASSERT_OK(rondo_label_push(s.a, "x"));
    LABEL_WORK(&s, s.a, "x");
    label_order(&s, s.a, s.b, 0);
    label_order(&s, s.a, s.c, 1);
    ASSERT_OK(rondo_label_push(s.b, "y"));
    LABEL_WORK(&s, s.b, "x/y");
    ASSERT_OK(rondo_label_push(s.b, "z"));
    LABEL_WORK(&s, s.b, "x/y/z");
    ASSERT_OK(rondo_label_pop(s.b));
    ASSERT_OK(rondo_label_pop(s.b));
    LABEL_WORK(&s, s.b, "x");
    LABEL_WORK(&s, s.c, "x");
    LABEL_WORK(&s, s.a, "x");
    label_order(&s, s.c, s.b, 2);
    LABEL_WORK(&s, s.b, "x");
    label_order(&s, s.b, s.a, 3);
    LABEL_WORK(&s, s.a, "x");
    ASSERT_OK(rondo_label_pop(s.a));
    LABEL_WORK(&s, s.a, "");
    label_end(&s);
    label_destroy_scene(&s);
}

// A stream that forked before the scope and joins inside it brings only what it recorded meanwhile.
SUITE_CASE(test_conformance_label__older_work_stays_outside) {
    label_scene s = label_create_scene(context);
    label_begin(&s);
    LABEL_WORK(&s, s.a, "");
    LABEL_WORK(&s, s.a, "");
    label_order(&s, s.a, s.b, 0);
    LABEL_WORK(&s, s.a, "");
    LABEL_WORK(&s, s.b, "");
    ASSERT_OK(rondo_label_push(s.a, "x"));
    LABEL_WORK(&s, s.b, "x");
    LABEL_WORK(&s, s.a, "x");
    label_order(&s, s.b, s.a, 1);
    LABEL_WORK(&s, s.a, "x");
    ASSERT_OK(rondo_label_pop(s.a));
    // Two streams of one thread, each with a scope of its own, work by turns.
    label_order(&s, s.a, s.b, 2);
    ASSERT_OK(rondo_label_push(s.a, "left"));
    ASSERT_OK(rondo_label_push(s.b, "right"));
    LABEL_WORK(&s, s.a, "left");
    LABEL_WORK(&s, s.b, "right");
    LABEL_WORK(&s, s.a, "left");
    ASSERT_OK(rondo_label_pop(s.a));
    ASSERT_OK(rondo_label_pop(s.b));
    label_order(&s, s.b, s.a, 3);
    label_end(&s);
    label_destroy_scene(&s);
}

// Layer after layer with a side stream that waits for each: what the main stream records there is
// not the side's.
SUITE_CASE(test_conformance_label__a_side_stream_comes_back) {
    label_scene s = label_create_scene(context);
    static const char *const layers[] = {"one", "two", "three"};
    static const char *const sides[] = {"one/side", "two/side", "three/side"};
    label_begin(&s);
    for (int i = 0; i < 3; ++i) {
        ASSERT_OK(rondo_label_push(s.a, layers[i]));
        LABEL_WORK(&s, s.a, layers[i]);
        label_order(&s, s.a, s.b, 0);
        ASSERT_OK(rondo_label_push(s.b, "side"));
        LABEL_WORK(&s, s.b, sides[i]);
        LABEL_WORK(&s, s.a, layers[i]);
        ASSERT_OK(rondo_label_pop(s.b));
        LABEL_WORK(&s, s.b, layers[i]);
        label_order(&s, s.b, s.a, 1);
        LABEL_WORK(&s, s.a, layers[i]);
        ASSERT_OK(rondo_label_pop(s.a));
    }
    LABEL_WORK(&s, s.a, "");
    label_end(&s);
    label_destroy_scene(&s);
}

SUITE_CASE(test_conformance_label__scopes_may_span_captures) {
    label_scene s = label_create_scene(context);
    ASSERT_OK(rondo_label_push(s.a, "model"));
    label_begin(&s);
    LABEL_WORK(&s, s.a, "model");
    ASSERT_OK(rondo_label_push(s.a, "layer"));
    LABEL_WORK(&s, s.a, "model/layer");
    label_end(&s);
    ASSERT_OK(rondo_label_pop(s.a));
    ASSERT_OK(rondo_graph_reset(s.graph));
    // Without a push inside, too; and a scope that is open before may be closed inside.
    label_begin(&s);
    LABEL_WORK(&s, s.a, "model");
    label_end(&s);
    ASSERT_OK(rondo_graph_reset(s.graph));
    label_begin(&s);
    LABEL_WORK(&s, s.a, "model");
    ASSERT_OK(rondo_label_pop(s.a));
    LABEL_WORK(&s, s.a, "");
    label_end(&s);
    label_destroy_scene(&s);
}

SUITE_CASE(test_conformance_label__misuse_is_harmless) {
    label_scene s = label_create_scene(context);
    ASSERT_STATUS(rondo_label_pop(s.a), STATE);
    ASSERT_MESSAGE_HAS("no label is open");
    ASSERT_STATUS(rondo_label_push(s.a, NULL), INVALID);
    ASSERT_STATUS(rondo_label_push(s.a, ""), INVALID);
    ASSERT_STATUS(rondo_label_push(NULL, "x"), INVALID);
    ASSERT_STATUS(rondo_label_pop(NULL), INVALID);
    assert_string_equal(rondo_label_get_path(NULL), "");
    label_begin(&s);
    ASSERT_STATUS(rondo_label_pop(s.a), STATE);
    ASSERT_OK(rondo_label_push(s.a, "a \"quoted\" label"));
    LABEL_WORK(&s, s.a, "a \"quoted\" label");
    ASSERT_OK(rondo_label_pop(s.a));
    ASSERT_STATUS(rondo_label_pop(s.a), STATE);
    label_end(&s);
    ASSERT_OK(rondo_graph_reset(s.graph));
    // A capture that fails closes what was opened inside, and nothing else.
    ASSERT_OK(rondo_label_push(s.a, "outer"));
    label_begin(&s);
    ASSERT_OK(rondo_label_push(s.a, "inner"));
    ASSERT_STATUS(rondo_stream_synchronize(s.a), STATE);
    ASSERT_OK(rondo_label_push(s.a, "innermost"));
    ASSERT_STATUS(rondo_graph_capture_end(s.graph), STATE);
    assert_string_equal(rondo_label_get_path(s.a), "outer");
    label_begin(&s);
    ASSERT_OK(rondo_label_push(s.a, "inner"));
    rondo_graph_capture_abort(s.graph);
    assert_string_equal(rondo_label_get_path(s.a), "outer");
    ASSERT_OK(rondo_label_pop(s.a));
    ASSERT_STATUS(rondo_label_pop(s.a), STATE);
    // A stream may be destroyed with scopes open.
    ASSERT_OK(rondo_label_push(s.b, "left open"));
    label_destroy_scene(&s);
}

// More nodes than are counted at each scope.
SUITE_CASE(test_conformance_label__large_captures) {
    label_scene s = label_create_scene(context);
    char name[32];
    const int layer_count = suite_rounds(600, 8);
    const int ballast = suite_rounds(0, 1030);
    label_begin(&s);
    for (int i = 0; i < ballast; ++i) {
        ASSERT_OK(suite_affine(context, s.a, s.x, 1, 1, 0));
    }
    for (int layer = 0; layer < layer_count; ++layer) {
        snprintf(name, sizeof name, "layer%d", layer);
        ASSERT_OK(rondo_label_push(s.a, name));
        (void)label_work(&s, s.a);
        ASSERT_OK(rondo_label_push(s.a, "inner"));
        (void)label_work(&s, s.a);
        (void)label_work(&s, s.a);
        ASSERT_OK(rondo_label_pop(s.a));
        ASSERT_OK(rondo_label_pop(s.a));
    }
    ASSERT_OK(rondo_graph_capture_end(s.graph));
    static const int layers[] = {7, 0, 1, 299, 340, 341, 342, 500, 599};
    const int checks = suite_rounds((int)(sizeof layers / sizeof *layers), 1);
    for (int i = 0; i < checks; ++i) {
        uint32_t word = 3 * (uint32_t)layers[i];
        snprintf(name, sizeof name, "layer%d", layers[i]);
        ASSERT_LABEL(&s, word, name);
        snprintf(name, sizeof name, "layer%d/inner", layers[i]);
        ASSERT_LABEL(&s, word + 1, name);
        ASSERT_LABEL(&s, word + 2, name);
    }
    label_destroy_scene(&s);
}

static bool has_conditional_labelled(label_scene *s, const char *label) {
    size_t count = 0;
    ASSERT_OK(rondo_graph_get_node_count(s->graph, &count));
    for (size_t i = 0; i < count; ++i) {
        rondo_graph_node node = {.struct_size = sizeof node};
        ASSERT_OK(rondo_graph_get_node(s->graph, i, &node));
        if (node.kind == RONDO_NODE_CONDITIONAL) {
            return strcmp(node.label, label) == 0;
        }
    }
    return false;
}

// A conditional node carries the label; work after it goes on as before. Breaks in bodies are told.
SUITE_CASE(test_conformance_label__conditional_nodes_carry_it) {
    suite_need(context, RONDO_FEATURE_IF);
    label_scene s = label_create_scene(context);
    label_begin(&s);
    ASSERT_OK(rondo_label_push(s.a, "branchy"));
    LABEL_WORK(&s, s.a, "branchy");
    rondo_scope scope = label_begin_scope(&s, s.a, RONDO_SCOPE_IF, 0);
    rondo_stream *body = label_enter(scope, 0);
    ASSERT_OK(rondo_label_push(body, "inside"));
    ASSERT_OK(rondo_stream_fill(body, s.x + 100, 1, 4, 1));
    ASSERT_OK(rondo_label_pop(body));
    label_leave_and_end(scope);
    LABEL_WORK(&s, s.a, "branchy");
    ASSERT_OK(rondo_label_pop(s.a));
    LABEL_WORK(&s, s.a, "");
    label_end(&s);
    assert_true(has_conditional_labelled(&s, "branchy"));
    ASSERT_OK(rondo_graph_reset(s.graph));
    label_begin(&s);
    ASSERT_OK(rondo_label_push(s.a, "branchy"));
    (void)label_work(&s, s.a);
    scope = label_begin_scope(&s, s.a, RONDO_SCOPE_IF, 0);
    body = label_enter(scope, 0);
    ASSERT_OK(rondo_stream_fill(body, s.x + 100, 1, 4, 1));
    ASSERT_STATUS(rondo_stream_synchronize(body), STATE);
    (void)rondo_scope_leave(scope);
    (void)rondo_scope_end(scope);
    ASSERT_STATUS(rondo_graph_capture_end(s.graph), STATE);
    rondo_capture_report report = {.struct_size = sizeof report};
    ASSERT_OK(rondo_graph_get_report(s.graph, &report));
    assert_int_equal(report.cause, RONDO_CAUSE_SYNCHRONIZE);
    assert_string_equal(report.label, "branchy");
    assert_string_equal(report.last_node_name, "memset");
    // A scope that is still open at the end is not taken for something else.
    label_begin(&s);
    scope = label_begin_scope(&s, s.a, RONDO_SCOPE_IF, 0);
    (void)label_enter(scope, 0);
    ASSERT_STATUS(rondo_graph_capture_end(s.graph), STATE);
    ASSERT_OK(rondo_graph_get_report(s.graph, &report));
    assert_int_equal(report.cause, RONDO_CAUSE_OTHER);
    assert_non_null(strstr(report.message, "scope"));
    label_destroy_scene(&s);
}

// The program's own driver calls, also a fork that Rondo does not see.
SUITE_CASE(test_conformance_label__foreign_work_carries_it) {
    if (!context->is_cuda) {
        print_message("skipped: the host has no foreign work\n");
        skip();
    }
    rondo__cu_event fork = NULL;
    rondo__cu_event join = NULL;
    label_scene s = label_create_scene(context);
    rondo__cu_stream a = (rondo__cu_stream)rondo_stream_get_native(s.a);
    rondo__cu_stream b = (rondo__cu_stream)rondo_stream_get_native(s.b);
    rondo__cu_address words = (rondo__cu_address)(uintptr_t)s.x;
    const rondo__cuda_api *api = driver_enter(context->device);
    assert_non_null(api);
    assert_int_equal(api->cuEventCreate(&fork, RONDO__CU_EVENT_DISABLE_TIMING), 0);
    assert_int_equal(api->cuEventCreate(&join, RONDO__CU_EVENT_DISABLE_TIMING), 0);
    label_begin(&s);
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
    label_begin(&s);
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
    assert_true(driver_leave(api));
    label_destroy_scene(&s);
}

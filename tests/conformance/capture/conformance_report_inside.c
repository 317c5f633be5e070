// Reports on captures that broke inside the body of a conditional node: the label there, and the
// last good node there.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/capture/blame_support.h"
#include "conformance/control/control_support.h"
#include "support/driver.h"

enum { FLAG = 0, WORD = 1 };

// A capture with one body inside another:
//
//   "outer": kernel, if -> "inner": kernel, while -> "most": kernel, kernel
typedef struct nested {
    control_case it;
    rondo_stream *side;
    rondo_event *event;
    rondo_scope choice;
    rondo_scope loop;
    rondo_stream *first;
    rondo_stream *second;
} nested;

static nested begin_nested(void **state) {
    suite_context *context = suite_get_context(state);
    suite_need(context, RONDO_FEATURE_WHILE);
    nested n = {.it = start(state)};
    n.side = suite_create_stream(context);
    n.event = suite_create_event(context, 0);
    return n;
}

static void record_nested_labels(nested *n) {
    control_case *it = &n->it;
    begin_capture(it);
    ASSERT_OK(rondo_label_push(it->stream, "outer"));
    put(it, it->stream, WORD, 1, 1);
    n->choice = begin_scope(it, it->stream, RONDO_SCOPE_IF, FLAG, 0);
    n->first = enter(n->choice, 0);
    ASSERT_OK(rondo_label_push(n->first, "inner"));
    put(it, n->first, WORD, 1, 1);
    n->loop = begin_scope(it, n->first, RONDO_SCOPE_WHILE, FLAG, 0);
    n->second = enter(n->loop, 0);
    ASSERT_OK(rondo_label_push(n->second, "most"));
    put(it, n->second, WORD, 1, 1);
    put(it, n->second, WORD, 1, 1);
}

static void end_nested(nested *n) {
    control_case *it = &n->it;
    ASSERT_STATUS(rondo_graph_capture_end(it->graph), STATE);
    assert_string_equal(rondo_label_get_path(it->stream), "");
}

static rondo_capture_report get_report(nested *n) {
    rondo_capture_report report = {.struct_size = sizeof report};
    ASSERT_OK(rondo_graph_get_report(n->it.graph, &report));
    return report;
}

static void check_place(nested *n, const char *label, const char *node, const char *node_label,
                        uint64_t index, uint32_t depth, int line) {
    rondo_capture_report report = get_report(n);
    if (strcmp(report.label, label) != 0 || strcmp(report.last_node_name, node) != 0 ||
        strcmp(report.last_node_label, node_label) != 0 || !report.has_last_node ||
        report.last_node_index != index || report.last_node_depth != depth) {
        char text[2048];
        rondo_capture_report_format(&report, text, sizeof text);
        fail_msg("line %d: the last node is %u deep in %s", line, (unsigned)report.last_node_depth,
                 text);
    }
}
#define ASSERT_PLACE(n, label, node, node_label, index, depth) \
    check_place((n), (label), (node), (node_label), (index), (depth), __LINE__)

static void finish_nested(nested *n) {
    assert_usable(&n->it);
    rondo_event_destroy(n->event);
    rondo_stream_destroy(n->side);
    finish(&n->it);
}

// The scopes of a capture that is broken by now, whatever that says.
static void close_broken(nested *n) {
    (void)rondo_scope_leave(n->loop);
    (void)rondo_scope_end(n->loop);
    (void)rondo_scope_leave(n->choice);
    (void)rondo_scope_end(n->choice);
}

SUITE_CASE(test_conformance_report_inside__a_wait_in_a_body) {
    nested n = begin_nested(state);
    record_nested_labels(&n);
    ASSERT_STATUS(rondo_stream_synchronize(n.second), STATE);
    close_broken(&n);
    end_nested(&n);
    ASSERT_PLACE(&n, "outer/inner/most", "affine", "outer/inner/most", 1, 2);
    rondo_capture_report report = get_report(&n);
    char text[2048];
    assert_int_equal(report.cause, RONDO_CAUSE_SYNCHRONIZE);
    assert_true(report.is_index_exact);
    rondo_capture_report_format(&report, text, sizeof text);
    blame_check_text(text, "label:     outer/inner/most\n", "a wait", "the report");
    blame_check_text(text, "last good: node 1 of the body \"affine\" in \"outer/inner/most\"\n",
                     "a wait", "the report");
    // Behind the inner scope again: the conditional node is what came last.
    record_nested_labels(&n);
    ASSERT_OK(rondo_scope_leave(n.loop));
    ASSERT_OK(rondo_scope_end(n.loop));
    ASSERT_STATUS(rondo_stream_synchronize(n.first), STATE);
    (void)rondo_scope_leave(n.choice);
    (void)rondo_scope_end(n.choice);
    end_nested(&n);
    // On CUDA a kernel that sets the condition comes before the node.
    ASSERT_PLACE(&n, "outer/inner", "while", "outer/inner", n.it.context->is_cuda ? 2 : 1, 1);
    finish_nested(&n);
}

// Nodes are counted for each body; the one before is not taken for the one at fault.
SUITE_CASE(test_conformance_report_inside__each_body_counts_anew) {
    nested n = begin_nested(state);
    control_case *it = &n.it;
    suite_need(it->context, RONDO_FEATURE_IF_ELSE);
    begin_capture(it);
    rondo_scope scope = begin_scope(it, it->stream, RONDO_SCOPE_IF_ELSE, FLAG, 0);
    rondo_stream *body = enter(scope, 0);
    ASSERT_OK(rondo_label_push(body, "then"));
    for (int i = 0; i < 5; ++i) {
        put(it, body, WORD, 1, 1);
    }
    ASSERT_OK(rondo_label_pop(body));
    leave(scope);
    body = enter(scope, 1);
    ASSERT_OK(rondo_label_push(body, "else"));
    ASSERT_OK(rondo_stream_fill(body, it->x + WORD, 0, 4, 1));
    ASSERT_STATUS(rondo_stream_fill(body, it->x + WORD, 0, 3, 1), INVALID);
    rondo_graph_capture_abort(it->graph);
    ASSERT_PLACE(&n, "else", "memset", "else", 0, 1);
    finish_nested(&n);
}

// An empty body: the node before is the conditional one itself.
SUITE_CASE(test_conformance_report_inside__nothing_in_the_body_yet) {
    nested n = begin_nested(state);
    control_case *it = &n.it;
    begin_capture(it);
    ASSERT_OK(rondo_label_push(it->stream, "outer"));
    put(it, it->stream, WORD, 1, 1);
    rondo_scope scope = begin_scope(it, it->stream, RONDO_SCOPE_IF, FLAG, 0);
    rondo_stream *body = enter(scope, 0);
    ASSERT_OK(rondo_label_push(body, "inner"));
    ASSERT_STATUS(rondo_stream_synchronize(body), STATE);
    (void)rondo_scope_leave(scope);
    (void)rondo_scope_end(scope);
    end_nested(&n);
    ASSERT_PLACE(&n, "outer/inner", "if", "outer", it->context->is_cuda ? 2 : 1, 0);
    // Nor before it.
    begin_capture(it);
    scope = begin_scope(it, it->stream, RONDO_SCOPE_IF, FLAG, 0);
    body = enter(scope, 0);
    rondo_scope loop = begin_scope(it, body, RONDO_SCOPE_WHILE, FLAG, 0);
    rondo_stream *second = enter(loop, 0);
    ASSERT_STATUS(rondo_stream_synchronize(second), STATE);
    rondo_graph_capture_abort(it->graph);
    ASSERT_PLACE(&n, "", "while", "", it->context->is_cuda ? 1 : 0, 1);
    finish_nested(&n);
}

SUITE_CASE(test_conformance_report_inside__a_branch_of_a_body) {
    nested n = begin_nested(state);
    record_nested_labels(&n);
    ASSERT_OK(rondo_event_record(n.event, n.second));
    ASSERT_OK(rondo_stream_wait_event(n.side, n.event));
    put(&n.it, n.side, WORD + 1, 1, 1);
    ASSERT_STATUS(rondo_stream_fill(n.side, n.it.x, 0, 3, 1), INVALID);
    rondo_graph_capture_abort(n.it.graph);
    ASSERT_PLACE(&n, "outer/inner/most", "affine", "outer/inner", 2, 2);
    // With a scope of its own, which lies behind what was open where the body began.
    record_nested_labels(&n);
    ASSERT_OK(rondo_event_record(n.event, n.second));
    ASSERT_OK(rondo_stream_wait_event(n.side, n.event));
    ASSERT_OK(rondo_label_push(n.side, "side"));
    put(&n.it, n.side, WORD + 1, 1, 1);
    ASSERT_STATUS(rondo_stream_fill(n.side, n.it.x, 0, 3, 1), INVALID);
    ASSERT_OK(rondo_label_pop(n.side));
    rondo_graph_capture_abort(n.it.graph);
    ASSERT_PLACE(&n, "outer/inner/side", "affine", "outer/inner/side", 2, 2);
    // Not joined: that comes to light where the body ends.
    record_nested_labels(&n);
    ASSERT_OK(rondo_event_record(n.event, n.second));
    ASSERT_OK(rondo_stream_wait_event(n.side, n.event));
    put(&n.it, n.side, WORD + 1, 1, 1);
    ASSERT_STATUS(rondo_scope_leave(n.loop), STATE);
    (void)rondo_scope_end(n.loop);
    (void)rondo_scope_leave(n.choice);
    (void)rondo_scope_end(n.choice);
    end_nested(&n);
    ASSERT_PLACE(&n, "outer/inner/most", "affine", "outer/inner/most", 1, 2);
    assert_int_equal(get_report(&n).cause, RONDO_CAUSE_UNJOINED_STREAM);
    finish_nested(&n);
}

static rondo_status fail_by_itself(rondo_stream *stream, void *user_data) {
    control_case *it = user_data;
    ASSERT_OK(rondo_label_push(stream, "function"));
    put(it, stream, WORD, 1, 1);
    return RONDO_STATUS_BAD_DATA;
}

static rondo_status call_it(rondo_stream *stream, void *user_data) {
    control_case *it = user_data;
    ASSERT_OK(rondo_label_push(stream, "around"));
    return rondo_control_while(stream, it->x + FLAG, fail_by_itself, it);
}

SUITE_CASE(test_conformance_report_inside__a_function_that_fails) {
    nested n = begin_nested(state);
    begin_capture(&n.it);
    ASSERT_STATUS(rondo_control_if(n.it.stream, n.it.x + FLAG, call_it, NULL, &n.it), BAD_DATA);
    ASSERT_STATUS(rondo_graph_capture_end(n.it.graph), STATE);
    ASSERT_PLACE(&n, "around/function", "affine", "around/function", 0, 2);
    finish_nested(&n);
}

// Given up, or ended, in the middle of a body.
SUITE_CASE(test_conformance_report_inside__given_up_in_a_body) {
    nested n = begin_nested(state);
    record_nested_labels(&n);
    rondo_graph_capture_abort(n.it.graph);
    ASSERT_PLACE(&n, "outer/inner/most", "affine", "outer/inner/most", 1, 2);
    assert_int_equal(get_report(&n).cause, RONDO_CAUSE_ABORTED);
    record_nested_labels(&n);
    end_nested(&n);
    ASSERT_PLACE(&n, "outer/inner/most", "affine", "outer/inner/most", 1, 2);
    assert_non_null(strstr(get_report(&n).message, "scope"));
    finish_nested(&n);
}

// A call of the program's own that breaks a body. The driver (580) never frees such a body's graph,
// so this is for the fake.
SUITE_CASE(test_conformance_report_inside__foreign_calls_break_a_body) {
    nested n = begin_nested(state);
    if (!n.it.context->is_fake) {
        print_message("skipped: a driver would lose memory by it\n");
        finish_nested(&n);
        skip();
    }
    const rondo__cuda_api *api = driver_enter(n.it.context->device);
    assert_non_null(api);
    record_nested_labels(&n);
    assert_int_not_equal(api->cuStreamSynchronize(rondo_stream_get_native(n.second)), 0);
    ASSERT_OK(rondo_label_push(n.second, "noticed"));
    close_broken(&n);
    end_nested(&n);
    ASSERT_PLACE(&n, "outer/inner/most", "affine", "outer/inner/most", 1, 2);
    assert_int_equal(get_report(&n).cause, RONDO_CAUSE_UNSEEN_CALL);
    assert_true(driver_leave(api));
    finish_nested(&n);
}

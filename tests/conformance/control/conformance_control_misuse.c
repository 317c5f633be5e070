// If, switch and while: misuse, failures, aborted captures. Each leaves everything usable.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/control/control_support.h"
#include "rondo/report.h"
#include "support/peek.h"

// ---- functions --------------------------------------------------------------------------------

typedef struct solver {
    suite_context *context;
    uint32_t *x;
    int call_count;
} solver;

static rondo_status on_set(rondo_stream *stream, void *user_data) {
    solver *it = user_data;
    return suite_affine(it->context, stream, it->x + 3, 1, 1, 1);
}

static rondo_status fail_in_body(rondo_stream *stream, void *user_data) {
    solver *it = user_data;
    ++it->call_count;
    (void)suite_affine(it->context, stream, it->x + 1, 1, 1, 1);
    return RONDO_STATUS_BAD_DATA;
}

static rondo_status leave_scope_open(rondo_stream *stream, void *user_data) {
    solver *it = user_data;
    rondo_scope scope;
    rondo_stream *body;
    rondo_status status = rondo_scope_begin(stream, RONDO_SCOPE_IF, it->x, 0, &scope);
    return status == RONDO_STATUS_OK ? rondo_scope_enter(scope, 0, &body) : status;
}

SUITE_CASE_EXECUTED(test_conformance_control__a_function_that_fails_breaks_the_capture) {
    control_case it = start(state);
    solver data = {.context = it.context, .x = it.x};
    set(&it, 0, 1);
    ASSERT_STATUS(rondo_control_if(it.stream, it.x, fail_in_body, NULL, &data), BAD_DATA);
    ASSERT_STATUS(rondo_control_while(it.stream, it.x, fail_in_body, &data), BAD_DATA);
    assert_int_equal(data.call_count, 2);
    ASSERT_OK(rondo_stream_synchronize(it.stream));
    begin_capture(&it);
    ASSERT_STATUS(rondo_control_while(it.stream, it.x, fail_in_body, &data), BAD_DATA);
    ASSERT_STATUS(rondo_control_if(it.stream, it.x, on_set, NULL, &data), STATE);
    assert_int_not_equal(rondo_graph_capture_end(it.graph), RONDO_STATUS_OK);
    ASSERT_MESSAGE_HAS("BAD_DATA");
    assert_usable(&it);
    begin_capture(&it);
    ASSERT_STATUS(rondo_control_if(it.stream, it.x, leave_scope_open, NULL, &data), STATE);
    ASSERT_MESSAGE_HAS("inside the body is open");
    ASSERT_STATUS(rondo_graph_capture_end(it.graph), STATE);
    assert_usable(&it);
    // Arguments.
    ASSERT_STATUS(rondo_control_if(NULL, it.x, on_set, NULL, &data), INVALID);
    ASSERT_STATUS(rondo_control_if(it.stream, NULL, on_set, NULL, &data), INVALID);
    ASSERT_STATUS(rondo_control_if(it.stream, it.x, NULL, NULL, &data), INVALID);
    ASSERT_STATUS(rondo_control_while(it.stream, it.x, NULL, &data), INVALID);
    ASSERT_STATUS(rondo_control_switch(it.stream, it.x, NULL, 1, &data), INVALID);
    finish(&it);
}

// ---- misuse -----------------------------------------------------------------------------------

// The step would lack the node.
SUITE_CASE(test_conformance_control__a_scope_refused_breaks_the_capture) {
    control_case it = start(state);
    rondo_scope scope;
    // Outside a capture.
    ASSERT_STATUS(rondo_scope_begin(it.stream, RONDO_SCOPE_IF, it.x, 0, &scope), STATE);
    ASSERT_MESSAGE_HAS("does not record");
    const struct {
        rondo_scope_kind kind;
        const void *predicate;
        uint32_t branch_count;
        rondo_scope *out_scope;
    } wrong[] = {
        {(rondo_scope_kind)4, it.x, 0, &scope},   {RONDO_SCOPE_IF, NULL, 0, &scope},
        {RONDO_SCOPE_IF, it.x, 0, NULL},          {RONDO_SCOPE_IF, (char *)it.x + 2, 0, &scope},
        {RONDO_SCOPE_IF, it.x, 1, &scope},        {RONDO_SCOPE_SWITCH, it.x, 0, &scope},
        {RONDO_SCOPE_SWITCH, it.x, 1025, &scope},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
        scope = (rondo_scope){0};
        begin_capture(&it);
        ASSERT_STATUS(rondo_scope_begin(it.stream, wrong[i].kind, wrong[i].predicate,
                                        wrong[i].branch_count, wrong[i].out_scope),
                      INVALID);
        assert_int_equal(scope.id, 0);
        ASSERT_STATUS(rondo_scope_end(scope), INVALID);
        ASSERT_STATUS(rondo_graph_capture_end(it.graph), STATE);
        assert_string_equal(rondo_error_get_last()->call, "rondo_scope_begin");
    }
    begin_capture(&it);
    scope = begin_scope(&it, it.stream, RONDO_SCOPE_IF, 0, 0);
    rondo_scope second;
    ASSERT_STATUS(rondo_scope_begin(it.stream, RONDO_SCOPE_IF, it.x, 0, &second), STATE);
    ASSERT_MESSAGE_HAS("has an open scope");
    ASSERT_STATUS(rondo_scope_end(scope), STATE);
    ASSERT_STATUS(rondo_graph_capture_end(it.graph), STATE);
    ASSERT_MESSAGE_HAS("has an open scope");
    assert_usable(&it);
    finish(&it);
}

// It would lack the body.
SUITE_CASE(test_conformance_control__a_body_refused_breaks_the_capture) {
    control_case it = start(state);
    for (int what = 0; what < 4; ++what) {
        rondo_stream *other = it.stream;
        begin_capture(&it);
        rondo_scope scope = begin_scope(&it, it.stream, RONDO_SCOPE_WHILE, 0, 0);
        const char *message = "";
        if (what == 0) {
            message = "there is no branch 1";
            ASSERT_STATUS(rondo_scope_enter(scope, 1, &other), INVALID);
            assert_null(other);
        } else if (what == 1) {
            message = "out_body";
            ASSERT_STATUS(rondo_scope_enter(scope, 0, NULL), INVALID);
        } else {
            rondo_stream *body = enter(scope, 0);
            put(&it, body, 0, 1, MINUS_ONE);
            message = "leave it first";
            if (what == 3) {
                leave(scope);
                message = "recorded already";
            }
            ASSERT_STATUS(rondo_scope_enter(scope, 0, &other), STATE);
        }
        ASSERT_MESSAGE_HAS(message);
        assert_int_not_equal(rondo_graph_capture_end(it.graph), RONDO_STATUS_OK);
        ASSERT_MESSAGE_HAS(message);
        assert_string_equal(rondo_error_get_last()->call, "rondo_scope_enter");
        assert_usable(&it);
    }
    finish(&it);
}

// What is left open can still be ended, and what is over has nothing to lose.
SUITE_CASE(test_conformance_control__misuse_that_loses_nothing_is_harmless) {
    control_case it = start(state);
    rondo_scope scope;
    begin_capture(&it);
    ASSERT_STATUS(rondo_scope_begin(NULL, RONDO_SCOPE_IF, it.x, 0, &scope), INVALID);
    scope = begin_scope(&it, it.stream, RONDO_SCOPE_WHILE, 0, 0);
    ASSERT_STATUS(rondo_scope_leave(scope), STATE);
    ASSERT_STATUS(rondo_scope_end(scope), STATE);
    ASSERT_MESSAGE_HAS("no body");
    rondo_stream *body = enter(scope, 0);
    ASSERT_STATUS(rondo_scope_end(scope), STATE);
    ASSERT_MESSAGE_HAS("rondo_scope_leave");
    rondo_scope second = begin_scope(&it, body, RONDO_SCOPE_IF, 0, 0);
    ASSERT_STATUS(rondo_scope_leave(scope), STATE);
    ASSERT_MESSAGE_HAS("end it first");
    rondo_stream *inner = enter(second, 0);
    put(&it, inner, 2, 1, 1);
    ASSERT_STATUS(rondo_graph_replay(it.graph, inner), STATE);
    leave(second);
    end(second);
    ASSERT_STATUS(rondo_scope_end(second), STATE);
    ASSERT_MESSAGE_HAS("is over");
    put(&it, body, 0, 1, MINUS_ONE);
    leave(scope);
    ASSERT_STATUS(rondo_scope_leave(scope), STATE);
    end(scope);
    ASSERT_STATUS(rondo_scope_end(scope), STATE);
    ASSERT_STATUS(rondo_scope_enter(scope, 0, &body), STATE);
    // All of that did no harm.
    ASSERT_OK(rondo_graph_capture_end(it.graph));
    set(&it, 0, 3);
    replay(&it);
    assert_int_equal(get(&it, 2), 3);
    finish(&it);
}

SUITE_CASE(test_conformance_control__parent_stream_used_meanwhile) {
    control_case it = start(state);
    for (int when = 0; when < 3; ++when) {
        begin_capture(&it);
        rondo_scope scope = begin_scope(&it, it.stream, RONDO_SCOPE_IF_ELSE, 0, 0);
        rondo_stream *body = NULL;
        if (when == 0) {
            put(&it, it.stream, 1, 1, 1);
            ASSERT_STATUS(rondo_scope_enter(scope, 0, &body), STATE);
        } else {
            body = enter(scope, 0);
            put(&it, body, 1, 1, 1);
            if (when == 1) {
                put(&it, it.stream, 1, 1, 1);
                ASSERT_STATUS(rondo_scope_leave(scope), STATE);
            } else {
                leave(scope);
                put(&it, it.stream, 1, 1, 1);
                ASSERT_STATUS(rondo_scope_end(scope), STATE);
            }
        }
        ASSERT_MESSAGE_HAS("was used while its if_else scope was open");
        ASSERT_STATUS(rondo_graph_capture_end(it.graph), STATE);
        ASSERT_MESSAGE_HAS("was used while its if_else scope was open");
        assert_usable(&it);
    }
    finish(&it);
}

SUITE_CASE(test_conformance_control__capture_ends_with_an_open_scope) {
    control_case it = start(state);
    for (int depth = 0; depth < 4; ++depth) {
        begin_capture(&it);
        rondo_scope scope = begin_scope(&it, it.stream, RONDO_SCOPE_WHILE, 0, 0);
        rondo_scope inner = scope;
        if (depth > 0) {
            rondo_stream *body = enter(scope, 0);
            put(&it, body, 1, 1, 1);
            if (depth > 1) {
                inner = begin_scope(&it, body, RONDO_SCOPE_IF, 1, 0);
            }
            if (depth > 2) {
                put(&it, enter(inner, 0), 1, 1, 1);
            }
        }
        ASSERT_STATUS(rondo_graph_capture_end(it.graph), STATE);
        ASSERT_MESSAGE_HAS("still open");
        ASSERT_STATUS(rondo_scope_leave(inner), STATE);
        ASSERT_STATUS(rondo_scope_end(scope), STATE);
        ASSERT_MESSAGE_HAS("is over");
        assert_usable(&it);
    }
    finish(&it);
}

SUITE_CASE(test_conformance_control__abort_closes_scopes) {
    control_case it = start(state);
    for (int round = 0; round < 3; ++round) {
        begin_capture(&it);
        rondo_scope scope = begin_scope(&it, it.stream, RONDO_SCOPE_SWITCH, 0, 2);
        rondo_stream *body = enter(scope, 1);
        rondo_scope inner = begin_scope(&it, body, RONDO_SCOPE_WHILE, 1, 0);
        rondo_stream *inner_body = enter(inner, 0);
        put(&it, inner_body, 1, 1, 1);
        if (round == 1) {
            rondo_graph_destroy(it.graph);
            it.graph = suite_create_graph(it.context, true);
        } else {
            rondo_graph_capture_abort(it.graph);
        }
        ASSERT_STATUS(rondo_scope_leave(inner), STATE);
        ASSERT_STATUS(rondo_scope_leave(scope), STATE);
        assert_usable(&it);
    }
    finish(&it);
}

SUITE_CASE(test_conformance_control__unjoined_work_in_a_body) {
    control_case it = start(state);
    rondo_stream *branch = suite_create_stream(it.context);
    rondo_event *fork = suite_create_event(it.context, 0);
    begin_capture(&it);
    rondo_scope scope = begin_scope(&it, it.stream, RONDO_SCOPE_IF, 0, 0);
    rondo_stream *body = enter(scope, 0);
    put(&it, body, 1, 1, 1);
    ASSERT_OK(rondo_event_record(fork, body));
    ASSERT_OK(rondo_stream_wait_event(branch, fork));
    put(&it, branch, 2, 1, 1);
    ASSERT_STATUS(rondo_scope_leave(scope), STATE);
    char name[32];
    snprintf(name, sizeof name, "stream %u", (unsigned)peek_get_number(branch));
    ASSERT_MESSAGE_HAS(name);
    ASSERT_STATUS(rondo_scope_end(scope), STATE);
    ASSERT_STATUS(rondo_graph_capture_end(it.graph), STATE);
    ASSERT_MESSAGE_HAS(name);
    rondo_capture_report report = {.struct_size = sizeof report};
    ASSERT_OK(rondo_graph_get_report(it.graph, &report));
    assert_int_equal(report.stream_number, peek_get_number(branch));
    assert_usable(&it);
    rondo_event_destroy(fork);
    rondo_stream_destroy(branch);
    finish(&it);
}

SUITE_CASE(test_conformance_control__a_broken_body_breaks_the_capture) {
    control_case it = start(state);
    // Which stream is asked to wait: the outer body's, the inner body's, the first one.
    for (int which = 0; which < 3; ++which) {
        begin_capture(&it);
        rondo_scope scope = begin_scope(&it, it.stream, RONDO_SCOPE_IF, 0, 0);
        rondo_stream *body = enter(scope, 0);
        put(&it, body, 1, 1, 1);
        rondo_scope inner = begin_scope(&it, body, RONDO_SCOPE_WHILE, 1, 0);
        rondo_stream *inner_body = enter(inner, 0);
        put(&it, inner_body, 1, 1, MINUS_ONE);
        rondo_stream *streams[] = {body, inner_body, it.stream};
        ASSERT_STATUS(rondo_stream_synchronize(streams[which]), STATE);
        // All of the capture is broken, wherever that happened; none of these does harm.
        ASSERT_STATUS(rondo_scope_leave(inner), STATE);
        ASSERT_STATUS(rondo_scope_end(inner), STATE);
        ASSERT_STATUS(rondo_scope_leave(scope), STATE);
        ASSERT_STATUS(rondo_scope_end(scope), STATE);
        ASSERT_STATUS(rondo_graph_capture_end(it.graph), STATE);
        ASSERT_MESSAGE_HAS("broken by");
        assert_usable(&it);
    }
    finish(&it);
}

// The driver refuses the launch and breaks the body, which it cannot undo (cuda_body.c).
SUITE_CASE(test_conformance_control__a_launch_refused_in_a_body) {
    control_case it = start(state);
    if (!it.context->is_cuda) {
        finish(&it);
        print_message("skipped: the host refuses no launch\n");
        skip();
    }
    rondo_stream *branch = suite_create_stream(it.context);
    rondo_event *fork = suite_create_event(it.context, 0);
    rondo_launch launch = {.struct_size = sizeof launch,
                           .name = "wide",
                           .function = it.context->affine,
                           .grid = {1, 1, 1},
                           .block = {9999, 1, 1}};
    for (int depth = 0; depth < 2; ++depth) {
        begin_capture(&it);
        rondo_scope scope = begin_scope(&it, it.stream, RONDO_SCOPE_WHILE, 0, 0);
        rondo_scope inner = scope;
        rondo_stream *body = enter(scope, 0);
        put(&it, body, 1, 1, 1);
        if (depth > 0) {
            inner = begin_scope(&it, body, RONDO_SCOPE_IF, 0, 0);
            body = enter(inner, 0);
        }
        ASSERT_OK(rondo_event_record(fork, body));
        ASSERT_OK(rondo_stream_wait_event(branch, fork));
        put(&it, branch, 2, 1, 1);
        assert_int_not_equal(rondo_stream_launch(body, &launch), RONDO_STATUS_OK);
        assert_int_not_equal(rondo_scope_leave(inner), RONDO_STATUS_OK);
        assert_int_not_equal(rondo_graph_capture_end(it.graph), RONDO_STATUS_OK);
        ASSERT_MESSAGE_HAS("wide");
        // Everything goes on, the stream that was forked inside the body too.
        assert_usable(&it);
        put(&it, branch, 2, 1, 1);
        ASSERT_OK(rondo_stream_synchronize(branch));
    }
    rondo_event_destroy(fork);
    rondo_stream_destroy(branch);
    finish(&it);
}

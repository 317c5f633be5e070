// conformance/control/control_support.h — what the cases of control flow share.
//
// Bodies count their turns in device memory, so each case proves which of them ran, and how often.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "conformance/conformance.h"
#include "rondo/control.h"

#define MINUS_ONE UINT32_MAX

// Device memory of one case, all zero: numbers at some distance, as in real use.
typedef struct control_case {
    suite_context *context;
    rondo_stream *stream;
    rondo_graph *graph;
    uint32_t *x;  // ten of them
} control_case;

enum { NUMBERS = 10 };

static inline control_case start(void **state) {
    suite_context *context = suite_get_context(state);
    suite_need(context, RONDO_FEATURE_IF);
    control_case it = {.context = context,
                       .stream = suite_create_stream(context),
                       .graph = suite_create_graph(context, true),
                       .x = suite_allocate(context, RONDO_MEMORY_DEVICE, NUMBERS)};
    // Not suite_set: the context's stream is for one thread at a time, and threads call this.
    ASSERT_OK(rondo_stream_fill(it.stream, it.x, 0, 4, NUMBERS));
    ASSERT_OK(rondo_stream_synchronize(it.stream));
    return it;
}

static inline void finish(control_case *it) {
    rondo_graph_destroy(it->graph);
    rondo_stream_destroy(it->stream);
    suite_free(it->context, RONDO_MEMORY_DEVICE, it->x);
}

static inline void begin_capture(control_case *it) {
    ASSERT_OK(rondo_graph_capture_begin(it->graph, it->stream, RONDO_CAPTURE_THREAD_LOCAL));
}

static inline void replay(control_case *it) {
    ASSERT_OK(rondo_graph_replay(it->graph, it->stream));
    ASSERT_OK(rondo_stream_synchronize(it->stream));
}

static inline uint32_t get(control_case *it, int index) {
    return suite_get(it->context, it->x, (size_t)index);
}

static inline void set(control_case *it, int index, uint32_t value) {
    suite_set(it->context, it->x + index, value, 1);
}

// x[index] = x[index] * factor + term
static inline void put(control_case *it, rondo_stream *stream, int index, uint32_t factor,
                       uint32_t term) {
    ASSERT_OK(suite_affine(it->context, stream, it->x + index, 1, factor, term));
}

static inline rondo_scope begin_scope(control_case *it, rondo_stream *stream, rondo_scope_kind kind,
                                      int predicate, uint32_t branch_count) {
    rondo_scope scope;
    ASSERT_OK(rondo_scope_begin(stream, kind, it->x + predicate, branch_count, &scope));
    return scope;
}

static inline rondo_stream *enter(rondo_scope scope, uint32_t branch) {
    rondo_stream *body = NULL;
    ASSERT_OK(rondo_scope_enter(scope, branch, &body));
    assert_non_null(body);
    return body;
}

static inline void leave(rondo_scope scope) {
    ASSERT_OK(rondo_scope_leave(scope));
}

static inline void end(rondo_scope scope) {
    ASSERT_OK(rondo_scope_end(scope));
}

// A capture of its own that works, on the same graph and stream.
static inline void assert_usable(control_case *it) {
    bool is_capturing = true;
    ASSERT_OK(rondo_stream_is_recording(it->stream, &is_capturing));
    assert_false(is_capturing);
    set(it, 0, 3);
    set(it, 9, 0);
    begin_capture(it);
    rondo_scope scope = begin_scope(it, it->stream, RONDO_SCOPE_WHILE, 0, 0);
    rondo_stream *body = enter(scope, 0);
    put(it, body, 0, 1, MINUS_ONE);
    put(it, body, 9, 1, 1);
    leave(scope);
    end(scope);
    ASSERT_OK(rondo_graph_capture_end(it->graph));
    replay(it);
    assert_int_equal(get(it, 9), 3);
    ASSERT_OK(rondo_graph_reset(it->graph));
}

// while (x0 != 0) { x1 = 3 * x1 + 1; x0 -= 1; x2 += 1; }
static inline void record_countdown(control_case *it) {
    rondo_scope scope = begin_scope(it, it->stream, RONDO_SCOPE_WHILE, 0, 0);
    rondo_stream *body = enter(scope, 0);
    put(it, body, 1, 3, 1);
    put(it, body, 0, 1, MINUS_ONE);
    put(it, body, 2, 1, 1);
    leave(scope);
    end(scope);
}

// switch (x0) { case 1: while (x1 != 0) { if (x2 != 0) { x3 = 3 * x3 + 1; } else { x4 += 1; }
//                                         x1 -= 1; x2 = x1; } }
static inline void record_nested(control_case *it) {
    rondo_scope choice = begin_scope(it, it->stream, RONDO_SCOPE_SWITCH, 0, 3);
    rondo_stream *in_switch = enter(choice, 1);
    put(it, in_switch, 5, 1, 1);
    rondo_scope loop = begin_scope(it, in_switch, RONDO_SCOPE_WHILE, 1, 0);
    rondo_stream *in_loop = enter(loop, 0);
    rondo_scope branch = begin_scope(it, in_loop, RONDO_SCOPE_IF_ELSE, 2, 0);
    rondo_stream *in_branch = enter(branch, 0);
    put(it, in_branch, 3, 3, 1);
    leave(branch);
    in_branch = enter(branch, 1);
    put(it, in_branch, 4, 1, 1);
    leave(branch);
    end(branch);
    put(it, in_loop, 1, 1, MINUS_ONE);
    ASSERT_OK(rondo_stream_copy(in_loop, it->x + 2, it->x + 1, 4, RONDO_COPY_DEVICE_TO_DEVICE));
    leave(loop);
    end(loop);
    put(it, in_switch, 5, 1, 1);
    leave(choice);
    end(choice);
}

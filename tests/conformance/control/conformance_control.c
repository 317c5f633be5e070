// If, switch and while, decided on the device: what runs.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/control/control_support.h"
#include "rondo/inspect.h"
#include "rondo/update.h"

// ---- each kind --------------------------------------------------------------------------------

SUITE_CASE(test_conformance_control__if_runs_when_not_zero) {
    control_case it = start(state);
    begin_capture(&it);
    put(&it, it.stream, 1, 1, 100);
    rondo_scope scope = begin_scope(&it, it.stream, RONDO_SCOPE_IF, 0, 0);
    rondo_stream *body = enter(scope, 0);
    put(&it, body, 1, 2, 0);
    put(&it, body, 2, 1, 1);
    leave(scope);
    end(scope);
    put(&it, it.stream, 1, 1, 1);
    ASSERT_OK(rondo_graph_capture_end(it.graph));
    assert_int_equal(get(&it, 1) + get(&it, 2), 0);
    static const uint32_t predicates[] = {0, 1, 0, 7, 0x80000000u};
    uint32_t x = 0;
    uint32_t turns = 0;
    for (size_t i = 0; i < sizeof predicates / sizeof *predicates; ++i) {
        set(&it, 0, predicates[i]);
        replay(&it);
        x = predicates[i] != 0 ? (x + 100) * 2 + 1 : x + 101;
        turns += predicates[i] != 0;
        assert_int_equal(get(&it, 1), x);
        assert_int_equal(get(&it, 2), turns);
    }
    finish(&it);
}

SUITE_CASE(test_conformance_control__else_runs_when_zero) {
    control_case it = start(state);
    begin_capture(&it);
    rondo_scope scope = begin_scope(&it, it.stream, RONDO_SCOPE_IF_ELSE, 0, 0);
    // In any order; and the one that runs writes the predicate, which chooses nothing any more.
    rondo_stream *body = enter(scope, 1);
    put(&it, body, 2, 1, 1);
    put(&it, body, 0, 0, 1);
    leave(scope);
    body = enter(scope, 0);
    put(&it, body, 1, 1, 1);
    put(&it, body, 0, 0, 0);
    leave(scope);
    end(scope);
    ASSERT_OK(rondo_graph_capture_end(it.graph));
    for (uint32_t i = 1; i <= 6; ++i) {
        replay(&it);
        assert_int_equal(get(&it, 1), i / 2);
        assert_int_equal(get(&it, 2), (i + 1) / 2);
    }
    finish(&it);
}

SUITE_CASE(test_conformance_control__switch_runs_one_branch) {
    control_case it = start(state);
    begin_capture(&it);
    rondo_scope scope = begin_scope(&it, it.stream, RONDO_SCOPE_SWITCH, 0, 4);
    for (uint32_t branch = 0; branch < 4; ++branch) {
        if (branch == 2) {
            continue;  // empty
        }
        rondo_stream *body = enter(scope, branch);
        put(&it, body, 1 + (int)branch, 1, 1);
        put(&it, body, 0, 1, 1);  // the next branch is not chosen by it
        leave(scope);
    }
    end(scope);
    ASSERT_OK(rondo_graph_capture_end(it.graph));
    static const uint32_t indices[] = {1, 3, 0, 2, 4, 1, MINUS_ONE, 0x7fffffffu};
    uint32_t expected[4] = {0};
    for (size_t i = 0; i < sizeof indices / sizeof *indices; ++i) {
        set(&it, 0, indices[i]);
        replay(&it);
        if (indices[i] < 4 && indices[i] != 2) {
            ++expected[indices[i]];
        }
        for (int branch = 0; branch < 4; ++branch) {
            assert_int_equal(get(&it, 1 + branch), expected[branch]);
        }
    }
    finish(&it);
}

SUITE_CASE(test_conformance_control__while_turns_until_zero) {
    control_case it = start(state);
    begin_capture(&it);
    record_countdown(&it);
    put(&it, it.stream, 3, 1, 1);
    ASSERT_OK(rondo_graph_capture_end(it.graph));
    static const uint32_t turns[] = {0, 1, 5, 0, 1000};
    uint32_t x = 0;
    uint32_t sum = 0;
    for (size_t i = 0; i < sizeof turns / sizeof *turns; ++i) {
        set(&it, 0, turns[i]);
        replay(&it);
        for (uint32_t turn = 0; turn < turns[i]; ++turn) {
            x = 3 * x + 1;
        }
        sum += turns[i];
        assert_int_equal(get(&it, 0), 0);
        assert_int_equal(get(&it, 1), x);
        assert_int_equal(get(&it, 2), sum);
        assert_int_equal(get(&it, 3), i + 1);
    }
    finish(&it);
}

SUITE_CASE(test_conformance_control__empty_bodies) {
    control_case it = start(state);
    begin_capture(&it);
    rondo_scope scope = begin_scope(&it, it.stream, RONDO_SCOPE_IF_ELSE, 0, 0);
    (void)enter(scope, 0);
    leave(scope);
    end(scope);
    scope = begin_scope(&it, it.stream, RONDO_SCOPE_SWITCH, 0, 3);
    end(scope);
    scope = begin_scope(&it, it.stream, RONDO_SCOPE_WHILE, 1, 0);
    (void)enter(scope, 0);
    leave(scope);
    end(scope);
    put(&it, it.stream, 2, 1, 1);
    ASSERT_OK(rondo_graph_capture_end(it.graph));
    for (uint32_t i = 1; i <= 3; ++i) {
        set(&it, 0, i % 2);
        replay(&it);
        assert_int_equal(get(&it, 2), i);
    }
    finish(&it);
}

// A driver makes one executable at a time of a graph with conditional nodes: instantiating again
// gives the former one up, and an update takes over that of its source.
SUITE_CASE(test_conformance_control__instantiated_again) {
    control_case it = start(state);
    begin_capture(&it);
    rondo_scope scope = begin_scope(&it, it.stream, RONDO_SCOPE_IF_ELSE, 0, 0);
    put(&it, enter(scope, 0), 1, 1, 1);
    leave(scope);
    end(scope);
    ASSERT_OK(rondo_graph_capture_end(it.graph));
    set(&it, 0, 1);
    replay(&it);
    ASSERT_OK(rondo_graph_instantiate(it.graph));
    replay(&it);
    rondo_graph *taker = suite_create_graph(it.context, true);
    rondo_update_report report = {.struct_size = sizeof report};
    ASSERT_OK(rondo_graph_update(taker, it.graph, &report));
    assert_int_equal(report.result, RONDO_UPDATE_INSTANTIATED);
    ASSERT_STATUS(rondo_graph_replay(it.graph, it.stream), STATE);
    ASSERT_OK(rondo_graph_replay(taker, it.stream));
    ASSERT_OK(rondo_graph_instantiate(taker));
    ASSERT_OK(rondo_graph_replay(taker, it.stream));
    ASSERT_OK(rondo_stream_synchronize(it.stream));
    assert_int_equal(get(&it, 1), 4);
    uint64_t bytes = 0;
    ASSERT_STATUS(rondo_graph_measure_device_bytes(taker, &bytes), UNSUPPORTED);
    rondo_graph_destroy(taker);
    finish(&it);
}

SUITE_CASE(test_conformance_control__in_every_mode) {
    static const rondo_capture_mode modes[] = {RONDO_CAPTURE_GLOBAL, RONDO_CAPTURE_RELAXED};
    control_case it = start(state);
    for (uint32_t i = 0; i < 2; ++i) {
        ASSERT_OK(rondo_graph_capture_begin(it.graph, it.stream, modes[i]));
        record_countdown(&it);
        record_nested(&it);
        ASSERT_OK(rondo_graph_capture_end(it.graph));
        set(&it, 0, 4);
        replay(&it);
        assert_int_equal(get(&it, 2), 4 * (i + 1));
        ASSERT_OK(rondo_graph_reset(it.graph));
    }
    finish(&it);
}

// ---- nesting and forks ------------------------------------------------------------------------

SUITE_CASE(test_conformance_control__if_in_while_in_switch) {
    control_case it = start(state);
    begin_capture(&it);
    record_nested(&it);
    ASSERT_OK(rondo_graph_capture_end(it.graph));
    uint32_t expected[6] = {0};
    for (uint32_t i = 0; i < 6; ++i) {
        set(&it, 0, i % 3);
        set(&it, 1, i + 1);
        set(&it, 2, i % 2);
        expected[1] = i + 1;
        expected[2] = i % 2;
        if (i % 3 == 1) {
            expected[5] += 2;
            while (expected[1] != 0) {
                if (expected[2] != 0) {
                    expected[3] = 3 * expected[3] + 1;
                } else {
                    expected[4] += 1;
                }
                expected[2] = --expected[1];
            }
        }
        replay(&it);
        for (int number = 1; number < 6; ++number) {
            assert_int_equal(get(&it, number), expected[number]);
        }
    }
    finish(&it);
}

SUITE_CASE(test_conformance_control__nests_deeply) {
    enum { DEPTH = 12 };
    control_case it = start(state);
    begin_capture(&it);
    rondo_scope scopes[DEPTH];
    rondo_stream *stream = it.stream;
    for (int depth = 0; depth < DEPTH; ++depth) {
        scopes[depth] = begin_scope(&it, stream, RONDO_SCOPE_IF, 0, 0);
        stream = enter(scopes[depth], 0);
        put(&it, stream, 1, 1, 1);
    }
    for (int depth = DEPTH; depth-- > 0;) {
        leave(scopes[depth]);
        end(scopes[depth]);
    }
    ASSERT_OK(rondo_graph_capture_end(it.graph));
    replay(&it);
    assert_int_equal(get(&it, 1), 0);
    set(&it, 0, 1);
    replay(&it);
    assert_int_equal(get(&it, 1), DEPTH);
    finish(&it);
}

SUITE_CASE(test_conformance_control__predicate_is_computed_by_earlier_nodes) {
    control_case it = start(state);
    begin_capture(&it);
    put(&it, it.stream, 0, 3, 6);  // 3 * x + 6: zero for x = -2 alone
    rondo_scope scope = begin_scope(&it, it.stream, RONDO_SCOPE_IF_ELSE, 0, 0);
    put(&it, enter(scope, 0), 1, 1, 1);
    leave(scope);
    put(&it, enter(scope, 1), 2, 1, 1);
    leave(scope);
    end(scope);
    ASSERT_OK(rondo_graph_capture_end(it.graph));
    set(&it, 0, 5);
    replay(&it);
    assert_int_equal(get(&it, 1), 1);
    assert_int_equal(get(&it, 2), 0);
    set(&it, 0, (uint32_t)-2);
    replay(&it);
    assert_int_equal(get(&it, 1), 1);
    assert_int_equal(get(&it, 2), 1);
    finish(&it);
}

// Each turn: the body forks to two streams, whose results the joined body adds up in order.
SUITE_CASE(test_conformance_control__bodies_fork_and_join) {
    control_case it = start(state);
    rondo_stream *branches[2] = {suite_create_stream(it.context), suite_create_stream(it.context)};
    rondo_event *fork = suite_create_event(it.context, 0);
    rondo_event *joins[2] = {suite_create_event(it.context, 0), suite_create_event(it.context, 0)};
    begin_capture(&it);
    rondo_scope scope = begin_scope(&it, it.stream, RONDO_SCOPE_WHILE, 0, 0);
    rondo_stream *body = enter(scope, 0);
    put(&it, body, 1, 1, 1);
    ASSERT_OK(rondo_event_record(fork, body));
    for (int i = 0; i < 2; ++i) {
        ASSERT_OK(rondo_stream_wait_event(branches[i], fork));
        put(&it, branches[i], 2 + i, 2, 1);
        put(&it, branches[i], 2 + i, 3, 1);
        ASSERT_OK(rondo_event_record(joins[i], branches[i]));
    }
    put(&it, body, 4, 5, 1);
    for (int i = 0; i < 2; ++i) {
        ASSERT_OK(rondo_stream_wait_event(body, joins[i]));
    }
    put(&it, body, 0, 1, MINUS_ONE);
    leave(scope);
    end(scope);
    ASSERT_OK(rondo_graph_capture_end(it.graph));
    uint32_t expected[5] = {0};
    for (uint32_t turns = 0; turns < 40; turns += 13) {
        set(&it, 0, turns);
        replay(&it);
        for (uint32_t turn = 0; turn < turns; ++turn) {
            expected[1] += 1;
            expected[2] = 3 * (2 * expected[2] + 1) + 1;
            expected[3] = 3 * (2 * expected[3] + 1) + 1;
            expected[4] = 5 * expected[4] + 1;
        }
        for (int number = 0; number < 5; ++number) {
            assert_int_equal(get(&it, number), expected[number]);
        }
    }
    for (int i = 0; i < 2; ++i) {
        rondo_event_destroy(joins[i]);
        rondo_stream_destroy(branches[i]);
    }
    rondo_event_destroy(fork);
    finish(&it);
}

// Two conditionals beside each other, on branches of the graph.
SUITE_CASE(test_conformance_control__scopes_in_parallel_branches) {
    control_case it = start(state);
    rondo_stream *branch = suite_create_stream(it.context);
    rondo_event *fork = suite_create_event(it.context, 0);
    rondo_event *join = suite_create_event(it.context, 0);
    begin_capture(&it);
    ASSERT_OK(rondo_event_record(fork, it.stream));
    ASSERT_OK(rondo_stream_wait_event(branch, fork));
    rondo_scope first = begin_scope(&it, it.stream, RONDO_SCOPE_WHILE, 0, 0);
    rondo_scope second = begin_scope(&it, branch, RONDO_SCOPE_WHILE, 2, 0);
    rondo_stream *in_first = enter(first, 0);
    rondo_stream *in_second = enter(second, 0);
    put(&it, in_second, 2, 1, MINUS_ONE);
    put(&it, in_first, 0, 1, MINUS_ONE);
    put(&it, in_second, 3, 2, 1);
    put(&it, in_first, 1, 3, 1);
    leave(first);
    end(first);
    leave(second);
    end(second);
    ASSERT_OK(rondo_event_record(join, branch));
    ASSERT_OK(rondo_stream_wait_event(it.stream, join));
    ASSERT_OK(rondo_graph_capture_end(it.graph));
    set(&it, 0, 3);
    set(&it, 2, 5);
    replay(&it);
    assert_int_equal(get(&it, 1), 13);
    assert_int_equal(get(&it, 3), 31);
    rondo_event_destroy(join);
    rondo_event_destroy(fork);
    rondo_stream_destroy(branch);
    finish(&it);
}

SUITE_CASE(test_conformance_control__bodies_copy_and_fill) {
    control_case it = start(state);
    uint32_t *pinned = suite_allocate(it.context, RONDO_MEMORY_PINNED, 4);
    pinned[0] = 41;
    pinned[1] = 0;
    begin_capture(&it);
    rondo_scope scope = begin_scope(&it, it.stream, RONDO_SCOPE_IF, 0, 0);
    rondo_stream *body = enter(scope, 0);
    ASSERT_OK(rondo_stream_copy(body, it.x + 1, pinned, 4, RONDO_COPY_HOST_TO_DEVICE));
    put(&it, body, 1, 1, 1);
    ASSERT_OK(rondo_stream_copy(body, it.x + 2, it.x + 1, 4, RONDO_COPY_DEVICE_TO_DEVICE));
    ASSERT_OK(rondo_stream_copy(body, pinned + 1, it.x + 2, 4, RONDO_COPY_DEVICE_TO_HOST));
    ASSERT_OK(rondo_stream_fill(body, it.x + 3, 7, 4, 3));
    leave(scope);
    end(scope);
    ASSERT_OK(rondo_graph_capture_end(it.graph));
    replay(&it);
    assert_int_equal(pinned[1], 0);
    set(&it, 0, 1);
    replay(&it);
    assert_int_equal(pinned[1], 42);
    assert_int_equal(get(&it, 5), 7);
    suite_free(it.context, RONDO_MEMORY_PINNED, pinned);
    finish(&it);
}

static void count_call(void *data) {
    ++**(uint32_t **)data;
}

// Put there directly, or as part of a recorded graph.
static void run_host_function_in_body(control_case *it, rondo_graph *inner, uint32_t *calls) {
    begin_capture(it);
    rondo_scope scope = begin_scope(it, it->stream, RONDO_SCOPE_WHILE, 0, 0);
    rondo_stream *body = enter(scope, 0);
    put(it, body, 0, 1, MINUS_ONE);
    rondo_status status = inner != NULL ? rondo_stream_add_graph(body, inner)
                                        : rondo_stream_call_host(body, "count_call", count_call,
                                                                 &calls, sizeof calls);
    if (rondo_device_supports(it->context->device, RONDO_FEATURE_HOST_IN_BODY) == RONDO_STATUS_OK) {
        ASSERT_OK(status);
        leave(scope);
        end(scope);
        ASSERT_OK(rondo_graph_capture_end(it->graph));
        set(it, 0, 4);
        replay(it);
        assert_int_equal(*calls, 4);
    } else {
        ASSERT_STATUS(status, UNSUPPORTED);
        ASSERT_STATUS(rondo_scope_leave(scope), STATE);
        ASSERT_STATUS(rondo_graph_capture_end(it->graph), STATE);
        ASSERT_MESSAGE_HAS("host functions inside conditional bodies");
        assert_usable(it);
    }
}

SUITE_CASE(test_conformance_control__host_functions_in_bodies) {
    control_case it = start(state);
    uint32_t calls = 0;
    run_host_function_in_body(&it, NULL, &calls);
    finish(&it);
}

SUITE_CASE(test_conformance_control__graphs_with_host_functions_in_bodies) {
    control_case it = start(state);
    uint32_t calls = 0;
    uint32_t *counter = &calls;
    const rondo_graph_options options = {.struct_size = sizeof options,
                                         .keep = RONDO_KEEP_TEMPLATE};
    rondo_graph *inner;
    ASSERT_OK(rondo_graph_create(it.context->device, &options, &inner));
    ASSERT_OK(rondo_graph_capture_begin(inner, it.stream, RONDO_CAPTURE_THREAD_LOCAL));
    ASSERT_OK(
        rondo_stream_call_host(it.stream, "count_call", count_call, &counter, sizeof counter));
    ASSERT_OK(rondo_graph_capture_end(inner));
    run_host_function_in_body(&it, inner, &calls);
    rondo_graph_destroy(inner);
    finish(&it);
}

// ---- functions --------------------------------------------------------------------------------

typedef struct solver {
    suite_context *context;
    uint32_t *x;  // x0 while, x1 result, x2 flag, x3 flag was set, x4 was not, x5 switch
    int call_count;
} solver;

static rondo_status on_set(rondo_stream *stream, void *user_data) {
    solver *it = user_data;
    return suite_affine(it->context, stream, it->x + 3, 1, 1, 1);
}

static rondo_status on_clear(rondo_stream *stream, void *user_data) {
    solver *it = user_data;
    return suite_affine(it->context, stream, it->x + 4, 1, 1, 1);
}

// One turn: x1 = 3 * x1 + 1; a nested if on x2, which is then x0; a nested switch; x0 -= 1.
static rondo_status turn(rondo_stream *stream, void *user_data) {
    solver *it = user_data;
    static const rondo_body_function cases[] = {on_set, NULL, on_clear};
    ++it->call_count;
    rondo_status status = suite_affine(it->context, stream, it->x + 1, 1, 3, 1);
    if (status == RONDO_STATUS_OK) {
        status = rondo_control_if(stream, it->x + 2, on_set, on_clear, it);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_control_if(stream, it->x + 2, NULL, on_clear, it);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_control_switch(stream, it->x + 5, cases, 3, it);
    }
    if (status == RONDO_STATUS_OK) {
        status = suite_affine(it->context, stream, it->x + 0, 1, 1, MINUS_ONE);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_stream_copy(stream, it->x + 2, it->x, 4, RONDO_COPY_DEVICE_TO_DEVICE);
    }
    return status;
}

static rondo_status solve(suite_context *context, rondo_stream *stream, void *data) {
    solver *it = data;
    rondo_status status = rondo_stream_fill(stream, it->x, 0, 4, NUMBERS);
    if (status == RONDO_STATUS_OK) {
        status = suite_affine(context, stream, it->x + 0, 1, 0, 4);
    }
    if (status == RONDO_STATUS_OK) {
        status = suite_affine(context, stream, it->x + 5, 1, 0, 2);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_control_while(stream, it->x + 0, turn, it);
    }
    return status;
}

SUITE_CASE_IN_MODES(test_conformance_control__functions_run_or_record) {
    suite_case *run = *state;
    solver it = {.context = context, .x = suite_allocate(context, RONDO_MEMORY_DEVICE, NUMBERS)};
    suite_run(run, solve, &it, it.x + 1);
    // x2 was 0, 3, 2, 1 in the four turns.
    assert_int_equal(it.call_count, run->mode == SUITE_EAGER ? 4 : 1);
    ASSERT_VALUE(context, it.x, 0, 0);
    ASSERT_VALUE(context, it.x, 1, 40);
    ASSERT_VALUE(context, it.x, 3, 3);
    ASSERT_VALUE(context, it.x, 4, 1 + 1 + 4);
}

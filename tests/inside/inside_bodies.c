// inside_bodies.c — what the backend's table and participants see of conditional bodies.
// SPDX-License-Identifier: Apache-2.0
#include "capture/capture.h"
#include "conformance/control/control_support.h"
#include "inside/inside_objects.h"

SUITE_CASE(test_inside_bodies__are_listed) {
    control_case it = start(state);
    const rondo__backend *backend = it.context->device->backend;
    // A capture that no graph began: scopes work in it, too.
    inside_begin_bare(it.stream);
    record_nested(&it);
    rondo__template *recorded = inside_end_bare(it.stream);
    static const char *const names[] = {"switch", "while", "if_else"};
    static const uint32_t counts[] = {3, 1, 2};
    static const uint32_t branches[] = {1, 0, 1};
    rondo__template *level = recorded;
    for (int depth = 0; depth < 3; ++depth) {
        size_t count = 0;
        rondo__node_info info = {.kind = RONDO__NODE_OTHER};
        size_t index = 0;
        ASSERT_OK(backend->count_nodes(level, &count));
        for (; index < count; ++index) {
            ASSERT_OK(backend->describe_node(level, index, &info));
            if (info.kind == RONDO__NODE_CONDITIONAL) {
                break;
            }
        }
        assert_int_equal(info.kind, RONDO__NODE_CONDITIONAL);
        assert_string_equal(info.name, names[depth]);
        assert_int_equal(info.branch_count, counts[depth]);
        assert_ptr_equal(info.predicate, it.x + depth);
        rondo__template *body;
        ASSERT_OK(backend->get_body(level, index, counts[depth], &body));
        assert_null(body);
        ASSERT_OK(backend->get_body(level, index + 100, 0, &body));
        assert_null(body);
        ASSERT_OK(backend->get_body(level, index, branches[depth], &body));
        level = body;
        assert_non_null(level);
    }
    size_t count = 0;
    ASSERT_OK(backend->count_nodes(level, &count));
    assert_int_equal(count, 1);
    inside_drop_template(recorded);
    finish(&it);
}

static rondo__template *record_loop(control_case *it, uint32_t term, bool has_more) {
    inside_begin_bare(it->stream);
    rondo_scope scope = begin_scope(it, it->stream, RONDO_SCOPE_WHILE, 0, 0);
    rondo_stream *body = enter(scope, 0);
    put(it, body, 0, 1, MINUS_ONE);
    put(it, body, 1, 1, term);
    if (has_more) {
        put(it, body, 1, 1, term);
    }
    leave(scope);
    end(scope);
    return inside_end_bare(it->stream);
}

SUITE_CASE(test_inside_bodies__executables_take_updates) {
    control_case it = start(state);
    const rondo__backend *backend = it.context->device->backend;
    rondo__template *first = record_loop(&it, 10, false);
    rondo__template *same = record_loop(&it, 100, false);
    rondo__template *longer = record_loop(&it, 1000, true);
    rondo__executable *executable = NULL;
    bool was_updated = false;
    ASSERT_OK(backend->instantiate(first, &executable));
    inside_keep_executable(executable);
    set(&it, 0, 3);
    ASSERT_OK(backend->replay(executable, it.stream));
    ASSERT_OK(rondo_stream_synchronize(it.stream));
    assert_int_equal(get(&it, 1), 30);
    ASSERT_OK(backend->update(executable, same, &was_updated));
    assert_true(was_updated);
    inside_drop_template(same);
    set(&it, 0, 2);
    ASSERT_OK(backend->replay(executable, it.stream));
    ASSERT_OK(rondo_stream_synchronize(it.stream));
    assert_int_equal(get(&it, 1), 230);
    ASSERT_OK(backend->update(executable, longer, &was_updated));
    assert_false(was_updated);
    inside_drop_executable(executable);
    inside_drop_template(longer);
    inside_drop_template(first);
    finish(&it);
}

// Takes part in a capture: adds 1 to x7 where a scope begins, and to x8 at the end of each body.
typedef struct probe {
    rondo__participant head;
    control_case *it;
    int *destroy_count;
} probe;

static rondo_status probe_enter_scope(rondo__participant *self, rondo__capture *capture,
                                      rondo_stream *parent) {
    (void)capture;
    control_case *it = ((probe *)self)->it;
    return suite_affine(it->context, parent, it->x + 7, 1, 1, 1);
}

static rondo_status probe_leave_body(rondo__participant *self, rondo__capture *capture,
                                     rondo_stream *body) {
    control_case *it = ((probe *)self)->it;
    rondo__capture *found = NULL;
    uint64_t id = 0;
    ASSERT_OK(rondo__capture_find(body, &found, &id));
    assert_ptr_equal(found, capture);
    const rondo__capture_body *entry = rondo__capture_find_body(capture, id);
    assert_non_null(entry);
    assert_int_not_equal(entry->parent_id, id);
    return suite_affine(it->context, body, it->x + 8, 1, 1, 1);
}

static void probe_destroy(rondo__participant *self) {
    ++*((probe *)self)->destroy_count;
    free(self);
}

SUITE_CASE(test_inside_bodies__participants_are_told) {
    static const rondo__participant_type type = {.name = "probe",
                                                 .enter_scope = probe_enter_scope,
                                                 .leave_body = probe_leave_body,
                                                 .destroy = probe_destroy};
    control_case it = start(state);
    int destroy_count = 0;
    probe *participant = calloc(1, sizeof *participant);
    assert_non_null(participant);
    *participant = (probe){.head = {.type = &type}, .it = &it, .destroy_count = &destroy_count};
    begin_capture(&it);
    rondo__capture *capture = NULL;
    ASSERT_OK(rondo__capture_find(it.stream, &capture, NULL));
    rondo__capture_add_participant(capture, &participant->head);
    record_countdown(&it);
    ASSERT_OK(rondo_graph_capture_end(it.graph));
    set(&it, 0, 5);
    replay(&it);
    assert_int_equal(get(&it, 2), 5);
    assert_int_equal(get(&it, 7), 1);
    assert_int_equal(get(&it, 8), 5);
    assert_int_equal(destroy_count, 0);
    ASSERT_OK(rondo_graph_reset(it.graph));
    assert_int_equal(destroy_count, 1);
    finish(&it);
}

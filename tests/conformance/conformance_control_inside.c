// If, switch and while: two captures at once, and what the library sees of bodies.
// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <pthread.h>

#include "capture/capture.h"
#include "control_support.h"
#include "rondo/inspect.h"

// ---- two at once ------------------------------------------------------------------------------

typedef struct worker {
    void **state;
    uint32_t turns;
    uint32_t result;
} worker;

static void *work(void *data) {
    worker *own = data;
    control_case it = start(own->state);
    for (int round = 0; round < suite_rounds(10, 2); ++round) {
        begin_capture(&it);
        record_nested(&it);
        record_countdown(&it);
        ASSERT_OK(rondo_graph_capture_end(it.graph));
        // Not suite_set: the context's stream is for one thread at a time.
        ASSERT_OK(rondo_stream_fill(it.stream, it.x, 0, 4, NUMBERS));
        ASSERT_OK(rondo_stream_fill(it.stream, it.x, own->turns, 4, 1));
        replay(&it);
        ASSERT_OK(
            rondo_stream_copy(it.stream, &own->result, it.x + 2, 4, RONDO_COPY_DEVICE_TO_HOST));
        ASSERT_OK(rondo_stream_synchronize(it.stream));
        if (own->result != own->turns) {
            break;
        }
        ASSERT_OK(rondo_graph_reset(it.graph));
    }
    finish(&it);
    return NULL;
}

static void test_conformance_control__two_captures_in_two_threads(void **state) {
    suite_need_execution(suite_get_context(state));
    worker workers[2] = {{.state = state, .turns = 30}, {.state = state, .turns = 50}};
    pthread_t threads[2];
    for (int i = 0; i < 2; ++i) {
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < 2; ++i) {
        pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < 2; ++i) {
        assert_int_equal(workers[i].result, workers[i].turns);
    }
}

// ---- inside -----------------------------------------------------------------------------------

static void test_conformance_control__bodies_are_listed(void **state) {
    control_case it = start(state);
    const rondo__backend *backend = it.context->device->backend;
    rondo__template *recorded = NULL;
    // A capture that no graph began: scopes work in it, too.
    (void)rondo_stream_get_native(it.stream);  // from now on it may record by itself
    ASSERT_OK(backend->begin_capture(it.stream, RONDO_CAPTURE_THREAD_LOCAL, NULL));
    record_nested(&it);
    ASSERT_OK(backend->end_capture(it.stream, &recorded));
    suite_keep_template(recorded);
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
    suite_drop_template(recorded);
    finish(&it);
}

static bool append_text(void *user_data, const char *text, size_t bytes) {
    char *all = user_data;
    size_t used = strlen(all);
    assert_true(used + bytes < 16384);
    memcpy(all + used, text, bytes);
    all[used + bytes] = '\0';
    return true;
}

static size_t count_parts(const char *text, const char *part) {
    size_t count = 0;
    while ((text = strstr(text, part)) != NULL) {
        ++count;
        text += strlen(part);
    }
    return count;
}

static void test_conformance_control__dumps_show_bodies(void **state) {
    control_case it = start(state);
    char json[16384] = "";
    char dot[16384] = "";
    begin_capture(&it);
    record_nested(&it);
    ASSERT_OK(rondo_graph_capture_end(it.graph));
    ASSERT_OK(rondo_graph_dump(it.graph, RONDO_TEXT_JSON, append_text, json));
    ASSERT_OK(rondo_graph_dump(it.graph, RONDO_TEXT_DOT, append_text, dot));
    char predicate[64];
    snprintf(predicate, sizeof predicate, "\"name\": \"while\", \"predicate\": \"0x%" PRIxPTR "\"",
             (uintptr_t)(it.x + 1));
    assert_int_equal(count_parts(json, predicate), 1);
    assert_int_equal(count_parts(json, "\"bodies\": ["), 3);
    // The host keeps nothing of empty bodies; CUDA has a graph for each.
    assert_int_equal(count_parts(json, "\"nodes\": ["), it.context->is_cuda ? 7 : 5);
    assert_int_equal(count_parts(json, "{"), count_parts(json, "}"));
    assert_int_equal(count_parts(json, "\"name\": \"affine\""), 2 + 1 + 2);
    assert_int_equal(count_parts(dot, "conditional\\nif_else"), 1);
    assert_int_equal(count_parts(dot, "subgraph cluster_"), it.context->is_cuda ? 6 : 4);
    assert_int_equal(count_parts(dot, "{"), count_parts(dot, "}"));
    finish(&it);
}

static rondo__template *record_loop(control_case *it, uint32_t term, bool has_more) {
    const rondo__backend *backend = it->context->device->backend;
    rondo__template *recorded = NULL;
    (void)rondo_stream_get_native(it->stream);  // from now on it may record by itself
    ASSERT_OK(backend->begin_capture(it->stream, RONDO_CAPTURE_THREAD_LOCAL, NULL));
    rondo_scope scope = begin_scope(it, it->stream, RONDO_SCOPE_WHILE, 0, 0);
    rondo_stream *body = enter(scope, 0);
    put(it, body, 0, 1, MINUS_ONE);
    put(it, body, 1, 1, term);
    if (has_more) {
        put(it, body, 1, 1, term);
    }
    leave(scope);
    end(scope);
    ASSERT_OK(backend->end_capture(it->stream, &recorded));
    suite_keep_template(recorded);
    return recorded;
}

static void test_conformance_control__executables_take_updates_of_bodies(void **state) {
    control_case it = start(state);
    const rondo__backend *backend = it.context->device->backend;
    rondo__template *first = record_loop(&it, 10, false);
    rondo__template *same = record_loop(&it, 100, false);
    rondo__template *longer = record_loop(&it, 1000, true);
    rondo__executable *executable = NULL;
    bool was_updated = false;
    ASSERT_OK(backend->instantiate(first, &executable));
    suite_keep_executable(executable);
    set(&it, 0, 3);
    ASSERT_OK(backend->replay(executable, it.stream));
    ASSERT_OK(rondo_stream_synchronize(it.stream));
    assert_int_equal(get(&it, 1), 30);
    ASSERT_OK(backend->update(executable, same, &was_updated));
    assert_true(was_updated);
    suite_drop_template(same);
    set(&it, 0, 2);
    ASSERT_OK(backend->replay(executable, it.stream));
    ASSERT_OK(rondo_stream_synchronize(it.stream));
    assert_int_equal(get(&it, 1), 230);
    ASSERT_OK(backend->update(executable, longer, &was_updated));
    assert_false(was_updated);
    suite_drop_executable(executable);
    suite_drop_template(longer);
    suite_drop_template(first);
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

static void test_conformance_control__participants_are_told(void **state) {
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

static void test_conformance_control__features_are_told(void **state) {
    suite_context *context = suite_get_context(state);
    rondo_device_info info = {.struct_size = sizeof info};
    ASSERT_OK(rondo_device_get_info(context->device, &info));
    for (int feature = RONDO_FEATURE_IF; feature <= RONDO_FEATURE_WHILE; ++feature) {
        ASSERT_OK(rondo_device_supports(context->device, (rondo_feature)feature));
    }
    if (!context->is_cuda) {
        ASSERT_OK(rondo_device_supports(context->device, RONDO_FEATURE_HOST_IN_BODY));
    } else {
        ASSERT_STATUS(rondo_device_supports(context->device, RONDO_FEATURE_HOST_IN_BODY),
                      UNSUPPORTED);
        ASSERT_MESSAGE_HAS("launch a kernel");
    }
    ASSERT_STATUS(rondo_device_supports(context->device, (rondo_feature)99), INVALID);
    ASSERT_STATUS(rondo_device_supports(NULL, RONDO_FEATURE_IF), INVALID);
}

static const suite_entry control_inside_cases[] = {
    SUITE_CASE(test_conformance_control__two_captures_in_two_threads),
    SUITE_CASE(test_conformance_control__bodies_are_listed),
    SUITE_CASE(test_conformance_control__dumps_show_bodies),
    SUITE_CASE(test_conformance_control__executables_take_updates_of_bodies),
    SUITE_CASE(test_conformance_control__participants_are_told),
    SUITE_CASE(test_conformance_control__features_are_told),
    {NULL, NULL, false},
};
SUITE_LIST(control_inside);

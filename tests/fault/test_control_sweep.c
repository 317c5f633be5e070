// Fail the nth, in control flow: every driver call (on the fake driver) and every allocation (there
// and on the host) of a scenario with nested scopes fails once, in turn. Whatever fails: the
// failing call wrote a fresh record, nothing crashes, nothing stays behind, nothing illegal is
// asked of the driver, and every object can still be destroyed, most of them in the middle of a
// capture.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "rondo/rondo.h"

// What a function returns when a STEP in it failed.
#define STEP_RESULT rondo_error_get_last()->status
#include "support/sweep.h"

typedef struct world {
    const char *device_name;
    rondo_device *device;
    rondo_stream *stream;
    rondo_stream *side;
    rondo_event *fork;
    rondo_event *join;
    rondo_graph *graph;
    uint32_t *memory;
} world;

static rondo_status open_world(world *w) {
    rondo_graph_options options = {.struct_size = sizeof options};
    options.keep = RONDO_KEEP_TEMPLATE;
    STEP(rondo_device_open(w->device_name, &w->device));
    STEP(rondo_stream_create(w->device, NULL, &w->stream));
    STEP(rondo_stream_create(w->device, NULL, &w->side));
    STEP(rondo_event_create(w->device, 0, &w->fork));
    STEP(rondo_event_create(w->device, 0, &w->join));
    STEP(rondo_graph_create(w->device, &options, &w->graph));
    STEP(rondo_memory_allocate(w->device, RONDO_MEMORY_DEVICE, 64, (void **)&w->memory));
    STEP(rondo_stream_fill(w->stream, w->memory, 1, 4, 16));
    STEP(rondo_stream_synchronize(w->stream));
    return RONDO_STATUS_OK;
}

static void close_world(world *w) {
    rondo_graph_destroy(w->graph);
    rondo_event_destroy(w->fork);
    rondo_event_destroy(w->join);
    rondo_stream_destroy(w->side);
    rondo_stream_destroy(w->stream);
    rondo_memory_free(w->device, w->memory);
    rondo_device_release(w->device);
}

static rondo_status clear_first(rondo_stream *stream, void *user_data) {
    STEP(rondo_stream_fill(stream, ((world *)user_data)->memory, 0, 4, 1));
    return RONDO_STATUS_OK;
}

static rondo_status set_third(rondo_stream *stream, void *user_data) {
    STEP(rondo_label_push(stream, "third"));
    STEP(rondo_stream_fill(stream, ((world *)user_data)->memory + 2, 7, 4, 1));
    STEP(rondo_label_pop(stream));
    return RONDO_STATUS_OK;
}

// while (m0 != 0) { beside each other: m3 = 5; if (m1) { m2 = 7; } else { m0 = 0; }  then m0 = 0; }
static rondo_status record_loop(world *w, bool is_joined) {
    rondo_scope loop;
    rondo_stream *body;
    STEP(rondo_label_push(w->stream, "solver"));
    STEP(rondo_scope_begin(w->stream, RONDO_SCOPE_WHILE, w->memory, 0, &loop));
    STEP(rondo_label_push(w->stream, "loop"));  // behind the node, around its body
    STEP(rondo_scope_enter(loop, 0, &body));
    STEP(rondo_stream_fill(body, w->memory + 4, 5, 4, 1));
    STEP(rondo_label_push(body, "turn"));
    STEP(rondo_event_record(w->fork, body));
    STEP(rondo_stream_wait_event(w->side, w->fork));
    STEP(rondo_stream_fill(w->side, w->memory + 3, 5, 4, 1));
    STEP(rondo_control_if(body, w->memory + 1, set_third, clear_first, w));
    STEP(clear_first(body, w));
    if (is_joined) {
        STEP(rondo_event_record(w->join, w->side));
        STEP(rondo_stream_wait_event(body, w->join));
    }
    STEP(rondo_scope_leave(loop));
    STEP(rondo_label_pop(w->stream));
    STEP(rondo_scope_end(loop));
    STEP(rondo_label_pop(w->stream));
    return RONDO_STATUS_OK;
}

// Labels are whole, or the capture has failed.
static rondo_status check_labels(world *w) {
    static const char *const labels[] = {"solver", "solver/loop", "solver/loop/turn",
                                         "solver/loop/turn/third", "third"};
    static sweep_text dumped;
    dumped.length = 0;
    STEP(rondo_graph_dump(w->graph, RONDO_TEXT_JSON, sweep_append_text, &dumped));
    for (size_t i = 0; i < sizeof labels / sizeof *labels; ++i) {
        char wanted[64];
        snprintf(wanted, sizeof wanted, "\"label\": \"%s\"", labels[i]);
        if (strstr(dumped.bytes, wanted) == NULL) {
            fail_msg("no %s in %s", wanted, dumped.bytes);
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status record_and_replay(world *w) {
    static const rondo_body_function cases[] = {NULL, set_third, clear_first};
    uint32_t values[4];
    STEP(rondo_device_supports(w->device, RONDO_FEATURE_SWITCH));
    for (int round = 0; round < 2; ++round) {
        STEP(rondo_graph_capture_begin(
            w->graph, w->stream, round == 0 ? RONDO_CAPTURE_THREAD_LOCAL : RONDO_CAPTURE_GLOBAL));
        STEP(record_loop(w, true));
        STEP(rondo_control_switch(w->stream, w->memory + 1, cases, 3, w));
        STEP(rondo_graph_capture_end(w->graph));
        STEP(check_labels(w));
        STEP(rondo_graph_instantiate(w->graph));
        STEP(rondo_graph_replay(w->graph, w->stream));
        STEP(rondo_stream_copy(w->stream, values, w->memory, sizeof values,
                               RONDO_COPY_DEVICE_TO_HOST));
        STEP(rondo_stream_synchronize(w->stream));
        assert_int_equal(values[0], 0);
        assert_int_equal(values[2], 7);
        assert_int_equal(values[3], 5);
        STEP(rondo_stream_fill(w->stream, w->memory, 1, 4, 16));
        STEP(rondo_stream_synchronize(w->stream));
        STEP(rondo_graph_reset(w->graph));
    }
    STEP(rondo_control_while(w->stream, w->memory, clear_first, w));
    STEP(rondo_stream_synchronize(w->stream));
    // Given up with scopes open.
    rondo_scope outer;
    rondo_scope inner;
    rondo_stream *body;
    STEP(rondo_graph_capture_begin(w->graph, w->stream, RONDO_CAPTURE_THREAD_LOCAL));
    STEP(rondo_scope_begin(w->stream, RONDO_SCOPE_IF_ELSE, w->memory, 0, &outer));
    STEP(rondo_scope_enter(outer, 1, &body));
    STEP(rondo_scope_begin(body, RONDO_SCOPE_WHILE, w->memory, 0, &inner));
    STEP(rondo_scope_enter(inner, 0, &body));
    return RONDO_STATUS_OK;
}

// What goes wrong by itself goes wrong, whatever else fails before. A capture that lacks work
// because a call failed may still end well: that call said so.
static rondo_status misuse(world *w) {
    rondo_stream *body = NULL;
    rondo_scope scope;
    STEP(rondo_graph_capture_begin(w->graph, w->stream, RONDO_CAPTURE_THREAD_LOCAL));
    rondo_status status = record_loop(w, false);
    assert_int_not_equal(status, RONDO_STATUS_OK);
    status = rondo_graph_capture_end(w->graph);
    STEP(rondo_graph_reset(w->graph));

    STEP(rondo_graph_capture_begin(w->graph, w->stream, RONDO_CAPTURE_THREAD_LOCAL));
    STEP(rondo_scope_begin(w->stream, RONDO_SCOPE_IF, w->memory, 0, &scope));
    STEP(rondo_scope_enter(scope, 0, &body));
    assert_int_not_equal(rondo_stream_synchronize(body), RONDO_STATUS_OK);
    assert_int_not_equal(rondo_scope_leave(scope), RONDO_STATUS_OK);
    assert_int_not_equal(rondo_graph_capture_end(w->graph), RONDO_STATUS_OK);

    STEP(rondo_graph_capture_begin(w->graph, w->stream, RONDO_CAPTURE_THREAD_LOCAL));
    STEP(rondo_scope_begin(w->stream, RONDO_SCOPE_IF, w->memory, 0, &scope));
    STEP(rondo_stream_fill(w->stream, w->memory, 1, 4, 1));
    assert_int_not_equal(rondo_scope_enter(scope, 0, &body), RONDO_STATUS_OK);
    assert_int_not_equal(rondo_graph_capture_end(w->graph), RONDO_STATUS_OK);
    return RONDO_STATUS_OK;
}

typedef rondo_status (*scenario)(world *w);

static void run_round(const sweep_point *point) {
    scenario run = *(const scenario *)point->data;
    world w = {.device_name = point->device_name};
    rondo_status status = open_world(&w);
    if (status == RONDO_STATUS_OK) {
        status = run(&w);
    }
    close_world(&w);
    if (!sweep_lift()) {
        assert_int_equal(status, RONDO_STATUS_OK);
    }
}

static void sweep_on_host(const char *name, scenario run) {
    const sweep_subject subject = {.run = run_round, .data = &run};
    size_t points = sweep_allocations(&subject, "host");
    print_message("%s on the host: swept %zu allocations\n", name, points);
    assert_true(points > 15);
}

static void sweep_on_cuda(const char *name, int driver_version, scenario run) {
    const fake_cuda_options options = {
        .device_count = 1, .driver_version = driver_version, .has_get_proc_address = true};
    const sweep_subject subject = {
        .run = run_round,
        .data = &run,
        .options = &options,
        .codes = {RONDO__CU_ERROR_OUT_OF_MEMORY, RONDO__CU_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                  RONDO__CU_ERROR_LAUNCH_FAILED}};
    sweep_count count = sweep_on_fake(name, &subject);
    assert_true(count.allocations > 15 && count.driver_calls > 100);
}

TEST(test_control_sweep__host) {
    sweep_on_host("record and replay", record_and_replay);
    sweep_on_host("misuse", misuse);
}

TEST(test_control_sweep__cuda) {
    sweep_on_cuda("record and replay on CUDA 13.0", 13000, record_and_replay);
    sweep_on_cuda("misuse on CUDA 13.0", 13000, misuse);
}

// Where ELSE and SWITCH are built of several IFs.
TEST(test_control_sweep__older_cuda) {
    sweep_on_cuda("record and replay on CUDA 12.4", 12040, record_and_replay);
}

TEST_MAIN()

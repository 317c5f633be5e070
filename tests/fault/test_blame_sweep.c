// Fail the nth in captures that fail: labels, reports and steps that finish eagerly, with every
// driver call and every allocation failing once, in turn, on the fake driver and on the host.
//
// Whatever fails, and whatever broke the capture besides: the failing call wrote a fresh record,
// nothing stays behind, nothing illegal is asked of the driver, and the stream and the graph can be
// used again.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "rondo/control.h"
#include "rondo/graph.h"
#include "rondo/inspect.h"
#include "rondo/label.h"
#include "rondo/pool.h"
#include "rondo/report.h"
#include "support/sweep.h"

typedef struct world {
    const char *device_name;
    rondo_device *device;
    rondo_stream *stream;
    rondo_stream *branch;
    rondo_event *fork;
    rondo_event *join;
    rondo_graph *graph;
    rondo_pool *pool;
    uint32_t *memory;
    void *block;  // of the pool, while handed out
    int step_count;
} world;

static void open_world(world *w) {
    rondo_graph_options options = {.struct_size = sizeof options};
    void *memory = NULL;
    options.keep = RONDO_KEEP_TEMPLATE;
    options.label = "swept";
    STEP(rondo_device_open(w->device_name, &w->device));
    STEP(rondo_stream_create(w->device, NULL, &w->stream));
    STEP(rondo_stream_create(w->device, NULL, &w->branch));
    STEP(rondo_event_create(w->device, 0, &w->fork));
    STEP(rondo_event_create(w->device, 0, &w->join));
    STEP(rondo_pool_create(w->device, NULL, &w->pool));
    STEP(rondo_memory_allocate(w->device, RONDO_MEMORY_DEVICE, 256, &memory));
    w->memory = memory;
    STEP(rondo_graph_create(w->device, &options, &w->graph));
}

// Of a capture that failed no block is left.
static void free_block(world *w) {
    if (w->block != NULL) {
        (void)rondo_pool_free(w->pool, w->block);
        w->block = NULL;
    }
}

static void close_world(world *w) {
    rondo_graph_destroy(w->graph);  // a capture that is given up undoes frees
    free_block(w);
    rondo_memory_free(w->device, w->memory);
    rondo_pool_release(w->pool);
    rondo_event_destroy(w->join);
    rondo_event_destroy(w->fork);
    rondo_stream_destroy(w->branch);
    rondo_stream_destroy(w->stream);
    rondo_device_release(w->device);
}

static bool swallow(void *user_data, const char *text, size_t bytes) {
    *(size_t *)user_data += bytes;
    (void)text;
    return true;
}

// A step with scopes on two streams.
static void record(world *w) {
    STEP(rondo_label_push(w->stream, "layer3"));
    STEP(rondo_stream_fill(w->stream, w->memory, 1, 4, 8));
    STEP(rondo_pool_allocate(w->pool, w->stream, 512, &w->block));
    STEP(rondo_event_record(w->fork, w->stream));
    STEP(rondo_stream_wait_event(w->branch, w->fork));
    STEP(rondo_label_push(w->branch, "attention"));
    STEP(rondo_stream_fill(w->branch, w->block, 2, 4, 8));
    STEP(rondo_label_pop(w->branch));
    free_block(w);
    STEP(rondo_event_record(w->join, w->branch));
    STEP(rondo_stream_wait_event(w->stream, w->join));
    STEP(rondo_stream_fill(w->stream, w->memory, 3, 4, 8));
    STEP(rondo_label_pop(w->stream));
}

// The report and its text are there whatever happened.
static void check_report(world *w, bool has_failed) {
    rondo_capture_report report = {.struct_size = sizeof report};
    char text[2048];
    OK(rondo_graph_get_report(w->graph, &report));
    assert_int_equal(report.status != RONDO_STATUS_OK, has_failed);
    if (has_failed && (report.cause == RONDO_CAUSE_NONE || report.message[0] == '\0' ||
                       report.call[0] == '\0' || report.file == NULL)) {
        fail_msg("an empty report: %s, \"%s\" by \"%s\"",
                 rondo_capture_cause_get_name(report.cause), report.message, report.call);
    }
    size_t length = rondo_capture_report_format(&report, text, sizeof text);
    assert_int_equal(length, strlen(text));
}

// Ends a capture that should fail (or might, by the planned failure).
static void end_and_check(world *w) {
    uint64_t sequence = rondo_error_get_last()->sequence;
    rondo_status status = rondo_graph_capture_end(w->graph);
    (void)sweep_step(status, sequence, "rondo_graph_capture_end");
    check_report(w, status != RONDO_STATUS_OK);
    (void)rondo_graph_reset(w->graph);
    free_block(w);
}

static void record_labels(world *w) {
    size_t dumped = 0;
    STEP(rondo_label_push(w->stream, "model"));
    STEP(rondo_graph_capture_begin(w->graph, w->stream, RONDO_CAPTURE_THREAD_LOCAL));
    record(w);
    uint64_t sequence = rondo_error_get_last()->sequence;
    rondo_status status = rondo_graph_capture_end(w->graph);
    check_report(w, status != RONDO_STATUS_OK);
    if (!sweep_step(status, sequence, "rondo_graph_capture_end")) {
        return;
    }
    STEP(rondo_graph_dump(w->graph, RONDO_TEXT_JSON, swallow, &dumped));
    STEP(rondo_graph_replay(w->graph, w->stream));
    STEP(rondo_stream_synchronize(w->stream));
    STEP(rondo_graph_reset(w->graph));
    STEP(rondo_label_pop(w->stream));
}

static void break_captures(world *w) {
    for (int kind = 0; kind < 5; ++kind) {
        void *address = NULL;
        STEP(rondo_graph_capture_begin(w->graph, w->stream, RONDO_CAPTURE_GLOBAL));
        record(w);
        switch (kind) {
            case 0:
                (void)!rondo_stream_synchronize(w->stream);
                break;
            case 1:
                if (rondo_memory_allocate(w->device, RONDO_MEMORY_DEVICE, 64, &address) ==
                    RONDO_STATUS_OK) {
                    rondo_memory_free(w->device, address);
                }
                break;
            case 2:
                (void)!rondo_stream_fill(w->stream, w->memory, 0, 3, 1);
                break;
            case 3:
                (void)!rondo_label_push(w->stream, "given up");
                rondo_graph_capture_abort(w->graph);
                check_report(w, true);
                free_block(w);
                continue;
            default:
                rondo_stream_destroy(w->branch);
                w->branch = NULL;
                break;
        }
        end_and_check(w);
    }
    STEP(rondo_stream_create(w->device, NULL, &w->branch));
    // The origin itself.
    STEP(rondo_graph_capture_begin(w->graph, w->stream, RONDO_CAPTURE_THREAD_LOCAL));
    record(w);
    rondo_stream_destroy(w->stream);
    w->stream = NULL;
    end_and_check(w);
    STEP(rondo_stream_create(w->device, NULL, &w->stream));
    STEP(rondo_graph_capture_begin(w->graph, w->stream, RONDO_CAPTURE_RELAXED));
    record(w);
    end_and_check(w);
}

// Two bodies, one inside the other, with scopes in both.
static void record_bodies(world *w, rondo_stream **out_body) {
    rondo_scope outer;
    rondo_scope inner;
    rondo_stream *body = NULL;
    STEP(rondo_label_push(w->stream, "outer"));
    STEP(rondo_scope_begin(w->stream, RONDO_SCOPE_IF, w->memory, 0, &outer));
    STEP(rondo_scope_enter(outer, 0, &body));
    STEP(rondo_label_push(body, "inner"));
    STEP(rondo_stream_fill(body, w->memory, 1, 4, 8));
    STEP(rondo_scope_begin(body, RONDO_SCOPE_WHILE, w->memory, 0, &inner));
    STEP(rondo_scope_enter(inner, 0, &body));
    STEP(rondo_event_record(w->fork, body));
    STEP(rondo_stream_wait_event(w->branch, w->fork));
    STEP(rondo_label_push(w->branch, "side"));
    STEP(rondo_stream_fill(w->branch, w->memory, 1, 4, 8));
    STEP(rondo_label_pop(w->branch));
    *out_body = body;
}

static void break_bodies(world *w) {
    for (int kind = 0; kind < 4; ++kind) {
        rondo_stream *body = NULL;
        STEP(rondo_graph_capture_begin(w->graph, w->stream, RONDO_CAPTURE_THREAD_LOCAL));
        record_bodies(w, &body);
        if (kind == 0 && body != NULL) {
            (void)!rondo_stream_synchronize(body);
        } else if (kind == 1) {
            (void)!rondo_stream_fill(w->branch, w->memory, 0, 3, 1);
        } else if (kind == 2) {
            rondo_graph_capture_abort(w->graph);
            check_report(w, true);
            continue;
        }
        end_and_check(w);
    }
}

static rondo_status wait_in_step(rondo_stream *stream, void *user_data) {
    world *w = user_data;
    ++w->step_count;
    rondo_status status = rondo_label_push(stream, "step");
    if (status == RONDO_STATUS_OK) {
        status = rondo_stream_fill(stream, w->memory, 7, 4, 8);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_stream_synchronize(stream);
    }
    return status;
}

static void run_steps(world *w) {
    rondo_step_outcome outcome = RONDO_STEP_CAPTURED;
    w->step_count = 0;
    uint64_t sequence = rondo_error_get_last()->sequence;
    rondo_status status =
        rondo_graph_capture_step(w->graph, w->stream, NULL, wait_in_step, w, &outcome);
    bool is_fine = sweep_step(status, sequence, "rondo_graph_capture_step");
    assert_string_equal(rondo_label_get_path(w->stream), "");
    assert_int_equal(outcome, is_fine ? RONDO_STEP_RAN_EAGERLY : RONDO_STEP_NOTHING);
    assert_true(w->step_count <= 2);
    if (is_fine && w->step_count != 2) {
        fail_msg("the step ran %d times", w->step_count);
    }
}

typedef void (*scenario)(world *w);

static void run_round(const sweep_point *point) {
    scenario run = *(const scenario *)point->data;
    world w = {.device_name = point->device_name};
    open_world(&w);
    if (w.graph != NULL) {
        run(&w);
    }
    close_world(&w);
}

static void sweep(const char *name, scenario run) {
    const sweep_subject subject = {
        .run = run_round,
        .data = &run,
        .codes = {RONDO__CU_ERROR_OUT_OF_MEMORY, RONDO__CU_ERROR_UNKNOWN,
                  RONDO__CU_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                  RONDO__CU_ERROR_STREAM_CAPTURE_INVALIDATED, RONDO__CU_ERROR_LAUNCH_FAILED}};
    sweep_count count = sweep_on_fake(name, &subject);
    size_t host_points = sweep_allocations(&subject, "host");
    print_message("%s: swept %zu allocations on the host\n", name, host_points);
    assert_true(count.driver_calls > 100 && count.allocations > 10 && host_points > 10);
}

TEST(test_blame_sweep__labels) {
    sweep("labels", record_labels);
}

TEST(test_blame_sweep__broken_captures) {
    sweep("broken captures", break_captures);
}

TEST(test_blame_sweep__broken_bodies) {
    sweep("broken bodies", break_bodies);
}

TEST(test_blame_sweep__eager_finish) {
    sweep("eager finish", run_steps);
}

TEST_MAIN()

// Fail the nth: graphs inside graphs, updates, node lists, deferred executables and external
// events, on the fake driver (each driver call and each allocation) and on the host (each
// allocation). Whatever fails: the call wrote a fresh record, nothing crashes, nothing stays
// behind, and the device still records and replays.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "rondo/graph.h"
#include "rondo/label.h"

// What a function returns when a STEP in it failed.
#define STEP_RESULT false
#include "rondo/inspect.h"
#include "rondo/update.h"
#include "support/sweep.h"

typedef struct world {
    const char *name;
    rondo_device *device;
    rondo_stream *stream;
    rondo_stream *side;
    rondo_event *fork;
    rondo_event *external;
    rondo_graph *inner;
    rondo_graph *outer;
    rondo_graph *top;
    rondo_graph *updated;
    void *memory;
} world;

static bool open_world(world *w) {
    rondo_graph_options options = {.struct_size = sizeof options};
    options.keep = RONDO_KEEP_TEMPLATE;
    STEP(rondo_device_open(w->name, &w->device));
    STEP(rondo_stream_create(w->device, NULL, &w->stream));
    STEP(rondo_stream_create(w->device, NULL, &w->side));
    STEP(rondo_event_create(w->device, 0, &w->fork));
    STEP(rondo_event_create(w->device, RONDO_EVENT_EXTERNAL | RONDO_EVENT_TIMED, &w->external));
    STEP(rondo_memory_allocate(w->device, RONDO_MEMORY_DEVICE, 256, &w->memory));
    STEP(rondo_graph_create(w->device, &options, &w->outer));
    STEP(rondo_graph_create(w->device, NULL, &w->top));
    STEP(rondo_graph_create(w->device, NULL, &w->updated));
    options.keep = RONDO_KEEP_TEMPLATE_ONLY;
    STEP(rondo_graph_create(w->device, &options, &w->inner));
    return true;
}

// Two branches and an external event.
static bool capture_inner(world *w, uint32_t value) {
    STEP(rondo_graph_capture_begin(w->inner, w->stream, RONDO_CAPTURE_THREAD_LOCAL));
    STEP(rondo_stream_wait_event(w->stream, w->external));
    STEP(rondo_label_push(w->stream, "inner"));
    STEP(rondo_stream_fill(w->stream, w->memory, value, 4, 4));
    STEP(rondo_label_pop(w->stream));
    STEP(rondo_event_record(w->fork, w->stream));
    STEP(rondo_stream_wait_event(w->side, w->fork));
    STEP(rondo_stream_fill(w->side, (char *)w->memory + 64, value, 4, 4));
    STEP(rondo_event_record(w->fork, w->side));
    STEP(rondo_stream_wait_event(w->stream, w->fork));
    STEP(rondo_event_record(w->external, w->stream));
    STEP(rondo_graph_capture_end(w->inner));
    return true;
}

// Its labels are whole, or its capture has failed.
static bool look_inside(rondo_graph *graph, const char *label) {
    static sweep_text dumped;
    uint64_t count = 0;
    rondo_graph_node node = {.struct_size = sizeof node};
    rondo_graph_edge edges[16];
    STEP(rondo_graph_get_node_count(graph, &count));
    for (uint64_t i = 0; i < count; ++i) {
        STEP(rondo_graph_get_node(graph, i, &node));
    }
    STEP(rondo_graph_list_edges(graph, edges, 16, &count));
    dumped.length = 0;
    STEP(rondo_graph_dump(graph, RONDO_TEXT_JSON, sweep_append_text, &dumped));
    if (strstr(dumped.bytes, label) == NULL) {
        fail_msg("no %s in %s", label, dumped.bytes);
    }
    dumped.length = 0;
    STEP(rondo_graph_dump(graph, RONDO_TEXT_DOT, sweep_append_text, &dumped));
    return true;
}

static bool use_graphs(world *w) {
    rondo_update_report report = {.struct_size = sizeof report};
    STEP(capture_inner(w, 1) ? RONDO_STATUS_OK : rondo_error_get_last()->status);
    if (!look_inside(w->inner, "\"label\": \"inner\"")) {
        return false;
    }
    STEP(rondo_graph_replay(w->inner, w->stream));
    STEP(rondo_graph_capture_begin(w->outer, w->stream, RONDO_CAPTURE_THREAD_LOCAL));
    STEP(rondo_stream_add_graph(w->stream, w->inner));
    STEP(rondo_stream_fill(w->stream, w->memory, 7, 4, 1));
    STEP(rondo_label_push(w->stream, "outer"));
    STEP(rondo_stream_add_graph(w->stream, w->inner));
    STEP(rondo_label_pop(w->stream));
    STEP(rondo_graph_capture_end(w->outer));
    if (!look_inside(w->outer, "\"label\": \"outer/inner\"")) {
        return false;
    }
    STEP(rondo_graph_capture_begin(w->top, w->stream, RONDO_CAPTURE_THREAD_LOCAL));
    STEP(rondo_stream_add_graph(w->stream, w->outer));
    STEP(rondo_graph_capture_end(w->top));
    STEP(rondo_graph_replay(w->outer, w->stream));
    STEP(rondo_graph_replay(w->top, w->side));
    STEP(rondo_graph_update(w->updated, w->inner, &report));
    for (uint32_t round = 2; round < 4; ++round) {
        STEP(rondo_graph_replay(w->updated, w->stream));
        if (!capture_inner(w, round)) {
            return false;
        }
        STEP(rondo_graph_update(w->updated, w->inner, &report));
        assert_int_equal(report.result, RONDO_UPDATE_PATCHED);
    }
    STEP(rondo_graph_update(w->updated, w->outer, &report));
    assert_int_equal(report.result, RONDO_UPDATE_INSTANTIATED);
    STEP(rondo_graph_replay(w->updated, w->stream));
    STEP(rondo_event_record(w->external, w->side));
    STEP(rondo_stream_wait_event(w->stream, w->external));
    STEP(rondo_event_synchronize(w->external));
    STEP(rondo_stream_synchronize(w->side));
    STEP(rondo_stream_synchronize(w->stream));
    return true;
}

static void close_world(world *w) {
    rondo_event_destroy(w->external);  // graphs still hold it
    rondo_graph_destroy(w->inner);
    rondo_graph_destroy(w->outer);
    rondo_graph_destroy(w->top);
    rondo_graph_destroy(w->updated);
    rondo_event_destroy(w->fork);
    rondo_stream_destroy(w->side);
    rondo_stream_destroy(w->stream);
    if (w->device != NULL) {
        rondo_memory_free(w->device, w->memory);
    }
    rondo_device_release(w->device);
}

// After a failure, with everything working again: what records gives up, and graphs still nest.
static void check_recovery(world *w) {
    rondo_graph *graphs[] = {w->inner, w->outer, w->top, w->updated};
    for (int i = 0; i < 4; ++i) {
        rondo_graph_capture_abort(graphs[i]);
        OK(rondo_graph_reset(graphs[i]));
    }
    if (!use_graphs(w)) {
        fail_msg("after a failure: %s", rondo_error_get_last()->message);
    }
}

// After a failing driver call the device may be lost, so there only what was made goes.
static void run_round(const sweep_point *point) {
    world w = {.name = point->device_name};
    bool is_open = open_world(&w);
    bool is_done = is_open && use_graphs(&w);
    if (point->code == RONDO__CU_SUCCESS && !sweep_lift()) {
        assert_true(is_done);
    }
    if (point->code == RONDO__CU_SUCCESS && is_open) {
        check_recovery(&w);
    }
    close_world(&w);
}

static const sweep_subject subject = {
    .run = run_round,
    .codes = {RONDO__CU_ERROR_OUT_OF_MEMORY, RONDO__CU_ERROR_UNKNOWN,
              RONDO__CU_ERROR_LAUNCH_FAILED}};

TEST(test_interop_sweep__host) {
    size_t points = sweep_allocations(&subject, "host");
    print_message("host: swept %zu allocations\n", points);
    assert_true(points > 60);
}

TEST(test_interop_sweep__cuda) {
    sweep_count count = sweep_on_fake("cuda", &subject);
    assert_true(count.allocations > 40 && count.driver_calls > 300);
}

TEST_MAIN()

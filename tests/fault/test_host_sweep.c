// Fail the nth: every allocation of a scenario on the host device fails once, in turn, through
// the public calls. Whatever fails: the failing call wrote a fresh record, nothing crashes or
// hangs, the stream and the graph work afterwards, and every object can be destroyed. Leaks show
// under ASan.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "rondo/rondo.h"
#include "support/sweep.h"

typedef struct world {
    rondo_device *device;
    rondo_stream *stream;
    rondo_stream *side;
    rondo_event *fork;
    rondo_event *join;
    rondo_graph *graph;
    void *memory;
    void *pinned;
} world;

static void count_up(void *arguments) {
    ++**(uint32_t **)arguments;
}

static void open_world(world *w) {
    rondo_graph_options options = {.struct_size = sizeof options};
    options.keep = RONDO_KEEP_TEMPLATE;
    options.label = "swept";
    STEP(rondo_device_open("host", &w->device));
    STEP(rondo_stream_create(w->device, NULL, &w->stream));
    STEP(rondo_stream_create(w->device, NULL, &w->side));
    STEP(rondo_event_create(w->device, 0, &w->fork));
    STEP(rondo_event_create(w->device, RONDO_EVENT_TIMED, &w->join));
    STEP(rondo_graph_create(w->device, &options, &w->graph));
    STEP(rondo_memory_allocate(w->device, RONDO_MEMORY_DEVICE, 256, &w->memory));
    STEP(rondo_memory_allocate(w->device, RONDO_MEMORY_PINNED, 256, &w->pinned));
    memset(w->pinned, 0, 256);
}

static void close_world(world *w) {
    rondo_graph_destroy(w->graph);
    rondo_event_destroy(w->fork);
    rondo_event_destroy(w->join);
    rondo_stream_destroy(w->side);
    rondo_stream_destroy(w->stream);
    rondo_memory_free(w->device, w->memory);
    rondo_memory_free(w->device, w->pinned);
    rondo_device_release(w->device);
}

static void work_eagerly(world *w) {
    uint32_t *counter = w->pinned;
    char pageable[32] = {0};
    STEP(rondo_stream_copy(w->stream, w->memory, pageable, sizeof pageable,
                           RONDO_COPY_HOST_TO_DEVICE));
    STEP(rondo_stream_fill(w->stream, w->memory, 3, 2, 8));
    STEP(rondo_stream_call_host(w->stream, "count", count_up, &counter, sizeof counter));
    STEP(rondo_event_record(w->join, w->stream));
    STEP(rondo_stream_wait_event(w->side, w->join));
    STEP(rondo_event_synchronize(w->join));
    STEP(rondo_stream_synchronize(w->side));
    STEP(rondo_device_synchronize(w->device));
}

static void issue(world *w) {
    uint32_t *counter = w->pinned;
    STEP(rondo_stream_copy(w->stream, w->memory, (char *)w->pinned + 128, 128,
                           RONDO_COPY_HOST_TO_DEVICE));
    STEP(rondo_event_record(w->fork, w->stream));
    STEP(rondo_stream_wait_event(w->side, w->fork));
    STEP(rondo_stream_fill(w->side, w->memory, 3, 1, 8));
    STEP(rondo_stream_call_host(w->stream, "count", count_up, &counter, sizeof counter));
    STEP(rondo_event_record(w->join, w->side));
    STEP(rondo_stream_wait_event(w->stream, w->join));
    for (int i = 0; i < 12; ++i) {
        STEP(rondo_stream_fill(w->stream, w->memory, 3, 1, 8));
    }
}

static bool stop_reading(void *user_data, const char *text, size_t bytes) {
    (void)user_data;
    (void)text;
    return bytes == 0;
}

static void capture_and_replay(world *w) {
    STEP(rondo_graph_capture_begin(w->graph, w->stream, RONDO_CAPTURE_THREAD_LOCAL));
    issue(w);
    STEP(rondo_graph_capture_end(w->graph));
    STEP(rondo_graph_upload(w->graph, w->stream));
    STEP(rondo_graph_replay(w->graph, w->stream));
    STEP(rondo_graph_replay(w->graph, w->side));
    STEP(rondo_graph_instantiate(w->graph));
    STEP(rondo_graph_replay(w->graph, w->stream));
    STEP(rondo_graph_dump(w->graph, RONDO_TEXT_DOT, stop_reading, NULL));
    STEP(rondo_graph_dump(w->graph, RONDO_TEXT_JSON, stop_reading, NULL));
    STEP(rondo_stream_synchronize(w->stream));
    STEP(rondo_stream_synchronize(w->side));
}

// After a failure and with memory back: what was recording gives up, and everything works.
static void check_recovery(world *w) {
    uint32_t *counter = w->pinned;
    rondo_graph_capture_abort(w->graph);
    OK(rondo_graph_reset(w->graph));
    OK(rondo_stream_synchronize(w->stream));
    OK(rondo_stream_synchronize(w->side));
    *counter = 0;
    OK(rondo_graph_capture_begin(w->graph, w->stream, RONDO_CAPTURE_THREAD_LOCAL));
    issue(w);
    OK(rondo_graph_capture_end(w->graph));
    for (int i = 0; i < 3; ++i) {
        OK(rondo_graph_replay(w->graph, w->stream));
    }
    OK(rondo_stream_synchronize(w->stream));
    assert_int_equal(*counter, 3);
}

typedef void (*scenario)(world *w);

static void run_round(const sweep_point *point) {
    scenario run = *(const scenario *)point->data;
    world w = {0};
    open_world(&w);
    if (w.pinned != NULL) {
        run(&w);
        (void)sweep_lift();
        check_recovery(&w);
    }
    close_world(&w);
}

static void sweep(const char *name, scenario run) {
    const sweep_subject subject = {.run = run_round, .data = &run};
    size_t points = sweep_allocations(&subject, "host");
    print_message("%s: swept %zu allocations\n", name, points);
    assert_true(points > 15);
}

TEST(test_host_sweep__eager_work) {
    sweep("eager work", work_eagerly);
}

TEST(test_host_sweep__capture_and_replay) {
    sweep("capture and replay", capture_and_replay);
}

TEST_MAIN()

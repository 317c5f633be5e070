// Fail the nth: graphs inside graphs, updates, node lists, deferred executables and external
// events, on the fake driver (each driver call and each allocation) and on the host (each
// allocation). Whatever fails: the call wrote a fresh record, nothing crashes, nothing stays
// behind, and the device still records and replays.
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "rondo/graph.h"
#include "rondo/label.h"
#include "rondo/log.h"
#include "support/fake_cuda.h"
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

#define STEP(call)                                             \
    do {                                                       \
        uint64_t sequence_ = rondo_error_get_last()->sequence; \
        if (!sweep_step((call), sequence_, #call)) {           \
            return false;                                      \
        }                                                      \
    } while (0)

static bool open_world(world *w) {
    rondo_graph_options options = rondo_graph_options_default();
    options.keep_template = true;
    STEP(rondo_device_open(w->name, &w->device));
    STEP(rondo_stream_create(w->device, &w->stream));
    STEP(rondo_stream_create(w->device, &w->side));
    STEP(rondo_event_create(w->device, 0, &w->fork));
    STEP(rondo_event_create(w->device, RONDO_EVENT_EXTERNAL | RONDO_EVENT_TIMED, &w->external));
    STEP(rondo_memory_allocate(w->device, RONDO_MEMORY_DEVICE, 256, &w->memory));
    STEP(rondo_graph_create(w->device, &options, &w->outer));
    STEP(rondo_graph_create(w->device, NULL, &w->top));
    STEP(rondo_graph_create(w->device, NULL, &w->updated));
    options.defer_instantiation = true;
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
    rondo_graph_node node;
    rondo_graph_edge edges[16];
    STEP(rondo_graph_get_node_count(graph, &count));
    for (uint64_t i = 0; i < count; ++i) {
        STEP(rondo_graph_get_node(graph, i, &node));
    }
    STEP(rondo_graph_list_edges(graph, edges, 16, &count));
    dumped.length = 0;
    STEP(rondo_graph_dump(graph, RONDO_DUMP_JSON, sweep_append_text, &dumped));
    if (strstr(dumped.bytes, label) == NULL) {
        fail_msg("no %s in %s", label, dumped.bytes);
    }
    dumped.length = 0;
    STEP(rondo_graph_dump(graph, RONDO_DUMP_DOT, sweep_append_text, &dumped));
    return true;
}

static bool use_graphs(world *w) {
    uint64_t flags = 0;
    rondo_update_result result;
    STEP(capture_inner(w, 1) ? RONDO_STATUS_OK : rondo_error_get_last()->status);
    if (!look_inside(w->inner, "\"label\": \"inner\"")) {
        return false;
    }
    STEP(rondo_graph_replay(w->inner, w->stream));
    STEP(rondo_graph_get_flags(w->inner, &flags));
    STEP(rondo_graph_capture_begin(w->outer, w->stream, RONDO_CAPTURE_THREAD_LOCAL));
    STEP(rondo_graph_record(w->inner, w->stream));
    STEP(rondo_stream_fill(w->stream, w->memory, 7, 4, 1));
    STEP(rondo_label_push(w->stream, "outer"));
    STEP(rondo_graph_record(w->inner, w->stream));
    STEP(rondo_label_pop(w->stream));
    STEP(rondo_graph_capture_end(w->outer));
    if (!look_inside(w->outer, "\"label\": \"outer/inner\"")) {
        return false;
    }
    STEP(rondo_graph_capture_begin(w->top, w->stream, RONDO_CAPTURE_THREAD_LOCAL));
    STEP(rondo_graph_record(w->outer, w->stream));
    STEP(rondo_graph_capture_end(w->top));
    STEP(rondo_graph_replay(w->outer, w->stream));
    STEP(rondo_graph_replay(w->top, w->side));
    STEP(rondo_graph_update(w->updated, w->inner, &result));
    for (uint32_t round = 2; round < 4; ++round) {
        STEP(rondo_graph_replay(w->updated, w->stream));
        if (!capture_inner(w, round)) {
            return false;
        }
        STEP(rondo_graph_update(w->updated, w->inner, &result));
        assert_int_equal(result, RONDO_UPDATE_PATCHED);
    }
    STEP(rondo_graph_update(w->updated, w->outer, &result));
    assert_int_equal(result, RONDO_UPDATE_INSTANTIATED);
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
        rondo_memory_free(w->device, RONDO_MEMORY_DEVICE, w->memory);
    }
    rondo_device_release(w->device);
}

// After a failure, with everything working again: what records gives up, and graphs still nest.
static void check_recovery(world *w) {
    rondo_graph *graphs[] = {w->inner, w->outer, w->top, w->updated};
    for (int i = 0; i < 4; ++i) {
        rondo_graph_capture_abort(graphs[i]);
        assert_int_equal(rondo_graph_reset(graphs[i]), RONDO_STATUS_OK);
    }
    if (!use_graphs(w)) {
        fail_msg("after a failure: %s", rondo_error_get_last()->message);
    }
}

typedef struct heap_plan {
    pthread_t thread;
    size_t countdown;
    bool has_failed;
} heap_plan;

static bool fail_allocation(void *user_data) {
    heap_plan *plan = user_data;
    if (!pthread_equal(plan->thread, pthread_self()) || plan->has_failed || plan->countdown-- > 0) {
        return false;
    }
    plan->has_failed = true;
    return true;
}

// One round on the device, with allocation `n` failing.
static bool run_round(const char *name, size_t n) {
    world w = {.name = name};
    heap_plan plan = {.thread = pthread_self(), .countdown = n};
    rondo__memory_set_fault(fail_allocation, &plan);
    bool is_open = open_world(&w);
    if (is_open) {
        (void)use_graphs(&w);
    }
    rondo__memory_set_fault(NULL, NULL);
    if (is_open) {
        check_recovery(&w);
    }
    close_world(&w);
    return plan.has_failed;
}

static void start_fake(void) {
    fake_cuda_reset(NULL);
    fake_cuda_install();
}

static void check_nothing_is_left(const char *what, size_t n) {
    if (fake_cuda_count_objects() != 0 || fake_cuda_get_violations()[0] != '\0') {
        fail_msg("%s %zu (%s): %zu objects left; violations: %s", what, n,
                 fake_cuda_get_failed_call(), fake_cuda_count_objects(),
                 fake_cuda_get_violations());
    }
}

static void test_interop_sweep__host_allocations(void **state) {
    (void)state;
    rondo_log_set_sink(sweep_ignore_line, NULL);
    size_t n = 0;
    while (run_round("host", n)) {
        ++n;
    }
    rondo_log_set_sink(NULL, NULL);
    print_message("host: swept %zu allocations\n", n);
    assert_true(n > 60);
}

static void test_interop_sweep__cuda_allocations(void **state) {
    (void)state;
    rondo_log_set_sink(sweep_ignore_line, NULL);
    size_t n = 0;
    bool has_failed = true;
    for (; has_failed; ++n) {
        start_fake();
        has_failed = run_round("cuda:0", n);
        check_nothing_is_left("allocation", n);
    }
    rondo_log_set_sink(NULL, NULL);
    fake_cuda_uninstall();
    print_message("cuda: swept %zu allocations\n", n);
    assert_true(n > 40);
}

static void test_interop_sweep__cuda_driver_calls(void **state) {
    (void)state;
    static const rondo__cu_result codes[] = {RONDO__CU_ERROR_OUT_OF_MEMORY, RONDO__CU_ERROR_UNKNOWN,
                                             RONDO__CU_ERROR_LAUNCH_FAILED};
    size_t points = 0;
    rondo_log_set_sink(sweep_ignore_line, NULL);
    for (size_t i = 0; i < sizeof codes / sizeof *codes; ++i) {
        bool has_failed = true;
        for (size_t n = 0; has_failed; ++n, ++points) {
            start_fake();
            fake_cuda_fail_nth((long)n, codes[i]);
            world w = {.name = "cuda:0"};
            if (open_world(&w)) {
                (void)use_graphs(&w);
            }
            close_world(&w);
            has_failed = fake_cuda_has_failed();
            check_nothing_is_left("driver call", n);
        }
    }
    rondo_log_set_sink(NULL, NULL);
    fake_cuda_uninstall();
    print_message("cuda: swept %zu driver calls\n", points);
    assert_true(points > 300);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_interop_sweep__host_allocations),
        cmocka_unit_test(test_interop_sweep__cuda_allocations),
        cmocka_unit_test(test_interop_sweep__cuda_driver_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

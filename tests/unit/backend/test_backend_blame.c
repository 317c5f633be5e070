// Who broke a capture, where only two GPUs show it: on the fake driver.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include <pthread.h>

#include "rondo/rondo.h"
#include "support/expect_ok.h"
#include "support/fake/fake_cuda.h"
#include "support/test.h"

static rondo_device *g_first;
static rondo_device *g_second;

static void *allocate_on_second(void *data) {
    void *address = NULL;
    *(rondo_status *)data = rondo_memory_allocate(g_second, RONDO_MEMORY_DEVICE, 64, &address);
    rondo_memory_free(g_second, address);
    return NULL;
}

static void check(rondo_stream *stream, rondo_graph *graph, void *memory, rondo_capture_mode mode,
                  bool is_elsewhere, rondo_capture_cause cause) {
    rondo_status allocated = RONDO_STATUS_INTERNAL;
    rondo_capture_report report = {.struct_size = sizeof report};
    OK(rondo_graph_capture_begin(graph, stream, mode));
    OK(rondo_stream_fill(stream, memory, 0, 4, 4));
    if (is_elsewhere) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, allocate_on_second, &allocated), 0);
        pthread_join(thread, NULL);
    } else {
        allocate_on_second(&allocated);
    }
    bool breaks = cause != RONDO_CAUSE_NONE;
    assert_int_equal(allocated, breaks ? RONDO_STATUS_STATE : RONDO_STATUS_OK);
    assert_int_equal(rondo_graph_capture_end(graph), allocated);
    OK(rondo_graph_get_report(graph, &report));
    assert_int_equal(report.cause, cause);
    assert_string_equal(report.call, breaks ? "rondo_memory_allocate" : "");
    OK(rondo_graph_reset(graph));
}

// CUDA's global mode is the process's.
TEST(test_backend_blame__calls_on_another_gpu_are_named) {
    fake_cuda_reset(&(fake_cuda_options){
        .device_count = 2, .driver_version = 13000, .has_get_proc_address = true});
    fake_cuda_install();
    OK(rondo_device_open("cuda:0", &g_first));
    OK(rondo_device_open("cuda:1", &g_second));
    rondo_stream *stream;
    rondo_graph *graph;
    void *memory;
    OK(rondo_stream_create(g_first, NULL, &stream));
    OK(rondo_graph_create(g_first, NULL, &graph));
    OK(rondo_memory_allocate(g_first, RONDO_MEMORY_DEVICE, 64, &memory));
    check(stream, graph, memory, RONDO_CAPTURE_THREAD_LOCAL, false, RONDO_CAUSE_NONE);
    check(stream, graph, memory, RONDO_CAPTURE_GLOBAL, false, RONDO_CAUSE_ALLOCATION);
    check(stream, graph, memory, RONDO_CAPTURE_GLOBAL, true, RONDO_CAUSE_OTHER_THREAD);
    check(stream, graph, memory, RONDO_CAPTURE_RELAXED, true, RONDO_CAUSE_NONE);
    rondo_graph_destroy(graph);
    rondo_stream_destroy(stream);
    rondo_memory_free(g_first, memory);
    rondo_device_release(g_second);
    rondo_device_release(g_first);
    assert_int_equal(fake_cuda_count_objects(), 0);
    assert_string_equal(fake_cuda_get_violations(), "");
    fake_cuda_uninstall();
}

TEST_MAIN()

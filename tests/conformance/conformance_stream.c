// Streams, events and memory outside of captures, and the misuse of each.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/memory/memory_support.h"
#include "support/driver.h"

SUITE_CASE_EXECUTED(test_conformance_stream__queries_do_not_wait) {
    suite_gate *gate = suite_gate_create(context);
    rondo_stream *stream = suite_create_stream(context);
    rondo_event *event = suite_create_event(context, 0);
    bool is_done = false;
    ASSERT_OK(rondo_stream_query(stream, &is_done));
    assert_true(is_done);
    ASSERT_OK(rondo_event_query(event, &is_done));
    assert_true(is_done);  // complete until first recorded
    ASSERT_OK(suite_gate_enter(gate, stream));
    ASSERT_OK(rondo_event_record(event, stream));
    ASSERT_OK(rondo_stream_query(stream, &is_done));
    assert_false(is_done);
    ASSERT_OK(rondo_event_query(event, &is_done));
    assert_false(is_done);
    suite_gate_open(gate);
    ASSERT_OK(rondo_event_synchronize(event));
    ASSERT_OK(rondo_event_query(event, &is_done));
    assert_true(is_done);
    ASSERT_OK(rondo_stream_synchronize(stream));
    ASSERT_OK(rondo_stream_query(stream, &is_done));
    assert_true(is_done);
    suite_gate_destroy(gate);
    rondo_event_destroy(event);
    rondo_stream_destroy(stream);
}

SUITE_CASE_EXECUTED(test_conformance_stream__a_wait_means_the_record_before_it) {
    suite_gate *gate = suite_gate_create(context);
    rondo_stream *first = suite_create_stream(context);
    rondo_stream *second = suite_create_stream(context);
    rondo_stream *waiter = suite_create_stream(context);
    rondo_event *event = suite_create_event(context, 0);
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    suite_set(context, x, 1, 1);
    // The event is recorded behind the gate, waited for, then recorded again elsewhere, where it
    // completes at once. The waiter must still wait for the first record.
    ASSERT_OK(suite_gate_enter(gate, first));
    ASSERT_OK(suite_affine(context, first, x, 1, 10, 0));
    ASSERT_OK(rondo_event_record(event, first));
    ASSERT_OK(rondo_stream_wait_event(waiter, event));
    ASSERT_OK(suite_affine(context, waiter, x, 1, 1, 5));
    ASSERT_OK(rondo_event_record(event, second));
    ASSERT_OK(rondo_event_synchronize(event));
    bool is_idle = true;
    ASSERT_OK(rondo_stream_query(waiter, &is_idle));
    assert_false(is_idle);
    suite_gate_open(gate);
    ASSERT_OK(rondo_stream_synchronize(waiter));
    ASSERT_VALUE(context, x, 0, 15);
    // Waiting for an event that was never recorded, or that is complete, is no wait.
    rondo_event *fresh = suite_create_event(context, 0);
    ASSERT_OK(rondo_stream_wait_event(waiter, fresh));
    ASSERT_OK(rondo_stream_wait_event(waiter, event));
    ASSERT_OK(rondo_stream_synchronize(waiter));
    rondo_event_destroy(fresh);
    suite_free(context, RONDO_MEMORY_DEVICE, x);
    suite_gate_destroy(gate);
    rondo_event_destroy(event);
    rondo_stream_destroy(waiter);
    rondo_stream_destroy(second);
    rondo_stream_destroy(first);
}

SUITE_CASE(test_conformance_stream__destroying_events_and_streams_in_use) {
    rondo_stream *first = suite_create_stream(context);
    rondo_stream *waiter = suite_create_stream(context);
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    suite_set(context, x, 1, 1);
    ASSERT_OK(suite_spin(context, first, 2000));
    ASSERT_OK(suite_affine(context, first, x, 1, 10, 0));
    rondo_event *event = suite_create_event(context, RONDO_EVENT_TIMED);
    ASSERT_OK(rondo_event_record(event, first));
    ASSERT_OK(rondo_stream_wait_event(waiter, event));
    rondo_event_destroy(event);
    ASSERT_OK(suite_affine(context, waiter, x, 1, 1, 5));
    rondo_stream_destroy(first);
    rondo_stream_destroy(waiter);
    ASSERT_VALUE(context, x, 0, 15);
}

SUITE_CASE_EXECUTED(test_conformance_stream__time_stamps) {
    rondo_event *start = suite_create_event(context, RONDO_EVENT_TIMED);
    rondo_event *end = suite_create_event(context, RONDO_EVENT_TIMED);
    rondo_event *untimed = suite_create_event(context, 0);
    int64_t elapsed_ns = -1;
    ASSERT_STATUS(rondo_event_get_elapsed_ns(start, end, &elapsed_ns), STATE);
    const uint64_t start_ns = suite_now_ns();
    ASSERT_OK(rondo_event_record(start, context->stream));
    ASSERT_OK(suite_spin(context, context->stream, 5000));
    ASSERT_OK(rondo_event_record(end, context->stream));
    ASSERT_OK(rondo_event_record(untimed, context->stream));
    ASSERT_OK(rondo_stream_synchronize(context->stream));
    const int64_t most_ns = (int64_t)(suite_now_ns() - start_ns) + 1000000;  // two clocks
    ASSERT_OK(rondo_event_get_elapsed_ns(start, end, &elapsed_ns));
    const int64_t least_ns =
        context->is_fake && suite_is_swept ? 490000 : 4900000;  // see fake_spin
    if (elapsed_ns < least_ns || elapsed_ns > most_ns) {
        fail_msg("5 ms took %lld ns, not from %lld to %lld", (long long)elapsed_ns,
                 (long long)least_ns, (long long)most_ns);
    }
    ASSERT_STATUS(rondo_event_get_elapsed_ns(start, untimed, &elapsed_ns), STATE);
    // An event that stands for a place in a capture has no time; asking does the capture no harm.
    rondo_graph *graph = suite_create_graph(context, false);
    ASSERT_OK(rondo_graph_capture_begin(graph, context->stream, RONDO_CAPTURE_THREAD_LOCAL));
    ASSERT_OK(rondo_event_record(end, context->stream));
    ASSERT_STATUS(rondo_event_get_elapsed_ns(start, end, &elapsed_ns), STATE);
    ASSERT_MESSAGE_HAS("RONDO_EVENT_EXTERNAL");
    ASSERT_OK(suite_spin(context, context->stream, 1));
    ASSERT_OK(rondo_graph_capture_end(graph));
    rondo_graph_destroy(graph);
    if (!context->is_prompt) {
        suite_gate *gate = suite_gate_create(context);
        ASSERT_OK(suite_gate_enter(gate, context->stream));
        ASSERT_OK(rondo_event_record(end, context->stream));
        ASSERT_STATUS(rondo_event_get_elapsed_ns(start, end, &elapsed_ns), STATE);
        suite_gate_open(gate);
        ASSERT_OK(rondo_stream_synchronize(context->stream));
        suite_gate_destroy(gate);
    }
    rondo_event_destroy(untimed);
    rondo_event_destroy(end);
    rondo_event_destroy(start);
}

SUITE_CASE_EXECUTED(test_conformance_stream__pageable_memory_is_read_before_the_call_returns) {
    static const size_t counts[] = {1, 1000, 1024, 1025, 300000};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; ++i) {
        size_t bytes = counts[i] * sizeof(uint32_t);
        uint32_t *source = malloc(bytes);
        uint32_t *result = malloc(bytes);
        assert_non_null(source);
        assert_non_null(result);
        uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, counts[i]);
        for (size_t j = 0; j < counts[i]; ++j) {
            source[j] = (uint32_t)(j * 77 + i);
        }
        ASSERT_OK(suite_spin(context, context->stream, 300));
        ASSERT_OK(rondo_stream_copy(context->stream, x, source, bytes, RONDO_COPY_HOST_TO_DEVICE));
        memset(source, 0, bytes);
        ASSERT_OK(rondo_stream_copy(context->stream, result, x, bytes, RONDO_COPY_DEVICE_TO_HOST));
        ASSERT_OK(rondo_stream_synchronize(context->stream));
        for (size_t j = 0; j < counts[i]; ++j) {
            assert_int_equal(result[j], (uint32_t)(j * 77 + i));
        }
        suite_free(context, RONDO_MEMORY_DEVICE, x);
        free(source);
        free(result);
    }
}

SUITE_CASE_EXECUTED(test_conformance_stream__device_waits_for_all_streams) {
    rondo_stream *streams[3];
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 3 * 64);
    suite_set(context, x, 0, 3 * 64);
    for (uint32_t i = 0; i < 3; ++i) {
        streams[i] = suite_create_stream(context);
        ASSERT_OK(suite_spin(context, streams[i], 1000));
        ASSERT_OK(suite_affine(context, streams[i], x + 64 * i, 1, 1, i + 1));
    }
    ASSERT_OK(rondo_device_synchronize(context->device));
    for (uint32_t i = 0; i < 3; ++i) {
        bool is_idle = false;
        ASSERT_OK(rondo_stream_query(streams[i], &is_idle));
        assert_true(is_idle);
        ASSERT_VALUE(context, x, 64 * i, i + 1);
        rondo_stream_destroy(streams[i]);
    }
}

SUITE_CASE(test_conformance_stream__sizes_of_zero) {
    void *address = context;
    ASSERT_OK(rondo_memory_allocate(context->device, RONDO_MEMORY_DEVICE, 0, &address));
    assert_null(address);
    rondo_memory_free(context->device, NULL);
    ASSERT_OK(rondo_stream_copy(context->stream, NULL, NULL, 0, RONDO_COPY_HOST_TO_DEVICE));
    ASSERT_OK(rondo_stream_fill(context->stream, NULL, 1, 4, 0));
    ASSERT_OK(rondo_stream_synchronize(context->stream));
}

static void do_nothing(void *data) {
    (void)data;
}

SUITE_CASE(test_conformance_stream__wrong_arguments) {
    rondo_device *device = context->device;
    rondo_stream *stream = context->stream;
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 64);
    rondo_event *event = suite_create_event(context, 0);
    rondo_stream *made = stream;
    rondo_event *made_event = event;
    void *address = x;
    bool flag;
    int64_t elapsed_ns;
    rondo_device_info info = {.struct_size = sizeof info};
    unsigned char bytes[8] = {0};

    ASSERT_STATUS(rondo_stream_create(NULL, NULL, &made), INVALID);
    assert_null(made);
    ASSERT_STATUS(rondo_stream_create(device, NULL, NULL), INVALID);
    ASSERT_STATUS(rondo_event_create(device, 0x80, &made_event), INVALID);
    assert_null(made_event);
    ASSERT_STATUS(rondo_event_create(NULL, 0, &made_event), INVALID);
    ASSERT_STATUS(rondo_memory_allocate(device, (rondo_memory_kind)9, 4, &address), INVALID);
    assert_null(address);
    ASSERT_STATUS(rondo_memory_allocate(NULL, RONDO_MEMORY_DEVICE, 4, &address), INVALID);
    ASSERT_STATUS(rondo_memory_allocate(device, RONDO_MEMORY_DEVICE, 4, NULL), INVALID);
    ASSERT_STATUS(rondo_memory_allocate(device, RONDO_MEMORY_DEVICE, SIZE_MAX, &address),
                  NO_DEVICE_MEMORY);
    ASSERT_STATUS(rondo_memory_allocate(device, RONDO_MEMORY_DEVICE, SIZE_MAX / 4, &address),
                  NO_DEVICE_MEMORY);
    ASSERT_STATUS(rondo_device_get_info(NULL, &info), INVALID);
    ASSERT_STATUS(rondo_device_synchronize(NULL), INVALID);
    ASSERT_STATUS(rondo_stream_synchronize(NULL), INVALID);
    ASSERT_STATUS(rondo_stream_query(stream, NULL), INVALID);
    ASSERT_STATUS(rondo_stream_query(NULL, &flag), INVALID);
    ASSERT_STATUS(rondo_stream_wait_event(stream, NULL), INVALID);
    ASSERT_STATUS(rondo_stream_wait_event(NULL, event), INVALID);
    ASSERT_STATUS(rondo_stream_is_recording(NULL, &flag), INVALID);
    ASSERT_STATUS(rondo_event_record(event, NULL), INVALID);
    ASSERT_STATUS(rondo_event_record(NULL, stream), INVALID);
    ASSERT_STATUS(rondo_event_query(event, NULL), INVALID);
    ASSERT_STATUS(rondo_event_synchronize(NULL), INVALID);
    ASSERT_STATUS(rondo_event_get_elapsed_ns(NULL, event, &elapsed_ns), INVALID);

    ASSERT_STATUS(rondo_stream_copy(stream, x, bytes, 4, (rondo_copy_kind)7), INVALID);
    ASSERT_STATUS(rondo_stream_copy(stream, NULL, bytes, 4, RONDO_COPY_HOST_TO_DEVICE), INVALID);
    ASSERT_STATUS(rondo_stream_copy(stream, x, NULL, 4, RONDO_COPY_HOST_TO_DEVICE), INVALID);
    ASSERT_STATUS(rondo_stream_copy(stream, x + 1, x, 8, RONDO_COPY_DEVICE_TO_DEVICE), INVALID);
    ASSERT_STATUS(rondo_stream_copy(stream, x, x + 1, 8, RONDO_COPY_DEVICE_TO_DEVICE), INVALID);
    ASSERT_STATUS(rondo_stream_copy(stream, x, x, 4, RONDO_COPY_DEVICE_TO_DEVICE), INVALID);
    ASSERT_STATUS(rondo_stream_copy(NULL, x, bytes, 4, RONDO_COPY_HOST_TO_DEVICE), INVALID);
    ASSERT_STATUS(rondo_stream_fill(stream, x, 0, 3, 4), INVALID);
    ASSERT_STATUS(rondo_stream_fill(stream, x, 0, 8, 4), INVALID);
    ASSERT_STATUS(rondo_stream_fill(stream, (char *)x + 1, 0, 2, 4), INVALID);
    ASSERT_STATUS(rondo_stream_fill(stream, x, 0, 4, SIZE_MAX / 2), INVALID);
    ASSERT_STATUS(rondo_stream_fill(stream, NULL, 0, 4, 4), INVALID);
    ASSERT_STATUS(rondo_stream_call_host(stream, "none", NULL, NULL, 0), INVALID);
    ASSERT_STATUS(rondo_stream_call_host(stream, "none", do_nothing, NULL, 4), INVALID);
    ASSERT_STATUS(rondo_stream_call_host(stream, "none", do_nothing, bytes, 4097), INVALID);

    rondo_launch launch = {
        .struct_size = sizeof launch, .name = "affine", .grid = {1, 1, 1}, .block = {1, 1, 1}};
    ASSERT_STATUS(rondo_stream_launch(stream, &launch), INVALID);
    ASSERT_STATUS(rondo_stream_launch(stream, NULL), INVALID);
    launch.function = context->affine;
    launch.argument_bytes = 4097;
    ASSERT_STATUS(rondo_stream_launch(stream, &launch), INVALID);
    launch.argument_bytes = 8;
    ASSERT_STATUS(rondo_stream_launch(stream, &launch), INVALID);
    launch.arguments = bytes;
    launch.block[1] = 0;
    ASSERT_STATUS(rondo_stream_launch(stream, &launch), INVALID);
    launch.block[1] = 1;
    launch.grid[2] = 0;
    ASSERT_STATUS(rondo_stream_launch(stream, &launch), INVALID);
    ASSERT_MESSAGE_HAS("affine");

    rondo_stream_destroy(NULL);
    rondo_event_destroy(NULL);
    rondo_device_release(NULL);
    ASSERT_OK(rondo_stream_synchronize(stream));
    rondo_event_destroy(event);
}

SUITE_CASE(test_conformance_stream__foreign_streams) {
    rondo_stream *wrapped = context->stream;
    if (!context->is_cuda) {
        ASSERT_STATUS(rondo_stream_wrap(context->device, NULL, &wrapped), UNSUPPORTED);
        assert_null(wrapped);
        assert_null(rondo_stream_get_native(context->stream));
        return;
    }
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    suite_set(context, x, 3, 1);
    // Another Rondo stream's native stream serves as the foreign one.
    rondo_stream *owner = suite_create_stream(context);
    ASSERT_OK(rondo_stream_wrap(context->device, rondo_stream_get_native(owner), &wrapped));
    assert_ptr_equal(rondo_stream_get_native(wrapped), rondo_stream_get_native(owner));
    ASSERT_OK(suite_affine(context, wrapped, x, 1, 2, 1));
    ASSERT_OK(rondo_stream_synchronize(wrapped));
    ASSERT_VALUE(context, x, 0, 7);
    rondo_stream_destroy(wrapped);
    ASSERT_OK(suite_affine(context, owner, x, 1, 2, 1));
    ASSERT_OK(rondo_stream_synchronize(owner));
    ASSERT_VALUE(context, x, 0, 15);
    rondo_stream_destroy(owner);
    // The legacy default stream runs work but does not record.
    ASSERT_OK(rondo_stream_wrap(context->device, NULL, &wrapped));
    ASSERT_OK(suite_affine(context, wrapped, x, 1, 2, 1));
    ASSERT_OK(rondo_stream_synchronize(wrapped));
    ASSERT_VALUE(context, x, 0, 31);
    rondo_graph *graph = suite_create_graph(context, false);
    ASSERT_STATUS(rondo_graph_capture_begin(graph, wrapped, RONDO_CAPTURE_THREAD_LOCAL), INVALID);
    ASSERT_MESSAGE_HAS("legacy");
    rondo_graph_destroy(graph);
    rondo_stream_destroy(wrapped);
}

// A capture that the program began itself is in nobody's way but the second capture's.
static void begin_a_second_capture(suite_context *context, bool is_watched) {
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    rondo_stream *owner = suite_create_stream(context);
    rondo_stream *wrapped = NULL;
    ASSERT_OK(rondo_stream_wrap(context->device, rondo_stream_get_native(owner), &wrapped));
    rondo_graph *graph = suite_create_graph(context, false);
    rondo_pool *pool = NULL;
    void *block = NULL;
    if (is_watched) {
        // A block that it uses makes its pool watch the stream.
        ASSERT_OK(rondo_pool_create(context->device, NULL, &pool));
        ASSERT_OK(rondo_pool_allocate(pool, context->stream, 64, &block));
        ASSERT_OK(rondo_pool_use(pool, wrapped, block));
    }
    rondo__cu_stream native = rondo_stream_get_native(owner);
    const rondo__cuda_api *api = driver_enter(context->device);
    assert_non_null(api);
    assert_int_equal(api->cuStreamBeginCapture(native, RONDO__CU_CAPTURE_MODE_THREAD_LOCAL), 0);
    ASSERT_OK(suite_affine(context, owner, x, 1, 2, 1));
    ASSERT_STATUS(rondo_graph_capture_begin(graph, wrapped, RONDO_CAPTURE_THREAD_LOCAL), STATE);
    ASSERT_MESSAGE_HAS("records already");
    ASSERT_OK(suite_affine(context, owner, x, 1, 2, 1));
    rondo__cu_graph recorded = NULL;
    size_t count = 0;
    assert_int_equal(api->cuStreamEndCapture(native, &recorded), 0);
    assert_int_equal(api->cuGraphGetNodes(recorded, NULL, &count), 0);
    assert_int_equal(count, 2);
    assert_int_equal(api->cuGraphDestroy(recorded), 0);
    assert_true(driver_leave(api));
    // Both are usable afterwards.
    ASSERT_OK(rondo_graph_capture_begin(graph, wrapped, RONDO_CAPTURE_THREAD_LOCAL));
    ASSERT_OK(suite_affine(context, wrapped, x, 1, 2, 1));
    ASSERT_OK(rondo_graph_capture_end(graph));
    rondo_graph_destroy(graph);
    if (is_watched) {
        ASSERT_OK(rondo_pool_free(pool, block));
    }
    rondo_pool_release(pool);
    rondo_stream_destroy(wrapped);
    rondo_stream_destroy(owner);
    suite_free(context, RONDO_MEMORY_DEVICE, x);
}

SUITE_CASE(test_conformance_stream__a_second_capture_is_refused) {
    if (!context->is_cuda) {
        print_message("skipped: the host has no foreign streams\n");
        return;
    }
    begin_a_second_capture(context, false);
    begin_a_second_capture(context, true);
}

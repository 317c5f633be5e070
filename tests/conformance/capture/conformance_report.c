// Reports on captures that fail: modes, threads, the legacy stream, aborts, instantiation.
// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>

#include "conformance/capture/blame_support.h"
#include "support/driver.h"
#include "support/fake/fake_cuda.h"
#include "support/peek.h"

// ---- what does not break it -------------------------------------------------------------------

SUITE_CASE(test_conformance_report__modes_forbid_what_they_say) {
    blame_step s = blame_create_step(context);
    static const rondo_capture_mode modes[] = {RONDO_CAPTURE_THREAD_LOCAL, RONDO_CAPTURE_RELAXED};
    for (size_t i = 0; i < 2; ++i) {
        blame_begin_step(&s, modes[i]);
        suite_free(context, RONDO_MEMORY_DEVICE, suite_allocate(context, RONDO_MEMORY_DEVICE, 8));
        ASSERT_OK(rondo_stream_synchronize(context->stream));
        blame_end_step(&s);
        ASSERT_OK(rondo_graph_capture_end(s.graph));
        ASSERT_OK(rondo_graph_reset(s.graph));
    }
    blame_assert_usable(&s, s.graph, s.stream);
    blame_destroy_step(&s);
}

typedef struct allocation {
    suite_context *context;
    rondo_status status;
    char message[480];
} allocation;

static void *allocate_and_free(void *data) {
    allocation *a = data;
    void *address = NULL;
    pthread_setname_np(pthread_self(), "allocator");
    a->status = rondo_memory_allocate(a->context->device, RONDO_MEMORY_DEVICE, 1 << 16, &address);
    snprintf(a->message, sizeof a->message, "%s", rondo_error_get_last()->message);
    rondo_memory_free(a->context->device, address);
    return NULL;
}

static allocation allocate_meanwhile(suite_context *context) {
    allocation a = {.context = context};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, allocate_and_free, &a), 0);
    pthread_join(thread, NULL);
    return a;
}

SUITE_CASE(torch_27_another_thread_allocates_during_a_capture) {
    blame_step s = blame_create_step(context);
    static const rondo_capture_mode modes[] = {RONDO_CAPTURE_THREAD_LOCAL, RONDO_CAPTURE_RELAXED};
    for (size_t i = 0; i < 2; ++i) {
        suite_set(context, s.x, 1, BLAME_WORDS);
        blame_begin_step(&s, modes[i]);
        assert_int_equal(allocate_meanwhile(context).status, RONDO_STATUS_OK);
        blame_end_step(&s);
        ASSERT_OK(rondo_graph_capture_end(s.graph));
        ASSERT_OK(rondo_graph_replay(s.graph, s.stream));
        ASSERT_OK(rondo_stream_synchronize(s.stream));
        ASSERT_VALUE(context, s.x, 0, 3);
        ASSERT_OK(rondo_graph_reset(s.graph));
    }
    // In global mode the other thread is refused, and the thread that records learns who it was.
    blame_begin_step(&s, RONDO_CAPTURE_GLOBAL);
    allocation refused = allocate_meanwhile(context);
    assert_int_equal(refused.status, RONDO_STATUS_STATE);
    blame_end_step(&s);
    ASSERT_STATUS(rondo_graph_capture_end(s.graph), STATE);
    ASSERT_MESSAGE_HAS("allocator");
    rondo_capture_report report = {.struct_size = sizeof report};
    ASSERT_OK(rondo_graph_get_report(s.graph, &report));
    assert_int_equal(report.cause, RONDO_CAUSE_OTHER_THREAD);
    assert_string_equal(report.thread_name, "allocator");
    assert_true(report.is_other_thread);
    blame_assert_usable(&s, s.graph, s.stream);
    blame_destroy_step(&s);
}

SUITE_CASE(torch_33_a_host_read_in_a_capture_says_that_it_waits) {
    blame_step s = blame_create_step(context);
    uint32_t *pinned = suite_allocate(context, RONDO_MEMORY_PINNED, 1);
    blame_begin_step(&s, RONDO_CAPTURE_THREAD_LOCAL);
    ASSERT_OK(rondo_stream_copy(s.stream, pinned, s.x, sizeof *pinned, RONDO_COPY_DEVICE_TO_HOST));
    ASSERT_STATUS(rondo_stream_synchronize(s.stream), STATE);
    blame_end_step(&s);
    ASSERT_STATUS(rondo_graph_capture_end(s.graph), STATE);
    rondo_capture_report report = {.struct_size = sizeof report};
    char text[2048];
    ASSERT_OK(rondo_graph_get_report(s.graph, &report));
    rondo_capture_report_format(&report, text, sizeof text);
    blame_check_text(text, "waited for", "host read", "text");
    blame_check_text(text, "ynchronize", "host read", "text");
    assert_int_equal(report.last_node_index, 2);
    assert_string_equal(report.last_node_name, "memcpy");
    blame_assert_usable(&s, s.graph, s.stream);
    suite_free(context, RONDO_MEMORY_PINNED, pinned);
    blame_destroy_step(&s);
}

// On CUDA the legacy stream waits for streams made without the non-blocking flag.
SUITE_CASE(test_conformance_report__work_on_the_legacy_stream) {
    if (!context->is_cuda) {
        print_message("skipped: the host has no legacy stream\n");
        skip();
    }
    rondo__cu_stream native = NULL;
    rondo_stream *legacy = NULL;
    blame_step s = blame_create_step(context);
    const rondo__cuda_api *api = driver_enter(context->device);
    assert_non_null(api);
    assert_int_equal(api->cuStreamCreate(&native, 0), 0);
    rondo_stream_destroy(s.stream);
    ASSERT_OK(rondo_stream_wrap(context->device, native, &s.stream));
    ASSERT_OK(rondo_stream_wrap(context->device, NULL, &legacy));
    for (int mode = RONDO_CAPTURE_THREAD_LOCAL; mode <= RONDO_CAPTURE_RELAXED; ++mode) {
        blame_begin_step(&s, (rondo_capture_mode)mode);
        ASSERT_STATUS(suite_affine(context, legacy, s.x, BLAME_WORDS, 1, 1), STATE);
        blame_end_step(&s);
        ASSERT_STATUS(rondo_graph_capture_end(s.graph), STATE);
        ASSERT_MESSAGE_HAS("legacy");
        rondo_capture_report report = {.struct_size = sizeof report};
        ASSERT_OK(rondo_graph_get_report(s.graph, &report));
        assert_int_equal(report.cause, RONDO_CAUSE_LEGACY_STREAM);
        assert_string_equal(report.driver_name, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT");
        assert_string_equal(report.label, "layer3/attention");
        assert_int_equal(report.last_node_index, 1);
        blame_assert_usable(&s, s.graph, s.stream);
    }
    rondo_stream_destroy(legacy);
    blame_destroy_step(&s);
    assert_int_equal(api->cuStreamDestroy(native), 0);
    assert_true(driver_leave(api));
}

SUITE_CASE(test_conformance_report__captures_are_blamed_apart) {
    blame_step s = blame_create_step(context);
    blame_step other = blame_create_step(context);
    blame_begin_step(&s, RONDO_CAPTURE_THREAD_LOCAL);
    blame_begin_step(&other, RONDO_CAPTURE_THREAD_LOCAL);
    ASSERT_STATUS(rondo_stream_synchronize(s.stream), STATE);
    blame_end_step(&s);
    blame_end_step(&other);
    ASSERT_OK(rondo_graph_capture_end(other.graph));
    ASSERT_STATUS(rondo_graph_capture_end(s.graph), STATE);
    rondo_capture_report report = {.struct_size = sizeof report};
    ASSERT_OK(rondo_graph_get_report(other.graph, &report));
    assert_int_equal(report.cause, RONDO_CAUSE_NONE);
    ASSERT_OK(rondo_graph_get_report(s.graph, &report));
    assert_int_equal(report.cause, RONDO_CAUSE_SYNCHRONIZE);
    ASSERT_OK(rondo_graph_reset(other.graph));
    blame_assert_usable(&other, other.graph, other.stream);
    blame_assert_usable(&s, s.graph, s.stream);
    blame_destroy_step(&other);
    blame_destroy_step(&s);
}

SUITE_CASE(test_conformance_report__an_abort_is_reported) {
    blame_step s = blame_create_step(context);
    rondo_capture_report report = {.struct_size = sizeof report};
    blame_begin_step(&s, RONDO_CAPTURE_THREAD_LOCAL);
    rondo_graph_capture_abort(s.graph);
    ASSERT_OK(rondo_graph_get_report(s.graph, &report));
    assert_int_equal(report.cause, RONDO_CAUSE_ABORTED);
    assert_string_equal(report.label, "layer3/attention");
    assert_int_equal(report.last_node_index, 1);
    assert_string_equal(report.last_node_name, "affine");
    blame_assert_usable(&s, s.graph, s.stream);
    // Memory that is not to be had breaks nothing, but is the likely reason of an abort.
    void *address = NULL;
    size_t too_much = (size_t)1 << 46;
    blame_begin_step(&s, RONDO_CAPTURE_THREAD_LOCAL);
    ASSERT_STATUS(rondo_memory_allocate(context->device, RONDO_MEMORY_DEVICE, too_much, &address),
                  NO_DEVICE_MEMORY);
    rondo_graph_capture_abort(s.graph);
    ASSERT_OK(rondo_graph_get_report(s.graph, &report));
    assert_int_equal(report.cause, RONDO_CAUSE_OUT_OF_MEMORY);
    assert_int_equal(report.status, RONDO_STATUS_NO_DEVICE_MEMORY);
    blame_begin_step(&s, RONDO_CAPTURE_THREAD_LOCAL);
    ASSERT_STATUS(rondo_memory_allocate(context->device, RONDO_MEMORY_DEVICE, too_much, &address),
                  NO_DEVICE_MEMORY);
    blame_end_step(&s);
    ASSERT_OK(rondo_graph_capture_end(s.graph));
    ASSERT_OK(rondo_graph_reset(s.graph));
    blame_assert_usable(&s, s.graph, s.stream);
    blame_destroy_step(&s);
}

// A node that stands on a branch which is not joined was recorded, too.
SUITE_CASE(test_conformance_report__a_branch_that_is_not_joined) {
    blame_step s = blame_create_step(context);
    rondo_stream *side = suite_create_stream(context);
    rondo_event *event;
    rondo_capture_report report = {.struct_size = sizeof report};
    ASSERT_OK(rondo_event_create(context->device, 0, &event));
    for (int has_work = 0; has_work < 2; ++has_work) {
        ASSERT_OK(rondo_graph_capture_begin(s.graph, s.stream, RONDO_CAPTURE_THREAD_LOCAL));
        ASSERT_OK(rondo_event_record(event, s.stream));
        ASSERT_OK(rondo_stream_wait_event(side, event));
        if (has_work) {
            ASSERT_OK(rondo_stream_fill(side, s.x, 1, 4, 1));
        }
        rondo_status status = rondo_graph_capture_end(s.graph);
        if (status == RONDO_STATUS_OK) {  // nothing is on the branch, which is no driver's concern
            assert_false(has_work);
            ASSERT_OK(rondo_graph_reset(s.graph));
            continue;
        }
        ASSERT_STATUS(status, STATE);
        ASSERT_OK(rondo_graph_get_report(s.graph, &report));
        assert_int_equal(report.cause, RONDO_CAUSE_UNJOINED_STREAM);
        // Where memory is short, a report does without the node.
        assert_true(report.has_last_node == (has_work != 0) || suite_is_swept);
        assert_int_equal(report.last_node_index, 0);
    }
    blame_assert_usable(&s, s.graph, s.stream);
    rondo_event_destroy(event);
    rondo_stream_destroy(side);
    blame_destroy_step(&s);
}

SUITE_CASE(test_conformance_report__an_instantiation_that_fails) {
    blame_step s = blame_create_step(context);
    rondo_capture_report report = {.struct_size = sizeof report};
    blame_begin_step(&s, RONDO_CAPTURE_THREAD_LOCAL);
    blame_end_step(&s);
    peek_fail_allocations(true);
    ASSERT_STATUS(rondo_graph_capture_end(s.graph), NO_MEMORY);
    peek_fail_allocations(false);
    ASSERT_OK(rondo_graph_get_report(s.graph, &report));
    assert_int_equal(report.cause, RONDO_CAUSE_OUT_OF_MEMORY);
    blame_assert_usable(&s, s.graph, s.stream);
    // The driver's own refusal.
    bool was_met = !context->is_fake;
    for (long n = 0; !was_met && n < 100; ++n) {
        blame_begin_step(&s, RONDO_CAPTURE_THREAD_LOCAL);
        blame_end_step(&s);
        fake_cuda_fail_nth(n, RONDO__CU_ERROR_NOT_SUPPORTED);
        rondo_status status = rondo_graph_capture_end(s.graph);
        was_met = strncmp(fake_cuda_get_failed_call(), "cuGraphInstantiate", 18) == 0;
        fake_cuda_fail_nth(-1, RONDO__CU_SUCCESS);
        if (was_met) {
            assert_int_equal(status, RONDO_STATUS_UNSUPPORTED);
            ASSERT_OK(rondo_graph_get_report(s.graph, &report));
            assert_int_equal(report.cause, RONDO_CAUSE_INSTANTIATION);
            assert_string_equal(report.driver_name, "CUDA_ERROR_NOT_SUPPORTED");
        }
        ASSERT_OK(rondo_graph_reset(s.graph));
    }
    assert_true(was_met);
    blame_assert_usable(&s, s.graph, s.stream);
    blame_destroy_step(&s);
}

SUITE_CASE(test_conformance_report__reports_check_their_size) {
    rondo_graph *graph = suite_create_graph(context, false);
    rondo_capture_report report = {.struct_size = sizeof report};
    ASSERT_OK(rondo_graph_get_report(graph, &report));
    assert_int_equal(report.status, RONDO_STATUS_OK);
    assert_int_equal(report.struct_size, sizeof report);
    char text[64];
    rondo_capture_report_format(&report, text, sizeof text);
    assert_string_equal(text, "the latest capture did not fail\n");
    // A program that was compiled when the struct ended earlier.
    report.struct_size = offsetof(rondo_capture_report, last_node_depth);
    ASSERT_OK(rondo_graph_capture_begin(graph, context->stream, RONDO_CAPTURE_THREAD_LOCAL));
    ASSERT_STATUS(rondo_stream_synchronize(context->stream), STATE);
    ASSERT_STATUS(rondo_graph_capture_end(graph), STATE);
    ASSERT_OK(rondo_graph_get_report(graph, &report));
    assert_true(rondo_capture_report_format(&report, text, sizeof text) > sizeof text);
    blame_check_text(text, "the capture failed (SYNCHRONIZE)", "older struct", "text");
    report.struct_size = sizeof report + 1;
    assert_int_equal(rondo_capture_report_format(&report, text, sizeof text), 0);
    ASSERT_STATUS(rondo_graph_get_report(graph, &report), INVALID);
    report.struct_size = 0;
    ASSERT_STATUS(rondo_graph_get_report(graph, &report), INVALID);
    ASSERT_STATUS(rondo_graph_get_report(NULL, &report), INVALID);
    assert_string_equal(rondo_capture_cause_get_name(RONDO_CAUSE_MERGE), "MERGE");
    assert_string_equal(rondo_capture_cause_get_name(999), "UNKNOWN");
    rondo_graph_destroy(graph);
}

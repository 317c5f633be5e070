// A failed capture is a transaction: whatever breaks it, the report names it, and afterwards stream
// and graph work as if nothing had been.
//
// Each cause is one row: what breaks the capture, and what must be said of it. Before it the step
// has recorded two kernels, the second inside the scopes "layer3/attention".
// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>

#include "conformance/capture/blame_support.h"
#include "conformance/random/random_support.h"
#include "rondo/pool.h"
#include "support/driver.h"
#include "support/fake/fake_cuda.h"
#include "support/peek.h"

typedef struct cause_row {
    const char *name;
    rondo_capture_mode mode;
    void (*break_it)(blame_step *s);
    rondo_status status;  // of the end
    rondo_capture_cause cause;
    const char *call;     // in the report's call
    const char *message;  // in the error record of the end
    bool is_other_thread;
    bool needs_cuda;
    bool needs_other_device;
} cause_row;

// ---- what breaks it ---------------------------------------------------------------------------

static void synchronize_stream(blame_step *s) {
    ASSERT_STATUS(rondo_stream_synchronize(s->stream), STATE);
}

static void query_stream(blame_step *s) {
    bool is_idle;
    ASSERT_STATUS(rondo_stream_query(s->stream, &is_idle), STATE);
}

static void synchronize_device(blame_step *s) {
    ASSERT_STATUS(rondo_device_synchronize(s->context->device), STATE);
}

static void synchronize_event(blame_step *s) {
    ASSERT_OK(rondo_event_record(s->event, s->stream));
    ASSERT_STATUS(rondo_event_synchronize(s->event), STATE);
}

static void query_event(blame_step *s) {
    bool is_complete;
    ASSERT_OK(rondo_event_record(s->event, s->stream));
    ASSERT_STATUS(rondo_event_query(s->event, &is_complete), STATE);
}

static void allocate(blame_step *s) {
    void *address = NULL;
    ASSERT_STATUS(rondo_memory_allocate(s->context->device, RONDO_MEMORY_DEVICE, 64, &address),
                  STATE);
}

static void copy_pageable(blame_step *s) {
    static uint32_t pageable[BLAME_WORDS];
    ASSERT_STATUS(
        rondo_stream_copy(s->stream, s->x, pageable, sizeof pageable, RONDO_COPY_HOST_TO_DEVICE),
        STATE);
}

static void leave_a_branch(blame_step *s) {
    ASSERT_OK(rondo_event_record(s->event, s->stream));
    ASSERT_OK(rondo_stream_wait_event(s->branch, s->event));
    ASSERT_OK(suite_affine(s->context, s->branch, s->x + 32, 1, 1, 1));
}

static void wait_for_outside_work(blame_step *s) {
    ASSERT_STATUS(rondo_stream_wait_event(s->stream, s->old_event), STATE);
}

static void wait_for_another_capture(blame_step *s) {
    ASSERT_OK(
        rondo_graph_capture_begin(s->second_graph, s->second_stream, RONDO_CAPTURE_THREAD_LOCAL));
    ASSERT_OK(suite_affine(s->context, s->second_stream, s->x + 16, 1, 1, 1));
    ASSERT_OK(rondo_event_record(s->event, s->second_stream));
    ASSERT_STATUS(rondo_stream_wait_event(s->stream, s->event), STATE);
}

static void wait_for_another_device(blame_step *s) {
    if (rondo_stream_wait_event(s->stream, s->other_event) == RONDO_STATUS_OK) {
        fail_msg("a capture waited for another device");
    }
}

static void record_event_of_another_device(blame_step *s) {
    ASSERT_STATUS(rondo_event_record(s->other_event, s->stream), INVALID);
}

// The device of the event has been lost meanwhile; that of the capture has not.
static void wait_for_lost_device(blame_step *s) {
    peek_set_lost(s->other_device, true);
    rondo_status status = rondo_stream_wait_event(s->stream, s->other_event);
    peek_set_lost(s->other_device, false);
    ASSERT_STATUS(status, LOST);
}

static void record_event_of_lost_device(blame_step *s) {
    peek_set_lost(s->other_device, true);
    rondo_status status = rondo_event_record(s->other_event, s->stream);
    peek_set_lost(s->other_device, false);
    ASSERT_STATUS(status, LOST);
}

static void *allocate_elsewhere(void *data) {
    blame_step *s = data;
    pthread_setname_np(pthread_self(), "loader");
    allocate(s);
    return NULL;
}

static void allocate_in_another_thread(blame_step *s) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, allocate_elsewhere, s), 0);
    pthread_join(thread, NULL);
}

static void launch_nothing(blame_step *s) {
    rondo_launch launch = {.struct_size = sizeof launch,
                           .name = "gemm_without_blocks",
                           .function = s->context->affine,
                           .grid = {1, 1, 1},
                           .block = {0, 1, 1}};
    ASSERT_STATUS(rondo_stream_launch(s->stream, &launch), INVALID);
}

static void launch_too_wide(blame_step *s) {
    rondo_launch launch = {.struct_size = sizeof launch,
                           .name = "gemm_too_wide",
                           .function = s->context->affine,
                           .grid = {1, 1, 1},
                           .block = {4096, 1, 1}};
    ASSERT_STATUS(rondo_stream_launch(s->stream, &launch), DRIVER);
}

static void call_no_function(blame_step *s) {
    ASSERT_STATUS(rondo_stream_call_host(s->stream, "reduce_on_host", NULL, NULL, 0), INVALID);
}

static void copy_onto_itself(blame_step *s) {
    ASSERT_STATUS(rondo_stream_copy(s->stream, s->x, s->x + 1, 64, RONDO_COPY_DEVICE_TO_DEVICE),
                  INVALID);
}

static void fill_unaligned(blame_step *s) {
    ASSERT_STATUS(rondo_stream_fill(s->stream, (char *)s->x + 1, 0, 4, 1), INVALID);
}

static void do_nothing(void *arguments) {
    (void)arguments;
}

static void run_out_of_host_memory(blame_step *s) {
    // On the host a node's arguments may fit into a chunk that is there; not for long.
    static const char arguments[4096];
    rondo_status status = RONDO_STATUS_OK;
    peek_fail_allocations(true);
    for (int i = 0; i < 16 && status == RONDO_STATUS_OK; ++i) {
        status = rondo_stream_call_host(s->stream, "big_arguments", do_nothing, arguments,
                                        sizeof arguments);
    }
    peek_fail_allocations(false);
    assert_int_equal(status, RONDO_STATUS_NO_MEMORY);
}

static void destroy_the_stream(blame_step *s) {
    rondo_stream_destroy(s->stream);
    s->stream = suite_create_stream(s->context);
    s->is_stream_gone = true;
}

static void destroy_a_branch(blame_step *s) {
    ASSERT_OK(rondo_event_record(s->event, s->stream));
    ASSERT_OK(rondo_stream_wait_event(s->branch, s->event));
    rondo_stream_destroy(s->branch);
    s->branch = suite_create_stream(s->context);
}

// The program's own driver calls.

static void synchronize_unseen(blame_step *s) {
    const rondo__cuda_api *api = driver_enter(s->context->device);
    assert_non_null(api);
    assert_int_not_equal(api->cuStreamSynchronize(rondo_stream_get_native(s->stream)), 0);
    assert_true(driver_leave(api));
}

// The first to find out is a call that asks for the capture before it records.
static void synchronize_unseen_before_a_copy(blame_step *s) {
    uint32_t *pinned = suite_allocate(s->context, RONDO_MEMORY_PINNED, 1);
    synchronize_unseen(s);
    ASSERT_STATUS(
        rondo_stream_copy(s->stream, s->x, pinned, sizeof *pinned, RONDO_COPY_HOST_TO_DEVICE),
        STATE);
    suite_free(s->context, RONDO_MEMORY_PINNED, pinned);
}

static void *allocate_unseen(void *data) {
    blame_step *s = data;
    rondo__cu_address address = 0;
    // Assertions are for the thread of the case.
    const rondo__cuda_api *api = driver_enter(s->context->device);
    bool is_right = api != NULL && api->cuMemAlloc(&address, 64) != 0;
    is_right = api != NULL && driver_leave(api) && is_right;
    return is_right ? NULL : data;
}

static void allocate_unseen_in_another_thread(blame_step *s) {
    pthread_t thread;
    void *failed = NULL;
    assert_int_equal(pthread_create(&thread, NULL, allocate_unseen, s), 0);
    pthread_join(thread, &failed);
    assert_null(failed);
}

static const cause_row cause_rows[] = {
    {"synchronize_stream", RONDO_CAPTURE_THREAD_LOCAL, synchronize_stream, RONDO_STATUS_STATE,
     RONDO_CAUSE_SYNCHRONIZE, "ynchronize", "broken by", false, false, false},
    {"synchronize_stream, global", RONDO_CAPTURE_GLOBAL, synchronize_stream, RONDO_STATUS_STATE,
     RONDO_CAUSE_SYNCHRONIZE, "ynchronize", "broken by", false, false, false},
    {"synchronize_stream, relaxed", RONDO_CAPTURE_RELAXED, synchronize_stream, RONDO_STATUS_STATE,
     RONDO_CAUSE_SYNCHRONIZE, "ynchronize", "broken by", false, false, false},
    {"query_stream", RONDO_CAPTURE_THREAD_LOCAL, query_stream, RONDO_STATUS_STATE,
     RONDO_CAUSE_SYNCHRONIZE, "uery", "broken by", false, false, false},
    {"synchronize_device", RONDO_CAPTURE_THREAD_LOCAL, synchronize_device, RONDO_STATUS_STATE,
     RONDO_CAUSE_SYNCHRONIZE, "ynchronize", "broken by", false, false, false},
    {"synchronize_event", RONDO_CAPTURE_THREAD_LOCAL, synchronize_event, RONDO_STATUS_STATE,
     RONDO_CAUSE_SYNCHRONIZE, "ynchronize", "only streams can wait for it", false, false, false},
    {"query_event", RONDO_CAPTURE_THREAD_LOCAL, query_event, RONDO_STATUS_STATE,
     RONDO_CAUSE_SYNCHRONIZE, "uery", "only streams can wait for it", false, false, false},
    {"allocate, global", RONDO_CAPTURE_GLOBAL, allocate, RONDO_STATUS_STATE, RONDO_CAUSE_ALLOCATION,
     "lloc", "broken by", false, false, false},
    {"allocate in another thread, global", RONDO_CAPTURE_GLOBAL, allocate_in_another_thread,
     RONDO_STATUS_STATE, RONDO_CAUSE_OTHER_THREAD, "lloc", "loader", true, false, false},
    {"copy_pageable", RONDO_CAPTURE_THREAD_LOCAL, copy_pageable, RONDO_STATUS_STATE,
     RONDO_CAUSE_PAGEABLE_COPY, "rondo_stream_copy", "RONDO_MEMORY_PINNED", false, false, false},
    {"leave_a_branch", RONDO_CAPTURE_THREAD_LOCAL, leave_a_branch, RONDO_STATUS_STATE,
     RONDO_CAUSE_UNJOINED_STREAM, "nd", "stream", false, false, false},
    {"wait_for_outside_work", RONDO_CAPTURE_THREAD_LOCAL, wait_for_outside_work, RONDO_STATUS_STATE,
     RONDO_CAUSE_OUTSIDE_WORK, "ait", "outside the capture", false, false, false},
    {"wait_for_another_capture", RONDO_CAPTURE_THREAD_LOCAL, wait_for_another_capture,
     RONDO_STATUS_STATE, RONDO_CAUSE_MERGE, "ait", "same capture", false, false, false},
    {"wait_for_another_device", RONDO_CAPTURE_THREAD_LOCAL, wait_for_another_device, -1,
     RONDO_CAUSE_OTHER_DEVICE, "ait", "broken by", false, false, true},
    {"record_event_of_another_device", RONDO_CAPTURE_THREAD_LOCAL, record_event_of_another_device,
     RONDO_STATUS_INVALID, RONDO_CAUSE_OTHER_DEVICE, "rondo_event_record", "an event of", false,
     false, true},
    {"wait_for_lost_device", RONDO_CAPTURE_THREAD_LOCAL, wait_for_lost_device, RONDO_STATUS_LOST,
     RONDO_CAUSE_WORK_REFUSED, "rondo_stream_wait_event", "lost", false, false, true},
    {"record_event_of_lost_device", RONDO_CAPTURE_THREAD_LOCAL, record_event_of_lost_device,
     RONDO_STATUS_LOST, RONDO_CAUSE_WORK_REFUSED, "rondo_event_record", "lost", false, false, true},
    {"launch_nothing", RONDO_CAPTURE_THREAD_LOCAL, launch_nothing, RONDO_STATUS_INVALID,
     RONDO_CAUSE_WORK_REFUSED, "rondo_stream_launch", "gemm_without_blocks", false, false, false},
    {"launch_too_wide", RONDO_CAPTURE_THREAD_LOCAL, launch_too_wide, RONDO_STATUS_DRIVER,
     RONDO_CAUSE_WORK_REFUSED, "cuLaunchKernel", "gemm_too_wide", false, true, false},
    {"call_no_function", RONDO_CAPTURE_THREAD_LOCAL, call_no_function, RONDO_STATUS_INVALID,
     RONDO_CAUSE_WORK_REFUSED, "rondo_stream_call_host", "function", false, false, false},
    {"copy_onto_itself", RONDO_CAPTURE_THREAD_LOCAL, copy_onto_itself, RONDO_STATUS_INVALID,
     RONDO_CAUSE_WORK_REFUSED, "rondo_stream_copy", "overlap", false, false, false},
    {"fill_unaligned", RONDO_CAPTURE_THREAD_LOCAL, fill_unaligned, RONDO_STATUS_INVALID,
     RONDO_CAUSE_WORK_REFUSED, "rondo_stream_fill", "aligned", false, false, false},
    {"run_out_of_host_memory", RONDO_CAPTURE_THREAD_LOCAL, run_out_of_host_memory,
     RONDO_STATUS_NO_MEMORY, RONDO_CAUSE_OUT_OF_MEMORY, "", "memory", false, false, false},
    {"destroy_the_stream", RONDO_CAPTURE_THREAD_LOCAL, destroy_the_stream, RONDO_STATUS_STATE,
     RONDO_CAUSE_STREAM_DESTROYED, "rondo_stream_destroy", "destroyed", false, false, false},
    {"destroy_a_branch", RONDO_CAPTURE_THREAD_LOCAL, destroy_a_branch, RONDO_STATUS_STATE,
     RONDO_CAUSE_STREAM_DESTROYED, "rondo_stream_destroy", "destroyed", false, false, false},
    {"synchronize_unseen", RONDO_CAPTURE_THREAD_LOCAL, synchronize_unseen, RONDO_STATUS_STATE,
     RONDO_CAUSE_UNSEEN_CALL, "rondo_label_pop", "Rondo did not see", false, true, false},
    {"synchronize_unseen, then a copy", RONDO_CAPTURE_THREAD_LOCAL,
     synchronize_unseen_before_a_copy, RONDO_STATUS_STATE, RONDO_CAUSE_UNSEEN_CALL,
     "a recorded call", "Rondo did not see", false, true, false},
    {"allocate_unseen, global", RONDO_CAPTURE_GLOBAL, allocate_unseen_in_another_thread,
     RONDO_STATUS_STATE, RONDO_CAUSE_UNSEEN_CALL, "rondo_label_pop", "another thread", false, true,
     false},
};

static void check_report(const blame_step *s, const cause_row *row, uint32_t stream_number) {
    rondo_capture_report report = {.struct_size = sizeof report};
    ASSERT_OK(rondo_graph_get_report(s->graph, &report));
    if (report.cause != (int32_t)row->cause) {
        fail_msg("%s: cause %s, not %s; %s", row->name, rondo_capture_cause_get_name(report.cause),
                 rondo_capture_cause_get_name((int32_t)row->cause), report.message);
    }
    // The report has the failure's own status, the end says that the capture was broken.
    bool is_its_own =
        report.status == RONDO_STATUS_INVALID || report.status == RONDO_STATUS_UNSUPPORTED;
    assert_int_equal(is_its_own ? RONDO_STATUS_STATE : report.status,
                     rondo_error_get_last()->status);
    assert_true(row->status < 0 || report.status == row->status);
    blame_check_text(report.call, row->call, row->name, "call");
    assert_true(report.what[0] != '\0' && report.advice[0] != '\0' && report.message[0] != '\0');
    assert_non_null(report.file);
    // A branch that is not joined comes to light at the end, when every scope is closed.
    const char *label = row->cause == RONDO_CAUSE_UNJOINED_STREAM ? "" : "layer3/attention";
    if (strcmp(report.label, label) != 0) {
        fail_msg("%s: label \"%s\", not \"%s\"", row->name, report.label, label);
    }
    assert_true(report.has_last_node);
    // How many nodes still fit before memory ran out is the backend's business.
    bool is_last_known = row->cause != RONDO_CAUSE_OUT_OF_MEMORY;
    // A branch that was left shows at the end; until then its node counts as a good one.
    uint64_t last_index = 1;
    if (row->cause == RONDO_CAUSE_UNJOINED_STREAM) {
        last_index = 2;
        assert_false(report.is_index_exact);
    }
    if (is_last_known && report.last_node_index != last_index) {
        fail_msg("%s: last node %llu, not %llu", row->name,
                 (unsigned long long)report.last_node_index, (unsigned long long)last_index);
    }
    if (is_last_known) {
        blame_check_text(report.last_node_name, "affine", row->name, "last node");
    }
    blame_check_text(report.last_node_label, "layer3/attention", row->name,
                     "label of the last node");
    assert_int_equal(report.is_other_thread, row->is_other_thread);
    if (row->is_other_thread) {
        assert_string_equal(report.thread_name, "loader");
    }
    if (row->cause == RONDO_CAUSE_SYNCHRONIZE || row->cause == RONDO_CAUSE_PAGEABLE_COPY) {
        assert_int_equal(report.stream_number, stream_number);
    }

    char text[2048];
    size_t length = rondo_capture_report_format(&report, text, sizeof text);
    assert_int_equal(length, strlen(text));
    blame_check_text(text, rondo_capture_cause_get_name(report.cause), row->name, "text");
    blame_check_text(text, report.advice, row->name, "text");
    blame_check_text(text, "layer3/attention", row->name, "text");
    blame_check_text(text, is_last_known ? "\"affine\"" : "last good: node", row->name, "text");
    char cut[32];
    assert_int_equal(rondo_capture_report_format(&report, cut, sizeof cut), length);
    assert_memory_equal(cut, text, sizeof cut - 1);
    assert_int_equal(cut[sizeof cut - 1], '\0');
}

static void run_row(suite_context *context, const cause_row *row) {
    size_t objects = context->is_fake ? fake_cuda_count_objects() : 0;
    blame_step s = blame_create_step(context);
    uint32_t stream_number = peek_get_number(s.stream);
    bool is_possible = (!row->needs_cuda || context->is_cuda) &&
                       (!row->needs_other_device || s.other_device != NULL);
    if (!is_possible) {
        print_message("skipped on this device: %s\n", row->name);
        blame_destroy_step(&s);
        return;
    }
    for (int round = 0; round < 2; ++round) {
        blame_begin_step(&s, row->mode);
        row->break_it(&s);
        blame_end_step(&s);
        rondo_status status = rondo_graph_capture_end(s.graph);
        int32_t wanted = row->status == RONDO_STATUS_INVALID ? RONDO_STATUS_STATE : row->status;
        if (status == RONDO_STATUS_OK || (wanted >= 0 && status != wanted)) {
            fail_msg("%s: the end gave %s, not %s: %s", row->name, rondo_status_get_name(status),
                     rondo_status_get_name(wanted), rondo_error_get_last()->message);
        }
        blame_check_text(rondo_error_get_last()->message, row->message, row->name, "message");
        assert_true(rondo_error_get_last()->op[0] != '\0');
        check_report(&s, row, stream_number);
        if (row->cause == RONDO_CAUSE_MERGE) {
            ASSERT_STATUS(rondo_graph_capture_end(s.second_graph), STATE);
            blame_assert_usable(&s, s.second_graph, s.second_stream);
        }
        blame_assert_usable(&s, s.graph, s.stream);
        blame_assert_usable(&s, s.graph, s.branch);
        stream_number = peek_get_number(s.stream);
        // The next one leaves by way of an abort.
        blame_begin_step(&s, row->mode);
        row->break_it(&s);
        rondo_graph_capture_abort(s.graph);
        rondo_graph_capture_abort(s.second_graph);
        assert_string_equal(rondo_label_get_path(s.stream), "");
        blame_assert_usable(&s, s.graph, s.stream);
        stream_number = peek_get_number(s.stream);
    }
    blame_destroy_step(&s);
    if (context->is_fake) {
        assert_int_equal(fake_cuda_count_objects(), objects);
        assert_string_equal(fake_cuda_get_violations(), "");
    }
}

SUITE_CASE(test_conformance_blame__every_cause_is_reported_and_rolled_back) {
    for (size_t i = 0; i < sizeof cause_rows / sizeof *cause_rows; ++i) {
        run_row(context, &cause_rows[i]);
    }
}

// Whatever breaks it, the memory is the pool's again and the generator stands where it stood.
SUITE_CASE(test_conformance_blame__memory_and_generators_are_rolled_back) {
    uint64_t seed = 5;
    uint64_t offset = DRAW_COUNTERS;
    rondo_pool *pool = NULL;
    rondo_pool_stats before = {.struct_size = sizeof before};
    rondo_pool_stats after = {.struct_size = sizeof after};
    rondo_generator *generator = suite_create_generator(context, seed);
    uint32_t *words = suite_allocate(context, RONDO_MEMORY_DEVICE, DRAW_WORDS);
    ASSERT_OK(rondo_pool_create(context->device, NULL, &pool));
    ASSERT_OK(suite_draw(generator, context->stream, words));
    for (size_t i = 0; i < sizeof cause_rows / sizeof *cause_rows; ++i) {
        const cause_row *row = &cause_rows[i];
        blame_step s = blame_create_step(context);
        if ((row->needs_cuda && !context->is_cuda) ||
            (row->needs_other_device && s.other_device == NULL)) {
            blame_destroy_step(&s);
            continue;
        }
        void *kept = NULL;
        void *taken = NULL;
        ASSERT_OK(rondo_pool_allocate(pool, s.stream, 1000, &kept));
        ASSERT_OK(rondo_pool_get_stats(pool, &before));
        for (int ends = 0; ends < 2; ++ends) {
            blame_begin_step(&s, row->mode);
            ASSERT_OK(suite_draw(generator, s.stream, words));
            ASSERT_OK(rondo_pool_allocate(pool, s.stream, 100000, &taken));
            ASSERT_OK(rondo_pool_free(pool, taken));
            ASSERT_OK(rondo_pool_allocate(pool, s.stream, 3000, &taken));
            ASSERT_OK(rondo_pool_free(pool, taken));
            row->break_it(&s);
            if (ends) {
                assert_int_not_equal(rondo_graph_capture_end(s.graph), RONDO_STATUS_OK);
            } else {
                rondo_graph_capture_abort(s.graph);
            }
            rondo_graph_capture_abort(s.second_graph);
            ASSERT_OK(rondo_pool_get_stats(pool, &after));
            assert_int_equal(after.live_bytes, before.live_bytes);
            assert_int_equal(after.live_count, before.live_count);
            ASSERT_STANDS(generator, seed, offset);
            ASSERT_OK(suite_draw(generator, s.stream, words));
            ASSERT_DRAWN(context, words, seed, offset);
            offset += DRAW_COUNTERS;
        }
        ASSERT_OK(rondo_pool_free(pool, kept));
        blame_destroy_step(&s);
    }
    rondo_generator_release(generator);
    rondo_pool_release(pool);
}

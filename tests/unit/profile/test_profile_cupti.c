// CUPTI as the source of a profile, over the fake driver and the fake CUPTI: each kernel, copy and
// fill with its span and the label of its node, and what happens where there is no CUPTI.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "base/log/hook.h"
#include "base/memory.h"
#include "profile/profile.h"
#include "rondo/models.h"
#include "support/expect_ok.h"
#include "support/fake/fake_cuda.h"
#include "support/fake/fake_cupti.h"
#include "support/models/add_program.h"
#include "support/test.h"

static rondo_device *g_device;
static rondo_stream *g_stream;
static uint32_t *g_memory;

static int set_up(void **state) {
    (void)state;
    fake_cuda_reset(NULL);
    fake_cuda_install();
    fake_cupti_reset(NULL);
    fake_cupti_install();
    OK(rondo_device_open("cuda:0", &g_device));
    OK(rondo_stream_create(g_device, NULL, &g_stream));
    OK(rondo_memory_allocate(g_device, RONDO_MEMORY_DEVICE, 256, (void **)&g_memory));
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    rondo_memory_free(g_device, g_memory);
    rondo_stream_destroy(g_stream);
    rondo_device_release(g_device);
    assert_int_equal(fake_cupti_count_open(), 0);
    assert_string_equal(fake_cupti_get_violations(), "");
    assert_int_equal(fake_cuda_count_objects(), 0);
    assert_string_equal(fake_cuda_get_violations(), "");
    fake_cupti_uninstall();
    fake_cuda_uninstall();
    return 0;
}

static rondo_profile *create(rondo_profile_source source) {
    const rondo_profile_options options = {.struct_size = sizeof options, .source = source};
    rondo_profile *profile = NULL;
    OK(rondo_profile_create(&options, &profile));
    return profile;
}

static rondo_profile *start(void) {
    rondo_profile *profile = create(RONDO_PROFILE_SOURCE_CUPTI);
    OK(rondo_profile_start(profile));
    return profile;
}

static size_t count_work(const rondo_profile *profile, rondo__work_kind kind, const char *label) {
    size_t count = 0;
    for (size_t i = 0; i < profile->store.records.work_count; ++i) {
        const rondo__profile_work *work = &profile->store.records.works[i];
        count += work->kind == kind && strcmp(work->label, label) == 0 ? 1 : 0;
    }
    return count;
}

// All work lies in spans of this category.
static void check_spans(const rondo_profile *profile, rondo__work_kind kind,
                        rondo__span_category category) {
    const rondo__profile_records *records = &profile->store.records;
    for (size_t i = 0; i < records->work_count; ++i) {
        uint64_t span = records->works[i].span;
        while (span != 0 && records->spans[span - 1].category != category) {
            span = records->spans[span - 1].parent;
        }
        assert_true(records->works[i].kind != kind || span != 0);
    }
}

// ---- an executor ------------------------------------------------------------------------------

TEST(test_profile_cupti__knows_an_executors_kernels) {
    rondo_program *program = NULL;
    rondo_executor *executor = NULL;
    add_program_prepare_fake();
    OK(add_program_create(g_device, RONDO_GRAPHS_ON, &program, &executor));
    rondo_profile *profile = create(RONDO_PROFILE_SOURCE_CUPTI);
    for (int run = 0; run < 3; ++run) {
        OK(rondo_profile_start(profile));
        OK(add_program_run(executor, 1));
        OK(rondo_profile_stop(profile));
        assert_int_equal(count_work(profile, RONDO__WORK_KERNEL, run > 0 ? "Add Add_0" : ""),
                         run > 0 ? 1 : 2);
        assert_int_equal(count_work(profile, RONDO__WORK_KERNEL, "Add Add_1"), run > 0 ? 1 : 0);
        check_spans(profile, RONDO__WORK_KERNEL, run > 0 ? RONDO__SPAN_REPLAY : RONDO__SPAN_OP);
        check_spans(profile, RONDO__WORK_COPY, RONDO__SPAN_COPY);
        assert_true(count_work(profile, RONDO__WORK_COPY, "") >= 2);
        assert_non_null(strstr(profile->store.records.source, "CUPTI 13.0"));
        assert_int_equal(profile->store.records.dropped_count, 0);
    }
    rondo_profile_destroy(profile);
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
}

// ---- copies -----------------------------------------------------------------------------------

// Each copy counts once, sync or async as its call was, also where CUPTI does not say which call
// put it there.
TEST(test_profile_cupti__copies_count_once) {
    enum { COUNT = 20, BYTES = 64 };
    static char pageable[BYTES];
    void *pinned = NULL;
    OK(rondo_memory_allocate(g_device, RONDO_MEMORY_PINNED, BYTES, &pinned));
    for (int hides = 0; hides < 2; ++hides) {
        rondo_profile_summary summary = {.struct_size = sizeof summary};
        fake_cupti_reset(&(fake_cupti_options){.hides_copy_calls = hides != 0});
        fake_cupti_install();
        rondo_profile *profile = start();
        for (int i = 0; i < COUNT / 2; ++i) {
            OK(rondo_stream_copy(g_stream, g_memory, pinned, BYTES, RONDO_COPY_HOST_TO_DEVICE));
            OK(rondo_stream_copy(g_stream, pageable, g_memory, BYTES, RONDO_COPY_DEVICE_TO_HOST));
        }
        OK(rondo_stream_synchronize(g_stream));
        OK(rondo_profile_stop(profile));
        OK(rondo_profile_get_summary(profile, &summary));
        assert_int_equal(summary.async_calls, COUNT / 2);
        assert_int_equal(summary.sync_calls, COUNT / 2);
        assert_int_equal(summary.async_bytes + summary.sync_bytes, COUNT * BYTES);
        check_spans(profile, RONDO__WORK_COPY, RONDO__SPAN_COPY);
        for (size_t i = 0; i < profile->store.records.work_count; ++i) {
            assert_string_equal(profile->store.records.works[i].name, "memcpy");
        }
        rondo_profile_destroy(profile);
    }
    rondo_memory_free(g_device, pinned);
}

// ---- graphs -----------------------------------------------------------------------------------

static void fill_labelled(rondo_stream *stream, const char *label, uint32_t value) {
    OK(rondo_label_push(stream, label));
    OK(rondo_stream_fill(stream, g_memory + 8, value, 4, 1));
    OK(rondo_label_pop(stream));
}

// "first", an if that is not taken, one that is, with an if inside, and "last".
static void record_bodies(rondo_graph *graph) {
    OK(rondo_graph_capture_begin(graph, g_stream, RONDO_CAPTURE_THREAD_LOCAL));
    fill_labelled(g_stream, "first", 1);
    for (uint32_t i = 0; i < 2; ++i) {
        rondo_scope scope;
        rondo_scope inner;
        rondo_stream *body = NULL;
        rondo_stream *inner_body = NULL;
        OK(rondo_label_push(g_stream, i == 0 ? "no" : "yes"));
        OK(rondo_scope_begin(g_stream, RONDO_SCOPE_IF, g_memory + i, 0, &scope));
        OK(rondo_scope_enter(scope, 0, &body));
        fill_labelled(body, i == 0 ? "not taken" : "taken", 2);
        OK(rondo_scope_begin(body, RONDO_SCOPE_IF, g_memory + i, 0, &inner));
        OK(rondo_scope_enter(inner, 0, &inner_body));
        fill_labelled(inner_body, i == 0 ? "not taken, inside" : "taken, inside", 3);
        OK(rondo_scope_leave(inner));
        OK(rondo_scope_end(inner));
        OK(rondo_scope_leave(scope));
        OK(rondo_scope_end(scope));
        OK(rondo_label_pop(g_stream));
    }
    fill_labelled(g_stream, "last", 4);
    OK(rondo_graph_capture_end(graph));
}

static void check_names(void) {
    static const char *const wanted[] = {"first", "yes/taken", "yes/taken, inside", "last",
                                         "outer/inner"};
    const rondo_graph_options kept = {.struct_size = sizeof kept, .keep = RONDO_KEEP_TEMPLATE};
    rondo_graph *inner = NULL;
    rondo_graph *outer = NULL;
    rondo_graph *graph = NULL;
    rondo_profile *profile = create(RONDO_PROFILE_SOURCE_CUPTI);
    OK(rondo_stream_fill(g_stream, g_memory, 0, 4, 1));
    OK(rondo_stream_fill(g_stream, g_memory + 1, 1, 4, 1));
    OK(rondo_graph_create(g_device, &kept, &inner));
    OK(rondo_graph_create(g_device, NULL, &outer));
    OK(rondo_graph_create(g_device, NULL, &graph));
    OK(rondo_graph_capture_begin(inner, g_stream, RONDO_CAPTURE_THREAD_LOCAL));
    fill_labelled(g_stream, "inner", 5);
    OK(rondo_graph_capture_end(inner));
    OK(rondo_graph_capture_begin(outer, g_stream, RONDO_CAPTURE_THREAD_LOCAL));
    fill_labelled(g_stream, "before", 6);
    OK(rondo_label_push(g_stream, "outer"));
    OK(rondo_stream_add_graph(g_stream, inner));
    OK(rondo_label_pop(g_stream));
    OK(rondo_graph_capture_end(outer));
    record_bodies(graph);
    OK(rondo_profile_start(profile));
    OK(rondo_graph_replay(graph, g_stream));
    OK(rondo_graph_replay(outer, g_stream));
    rondo_graph_destroy(graph);  // its names are known all the same
    OK(rondo_profile_stop(profile));
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; ++i) {
        assert_int_equal(count_work(profile, RONDO__WORK_FILL, wanted[i]), 1);
    }
    assert_int_equal(count_work(profile, RONDO__WORK_FILL, "no/not taken"), 0);
    assert_int_equal(count_work(profile, RONDO__WORK_FILL, ""), 0);
    assert_int_equal(profile->store.records.dropped_count, 0);
    check_spans(profile, RONDO__WORK_FILL, RONDO__SPAN_REPLAY);
    rondo_profile_destroy(profile);
    rondo_graph_destroy(outer);
    rondo_graph_destroy(inner);
}

// With the number of the executable, and with a CUPTI that does not tell it.
TEST(test_profile_cupti__names_nodes_inside_nodes) {
    check_names();
    fake_cupti_uninstall();
    fake_cupti_reset(&(fake_cupti_options){.missing_symbol = "cuptiGetGraphExecId"});
    fake_cupti_install();
    check_names();
}

// What a device had no room to time is lost, and counted.
TEST(test_profile_cupti__counts_work_without_times) {
    rondo_profile *profile = create(RONDO_PROFILE_SOURCE_CUPTI);
    OK(rondo_profile_start(profile));
    fake_cupti_add_kernel(fake_cupti_launch(), "untimed", 0, 0, 0);
    OK(rondo_stream_fill(g_stream, g_memory, 0, 4, 1));
    OK(rondo_profile_stop(profile));
    assert_int_equal(profile->store.records.work_count, 1);
    assert_int_equal(profile->store.records.dropped_count, 1);
    rondo_profile_destroy(profile);
}

// ---- without CUPTI ----------------------------------------------------------------------------

TEST(test_profile_cupti__gives_way_to_another_tool) {
    fake_cupti_uninstall();
    fake_cupti_reset(&(fake_cupti_options){.is_taken = true});
    fake_cupti_install();
    rondo_profile *profile = create(RONDO_PROFILE_SOURCE_CUPTI);
    assert_int_equal(rondo_profile_start(profile), RONDO_STATUS_UNAVAILABLE);
    assert_non_null(strstr(rondo_error_get_last()->message, "another tool"));
    rondo_profile_destroy(profile);

    rondo_graph *graph = NULL;
    OK(rondo_graph_create(g_device, NULL, &graph));
    OK(rondo_graph_capture_begin(graph, g_stream, RONDO_CAPTURE_THREAD_LOCAL));
    fill_labelled(g_stream, "fill", 1);
    OK(rondo_graph_capture_end(graph));
    profile = create(RONDO_PROFILE_SOURCE_AUTO);
    OK(rondo_profile_start(profile));
    OK(rondo_graph_replay(graph, g_stream));
    OK(rondo_profile_stop(profile));
    assert_int_equal(count_work(profile, RONDO__WORK_GRAPH, ""), 1);
    assert_non_null(strstr(profile->store.records.source, "timing events"));
    assert_non_null(strstr(profile->store.records.source, "another tool"));
    rondo_profile_destroy(profile);
    rondo_graph_destroy(graph);
}

TEST(test_profile_cupti__wants_an_open_device) {
    rondo_memory_free(g_device, g_memory);
    rondo_stream_destroy(g_stream);
    rondo_device_release(g_device);
    rondo_profile *profile = create(RONDO_PROFILE_SOURCE_CUPTI);
    assert_int_equal(rondo_profile_start(profile), RONDO_STATUS_UNAVAILABLE);
    assert_non_null(strstr(rondo_error_get_last()->message, "no CUDA device is open"));
    rondo_profile_destroy(profile);
    profile = create(RONDO_PROFILE_SOURCE_AUTO);
    OK(rondo_profile_start(profile));
    OK(rondo_profile_stop(profile));
    assert_non_null(strstr(profile->store.records.source, "clocks of host streams"));
    rondo_profile_destroy(profile);
    OK(rondo_device_open("cuda:0", &g_device));
    OK(rondo_stream_create(g_device, NULL, &g_stream));
    OK(rondo_memory_allocate(g_device, RONDO_MEMORY_DEVICE, 256, (void **)&g_memory));
}

TEST(test_profile_cupti__counts_what_is_lost) {
    rondo_profile *profile = start();
    OK(rondo_stream_fill(g_stream, g_memory, 1, 4, 1));
    fake_cupti_drop(3);
    OK(rondo_profile_stop(profile));
    assert_int_equal(profile->store.records.work_count, 1);
    assert_int_equal(profile->store.records.dropped_count, 3);
    rondo_profile_destroy(profile);
    profile = start();  // given up while it runs
    OK(rondo_stream_fill(g_stream, g_memory, 1, 4, 1));
    rondo_profile_destroy(profile);
}

// ---- want of memory ---------------------------------------------------------------------------

static bool fail_now(void *countdown) {
    long *left = countdown;
    return (*left)-- == 0;
}

TEST(test_profile_cupti__survives_want_of_memory) {
    rondo_graph *graph = NULL;
    rondo_profile *holder = create(RONDO_PROFILE_SOURCE_NONE);
    OK(rondo_graph_create(g_device, NULL, &graph));
    OK(rondo_graph_capture_begin(graph, g_stream, RONDO_CAPTURE_THREAD_LOCAL));
    fill_labelled(g_stream, "fill", 1);
    OK(rondo_graph_capture_end(graph));
    long left = -1;
    for (long n = 0; left < 0; ++n) {
        const rondo_profile_options options = {.struct_size = sizeof options,
                                               .source = RONDO_PROFILE_SOURCE_CUPTI};
        rondo_profile *profile = NULL;
        left = n;
        rondo__memory_set_fault(fail_now, &left);
        const int64_t balance = rondo__memory_get_balance();
        if (rondo_profile_create(&options, &profile) == RONDO_STATUS_OK &&
            rondo_profile_start(profile) == RONDO_STATUS_OK) {
            OK(rondo_graph_replay(graph, g_stream));
            if (rondo_profile_stop(profile) == RONDO_STATUS_OK && left >= 0) {
                assert_int_equal(count_work(profile, RONDO__WORK_FILL, "fill"), 1);
            }
        }
        rondo_profile_destroy(profile);
        rondo__memory_set_fault(NULL, NULL);
        assert_int_equal(rondo__memory_get_balance(), balance);
        assert_int_equal(fake_cupti_count_open(), 0);
    }
    rondo_profile_destroy(holder);
    rondo_graph_destroy(graph);
}

int main(void) {
    rondo_log_set_level(RONDO_LOG_ERROR);
    return test_run("tests", g_listed, set_up, tear_down, NULL, NULL);
}

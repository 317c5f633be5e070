// If, switch and while on the fake driver: what older drivers get, and what the driver is asked.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "backend/backend.h"
#include "rondo/rondo.h"
#include "support/expect_ok.h"
#include "support/fake/fake_cuda.h"
#include "support/test.h"

static rondo_device *g_device;
static rondo_stream *g_stream;
static rondo_graph *g_graph;
static uint32_t *g_x;  // device memory, which is ordinary memory here

static void set_up_driver(int driver_version, const char *missing_symbol) {
    const fake_cuda_options options = {.device_count = 1,
                                       .driver_version = driver_version,
                                       .missing_symbol = missing_symbol,
                                       .has_get_proc_address = true};
    rondo_graph_options graph_options = {.struct_size = sizeof graph_options};
    graph_options.keep = RONDO_KEEP_TEMPLATE;
    fake_cuda_reset(&options);
    fake_cuda_install();
    OK(rondo_device_open("cuda:0", &g_device));
    OK(rondo_stream_create(g_device, NULL, &g_stream));
    OK(rondo_graph_create(g_device, &graph_options, &g_graph));
    OK(rondo_memory_allocate(g_device, RONDO_MEMORY_DEVICE, 64, (void **)&g_x));
    memset(g_x, 0, 64);
}

// Nothing is left and nothing illegal was asked of the driver.
static void tear_down_driver(void) {
    rondo_graph_destroy(g_graph);
    rondo_memory_free(g_device, g_x);
    rondo_stream_destroy(g_stream);
    rondo_device_release(g_device);
    assert_int_equal(fake_cuda_count_objects(), 0);
    assert_string_equal(fake_cuda_get_violations(), "");
    fake_cuda_uninstall();
}

// x[1 + branch] = 7, and the predicate becomes another, which must choose nothing any more.
static void record_branch(rondo_scope scope, uint32_t branch) {
    rondo_stream *body;
    OK(rondo_scope_enter(scope, branch, &body));
    OK(rondo_stream_fill(body, g_x + 1 + branch, 7, 4, 1));
    OK(rondo_stream_fill(body, g_x, branch == 0 ? 0 : 1, 4, 1));
    OK(rondo_scope_leave(scope));
}

static void record_in(rondo_capture_mode mode, rondo_scope_kind kind, uint32_t branch_count) {
    rondo_scope scope;
    OK(rondo_graph_capture_begin(g_graph, g_stream, mode));
    OK(rondo_scope_begin(g_stream, kind, g_x, branch_count, &scope));
    for (uint32_t i = 0; i < (kind == RONDO_SCOPE_SWITCH ? branch_count : 2); ++i) {
        record_branch(scope, i);
    }
    OK(rondo_scope_end(scope));
    OK(rondo_graph_capture_end(g_graph));
}

static void record(rondo_scope_kind kind, uint32_t branch_count) {
    record_in(RONDO_CAPTURE_THREAD_LOCAL, kind, branch_count);
}

// Which branch ran: its index, or -1. More than one fails the test.
static int run(uint32_t predicate) {
    int branch = -1;
    memset(g_x, 0, 64);
    g_x[0] = predicate;
    OK(rondo_graph_replay(g_graph, g_stream));
    OK(rondo_stream_synchronize(g_stream));
    for (int i = 0; i < 4; ++i) {
        if (g_x[1 + i] == 7) {
            assert_int_equal(branch, -1);
            branch = i;
        }
    }
    return branch;
}

static bool append_text(void *user_data, const char *text, size_t bytes) {
    char *all = user_data;
    size_t used = strlen(all);
    assert_true(used + bytes < 16384);
    memcpy(all + used, text, bytes);
    all[used + bytes] = '\0';
    return true;
}

static size_t count_conditionals(void) {
    static const char part[] = "\"kind\": \"conditional\"";
    char json[16384] = "";
    size_t count = 0;
    OK(rondo_graph_dump(g_graph, RONDO_TEXT_JSON, append_text, json));
    for (const char *text = json; (text = strstr(text, part)) != NULL; text += strlen(part)) {
        ++count;
    }
    return count;
}

static void check_all_forms(size_t else_nodes, size_t switch_nodes) {
    for (int feature = RONDO_FEATURE_IF; feature <= RONDO_FEATURE_WHILE; ++feature) {
        OK(rondo_device_supports(g_device, (rondo_feature)feature));
    }
    record(RONDO_SCOPE_IF_ELSE, 0);
    assert_int_equal(count_conditionals(), else_nodes);
    assert_int_equal(run(1), 0);
    assert_int_equal(run(0), 1);
    assert_int_equal(run(0x80000000u), 0);
    OK(rondo_graph_reset(g_graph));
    record(RONDO_SCOPE_SWITCH, 3);
    assert_int_equal(count_conditionals(), switch_nodes);
    assert_int_equal(run(0), 0);
    assert_int_equal(run(1), 1);
    assert_int_equal(run(2), 2);
    assert_int_equal(run(3), -1);
    assert_int_equal(run(UINT32_MAX), -1);
}

TEST(test_graph_conditional__current_drivers_have_every_form) {
    set_up_driver(12080, NULL);
    check_all_forms(1, 1);
    tear_down_driver();
}

// Beside such a capture older drivers load no module for a thread that is not relaxed.
TEST(test_graph_conditional__global_captures_on_older_drivers) {
    set_up_driver(12080, NULL);
    record_in(RONDO_CAPTURE_GLOBAL, RONDO_SCOPE_IF_ELSE, 0);
    assert_int_equal(run(1), 0);
    assert_int_equal(run(0), 1);
    tear_down_driver();
}

TEST(test_graph_conditional__older_drivers_get_rows_of_ifs) {
    set_up_driver(12040, NULL);
    check_all_forms(2, 3);
    tear_down_driver();
    set_up_driver(12030, NULL);
    check_all_forms(2, 3);
    tear_down_driver();
}

static rondo_status set_second(rondo_stream *stream, void *user_data) {
    ++*(int *)user_data;
    return rondo_stream_fill(stream, g_x + 1, 7, 4, 1);
}

static rondo_status count_down(rondo_stream *stream, void *user_data) {
    uint32_t left = 3 - (uint32_t)++ * (int *)user_data;
    return rondo_stream_fill(stream, g_x, left, 4, 1);
}

static void check_unsupported(void) {
    int call_count = 0;
    rondo_scope scope;
    for (int feature = RONDO_FEATURE_IF; feature <= RONDO_FEATURE_WHILE; ++feature) {
        assert_int_equal(rondo_device_supports(g_device, (rondo_feature)feature),
                         RONDO_STATUS_UNSUPPORTED);
        assert_non_null(strstr(rondo_error_get_last()->message, "12.3"));
        assert_non_null(strstr(rondo_error_get_last()->message, "outside a capture"));
    }
    // Refused without harm: the capture goes on.
    OK(rondo_graph_capture_begin(g_graph, g_stream, RONDO_CAPTURE_THREAD_LOCAL));
    assert_int_equal(rondo_scope_begin(g_stream, RONDO_SCOPE_IF, g_x, 0, &scope),
                     RONDO_STATUS_UNSUPPORTED);
    assert_int_equal(rondo_control_if(g_stream, g_x, set_second, NULL, &call_count),
                     RONDO_STATUS_UNSUPPORTED);
    OK(rondo_stream_fill(g_stream, g_x + 2, 5, 4, 1));
    OK(rondo_graph_capture_end(g_graph));
    OK(rondo_graph_replay(g_graph, g_stream));
    assert_int_equal(g_x[2], 5);
    assert_int_equal(call_count, 0);
    // What the message says works.
    g_x[0] = 1;
    OK(rondo_control_if(g_stream, g_x, set_second, NULL, &call_count));
    assert_int_equal(call_count, 1);
    call_count = 0;
    g_x[0] = 9;
    OK(rondo_control_while(g_stream, g_x, count_down, &call_count));
    assert_int_equal(call_count, 3);
}

TEST(test_graph_conditional__drivers_without_say_what_to_do) {
    set_up_driver(12020, NULL);
    check_unsupported();
    tear_down_driver();
    set_up_driver(13000, "cuStreamBeginCaptureToGraph");
    check_unsupported();
    tear_down_driver();
}

// The program's own call breaks a body behind Rondo's back; the driver cannot undo that. Its graph
// is given up, and nothing else.
TEST(test_graph_conditional__a_body_broken_by_a_foreign_call) {
    set_up_driver(13000, NULL);
    rondo_scope scope;
    rondo_stream *body;
    OK(rondo_graph_capture_begin(g_graph, g_stream, RONDO_CAPTURE_THREAD_LOCAL));
    OK(rondo_scope_begin(g_stream, RONDO_SCOPE_WHILE, g_x, 0, &scope));
    OK(rondo_scope_enter(scope, 0, &body));
    OK(rondo_stream_fill(body, g_x, 0, 4, 1));
    size_t objects = fake_cuda_count_objects();
    rondo__cuda_api api;
    rondo__cu_context context = NULL;
    OK(rondo__cuda_api_load(fake_cuda_resolve, NULL, &api));
    OK(api.cuDevicePrimaryCtxRetain(&context, 0));
    OK(api.cuCtxPushCurrent(context));
    assert_int_not_equal(api.cuStreamQuery(rondo_stream_get_native(body)), RONDO__CU_SUCCESS);
    OK(api.cuCtxPopCurrent(&context));
    OK(api.cuDevicePrimaryCtxRelease(0));
    assert_int_not_equal(rondo_scope_leave(scope), RONDO_STATUS_OK);
    assert_int_not_equal(rondo_graph_capture_end(g_graph), RONDO_STATUS_OK);
    // The body's stream is gone, the two graphs are not, and were not freed twice.
    assert_int_equal(fake_cuda_count_objects(), objects - 1);
    assert_string_equal(fake_cuda_get_violations(), "");
    record(RONDO_SCOPE_SWITCH, 3);
    assert_int_equal(run(2), 2);
    rondo_graph_destroy(g_graph);
    rondo_memory_free(g_device, g_x);
    rondo_stream_destroy(g_stream);
    rondo_device_release(g_device);
    assert_int_equal(fake_cuda_count_objects(), 2);
    assert_string_equal(fake_cuda_get_violations(), "");
    fake_cuda_reset(NULL);
    fake_cuda_uninstall();
}

// A capture that the program began itself: the kernel that sets conditions is loaded in it, for the
// first time, and does not break it; a scope that is left open goes with its stream.
TEST(test_graph_conditional__scopes_in_own_captures) {
    set_up_driver(13000, NULL);
    const rondo__cuda_api *api = NULL;
    rondo__cu_context context = NULL;
    rondo__cu_stream native = NULL;
    OK(rondo__cuda_get_api(&api));
    OK(api->cuDevicePrimaryCtxRetain(&context, 0));
    OK(api->cuCtxPushCurrent(context));
    OK(api->cuStreamCreate(&native, RONDO__CU_STREAM_NON_BLOCKING));
    for (int leaves_open = 0; leaves_open < 2; ++leaves_open) {
        rondo_stream *wrapped = NULL;
        rondo_stream *body = NULL;
        rondo_scope scope;
        rondo__cu_graph graph = NULL;
        OK(rondo_stream_wrap(g_device, native, &wrapped));
        OK(api->cuStreamBeginCapture(native, leaves_open != 0
                                                 ? RONDO__CU_CAPTURE_MODE_GLOBAL
                                                 : RONDO__CU_CAPTURE_MODE_THREAD_LOCAL));
        OK(rondo_scope_begin(wrapped, RONDO_SCOPE_IF, g_x, 0, &scope));
        OK(rondo_scope_enter(scope, 0, &body));
        OK(rondo_stream_fill(body, g_x, 0, 4, 1));
        if (leaves_open == 0) {
            OK(rondo_scope_leave(scope));
            OK(rondo_scope_end(scope));
        }
        rondo_stream_destroy(wrapped);
        assert_int_equal(rondo_scope_leave(scope), RONDO_STATUS_STATE);
        assert_int_equal(rondo_scope_end(scope), RONDO_STATUS_STATE);
        OK(api->cuStreamEndCapture(native, &graph));
        OK(api->cuGraphDestroy(graph));
    }
    OK(api->cuStreamDestroy(native));
    OK(api->cuCtxPopCurrent(&context));
    OK(api->cuDevicePrimaryCtxRelease(0));
    tear_down_driver();
}

// A driver that cannot compile the kernel which sets conditions: said so, harmless, tried again.
TEST(test_graph_conditional__the_condition_kernel_fails) {
    size_t failure_count = 0;
    for (long n = 0; n < 16; ++n) {
        set_up_driver(13000, NULL);
        fake_cuda_fail_nth(n, RONDO__CU_ERROR_JIT_COMPILER_NOT_FOUND);
        rondo_status status = rondo_device_supports(g_device, RONDO_FEATURE_IF);
        if (status != RONDO_STATUS_OK) {
            ++failure_count;
            assert_non_null(strstr(rondo_error_get_last()->driver_name, "JIT_COMPILER_NOT_FOUND"));
        }
        fake_cuda_fail_nth(-1, RONDO__CU_SUCCESS);
        record(RONDO_SCOPE_IF_ELSE, 0);
        assert_int_equal(run(1), 0);
        tear_down_driver();
    }
    assert_true(failure_count >= 2);
}

TEST_MAIN()

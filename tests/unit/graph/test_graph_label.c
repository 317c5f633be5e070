// Labels on the fake driver: what older drivers get, copies that a driver lists in another order,
// and what labels cost.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "rondo/rondo.h"
#include "support/expect_ok.h"
#include "support/fake/fake_cuda.h"
#include "support/test.h"

static rondo_device *g_device;
static rondo_stream *g_stream;
static rondo_graph *g_graph;
static rondo_graph *g_inner;
static uint32_t *g_x;
static char g_dumped[16384];

static void set_up(const fake_cuda_options *options) {
    rondo_graph_options graph_options = {.struct_size = sizeof graph_options};
    graph_options.keep = RONDO_KEEP_TEMPLATE;
    fake_cuda_reset(options);
    fake_cuda_install();
    OK(rondo_device_open("cuda:0", &g_device));
    OK(rondo_stream_create(g_device, NULL, &g_stream));
    graph_options.keep = RONDO_KEEP_TEMPLATE_ONLY;
    OK(rondo_graph_create(g_device, &graph_options, &g_graph));
    OK(rondo_graph_create(g_device, &graph_options, &g_inner));
    OK(rondo_memory_allocate(g_device, RONDO_MEMORY_DEVICE, 64, (void **)&g_x));
}

static void tear_down(void) {
    rondo_graph_destroy(g_inner);
    rondo_graph_destroy(g_graph);
    rondo_memory_free(g_device, g_x);
    rondo_stream_destroy(g_stream);
    rondo_device_release(g_device);
    assert_int_equal(fake_cuda_count_objects(), 0);
    assert_string_equal(fake_cuda_get_violations(), "");
    fake_cuda_uninstall();
}

static bool append(void *user_data, const char *text, size_t bytes) {
    size_t *length = user_data;
    assert_true(bytes < sizeof g_dumped - *length);
    memcpy(g_dumped + *length, text, bytes);
    *length += bytes;
    g_dumped[*length] = '\0';
    return true;
}

// The label in the dump of the nth fill with this value.
static void assert_fill_labelled(uint32_t value, int nth, const char *label) {
    size_t length = 0;
    char wanted[128];
    OK(rondo_graph_dump(g_graph, RONDO_TEXT_JSON, append, &length));
    snprintf(wanted, sizeof wanted, "\"value\": %u, ", (unsigned)value);
    const char *found = strstr(g_dumped, wanted);
    while (found != NULL && nth-- > 0) {
        found = strstr(found + 1, wanted);
    }
    assert_non_null(found);
    found += strcspn(found, "}") - 1;
    snprintf(wanted, sizeof wanted, "\"label\": \"%s\"", label);
    length = strlen(wanted);
    if (memcmp(found + 1 - length, wanted, length) != 0) {
        fail_msg("no %s in %s", wanted, g_dumped);
    }
}

// Each branch is a conditional node of its own there, with one body.
TEST(test_graph_label__rows_of_ifs) {
    static const char *const names[] = {"zero", "one", "two"};
    set_up(&(fake_cuda_options){
        .device_count = 1, .driver_version = 12040, .has_get_proc_address = true});
    rondo_scope scope;
    OK(rondo_graph_capture_begin(g_graph, g_stream, RONDO_CAPTURE_THREAD_LOCAL));
    OK(rondo_label_push(g_stream, "choice"));
    OK(rondo_scope_begin(g_stream, RONDO_SCOPE_SWITCH, g_x, 3, &scope));
    for (uint32_t i = 3; i-- > 0;) {
        rondo_stream *body;
        OK(rondo_scope_enter(scope, i, &body));
        OK(rondo_label_push(body, names[i]));
        OK(rondo_stream_fill(body, g_x, 100 + i, 4, 1));
        OK(rondo_label_pop(body));
        OK(rondo_scope_leave(scope));
    }
    OK(rondo_scope_end(scope));
    OK(rondo_label_pop(g_stream));
    OK(rondo_graph_capture_end(g_graph));
    assert_fill_labelled(100, 0, "choice/zero");
    assert_fill_labelled(101, 0, "choice/one");
    assert_fill_labelled(102, 0, "choice/two");
    tear_down();
}

static void capture_inner_twice(void) {
    OK(rondo_graph_capture_begin(g_inner, g_stream, RONDO_CAPTURE_THREAD_LOCAL));
    OK(rondo_stream_fill(g_stream, g_x, 100, 4, 1));
    OK(rondo_label_push(g_stream, "inner"));
    OK(rondo_stream_fill(g_stream, g_x, 101, 4, 1));
    OK(rondo_label_pop(g_stream));
    OK(rondo_graph_capture_end(g_inner));
    OK(rondo_graph_capture_begin(g_graph, g_stream, RONDO_CAPTURE_THREAD_LOCAL));
    OK(rondo_stream_add_graph(g_stream, g_inner));
    OK(rondo_label_push(g_stream, "outer"));
    OK(rondo_stream_add_graph(g_stream, g_inner));
    OK(rondo_label_pop(g_stream));
    OK(rondo_graph_capture_end(g_graph));
}

// That a copy keeps the order is measured, not promised. Where it does not, labels may be missing
// but never wrong.
TEST(test_graph_label__copies_in_another_order) {
    fake_cuda_options options = {
        .device_count = 1, .driver_version = 13000, .has_get_proc_address = true};
    for (int is_reversed = 0; is_reversed < 2; ++is_reversed) {
        options.reverses_copies = is_reversed;
        set_up(&options);
        capture_inner_twice();
        assert_fill_labelled(100, 1, "outer");
        assert_fill_labelled(101, 1, is_reversed ? "outer" : "outer/inner");
        assert_int_equal(strstr(g_dumped, "\"label\": \"inner\"") == NULL, is_reversed);
        tear_down();
    }
}

// Driver calls that the stream needs to record 50 fills.
static size_t count_calls_of_work(rondo_stream *stream) {
    size_t before = fake_cuda_count_calls(NULL);
    for (int i = 0; i < 50; ++i) {
        OK(rondo_stream_fill(stream, g_x, 1, 4, 1));
    }
    return fake_cuda_count_calls(NULL) - before;
}

// Who records one more node pays nothing for labels: not in a scope, not in a body, not in both.
TEST(test_graph_label__work_costs_the_same) {
    set_up(NULL);
    rondo_scope scope;
    rondo_stream *body;
    OK(rondo_graph_capture_begin(g_graph, g_stream, RONDO_CAPTURE_THREAD_LOCAL));
    size_t plain = count_calls_of_work(g_stream);
    OK(rondo_label_push(g_stream, "outer"));
    assert_int_equal(count_calls_of_work(g_stream), plain);
    OK(rondo_scope_begin(g_stream, RONDO_SCOPE_IF, g_x, 0, &scope));
    OK(rondo_scope_enter(scope, 0, &body));
    assert_int_equal(count_calls_of_work(body), plain);
    OK(rondo_label_push(body, "inner"));
    assert_int_equal(count_calls_of_work(body), plain);
    OK(rondo_label_pop(body));
    OK(rondo_scope_leave(scope));
    OK(rondo_scope_end(scope));
    OK(rondo_label_pop(g_stream));
    OK(rondo_graph_capture_end(g_graph));
    tear_down();
}

TEST_MAIN()

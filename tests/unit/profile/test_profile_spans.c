// What the library itself does is in profiles by name: updates, patches, kernels prepared, runs
// that are not waited for, on the host and on the fake driver.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "rondo/models.h"
#include "support/expect_ok.h"
#include "support/fake/fake_cuda.h"
#include "support/models/build_node.h"
#include "support/short_forms.h"
#include "support/test.h"

enum { ROWS_MAX = 200, COUNT = 4, RUNS = 3 };

static const char *const device_names[] = {"host", "cuda:0"};
static rondo_profile_row rows[ROWS_MAX];
static size_t row_count;

static void read_rows(rondo_profile *profile) {
    rows[0].struct_size = sizeof rows[0];
    OK(rondo_profile_get_rows(profile, RONDO_PROFILE_BY_TOTAL, false, rows, ROWS_MAX, &row_count));
    assert_true(row_count <= ROWS_MAX);
}

// There are `calls` events of this name and category under the row `parent` ("": at the top).
static void expect_row(const char *name, rondo_profile_category category, const char *parent,
                       uint64_t calls) {
    for (size_t i = 0; i < row_count; ++i) {
        const char *outer = rows[i].parent != UINT64_MAX ? rows[rows[i].parent].name : "";
        if (strcmp(rows[i].name, name) == 0 && strcmp(outer, parent) == 0) {
            assert_int_equal(rows[i].category, category);
            assert_int_equal(rows[i].calls, calls);
            return;
        }
    }
    fail_msg("no row \"%s\" under \"%s\"", name, parent);
}

static void open_device(const char *name, rondo_device **out_device) {
    static const fake_cuda_options options = {
        .device_count = 1, .driver_version = 13000, .has_get_proc_address = true};
    fake_cuda_reset(&options);
    fake_cuda_install();
    fake_cuda_install_compiler();
    OK(rondo_device_open(name, out_device));
}

static void close_device(rondo_device *device) {
    rondo_device_release(device);
    assert_string_equal(fake_cuda_get_violations(), "");
    fake_cuda_uninstall();
}

static void record_fill(rondo_graph *graph, rondo_stream *stream, void *memory, uint32_t value,
                        rondo_node *out_node) {
    OK(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
    OK(rondo_stream_fill(stream, memory, value, 4, COUNT));
    OK(rondo_stream_get_last_node(stream, out_node));
    OK(rondo_graph_capture_end(graph));
}

static void use_graphs(rondo_device *device, void *memory) {
    const rondo_graph_options options = {
        .struct_size = sizeof options, .keep = RONDO_KEEP_TEMPLATE, .label = "g"};
    rondo_stream *stream;
    rondo_graph *graph;
    rondo_graph *fresh;
    rondo_node nodes[2];
    OK(rondo_stream_create(device, NULL, &stream));
    OK(rondo_graph_create(device, &options, &graph));
    OK(rondo_graph_create(device, &options, &fresh));
    record_fill(graph, stream, memory, 1, &nodes[0]);
    record_fill(fresh, stream, memory, 2, &nodes[1]);
    rondo_work work = {.struct_size = sizeof work,
                       .kind = RONDO_NODE_FILL,
                       .destination = memory,
                       .element_bytes = 4,
                       .element_count = COUNT};
    OK(rondo_profile_begin("mine"));
    for (uint32_t i = 0; i < RUNS; ++i) {
        work.fill_value = 7 + i;
        OK(rondo_graph_patch_node(graph, nodes[0], &work));
    }
    OK(rondo_graph_update(graph, fresh, NULL));
    OK(rondo_graph_replay(graph, stream));
    OK(rondo_stream_synchronize(stream));
    OK(rondo_profile_end());
    rondo_graph_destroy(fresh);
    rondo_graph_destroy(graph);
    rondo_stream_destroy(stream);
}

TEST(test_profile_spans__updates_and_patches) {
    for (size_t d = 0; d < 2; ++d) {
        rondo_device *device;
        rondo_profile *profile;
        void *memory;
        open_device(device_names[d], &device);
        OK(rondo_memory_allocate(device, RONDO_MEMORY_DEVICE, COUNT * sizeof(uint32_t), &memory));
        OK(rondo_profile_create(NULL, &profile));
        OK(rondo_profile_start(profile));
        use_graphs(device, memory);
        OK(rondo_profile_stop(profile));
        read_rows(profile);
        expect_row("patch nodes", RONDO_PROFILE_PATCH, "mine", RUNS);
        expect_row("update an executable", RONDO_PROFILE_INSTANTIATE, "mine", 1);
        expect_row("replay g", RONDO_PROFILE_REPLAY, "mine", 1);
        rondo_profile_destroy(profile);
        rondo_memory_free(device, memory);
        close_device(device);
    }
}

static void build(rondo_program **out_program) {
    rondo_builder *builder = build_begin();
    OK(rondo_builder_add_input(builder, &PORT("x", RONDO_DTYPE_F32, COUNT)));
    OK(rondo_builder_add_node(builder, "Neg", &(const char *){"x"}, 1, &(const char *){"y"}, 1,
                              NULL));
    OK(rondo_builder_add_output(builder, "y", NULL));
    OK(rondo_builder_finish(builder, out_program));
    rondo_builder_destroy(builder);
}

TEST(test_profile_spans__runs_that_are_not_waited_for) {
    for (size_t d = 0; d < 2; ++d) {
        rondo_device *device;
        rondo_program *program;
        rondo_executor *executor;
        rondo_profile *profile;
        float values[COUNT] = {1, -2, 3, -4};
        float y[COUNT];
        const rondo_shape shape = {.rank = 1, .extent = {COUNT}};
        const rondo_binding feed = {"x", {RONDO_DTYPE_F32, shape, values, NULL, NULL}};
        rondo_binding fetch = {"y", {RONDO_DTYPE_F32, shape, y, NULL, NULL}};
        open_device(device_names[d], &device);
        build(&program);
        OK(rondo_executor_create(program, device, NULL, &executor));
        OK(rondo_profile_create(NULL, &profile));
        OK(rondo_profile_start(profile));
        for (int i = 0; i < RUNS; ++i) {
            OK(rondo_executor_run_async(executor, &feed, 1, &fetch, 1, NULL));
        }
        OK(rondo_executor_wait(executor));
        assert_true(y[1] > 1.5f);
        OK(rondo_profile_stop(profile));
        read_rows(profile);
        expect_row("run, not waited for", RONDO_PROFILE_RUN, "", RUNS);
        expect_row("compile a plan", RONDO_PROFILE_PLAN, "run, not waited for", 1);
        expect_row("prepare Neg", RONDO_PROFILE_TUNE, "compile a plan", 1);
        rondo_profile_destroy(profile);
        rondo_executor_destroy(executor);
        rondo_program_destroy(program);
        close_device(device);
    }
}

int main(void) {
    rondo_log_set_level(RONDO_LOG_ERROR);
    return RUN_TESTS(NULL, NULL);
}

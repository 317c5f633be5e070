// Executors on the host device and, where there is one, on a GPU: first run eager, second captured,
// later replayed, always the same result; shapes that depend on data or on an input's value;
// control flow; plans per shape; wrong feeds.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program/edit.h"
#include "rondo/models.h"
#include "support/cases/interpret.h"
#include "support/expect_ok.h"
#include "support/on_devices.h"
#include "support/source_dir.h"
#include "support/test.h"

static rondo_device *open_device(void) {
    rondo_device *device;
    OK(rondo_device_open(on_devices_get_name(), &device));
    return device;
}

// ---- shipped models ---------------------------------------------------------------------------

typedef struct fixture {
    rondo_program *program;
    rondo_binding feeds[8];
    rondo_binding fetches[8];
    rondo_tensor expected[8];
    size_t feed_count;
    size_t fetch_count;
} fixture;

static void load_fixture(const char *folder, fixture *out_fixture) {
    char path[512];
    memset(out_fixture, 0, sizeof *out_fixture);
    (void)snprintf(path, sizeof path, "%s/%s/model.onnx", get_source_dir(), folder);
    OK(rondo_program_load_onnx(path, &out_fixture->program));
    out_fixture->feed_count = rondo_program_get_input_count(out_fixture->program);
    out_fixture->fetch_count = rondo_program_get_output_count(out_fixture->program);
    rondo_port port = {.struct_size = sizeof port};
    for (size_t i = 0; i < out_fixture->feed_count; ++i) {
        OK(rondo_program_get_input(out_fixture->program, i, &port));
        out_fixture->feeds[i].name = port.name;
        (void)snprintf(path, sizeof path, "%s/%s/test_data_set_0/input_%zu.pb", get_source_dir(),
                       folder, i);
        OK(rondo_port_load_onnx(&port, path, &out_fixture->feeds[i].tensor));
    }
    for (size_t i = 0; i < out_fixture->fetch_count; ++i) {
        OK(rondo_program_get_output(out_fixture->program, i, &port));
        out_fixture->fetches[i].name = port.name;
        (void)snprintf(path, sizeof path, "%s/%s/test_data_set_0/output_%zu.pb", get_source_dir(),
                       folder, i);
        OK(rondo_port_load_onnx(&port, path, &out_fixture->expected[i]));
    }
}

static void free_fetches(fixture *f) {
    for (size_t i = 0; i < f->fetch_count; ++i) {
        rondo_tensor_deinit(&f->fetches[i].tensor);
    }
}

static void free_fixture(fixture *f) {
    free_fetches(f);
    for (size_t i = 0; i < 8; ++i) {
        rondo_tensor_deinit(&f->feeds[i].tensor);
        rondo_tensor_deinit(&f->expected[i]);
    }
    rondo_program_destroy(f->program);
}

static void run_and_compare(rondo_executor *executor, fixture *f, double tolerance) {
    OK(rondo_executor_run(executor, f->feeds, f->feed_count, f->fetches, f->fetch_count));
    for (size_t i = 0; i < f->fetch_count; ++i) {
        double error = compare_tensors(&f->fetches[i].tensor, &f->expected[i]);
        if (!(error <= tolerance)) {
            print_error("output %zu: error %g above %g\n", i, error, tolerance);
        }
        assert_true(error <= tolerance);
    }
    free_fetches(f);
}

static void expect_model(const char *folder, bool expects_replay) {
    rondo_device *device = open_device();
    fixture f;
    load_fixture(folder, &f);
    rondo_executor *executor;
    rondo_executor_stats stats = {.struct_size = sizeof stats};
    OK(rondo_executor_create(f.program, device, NULL, &executor));
    for (int run = 0; run < 5; ++run) {
        run_and_compare(executor, &f, 1e-3);
    }
    OK(rondo_executor_get_stats(executor, &stats));
    if (expects_replay) {
        assert_int_equal(stats.eager_run_count, 1);
        assert_int_equal(stats.replay_run_count, 4);
        assert_true(stats.node_count > 0);
    }
    OK(rondo_executor_rerun(executor));
    rondo_executor_destroy(executor);
    free_fixture(&f);
    rondo_device_release(device);
}

TEST(test_executor_run__squeezenet) {
    expect_model("examples/models/squeezenet1_1", true);
}

TEST(test_executor_run__bert) {
    expect_model("tests/models/bert_mini", true);
}

TEST(test_executor_run__gpt) {
    expect_model("tests/models/gpt_mini", true);
}

TEST(test_executor_run__lstm) {
    expect_model("tests/models/lstm_tagger", true);
}

TEST(test_executor_run__branch_and_loop) {
    expect_model("tests/models/branch_and_loop", false);
}

// Strings, sequences and optionals between segments that are captured.
TEST(test_executor_run__words_and_lists) {
    expect_model("tests/models/words_and_lists", false);  // most of it is bypassed
}

TEST(test_executor_run__flower_trees) {
    expect_model("tests/models/flower_trees", strcmp(on_devices_get_name(), "host") == 0);
}

TEST(test_executor_run__replay_is_bit_equal_to_eager) {
    rondo_device *device = open_device();
    fixture f;
    load_fixture("tests/models/bert_mini", &f);
    rondo_executor *executor;
    OK(rondo_executor_create(f.program, device, NULL, &executor));
    OK(rondo_executor_set_graphs(executor, RONDO_GRAPHS_OFF));
    OK(rondo_executor_run(executor, f.feeds, f.feed_count, f.fetches, f.fetch_count));
    rondo_tensor eager = f.fetches[0].tensor;
    OK(rondo_executor_set_graphs(executor, RONDO_GRAPHS_ON));
    for (int run = 0; run < 3; ++run) {
        f.fetches[0].tensor = (rondo_tensor){0};
        OK(rondo_executor_run(executor, f.feeds, f.feed_count, f.fetches, f.fetch_count));
        rondo_run_times times = {.struct_size = sizeof times};
        OK(rondo_executor_get_times(executor, &times));
        assert_true(times.was_replayed);
        assert_memory_equal(f.fetches[0].tensor.data, eager.data, rondo_tensor_get_bytes(&eager));
        rondo_tensor_deinit(&f.fetches[0].tensor);
    }
    rondo_tensor_deinit(&eager);
    rondo_executor_destroy(executor);
    free_fixture(&f);
    rondo_device_release(device);
}

// ---- programs made here -----------------------------------------------------------------------

static rondo_tensor make_tensor(rondo_dtype dtype, int32_t rank, const int64_t *extents,
                                const void *bytes) {
    rondo_shape shape = {.rank = rank};
    memcpy(shape.extent, extents, (size_t)rank * sizeof *extents);
    rondo_tensor tensor;
    OK(rondo_tensor_init(dtype, &shape, &tensor));
    if (rondo_tensor_get_bytes(&tensor) > 0) {
        memcpy(tensor.data, bytes, rondo_tensor_get_bytes(&tensor));
    }
    return tensor;
}

static int32_t add_value(rondo_program *program, const char *name, rondo_dtype dtype) {
    int32_t value;
    OK(rondo__program_add_value(program, name, &value));
    program->values[value].dtype = dtype;
    return value;
}

// y = Relu(x); n = NonZero(y): the second result's shape depends on data.
TEST(test_executor_run__shape_that_depends_on_data) {
    rondo_device *device = open_device();
    rondo_program *program;
    OK(rondo__program_create("p", &program));
    int32_t x = add_value(program, "x", RONDO_DTYPE_F32);
    int32_t y = add_value(program, "y", RONDO_DTYPE_F32);
    int32_t n = add_value(program, "n", RONDO_DTYPE_I64);
    OK(rondo__program_add_input(program, x));
    OK(rondo__program_add_simple(program, "", "Relu", "relu", &x, 1, &y, 1));
    OK(rondo__program_add_simple(program, "", "NonZero", "nonzero", &y, 1, &n, 1));
    OK(rondo__program_add_output(program, n));
    OK(rondo__program_verify(program));
    rondo_executor *executor;
    OK(rondo_executor_create(program, device, NULL, &executor));
    const float rows[3][4] = {{1, -1, 0, 2}, {-1, -1, -1, -1}, {1, 2, 3, 4}};
    const int64_t counts[3] = {2, 0, 4};
    for (int run = 0; run < 6; ++run) {
        rondo_binding feed = {"x",
                              make_tensor(RONDO_DTYPE_F32, 1, (const int64_t[]){4}, rows[run % 3])};
        rondo_binding fetch = {.name = "n"};
        OK(rondo_executor_run(executor, &feed, 1, &fetch, 1));
        assert_int_equal(fetch.tensor.shape.rank, 2);
        assert_int_equal(fetch.tensor.shape.extent[1], counts[run % 3]);
        rondo_tensor_deinit(&feed.tensor);
        rondo_tensor_deinit(&fetch.tensor);
    }
    rondo_executor_stats stats = {.struct_size = sizeof stats};
    OK(rondo_executor_get_stats(executor, &stats));
    const bool is_host = strcmp(on_devices_get_name(), "host") == 0;
    assert_int_equal(stats.bypassed_count, is_host ? 1 : 0);
    assert_int_equal(stats.segment_count, 1);
    // A GPU's segment has NonZero, too, and ends with the copy of its count.
    assert_int_equal(stats.node_count, is_host ? 1 : 3);
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
    rondo_device_release(device);
}

// y = Expand(x, shape) with the shape as an input: planned for each value, conventional when values
// keep changing.
TEST(test_executor_run__shape_from_an_input) {
    rondo_device *device = open_device();
    rondo_program *program;
    OK(rondo__program_create("p", &program));
    int32_t inputs[2] = {add_value(program, "x", RONDO_DTYPE_F32),
                         add_value(program, "shape", RONDO_DTYPE_I64)};
    int32_t y = add_value(program, "y", RONDO_DTYPE_F32);
    OK(rondo__program_add_input(program, inputs[0]));
    OK(rondo__program_add_input(program, inputs[1]));
    OK(rondo__program_add_simple(program, "", "Expand", "expand", inputs, 2, &y, 1));
    OK(rondo__program_add_output(program, y));
    OK(rondo__program_verify(program));
    rondo_executor *executor;
    OK(rondo_executor_create(program, device, NULL, &executor));
    rondo_executor_stats stats = {.struct_size = sizeof stats};
    const float one = 3.5f;
    for (int64_t length = 1; length <= 40; ++length) {
        for (int repeat = 0; repeat < 2; ++repeat) {
            rondo_binding feeds[2] = {
                {"x", make_tensor(RONDO_DTYPE_F32, 1, (const int64_t[]){1}, &one)},
                {"shape", make_tensor(RONDO_DTYPE_I64, 1, (const int64_t[]){1}, &length)}};
            rondo_binding fetch = {.name = "y"};
            OK(rondo_executor_run(executor, feeds, 2, &fetch, 1));
            assert_int_equal(fetch.tensor.shape.extent[0], length);
            assert_true(((const float *)fetch.tensor.data)[length - 1] == 3.5f);
            rondo_tensor_deinit(&feeds[0].tensor);
            rondo_tensor_deinit(&feeds[1].tensor);
            rondo_tensor_deinit(&fetch.tensor);
        }
        if (length == 1) {
            OK(rondo_executor_get_stats(executor, &stats));
            assert_int_equal(stats.bypassed_count, 0);
        }
    }
    OK(rondo_executor_get_stats(executor, &stats));
    assert_int_equal(stats.bypassed_count, 1);
    assert_true(stats.plan_count <= 16);
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
    rondo_device_release(device);
}

TEST(test_executor_run__plans_are_bounded) {
    rondo_device *device = open_device();
    rondo_program *program;
    OK(rondo__program_create("p", &program));
    int32_t x = add_value(program, "x", RONDO_DTYPE_F32);
    int32_t y = add_value(program, "y", RONDO_DTYPE_F32);
    OK(rondo__program_add_input(program, x));
    OK(rondo__program_add_simple(program, "", "Neg", "neg", &x, 1, &y, 1));
    OK(rondo__program_add_output(program, y));
    OK(rondo__program_verify(program));
    rondo_executor_options options = {.struct_size = sizeof options};
    options.plan_limit = 3;
    rondo_executor *executor;
    OK(rondo_executor_create(program, device, &options, &executor));
    float numbers[64];
    for (int i = 0; i < 64; ++i) {
        numbers[i] = (float)i;
    }
    for (int64_t run = 0; run < 50; ++run) {
        const int64_t length = 1 + run % 7;
        rondo_binding feed = {"x", make_tensor(RONDO_DTYPE_F32, 1, &length, numbers)};
        rondo_binding fetch = {.name = "y"};
        OK(rondo_executor_run(executor, &feed, 1, &fetch, 1));
        assert_true(((const float *)fetch.tensor.data)[length - 1] == -(float)(length - 1));
        rondo_tensor_deinit(&feed.tensor);
        rondo_tensor_deinit(&fetch.tensor);
        rondo_executor_stats stats = {.struct_size = sizeof stats};
        OK(rondo_executor_get_stats(executor, &stats));
        assert_true(stats.plan_count <= 3);
    }
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
    rondo_device_release(device);
}

// ---- mistakes ---------------------------------------------------------------------------------

static void expect_refusal(rondo_executor *executor, const rondo_binding *feeds, size_t count,
                           const char *expected_text) {
    rondo_binding fetch = {.name = "hidden"};
    assert_int_equal(rondo_executor_run(executor, feeds, count, &fetch, 1), RONDO_STATUS_INVALID);
    assert_null(fetch.tensor.data);
    if (strstr(rondo_error_get_last()->message, expected_text) == NULL) {
        print_error("\"%s\" does not say \"%s\"\n", rondo_error_get_last()->message, expected_text);
    }
    assert_non_null(strstr(rondo_error_get_last()->message, expected_text));
}

TEST(test_executor_run__wrong_feeds_are_told_in_full) {
    rondo_device *device = open_device();
    fixture f;
    load_fixture("tests/models/bert_mini", &f);
    rondo_executor *executor;
    OK(rondo_executor_create(f.program, device, NULL, &executor));
    rondo_binding feeds[3] = {f.feeds[0], f.feeds[1], f.feeds[1]};
    expect_refusal(executor, feeds, 1, "\"mask\" is not fed");
    expect_refusal(executor, feeds, 3, "fed twice");
    feeds[1].name = "masc";
    expect_refusal(executor, feeds, 2, "no input \"masc\"; it has \"ids\", \"mask\"");
    feeds[1] = f.feeds[1];
    feeds[1].tensor.dtype = RONDO_DTYPE_I32;
    expect_refusal(executor, feeds, 2, "is i32, the model takes i64");
    feeds[1] = f.feeds[1];
    feeds[1].tensor.shape = (rondo_shape){.rank = 1, .extent = {32}};
    expect_refusal(executor, feeds, 2, "has shape [32], the model takes [batch, sequence]");
    rondo_binding fetch = {.name = "nothing"};
    assert_int_equal(rondo_executor_run(executor, f.feeds, 2, &fetch, 1), RONDO_STATUS_INVALID);
    assert_non_null(
        strstr(rondo_error_get_last()->message, "no output \"nothing\"; it has \"hidden\""));
    run_and_compare(executor, &f, 1e-3);  // and nothing was lost
    rondo_executor_destroy(executor);
    free_fixture(&f);
    rondo_device_release(device);
}

int main(void) {
    return ON_DEVICES();
}

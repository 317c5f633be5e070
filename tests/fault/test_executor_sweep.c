// Fail the nth allocation of loading, planning, running, capturing and replaying a model, in turn,
// on the host device: each failure is reported with a record of its own, everything can still be
// destroyed, and the next run of the same executor without a fault gives the right result.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "rondo/models.h"
#include "support/cases/interpret.h"
#include "support/source_dir.h"
#include "support/sweep.h"
#include "support/text_sink.h"

enum { PORTS_MAX = 8 };

typedef struct fixture {
    char path[512];
    char names[PORTS_MAX][64];
    rondo_binding feeds[PORTS_MAX];
    size_t feed_count;
    rondo_tensor expected[PORTS_MAX];
    size_t fetch_count;
    rondo_dtype dtype;
    double tolerance;
} fixture;

static void load_value(const char *folder, const char *kind, size_t index, const rondo_port *port,
                       rondo_tensor *out_tensor) {
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s/test_data_set_0/%s_%zu.pb", get_source_dir(), folder,
                   kind, index);
    OK(rondo_port_load_onnx(port, path, out_tensor));
}

static void load_fixture(const char *folder, fixture *out_fixture) {
    rondo_program *program;
    rondo_port port = {.struct_size = sizeof port};
    memset(out_fixture, 0, sizeof *out_fixture);
    (void)snprintf(out_fixture->path, sizeof out_fixture->path, "%s/%s/model.onnx",
                   get_source_dir(), folder);
    OK(rondo_program_load_onnx(out_fixture->path, &program));
    out_fixture->feed_count = rondo_program_get_input_count(program);
    out_fixture->fetch_count = rondo_program_get_output_count(program);
    assert_true(out_fixture->feed_count <= PORTS_MAX && out_fixture->fetch_count <= PORTS_MAX);
    for (size_t i = 0; i < out_fixture->feed_count; ++i) {
        OK(rondo_program_get_input(program, i, &port));
        (void)snprintf(out_fixture->names[i], sizeof out_fixture->names[i], "%s", port.name);
        out_fixture->feeds[i].name = out_fixture->names[i];
        load_value(folder, "input", i, &port, &out_fixture->feeds[i].tensor);
    }
    for (size_t i = 0; i < out_fixture->fetch_count; ++i) {
        OK(rondo_program_get_output(program, i, &port));
        load_value(folder, "output", i, &port, &out_fixture->expected[i]);
    }
    rondo_program_destroy(program);
}

static void free_fixture(fixture *f) {
    for (size_t i = 0; i < PORTS_MAX; ++i) {
        rondo_tensor_deinit(&f->feeds[i].tensor);
        rondo_tensor_deinit(&f->expected[i]);
    }
}

static rondo_status run_once(rondo_program *program, rondo_executor *executor, const fixture *f) {
    rondo_binding fetches[PORTS_MAX];
    memset(fetches, 0, sizeof fetches);
    for (size_t i = 0; i < f->fetch_count; ++i) {
        rondo_port port = {.struct_size = sizeof port};
        OK(rondo_program_get_output(program, i, &port));
        fetches[i].name = port.name;
    }
    rondo_status status =
        rondo_executor_run(executor, f->feeds, f->feed_count, fetches, f->fetch_count);
    for (size_t i = 0; i < f->fetch_count; ++i) {
        if (status == RONDO_STATUS_OK) {
            assert_true(compare_tensors(&fetches[i].tensor, &f->expected[i]) <= f->tolerance);
        } else {
            assert_null(fetches[i].tensor.data);  // written only on success
        }
        rondo_tensor_deinit(&fetches[i].tensor);
    }
    return status;
}

// What half precision adds: the description with its reasons, and the search for lost precision;
// and the picture.
static rondo_status explain_half(rondo_program *program, rondo_executor *executor,
                                 rondo_device *device, const rondo_executor_options *options,
                                 const fixture *f) {
    rondo_precision_loss loss = {.struct_size = sizeof loss};
    rondo_status status =
        rondo_executor_describe(executor, RONDO_TEXT_JSON, text_sink_ignore, NULL);
    if (status == RONDO_STATUS_OK) {
        status = rondo_executor_describe(executor, RONDO_TEXT_SVG, text_sink_ignore, NULL);
    }
    return status != RONDO_STATUS_OK ? status
                                     : rondo_executor_find_loss(program, device, options, f->feeds,
                                                                f->feed_count, 0.01, &loss);
}

// One pass with the n-th allocation failing. True when there was one.
static bool run_at(const fixture *f, rondo_device *device, size_t n) {
    rondo_executor_options options = {.struct_size = sizeof options};
    options.dtype = f->dtype;
    uint64_t sequence = rondo_error_get_last()->sequence;
    rondo_program *program = NULL;
    rondo_executor *executor = NULL;
    rondo_executor *other = NULL;  // shares weights and what was folded with the first
    sweep_fail_allocation(n, true);
    rondo_status status = rondo_program_load_onnx(f->path, &program);
    if (status == RONDO_STATUS_OK) {
        status = rondo_executor_create(program, device, &options, &executor);
    }
    for (int run = 0; run < 3 && status == RONDO_STATUS_OK; ++run) {
        status = run_once(program, executor, f);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_executor_create(program, device, &options, &other);
    }
    if (status == RONDO_STATUS_OK) {
        status = run_once(program, other, f);
    }
    if (status == RONDO_STATUS_OK && f->dtype == RONDO_DTYPE_F16) {
        status = explain_half(program, executor, device, &options, f);
    }
    bool has_failed = sweep_end_allocations();
    if (!sweep_step(status, sequence, "a run")) {
        assert_true(has_failed);
    }
    for (int run = 0; run < 2 && executor != NULL; ++run) {
        OK(run_once(program, executor, f));
    }
    rondo_executor_destroy(executor);
    if (other != NULL) {
        OK(run_once(program, other, f));
    }
    rondo_executor_destroy(other);
    rondo_program_destroy(program);
    return has_failed;
}

static void sweep(const char *folder, rondo_dtype dtype) {
    rondo_log_set_level(RONDO_LOG_ERROR);
    fixture f;
    load_fixture(folder, &f);
    f.dtype = dtype;
    f.tolerance = dtype == RONDO_DTYPE_F16 ? 2e-2 : 1e-3;
    rondo_device *device;
    OK(rondo_device_open("host", &device));
    size_t n = sweep_get_first();
    const size_t every = sweep_get_every();
    // Every point of the first thousand, then ever larger steps: later points repeat the same code
    // for more nodes.
    size_t points = 0;
    for (; run_at(&f, device, n); ++points) {
        n += every * (n < 1000 ? 1 : n / 100);
    }
    print_message("%s: %zu points swept, %zu allocations\n", folder, points, n);
    assert_true(points * every > 100);
    rondo_device_release(device);
    free_fixture(&f);
}

TEST(test_executor_sweep__branch_and_loop) {
    sweep("tests/models/branch_and_loop", RONDO_DTYPE_F32);
}

TEST(test_executor_sweep__half_precision) {
    sweep("tests/cli/models/norm", RONDO_DTYPE_F16);
}

TEST(test_executor_sweep__gpt) {
    sweep("tests/models/gpt_mini", RONDO_DTYPE_F32);
}

// Strings, sequences, optionals; trees, labels and a ZipMap.
TEST(test_executor_sweep__words_and_lists) {
    sweep("tests/models/words_and_lists", RONDO_DTYPE_F32);
}

TEST(test_executor_sweep__flower_trees) {
    sweep("tests/models/flower_trees", RONDO_DTYPE_F32);
}

// Ops that are planned when their shapes are known; their loss of precision, too.
TEST(test_executor_sweep__found_rows) {
    sweep("tests/models/found_rows", RONDO_DTYPE_F32);
    sweep("tests/models/found_rows", RONDO_DTYPE_F16);
}

TEST_MAIN()

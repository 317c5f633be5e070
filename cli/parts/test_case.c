// Running one ONNX test directory.
//
// A model that fails in half precision is run op by op in both precisions (test_precision.c), so
// that the op that loses the precision is named.
// SPDX-License-Identifier: Apache-2.0
#include "test_case.h"
#include "model_file.h"

#include <dirent.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compare.h"
#include "model_path.h"
#include "session.h"
#include "test_precision.h"
#include "test_tolerance.h"

enum {
    REPLAY_RUNS_MAX = 3,  // a capture may take one run more than the eager one before it
};

// Everything that a test directory has open.
typedef struct test_case {
    bool is_half;  // what the executor computes in
    const char *directory;
    const cli_test_settings *settings;
    cli_test_result *result;
    rondo_program *program;
    rondo_executor *executor;
    size_t feed_count;
    rondo_binding *feeds;
    size_t fetch_count;
    rondo_binding *fetches;
    rondo_tensor *expected;  // fetch_count entries
} test_case;

RONDO_PRINTF(3, 4)
static bool finish(cli_test_result *result, cli_outcome outcome, const char *format, ...) {
    va_list arguments;
    result->outcome = outcome;
    va_start(arguments, format);
    vsnprintf(result->reason, sizeof result->reason, format, arguments);
    va_end(arguments);
    return false;
}

// What is not supported is skipped; every other error is a failure.
static bool finish_with_record(cli_test_result *result) {
    const rondo_error *error = rondo_error_get_last();
    return finish(result, error->status == RONDO_STATUS_UNSUPPORTED ? CLI_SKIPPED : CLI_FAILED_TEST,
                  "%s", error->message);
}

// The path of a file of the directory, or of the folder that the model is in; false when it is too
// long.
static bool format_path(const test_case *test, const char *name, char *path, size_t path_bytes) {
    size_t length = strlen(test->directory);
    if ((length > 5 && strcmp(test->directory + length - 5, ".onnx") == 0) ||
        cli_is_plan_file(test->directory)) {
        while (length > 0 && test->directory[length - 1] != '/') {
            length--;
        }
    }
    const int written = snprintf(path, path_bytes, "%.*s%s%s", (int)length, test->directory,
                                 length > 0 ? "/" : "", name);
    return written >= 0 && (size_t)written < path_bytes;
}

// "<directory>/test_data_set_<set>/<kind>_<index>.pb"; false when there is no such file.
static bool find_data_file(const test_case *test, size_t set, const char *kind, size_t index,
                           char *path, size_t path_bytes) {
    char name[96];
    snprintf(name, sizeof name, "test_data_set_%zu/%s_%zu.pb", set, kind, index);
    return format_path(test, name, path, path_bytes) && access(path, F_OK) == 0;
}

// Expectations that nothing is compared with would look like success.
static bool check_no_more_outputs(test_case *test, size_t set) {
    char path[CLI_PATH_MAX];
    size_t surplus = SIZE_MAX;
    if (!find_data_file(test, set, "output", 0, path, sizeof path)) {
        return true;
    }
    *strrchr(path, '/') = '\0';
    DIR *folder = opendir(path);
    for (const struct dirent *entry = folder != NULL ? readdir(folder) : NULL; entry != NULL;
         entry = readdir(folder)) {
        size_t index = 0;
        char end[8];
        if (sscanf(entry->d_name, "output_%zu.%7s", &index, end) == 2 && strcmp(end, "pb") == 0 &&
            index >= test->fetch_count && index < surplus) {
            surplus = index;
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return surplus == SIZE_MAX ||
           finish(test->result, CLI_FAILED_TEST,
                  "test_data_set_%zu has output_%zu.pb, but the model has %zu output%s", set,
                  surplus, test->fetch_count, test->fetch_count == 1 ? "" : "s");
}

static bool open_model(test_case *test) {
    char path[CLI_PATH_MAX];
    if (!cli_format_model_path(test->directory, path, sizeof path)) {
        return finish(test->result, CLI_FAILED_TEST, "the path is too long");
    }
    rondo_executor_options options = {.struct_size = sizeof options};
    const rondo_load_options load = {
        .struct_size = sizeof load,
        .memory_limit_bytes = test->settings->memory_limit,
        .allow_newer_opset = test->settings->allow_newer_opset,
    };
    if (cli_model_load(path, &load, true, &test->program) != RONDO_STATUS_OK) {
        return finish_with_record(test->result);
    }
    // Of a plan file, what is not said is as it was when that was made.
    const bool has_plan =
        rondo_program_get_plan_options(test->program, &options) == RONDO_STATUS_OK;
    if (!has_plan || test->settings->has_dtype ||
        test->settings->keep_f32.count + test->settings->use_f16.count > 0) {
        cli_set_precision(&options, test->settings->dtype, &test->settings->keep_f32,
                          &test->settings->use_f16);
    }
    test->is_half = options.dtype == RONDO_DTYPE_F16;
    options.graphs = RONDO_GRAPHS_AUTO;
    if (test->settings->place.count > 0) {
        options.place = test->settings->place.items;
        options.place_count = test->settings->place.count;
    }
    options.thread_count = test->settings->thread_count;
    options.memory_limit_bytes = test->settings->memory_limit;
    if (rondo_executor_create(test->program, test->settings->device, &options, &test->executor) !=
        RONDO_STATUS_OK) {
        return finish_with_record(test->result);
    }
    test->feed_count = rondo_program_get_input_count(test->program);
    test->fetch_count = rondo_program_get_output_count(test->program);
    test->feeds = calloc(test->feed_count + 1, sizeof *test->feeds);
    test->fetches = calloc(test->fetch_count + 1, sizeof *test->fetches);
    test->expected = calloc(test->fetch_count + 1, sizeof *test->expected);
    if (test->feeds == NULL || test->fetches == NULL || test->expected == NULL) {
        return finish(test->result, CLI_FAILED_TEST, "out of memory");
    }
    return true;
}

static void drop_data(test_case *test) {
    for (size_t i = 0; test->feeds != NULL && i < test->feed_count; i++) {
        rondo_tensor_deinit(&test->feeds[i].tensor);
    }
    for (size_t i = 0; test->fetches != NULL && i < test->fetch_count; i++) {
        rondo_tensor_deinit(&test->fetches[i].tensor);
    }
    for (size_t i = 0; test->expected != NULL && i < test->fetch_count; i++) {
        rondo_tensor_deinit(&test->expected[i]);
    }
}

static void close_model(test_case *test) {
    drop_data(test);
    free(test->feeds);
    free(test->fetches);
    free(test->expected);
    rondo_executor_destroy(test->executor);
    rondo_program_destroy(test->program);
}

// ONNX's test data has the bits of bf16 numbers as u16.
static void reinterpret(rondo_tensor *tensor, rondo_dtype declared) {
    if (tensor->dtype == RONDO_DTYPE_U16 && declared == RONDO_DTYPE_BF16) {
        tensor->dtype = RONDO_DTYPE_BF16;
    }
}

// Some of ONNX's tests contradict their own model: data of another shape than the input declares.
static bool check_declared_shape(test_case *test, const rondo_port *port,
                                 const rondo_tensor *tensor, const char *path) {
    bool fits = port->rank < 0 || port->rank == tensor->shape.rank;
    for (int32_t d = 0; fits && d < port->rank; d++) {
        fits = port->extent[d] < 0 || port->extent[d] == tensor->shape.extent[d];
    }
    char text[128];
    return fits || finish(test->result, CLI_SKIPPED,
                          "%s has shape %s, which the model's input \"%s\" does not take",
                          strrchr(path, '/') + 1,
                          rondo_shape_format(&tensor->shape, text, sizeof text), port->name);
}

static bool load_data_set(test_case *test, size_t set) {
    char path[CLI_PATH_MAX];
    for (size_t i = 0; i < test->feed_count; i++) {
        rondo_port port = {.struct_size = sizeof port};
        if (rondo_program_get_input(test->program, i, &port) != RONDO_STATUS_OK) {
            return finish_with_record(test->result);
        }
        test->feeds[i].name = port.name;
        if (!find_data_file(test, set, "input", i, path, sizeof path)) {
            return finish(test->result, CLI_FAILED_TEST, "test_data_set_%zu has no input_%zu.pb",
                          set, i);
        }
        if (rondo_port_load_onnx(&port, path, &test->feeds[i].tensor) != RONDO_STATUS_OK) {
            return finish_with_record(test->result);
        }
        reinterpret(&test->feeds[i].tensor, port.dtype);
        if (!check_declared_shape(test, &port, &test->feeds[i].tensor, path)) {
            return false;
        }
    }
    for (size_t i = 0; i < test->fetch_count; i++) {
        rondo_port port = {.struct_size = sizeof port};
        if (rondo_program_get_output(test->program, i, &port) != RONDO_STATUS_OK) {
            return finish_with_record(test->result);
        }
        test->fetches[i].name = port.name;
        if (!find_data_file(test, set, "output", i, path, sizeof path)) {
            return finish(test->result, CLI_FAILED_TEST, "test_data_set_%zu has no output_%zu.pb",
                          set, i);
        }
        if (rondo_port_load_onnx(&port, path, &test->expected[i]) != RONDO_STATUS_OK) {
            return finish_with_record(test->result);
        }
        reinterpret(&test->expected[i], port.dtype);
    }
    return check_no_more_outputs(test, set);
}

// Runs with graphs off, or until a run was replayed. Outputs are fetched into fresh tensors, so
// that a stale one cannot pass.
static bool run_mode(test_case *test, rondo_graphs_mode graphs) {
    if (rondo_executor_set_graphs(test->executor, graphs) != RONDO_STATUS_OK) {
        return finish_with_record(test->result);
    }
    const int run_max = graphs == RONDO_GRAPHS_OFF ? 1 : REPLAY_RUNS_MAX;
    for (int run = 0; run < run_max; run++) {
        rondo_run_times times = {.struct_size = sizeof times};
        for (size_t i = 0; i < test->fetch_count; i++) {
            rondo_tensor_deinit(&test->fetches[i].tensor);
        }
        if (rondo_executor_run(test->executor, test->feeds, test->feed_count, test->fetches,
                               test->fetch_count) != RONDO_STATUS_OK ||
            rondo_executor_get_times(test->executor, &times) != RONDO_STATUS_OK) {
            return finish_with_record(test->result);
        }
        if (times.replayed_op_count > 0) {
            test->result->was_replayed = times.was_replayed;
            test->result->was_partly_replayed = true;
            break;
        }
    }
    return true;
}

static bool compare_mode(test_case *test, const char *mode, double *largest_error) {
    rondo_executor_stats stats = {.struct_size = sizeof stats};
    if (rondo_executor_get_stats(test->executor, &stats) != RONDO_STATUS_OK) {
        return finish_with_record(test->result);
    }
    test->result->node_count = stats.node_count;
    test->result->bypassed_count = stats.bypassed_count;
    const bool is_half = test->is_half;
    char data_path[CLI_PATH_MAX];
    format_path(test, "data.json", data_path, sizeof data_path);
    const cli_tolerance tolerance =
        cli_test_choose_tolerance(test->program, stats.op_count, test->settings, data_path);
    for (size_t i = 0; i < test->fetch_count; i++) {
        const cli_comparison comparison =
            cli_compare(&test->fetches[i].tensor, &test->expected[i], &tolerance);
        *largest_error = fmax(*largest_error, comparison.largest_error);
        if (!comparison.is_equal && stats.random_op_count > 0) {
            return finish(test->result, CLI_SKIPPED,
                          "the model draws random numbers, and the expected output \"%s\" holds "
                          "those of another generator",
                          test->fetches[i].name);
        }
        if (!comparison.is_equal) {
            (void)finish(test->result, CLI_FAILED_TEST, "%s, output \"%s\": %s (%zu wrong)", mode,
                         test->fetches[i].name, comparison.reason, comparison.mismatch_count);
            if (is_half) {
                const cli_precision_case failed = {
                    .program = test->program,
                    .settings = test->settings,
                    .tolerance = tolerance,
                    .feeds = test->feeds,
                    .feed_count = test->feed_count,
                    .expected = test->expected,
                    .expected_count = test->fetch_count,
                };
                cli_explain_precision(&failed, test->result->diagnosis,
                                      sizeof test->result->diagnosis);
            }
            return false;
        }
    }
    return true;
}

void cli_test_run(const char *directory, const cli_test_settings *settings,
                  cli_test_result *out_result) {
    test_case test = {.directory = directory, .settings = settings, .result = out_result};
    char path[CLI_PATH_MAX];
    size_t set = 0;
    memset(out_result, 0, sizeof *out_result);
    out_result->outcome = CLI_PASSED;
    if (!open_model(&test)) {
        close_model(&test);
        return;
    }
    // A model without inputs still has outputs.
    while (find_data_file(&test, set, "output", 0, path, sizeof path) &&
           (settings->data_set_limit == 0 || set < settings->data_set_limit)) {
        const bool is_fine = load_data_set(&test, set) && run_mode(&test, RONDO_GRAPHS_OFF) &&
                             compare_mode(&test, "eager", &out_result->eager_error) &&
                             run_mode(&test, RONDO_GRAPHS_AUTO) &&
                             compare_mode(&test, "replay", &out_result->replay_error);
        drop_data(&test);
        if (!is_fine) {
            break;
        }
        set++;
    }
    if (set == 0 && out_result->outcome == CLI_PASSED) {
        finish(out_result, CLI_FAILED_TEST, "there is no test_data_set_0 with outputs");
    }
    close_model(&test);
}

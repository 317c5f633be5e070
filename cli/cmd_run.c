// rondo run — runs a model once and shows or saves its outputs.
// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "npy.h"
#include "output_file.h"
#include "progress.h"
#include "session_text.h"
#include "tensor_file.h"
#include "tensor_text.h"

typedef struct run_settings {
    cli_model_settings model;
    const char *output_directory;
    uint64_t check_count;  // runs that are compared; 0: none
} run_settings;

enum { PATH_BYTES = 4096 };

// What is to be written of an output: what an optional holds; NULL when that is nothing.
static const rondo_tensor *get_content(const rondo_tensor *tensor) {
    return tensor->dtype == RONDO_DTYPE_OPTIONAL ? rondo_tensor_get_item(tensor, 0) : tensor;
}

// DIR/NAME.npy, or for a sequence the folder DIR/NAME.
static bool make_path(const char *directory, const rondo_binding *fetch, size_t number,
                      char *path) {
    char file_name[256];
    const rondo_tensor *content = get_content(&fetch->tensor);
    const bool is_sequence = content != NULL && content->dtype == RONDO_DTYPE_SEQUENCE;
    cli_tensor_file_name(fetch->name, number, file_name, sizeof file_name);
    const int length =
        snprintf(path, PATH_BYTES, "%s/%s%s", directory, file_name, is_sequence ? "" : ".npy");
    if (length < 0 || length >= PATH_BYTES) {
        cli_print_error("the path of output \"%s\" is too long", fetch->name);
        return false;
    }
    return true;
}

// Paths that are taken, by their hash: one slot for each, and as many empty ones.
typedef struct path_table {
    size_t slot_count;  // a power of two
    const char **slots;
} path_table;

// False when the path is there already.
static bool add_path(path_table *table, const char *path) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);  // FNV-1a
    for (const char *c = path; *c != '\0'; c++) {
        hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
    }
    size_t slot = (size_t)hash & (table->slot_count - 1);
    while (table->slots[slot] != NULL) {
        if (strcmp(table->slots[slot], path) == 0) {
            return false;
        }
        slot = (slot + 1) & (table->slot_count - 1);
    }
    table->slots[slot] = path;
    return true;
}

// The files of all outputs. Names that differ only in what a file name cannot hold get a number.
static bool name_files(const cli_session *session, const char *directory, path_table *table,
                       char **paths) {
    for (size_t i = 0; i < session->fetch_count; i++) {
        for (size_t number = 1; paths[i] == NULL; number++) {
            char path[PATH_BYTES];
            if (!make_path(directory, &session->fetches[i], number, path)) {
                return false;
            }
            paths[i] = strdup(path);
            if (paths[i] == NULL) {
                cli_print_error("out of memory");
                return false;
            }
            if (!add_path(table, paths[i])) {
                free(paths[i]);
                paths[i] = NULL;
            }
        }
    }
    return true;
}

// Writes the items of a sequence into a folder, from which those of a longer one go.
static bool write_items(const char *folder, const rondo_tensor *sequence) {
    char path[PATH_BYTES];
    bool is_written = cli_make_folders(folder);
    for (size_t i = 0; is_written; i++) {
        const rondo_tensor *item = rondo_tensor_get_item(sequence, i);
        const int length = snprintf(path, sizeof path, "%s/%zu.npy", folder, i);
        if (length < 0 || length >= PATH_BYTES || (item == NULL && remove(path) != 0)) {
            break;
        }
        is_written = item == NULL || cli_npy_write(path, item);
    }
    return is_written;
}

static bool write_output(const rondo_binding *fetch, const char *path) {
    const rondo_tensor *content = get_content(&fetch->tensor);
    if (content == NULL) {
        (void)remove(path);
        cli_say(CLI_NORMAL, "output \"%s\" is empty: nothing is written", fetch->name);
        return true;
    }
    if (!(content->dtype == RONDO_DTYPE_SEQUENCE ? write_items(path, content)
                                                 : cli_npy_write(path, content))) {
        return false;
    }
    cli_say(CLI_NORMAL, "%s written (output \"%s\")", path, fetch->name);
    return true;
}

static bool write_outputs(const cli_session *session, char *const *paths) {
    bool is_written = true;
    for (size_t i = 0; i < session->fetch_count && is_written; i++) {
        is_written = write_output(&session->fetches[i], paths[i]);
    }
    return is_written;
}

static bool save_outputs(const cli_session *session, const char *directory) {
    path_table table = {.slot_count = 2};
    while (table.slot_count < 2 * session->fetch_count) {
        table.slot_count *= 2;
    }
    bool is_saved = false;
    char **paths = calloc(session->fetch_count + 1, sizeof *paths);
    table.slots = calloc(table.slot_count, sizeof *table.slots);
    if (paths == NULL || table.slots == NULL) {
        cli_print_error("out of memory");
        goto free_lists;
    }
    is_saved = name_files(session, directory, &table, paths) && write_outputs(session, paths);
    for (size_t i = 0; i < session->fetch_count; i++) {
        free(paths[i]);
    }

free_lists:
    free(paths);
    free(table.slots);
    return is_saved;
}

// Which column is which class, where a ZipMap said so.
static void print_labels(const cli_session *session, size_t output) {
    char text[512];
    rondo_port port = {.struct_size = sizeof port};
    if (rondo_program_get_output(session->program, output, &port) == RONDO_STATUS_OK &&
        port.labels != NULL) {
        cli_say(CLI_NORMAL, "  columns: %s", cli_tensor_summarise(port.labels, text, sizeof text));
    }
}

static void print_outputs(const cli_session *session) {
    for (size_t i = 0; i < session->fetch_count; i++) {
        char text[512];
        const rondo_tensor *tensor = &session->fetches[i].tensor;
        cli_say(CLI_NORMAL, "%s  %s %s", session->fetches[i].name,
                rondo_dtype_get_name(tensor->dtype),
                rondo_shape_format(&tensor->shape, text, sizeof text));
        cli_say(CLI_NORMAL, "  %s", cli_tensor_summarise(tensor, text, sizeof text));
        print_labels(session, i);
    }
}

// A folder that cannot be made or written is known before the model is loaded.
static bool prepare_directory(const char *directory) {
    char probe[PATH_BYTES];
    if (directory == NULL) {
        return true;
    }
    if (!cli_make_folders(directory)) {
        return false;
    }
    const int length = snprintf(probe, sizeof probe, "%s/rondo", directory);
    return length > 0 && length < PATH_BYTES && cli_output_check(probe);
}

// "replayed" alone stands for a run that was replayed whole.
static void say_how(const cli_session *session, const rondo_run_times *times) {
    char how[64] = "ran eagerly";
    if (times->replayed_op_count > 0 && times->replayed_op_count == times->ran_op_count) {
        snprintf(how, sizeof how, "replayed");
    } else if (times->replayed_op_count > 0) {
        snprintf(how, sizeof how, "ran, with %llu of %llu ops replayed,",
                 (unsigned long long)times->replayed_op_count,
                 (unsigned long long)times->ran_op_count);
    }
    cli_say(CLI_NORMAL, "%s on %s in %.3f ms", how, session->device_info.name,
            (double)times->latency_ns * 1e-6);
}

static bool say_plan(const cli_session *session) {
    rondo_executor_stats stats = {.struct_size = sizeof stats};
    if (cli_get_level() < CLI_DETAIL) {
        return true;
    }
    if (rondo_executor_get_stats(session->executor, &stats) != RONDO_STATUS_OK) {
        cli_session_fail(session);
        return false;
    }
    cli_say(CLI_DETAIL, "plan: %llu op%s in %llu segment%s, %llu bypassed; prepared in %.1f ms",
            (unsigned long long)stats.op_count, stats.op_count == 1 ? "" : "s",
            (unsigned long long)stats.segment_count, stats.segment_count == 1 ? "" : "s",
            (unsigned long long)stats.bypassed_count, (double)stats.prepare_ns * 1e-6);
    return true;
}

static bool say_difference(const rondo_self_check_report *report) {
    char element[64];
    snprintf(element, sizeof element, "element %" PRIu64 " of %" PRIu64 " that differ, ",
             report->element, report->different_count);
    cli_print_error(
        "a replay computes something else than the ops: %s%s%s of %s \"%s\", %s%s "
        "eagerly, %s replayed%s",
        report->value[0] != '\0' ? "\"" : "the state", report->value,
        report->value[0] != '\0' ? "\"" : "", report->op, report->node,
        report->value[0] != '\0' ? element : "", report->eager, report->replayed,
        report->is_first ? "" : "; an op before it may be to blame");
    return false;
}

// Runs that are made both ways; the outputs are those of the last.
static bool check_runs(cli_session *session, uint64_t count) {
    uint64_t segment_count = 0;
    uint64_t value_count = 0;
    for (uint64_t i = 0; i < count; i++) {
        rondo_self_check_report report = {.struct_size = sizeof report};
        const rondo_status status =
            rondo_executor_self_check(session->executor, session->feeds, session->feed_count,
                                      session->fetches, session->fetch_count, &report);
        cli_progress_clear();
        if (status != RONDO_STATUS_OK) {
            cli_session_fail(session);
            return false;
        }
        if (report.is_different) {
            return say_difference(&report);
        }
        segment_count += report.segment_count;
        value_count += report.value_count;
    }
    if (segment_count == 0) {
        cli_say(CLI_NORMAL, "self-check: nothing is replayed, so nothing was compared");
        return true;
    }
    cli_say(CLI_NORMAL,
            "self-check: %" PRIu64 " value%s in %" PRIu64 " segment%s, the same replayed",
            value_count, value_count == 1 ? "" : "s", segment_count, segment_count == 1 ? "" : "s");
    return true;
}

static int run_model(const cli_command *command, const char *path, const run_settings *settings) {
    cli_session session;
    int status = cli_session_begin(command, &settings->model, &session);
    if (status != CLI_DONE) {
        goto close_session;
    }
    status = CLI_FAILED;
    if (!prepare_directory(settings->output_directory) ||
        !cli_session_open(path, &settings->model, &session) ||
        !cli_session_complete_feeds(&session, &settings->model) ||
        !(settings->check_count > 0 ? check_runs(&session, settings->check_count)
                                    : cli_session_run(&session))) {
        goto close_session;
    }
    // The first run is eager by design; who asks for graphs gets the replayed result.
    if (settings->check_count == 0 && session.graphs == RONDO_GRAPHS_ON &&
        !cli_session_run(&session)) {
        goto close_session;
    }
    if (!say_plan(&session)) {
        goto close_session;
    }
    print_outputs(&session);
    if (settings->output_directory != NULL && !save_outputs(&session, settings->output_directory)) {
        goto close_session;
    }
    rondo_run_times times = {.struct_size = sizeof times};
    if (rondo_executor_get_times(session.executor, &times) != RONDO_STATUS_OK) {
        cli_session_fail(&session);
        goto close_session;
    }
    say_how(&session, &times);
    status = CLI_DONE;

close_session:
    cli_session_close(&session);
    return status;
}

static int run_run(const cli_command *command, int argc, char **argv) {
    run_settings settings = {.model = CLI_MODEL_SETTINGS_DEFAULT};
    size_t operand_count = 0;
    const cli_parse_result parsed = cli_parse(command, argc, argv, &settings, &operand_count);
    if (parsed != CLI_PARSE_RUN) {
        return parsed == CLI_PARSE_HELP ? CLI_DONE : CLI_MISUSE;
    }
    return run_model(command, argv[0], &settings);
}

static const cli_option run_options[] = {
    CLI_DEVICE_OPTION_ROWS(run_settings, model),
    CLI_RUN_OPTION_ROWS(run_settings, model),
    {"--output-dir", "DIR", CLI_TEXT, offsetof(run_settings, output_directory), NULL,
     "write each output to DIR/NAME.npy, a sequence's items\nto DIR/NAME/0.npy and so on; DIR is "
     "made"},
    {"--self-check", "[=N]", CLI_TIMES, offsetof(run_settings, check_count), NULL,
     "make N runs (1), each op by op and replayed, and fail\nwhere these differ in a bit"},
    CLI_LEVEL_OPTION_ROWS(run_settings, model, "print nothing but errors"),
};

const cli_command cli_command_run = {
    .name = "run",
    .operands = "MODEL",
    .summary = "run a model and show or save its outputs",
    .details =
        "MODEL is an ONNX file (opsets 9 to 28), or - for standard input. Inputs that are not "
        "given\n"
        "are random. The first run is eager; with --graphs on the model runs twice, and the "
        "second\n"
        "result, replayed from a graph, is shown.",
    .operand_min = 1,
    .operand_max = 1,
    .options = run_options,
    .option_count = sizeof run_options / sizeof run_options[0],
    .run = run_run,
};

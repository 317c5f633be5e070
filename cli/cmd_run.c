// rondo run — runs a model once and shows or saves its outputs.
// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hash_bytes.h"
#include "npy.h"
#include "output_file.h"
#include "progress.h"
#include "run_set.h"
#include "session_text.h"
#include "tensor_file.h"
#include "tensor_text.h"

typedef struct run_settings {
    cli_model_settings model;
    const char *output_directory;
    uint64_t check_count;  // runs that are compared; 0: none
    uint64_t top_count;    // scores that are shown; 0: none
    const char *labels_path;
    const char *data_path;  // of test data sets
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
    size_t slot = (size_t)cli_hash(CLI_HASH_SEED, path, strlen(path)) & (table->slot_count - 1);
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
                return cli_fail_memory();
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
        (void)cli_fail_memory();
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

// The largest scores of each row, a line for each.
static void print_top(const cli_session *session, size_t output, const run_settings *settings,
                      const cli_labels *labels) {
    enum { ROWS_MAX = 16 };
    size_t classes[CLI_TOP_MAX];
    char line[CLI_TOP_LINE_BYTES];
    rondo_port port = {.struct_size = sizeof port};
    cli_scores scores = cli_scores_find(&session->fetches[output].tensor);
    scores.labels = cli_labels_of(labels, &scores);
    scores.columns = rondo_program_get_output(session->program, output, &port) == RONDO_STATUS_OK
                         ? port.labels
                         : NULL;
    for (size_t row = 0; scores.class_count > 1 && row < scores.row_count && row < ROWS_MAX;
         row++) {
        const size_t count = cli_scores_rank(&scores, row, (size_t)settings->top_count, classes);
        if (scores.row_count > 1) {
            cli_say(CLI_NORMAL, "  row %zu", row);
        }
        for (size_t i = 0; i < count; i++) {
            cli_say(CLI_NORMAL, "  %2zu. %s", i + 1,
                    cli_scores_format(&scores, row, classes[i], line));
        }
    }
}

// Labels that no output has as many classes as would show nothing.
static bool check_labels(const cli_session *session, const char *path, const cli_labels *labels) {
    const cli_scores first = cli_scores_find(&session->fetches[0].tensor);
    bool is_fine = path == NULL;
    for (size_t i = 0; i < session->fetch_count && !is_fine; i++) {
        const cli_scores scores = cli_scores_find(&session->fetches[i].tensor);
        is_fine = cli_labels_of(labels, &scores) != NULL;
    }
    if (!is_fine) {
        cli_print_error("%s: has %zu labels, and output \"%s\" has %zu classes", path,
                        labels->count, session->fetches[0].name, first.class_count);
    }
    return is_fine;
}

static void print_outputs(const cli_session *session, const run_settings *settings,
                          const cli_labels *labels) {
    for (size_t i = 0; i < session->fetch_count; i++) {
        char text[512];
        const rondo_tensor *tensor = &session->fetches[i].tensor;
        cli_say(CLI_NORMAL, "%s  %s %s", session->fetches[i].name,
                rondo_dtype_get_name(tensor->dtype),
                rondo_shape_format(&tensor->shape, text, sizeof text));
        cli_say(CLI_NORMAL, "  %s", cli_tensor_summarise(tensor, text, sizeof text));
        print_labels(session, i);
        if (settings->top_count > 0) {
            print_top(session, i, settings, labels);
        }
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

static void say_how(const cli_session *session, const rondo_run_times *times) {
    const char *how = "ran";
    char part[64] = "";
    if (times->replayed_op_count == 0) {
        how = "ran eagerly";
    } else if (times->replayed_op_count == times->ran_op_count) {
        how = "replayed";
    } else {
        snprintf(part, sizeof part, ", %" PRIu64 " of %" PRIu64 " ops replayed,",
                 times->replayed_op_count, times->ran_op_count);
    }
    cli_say(CLI_NORMAL, "%s on %s%s in %.3f ms", how, session->device_info.name, part,
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
    if (report->value[0] == '\0') {  // then offsets of a generator are compared
        cli_print_error(
            "a replay leaves %s \"%s\" elsewhere than the ops do: %s op by op, "
            "%s replayed",
            report->op, report->node, report->eager, report->replayed);
        return false;
    }
    cli_print_error(
        "a replay computes something else than the ops: value \"%s\" of %s \"%s\" "
        "differs in %" PRIu64 " element%s, first in element %" PRIu64
        ": %s op by op, %s replayed%s",
        report->value, report->op, report->node, report->different_count,
        report->different_count == 1 ? "" : "s", report->element, report->eager, report->replayed,
        report->is_first ? "" : "; an op before it may be to blame");
    return false;
}

static void say_same(uint64_t run_count, uint64_t segment_count, uint64_t value_count,
                     const rondo_run_times *last) {
    char rest[96] = "";
    if (segment_count == 0) {
        cli_say(CLI_NORMAL,
                "self-check: nothing is replayed (rondo inspect says why), so nothing "
                "was compared");
        return;
    }
    if (last->replayed_op_count < last->ran_op_count) {
        snprintf(rest, sizeof rest,
                 "; not compared: %" PRIu64 " of %" PRIu64 " ops, which run between segments",
                 last->ran_op_count - last->replayed_op_count, last->ran_op_count);
    }
    cli_say(CLI_NORMAL,
            "self-check: %" PRIu64 " run%s op by op and replayed: %" PRIu64 " value%s of %" PRIu64
            " segment%s the same%s",
            run_count, run_count == 1 ? "" : "s", value_count, value_count == 1 ? "" : "s",
            segment_count, segment_count == 1 ? "" : "s", rest);
}

// Runs that are made both ways; the outputs are those of the last.
static bool check_runs(cli_session *session, uint64_t count) {
    rondo_run_times times = {.struct_size = sizeof times};
    uint64_t segment_count = 0;
    uint64_t value_count = 0;
    for (uint64_t i = 0; i < count; i++) {
        rondo_self_check_report report = {.struct_size = sizeof report};
        if (!cli_session_free_varying(session)) {
            return false;
        }
        const rondo_status status =
            rondo_executor_self_check(session->executor, session->feeds, session->feed_count,
                                      session->fetches, session->fetch_count, &report);
        cli_progress_clear();
        if (status != RONDO_STATUS_OK ||
            rondo_executor_get_times(session->executor, &times) != RONDO_STATUS_OK) {
            cli_session_fail(session);
            return false;
        }
        if (report.is_different) {
            return say_difference(&report);
        }
        segment_count += report.segment_count;
        value_count += report.value_count;
    }
    say_same(count, segment_count, value_count, &times);
    return true;
}

// What a folder of pictures, or of test data sets, is run with.
typedef struct saving {
    const cli_session *session;
    const run_settings *settings;
    const cli_labels *labels;
} saving;

// DIR/ITEM/NAME.npy.
static bool save_item(void *data, const char *item) {
    const saving *s = data;
    char folder[PATH_BYTES];
    if (!check_labels(s->session, s->settings->labels_path, s->labels)) {
        return false;
    }
    if (s->settings->output_directory == NULL) {
        return true;
    }
    const int length = snprintf(folder, sizeof folder, "%s/%s", s->settings->output_directory,
                                cli_path_get_name(item));
    if (length < 0 || length >= PATH_BYTES) {
        cli_print_error("%s: the path of its outputs is too long", item);
        return false;
    }
    return cli_make_folders(folder) && save_outputs(s->session, folder);
}

// One run, or each of some, and what came out of it.
static bool run_once(cli_session *session, const run_settings *settings, const cli_labels *labels) {
    rondo_run_times times = {.struct_size = sizeof times};
    if (!(settings->check_count > 0 ? check_runs(session, settings->check_count)
                                    : cli_run_set_run(session)) ||
        !say_plan(session) || !check_labels(session, settings->labels_path, labels)) {
        return false;
    }
    print_outputs(session, settings, labels);
    if (settings->output_directory != NULL && !save_outputs(session, settings->output_directory)) {
        return false;
    }
    if (settings->check_count > 0) {  // its times say nothing of an ordinary run
        return true;
    }
    if (rondo_executor_get_times(session->executor, &times) != RONDO_STATUS_OK) {
        cli_session_fail(session);
        return false;
    }
    say_how(session, &times);
    (void)fflush(stdout);  // who reads it need not wait until the device is closed
    return true;
}

static bool run_set(cli_session *session, const run_settings *settings, const cli_labels *labels,
                    const cli_path_list *data_sets) {
    saving data = {session, settings, labels};
    const bool is_data = data_sets->count > 0;
    const cli_run_set set = {
        .settings = &settings->model,
        .items = is_data ? data_sets : &session->image_files,
        .first = is_data ? 0 : session->image_at,
        .is_data = is_data,
        .top_count = (size_t)settings->top_count,
        .labels = labels,
        .save = save_item,
        .data = &data,
    };
    return cli_run_set_all(session, &set);
}

static int run_model(const cli_command *command, const char *path, const run_settings *settings) {
    cli_session session;
    cli_labels labels = {0};
    cli_path_list data_sets = {0};
    int status = cli_session_begin(command, &settings->model, &session);
    if (status != CLI_DONE) {
        goto close_session;
    }
    status = CLI_FAILED;
    if (!prepare_directory(settings->output_directory) ||
        !cli_labels_read(settings->labels_path, &labels) ||
        (settings->data_path != NULL && !cli_run_set_find(settings->data_path, &data_sets))) {
        goto close_session;
    }
    session.data_folder = data_sets.count > 0 ? data_sets.paths[0] : NULL;
    if (!cli_session_open(path, &settings->model, &session) ||
        !cli_session_complete_feeds(&session, &settings->model)) {
        goto close_session;
    }
    const bool is_set = data_sets.count > 0 || session.image_files.count > 0;
    if (is_set && settings->check_count > 0) {
        cli_print_error("%s: --self-check runs one picture, not a folder of them", path);
        goto close_session;
    }
    if (is_set ? run_set(&session, settings, &labels, &data_sets)
               : run_once(&session, settings, &labels)) {
        status = CLI_DONE;
    }

close_session:
    cli_session_close(&session);
    cli_path_list_free(&data_sets);
    cli_labels_free(&labels);
    return status;
}

static int run_run(const cli_command *command, int argc, char **argv) {
    run_settings settings = {.model = CLI_MODEL_SETTINGS_DEFAULT};
    size_t operand_count = 0;
    const cli_parse_result parsed = cli_parse(command, argc, argv, &settings, &operand_count);
    if (parsed != CLI_PARSE_RUN) {
        return parsed == CLI_PARSE_HELP ? CLI_DONE : CLI_MISUSE;
    }
    if (settings.top_count > CLI_TOP_MAX) {
        return cli_fail_misuse(command, "--top is at most %d, not %" PRIu64, CLI_TOP_MAX,
                               settings.top_count);
    }
    if (settings.labels_path != NULL && settings.top_count == 0) {
        settings.top_count = 5;
    }
    if (settings.data_path != NULL && settings.model.image.images.count > 0) {
        return cli_fail_misuse(command, "--test-set and --image exclude each other");
    }
    if (settings.data_path != NULL && settings.check_count > 0) {
        return cli_fail_misuse(command, "--test-set and --self-check exclude each other");
    }
    return run_model(command, argv[0], &settings);
}

static const cli_option run_options[] = {
    CLI_DEVICE_OPTION_ROWS(run_settings, model),
    CLI_RUN_OPTION_ROWS(run_settings, model),
    CLI_IMAGE_OPTION_ROWS(run_settings, model.image),
    {"--test-set", "DIR", CLI_TEXT, offsetof(run_settings, data_path), NULL,
     "run each test_data_set_K in it (input_K.pb), a line for\neach, compared with its "
     "output_K.pb"},
    {"--top", "N", CLI_COUNT, offsetof(run_settings, top_count), NULL,
     "show the N largest scores of each output (with --labels: 5)"},
    {"--labels", "FILE", CLI_TEXT, offsetof(run_settings, labels_path), NULL,
     "what the classes are called, one on each line"},
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

// rondo tune — finds the fastest GPU kernels for a model, and writes them down.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "output_file.h"
#include "progress.h"
#include "session_text.h"

typedef struct tune_settings {
    cli_model_settings model;
    const char *save_path;
} tune_settings;

static bool ignore(void *user_data, const char *text, size_t bytes) {
    (void)user_data;
    (void)text;
    (void)bytes;
    return true;
}

static bool make_plan(cli_session *session) {
    const rondo_status status = rondo_executor_describe_feeds(
        session->executor, session->feeds, session->feed_count, RONDO_TEXT_PLAIN, ignore, NULL);
    cli_progress_clear();
    if (status != RONDO_STATUS_OK) {
        cli_session_fail(session);
    }
    return status == RONDO_STATUS_OK;
}

static bool write_choices(void *data, FILE *file) {
    cli_session *session = data;
    if (rondo_executor_write_tuning(session->executor, cli_output_write_text, file) ==
        RONDO_STATUS_OK) {
        return true;
    }
    cli_session_fail(session);
    return false;
}

static bool show_choices(cli_session *session) {
    if (rondo_executor_write_tuning(session->executor, cli_write_to_console, NULL) ==
        RONDO_STATUS_OK) {
        return true;
    }
    cli_session_fail(session);
    return false;
}

static int tune_model(const cli_command *command, const char *path, tune_settings *settings) {
    cli_session session;
    const char *save = settings->save_path;
    // What the file has of other shapes and GPUs stays.
    if (save != NULL && strcmp(save, "-") != 0 && access(save, F_OK) == 0 &&
        settings->model.tuning_file == NULL) {
        settings->model.tuning_file = save;
    }
    int status = cli_session_begin(command, &settings->model, &session);
    if (status == CLI_DONE &&
        (!cli_output_check(save) || !cli_session_open(path, &settings->model, &session))) {
        status = CLI_FAILED;
    }
    if (status == CLI_DONE && strcmp(session.device_info.name, "host") == 0) {
        cli_print_error(
            "there is nothing to tune on the host, whose kernels are chosen by rules; name a GPU "
            "with --device cuda:0");
        status = CLI_FAILED;
    }
    if (status == CLI_DONE && (!make_plan(&session) || (save == NULL && !show_choices(&session)) ||
                               !cli_output_save(save, write_choices, &session))) {
        status = CLI_FAILED;
    }
    cli_session_close(&session);
    return status;
}

static int run_tune(const cli_command *command, int argc, char **argv) {
    tune_settings settings = {.model = CLI_MODEL_SETTINGS_DEFAULT};
    size_t operand_count = 0;
    settings.model.tuning = RONDO_TUNING_FULL;
    const cli_parse_result parsed = cli_parse(command, argc, argv, &settings, &operand_count);
    if (parsed != CLI_PARSE_RUN) {
        return parsed == CLI_PARSE_HELP ? CLI_DONE : CLI_MISUSE;
    }
    if (settings.save_path != NULL && strcmp(settings.save_path, "-") == 0) {
        cli_set_level(CLI_SILENT);
    }
    return tune_model(command, argv[0], &settings);
}

static const cli_option tune_options[] = {
    CLI_DEVICE_OPTION_ROWS(tune_settings, model),
    {"--save", "FILE", CLI_TEXT, offsetof(tune_settings, save_path), NULL,
     "write the tuning file; what FILE has of other shapes and\nGPUs stays. - is standard output"},
};

const cli_command cli_command_tune = {
    .name = "tune",
    .operands = "MODEL",
    .summary = "find the fastest GPU kernels for a model, and write them down",
    .details =
        "Makes the plan for one set of shapes and times all that may be the fastest there (--tune "
        "fast:\n"
        "the best guesses; off: nothing, only what is known already is written). The file goes "
        "along\n"
        "with the model: run, bench, profile and inspect take it with --tuning-file, programs "
        "with\n"
        "rondo_executor_options.tuning_file, and nothing is timed on GPUs of that kind. What was "
        "found is\n"
        "also kept in RONDO_CACHE_DIR.",
    .operand_min = 1,
    .operand_max = 1,
    .options = tune_options,
    .option_count = sizeof tune_options / sizeof tune_options[0],
    .run = run_tune,
};

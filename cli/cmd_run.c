// rondo run — runs a model once and shows or saves its outputs.
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "npy.h"
#include "session.h"
#include "tensor_text.h"

typedef struct run_settings {
    cli_model_settings model;
    const char *output_directory;
} run_settings;

// Puts "<directory>/<name>.npy" into `path`; what a file name cannot hold becomes '_'.
static bool make_output_path(const char *directory, const char *name, char *path,
                             size_t path_bytes) {
    const int length = snprintf(path, path_bytes, "%s/%s.npy", directory, name);
    if (length < 0 || (size_t)length >= path_bytes) {
        cli_print_error("the path of output \"%s\" is too long", name);
        return false;
    }
    for (char *c = path + strlen(directory) + 1; *c != '\0'; c++) {
        const bool is_fine = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                             (*c >= '0' && *c <= '9') || strchr("._-", *c) != NULL;
        *c = is_fine ? *c : '_';
    }
    return true;
}

static bool save_outputs(const cli_session *session, const char *directory) {
    if (mkdir(directory, 0777) != 0 && errno != EEXIST) {
        cli_print_error("%s: %s", directory, strerror(errno));
        return false;
    }
    for (size_t i = 0; i < session->fetch_count; i++) {
        char path[4096];
        const rondo_binding *fetch = &session->fetches[i];
        if (!make_output_path(directory, fetch->name, path, sizeof path) ||
            !cli_npy_write(path, &fetch->tensor)) {
            return false;
        }
        printf("%s written\n", path);
    }
    return true;
}

static void print_outputs(const cli_session *session) {
    for (size_t i = 0; i < session->fetch_count; i++) {
        char text[512];
        const rondo_tensor *tensor = &session->fetches[i].tensor;
        printf("%s  %s %s\n", session->fetches[i].name, rondo_dtype_get_name(tensor->dtype),
               rondo_shape_format(&tensor->shape, text, sizeof text));
        printf("  %s\n", cli_tensor_summarise(tensor, text, sizeof text));
    }
}

static int run_model(const char *path, const run_settings *settings) {
    cli_session session;
    int status = CLI_FAILED;
    if (!cli_session_open(path, &settings->model, &session) ||
        !cli_session_make_bindings(&session, &settings->model) || !cli_session_run(&session)) {
        goto close_session;
    }
    // The first run is eager by design; who asks for graphs gets the replayed result.
    if (settings->model.graphs == RONDO_GRAPHS_ON && !cli_session_run(&session)) {
        goto close_session;
    }
    print_outputs(&session);
    if (settings->output_directory != NULL && !save_outputs(&session, settings->output_directory)) {
        goto close_session;
    }
    rondo_run_times times;
    if (rondo_executor_get_times(session.executor, &times) != RONDO_STATUS_OK) {
        cli_fail_with_record();
        goto close_session;
    }
    printf("%s on %s in %.3f ms\n", times.was_replayed ? "replayed" : "ran eagerly",
           session.device_info.name, (double)times.latency_ns * 1e-6);
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
    return run_model(argv[0], &settings);
}

static const cli_option run_options[] = {
    CLI_DEVICE_OPTION_ROWS(run_settings, model),
    CLI_INPUT_OPTION_ROWS(run_settings, model),
    {"--output-dir", "DIR", CLI_TEXT, offsetof(run_settings, output_directory), NULL,
     "write each output to DIR/NAME.npy"},
};

const cli_command cli_command_run = {
    .name = "run",
    .operands = "MODEL",
    .summary = "run a model and show or save its outputs",
    .details =
        "MODEL is an ONNX file (opsets 9 to 21). The first run is eager; with --graphs on the\n"
        "model runs twice, and the second result, replayed from a graph, is shown.",
    .operand_min = 1,
    .operand_max = 1,
    .options = run_options,
    .option_count = sizeof run_options / sizeof run_options[0],
    .run = run_run,
};

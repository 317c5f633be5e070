// rondo inspect — what a model is and how it will be run: inputs, outputs, ops, segments with the
// reason for each cut, memory plan.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "json_writer.h"
#include "progress.h"
#include "session.h"

typedef struct inspect_settings {
    cli_model_settings model;
    const char *dot_path;
    const char *json_path;
} inspect_settings;

static bool write_to_file(void *user_data, const char *text, size_t bytes) {
    return fwrite(text, 1, bytes, user_data) == bytes;
}

static bool describe(cli_session *session, rondo_describe_format format, FILE *file) {
    const rondo_status status =
        rondo_executor_describe(session->executor, format, write_to_file, file);
    cli_progress_clear();
    if (status != RONDO_STATUS_OK) {
        cli_fail_with_record();
    }
    return status == RONDO_STATUS_OK;
}

typedef rondo_status (*get_port_function)(const rondo_program *program, size_t index,
                                          rondo_port *out_port);

static bool print_ports(const rondo_program *program, const char *title, size_t count,
                        get_port_function get_port) {
    printf("%s:\n", title);
    for (size_t i = 0; i < count; i++) {
        rondo_port port;
        char text[512];
        if (get_port(program, i, &port) != RONDO_STATUS_OK) {
            cli_fail_with_record();
            return false;
        }
        printf("  %s  %s\n", port.name, cli_format_port(&port, text, sizeof text));
    }
    return true;
}

static bool write_json_ports(cli_json *json, const rondo_program *program, const char *key,
                             size_t count, get_port_function get_port) {
    cli_json_begin(json, key, '[');
    for (size_t i = 0; i < count; i++) {
        rondo_port port;
        if (get_port(program, i, &port) != RONDO_STATUS_OK) {
            cli_fail_with_record();
            return false;
        }
        cli_json_begin(json, NULL, '{');
        cli_json_text(json, "name", port.name);
        cli_json_text(json, "dtype", rondo_dtype_get_name(port.dtype));
        if (port.rank >= 0) {
            cli_json_begin(json, "shape", '[');
            for (int32_t d = 0; d < port.rank; d++) {
                if (port.extent[d] >= 0) {
                    cli_json_count(json, NULL, (uint64_t)port.extent[d]);
                } else {
                    cli_json_text(json, NULL, port.symbol[d]);
                }
            }
            cli_json_end(json, ']');
        }
        cli_json_end(json, '}');
    }
    cli_json_end(json, ']');
    return true;
}

static bool write_json(cli_session *session, FILE *file) {
    const rondo_program *program = session->program;
    cli_json json = {.file = file};
    cli_json_begin(&json, NULL, '{');
    cli_json_text(&json, "rondo", rondo_version_get_text());
    cli_json_text(&json, "device", session->device_info.name);
    if (!write_json_ports(&json, program, "inputs", rondo_program_get_input_count(program),
                          rondo_program_get_input) ||
        !write_json_ports(&json, program, "outputs", rondo_program_get_output_count(program),
                          rondo_program_get_output)) {
        return false;
    }
    cli_json_key(&json, "plan");
    if (!describe(session, RONDO_DESCRIBE_JSON, file)) {
        return false;
    }
    cli_json_end(&json, '}');
    return true;
}

static bool write_dot(cli_session *session, FILE *file) {
    return describe(session, RONDO_DESCRIBE_DOT, file);
}

// Opens `path`, lets `write` fill it, and closes it; prints what goes wrong.
static bool save(cli_session *session, const char *path,
                 bool (*write)(cli_session *session, FILE *file)) {
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        cli_print_error("%s: %s", path, strerror(errno));
        return false;
    }
    bool is_written = write(session, file);
    const bool had_error = ferror(file) != 0;
    if ((fclose(file) != 0 || had_error) && is_written) {
        cli_print_error("%s: could not be written", path);
        is_written = false;
    }
    if (is_written) {
        printf("%s written\n", path);
    }
    return is_written;
}

static int inspect_model(const char *path, const inspect_settings *settings) {
    cli_session session;
    int status = CLI_FAILED;
    if (!cli_session_open(path, &settings->model, &session) ||
        !print_ports(session.program, "inputs", rondo_program_get_input_count(session.program),
                     rondo_program_get_input) ||
        !print_ports(session.program, "outputs", rondo_program_get_output_count(session.program),
                     rondo_program_get_output) ||
        !describe(&session, RONDO_DESCRIBE_TEXT, stdout)) {
        goto close_session;
    }
    if (settings->dot_path != NULL && !save(&session, settings->dot_path, write_dot)) {
        goto close_session;
    }
    if (settings->json_path != NULL && !save(&session, settings->json_path, write_json)) {
        goto close_session;
    }
    status = CLI_DONE;

close_session:
    cli_session_close(&session);
    return status;
}

static int run_inspect(const cli_command *command, int argc, char **argv) {
    inspect_settings settings = {.model = CLI_MODEL_SETTINGS_DEFAULT};
    size_t operand_count = 0;
    const cli_parse_result parsed = cli_parse(command, argc, argv, &settings, &operand_count);
    if (parsed != CLI_PARSE_RUN) {
        return parsed == CLI_PARSE_HELP ? CLI_DONE : CLI_MISUSE;
    }
    return inspect_model(argv[0], &settings);
}

static const cli_option inspect_options[] = {
    CLI_DEVICE_OPTION_ROWS(inspect_settings, model),
    {"--dot", "FILE", CLI_TEXT, offsetof(inspect_settings, dot_path), NULL,
     "write the segments as a Graphviz graph"},
    {"--json", "FILE", CLI_TEXT, offsetof(inspect_settings, json_path), NULL,
     "write everything as JSON"},
};

const cli_command cli_command_inspect = {
    .name = "inspect",
    .operands = "MODEL",
    .summary = "show inputs, outputs, ops, segments and the memory plan",
    .details =
        "Compiles the plan for the device without running the model. Each cut between segments\n"
        "stands with its reason.",
    .operand_min = 1,
    .operand_max = 1,
    .options = inspect_options,
    .option_count = sizeof inspect_options / sizeof inspect_options[0],
    .run = run_inspect,
};

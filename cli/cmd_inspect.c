// rondo inspect — what a model is and how it will be run: inputs, outputs, ops, segments with the
// reason for each cut, memory plan.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "json_writer.h"
#include "model_file.h"
#include "output_file.h"
#include "progress.h"
#include "rondo/text.h"
#include "session_text.h"

typedef struct inspect_settings {
    cli_model_settings model;
    const char *dot_path;
    const char *svg_path;
    const char *json_path;
} inspect_settings;

static bool describe(cli_session *session, rondo_text_format format, rondo_write_function write,
                     void *user_data) {
    const rondo_status status = rondo_executor_describe_feeds(
        session->executor, session->feeds, session->feed_count, format, write, user_data);
    cli_progress_clear();
    if (status != RONDO_STATUS_OK) {
        cli_session_fail(session);
    }
    return status == RONDO_STATUS_OK;
}

// What a plan file holds, before the plan that is made of it; nothing of other models.
static bool describe_plan_file(const char *path, rondo_text_format format,
                               rondo_write_function write, void *user_data) {
    if (cli_is_plan_file(path) &&
        rondo_plan_describe(path, format, write, user_data) != RONDO_STATUS_OK) {
        cli_fail_with_record();
        return false;
    }
    return true;
}

typedef rondo_status (*get_port_function)(const rondo_program *program, size_t index,
                                          rondo_port *out_port);

static void write_json_labels(cli_json *json, const rondo_tensor *labels) {
    cli_json_begin(json, "labels", '[');
    for (int64_t i = 0; i < rondo_shape_get_count(&labels->shape); i++) {
        if (labels->dtype == RONDO_DTYPE_STRING) {
            cli_json_text(json, NULL, ((const rondo_string *)labels->data)[i].data);
        } else {
            cli_json_whole(json, NULL, ((const int64_t *)labels->data)[i]);
        }
    }
    cli_json_end(json, ']');
}

static bool write_json_ports(cli_json *json, const rondo_program *program, const char *key,
                             size_t count, get_port_function get_port) {
    cli_json_begin(json, key, '[');
    for (size_t i = 0; i < count; i++) {
        rondo_port port = {.struct_size = sizeof port};
        if (get_port(program, i, &port) != RONDO_STATUS_OK) {
            cli_fail_with_record();
            return false;
        }
        cli_json_begin(json, NULL, '{');
        cli_json_text(json, "name", port.name);
        cli_json_text(json, "dtype", rondo_dtype_get_name(port.dtype));
        if (port.item_dtype[0] != RONDO_DTYPE_NONE) {
            cli_json_text(json, "item_dtype", rondo_dtype_get_name(port.item_dtype[0]));
        }
        if (port.item_dtype[1] != RONDO_DTYPE_NONE) {
            cli_json_text(json, "inner_item_dtype", rondo_dtype_get_name(port.item_dtype[1]));
        }
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
        if (port.labels != NULL) {
            write_json_labels(json, port.labels);
        }
        cli_json_end(json, '}');
    }
    cli_json_end(json, ']');
    return true;
}

static bool write_json(void *data, FILE *file) {
    cli_session *session = data;
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
    cli_json_whole(&json, "opset", rondo_program_get_opset(program, ""));
    if (cli_is_plan_file(session->path)) {
        cli_json_key(&json, "plan_file");
        if (!describe_plan_file(session->path, RONDO_TEXT_JSON, cli_output_write_text, file)) {
            return false;
        }
    }
    cli_json_key(&json, "program");
    if (rondo_program_describe(program, RONDO_TEXT_JSON, cli_output_write_text, file) !=
        RONDO_STATUS_OK) {
        cli_fail_with_record();
        return false;
    }
    cli_json_key(&json, "plan");
    if (!describe(session, RONDO_TEXT_JSON, cli_output_write_text, file)) {
        return false;
    }
    cli_json_end(&json, '}');
    return true;
}

static bool write_dot(void *session, FILE *file) {
    return describe(session, RONDO_TEXT_DOT, cli_output_write_text, file);
}

static bool write_svg(void *session, FILE *file) {
    return describe(session, RONDO_TEXT_SVG, cli_output_write_text, file);
}

static int inspect_model(const cli_command *command, const char *path,
                         const inspect_settings *settings) {
    cli_session session;
    int status = cli_session_begin(command, &settings->model, &session);
    // What is inside is shown of a plan file for another device, too; the plan is this device's.
    cli_model_settings model = settings->model;
    model.allow_remake = true;
    if (status == CLI_DONE &&
        (!cli_output_check(settings->dot_path) || !cli_output_check(settings->svg_path) ||
         !cli_output_check(settings->json_path) || !cli_session_open(path, &model, &session) ||
         !describe_plan_file(path, RONDO_TEXT_PLAIN, cli_write_to_console, NULL) ||
         !describe(&session, RONDO_TEXT_PLAIN, cli_write_to_console, NULL) ||
         !cli_output_save(settings->dot_path, write_dot, &session) ||
         !cli_output_save(settings->svg_path, write_svg, &session) ||
         !cli_output_save(settings->json_path, write_json, &session))) {
        status = CLI_FAILED;
    }
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
    const char *const paths[] = {settings.json_path, settings.dot_path, settings.svg_path};
    int shown_count = 0;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        shown_count += paths[i] != NULL && strcmp(paths[i], "-") == 0 ? 1 : 0;
    }
    if (shown_count > 1) {
        return cli_fail_misuse(command,
                               "only one of --json, --dot and --svg can go to standard output");
    }
    if (shown_count == 1) {
        cli_set_level(CLI_SILENT);
    }
    return inspect_model(command, argv[0], &settings);
}

static const cli_option inspect_options[] = {
    CLI_DEVICE_OPTION_ROWS(inspect_settings, model),
    {"--dot", "FILE", CLI_TEXT, offsetof(inspect_settings, dot_path), NULL,
     "write the segments as a Graphviz graph; - is standard\noutput, in place of the text"},
    {"--svg", "FILE", CLI_TEXT, offsetof(inspect_settings, svg_path), NULL,
     "write the segments with their ops, and what is bypassed,\nas a picture; - likewise"},
    {"--json", "FILE", CLI_TEXT, offsetof(inspect_settings, json_path), NULL,
     "write everything as JSON; - likewise"},
};

const cli_command cli_command_inspect = {
    .name = "inspect",
    .operands = "MODEL",
    .summary = "show inputs, outputs, ops, segments and the memory plan",
    .details =
        "Compiles the plan for the device without running the model (- reads it from standard "
        "input).\n"
        "Segments are captured into graphs; bypassed ops run between them. Each cut stands with "
        "its\n"
        "reason and with what would take it away; under If, Loop and Scan stand their bodies.",
    .operand_min = 1,
    .operand_max = 1,
    .options = inspect_options,
    .option_count = sizeof inspect_options / sizeof inspect_options[0],
    .run = run_inspect,
};

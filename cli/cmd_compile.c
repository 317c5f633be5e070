// rondo compile — makes a plan file of a model: what a new process needs not make again.
// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output_file.h"
#include "progress.h"
#include "session_text.h"

typedef struct compile_settings {
    cli_model_settings model;
    const char *output;
    cli_list shapes;
} compile_settings;

enum { INPUTS_MAX = 64 };

// Reads "1x3x224x224" up to a comma or the end, behind which *text is then.
static bool read_shape(const char **text, rondo_shape *out_shape) {
    *out_shape = (rondo_shape){0};
    for (;;) {
        char *end = NULL;
        if (**text < '0' || **text > '9' || out_shape->rank == RONDO_RANK_MAX) {
            return false;
        }
        out_shape->extent[out_shape->rank++] = strtoll(*text, &end, 10);
        *text = end;
        if (**text != 'x') {
            break;
        }
        ++*text;
    }
    const bool is_end = **text == '\0' || **text == ',';
    *text += **text == ',' ? 1 : 0;
    return is_end && rondo_shape_get_count(out_shape) >= 0;
}

// The input whose name stands in front of "=", with its dtype; NULL: there is none.
static const char *find_input(const rondo_program *program, const char *name, size_t length,
                              rondo_dtype *out_dtype) {
    for (size_t i = 0; i < rondo_program_get_input_count(program); i++) {
        rondo_port port = {.struct_size = sizeof port};
        if (rondo_program_get_input(program, i, &port) == RONDO_STATUS_OK &&
            strlen(port.name) == length && memcmp(port.name, name, length) == 0) {
            *out_dtype = port.dtype;
            return port.name;
        }
    }
    return NULL;
}

static int fail_form(const cli_command *command, const char *text) {
    return cli_fail_misuse(command, "--shapes %s: write x=1x3x224x224,y=8", text);
}

// Reads "x=1x3x224x224,y=8"; CLI_DONE or CLI_MISUSE.
static int read_shapes(const cli_command *command, const cli_session *session, const char *text,
                       rondo_binding *feeds, size_t *out_count) {
    size_t count = 0;
    for (const char *at = text; *at != '\0'; count++) {
        const char *equals = strchr(at, '=');
        if (count == INPUTS_MAX) {
            return cli_fail_misuse(command, "--shapes: more than %d inputs", INPUTS_MAX);
        }
        if (equals == NULL) {
            return fail_form(command, text);
        }
        rondo_tensor *tensor = &feeds[count].tensor;
        const size_t length = (size_t)(equals - at);
        feeds[count].name = find_input(session->program, at, length, &tensor->dtype);
        if (feeds[count].name == NULL) {
            return cli_fail_misuse(command, "--shapes %s: the model has no input \"%.*s\"", text,
                                   (int)length, at);
        }
        at = equals + 1;
        if (!read_shape(&at, &tensor->shape)) {
            return fail_form(command, text);
        }
    }
    *out_count = count;
    return CLI_DONE;
}

// A plan for the shapes at hand, or one for each --shapes, where inputs that it leaves out have
// their declared ones.
static int make_plans(const cli_command *command, cli_session *session,
                      const compile_settings *settings) {
    if (settings->shapes.count == 0) {
        return cli_session_plan(session, session->feeds, session->feed_count) ? CLI_DONE
                                                                              : CLI_FAILED;
    }
    for (size_t i = 0; i < settings->shapes.count; i++) {
        rondo_binding feeds[INPUTS_MAX] = {{0}};
        size_t count = 0;
        const int status = read_shapes(command, session, settings->shapes.items[i], feeds, &count);
        if (status != CLI_DONE || !cli_session_plan(session, feeds, count)) {
            return status != CLI_DONE ? status : CLI_FAILED;
        }
    }
    return CLI_DONE;
}

// A dimension that was said is part of the program in the file.
static void say_fixed(const cli_session *session) {
    for (size_t i = 0; i < session->dimension_count; i++) {
        const cli_dimension *dimension = &session->dimensions[i];
        cli_say(CLI_NORMAL,
                "%s is %" PRId64
                " in the plan file (%s), for programs in C, too; --shapes leaves it "
                "open",
                dimension->symbol, dimension->extent, dimension->origin);
    }
}

static bool save(cli_session *session, const char *path) {
    if (rondo_executor_save(session->executor, path) != RONDO_STATUS_OK) {
        cli_session_fail(session);
        return false;
    }
    if (rondo_plan_describe(path, RONDO_TEXT_PLAIN, cli_write_to_console, NULL) !=
        RONDO_STATUS_OK) {
        cli_fail_with_record();
        return false;
    }
    return true;
}

static int run_compile(const cli_command *command, int argc, char **argv) {
    compile_settings settings = {.model = CLI_MODEL_SETTINGS_DEFAULT};
    size_t operand_count = 0;
    cli_session session;
    const cli_parse_result parsed = cli_parse(command, argc, argv, &settings, &operand_count);
    if (parsed != CLI_PARSE_RUN) {
        return parsed == CLI_PARSE_HELP ? CLI_DONE : CLI_MISUSE;
    }
    if (settings.output == NULL) {
        return cli_fail_misuse(command, "say where the plan file goes: -o FILE");
    }
    int status = cli_session_begin(command, &settings.model, &session);
    if (status == CLI_DONE && (!cli_output_check_replaced(settings.output) ||
                               !cli_session_open(argv[0], &settings.model, &session))) {
        status = CLI_FAILED;
    }
    if (status == CLI_DONE) {
        status = make_plans(command, &session, &settings);
    }
    if (status == CLI_DONE && !save(&session, settings.output)) {
        status = CLI_FAILED;
    }
    if (status == CLI_DONE) {
        say_fixed(&session);
    }
    cli_session_close(&session);
    return status;
}

static const cli_option compile_options[] = {
    {"-o", "FILE", CLI_TEXT, offsetof(compile_settings, output), NULL,
     "where the plan file goes; model.rondo, say"},
    {"--shapes", "LIST", CLI_LIST, offsetof(compile_settings, shapes), NULL,
     "shapes to be ready for, in place of --shape:\nx=1x3x224x224,y=8; may be repeated"},
    CLI_DEVICE_OPTION_ROWS(compile_settings, model),
};

const cli_command cli_command_compile = {
    .name = "compile",
    .operands = "MODEL",
    .summary = "make a plan file, from which a new process starts faster",
    .details =
        "Makes the plans for the shapes at hand, and writes what came of that: the program behind "
        "its\n"
        "passes, packed weights, choices of kernels, machine code for this kind of GPU. The "
        "commands that\n"
        "take a model take the file in its place, programs with rondo_executor_load. It serves one "
        "version\n"
        "of Rondo, one kind of device and one set of options; for others it is refused, or "
        "(--remake) what\n"
        "does not fit is made anew. rondo inspect shows what is inside.",
    .operand_min = 1,
    .operand_max = 1,
    .options = compile_options,
    .option_count = sizeof compile_options / sizeof compile_options[0],
    .run = run_compile,
};

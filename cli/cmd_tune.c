// rondo tune — finds the fastest GPU kernels for a model, and writes them down.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "output_file.h"
#include "progress.h"
#include "session_text.h"
#include "tune_compare.h"

typedef struct tune_settings {
    cli_model_settings model;
    const char *save_path;
} tune_settings;

// ---- choices as text --------------------------------------------------------------------------

// What the session's executor has chosen, as a tuning file. On failure prints why.
//
// Ownership: caller frees.
static char *get_choices(const cli_session *session) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    const rondo_status status =
        file != NULL ? rondo_executor_write_tuning(session->executor, cli_output_write_text, file)
                     : RONDO_STATUS_OK;
    if (status != RONDO_STATUS_OK) {
        cli_session_fail(session);
    }
    const bool is_whole = file != NULL && ferror(file) == 0;
    if ((file != NULL && fclose(file) != 0) || !is_whole) {
        cli_fail_memory();
    } else if (status == RONDO_STATUS_OK) {
        return text;
    }
    free(text);
    return NULL;
}

static bool has_line(const char *text, const char *line, size_t bytes) {
    for (const char *at = text; at != NULL && at[0] != '\0';) {
        const char *end = strchr(at, '\n');
        const size_t length = end != NULL ? (size_t)(end - at) : strlen(at);
        if (length == bytes && memcmp(at, line, bytes) == 0) {
            return true;
        }
        at = end != NULL ? end + 1 : NULL;
    }
    return false;
}

// Writes a tuning file of the lines that `other` does not have; of all without one.
static bool write_lines(const char *text, const char *other, FILE *file) {
    for (const char *at = text, *end; (end = strchr(at, '\n')) != NULL; at = end + 1) {
        const size_t bytes = (size_t)(end - at);
        if (at == text || other == NULL || !has_line(other, at, bytes)) {
            (void)fwrite(at, 1, bytes + 1, file);
        }
    }
    return ferror(file) == 0;
}

// ---- the whole network ------------------------------------------------------------------------

// Makes the session's executor anew with another mode, and with the choices of `text` that `other`
// does not have in place of the tuning file; without a text that stays. On failure prints why.
static bool make_executor(cli_session *session, const cli_model_settings *settings,
                          rondo_tuning tuning, const char *text, const char *other) {
    const char *folder = getenv("TMPDIR");
    cli_model_settings changed = *settings;
    char path[4096];
    changed.tuning = tuning;
    if (text == NULL) {
        return cli_session_make_executor(&changed, session);
    }
    const int length = snprintf(path, sizeof path, "%s/rondo-tune-XXXXXX",
                                folder != NULL && folder[0] != '\0' ? folder : "/tmp");
    const int descriptor = length > 0 && (size_t)length < sizeof path ? mkstemp(path) : -1;
    FILE *file = descriptor >= 0 ? fdopen(descriptor, "w") : NULL;
    bool is_written = file != NULL && write_lines(text, other, file);
    is_written = file != NULL && fclose(file) == 0 && is_written;
    if (!is_written) {
        cli_print_error("%s: cannot be written", path);
    }
    changed.tuning_file = path;
    const bool is_made = is_written && cli_session_make_executor(&changed, session);
    if (descriptor >= 0) {
        (void)unlink(path);
    }
    return is_made;
}

static void drop_executor(cli_session *session) {
    rondo_executor_destroy(session->executor);
    session->executor = NULL;
}

typedef struct tuning {
    cli_session *session;
    const cli_model_settings *settings;
    char *before, *after;  // choices
    bool keeps_before;
    char note[600];  // what was found; "": nothing is to be said
} tuning;

static bool replace_text(char **text, const cli_session *session) {
    free(*text);
    *text = get_choices(session);
    return *text != NULL;
}

// What keeps the network from being compared; NULL: nothing.
static const char *find_obstacle(const cli_session *session) {
    size_t variable_count = 0;
    if (rondo_program_list_variables(session->program, 0, NULL, &variable_count) !=
            RONDO_STATUS_OK ||
        variable_count > 0) {
        return "it has variables, which runs change";
    }
    for (size_t i = 0; i < session->feed_count; i++) {
        const rondo_tensor *tensor = &session->feeds[i].tensor;
        if ((tensor->dtype == RONDO_DTYPE_SEQUENCE && tensor->storage == NULL) ||
            (tensor->dtype == RONDO_DTYPE_NONE && tensor->data == NULL)) {
            return "nothing is known to feed it";
        }
    }
    return NULL;
}

static void say_not_compared(tuning *t, const char *reason) {
    snprintf(t->note, sizeof t->note, "the whole network was not compared: %s", reason);
}

// Lets both executors run, that of the choices before made anew; the session has the other.
static bool compare(tuning *t) {
    cli_session *session = t->session;
    tune_times times = {0};
    rondo_executor *after = session->executor;
    session->executor = NULL;
    bool is_done = cli_session_complete_feeds(session, t->settings) &&
                   make_executor(session, t->settings, RONDO_TUNING_FAST, t->before, NULL);
    rondo_executor *before = session->executor;
    session->executor = after;
    if (is_done && !tune_compare(session, before, after, &times)) {
        say_not_compared(t, rondo_error_get_last()->message);
    } else if (is_done) {
        t->keeps_before = tune_times_judge(&times);
        snprintf(t->note, sizeof t->note,
                 t->keeps_before ? "kept what it had: %.1f us, %.1f with the new choices"
                                 : "took the new choices: %.1f us with what it had, %.1f with them",
                 1e6 * times.before_s, 1e6 * times.after_s);
    }
    cli_progress_clear();
    // Bodies whose shapes came with the runs have chosen, too.
    is_done = is_done && replace_text(&t->after, session);
    session->executor = before;
    is_done = is_done && replace_text(&t->before, session);
    drop_executor(session);
    session->executor = after;
    return is_done;
}

// Puts the choices before into the cache on disk, where the new ones are.
static bool take_back(tuning *t) {
    drop_executor(t->session);
    return make_executor(t->session, t->settings, RONDO_TUNING_KEEP, t->before, t->after) &&
           cli_session_run(t->session);
}

// Contests time kernels one by one, and the fastest of each may make a slower network.
static bool tune_and_compare(tuning *t) {
    cli_session *session = t->session;
    const char *obstacle = find_obstacle(session);
    if (obstacle == NULL) {
        if (!cli_session_plan(session, session->feeds, session->feed_count) ||
            !replace_text(&t->before, session)) {
            return false;
        }
        drop_executor(session);
    } else {
        drop_executor(session);
        say_not_compared(t, obstacle);
    }
    if (!make_executor(session, t->settings, RONDO_TUNING_FULL, NULL, NULL) ||
        !cli_session_plan(session, session->feeds, session->feed_count) ||
        !replace_text(&t->after, session)) {
        return false;
    }
    if (t->before == NULL) {
        return true;
    }
    if (strcmp(t->before, t->after) == 0) {
        snprintf(t->note, sizeof t->note, "the new choices are those that it had");
        return true;
    }
    return compare(t) && (!t->keeps_before || take_back(t));
}

// ---- the command ------------------------------------------------------------------------------

static bool write_choices(void *data, FILE *file) {
    const tuning *t = data;
    return cli_output_write_text(file, t->keeps_before ? t->before : t->after,
                                 strlen(t->keeps_before ? t->before : t->after));
}

static bool tune_session(tuning *t, bool is_full, const char *save) {
    const bool is_done =
        is_full ? tune_and_compare(t)
                : cli_session_plan(t->session, t->session->feeds, t->session->feed_count) &&
                      replace_text(&t->after, t->session);
    if (!is_done) {
        return false;
    }
    const char *text = t->keeps_before ? t->before : t->after;
    if (save == NULL && !cli_write_to_console(NULL, text, strlen(text))) {
        return false;
    }
    if (!cli_output_save(save, write_choices, t)) {
        return false;
    }
    if (t->note[0] != '\0') {
        cli_say(CLI_NORMAL, "%s", t->note);
    }
    return true;
}

static int tune_model(const cli_command *command, const char *path, tune_settings *settings) {
    cli_session session;
    tuning t = {.session = &session, .settings = &settings->model};
    const char *save = settings->save_path;
    const bool is_full = settings->model.tuning == RONDO_TUNING_FULL;
    // What the file has of other shapes and GPUs stays.
    if (save != NULL && strcmp(save, "-") != 0 && access(save, F_OK) == 0 &&
        settings->model.tuning_file == NULL) {
        settings->model.tuning_file = save;
    }
    if (is_full) {
        settings->model.tuning = RONDO_TUNING_FAST;  // what is known before, at first
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
    if (status == CLI_DONE && !tune_session(&t, is_full, save)) {
        status = CLI_FAILED;
    }
    free(t.before);
    free(t.after);
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
        "also kept in RONDO_CACHE_DIR.\n"
        "Kernels are timed one by one. So at last the whole network runs with the choices that it "
        "had\n"
        "(of a tuning file, of RONDO_CACHE_DIR, else of --tune fast) and with the new ones, in "
        "turns;\n"
        "where it is slower by more than chance explains, what it had stays, in the file and in\n"
        "RONDO_CACHE_DIR. --tune full of other commands does not compare.",
    .operand_min = 1,
    .operand_max = 1,
    .options = tune_options,
    .option_count = sizeof tune_options / sizeof tune_options[0],
    .run = run_tune,
};

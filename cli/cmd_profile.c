// rondo profile — where a model's time goes, eagerly and replayed: a report, a trace, a page; and
// what differs between two reports.
// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_writer.h"
#include "output_file.h"
#include "profile_compare.h"
#include "profile_phases.h"
#include "session_text.h"
#include "statistics.h"

typedef struct profile_settings {
    cli_model_settings model;
    uint64_t run_count;
    uint64_t warm_up_count;
    uint64_t row_limit;  // 0: all
    int key;             // a rondo_profile_key
    int source;          // a rondo_profile_source
    bool per_thread;
    const char *json_path;
    const char *trace_path;
    const char *html_path;
    bool is_comparison;
} profile_settings;

// All that is known when the runs are over.
typedef struct profile_result {
    const profile_settings *settings;
    cli_session *session;
    rondo_profile *profile;
    profile_phases phases;
} profile_result;

// ---- text -------------------------------------------------------------------------------------

static rondo_profile_write_options get_options(const profile_result *result,
                                               rondo_profile_format format, const char *event) {
    static const rondo_profile_key keys[] = {RONDO_PROFILE_BY_GPU,   RONDO_PROFILE_BY_TOTAL,
                                             RONDO_PROFILE_BY_CALLS, RONDO_PROFILE_BY_MIN,
                                             RONDO_PROFILE_BY_MAX,   RONDO_PROFILE_BY_AVERAGE};
    return (rondo_profile_write_options){
        .struct_size = sizeof(rondo_profile_write_options),
        .format = format,
        .key = keys[result->settings->key],
        .per_thread = result->settings->per_thread,
        .event = event,
        .row_limit = (size_t)result->settings->row_limit,
    };
}

// The reports of the modes, one behind the other.
static bool print_reports(const profile_result *result) {
    for (size_t i = 0; i < PROFILE_MODE_COUNT; i++) {
        const profile_phase *phase = &result->phases.modes[i];
        char title[400];
        if (phase->run_count == 0) {
            continue;
        }
        snprintf(title, sizeof title, "%s, %s, %" PRIu64 " run%s", result->session->path,
                 phase->name, phase->run_count, phase->run_count == 1 ? "" : "s");
        rondo_profile_write_options options = get_options(result, RONDO_PROFILE_PLAIN, phase->name);
        options.title = title;
        if (rondo_profile_write(result->profile, &options, cli_write_to_console, NULL) !=
            RONDO_STATUS_OK) {
            cli_fail_with_record();
            return false;
        }
        cli_say(CLI_NORMAL, "%s", "");
    }
    return true;
}

// "eager: a run takes 1.2345 ms (median of 10)".
static void print_medians(profile_phases *phases) {
    for (size_t i = 0; i < PROFILE_MODE_COUNT; i++) {
        profile_phase *phase = &phases->modes[i];
        if (phase->run_count > 0) {
            cli_say(CLI_RESULT, "%-8s a run takes %.4f ms (median of %" PRIu64 ")", phase->name,
                    cli_statistics_median(phase->times_ms, phase->run_count), phase->run_count);
        }
    }
}

// ---- files ------------------------------------------------------------------------------------

// Each of these writes one file; on failure prints why.

static bool write_json(void *data, FILE *file) {
    const profile_result *result = data;
    cli_json json = {.file = file};
    bool is_written = true;
    cli_json_begin(&json, NULL, '{');
    cli_json_text(&json, "rondo", rondo_version_get_text());
    cli_json_text(&json, "model", result->session->path);
    cli_json_begin(&json, "device", '{');
    cli_json_text(&json, "name", result->session->device_info.name);
    cli_json_text(&json, "description", result->session->device_info.description);
    cli_json_end(&json, '}');
    cli_json_text(&json, "dtype", result->settings->model.dtype == 1 ? "fp16" : "fp32");
    cli_json_begin(&json, "profiles", '{');
    for (size_t i = 0; i < PROFILE_MODE_COUNT && is_written; i++) {
        const profile_phase *phase = &result->phases.modes[i];
        if (phase->run_count == 0) {
            continue;
        }
        const rondo_profile_write_options options =
            get_options(result, RONDO_PROFILE_JSON, phase->name);
        cli_json_begin(&json, phase->name, '{');
        cli_json_count(&json, "runs", phase->run_count);
        cli_json_key(&json, "profile");
        is_written = rondo_profile_write(result->profile, &options, cli_output_write_text, file) ==
                     RONDO_STATUS_OK;
        cli_json_end(&json, '}');
    }
    cli_json_end(&json, '}');
    cli_json_end(&json, '}');
    if (!is_written) {
        cli_fail_with_record();
    }
    return is_written;
}

static bool write_form(profile_result *result, FILE *file, rondo_profile_format format,
                       const char *picture) {
    char title[400];
    rondo_profile_write_options options = get_options(result, format, NULL);
    snprintf(title, sizeof title, "%s on %s", result->session->path,
             result->session->device_info.name);
    options.title = title;
    options.picture = picture;
    if (rondo_profile_write(result->profile, &options, cli_output_write_text, file) !=
        RONDO_STATUS_OK) {
        cli_fail_with_record();
        return false;
    }
    return true;
}

static bool write_trace(void *data, FILE *file) {
    return write_form(data, file, RONDO_PROFILE_TRACE, NULL);
}

static bool write_html(void *data, FILE *file) {
    profile_result *result = data;
    cli_session *session = result->session;
    char *picture = NULL;
    size_t picture_bytes = 0;
    bool is_written = false;
    FILE *memory = open_memstream(&picture, &picture_bytes);
    if (memory == NULL) {
        return cli_fail_memory();
    }
    const rondo_status described =
        rondo_executor_describe_feeds(session->executor, session->feeds, session->feed_count,
                                      RONDO_TEXT_SVG, cli_output_write_text, memory);
    if (described != RONDO_STATUS_OK) {
        cli_session_fail(session);
    }
    if (fclose(memory) != 0 && described == RONDO_STATUS_OK) {
        (void)cli_fail_memory();
    } else if (described == RONDO_STATUS_OK) {
        is_written = write_form(result, file, RONDO_PROFILE_HTML, picture);
    }
    free(picture);
    return is_written;
}

static bool report(profile_result *result) {
    const profile_settings *settings = result->settings;
    bool is_fine = print_reports(result);
    print_medians(&result->phases);
    is_fine = cli_output_save(settings->json_path, write_json, result) && is_fine;
    is_fine = cli_output_save(settings->trace_path, write_trace, result) && is_fine;
    return cli_output_save(settings->html_path, write_html, result) && is_fine;
}

// ---- the command ------------------------------------------------------------------------------

static int profile_session(cli_session *session, const profile_settings *settings) {
    profile_result result = {.settings = settings, .session = session};
    const rondo_profile_options options = {
        .struct_size = sizeof options,
        .source = (rondo_profile_source)settings->source,
    };
    int status = CLI_FAILED;
    if (rondo_profile_create(&options, &result.profile) != RONDO_STATUS_OK) {
        return cli_fail_with_record();
    }
    if (!profile_phases_run(session, result.profile, settings->run_count, settings->warm_up_count,
                            &result.phases)) {
        goto free_phases;
    }
    if (result.phases.modes[0].run_count == 0) {
        cli_print_error("interrupted before anything was measured");
        status = CLI_INTERRUPTED;
        goto free_phases;
    }
    if (report(&result)) {
        status = result.phases.was_interrupted ? CLI_INTERRUPTED : CLI_DONE;
    }

free_phases:
    profile_phases_free(&result.phases);
    rondo_profile_destroy(result.profile);
    return status;
}

static int profile_model(const cli_command *command, const char *path,
                         const profile_settings *settings) {
    cli_session session;
    int status = cli_session_begin(command, &settings->model, &session);
    if (status == CLI_DONE &&
        (!cli_output_check(settings->json_path) || !cli_output_check(settings->trace_path) ||
         !cli_output_check(settings->html_path) ||
         !cli_session_open(path, &settings->model, &session) ||
         !cli_session_complete_feeds(&session, &settings->model))) {
        status = CLI_FAILED;
    }
    if (status == CLI_DONE) {
        status = profile_session(&session, settings);
    }
    cli_session_close(&session);
    return status;
}

static int run_profile(const cli_command *command, int argc, char **argv) {
    profile_settings settings = {
        .model = CLI_MODEL_SETTINGS_DEFAULT,
        .run_count = 10,
        .warm_up_count = 5,
    };
    size_t operand_count = 0;
    const cli_parse_result parsed = cli_parse(command, argc, argv, &settings, &operand_count);
    if (parsed != CLI_PARSE_RUN) {
        return parsed == CLI_PARSE_HELP ? CLI_DONE : CLI_MISUSE;
    }
    const char *const paths[] = {settings.json_path, settings.trace_path, settings.html_path};
    int shown_count = 0;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        shown_count += paths[i] != NULL && strcmp(paths[i], "-") == 0 ? 1 : 0;
    }
    if (settings.is_comparison != (operand_count == 2)) {
        return cli_fail_misuse(command, "%s",
                               settings.is_comparison ? "--compare wants two files of --json"
                                                      : "two files are compared with --compare");
    }
    if (settings.is_comparison) {
        cli_set_level(settings.model.is_quiet ? CLI_RESULT : CLI_NORMAL);
        return profile_compare_files(argv, settings.model.is_verbose) ? CLI_DONE : CLI_FAILED;
    }
    if (settings.run_count == 0 || settings.run_count > 1000000) {
        return cli_fail_misuse(command, "--runs is 1 to 1000000, not %" PRIu64, settings.run_count);
    }
    if (shown_count > 1) {
        return cli_fail_misuse(command,
                               "only one of --json, --trace and --html can go to standard output");
    }
    if (shown_count == 1) {
        cli_set_level(CLI_SILENT);
    }
    return profile_model(command, argv[0], &settings);
}

static const cli_option profile_options[] = {
    CLI_DEVICE_OPTION_ROWS(profile_settings, model),
    CLI_RUN_OPTION_ROWS(profile_settings, model),
    {"--runs", "N", CLI_COUNT, offsetof(profile_settings, run_count), NULL,
     "runs of each mode that are shown (10)"},
    {"--warm-up", "N", CLI_COUNT, offsetof(profile_settings, warm_up_count), NULL,
     "runs of each mode before those (5)"},
    {"--sort", NULL, CLI_CHOICE, offsetof(profile_settings, key), "gpu|total|calls|min|max|ave",
     "what the events of the report are sorted by, the largest\nfirst: GPU time (default), total "
     "and so on"},
    {"--top", "N", CLI_COUNT, offsetof(profile_settings, row_limit), NULL,
     "of the events under one event, show the N largest, and\none line for the rest (0: all)"},
    {"--per-thread", NULL, CLI_SWITCH, offsetof(profile_settings, per_thread), NULL,
     "a table for each thread; otherwise they are merged"},
    {"--source", NULL, CLI_CHOICE, offsetof(profile_settings, source), "auto|cupti|events|none",
     "where times of a GPU come from: CUPTI where there is one\n(default), CUPTI or an error, "
     "timing "
     "events, or nowhere"},
    {"--json", "FILE", CLI_TEXT, offsetof(profile_settings, json_path), NULL,
     "write the report and all events as JSON, for --compare;\n- is standard output, in place of "
     "the text"},
    {"--trace", "FILE", CLI_TEXT, offsetof(profile_settings, trace_path), NULL,
     "write a trace for Perfetto (ui.perfetto.dev) and\nchrome://tracing; - likewise"},
    {"--html", "FILE", CLI_TEXT, offsetof(profile_settings, html_path), NULL,
     "write one page with timeline, tables, segments and\nmemory; - likewise"},
    {"--compare", NULL, CLI_SWITCH, offsetof(profile_settings, is_comparison), NULL,
     "compare two files of --json (profile --compare A B): what\nis faster, slower, new or gone, "
     "and what may be chance"},
    CLI_LEVEL_OPTION_ROWS(profile_settings, model, "print the conclusion only"),
};

const cli_command cli_command_profile = {
    .name = "profile",
    .operands = "MODEL",
    .summary = "show where a model's time goes, eagerly and replayed",
    .details =
        "Runs the model as bench does, eagerly and then replayed, and reports what each op, copy, "
        "wait\n"
        "and replay took, on the processor and on the device. With --graphs off only eager runs "
        "are\n"
        "shown. The trace and the page also have what came before: planning, the capture, the "
        "warm-up.\n"
        "Ctrl-C ends the runs early and reports what there is.",
    .operand_min = 1,
    .operand_max = 2,
    .options = profile_options,
    .option_count = sizeof profile_options / sizeof profile_options[0],
    .run = run_profile,
};

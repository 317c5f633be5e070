// rondo bench — measures a model eagerly and replayed in the same process, and says what the
// capture cost and whether it pays.
//
// The order: one run that compiles the plan, eager warm-up, runs until the capture has been made,
// replayed warm-up; then both modes take turns, so that what else the machine does (clocks, heat,
// other programs) meets both alike. Both sides use the same executor, the same feeds and the same
// memory, so that only the way of submitting the work differs. Ctrl-C cancels the run and ends the
// measurement, not the report.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench_report.h"
#include "interrupt.h"
#include "output_file.h"
#include "progress.h"
#include "session_text.h"

static const double turn_s_max = 0.05;  // seconds of one mode before the other has its turn
enum {
    TURNS_WANTED = 20,  // of each mode, in short measurements too
    TURNS_MIN = 5,  // below that chance is not known; also where the machine was away for a while
};

typedef struct bench_settings {
    cli_model_settings model;
    double warm_up_ms;
    double duration_s;
    uint64_t iterations;
    bool has_no_transfers;
    const char *json_path;
    const char *samples_path;
    const char *percentiles_text;
    cli_percentiles percentiles;
} bench_settings;

// ---- measuring --------------------------------------------------------------------------------

// Without transfers the inputs that the last run left on the device are used again, and nothing is
// fetched: latency is then submitting, computing and waiting.
static bool run_once(cli_session *session, const bench_settings *settings) {
    return settings->has_no_transfers ? cli_session_rerun(session) : cli_session_run(session);
}

static bool run_and_sample(cli_session *session, const bench_settings *settings,
                           bench_samples *samples) {
    rondo_run_times times = {.struct_size = sizeof times};
    if (!run_once(session, settings)) {
        return false;
    }
    if (rondo_executor_get_times(session->executor, &times) != RONDO_STATUS_OK) {
        cli_session_fail(session);
        return false;
    }
    return samples == NULL || bench_samples_add(samples, &times);
}

static bool set_graphs(cli_session *session, rondo_graphs_mode graphs) {
    if (rondo_executor_set_graphs(session->executor, graphs) != RONDO_STATUS_OK) {
        cli_session_fail(session);
        return false;
    }
    return true;
}

// Runs until a run was replayed, or until it is clear that none will be.
static bool capture(cli_session *session) {
    enum { CAPTURE_RUNS_MAX = 4 };
    for (int i = 0; i < CAPTURE_RUNS_MAX; i++) {
        rondo_run_times times = {.struct_size = sizeof times};
        if (!cli_session_run(session)) {
            return false;
        }
        if (rondo_executor_get_times(session->executor, &times) != RONDO_STATUS_OK) {
            cli_session_fail(session);
            return false;
        }
        if (times.replayed_op_count > 0) {
            break;
        }
    }
    return true;
}

// One side of the comparison.
typedef struct bench_side {
    rondo_graphs_mode graphs;
    bench_samples samples;
    double seconds;  // in which the samples were taken
} bench_side;

static bool is_complete(const bench_side *side, const bench_settings *settings) {
    const uint64_t turns = settings->iterations < TURNS_MIN ? settings->iterations : TURNS_MIN;
    return side->seconds >= settings->duration_s && side->samples.count >= settings->iterations &&
           side->samples.turn_count >= turns;
}

static bool warm_up(cli_session *session, const bench_settings *settings, const bench_side *side) {
    if (!set_graphs(session, side->graphs)) {
        return false;
    }
    cli_progress_show(NULL, "warming up", 0, 0);
    const double end = cli_get_seconds() + settings->warm_up_ms * 1e-3;
    do {
        if (!run_and_sample(session, settings, NULL)) {
            return false;
        }
    } while (cli_get_seconds() < end && !cli_interrupt_came());
    return true;
}

// Measures for one turn. The first run after a switch is not counted.
static bool run_turn(cli_session *session, const bench_settings *settings, bench_side *side) {
    const double wanted_s = settings->duration_s / TURNS_WANTED;
    const double turn_s = wanted_s < turn_s_max ? wanted_s : turn_s_max;
    if (is_complete(side, settings) || cli_interrupt_came()) {
        return true;
    }
    if (!set_graphs(session, side->graphs) || !run_and_sample(session, settings, NULL)) {
        return false;
    }
    side->samples.turn_count++;
    const double start = cli_get_seconds();
    const double former = side->seconds;
    do {
        if (!run_and_sample(session, settings, &side->samples)) {
            return false;
        }
        side->seconds = former + (cli_get_seconds() - start);
    } while (side->seconds - former < turn_s && !is_complete(side, settings) &&
             !cli_interrupt_came());
    return true;
}

static void show_progress(const bench_settings *settings, const bench_side *sides,
                          size_t side_count) {
    char text[160];
    if (side_count == 2) {
        snprintf(text, sizeof text, "measuring, %.1f of %.1f s: eager %zu runs, replay %zu runs",
                 sides[0].seconds + sides[1].seconds, 2.0 * settings->duration_s,
                 sides[0].samples.count, sides[1].samples.count);
    } else {
        snprintf(text, sizeof text, "measuring, %.1f of %.1f s: %zu runs", sides[0].seconds,
                 settings->duration_s, sides[0].samples.count);
    }
    cli_progress_show(NULL, text, 0, 0);
}

static bool take_samples(cli_session *session, const bench_settings *settings, bench_side *sides,
                         size_t side_count) {
    if (!set_graphs(session, RONDO_GRAPHS_OFF) || !cli_session_run(session) ||
        !warm_up(session, settings, &sides[0])) {
        return false;
    }
    if (side_count == 2 && !cli_interrupt_came() &&
        (!set_graphs(session, sides[1].graphs) || !capture(session) ||
         !warm_up(session, settings, &sides[1]))) {
        return false;
    }
    double shown_at = 0.0;
    while (!cli_interrupt_came() && (!is_complete(&sides[0], settings) ||
                                     (side_count == 2 && !is_complete(&sides[1], settings)))) {
        for (size_t i = 0; i < side_count; i++) {
            if (!run_turn(session, settings, &sides[i])) {
                return false;
            }
        }
        if (cli_get_seconds() - shown_at > 0.2) {
            shown_at = cli_get_seconds();
            show_progress(settings, sides, side_count);
        }
    }
    return true;
}

// ---- the report -------------------------------------------------------------------------------

static bool save_samples(const bench_settings *settings, const bench_side *sides, bool has_replay) {
    const char *path = settings->samples_path;
    const size_t length = path != NULL ? strlen(path) : 0;
    const bool as_json = length > 5 && strcmp(path + length - 5, ".json") == 0;
    cli_output output;
    if (path == NULL) {
        return true;
    }
    if (!cli_output_open(path, &output)) {
        return false;
    }
    bench_samples_write(&sides[0].samples, has_replay ? &sides[1].samples : NULL, as_json,
                        output.file);
    return cli_output_close(&output);
}

static bool save_json(const bench_report *report, const char *path) {
    cli_output output;
    if (path == NULL) {
        return true;
    }
    if (!cli_output_open(path, &output)) {
        return false;
    }
    bench_report_write_json(report, output.file);
    return cli_output_close(&output);
}

// The line of the plan's description that tells what --graphs measured has chosen.
static bool take_choice(void *data, const char *text, size_t bytes) {
    static const char begin[] = "graphs measured: ";
    const size_t begin_bytes = sizeof begin - 1;
    bench_report *report = data;
    for (const char *end = text + bytes, *next; text < end; text = next + 1) {
        next = memchr(text, '\n', (size_t)(end - text));
        next = next != NULL ? next : end;
        if ((size_t)(next - text) > begin_bytes && memcmp(text, begin, begin_bytes) == 0) {
            snprintf(report->choice, sizeof report->choice, "%.*s",
                     (int)(next - text - (ptrdiff_t)begin_bytes), text + begin_bytes);
        }
    }
    return true;
}

static bool read_choice(cli_session *session, bench_report *report) {
    if (session->graphs != RONDO_GRAPHS_MEASURED) {
        return true;
    }
    if (!set_graphs(session, session->graphs) ||
        rondo_executor_describe_feeds(session->executor, session->feeds, session->feed_count,
                                      RONDO_TEXT_PLAIN, take_choice, report) != RONDO_STATUS_OK) {
        cli_session_fail(session);
        return false;
    }
    return true;
}

static bool summarise(cli_session *session, const bench_side *sides, bench_report *report) {
    report->stats.struct_size = sizeof report->stats;
    if (rondo_executor_get_stats(session->executor, &report->stats) != RONDO_STATUS_OK) {
        cli_session_fail(session);
        return false;
    }
    report->has_replay = sides[1].samples.count > 0;
    if (!bench_samples_summarise(&sides[0].samples, sides[0].seconds, &report->percentiles,
                                 &report->eager)) {
        return false;
    }
    if (report->has_replay &&
        (!bench_samples_summarise(&sides[1].samples, sides[1].seconds, &report->percentiles,
                                  &report->replay) ||
         !bench_samples_compare(&sides[0].samples, &sides[1].samples, &report->noise_ms))) {
        return false;
    }
    bench_report_finish(report);
    return true;
}

static int measure(cli_session *session, const bench_settings *settings, bench_report *report) {
    bench_side sides[2] = {
        {.graphs = RONDO_GRAPHS_OFF},
        {.graphs = session->graphs},
    };
    const size_t side_count = session->graphs != RONDO_GRAPHS_OFF ? 2 : 1;
    int status = CLI_FAILED;
    cli_interrupt_catch(session->executor);
    const bool is_measured = take_samples(session, settings, sides, side_count);
    cli_interrupt_release();
    cli_progress_clear();
    if (!is_measured && !session->was_cancelled) {
        goto free_samples;
    }
    report->was_interrupted = cli_interrupt_came();
    if (sides[0].samples.count == 0) {
        cli_print_error("interrupted before anything was measured");
        status = CLI_INTERRUPTED;
        goto free_samples;
    }
    if (!summarise(session, sides, report) || !read_choice(session, report)) {
        goto free_samples;
    }
    bench_report_print(report);
    if (save_json(report, settings->json_path) &&
        save_samples(settings, sides, report->has_replay)) {
        status = report->was_interrupted ? CLI_INTERRUPTED : CLI_DONE;
    }

free_samples:
    bench_samples_free(&sides[0].samples);
    bench_samples_free(&sides[1].samples);
    return status;
}

// ---- the command ------------------------------------------------------------------------------

static int bench_model(const cli_command *command, const char *path,
                       const bench_settings *settings) {
    cli_session session;
    int status = cli_session_begin(command, &settings->model, &session);
    if (status == CLI_DONE &&
        (!cli_output_check(settings->json_path) || !cli_output_check(settings->samples_path) ||
         !cli_session_open(path, &settings->model, &session) ||
         !cli_session_complete_feeds(&session, &settings->model))) {
        status = CLI_FAILED;
    }
    if (status == CLI_DONE) {
        bench_report report = {
            .model = session.path,
            .device = &session.device_info,
            .dtype = settings->model.dtype == 1 ? "fp16" : "fp32",
            .thread_count = settings->model.thread_count,
            .warm_up_ms = settings->warm_up_ms,
            .percentiles = settings->percentiles,
        };
        if (session.graphs == RONDO_GRAPHS_OFF) {
            report.graphs_off_by =
                settings->model.graphs >= 0 ? "--graphs off" : "RONDO_GRAPHS=off";
        }
        status = measure(&session, settings, &report);
    }
    cli_session_close(&session);
    return status;
}

static bool is_stdout(const char *path) {
    return path != NULL && strcmp(path, "-") == 0;
}

static int run_bench(const cli_command *command, int argc, char **argv) {
    bench_settings settings = {
        .model = CLI_MODEL_SETTINGS_DEFAULT,
        .warm_up_ms = 200.0,
        .duration_s = 3.0,
        .iterations = 10,
        .percentiles = CLI_PERCENTILES_DEFAULT,
    };
    size_t operand_count = 0;
    const cli_parse_result parsed = cli_parse(command, argc, argv, &settings, &operand_count);
    if (parsed != CLI_PARSE_RUN) {
        return parsed == CLI_PARSE_HELP ? CLI_DONE : CLI_MISUSE;
    }
    if (settings.iterations == 0 && settings.duration_s <= 0.0) {
        return cli_fail_misuse(command,
                               "--iterations 0 and --duration 0: nothing would be measured");
    }
    if (settings.percentiles_text != NULL &&
        !cli_percentiles_parse(settings.percentiles_text, &settings.percentiles)) {
        return cli_fail_misuse(command,
                               "--percentiles \"%s\": up to %d numbers above 0 and up to 100, with "
                               "commas between, as in 50,99,99.9",
                               settings.percentiles_text, CLI_PERCENTILE_MAX);
    }
    if (is_stdout(settings.json_path) && is_stdout(settings.samples_path)) {
        return cli_fail_misuse(command, "--json and --samples cannot both go to standard output");
    }
    if (is_stdout(settings.json_path) || is_stdout(settings.samples_path)) {
        cli_set_level(CLI_SILENT);
    }
    return bench_model(command, argv[0], &settings);
}

static const cli_option bench_options[] = {
    CLI_DEVICE_OPTION_ROWS(bench_settings, model),
    CLI_RUN_OPTION_ROWS(bench_settings, model),
    {"--warm-up", "MS", CLI_NUMBER, offsetof(bench_settings, warm_up_ms), NULL,
     "milliseconds of runs before measuring (200)"},
    {"--duration", "S", CLI_NUMBER, offsetof(bench_settings, duration_s), NULL,
     "measure each mode for at least so many seconds (3)"},
    {"--iterations", "N", CLI_COUNT, offsetof(bench_settings, iterations), NULL,
     "and for at least so many runs (10)"},
    {"--no-transfers", NULL, CLI_SWITCH, offsetof(bench_settings, has_no_transfers), NULL,
     "feed once and fetch nothing: latency is submitting,\ncomputing, waiting"},
    {"--percentiles", "P,P...", CLI_TEXT, offsetof(bench_settings, percentiles_text), NULL,
     "which ones are shown (90,95,99)"},
    {"--json", "FILE", CLI_TEXT, offsetof(bench_settings, json_path), NULL,
     "write all of it as JSON (eager and replay at the top);\n- is standard output, in place of "
     "the text"},
    {"--samples", "FILE", CLI_TEXT, offsetof(bench_settings, samples_path), NULL,
     "write every run: JSON if FILE ends in .json, else CSV;\n- likewise"},
    CLI_LEVEL_OPTION_ROWS(bench_settings, model, "print the conclusion only"),
};

const cli_command cli_command_bench = {
    .name = "bench",
    .operands = "MODEL",
    .summary = "measure a model eagerly and replayed, side by side",
    .details =
        "A run feeds inputs from host memory, computes, and fetches outputs; latency is all of "
        "that.\n"
        "Enqueue is the processor's time to submit the work. With --graphs off only eager runs "
        "are\n"
        "measured. Percentiles are nearest rank; the median is the middle. Ctrl-C ends the\n"
        "measurement early and prints what there is.",
    .operand_min = 1,
    .operand_max = 1,
    .options = bench_options,
    .option_count = sizeof bench_options / sizeof bench_options[0],
    .run = run_bench,
};

// rondo bench — measures a model eagerly and replayed in the same process, and says what the
// capture cost and whether it pays.
//
// The order: one run that compiles the plan, eager warm-up, runs until the capture has been made,
// replayed warm-up; then both modes take turns in slices of time, so that what else the machine
// does (clocks, heat, other programs) meets both alike. Both sides use the same executor, the same
// feeds and the same memory, so that only the way of submitting the work differs.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench_report.h"
#include "progress.h"
#include "session.h"

static const double slice_s = 0.05;  // seconds of one mode before the other has its turn

typedef struct bench_settings {
    cli_model_settings model;
    double warm_up_ms;
    double duration_s;
    uint64_t iterations;
    bool has_no_transfers;
    const char *json_path;
} bench_settings;

static double get_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

// ---- measuring --------------------------------------------------------------------------------

// Times of the runs of one mode, one array for each part of a run, in milliseconds.
typedef struct bench_samples {
    size_t count;
    size_t capacity;
    double *parts[BENCH_PART_COUNT];
    size_t replayed_count;
} bench_samples;

static void free_samples(bench_samples *samples) {
    for (size_t part = 0; part < BENCH_PART_COUNT; part++) {
        free(samples->parts[part]);
    }
    memset(samples, 0, sizeof *samples);
}

static bool add_sample(bench_samples *samples, const rondo_run_times *times) {
    if (samples->count == samples->capacity) {
        const size_t capacity = samples->capacity == 0 ? 1024 : 2 * samples->capacity;
        for (size_t part = 0; part < BENCH_PART_COUNT; part++) {
            double *grown = realloc(samples->parts[part], capacity * sizeof *grown);
            if (grown == NULL) {
                cli_print_error("out of memory");
                return false;
            }
            samples->parts[part] = grown;
        }
        samples->capacity = capacity;
    }
    const uint64_t nanoseconds[BENCH_PART_COUNT] = {
        [BENCH_LATENCY] = times->latency_ns,
        [BENCH_ENQUEUE] = times->enqueue_ns,
        [BENCH_HOST_TO_DEVICE] = times->host_to_device_ns,
        [BENCH_COMPUTE] = times->compute_ns,
        [BENCH_DEVICE_TO_HOST] = times->device_to_host_ns,
    };
    for (size_t part = 0; part < BENCH_PART_COUNT; part++) {
        samples->parts[part][samples->count] = (double)nanoseconds[part] * 1e-6;
    }
    samples->count++;
    samples->replayed_count += times->was_replayed ? 1 : 0;
    return true;
}

// Without transfers the inputs that the last run left on the device are used again, and nothing is
// fetched: latency is then submitting, computing and waiting.
static bool run_once(cli_session *session, const bench_settings *settings) {
    if (!settings->has_no_transfers) {
        return cli_session_run(session);
    }
    if (rondo_executor_rerun(session->executor) != RONDO_STATUS_OK) {
        cli_fail_with_record();
        return false;
    }
    return true;
}

static bool run_and_sample(cli_session *session, const bench_settings *settings,
                           bench_samples *samples) {
    rondo_run_times times;
    if (!run_once(session, settings)) {
        return false;
    }
    if (rondo_executor_get_times(session->executor, &times) != RONDO_STATUS_OK) {
        cli_fail_with_record();
        return false;
    }
    return samples == NULL || add_sample(samples, &times);
}

static bool set_graphs(cli_session *session, rondo_graphs_mode graphs) {
    if (rondo_executor_set_graphs(session->executor, graphs) != RONDO_STATUS_OK) {
        cli_fail_with_record();
        return false;
    }
    return true;
}

// Runs until a run was replayed, or until it is clear that none will be.
static bool capture(cli_session *session) {
    enum { CAPTURE_RUNS_MAX = 4 };
    for (int i = 0; i < CAPTURE_RUNS_MAX; i++) {
        rondo_run_times times;
        if (!cli_session_run(session)) {
            return false;
        }
        if (rondo_executor_get_times(session->executor, &times) != RONDO_STATUS_OK) {
            cli_fail_with_record();
            return false;
        }
        if (times.was_replayed) {
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
    return side->seconds >= settings->duration_s && side->samples.count >= settings->iterations;
}

static bool warm_up(cli_session *session, const bench_settings *settings, const bench_side *side) {
    if (!set_graphs(session, side->graphs)) {
        return false;
    }
    const double end = get_seconds() + settings->warm_up_ms * 1e-3;
    do {
        if (!run_and_sample(session, settings, NULL)) {
            return false;
        }
    } while (get_seconds() < end);
    return true;
}

// Measures for one slice of time. The first run after a switch is not counted.
static bool run_slice(cli_session *session, const bench_settings *settings, bench_side *side) {
    if (is_complete(side, settings)) {
        return true;
    }
    if (!set_graphs(session, side->graphs) || !run_and_sample(session, settings, NULL)) {
        return false;
    }
    const double start = get_seconds();
    const double former = side->seconds;
    do {
        if (!run_and_sample(session, settings, &side->samples)) {
            return false;
        }
        side->seconds = former + (get_seconds() - start);
    } while (side->seconds - former < slice_s && !is_complete(side, settings));
    return true;
}

static void summarise(bench_side *side, bench_mode *out_mode) {
    bench_samples *samples = &side->samples;
    out_mode->run_count = samples->count;
    out_mode->replayed_count = samples->replayed_count;
    out_mode->seconds = side->seconds;
    out_mode->throughput = side->seconds > 0.0 ? (double)samples->count / side->seconds : 0.0;
    for (size_t part = 0; part < BENCH_PART_COUNT; part++) {
        out_mode->parts[part] = cli_statistics_compute(samples->parts[part], samples->count);
    }
}

static bool measure_modes(cli_session *session, const bench_settings *settings,
                          bench_report *report) {
    bench_side sides[2] = {
        {.graphs = RONDO_GRAPHS_OFF},
        {.graphs = (rondo_graphs_mode)settings->model.graphs},
    };
    const size_t side_count = settings->model.graphs != RONDO_GRAPHS_OFF ? 2 : 1;
    bool is_done = false;

    if (!set_graphs(session, RONDO_GRAPHS_OFF) || !cli_session_run(session) ||
        !warm_up(session, settings, &sides[0])) {
        goto free_arrays;
    }
    if (side_count == 2 && (!set_graphs(session, sides[1].graphs) || !capture(session) ||
                            !warm_up(session, settings, &sides[1]))) {
        goto free_arrays;
    }
    while (!is_complete(&sides[0], settings) ||
           (side_count == 2 && !is_complete(&sides[1], settings))) {
        for (size_t i = 0; i < side_count; i++) {
            if (!run_slice(session, settings, &sides[i])) {
                goto free_arrays;
            }
        }
    }
    if (rondo_executor_get_stats(session->executor, &report->stats) != RONDO_STATUS_OK) {
        cli_fail_with_record();
        goto free_arrays;
    }
    summarise(&sides[0], &report->eager);
    if (side_count == 2) {
        summarise(&sides[1], &report->replay);
        report->has_replay = true;
    }
    is_done = true;

free_arrays:
    free_samples(&sides[0].samples);
    free_samples(&sides[1].samples);
    return is_done;
}

// ---- the command ------------------------------------------------------------------------------

static bool save_json(const bench_report *report, const char *path) {
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        cli_print_error("%s: %s", path, strerror(errno));
        return false;
    }
    bench_report_write_json(report, file);
    const bool had_error = ferror(file) != 0;
    if (fclose(file) != 0 || had_error) {
        cli_print_error("%s: could not be written", path);
        return false;
    }
    return true;
}

static int bench_model(const char *path, const bench_settings *settings) {
    cli_session session;
    int status = CLI_FAILED;
    if (!cli_session_open(path, &settings->model, &session) ||
        !cli_session_make_bindings(&session, &settings->model)) {
        goto close_session;
    }
    bench_report report = {
        .model = path,
        .device = &session.device_info,
        .dtype = settings->model.dtype == 1 ? "fp16" : "fp32",
        .warm_up_ms = settings->warm_up_ms,
    };
    if (!measure_modes(&session, settings, &report)) {
        goto close_session;
    }
    bench_report_finish(&report);
    bench_report_print(&report);
    if (settings->json_path != NULL && !save_json(&report, settings->json_path)) {
        goto close_session;
    }
    status = CLI_DONE;

close_session:
    cli_session_close(&session);
    return status;
}

static int run_bench(const cli_command *command, int argc, char **argv) {
    bench_settings settings = {
        .model = CLI_MODEL_SETTINGS_DEFAULT,
        .warm_up_ms = 200.0,
        .duration_s = 3.0,
        .iterations = 10,
    };
    size_t operand_count = 0;
    const cli_parse_result parsed = cli_parse(command, argc, argv, &settings, &operand_count);
    if (parsed != CLI_PARSE_RUN) {
        return parsed == CLI_PARSE_HELP ? CLI_DONE : CLI_MISUSE;
    }
    return bench_model(argv[0], &settings);
}

static const cli_option bench_options[] = {
    CLI_DEVICE_OPTION_ROWS(bench_settings, model),
    CLI_INPUT_OPTION_ROWS(bench_settings, model),
    {"--warm-up", "MS", CLI_NUMBER, offsetof(bench_settings, warm_up_ms), NULL,
     "milliseconds of runs before measuring (200)"},
    {"--duration", "S", CLI_NUMBER, offsetof(bench_settings, duration_s), NULL,
     "measure each mode for at least so many seconds (3)"},
    {"--iterations", "N", CLI_COUNT, offsetof(bench_settings, iterations), NULL,
     "and for at least so many runs (10)"},
    {"--no-transfers", NULL, CLI_SWITCH, offsetof(bench_settings, has_no_transfers), NULL,
     "feed once and fetch nothing: latency is submitting, computing, waiting"},
    {"--json", "FILE", CLI_TEXT, offsetof(bench_settings, json_path), NULL,
     "write all of it as JSON (eager and replay at the top)"},
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
        "measured. Percentiles are nearest rank; the median is the middle.",
    .operand_min = 1,
    .operand_max = 1,
    .options = bench_options,
    .option_count = sizeof bench_options / sizeof bench_options[0],
    .run = run_bench,
};

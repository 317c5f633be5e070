// The JSON of a bench report.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "bench_report.h"
#include "json_writer.h"

static void write_mode(cli_json *json, const char *key, const bench_mode *mode,
                       const cli_percentiles *percentiles) {
    cli_json_begin(json, key, '{');
    cli_json_count(json, "runs", mode->run_count);
    cli_json_count(json, "replayed_runs", mode->replayed_count);
    cli_json_number(json, "seconds", mode->seconds);
    cli_json_number(json, "throughput", mode->throughput);
    cli_json_number(json, "noise_ms", mode->noise_ms);
    for (size_t part = 0; part < BENCH_PART_COUNT; part++) {
        const cli_statistics *times = &mode->parts[part];
        cli_json_begin(json, bench_part_get_json_key((bench_part)part), '{');
        cli_json_number(json, "min", times->min);
        cli_json_number(json, "max", times->max);
        cli_json_number(json, "mean", times->mean);
        cli_json_number(json, "median", times->median);
        for (size_t i = 0; i < percentiles->count; i++) {
            char name[32];
            cli_json_number(json,
                            cli_percentile_format(percentiles->percents[i], name, sizeof name),
                            times->percentiles[i]);
        }
        cli_json_number(json, "variation", times->variation);
        cli_json_end(json, '}');
    }
    cli_json_end(json, '}');
}

static void write_comparison(cli_json *json, const bench_report *report) {
    static const char *const verdicts[] = {
        [BENCH_NOT_COMPARED] = "not compared",     [BENCH_TOO_FEW] = "too few runs",
        [BENCH_SAME] = "no measurable difference", [BENCH_FASTER] = "replay is faster",
        [BENCH_SLOWER] = "replay is slower",
    };
    cli_json_text(json, "verdict", verdicts[report->verdict]);
    cli_json_number(json, "speedup", report->speedup);
    cli_json_number(json, "saved_ms", report->saved_ms);
    cli_json_number(json, "noise_ms", report->noise_ms);
    cli_json_number(json, "capture_cost_ms", report->capture_cost_ms);
    if (report->break_even_runs > 0) {
        cli_json_count(json, "break_even_runs", report->break_even_runs);
    } else {
        cli_json_text(json, "break_even_runs", NULL);
    }
}

static void write_plan(cli_json *json, const rondo_executor_stats *stats) {
    cli_json_begin(json, "graph", '{');
    cli_json_count(json, "ops", stats->op_count);
    cli_json_count(json, "segments", stats->segment_count);
    cli_json_count(json, "bypassed_ops", stats->bypassed_count);
    cli_json_count(json, "nodes", stats->node_count);
    cli_json_count(json, "branches", stats->branch_count);
    cli_json_number(json, "prepare_ms", (double)stats->prepare_ns * 1e-6);
    cli_json_number(json, "capture_ms", (double)stats->capture_ns * 1e-6);
    cli_json_number(json, "instantiate_ms", (double)stats->instantiate_ns * 1e-6);
    cli_json_number(json, "first_replay_ms", (double)stats->first_replay_ns * 1e-6);
    cli_json_end(json, '}');
    cli_json_begin(json, "memory_bytes", '{');
    cli_json_count(json, "plan", stats->arena_bytes);
    cli_json_count(json, "plan_without_sharing", stats->arena_naive_bytes);
    cli_json_count(json, "weights", stats->constant_bytes);
    cli_json_count(json, "graphs", stats->graph_bytes);
    cli_json_end(json, '}');
}

void bench_report_write_json(const bench_report *report, FILE *file) {
    cli_json json = {.file = file};
    cli_json_begin(&json, NULL, '{');
    cli_json_text(&json, "rondo", rondo_version_get_text());
    cli_json_text(&json, "model", report->model);
    cli_json_begin(&json, "device", '{');
    cli_json_text(&json, "name", report->device->name);
    cli_json_text(&json, "description", report->device->description);
    cli_json_count(&json, "driver_version", (uint64_t)report->device->driver_version);
    cli_json_end(&json, '}');
    cli_json_text(&json, "dtype", report->dtype);
    if (report->thread_count > 0) {
        cli_json_count(&json, "threads", report->thread_count);
    }
    cli_json_number(&json, "warm_up_ms", report->warm_up_ms);
    cli_json_flag(&json, "interrupted", report->was_interrupted);
    write_mode(&json, "eager", &report->eager, &report->percentiles);
    if (report->has_replay) {
        write_mode(&json, "replay", &report->replay, &report->percentiles);
        write_comparison(&json, report);
    }
    if (report->choice[0] != '\0') {
        cli_json_text(&json, "choice", report->choice);
    }
    write_plan(&json, &report->stats);
    cli_json_begin(&json, "warnings", '[');
    for (size_t i = 0; i < report->warning_count; i++) {
        cli_json_text(&json, NULL, report->warnings[i]);
    }
    cli_json_end(&json, ']');
    cli_json_text(&json, "conclusion", report->conclusion);
    cli_json_end(&json, '}');
}

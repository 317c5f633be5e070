// bench_report.h — what `rondo bench` measured, what follows from it, and how it is told.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "bench_samples.h"
#include "rondo/models.h"
#include "statistics.h"

enum { BENCH_WARNING_MAX = 8, BENCH_WARNING_BYTES = 200 };

// What the two medians say.
typedef enum bench_verdict {
    BENCH_NOT_COMPARED,  // graphs were off, or nothing could be captured
    BENCH_TOO_FEW,       // too few turns to know what chance does
    BENCH_SAME,          // within the noise
    BENCH_FASTER,        // replaying is
    BENCH_SLOWER,
} bench_verdict;

typedef struct bench_report {
    const char *model;
    const rondo_device_info *device;
    const char *dtype;
    uint64_t thread_count;  // 0: not said
    double warm_up_ms;
    bool was_interrupted;
    const char *graphs_off_by;  // "--graphs off", where graphs are off
    char choice[320];           // of --graphs measured, and why; "": another mode
    cli_percentiles percentiles;
    bench_mode eager;
    bench_mode replay;
    bool has_replay;
    double noise_ms;  // by which the medians may differ by chance; infinite: not known
    rondo_executor_stats stats;

    // From here on: filled by bench_report_finish.
    bench_verdict verdict;
    double speedup;            // eager median latency over replay median latency
    double capture_cost_ms;    // capture, instantiation, and what the first replay took longer
    double saved_ms;           // per replay, by the medians; may be negative
    uint64_t break_even_runs;  // 0: the capture never pays for itself
    size_t warning_count;
    char warnings[BENCH_WARNING_MAX][BENCH_WARNING_BYTES];
    char conclusion[500];  // what graphs gained, and why, if that was measured
} bench_report;

// Derives verdict, break-even, warnings and conclusion from the measurements.
void bench_report_finish(bench_report *report);

void bench_report_print(const bench_report *report);
void bench_report_write_json(const bench_report *report, FILE *file);  // bench_json.c

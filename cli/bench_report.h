// bench_report.h — what `rondo bench` measured, what follows from it, and how it is told.
#ifndef RONDO_CLI_BENCH_REPORT_H
#define RONDO_CLI_BENCH_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "rondo/rondo.h"
#include "statistics.h"

// The parts of a run that are timed.
typedef enum bench_part {
    BENCH_LATENCY,
    BENCH_ENQUEUE,
    BENCH_HOST_TO_DEVICE,
    BENCH_COMPUTE,
    BENCH_DEVICE_TO_HOST,
    BENCH_PART_COUNT
} bench_part;

// One mode's measurement; times in milliseconds.
typedef struct bench_mode {
    uint64_t run_count;
    uint64_t replayed_count;  // runs whose capturable segments were all replayed
    double seconds;
    double throughput;  // runs a second
    cli_statistics parts[BENCH_PART_COUNT];
} bench_mode;

enum { BENCH_WARNING_MAX = 8, BENCH_WARNING_BYTES = 200 };

typedef struct bench_report {
    const char *model;
    const rondo_device_info *device;
    const char *dtype;
    double warm_up_ms;
    bench_mode eager;
    bench_mode replay;
    bool has_replay;
    rondo_executor_stats stats;

    // From here on: filled by bench_report_finish.
    double speedup;            // eager median latency over replay median latency
    double capture_cost_ms;    // capture, instantiation, and what the first replay took longer
    double saved_ms;           // per replay, by the medians; may be negative
    double noise_ms;           // by which medians may differ by chance: three standard errors
    uint64_t break_even_runs;  // 0: the capture never pays for itself
    size_t warning_count;
    char warnings[BENCH_WARNING_MAX][BENCH_WARNING_BYTES];
    char conclusion[400];  // one sentence: what graphs gained and why
} bench_report;

// Derives speedup, break-even, warnings and conclusion from the measurements.
void bench_report_finish(bench_report *report);

void bench_report_print(const bench_report *report);
void bench_report_write_json(const bench_report *report, FILE *file);

#endif  // RONDO_CLI_BENCH_REPORT_H

// bench_samples.h — the times of single runs, and what they come to.
//
// The two modes take turns (cmd_bench.c), and a turn of each makes a pair. What else the machine
// does lasts longer than a run, so runs of one turn resemble each other, and noise is judged by how
// turns differ, not runs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "rondo/models.h"
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

typedef struct bench_sample {
    double parts[BENCH_PART_COUNT];  // milliseconds
    bool was_replayed;
    uint32_t turn;  // from 0
} bench_sample;

// Runs of one mode, in the order in which they were made. Zero-initialise to start.
typedef struct bench_samples {
    size_t count;
    size_t capacity;
    bench_sample *samples;
    size_t replayed_count;
    uint32_t turn_count;
} bench_samples;

// One mode's measurement; times in milliseconds.
typedef struct bench_mode {
    uint64_t run_count;
    uint64_t replayed_count;  // runs whose capturable segments were all replayed
    double seconds;
    double throughput;  // runs a second
    double noise_ms;    // by which the median latency may be off by chance
    cli_statistics parts[BENCH_PART_COUNT];
} bench_mode;

const char *bench_part_get_title(bench_part part);     // "device compute"
const char *bench_part_get_json_key(bench_part part);  // "compute_ms"

// Adds a run to the present turn. On failure prints why.
bool bench_samples_add(bench_samples *samples, const rondo_run_times *times);
void bench_samples_free(bench_samples *samples);

// On failure (memory) prints why.
bool bench_samples_summarise(const bench_samples *samples, double seconds,
                             const cli_percentiles *percentiles, bench_mode *out_mode);

// By how much two modes' median latencies may differ by chance: of runs and of paired turns, what
// is more. Infinite when there were too few of them. On failure (memory) prints why.
bool bench_samples_compare(const bench_samples *a, const bench_samples *b, double *out_noise_ms);

// Writes every run, as CSV or JSON. `b` may be NULL.
void bench_samples_write(const bench_samples *a, const bench_samples *b, bool as_json, FILE *file);

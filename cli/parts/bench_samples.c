// SPDX-License-Identifier: Apache-2.0

#include "bench_samples.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "console.h"
#include "json_writer.h"

static const struct {
    const char *title;
    const char *json_key;
} parts[BENCH_PART_COUNT] = {
    [BENCH_LATENCY] = {"latency", "latency_ms"},
    [BENCH_ENQUEUE] = {"enqueue", "enqueue_ms"},
    [BENCH_HOST_TO_DEVICE] = {"host to device", "host_to_device_ms"},
    [BENCH_COMPUTE] = {"device compute", "compute_ms"},
    [BENCH_DEVICE_TO_HOST] = {"device to host", "device_to_host_ms"},
};

const char *bench_part_get_title(bench_part part) {
    return parts[part].title;
}

const char *bench_part_get_json_key(bench_part part) {
    return parts[part].json_key;
}

bool bench_samples_add(bench_samples *samples, const rondo_run_times *times) {
    if (samples->count == samples->capacity) {
        const size_t capacity = samples->capacity == 0 ? 1024 : 2 * samples->capacity;
        bench_sample *grown = realloc(samples->samples, capacity * sizeof *grown);
        if (grown == NULL) {
            return cli_fail_memory();
        }
        samples->samples = grown;
        samples->capacity = capacity;
    }
    const uint64_t nanoseconds[BENCH_PART_COUNT] = {
        [BENCH_LATENCY] = times->latency_ns,
        [BENCH_ENQUEUE] = times->enqueue_ns,
        [BENCH_HOST_TO_DEVICE] = times->host_to_device_ns,
        [BENCH_COMPUTE] = times->compute_ns,
        [BENCH_DEVICE_TO_HOST] = times->device_to_host_ns,
    };
    bench_sample *sample = &samples->samples[samples->count++];
    for (size_t part = 0; part < BENCH_PART_COUNT; part++) {
        sample->parts[part] = (double)nanoseconds[part] * 1e-6;
    }
    sample->was_replayed = times->was_replayed;
    sample->turn = samples->turn_count > 0 ? samples->turn_count - 1 : 0;
    samples->replayed_count += times->was_replayed ? 1 : 0;
    return true;
}

void bench_samples_free(bench_samples *samples) {
    free(samples->samples);
    memset(samples, 0, sizeof *samples);
}

// ---- what they come to ------------------------------------------------------------------------

// Puts the median latency of each turn into `medians` (turn_count entries); `scratch` has room for
// all runs. NaN for a turn without runs.
static void find_turn_medians(const bench_samples *samples, double *scratch, double *medians) {
    size_t at = 0;
    for (uint32_t turn = 0; turn < samples->turn_count; turn++) {
        size_t count = 0;
        while (at < samples->count && samples->samples[at].turn == turn) {
            scratch[count++] = samples->samples[at++].parts[BENCH_LATENCY];
        }
        medians[turn] = count > 0 ? cli_statistics_median(scratch, count) : (double)NAN;
    }
}

static size_t drop_nan(double *values, size_t count) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (!isnan(values[i])) {
            values[kept++] = values[i];
        }
    }
    return kept;
}

// The noise of the median latency, were all runs independent; `scratch` has room for all of them.
static double get_run_noise(const bench_samples *samples, double *scratch) {
    for (size_t i = 0; i < samples->count; i++) {
        scratch[i] = samples->samples[i].parts[BENCH_LATENCY];
    }
    return cli_statistics_noise(scratch, samples->count);
}

bool bench_samples_summarise(const bench_samples *samples, double seconds,
                             const cli_percentiles *percentiles, bench_mode *out_mode) {
    double *values = malloc((samples->count + 1) * sizeof *values);
    double *medians = malloc(((size_t)samples->turn_count + 1) * sizeof *medians);
    if (values == NULL || medians == NULL) {
        free(values);
        free(medians);
        return cli_fail_memory();
    }
    *out_mode = (bench_mode){
        .run_count = samples->count,
        .replayed_count = samples->replayed_count,
        .seconds = seconds,
        .throughput = seconds > 0.0 ? (double)samples->count / seconds : 0.0,
    };
    for (size_t part = 0; part < BENCH_PART_COUNT; part++) {
        for (size_t i = 0; i < samples->count; i++) {
            values[i] = samples->samples[i].parts[part];
        }
        out_mode->parts[part] = cli_statistics_compute(values, samples->count, percentiles);
    }
    find_turn_medians(samples, values, medians);
    const size_t turn_count = drop_nan(medians, samples->turn_count);
    out_mode->noise_ms =
        fmax(cli_statistics_noise(medians, turn_count), get_run_noise(samples, values));
    free(values);
    free(medians);
    return true;
}

bool bench_samples_compare(const bench_samples *a, const bench_samples *b, double *out_noise_ms) {
    const size_t pair_count = a->turn_count < b->turn_count ? a->turn_count : b->turn_count;
    const size_t run_count = a->count > b->count ? a->count : b->count;
    double *values = malloc((run_count + 1) * sizeof *values);
    double *a_medians = malloc(((size_t)a->turn_count + 1) * sizeof *a_medians);
    double *b_medians = malloc(((size_t)b->turn_count + 1) * sizeof *b_medians);
    const bool is_done = values != NULL && a_medians != NULL && b_medians != NULL;
    *out_noise_ms = (double)INFINITY;
    if (is_done) {
        find_turn_medians(a, values, a_medians);
        find_turn_medians(b, values, b_medians);
        for (size_t i = 0; i < pair_count; i++) {
            a_medians[i] -= b_medians[i];
        }
        const double of_turns = cli_statistics_noise(a_medians, drop_nan(a_medians, pair_count));
        const double of_runs = hypot(get_run_noise(a, values), get_run_noise(b, values));
        *out_noise_ms = fmax(of_turns, of_runs);
    }
    free(values);
    free(a_medians);
    free(b_medians);
    return is_done || cli_fail_memory();
}

// ---- every run --------------------------------------------------------------------------------

static void write_csv_mode(const char *mode, const bench_samples *samples, FILE *file) {
    for (size_t i = 0; i < samples->count; i++) {
        const bench_sample *sample = &samples->samples[i];
        fprintf(file, "%s,%zu,%u", mode, i, (unsigned)sample->turn);
        for (size_t part = 0; part < BENCH_PART_COUNT; part++) {
            fprintf(file, ",%.6f", sample->parts[part]);
        }
        fprintf(file, ",%d\n", sample->was_replayed ? 1 : 0);
    }
}

static void write_json_mode(cli_json *json, const char *mode, const bench_samples *samples) {
    cli_json_begin(json, mode, '[');
    for (size_t i = 0; i < samples->count; i++) {
        const bench_sample *sample = &samples->samples[i];
        cli_json_begin(json, NULL, '{');
        cli_json_count(json, "turn", sample->turn);
        for (size_t part = 0; part < BENCH_PART_COUNT; part++) {
            cli_json_number(json, parts[part].json_key, sample->parts[part]);
        }
        cli_json_flag(json, "replayed", sample->was_replayed);
        cli_json_end(json, '}');
    }
    cli_json_end(json, ']');
}

void bench_samples_write(const bench_samples *a, const bench_samples *b, bool as_json, FILE *file) {
    if (as_json) {
        cli_json json = {.file = file};
        cli_json_begin(&json, NULL, '{');
        write_json_mode(&json, "eager", a);
        if (b != NULL) {
            write_json_mode(&json, "replay", b);
        }
        cli_json_end(&json, '}');
        return;
    }
    fprintf(file, "mode,run,turn");
    for (size_t part = 0; part < BENCH_PART_COUNT; part++) {
        fprintf(file, ",%s", parts[part].json_key);
    }
    fprintf(file, ",replayed\n");
    write_csv_mode("eager", a, file);
    if (b != NULL) {
        write_csv_mode("replay", b, file);
    }
}

#include "bench_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "command.h"
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

static double get_median(const bench_mode *mode, bench_part part) {
    return mode->parts[part].median;
}

// ---- what follows from the measurements -------------------------------------------------------

RONDO_PRINTF(2, 3) static void add_warning(bench_report *report, const char *format, ...) {
    if (report->warning_count == BENCH_WARNING_MAX) {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(report->warnings[report->warning_count++], BENCH_WARNING_BYTES, format, arguments);
    va_end(arguments);
}

// The warnings of trtexec, with its thresholds.
static void warn_about_mode(bench_report *report, const char *name, const bench_mode *mode) {
    const double compute = get_median(mode, BENCH_COMPUTE);
    const double enqueue = get_median(mode, BENCH_ENQUEUE);
    const double transfers =
        get_median(mode, BENCH_HOST_TO_DEVICE) + get_median(mode, BENCH_DEVICE_TO_HOST);
    const double variation = mode->parts[BENCH_COMPUTE].variation;
    if (enqueue > 0.8 * compute) {
        add_warning(report,
                    "%s: enqueue takes %.0f %% of device compute; throughput may be bound by "
                    "the processor",
                    name, compute > 0.0 ? 100.0 * enqueue / compute : 100.0);
    }
    if (transfers > compute) {
        add_warning(report, "%s: transfers take longer than device compute (%.3f and %.3f ms)",
                    name, transfers, compute);
    }
    if (variation > 0.025) {
        add_warning(report,
                    "%s: device compute is unstable, its coefficient of variation is %.1f %%; "
                    "lock clocks or close other programs",
                    name, 100.0 * variation);
    }
}

// How far two medians may lie apart by chance: three standard errors of their difference. A
// median's standard error is about 1.25 times that of a mean.
static double get_noise(const bench_mode *a, const bench_mode *b) {
    const bench_mode *const modes[2] = {a, b};
    double variance = 0.0;
    for (size_t i = 0; i < 2; i++) {
        const cli_statistics *latency = &modes[i]->parts[BENCH_LATENCY];
        const double deviation = latency->variation * latency->mean;
        if (modes[i]->run_count > 0) {
            variance += 1.5625 * deviation * deviation / (double)modes[i]->run_count;
        }
    }
    return 3.0 * sqrt(variance);
}

// One sentence. What graphs can save is the processor's time per op; whether that shows depends on
// whether the device had to wait for the processor.
static void conclude(bench_report *report) {
    char *text = report->conclusion;
    const size_t bytes = sizeof report->conclusion;
    if (!report->has_replay) {
        snprintf(text, bytes, "Graphs were off, so there is nothing to compare.");
        return;
    }
    if (report->stats.node_count == 0) {
        snprintf(text, bytes,
                 "Graphs gained nothing here, because nothing could be captured (%" PRIu64
                 " of %" PRIu64 " ops run conventionally); `rondo inspect` says why.",
                 report->stats.bypassed_count, report->stats.op_count);
        return;
    }
    const double eager = get_median(&report->eager, BENCH_LATENCY);
    const double gain_percent = eager > 0.0 ? 100.0 * report->saved_ms / eager : 0.0;
    const double op_count = fmax((double)report->stats.op_count, 1.0);
    const double eager_enqueue = get_median(&report->eager, BENCH_ENQUEUE);
    const double replay_enqueue = get_median(&report->replay, BENCH_ENQUEUE);
    const bool is_noise = fabs(report->saved_ms) <= report->noise_ms;
    if (is_noise || fabs(gain_percent) < 1.0) {
        snprintf(
            text, bytes,
            "Graphs gained next to nothing here (%.1f %%%s), because an op works for %.1f us on "
            "average, and the %.2f us an op that eager submission takes (replay: %.2f us) are "
            "hidden behind that work.",
            gain_percent, is_noise ? ", within the noise" : "",
            1e3 * get_median(&report->replay, BENCH_COMPUTE) / op_count,
            1e3 * eager_enqueue / op_count, 1e3 * replay_enqueue / op_count);
    } else if (gain_percent > 0.0) {
        char why[160];
        if (replay_enqueue < eager_enqueue) {
            snprintf(why, sizeof why, "submitting takes the processor %.4f ms instead of %.4f ms",
                     replay_enqueue, eager_enqueue);
        } else {
            snprintf(why, sizeof why, "nothing is handed over op by op while the device waits");
        }
        snprintf(text, bytes,
                 "Graphs made a run %.2f times as fast here (%.4f ms saved), because %" PRIu64
                 " op%s run%s as %" PRIu64 " graph%s, so that %s.",
                 report->speedup, report->saved_ms, report->stats.op_count,
                 report->stats.op_count == 1 ? "" : "s", report->stats.op_count == 1 ? "s" : "",
                 report->stats.segment_count, report->stats.segment_count == 1 ? "" : "s", why);
    } else {
        snprintf(
            text, bytes,
            "Graphs cost %.1f %% here: a replay takes %.3f ms longer than an eager run, so eager "
            "is the better choice for this model on this device.",
            -gain_percent, -report->saved_ms);
    }
}

void bench_report_finish(bench_report *report) {
    const rondo_executor_stats *stats = &report->stats;
    warn_about_mode(report, "eager", &report->eager);
    if (report->has_replay) {
        const double eager = get_median(&report->eager, BENCH_LATENCY);
        const double replay = get_median(&report->replay, BENCH_LATENCY);
        const double first_replay = (double)stats->first_replay_ns * 1e-6;
        warn_about_mode(report, "replay", &report->replay);
        report->speedup = replay > 0.0 ? eager / replay : 0.0;
        report->saved_ms = eager - replay;
        report->noise_ms = get_noise(&report->eager, &report->replay);
        report->capture_cost_ms =
            (double)(stats->capture_ns + stats->instantiate_ns) * 1e-6 +
            fmax(0.0, first_replay - get_median(&report->replay, BENCH_COMPUTE));
        if (report->saved_ms > report->noise_ms && stats->node_count > 0) {
            report->break_even_runs =
                (uint64_t)fmax(1.0, ceil(report->capture_cost_ms / report->saved_ms));
        }
        if (report->replay.replayed_count < report->replay.run_count) {
            add_warning(report, "replay: %" PRIu64 " of %" PRIu64 " runs were not replayed whole",
                        report->replay.run_count - report->replay.replayed_count,
                        report->replay.run_count);
        }
    }
    conclude(report);
}

// ---- text -------------------------------------------------------------------------------------

static void print_times(const char *mode, const cli_statistics *times) {
    printf("  %-7s%10.4f%10.4f%10.4f%10.4f%10.4f%10.4f%10.4f\n", mode, times->min, times->max,
           times->mean, times->median, times->p90, times->p95, times->p99);
}

static void print_costs(const bench_report *report) {
    const rondo_executor_stats *stats = &report->stats;
    char plan[32];
    char naive[32];
    char constants[32];
    char graphs[32];
    printf("graph        %" PRIu64 " ops in %" PRIu64 " segment%s, %" PRIu64
           " run conventionally; %" PRIu64 " nodes\n",
           stats->op_count, stats->segment_count, stats->segment_count == 1 ? "" : "s",
           stats->bypassed_count, stats->node_count);
    printf(
        "making it    prepare %.1f ms, capture %.3f ms, instantiate %.3f ms, first replay "
        "%.3f ms\n",
        (double)stats->prepare_ns * 1e-6, (double)stats->capture_ns * 1e-6,
        (double)stats->instantiate_ns * 1e-6, (double)stats->first_replay_ns * 1e-6);
    cli_format_bytes(stats->constant_bytes, constants, sizeof constants);
    printf("memory       plan %s (%s without sharing), weights %s, graphs %s\n",
           cli_format_bytes(stats->arena_bytes, plan, sizeof plan),
           cli_format_bytes(stats->arena_naive_bytes, naive, sizeof naive),
           stats->constant_bytes > 0 ? constants : "not copied",
           cli_format_bytes(stats->graph_bytes, graphs, sizeof graphs));
    if (report->break_even_runs > 0) {
        printf("break-even   after %" PRIu64
               " replay%s: capturing cost %.3f ms, each saves %.4f ms\n",
               report->break_even_runs, report->break_even_runs == 1 ? "" : "s",
               report->capture_cost_ms, report->saved_ms);
    } else {
        printf("break-even   none: capturing cost %.3f ms, and a replay saves nothing measurable\n",
               report->capture_cost_ms);
    }
    printf("speedup      %.3fx by median latency\n", report->speedup);
}

void bench_report_print(const bench_report *report) {
    printf("model        %s\n", report->model);
    printf("device       %s (%s), %s\n", report->device->name, report->device->description,
           report->dtype);
    printf("runs         eager %" PRIu64 " in %.2f s", report->eager.run_count,
           report->eager.seconds);
    if (report->has_replay) {
        printf(", replay %" PRIu64 " in %.2f s", report->replay.run_count, report->replay.seconds);
    }
    printf("; %.0f ms of warm-up each\n", report->warm_up_ms);
    printf("throughput   eager %.2f runs/s", report->eager.throughput);
    if (report->has_replay) {
        printf(", replay %.2f runs/s", report->replay.throughput);
    }
    printf("\n\n%-9s%10s%10s%10s%10s%10s%10s%10s\n", "ms", "min", "max", "mean", "median", "p90",
           "p95", "p99");
    for (size_t part = 0; part < BENCH_PART_COUNT; part++) {
        printf("%s\n", parts[part].title);
        print_times("eager", &report->eager.parts[part]);
        if (report->has_replay) {
            print_times("replay", &report->replay.parts[part]);
        }
    }
    printf("\n");
    if (report->has_replay) {
        print_costs(report);
    }
    for (size_t i = 0; i < report->warning_count; i++) {
        printf("warning: %s\n", report->warnings[i]);
    }
    printf("\n%s\n", report->conclusion);
}

// ---- JSON -------------------------------------------------------------------------------------

static void write_mode(cli_json *json, const char *key, const bench_mode *mode) {
    cli_json_begin(json, key, '{');
    cli_json_count(json, "runs", mode->run_count);
    cli_json_count(json, "replayed_runs", mode->replayed_count);
    cli_json_number(json, "seconds", mode->seconds);
    cli_json_number(json, "throughput", mode->throughput);
    for (size_t part = 0; part < BENCH_PART_COUNT; part++) {
        const cli_statistics *times = &mode->parts[part];
        cli_json_begin(json, parts[part].json_key, '{');
        cli_json_number(json, "min", times->min);
        cli_json_number(json, "max", times->max);
        cli_json_number(json, "mean", times->mean);
        cli_json_number(json, "median", times->median);
        cli_json_number(json, "p90", times->p90);
        cli_json_number(json, "p95", times->p95);
        cli_json_number(json, "p99", times->p99);
        cli_json_number(json, "variation", times->variation);
        cli_json_end(json, '}');
    }
    cli_json_end(json, '}');
}

void bench_report_write_json(const bench_report *report, FILE *file) {
    const rondo_executor_stats *stats = &report->stats;
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
    cli_json_number(&json, "warm_up_ms", report->warm_up_ms);
    write_mode(&json, "eager", &report->eager);
    if (report->has_replay) {
        write_mode(&json, "replay", &report->replay);
        cli_json_number(&json, "speedup", report->speedup);
        cli_json_number(&json, "saved_ms", report->saved_ms);
        cli_json_number(&json, "noise_ms", report->noise_ms);
        cli_json_number(&json, "capture_cost_ms", report->capture_cost_ms);
        if (report->break_even_runs > 0) {
            cli_json_count(&json, "break_even_runs", report->break_even_runs);
        } else {
            cli_json_text(&json, "break_even_runs", NULL);
        }
    } else {
        cli_json_text(&json, "replay", NULL);
    }
    cli_json_begin(&json, "graph", '{');
    cli_json_count(&json, "ops", stats->op_count);
    cli_json_count(&json, "segments", stats->segment_count);
    cli_json_count(&json, "bypassed_ops", stats->bypassed_count);
    cli_json_count(&json, "nodes", stats->node_count);
    cli_json_number(&json, "prepare_ms", (double)stats->prepare_ns * 1e-6);
    cli_json_number(&json, "capture_ms", (double)stats->capture_ns * 1e-6);
    cli_json_number(&json, "instantiate_ms", (double)stats->instantiate_ns * 1e-6);
    cli_json_number(&json, "first_replay_ms", (double)stats->first_replay_ns * 1e-6);
    cli_json_end(&json, '}');
    cli_json_begin(&json, "memory_bytes", '{');
    cli_json_count(&json, "plan", stats->arena_bytes);
    cli_json_count(&json, "plan_without_sharing", stats->arena_naive_bytes);
    cli_json_count(&json, "weights", stats->constant_bytes);
    cli_json_count(&json, "graphs", stats->graph_bytes);
    cli_json_end(&json, '}');
    cli_json_begin(&json, "warnings", '[');
    for (size_t i = 0; i < report->warning_count; i++) {
        cli_json_text(&json, NULL, report->warnings[i]);
    }
    cli_json_end(&json, ']');
    cli_json_text(&json, "conclusion", report->conclusion);
    cli_json_end(&json, '}');
}

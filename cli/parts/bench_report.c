// SPDX-License-Identifier: Apache-2.0

#include "bench_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "console.h"

static double get_median(const bench_mode *mode, bench_part part) {
    return mode->parts[part].median;
}

static const char *plural(uint64_t count) {
    return count == 1 ? "" : "s";
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
                    "%s: enqueue takes %.4f ms, device compute %.4f ms; throughput may be bound by "
                    "the processor",
                    name, enqueue, compute);
    }
    if (transfers > compute) {
        add_warning(report, "%s: transfers take longer than device compute (%.3f and %.3f ms)",
                    name, transfers, compute);
    }
    if (variation > 1.0) {
        add_warning(report,
                    "%s: device compute is unstable, its standard deviation is %.4f ms, more than "
                    "its mean; close other programs",
                    name, variation * mode->parts[BENCH_COMPUTE].mean);
    } else if (variation > 0.025) {
        add_warning(report,
                    "%s: device compute is unstable, its coefficient of variation is %.1f %%; "
                    "lock clocks or close other programs",
                    name, 100.0 * variation);
    }
}

static bench_verdict judge(const bench_report *report) {
    if (!report->has_replay || report->stats.node_count == 0) {
        return BENCH_NOT_COMPARED;
    }
    if (!isfinite(report->noise_ms)) {
        return BENCH_TOO_FEW;
    }
    return fabs(report->saved_ms) <= report->noise_ms ? BENCH_SAME
           : report->saved_ms > 0.0                   ? BENCH_FASTER
                                                      : BENCH_SLOWER;
}

// Why replaying is faster, where something that was measured takes less time by as much as was
// saved; otherwise how much of it is accounted for.
static void explain_gain(const bench_report *report, char *text, size_t bytes) {
    const rondo_executor_stats *stats = &report->stats;
    const double eager_enqueue = get_median(&report->eager, BENCH_ENQUEUE);
    const double replay_enqueue = get_median(&report->replay, BENCH_ENQUEUE);
    const double eager_compute = get_median(&report->eager, BENCH_COMPUTE);
    const double replay_compute = get_median(&report->replay, BENCH_COMPUTE);
    const double enough = report->saved_ms - report->noise_ms;
    const bool is_gpu = report->device->arch_major > 0;
    if (eager_enqueue - replay_enqueue >= enough) {
        snprintf(text, bytes,
                 ", because %" PRIu64 " op%s run%s as %" PRIu64
                 " graph%s, so that submitting%s takes the processor %.4f ms instead of %.4f ms.",
                 stats->op_count, plural(stats->op_count), stats->op_count == 1 ? "s" : "",
                 stats->segment_count, plural(stats->segment_count),
                 is_gpu ? "" : " (with waking threads)", replay_enqueue, eager_enqueue);
    } else if (is_gpu && eager_compute - replay_compute >= enough) {
        snprintf(text, bytes,
                 ", because a graph starts its kernels closer together: device compute takes %.4f "
                 "ms instead of %.4f ms.",
                 replay_compute, eager_compute);
    } else {
        snprintf(
            text, bytes,
            ". Submitting%s accounts for %.4f ms of that; what made the rest was not measured.",
            is_gpu ? "" : " (with waking threads)", fmax(0.0, eager_enqueue - replay_enqueue));
    }
}

// Why there is no difference, where the measurements show it.
static void explain_sameness(const bench_report *report, char *text, size_t bytes) {
    const double op_count = fmax((double)report->stats.op_count, 1.0);
    const double enqueue = get_median(&report->eager, BENCH_ENQUEUE);
    const double compute = get_median(&report->eager, BENCH_COMPUTE);
    text[0] = '\0';
    if (enqueue < 0.8 * compute) {
        snprintf(text, bytes,
                 " An op works for %.2f us on average, which hides the %.2f us that eager "
                 "submission takes for it (replay: %.2f us).",
                 1e3 * compute / op_count, 1e3 * enqueue / op_count,
                 1e3 * get_median(&report->replay, BENCH_ENQUEUE) / op_count);
    }
}

static void conclude(bench_report *report) {
    char *text = report->conclusion;
    const size_t bytes = sizeof report->conclusion;
    const double eager = get_median(&report->eager, BENCH_LATENCY);
    const double replay = get_median(&report->replay, BENCH_LATENCY);
    char why[320];
    switch (report->verdict) {
        case BENCH_NOT_COMPARED:
            if (report->graphs_off_by != NULL) {
                snprintf(text, bytes, "Graphs were off (%s), so there is nothing to compare.",
                         report->graphs_off_by);
            } else if (!report->has_replay) {
                snprintf(text, bytes, "Replays were not measured, so there is nothing to compare.");
            } else {
                snprintf(text, bytes,
                         "Graphs gained nothing here, because nothing could be captured (%" PRIu64
                         " of %" PRIu64 " ops bypassed); `rondo inspect` says why.",
                         report->stats.bypassed_count, report->stats.op_count);
            }
            break;
        case BENCH_TOO_FEW:
            snprintf(text, bytes,
                     "Too few runs to compare: the medians are %.4f ms eager and %.4f ms replayed, "
                     "and what chance does to them is not known. Measure longer (--duration).",
                     eager, replay);
            break;
        case BENCH_SAME:
            explain_sameness(report, why, sizeof why);
            snprintf(text, bytes,
                     "Graphs made no difference that could be measured here: the medians differ by "
                     "%.4f ms, and up to %.4f ms may be chance.%s",
                     fabs(report->saved_ms), report->noise_ms, why);
            break;
        case BENCH_FASTER:
            explain_gain(report, why, sizeof why);
            snprintf(text, bytes,
                     "Graphs made a run %.2f times as fast here (%.4f ms saved; up to %.4f ms may "
                     "be chance)%s",
                     report->speedup, report->saved_ms, report->noise_ms, why);
            break;
        case BENCH_SLOWER:
            snprintf(text, bytes,
                     "Graphs cost time here: a replay takes %.4f ms, an eager run %.4f ms (up to "
                     "%.4f ms may be chance), so eager is the better choice for this model on this "
                     "device.",
                     replay, eager, report->noise_ms);
            break;
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
        report->capture_cost_ms =
            (double)(stats->capture_ns + stats->instantiate_ns) * 1e-6 +
            fmax(0.0, first_replay - get_median(&report->replay, BENCH_COMPUTE));
    }
    report->verdict = judge(report);
    if (report->verdict == BENCH_FASTER) {
        report->break_even_runs =
            (uint64_t)fmax(1.0, ceil(report->capture_cost_ms / report->saved_ms));
    }
    if (report->has_replay && stats->node_count > 0 &&
        report->replay.replayed_count < report->replay.run_count) {
        add_warning(report, "replay: in %" PRIu64 " of %" PRIu64 " runs most ops were not replayed",
                    report->replay.run_count - report->replay.replayed_count,
                    report->replay.run_count);
    }
    conclude(report);
}

// ---- text -------------------------------------------------------------------------------------

static void print_times(const char *mode, const cli_statistics *times,
                        const cli_percentiles *percentiles) {
    char line[256];
    size_t length = (size_t)snprintf(line, sizeof line, "  %-7s%10.4f%10.4f%10.4f%10.4f", mode,
                                     times->min, times->max, times->mean, times->median);
    for (size_t i = 0; i < percentiles->count; i++) {
        length +=
            (size_t)snprintf(line + length, sizeof line - length, "%10.4f", times->percentiles[i]);
    }
    cli_say(CLI_NORMAL, "%s", line);
}

static void print_table(const bench_report *report) {
    char line[256];
    size_t length = (size_t)snprintf(line, sizeof line, "%-9s%10s%10s%10s%10s", "ms", "min", "max",
                                     "mean", "median");
    for (size_t i = 0; i < report->percentiles.count; i++) {
        char name[32];
        length += (size_t)snprintf(
            line + length, sizeof line - length, "%10s",
            cli_percentile_format(report->percentiles.percents[i], name, sizeof name));
    }
    cli_say(CLI_NORMAL, "%s", line);
    for (size_t part = 0; part < BENCH_PART_COUNT; part++) {
        cli_say(CLI_NORMAL, "%s", bench_part_get_title((bench_part)part));
        print_times("eager", &report->eager.parts[part], &report->percentiles);
        if (report->has_replay) {
            print_times("replay", &report->replay.parts[part], &report->percentiles);
        }
    }
}

static void print_gain(const bench_report *report) {
    if (report->break_even_runs > 0) {
        cli_say(CLI_NORMAL,
                "break-even   after %" PRIu64
                " replay%s: capturing cost %.3f ms, each saves %.4f "
                "ms",
                report->break_even_runs, plural(report->break_even_runs), report->capture_cost_ms,
                report->saved_ms);
    } else {
        cli_say(CLI_NORMAL,
                "break-even   none: capturing cost %.3f ms, and a replay saves nothing measurable",
                report->capture_cost_ms);
    }
    if (report->verdict == BENCH_FASTER || report->verdict == BENCH_SLOWER) {
        cli_say(CLI_NORMAL, "speedup      %.3fx by median latency", report->speedup);
    } else {
        cli_say(CLI_NORMAL, "speedup      none measurable");
    }
}

static void print_costs(const bench_report *report) {
    const rondo_executor_stats *stats = &report->stats;
    char plan[32];
    char naive[32];
    char constants[32];
    char graphs[32];
    char branches[48] = "";
    if (stats->branch_count > 1) {
        (void)snprintf(branches, sizeof branches, " in %" PRIu64 " branches", stats->branch_count);
    }
    cli_say(CLI_NORMAL,
            "graph        %" PRIu64 " op%s in %" PRIu64 " segment%s, %" PRIu64 " bypassed; %" PRIu64
            " node%s%s",
            stats->op_count, plural(stats->op_count), stats->segment_count,
            plural(stats->segment_count), stats->bypassed_count, stats->node_count,
            plural(stats->node_count), branches);
    if (report->choice[0] != '\0') {
        cli_say(CLI_NORMAL, "measured     %s", report->choice);
    }
    cli_say(CLI_NORMAL,
            "making it    prepare %.1f ms, capture %.3f ms, instantiate %.3f ms, first replay "
            "%.3f ms",
            (double)stats->prepare_ns * 1e-6, (double)stats->capture_ns * 1e-6,
            (double)stats->instantiate_ns * 1e-6, (double)stats->first_replay_ns * 1e-6);
    cli_format_bytes(stats->constant_bytes, constants, sizeof constants);
    cli_say(CLI_NORMAL, "memory       plan %s (%s without sharing), weights %s, graphs %s%s",
            cli_format_bytes(stats->arena_bytes, plan, sizeof plan),
            cli_format_bytes(stats->arena_naive_bytes, naive, sizeof naive),
            stats->constant_bytes > 0 ? constants : "not copied",
            stats->graph_bytes > 0 ? "about " : "",
            cli_format_bytes(stats->graph_bytes, graphs, sizeof graphs));
    print_gain(report);
}

static void print_head(const bench_report *report) {
    char threads[48] = "";
    char replay[64] = "";
    char replay_rate[64] = "";
    if (report->thread_count > 0) {
        snprintf(threads, sizeof threads, ", %" PRIu64 " thread%s", report->thread_count,
                 plural(report->thread_count));
    }
    if (report->has_replay) {
        snprintf(replay, sizeof replay, ", replay %" PRIu64 " in %.2f s", report->replay.run_count,
                 report->replay.seconds);
        snprintf(replay_rate, sizeof replay_rate, ", replay %.2f runs/s",
                 report->replay.throughput);
    }
    cli_say(CLI_NORMAL, "model        %s", report->model);
    cli_say(CLI_NORMAL, "device       %s (%s), %s%s", report->device->name,
            report->device->description, report->dtype, threads);
    cli_say(CLI_NORMAL, "runs         eager %" PRIu64 " in %.2f s%s; %.0f ms of warm-up each%s",
            report->eager.run_count, report->eager.seconds, replay, report->warm_up_ms,
            report->was_interrupted ? "; interrupted" : "");
    cli_say(CLI_NORMAL, "throughput   eager %.2f runs/s%s", report->eager.throughput, replay_rate);
    cli_say(CLI_NORMAL, "%s", "");
}

void bench_report_print(const bench_report *report) {
    print_head(report);
    print_table(report);
    cli_say(CLI_NORMAL, "%s", "");
    if (report->has_replay) {
        print_costs(report);
    }
    for (size_t i = 0; i < report->warning_count; i++) {
        cli_say(CLI_NORMAL, "warning: %s", report->warnings[i]);
    }
    cli_say(CLI_NORMAL, "%s", "");
    cli_say(CLI_RESULT, "%s", report->conclusion);
}

// SPDX-License-Identifier: Apache-2.0

#include "compare_bench.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench_samples.h"
#include "console.h"

static const char *const modes[] = {"eager", "replay"};

bool cli_is_bench(json_t *document) {
    double median = 0.0;
    return cli_json_find_number(document, "eager.latency_ms.median", &median);
}

static bool find_median(json_t *document, const char *mode, bench_part part, double *out_median) {
    char path[96];
    snprintf(path, sizeof path, "%s.%s.median", mode, bench_part_get_json_key(part));
    return cli_json_find_number(document, path, out_median);
}

static const char *get_text(json_t *document, const char *path) {
    const char *text = cli_json_find_text(document, path);
    return text != NULL ? text : "?";
}

// Two settings that differ make the comparison one of them, and are told.
static void say_settings(json_t *first, json_t *second) {
    static const struct {
        const char *title;
        const char *path;
    } settings[] = {{"model", "model"},
                    {"device", "device.name"},
                    {"chip", "device.description"},
                    {"dtype", "dtype"},
                    {"rondo", "rondo"}};
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        const char *a = get_text(first, settings[i].path);
        const char *b = get_text(second, settings[i].path);
        if (strcmp(a, b) != 0) {
            cli_say(CLI_NORMAL, "%-8s %s against %s", settings[i].title, a, b);
        }
    }
}

// One latency. False when the second is slower, beyond chance and by more than is allowed.
static bool compare_latency(json_t *first, json_t *second, const char *mode, double slowdown) {
    char path[64];
    double a = 0.0;
    double b = 0.0;
    double a_noise = 0.0;
    double b_noise = 0.0;
    const bool has_first = find_median(first, mode, BENCH_LATENCY, &a);
    const bool has_second = find_median(second, mode, BENCH_LATENCY, &b);
    if (!has_first || !has_second) {
        if (has_first || has_second) {
            cli_say(CLI_RESULT, "%-8s measured only in the %s file", mode,
                    has_first ? "first" : "second");
        }
        return true;
    }
    snprintf(path, sizeof path, "%s.noise_ms", mode);
    if (!cli_json_find_number(first, path, &a_noise) ||
        !cli_json_find_number(second, path, &b_noise) || !(a > 0.0) || !(b > 0.0)) {
        cli_say(CLI_RESULT, "%-8s latency %.4f ms and %.4f ms: too few runs to compare", mode, a,
                b);
        return true;
    }
    const double noise = hypot(a_noise, b_noise);
    const bool is_chance = fabs(a - b) <= noise;
    if (is_chance) {
        cli_say(CLI_RESULT,
                "%-8s latency %.4f ms and %.4f ms: no difference beyond chance (%.4f ms)", mode, a,
                b, noise);
        return true;
    }
    cli_say(CLI_RESULT,
            "%-8s latency %.4f ms and %.4f ms: the second is %.3f times as %s (chance: %.4f ms)",
            mode, a, b, b < a ? a / b : b / a, b < a ? "fast" : "slow", noise);
    return b < a || b <= a * (1.0 + slowdown / 100.0);
}

bool cli_compare_benches(json_t *first, json_t *second, double slowdown) {
    bool is_fine = true;
    say_settings(first, second);
    for (size_t mode = 0; mode < 2; mode++) {
        is_fine = compare_latency(first, second, modes[mode], slowdown) && is_fine;
        for (bench_part part = BENCH_LATENCY + 1; part < BENCH_PART_COUNT; part++) {
            double a = 0.0;
            double b = 0.0;
            if (find_median(first, modes[mode], part, &a) &&
                find_median(second, modes[mode], part, &b) && (a > 0.0 || b > 0.0)) {
                cli_say(CLI_NORMAL, "         %-15s %10.4f ms %10.4f ms",
                        bench_part_get_title(part), a, b);
            }
        }
    }
    return is_fine;
}

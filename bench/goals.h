// goals.h — tables of figures with goals, as Markdown.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stdio.h>

static int g_missed_count;

typedef enum goal_kind { NO_GOAL, AT_MOST, AT_LEAST } goal_kind;

static inline void print_head(const char *title) {
    printf("\n| %-62s | %-16s | %-9s | %-6s |\n|---|---|---|---|\n", title, "value", "goal", "");
}

static inline void report(const char *what, double value, const char *unit, goal_kind kind,
                          double goal) {
    char text[32] = "";
    const char *verdict = "";
    if (kind != NO_GOAL) {
        // "not (good)" so that a value that is no number misses.
        bool is_missed = kind == AT_MOST ? !(value <= goal) : !(value >= goal);
        g_missed_count += is_missed;
        verdict = is_missed ? "MISSED" : "ok";
        snprintf(text, sizeof text, "%s %g", kind == AT_MOST ? "<=" : ">=", goal);
    }
    printf("| %-62s | %10.2f %-5s | %-9s | %-6s |\n", what, value, unit, text, verdict);
    fflush(stdout);
}

// doctor/analysis/doctor_ranges.c — which ranges of NVTX name a step, and which a call.
// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "doctor/analysis/doctor_steps.h"

typedef struct name_row {
    size_t count;
    uint64_t length_ns;
} name_row;

static void count_names(const rondo__doctor_steps *steps, name_row *rows) {
    const rondo__doctor_log *log = steps->log;
    const rondo__doctor_step *last = &steps->steps[steps->count - 1];
    for (size_t i = 0; i < log->range_count; i++) {
        const rondo__doctor_range *range = &log->ranges[i];
        if (range->end_ns >= steps->steps[0].begin_ns &&
            range->begin_ns < last->begin_ns + last->length_ns && range->name <= log->text_count) {
            const uint64_t end = range->end_ns != UINT64_MAX ? range->end_ns : range->begin_ns;
            rows[range->name].count += 1;
            rows[range->name].length_ns += end - range->begin_ns;
        }
    }
}

// The longest of those that come once a step.
bool rondo__doctor_name_step(rondo__doctor_steps *steps) {
    const rondo__doctor_log *log = steps->log;
    uint64_t longest = 0;
    if (steps->count == 0 || log->range_count == 0) {
        return true;
    }
    name_row *rows = calloc(log->text_count + 1, sizeof(*rows));
    if (rows == NULL) {
        return false;
    }
    count_names(steps, rows);
    for (size_t name = 1; name <= log->text_count; name++) {
        const size_t away = rows[name].count > steps->count ? rows[name].count - steps->count
                                                            : steps->count - rows[name].count;
        if (away <= 1 + steps->count / 16 && rows[name].length_ns > longest) {
            longest = rows[name].length_ns;
            steps->name = (uint32_t)name;
        }
    }
    free(rows);
    return true;
}

uint32_t rondo__doctor_find_range(const rondo__doctor_log *log, const rondo__doctor_event *event) {
    // The innermost one began last.
    for (size_t i = log->range_count; i > 0; i--) {
        const rondo__doctor_range *range = &log->ranges[i - 1];
        if (range->thread == event->thread && range->begin_ns <= event->begin_ns &&
            range->end_ns > event->begin_ns) {
            return range->name;
        }
    }
    return 0;
}

// doctor/analysis/doctor_path_times.c — see doctor_path_times.h.
// SPDX-License-Identifier: Apache-2.0
#include "doctor/analysis/doctor_path_times.h"

#include <stdlib.h>
#include <string.h>

enum { SAMPLES_MAX = 31, CHUNK = 256 };
enum { COPY_TOKEN = 1 << 30, FILL_TOKEN };

static const double MATCH_MIN = 0.9;

bool rondo__doctor_is_copy_name(const char *name) {
    return strncmp(name, "[copy", 5) == 0;
}

static bool is_fill_name(const char *name) {
    return strncmp(name, "[fill", 5) == 0;
}

static uint32_t token_of_call(const rondo__doctor_event *event) {
    switch (rondo__doctor_call_kind(event->call)) {
        case RONDO__DOCTOR_KIND_LAUNCH:
            return event->name;
        case RONDO__DOCTOR_KIND_FILL:
        case RONDO__DOCTOR_KIND_FILL_WAIT:
            return FILL_TOKEN;
        default:
            return COPY_TOKEN;
    }
}

static uint32_t token_of_work(const rondo__doctor_log *log, const rondo__doctor_work *work) {
    const char *name = rondo__doctor_log_text(log, work->name);
    return rondo__doctor_is_copy_name(name) ? COPY_TOKEN
           : is_fill_name(name)             ? FILL_TOKEN
                                            : work->name;
}

// By when they were asked for; where that is not known, by when they began.
static int compare_works(const void *left, const void *right) {
    const rondo__doctor_work *a = left;
    const rondo__doctor_work *b = right;
    if (a->order != b->order) {
        return a->order < b->order ? -1 : 1;
    }
    return a->begin_ns < b->begin_ns ? -1 : a->begin_ns > b->begin_ns ? 1 : 0;
}

static double match(const uint32_t *works, const uint32_t *calls, size_t period, size_t offset,
                    size_t count) {
    size_t same = 0;
    for (size_t i = 0; i < count; i++) {
        same += works[i] == calls[(offset + i) % period];
    }
    return count > 0 ? (double)same / (double)count : 0.0;
}

// At which work of the step the timed works begin.
static bool find_offset(const uint32_t *works, size_t count, const uint32_t *calls, size_t period,
                        size_t *out_offset) {
    double best = 0.0;
    for (size_t offset = 0; offset < period && best < 1.0; offset++) {
        const double found = match(works, calls, period, offset, count);
        if (found > best) {
            best = found;
            *out_offset = offset;
        }
    }
    return best >= MATCH_MIN;
}

static int compare_numbers(const void *left, const void *right) {
    const double a = *(const double *)left;
    const double b = *(const double *)right;
    return a < b ? -1 : a > b ? 1 : 0;
}

void rondo__doctor_sort_lengths(double *lengths, size_t count) {
    qsort(lengths, count, sizeof *lengths, compare_numbers);
}

// What was seen of each work of the step.
typedef struct samples {
    double *lengths;  // SAMPLES_MAX of each
    uint32_t *counts;
} samples;

static void add_samples(const rondo__doctor_work *sorted, const uint32_t *works, size_t count,
                        const uint32_t *calls, size_t period, samples *out) {
    size_t offset = 0;
    for (size_t first = 0; first < count; first += CHUNK) {
        const size_t length = count - first < CHUNK ? count - first : CHUNK;
        const bool fits =
            first > 0 && match(works + first, calls, period, offset, length) >= MATCH_MIN;
        // Works may have been lost, and those of the program's start are not the step's.
        if (!fits && !find_offset(works + first, length, calls, period, &offset)) {
            continue;
        }
        for (size_t i = 0; i < length; i++) {
            const size_t place = (offset + i) % period;
            if (works[first + i] == calls[place] && out->counts[place] < SAMPLES_MAX) {
                out->lengths[place * SAMPLES_MAX + out->counts[place]++] =
                    (double)sorted[first + i].duration_ns * 1e-3;
            }
        }
        offset = (offset + length) % period;
    }
}

// The nearest place of the same kernel, for one that was not seen; `period`: there is none.
static size_t find_like(const samples *from, const uint32_t *calls, size_t period, size_t place) {
    for (size_t way = 1; way < period; way++) {
        const size_t ahead = place + way;
        if (ahead < period && calls[ahead] == calls[place] && from->counts[ahead] > 0) {
            return ahead;
        }
        if (way <= place && calls[place - way] == calls[place] && from->counts[place - way] > 0) {
            return place - way;
        }
    }
    return period;
}

static bool find_medians(const samples *from, const uint32_t *calls, size_t period,
                         double *out_us) {
    size_t seen = 0;
    double all_us = 0.0;
    for (size_t place = 0; place < period; place++) {
        double *lengths = from->lengths + place * SAMPLES_MAX;
        const size_t count = from->counts[place];
        if (count > 0) {
            rondo__doctor_sort_lengths(lengths, count);
            out_us[place] = lengths[count / 2];
            all_us += out_us[place];
            ++seen;
        }
    }
    for (size_t place = 0; 2 * seen > period && place < period; place++) {
        const size_t like = from->counts[place] > 0 ? place : find_like(from, calls, period, place);
        out_us[place] = like < period ? out_us[like] : all_us / (double)seen;
    }
    return 2 * seen > period;
}

bool rondo__doctor_find_work_times(const rondo__doctor_steps *steps, double *out_us) {
    const rondo__doctor_log *log = steps->log;
    const size_t period = steps->period;
    const size_t count = log->work_count;
    const rondo__doctor_step *step = steps->count > 0 ? &steps->steps[steps->reference] : NULL;
    if (period == 0 || count < period || step == NULL || step->work_count != period) {
        return false;
    }
    rondo__doctor_work *sorted = malloc(count * sizeof(*sorted));
    uint32_t *works = malloc(count * sizeof(*works));
    uint32_t *calls = malloc(period * sizeof(*calls));
    samples found = {.lengths = malloc(period * SAMPLES_MAX * sizeof(double)),
                     .counts = calloc(period, sizeof(uint32_t))};
    bool is_done = sorted != NULL && works != NULL && calls != NULL && found.lengths != NULL &&
                   found.counts != NULL;
    if (is_done) {
        memcpy(sorted, log->works, count * sizeof(*sorted));
        qsort(sorted, count, sizeof(*sorted), compare_works);
        for (size_t i = 0; i < count; i++) {
            works[i] = token_of_work(log, &sorted[i]);
        }
        for (size_t i = 0; i < period; i++) {
            calls[i] = token_of_call(&log->events[steps->works[step->work_first + i]]);
        }
        add_samples(sorted, works, count, calls, period, &found);
        is_done = find_medians(&found, calls, period, out_us);
    }
    free(found.lengths);
    free(found.counts);
    free(sorted);
    free(works);
    free(calls);
    return is_done;
}

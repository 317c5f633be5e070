// doctor/analysis/doctor_path.c — see doctor_path.h.
// SPDX-License-Identifier: Apache-2.0
#include "doctor/analysis/doctor_path.h"

#include <stdlib.h>
#include <string.h>

#include "doctor/analysis/doctor_path_times.h"

// The model, in microseconds; bench/results/core/doctor.md says where each comes from.
static const double GAP_US = 0.1;        // between a work and one that waits for it
static const double TURN_GAP_US = 0.3;   // more, where one is a kernel and one a copy
static const double WORDS_GAP_US = 0.6;  // more, ahead of a kernel with many words of arguments
static const double GAP_LOW = 0.4;       // by which gaps are multiplied at the ends of the range
static const double GAP_HIGH = 2.0;
static const double COPY_SHARE = 0.05;  // of the device, that a copy keeps from others

enum { MANY_WORDS = 13 };
enum { STREAMS_MAX = 64, SET_MAX = RONDO__DOCTOR_AFTER_MAX, RECORDS_MAX = 256 };

// Works, the latest of their streams.
typedef struct work_set {
    uint32_t works[SET_MAX];
    uint32_t count;
} work_set;

typedef struct node {
    const rondo__doctor_event *call;
    work_set after;
    double length_us;
    double share;  // of the device
    double left_us;
    double ready_us;
    double finish_us;
    uint32_t waits_for;  // of `after`, those that have not finished
    uint32_t critical;   // the work that it waited for longest, plus one; 0: none
} node;

typedef struct record_row {
    uint64_t event;
    work_set set;
} record_row;

typedef struct graph {
    const rondo__doctor_steps *steps;
    node *nodes;
    size_t count;
    uint64_t streams[STREAMS_MAX];
    work_set latest[STREAMS_MAX];
    size_t stream_count;
    record_row records[RECORDS_MAX];
    size_t record_count;
    work_set host;  // what the host has waited for
} graph;

double rondo__doctor_typical_gap_us(void) {
    return GAP_US + WORDS_GAP_US / 2;
}

// ---- what follows what ------------------------------------------------------------------------

static void add_to_set(work_set *set, uint32_t work) {
    for (uint32_t i = 0; i < set->count; i++) {
        if (set->works[i] == work) {
            return;
        }
    }
    if (set->count == SET_MAX) {
        memmove(set->works, set->works + 1, (SET_MAX - 1) * sizeof(*set->works));
        --set->count;
    }
    set->works[set->count++] = work;
}

static void join(work_set *set, const work_set *other) {
    for (uint32_t i = 0; i < other->count; i++) {
        add_to_set(set, other->works[i]);
    }
}

// The last one stands for all streams for which there is no row.
static work_set *get_stream(graph *g, uint64_t stream) {
    size_t i = 0;
    while (i < g->stream_count && g->streams[i] != stream) {
        ++i;
    }
    if (i == STREAMS_MAX) {
        return &g->latest[STREAMS_MAX - 1];
    }
    if (i == g->stream_count) {
        g->streams[g->stream_count] = stream;
        g->latest[g->stream_count++] = (work_set){.count = 0};
    }
    return &g->latest[i];
}

static record_row *get_record(graph *g, uint64_t event, bool can_add) {
    for (size_t i = 0; i < g->record_count; i++) {
        if (g->records[i].event == event) {
            return &g->records[i];
        }
    }
    if (!can_add) {
        return NULL;
    }
    const size_t place = g->record_count < RECORDS_MAX ? g->record_count++ : RECORDS_MAX - 1;
    g->records[place] = (record_row){.event = event};
    return &g->records[place];
}

static void wait_by_host(graph *g, const rondo__doctor_event *event) {
    if (event->call == RONDO__DOCTOR_cuStreamSynchronize) {
        join(&g->host, get_stream(g, event->stream));
    } else if (event->call == RONDO__DOCTOR_cuEventSynchronize) {
        const record_row *record = get_record(g, event->object, false);
        if (record != NULL) {
            join(&g->host, &record->set);
        }
    } else {
        for (size_t i = 0; i < g->stream_count; i++) {
            join(&g->host, &g->latest[i]);
        }
    }
}

static void add_work(graph *g, const rondo__doctor_event *event) {
    const uint32_t work = (uint32_t)g->count++;
    const rondo__doctor_kind kind = rondo__doctor_call_kind(event->call);
    work_set *latest = get_stream(g, event->stream);
    node *added = &g->nodes[work];
    added->call = event;
    added->after = *latest;
    join(&added->after, &g->host);
    *latest = (work_set){.works = {work}, .count = 1};
    if (kind == RONDO__DOCTOR_KIND_COPY_WAIT || kind == RONDO__DOCTOR_KIND_FILL_WAIT) {
        add_to_set(&g->host, work);
    }
}

static void follow(graph *g, const rondo__doctor_event *event) {
    const record_row *record = NULL;
    switch (rondo__doctor_call_kind(event->call)) {
        case RONDO__DOCTOR_KIND_EVENT_RECORD:
            get_record(g, event->object, true)->set = *get_stream(g, event->stream);
            break;
        case RONDO__DOCTOR_KIND_EVENT_WAIT:
            record = get_record(g, event->object, false);
            if (record != NULL) {
                join(get_stream(g, event->stream), &record->set);
            }
            break;
        case RONDO__DOCTOR_KIND_WAIT:
            wait_by_host(g, event);
            break;
        default:
            if (rondo__doctor_is_work(event->call)) {
                add_work(g, event);
            }
            break;
    }
}

// ---- the device -------------------------------------------------------------------------------

// The share of the device that a work fills.
static double find_share(const rondo__doctor_log *log, const rondo__doctor_event *call) {
    if (rondo__doctor_call_kind(call->call) != RONDO__DOCTOR_KIND_LAUNCH) {
        return COPY_SHARE;
    }
    const double blocks = (double)call->grid[0] * call->grid[1] * call->grid[2];
    const double threads = (double)call->block[0] * call->block[1] * call->block[2];
    double room = log->multiprocessor_blocks;
    if (log->multiprocessors == 0 || threads < 1.0) {
        return 1.0;
    }
    const double by_threads = log->multiprocessor_threads / threads;
    room = by_threads < room ? by_threads : room;
    if (call->shared_bytes > 0) {
        const double by_shared = (double)log->multiprocessor_shared_bytes / call->shared_bytes;
        room = by_shared < room ? by_shared : room;
    }
    const double share = blocks / ((room < 1.0 ? 1.0 : room) * log->multiprocessors);
    return share < 1.0 ? share : 1.0;
}

static double find_gap(const rondo__doctor_event *before, const rondo__doctor_event *now) {
    const bool is_launch = rondo__doctor_call_kind(now->call) == RONDO__DOCTOR_KIND_LAUNCH;
    const bool was_launch = rondo__doctor_call_kind(before->call) == RONDO__DOCTOR_KIND_LAUNCH;
    return GAP_US + (is_launch != was_launch ? TURN_GAP_US : 0.0) +
           (is_launch && now->word_count >= MANY_WORDS ? WORDS_GAP_US : 0.0);
}

// ---- a replay ---------------------------------------------------------------------------------

typedef struct replay {
    graph *g;
    uint32_t *active;  // works whose turn has come
    size_t active_count;
    double gaps;    // by which gaps are multiplied
    bool is_large;  // the device has room for all
    double now_us;
} replay;

// Starts a work when all those that it follows have finished.
static void start(replay *r, uint32_t work) {
    node *n = &r->g->nodes[work];
    n->ready_us = 0.0;
    n->critical = 0;
    for (uint32_t i = 0; i < n->after.count; i++) {
        const node *before = &r->g->nodes[n->after.works[i]];
        const double ready = before->finish_us + r->gaps * find_gap(before->call, n->call);
        if (ready >= n->ready_us) {
            n->ready_us = ready;
            n->critical = n->after.works[i] + 1;
        }
    }
    n->left_us = n->length_us;
    r->active[r->active_count++] = work;
}

// How fast each of the works that run goes on: they share the device.
static double find_speed(const replay *r) {
    double shares = 0.0;
    for (size_t i = 0; i < r->active_count && !r->is_large; i++) {
        const node *n = &r->g->nodes[r->active[i]];
        shares += n->ready_us <= r->now_us ? n->share : 0.0;
    }
    return shares > 1.0 ? 1.0 / shares : 1.0;
}

// To the next begin or end of a work.
static void go_on(replay *r) {
    const double speed = find_speed(r);
    double next = -1.0;
    for (size_t i = 0; i < r->active_count; i++) {
        const node *n = &r->g->nodes[r->active[i]];
        const double then = n->ready_us > r->now_us ? n->ready_us : r->now_us + n->left_us / speed;
        next = next < 0.0 || then < next ? then : next;
    }
    for (size_t i = 0; i < r->active_count; i++) {
        node *n = &r->g->nodes[r->active[i]];
        n->left_us -= n->ready_us <= r->now_us ? (next - r->now_us) * speed : 0.0;
    }
    r->now_us = next;
}

static void finish_works(replay *r) {
    // What is left by rounding, so that any times come to an end.
    const double rounded_us = 1e-7 + 1e-9 * r->now_us;
    size_t kept = 0;
    for (size_t i = 0; i < r->active_count; i++) {
        node *n = &r->g->nodes[r->active[i]];
        if (n->ready_us > r->now_us || n->left_us > rounded_us) {
            r->active[kept++] = r->active[i];
        } else {
            n->finish_us = r->now_us;
            n->waits_for = UINT32_MAX;
        }
    }
    r->active_count = kept;
}

static bool is_next(const graph *g, uint32_t work) {
    const node *n = &g->nodes[work];
    for (uint32_t i = 0; i < n->after.count; i++) {
        if (g->nodes[n->after.works[i]].waits_for != UINT32_MAX) {
            return false;
        }
    }
    return true;
}

// Works whose predecessors have ended. Those of one stream come in order, so that no more than the
// next few after the first that has not begun need be looked at.
static void start_works(replay *r, uint32_t *in_out_first) {
    enum { WINDOW = 4096 };
    const uint32_t count = (uint32_t)r->g->count;
    while (*in_out_first < count && r->g->nodes[*in_out_first].waits_for != 0) {
        ++*in_out_first;
    }
    for (uint32_t i = *in_out_first; i < count && i < *in_out_first + WINDOW; i++) {
        node *n = &r->g->nodes[i];
        if (n->waits_for == 0 && is_next(r->g, i)) {
            n->waits_for = 1;
            start(r, i);
        }
        if (r->g->stream_count == 1 && n->waits_for == 0) {
            break;
        }
    }
}

// Returns how long it takes.
static double run(graph *g, uint32_t *active, double gaps, bool is_large) {
    replay r = {.g = g, .active = active, .gaps = gaps, .is_large = is_large};
    uint32_t first = 0;
    for (size_t i = 0; i < g->count; i++) {
        g->nodes[i].waits_for = 0;
    }
    start_works(&r, &first);
    while (r.active_count > 0) {
        go_on(&r);
        finish_works(&r);
        start_works(&r, &first);
    }
    return r.now_us;
}

// ---- the path ---------------------------------------------------------------------------------

static void find_critical(const graph *g, rondo__doctor_path *out) {
    const node *last = NULL;
    for (size_t i = 0; i < g->count; i++) {
        last = last == NULL || g->nodes[i].finish_us > last->finish_us ? &g->nodes[i] : last;
    }
    while (last != NULL) {
        out->work_count += 1;
        out->path_us += last->length_us;
        last = last->critical > 0 ? &g->nodes[last->critical - 1] : NULL;
    }
}

static void follow_step(graph *g, const double *lengths) {
    const rondo__doctor_step *step = &g->steps->steps[g->steps->reference];
    for (size_t i = step->first; i < step->last; i++) {
        follow(g, &g->steps->log->events[i]);
    }
    for (size_t i = 0; i < g->count; i++) {
        g->nodes[i].length_us = lengths[i];
    }
}

static void measure(graph *g, uint32_t *active, const double *lengths, rondo__doctor_path *out) {
    follow_step(g, lengths);
    for (size_t i = 0; i < g->count; i++) {
        out->device_us += lengths[i];
        g->nodes[i].share = find_share(g->steps->log, g->nodes[i].call);
    }
    out->is_known = true;
    (void)run(g, active, 1.0, true);
    find_critical(g, out);
    for (size_t i = 0; i < g->stream_count; i++) {
        out->stream_count += g->latest[i].count > 0;
    }
    out->replay_us = run(g, active, 1.0, false);
    out->replay_low_us = run(g, active, GAP_LOW, false);
    out->replay_high_us = run(g, active, GAP_HIGH, false);
}

bool rondo__doctor_find_path(const rondo__doctor_steps *steps, rondo__doctor_path *out_path) {
    *out_path = (rondo__doctor_path){.is_known = false};
    graph *g = calloc(1, sizeof(*g));
    node *nodes = calloc(steps->period + 1, sizeof(*nodes));
    uint32_t *active = malloc((steps->period + 1) * sizeof(*active));
    double *lengths = malloc((steps->period + 1) * sizeof(*lengths));
    const bool is_done = g != NULL && nodes != NULL && active != NULL && lengths != NULL;
    if (is_done && rondo__doctor_find_work_times(steps, lengths)) {
        g->steps = steps;
        g->nodes = nodes;
        measure(g, active, lengths, out_path);
    }
    free(g);
    free(nodes);
    free(active);
    free(lengths);
    return is_done;
}

rondo__doctor_part *rondo__doctor_list_parts(const rondo__doctor_steps *steps) {
    graph *g = calloc(1, sizeof(*g));
    node *nodes = calloc(steps->period + 1, sizeof(*nodes));
    double *lengths = malloc((steps->period + 1) * sizeof(*lengths));
    rondo__doctor_part *parts = NULL;
    if (g != NULL && nodes != NULL && lengths != NULL &&
        rondo__doctor_find_work_times(steps, lengths)) {
        parts = calloc(steps->period, sizeof(*parts));
    }
    if (parts != NULL) {
        g->steps = steps;
        g->nodes = nodes;
        follow_step(g, lengths);
    }
    for (size_t i = 0; parts != NULL && i < steps->period; i++) {
        parts[i].call = nodes[i].call;
        parts[i].length_us = nodes[i].length_us;
        parts[i].after_count = nodes[i].after.count;
        memcpy(parts[i].after, nodes[i].after.works, sizeof(parts[i].after));
    }
    free(g);
    free(nodes);
    free(lengths);
    return parts;
}

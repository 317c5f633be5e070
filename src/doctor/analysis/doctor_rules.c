// doctor/analysis/doctor_rules.c — see doctor_rules.h.
// SPDX-License-Identifier: Apache-2.0
#include "doctor/analysis/doctor_rules.h"

#include <stdlib.h>
#include <string.h>

#include "doctor/analysis/doctor_changes.h"

enum { STREAMS_MAX = 64, RULES_AT_ONCE = 4, MANY_GRAPHS_MIN = 4, LEGACY_HANDLE = 1 };

// What is known while one step is read.
typedef struct walk {
    const rondo__doctor_steps *steps;
    const rondo__doctor_step *step;
    rondo__doctor_findings *findings;
    size_t lead;   // works at the step's start that only bring its inputs
    size_t trail;  // works before it, from this one on, only fetch its outputs
    size_t works_seen;
    bool has_read_back;  // a copy to the host, and no launch since
    size_t step_count;   // of which this is one
} walk;

// ---- findings ---------------------------------------------------------------------------------

static void add_finding(walk *w, rondo__doctor_rule rule, const rondo__doctor_event *event,
                        bool with_name, int32_t word) {
    rondo__doctor_findings *findings = w->findings;
    const uint32_t name = with_name ? event->name : 0;
    const double share = 1.0 / (double)w->step_count;
    rondo__doctor_finding *found = NULL;
    for (size_t i = 0; i < findings->count && found == NULL; i++) {
        rondo__doctor_finding *row = &findings->rows[i];
        found = row->rule == rule && row->call == event->call && row->name == name ? row : NULL;
    }
    if (found == NULL && findings->count == RONDO__DOCTOR_FINDINGS_MAX) {
        findings->dropped_count += 1;
        return;
    }
    if (found == NULL) {
        found = &findings->rows[findings->count++];
        *found = (rondo__doctor_finding){.rule = rule,
                                         .call = event->call,
                                         .name = name,
                                         .range = rondo__doctor_find_range(w->steps->log, event),
                                         .works = w->works_seen,
                                         .word = word};
    }
    found->count += share;
    found->place = found->place != 0 ? found->place : event->place;
    found->line = found->line != 0 ? found->line : event->line;
    if (!with_name && rule != RONDO__DOCTOR_RULE_LEGACY_STREAM) {
        found->cost_us += (double)event->duration_ns * 1e-3 * share;
    }
}

static const rondo__doctor_event *get_work(const walk *w, size_t place) {
    return &w->steps->log->events[w->steps->works[w->step->work_first + place]];
}

// ---- rules of single calls --------------------------------------------------------------------

static bool brings(const rondo__doctor_event *event) {
    return event->call == RONDO__DOCTOR_cuMemcpyHtoD ||
           event->call == RONDO__DOCTOR_cuMemcpyHtoDAsync;
}

static bool fetches(const rondo__doctor_event *event) {
    return event->call == RONDO__DOCTOR_cuMemcpyDtoH ||
           event->call == RONDO__DOCTOR_cuMemcpyDtoHAsync;
}

// Copies at both ends of the step may stay outside of a graph.
static void find_edges(walk *w) {
    w->lead = 0;
    while (w->lead < w->step->work_count && brings(get_work(w, w->lead))) {
        ++w->lead;
    }
    w->trail = w->step->work_count;
    while (w->trail > w->lead && fetches(get_work(w, w->trail - 1))) {
        --w->trail;
    }
}

static bool is_edge(const walk *w) {
    return w->works_seen < w->lead || w->works_seen >= w->trail;
}

static int find_wait_rule(const walk *w, const rondo__doctor_event *event) {
    if (w->has_read_back) {
        return RONDO__DOCTOR_RULE_READ_BACK;
    }
    switch (event->call) {
        case RONDO__DOCTOR_cuCtxSynchronize:
            return RONDO__DOCTOR_RULE_WAIT_DEVICE;
        case RONDO__DOCTOR_cuStreamSynchronize:
            return RONDO__DOCTOR_RULE_WAIT_STREAM;
        default:
            return RONDO__DOCTOR_RULE_WAIT_EVENT;
    }
}

// Whether memory that is freed is an argument of a launch in this step.
static bool is_used(const walk *w, uint64_t address) {
    const rondo__doctor_log *log = w->steps->log;
    for (size_t i = w->step->first; address != 0 && i < w->step->last; i++) {
        for (uint32_t k = 0; k < log->events[i].word_count; k++) {
            if (rondo__doctor_log_words(log, i)[k] == address) {
                return true;
            }
        }
    }
    return false;
}

// The rule that holds wherever in the step the call stands; -1: none.
static int find_plain_rule(const walk *w, const rondo__doctor_event *event) {
    switch (rondo__doctor_call_kind(event->call)) {
        case RONDO__DOCTOR_KIND_ALLOCATE:
            return RONDO__DOCTOR_RULE_ALLOCATE;
        case RONDO__DOCTOR_KIND_FREE:
            return is_used(w, event->object) ? RONDO__DOCTOR_RULE_FREE_USED
                                             : RONDO__DOCTOR_RULE_ALLOCATE;
        case RONDO__DOCTOR_KIND_HOST_MEMORY:
            return RONDO__DOCTOR_RULE_HOST_MEMORY;
        case RONDO__DOCTOR_KIND_STREAM_MEMORY:
            return RONDO__DOCTOR_RULE_STREAM_MEMORY;
        case RONDO__DOCTOR_KIND_MAP_MEMORY:
            return RONDO__DOCTOR_RULE_MAP_MEMORY;
        case RONDO__DOCTOR_KIND_MODULE:
            return RONDO__DOCTOR_RULE_LOAD_MODULE;
        case RONDO__DOCTOR_KIND_MAKE_STREAM:
            return RONDO__DOCTOR_RULE_MAKE_STREAM;
        case RONDO__DOCTOR_KIND_MAKE_EVENT:
            return RONDO__DOCTOR_RULE_MAKE_EVENT;
        case RONDO__DOCTOR_KIND_HOST_FUNCTION:
            return RONDO__DOCTOR_RULE_HOST_FUNCTION;
        case RONDO__DOCTOR_KIND_STREAM_CALLBACK:
            return RONDO__DOCTOR_RULE_STREAM_CALLBACK;
        case RONDO__DOCTOR_KIND_ATTACH:
            return RONDO__DOCTOR_RULE_ATTACH_MEMORY;
        case RONDO__DOCTOR_KIND_GRAPH_BUILD:
            return RONDO__DOCTOR_RULE_REBUILD_GRAPH;
        default:
            return -1;
    }
}

// The rule for calls that harm only between the step's works; -1: none.
static int find_inner_rule(const walk *w, size_t index, const rondo__doctor_event *event) {
    const bool is_behind = rondo__doctor_is_behind(w->steps, w->step, index) ||
                           w->works_seen <= w->lead || w->works_seen >= w->trail;
    switch (rondo__doctor_call_kind(event->call)) {
        case RONDO__DOCTOR_KIND_WAIT:
            return is_behind ? -1 : find_wait_rule(w, event);
        case RONDO__DOCTOR_KIND_QUERY:
            return is_behind ? -1
                   : event->call == RONDO__DOCTOR_cuEventElapsedTime
                       ? RONDO__DOCTOR_RULE_ELAPSED_TIME
                       : RONDO__DOCTOR_RULE_QUERY;
        case RONDO__DOCTOR_KIND_COPY_WAIT:
            return is_edge(w)       ? -1
                   : fetches(event) ? RONDO__DOCTOR_RULE_READ_BACK
                                    : RONDO__DOCTOR_RULE_SYNCHRONOUS_COPY;
        case RONDO__DOCTOR_KIND_FILL_WAIT:
            return RONDO__DOCTOR_RULE_SYNCHRONOUS_FILL;
        case RONDO__DOCTOR_KIND_COPY:
            return !is_edge(w) && (event->flags & RONDO__DOCTOR_PAGEABLE) != 0
                       ? RONDO__DOCTOR_RULE_PAGEABLE_COPY
                       : -1;
        default:
            return find_plain_rule(w, event);
    }
}

static bool is_on_legacy(const rondo__doctor_event *event) {
    const rondo__doctor_kind kind = rondo__doctor_call_kind(event->call);
    const bool is_asynchronous = kind == RONDO__DOCTOR_KIND_LAUNCH ||
                                 kind == RONDO__DOCTOR_KIND_GRAPH_LAUNCH ||
                                 kind == RONDO__DOCTOR_KIND_COPY || kind == RONDO__DOCTOR_KIND_FILL;
    return is_asynchronous &&
           ((event->stream == 0 && (event->flags & RONDO__DOCTOR_PER_THREAD) == 0) ||
            event->stream == LEGACY_HANDLE);
}

static void read_event(walk *w, size_t index) {
    const rondo__doctor_event *event = &w->steps->log->events[index];
    const rondo__doctor_kind kind = rondo__doctor_call_kind(event->call);
    const int rule = find_inner_rule(w, index, event);
    if ((event->flags & RONDO__DOCTOR_IN_CALLBACK) != 0) {
        add_finding(w, RONDO__DOCTOR_RULE_CALLBACK_CALLS, event, false, -1);
    } else if (rule >= 0) {
        add_finding(w, (rondo__doctor_rule)rule, event, false, -1);
    }
    if (is_on_legacy(event)) {
        add_finding(w, RONDO__DOCTOR_RULE_LEGACY_STREAM, event, false, -1);
    }
    if (rondo__doctor_is_work(event->call)) {
        w->works_seen += 1;
        w->has_read_back = kind == RONDO__DOCTOR_KIND_COPY && fetches(event);
    }
}

// ---- rules of streams -------------------------------------------------------------------------

typedef struct stream_row {
    uint64_t stream;
    size_t last_work;  // event; 0 with none
    bool is_forked;    // it waited for an event of the step
    bool is_joined;    // another stream waited for what stands behind its last work
    const rondo__doctor_event *sample;
} stream_row;

typedef struct stream_table {
    stream_row rows[STREAMS_MAX];
    size_t count;
} stream_table;

static stream_row *get_stream(stream_table *table, uint64_t stream) {
    for (size_t i = 0; i < table->count; i++) {
        if (table->rows[i].stream == stream) {
            return &table->rows[i];
        }
    }
    if (table->count == STREAMS_MAX) {
        return NULL;
    }
    table->rows[table->count] = (stream_row){.stream = stream};
    return &table->rows[table->count++];
}

// The latest record of the event in this step, ahead of `index`; NULL: none.
static const rondo__doctor_event *find_record(const walk *w, uint64_t object, size_t index,
                                              size_t *out_place) {
    const rondo__doctor_event *events = w->steps->log->events;
    for (size_t i = index; i > w->step->first; i--) {
        const rondo__doctor_event *event = &events[i - 1];
        if (rondo__doctor_call_kind(event->call) == RONDO__DOCTOR_KIND_EVENT_RECORD &&
            event->object == object) {
            *out_place = i - 1;
            return event;
        }
    }
    return NULL;
}

static void follow_event_wait(walk *w, stream_table *table, size_t index) {
    const rondo__doctor_event *event = &w->steps->log->events[index];
    size_t place = 0;
    const rondo__doctor_event *record = find_record(w, event->object, index, &place);
    stream_row *waiting = get_stream(table, event->stream);
    if (record == NULL) {
        if (!rondo__doctor_is_behind(w->steps, w->step, index)) {
            add_finding(w, RONDO__DOCTOR_RULE_FOREIGN_EVENT, event, false, -1);
        }
        return;
    }
    stream_row *waited = get_stream(table, record->stream);
    if (waiting != NULL && record->stream != event->stream) {
        waiting->is_forked = true;
    }
    if (waited != NULL && record->stream != event->stream && place > waited->last_work) {
        waited->is_joined = true;
    }
}

static void check_streams(walk *w) {
    const rondo__doctor_event *events = w->steps->log->events;
    stream_table table = {.count = 0};
    uint64_t main_stream = 0;
    bool has_main = false;
    for (size_t i = w->step->first; i < w->step->last; i++) {
        const rondo__doctor_kind kind = rondo__doctor_call_kind(events[i].call);
        if (kind == RONDO__DOCTOR_KIND_EVENT_WAIT) {
            follow_event_wait(w, &table, i);
        }
        if (!rondo__doctor_is_work(events[i].call) || kind == RONDO__DOCTOR_KIND_COPY_WAIT ||
            kind == RONDO__DOCTOR_KIND_FILL_WAIT) {
            continue;
        }
        main_stream = has_main ? main_stream : events[i].stream;
        has_main = true;
        stream_row *row = get_stream(&table, events[i].stream);
        if (row != NULL) {
            row->last_work = i;
            row->is_joined = false;
            row->sample = &events[i];
        }
    }
    for (size_t i = 0; i < table.count; i++) {
        const stream_row *row = &table.rows[i];
        if (row->sample != NULL && row->stream != main_stream && !row->is_joined) {
            add_finding(w,
                        row->is_forked ? RONDO__DOCTOR_RULE_UNJOINED_FORK
                                       : RONDO__DOCTOR_RULE_SEPARATE_STREAM,
                        row->sample, true, -1);
        }
    }
}

static int compare_findings(const void *left, const void *right) {
    const rondo__doctor_finding *a = left;
    const rondo__doctor_finding *b = right;
    const int harm_a = (int)rondo__doctor_get_rule(a->rule)->harm;
    const int harm_b = (int)rondo__doctor_get_rule(b->rule)->harm;
    if (harm_a != harm_b) {
        return harm_a - harm_b;
    }
    if (a->cost_us < b->cost_us || a->cost_us > b->cost_us) {
        return a->cost_us < b->cost_us ? 1 : -1;
    }
    return a->count < b->count ? 1 : a->count > b->count ? -1 : 0;
}

// ---- ranks ------------------------------------------------------------------------------------

// The next collective of the reference step, from work `*in_out_place` on; NULL: none.
static const rondo__doctor_event *next_collective(const rondo__doctor_steps *steps,
                                                  size_t *in_out_place) {
    const rondo__doctor_step *step = &steps->steps[steps->reference];
    while (*in_out_place < step->work_count) {
        const rondo__doctor_event *event =
            &steps->log->events[steps->works[step->work_first + (*in_out_place)++]];
        if (rondo__doctor_is_collective(rondo__doctor_log_text(steps->log, event->name))) {
            return event;
        }
    }
    return NULL;
}

void rondo__doctor_compare_ranks(const rondo__doctor_steps *steps, const rondo__doctor_steps *other,
                                 rondo__doctor_findings *findings) {
    size_t place = 0;
    size_t other_place = 0;
    if (steps->period == 0 || other->period == 0) {
        return;
    }
    for (;;) {
        const rondo__doctor_event *one = next_collective(steps, &place);
        const rondo__doctor_event *two = next_collective(other, &other_place);
        if (one == NULL || two == NULL) {
            return;
        }
        if (strcmp(rondo__doctor_log_text(steps->log, one->name),
                   rondo__doctor_log_text(other->log, two->name)) == 0) {
            continue;
        }
        walk w = {.steps = steps, .findings = findings, .works_seen = place - 1, .step_count = 1};
        add_finding(&w, RONDO__DOCTOR_RULE_COLLECTIVE_RANKS, one, true, -1);
        qsort(findings->rows, findings->count, sizeof(findings->rows[0]), compare_findings);
        return;
    }
}

// ---- all of them ------------------------------------------------------------------------------

static void check_graphs(walk *w) {
    size_t count = 0;
    for (size_t i = 0; i < w->step->work_count; i++) {
        count += get_work(w, i)->call == RONDO__DOCTOR_cuGraphLaunch;
    }
    for (size_t i = 0; count >= MANY_GRAPHS_MIN && i < w->step->work_count; i++) {
        if (get_work(w, i)->call == RONDO__DOCTOR_cuGraphLaunch) {
            add_finding(w, RONDO__DOCTOR_RULE_MANY_GRAPHS, get_work(w, i), false, -1);
        }
    }
}

static void check_step(walk *w) {
    find_edges(w);
    w->works_seen = 0;
    w->has_read_back = false;
    for (size_t i = w->step->first; i < w->step->last; i++) {
        read_event(w, i);
    }
    check_streams(w);
    check_graphs(w);
}

static void check_changes(walk *w, const rondo__doctor_compared *compared) {
    rondo__doctor_rule rules[RULES_AT_ONCE];
    int32_t words[RULES_AT_ONCE];
    w->step = &w->steps->steps[compared->indices[0]];
    w->step_count = 1;
    find_edges(w);
    for (size_t place = w->lead; place < w->trail; place++) {
        w->works_seen = place;
        const size_t count =
            rondo__doctor_find_changes(compared, place, rules, words, RULES_AT_ONCE);
        for (size_t i = 0; i < count; i++) {
            add_finding(w, rules[i], get_work(w, place), true, words[i]);
        }
    }
}

// Only some calls were asked for their place: that of the same call in any step, a line of Python
// rather than a symbol.
static void find_place(const rondo__doctor_steps *steps, rondo__doctor_finding *finding) {
    const rondo__doctor_event *events = steps->log->events;
    for (size_t i = 0; i < steps->count && finding->line == 0; i++) {
        const rondo__doctor_step *step = &steps->steps[i];
        size_t works = 0;
        for (size_t k = step->first; step->is_typical && k < step->last; k++) {
            if (events[k].call == finding->call && works == finding->works) {
                finding->place = finding->place != 0 ? finding->place : events[k].place;
                finding->line = finding->line != 0 ? finding->line : events[k].line;
            }
            works += rondo__doctor_is_work(events[k].call);
        }
    }
}

void rondo__doctor_apply_rules(const rondo__doctor_steps *steps,
                               rondo__doctor_findings *out_findings) {
    rondo__doctor_compared compared;
    out_findings->count = 0;
    out_findings->dropped_count = 0;
    if (steps->period == 0) {
        return;
    }
    rondo__doctor_choose_compared(steps, &compared);
    walk w = {.steps = steps, .findings = out_findings, .step_count = compared.count};
    for (size_t i = 0; i < compared.count; i++) {
        w.step = &steps->steps[compared.indices[i]];
        check_step(&w);
    }
    check_changes(&w, &compared);
    for (size_t i = 0; i < out_findings->count; i++) {
        find_place(steps, &out_findings->rows[i]);
    }
    qsort(out_findings->rows, out_findings->count, sizeof(out_findings->rows[0]), compare_findings);
}

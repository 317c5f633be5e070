// doctor/analysis/doctor_steps.c — see doctor_steps.h.
// SPDX-License-Identifier: Apache-2.0
#include "doctor/analysis/doctor_steps.h"

#include <stdlib.h>
#include <string.h>

#include "doctor/analysis/doctor_period.h"

enum { ANCHOR_RUN = 4, QUIET_MIN = 3 };

static const uint64_t BEHIND_WAIT = (uint64_t)1 << 50;
static const double SAME_WITHOUT_SHAPES = 0.95;

// Parts of the marks that are looked at, in quarters of a half: programs begin and end with other
// things than steps.
static const struct {
    unsigned from;
    unsigned to;
} g_parts[] = {{0, 8}, {4, 8}, {2, 7}, {6, 8}, {4, 6}, {7, 8}, {2, 4}};
enum { PART_COUNT = sizeof(g_parts) / sizeof(g_parts[0]) };

bool rondo__doctor_is_work(uint16_t call) {
    switch (rondo__doctor_call_kind(call)) {
        case RONDO__DOCTOR_KIND_LAUNCH:
        case RONDO__DOCTOR_KIND_GRAPH_LAUNCH:
        case RONDO__DOCTOR_KIND_COPY:
        case RONDO__DOCTOR_KIND_FILL:
        case RONDO__DOCTOR_KIND_COPY_WAIT:
        case RONDO__DOCTOR_KIND_FILL_WAIT:
            return true;
        default:
            return false;
    }
}

static bool is_work(const rondo__doctor_event *event) {
    return rondo__doctor_is_work(event->call);
}

static uint64_t add(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 31;
}

uint64_t rondo__doctor_token(const rondo__doctor_event *event, bool is_loose) {
    const bool is_launch = rondo__doctor_call_kind(event->call) == RONDO__DOCTOR_KIND_LAUNCH;
    uint64_t token = add(add(0x5bd1e995, event->call), event->name);
    token = add(token, is_launch && event->name == 0 ? event->object : 0);
    if (is_loose) {
        return token;
    }
    for (int i = 0; i < 3; i++) {
        token = add(add(token, event->grid[i]), event->block[i]);
    }
    return add(add(token, event->shared_bytes), event->bytes);
}

bool rondo__doctor_is_behind(const rondo__doctor_steps *steps, const rondo__doctor_step *step,
                             size_t event) {
    return step->work_count == 0 || event > steps->works[step->work_first + step->work_count - 1];
}

// ---- the period -------------------------------------------------------------------------------

typedef struct stretch {
    size_t from;
    size_t to;
    rondo__doctor_period period;
} stretch;

// As far to both sides as the period goes.
static void extend(const uint64_t *tokens, size_t count, stretch *found) {
    const size_t length = found->period.length;
    while (length > 0 && found->from > 0 &&
           tokens[found->from - 1] == tokens[found->from - 1 + length]) {
        --found->from;
    }
    while (length > 0 && found->to < count && tokens[found->to] == tokens[found->to - length]) {
        ++found->to;
    }
}

static bool find_stretch(const uint64_t *tokens, size_t count, stretch *out) {
    double best = 0.0;
    *out = (stretch){0};
    for (size_t i = 0; i < PART_COUNT; i++) {
        stretch part = {.from = count * g_parts[i].from / 8, .to = count * g_parts[i].to / 8};
        if (!rondo__doctor_find_period(tokens + part.from, part.to - part.from, &part.period)) {
            return false;
        }
        // The longer the better, but for one that repeats clearly worse.
        const double score = (double)(part.to - part.from) * (part.period.match - 0.7);
        if (part.period.length > 0 && score > best) {
            best = score;
            *out = part;
        }
        if (part.period.match > 0.97) {
            break;
        }
    }
    extend(tokens, count, out);
    return true;
}

// ---- where steps begin ------------------------------------------------------------------------

// The time ahead of a work, since the one before, in which the host waited or was away; the most
// where there is none before.
static uint64_t find_gap(const rondo__doctor_steps *steps, size_t mark) {
    const rondo__doctor_event *events = steps->log->events;
    const rondo__doctor_event *now = &events[steps->marks[mark]];
    size_t earlier = mark;
    if (mark == 0) {
        return UINT64_MAX;
    }
    while (earlier > 0 && (earlier == mark || !is_work(&events[steps->marks[earlier]]))) {
        --earlier;
    }
    const rondo__doctor_event *before = &events[steps->marks[earlier]];
    const uint64_t end = before->begin_ns + before->duration_ns;
    // Behind a wait rather than behind any other pause.
    const uint64_t waited = earlier + 1 < mark ? BEHIND_WAIT : 0;
    return waited + (now->begin_ns > end ? now->begin_ns - end : 0);
}

static uint64_t hash_run(const uint64_t *tokens, size_t count) {
    uint64_t hash = 0;
    for (size_t i = 0; i < count; i++) {
        hash = add(hash, tokens[i]);
    }
    return hash;
}

static size_t count_runs(const uint64_t *tokens, const stretch *found, size_t run,
                         uint64_t wanted) {
    size_t count = 0;
    for (size_t i = found->from; i + run <= found->to; i++) {
        count += hash_run(tokens + i, run) == wanted;
    }
    return count;
}

// Where steps begin: inside of a run of tokens that comes once a step.
typedef struct anchor {
    size_t place;
    size_t back;  // tokens of the run ahead of the step
    size_t run;   // 0: no such run was found
    uint64_t hash;
} anchor;

// The shortest run around `place` that comes once a step; shorter ones are disturbed less often.
static anchor make_anchor(const uint64_t *tokens, const stretch *found, size_t place) {
    const size_t repeats = (found->to - found->from) / found->period.length;
    anchor made = {.place = place};
    for (size_t run = 1; run <= ANCHOR_RUN && made.run == 0; run *= 2) {
        for (size_t back = 0; back < run && made.run == 0; back++) {
            if (place < found->from + back || place - back + run > found->to) {
                continue;
            }
            const uint64_t hash = hash_run(tokens + place - back, run);
            if (count_runs(tokens, found, run, hash) <= repeats + 1) {
                made = (anchor){.place = place, .back = back, .run = run, .hash = hash};
            }
        }
    }
    return made;
}

// At the work of a step that has the longest way from the one before. Ways are the least of several
// steps, since each may be disturbed.
static anchor find_anchor(const rondo__doctor_steps *steps, const uint64_t *tokens,
                          const stretch *found) {
    const size_t length = found->period.length;
    const size_t repeats = (found->to - found->from) / length;
    const size_t looked_at = repeats < 8 ? repeats : 8;
    // In the middle, since programs begin and end with other things.
    const size_t start = found->from + (repeats - looked_at) / 2 * length;
    anchor best = {.place = start};
    uint64_t longest = 0;
    for (size_t i = 0; i < length; i++) {
        uint64_t least = UINT64_MAX;
        for (size_t k = 0; k < looked_at; k++) {
            const size_t mark = start + k * length + i;
            const bool is_start = is_work(&steps->log->events[steps->marks[mark]]);
            const uint64_t gap = is_start ? find_gap(steps, mark) : 0;
            least = gap < least ? gap : least;
        }
        if (least <= longest) {
            continue;
        }
        const anchor made = make_anchor(tokens, found, start + i);
        if (made.run > 0 || best.run == 0) {
            longest = least;
            best = made;
        }
    }
    return best;
}

static bool add_step(rondo__doctor_steps *steps, size_t from, size_t to, size_t *room) {
    if (steps->count == *room) {
        *room = *room > 0 ? *room * 2 : 64;
        void *larger = realloc(steps->steps, *room * sizeof(*steps->steps));
        if (larger == NULL) {
            return false;
        }
        steps->steps = larger;
    }
    const rondo__doctor_event *events = steps->log->events;
    const size_t first = steps->marks[from];
    const size_t last = steps->marks[to];
    rondo__doctor_step step = {.first = first,
                               .last = last,
                               .begin_ns = events[first].begin_ns,
                               .length_ns = events[last].begin_ns - events[first].begin_ns,
                               .is_typical = (events[last].flags & RONDO__DOCTOR_AFTER_LOSS) == 0};
    for (size_t i = first; i < last; i++) {
        step.is_timed = step.is_timed || (events[i].flags & RONDO__DOCTOR_TIMED) != 0;
        step.is_typical = step.is_typical && (events[i].flags & RONDO__DOCTOR_AFTER_LOSS) == 0 &&
                          (events[i].flags & RONDO__DOCTOR_IN_CAPTURE) == 0;
    }
    steps->steps[steps->count++] = step;
    return true;
}

static int compare_counts(const void *left, const void *right) {
    const size_t a = *(const size_t *)left;
    const size_t b = *(const size_t *)right;
    return a < b ? -1 : a > b ? 1 : 0;
}

// The one that comes most often. `counts` is sorted then.
static size_t find_commonest(size_t *counts, size_t count) {
    size_t best = 0;
    size_t best_length = 0;
    size_t length = 0;
    qsort(counts, count, sizeof(*counts), compare_counts);
    for (size_t i = 0; i < count; i++) {
        length = i > 0 && counts[i] == counts[i - 1] ? length + 1 : 1;
        if (length > best_length) {
            best_length = length;
            best = counts[i];
        }
    }
    return best;
}

// The works of each step, and of most steps. False: out of memory.
static bool count_works(rondo__doctor_steps *steps) {
    size_t work = 0;
    size_t *counts = malloc((steps->count + 1) * sizeof(*counts));
    if (counts == NULL) {
        return false;
    }
    for (size_t i = 0; i < steps->count; i++) {
        rondo__doctor_step *step = &steps->steps[i];
        while (work < steps->work_count && steps->works[work] < step->first) {
            ++work;
        }
        step->work_first = work;
        while (work < steps->work_count && steps->works[work] < step->last) {
            ++work;
        }
        step->work_count = work - step->work_first;
        counts[i] = step->work_count;
    }
    steps->period = find_commonest(counts, steps->count);
    free(counts);
    for (size_t i = 0; i < steps->count; i++) {
        steps->steps[i].is_typical =
            steps->steps[i].is_typical && steps->steps[i].work_count == steps->period;
    }
    return true;
}

static bool cut(rondo__doctor_steps *steps, const uint64_t *tokens, const stretch *found) {
    const size_t length = found->period.length;
    const anchor begin_at = find_anchor(steps, tokens, found);
    size_t begin = SIZE_MAX;
    size_t room = 0;
    for (size_t i = found->from; i < found->to; i++) {
        const bool has_run = begin_at.run > 0 && i >= found->from + begin_at.back &&
                             i - begin_at.back + begin_at.run <= found->to;
        const bool is_begin = begin_at.run > 0 ? has_run && hash_run(tokens + i - begin_at.back,
                                                                     begin_at.run) == begin_at.hash
                                               : i % length == begin_at.place % length;
        if (!is_begin) {
            continue;
        }
        if (begin != SIZE_MAX && !add_step(steps, begin, i, &room)) {
            return false;
        }
        begin = i;
    }
    return true;
}

static void count_quiet(rondo__doctor_steps *steps) {
    size_t typical = 0;
    while (steps->quiet_count < steps->count && !steps->steps[steps->quiet_count].is_timed) {
        typical += steps->steps[steps->quiet_count++].is_typical;
    }
    steps->quiet_count = typical >= QUIET_MIN ? steps->quiet_count : steps->count;
}

bool rondo__doctor_is_chosen(const rondo__doctor_steps *steps, size_t step,
                             rondo__doctor_choice choice) {
    const rondo__doctor_step *own = &steps->steps[step];
    const bool is_late = choice == RONDO__DOCTOR_QUIET && step >= steps->quiet_count;
    return own->is_typical && (choice == RONDO__DOCTOR_TYPICAL || (!own->is_timed && !is_late));
}

// The typical step that is in the middle.
static void choose_reference(rondo__doctor_steps *steps) {
    size_t typical = 0;
    for (size_t i = 0; i < steps->count; i++) {
        steps->typical_count += steps->steps[i].is_typical;
    }
    for (size_t i = 0; i < steps->count && typical <= steps->typical_count / 2; i++) {
        if (steps->steps[i].is_typical) {
            ++typical;
            steps->reference = i;
        }
    }
}

static bool list_marks(rondo__doctor_steps *steps) {
    const rondo__doctor_log *log = steps->log;
    steps->works = malloc((log->event_count + 1) * sizeof(*steps->works));
    steps->marks = malloc((log->event_count + 1) * sizeof(*steps->marks));
    if (steps->works == NULL || steps->marks == NULL) {
        return false;
    }
    for (size_t i = 0; i < log->event_count; i++) {
        const rondo__doctor_event *event = &log->events[i];
        if ((event->flags & RONDO__DOCTOR_IN_CAPTURE) != 0) {
            continue;
        }
        if (is_work(event)) {
            steps->works[steps->work_count++] = i;
        }
        if (is_work(event) || rondo__doctor_call_kind(event->call) == RONDO__DOCTOR_KIND_WAIT) {
            steps->marks[steps->mark_count++] = i;
        }
    }
    return true;
}

static bool find_as(const rondo__doctor_steps *steps, bool is_loose, uint64_t *tokens,
                    stretch *out) {
    for (size_t i = 0; i < steps->mark_count; i++) {
        const rondo__doctor_event *event = &steps->log->events[steps->marks[i]];
        tokens[i] = (rondo__doctor_token(event, is_loose) & ~(uint64_t)1) | !is_work(event);
    }
    return find_stretch(tokens, steps->mark_count, out);
}

// With shapes, unless several steps in a row make a period then, or none does.
static bool find(rondo__doctor_steps *steps, uint64_t *tokens) {
    stretch loose = {0};
    stretch found = {0};
    if (!find_as(steps, true, tokens, &loose) || !find_as(steps, false, tokens, &found)) {
        return false;
    }
    const size_t length = found.period.length;
    const size_t shorter = loose.period.length;
    if (shorter > 0 && (length == 0 || (shorter < length && length % shorter == 0 &&
                                        loose.period.match >= SAME_WITHOUT_SHAPES))) {
        steps->is_loose = true;
        if (!find_as(steps, true, tokens, &found)) {
            return false;
        }
    }
    if (found.period.length == 0) {
        return true;
    }
    steps->match = found.period.match;
    if (!cut(steps, tokens, &found)) {
        return false;
    }
    if (!count_works(steps)) {
        return false;
    }
    choose_reference(steps);
    count_quiet(steps);
    steps->period = steps->typical_count > 0 ? steps->period : 0;
    return rondo__doctor_name_step(steps);
}

bool rondo__doctor_find_steps(const rondo__doctor_log *log, rondo__doctor_steps *out_steps) {
    *out_steps = (rondo__doctor_steps){.log = log};
    bool is_done = list_marks(out_steps);
    uint64_t *tokens = is_done ? malloc((out_steps->mark_count + 1) * sizeof(*tokens)) : NULL;
    is_done = tokens != NULL && find(out_steps, tokens);
    free(tokens);
    if (!is_done) {
        rondo__doctor_steps_clear(out_steps);
    }
    return is_done;
}

void rondo__doctor_steps_clear(rondo__doctor_steps *steps) {
    free(steps->works);
    free(steps->marks);
    free(steps->steps);
    memset(steps, 0, sizeof(*steps));
}

bool rondo__doctor_launches_graphs(const rondo__doctor_steps *steps) {
    size_t graphs = 0;
    for (size_t i = 0; i < steps->period; i++) {
        const size_t work = steps->steps[steps->reference].work_first + i;
        graphs += rondo__doctor_call_kind(steps->log->events[steps->works[work]].call) ==
                  RONDO__DOCTOR_KIND_GRAPH_LAUNCH;
    }
    return steps->period > 0 && 2 * graphs >= steps->period;
}

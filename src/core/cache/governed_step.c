// cache/governed_step.c — see governed_step.h.
// SPDX-License-Identifier: Apache-2.0
#include "cache/governed_step.h"

#include <stdio.h>

#include "backend/backend.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"

enum {
    FIRST_STEPS = 4,       // that are not measured
    SETTLE_STEPS = 64,     // until then blocks must agree,
    SETTLE_DIVISOR = 4,    // to a quarter
    FIRST_TRIAL = 16,      // rule B, of a graph: steps before it
    FIRST_SHARE = 4,       // and what its capture may be of the time so far: a quarter
    BLOCK_STEPS = 8,       // at least,
    BLOCK_NS = 500000,     // and so long; but
    BLOCK_MOST = 5000000,  // no longer
    ROUND_BLOCKS = 3,
    ROUND_STEPS = ROUND_BLOCKS * BLOCK_STEPS + 1,
    SPACING_LEAST = 64,
    SPACING_MOST = 4096,
    TRIAL_SHARE = 16,    // rules B and C, of the time so far
    CUTS_MOST = 4,       // trials that may end by rule C before later ones have a smaller share
    LATER_SHARE = 100,   // rule B
    SLOWER_DIVISOR = 8,  // rules D and E: by more than an eighth
    FAILURES_MOST = 8,   // captures that failed: four times the steps for each
    TRIAL_STEPS_MOST = 1 << 16,
};

// Before one was measured, a capture is expected to take as long as four eager steps.
static const double first_capture_ratio = 4.0;

// ---- life -------------------------------------------------------------------------------------

static void forget_events(rondo__governed_step *step) {
    for (size_t i = 0; i < RONDO__STEP_MARKS; ++i) {
        rondo_event_destroy(step->events[i]);
        step->events[i] = NULL;
    }
}

rondo_status rondo__governed_step_create(rondo_device *device, bool has_graph,
                                         rondo__governed_step **out_step) {
    rondo__governed_step *step = rondo__calloc(1, sizeof *step);
    *out_step = step;
    if (step == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    step->is_replay = step->has_graph = step->keeps_graph = has_graph;
    step->left = FIRST_STEPS;
    step->spacing = SPACING_LEAST;
    rondo_status status = RONDO_STATUS_OK;
    for (size_t i = 0; i < RONDO__STEP_MARKS && status == RONDO_STATUS_OK; ++i) {
        status = rondo_event_create(device, RONDO_EVENT_TIMED, &step->events[i]);
    }
    if (status != RONDO_STATUS_OK) {
        rondo__governed_step_destroy(step);
        *out_step = NULL;
    }
    return status;
}

void rondo__governed_step_destroy(rondo__governed_step *step) {
    if (step != NULL) {
        forget_events(step);
        rondo__free(step);
    }
}

// ---- times ------------------------------------------------------------------------------------

static uint64_t now_ns(const rondo__governed_step *step) {
    return step->meter != NULL ? step->meter->now_ns(step->meter->user_data)
                               : rondo__clock_now_ns();
}

// The calls below leave no error record: a failure ends the measuring of the device's time.
static void note_failure(rondo__governed_step *step, rondo_status status,
                         const rondo_error *saved) {
    if (status != RONDO_STATUS_OK) {
        forget_events(step);
    }
    rondo__error_restore(saved);
}

static bool has_planted_marks(const rondo__governed_step *step) {
    return step->meter != NULL && step->meter->stream_ns != NULL;
}

static void mark(rondo__governed_step *step, rondo__step_mark what, rondo_stream *stream) {
    rondo_error saved;
    if (has_planted_marks(step)) {
        step->planted_ns[what] = step->meter->stream_ns(step->meter->user_data);
    } else if (step->events[what] != NULL) {
        rondo__error_save(&saved);
        note_failure(step, rondo_event_record(step->events[what], stream), &saved);
    }
}

// Asked of the backend itself: the program's captures in global mode forbid the public call.
static bool is_reached(rondo__governed_step *step, rondo__step_mark what) {
    rondo_event *event = step->events[what];
    rondo_error saved;
    bool is_complete = true;
    if (has_planted_marks(step)) {
        return step->planted_ns[what] <= now_ns(step);
    }
    if (event != NULL) {
        rondo__error_save(&saved);
        note_failure(step, event->device->backend->query_event(event, &is_complete), &saved);
    }
    return is_complete;
}

static uint64_t get_device_ns(rondo__governed_step *step) {
    rondo_event *start = step->events[RONDO__STEP_START];
    rondo_event *past = step->events[RONDO__STEP_PAST];
    rondo_error saved;
    int64_t ns = 0;
    if (has_planted_marks(step)) {
        return step->planted_ns[RONDO__STEP_PAST] - step->planted_ns[RONDO__STEP_START];
    }
    if (start != NULL) {
        rondo__error_save(&saved);
        note_failure(step, rondo_event_get_elapsed_ns(start, past, &ns), &saved);
    }
    return ns > 0 ? (uint64_t)ns : 0;
}

static double get_ns(const rondo__governed_step *step, bool is_replay) {
    return (double)step->ways[is_replay].median_ns;
}

// ---- trials -----------------------------------------------------------------------------------

static void wait_steps(rondo__governed_step *step, uint32_t count) {
    step->phase = RONDO__STEPS_UNMEASURED;
    step->left = count;
}

static void begin_round(rondo__governed_step *step, uint32_t unmeasured) {
    step->blocks = 0;
    step->phase = RONDO__STEPS_FIRST;
    step->left = unmeasured;
}

static double get_capture_ns(const rondo__governed_step *step) {
    const bool captures = !step->is_replay && !step->has_graph;
    return !captures              ? 0
           : step->capture_ns > 0 ? step->capture_ns
                                  : first_capture_ratio * get_ns(step, false);
}

// What a trial should cost: the capture, and what a round of steps takes longer.
static double get_trial_ns(const rondo__governed_step *step) {
    const double own = get_ns(step, step->is_replay);
    const double other = get_ns(step, !step->is_replay);
    const double least = (double)ROUND_BLOCKS * BLOCK_NS / (other > 1 ? other : 1);
    const double steps = least > ROUND_STEPS ? least : ROUND_STEPS;
    return get_capture_ns(step) + (other > own ? steps * (other - own) : 0);
}

// Rule B, of the first trial: steps until it is due; 0: it is.
static double get_first_wait(const rondo__governed_step *step) {
    const double round_ns = (double)ROUND_BLOCKS * BLOCK_NS;
    const double capture_ns = get_capture_ns(step);
    const double cost_ns = capture_ns > round_ns ? capture_ns : round_ns;
    const bool captures = capture_ns > 0;
    const double own_ns = get_ns(step, step->is_replay);
    const double missing_ns = cost_ns * (captures ? FIRST_SHARE : TRIAL_SHARE) - step->time_ns;
    const double by_time = missing_ns > 0 ? missing_ns / (own_ns > 1 ? own_ns : 1) : 0;
    const double by_count =
        (double)(captures ? FIRST_TRIAL : SPACING_LEAST) - (double)step->step_count;
    return by_time > by_count ? by_time : by_count > 0 ? by_count : 0;
}

// Rule B.
static bool wants_trial(const rondo__governed_step *step) {
    const uint32_t failures =
        step->failure_count < FAILURES_MOST ? step->failure_count : FAILURES_MOST;
    if (step->trial_count == 0 || step->is_unsure) {
        return step->is_unsure || get_first_wait(step) <= 0;
    }
    const bool has_shown = step->trial_count > step->cut_count || step->cut_count >= CUTS_MOST;
    return step->step_count - step->trial_step >= (uint64_t)SPACING_LEAST << (2 * failures) &&
           (step->lost_ns + get_trial_ns(step)) * (has_shown ? LATER_SHARE : TRIAL_SHARE) <=
               step->time_ns;
}

static void begin_trial(rondo__governed_step *step, uint64_t ns) {
    step->is_replay = !step->is_replay;
    step->is_trial = true;
    step->is_unsure = false;
    step->trial_count += 1;
    step->trial_step = step->step_count;
    step->trial_ns = ns;
    step->spent_ns = 0;
    begin_round(step, 1);
}

// What the trial's steps have taken beyond those of the other way, and its capture.
static double get_trial_loss(const rondo__governed_step *step, uint64_t ns) {
    return (double)(ns - step->trial_ns) -
           (double)(step->step_count - step->trial_step) * get_ns(step, !step->is_replay);
}

// Without the capture.
static double get_steps_loss(const rondo__governed_step *step, uint64_t ns) {
    return get_trial_loss(step, ns) - step->spent_ns;
}

static void change_way(rondo__governed_step *step) {
    step->gives_up = step->is_replay && !step->keeps_graph;
    step->is_replay = !step->is_replay;
}

// Rule D.
static bool is_better(const rondo__governed_step *step) {
    const double eager = get_ns(step, false);
    const double replay = get_ns(step, true);
    return step->is_replay ? replay <= eager : replay > eager + eager / SLOWER_DIVISOR;
}

static void end_trial(rondo__governed_step *step, uint64_t ns, bool is_whole) {
    const double loss = get_trial_loss(step, ns);
    step->time_ns += (double)(ns - step->trial_ns);
    step->counted = step->step_count;
    step->lost_ns += loss > 0 ? loss : 0;
    step->cut_count += !is_whole;
    step->is_trial = false;
    step->is_paused = false;
    step->may_return = is_whole && is_better(step);
    if (step->may_return) {
        step->spacing = SPACING_LEAST;
    } else {
        change_way(step);
    }
    wait_steps(step, step->spacing);
}

// Rule E. A graph is kept until it is known that eager steps stay.
static void end_change(rondo__governed_step *step) {
    const double other = get_ns(step, !step->is_replay);
    step->may_return = false;
    if (get_ns(step, step->is_replay) > other + other / SLOWER_DIVISOR) {
        change_way(step);
    } else {
        step->gives_up = !step->is_replay && !step->keeps_graph;
        step->is_unsure =
            step->is_replay && step->trial_count == 1 && step->trial_step < SETTLE_STEPS;
    }
    wait_steps(step, step->spacing);
}

// Rule A: whether the blocks of the round took about the same.
static bool is_settled(const rondo__governed_step *step) {
    const rondo__cost *cost = &step->ways[step->is_replay];
    uint64_t least = cost->samples[0];
    uint64_t most = least;
    for (size_t i = 1; i < ROUND_BLOCKS; ++i) {
        least = cost->samples[i] < least ? cost->samples[i] : least;
        most = cost->samples[i] > most ? cost->samples[i] : most;
    }
    return most - least <= least / SETTLE_DIVISOR;
}

// Rule A: steps until the next round.
static uint32_t get_spacing(const rondo__governed_step *step) {
    const double until_trial = get_first_wait(step) - ROUND_STEPS;
    if (step->trial_count > 0 || until_trial >= step->spacing) {
        return step->spacing;
    }
    return until_trial > 0 ? (uint32_t)until_trial : 0;
}

// The blocks of the round have told what steps take.
static void end_round(rondo__governed_step *step, uint64_t ns) {
    if (step->is_trial) {
        end_trial(step, ns, true);
        return;
    }
    step->time_ns += (double)(step->step_count - step->counted) * get_ns(step, step->is_replay);
    step->counted = step->step_count;
    if (step->may_return) {
        end_change(step);
    } else if (step->trial_count == 0 && step->step_count < SETTLE_STEPS && !is_settled(step)) {
        begin_round(step, 0);
    } else if (wants_trial(step)) {
        begin_trial(step, ns);
    } else {
        wait_steps(step, get_spacing(step));
        step->spacing *= step->trial_count > 0 && step->spacing < SPACING_MOST ? 2 : 1;
    }
}

// ---- blocks -----------------------------------------------------------------------------------

static void begin_block(rondo__governed_step *step, rondo_stream *stream) {
    mark(step, RONDO__STEP_START, stream);
    step->is_behind = !is_reached(step, RONDO__STEP_START);
    step->stream = stream;
    step->steps = 0;
    step->is_over = false;
    step->phase = RONDO__STEPS_BLOCK;
    step->start_ns = now_ns(step);
}

static void end_block(rondo__governed_step *step) {
    const uint64_t device_ns = get_device_ns(step);
    const uint64_t calls_ns = step->past_ns - step->start_ns;
    const bool is_device = device_ns > 0 && (step->is_behind || device_ns > calls_ns);
    rondo__cost *cost = &step->ways[step->is_replay];
    if (step->blocks == 0) {
        *cost = (rondo__cost){.median_ns = 0};
    }
    rondo__cost_add(cost, (is_device ? device_ns : calls_ns) / step->steps);
    step->blocks += 1;
    step->phase = RONDO__STEPS_FIRST;
    step->left = 0;
}

// Rule C.
static bool is_too_long(const rondo__governed_step *step, uint64_t ns) {
    return get_steps_loss(step, ns) * TRIAL_SHARE > step->time_ns ||
           step->step_count - step->trial_step > TRIAL_STEPS_MOST;
}

// Between two steps, while something is measured.
static void go_on(rondo__governed_step *step, rondo_stream *stream) {
    const uint64_t ns = now_ns(step);
    if (step->is_trial && is_too_long(step, ns)) {
        end_trial(step, ns, false);
        return;
    }
    if (step->phase == RONDO__STEPS_BLOCK && step->is_over) {
        step->past_ns = ns;
        step->phase = RONDO__STEPS_ENDED;
    }
    if (step->phase == RONDO__STEPS_ENDED && is_reached(step, RONDO__STEP_PAST)) {
        end_block(step);
        if (step->blocks == ROUND_BLOCKS) {
            end_round(step, ns);
        }
    }
    if (step->phase == RONDO__STEPS_FIRST && step->left-- == 0) {
        begin_block(step, stream);
    }
    step->is_paused =
        step->is_trial && step->phase == RONDO__STEPS_ENDED && get_steps_loss(step, ns) < -BLOCK_NS;
}

// ---- steps ------------------------------------------------------------------------------------

static rondo__choice choose(rondo__governed_step *step) {
    if (step->gives_up) {
        step->gives_up = false;
        step->has_graph = false;
        return RONDO__CHOICE_GIVE_UP;
    }
    const bool is_replay = step->is_replay != step->is_paused;
    if (!is_replay || step->has_graph) {
        return is_replay ? RONDO__CHOICE_REPLAY : RONDO__CHOICE_EAGER;
    }
    step->capture_start_ns = now_ns(step);
    return RONDO__CHOICE_CAPTURE;
}

rondo__choice rondo__governed_step_begin(rondo__governed_step *step, rondo_stream *stream) {
    if (step->phase != RONDO__STEPS_UNMEASURED) {
        go_on(step, stream);
    } else if (step->left == 0) {
        begin_round(step, 0);
        go_on(step, stream);
    } else {
        --step->left;
    }
    step->choice = choose(step);
    ++step->step_count;
    return step->choice;
}

void rondo__governed_step_note_graph(rondo__governed_step *step) {
    step->capture_ns = step->spent_ns = (double)(now_ns(step) - step->capture_start_ns);
    step->has_graph = true;
    step->failure_count = 0;
}

void rondo__governed_step_end(rondo__governed_step *step, rondo_stream *stream,
                              bool is_like_others) {
    if (step->phase != RONDO__STEPS_BLOCK) {
        return;
    }
    if (!is_like_others || step->stream != stream) {
        step->phase = RONDO__STEPS_FIRST;
        step->left = 0;
        return;
    }
    ++step->steps;
    const uint64_t ns = now_ns(step) - step->start_ns;
    const double other_ns = step->is_trial ? step->steps * get_ns(step, !step->is_replay) : 0;
    step->is_over = ns >= BLOCK_MOST || (step->steps >= BLOCK_STEPS &&
                                         (ns >= BLOCK_NS || other_ns >= (double)BLOCK_NS));
    if (step->is_over) {
        mark(step, RONDO__STEP_PAST, stream);
    }
}

void rondo__governed_step_lose(rondo__governed_step *step) {
    step->failure_count += step->choice == RONDO__CHOICE_CAPTURE && !step->has_graph;
    if (step->is_trial) {
        end_trial(step, now_ns(step), false);
    }
    step->is_replay = false;
    step->has_graph = false;
    step->gives_up = false;
    step->may_return = false;
    step->is_unsure = false;
    wait_steps(step, step->spacing);
}

// ---- in words ---------------------------------------------------------------------------------

static void explain(const rondo__governed_step *step, char *out, size_t bytes) {
    const char *const way = step->is_replay ? "replay" : "eager";
    const rondo__cost *own = &step->ways[step->is_replay];
    const rondo__cost *other = &step->ways[!step->is_replay];
    const rondo__duration own_ns = rondo__duration_format((double)own->median_ns);
    const rondo__duration other_ns = rondo__duration_format((double)other->median_ns);
    if (step->step_count == 0) {
        (void)snprintf(out, bytes, "not run yet");
    } else if (step->is_trial || own->sample_count == 0) {
        (void)snprintf(out, bytes, "%s: %s", way,
                       step->is_trial ? "it is tried now" : "not measured yet");
    } else if (step->failure_count > 0) {
        (void)snprintf(out, bytes, "%s: %s; no graph came of the last %u", way, own_ns.text,
                       (unsigned)step->failure_count);
    } else if (other->sample_count > 0) {
        (void)snprintf(out, bytes, "%s: %s against %s %s", way, own_ns.text, other_ns.text,
                       step->is_replay ? "eager" : "replayed");
    } else {
        (void)snprintf(out, bytes, "%s: %s; %s", way, own_ns.text,
                       step->trial_count == 0
                           ? "the other way is not tried yet"
                           : "the other way took longer, and was not tried long");
    }
}

void rondo__governed_step_describe(const rondo__governed_step *step, rondo__text *text,
                                   bool is_json) {
    char line[256];
    explain(step, line, sizeof line);
    if (!is_json) {
        const rondo__duration lost = rondo__duration_format(step->lost_ns);
        const rondo__duration all = rondo__duration_format(step->time_ns);
        rondo__text_append(text, "graphs measured: %s; trials cost %s of %s\n", line, lost.text,
                           all.text);
        return;
    }
    rondo__text_append(text,
                       "{\"choice\": \"%s\", \"reason\": ", step->is_replay ? "replay" : "eager");
    rondo__text_append_json(text, line);
    rondo__text_append(text,
                       ", \"eager_ns\": %llu, \"replay_ns\": %llu, \"trial_ns\": %.0f, "
                       "\"step_count\": %llu}",
                       (unsigned long long)step->ways[0].median_ns,
                       (unsigned long long)step->ways[1].median_ns, step->lost_ns,
                       (unsigned long long)step->step_count);
}

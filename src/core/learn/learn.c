// learn/learn.c — see learn.h.
//
//   first trials ──> explain ──> proof: fresh draws, each foretold ──> proved
//                     ^    |                │ one is not
//                     |    | two formulas fit  v
//                     +----+-- one more trial, which joins the others
//
// The first trials take both ends of every domain at once, then values at random, then the run's.
// Where the proof meets a recording that was not foretold, that joins the trials, and the step is
// explained anew, and the proof begins anew: so the first ones need not be many, and all draws that
// are counted were foretold by what stands in the end. A step that cannot be explained after that
// is refused.
// SPDX-License-Identifier: Apache-2.0
#include "learn/learn.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "learn/draw_plan.h"

enum { SURPRISES_MAX = 12, TRIES = 16, PAIR_SEED_STEP = 4096 };

bool rondo__learn_proves = true;

typedef struct learning {
    rondo__trials trials;
    const rondo__arguments *arguments;
    const rondo__lesson_plan *plan;
    rondo_stream *stream;
    rondo__recording recordings[RONDO__RECORDINGS_MAX];
    size_t count;
    rondo__values wanted;
    rondo__lesson *lesson;
    uint64_t pair_seed;
} learning;

static bool is_refused(const learning *l) {
    return l->lesson->finding.refusal != RONDO_REFUSAL_NONE;
}

// ---- trials -----------------------------------------------------------------------------------

// Records one more trial for the values that `recording` has, and compares it with the first. The
// lesson has a finding when that was the end.
static rondo_status record(learning *l, rondo__recording *recording) {
    rondo__lesson *lesson = l->lesson;
    const rondo__trial_memory memory = {.made_up = l->trials.made_up,
                                        .made_up_count = l->trials.site_count,
                                        .reference = l->count > 0 ? &l->recordings[0] : NULL};
    const uint64_t start = rondo__clock_now_ns();
    RETURN_IF_ERROR(rondo__step_record(l->trials.step, l->trials.probe, l->stream, &memory,
                                       recording, &lesson->step_status, &lesson->finding));
    lesson->recording_ns += rondo__clock_now_ns() - start;
    ++lesson->recording_count;
    if (!is_refused(l) && l->count > 0 &&
        !rondo__recordings_match(&l->recordings[0], recording, &lesson->finding)) {
        return rondo__recordings_list_differences(&l->recordings[0], recording, &lesson->findings);
    }
    return RONDO_STATUS_OK;
}

// Whether the step failed for what was drawn, which is then no finding yet.
static bool take_failure(learning *l, char message[RONDO__MESSAGE_BYTES]) {
    rondo__finding *finding = &l->lesson->finding;
    if (finding->refusal != RONDO_REFUSAL_STEP_FAILED) {
        return false;
    }
    memcpy(message, finding->message, sizeof finding->message);
    *finding = (rondo__finding){.refusal = RONDO_REFUSAL_NONE};
    return true;
}

// values     NULL: drawn, as `kind` says; otherwise those, with addresses that are drawn.
static rondo_status add_trial(learning *l, rondo__draw_kind kind, const rondo__values *values) {
    const rondo__draw_request request = {.kind = kind};
    if (l->count >= RONDO__RECORDINGS_MAX) {
        rondo__finding_set(&l->lesson->finding, RONDO_REFUSAL_AMBIGUOUS, SIZE_MAX,
                           "%zu recordings were not enough to tell explanations apart", l->count);
        return RONDO_STATUS_OK;
    }
    rondo__recording *recording = &l->recordings[l->count];
    *recording = (rondo__recording){0};
    RETURN_IF_ERROR(rondo__values_init(l->arguments, &recording->values));
    if (values != NULL) {
        rondo__draw_request fixed = request;
        rondo__values_copy(l->arguments, &recording->values, values);
        for (size_t i = 0; i < l->arguments->count; ++i) {
            const bool is_pointer = l->arguments->list[i].kind == RONDO_ARGUMENT_POINTER;
            fixed.pinned |= is_pointer ? 0 : UINT64_C(1) << i;
        }
        rondo__trials_draw(&l->trials, &fixed, &recording->values);
    } else {
        rondo__trials_draw(&l->trials, &request, &recording->values);
    }
    rondo_status status = record(l, recording);
    char message[RONDO__MESSAGE_BYTES];
    const bool is_choice = kind < RONDO__DRAW_EVEN || values == &l->wanted;
    if (status == RONDO_STATUS_OK && is_choice && take_failure(l, message)) {
        // An end that the step refuses: the proof looks which argument's it is.
        rondo__recording_deinit(recording);
        return add_trial(l, RONDO__DRAW_ANY, NULL);
    }
    ++l->count;  // now, so that it is no reference to itself, and is freed in any case
    return status;
}

// ---- what the step refuses --------------------------------------------------------------------

static rondo_status exclude(learning *l, const rondo__values *values, uint64_t pinned,
                            const rondo__pair *pair, const char *message) {
    if (l->lesson->exclusions.count == RONDO__EXCLUSIONS_MAX) {
        rondo__finding_set(&l->lesson->finding, RONDO_REFUSAL_STEP_FAILED, SIZE_MAX,
                           "for more than %d combinations of values; for the last one: %s",
                           (int)RONDO__EXCLUSIONS_MAX, message);
        return RONDO_STATUS_OK;
    }
    return rondo__exclusions_add(&l->lesson->exclusions, l->arguments, values, pinned, pair,
                                 message);
}

// Draws what the request says; *out_failed: the step failed for it.
static rondo_status draw_and_record(learning *l, const rondo__draw_request *request,
                                    rondo__recording *recording, bool *out_failed,
                                    char message[RONDO__MESSAGE_BYTES]) {
    rondo__trials_draw(&l->trials, request, &recording->values);
    RETURN_IF_ERROR(record(l, recording));
    *out_failed = take_failure(l, message);
    return RONDO_STATUS_OK;
}

// Of several pairs, which it is; where each by itself is fine, all of them.
static rondo_status exclude_pairs(learning *l, const rondo__draw_request *request,
                                  const rondo__values *values, const char *message) {
    const size_t former = l->lesson->exclusions.count;
    for (size_t i = 0; request->pair_count > 1 && i < request->pair_count && !is_refused(l); ++i) {
        rondo__recording recording = {0};
        rondo__draw_request alone = {.kind = request->kind,
                                     .pairs = {request->pairs[i]},
                                     .pair_count = 1,
                                     .pair_seed = request->pair_seed};
        bool failed = false;
        char own[RONDO__MESSAGE_BYTES];
        rondo_status status = rondo__values_init(l->arguments, &recording.values);
        if (status == RONDO_STATUS_OK) {
            status = draw_and_record(l, &alone, &recording, &failed, own);
        }
        if (status == RONDO_STATUS_OK && failed) {
            status = exclude(l, &recording.values, 0, &request->pairs[i], own);
        }
        rondo__recording_deinit(&recording);
        RETURN_IF_ERROR(status);
    }
    for (size_t i = 0; l->lesson->exclusions.count == former && i < request->pair_count; ++i) {
        RETURN_IF_ERROR(exclude(l, values, 0, &request->pairs[i], message));
    }
    return RONDO_STATUS_OK;
}

static rondo_status take_exclusion(learning *l, const rondo__draw_request *request,
                                   const rondo__values *values, const char *message) {
    if (request->pair_count > 0) {
        return exclude_pairs(l, request, values, message);
    }
    if (request->pinned != 0) {
        return exclude(l, values, request->pinned, NULL, message);
    }
    rondo__finding_set(&l->lesson->finding, RONDO_REFUSAL_STEP_FAILED, SIZE_MAX, "%s", message);
    return RONDO_STATUS_OK;
}

// ---- the proof --------------------------------------------------------------------------------

// The recording was foretold.
static void count_draw(learning *l, const rondo__draw_plan *plan,
                       const rondo__draw_request *request, const rondo__values *values) {
    rondo__odds *odds = &l->lesson->odds;
    const bool counts = rondo__draw_plan_counts(plan, request);
    odds->draw_count += counts;
    odds->special_count += !counts;
    odds->overlap_count += rondo__relations_note(&odds->relations, l->arguments, values);
}

// Looks whether the recording was foretold. One that was not joins the trials, and *out_is_right is
// false.
static rondo_status check(learning *l, rondo__recording *recording, bool *out_is_right) {
    rondo__finding surprise = {0};
    RETURN_IF_ERROR(rondo__solution_check(&l->lesson->solution, l->arguments, &l->recordings[0],
                                          recording, NULL, out_is_right, &surprise));
    if (*out_is_right) {
        return RONDO_STATUS_OK;
    }
    if (l->count < RONDO__RECORDINGS_MAX) {
        l->recordings[l->count++] = *recording;
        *recording = (rondo__recording){0};
    } else {
        l->lesson->finding = surprise;
    }
    return RONDO_STATUS_OK;
}

// Draws until the values are none that the step is known to refuse; false: they always are.
static bool draw_allowed(learning *l, const rondo__draw_request *request, rondo__values *values) {
    for (int i = 0; i < TRIES; ++i) {
        rondo__trials_draw(&l->trials, request, values);
        if (rondo__exclusions_find(&l->lesson->exclusions, l->arguments, values) == NULL) {
            return true;
        }
    }
    return false;
}

static rondo_status prove_once(learning *l, rondo__draw_plan *plan, bool *out_is_right) {
    rondo__recording recording = {0};
    rondo__draw_request request;
    char message[RONDO__MESSAGE_BYTES];
    rondo_status status = rondo__values_init(l->arguments, &recording.values);
    *out_is_right = true;
    if (status == RONDO_STATUS_OK) {
        rondo__draw_plan_next(plan, &request, &recording.values);
        if (!draw_allowed(l, &request, &recording.values)) {
            rondo__recording_deinit(&recording);
            return RONDO_STATUS_OK;
        }
        status = record(l, &recording);
    }
    if (status == RONDO_STATUS_OK && take_failure(l, message)) {
        status = take_exclusion(l, &request, &recording.values, message);
    } else if (status == RONDO_STATUS_OK && !is_refused(l)) {
        status = check(l, &recording, out_is_right);
        if (status == RONDO_STATUS_OK && *out_is_right) {
            count_draw(l, plan, &request, &recording.values);
        }
    }
    rondo__recording_deinit(&recording);
    return status;
}

static rondo_status prove(learning *l, bool *out_is_right) {
    rondo__odds *odds = &l->lesson->odds;
    rondo__draw_plan plan;
    const uint64_t start = rondo__clock_now_ns();
    l->pair_seed += PAIR_SEED_STEP * PAIR_SEED_STEP;
    rondo__draw_plan_init(l->arguments, l->plan->tried, l->plan->tried_count, l->pair_seed, &plan);
    odds->draw_count = 0;
    odds->special_count = 0;
    odds->overlap_count = 0;
    rondo__relations_clear(&odds->relations);
    *out_is_right = true;
    while (rondo__learn_proves && *out_is_right && !is_refused(l)) {
        if (rondo__draw_plan_is_spare(&plan) &&
            (odds->draw_count >= l->plan->draws_wanted ||
             rondo__clock_now_ns() - start >= l->plan->spare_ns)) {
            break;
        }
        RETURN_IF_ERROR(prove_once(l, &plan, out_is_right));
    }
    return RONDO_STATUS_OK;
}

// ---- the whole --------------------------------------------------------------------------------

static rondo_status explain(learning *l, rondo__verdict *out_verdict) {
    const rondo__draw_request request = {.kind = RONDO__DRAW_ANY};
    rondo__solution_deinit(&l->lesson->solution);
    rondo__trials_draw(&l->trials, &request, &l->wanted);
    RETURN_IF_ERROR(rondo__solve(l->arguments, l->recordings, l->count, &l->trials.draws,
                                 &l->lesson->solution, &l->wanted, out_verdict,
                                 &l->lesson->finding));
    if (*out_verdict == RONDO__REFUSED) {
        return rondo__findings_take(&l->lesson->findings, &l->lesson->solution.findings);
    }
    return *out_verdict == RONDO__WANTS_TRIAL ? add_trial(l, RONDO__DRAW_ANY, &l->wanted)
                                              : RONDO_STATUS_OK;
}

static rondo_status take_first_trials(learning *l, const rondo__values *first) {
    static const rondo__draw_kind kinds[] = {RONDO__DRAW_LEAST,  RONDO__DRAW_MOST,
                                             RONDO__DRAW_SECOND, RONDO__DRAW_ANY,
                                             RONDO__DRAW_ANY,    RONDO__DRAW_ANY};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && !is_refused(l); ++i) {
        RETURN_IF_ERROR(add_trial(l, kinds[i], NULL));
    }
    return is_refused(l) ? RONDO_STATUS_OK : add_trial(l, RONDO__DRAW_ANY, first);
}

// Lines of the report about a step that was proved.
static rondo_status list_warnings(learning *l) {
    rondo__lesson *lesson = l->lesson;
    lesson->step_status = RONDO_STATUS_OK;
    RETURN_IF_ERROR(
        rondo__solution_list_unseen(&lesson->solution, l->arguments, &lesson->findings));
    for (size_t i = 0; i < lesson->exclusions.count; ++i) {
        rondo__finding finding;
        rondo__finding_set(&finding, RONDO_REFUSAL_EXCLUDED, SIZE_MAX, "%s",
                           lesson->exclusions.list[i].message);
        finding.is_warning = true;
        RETURN_IF_ERROR(rondo__findings_add(&lesson->findings, &finding));
    }
    return RONDO_STATUS_OK;
}

static rondo_status learn(learning *l, const rondo__values *first) {
    RETURN_IF_ERROR(rondo__values_init(l->arguments, &l->wanted));
    RETURN_IF_ERROR(rondo__relations_init(l->arguments, &l->lesson->odds.relations));
    RETURN_IF_ERROR(take_first_trials(l, first));
    bool is_right = false;
    for (int surprises = 0; !is_right && !is_refused(l);) {
        rondo__verdict verdict = RONDO__REFUSED;
        RETURN_IF_ERROR(explain(l, &verdict));
        if (verdict != RONDO__SOLVED) {
            continue;
        }
        RETURN_IF_ERROR(prove(l, &is_right));
        if (!is_right && !is_refused(l) && ++surprises > SURPRISES_MAX) {
            rondo__finding_set(&l->lesson->finding, RONDO_REFUSAL_CHANGED, SIZE_MAX,
                               "%d recordings in turn were explained, and the next was not",
                               surprises);
        }
    }
    return is_refused(l) ? RONDO_STATUS_OK : list_warnings(l);
}

rondo_status rondo__learn(const rondo__step *step, const rondo__lesson_plan *plan,
                          rondo_stream *stream, const rondo__values *first,
                          rondo__lesson *out_lesson) {
    *out_lesson = (rondo__lesson){0};
    learning *l = rondo__calloc(1, sizeof *l);
    if (l == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    l->arguments = step->arguments;
    l->plan = plan;
    l->stream = stream;
    l->lesson = out_lesson;
    l->pair_seed = plan->seed;
    rondo_status status = rondo__trials_init(step, plan->seed, &l->trials);
    if (status == RONDO_STATUS_OK) {
        status = learn(l, first);
        rondo__trials_deinit(&l->trials);
    }
    rondo__values_deinit(&l->wanted);
    for (size_t i = 0; i < l->count; ++i) {
        const bool is_reference = i == 0 && status == RONDO_STATUS_OK;
        if (is_reference) {
            out_lesson->reference = l->recordings[0];
        } else {
            rondo__recording_deinit(&l->recordings[i]);
        }
    }
    rondo__free(l);
    if (status != RONDO_STATUS_OK) {
        rondo__lesson_deinit(out_lesson);
        return status;
    }
    out_lesson->is_proved = out_lesson->finding.refusal == RONDO_REFUSAL_NONE;
    return RONDO_STATUS_OK;
}

void rondo__lesson_deinit(rondo__lesson *lesson) {
    rondo__solution_deinit(&lesson->solution);
    rondo__recording_deinit(&lesson->reference);
    rondo__findings_deinit(&lesson->findings);
    rondo__exclusions_deinit(&lesson->exclusions);
    rondo__relations_deinit(&lesson->odds.relations);
    *lesson = (rondo__lesson){0};
}

// learn/learn.c — see learn.h.
//
//   first trials ──> explain ──> proof: fresh trials, each foretold ──> proved
//                     ^    |                │ one is not
//                     |    | two forms fit  v
//                     +----+-- one more trial, which joins the others
//
// The first trials take both ends of every domain at once, then values at random, then the run's. Where the proof
// meets a recording that was not foretold, that joins the trials, and the step is explained anew:
// so the first ones need not be many. A step that cannot be explained after that is refused.
// SPDX-License-Identifier: Apache-2.0
#include "learn/learn.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"

enum { PROOFS = 16, SURPRISES_MAX = 12 };

bool rondo__learn_proves = true;

typedef struct learning {
    rondo__trials trials;
    const rondo__arguments *arguments;
    rondo_stream *stream;
    rondo__recording recordings[RONDO__RECORDINGS_MAX];
    size_t count;
    rondo__values wanted;
    rondo__lesson *lesson;
} learning;

// ---- trials -----------------------------------------------------------------------------------

// Records one more trial for the values that `recording` has, and compares it with the first. The
// lesson has a finding when that was the end.
static rondo_status record(learning *l, rondo__recording *recording) {
    const rondo__trial_memory memory = {.made_up = l->trials.made_up,
                                        .made_up_count = l->trials.site_count,
                                        .reference = l->count > 0 ? &l->recordings[0] : NULL};
    RETURN_IF_ERROR(rondo__step_record(l->trials.step, l->trials.probe, l->stream, &memory,
                                       recording, &l->lesson->step_status, &l->lesson->finding));
    ++l->lesson->recording_count;
    if (l->lesson->finding.refusal == RONDO_REFUSAL_NONE && l->count > 0) {
        (void)rondo__recordings_match(&l->recordings[0], recording, &l->lesson->finding);
    }
    return RONDO_STATUS_OK;
}

static bool is_refused(const learning *l) {
    return l->lesson->finding.refusal != RONDO_REFUSAL_NONE;
}

// values     NULL: drawn, as `kind` says.
static rondo_status add_trial(learning *l, rondo__draw_kind kind, const rondo__values *values) {
    if (l->count >= RONDO__RECORDINGS_MAX) {
        rondo__finding_set(&l->lesson->finding, RONDO_REFUSAL_AMBIGUOUS, SIZE_MAX,
                           "%zu recordings were not enough to tell explanations apart", l->count);
        return RONDO_STATUS_OK;
    }
    rondo__recording *recording = &l->recordings[l->count];
    *recording = (rondo__recording){0};
    RETURN_IF_ERROR(rondo__values_init(l->arguments, &recording->values));
    rondo__trials_draw(&l->trials, kind, &recording->values);
    if (values != NULL) {
        rondo__values_copy(l->arguments, &recording->values, values);
        rondo__trials_draw_addresses(&l->trials, &recording->values);
    }
    rondo_status status = record(l, recording);
    ++l->count;  // now, so that it is no reference to itself, and is freed in any case
    return status;
}

// ---- the proof --------------------------------------------------------------------------------

// Records fresh values, and looks whether they were foretold. A recording that was not joins the
// trials.
static rondo_status prove_once(learning *l, bool *out_is_right) {
    rondo__recording recording = {0};
    rondo__finding surprise = {0};
    rondo_status status = rondo__values_init(l->arguments, &recording.values);
    *out_is_right = false;
    if (status == RONDO_STATUS_OK) {
        rondo__trials_draw(&l->trials, RONDO__DRAW_ANY, &recording.values);
        status = record(l, &recording);
    }
    if (status == RONDO_STATUS_OK && !is_refused(l)) {
        status = rondo__solution_check(&l->lesson->solution, l->arguments, &l->recordings[0],
                                       &recording, NULL, out_is_right, &surprise);
    }
    if (status == RONDO_STATUS_OK && !is_refused(l) && !*out_is_right) {
        if (l->count < RONDO__RECORDINGS_MAX) {
            l->recordings[l->count++] = recording;
            return RONDO_STATUS_OK;
        }
        l->lesson->finding = surprise;
    }
    rondo__recording_deinit(&recording);
    return status;
}

static rondo_status prove(learning *l, bool *out_is_right) {
    *out_is_right = true;
    for (int i = 0; i < PROOFS && rondo__learn_proves && *out_is_right; ++i) {
        RETURN_IF_ERROR(prove_once(l, out_is_right));
    }
    return RONDO_STATUS_OK;
}

// ---- the whole --------------------------------------------------------------------------------

static rondo_status explain(learning *l, rondo__verdict *out_verdict) {
    rondo__solution_deinit(&l->lesson->solution);
    rondo__trials_draw(&l->trials, RONDO__DRAW_ANY, &l->wanted);
    RETURN_IF_ERROR(rondo__solve(l->arguments, l->recordings, l->count, &l->trials.draws,
                                 &l->lesson->solution, &l->wanted, out_verdict,
                                 &l->lesson->finding));
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

static rondo_status learn(learning *l, const rondo__values *first) {
    RETURN_IF_ERROR(rondo__values_init(l->arguments, &l->wanted));
    RETURN_IF_ERROR(take_first_trials(l, first));
    bool is_right = false;
    for (int surprises = 0; !is_right && !is_refused(l);) {
        rondo__verdict verdict = RONDO__REFUSED;
        RETURN_IF_ERROR(explain(l, &verdict));
        if (verdict != RONDO__SOLVED) {
            continue;
        }
        RETURN_IF_ERROR(prove(l, &is_right));
        if (is_right && !is_refused(l)) {
            (void)rondo__solution_find_unseen(&l->lesson->solution, l->arguments,
                                              &l->lesson->finding);
        }
        if (!is_right && !is_refused(l) && ++surprises > SURPRISES_MAX) {
            rondo__finding_set(&l->lesson->finding, RONDO_REFUSAL_CHANGED, SIZE_MAX,
                               "%d recordings in turn were explained, and the next was not",
                               surprises);
        }
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__learn(const rondo__step *step, uint64_t seed, rondo_stream *stream,
                          const rondo__values *first, rondo__lesson *out_lesson) {
    *out_lesson = (rondo__lesson){0};
    learning *l = rondo__calloc(1, sizeof *l);
    if (l == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    l->arguments = step->arguments;
    l->stream = stream;
    l->lesson = out_lesson;
    rondo_status status = rondo__trials_init(step, seed, &l->trials);
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
    *lesson = (rondo__lesson){0};
}

// executor/state/governed.h — RONDO_GRAPHS_MEASURED: whether a run of the caller is eager, captures
// or replays, by the rules of cache/governor.h.
//
// What is chosen for is a plan with all bodies that its runs enter, and what is compared is what
// whole runs take that are waited for, feeds and fetches included: so eager ops between segments,
// copies and wakes count as they do for the caller, and no clock is asked that runs do not ask
// anyway. Runs that are not waited for are not measured; they replay unless that was found slower.
// Self-checks run both ways, and ranks would not choose alike: such executors work as in AUTO.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/text.h"
#include "executor/state/plan.h"

void rondo__governed_choose_now(rondo__unit *unit, rondo__plan *plan, bool waits);
void rondo__governed_note_run_now(rondo__unit *unit, rondo__plan *plan, uint64_t latency_ns);

// Chooses for the run of the caller that begins now; work.choice holds it.
static inline void rondo__governed_choose(rondo__unit *unit, rondo__plan *plan, bool waits) {
    unit->executor->work.choice = RONDO__CHOICE_REPLAY;
    if (__builtin_expect(unit->executor->graphs == RONDO_GRAPHS_MEASURED, 0)) {
        rondo__governed_choose_now(unit, plan, waits);
    }
}

// A run of the unit has succeeded, and was waited for; what it took.
static inline void rondo__governed_note_run(rondo__unit *unit, rondo__plan *plan,
                                            uint64_t latency_ns) {
    if (__builtin_expect(unit->executor->graphs == RONDO_GRAPHS_MEASURED, 0)) {
        rondo__governed_note_run_now(unit, plan, latency_ns);
    }
}

// The run's plan was captured, which took `ns`; graphs that were there already are none of it.
void rondo__governed_note_capture(rondo__unit *unit, rondo__plan *plan, uint64_t ns);

// Whether the run at hand uses graphs, as far as the governor is asked.
static inline bool rondo__governed_may_replay(const rondo_executor *executor) {
    return executor->work.choice >= RONDO__CHOICE_CAPTURE;
}

// The choice and its reason, as a line of text or a member of JSON; nothing in other modes.
void rondo__governed_describe(rondo__text *text, const rondo__unit *unit, const rondo__plan *plan,
                              bool is_json);

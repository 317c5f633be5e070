// executor/compile/retire.h — plans that recorded runs use, and the units that own them.
//
// A graph may give up a recorded run on any thread, while the executor works on another. That only
// counts down. Plans and units that were given up meanwhile wait in lists of the executor,
// which frees them on its own thread, or when the last recorded run ends.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/use_count.h"
#include "capture/capture.h"
#include "executor/state/plan.h"

static inline void rondo__plan_pin(rondo__plan *plan) {  // threads: safe, as the next
    (void)atomic_fetch_add(&plan->pin_count, 1);
}
static inline void rondo__plan_unpin(rondo__plan *plan) {
    (void)atomic_fetch_sub(&plan->pin_count, 1);
}
static inline bool rondo__plan_is_pinned(rondo__plan *plan) {
    return atomic_load(&plan->pin_count) > 0;
}

// One more that rondo__executor_release takes back.  Threads: safe.
static inline void rondo__executor_retain(rondo_executor *executor) {
    rondo__reference_take(&executor->reference_count);
}

// Takes a participant of a capture whose end Rondo does not see: it is freed with the executor.
static inline void rondo__executor_adopt(rondo_executor *executor,
                                         rondo__participant *participant) {
    participant->next = executor->caller.recordings;
    executor->caller.recordings = participant;
}

// Frees a plan that is in no list any more: now, or when no recorded run uses it.
void rondo__plan_give_up(rondo__unit *unit, rondo__plan *plan);
// The same for a variant of the executor.
void rondo__variant_give_up(rondo_executor *executor, rondo__unit *variant);
// Whether a recorded run uses a plan of it or of a variant.
bool rondo__executor_is_pinned(rondo_executor *executor);
// Frees all plans and variants, which no recorded run uses, and forgets the last run.
void rondo__executor_drop_plans(rondo_executor *executor);
// Frees plans and units that were given up and that no recorded run uses any more.
void rondo__executor_sweep(rondo_executor *executor);

// executor/compile/split_counted.h — ops of a GPU whose result's shape depends on data, as items of
// a segment.
//
//   before   x ── NonZero ── y      y: known when it has run
//
//   after    x ── NonZero ──┬─ y.room ────────┐
//                           └─ y.count ─ [copy] ── rondo.Counted ── y
//
// The most that such an op can find is known (op/bounds.h). So its kernel writes into rooms of that
// size in the arena, packed as if each were as large as its result, and beside them how much it
// found. It is launched, captured and replayed like any other. rondo.Counted is a step of its own
// behind the segment (RONDO__STEP_COUNT): the run waits for the count, 8 bytes in pinned memory,
// and y is a view of its room from then on (plan->run.dynamic). What reads y is planned for its
// shape, as the body of a rondo.Rest, on the device, too.
//
// Rooms take memory for the most that there can be. Where that is more than a part of what the
// device has, where memory was short before, or where the device has no kernel, the op stays with
// the processor.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_EXECUTOR_COMPILE_SPLIT_COUNTED_H
#define RONDO_EXECUTOR_COMPILE_SPLIT_COUNTED_H

#include "executor/state/plan.h"
#include "program/edit.h"

// Rewrites the plan's program as above, where it can be done. Before anything is placed.
//
// Errors:    NO_MEMORY, NO_DEVICE_MEMORY, DRIVER, LOST.
// Threads:   one thread per executor; as below.
RONDO_MUST_USE rondo_status rondo__counted_split(const rondo_executor *executor, rondo__plan *plan);

#endif  // RONDO_EXECUTOR_COMPILE_SPLIT_COUNTED_H

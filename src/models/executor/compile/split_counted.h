// executor/compile/split_counted.h — ops of a GPU whose results' shapes depend on data, as items of
// a segment.
//
//   before   x ── NonZero ── y      y: known when it has run
//
//   after    x ── NonZero ──┬─ y.room ────────┐
//                           └─ y.count ─ [copy] ── rondo.Counted ── y
//
// The most that such an op can find is known (op/bounds.h). So its kernel writes into rooms, memory
// of that size in the arena, packed as if each were as large as its result, and writes beside them
// how much it found. The kernel is launched, captured and replayed like others. rondo.Counted is a
// step of its own behind the segment (RONDO__STEP_COUNT): the run waits for the count, 8 bytes in
// pinned memory, and y is a view of its room from then on (plan->run.dynamic). Ops that read y are
// planned for its shape, as the body of a rondo.Rest, on the device, too.
//
// The op stays with the processor if its rooms would take more than a part of the device's memory,
// if memory was short before, or if the device has no kernel.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/state/plan.h"
#include "program/edit.h"

// Rewrites the plan's program as above, where it can be done. Before anything is placed.
//
// Errors:    NO_MEMORY, NO_DEVICE_MEMORY, DRIVER, LOST.
// Threads:   one thread per executor; as below.
RONDO_MUST_USE rondo_status rondo__counted_split(const rondo__unit *unit, rondo__plan *plan);

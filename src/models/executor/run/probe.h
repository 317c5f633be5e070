// executor/run/probe.h — finding the op that keeps a segment from being captured.
//
// A segment whose capture failed is captured again, whole. If it fails again, the search finds by
// halves the shortest beginning that fails; the last op of that beginning is the culprit if it
// fails alone, too. A culprit is launched between two graphs from then on, and remembered
// (capture_verdict.h). An op that fails only behind its neighbours begins a graph of its own. The
// search goes on behind the op.
//
//   [ a b c d e f g h ]        fails at d                    (d says that it failed)
//   [ a b c ]                  can be captured: kept
//             d                fails alone: bypassed
//               [ e f g h ]    is tried as the whole was
//
// Each round takes ops off the front, or is one of the few rounds in which a capture failed once
// and not again, so the search ends. It costs one or two captures for a culprit whose own launch
// fails, and for others about the binary logarithm of the number of ops.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/state/plan.h"

// Captures the items of a step into step->run.graph. On failure the step is as it was, the stream
// is usable, and plan->run.failed_item and plan->run.failure say where and why.
typedef rondo_status (*rondo__step_recorder)(rondo__unit *unit, rondo__plan *plan,
                                             rondo__step *step);

// Whether a capture failed in a way that may be over the next time: memory was not to be had.
bool rondo__probe_is_passing(const rondo__plan *plan, uint32_t failure_count, rondo_status status);

// Whether an op of the step says neither that it can be captured nor that it cannot, so that it is
// tried.
bool rondo__probe_is_wanted(const rondo__plan *plan, const rondo__step *step);

// A capture of the step is to be tried again, but not soon: after 2 runs, 4, 8 ...
void rondo__probe_postpone(const rondo__plan *plan, rondo__step *step, const char *why);

// Whether a graph of the step may have frozen a number that goes on from run to run, as a count of
// steps or a rate: the executor trains, and a launch is the program's own.
bool rondo__probe_may_freeze(const rondo__unit *unit, const rondo__plan *plan,
                             const rondo__step *step);

// Records a step that has a graph once more, and compares the two: 1, 2, 4, 8 ... runs behind that
// of the capture. Where a launch of an op puts other numbers now, *out_found is true,
// the log names them, the item is_frozen, and the step has no graph.
//
// Errors:    LOST.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__probe_frozen(rondo__unit *unit, rondo__plan *plan,
                                                rondo__step_recorder record, rondo__step *step,
                                                bool *out_found);
// Fails for an item that is frozen.
//
// Errors:    MISMATCH.
RONDO_MUST_USE rondo_status rondo__probe_refuse_frozen(const rondo__plan *plan, size_t item);

// Replaces segment `index`, whose capture failed, by segments with graphs and bypassed ops. A
// segment that is tried again later has no graph. *in_out_index becomes the last of them.
//
// Errors:    LOST; in RONDO_GRAPHS_ON what a capture failed with, unless it was an op that is
//            probed; NO_MEMORY (of the list; the segment is as before).
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__probe_segment(rondo__unit *unit, rondo__plan *plan,
                                                 rondo__step_recorder record, size_t *in_out_index);

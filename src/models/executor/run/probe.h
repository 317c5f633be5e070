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
#ifndef RONDO_EXECUTOR_RUN_PROBE_H
#define RONDO_EXECUTOR_RUN_PROBE_H

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

// Replaces segment `index`, whose capture failed, by segments with graphs and bypassed ops. A
// segment that is tried again later has no graph. *in_out_index becomes the last of them.
//
// Errors:    LOST; in RONDO_GRAPHS_ON what a capture failed with, unless it was an op that is
//            probed; NO_MEMORY (of the list; the segment is as before).
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__probe_segment(rondo__unit *unit, rondo__plan *plan,
                                                 rondo__step_recorder record, size_t *in_out_index);

#endif  // RONDO_EXECUTOR_RUN_PROBE_H

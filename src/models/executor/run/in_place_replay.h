// executor/run/in_place_replay.h — replays that take device tensors where they are.
//
// A plan of one segment is learned (rondo/learn.h) with the addresses of the device tensors as its
// arguments: which words of its nodes follow from which tensor is found out and proved, and a run
// writes those words and replays. So nothing is copied, and addresses may change from run to run.
// That is tried when the same ports are given as device tensors for the second time behind the
// capture. What cannot be learned goes on being copied.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_EXECUTOR_RUN_IN_PLACE_REPLAY_H
#define RONDO_EXECUTOR_RUN_IN_PLACE_REPLAY_H

#include "executor/run/fetch.h"
#include "executor/run/stand_ins.h"
#include "executor/state/run_state.h"

// Decides whether the run at hand is such a replay: then plan->run.is_in_place is set until
// the next run.
//
// Errors:    LOST; other failures mean that tensors are copied.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__in_place_begin(const rondo__fetch *fetch, rondo__plan *plan,
                                                  const rondo_tensor *feeds);

// The run's steps.
//
// Errors:    those of rondo_learned_run.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__in_place_run(rondo_executor *executor, rondo__plan *plan);

// Where a value of the run at hand lies.
void *rondo__in_place_find(const rondo__plan *plan, int32_t value);

#endif  // RONDO_EXECUTOR_RUN_IN_PLACE_REPLAY_H

// executor/run/in_place_replay.h — replays that read and write the program's device tensors
// directly.
//
// A plan of one segment is learned (rondo/learn.h) with the addresses of the device tensors as its
// arguments: the learner finds and proves which words of the nodes follow from which tensor, and a
// run writes those words and replays. So nothing is copied, and addresses may change from run to
// run. The executor learns when the same ports are given as device tensors for the second time
// after the capture. If a plan cannot be learned, its tensors are copied as before.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/devices/stand_ins.h"
#include "executor/run/fetch.h"
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
RONDO_MUST_USE rondo_status rondo__in_place_run(rondo__unit *unit, rondo__plan *plan);

// Where a value of the run at hand lies.
void *rondo__in_place_find(const rondo__plan *plan, int32_t value);

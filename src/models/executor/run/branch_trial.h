// executor/run/branch_trial.h — whether a segment's graph gets branches: both graphs are timed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/state/run_state.h"

// After a run that was waited for: captures segments with branches, once, and keeps the graph that
// options.branches asks for, or the faster one. After a failure the straight graph stays.
//
// AUTO does so only for plans of one segment: a replay needs the values that the run had, and later
// steps may have overwritten the bytes of earlier ones. A plan with states is not replayed for the
// trial: its next runs take turns with both graphs.
//
// Threads:   one thread per executor; as all below.
void rondo__branches_settle(rondo__unit *unit, rondo__plan *plan);

// Whether the graph of a plan of one segment has, or has not, the branches that it will have.
bool rondo__branches_are_settled(const rondo__unit *unit, const rondo__plan *plan);

// Whether a plan of one segment with states is on trial, or soon will be.
bool rondo__branches_are_open(const rondo__unit *unit, const rondo__plan *plan);

typedef rondo_status (*rondo__branch_launch)(void *user_data, size_t item, rondo_stream *stream);

// Errors:    NO_MEMORY, those of streams and events.
// Ownership: rondo__branches_close, when no capture of it is open.
RONDO_MUST_USE rondo_status rondo__branches_open(const rondo__unit *unit, const rondo__plan *plan,
                                                 const rondo__step *step,
                                                 rondo__branch_recorder **out_recorder);
RONDO_MUST_USE rondo_status rondo__branches_record(rondo__branch_recorder *recorder,
                                                   rondo_stream *stream,
                                                   rondo__branch_launch launch, void *user_data);

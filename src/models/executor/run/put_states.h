// executor/run/put_states.h — states in a run: what it is fed of them, and what they become.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/run/fetch.h"
#include "executor/state/states.h"

// Lets states take what is fed for them, and puts their own values in the place of the feeds.
//
// Errors:    as rondo__state_set.
// Threads:   one thread per executor; as all below.
RONDO_MUST_USE rondo_status rondo__states_take_feeds(rondo__unit *unit, rondo_tensor *feeds);

// The steps of a run come next: notes what they write, which is lost if the run fails.
void rondo__states_begin(const rondo__unit *unit, const rondo__plan *plan);

// Copies what the run has made to the states that the plan has not written itself, on the stream.
//
// Errors:    UNSUPPORTED (an output that is no tensor of numbers), as rondo__state_fit.
RONDO_MUST_USE rondo_status rondo__states_put(const rondo__fetch *fetch);

// Whether the run that was put makes each new value where the state lies, in the shape that it had,
// so that further runs of its plan need not look at states, nor call what is here, until
// rondo__states_change counts.
bool rondo__states_are_settled(const rondo__fetch *fetch);

// Runs that were not waited for failed: what they were to write has no value.
void rondo__states_lose(const rondo__unit *unit);

// The run is over.
void rondo__states_end(const rondo__unit *unit, bool has_failed);

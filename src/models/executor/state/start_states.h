// executor/state/start_states.h — variables before their first run: what rondo_start says.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/state/states.h"

// The feed for a run that does not feed the state: the state's value; if it has no value yet, but a
// start, its shape on the executor's device, without data; otherwise nothing.
//
// Errors:    STATE (a run that failed may have written it).
// Threads:   one thread per executor; as all below.
RONDO_MUST_USE rondo_status rondo__state_get_feed(const rondo_executor *executor,
                                                  const rondo__state *state,
                                                  rondo_tensor *out_feed);

bool rondo__state_has_start(const rondo_executor *executor, const rondo__state *state);

// Gives the state the value that it starts with, on the stream.
//
// Errors:    STATE (it has none), as rondo__state_fit and rondo_generator_create.
RONDO_MUST_USE rondo_status rondo__state_start(rondo__unit *unit, rondo__state *state);

// executor/compile/place_states.h — plans read states in their own memory, and write new values
// there.
//
// A chain of kernels that can each work in place makes the new value of a state: the first reads
// the old value, the last makes the output. If the old value has no later reader, the chain
// overwrites it. To that end, nodes that read the old value, and do not need the chain's results,
// are put before the chain. A new value that no such chain makes may still be written there if the
// last reader of the old value is done before the first write. A Concat that appends to a state
// that is one row writes only the new part.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/state/plan.h"

// Puts readers of old values before the nodes that make new ones of them.
//
// Errors:    NO_MEMORY.
// Threads:   one thread per executor; as all below.
RONDO_MUST_USE rondo_status rondo__states_order(const rondo__unit *unit, rondo_program *program);

// Binds the value slots of inputs that are states to their memory.
void rondo__states_bind_slots(const rondo__unit *unit, rondo__plan *plan);

// Finds the values that may take over the memory of a state: carriers[v] is its input's value, or
// -1.
//
// Errors:    NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__states_find_carriers(const rondo__unit *unit,
                                                        const rondo__plan *plan, int32_t *carriers);

// Lets new values that are begun when the old ones are done with have their memory. `last_uses`:
// by root, the last place in the plan at which it is used.
void rondo__states_take_over(const rondo__unit *unit, rondo__plan *plan, size_t *last_uses);

// Lets what is appended to a state be written behind it, where its memory has room for that.
void rondo__states_append(const rondo__unit *unit, rondo__plan *plan, size_t *last_uses);

// Whether an item writes the memory of a state.
bool rondo__states_are_written(const rondo__plan *plan);

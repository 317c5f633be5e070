// executor/compile/place_states.h — states where they lie, and new values that take their place.
//
// The new value of a state is made by a chain of kernels, each of which can work in place: the
// first reads the old value, the last makes the output. Where the old value has no later reader,
// the chain writes it where it lies. For that, nodes that read the old value, and do not need what
// the chain makes, come before it. A new value that no such chain makes may still be written
// there, when the last reader of the old one is done before it is begun. A Concat that appends to
// a state of which all lies in one row writes only what is new.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_EXECUTOR_COMPILE_PLACE_STATES_H
#define RONDO_EXECUTOR_COMPILE_PLACE_STATES_H

#include "executor/state/plan.h"

// Puts readers of old values before the nodes that make new ones of them.
//
// Errors:    NO_MEMORY.
// Threads:   one thread per executor; as all below.
RONDO_MUST_USE rondo_status rondo__states_order(const rondo_executor *executor,
                                                rondo_program *program);

// Binds the slots of inputs that are states to their memory.
void rondo__states_bind_slots(const rondo_executor *executor, rondo__plan *plan);

// Finds the values that may take over the memory of a state: carriers[v] is its input's value, or
// -1.
//
// Errors:    NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__states_find_carriers(const rondo_executor *executor,
                                                        const rondo__plan *plan, int32_t *carriers);

// Lets new values that are begun when the old ones are done with have their memory. `last_uses`:
// by root, the last place in the plan at which it is used.
void rondo__states_take_over(const rondo_executor *executor, rondo__plan *plan, size_t *last_uses);

// Lets what is appended to a state be written behind it, where its memory has room for that.
void rondo__states_append(const rondo_executor *executor, rondo__plan *plan, size_t *last_uses);

// Whether an item writes the memory of a state.
bool rondo__states_are_written(const rondo__plan *plan);

#endif  // RONDO_EXECUTOR_COMPILE_PLACE_STATES_H

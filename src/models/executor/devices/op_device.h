// executor/devices/op_device.h — the place of each node of a plan: what the caller says, then
// rules.
//
// By rule the processor runs ops that make small whole numbers which only ops of the processor read
// (shape arithmetic, and its inputs), so that no run waits for these numbers, and ops on tables
// that do not fit into the device's memory. All other ops run on the device if it has a kernel for
// them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/state/plan.h"

// Marks the nodes of a program, before folding, with the places that the options ask for, and
// checks that the executor has a device for each.
//
// Errors:    INVALID (an entry without a place, a pattern that matches nothing, two that say
//            different things of one node), UNSUPPORTED (a place that is not there).
// Threads:   one thread per program.
RONDO_MUST_USE rondo_status rondo__op_device_mark(const rondo__unit *unit, rondo_program *program);

// Whether the program has placed a node. Then executors on other devices do not share its base,
// because each has to be looked at.
bool rondo__op_device_has_marks(const rondo__unit *unit);

// Decides what can be decided before kernels are prepared, for each node of the plan.
//
// Errors:    UNSUPPORTED (a node is to run where the executor has no device), NO_MEMORY.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__op_device_decide(rondo__unit *unit, rondo__plan *plan);

// Lets variables lie in host memory that only ops placed on the processor read and change: a table
// that is too large for the GPU, say.
void rondo__op_device_pin_states(rondo_executor *executor);

// The failure of a node that was asked to run on the GPU, and cannot: `why` says what hinders.
rondo_status rondo__op_device_refuse(const rondo__node *node, const rondo__op_device *home,
                                     const char *why);

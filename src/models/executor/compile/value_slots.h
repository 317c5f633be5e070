// executor/compile/value_slots.h — where each value of a plan lives.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/state/plan.h"

// Decides where values live and allocates the arena and the staging area; `order` is the position
// of each node in the run (0 for views, which take no time).
//
// Errors:    NO_MEMORY, NO_DEVICE_MEMORY, DRIVER, LOST.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__plan_assign_slots(rondo__unit *unit, rondo__plan *plan,
                                                     const rondo__node_class *class_of);

// executor/compile/planning.h — a plan in the making, and those of its phases that have a file of
// their own; compile_plan.c has the table of all.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/compile/device_control.h"
#include "executor/state/plan.h"

typedef struct rondo__planning {
    rondo__unit *unit;
    rondo__plan *plan;
    bool is_ready;  // its program comes from a plan file, and so do its kernels
    const rondo__record *ready_kernels;  // of that file; NULL: there are none
    rondo__record *ready;                // the same by node; NULL: there are none
    const rondo__planner *planner;       // for the bodies of control ops
    // One for each node, and room for the copies between sides; NULL before there are lists.
    size_t node_room;
    rondo__node_class *class_of;
    rondo__kernel **kernels;  // until an item takes it; NULL: it has none
} rondo__planning;

// Makes the lists, decides how each node runs, and prepares the kernels (classify_nodes.c).
//
// Errors:    BAD_DATA, UNSUPPORTED, NO_MEMORY, NO_DEVICE_MEMORY, DRIVER, LOST, CANCELLED.
// Threads:   one thread per executor; as all functions below.
RONDO_MUST_USE rondo_status rondo__planning_classify_nodes(rondo__planning *p);

// Puts what kernels read of constants where they read it (place_constants.c).
//
// Errors:    NO_MEMORY, NO_DEVICE_MEMORY, DRIVER, LOST.
RONDO_MUST_USE rondo_status rondo__planning_place_constants(rondo__planning *p);

// Gives each item the addresses of what it reads and writes (place_constants.c).
//
// Errors:    NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__planning_resolve_addresses(rondo__planning *p);

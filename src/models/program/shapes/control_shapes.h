// program/shapes/control_shapes.h — infers the outputs of If, Loop and Scan from their bodies.
//
// If: the facts that hold in both branches, or in the one that a constant condition takes. Loop and
// Scan: the facts about a carried value that hold before the first turn and after every further
// one; rows get the number of turns as another extent. A body that fits no turn with these shapes
// always ends in an error, so it says nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "program/program.h"

// How a body is looked through: specialise.c hands it down.
typedef struct rondo__body_inference {
    // Fills out_infos, one for each output of the body, from feeds, one for each of its inputs;
    // dtype NONE says that nothing is known. Of values it gives one bool, and that only if true.
    // BAD_DATA: no run with these inputs succeeds.
    rondo_status (*infer)(struct rondo__body_inference *inference, const rondo_program *body,
                          const rondo__tensor_info *feeds, rondo__tensor_info *out_infos);
    size_t node_limit;  // nodes of bodies that may still be visited; then nothing is said
} rondo__body_inference;

// Fills outputs, one for each of the node, from inputs, one for each of the node.
//
// Errors:    NO_MEMORY.
// Threads:   safe while no call changes the program.
RONDO_MUST_USE rondo_status rondo__control_infer(rondo__body_inference *inference,
                                                 const rondo__node *node,
                                                 const rondo__tensor_info *inputs,
                                                 rondo__tensor_info *outputs);

// graph/executable.h — the executable of a graph.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/graph_object.h"

// RECORDED or READY becomes READY with a new executable.
//
// Errors:    NO_MEMORY, NO_DEVICE_MEMORY, UNSUPPORTED, DRIVER, LOST.
RONDO_MUST_USE rondo_status rondo__graph_instantiate(rondo_graph *graph);

// Makes an executable from `recorded` and notes what it cost.
//
// Errors:    NO_MEMORY, NO_DEVICE_MEMORY, UNSUPPORTED, DRIVER, LOST.
RONDO_MUST_USE rondo_status rondo__graph_make_executable(rondo_graph *graph,
                                                         rondo__template *recorded,
                                                         rondo__executable **out_executable,
                                                         rondo_graph_stats *in_out_stats);
// Gives the executable up, and what its nodes were patched to: the graph is RECORDED.
void rondo__graph_drop_executable(rondo_graph *graph);
// Takes the executable in the place of the former one: the graph is READY.
void rondo__graph_set_executable(rondo_graph *graph, rondo__executable *executable);
// Fills the counts of nodes, where those inside nodes count as kernels and copies, too; and how
// much of the device's memory an executable may take.
RONDO_MUST_USE rondo_status rondo__graph_count_kinds(rondo__template *recorded,
                                                     rondo_graph_stats *in_out_stats);
// Adds what one level may take, without the levels inside. A recorded graph goes on in the branch
// of its node.
//
// Errors:    DRIVER.
RONDO_MUST_USE rondo_status rondo__graph_estimate_level(rondo__template *recorded, bool is_child,
                                                        uint64_t *in_out_bytes);
// The same of a line of that many nodes.
void rondo__graph_estimate_line(rondo_graph_stats *in_out_stats);

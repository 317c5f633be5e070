// graph/node/part.h — replays only some nodes of a graph, to see what they compute.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rondo/graph.h"
#include "rondo/node.h"

// Marks the nodes of the graph itself (rondo_graph_get_node) that must have run when those behind
// the handles have: these, and all that they depend on. Handles of zeroes are left out.
//
// is_needed   one for each node, `count` of them.
//
// Errors:    STATE (no template; handles of another recording), NO_MEMORY, DRIVER.
// Threads:   one thread per graph.
RONDO_MUST_USE rondo_status rondo__graph_find_needed(rondo_graph *graph, const rondo_node *nodes,
                                                     size_t node_count, bool *is_needed,
                                                     size_t count);

// Replays the graph with only the nodes `is_on` switched on, waits, and switches all on again.
//
// Errors:    UNSUPPORTED (a node that should be off cannot be switched: conditional nodes, events,
//            graphs inside), and as rondo_graph_replay. When the last step fails, the graph is to
//            be destroyed: *out_is_whole is false.
// Threads:   one thread per graph.
RONDO_MUST_USE rondo_status rondo__graph_replay_part(rondo_graph *graph, rondo_stream *stream,
                                                     const bool *is_on, size_t count,
                                                     bool *out_is_whole);

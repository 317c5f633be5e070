// graph/graph_share.h — the objects that a graph keeps alive, if it was recorded into another one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/graph_object.h"

// The graph's participants, also when it shares them with graphs that it was recorded into.
rondo__participant *rondo__graph_get_participants(const rondo_graph *graph);

// Shares the participants of the graph with a capture that it is recorded into. *out_added: one for
// the capture to take over, or to be destroyed; NULL where it has one of this graph already.
//
// Errors:    NO_MEMORY.
// Threads:   one thread per graph.
RONDO_MUST_USE rondo_status rondo__graph_share_with(rondo_graph *graph, rondo__capture *capture,
                                                    rondo__participant **out_added);

// Lets `clone`, which holds the same nodes in the same order, take part in all that `graph` needs,
// labels included.
//
// Errors:    NO_MEMORY.
// Threads:   one thread per graph.
RONDO_MUST_USE rondo_status rondo__graph_share_own(rondo_graph *graph, rondo_graph *clone);

// OK when the template can be copied; `cure` says what to do otherwise.
//
// Errors:    UNSUPPORTED (conditional or memory nodes).
// Threads:   one thread per graph.
RONDO_MUST_USE rondo_status rondo__graph_check_copyable(const rondo_graph *graph, const char *call,
                                                        const char *cure);

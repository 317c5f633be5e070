// graph/graph_capture.h — a graph's capture: given up.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/graph_object.h"

// INVALID unless it is one of the modes.
RONDO_MUST_USE rondo_status rondo__graph_check_mode(rondo_capture_mode mode, const char *call);

// Whether this thread may end the capture that the graph records.
bool rondo__graph_may_end(const rondo_graph *graph);
// Ends it, and drops what was recorded. The error record stays as it was.
void rondo__graph_give_up(rondo_graph *graph);

// Looks at what was recorded.
typedef rondo_status (*rondo__graph_look)(void *user_data, rondo__template *recorded,
                                          const rondo__participant *labels);

// rondo_graph_capture_end for a recording that is only looked at: no executable is made, and then
// all is rolled back, as by rondo_graph_capture_abort. The graph is empty afterwards.
//
// Errors:    as rondo_graph_capture_end; those of `look`.
// Threads:   the thread that began, unless the mode is relaxed.
RONDO_MUST_USE rondo_status rondo__graph_capture_look(rondo_graph *graph, rondo__graph_look look,
                                                      void *user_data);

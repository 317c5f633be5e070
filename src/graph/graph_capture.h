// graph/graph_capture.h — a graph's capture: given up.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_GRAPH_GRAPH_CAPTURE_H
#define RONDO_GRAPH_GRAPH_CAPTURE_H

#include "graph/graph_object.h"

// Whether this thread may end the capture that the graph records.
bool rondo__graph_may_end(const rondo_graph *graph);
// Ends it, and drops what was recorded. The error record stays as it was.
void rondo__graph_give_up(rondo_graph *graph);

#endif  // RONDO_GRAPH_GRAPH_CAPTURE_H

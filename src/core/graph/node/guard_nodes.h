// graph/node/guard_nodes.h — what a checked graph uses.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/graph_object.h"

// Tells a checked graph's guard which addresses the nodes of the template use.
//
// Errors:    NO_MEMORY, DRIVER.
// Threads:   one thread per graph.
RONDO_MUST_USE rondo_status rondo__graph_guard_nodes(rondo_graph *graph);

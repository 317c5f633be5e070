// graph/images.h — what the nodes of a graph's executable do now, where they were patched.
//
// A graph keeps an image of each node that was ever patched; the template stays as it was recorded.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/node_image.h"
#include "graph/graph_object.h"

// The image of node `index` of the template, read on first use; the graph owns it until it is
// reset, updated or instantiated again. A caller that changes it must write it.
//
// Errors:    NO_MEMORY, UNSUPPORTED (the backend cannot patch), DRIVER.
// Threads:   one thread per graph.
RONDO_MUST_USE rondo_status rondo__graph_get_image(rondo_graph *graph, size_t index,
                                                   rondo__node_image **out_image);

// Images and handles are no more: the executable is another one.
void rondo__graph_forget_nodes(rondo_graph *graph);

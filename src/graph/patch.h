// graph/patch.h — nodes of a graph's executable that are changed one by one.
//
// A graph keeps an image of each node that was ever patched: what the executable does now. The
// template stays as it was recorded.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_GRAPH_PATCH_H
#define RONDO_GRAPH_PATCH_H

#include "backend/node_image.h"
#include "graph/graph_object.h"

// The image of node `index` of the template, read on first use; the graph owns it until it is
// reset, updated or instantiated again. Who changes it must write it.
//
// Errors:    NO_MEMORY, UNSUPPORTED (the backend cannot patch), DRIVER.
// Threads:   one thread per graph, as for all here.
RONDO_MUST_USE rondo_status rondo__graph_get_image(rondo_graph *graph, size_t index,
                                                   rondo__node_image **out_image);

// Looks at the memory that images name, as the recording of such nodes would, and notes its use.
// Nothing is patched.
//
// call       the public call, for errors.
//
// Errors:    NO_MEMORY; STATE (pageable memory); DRIVER.
RONDO_MUST_USE rondo_status rondo__graph_admit_images(rondo_graph *graph,
                                                      rondo__node_image *const *images,
                                                      size_t count, const char *call);

// Lets the executable, which must be there, do what the images say from the next replay on.
// *out_done: how many of them it does, also after a failure.
//
// Errors:    NO_MEMORY, UNSUPPORTED, NO_DEVICE_MEMORY, DRIVER.
RONDO_MUST_USE rondo_status rondo__graph_write_images(rondo_graph *graph,
                                                      rondo__node_image *const *images,
                                                      size_t count, size_t *out_done);

// Both are no more: the executable is another one.
void rondo__graph_forget_nodes(rondo_graph *graph);

#endif  // RONDO_GRAPH_PATCH_H

// graph/patch.h — nodes of a graph's executable that are changed one by one.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_GRAPH_PATCH_H
#define RONDO_GRAPH_PATCH_H

#include "graph/images.h"

// Looks at the memory that an image names, as the recording of such a node would, and notes its
// use. Nothing is patched.
//
// former     what the executable does now: what it uses already is not looked at; NULL: not known.
// call       the public call, for errors.
//
// Errors:    NO_MEMORY; STATE (pageable memory, a block that the graph writes over); DRIVER.
RONDO_MUST_USE rondo_status rondo__graph_admit_image(rondo_graph *graph,
                                                     const rondo__node_image *image,
                                                     const rondo__node_image *former,
                                                     const char *call);

// Lets the executable, which must be there, do what the images say from the next replay on.
// *out_done: how many of them it does, also after a failure.
//
// Errors:    NO_MEMORY, UNSUPPORTED, NO_DEVICE_MEMORY, DRIVER.
RONDO_MUST_USE rondo_status rondo__graph_write_images(rondo_graph *graph,
                                                      rondo__node_image *const *images,
                                                      size_t count, size_t *out_done);

// One image alone; rondo__graph_watch_anew follows the last.
//
// Errors:    as above.
RONDO_MUST_USE rondo_status rondo__graph_write_image(rondo_graph *graph,
                                                     const rondo__node_image *image);
// A checked graph watches what the nodes use now. Walks all of them.
void rondo__graph_watch_anew(rondo_graph *graph);

#endif  // RONDO_GRAPH_PATCH_H

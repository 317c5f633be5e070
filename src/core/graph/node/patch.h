// graph/node/patch.h — nodes of a graph's executable that are changed one by one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/images.h"

// Comes before images are changed: sharers of the arena may have taken memory since the capture.
//
// *out_wants_addresses  whether what the images name has to be looked at (_admit_addresses).
//
// Errors:    NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__graph_begin_patches(rondo_graph *graph,
                                                       bool *out_wants_addresses);

// Refuses a copy or a fill in memory that a checked graph has seen freed, before a driver does
// without saying why.
//
// Errors:    STATE (that); DRIVER.
RONDO_MUST_USE rondo_status rondo__graph_refuse_gone(const rondo_graph *graph,
                                                     const rondo__node_image *image,
                                                     const char *call);

// Looks at the memory that an image of a copy names, as the recording of the copy would.
//
// call       the public call, for errors.
//
// Errors:    NO_MEMORY; STATE (pageable memory).
RONDO_MUST_USE rondo_status rondo__graph_admit_copy(rondo_graph *graph,
                                                    const rondo__node_image *image,
                                                    const char *call);

// The same for all that an image names, where it is wanted; its use is noted.
//
// former     what the executable does now: what it uses already is not looked at; NULL: not known.
//
// Errors:    NO_MEMORY; STATE (a block that the graph writes over); DRIVER.
RONDO_MUST_USE rondo_status rondo__graph_admit_addresses(const rondo_graph *graph,
                                                         const rondo__node_image *image,
                                                         const rondo__node_image *former);

// The executable was changed (the backend's patch_nodes): a checked graph watches what the nodes
// use now. Walks all of them.
void rondo__graph_watch_nodes_anew(rondo_graph *graph);
static inline void rondo__graph_watch_anew(rondo_graph *graph) {
    if (graph->checks_addresses) {
        rondo__graph_watch_nodes_anew(graph);
    }
}

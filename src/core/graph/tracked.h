// graph/tracked.h — the nodes of a recording that the program has handles of.
//
// While the graph records they take part in its capture, by the backend's handles; afterwards the
// graph has them, by index.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "capture/capture.h"
#include "rondo/node.h"

typedef struct rondo__tracked rondo__tracked;

// The handle of a node of the capture: the same each time.
//
// Errors:    NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__tracked_add(rondo__capture *capture, rondo__node_handle handle,
                                               rondo_node *out_node);
// The backend's handle of a node of the capture; false: it is none of this recording.
bool rondo__tracked_get_handle(rondo__capture *capture, rondo_node node,
                               rondo__node_handle *out_handle);

// Lets the stream come behind all of them: the ends of a graph that was built by hand.
//
// Errors:    NO_MEMORY, DRIVER.
RONDO_MUST_USE rondo_status rondo__tracked_join(rondo__capture *capture, rondo_stream *stream);

// Those of a capture that has ended; NULL: there are none.
rondo__tracked *rondo__tracked_find(rondo__participant *list);
// From now on they are known by their indices in the template.
//
// Errors:    NO_MEMORY, DRIVER.
RONDO_MUST_USE rondo_status rondo__tracked_resolve(rondo__tracked *tracked,
                                                   rondo__template *recorded);
// Takes them out of the list; the caller destroys them.
rondo__tracked *rondo__tracked_detach(rondo__participant **list);
void rondo__tracked_destroy(rondo__tracked *tracked);  // NULL is fine

// The handle of a node of the template, of `node_count`, by its index. *in_out_tracked may be NULL:
// then it is made.
//
// Errors:    NO_MEMORY.
// Threads:   one thread per graph.
RONDO_MUST_USE rondo_status rondo__tracked_of_index(rondo__tracked **in_out_tracked, size_t index,
                                                    size_t node_count, rondo_node *out_node);

// The index of a node; SIZE_MAX: it is none of this recording. `tracked` may be NULL.
size_t rondo__tracked_get_index(const rondo__tracked *tracked, rondo_node node);

// backend/host/host_capture.h — recordings in progress.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/host/host_stream.h"
#include "backend/host/host_template.h"

// A recording in progress. Guarded by device->capture_lock.
struct rondo__host_capture {
    size_t reference_count;  // streams and events that point here
    uint64_t id;             // never used twice
    bool is_body;            // of a conditional node
    rondo__host_stream *origin;
    rondo__host_stream *streams;  // all that take part, by next_in_capture; NULL: it has ended
    rondo__host_template *recorded;
};

rondo_status rondo__host_begin_capture(rondo_stream *stream, rondo_capture_mode mode,
                                       uint64_t *out_id);
rondo_status rondo__host_get_capture_state(rondo_stream *stream, rondo__capture_state *out_state);
rondo_status rondo__host_end_capture(rondo_stream *stream, rondo__template **out_template);
// A node's handle is its index in the template.
rondo_status rondo__host_get_capture_id(rondo_stream *stream, rondo__capture_state *out_state,
                                        uint64_t *out_id);
rondo_status rondo__host_get_frontier(rondo_stream *stream, rondo__node_handle *nodes,
                                      size_t capacity, size_t *out_count);
rondo_status rondo__host_get_position(rondo_stream *stream, rondo__capture_state *out_state,
                                      uint64_t *out_id, rondo__node_handle *nodes, size_t capacity,
                                      size_t *out_count);
rondo_status rondo__host_get_predecessors(rondo_stream *stream, rondo__node_handle node,
                                          rondo__node_handle *nodes, size_t capacity,
                                          size_t *out_count);
rondo_status rondo__host_add_dependencies(rondo_stream *stream, const rondo__node_handle *nodes,
                                          size_t count);
rondo_status rondo__host_set_frontier(rondo_stream *stream, const rondo__node_handle *nodes,
                                      size_t count);

// Appends the node to the capture of `stream`; *out_was_recorded is false when it has none.
RONDO_MUST_USE rondo_status rondo__host_record_node(rondo__host_stream *stream,
                                                    const rondo__host_node *node,
                                                    bool *out_was_recorded);
// The caller holds device->capture_lock for the rest.
void rondo__host_capture_leave(rondo__host_stream *stream);
void rondo__host_capture_unreference(rondo__host_capture *capture);
RONDO_MUST_USE rondo_status rondo__host_capture_join(rondo__host_capture *capture,
                                                     rondo__host_stream *stream,
                                                     const size_t *nodes, size_t node_count);

// Refuses what no body can hold: breaks the body's capture. OK when the stream records none.
RONDO_MUST_USE rondo_status rondo__host_refuse_in_body(rondo__host_stream *stream, const char *call,
                                                       const char *what);

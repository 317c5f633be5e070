// backend/null/null_capture.h — recording the structure of work: nodes and edges, and no more.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/backend.h"

// A position in a capture: where a stream goes on, or what an event stands for. Zeroed: in none.
typedef struct rondo__null_place {
    uint64_t capture_id;  // of a capture that may have ended; 0: of none
    rondo__node_handle *nodes;
    size_t count;
    size_t capacity;
} rondo__null_place;

typedef struct rondo__null_stream {
    rondo_stream head;
    rondo__null_place place;  // its nodes are the stream's frontier
} rondo__null_stream;

typedef struct rondo__null_event {
    rondo_event head;
    rondo__null_place place;
} rondo__null_event;

// Appends a node to the capture of the stream; does nothing on a stream that does not record.
RONDO_MUST_USE rondo_status rondo__null_record(rondo_stream *stream, const rondo__node_info *info,
                                               const void *arguments, size_t argument_bytes);
// Gives up a capture that began on the stream.
void rondo__null_leave(rondo_stream *stream);

// Entries of the table. A node's handle is its index in the template.
rondo_status rondo__null_wait_event(rondo_stream *stream, rondo_event *event);
rondo_status rondo__null_record_event(rondo_event *event, rondo_stream *stream);
rondo_status rondo__null_record_from_outside(rondo_event *event, rondo_stream *stream);
rondo_status rondo__null_begin_capture(rondo_stream *stream, rondo_capture_mode mode,
                                       uint64_t *out_id);
rondo_status rondo__null_end_capture(rondo_stream *stream, rondo__template **out_template);
rondo_status rondo__null_get_capture_state(rondo_stream *stream, rondo__capture_state *out_state);
rondo_status rondo__null_get_capture_id(rondo_stream *stream, rondo__capture_state *out_state,
                                        uint64_t *out_id);
rondo_status rondo__null_get_frontier(rondo_stream *stream, rondo__node_handle *nodes,
                                      size_t capacity, size_t *out_count);
rondo_status rondo__null_get_position(rondo_stream *stream, rondo__capture_state *out_state,
                                      uint64_t *out_id, rondo__node_handle *nodes, size_t capacity,
                                      size_t *out_count);
rondo_status rondo__null_get_predecessors(rondo_stream *stream, rondo__node_handle node,
                                          rondo__node_handle *nodes, size_t capacity,
                                          size_t *out_count);
rondo_status rondo__null_add_dependencies(rondo_stream *stream, const rondo__node_handle *nodes,
                                          size_t count);
rondo_status rondo__null_count_recorded(rondo_stream *stream, size_t *out_count);
rondo_status rondo__null_describe_recorded(rondo_stream *stream, rondo__node_handle node,
                                           rondo__node_info *out_info);

void rondo__null_destroy_template(rondo__template *template_);
rondo_status rondo__null_count_nodes(rondo__template *template_, size_t *out_count);
rondo_status rondo__null_count_kinds(rondo__template *template_,
                                     size_t counts[RONDO__NODE_KIND_COUNT]);
rondo_status rondo__null_describe_node(rondo__template *template_, size_t index,
                                       rondo__node_info *out_info);
rondo_status rondo__null_list_handles(rondo__template *template_, rondo__node_handle *handles,
                                      size_t count);
rondo_status rondo__null_list_edges(rondo__template *template_, size_t *out_pairs, size_t capacity,
                                    size_t *out_count);
rondo_status rondo__null_visit_arguments(rondo__template *template_, size_t index,
                                         rondo__visit_bytes visit, void *user_data);

rondo_status rondo__null_instantiate(rondo__template *template_,
                                     rondo__executable **out_executable);
rondo_status rondo__null_update(rondo__executable *executable, rondo__template *template_,
                                bool *out_was_updated);
rondo_status rondo__null_run(rondo__executable *executable, rondo_stream *stream);
void rondo__null_destroy_executable(rondo__executable *executable);

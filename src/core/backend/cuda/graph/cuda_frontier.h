// backend/cuda/graph/cuda_frontier.h — where a capture stands. A node's handle is its CUgraphNode.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/backend.h"

rondo_status rondo__cuda_get_capture_state(rondo_stream *stream, rondo__capture_state *out_state);
rondo_status rondo__cuda_get_capture_id(rondo_stream *stream, rondo__capture_state *out_state,
                                        uint64_t *out_id);
rondo_status rondo__cuda_get_frontier(rondo_stream *stream, rondo__node_handle *nodes,
                                      size_t capacity, size_t *out_count);
rondo_status rondo__cuda_get_position(rondo_stream *stream, rondo__capture_state *out_state,
                                      uint64_t *out_id, rondo__node_handle *nodes, size_t capacity,
                                      size_t *out_count);
rondo_status rondo__cuda_get_predecessors(rondo_stream *stream, rondo__node_handle node,
                                          rondo__node_handle *nodes, size_t capacity,
                                          size_t *out_count);
rondo_status rondo__cuda_add_dependencies(rondo_stream *stream, const rondo__node_handle *nodes,
                                          size_t count);
rondo_status rondo__cuda_set_frontier(rondo_stream *stream, const rondo__node_handle *nodes,
                                      size_t count);

// backend/cuda/graph/cuda_body.h — bodies of conditional nodes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/graph/cuda_recording.h"

// A capture of its own on `stream`, into a graph that a node of the capture `parent` (a
// serial) owns. end_body always leaves the stream not recording.
rondo_status rondo__cuda_begin_body_capture(rondo_stream *stream, rondo__cu_graph graph,
                                            uint64_t parent);
rondo_status rondo__cuda_end_body_capture(rondo_stream *stream);

// STATE, with the streams by name, where a stream of the capture was not joined. Before its end.
RONDO_MUST_USE rondo_status rondo__cuda_check_joined(rondo_stream *stream);

// Ends the bodies that could not be ended before `capture`, which has just ended. False: the
// driver has freed a part of its graph, which must not be destroyed. `has_graph`: the end was good.
bool rondo__cuda_end_limbo(rondo__cuda_device *device, rondo__cuda_capture *capture,
                           bool has_graph);

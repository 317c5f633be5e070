// graph/line.h — a graph that is a straight line of nodes, made without a capture.
//
// For callers that know their work beforehand: each node is what a capture of the same call on
// `stream` records, and comes behind the node before it. No stream records meanwhile.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/graph_object.h"
#include "graph/label/label.h"

typedef struct rondo__graph_line {
    rondo_graph *graph;
    rondo__template *recorded;
    rondo_graph_stats stats;
    rondo__label_line *labels;  // NULL: none are wanted
    uint64_t begin_ns;
    rondo__hook_scope scope;
} rondo__graph_line;

// A line for a graph that holds nothing. End or abandon it.
//
// Errors:    UNSUPPORTED (this device or stream records in captures only), NO_MEMORY, DRIVER.
// Threads:   one thread per graph, as all below.
RONDO_MUST_USE rondo_status rondo__graph_line_begin(rondo_graph *graph, rondo_stream *stream,
                                                    rondo__graph_line *out_line);
// Gives the nodes from here on this label, where the line has labels.
//
// Errors:    NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__graph_line_label(rondo__graph_line *line,
                                                    const rondo_stream *stream, const char *text);
// One node more.
//
// Errors:    those of begin; INVALID.
RONDO_MUST_USE rondo_status rondo__graph_line_append(rondo__graph_line *line,
                                                     const rondo__line_node *node);
// The graph is as behind the end of its capture, or holds nothing after a failure.
//
// Errors:    NO_MEMORY, NO_DEVICE_MEMORY, DRIVER, LOST.
RONDO_MUST_USE rondo_status rondo__graph_line_end(rondo__graph_line *line);
void rondo__graph_line_abandon(rondo__graph_line *line);

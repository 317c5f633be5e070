// graph/graph_internal.h — the graph object, shared by the files of this room.
#ifndef RONDO_GRAPH_GRAPH_INTERNAL_H
#define RONDO_GRAPH_GRAPH_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/backend.h"
#include "backend/capture.h"
#include "rondo/graph.h"

typedef enum rondo__graph_state {
    RONDO__GRAPH_EMPTY,
    RONDO__GRAPH_RECORDING,
    RONDO__GRAPH_READY,
} rondo__graph_state;

struct rondo_graph {
    rondo_device *device;  // retained
    rondo__graph_state state;
    rondo__executable *executable;   // READY: never NULL
    rondo__stream_tag *last_stream;  // of the last replay; retained
    rondo_graph_stats stats;
    uint64_t executed_before;   // nodes that former executables ran
    rondo__template *recorded;  // READY and keeps_template: never NULL
    // Who takes part in the graph: its memory, its generators. READY: owned; see backend/capture.h.
    rondo__participant *participants;
    bool keeps_template;
    char *label;
    // While RECORDING.
    rondo_stream *stream;  // borrowed
    rondo__capture *capture;
    rondo_capture_mode mode;
    uint64_t thread_number;  // who began
    uint64_t begin_ns;
};

// OK when the graph holds a template.
//
// Errors:    INVALID, STATE (nothing captured, not kept), LOST.
// Threads:   one thread per graph.
RONDO_MUST_USE rondo_status rondo__graph_check_template(const rondo_graph *graph, const char *call);

#endif  // RONDO_GRAPH_GRAPH_INTERNAL_H

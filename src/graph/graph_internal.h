// graph/graph_internal.h — the graph object, shared by the files of this room.
#ifndef RONDO_GRAPH_GRAPH_INTERNAL_H
#define RONDO_GRAPH_GRAPH_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/backend.h"
#include "capture/capture.h"
#include "rondo/graph.h"
#include "rondo/report.h"

typedef enum rondo__graph_state {
    RONDO__GRAPH_EMPTY,
    RONDO__GRAPH_RECORDING,
    RONDO__GRAPH_RECORDED,  // the template is there, the executable is not yet
    RONDO__GRAPH_READY,
} rondo__graph_state;

struct rondo_graph {
    rondo_device *device;  // retained
    rondo__graph_state state;
    rondo__executable *executable;   // READY: never NULL
    rondo__stream_tag *last_stream;  // of the last replay; retained
    // Who takes part in the graph: its memory, its generators. READY: owned; see capture/capture.h.
    rondo__participant *participants;
    rondo_graph_stats stats;
    uint64_t executed_before;   // nodes that former executables ran
    rondo__template *recorded;  // READY and keeps_template, RECORDED: never NULL
    rondo_arena *arena;         // retained
    bool snapshots_pageable;
    bool checks_addresses;
    bool keeps_template;
    bool defers_instantiation;
    char *label;
    rondo_capture_report report;  // on the latest capture
    // While RECORDING.
    rondo_stream *stream;  // borrowed
    rondo__capture *capture;
    rondo_capture_mode mode;
    uint64_t thread_number;  // who began
    uint64_t begin_ns;       // of base/clock.h
    bool has_kinds;  // stats tells kernels and copies; otherwise they have not been counted yet
    bool has_range;  // a tool of NVTX listens; `range` is what it said, 0 too
    uint64_t range;
};

// Whether this thread may end the capture that the graph records.
bool rondo__graph_may_end(const rondo_graph *graph);
// Ends it, and drops what was recorded. The error record stays as it was.
void rondo__graph_give_up(rondo_graph *graph);

// RECORDED or READY becomes READY with a new executable.
//
// Errors:    NO_MEMORY, NO_DEVICE_MEMORY, UNSUPPORTED, DRIVER, LOST.
RONDO_MUST_USE rondo_status rondo__graph_instantiate(rondo_graph *graph);
// Whether the template can have one executable at a time only.
RONDO_MUST_USE rondo_status rondo__graph_check_exclusive(rondo__template *recorded,
                                                         bool *out_is_exclusive);

// Makes an executable from `recorded` and notes what it cost.
//
// Errors:    NO_MEMORY, NO_DEVICE_MEMORY, UNSUPPORTED, DRIVER, LOST.
RONDO_MUST_USE rondo_status rondo__graph_make_executable(rondo_graph *graph,
                                                         rondo__template *recorded,
                                                         rondo__executable **out_executable,
                                                         rondo_graph_stats *in_out_stats);
// Takes the executable in the place of the former one: the graph is READY.
void rondo__graph_set_executable(rondo_graph *graph, rondo__executable *executable);
// Fills the counts of nodes; those inside child nodes count as kernels and copies, too.
RONDO_MUST_USE rondo_status rondo__graph_count_kinds(rondo__template *recorded,
                                                     rondo_graph_stats *in_out_stats);
// Waits for the last replay. What the graph holds may be freed then.
void rondo__graph_wait(rondo_graph *graph);
// The same, and frees everything: the graph is EMPTY afterwards.
void rondo__graph_clear(rondo_graph *graph);

// The graph's participants, also when it shares them with graphs that it was recorded into.
rondo__participant *rondo__graph_get_participants(const rondo_graph *graph);

// What an executable of the graph may take of the device's memory, from the number of its nodes.
void rondo__graph_estimate_device_bytes(const rondo_graph *graph, rondo_graph_stats *stats);

// Tells a checked graph's guard which addresses the nodes of the template use.
//
// Errors:    NO_MEMORY, DRIVER.
// Threads:   one thread per graph.
RONDO_MUST_USE rondo_status rondo__graph_guard_nodes(rondo_graph *graph);

// OK when the graph holds a template.
//
// Errors:    INVALID, STATE (nothing captured, not kept), LOST.
// Threads:   one thread per graph.
RONDO_MUST_USE rondo_status rondo__graph_check_template(const rondo_graph *graph, const char *call);

// Fills graph->report for a capture that yields nothing. `blame` is what was known when it ended;
// the thread's error record is what the end, or a later part, said. When the blame knows better,
// the record and the status become those of the first failure.
//
// Returns:   the status of the failure.
rondo_status rondo__graph_report_failure(rondo_graph *graph, const rondo__blame *blame,
                                         rondo_capture_cause fallback);
// The same for a capture that the program gave up; the thread's error record stays.
void rondo__graph_report_abort(rondo_graph *graph, const rondo__blame *blame);

#endif  // RONDO_GRAPH_GRAPH_INTERNAL_H

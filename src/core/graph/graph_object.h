// graph/graph_object.h — the graph object.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "backend/backend.h"
#include "base/log/hook.h"
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
    uint64_t replay_count;    // what a replay looks at ends here: one line of the processor's cache
    rondo_graph_stats stats;  // but for replay_count
    uint64_t executed_before;   // nodes that former executables ran
    rondo__template *recorded;  // READY and keeps_template, RECORDED: never NULL
    rondo_arena *arena;         // retained
    bool has_given_arena;       // options.arena
    bool snapshots_pageable;
    bool checks_addresses;
    bool is_watched;     // a watchdog knows it, and hears when it goes
    size_t watch_place;  // where the watchdog that saw it last has it
    bool keeps_template;
    bool defers_instantiation;
    char *label;
    struct rondo__tracked *tracked;  // nodes that the program has handles of; NULL: none
    rondo__node_image **images;      // by index, of nodes that were patched; NULL: none
    size_t image_count;
    uint64_t patch_call_count;
    rondo_graph *spare;           // records what this one will take over; NULL: not yet
    rondo_stream *builder;        // records what is built by hand; NULL: not yet
    bool is_in_step;              // a call adds a node or step; what it calls may not, nor destroy
    rondo_capture_report report;  // on the latest capture
    // While RECORDING.
    rondo_stream *stream;            // borrowed
    rondo__capture *capture;         // the open one: `capture_memory`
    rondo__capture *capture_memory;  // of all its captures; NULL: not yet
    rondo_capture_mode mode;
    uint64_t thread_number;  // who began
    uint64_t begin_ns;       // of base/clock.h
    bool has_kinds;  // stats tells kernels and copies; otherwise they have not been counted yet
    rondo__hook_scope scope;  // of the capture
};

// rondo_graph_replay by a thread that will wait for it: where the backend can, this thread does the
// work at once.
RONDO_MUST_USE rondo_status rondo__graph_replay_here(rondo_graph *graph, rondo_stream *stream,
                                                     bool *out_ran_here);

// Waits for the last replay. Then the graph's objects may be freed.
void rondo__graph_wait(rondo_graph *graph);
// The same, and frees everything: the graph is EMPTY afterwards.
void rondo__graph_clear(rondo_graph *graph);

// OK when the graph holds a template.
//
// Errors:    INVALID, STATE (nothing captured, not kept), LOST.
// Threads:   one thread per graph.
RONDO_MUST_USE rondo_status rondo__graph_check_template(const rondo_graph *graph, const char *call);

// The failure of `call` on a graph that is not READY: STATE.
rondo_status rondo__graph_fail_not_ready(const rondo_graph *graph, const char *call);

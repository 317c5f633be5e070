// rondo/graph.h — capture work once, replay it at hardware speed.
//
//   rondo_graph_create(device, NULL, &graph);
//   rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL);
//   ... put work on `stream`: nothing runs, everything is recorded ...
//   rondo_graph_capture_end(graph);
//   for (;;) { refill_inputs(); rondo_graph_replay(graph, stream); }
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_GRAPH_H
#define RONDO_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rondo/device.h"
#include "rondo/export.h"
#include "rondo/status.h"

RONDO_EXTERN_C_BEGIN

typedef struct rondo_graph rondo_graph;
typedef struct rondo_arena rondo_arena;  // rondo/pool.h

// Whose unrelated calls break a capture when they wait, query or take memory from the driver.
typedef int32_t rondo_capture_mode;
enum {
    RONDO_CAPTURE_THREAD_LOCAL = 0,  // the program's own driver calls on the capturing thread
    RONDO_CAPTURE_GLOBAL = 1,        // those of any thread and for any GPU, and Rondo's unsafe ones
    RONDO_CAPTURE_RELAXED = 2,       // only cuCtxSynchronize; any thread may end it
};

// What a capture does with copies from pageable memory, which a replay would read anew.
typedef int32_t rondo_pageable_sources;
enum {
    RONDO_PAGEABLE_REFUSE = 0,    // they fail, and break the capture
    RONDO_PAGEABLE_SNAPSHOT = 1,  // replays read a copy of the bytes, made at the capture
};

// What is left of a capture: the template is what was recorded, the executable what replays.
typedef int32_t rondo_graph_keeps;
enum {
    RONDO_KEEP_EXECUTABLE = 0,
    RONDO_KEEP_TEMPLATE = 1,       // both: for dumps, handles, updates, and other captures
    RONDO_KEEP_TEMPLATE_ONLY = 2,  // no executable until rondo_graph_instantiate or a first replay
};

typedef struct rondo_graph_options {
    size_t struct_size;      // sizeof(rondo_graph_options)
    rondo_graph_keeps keep;  // what is left when the capture has ended
    const char *label;       // shown in dumps and errors; copied; NULL means "graph"
    rondo_arena *arena;      // where captures take memory from; retained; NULL: one of its own
    rondo_pageable_sources pageable_sources;
    bool check_addresses;  // for tests: refuse replays that use memory which was freed
} rondo_graph_options;

// Creates an empty graph.
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_create(rondo_device *device,
                                                         const rondo_graph_options *options,
                                                         rondo_graph **out_graph);

// Aborts a running capture, waits for replays in flight, frees everything. Inside the graph's own
// step it does nothing but warn.
//
// Threads:   while it records, the thread that began, unless the mode is relaxed.
RONDO_API void rondo_graph_destroy(rondo_graph *graph);

// ---- capture ----------------------------------------------------------------------------------

// Starts recording what is put on `stream`; nothing runs until replay.
//
// Errors:    STATE (the graph holds or records something, the stream records), INVALID (the legacy
//            default stream).
// Ownership: `stream` stays until the end; destroying it breaks the capture.
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_capture_begin(rondo_graph *graph,
                                                                rondo_stream *stream,
                                                                rondo_capture_mode mode);

// Ends recording and makes the executable. An empty capture succeeds, with a warning in the log.
// After a failure stream and graph can record again; rondo_graph_get_report says what broke it.
//
// Errors:    STATE (not recording; broken; a forked stream was not joined), NO_DEVICE_MEMORY.
// Threads:   the thread that began, unless the mode is relaxed. Others are refused.
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_capture_end(rondo_graph *graph);

// Gives up a capture; nothing happens when none runs.
//
// Threads:   as the end; on another one the capture is only broken, and has to be ended yet.
RONDO_API void rondo_graph_capture_abort(rondo_graph *graph);

typedef rondo_status (*rondo_step_function)(rondo_stream *stream, void *user_data);

typedef struct rondo_step_options {
    size_t struct_size;       // sizeof(rondo_step_options)
    rondo_capture_mode mode;  // default: thread_local
    bool capture_only;        // never run the step eagerly
} rondo_step_options;

typedef int32_t rondo_step_outcome;
enum {
    RONDO_STEP_NOTHING = 0,      // the call failed
    RONDO_STEP_CAPTURED = 1,     // recorded and not run: replay the graph
    RONDO_STEP_RAN_EAGERLY = 2,  // not recorded: the work is on the stream; see the report
};

// Begins, calls `step`, ends. When the step cannot be recorded, that is rolled back, and `step` is
// called again to run at once. So it must have no effect but on the stream, and leave the capture
// to this call. A step that fails by itself is not called again.
//
// Errors:    of begin, of the step, and with `capture_only` of the end.
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_capture_step(
    rondo_graph *graph, rondo_stream *stream, const rondo_step_options *options,
    rondo_step_function step, void *user_data, rondo_step_outcome *out_outcome);

// ---- replay -----------------------------------------------------------------------------------

// Runs the recorded work in stream order on any stream of the device. Replays of one graph come one
// behind another.
//
// Errors:    STATE (nothing captured; the graph records; check_addresses or the arena refuses it),
//            NO_DEVICE_MEMORY.
// Capture:   STATE on a stream that records: use rondo_stream_add_graph.
// Cost:      one driver call; no allocation or wait while the stream has room; a lock only with
//            shared arenas.
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_replay(rondo_graph *graph, rondo_stream *stream);

// Uploads the executable, so that the first replay costs no more than later ones. Fails as they do.
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_upload(rondo_graph *graph, rondo_stream *stream);

// Waits for replays in flight, frees template and executable; the graph can record again.
//
// Errors:    STATE (recording).
RONDO_API rondo_status rondo_graph_reset(rondo_graph *graph);

// What a graph holds and what it cost, since the last reset.
typedef struct rondo_graph_stats {
    size_t struct_size;     // sizeof(rondo_graph_stats)
    uint64_t node_count;    // the next two count those inside nodes, too
    uint64_t kernel_count;  // on the host launches and host functions
    uint64_t copy_count;    // memcpy and memset nodes
    uint64_t replay_count;
    uint64_t capture_ns;            // wall time between begin and end
    uint64_t instantiate_ns;        // wall time of the last instantiation
    uint64_t device_bytes;          // the driver's memory of the executable; 0 on the host
    bool device_bytes_is_estimate;  // until rondo_graph_measure_device_bytes (rondo/inspect.h)
    uint64_t executed_count;        // host: nodes that the finished replays have run; CUDA: 0
    // Memory that captures took from pools, of all graphs that share the arena.
    uint64_t arena_live_bytes;      // blocks handed out now
    uint64_t arena_reserved_bytes;  // taken from pools now
    uint64_t arena_peak_bytes;      // most that was handed out at a time
} rondo_graph_stats;

// Fills *out_stats.
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_get_stats(const rondo_graph *graph,
                                                            rondo_graph_stats *out_stats);

// ---- a template that was kept -----------------------------------------------------------------

// Makes the executable again, say after an edit through its native handle.
//
// Errors:    STATE (no template), NO_DEVICE_MEMORY.
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_instantiate(rondo_graph *graph);

// Records a copy of the graph's template, without patches, as one node into the capture of
// `stream`, Rondo's or the program's.
//
// Errors:    STATE (no template; `stream` does not record; graphs that share an arena, see
//            docs/captures.md), UNSUPPORTED (conditional or memory nodes inside; generators or
//            pools, and the capture is not Rondo's).
// Ownership: what `graph` keeps alive lives as long as the outer graph; in a capture that is not
//            Rondo's, `graph` must.
RONDO_API RONDO_MUST_USE rondo_status rondo_stream_add_graph(rondo_stream *stream,
                                                             rondo_graph *graph);

RONDO_EXTERN_C_END

#endif  // RONDO_GRAPH_H

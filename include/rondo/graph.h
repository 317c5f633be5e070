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
#include "rondo/pool.h"
#include "rondo/status.h"
#include "rondo/text.h"

RONDO_EXTERN_C_BEGIN

typedef struct rondo_graph rondo_graph;

// Whose unrelated calls break a capture, as in CUDA; docs/concepts.md has a table. Such calls take
// memory from the driver, wait, or query. Rondo's own break only global captures, and are refused;
// rondo_device_synchronize also breaks thread_local ones of its own thread.
typedef int32_t rondo_capture_mode;
enum {
    RONDO_CAPTURE_THREAD_LOCAL = 0,  // the program's own driver calls on the capturing thread
    RONDO_CAPTURE_GLOBAL = 1,        // those of any thread and for any GPU, and Rondo's calls
    RONDO_CAPTURE_RELAXED = 2,       // none; and any thread may end the capture
};

// What a capture does with a host-to-device copy whose source is pageable memory: a replay would
// read whatever stands there by then, if it stands there at all.
typedef int32_t rondo_pageable_sources;
enum {
    // The copy fails, naming the address, and breaks the capture: the default, because a program
    // that refills its source before each replay would silently get the old bytes from a snapshot.
    RONDO_PAGEABLE_REFUSE = 0,
    // The bytes are copied at once into pinned memory of the graph; each replay reads those.
    RONDO_PAGEABLE_SNAPSHOT = 1,
};

// What is left of a capture when it has ended. The template is what was recorded; the executable is
// made of it, and is what replays.
typedef int32_t rondo_graph_keeps;
enum {
    RONDO_KEEP_EXECUTABLE = 0,
    RONDO_KEEP_TEMPLATE = 1,  // both: for dumps, handles, updates, and to add it to other captures
    // Only the template: capture_end makes no executable. rondo_graph_instantiate does, or the
    // first replay or upload. For templates that are edited, added elsewhere or only looked at.
    RONDO_KEEP_TEMPLATE_ONLY = 2,
};

typedef struct rondo_graph_options {
    size_t struct_size;      // sizeof(rondo_graph_options)
    rondo_graph_keeps keep;  // what is left when the capture has ended
    const char *label;       // shown in dumps and errors; copied; NULL means "graph"
    // Where captures take memory from: shared with other graphs, retained. NULL means an arena of
    // the graph's own. See rondo/pool.h.
    rondo_arena *arena;
    rondo_pageable_sources pageable_sources;
    // Checked mode: a replay is refused, naming the work and the address, when memory that the
    // graph was seen to use was freed since, also if it was given out again. Memory of
    // rondo_memory_allocate, of pools, and on CUDA whatever else the driver has given out, to the
    // program or to other libraries. Seen are the destinations and sources of copies and fills, the
    // predicates of conditional nodes, and eight-byte words in the arguments of kernels and of
    // rondo_stream_call_host; on CUDA also of the program's own launches (driver 12.4). In bodies,
    // too, and in recorded graphs, but there no words of rondo_stream_call_host: check the recorded
    // graph itself. Not seen are addresses that stand in memory themselves, memory from malloc, and
    // blocks that others cut out of one allocation.
    // For testing: each replay looks at every one (on CUDA some 50 ns for each that Rondo did not
    // give out).
    bool check_addresses;
} rondo_graph_options;

// What a graph holds and what it cost. Counters are since the last reset.
typedef struct rondo_graph_stats {
    size_t struct_size;     // sizeof(rondo_graph_stats)
    uint64_t node_count;    // of the graph itself; the next two count those inside nodes, too
    uint64_t kernel_count;  // kernel nodes; on the host backend launches and host functions
    uint64_t copy_count;    // memcpy and memset nodes
    uint64_t replay_count;
    uint64_t capture_ns;      // wall time between begin and end
    uint64_t instantiate_ns;  // wall time of the last instantiation
    // Driver-side memory of the executable, estimated from the number of nodes until
    // rondo_graph_measure_device_bytes has measured it; 0 on the host.
    uint64_t device_bytes;
    bool device_bytes_is_estimate;
    // Nodes that the finished replays have run, those of conditional bodies each time: the proof
    // that a graph really ran. Host backend; 0 on CUDA, where the driver does not count.
    uint64_t executed_count;
    // Memory that the capture took from pools; of all graphs together that share the arena.
    uint64_t arena_live_bytes;      // blocks handed out now
    uint64_t arena_reserved_bytes;  // taken from pools now
    uint64_t arena_peak_bytes;      // most that was handed out at a time
} rondo_graph_stats;

// Creates an empty graph.
//
// options    NULL means the defaults.
//
// Ownership: caller destroys it; the device is retained.
// Threads:   a graph is used by one thread at a time; different graphs are independent.
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_create(rondo_device *device,
                                                         const rondo_graph_options *options,
                                                         rondo_graph **out_graph);

// Gives up a running capture, waits for replays in flight, frees everything. NULL is fine.
//
// Threads:   one thread per graph. While it records, the thread that began, unless the mode is
//            relaxed: no other one can take the stream out of recording on CUDA.
// Capture:   breaks no other capture of any mode.
RONDO_API void rondo_graph_destroy(rondo_graph *graph);

// Starts recording what is put on `stream`; nothing runs until replay.
//
// Errors:    STATE (graph already holds or records something, stream already records), INVALID
//            (legacy default stream, stream of another device).
// Ownership: `stream` is borrowed until capture_end or capture_abort; destroying it breaks the
//            capture.
// Threads:   end on the same thread unless the mode is relaxed.
// Capture:   not legal while `stream` records. Refused, it breaks nothing.
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_capture_begin(rondo_graph *graph,
                                                                rondo_stream *stream,
                                                                rondo_capture_mode mode);

// Ends recording and instantiates the executable (unless that is deferred).
//
// A capture without nodes succeeds with a warning in the log; its replay does nothing. After a
// failure the stream is usable, the graph is empty, and both can record again; what broke the
// capture is in the error record and, in full, in the report (rondo/report.h). A call that failed
// to record its work breaks the capture, because the step would lack it.
//
// Errors:    STATE (not recording; the capture was broken: the record names op and cause, the
//            report has the status of the call that broke it; a forked stream was not joined, which
//            CUDA overlooks where it ends in a conditional node or a recorded graph),
//            NO_DEVICE_MEMORY.
// Threads:   the thread that began, unless the mode is relaxed. Another one is refused, and the
//            capture goes on.
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_capture_end(rondo_graph *graph);

// Gives up a capture: the stream is usable again and the graph empty. Harmless when nothing
// records.
//
// Threads:   the thread that began, unless the mode is relaxed. On another one the capture is only
//            broken: the thread that began still has to end it, and rondo_graph_capture_end says
//            why it failed.
RONDO_API void rondo_graph_capture_abort(rondo_graph *graph);

// Runs the recorded work in stream order on any stream of the device. Replays of one graph come one
// behind another, also on different streams; those of a graph without work order nothing.
//
// Errors:    STATE (nothing captured, still recording, `stream` records; a graph that shares the
//            arena would lose data: see rondo/pool.h; check_addresses found memory that was freed),
//            INVALID (other device); NO_MEMORY, NO_DEVICE_MEMORY of the instantiation
//            (RONDO_KEEP_TEMPLATE_ONLY), or of a generator or arena that was used elsewhere
//            meanwhile.
// Capture:   not legal while `stream` records: rondo_stream_add_graph does that. Refused, it breaks
//            nothing.
// Cost:      one driver call; no allocation, no lock, no wait while the stream has room
//            (rondo/device.h). With generators: one lock for all of
//            them. Graphs that share an arena: a lock, and an event where the stream changes.
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_replay(rondo_graph *graph, rondo_stream *stream);

// Uploads the executable so that the first replay costs no more than the later ones.
//
// Errors:    STATE (nothing captured, still recording, `stream` records), INVALID (other device),
//            NO_DEVICE_MEMORY.
// Capture:   not legal while `stream` records. Refused, it breaks nothing.
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_upload(rondo_graph *graph, rondo_stream *stream);

// Waits for replays in flight, frees template and executable; the graph can record again. Where the
// stream of the last replay records by now it does not wait: what that replay needs is kept until
// it has finished.
//
// Errors:    STATE (recording).
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_reset(rondo_graph *graph);

// Instantiates again from the kept template, for example after an edit through the raw handle.
// Replays of the former executable are waited for when the graph owns memory or generators.
//
// CUDA's driver makes one executable at a time of a template with conditional nodes, or with memory
// nodes of the program's own. There the former one is given up first; should the new one fail, the
// next replay or instantiation tries again.
//
// Errors:    STATE (nothing captured, or template not kept: RONDO_KEEP_TEMPLATE), NO_DEVICE_MEMORY.
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_instantiate(rondo_graph *graph);

// What rondo_graph_update did.
typedef int32_t rondo_update_result;
enum {
    RONDO_UPDATE_PATCHED = 0,       // the executable was patched: same nodes and edges
    RONDO_UPDATE_INSTANTIATED = 1,  // it was made anew: something else changed, or there was none
};

// Takes over what `source` recorded: the way to capture again, cheaply.
//
// The executable is patched to the new template when nodes and edges are the same, and made anew
// when they are not. `source` is empty afterwards and can record again; its memory and generators
// belong to `graph`, and those that `graph` had are given up once its replays in flight have
// finished. The two graphs' arenas (rondo/pool.h) are swapped. After a failure both graphs are as
// they were.
//
// graph       may be empty: then this is the first instantiation. Its own template, if it keeps
//             one, becomes that of `source`.
// source      needs RONDO_KEEP_TEMPLATE; with RONDO_KEEP_TEMPLATE_ONLY no executable is made in
//             vain. Where its template can have one executable only (see rondo_graph_instantiate)
//             and has one, that is taken over.
// out_result  may be NULL.
//
// Errors:    STATE (source holds no template, one of them records), INVALID (other device, the same
//            graph twice), NO_DEVICE_MEMORY.
// Cost:      patching is several times cheaper than instantiating; no wait unless `graph` owns
//            memory or generators.
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_update(rondo_graph *graph, rondo_graph *source,
                                                         rondo_update_result *out_result);

// Records the graph's work as one node into the capture that `stream` takes part in.
//
// The capture may be of another Rondo graph, or one that the program began itself on its native
// stream. Like other work, the node comes after what was recorded on `stream` and before what will
// be. It holds a copy: editing, resetting or updating `graph` later does not change it.
//
// Its nodes keep their labels (rondo/label.h), behind those in force on `stream` now.
//
// The graphs of one arena (rondo/pool.h) write over each other's freed blocks, and a replay of the
// outer graph is one of all of them. So of an arena with checks a capture records graphs one behind
// the other on one stream, none that takes in or writes over what another of them leaves behind,
// and takes no blocks of its own from it.
//
// Errors:    STATE (the graph holds no template: RONDO_KEEP_TEMPLATE; `stream` does not record, or
//            its capture is broken; graphs of one arena, see above), INVALID (other device),
//            UNSUPPORTED (the graph has conditional nodes, which cannot be copied; or it needs to
//            be asked before each replay, by a generator or pool named in the message, and the
//            capture is not Rondo's). After any of them the capture is broken, which would lack the
//            graph.
// Ownership: what the graph keeps alive (memory, generators, external events) lives until the outer
//            graph is reset or destroyed, too. In a capture that is not Rondo's, `graph` must not
//            be reset or destroyed while that graph is used.
// Capture:   only legal while `stream` records.
RONDO_API RONDO_MUST_USE rondo_status rondo_stream_add_graph(rondo_stream *stream,
                                                             rondo_graph *graph);

// Fills *out_stats; O(1), except that the nodes of a graph which has recorded and was not yet made
// executable are counted by asking the driver for each.
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_get_stats(const rondo_graph *graph,
                                                            rondo_graph_stats *out_stats);

// Measures the driver-side memory of one executable: instantiates the kept template repeatedly
// until the device's free memory drops, and divides. The result stands in the statistics, too.
//
// Units:     bytes; good to a few per cent for graphs of at least some hundred nodes. Other
//            programs on the device disturb it.
// Errors:    STATE (nothing captured, template not kept), UNSUPPORTED (host backend; conditional
//            nodes; nothing to be seen), NO_DEVICE_MEMORY.
// Cost:      up to 1024 instantiations, or as many as have 100 000 nodes together.
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_measure_device_bytes(rondo_graph *graph,
                                                                       uint64_t *out_bytes);

// The graph's arena, to make other graphs share its memory (see rondo/pool.h).
//
// From now on replays of the graph are checked against those of sharers.
//
// Ownership: borrowed; a graph made with it keeps a reference of its own.
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_get_arena(rondo_graph *graph,
                                                            rondo_arena **out_arena);

// The raw handles, borrowed: CUgraph (needs RONDO_KEEP_TEMPLATE) and CUgraphExec. An output may be
// NULL.
//
// After an edit through the template's handle, rondo_graph_instantiate makes a new executable.
//
// Errors:    STATE (nothing captured, template not kept, not instantiated yet), UNSUPPORTED (host
//            backend has no such handle).
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_get_native(rondo_graph *graph,
                                                             void **out_template,
                                                             void **out_executable);

// ---- a step that is finished either way -------------------------------------------------------

// Puts one step on the stream. It runs once to be recorded, and once more when that failed and the
// step is to be finished eagerly.
typedef rondo_status (*rondo_step_function)(rondo_stream *stream, void *user_data);

typedef struct rondo_step_options {
    size_t struct_size;       // sizeof(rondo_step_options)
    rondo_capture_mode mode;  // default: thread_local
    bool capture_only;        // a capture that fails is an error; false: then run the step at once
} rondo_step_options;

typedef int32_t rondo_step_outcome;
enum {
    RONDO_STEP_NOTHING = 0,      // the call failed: nothing was recorded, nothing left to run
    RONDO_STEP_CAPTURED = 1,     // recorded and not run: replay the graph
    RONDO_STEP_RAN_EAGERLY = 2,  // not recorded: the work is on the stream; see the report
};

// Records what `step` puts on the stream; when that cannot be recorded, runs it instead.
//
// Begins a capture, calls the step, ends. When the capture was broken, by the step or by another
// thread, or the step returned UNSUPPORTED, it is rolled back and the step is called again on the
// stream, which does not record any more. A step that fails for a reason of its own is not called
// again: the capture is aborted, and the step's status and error record are the result.
//
// The step leaves the graph and its capture to this call: one that ends or aborts the capture by
// itself is refused (STATE) and the graph is empty. Nor does it destroy the stream.
//
// For the second call to be right, the step must have no effect but on the stream: a counter it
// advances, a file it reads, a host buffer it fills by itself happen twice. Pools and generators of
// Rondo are rolled back, label scopes it left open are closed. So blocks that the first call took
// are gone by the second one, which takes its own: it must not free them.
//
// options      NULL means the defaults.
// out_outcome  cleared on entry.
//
// Errors:    as rondo_graph_capture_begin; the step's own; with capture_only those of
//            rondo_graph_capture_end; otherwise those of the step outside the capture.
// Capture:   not legal while `stream` records.
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_capture_step(
    rondo_graph *graph, rondo_stream *stream, const rondo_step_options *options,
    rondo_step_function step, void *user_data, rondo_step_outcome *out_outcome);

// ---- looking inside ---------------------------------------------------------------------------

typedef int32_t rondo_node_kind;
enum {
    RONDO_NODE_KERNEL = 0,
    RONDO_NODE_HOST = 1,  // a host function
    RONDO_NODE_COPY = 2,
    RONDO_NODE_FILL = 3,
    RONDO_NODE_EMPTY = 4,
    RONDO_NODE_EVENT_WAIT = 5,  // of external events
    RONDO_NODE_EVENT_RECORD = 6,
    RONDO_NODE_CHILD = 7,        // a graph inside: rondo_stream_add_graph
    RONDO_NODE_CONDITIONAL = 8,  // graphs inside: bodies
    RONDO_NODE_OTHER = 9,        // what only the driver's own calls can record
};

// One node. Fields that do not belong to its kind are 0.
typedef struct rondo_graph_node {
    size_t struct_size;  // sizeof(rondo_graph_node)
    rondo_node_kind kind;
    const char *name;   // of kernel, host function or conditional; lives as long as the template
    const char *label;  // path of the scopes it was recorded in (rondo/label.h), otherwise ""
    uint32_t grid[3];   // kernels: blocks
    uint32_t block[3];  // kernels: threads per block
    uint32_t shared_bytes;      // kernels: dynamic shared memory
    rondo_copy_kind copy_kind;  // copies
    const void *destination;    // copies and fills
    const void *source;         // copies
    uint64_t byte_count;        // copies and fills: all bytes written
    uint32_t fill_value;
    uint32_t element_bytes;  // fills: of one element
    uint64_t width;          // copies: bytes in a row; fills: elements in a row
    uint64_t height;         // copies and fills: rows
    uint64_t depth;          // copies: slices
    uint64_t pitch_bytes;    // fills of several rows: from one row to the next
    const void *event;       // event nodes: CUevent; on the host only an identity
    const void *predicate;   // conditional nodes; their name is "if", "if_else", "switch", "while"
    uint32_t branch_count;   // conditional nodes; 0: not known, as of one that Rondo did not record
    uint64_t inner_count;    // child and conditional nodes: nodes inside
    const void *native;      // CUgraphNode; NULL on the host
} rondo_graph_node;

// An edge: `to` depends on `from`.
typedef struct rondo_graph_edge {  // ABI: fixed
    uint64_t from;
    uint64_t to;
    bool is_programmatic;  // `to` may start earlier and waits by itself (RONDO_LAUNCH_OVERLAP)
} rondo_graph_edge;

// How many nodes the template has.
//
// Errors:    STATE (nothing captured, template not kept).
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_get_node_count(rondo_graph *graph,
                                                                 size_t *out_count);

// Describes a node by its index.
//
// Errors:    STATE (nothing captured, template not kept), INVALID (no such node).
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_get_node(rondo_graph *graph, size_t index,
                                                           rondo_graph_node *out_node);

// Lists the edges between the template's nodes.
//
// Writes at most `capacity`; *out_count is how many there are, so a first call may pass edges =
// NULL and capacity = 0.
//
// Errors:    STATE (nothing captured, template not kept).
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_list_edges(rondo_graph *graph,
                                                             rondo_graph_edge *edges,
                                                             size_t capacity, size_t *out_count);

// Writes the template's nodes and edges as RONDO_TEXT_DOT or RONDO_TEXT_JSON, with every field that
// rondo_graph_get_node has. Graphs inside nodes, at any depth, are clusters in DOT and nested
// objects in JSON; of their nodes it says the same as of others. Their labels are whole paths, from
// the scopes around the outermost node on.
//
// Errors:    STATE (nothing captured, template not kept).
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_dump(rondo_graph *graph, rondo_text_format format,
                                                       rondo_write_function write, void *user_data);

RONDO_EXTERN_C_END

#endif  // RONDO_GRAPH_H

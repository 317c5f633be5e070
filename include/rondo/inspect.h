// rondo/inspect.h — looking inside a graph: its nodes and edges, dumps, memory, native handles.
//
// All of it looks at the template, so the graph must keep that (RONDO_KEEP_TEMPLATE): "no template"
// below means that it does not, or that nothing was captured. What is handed out is borrowed until
// the graph is reset, updated or destroyed.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_INSPECT_H
#define RONDO_INSPECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rondo/device.h"
#include "rondo/export.h"
#include "rondo/graph.h"
#include "rondo/status.h"
#include "rondo/text.h"

RONDO_EXTERN_C_BEGIN

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
    uint32_t branch_count;   // conditional nodes; 0: not known, Rondo did not record it
    uint64_t inner_count;    // child and conditional nodes: nodes inside
    const void *native;      // CUgraphNode; NULL on the host
} rondo_graph_node;

// An edge: `to` depends on `from`.
typedef struct rondo_graph_edge {  // ABI: fixed
    uint64_t from;
    uint64_t to;
    bool is_programmatic;  // `to` may start earlier and waits by itself (RONDO_LAUNCH_OVERLAP)
} rondo_graph_edge;

// How many nodes the template has, those inside nodes not counted.
//
// Errors:    STATE (no template).
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_get_node_count(rondo_graph *graph,
                                                                 size_t *out_count);

// Describes a node by its index.
//
// Errors:    STATE (no template), INVALID (no such node).
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_get_node(rondo_graph *graph, size_t index,
                                                           rondo_graph_node *out_node);

// Lists the edges between the template's nodes.
//
// Errors:    STATE (no template).
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_list_edges(rondo_graph *graph,
                                                             rondo_graph_edge *edges,
                                                             size_t capacity, size_t *out_count);

// Writes the template's nodes and edges as RONDO_TEXT_DOT or RONDO_TEXT_JSON, with every field that
// rondo_graph_get_node has. Graphs inside nodes, at any depth, are clusters in DOT and nested
// objects in JSON; of their nodes it says the same as of others. Their labels are whole paths, from
// the scopes around the outermost node on.
//
// Errors:    STATE (no template).
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_dump(rondo_graph *graph, rondo_text_format format,
                                                       rondo_write_function write, void *user_data);

// Measures the driver-side memory of one executable: instantiates the template repeatedly until the
// device's free memory drops, and divides. The result stands in the statistics, too.
//
// Units:     bytes; good to a few per cent for graphs of at least some hundred nodes. Other
//            programs on the device disturb it.
// Errors:    STATE (no template), UNSUPPORTED (host backend; conditional or memory nodes,
//            device-updatable kernels; nothing to be seen), NO_DEVICE_MEMORY.
// Cost:      up to 1024 instantiations, or as many as have 100 000 nodes together.
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_measure_device_bytes(rondo_graph *graph,
                                                                       uint64_t *out_bytes);

// The native handles: CUgraph (needs the template) and CUgraphExec. An output may be NULL.
//
// After an edit through the template's handle, rondo_graph_instantiate makes a new executable.
//
// Errors:    STATE (no template, not instantiated yet), UNSUPPORTED (the host has no such handles).
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_get_native(rondo_graph *graph,
                                                             void **out_template,
                                                             void **out_executable);

// ---- replays that stall -----------------------------------------------------------------------

// Tells when a replay makes no progress for a stated time, and stops nothing:
//
//   rondo_watchdog_create(device, &options, &watchdog);
//   rondo_label_push(stream, "layer3");
//   rondo_watchdog_mark(watchdog, graph, stream);    // while it is recorded: a place to report
//   ...
//   rondo_watchdog_replay(watchdog, graph, stream);  // instead of rondo_graph_replay
//
// Executors take one, too (rondo_executor_options): each op is a mark then. A thread of the library
// looks at words that the device writes; it calls no driver. Other replays cost what they did; one
// that is watched, and each mark, is a fill of four bytes more.
typedef struct rondo_watchdog rondo_watchdog;

// A stall. All that it points to is borrowed for the call.
typedef struct rondo_stall {
    size_t struct_size;      // of the library's struct, which may be longer than the program's
    const char *device;      // "cuda:0"
    int32_t driver_version;  // as in rondo_device_info
    const char *graph;       // its label
    const char *last_label;  // scopes (rondo/label.h) of the last mark that the replay has passed;
                             // "" where it has passed none
    uint64_t mark;           // which mark, from 1; 0: none
    uint64_t mark_count;     // that the graph has
    uint32_t stream;         // its number, as messages have it
    uint64_t waited_ns;      // without progress
    const char *text;        // all of it in a line, and what else is under way
} rondo_stall;

// Called on the watchdog's thread, once until the replay goes on or another stalls. It must not
// call the watchdog.
typedef void (*rondo_stall_function)(void *user_data, const rondo_stall *stall);

typedef struct rondo_watchdog_options {
    size_t struct_size;             // sizeof(rondo_watchdog_options)
    uint64_t timeout_ns;            // without progress: no mark passed, no replay over; 0: 10 s
    rondo_stall_function function;  // NULL: a warning in the log
    void *user_data;
} rondo_watchdog_options;

// Makes a watchdog, and the thread on which it looks.
RONDO_API RONDO_MUST_USE rondo_status rondo_watchdog_create(rondo_device *device,
                                                            const rondo_watchdog_options *options,
                                                            rondo_watchdog **out_watchdog);

// Frees the watchdog. Call it behind the last watched replay, and the last one of graphs that were
// marked: these write its memory.
RONDO_API void rondo_watchdog_destroy(rondo_watchdog *watchdog);

// Records a mark: a replay that stalls later tells the scopes that are open on the stream now.
//
// Errors:    STATE (`stream` does not record `graph`). A failure breaks nothing.
// Capture:   only legal while `stream` records.
RONDO_API RONDO_MUST_USE rondo_status rondo_watchdog_mark(rondo_watchdog *watchdog,
                                                          rondo_graph *graph, rondo_stream *stream);

// rondo_graph_replay, watched until it is over.
//
// Errors:    as rondo_graph_replay.
// Capture:   STATE on a stream that records.
RONDO_API RONDO_MUST_USE rondo_status rondo_watchdog_replay(rondo_watchdog *watchdog,
                                                            rondo_graph *graph,
                                                            rondo_stream *stream);

// How many stalls were told of.
RONDO_API uint64_t rondo_watchdog_get_stall_count(rondo_watchdog *watchdog);

RONDO_EXTERN_C_END

#endif  // RONDO_INSPECT_H

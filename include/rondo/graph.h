// rondo/graph.h — capture work once, replay it at hardware speed.
//
//   rondo_graph_create(device, NULL, &graph);
//   rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL);
//   ... put work on `stream`: nothing runs, everything is recorded ...
//   rondo_graph_capture_end(graph);
//   for (;;) { refill_inputs(); rondo_graph_replay(graph, stream); }
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

// Which calls of which threads break a capture; CUDA's meaning.
typedef enum rondo_capture_mode {
    RONDO_CAPTURE_THREAD_LOCAL = 0,  // unsafe calls of the capturing thread only (the default)
    RONDO_CAPTURE_GLOBAL = 1,        // unsafe calls of any thread
    RONDO_CAPTURE_RELAXED = 2,       // none
} rondo_capture_mode;

typedef struct rondo_graph_options {
    size_t struct_size;  // sizeof(rondo_graph_options)
    bool keep_template;  // keep it after instantiation: for dumps, handles, instantiating again
    const char *label;   // shown in dumps and errors; copied; NULL means "graph"
} rondo_graph_options;

// What a graph holds and what it cost. Counters are since the last reset.
typedef struct rondo_graph_stats {
    uint64_t node_count;
    uint64_t kernel_count;  // kernel nodes; on the host backend launches and host functions
    uint64_t copy_count;    // memcpy and memset nodes
    uint64_t replay_count;
    uint64_t capture_ns;      // wall time between begin and end
    uint64_t instantiate_ns;  // wall time of the last instantiation
    uint64_t device_bytes;    // driver-side memory of the executable; 0 where not measurable
    // Nodes that the finished replays have run, those of conditional bodies each time: the proof
    // that a graph really ran. Host backend; 0 on CUDA, where the driver does not count.
    uint64_t executed_count;
} rondo_graph_stats;

// Default options.
RONDO_API rondo_graph_options rondo_graph_options_default(void);

// Creates an empty graph.
//
// options    NULL means the defaults.
//
// Errors:    INVALID, NO_MEMORY.
// Ownership: caller destroys it; the device is retained.
// Threads:   a graph is used by one thread at a time; different graphs are independent.
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_create(rondo_device *device,
                                                         const rondo_graph_options *options,
                                                         rondo_graph **out_graph);

// Gives up a running capture, waits for replays in flight, frees everything. NULL is fine.
RONDO_API void rondo_graph_destroy(rondo_graph *graph);

// Starts recording what is put on `stream`; nothing runs until replay.
//
// Errors:    STATE (graph already holds or records something, stream already records), INVALID
//            (legacy default stream, stream of another device), DRIVER, LOST.
// Ownership: `stream` is borrowed until capture_end or capture_abort.
// Threads:   end on the same thread unless the mode is relaxed.
// Capture:   not legal while `stream` records.
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_capture_begin(rondo_graph *graph,
                                                                rondo_stream *stream,
                                                                rondo_capture_mode mode);

// Ends recording and instantiates the executable.
//
// A capture without nodes succeeds with a warning in the log; its replay does nothing. After a
// failure the stream is usable, the graph is empty, and both can record again.
//
// Errors:    STATE (not recording; the capture was broken: the record names op and cause; a forked
//            stream was not joined), NO_MEMORY, NO_DEVICE_MEMORY, DRIVER, LOST.
// Threads:   the thread that began, unless the mode is relaxed.
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_capture_end(rondo_graph *graph);

// Gives up a capture: the stream is usable again and the graph empty. Harmless when nothing
// records.
RONDO_API void rondo_graph_capture_abort(rondo_graph *graph);

// Runs the recorded work in stream order on any stream of the device.
//
// Errors:    STATE (nothing captured, still recording, `stream` records), INVALID (other device),
//            DRIVER, LOST.
// Threads:   one thread per graph and stream.
// Capture:   not legal while `stream` records.
// Cost:      one driver call; no allocation, no lock, no wait.
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_replay(rondo_graph *graph, rondo_stream *stream);

// Uploads the executable so that the first replay costs no more than the later ones.
//
// Errors:    STATE, INVALID, DRIVER, LOST.
// Threads:   one thread per graph and stream.
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_upload(rondo_graph *graph, rondo_stream *stream);

// Waits for replays in flight, frees template and executable; the graph can record again.
//
// Errors:    STATE (recording), DRIVER, LOST.
// Threads:   one thread per graph.
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_reset(rondo_graph *graph);

// Instantiates again from the kept template, for example after an edit through the raw handle.
//
// Errors:    STATE (nothing captured, or template not kept: say keep_template), DRIVER, LOST.
// Threads:   one thread per graph.
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_instantiate(rondo_graph *graph);

// Fills *out_stats; O(1).
//
// Errors:    INVALID.
// Threads:   one thread per graph.
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_get_stats(const rondo_graph *graph,
                                                            rondo_graph_stats *out_stats);

// The raw handles, borrowed: CUgraph (needs keep_template) and CUgraphExec. An output may be NULL.
//
// Errors:    STATE (nothing captured, template not kept), UNSUPPORTED (host backend has no such
//            handle).
// Threads:   one thread per graph.
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_get_native(rondo_graph *graph,
                                                             void **out_template,
                                                             void **out_executable);

// Receives text piece by piece; returns false to stop early.
typedef bool (*rondo_write_function)(void *user_data, const char *text, size_t bytes);

typedef enum rondo_dump_format { RONDO_DUMP_DOT = 0, RONDO_DUMP_JSON = 1 } rondo_dump_format;

// Writes the template's nodes and edges as Graphviz DOT or JSON.
//
// Errors:    STATE (nothing captured, template not kept), INVALID, DRIVER.
// Threads:   one thread per graph.
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_dump(rondo_graph *graph, rondo_dump_format format,
                                                       rondo_write_function write, void *user_data);

RONDO_EXTERN_C_END

#endif  // RONDO_GRAPH_H

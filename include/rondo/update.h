// rondo/update.h — a graph takes over another recording, and what changed between two; recordings
// in files.
//
// Where a step changes as a whole, record it again and update the executable:
//
//   rondo_graph_recapture(graph, stream, NULL, step, user_data, &report);
//   rondo_graph_replay(graph, stream);
//
// Where a few numbers change, patching their nodes is cheaper (rondo/node.h).
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_UPDATE_H
#define RONDO_UPDATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rondo/export.h"
#include "rondo/graph.h"
#include "rondo/status.h"

RONDO_EXTERN_C_BEGIN

// One field in which two templates differ.
typedef struct rondo_difference {
    size_t struct_size;  // sizeof(rondo_difference)
    char place[40];      // the node as dumps name it: "3"; "3_0_2" is node 2 of body 0 of node 3
    char label[128];     // of that node in the later one; "" when it has none
    char field[40];      // "block.x"; "kind", "edges" or "node" where the structures differ
    char before[72];
    char after[72];
} rondo_difference;

typedef int32_t rondo_update_result;
enum {
    RONDO_UPDATE_PATCHED = 0,       // the executable was patched: same nodes, edges, attributes
    RONDO_UPDATE_INSTANTIATED = 1,  // it was made anew, or for the first time
};

typedef struct rondo_update_report {
    size_t struct_size;  // sizeof(rondo_update_report)
    rondo_update_result result;
    // Why it was made anew: the first difference in structure, or else the first of all. None for
    // a graph that was empty or does not keep its template.
    bool has_difference;
    rondo_difference difference;
} rondo_update_report;

// Takes over the recording of `source`: the cheap way to capture again. `source` is empty then, and
// can record again; after a failure both graphs are as they were.
//
// Patched are executables of the same nodes and edges, recorded in the same order, whose kernels
// have the same clusters. On CUDA not those with device-updatable kernels.
//
// graph       may be empty.
// source      keeps its template.
// out_report  may be NULL, which spares the search for a difference.
//
// Errors:    STATE (no template, one of them records), NO_DEVICE_MEMORY.
// Cost:      patching is several times cheaper than instantiating.
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_update(rondo_graph *graph, rondo_graph *source,
                                                         rondo_update_report *out_report);

// Records the step again and lets the graph take that over, in one call; nothing runs. After a
// failure the graph is as it was, and replays what it did.
//
// graph       may be empty.
// options     NULL: the defaults; capture_only is always so here.
// out_report  may be NULL, as above.
//
// Errors:    as rondo_graph_capture_step and rondo_graph_update.
RONDO_API RONDO_MUST_USE rondo_status
rondo_graph_recapture(rondo_graph *graph, rondo_stream *stream, const rondo_step_options *options,
                      rondo_step_function step, void *user_data, rondo_update_report *out_report);

// What changed from one template to another: every field of rondo_graph_get_node, and the arguments
// of kernels word by word, as far as the driver shows them. Where the structures differ that is the
// only entry.
//
// Errors:    STATE (no template kept), INVALID (other device).
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_compare(rondo_graph *before, rondo_graph *after,
                                                          rondo_difference *differences,
                                                          size_t capacity, size_t *out_count);

// "node 3 (layer/gemm): block.x 64 before, 128 now".
//
// Returns:   the length of the whole text; no more than `capacity` bytes are written. 0 for a
//            struct that the library refuses, as one whose struct_size is 0.
RONDO_API size_t rondo_difference_format(const rondo_difference *difference, char *text,
                                         size_t capacity);

// ---- graph files ------------------------------------------------------------------------------
//
// A recorded graph as a file, from which another process makes the graph with its own addresses:
//
//   const rondo_graph_symbol symbols[] = {
//       {"step.cubin:add", add, 0, RONDO_SYMBOL_FUNCTION},
//       {"weights", weights, weight_bytes, RONDO_SYMBOL_MEMORY},
//   };
//   rondo_graph_save(graph, "step.graph", symbols, 2);
//
//   rondo_graph_load(empty, "step.graph", symbols, 2);  // there: with addresses of that process
//
// The file has names in place of addresses: of kernels, of memory (a name and an offset from the
// memory's begin), of events, of host functions. Numbers among arguments stay as they are.

typedef int32_t rondo_symbol_kind;
enum {
    RONDO_SYMBOL_FUNCTION = 0,  // what rondo_launch.function has
    RONDO_SYMBOL_MEMORY = 1,    // of the graph's own device, or pinned memory that copies use
    // A rondo_event with RONDO_EVENT_EXTERNAL; one that is waited for may be of another GPU.
    RONDO_SYMBOL_EVENT = 2,
    RONDO_SYMBOL_HOST_FUNCTION = 3,  // that rondo_stream_call_host calls
};

typedef struct rondo_graph_symbol {  // ABI: fixed
    const char *name;  // on the host loaded nodes borrow it as theirs: it outlives the graph
    void *address;
    size_t byte_count;  // of memory; otherwise 0
    rondo_symbol_kind kind;
} rondo_graph_symbol;

// Writes the template. Before that, the call makes a graph from the bytes that it is about to write
// and compares the two, launch attributes included: a node that comes out otherwise is refused by
// name.
//
// Eight bytes of the arguments of a kernel or host function, at a multiple of eight, count as an
// address where they point into a symbol's memory; in a parameter of fewer bytes they do not
// (drivers before CUDA 12.4 do not tell parameters). Other addresses of the process are refused, so
// that the file has none. The call does not see handles that are numbers (textures, conditions that
// the program's own kernels set), nor addresses that are stored in memory.
//
// Memory that nodes take in stream order (cudaMallocAsync in the capture) and give back belongs to
// no symbol: a loaded graph takes its own, and addresses within are relocated to that. Each node
// that uses it comes behind the node that takes it and before the one that gives it back. An else
// or a switch is one node in the file, also where a driver before CUDA 12.8 has a row of ifs.
//
// Errors:    STATE (no template), INVALID (a symbol without name, twice, or with memory that
//            overlaps, is another GPU's, or is taken by a node), UNSUPPORTED (names the node, and
//            what in it has no symbol or cannot be made again: memory that is taken and not given
//            back, or that other processes may reach; copies and fills of several rows, tensor
//            maps, attributes that rondo_launch does not have), UNAVAILABLE (the file).
// Capture:   unsafe.
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_save(rondo_graph *graph, const char *path,
                                                       const rondo_graph_symbol *symbols,
                                                       size_t symbol_count);

// Records what the file has, as a capture does that ends well; `graph` is empty. Labels, patches
// and what was switched off are not in the file.
//
// symbols    those of the file by name and kind, and others; memory has at least the bytes and the
//            alignment (up to 256) that it had when the graph was saved, and overlaps no other.
//
// Errors:    INVALID (a symbol is missing or does not fit), BAD_DATA (cut short or altered),
//            UNSUPPORTED (of another backend, another generation of GPU, another version; it takes
//            memory, and the device's pool is not its default one), UNAVAILABLE; STATE,
//            NO_DEVICE_MEMORY as at the end of a capture. A failure leaves the graph as it was.
// Ownership: the memory, kernels and events of the symbols outlive the graph, as in a capture.
// Cost:      about a launch for each node, and the driver's instantiation.
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_load(rondo_graph *graph, const char *path,
                                                       const rondo_graph_symbol *symbols,
                                                       size_t symbol_count);

RONDO_EXTERN_C_END

#endif  // RONDO_UPDATE_H

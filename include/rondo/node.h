// rondo/node.h — nodes by handle: added by hand, patched, switched off and on.
//
// A graph freezes what was recorded. Where a step's numbers or addresses change, take handles of
// the nodes that hold them, and patch those before a replay:
//
//   rondo_stream_launch(stream, &launch);             // while the stream records
//   rondo_stream_get_last_node(stream, &node);
//   ...
//   rondo_graph_capture_end(graph);
//   for (;;) {
//       launch.arguments = &next;                     // of as many bytes as before
//       rondo_work work = {.struct_size = sizeof work, .kind = RONDO_NODE_KERNEL,
//                          .launch = &launch};
//       rondo_graph_patch_node(graph, node, &work);
//       rondo_graph_replay(graph, stream);
//   }
//
// A host function is patched by {.kind = RONDO_NODE_HOST, .function = ..., .arguments = &next,
// .argument_bytes = sizeof next}: as recorded, but for the values.
//
// What can be patched: kernels, host functions, copies and fills of the graph itself. Not nodes
// inside bodies and recorded graphs, event nodes, copies that change direction, the number of
// argument bytes, launch attributes (clusters, overlap): the flags of a launch are checked, and
// those of the recording stay. Nodes that only the program's own driver calls record: fills of
// several rows take another value and destination; copies of several rows and kernels of green
// contexts take no patch; all of them can be switched off.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_NODE_H
#define RONDO_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rondo/control.h"
#include "rondo/device.h"
#include "rondo/export.h"
#include "rondo/graph.h"
#include "rondo/inspect.h"
#include "rondo/status.h"

RONDO_EXTERN_C_BEGIN

// The handle of a node of one recording (rondo_graph_node of rondo/inspect.h describes what was
// recorded, rondo_node_state below what the node does now). A value, copied freely; zeroes mean no
// node. Two handles are of the same node if both fields are equal. It lives until the graph is
// reset, takes part in rondo_graph_update, is instantiated again, or its capture fails: then every
// use says STATE.
typedef struct rondo_node {  // ABI: fixed
    uint64_t recording;
    uint64_t number;
} rondo_node;

// What a node does. Fields that do not belong to its kind are not looked at.
typedef struct rondo_work {
    size_t struct_size;          // sizeof(rondo_work)
    rondo_node_kind kind;        // KERNEL, HOST, COPY, FILL; for adding also all below
    const rondo_launch *launch;  // KERNEL
    const char *name;            // HOST: for dumps and errors; a literal
    rondo_host_function function;
    const void *arguments;  // HOST: copied now
    size_t argument_bytes;
    rondo_copy_kind copy_kind;  // COPY
    const void *source;
    void *destination;       // COPY and FILL
    size_t byte_count;       // COPY
    uint32_t fill_value;     // FILL: its low bytes
    uint32_t element_bytes;  // 1, 2 or 4
    size_t element_count;    // of all rows, where there are several
    rondo_graph *graph;      // CHILD: its template, see rondo_stream_add_graph
    rondo_event *event;      // EVENT_RECORD and EVENT_WAIT: one of RONDO_EVENT_EXTERNAL
    rondo_scope_kind scope;  // CONDITIONAL, as all below (rondo/control.h)
    const void *predicate;
    const rondo_body_function *bodies;  // called now, to record; NULL as rondo_control_* take it
    uint32_t body_count;                // 1; of IF_ELSE 2; of a switch 1 to 1024
    void *user_data;                    // for the bodies
} rondo_work;

// ---- handles ----------------------------------------------------------------------------------

// The node recorded last on the stream, by whatever call: the program's own launches and those of
// libraries, too. The graph keeps its template for it.
//
// Errors:    STATE (the stream does not record a capture of Rondo's; nothing is recorded on it yet;
//            it comes behind several nodes, as after rondo_stream_wait_event: take the handle right
//            behind the call that recorded), UNSUPPORTED (the body of a conditional node).
// Capture:   only legal while `stream` records. A failure breaks nothing.
RONDO_API RONDO_MUST_USE rondo_status rondo_stream_get_last_node(rondo_stream *stream,
                                                                 rondo_node *out_node);

// Records the work on the stream, as rondo_stream_launch, _call_host, _copy, _fill, _add_graph,
// _wait_event, rondo_event_record or rondo_control_if, _switch and _while would, and gives the
// node's handle. *out_node may be NULL.
//
// Errors:    as those, and as rondo_stream_get_last_node; INVALID (another kind, a fill or copy of
//            nothing, which records no node).
// Capture:   only legal while `stream` records. A failure breaks the capture, which would lack the
//            work.
RONDO_API RONDO_MUST_USE rondo_status rondo_stream_add_node(rondo_stream *stream,
                                                            const rondo_work *work,
                                                            rondo_node *out_node);

// Where the node stands among those of rondo_graph_get_node.
//
// Errors:    STATE (the handle is none of the graph's present recording).
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_get_node_index(rondo_graph *graph,
                                                                 rondo_node node,
                                                                 size_t *out_index);

// The handle of a node by its place among those of rondo_graph_get_node, whether or not the program
// took it while the node was recorded. The graph must keep its template.
//
// Errors:    STATE (no template), INVALID (no such node).
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_get_node_handle(rondo_graph *graph, size_t index,
                                                                  rondo_node *out_node);

// Lists the handles of the nodes that were recorded in a scope (rondo/label.h), in the order of
// rondo_graph_get_node.
//
// label      the scope's whole path, "layer3/attention"; nodes of scopes inside it count, too.
//
// Errors:    STATE (no template).
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_find_nodes(rondo_graph *graph, const char *label,
                                                             rondo_node *nodes, size_t capacity,
                                                             size_t *out_count);

// What a node of the executable does now, patches and toggles included. Fields that do not belong
// to its kind are 0.
typedef struct rondo_node_state {
    size_t struct_size;  // sizeof(rondo_node_state)
    rondo_node_kind kind;
    const char *name;       // as in rondo_graph_node
    bool is_enabled;        // false: switched off
    bool can_be_patched;    // its work; rondo_graph_patch says why not
    const void *function;   // KERNEL, HOST: what is called
    uint32_t grid[3];       // KERNEL
    uint32_t block[3];      // KERNEL
    uint32_t shared_bytes;  // KERNEL
    const void *arguments;  // KERNEL, HOST: as rondo_launch has them; borrowed until the next patch
    size_t argument_bytes;  // of the node. NULL and 0 where the driver does not show them
    rondo_copy_kind copy_kind;
    const void *source;
    const void *destination;
    uint64_t byte_count;
    uint32_t fill_value;
    uint32_t element_bytes;
    uint32_t cluster[3];  // KERNEL, as the next two: as rondo_launch has them, or zeroes
    bool is_cooperative;  // RONDO_LAUNCH_COOPERATIVE
    int32_t priority;     // on CUDA the level that the driver has chosen
    const void *event;    // event and conditional nodes, as in rondo_graph_node
    const void *predicate;
} rondo_node_state;

// Tells what a node does now.
//
// Errors:    STATE (a handle of an earlier recording or of another graph; no template),
//            UNSUPPORTED (this device or driver patches no nodes).
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_read_node(rondo_graph *graph, rondo_node node,
                                                            rondo_node_state *out_state);

// ---- graphs by hand ---------------------------------------------------------------------------

// Starts a graph that is made node by node, without a stream; rondo_graph_capture_end ends it and
// rondo_graph_capture_abort gives it up, on any thread. No other capture is disturbed.
//
// Errors:    STATE (the graph already holds or records something).
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_build_begin(rondo_graph *graph);

// Adds a node that depends on those of `after`, which were added before: so there are no cycles.
// None: it may run at once. A replay has run when all nodes have.
//
// out_node   may be NULL, and may be one of `after`.
//
// Errors:    as rondo_stream_add_node; STATE (rondo_graph_build_begin was not called; a handle of
//            another recording; a graph (CHILD) that shares an arena with one added before, and
//            does not come behind it by edges). A failure breaks the graph that is built.
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_add_node(rondo_graph *graph,
                                                           const rondo_node *after,
                                                           size_t after_count,
                                                           const rondo_work *work,
                                                           rondo_node *out_node);

// Calls a function with a stream of Rondo's, and adds what it records there: so libraries, and code
// that only knows streams, make nodes between those that are added one by one. The function returns
// a failure to give up. It does not add, end or abort itself, and does not keep the stream.
//
// after       as for rondo_graph_add_node: the stream begins behind these.
// nodes       the step's last nodes, to pass as `after` for work behind it: one, more where it
//             forked, those of `after` where it recorded nothing.
//
// Errors:    as rondo_graph_add_node; those of the function. A failure breaks the graph that is
//            built.
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_add_step(
    rondo_graph *graph, const rondo_node *after, size_t after_count, rondo_step_function step,
    void *user_data, rondo_node *nodes, size_t capacity, size_t *out_count);

// Makes a graph of the same recording, without patches, with an executable of its own: the two are
// patched apart, and replayed at once on two streams where what they write allows that. Its nodes
// stand where they stand in `graph`, and have handles of their own.
//
// label      NULL: that of `graph`.
//
// Errors:    STATE (no template), UNSUPPORTED (conditional or memory nodes, device-updatable
//            kernels: record it again; check_addresses), NO_DEVICE_MEMORY.
// Ownership: it shares memory, generators and events with `graph`, which may be destroyed before.
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_clone(rondo_graph *graph, const char *label,
                                                        rondo_graph **out_clone);

// ---- patching ---------------------------------------------------------------------------------

typedef int32_t rondo_toggle;
enum {
    RONDO_TOGGLE_KEEP = 0,
    RONDO_TOGGLE_ENABLE = 1,
    // The node does nothing, those behind it run as before. On CUDA a fill of several rows writes
    // other device memory meanwhile, which all such fills share.
    RONDO_TOGGLE_DISABLE = 2,
};

typedef struct rondo_patch {  // ABI: fixed
    rondo_node node;
    const rondo_work *work;  // what it does from now on; NULL: what it did
    rondo_toggle toggle;     // KERNEL, COPY and FILL
} rondo_patch;

// Patches nodes of the executable; the next replay does the new work, replays already on a stream
// do what they were put there for. All or nothing: after a failure every node is as it was. Work
// that a node does already costs no driver call. The template stays as it was recorded: dumps show
// that.
//
// Memory that the new work names is checked as while recording: pageable host memory is refused
// (also where the graph takes snapshots), pinned memory is in use until the graph is reset, checked
// graphs watch it (check_addresses; memory that was freed goes on refusing replays, and new work of
// copies and fills in it, until each node that used it names other memory), and blocks of other
// graphs count in the order of replays (rondo/pool.h), also for graphs that this one was added to.
//
// Errors:    STATE (a handle of an earlier recording or of another graph; nothing captured; still
//            recording; pageable memory; memory that a checked graph used and that was freed; a
//            sharer's block that was taken behind the capture, where the graph itself writes),
//            INVALID (work of another kind, another number of argument bytes, another direction of
//            a copy, the same node twice), UNSUPPORTED (a node that cannot be patched, with the
//            rule; a driver before CUDA 12.0), NO_DEVICE_MEMORY.
// Ownership: everything in the patches is borrowed for the call, but for names, and for the memory
//            that copies, fills and kernels then use.
// Cost:      on CUDA one driver call (0.3-0.5 us) for each node that changes; on the host a message
//            to the next replay. No wait.
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_patch(rondo_graph *graph,
                                                        const rondo_patch *patches, size_t count);

// One node's work; its toggle stays.
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_patch_node(rondo_graph *graph, rondo_node node,
                                                             const rondo_work *work);

RONDO_EXTERN_C_END

#endif  // RONDO_NODE_H

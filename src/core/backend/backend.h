// backend/backend.h — the table of functions behind a device, and the objects it hands out.
//
// Two implementations: backend/host and backend/cuda. The generic layer (src/capture, src/device
// and the rooms above) checks arguments once, so that both backends report the same misuse with the
// same status; an implementation only does the work. A test replaces the table, never the callers.
//
// The structs below are the common heads; a backend embeds one as its first member.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/areas.h"
#include "backend/failure.h"
#include "base/hash.h"
#include "rondo/control.h"
#include "rondo/device.h"
#include "rondo/graph.h"
#include "rondo/status.h"

typedef struct rondo__backend rondo__backend;
typedef struct rondo__template rondo__template;      // recorded nodes and edges (CUgraph)
typedef struct rondo__executable rondo__executable;  // runnable form (CUgraphExec)
typedef struct rondo__stream_tag rondo__stream_tag;  // device/stream_tag.h
typedef struct rondo__capture rondo__capture;        // capture/capture.h
typedef struct rondo__node_image rondo__node_image;  // backend/node_image.h

struct rondo_device {
    const rondo__backend *backend;
    char name[32];
    int32_t ordinal;
    atomic_int reference_count;  // guarded by the registry lock when it may reach zero
    // Set once by an asynchronous device error; afterwards only destroy is valid.
    atomic_bool is_lost;
    // Set in the child of a fork, where the device's threads and driver do not exist: objects of
    // the device are then left alone, even by destroy.
    atomic_bool is_forked;
    // Failures of host functions where the backend cannot tell the stream; the next wait reports.
    rondo__failure_slot failure;
    // Captures that graphs began and have not ended; see capture/capture.h.
    pthread_mutex_t capture_list_lock;
    rondo__capture *capture_list;  // guarded by capture_list_lock
    rondo__areas areas;            // what rondo_memory_allocate gave out
    rondo_device_info facts;       // see device/device.h; constant once `has_facts` is set
    atomic_bool has_facts;
    // Host memory that graphs use; see capture/host_memory.h.
    pthread_mutex_t host_memory_lock;
    void *host_uses;  // guarded by host_memory_lock, as the next
    void *waiting;
    atomic_int host_use_count;        // of host_uses
    atomic_int watcher_count;         // captures that want addresses noted
    atomic_int open_capture_count;    // of capture_list; read without the lock to skip the search
    atomic_int broken_capture_count;  // those of them of which no graph may come
    struct rondo__scope
        *scope_list;              // open scopes (device/scope_list.h); guarded by capture_list_lock
    uint64_t last_scope_id;       // guarded by capture_list_lock
    atomic_int open_scope_count;  // of scope_list; read without the lock to skip the search
};

// The generic layer's notes on a stream's part in a capture, for the report if that breaks
// (capture/blame.h). Used by the stream's own thread only.
typedef struct rondo__stream_marks {
    uint64_t capture_id;  // of the capture or body it joined last; that may have ended; 0: none
    const char *work;     // name of the latest recorded call
    uint64_t work_count;  // recorded calls since it joined
    uint64_t node_count;  // nodes of that when they were counted last
    uint64_t work_count_then;
    char node_name[64];  // the latest node then, and its label
    char node_label[128];
} rondo__stream_marks;

// The generic layer retains the device for each object after the backend has made it, and gives it
// back after the backend has destroyed it.
struct rondo_stream {
    rondo_device *device;  // retained
    bool is_wrapped;       // the native stream is the caller's
    bool is_legacy;        // wraps the legacy default stream: runs work, never records
    bool is_lent;          // a function of the program has it, and may not destroy it
    bool is_in_function;   // of a body: its function runs, and may have ended the capture,
    bool is_orphan;        // which leaves the stream to the caller of the function; no work on it
    void *native;          // CUstream, or NULL
    int32_t priority;      // of rondo_stream_create; 0: the default, or not known
    uint32_t number;       // for messages: "stream 3"; set by the generic layer
    // Kept by the generic layer: false means that the stream certainly does not record a capture
    // begun through this library, so that a replay need not ask the driver.
    atomic_bool may_record;
    // The program has the native stream, and may record on it by calls of its own.
    atomic_bool is_native_known;
    rondo__stream_tag *tag;  // set by the generic layer
    rondo__stream_marks marks;
    // How many waits have reported failed work, and the status of the last one, for later waits.
    _Atomic(uint32_t) failed_waits;
    _Atomic(uint32_t) failed_status;
    struct rondo__label_stack *labels;  // open label scopes (capture/label_stack.h); NULL: none yet
    rondo_stream *next_kept;  // of those that their capture keeps (rondo__capture_keep_stream)
};

// False: the stream certainly does not record.
static inline bool rondo__stream_may_record(const rondo_stream *stream) {
    return stream->is_wrapped || atomic_load_explicit(&stream->may_record, memory_order_relaxed) ||
           atomic_load_explicit(&stream->is_native_known, memory_order_relaxed);
}

struct rondo_event {
    rondo_device *device;  // retained
    const void *native;    // what descriptions of its nodes call the event
    uint32_t flags;
    atomic_int reference_count;    // the owner, and each graph that uses an external event
    atomic_bool was_recorded;      // by the program, at least once
    atomic_bool may_be_captured;   // recorded while its stream might have been recording
    _Atomic(uint64_t) capture_id;  // stands for a place in this capture of Rondo's, which may have
                                   // ended; 0: in none
};

typedef enum rondo__capture_state {
    RONDO__CAPTURE_NONE,
    RONDO__CAPTURE_ACTIVE,
    RONDO__CAPTURE_BROKEN,  // invalidated: must still be ended, yields nothing
} rondo__capture_state;

struct rondo__template {
    rondo_device *device;  // retained
};

struct rondo__executable {
    rondo_device *device;  // retained
};

typedef enum rondo__node_kind {
    RONDO__NODE_KERNEL,
    RONDO__NODE_HOST,
    RONDO__NODE_COPY,
    RONDO__NODE_FILL,
    RONDO__NODE_EMPTY,
    RONDO__NODE_EVENT_WAIT,
    RONDO__NODE_EVENT_RECORD,
    RONDO__NODE_CHILD,
    RONDO__NODE_CONDITIONAL,
    RONDO__NODE_OTHER,
    RONDO__NODE_KIND_COUNT,
} rondo__node_kind;

// A recorded node of a capture in progress. Means something only together with that capture.
typedef uintptr_t rondo__node_handle;

// The description of a node in a dump. Strings live as long as the template.
typedef struct rondo__node_info {
    rondo__node_kind kind;
    const char *name;  // kernel or host function name; may be ""
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t shared_bytes;
    rondo_copy_kind copy_kind;
    const void *destination;
    const void *source;
    uint64_t byte_count;  // copies: bytes; fills: elements times element size
    uint32_t fill_value;
    uint32_t element_bytes;  // fills: of one element
    uint64_t width;          // copies: bytes in a row; fills: elements in a row
    uint64_t height;         // rows; 1 unless the node is two-dimensional
    uint64_t depth;          // copies: slices
    uint64_t pitch_bytes;    // fills of several rows: from one row to the next
    // Copies: the driver does not know what that end is; perhaps the host's.
    bool is_source_unknown, is_destination_unknown;
    bool is_memory;      // OTHER: takes memory in stream order, or gives it back
    const void *event;   // event nodes: CUevent, or the host's event
    const void *native;  // CUgraphNode; NULL on the host
    // Conditional nodes; their name is "if", "if_else", "switch" or "while".
    const void *predicate;
    uint32_t branch_count;  // 0: not known, as of a node that was not recorded through Rondo
    // One of several ifs, each behind the one before, that are one else or switch together, as
    // drivers before CUDA 12.8 have them; row_count 0: it is whole.
    uint32_t row_count, row_index;
    rondo_scope_kind row_kind;
} rondo__node_info;

// How a kernel is launched, beyond its grid and block. The driver's refusal to tell one of them is
// part of `others`.
typedef struct rondo__launch_attributes {
    uint32_t cluster[3];  // blocks; 0: none were asked for
    uint32_t is_cooperative;
    int64_t priority;        // a larger one is served first
    uint64_t access_policy;  // hash of the window of memory that is to stay in the cache
    uint64_t others;         // hash of all the rest; no addresses
} rondo__launch_attributes;

// A node that takes memory in stream order, or gives it back.
typedef struct rondo__memory_node {
    bool takes;
    void *address;        // of the memory, which no other call knows
    uint64_t byte_count;  // takes: that were asked for
    // Takes: memory of the graph's own device, which no other device and no other process reaches.
    bool is_plain;
} rondo__memory_node;

// An allocation of the driver.
typedef struct rondo__allocation {
    uintptr_t begin;
    size_t bytes;
    uint64_t id;  // never used twice in the process; 0: there is none
} rondo__allocation;

// Looks at bytes that are valid during the call.
typedef rondo_status (*rondo__visit_bytes)(void *user_data, const void *bytes, size_t byte_count);

// A conditional node that is being recorded, and what its bodies need. The backend embeds it.
typedef struct rondo__conditional {
    rondo_device *device;
    rondo_scope_kind kind;
    const void *predicate;
    uint32_t branch_count;
    rondo__node_handle last_node;  // the whole frontier of the parent stream behind it
} rondo__conditional;

// A node of a line: of its device alone.
typedef struct rondo__line_node {
    rondo__node_kind kind;       // KERNEL, COPY or FILL with zeros
    const rondo_launch *launch;  // KERNEL
    const void *source;          // COPY
    void *destination;           // COPY, FILL
    size_t bytes;
} rondo__line_node;

// Machine code that was compiled, by the hash of all that decides it but the compiler.
typedef struct rondo__kernel_code {
    rondo__hash128 key;
    const void *bytes;
    size_t byte_count;
} rondo__kernel_code;
typedef rondo_status (*rondo__kernel_code_visit)(void *user_data, const rondo__kernel_code *code);

// All entries are called with valid arguments: non-NULL, right device, device not lost. Each
// failure writes the error record. "(optional)" entries may be NULL; the generic layer then does
// what is said.
struct rondo__backend {
    const char *name;  // "host", "cuda"

    // How many devices there are; when none, writes why into `reason`. Loads the driver on first
    // use.
    int32_t (*count_devices)(char *reason, size_t reason_bytes);
    // Describes a device without opening it.
    rondo_status (*describe_device)(int32_t ordinal, rondo_device_info *out_info);
    rondo_status (*open_device)(int32_t ordinal, rondo_device **out_device);
    void (*close_device)(rondo_device *device);
    rondo_status (*synchronize_device)(rondo_device *device);

    rondo_status (*allocate)(rondo_device *device, rondo_memory_kind kind, size_t bytes,
                             void **out_address);
    void (*deallocate)(rondo_device *device, rondo_memory_kind kind, void *address);
    // Free device memory now. (optional: not measurable)
    rondo_status (*get_free_bytes)(rondo_device *device, uint64_t *out_bytes);
    // The allocation that holds the address, also one that Rondo did not make; also while streams
    // record. (optional: not known)
    rondo_status (*find_allocation)(rondo_device *device, const void *address,
                                    rondo__allocation *out_allocation);
    // The ordinal of the device whose memory holds the address; -1: it is the host's, or not known.
    // (optional: there is one device)
    rondo_status (*find_owner)(rondo_device *device, const void *address, int32_t *out_ordinal);

    // True for host memory that the device cannot copy from without a detour; not asked about what
    // rondo_memory_allocate gave out. (optional: all other memory is such)
    bool (*is_pageable)(rondo_device *device, const void *address, size_t bytes);

    // A larger priority is served first, where the device can; 0 is the default.
    rondo_status (*create_stream)(rondo_device *device, int32_t priority,
                                  rondo_stream **out_stream);
    rondo_status (*wrap_stream)(rondo_device *device, void *native,
                                rondo_stream **out_stream);  // (optional: UNSUPPORTED)
    // Waits for the work of the stream and frees it. A capture that the program began on it by
    // calls of its own is given up; where that cannot be, the native stream is lost. False: the
    // work was not waited for, because that was so, or because the stream is the caller's.
    bool (*destroy_stream)(rondo_stream *stream);
    rondo_status (*synchronize_stream)(rondo_stream *stream);
    // Waits for the work that was put on the stream, also while the stream records. (optional: not
    // possible; then freeing memory waits for whatever runs)
    rondo_status (*drain_stream)(rondo_stream *stream);
    rondo_status (*query_stream)(rondo_stream *stream, bool *out_is_idle);
    rondo_status (*wait_event)(rondo_stream *stream, rondo_event *event);

    rondo_status (*create_event)(rondo_device *device, uint32_t flags, rondo_event **out_event);
    void (*destroy_event)(rondo_event *event);
    rondo_status (*record_event)(rondo_event *event, rondo_stream *stream);
    // The same for an event of the library's own, on a stream that another thread may be using: the
    // event stands behind its eager work. STATE, and nothing has happened, while the stream
    // records; a capture that is about to begin on it waits.
    rondo_status (*record_from_outside)(rondo_event *event, rondo_stream *stream);
    rondo_status (*query_event)(rondo_event *event, bool *out_is_complete);
    rondo_status (*synchronize_event)(rondo_event *event);
    rondo_status (*get_elapsed_ns)(rondo_event *start, rondo_event *end, int64_t *out_ns);

    rondo_status (*copy)(rondo_stream *stream, void *destination, const void *source, size_t bytes,
                         rondo_copy_kind kind);
    // The same between the memory of two devices of this backend; the stream is of one of them.
    // (optional, as the next: UNSUPPORTED)
    rondo_status (*copy_between)(rondo_stream *stream, rondo_device *to, void *destination,
                                 rondo_device *from, const void *source, size_t bytes);
    // Whether work of `device` uses the memory of `other` without a detour.
    rondo_status (*reaches)(rondo_device *device, rondo_device *other, bool *out_reaches);
    rondo_status (*fill)(rondo_stream *stream, void *destination, uint32_t value,
                         uint32_t element_bytes, size_t count);
    rondo_status (*call_host)(rondo_stream *stream, const char *name, rondo_host_function function,
                              const void *arguments, size_t argument_bytes);
    rondo_status (*launch)(rondo_stream *stream, const rondo_launch *launch);

    // Capture. begin_capture starts; out_id (may be NULL) gets what get_capture_id says, 0 where
    // the capture broke as it began; get_capture_state never fails on a valid stream; end_capture
    // always leaves the stream not recording, and yields a template or the reason why there is
    // none.
    rondo_status (*begin_capture)(rondo_stream *stream, rondo_capture_mode mode, uint64_t *out_id);
    rondo_status (*get_capture_state)(rondo_stream *stream, rondo__capture_state *out_state);
    rondo_status (*end_capture)(rondo_stream *stream, rondo__template **out_template);

    // Which capture the stream records into: an id that no other capture of the process has had, 0
    // when it records none, or a broken one that the backend knows nothing of. Conditional bodies
    // have ids of their own.
    rondo_status (*get_capture_id)(rondo_stream *stream, rondo__capture_state *out_state,
                                   uint64_t *out_id);
    // The nodes that the next node recorded on the stream will depend on. Writes at most `capacity`
    // handles; *out_count is how many there are. None when nothing is recorded yet.
    rondo_status (*get_frontier)(rondo_stream *stream, rondo__node_handle *nodes, size_t capacity,
                                 size_t *out_count);
    // Both in one: the answers of get_capture_id and, where the state is ACTIVE, of get_frontier.
    // SIZE_MAX where the nodes cannot be told. A driver is asked once.
    rondo_status (*get_position)(rondo_stream *stream, rondo__capture_state *out_state,
                                 uint64_t *out_id, rondo__node_handle *nodes, size_t capacity,
                                 size_t *out_count);
    // The next node recorded on the stream depends on these of the same capture, and on no others.
    // (optional: UNSUPPORTED)
    rondo_status (*set_frontier)(rondo_stream *stream, const rondo__node_handle *nodes,
                                 size_t count);
    // The nodes that `node`, of the capture that the stream records into, depends on directly.
    rondo_status (*get_predecessors)(rondo_stream *stream, rondo__node_handle node,
                                     rondo__node_handle *nodes, size_t capacity, size_t *out_count);
    // Makes the next node recorded on the stream depend on these of the same capture, too.
    rondo_status (*add_dependencies)(rondo_stream *stream, const rondo__node_handle *nodes,
                                     size_t count);
    // How many nodes the capture that the stream takes part in has so far. STATE when that cannot
    // be told, because there is none or it is broken.
    rondo_status (*count_recorded)(rondo_stream *stream, size_t *out_count);
    // The description that describe_node will give of a node of the capture that the stream records
    // into.
    rondo_status (*describe_recorded)(rondo_stream *stream, rondo__node_handle node,
                                      rondo__node_info *out_info);

    // Conditional nodes. OK, or UNSUPPORTED with the cure.
    rondo_status (*check_feature)(rondo_device *device, rondo_feature feature);
    // Records the node, with empty bodies, on a stream that records.
    rondo_status (*add_conditional)(rondo_stream *parent, rondo_scope_kind kind,
                                    const void *predicate, uint32_t branch_count,
                                    rondo__conditional **out_conditional);
    // Lets `body`, which records nothing, record the branch. *out_node: the node in the parent;
    // *out_index: which of that node's bodies it is, for get_body.
    rondo_status (*begin_body)(rondo__conditional *conditional, uint32_t branch, rondo_stream *body,
                               rondo__node_handle *out_node, uint32_t *out_index);
    // Always leaves `body` not recording. After a failure the branch is empty, and the caller
    // breaks the parent's capture. Legal when the parent's capture is broken or has ended.
    rondo_status (*end_body)(rondo__conditional *conditional, uint32_t branch, rondo_stream *body);
    void (*release_conditional)(rondo__conditional *conditional);

    // A template that is made without a capture: a line, in which each node comes behind the one
    // before, as if a capture of `stream` had recorded them. UNSUPPORTED: only a capture can; then
    // the caller destroys the template. (optional, as the next: UNSUPPORTED)
    rondo_status (*begin_line)(rondo_stream *stream, rondo__template **out_template);
    rondo_status (*append_node)(rondo__template *template_, const rondo__line_node *node);

    void (*destroy_template)(rondo__template *template_);
    rondo_status (*count_nodes)(rondo__template *template_, size_t *out_count);
    // Bits of kinds: a template with nodes of them has one executable at a time.
    uint32_t exclusive_kinds;
    // How many nodes there are of each kind; much cheaper than describing each.
    rondo_status (*count_kinds)(rondo__template *template_, size_t counts[RONDO__NODE_KIND_COUNT]);
    rondo_status (*describe_node)(rondo__template *template_, size_t index,
                                  rondo__node_info *out_info);
    // The name of node `index` in profiles of the template's executables; the text lives as long as
    // the template's graph. (optional: profiles learn it elsewhere)
    void (*label_node)(rondo__template *template_, size_t index, const char *label);
    // The handles that the nodes had while they were recorded, in the order of their indices;
    // `count` is what count_nodes says.
    rondo_status (*list_handles)(rondo__template *template_, rondo__node_handle *handles,
                                 size_t count);
    // Edges as pairs of node indices (from, to); capacity counts pairs.
    rondo_status (*list_edges)(rondo__template *template_, size_t *out_pairs, size_t capacity,
                               size_t *out_count);

    // The kind of each edge, in the same order: 0 a full one, 1 a programmatic one (the successor
    // may start before the predecessor has finished). (optional; default: all are full)
    rondo_status (*list_edge_kinds)(rondo__template *template_, uint8_t *out_kinds, size_t capacity,
                                    size_t *out_count);
    // Shows the arguments of the KERNEL node `index`, all at once or one by one, as far as the
    // driver tells them.
    rondo_status (*visit_arguments)(rondo__template *template_, size_t index,
                                    rondo__visit_bytes visit, void *user_data);
    // How the KERNEL node `index` is launched, as far as the driver tells. (optional; default: as
    // usual)
    rondo_status (*read_attributes)(rondo__template *template_, size_t index,
                                    rondo__launch_attributes *out_attributes);
    // A template of its own with the same nodes, in the same order. It has no conditional and no
    // memory nodes. (optional: UNSUPPORTED)
    rondo_status (*clone)(rondo__template *template_, rondo__template **out_clone);
    // The graph inside a CHILD node, borrowed for as long as the template is not edited.
    rondo_status (*get_child)(rondo__template *template_, size_t index,
                              rondo__template **out_child);
    // Records a copy of the template as one node on a stream that records. A failure breaks the
    // capture. The template has no conditional nodes.
    rondo_status (*add_child)(rondo_stream *stream, rondo__template *template_);
    // The body of one branch of the conditional node `index`, to be listed like a template;
    // borrowed from the template. NULL, which is fine: empty, or not known.
    rondo_status (*get_body)(rondo__template *template_, size_t index, uint32_t branch,
                             rondo__template **out_body);

    rondo_status (*instantiate)(rondo__template *template_, rondo__executable **out_executable);
    // Patches the executable to a template of the same topology, whose kernels are launched with
    // the same attributes; *out_was_updated says whether that was possible. No node is switched
    // off.
    rondo_status (*update)(rondo__executable *executable, rondo__template *template_,
                           bool *out_was_updated);
    // The image of node `index`: the parts that can change; the caller deinits it. (optional:
    // UNSUPPORTED, as the next)
    rondo_status (*read_node)(rondo__template *template_, size_t index,
                              rondo__node_image *out_image);
    // What a node of the template with `is_memory` does. (optional: there is none)
    rondo_status (*read_memory_node)(rondo__template *template_, size_t index,
                                     rondo__memory_node *out_node);
    // Records such a node on a stream that records: plain memory, or UNSUPPORTED; and memory that a
    // node of the same capture has taken, which is given back. (optional: UNSUPPORTED)
    rondo_status (*take_memory)(rondo_stream *stream, uint64_t byte_count, void **out_address);
    rondo_status (*give_memory_back)(rondo_stream *stream, void *address);
    // From the next replay on nodes of the executable, which was made of the template, do what the
    // images say. Replays in flight go on as they were. The images are such as read_node filled in,
    // with other arguments, addresses, sizes and values. *out_done: how many were written, in their
    // order, before the first failure.
    rondo_status (*patch_nodes)(rondo__executable *executable, rondo__template *template_,
                                rondo__node_image *const *images, size_t count, size_t *out_done);
    // Whether the node does anything, as the image says; KERNEL, COPY and FILL.
    rondo_status (*enable_node)(rondo__executable *executable, rondo__template *template_,
                                const rondo__node_image *image);
    rondo_status (*upload)(rondo__executable *executable, rondo_stream *stream);
    rondo_status (*replay)(rondo__executable *executable, rondo_stream *stream);  // hot path
    // Runs a replay on the calling thread, which would wait for it anyway. False: it was not run,
    // since it needs the stream or others. (optional: it always does)
    bool (*replay_here)(rondo__executable *executable, rondo_stream *stream);
    // Nodes run by the replays that have finished. (optional: not known)
    uint64_t (*count_executed)(rondo__executable *executable);
    // Replays in flight are finished first, or the driver keeps what they need until they are.
    void (*destroy_executable)(rondo__executable *executable);
    // Raw handles. (optional: UNSUPPORTED)
    void *(*get_native_template)(rondo__template *template_);
    void *(*get_native_executable)(rondo__executable *executable);

    // Device code. Compiles CUDA C for the device (disk cache included) and looks up one kernel in
    // the result. `options` are extra compiler options. (optional: UNSUPPORTED)
    rondo_status (*get_function)(rondo_device *device, const char *source,
                                 const char *const *options, size_t option_count,
                                 const char *kernel_name, void **out_function);
    // The module and the name of a kernel that get_function gave; the name lives as long as the
    // device. False: it gave none such. (optional, as the next)
    bool (*name_function)(rondo_device *device, const void *function, rondo__hash128 *out_key,
                          const char **out_name);
    // The kernel of that name, where the device has the module. UNSUPPORTED: it does not.
    rondo_status (*find_function)(rondo_device *device, rondo__hash128 key, const char *name,
                                  void **out_function, const char **out_name);
    // Asks for `percent` of the memory that a multiprocessor has for its first-level cache and for
    // shared memory, as shared memory, where a kernel runs that one of the two gave. OK also where
    // the driver refuses. (optional: the driver chooses)
    rondo_status (*prefer_shared)(rondo_device *device, void *function, int percent);
    // Says that get_function will be called, so that the text is compiled meanwhile. (optional: it
    // is compiled then)
    void (*want_function)(rondo_device *device, const char *source, const char *const *options,
                          size_t option_count, const char *kernel_name);
    // Starts a thread that loads a library of the vendor's ("cublasLt"), because it will be needed;
    // a device need not be open. (optional: the first use loads it)
    void (*want_library)(const char *short_name);
    // Shows what get_function has loaded so far, as far as its machine code is still to be had.
    // (optional, as the next two: nothing)
    rondo_status (*visit_kernels)(rondo_device *device, rondo__kernel_code_visit visit,
                                  void *user_data);
    // How many modules get_function and offer_kernel have loaded so far.
    size_t (*count_kernels)(rondo_device *device);
    // Loads what another process has shown, so that get_function need not compile it.
    rondo_status (*offer_kernel)(rondo_device *device, const rondo__kernel_code *code);
};

extern const rondo__backend rondo__backend_host;
extern const rondo__backend rondo__backend_cuda;

// Every backend, ended by NULL. The one list; a test may swap it before the first device is opened.
extern const rondo__backend *const *rondo__backend_list;

// The failure of record_from_outside on a stream that records: STATE.
rondo_status rondo__stream_fail_recording(const rondo_stream *stream);

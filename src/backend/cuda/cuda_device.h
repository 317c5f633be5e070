// backend/cuda/cuda_device.h — the CUDA backend's objects, and what its files share.
//
// Each object embeds the common head of backend/backend.h. A device stands for the GPU's primary
// context, the one the runtime API, PyTorch and CuPy use too, so foreign streams and addresses are
// at home in it. Every entry that needs a current context brackets its driver calls with
// rondo__cuda_enter and rondo__cuda_leave; where the context is current already, as it is on a hot
// path, that is one thread-local read.
#ifndef RONDO_BACKEND_CUDA_CUDA_DEVICE_H
#define RONDO_BACKEND_CUDA_CUDA_DEVICE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/backend.h"
#include "backend/cuda/cuda_api.h"
#include "base/error.h"
#include "base/hash.h"

// A loaded module and the text it came from, by content.
typedef struct rondo__cuda_module {
    rondo__hash128 key;
    rondo__cu_module module;
} rondo__cuda_module;

// A host function waiting for its turn on a stream, with its copy of the arguments behind it.
typedef struct rondo__cuda_host_call rondo__cuda_host_call;

// A capture begun here and not ended: what the driver will not tell when it fails.
typedef struct rondo__cuda_capture rondo__cuda_capture;

typedef struct rondo__cuda_device {
    rondo_device head;
    const rondo__cuda_api *api;
    rondo__cu_device ordinal;
    rondo__cu_context context;  // primary, retained
    int32_t arch;               // 10 * major + minor
    int32_t shared_bytes_max;   // dynamic shared memory a block may ask for
    pthread_mutex_t lock;
    rondo__cuda_module *modules;           // guarded by lock
    size_t module_count;                   // guarded by lock
    size_t module_capacity;                // guarded by lock
    rondo__cuda_host_call *pending_calls;  // eager host calls not yet run; guarded by lock
    rondo__cu_function condition;          // the kernel of cuda_conditional.c; guarded by lock
    // Guards what follows, and is held where a stream begins to record, joins or ends a capture,
    // where the driver is asked about one, and where a thread records an event on a stream of
    // another one: the driver (580) crashes when a capture ends meanwhile, and an event that lands
    // in a capture stands for nothing.
    pthread_mutex_t capture_lock;
    rondo__cuda_capture *captures;
    int wait_count;                    // threads that wait for the whole device
    pthread_cond_t has_waited;         // one less of them
    uint64_t last_capture;             // serial of the latest capture
    rondo__cuda_capture *lost_bodies;  // see cuda_body.c; where there are any, the context must
                                       // outlive the device
} rondo__cuda_device;

typedef struct rondo__cuda_stream {
    rondo_stream head;
    // Serial of the capture it began or joined; may have ended; 0: none. Atomic because other
    // threads may put events on the stream.
    _Atomic(uint64_t) capture;
    int capture_mode;         // of the capture that began here; RELAXED when none
    uint64_t capture_thread;  // who began it (base/thread.h)
    bool is_origin;           // a capture began here and has not been ended
    bool is_body;             // is_origin, and it records into a body that a conditional node owns
    bool is_scratch;          // has recorded bodies, and nothing else: there is no work to wait for
} rondo__cuda_stream;

typedef struct rondo__cuda_event {
    rondo_event head;
    rondo__cu_event native;
    bool is_recorded;        // at least once, not as a node
    uint64_t capture;        // serial of the capture it was recorded in; 0: none
    uint32_t stream_number;  // of the stream it was recorded on
} rondo__cuda_event;

// What the driver (before CUDA 13.2) does not tell about a conditional node.
typedef struct rondo__cuda_note rondo__cuda_note;

typedef struct rondo__cuda_template {
    rondo__template head;
    rondo__cu_graph native;
    rondo__cu_graph_node *nodes;  // fetched on first use
    size_t node_count;
    bool has_nodes;
    bool is_borrowed;                       // the graph inside a node: the driver owns it
    struct rondo__cuda_template *children;  // of the graphs inside its nodes; owned
    struct rondo__cuda_template *next;      // in the list of its parent
    rondo__cuda_note *notes;                // of its conditional nodes and of those inside bodies
    struct rondo__cuda_template *root;      // bodies: who has the notes; NULL: itself
} rondo__cuda_template;

struct rondo__cuda_note {
    rondo__cuda_note *next;
    rondo__cu_graph_node node;
    rondo_scope_kind kind;
    const void *predicate;
    uint32_t branch_count;
    rondo__cuda_template bodies[];  // borrowed graphs, to be listed
};

typedef struct rondo__cuda_executable {
    rondo__executable head;
    rondo__cu_graph_exec native;
    // cuGraphLaunch, kept here so that a replay touches no line of the device's for it.
    rondo__cu_result (*launch)(rondo__cu_graph_exec native, rondo__cu_stream stream);
} rondo__cuda_executable;

static inline rondo__cuda_device *rondo__cuda_device_of(rondo_device *device) {
    return (rondo__cuda_device *)device;
}

static inline rondo__cu_stream rondo__cuda_native_stream(const rondo_stream *stream) {
    return (rondo__cu_stream)stream->native;
}

// ---- errors
// ----------------------------------------------------------------------------------------

// Writes the record of a failed driver call: its code and name, what was wanted (format), and the
// cure that belongs to the code. Marks the device lost when the code says that its context is
// poisoned. `device` may be NULL.
//
// Returns:   NO_DEVICE_MEMORY, STATE, LOST, UNSUPPORTED or DRIVER, as the code says.
// Threads:   safe.
RONDO_PRINTF(7, 8)
rondo_status rondo__cuda_fail(const rondo__cuda_api *api, rondo_device *device,
                              rondo__cu_result code, const char *call, const char *file,
                              int32_t line, const char *format, ...);

#define RONDO__CUDA_FAIL(device, code, call, ...)                                        \
    rondo__cuda_fail((device)->api, &(device)->head, (code), (call), __FILE__, __LINE__, \
                     __VA_ARGS__)

// The driver knows the object but not this of it: a kernel of a library, a copy of an array, an
// address that is plain host memory.
bool rondo__cuda_is_refusal(rondo__cu_result code);

// True when the code says that no further work is possible in the context.
bool rondo__cuda_is_sticky(rondo__cu_result code);

// A failed driver call during clean-up: logged, never returned. Silent when the driver has shut
// down already, as it has at the end of the process, and when the device is lost, which is noted.
void rondo__cuda_log_failure(rondo__cuda_device *device, rondo__cu_result code, const char *call);

// ---- context
// ---------------------------------------------------------------------------------------

// Makes the device's context current when it is not; the slow half of rondo__cuda_enter.
//
// Errors:    DRIVER, LOST.
// Threads:   safe.
RONDO_MUST_USE rondo_status rondo__cuda_push_context(rondo__cuda_device *device);

// Selects the device for this thread until rondo__cuda_leave.
//
// Errors:    DRIVER, LOST.
// Threads:   safe.
static inline rondo_status rondo__cuda_enter(rondo__cuda_device *device, bool *out_was_pushed) {
    rondo__cu_context current = NULL;
    if (device->api->cuCtxGetCurrent(&current) == RONDO__CU_SUCCESS && current == device->context) {
        *out_was_pushed = false;
        return RONDO_STATUS_OK;
    }
    rondo_status status = rondo__cuda_push_context(device);
    *out_was_pushed = status == RONDO_STATUS_OK;
    return status;
}

// True when launches into the stream, the begin and end of a capture on it and questions about that
// need no current context: the driver takes the stream's own. The default streams (NULL, legacy,
// per-thread) are whatever the current context says. Measured on driver 580 with no context and
// with another one current; a driver that does want the context says so
// (rondo__cuda_wants_context) before it does anything, and is then asked again inside it.
static inline bool rondo__cuda_knows_context(const rondo_stream *stream) {
    return (uintptr_t)stream->native > 2;
}
static inline bool rondo__cuda_wants_context(rondo__cu_result code) {
    return code == RONDO__CU_ERROR_INVALID_CONTEXT || code == RONDO__CU_ERROR_INVALID_HANDLE;
}

// The same for clean-up, which goes on when the context cannot be selected: most handles know their
// context anyway, and keeping the object would be a leak for certain.
static inline void rondo__cuda_enter_cleanup(rondo__cuda_device *device, bool *out_was_pushed) {
    if (rondo__cuda_enter(device, out_was_pushed) != RONDO_STATUS_OK) {
        *out_was_pushed = false;
    }
}

// Lets this thread make calls that captures forbid: what they forbid to Rondo's own calls was
// checked before (backend/forbid.h), and none of these touches what is recorded. Returns what to
// give back to the second.
int rondo__cuda_relax(const rondo__cuda_device *device);
void rondo__cuda_restore(const rondo__cuda_device *device, int mode);

static inline void rondo__cuda_leave(rondo__cuda_device *device, bool was_pushed) {
    if (was_pushed) {
        rondo__cu_context popped = NULL;
        (void)device->api->cuCtxPopCurrent(&popped);
    }
}

// ---- the table's entries, by file
// ------------------------------------------------------------------

// cuda_device.c
int32_t rondo__cuda_count_devices(char *reason, size_t reason_bytes);
rondo_status rondo__cuda_describe_device(int32_t ordinal, rondo_device_info *out_info);
rondo_status rondo__cuda_open_device(int32_t ordinal, rondo_device **out_device);
void rondo__cuda_close_device(rondo_device *device);
rondo_status rondo__cuda_synchronize_device(rondo_device *device);

// cuda_memory.c
rondo_status rondo__cuda_allocate(rondo_device *device, rondo_memory_kind kind, size_t bytes,
                                  void **out_address);
void rondo__cuda_deallocate(rondo_device *device, rondo_memory_kind kind, void *address);
bool rondo__cuda_is_pageable(rondo_device *device, const void *address, size_t bytes);
rondo_status rondo__cuda_get_free_bytes(rondo_device *device, uint64_t *out_bytes);
rondo_status rondo__cuda_copy(rondo_stream *stream, void *destination, const void *source,
                              size_t bytes, rondo_copy_kind kind);
rondo_status rondo__cuda_fill(rondo_stream *stream, void *destination, uint32_t value,
                              uint32_t element_bytes, size_t count);

// cuda_stream.c
rondo_status rondo__cuda_create_stream(rondo_device *device, rondo_stream **out_stream);
rondo_status rondo__cuda_wrap_stream(rondo_device *device, void *native, rondo_stream **out_stream);
bool rondo__cuda_destroy_stream(rondo_stream *stream);
rondo_status rondo__cuda_synchronize_stream(rondo_stream *stream);
rondo_status rondo__cuda_query_stream(rondo_stream *stream, bool *out_is_idle);
rondo_status rondo__cuda_wait_event(rondo_stream *stream, rondo_event *event);
rondo_status rondo__cuda_create_event(rondo_device *device, uint32_t flags,
                                      rondo_event **out_event);
void rondo__cuda_destroy_event(rondo_event *event);
rondo_status rondo__cuda_record_event(rondo_event *event, rondo_stream *stream);
rondo_status rondo__cuda_record_from_outside(rondo_event *event, rondo_stream *stream);
rondo_status rondo__cuda_query_event(rondo_event *event, bool *out_is_complete);
rondo_status rondo__cuda_synchronize_event(rondo_event *event);
rondo_status rondo__cuda_get_elapsed_ms(rondo_event *start, rondo_event *end,
                                        float *out_milliseconds);

// cuda_launch.c
rondo_status rondo__cuda_call_host(rondo_stream *stream, const char *name,
                                   rondo_host_function function, const void *arguments,
                                   size_t argument_bytes);
rondo_status rondo__cuda_launch(rondo_stream *stream, const rondo_launch *launch);
// The name given to call_host, when a host node is one of ours; otherwise "".
const char *rondo__cuda_get_host_call_name(const rondo__cu_host_node *node);
// Frees what never ran; only once the device will run nothing any more.
void rondo__cuda_free_pending_calls(rondo__cuda_device *device);

// cuda_capture.c
rondo_status rondo__cuda_begin_capture(rondo_stream *stream, rondo_capture_mode mode,
                                       uint64_t *out_id);
rondo_status rondo__cuda_get_capture_state(rondo_stream *stream, rondo__capture_state *out_state);
// cuda_frontier.c; a node's handle is its CUgraphNode
rondo_status rondo__cuda_get_capture_id(rondo_stream *stream, rondo__capture_state *out_state,
                                        uint64_t *out_id);
rondo_status rondo__cuda_get_frontier(rondo_stream *stream, rondo__node_handle *nodes,
                                      size_t capacity, size_t *out_count);
rondo_status rondo__cuda_get_position(rondo_stream *stream, rondo__capture_state *out_state,
                                      uint64_t *out_id, rondo__node_handle *nodes, size_t capacity,
                                      size_t *out_count);
rondo_status rondo__cuda_get_predecessors(rondo_stream *stream, rondo__node_handle node,
                                          rondo__node_handle *nodes, size_t capacity,
                                          size_t *out_count);
rondo_status rondo__cuda_add_dependencies(rondo_stream *stream, const rondo__node_handle *nodes,
                                          size_t count);
// cuda_recorded.c
rondo_status rondo__cuda_count_recorded(rondo_stream *stream, size_t *out_count);
rondo_status rondo__cuda_describe_recorded(rondo_stream *stream, rondo__node_handle node,
                                           rondo__node_info *out_info);
rondo_status rondo__cuda_list_handles(rondo__template *template_, rondo__node_handle *handles,
                                      size_t count);
rondo_status rondo__cuda_end_capture(rondo_stream *stream, rondo__template **out_template);
// Writes the failure of a call on a stream.
#define RONDO__CUDA_STREAM_FAIL(stream, code, call, ...) \
    RONDO__CUDA_FAIL(rondo__cuda_device_of((stream)->device), (code), (call), __VA_ARGS__)
// Tells the captures that `event` was recorded on `stream`, and that `stream` waits for `event`;
// for the second the caller holds the capture lock.
void rondo__cuda_note_record(rondo__cuda_event *event, rondo__cuda_stream *stream);
void rondo__cuda_note_wait(rondo__cuda_stream *stream, const rondo__cuda_event *event);
void rondo__cuda_free_captures(rondo__cuda_device *device);

// cuda_graph.c
void rondo__cuda_destroy_template(rondo__template *template_);
rondo_status rondo__cuda_count_nodes(rondo__template *template_, size_t *out_count);
rondo_status rondo__cuda_count_kinds(rondo__template *template_,
                                     size_t counts[RONDO__NODE_KIND_COUNT]);
rondo_status rondo__cuda_describe_node(rondo__template *template_, size_t index,
                                       rondo__node_info *out_info);
// The same for a node by its handle.
rondo_status rondo__cuda_describe_native(rondo__cuda_device *device, rondo__cu_graph_node node,
                                         rondo__node_info *out_info);
// Adds what only the notes say of a conditional node.
void rondo__cuda_describe_conditional(rondo__cuda_note *notes, rondo__cu_graph_node node,
                                      rondo__node_info *info);
rondo_status rondo__cuda_list_edges(rondo__template *template_, size_t *out_pairs, size_t capacity,
                                    size_t *out_count);
rondo_status rondo__cuda_instantiate(rondo__template *template_,
                                     rondo__executable **out_executable);
rondo_status rondo__cuda_update(rondo__executable *executable, rondo__template *template_,
                                bool *out_was_updated);
rondo_status rondo__cuda_upload(rondo__executable *executable, rondo_stream *stream);
rondo_status rondo__cuda_replay(rondo__executable *executable, rondo_stream *stream);
void rondo__cuda_destroy_executable(rondo__executable *executable);
rondo_status rondo__cuda_list_edge_kinds(rondo__template *template_, uint8_t *out_kinds,
                                         size_t capacity, size_t *out_count);
// Fetches the node handles of the template unless the kept ones are still as many as it has.
rondo_status rondo__cuda_fetch_nodes(rondo__cuda_template *recorded);
void *rondo__cuda_get_native_template(rondo__template *template_);
void *rondo__cuda_get_native_executable(rondo__executable *executable);

// cuda_use.c
rondo_status rondo__cuda_find_allocation(rondo_device *device, const void *address,
                                         rondo__allocation *out_allocation);
rondo_status rondo__cuda_visit_arguments(rondo__template *template_, size_t index,
                                         rondo__visit_bytes visit, void *user_data);

// cuda_child.c
rondo_status rondo__cuda_get_child(rondo__template *template_, size_t index,
                                   rondo__template **out_child);
// A view of a graph that the driver owns and that lives inside a node of `parent`, which keeps it.
RONDO_MUST_USE rondo_status rondo__cuda_borrow_template(rondo__cuda_template *parent,
                                                        rondo__cu_graph native,
                                                        rondo__template **out_template);
rondo_status rondo__cuda_add_child(rondo_stream *stream, rondo__template *template_);
rondo_status rondo__cuda_get_flags(rondo__executable *executable, uint64_t *out_flags);
rondo_status rondo__cuda_get_body(rondo__template *template_, size_t index, uint32_t branch,
                                  rondo__template **out_body);

// cuda_body.c A capture of its own on `stream`, into a graph that a node of the capture `parent` (a
// serial) owns. end_body always leaves the stream not recording.
rondo_status rondo__cuda_begin_body_capture(rondo_stream *stream, rondo__cu_graph graph,
                                            uint64_t parent);
rondo_status rondo__cuda_end_body_capture(rondo_stream *stream);
// Refuses what no body can hold. OK when the stream records none.
RONDO_MUST_USE rondo_status rondo__cuda_refuse_node_in_body(rondo_stream *stream, const char *call,
                                                            const char *what);
// Gives the note to the outermost capture around `serial`; false when Rondo began none, then it
// stays the caller's.
bool rondo__cuda_keep_note(rondo__cuda_device *device, uint64_t serial, rondo__cuda_note *note);
void rondo__cuda_free_notes(rondo__cuda_note *notes);

// cuda_conditional.c
rondo_status rondo__cuda_check_feature(rondo_device *device, rondo_feature feature);
rondo_status rondo__cuda_add_conditional(rondo_stream *parent, rondo_scope_kind kind,
                                         const void *predicate, uint32_t branch_count,
                                         rondo__conditional **out_conditional);
rondo_status rondo__cuda_begin_body(rondo__conditional *conditional, uint32_t branch,
                                    rondo_stream *body, rondo__node_handle *out_node,
                                    uint32_t *out_index);
rondo_status rondo__cuda_end_body(rondo__conditional *conditional, uint32_t branch,
                                  rondo_stream *body);
void rondo__cuda_release_conditional(rondo__conditional *conditional);
// Loads the kernel that sets conditions, which a capture in global mode would not survive. Failures
// wait until somebody needs it.
void rondo__cuda_prepare_conditions(rondo__cuda_device *device);

// cuda_module.c
// A kernel out of machine-independent code (PTX), which the driver compiles.
rondo_status rondo__cuda_load_ptx(rondo__cuda_device *device, const char *text,
                                  const char *kernel_name, rondo__cu_function *out_function);
rondo_status rondo__cuda_get_function(rondo_device *device, const char *source,
                                      const char *const *options, size_t option_count,
                                      const char *kernel_name, void **out_function);
void rondo__cuda_unload_modules(rondo__cuda_device *device);

#endif  // RONDO_BACKEND_CUDA_CUDA_DEVICE_H

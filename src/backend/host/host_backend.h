// backend/host/host_backend.h — the objects of the CPU backend, and what its files share.
//
// Locks, in the order in which they may be held together:
//
//   device->lock           the list of streams
//   device->capture_lock   everything about captures: stream->capture, frontiers, templates that
//                          are being recorded. One lock for all captures of the device: it is held
//                          for the time of one append, and a stream that does not record never
//                          takes it
//   event->lock            what an event stands for
//   lane->lock             who sleeps for the lane
//
// device->memory_lock and the team's lock are leaves.
#ifndef RONDO_BACKEND_HOST_HOST_BACKEND_H
#define RONDO_BACKEND_HOST_HOST_BACKEND_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/backend.h"
#include "base/error.h"

enum { RONDO__CACHE_LINE_BYTES = 64 };

typedef struct rondo__host_device rondo__host_device;
typedef struct rondo__host_stream rondo__host_stream;
typedef struct rondo__host_event rondo__host_event;
typedef struct rondo__host_capture rondo__host_capture;
typedef struct rondo__host_template rondo__host_template;
typedef struct rondo__host_branches rondo__host_branches;
typedef struct rondo__host_program rondo__host_program;
typedef struct rondo__host_team rondo__host_team;

// ---- lanes (host_lane.c) ------------------------------------------------------------------------

// How far a stream's work has come. Outlives the stream, so that events and executables may ask.
// Positions are bytes of commands put into the stream's ring since its beginning; they only grow.
typedef struct rondo__host_lane {
    _Alignas(64) _Atomic(uint64_t) completed;  // the worker has run everything before this
    // Smallest position somebody sleeps for; UINT64_MAX: nobody. Written under lock.
    _Alignas(64) _Atomic(uint64_t) wake_target;
    atomic_uint wake_word;  // the futex sleepers wait on; changed under lock
    atomic_int reference_count;
    pthread_mutex_t lock;
    rondo__failure_slot failure;
} rondo__host_lane;

rondo__host_lane *rondo__host_lane_create(void);  // NULL: no memory, recorded
rondo__host_lane *rondo__host_lane_retain(rondo__host_lane *lane);
void rondo__host_lane_release(rondo__host_lane *lane);  // NULL is fine
// Sleeps (after a short spin) until the lane has passed `position`.
void rondo__host_lane_wait(rondo__host_lane *lane, uint64_t position);
void rondo__host_lane_wake(rondo__host_lane *lane);  // the slow half of complete

static inline bool rondo__host_lane_has_passed(rondo__host_lane *lane, uint64_t position) {
    return atomic_load_explicit(&lane->completed, memory_order_acquire) >= position;
}

// Called by the worker after each command. Sequentially consistent against lane_wait: either the
// sleeper sees the new position, or we see its target.
static inline void rondo__host_lane_complete(rondo__host_lane *lane, uint64_t position) {
    atomic_store(&lane->completed, position);
    if (position >= atomic_load(&lane->wake_target)) {
        rondo__host_lane_wake(lane);
    }
}

// ---- streams (host_stream.c) --------------------------------------------------------------------

struct rondo__host_stream {
    rondo_stream head;
    rondo__host_lane *lane;
    // Used by the thread that submits.
    unsigned char *ring;
    uint64_t submitted;        // position after the last command
    uint64_t known_completed;  // what submitting last saw of lane->completed
    bool has_worker;
    pthread_t worker;
    // Position up to which the worker may run. In a line of its own with the worker's bed.
    _Alignas(64) _Atomic(uint64_t) published;
    atomic_uint is_asleep;  // futex: 1 while the worker sleeps or is about to
    // NULL: not recording. Written under device->capture_lock; read without it by the stream's own
    // thread, which is the only one to make it non-NULL.
    _Alignas(64) _Atomic(rondo__host_capture *) capture;
    // The nodes that the next recorded one depends on. Guarded by device->capture_lock.
    size_t *frontier;
    size_t frontier_count;
    size_t frontier_capacity;
    rondo__host_stream *next_in_capture;  // guarded by device->capture_lock
    rondo__host_stream *next;             // guarded by device->lock
    rondo__host_stream *previous;         // guarded by device->lock
};

// Makes room for one command whose `run` gets `argument_bytes` bytes at *out_arguments (aligned to
// 16), to be filled and then published. Nothing else may be submitted in between.
//
// Errors:    NO_MEMORY (the worker thread could not be started).
RONDO_MUST_USE rondo_status rondo__host_submit(rondo__host_stream *stream, void (*run)(void *),
                                               size_t argument_bytes, void **out_arguments);
// Lets the worker run what was submitted.
void rondo__host_publish(rondo__host_stream *stream);
// Puts a wait for another lane on the stream.
RONDO_MUST_USE rondo_status rondo__host_submit_wait(rondo__host_stream *stream,
                                                    rondo__host_lane *lane, uint64_t position);

rondo_status rondo__host_create_stream(rondo_device *device, rondo_stream **out_stream);
void rondo__host_destroy_stream(rondo_stream *stream);
rondo_status rondo__host_synchronize_stream(rondo_stream *stream);
rondo_status rondo__host_drain_stream(rondo_stream *stream);
rondo_status rondo__host_query_stream(rondo_stream *stream, bool *out_is_idle);

// ---- events (host_event.c) ----------------------------------------------------------------------

struct rondo__host_event {
    rondo_event head;
    atomic_int reference_count;    // the owner, and each time stamp still to be taken
    pthread_mutex_t lock;          // guards all below
    rondo__host_lane *lane;        // retained; NULL: not recorded outside a capture
    uint64_t position;             // complete when `lane` has passed this
    rondo__host_capture *capture;  // retained; non-NULL: stands for `nodes` of this capture
    size_t *nodes;
    size_t node_count;
    size_t node_capacity;
    uint64_t record_serial;  // how often a time stamp was asked for
    uint64_t stamp_serial;   // which of them stamp_ns belongs to; 0: none
    uint64_t stamp_ns;
    // RONDO_EVENT_EXTERNAL only: which records have happened. Those on different streams may do so
    // in another order than they were asked for.
    uint64_t done_serial;  // every one up to this
    uint64_t *early;       // and these later ones
    size_t early_count;
    size_t early_capacity;    // room for all that were asked for or promised
    size_t promised_count;    // records that are about to be asked for
    pthread_cond_t happened;  // one more
};

rondo_status rondo__host_create_event(rondo_device *device, uint32_t flags,
                                      rondo_event **out_event);
void rondo__host_destroy_event(rondo_event *event);
rondo_status rondo__host_record_event(rondo_event *event, rondo_stream *stream);
rondo_status rondo__host_record_from_outside(rondo_event *event, rondo_stream *stream);
rondo_status rondo__host_wait_event(rondo_stream *stream, rondo_event *event);
rondo_status rondo__host_query_event(rondo_event *event, bool *out_is_complete);
rondo_status rondo__host_synchronize_event(rondo_event *event);
rondo_status rondo__host_get_elapsed_ms(rondo_event *start, rondo_event *end,
                                        float *out_milliseconds);

// Takes the time for record number `serial`. Drops no reference.
void rondo__host_stamp_event(rondo__host_event *event, uint64_t serial);
void rondo__host_release_event(rondo__host_event *event);

// ---- external events (host_external.c) ----------------------------------------------------------

// What a node that records an external event, or waits for one, gets. `serial` is set before each
// run of the program: which record this is, or which one to wait for; 0: it was not.
typedef struct rondo__host_external {
    rondo__host_event *event;  // kept alive by the graph
    uint64_t serial;
    bool is_record;
} rondo__host_external;

static inline bool rondo__host_is_external(const rondo_event *event) {
    return (event->flags & RONDO_EVENT_EXTERNAL) != 0;
}

rondo_status rondo__host_record_external(rondo__host_event *event, rondo__host_stream *stream);
rondo_status rondo__host_wait_external(rondo__host_stream *stream, rondo__host_event *event);
bool rondo__host_has_happened(rondo__host_event *event);   // its latest record
void rondo__host_wait_happened(rondo__host_event *event);  // on the calling thread
// The arguments of a node as an external event's; NULL when the node is none.
rondo__host_external *rondo__host_get_external(void (*run)(void *), void *arguments);
// Makes sure that the records of one replay can be asked for; undone by the second.
//
// Errors:    NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__host_promise_externals(rondo__host_external *const *externals,
                                                          size_t count);
void rondo__host_break_promises(rondo__host_external *const *externals, size_t count);
// Asks for the records, which were promised, and resolves the waits of one replay: one serial each,
// in the order given.
void rondo__host_ask_externals(rondo__host_external *const *externals, size_t count,
                               uint64_t *out_serials);

// ---- work (host_work.c) -------------------------------------------------------------------------

typedef struct rondo__host_copy_arguments {
    void *destination;
    const void *source;
    size_t bytes;
    rondo_copy_kind kind;
} rondo__host_copy_arguments;

typedef struct rondo__host_fill_arguments {
    void *destination;
    size_t count;
    uint32_t value;
    uint32_t element_bytes;
} rondo__host_fill_arguments;

rondo_status rondo__host_copy(rondo_stream *stream, void *destination, const void *source,
                              size_t bytes, rondo_copy_kind kind);
rondo_status rondo__host_fill(rondo_stream *stream, void *destination, uint32_t value,
                              uint32_t element_bytes, size_t count);
rondo_status rondo__host_call(rondo_stream *stream, const char *name, rondo_host_function function,
                              const void *arguments, size_t argument_bytes);
rondo_status rondo__host_launch(rondo_stream *stream, const rondo_launch *launch);

// ---- memory (host_heap.c) -----------------------------------------------------------------------

// An area from rondo_memory_allocate.
typedef struct rondo__host_area {
    uintptr_t begin;
    size_t bytes;
} rondo__host_area;

rondo_status rondo__host_allocate(rondo_device *device, rondo_memory_kind kind, size_t bytes,
                                  void **out_address);
void rondo__host_deallocate(rondo_device *device, rondo_memory_kind kind, void *address);
// True when all bytes lie in one area that rondo_memory_allocate gave.
bool rondo__host_is_pageable(rondo_device *device, const void *address, size_t bytes);
bool rondo__host_is_pinned(rondo__host_device *device, const void *address, size_t bytes);

// ---- captures (host_capture.c) ------------------------------------------------------------------

// A recording in progress. Guarded by device->capture_lock.
struct rondo__host_capture {
    size_t reference_count;  // streams and events that point here
    uint64_t id;             // never used twice
    bool is_body;            // of a conditional node
    rondo__host_stream *origin;
    rondo__host_stream *streams;  // all that take part, by next_in_capture; NULL: it has ended
    rondo__host_template *recorded;
};

// A node to be recorded.
typedef struct rondo__host_node {
    rondo__node_kind kind;
    void (*run)(void *);
    const char *name;
    const void *arguments;
    size_t argument_bytes;
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t shared_bytes;
    size_t first_edge;  // into the template's predecessors
    size_t edge_count;
    rondo__host_branches *branches;  // conditional nodes: owned by the template
} rondo__host_node;

rondo_status rondo__host_begin_capture(rondo_stream *stream, rondo_capture_mode mode,
                                       uint64_t *out_id);
rondo_status rondo__host_get_capture_state(rondo_stream *stream, rondo__capture_state *out_state);
rondo_status rondo__host_end_capture(rondo_stream *stream, rondo__template **out_template);
// A node's handle is its index in the template.
rondo_status rondo__host_get_capture_id(rondo_stream *stream, rondo__capture_state *out_state,
                                        uint64_t *out_id);
rondo_status rondo__host_get_frontier(rondo_stream *stream, rondo__node_handle *nodes,
                                      size_t capacity, size_t *out_count);
rondo_status rondo__host_get_position(rondo_stream *stream, rondo__capture_state *out_state,
                                      uint64_t *out_id, rondo__node_handle *nodes, size_t capacity,
                                      size_t *out_count);
rondo_status rondo__host_get_predecessors(rondo_stream *stream, rondo__node_handle node,
                                          rondo__node_handle *nodes, size_t capacity,
                                          size_t *out_count);
rondo_status rondo__host_add_dependencies(rondo_stream *stream, const rondo__node_handle *nodes,
                                          size_t count);
// host_recorded.c
rondo_status rondo__host_count_recorded(rondo_stream *stream, size_t *out_count);
rondo_status rondo__host_describe_recorded(rondo_stream *stream, rondo__node_handle node,
                                           rondo__node_info *out_info);
rondo_status rondo__host_list_handles(rondo__template *template_, rondo__node_handle *handles,
                                      size_t count);

// Appends the node to the capture of `stream`; *out_was_recorded is false when it has none.
RONDO_MUST_USE rondo_status rondo__host_record_node(rondo__host_stream *stream,
                                                    const rondo__host_node *node,
                                                    bool *out_was_recorded);
// The caller holds device->capture_lock for the rest.
void rondo__host_capture_leave(rondo__host_stream *stream);
void rondo__host_capture_unreference(rondo__host_capture *capture);
RONDO_MUST_USE rondo_status rondo__host_capture_join(rondo__host_capture *capture,
                                                     rondo__host_stream *stream,
                                                     const size_t *nodes, size_t node_count);

// ---- conditional nodes (host_conditional.c) -----------------------------------------------------

// What a recorded conditional node chooses from.
struct rondo__host_branches {
    rondo_scope_kind kind;
    const void *predicate;
    uint32_t count;
    rondo__host_template *bodies[];  // NULL: empty
};

// The same in a program.
typedef struct rondo__host_choice {
    struct rondo__host_choice *next;  // of the same program
    rondo_scope_kind kind;
    const void *predicate;
    uint32_t count;
    rondo__host_program *bodies[];  // NULL: empty
} rondo__host_choice;

void rondo__host_branches_destroy(rondo__host_branches *branches);  // NULL is fine
const char *rondo__host_branches_get_name(const rondo__host_branches *branches);
RONDO_MUST_USE rondo_status rondo__host_choice_create(const rondo__host_branches *branches,
                                                      rondo__host_choice **out_choice);
void rondo__host_choice_destroy(rondo__host_choice *choice);
void rondo__host_choice_run(void *choice);

// Refuses what no body can hold: breaks the body's capture. OK when the stream records none.
RONDO_MUST_USE rondo_status rondo__host_refuse_in_body(rondo__host_stream *stream, const char *call,
                                                       const char *what);
rondo_status rondo__host_check_feature(rondo_device *device, rondo_feature feature);
rondo_status rondo__host_add_conditional(rondo_stream *parent, rondo_scope_kind kind,
                                         const void *predicate, uint32_t branch_count,
                                         rondo__conditional **out_conditional);
rondo_status rondo__host_begin_body(rondo__conditional *conditional, uint32_t branch,
                                    rondo_stream *body, rondo__node_handle *out_node,
                                    uint32_t *out_index);
rondo_status rondo__host_end_body(rondo__conditional *conditional, uint32_t branch,
                                  rondo_stream *body);
void rondo__host_release_conditional(rondo__conditional *conditional);
rondo_status rondo__host_get_body(rondo__template *template_, size_t index, uint32_t branch,
                                  rondo__template **out_body);

// ---- templates (host_template.c) ----------------------------------------------------------------

// A block of argument bytes; nodes point into it.
typedef struct rondo__host_chunk rondo__host_chunk;

struct rondo__host_template {
    rondo__template head;
    rondo__host_node *nodes;  // in an order in which predecessors come first
    size_t node_count;
    size_t node_capacity;
    size_t *predecessors;
    size_t edge_count;
    size_t edge_capacity;
    rondo__host_chunk *chunks;
    bool borrows_branches;  // flattened: conditional nodes are those of another template
};

// Copies node and arguments; `predecessors` become its edges. On success the template owns the
// node's branches.
RONDO_MUST_USE rondo_status rondo__host_template_append(rondo__host_template *recorded,
                                                        const rondo__host_node *node,
                                                        const size_t *predecessors,
                                                        size_t predecessor_count);
void rondo__host_destroy_template(rondo__template *template_);
rondo_status rondo__host_count_nodes(rondo__template *template_, size_t *out_count);
rondo_status rondo__host_count_kinds(rondo__template *template_,
                                     size_t counts[RONDO__NODE_KIND_COUNT]);
rondo_status rondo__host_describe_node(rondo__template *template_, size_t index,
                                       rondo__node_info *out_info);
rondo_status rondo__host_list_edges(rondo__template *template_, size_t *out_pairs, size_t capacity,
                                    size_t *out_count);
rondo_status rondo__host_visit_arguments(rondo__template *template_, size_t index,
                                         rondo__visit_bytes visit, void *user_data);

// ---- graphs inside graphs (host_child.c) --------------------------------------------------------

// What a CHILD node holds as its arguments: a template of its own.
typedef struct rondo__host_child {
    rondo__host_template *recorded;
} rondo__host_child;

rondo_status rondo__host_add_child(rondo_stream *stream, rondo__template *template_);
rondo_status rondo__host_get_child(rondo__template *template_, size_t index,
                                   rondo__template **out_child);
// The same work without CHILD nodes. *out_flat is `recorded` itself when it has none.
//
// Errors:    NO_MEMORY.
// Ownership: give back with rondo__host_unflatten.
RONDO_MUST_USE rondo_status rondo__host_flatten(const rondo__host_template *recorded,
                                                const rondo__host_template **out_flat);
void rondo__host_unflatten(const rondo__host_template *recorded, const rondo__host_template *flat);

// ---- programs and executables (host_program.c, host_executable.c) -------------------------------

typedef struct rondo__host_instruction {
    void (*run)(void *);
    void *arguments;
} rondo__host_instruction;

// A run of instructions in which each depends on the one before only.
typedef struct rondo__host_segment {
    uint32_t first;  // instruction
    uint32_t count;
    uint32_t first_successor;  // into successors
    uint32_t successor_count;
    uint32_t predecessor_count;
} rondo__host_segment;

// What a run of a program with parallel branches needs; see host_team.c.
typedef struct rondo__host_job {
    struct rondo__host_job *next;  // guarded by the team's lock
    const struct rondo__host_program *program;
    atomic_uint *pending;  // per segment: predecessors not yet done
    atomic_uint *ready;    // queue of segments that may run, plus one; 0: not yet written
    _Alignas(64) atomic_uint pushed;
    _Alignas(64) atomic_uint popped;
    _Alignas(64) atomic_uint remaining;  // segments not yet done
    _Atomic(uint64_t) helped_count;      // nodes that helpers ran
    atomic_uint signal;                  // futex of the thread that owns the job
    atomic_bool is_owner_asleep;
    atomic_int helper_count;  // helpers inside
    rondo__failure_slot *failure;
} rondo__host_job;

// The runnable form. Immutable once made, apart from the job; replays in flight hold a reference.
struct rondo__host_program {
    atomic_int reference_count;
    size_t count;
    rondo__host_instruction *instructions;
    unsigned char *arguments;
    size_t segment_count;
    size_t width;  // most segments that may run at once; 1: a straight line
    rondo__host_segment *segments;
    uint32_t *successors;
    rondo__host_job job;
    rondo__host_team *team;
    // Of the executable, which outlives the replays; NULL for what runs inside another program.
    _Atomic(uint64_t) *executed_count;
    // Arguments of the nodes that use external events; each replay sets their serials first.
    rondo__host_external **externals;
    size_t external_count;
    rondo__host_choice *choices;  // of the conditional nodes
};

RONDO_MUST_USE rondo_status rondo__host_program_create(const rondo__host_template *recorded,
                                                       rondo__host_program **out_program);
void rondo__host_program_release(rondo__host_program *program);
void rondo__host_program_run(rondo__host_program *program);
// Nodes that this thread ran since it began, programs inside programs included.
extern _Thread_local uint64_t rondo__host_executed_count;

rondo_status rondo__host_instantiate(rondo__template *template_,
                                     rondo__executable **out_executable);
rondo_status rondo__host_update(rondo__executable *executable, rondo__template *template_,
                                bool *out_was_updated);
rondo_status rondo__host_upload(rondo__executable *executable, rondo_stream *stream);
rondo_status rondo__host_replay(rondo__executable *executable, rondo_stream *stream);
uint64_t rondo__host_count_executed(rondo__executable *executable);
void rondo__host_destroy_executable(rondo__executable *executable);

// ---- helpers for parallel branches (host_team.c) ------------------------------------------------

rondo__host_team *rondo__host_team_create(void);  // NULL: no memory, recorded
void rondo__host_team_destroy(rondo__host_team *team);
void rondo__host_team_start(rondo__host_team *team);  // starts the threads; too few is fine
// Wakes helpers for a program that is about to run. Harmless when it comes too late.
void rondo__host_team_rouse(rondo__host_team *team, const rondo__host_program *program);
// Runs the job to its end on this thread and the helpers.
void rondo__host_team_run(rondo__host_team *team, rondo__host_job *job);

// ---- threads (host_threads.c) -------------------------------------------------------------------

int32_t rondo__host_get_processor_count(void);
// Threads one op may use on this thread from now on are divided by `share`; returns the former one.
int32_t rondo__host_set_thread_share(int32_t share);
// Starts a thread that takes no signals.
RONDO_MUST_USE rondo_status rondo__host_start_thread(const char *name, void *(*function)(void *),
                                                     void *argument, pthread_t *out_thread);

// ---- the device (host_device.c) -----------------------------------------------------------------

struct rondo__host_device {
    rondo_device head;
    pthread_mutex_t lock;
    rondo__host_stream *streams;  // guarded by lock
    pthread_mutex_t capture_lock;
    pthread_mutex_t memory_lock;
    rondo__host_area *areas;  // sorted by begin; guarded by memory_lock
    size_t area_count;        // guarded by memory_lock
    size_t area_capacity;     // guarded by memory_lock
    uint64_t memory_bytes;    // what one allocation may ask for at most: memory and swap together
    rondo__host_team *team;
};

static inline rondo__host_device *rondo__host_device_of(rondo_device *device) {
    return (rondo__host_device *)device;
}

#endif  // RONDO_BACKEND_HOST_HOST_BACKEND_H

// executor/state/run_state.h — state that runs leave behind for the next run; it is freed with the
// plan or the executor, when no run is under way.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/state/plan.h"
#include "rondo/learn.h"

// An input lane takes the inputs of an asynchronous run; there are two (run/input_lanes.h).
typedef struct rondo__input_lane {
    void *pinned;           // in host memory
    void *device;           // NULL on the host device
    size_t bytes;           // of each
    rondo_event *uploaded;  // GPU: the copy stream has read `pinned`
    rondo_event *consumed;  // the run's stream has read the lane
    bool is_used;
    bool is_read_late;  // GPU: the run's stream reads `pinned`, for ops of the processor
} rondo__input_lane;

struct rondo__async {
    rondo_stream *copy_stream;  // NULL on the host device
    rondo__input_lane lanes[2];
    size_t next;            // lane
    rondo_event *finished;  // behind the last run, where the program may record on the stream
    bool is_under_way;      // runs were put on the stream since the last wait
    bool is_putting;        // a run is being put on the stream: nothing may wait for long
    bool has_spans;         // the last run has marked its parts
    uint64_t start_ns;      // of the last run
    rondo_run_times times;
    rondo__unit *active;  // what the last run was of
    // A wait within a later call may have told of runs under way; so does the next for them.
    uint32_t failed_waits;     // of the stream, before the first of the runs
    rondo_status stop_status;  // of what the device stopped; OK: nothing
};

// A plan's kernels on other addresses than its own (devices/stand_ins.h).
typedef struct rondo__stand_ins {
    const rondo__unit *unit;
    const rondo__plan *plan;
    char *arena;  // where the other values lie
    // Of a recorded run, whose work may be the processor's, too, and bring weights; NULL otherwise:
    char *host_arena;  // pinned
    char *buffer;      // for the weights of one op
    void **lists;      // room for addresses that host functions find
    size_t list_count;
    void **by_root;  // one for each value; NULL: in the arena
    // Whose marks the launches repeat, so that a watchdog knows where a replay is; NULL: none.
    rondo_watchdog *watchdog;
    rondo_graph *watched;     // the plan's own graph
    uint64_t watched_number;  // of its recording
    const void **inputs;
    void **outputs;  // of one launch, as `inputs`
} rondo__stand_ins;

enum { RONDO__BRANCH_MAX = 8 };

typedef struct rondo__branched_item {
    uint32_t branch;
    bool is_awaited;    // by an op of another branch
    size_t first_wait;  // into `waits`
    size_t wait_count;
} rondo__branched_item;

// How the items of one segment are spread over branches.
typedef struct rondo__branches {
    uint32_t count;               // 1: a straight line
    rondo__branched_item *items;  // one for each of the segment
    size_t *waits;                // items of the segment
    size_t wait_capacity;
    double gain;  // estimated: time of all ops over time of the longest way
} rondo__branches;

// Records a segment with branches on a stream, any number of times (run/branch_trial.h).
typedef struct rondo__branch_recorder {
    size_t first_item, item_count;
    rondo__branches branches;
    rondo_stream *streams[RONDO__BRANCH_MAX];  // the first is the one that records
    size_t event_count;
    rondo_event **events;  // one for each item; the next for the start; then for ends of branches
} rondo__branch_recorder;

void rondo__branches_deinit(rondo__branches *branches);
void rondo__branches_close(rondo__branch_recorder *recorder);

// Runs that are replayed where the caller's tensors lie (run/in_place_replay.h).
typedef struct rondo__in_place {
    rondo__stand_ins places;
    rondo_learned *learned;  // NULL: not yet
    size_t count;            // tensors that stand in, of the latest run
    int32_t *roots;          // the values that they stand in for
    int32_t *found;          // the same, while a run is looked at
    rondo_value *values;     // their addresses
    uint32_t *uses;          // of each value; inputs that nothing reads are no work's addresses
    uint32_t seen;           // runs one behind the other with these
    bool is_refused;
    rondo__branch_recorder *branches;  // of the graph; NULL: a straight line
} rondo__in_place;

void rondo__stand_ins_deinit(rondo__stand_ins *places);
void rondo__in_place_free(rondo__plan *plan);

// Copies of the last run's late values (run/late_values.h), and all that is kept for them.
void rondo__late_values_drop(rondo__plan *plan);
void rondo__late_values_free(rondo__unit *unit, rondo__plan *plan);

void rondo__self_check_destroy(rondo_executor *executor);

// Frees the memory of an input lane; and the lanes and the stream of asynchronous runs
// (run/input_lanes.h).
void rondo__input_lane_empty(rondo_executor *executor, rondo__input_lane *lane);
void rondo__async_free(rondo_executor *executor);

// Waits for whatever the executor has put on its stream; failures are told elsewhere.
void rondo__unit_drain(rondo__unit *unit);

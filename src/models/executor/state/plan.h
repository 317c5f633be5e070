// executor/state/plan.h — a program compiled for one device and one set of input shapes.
//
// A plan is an ordered list of plan steps. A segment is a run of ops with kernels on the device:
// it is launched op by op the first time, captured the second, replayed from then on. A bypass is
// one op between segments that cannot be captured: control flow, an op whose result shape depends
// on data, or one whose kernel does what a capture forbids. Only the last kind leaves the stream
// going: its kernel is launched between two graphs. For the others the processor waits. An op that
// runs on the processor because it is placed there, or because a GPU has no kernel for it, is an
// item of a segment, too (host_ops.h), and copies between the two sides are (transfers.h). So is
// an op of a GPU whose result shape depends on data: behind its segment the processor only looks
// at how much it found (split_counted.h).
//
// Where a value lives is decided once (value slots): in a constant on the device, at an offset of
// the arena or, on the processor's side of a GPU's plan, of a second one in pinned memory, or,
// when its shape depends on data or its elements are strings or tensors, in a tensor that is made
// anew each run: in host memory or, where a GPU has made it, a view of the place where it lies.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/budget.h"
#include "base/float_scope.h"
#include "base/lru_map.h"
#include "base/text.h"
#include "cache/governor.h"
#include "executor/state/plan_worth.h"
#include "executor/state/program_share.h"
#include "kernel/flow.h"
#include "kernel/kernel.h"
#include "program/place_mark.h"
#include "program/program.h"
#include "program/shapes/specialise.h"
#include "rondo/executor.h"
#include "rondo/executor_stream.h"
#include "rondo/node.h"

// Results up to this size are folded ahead even where memory is short: shapes and their likes.
enum { RONDO__LEAN_FOLD_BYTES = 64 << 10 };

enum { RONDO__VARIANT_MAX = 8 };  // sets of optional inputs fed, and modes, that are kept

enum { RONDO__DECISIONS_MAX = 8 };  // values of inputs that decide branches that get plans

typedef enum rondo__slot_kind {
    RONDO__SLOT_NONE,      // the value is not used
    RONDO__SLOT_CONSTANT,  // known ahead; `address` is set when a kernel needs it on the device
    RONDO__SLOT_ARENA,
    RONDO__SLOT_DYNAMIC,  // plan->run.dynamic[value]; also strings and sequences
} rondo__slot_kind;

typedef struct rondo__slot {
    rondo__slot_kind kind;
    rondo_dtype dtype;
    bool is_shape_known;
    rondo_shape shape;
    size_t bytes;
    int32_t root;       // value whose bytes this one shares (views; the room of what is counted);
                        // itself otherwise
    size_t part_at;     // of a part of the root's value: from the root's start; see skipped_moves.h
    size_t offset;      // ARENA: from the arena's start
    void *address;      // ARENA and CONSTANT: on the device; with is_on_host in pinned memory
    bool is_on_host;    // ARENA: lies in plan->memory.host_arena
    uint8_t side;       // RONDO__SIDE_...
    bool needs_device;  // CONSTANT: some kernel reads it there
    bool is_bound;      // ARENA: lies where the plan around it says: of a part (body_plan.h), or an
                        // input of a body that stays on the device (deferred_body.h); or `is_kept`
    bool is_kept;       // an input that lies in the memory of a state (states.h)
} rondo__slot;

// One op of a segment with its addresses.
typedef struct rondo__item {
    size_t node;
    rondo__kernel *kernel;
    const void **inputs;
    void **outputs;
    void *workspace;
    uint8_t side;             // where it works: RONDO__SIDE_...
    bool is_frozen;           // its launch puts other numbers each time (run/probe.h)
    rondo_node last_node;     // in the step's graph, where the executor checks itself
    size_t workspace_offset;  // from the arena's start
} rondo__item;

typedef enum rondo__step_kind {
    RONDO__STEP_SEGMENT,
    RONDO__STEP_BYPASS,
    RONDO__STEP_COUNT,  // no op: waits for how much an op of the segment before has found
} rondo__step_kind;

typedef enum rondo__bypass_kind {
    RONDO__BYPASS_HOSTED,     // shapes known, no kernel that an item can have: the reference runs
    RONDO__BYPASS_DYNAMIC,    // a shape depends on data
    RONDO__BYPASS_CONTROL,    // If, Loop, Scan, SequenceMap
    RONDO__BYPASS_OBJECTS,    // strings, sequences or optionals come in or go out
    RONDO__BYPASS_EAGER,      // the device's kernel, which cannot be captured, is launched
    RONDO__BYPASS_DIFFERENT,  // of a segment only: its replay computes something else
    RONDO__BYPASS_COUNTED,    // of a segment and a RONDO__STEP_COUNT
} rondo__bypass_kind;

// How a node runs. Those behind KERNEL run between segments, for the reason of the same name.
typedef enum rondo__node_class {
    RONDO__CLASS_IDLE = -1,   // no work: a view, or all that it makes is empty
    RONDO__CLASS_KERNEL = 0,  // an item of a segment
    RONDO__CLASS_HOSTED = 1 + RONDO__BYPASS_HOSTED,
    RONDO__CLASS_DYNAMIC = 1 + RONDO__BYPASS_DYNAMIC,
    RONDO__CLASS_CONTROL = 1 + RONDO__BYPASS_CONTROL,
    RONDO__CLASS_OBJECTS = 1 + RONDO__BYPASS_OBJECTS,
    RONDO__CLASS_EAGER = 1 + RONDO__BYPASS_EAGER,
    RONDO__CLASS_COUNTED = 1 + RONDO__BYPASS_COUNTED,
} rondo__node_class;

// Of a node that is neither idle nor an item.
static inline rondo__bypass_kind rondo__node_class_get_bypass(rondo__node_class node_class) {
    return (rondo__bypass_kind)(node_class - 1);
}

// Where values and items of a plan are. A plan of the host has the first side only.
enum {
    RONDO__SIDE_DEVICE = 0,  // the executor's
    RONDO__SIDE_HOST = 1,    // the processor, beside a GPU
    RONDO__SIDE_PEER = 2,    // and RONDO__SIDE_PEER + i: plan->peers[i], another GPU
};

// Copies between the sides; BETWEEN: from one GPU to another.
typedef enum rondo__transfer_way {
    RONDO__TO_DEVICE,
    RONDO__TO_HOST,
    RONDO__BETWEEN
} rondo__transfer_way;

typedef struct rondo__transfer_counts {
    uint64_t count[3];  // by rondo__transfer_way
    uint64_t bytes[3];
} rondo__transfer_counts;

static inline void rondo__transfers_add(rondo__transfer_counts *sum,
                                        const rondo__transfer_counts *counts) {
    for (int way = RONDO__TO_DEVICE; way <= RONDO__BETWEEN; ++way) {
        sum->count[way] += counts->count[way];
        sum->bytes[way] += counts->bytes[way];
    }
}

static inline uint64_t rondo__transfers_get_total(const rondo__transfer_counts *counts) {
    return counts->count[RONDO__TO_DEVICE] + counts->count[RONDO__TO_HOST] +
           counts->count[RONDO__BETWEEN];
}

// Weights brought from pinned memory.
typedef struct rondo__brought {
    uint64_t count;
    uint64_t bytes;
} rondo__brought;

// Copies of all runs of a caller's executor.
typedef struct rondo__transfers_log {
    uint64_t run_count;
    rondo__brought brought;
    rondo__transfer_counts all;
    rondo__transfer_counts stopped;  // of these, that a run waited for on its way
    rondo__transfer_counts pending;  // of the run at hand, for which no call has waited yet
} rondo__transfers_log;

// Where a node runs, and why.
typedef struct rondo__op_device {
    uint8_t place;       // RONDO__PLACE_...; ANY: not decided yet
    uint8_t by;          // RONDO__PLACED_BY_...
    const char *reason;  // static
} rondo__op_device;

// The part of a step that runs change.
typedef struct rondo__step_run {
    // segment
    rondo_graph *graph;      // NULL until captured
    bool may_run_here;       // the graph, by the thread that waits for it
    uint64_t captured_run;   // of the plan: its count then
    uint64_t retry_run;      // run of the plan from which on a capture is tried
    uint32_t failure_count;  // captures that failed for want of memory, or for no lasting reason
    uint32_t branch_count;   // of the graph; 0: not tried yet
    rondo_graph *other;      // while runs take turns with two graphs; NULL: they do not
    uint32_t turn_count;     // such runs
    uint64_t least_ns[2];    // that they took, straight and with branches
    bool has_crossings;
    rondo__transfer_counts crossings;  // of its items, once has_crossings
    // bypass
    rondo__unit **bodies;  // one for each body attribute, made at first use
    size_t body_count;
} rondo__step_run;

typedef struct rondo__step {
    rondo__step_kind kind;
    // segment; of a bypass with a kernel (EAGER) first_item and an item_count of 1
    size_t first_item;
    size_t item_count;
    bool is_ahead;  // first in the plan and of the processor alone: needs no stream
    // bypass, or the one that the segment ends at
    size_t node;
    // both
    size_t wait_count;    // where the plan has peers:
    rondo_event **waits;  // what its stream waits for before it; the plan's
    rondo_event *done;    // recorded behind it, for later steps on other streams; the plan's
    rondo__step_run run;
    char reason[320];  // why the step is not captured, or why the segment ends here; "": nothing
    rondo__bypass_kind bypass;  // the kind of that reason
} rondo__step;

// What an executor is for: calls, or one body of a control op that is an item of a segment. The
// plan of such a body is a part of the plan around it: inputs lie where that says (outputs of a
// branch, too), and its arena is a piece of the item's workspace.
typedef enum rondo__part {
    RONDO__PART_NONE,
    RONDO__PART_BRANCH,
    RONDO__PART_TURN,
} rondo__part;

// A generator of the executor: NULL name: of all ops without a seed of their own.
typedef struct rondo__executor_generator {
    char *name;     // of the node with the seed
    uint64_t seed;  // where it starts
    rondo_generator *generator;
    struct rondo__executor_generator *next;
} rondo__executor_generator;

// The use of a piece of memory for runs: a plan has one of each at a time.
typedef enum rondo__memory_use {
    RONDO__MEMORY_FOR_VALUES,
    RONDO__MEMORY_FOR_WEIGHTS,  // that are brought (streamed_weights.h)
    RONDO__MEMORY_FOR_LATE,     // outputs of late shapes (late_values.h)
} rondo__memory_use;

// A piece of memory for runs, shared by plans of the executor; see run_memory.h.
typedef struct rondo__run_memory {
    struct rondo__run_memory *next;
    struct rondo__peer *peer;  // whose memory it is; NULL: the executor's device's
    rondo__memory_use use;
    rondo_memory_kind kind;
    size_t bytes;
    void *address;
    size_t use_count;        // plans
    rondo_run_arena *arena;  // that it belongs to; NULL: to the unit of its plans
} rondo__run_memory;

// Another GPU than the executor's, on which ops are placed; of a caller's executor. See
// other_gpus.h.
typedef struct rondo__peer {
    rondo_device *device;
    rondo_stream *stream;
    rondo__budget *budget;  // of its memory
    rondo__weight_account weights;
} rondo__peer;

// The part of a plan on another GPU.
typedef struct rondo__plan_peer {
    rondo__peer *peer;
    int ordinal;
    rondo__run_memory *arena;
    size_t arena_bytes;
    rondo__weight_list weights;
    void **constants;    // one for each value: where its ops read constants; NULL ones, or NULL
    rondo_event *ended;  // a run's work there
} rondo__plan_peer;

typedef struct rondo__async rondo__async;        // input_lanes.h
typedef struct rondo__streamed rondo__streamed;  // streamed_weights.h

// What RONDO_GRAPHS_VERBOSE and RONDO_GRAPHS_MAX_LOG_ENTRIES say; see verbose.h.
typedef struct rondo__verbose {
    int32_t level;
    uint64_t limit;        // of lines
    uint64_t count;        // lines so far, and one more when the limit was told of
    uint64_t graph_count;  // that were told of
} rondo__verbose;

// The extent of a symbol in one run.
typedef struct rondo__bound_symbol {
    int64_t extent;     // -1: nothing yet
    const char *owner;  // name of the port that said so; NULL: rondo_program_set_dimension
} rondo__bound_symbol;

// Where a plan's values lie, and what goes in and out.
typedef struct rondo__plan_memory {
    rondo__run_memory *arena;  // used up to `arena_bytes`
    size_t arena_bytes;
    size_t arena_naive_bytes;
    rondo__run_memory *staging_memory;
    char *staging;           // pinned; inputs, then outputs; NULL on the host device
    size_t *input_staging;   // offsets into `staging`, or into a lane (input_lanes.h)
    size_t input_bytes;      // of all inputs there
    size_t *output_staging;  // offsets into `staging`, or into the run's `late_staging`
    char *host_arena;        // on a GPU: pinned, behind `staging`; of `host_arena_bytes`
    size_t host_arena_bytes;
} rondo__plan_memory;

// What runs of a plan change.
typedef struct rondo__plan_run {
    rondo_tensor *dynamic;  // one for each value
    // Of the run at hand:
    bool is_fed;                       // what the processor reads of its inputs is there
    bool has_put;                      // copies are on the stream since the last mark (spans.h)
    size_t copied_bytes;               // within host memory, of its inputs
    bool is_in_place;                  // it takes device tensors where they are
    uint64_t loop;                     // whose outer values the inputs hold; 0: none's
    rondo__run_memory *late_staging;   // pinned, for outputs of late shapes; NULL: none yet
    rondo_tensor *late_copies;         // by value: copies in host memory, or NULL (late_values.h)
    struct rondo__in_place *in_place;  // NULL: not yet; see in_place_replay.h
    // Of the last capture:
    size_t failed_item;  // that it failed at; SIZE_MAX: at none, or at its end
    char failure[200];   // why it failed
    bool is_probed;      // it asks after each op whether the stream records
    // Of all:
    uint64_t count;
    uint64_t first_replay_ns;  // 0 until it happened
    size_t told_count;         // bypassed steps that were told of (verbose.h)
    rondo__measures measures;  // governed.h
} rondo__plan_run;

typedef struct rondo__plan_ranks rondo__plan_ranks;  // devices/ranks.h

// What is compiled; what runs change is in `run`, and in that of each step. A step that cannot be
// captured says so from then on, and may be cut (probe.h).
struct rondo__plan {
    rondo__lru_entry *entry;  // its place among the executor's plans; NULL while it is made
    rondo_program *program;
    rondo__slot *slots;  // one for each value
    size_t item_count;
    rondo__item *items;
    size_t step_count;
    rondo__step *steps;
    size_t bypassed_count;
    size_t counted_count;  // steps that wait for a count
    size_t eager_count;    // bypasses with a kernel, which counts among the items, too
    size_t random_count;   // nodes that draw
    bool writes_states;    // an item writes the memory of a state
    bool is_outweighed;    // of a body: to copy its inputs takes longer than the reference
    char **refusals;       // one for each node: why a control op is bypassed; NULL entries, or NULL

    // On a GPU; NULL otherwise.
    rondo__op_device *homes;          // one for each node
    size_t *order;                    // nodes in an order in which makers precede users
    uint8_t *sides;                   // one for each value: RONDO__SIDE_...
    int32_t *mirrors;                 // one for each input: its second place, on the host; -1: none
    size_t transfer_count;            // items that copy between the sides
    rondo__weight_list host_weights;  // what kernels of the processor read of constants

    rondo__streamed *streamed;  // weights that do not stay on the GPU; NULL: all do

    rondo__plan_ranks *ranks;  // what it does with other ranks; NULL: there are none

    // Where ops are placed on other GPUs, too.
    size_t peer_count;
    rondo__plan_peer *peers;
    rondo_event *begun;  // a run's inputs are there

    rondo__plan_memory memory;
    rondo__weight_list weights;  // what its kernels read of constants, shared with other plans
    size_t private_bytes;        // what its kernels have made of constants for themselves
    uint64_t constant_bytes;     // of its program

    rondo__plan_run run;
    atomic_int pin_count;  // recorded runs that use it; see retire.h
    struct rondo__plan *next_retired;

    uint64_t prepare_ns;
    uint64_t bytes;             // all that goes with it, but for weights that others may share
    rondo__half_report halves;  // what f16 did; empty in f32
};

static inline size_t rondo__plan_count_ops(const rondo__plan *plan) {
    return plan->item_count + plan->bypassed_count - plan->eager_count - plan->transfer_count;
}

// Steps before which nothing is on a stream: 1 or 0.
static inline size_t rondo__plan_count_ahead(const rondo__plan *plan) {
    return plan->step_count > 0 && plan->steps[0].is_ahead ? 1 : 0;
}

static inline size_t rondo__plan_count_segments(const rondo__plan *plan) {
    return plan->step_count - plan->bypassed_count - plan->counted_count -
           rondo__plan_count_ahead(plan);
}

static inline size_t rondo__plan_count_sides(const rondo__plan *plan) {
    return RONDO__SIDE_PEER + plan->peer_count;
}

static inline const rondo__node *rondo__plan_get_node(const rondo__plan *plan, size_t item) {
    return &plan->program->nodes[plan->items[item].node];
}

static inline const rondo__op *rondo__plan_get_op(const rondo__plan *plan, size_t item) {
    return &rondo__plan_get_node(plan, item)->op;
}

// The other GPU that a side is; NULL: the executor's device, or the processor.
static inline rondo__plan_peer *rondo__plan_get_peer(const rondo__plan *plan, uint8_t side) {
    return side >= RONDO__SIDE_PEER ? &plan->peers[side - RONDO__SIDE_PEER] : NULL;
}

// The other GPU that a step's items run on; NULL: the executor's device, or no items.
static inline rondo__plan_peer *rondo__step_get_peer(const rondo__plan *plan,
                                                     const rondo__step *step) {
    return step->item_count > 0 ? rondo__plan_get_peer(plan, plan->items[step->first_item].side)
                                : NULL;
}

// Where input `i` lies for ops of the processor in a plan of a GPU; NULL: nowhere.
static inline const rondo__slot *rondo__plan_get_host_input(const rondo__plan *plan, size_t i) {
    const rondo__slot *slot = &plan->slots[plan->program->inputs[i]];
    const int32_t mirror = plan->mirrors != NULL ? plan->mirrors[i] : -1;
    if (slot->is_on_host) {
        return slot->kind == RONDO__SLOT_ARENA && slot->bytes > 0 ? slot : NULL;
    }
    return mirror >= 0 ? &plan->slots[mirror] : NULL;
}

// Whether the step is an op, or ops, of the devices' kernels.
static inline bool rondo__step_has_kernels(const rondo__step *step) {
    return step->item_count > 0;
}

// Whether the step is a segment that has a graph, or gets one as far as is known.
static inline bool rondo__step_is_captured(const rondo__step *step) {
    return step->kind == RONDO__STEP_SEGMENT && !step->is_ahead &&
           (step->run.graph != NULL || step->run.failure_count == 0);
}

// Weights that it reads in a form of their own, shared or not.
static inline size_t rondo__plan_get_constant_bytes(const rondo__plan *plan) {
    size_t bytes = (size_t)plan->weights.bytes + plan->private_bytes;
    for (size_t i = 0; i < plan->peer_count; ++i) {
        bytes += (size_t)plan->peers[i].weights.bytes;
    }
    return bytes;
}

// Memory that the program gives to results (rondo/executor_stream.h).
typedef struct rondo__fetch_memory {
    rondo_fetch_allocator allocate;
    void *user_data;
} rondo__fetch_memory;

// What one call needs of each port, kept so that runs allocate nothing; of a caller's executor.
typedef struct rondo__call_lists {
    rondo_tensor *feeds;  // in input order; optional inputs behind the others
    rondo_tensor *results;
    bool *wants;     // one for each output
    size_t *places;  // where a fetch stands among the outputs; one for each output
    bool *is_fed;    // one for each optional input
    const rondo__fetch_memory *memory;  // of results without data; NULL: the library's
} rondo__call_lists;

// What plans of an executor are found by; see plan_cache.c.
typedef struct rondo__plan_keys {
    // One for each input: RONDO__WANT_VALUE makes its value part of the plan's key; WANT_BOUND does
    // so where it is above the bounds, and below them the key holds that it is.
    uint8_t *keyed;
    rondo__value_bound *bounds;  // one for each input; see program/shapes/specialise.h
    int64_t *most;               // one for each input, of the plan that is made: its bound, or 0
    size_t miss_count;
    bool *deciding;  // the same, where it is fed in host memory: branches depend on it
    uint64_t decisions[RONDO__DECISIONS_MAX];  // hashes of what those were, of plans that were made
    size_t decision_count;
    uint8_t *key;  // of the feeds at hand
    size_t key_capacity;
} rondo__plan_keys;

// Statistics of a unit's runs.
typedef struct rondo__run_log {
    bool has_run;
    bool has_begun;          // the last run has come to its ops, which may write states
    bool took_device_feeds;  // the last run; its inputs are the program's
    rondo_run_times times;
    bool has_unread_spans;  // `times` lacks what the events tell (spans.h)
    uint64_t eager_count;
    uint64_t replay_count;
    uint64_t in_place_count;
    uint64_t fed_bytes;  // the most that was fed at once
    // Of a body, in turns of a loop that the host decides: which loop, and from which input on
    // each turn is fed the same.
    uint64_t loop;  // 0: none
    size_t steady_first;
} rondo__run_log;

// What the units of an executor have done together.
typedef struct rondo__work_log {
    uint64_t loop_count;  // of all runs
    // Of the run at hand:
    uint64_t turn_count;      // of all loops
    uint64_t ran_count;       // ops, in bodies each time
    uint64_t replayed_count;  // of these, in graphs
    rondo__choice choice;     // governed.h
    uint64_t here_ns;         // that its thread computed ops
    bool is_all_here;         // it did so all the time: no clock was asked
} rondo__work_log;

// What the units of an executor share.
typedef struct rondo__resources {
    rondo__executor_generator *generators;
    rondo__budget *budget;         // host memory
    rondo__budget *device_budget;  // memory of a GPU; NULL on the host
    rondo__weight_account weights;
    rondo_device *host_device;  // for ops of the processor in plans of a GPU; NULL: none yet
    rondo__weight_account host_weights;        // what they read of constants
    rondo__peer *peers[RONDO__PLACE_GPU_MAX];  // by number; NULL: not used yet
    rondo_stream *streaming;                   // brings weights; NULL: none yet
    rondo_stream *ranks_stream;                // of collectives (ranks.h); NULL: none yet
    rondo__weight_account streamed_weights;    // in pinned memory
    rondo__transfers_log crossings;
    rondo__tuning_choices *choices;
    rondo__verbose verbose;
    rondo__governor governor;
    // Where there are loops, or ops that a GPU may refuse data of; NULL otherwise.
    rondo__flow_watch *watch;
} rondo__resources;

// Inputs and outputs of the program that the caller gave:
typedef struct rondo__ports {
    int32_t *input_of;   // by value of the source: index among inputs and, behind them, optionals;
    int32_t *output_of;  // index of its first place among outputs; -1 for other values
    rondo__bound_symbol *symbols;  // one for each of the source
    bool has_warned;               // of what the model declares
    rondo__call_lists lists;
} rondo__ports;

// Where optional inputs are fed, or ops work as in training and the executor's options say
// otherwise (or the other way round): units of programs that are so (variants.c).
typedef struct rondo__variants {
    bool is_training;  // of runs from now on
    size_t count;
    rondo__unit *list[RONDO__VARIANT_MAX];  // the one used last is the last
    rondo__unit *active;                    // what was asked last: `main` or a variant
    rondo__unit *ran;                       // the one that ran last; NULL: none, or it failed
    rondo__unit *retired;                   // given up, but pinned; see retire.h
} rondo__variants;

// The call under way.
typedef struct rondo__call {
    rondo_error record_before;  // of the thread, when the call began
    rondo__float_scope float_scope;
    atomic_int own;
    atomic_int *state;  // is one under way, or cancelled? `own`, or the watch's
} rondo__call;

// What the caller has asked for beside runs.
typedef struct rondo__caller {
    struct rondo__self_check *self_check;    // NULL: never checked
    rondo__async *async;                     // runs that were not waited for; NULL: none yet
    struct rondo__repeated *repeated;        // calls that repeat; NULL: none yet
    void (*end_repeated)(rondo_executor *);  // then frees that
    struct rondo__state *states;             // see states.h
    struct rondo__state **state_of;          // of each input; NULL: there never was one
    uint64_t state_changes;                  // counts what rondo__states_change says
    struct rondo__state_range *ranges;       // where states lie, in order of address;
    size_t range_count, range_capacity;      // room for all states,
    size_t state_count;                      // of which there are so many
    uint64_t range_changes;                  // state_changes that they are of
    uint64_t part_runs;                      // that ranks made together, where states have parts
    uint64_t gathered_runs;                  // part_runs when all ranks gathered them
    bool has_parts;                          // some states differ between ranks: is_split, is_sum
    struct rondo__participant *recordings;   // in captures not of Rondo's
    size_t pattern_count;
    char **patterns;         // copies of keep_f32, use_f16 and place, which the options point at
    bool may_record_stream;  // the program has, or was given, the stream of the main unit
} rondo__caller;

// One program with its plans: the caller's, a variant of it, or the body of a control op.
struct rondo__unit {
    rondo_executor *executor;   // that it works for
    rondo__base *base_form;     // shared with other executors of the program
    const rondo_program *base;  // of it: clone of the program after the shape-free passes
    rondo_program *source;
    rondo_stream *stream;
    bool owns_stream;          // otherwise the caller's, or another unit's
    rondo_event *events[4];    // around the transfers; NULL on the host device
    uint8_t event_of[4];       // by mark: an earlier one's, if nothing was put in between
    int32_t depth;             // 1 and more for bodies of control ops
    rondo__part part;          // then the stream is that of the unit around it
    bool is_training;          // ops work as in training
    bool *feeds_optional;      // of a variant: one for each optional input
    bool is_lean;              // little is folded ahead, because memory was short
    rondo__plan_worth *worth;  // of the body of a rondo.Rest; NULL otherwise
    bool stays_on_device;      // such a body on a GPU: data stay where they lie (deferred_body.h)
    const rondo_tensor *device_feeds;  // then what it is fed in the run at hand
    rondo__plan_keys keys;
    rondo__lru_map plans;        // by what is fed; see plan_cache.c
    uint64_t plan_changes;       // counts plans that were made or given up, and with them keys
    rondo__plan *current;        // plan that was asked for last
    rondo__plan *fed_plan;       // whose inputs are those of the last run; NULL: that failed
    uint32_t straight_count;     // trials of branches that were lost, in a row
    rondo__plan *retired_plans;  // given up, but pinned; see retire.h
    rondo__run_memory *run_memory;
    uint64_t run_memory_bytes;
    uint64_t plan_limit_bytes;  // of plans and run memory together; 0: none
    rondo__run_log runs;
    rondo_tensor *fresh;  // results that a run allocates, one for each output; see fetch.c
    rondo__unit *next_retired;
};

// What the caller made: the program's unit, and what all units of it share.
struct rondo_executor {
    rondo__unit main;  // of the caller's program
    rondo_device *device;
    rondo_executor_options options;
    rondo_graphs_mode graphs;
    bool keeps_control_on_host;  // control ops are never items of segments
    bool is_described;           // plans are made to be looked at, and not for a run
    rondo__ports ports;
    rondo__variants variants;
    rondo__call call;
    rondo__work_log work;
    rondo__caller caller;
    rondo__resources resources;
    atomic_int reference_count;  // the caller, and recorded runs
};

// Where the step's work is put.
static inline rondo_stream *rondo__step_get_stream(const rondo__unit *unit, const rondo__plan *plan,
                                                   const rondo__step *step) {
    const rondo__plan_peer *peer = rondo__step_get_peer(plan, step);
    return peer != NULL ? peer->peer->stream : unit->stream;
}

// The base with the shapes of the feeds; feeds[i].data non-NULL fixes the value of input i, too,
// and is retained. What keys.most says of the inputs holds. wanted as in
// program/shapes/specialise.h.
//
// Errors:    as rondo__program_specialise.
RONDO_MUST_USE rondo_status rondo__plan_specialise(const rondo__unit *unit,
                                                   const rondo_tensor *feeds,
                                                   rondo_program **out_program, uint8_t *wanted);

// Compiles a plan from what rondo__plan_specialise has made, which it takes, also when it fails.
//
// Errors:    BAD_DATA, UNSUPPORTED, NO_MEMORY, NO_DEVICE_MEMORY, DRIVER, LOST.
// Ownership: free with rondo__plan_destroy (destroy.h).
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__plan_create(rondo__unit *unit, rondo_program *program,
                                               rondo__plan **out_plan);

// The same from a program that rondo__plan_rewrite has been over, and what that said; takes both.
// kernels    of a plan file (prepared.h).
RONDO_MUST_USE rondo_status rondo__plan_create_ready(rondo__unit *unit, rondo_program *program,
                                                     rondo__half_report *halves,
                                                     const rondo__record *kernels,
                                                     rondo__plan **out_plan);

// What rondo__plan_create does first: the passes over a program for fixed shapes.
//
// Errors:    BAD_DATA, NO_MEMORY, INTERNAL.
// Ownership: free *out_halves with rondo__half_report_deinit.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__plan_rewrite(rondo__unit *unit, rondo_program *program,
                                                rondo__half_report *out_halves);

// The plan that follows `plan` in the order of use, the newest for NULL; NULL when there is none.
static inline rondo__plan *rondo__unit_next_plan(const rondo__unit *unit, const rondo__plan *plan) {
    const rondo__lru_entry *entry =
        plan == NULL ? unit->plans.newest : rondo__lru_entry_get_older(plan->entry);
    return entry != NULL ? rondo__lru_entry_get_value(entry) : NULL;
}

// Whether the plans of this executor have two sides, the device's and the processor's.
static inline bool rondo__unit_has_two_sides(const rondo__unit *unit) {
    return unit->part == RONDO__PART_NONE && !rondo_device_is_host(unit->executor->device);
}

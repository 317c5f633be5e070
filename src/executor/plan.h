// executor/plan.h — a program compiled for one device and one set of input shapes.
//
// A plan is an ordered list of steps. A segment is a run of ops with kernels on the device: it is
// launched op by op the first time, captured the second, replayed from then on. A bypass is one op
// between segments that cannot be captured: control flow, an op whose result shape depends on data,
// or one the device has no kernel for.
//
// Where a value lives is decided once (slots): in a constant on the device, at an offset of the
// arena, or, when its shape depends on data or its elements are strings or tensors, in a tensor in
// host memory that is made anew each run.
#ifndef RONDO_EXECUTOR_PLAN_H
#define RONDO_EXECUTOR_PLAN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/budget.h"
#include "base/text.h"
#include "kernel/kernel.h"
#include "program/half_pass.h"
#include "program/program.h"
#include "rondo/executor.h"

// Results up to this size are folded ahead even where memory is short: shapes and their likes.
enum { RONDO__LEAN_FOLD_BYTES = 64 << 10 };

enum { RONDO__VARIANT_MAX = 4 };  // sets of optional inputs fed that are kept

typedef enum rondo__slot_kind {
    RONDO__SLOT_NONE,      // the value is not used
    RONDO__SLOT_CONSTANT,  // known ahead; `address` is set when a kernel needs it on the device
    RONDO__SLOT_ARENA,
    RONDO__SLOT_DYNAMIC,  // plan->dynamic[value], in host memory; also strings and sequences
} rondo__slot_kind;

typedef struct rondo__slot {
    rondo__slot_kind kind;
    rondo_dtype dtype;
    bool is_shape_known;
    rondo_shape shape;
    size_t bytes;
    int32_t root;       // value whose bytes this one shares (views); itself otherwise
    size_t offset;      // ARENA: from the arena's start
    void *address;      // ARENA and CONSTANT: on the device
    bool needs_device;  // CONSTANT: some kernel reads it there
} rondo__slot;

// One op of a segment with its addresses.
typedef struct rondo__item {
    size_t node;
    rondo__kernel *kernel;
    const void **inputs;
    void **outputs;
    void *workspace;
} rondo__item;

typedef enum rondo__step_kind { RONDO__STEP_SEGMENT, RONDO__STEP_BYPASS } rondo__step_kind;

typedef enum rondo__bypass_kind {
    RONDO__BYPASS_HOSTED,   // shapes known, no kernel on the device: the reference runs on the host
    RONDO__BYPASS_DYNAMIC,  // a shape depends on data
    RONDO__BYPASS_CONTROL,  // If, Loop, Scan, SequenceMap
    RONDO__BYPASS_OBJECTS,  // strings, sequences or optionals come in or go out
} rondo__bypass_kind;

typedef struct rondo__step {
    rondo__step_kind kind;
    // segment
    size_t first_item;
    size_t item_count;
    bool is_capturable;
    rondo_graph *graph;  // NULL until captured
    // bypass
    size_t node;
    rondo__bypass_kind bypass;
    rondo_executor **bodies;  // one for each body attribute, made at first use
    size_t body_count;
    // both
    char reason[160];  // why the step is not captured, or why the segment ends here
} rondo__step;

// A constant on the device, shared by the plans of an executor.
typedef struct rondo__device_constant {
    rondo_tensor tensor;  // retained: its address is the key
    void *address;
    size_t use_count;
    struct rondo__device_constant *next;  // in its bucket
} rondo__device_constant;

// A generator of the executor: NULL name: of all ops without a seed of their own.
typedef struct rondo__executor_generator {
    char *name;  // of the node with the seed
    rondo_generator *generator;
    struct rondo__executor_generator *next;
} rondo__executor_generator;

// What a symbol stands for in one run.
typedef struct rondo__bound_symbol {
    int64_t extent;     // -1: nothing yet
    const char *owner;  // name of the port that said so; NULL: rondo_program_set_dimension
} rondo__bound_symbol;

typedef struct rondo__plan {
    rondo_tensor
        *feeds;  // what it was made for: dtype and shape of each input; `data` where the value
    size_t feed_count;  // was fixed, too (owned)

    rondo_program *program;
    rondo__slot *slots;     // one for each value
    rondo_tensor *dynamic;  // one for each value
    size_t item_count;
    rondo__item *items;
    size_t step_count;
    rondo__step *steps;
    size_t bypassed_count;
    size_t random_count;  // nodes that draw

    void *arena;
    size_t arena_bytes;
    size_t arena_naive_bytes;
    char *staging;           // pinned; inputs, then outputs; NULL on the host device
    size_t *input_staging;   // offsets into `staging`
    size_t *output_staging;  // offsets into `staging`
    size_t constant_bytes;
    rondo__device_constant **constants;
    size_t constant_count;

    uint64_t run_count;
    uint64_t prepare_ns;
    uint64_t first_replay_ns;   // 0 until it happened
    uint64_t last_use;          // of the executor's clock, for eviction
    rondo__half_report halves;  // what f16 did; empty in f32
} rondo__plan;

struct rondo_executor {
    rondo_program *base;  // clone of the caller's program after the shape-free passes
    const rondo_program *source;
    rondo_device *device;
    rondo_stream *stream;
    rondo_event *events[4];  // around the transfers; NULL on the host device
    rondo_executor_options options;
    rondo_graphs_mode graphs;
    int32_t depth;         // 0 for a caller's executor, 1 and more for bodies of control ops
    rondo_executor *root;  // the caller's executor: itself, or the one that this serves
    rondo__executor_generator *generators;  // of a caller's executor, for its bodies, too
    bool is_lean;                           // little is folded ahead, because memory was short
    bool *keyed;  // one for each input: its value is part of the plan's key
    size_t keyed_miss_count;
    size_t plan_count;
    size_t plan_capacity;
    rondo__plan **plans;
    rondo__plan *current;  // plan of the last run
    size_t constant_count;
    size_t bucket_count;               // 0 or a power of two
    rondo__device_constant **buckets;  // by address
    uint64_t clock;
    bool has_run;
    rondo_run_times times;
    uint64_t eager_run_count;
    uint64_t replay_run_count;
    // Of a caller's executor, for its bodies, too:
    rondo__budget *budget;         // host memory
    rondo__budget *device_budget;  // memory of a GPU; NULL on the host
    uint64_t fed_bytes;            // the most that was fed at once
    int32_t *input_of;   // by value of the source: index among inputs and, behind them, optionals;
    int32_t *output_of;  // index of its first place among outputs; -1 for other values
    rondo__bound_symbol *symbols;  // one for each of the source
    bool has_warned;               // of what the model declares
    // Where optional inputs are fed: executors of programs in which they are inputs (variants.c).
    size_t variant_count;
    rondo_executor *variants[RONDO__VARIANT_MAX];  // the one used last is the last
    rondo_executor *active;                        // what ran last: itself or a variant
    bool *is_fed;                                  // of a variant: one for each optional input
    rondo_program *own_source;                     // of a variant
    uint64_t turn_count;                           // of all loops, in this run
    rondo_error record_before;                     // of the thread, when the call began
    atomic_int call;            // whether a call is under way or cancelled; see limits.c
    rondo__half_cache *halves;  // f16 forms of the base's constants; NULL in f32
    size_t pattern_count;       // of a caller's executor:
    char **patterns;            // copies of keep_f32, then of use_f16, which the options point at
};

// ---- declared.c

// Begins the symbols of a run anew: only those that were set have an extent.
void rondo__executor_forget_symbols(rondo_executor *executor);
// Gives a symbol its extent in this run, for `owner`, unless it has one. Returns what it has.
const rondo__bound_symbol *rondo__executor_bind_symbol(rondo_executor *executor, int32_t symbol,
                                                       int64_t extent, const char *owner);
// Checks a result against what the model declares of output `index`.
//
// Errors:    BAD_DATA (another dtype, or another number for an extent).
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__executor_check_output(rondo_executor *executor, size_t index,
                                                         rondo_dtype dtype,
                                                         const rondo_shape *shape);

// ---- variants.c

// Makes executor->active the one for the optional inputs that are fed, which stand in `tensors`
// behind the others, and moves those together.
//
// Errors:    as rondo_executor_create.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__executor_choose_variant(rondo_executor *executor,
                                                           rondo_tensor *tensors);
void rondo__executor_destroy_variants(rondo_executor *executor);

// Makes an executor of `program` that serves `root`, with whose options and limits it runs.
//
// Errors:    as rondo_executor_create.
// Ownership: destroy it with rondo_executor_destroy.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__executor_create_variant(rondo_executor *root,
                                                           const rondo_program *program,
                                                           rondo_executor **out_executor);

// ---- limits.c

// Makes the budgets of a caller's executor, whose options and source are set.
//
// Errors:    NO_MEMORY.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__executor_make_budgets(rondo_executor *executor);

// Device memory that counts against the executor's limit.
//
// Errors:    NO_MEMORY (the limit), NO_DEVICE_MEMORY, DRIVER, LOST.
// Ownership: free with rondo__executor_free, with the same size.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__executor_allocate(rondo_executor *executor, size_t bytes,
                                                     void **out_address);
void rondo__executor_free(rondo_executor *executor, void *address, size_t bytes);  // NULL is fine

// Brackets each call of the caller's that compiles or runs: what is made meanwhile counts, and
// another thread may cancel. The size of the feeds decides the default limit. The end gets what the
// beginning returned, and how the call went.
rondo__budget *rondo__executor_begin_call(rondo_executor *executor, const rondo_binding *feeds,
                                          size_t feed_count);
void rondo__executor_end_call(rondo_executor *executor, rondo__budget *before, rondo_status status);

// CANCELLED when another thread said so.  Threads: one thread per executor.
RONDO_MUST_USE rondo_status rondo__executor_check_cancelled(const rondo_executor *executor);

// Before each turn of a loop: BAD_DATA when the run has had too many, CANCELLED as above.
RONDO_MUST_USE rondo_status rondo__executor_count_turn(rondo_executor *executor);

// Compiles a plan. feeds[i].data non-NULL fixes the value of input i; it is copied.
//
// Errors:    BAD_DATA, UNSUPPORTED, NO_MEMORY, NO_DEVICE_MEMORY, DRIVER, LOST.
// Ownership: free with rondo__plan_destroy.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__plan_create(rondo_executor *executor, const rondo_tensor *feeds,
                                               rondo__plan **out_plan);
void rondo__plan_destroy(rondo_executor *executor, rondo__plan *plan);

// Marks what the caller's patterns name in `program`, a clone of `source`. A pattern that names
// nothing in `source` is an error.
//
// Errors:    INVALID (names the pattern).
// Threads:   one thread per program.
RONDO_MUST_USE rondo_status rondo__precision_mark(rondo_program *program,
                                                  const rondo_program *source,
                                                  const rondo_executor_options *options);

// The program in half precision, where the executor computes in that: before other passes, because
// precision is decided for the model's own ops.
//
// Errors:    NO_MEMORY, BAD_DATA, INTERNAL.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__precision_apply(rondo_executor *executor, rondo__plan *plan);

// Decides the order of nodes and cuts them into steps; fills items (node only) and steps of the
// plan.
//
// class_of   one for each node: -1 no work (a view), 0 a kernel, otherwise 1 + rondo__bypass_kind
//
// Errors:    NO_MEMORY.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__plan_schedule(rondo__plan *plan, const int8_t *class_of);

// Decides where values live and allocates the arena and the staging area; `order` is the place of
// each node in the run (0 for views, which take no time).
//
// Errors:    NO_MEMORY, NO_DEVICE_MEMORY, DRIVER, LOST.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__plan_place_values(rondo_executor *executor, rondo__plan *plan,
                                                     const int8_t *class_of);

// Puts `tensor` on the device, or finds it there; adds one use.
//
// Errors:    NO_MEMORY, NO_DEVICE_MEMORY, DRIVER, LOST.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__constant_acquire(rondo_executor *executor,
                                                    const rondo_tensor *tensor,
                                                    rondo__device_constant **out_constant);
void rondo__constant_release(rondo_executor *executor, rondo__device_constant *constant);

// The generator that `node`, which draws, uses; made when it is first asked for.
//
// Errors:    as rondo_generator_create.
// Ownership: the executor's.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__executor_get_generator(rondo_executor *executor,
                                                          const rondo__node *node,
                                                          rondo_generator **out_generator);
void rondo__executor_release_generators(rondo_executor *executor);

// Runs one bypass step: waits for the stream, computes on the host, puts results where their slots
// are.
//
// Errors:    BAD_DATA, UNSUPPORTED, NO_MEMORY, NO_DEVICE_MEMORY, DRIVER, LOST.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__bypass_run(rondo_executor *executor, rondo__plan *plan,
                                              rondo__step *step);

// Runs If, Loop, Scan or SequenceMap: inputs and results are tensors in host memory; results are
// allocated.
//
// Errors:    as rondo__bypass_run.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__control_run(rondo_executor *executor, const rondo__node *node,
                                               rondo__step *step, const rondo_tensor *const *inputs,
                                               rondo_tensor *results);

// Checks named feeds and puts them into input order (borrowed); all inputs must be there.
//
// Errors:    INVALID.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__executor_order_feeds(rondo_executor *executor,
                                                        const rondo_binding *feeds,
                                                        size_t feed_count,
                                                        rondo_tensor *out_tensors);

// Plans a body of a control node for the shapes of its first turn, before anything has run. Both
// results are NULL when those depend on data.
//
// name       of the attribute: "then_branch", "else_branch", "body"
//
// Errors:    as rondo__plan_create.
// Ownership: the step's.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__control_plan_body(rondo_executor *executor,
                                                     const rondo__plan *plan, rondo__step *step,
                                                     const char *name, rondo_executor **out_body,
                                                     rondo__plan **out_plan);

// Plans the bodies of If and Loop, and those in them, for the shapes that are known before anything
// runs; those whose shapes depend on data, or do not fit, are left until they run.
//
// Errors:    NO_MEMORY, NO_DEVICE_MEMORY, DRIVER, LOST, INTERNAL.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__control_foresee(rondo_executor *executor,
                                                   const rondo__plan *plan);

// What half precision did to a plan and to the bodies in it, as text or as the member "half" of a
// JSON object. Nothing in single precision.
void rondo__describe_half(rondo__text *text, const rondo_executor *executor,
                          const rondo__plan *plan, bool is_json);

// Runs the executor on tensors in input order; results in output order: with `data` NULL it is
// allocated, otherwise written.
//
// wants      which outputs are asked for; NULL: all
//
// Errors:    as rondo_executor_run.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__executor_run_tensors(rondo_executor *executor,
                                                        const rondo_tensor *feeds,
                                                        rondo_tensor *results, const bool *wants);

// Makes an executor for a body of `parent`'s program, with the same device and options.
//
// Errors:    as rondo_executor_create; BAD_DATA when bodies are nested too deeply.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__executor_create_body(rondo_executor *parent,
                                                        const rondo_program *body,
                                                        rondo_executor **out_executor);

// What follows for the outputs from the dtypes and shapes of the feeds alone; nothing (dtype NONE)
// where they fit no run.
//
// Errors:    NO_MEMORY.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__executor_infer_outputs(rondo_executor *executor,
                                                          const rondo_tensor *feeds,
                                                          rondo__tensor_info *out_infos);

// The plan for these feeds, made when there is none; value keys are handled here.
//
// Errors:    as rondo__plan_create.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__executor_find_plan(rondo_executor *executor,
                                                      const rondo_tensor *feeds,
                                                      rondo__plan **out_plan);

// The steps of one run, without transfers; does not wait at the end. Segments are captured from the
// plan's second run on, unless graphs are off.
//
// Errors:    as rondo_executor_run.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__plan_run_steps(rondo_executor *executor, rondo__plan *plan,
                                                  bool *out_was_replayed);

#endif  // RONDO_EXECUTOR_PLAN_H

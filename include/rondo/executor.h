// rondo/executor.h — run a program on a device: first eagerly, then captured, then replayed.
//
//   rondo_executor_create(program, device, NULL, &executor);
//   rondo_executor_run(executor, feeds, feed_count, fetches, fetch_count);   // any number of times
//
// An executor has a stream of its own, or works on the program's. These runs wait until they are
// done, and no capture records them (rondo/executor_stream.h has those that do not wait, or are
// recorded); but what compiles or runs also allocates, which breaks captures in global mode.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_EXECUTOR_H
#define RONDO_EXECUTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rondo/device.h"
#include "rondo/export.h"
#include "rondo/graph.h"
#include "rondo/program.h"
#include "rondo/status.h"
#include "rondo/tensor.h"
#include "rondo/text.h"
#include "rondo/workers.h"

RONDO_EXTERN_C_BEGIN

typedef struct rondo_executor rondo_executor;
typedef struct rondo_communicator rondo_communicator;  // rondo/training.h
typedef struct rondo_run_arena rondo_run_arena;        // rondo/executor_stream.h
typedef struct rondo_watchdog rondo_watchdog;          // rondo/inspect.h

typedef int32_t rondo_graphs_mode;
enum {
    // Replay from the second run of the same shapes on; an op that makes the capture fail is
    // launched between graphs. The second run records, or, where plans for other shapes are there,
    // the first one, while the device works.
    RONDO_GRAPHS_AUTO = 0,
    // AUTO, but a failed capture is an error, unless an op failed that does not say that it can be
    // captured (rondo/user_op.h). Plans made in AUTO stay as they are.
    RONDO_GRAPHS_ON = 1,
    RONDO_GRAPHS_OFF = 2,  // always eager
    // AUTO, but by measured times: the first runs of a plan are eager, its segments are recorded
    // once that should pay, and replays that are slower than eager runs by more than an eighth end.
    // Only runs that are waited for are measured. rondo_executor_describe tells choice and reason.
    // Results are the same bit for bit. With self-checks or a communicator as AUTO.
    RONDO_GRAPHS_MEASURED = 3,
};

// Whether ops that do not need each other run side by side in a graph.
typedef int32_t rondo_branches_mode;
enum {
    RONDO_BRANCHES_AUTO = 0,  // where it was measured to be faster
    RONDO_BRANCHES_ON = 1,
    RONDO_BRANCHES_OFF = 2,
};

// How much time a plan may take to find the fastest kernels of a GPU. The choices are kept on disk
// (RONDO_CACHE_DIR) for that GPU and driver, and used again whatever the mode.
typedef int32_t rondo_tuning;
enum {
    RONDO_TUNING_AUTO = 0,  // what the environment has in RONDO_TUNE (off, fast, full), or FAST
    RONDO_TUNING_OFF = 1,   // the best guess
    RONDO_TUNING_FAST = 2,  // the best guesses are timed
    RONDO_TUNING_FULL = 3,  // all that may be the fastest are timed, each kernel by itself: all of
                            // them together may be slower than before, which rondo tune notices
    RONDO_TUNING_KEEP = 4,  // nothing is timed, and the tuning file's choices become those kept on
                            // disk, in place of what FULL has found
};

// What a checked run does if it finds a difference (rondo/self_check.h).
typedef int32_t rondo_self_check_action;
enum {
    RONDO_SELF_CHECK_FAIL = 0,        // it fails (MISMATCH) and fetches nothing
    RONDO_SELF_CHECK_KEEP_EAGER = 1,  // its results are the eager ones, the log has a warning, and
                                      // the segment has no graph from then on
};

// Called while long work runs (kernel compilation, tuning): what, how many of how many. Be quick.
typedef void (*rondo_progress_function)(void *user_data, const char *what, size_t done,
                                        size_t total);

typedef struct rondo_executor_options {
    size_t struct_size;        // sizeof(rondo_executor_options)
    rondo_graphs_mode graphs;  // AUTO; then the environment variable RONDO_GRAPHS (auto, on, off,
                               // measured) decides, if it is set
    rondo_dtype dtype;         // F32 (also NONE); F16 to compute in half precision, BF16 to compute
                               // products (MatMul, Gemm, Conv, ConvTranspose) in bf16
    uint64_t seed;             // for ops that draw random numbers
    bool op_by_op;             // the model's own ops: nothing folded, fused or laid out anew
    bool reference;            // every op with the plain C reference (host only; the test oracle)
    size_t plan_limit;         // plans kept for different shapes, oldest use dropped; 0 means 256
    rondo_progress_function progress;  // NULL: none
    void *progress_data;
    uint32_t thread_count;  // threads for one op on the host, 1 to 1024; 0: RONDO_NUM_THREADS,
                            // OMP_NUM_THREADS, or all there are. On a GPU: for its weights only
    uint64_t memory_limit_bytes;  // of plans and runs together; 0: a default; see below
    uint64_t loop_limit;          // turns of all loops together in one run; in a graph, of each
                                  // outermost loop with those inside it; 0 means 10 000 000
    const char *const *keep_f32;  // with F16 or BF16: patterns of ops that stay in f32; see below
    size_t keep_f32_count;
    const char *const *use_f16;  // with F16: patterns of ops that become f16 against the rules
    size_t use_f16_count;
    uint64_t plan_limit_bytes;  // that kept plans take together (plan_bytes of the statistics), but
                                // one is always kept; 0: half of the memory limit, on a GPU without
                                // such a limit a quarter of its memory
    uint64_t self_check_every;  // each n-th run compares replay and eager run; 0: none does
    rondo_self_check_action self_check_action;  // what such a run does where they differ
    rondo_stream *stream;  // where runs are put, behind what is there; of the same device, and it
                           // outlives the executor. NULL: one of its own
    bool training;         // how Dropout and BatchNormalization work where the model leaves it open
    rondo_branches_mode branches;
    const char *const *place;  // where ops run, "Gather*=cpu": a pattern as above and a place; see
    size_t place_count;        // rondo/placement.h
    bool no_folding;           // nothing is computed ahead: all ops of the model run in each run,
                               // shapes and constants, too
    rondo_tuning tuning;       // AUTO; no matter on the host
    const char *tuning_file;   // choices of kernels, made ahead; NULL: none. See rondo/tuning.h
    uint64_t weight_limit_bytes;  // of weights on a GPU; 0: all are there; see below
    rondo_workers *workers;  // that run ops on the host; NULL: the device's. See rondo/workers.h
    rondo_communicator *communicator;  // the ranks that run the program together; of the same
                                       // device, and retained. NULL: none
    rondo_run_arena *run_arena;        // where values of runs lie; of the same device, and
                                       // retained. NULL: in memory of its own
    bool keep_templates;               // of its graphs, for rondo_executor_list_graphs
    rondo_watchdog *watchdog;          // that watches replays, with each op as a mark; of the same
                                       // device, and outlives the executor. See rondo/inspect.h
} rondo_executor_options;

// docs/executors.md explains branches, half precision, random numbers and training.
// Whatever is chosen of branches and limits, results are the same bit for bit; but for ops behind
// shapes that depend on data, of which docs/operators.md says when last bits differ.
//
// Memory. memory_limit_bytes bounds what an executor holds at a time, its bodies included:
// constants folded ahead, packed weights, arenas, states, tensors of ops that run on the host, and
// pinned memory; not weights mapped from the file, nor fetched tensors. On a GPU the same number
// bounds device memory by itself. 0: 2 GiB, 64 times the model's file and 256 times what is fed at
// once, together, but no more than three quarters of this machine's memory (or its control
// group's), and on a GPU whatever the device has. What is refused, by the limit or by the GPU,
// names who holds the most: arenas, states, staging, weights, packed weights, ...
//
// Weights beyond weight_limit_bytes, the largest first, are in pinned host memory, and each run
// brings them. Such runs take no device tensors where they are, and have no branches. A limit that
// leaves no room for what must stay is refused.
//
// A pattern (* for any characters, ? for one) names nodes or op types, in bodies, too; a control op
// takes its bodies along; keep_f32 wins over use_f16. One that matches nothing is an error.
// What a training step makes of its variables is f32, whatever a pattern says, but for the averages
// of several ranks: use_f16 of "AllReduce" sends matrices' gradients as f16.

// A named tensor, in host memory or on the executor's device.
typedef struct rondo_binding {  // ABI: fixed
    const char *name;
    rondo_tensor tensor;
} rondo_binding;

// What the last run took. Device times come from events on the stream.
typedef struct rondo_run_times {
    size_t struct_size;          // sizeof(rondo_run_times)
    uint64_t latency_ns;         // wall time of the whole run
    uint64_t enqueue_ns;         // processor time spent putting the ops on the stream, less what it
                                 // computed itself meanwhile
    uint64_t host_to_device_ns;  // 0 on the host
    uint64_t compute_ns;         // on the device, without transfers
    uint64_t device_to_host_ns;  // 0 on the host
    bool was_replayed;           // half of the ops that ran, or more, were in replayed graphs
    uint64_t ran_op_count;       // ops that ran, those of bodies each time
    uint64_t replayed_op_count;  // of these, in replayed graphs
} rondo_run_times;

// The plan behind the last run or description.
typedef struct rondo_executor_stats {
    size_t struct_size;          // sizeof(rondo_executor_stats)
    uint64_t op_count;           // ops that run, after folding and fusion
    uint64_t segment_count;      // capturable runs of ops
    uint64_t bypassed_count;     // ops that run between segments, outside of graphs
    uint64_t node_count;         // nodes of all captured graphs; 0 before capture
    uint64_t plan_count;         // plans kept
    uint64_t capture_ns;         // of all segments
    uint64_t instantiate_ns;     // of all segments
    uint64_t first_replay_ns;    // wall time of the first replay, waited for
    uint64_t prepare_ns;         // compiling the plan: folding, kernels, weights
    uint64_t arena_bytes;        // planned memory of intermediate values and workspaces
    uint64_t arena_naive_bytes;  // the same without sharing
    uint64_t constant_bytes;  // weights that the plan reads in a form of their own: packed for its
                              // kernels, or copied to a GPU; each in full, also where other plans
                              // and executors share it; what is read where the program has it is
                              // not counted
    uint64_t graph_bytes;     // driver-side memory of the graphs, estimated
    uint64_t eager_run_count;
    uint64_t replay_run_count;
    uint64_t random_op_count;        // ops that draw random numbers
    uint64_t shared_constant_bytes;  // of these, what other plans or executors hold now, too
    uint64_t plan_bytes;  // that all kept plans take, measured: arenas, staging, graphs, kernels;
                          // not weights, which they may share
    uint64_t plan_hit_count;       // runs whose plan was there
    uint64_t plan_miss_count;      // runs that had to compile
    uint64_t plan_eviction_count;  // plans dropped for others
    uint64_t memory_bytes;         // host memory that counts against memory_limit_bytes: plans,
                                   // weights in every form, folded constants, pinned memory
    uint64_t device_memory_bytes;  // the same on a GPU, without graph_bytes; 0 on the host
    uint64_t in_place_run_count;   // replays that took device tensors where they are
    uint64_t branch_count;         // of the segment with the most; 1: its graphs are straight lines
    uint64_t spilled_constant_bytes;  // weights in pinned memory that each run brings
    uint64_t state_bytes;             // memory of states; see rondo/executor_state.h
} rondo_executor_stats;

// Makes an executor for `program` on `device`. Plans are compiled at the first run of each shape.
//
// Errors:    UNSUPPORTED (dtype on this device), STATE (options.stream records), NO_DEVICE_MEMORY.
// Threads:   executors are independent, those of one program too: only compiling waits for another
//            that makes the same weights.
RONDO_API RONDO_MUST_USE rondo_status rondo_executor_create(rondo_program *program,
                                                            rondo_device *device,
                                                            const rondo_executor_options *options,
                                                            rondo_executor **out_executor);

// Waits for its work and frees the executor. Graphs that recorded its runs keep what they need.
// In the child of a fork this does nothing to an executor of the parent.
RONDO_API void rondo_executor_destroy(rondo_executor *executor);

// Feeds inputs, runs, fetches outputs, and waits until they are there.
//
// feeds      one for each input of the program, in any order; free again on return. A device tensor
//            whose value decides shapes is read back first, which waits.
// fetches    outputs by name. A tensor with data = NULL is allocated, on its `device` where it has
//            one, and afterwards owned by the caller (rondo_tensor_deinit); one with data must have
//            the output's dtype and shape and is written. Strings, sequences and optionals are
//            always new tensors; one that an earlier run has made is freed. Those that share memory
//            are written one behind the other.
//
// All is copied, also what strings and the items of sequences hold: nothing that was fed is needed
// after the call, and what was fetched stands for itself.
//
// On a GPU calls that repeat each other with at most 16 device tensors come to be done as a bound
// run (rondo/executor_stream.h) of the executor's own: one replay, and rondo_run_times as there.
//
// Errors:    INVALID (feed or fetch with an unknown name, missing, twice, wrong dtype or shape, on
//            another device: the message says what was expected), STATE (the executor's stream
//            records), UNSUPPORTED, BAD_DATA (data-dependent shape or index out of range, a
//            divisor that is the integer 0; loop_limit reached), NO_MEMORY and NO_DEVICE_MEMORY
//            (also when memory_limit_bytes is reached: the message names op, shape and bytes),
//            CANCELLED, MISMATCH (self_check_every). Fetches in host memory are written only on
//            success.
// Capture:   legal, but not recorded; breaks captures in global mode.
RONDO_API RONDO_MUST_USE rondo_status rondo_executor_run(rondo_executor *executor,
                                                         const rondo_binding *feeds,
                                                         size_t feed_count, rondo_binding *fetches,
                                                         size_t fetch_count);

// Runs again on the inputs that the last run left on the device, and waits; no transfers.
//
// Errors:    STATE (nothing has run; the last run failed, or was fed device tensors or states; its
//            plan was dropped, which a call that is refused memory may do), and as
//            rondo_executor_run.
RONDO_API RONDO_MUST_USE rondo_status rondo_executor_rerun(rondo_executor *executor);

// Ends the call that another thread makes on the executor now (run, rerun, wait or describe).
//
// That call returns CANCELLED at the next op outside of segments, turn of a loop (in a graph: one
// of the next 16) or kernel to be prepared, having waited for what is on the stream. Nothing is
// fetched, and the next call works. Between calls this does nothing, so a program that must be sure
// cancels again until the other call has returned. A signal handler may call it.
//
// Errors:    INVALID (executor is NULL).
// Threads:   any, also while another uses the executor; not while it is destroyed.
RONDO_API RONDO_MUST_USE rondo_status rondo_executor_cancel(rondo_executor *executor);

// Changes whether later runs use graphs. Graphs already captured are kept.
RONDO_API RONDO_MUST_USE rondo_status rondo_executor_set_graphs(rondo_executor *executor,
                                                                rondo_graphs_mode graphs);

// Changes whether ops that leave it open work as in training, in later runs, descriptions and
// recordings. Plans and graphs of both are kept, and so are generators and states, which are the
// executor's.
//
// Cost:      the first run of each mode compiles.
RONDO_API RONDO_MUST_USE rondo_status rondo_executor_set_training(rondo_executor *executor,
                                                                  bool training);

// Times of the last run.
//
// Errors:    STATE (nothing has run).
RONDO_API RONDO_MUST_USE rondo_status rondo_executor_get_times(const rondo_executor *executor,
                                                               rondo_run_times *out_times);

// The plan that was run or described last.
//
// Errors:    STATE (there is none).
RONDO_API RONDO_MUST_USE rondo_status rondo_executor_get_stats(const rondo_executor *executor,
                                                               rondo_executor_stats *out_stats);

// Lists the graphs of the plan that ran or was described last, in the order in which a run replays
// them: for statistics, and with keep_templates for dumps, nodes and their labels, which are ops'
// types and names. None before a capture. They are the executor's: look, and change nothing.
//
// Ownership: borrowed until the executor's next call.
RONDO_API RONDO_MUST_USE rondo_status rondo_executor_list_graphs(rondo_executor *executor,
                                                                 rondo_graph **graphs,
                                                                 size_t capacity,
                                                                 size_t *out_count);

// Compiles the plan for the program's declared shapes (symbols not set count as 1) without running,
// and writes ops, segments with the reason for each cut and what would take it away, and the
// memory plan.
//
// Errors:    as rondo_executor_run.
RONDO_API RONDO_MUST_USE rondo_status rondo_executor_describe(rondo_executor *executor,
                                                              rondo_text_format format,
                                                              rondo_write_function write,
                                                              void *user_data);

// The same for the shapes of `feeds`: what a run with them would do.
//
// feeds      inputs by name, as for rondo_executor_run; one whose tensor has no data stands for
//            zeros of its shape. Inputs that are not among them, or of dtype NONE there, have their
//            declared shapes.
//
// Errors:    as rondo_executor_run.
RONDO_API RONDO_MUST_USE rondo_status rondo_executor_describe_feeds(
    rondo_executor *executor, const rondo_binding *feeds, size_t feed_count,
    rondo_text_format format, rondo_write_function write, void *user_data);

// Tells type and shape of each output for given inputs, without a run and without compiling a plan.
//
// feeds      as for rondo_executor_run, but a tensor without data stands for its shape. Values of
//            inputs in host memory are looked at where they decide shapes.
// outputs    in the program's order: names, borrowed from it, and tensors without data. An extent
//            of -1 is known only to a run, and so is all of it where the rank is -1 (which it is of
//            sequences and optionals).
//
// Errors:    INVALID (as feeds of rondo_executor_run), BAD_DATA (shapes that do not fit the
//            program: the message names the node), UNSUPPORTED.
RONDO_API RONDO_MUST_USE rondo_status rondo_executor_infer_outputs(
    rondo_executor *executor, const rondo_binding *feeds, size_t feed_count, rondo_binding *outputs,
    size_t capacity, size_t *out_count);

// Where half precision departs from single precision. Errors are relative: |f16 - f32| / |f32| as
// norms over a whole tensor; infinite where NaN or infinities differ; for whole numbers the share
// of elements that differ.
typedef struct rondo_precision_loss {
    size_t struct_size;       // sizeof(rondo_precision_loss); set by the caller
    bool is_found;            // some op exceeds the limit; otherwise names are empty
    char op[48];              // its type
    char node[160];           // its name; one that is too long ends in *, as a pattern does
    double error_before;      // largest error among its inputs
    double error_after;       // largest error among its outputs
    double output_error;      // largest error among the outputs of the program
    uint64_t compared_count;  // values between ops that were compared
} rondo_precision_loss;

// Runs `program` once in f32 and once as `options` say (dtype F16), fetches what every op of the
// main program makes, and names the first op whose error is above `limit` and at least four times
// that of its inputs; where errors only grow, the op that raises its own the most. What If, Loop
// and Scan do inside is their own error. Values in between are rounded, as without fusing, so
// errors may be a little larger than in a run.
//
// limit      for example 0.01.
//
// Errors:    INVALID (dtype is not F16, feeds as in rondo_executor_run), and as
//            rondo_executor_run.
// Ownership: all borrowed for the call.
// Threads:   one thread per program.
RONDO_API RONDO_MUST_USE rondo_status rondo_executor_find_loss(
    rondo_program *program, rondo_device *device, const rondo_executor_options *options,
    const rondo_binding *feeds, size_t feed_count, double limit, rondo_precision_loss *out_loss);

RONDO_EXTERN_C_END

#endif  // RONDO_EXECUTOR_H

// rondo/executor_stream.h — an executor inside a program's own work: its stream, runs that do not
// wait, runs recorded into a capture, and runs whose tensors are bound once.
//
//   options.stream = stream;                        // in rondo_executor_options
//   rondo_executor_create(program, device, &options, &executor);
//   ... work on `stream` that makes x ...
//   rondo_executor_run_async(executor, feeds, 1, fetches, 1, done);   // x and y: device tensors
//   ... work on `stream` that reads y ...
//   rondo_event_synchronize(done);
//
// Feeds and fetches may be device tensors (rondo/tensor.h) in every kind of run: those of the
// executor's device. One in host memory travels through pinned memory that the executor owns.
//
// A replay takes device tensors where they are, and copies nothing, also when addresses change
// from run to run (in_place_run_count of the statistics): where the plan is one segment that draws
// no random numbers, tensors lie at multiples of 256 bytes and no fetch overlaps a feed, from the
// second replay on that was given the same ports as device tensors. Before that the segment is
// recorded some forty times to find out where addresses stand in it (rondo/learn.h). Otherwise
// each tensor is one copy on the device.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_EXECUTOR_STREAM_H
#define RONDO_EXECUTOR_STREAM_H

#include <stddef.h>

#include "rondo/device.h"
#include "rondo/executor.h"
#include "rondo/export.h"
#include "rondo/status.h"

RONDO_EXTERN_C_BEGIN

// The stream that runs are put on: the one of the options, or its own; borrowed.
RONDO_API rondo_stream *rondo_executor_get_stream(const rondo_executor *executor);

// Puts a run on the executor's stream, behind what is there, and returns. Several may be under
// way; each sees the inputs it was given.
//
// The call waits only where the plan has ops that the processor computes between segments (they
// need their inputs; rondo_executor_describe lists them), for a first compilation, and when two
// runs that were fed from host memory have not taken their inputs in yet. On a GPU such inputs are
// copied on a stream of their own, beside the run before, into a second buffer, and from there by
// one copy on the device.
//
// feeds      in host memory: free again on return. Device tensors stay until the run is done.
// fetches    as for rondo_executor_run. One that the call allocates is there on return; all are
//            written when the run is done. They stay until then.
// done       recorded behind the run; an event of the executor's device. NULL: none.
//
// Other calls on the executor come behind the run: rondo_executor_run first waits as
// rondo_executor_wait does, and so do all that look at the last run or change the executor.
//
// Errors:    as rondo_executor_run. Errors that only the device detects (an index out of range)
//            come from rondo_executor_wait, or from the next call that waits before it begins, even
//            if a wait for the stream has reported them. After a failure nothing of the run is
//            under way, and `done` is as it was; earlier runs may have failed, too, which
//            rondo_executor_wait reports.
// Ownership: fetches that the call allocates are the caller's: rondo_tensor_deinit, when the run is
//            done.
// Capture:   legal, but not recorded; STATE while the executor's stream records.
RONDO_API RONDO_MUST_USE rondo_status
rondo_executor_run_async(rondo_executor *executor, const rondo_binding *feeds, size_t feed_count,
                         rondo_binding *fetches, size_t fetch_count, rondo_event *done);

// Waits until the runs put on the stream are done. rondo_executor_get_times then tells of the
// last.
//
// Errors:    those that the runs have met on the device; of executors that share a stream, also
//            those of the others' runs. The next run works.
// Capture:   unsafe; STATE while the executor's stream records.
RONDO_API RONDO_MUST_USE rondo_status rondo_executor_wait(rondo_executor *executor);

// Records a run into the capture of `stream`, the program's own or a Rondo graph's: the model
// becomes nodes of a larger graph, which reads the feeds and writes the fetches at each replay.
//
// The nodes have memory of their own for values between ops, those of the processor included, so
// replays need no order with other runs of the executor. They read and write states
// (rondo/executor_state.h) in the states' own memory, so with states the program must order replays
// and runs. Each replay sets a state that is fed; the executor does not see that, so a state that a
// failed run lost stays lost. Generators go on from replay to replay, as rondo/random.h says. On a
// GPU no error reports data that a run would refuse as BAD_DATA: an index outside of its axis
// becomes the nearest inside, and a quotient by the integer 0 becomes 0.
//
// stream     any of the executor's device that records; not the executor's own one alone.
// feeds      all inputs of the program but states: device tensors or pinned memory, which stay as
//            long as the graph is replayed. Ops read device tensors where they are.
// fetches    with data, likewise.
//
// Errors:    INVALID (as rondo_executor_run; a fetch without data; an integer in pinned memory
//            that decides a branch: replays would not read it again), STATE (`stream` does not
//            record; the executor has not run with these shapes yet: run it once before the
//            capture; pageable memory), UNSUPPORTED (an op that is computed between segments or
//            on another GPU, a state that changes its size or whose value decides shapes: the
//            message names it and says why). A failure breaks nothing unless something was
//            recorded already; then it breaks the capture, which would lack the rest.
// Ownership: a graph of Rondo's keeps what the nodes need, also when the executor is destroyed. In
//            a capture that is not Rondo's, the executor keeps it, and must outlive the graph.
// Capture:   only legal while `stream` records.
RONDO_API RONDO_MUST_USE rondo_status
rondo_executor_record(rondo_executor *executor, rondo_stream *stream, const rondo_binding *feeds,
                      size_t feed_count, const rondo_binding *fetches, size_t fetch_count);

// ---- memory of runs ---------------------------------------------------------------------------

// Memory for the values between the ops of a run, which otherwise each executor has for itself (a
// rondo_arena is another thing: memory of captures, rondo/pool.h). Given by the program, or shared
// by executors that never run at once: plans of all of them lie in the same bytes.
//
//   rondo_run_arena_create(device, &(rondo_run_arena_options){sizeof(rondo_run_arena_options),
//                                                             NULL, largest_plan}, &arena);
//   options.run_arena = arena;  // of several executors
//
// Executors that share a run arena are used by one thread at a time, as one executor would be; so
// are their bound runs, and graphs that recorded their runs are destroyed there. Runs that are not
// waited for come one behind another on the device, also from different streams. Not there:
// weights, states, pinned memory, values of loops' and branches' bodies that the processor runs,
// values on another GPU, and those of recorded runs, which have memory of their own. It does not
// count against memory_limit_bytes.
typedef struct rondo_run_arena_options {
    size_t struct_size;  // sizeof(rondo_run_arena_options)
    void *address;       // of memory of the device, at a multiple of 256, which stays the program's
                         // and outlives the executors. NULL: taken by the first plan
    size_t bytes;  // there; without an address: how much is taken. A plan that needs more gets
                   // a piece of its own, for others of its size to share, since graphs keep
                   // addresses
} rondo_run_arena_options;

// Makes a run arena.
//
// Errors:    INVALID (an address without bytes; one that is no multiple of 256).
RONDO_API RONDO_MUST_USE rondo_status rondo_run_arena_create(rondo_device *device,
                                                             const rondo_run_arena_options *options,
                                                             rondo_run_arena **out_arena);
// The executors that share it keep it.
RONDO_API void rondo_run_arena_destroy(rondo_run_arena *arena);

// The bytes that it has now. What a plan needs of them is arena_bytes of the statistics, also after
// rondo_executor_describe_feeds; where the program has given less, the call that compiles the plan
// fails with NO_MEMORY and says how much it is.
RONDO_API uint64_t rondo_run_arena_get_bytes(const rondo_run_arena *arena);

// ---- bound runs -------------------------------------------------------------------------------

// Feeds and fetches that are named and checked once, and run often:
//
//   rondo_bound_run_create(executor, &run);
//   rondo_bound_run_set_feed(run, "x", &x);
//   rondo_bound_run_set_fetch(run, "y", &y);
//   for (;;) { ... write to x.data ...  rondo_bound_run_run(run);  ... read y.data ... }
//
// Each run reads the bytes that are at the addresses when it runs. Tensors may lie in host memory,
// pinned or not, on the executor's device, and in another library's memory (rondo/dlpack.h); the
// bound run shares them, as rondo_tensor_share does. Setting one entry checks that one; a run looks
// for another plan only when a shape has changed. Several bound runs of an executor, and its other
// calls, may be used in turn.
//
// Where the plan is one segment, and makes the new values of states where they lie
// (rondo/executor_state.h), runs that repeat become one replay, which draws the random numbers that
// the run would draw by names. Device tensors at multiples of 256 bytes are used where they lie. On
// a GPU feeds and fetches of at most 16 KiB travel with the graph, up to 16 each way, larger ones
// by copies on the stream; pinned memory is read and written by the GPU itself, also in a run that
// fails. Feeds in host memory of runs that are not waited for go as those of
// rondo_executor_run_async; where such feeds or fetches are bound, a graph serves runs of one kind,
// so that a change between the two kinds has it made anew. Binding another tensor of host memory
// patches the graph; binding another device tensor has it made anew. rondo_run_times then counts
// transfers in compute_ns.
typedef struct rondo_bound_run rondo_bound_run;

// Makes a bound run without feeds and fetches.
//
// Ownership: the executor is kept until the bound run is destroyed.
// Threads:   that of the executor.
RONDO_API RONDO_MUST_USE rondo_status rondo_bound_run_create(rondo_executor *executor,
                                                             rondo_bound_run **out_run);

// Waits for the executor's work, and frees the bound run and what it allocated.
RONDO_API void rondo_bound_run_destroy(rondo_bound_run *run);

// Binds an input, in the place of what was bound before.
//
// tensor     as a feed of rondo_executor_run; NULL: no longer fed, which optional inputs and states
//            allow.
//
// Errors:    INVALID (as feeds of rondo_executor_run). Then the input is bound as before.
RONDO_API RONDO_MUST_USE rondo_status rondo_bound_run_set_feed(rondo_bound_run *run,
                                                               const char *name,
                                                               const rondo_tensor *tensor);

// Binds an output, in the place of what was bound before. What an earlier run allocated is freed.
//
// tensor     with data: runs write there; type and shape are checked by the next run. With data =
//            NULL: allocated on its `device`, or in host memory, and kept for runs whose output has
//            the same type and shape. NULL: no longer fetched.
//
// Errors:    INVALID (as fetches of rondo_executor_run; memory that another bound output has, too:
//            take that away first). Then the output is bound as before.
RONDO_API RONDO_MUST_USE rondo_status rondo_bound_run_set_fetch(rondo_bound_run *run,
                                                                const char *name,
                                                                const rondo_tensor *tensor);

// Gives memory for a fetch that was bound without data: `bytes` for a tensor of the dtype and shape
// of `wanted`, on its device (NULL: in host memory). NULL makes the run fail. It must not use the
// executor. The memory stays the program's; it is written until the fetch is bound anew, or the
// function called for it again.
typedef void *(*rondo_fetch_allocator)(void *user_data, const char *name,
                                       const rondo_tensor *wanted, size_t bytes);

// Lets a function of the program give the memory of fetches without data. It is called where their
// type or shape is not that of the run before, and in every run that finds a shape as it goes. Not
// for strings, sequences, optionals and what is empty. What earlier runs allocated is given up.
//
// allocate   NULL: the library allocates.
RONDO_API RONDO_MUST_USE rondo_status rondo_bound_run_set_allocator(rondo_bound_run *run,
                                                                    rondo_fetch_allocator allocate,
                                                                    void *user_data);

// Runs as rondo_executor_run does.
//
// Errors:    as rondo_executor_run.
// Capture:   legal, but not recorded; STATE while the executor's stream records.
// Cost:      without names, checks and look-ups where nothing was set since the last run, states
//            are made where they lie, and no input's value decides shapes.
RONDO_API RONDO_MUST_USE rondo_status rondo_bound_run_run(rondo_bound_run *run);

// Puts the run on the executor's stream as rondo_executor_run_async does.
//
// Errors:    as rondo_executor_run_async.
// Capture:   as rondo_executor_run_async.
RONDO_API RONDO_MUST_USE rondo_status rondo_bound_run_run_async(rondo_bound_run *run,
                                                                rondo_event *done);

// The output as the last run left it, or will have left it when it is done.
//
// Errors:    INVALID (not bound), STATE (no run has succeeded since it was bound).
// Ownership: *out_tensor shares the bytes, which the next run may overwrite or give up: free it
//            with rondo_tensor_deinit.
RONDO_API RONDO_MUST_USE rondo_status rondo_bound_run_get_fetch(rondo_bound_run *run,
                                                                const char *name,
                                                                rondo_tensor *out_tensor);

RONDO_EXTERN_C_END

#endif  // RONDO_EXECUTOR_STREAM_H

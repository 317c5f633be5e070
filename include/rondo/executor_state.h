// rondo/executor_state.h — what an executor keeps from run to run, by name: weights, and states.
//
//   rondo_executor_bind(executor, "cache_out", "cache_in");     // a key/value cache, say
//   rondo_executor_set_variable(executor, "cache_in", &zeros);  // where it starts
//   for (;;) { rondo_executor_run(executor, feeds, 1, fetches, 1); }  // cache_in is not fed
//
// A state is an input that a run need not feed: its value stays on the device. The variables of a
// program (rondo/variable.h) are states from the start; rondo_executor_bind makes others.
//
// Memory. A state lies once in memory of the executor's, which counts in memory_bytes or
// device_memory_bytes, in state_bytes, and against memory_limit_bytes. A run reads it there. The op
// that makes the new value writes it to the same memory if it works element by element or writes
// slices (ScatterND, ScatterElements, TensorScatter: only the slices are touched; reductions take
// equal rows in the order of the updates, on every device), or if it begins after the last read of
// the old value. Three ops write only the new rows of a cache if the rows that were there stay in
// their positions: a Concat that appends along the first axis that is not 1, GroupQueryAttention of
// com.microsoft whose past has room for total_sequence_length rows, and attention of one batch
// entry and one head of keys. Where the program leaves the order open, ops that read the old value
// come before those that make the new one. Otherwise the new value is made among the values of the
// plan, and copied when every op that reads the old one is done. Results are the same bit for bit.
// Memory that has to grow takes twice as much, unless rondo_executor_reserve_variable has said how
// much; shapes may change from run to run, and each has a plan.
//
// A run that feeds a state sets it first, which waits if the tensor is in host memory. A run that
// fails before its ops begin leaves states as they were (or as it was fed); one that fails later
// may have written some, and leaves no value of those that it makes: runs are STATE until these
// are fed, set or reset.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_EXECUTOR_STATE_H
#define RONDO_EXECUTOR_STATE_H

#include "rondo/executor.h"
#include "rondo/export.h"
#include "rondo/status.h"
#include "rondo/tensor.h"

RONDO_EXTERN_C_BEGIN

// Makes an input a state: in each run it has the value that an output had in the run before.
//
// output     NULL: unbinds the input and frees its state.
// input      one without a default.
//
// Errors:    INVALID (no such output or input; bound already; types that differ, or are no
//            numbers), STATE (NULL, while a graph uses the state that recorded a run).
RONDO_API RONDO_MUST_USE rondo_status rondo_executor_bind(rondo_executor *executor,
                                                          const char *output, const char *input);

// Takes memory for a state ahead, so that it does not move when its shape grows: a cache of a
// stated capacity.
//
// bytes      of the largest value that it will have.
//
// Errors:    INVALID (no such state), STATE (a graph uses it that recorded a run),
//            NO_DEVICE_MEMORY.
RONDO_API RONDO_MUST_USE rondo_status rondo_executor_reserve_variable(rondo_executor *executor,
                                                                      const char *name,
                                                                      size_t bytes);

// Gives out a parameter or constant of the program, or the state of an input, by name.
//
// Errors:    INVALID (no such variable), STATE (the state has no value yet, or lost it).
// Ownership: *out_tensor shares the bytes, which must not be written: free it with
//            rondo_tensor_deinit. A state is a device tensor, and is overwritten by the next run:
//            copy it with rondo_tensor_copy, on the executor's stream, where calls that change it
//            may still be at work (set, reset, reserve, runs that were not waited for).
RONDO_API RONDO_MUST_USE rondo_status rondo_executor_get_variable(rondo_executor *executor,
                                                                  const char *name,
                                                                  rondo_tensor *out_tensor);

// Replaces a parameter or constant for this executor, or sets the state of an input, before the
// next run. The program stays as it is, and so do other executors of it.
//
// A parameter is folded into others (a normalisation into the convolution before it, a bias into a
// product), packed for kernels, and read from where it lies by plans and graphs, some of which are
// other executors'. What was made of it is not known by name. So plans are given up, and the next
// run of each shape compiles again; what does not depend on the parameter is copied once more, too.
// Who replaces a weight again and again makes it a variable (rondo_program_make_variables): that is
// a copy, and plans and graphs stay.
//
// tensor     in host memory, a state's also on the executor's device; copied. A parameter keeps
//            its dtype and shape.
//
// Errors:    INVALID (no such variable; dtype, shape or device), STATE (a graph that recorded a
//            run uses the weights: reset it first), NO_DEVICE_MEMORY. After a failure all is as it
//            was.
// Cost:      a state: one copy, and all plans and graphs stay. Otherwise as if the executor were
//            created anew.
RONDO_API RONDO_MUST_USE rondo_status rondo_executor_set_variable(rondo_executor *executor,
                                                                  const char *name,
                                                                  const rondo_tensor *tensor);

// Lets all variables that have a start begin again.
//
// Errors:    as rondo_executor_set_variable.
RONDO_API RONDO_MUST_USE rondo_status rondo_executor_reset_variables(rondo_executor *executor);

// Gives out a program whose variables start with the executor's present values: to save it, or to
// make other executors of it. Variables that were not used yet get their start value.
//
// Errors:    STATE (a variable lost its value).
// Ownership: caller destroys *out_program.
RONDO_API RONDO_MUST_USE rondo_status rondo_executor_snapshot(rondo_executor *executor,
                                                              rondo_program **out_program);

RONDO_EXTERN_C_END

#endif  // RONDO_EXECUTOR_STATE_H

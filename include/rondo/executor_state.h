// rondo/executor_state.h — what an executor keeps from run to run, by name: weights, and states.
//
//   rondo_executor_bind(executor, "cache_out", "cache_in");     // a key/value cache, say
//   rondo_executor_set_variable(executor, "cache_in", &zeros);  // where it starts
//   for (;;) { rondo_executor_run(executor, feeds, 1, fetches, 1); }  // cache_in is not fed
//
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_EXECUTOR_STATE_H
#define RONDO_EXECUTOR_STATE_H

#include "rondo/executor.h"
#include "rondo/export.h"
#include "rondo/status.h"
#include "rondo/tensor.h"

RONDO_EXTERN_C_BEGIN

// Lets an input of each run be what an output of the run before was: a state, which stays on the
// device. A run that feeds the input starts it anew; one that fails leaves it as it was.
//
// A state has memory of its own, twice: the run reads one and writes the other, in place where
// rondo/executor_stream.h says so of device tensors, otherwise by a copy each. Its shape is that of
// the output, and may change from run to run: each shape has a plan.
//
// output     NULL: the input is bound no more, and its state is given up.
// input      one without a default.
//
// Errors:    INVALID (no such output or input; bound already; types that differ, or are no
//            numbers).
RONDO_API RONDO_MUST_USE rondo_status rondo_executor_bind(rondo_executor *executor,
                                                          const char *output, const char *input);

// Gives out a parameter or constant of the program, or the state of an input, by name.
//
// Errors:    INVALID (no such variable), STATE (the state has no value yet).
// Ownership: *out_tensor shares the bytes, which must not be written: free it with
//            rondo_tensor_deinit. A state is a device tensor, and is overwritten by the second run
//            from now.
RONDO_API RONDO_MUST_USE rondo_status rondo_executor_get_variable(rondo_executor *executor,
                                                                  const char *name,
                                                                  rondo_tensor *out_tensor);

// Replaces a parameter or constant for this executor, or sets the state of an input, before the
// next run. The program stays as it is, and so do other executors of it.
//
// Parameters are folded and packed into plans. So these are given up, and the next run of each
// shape compiles again; what does not depend on the parameter is copied once more, too.
//
// tensor     in host memory, a state's also on the executor's device; copied. A parameter keeps its
//            dtype and shape.
//
// Errors:    INVALID (no such variable; dtype, shape or device), STATE (a graph that recorded a run
//            uses the weights: reset it first), NO_DEVICE_MEMORY. After a failure all is as it was.
// Cost:      a state: one copy. Otherwise as if the executor were created anew.
RONDO_API RONDO_MUST_USE rondo_status rondo_executor_set_variable(rondo_executor *executor,
                                                                  const char *name,
                                                                  const rondo_tensor *tensor);

RONDO_EXTERN_C_END

#endif  // RONDO_EXECUTOR_STATE_H

// support/models/user_ops.h — ops as programs register them, some of which misbehave in captures.
//
// test.Step adds its attribute `add` to each number. Its kernel on either device puts a host
// function on the stream. Attribute `fault` says what it does beside, while the stream records:
//
//   wait, wait_silently   waits for the stream, and tells of the failure or not
//   refuse                fails with DRIVER, without a record of Rondo's
//   allocate_in_vain      says NO_DEVICE_MEMORY each time
//   memory_once           says NO_DEVICE_MEMORY the first time
//   once                  fails the first time
//   neighbour             fails behind another Step of its fault in the same capture
//   fork                  leaves a stream behind that is not joined
//   always                fails in eager launches, too, where user_ops_set_failing said so
//
// test.Positive keeps what is greater than zero: [n] to [depends on data]. test.Repeat makes its
// first input [1] as long as its second says. test.Tick counts how often it was computed, [1];
// test.Mode is 1 in training and 0 otherwise, [1]. These are plain C only. test.Device is a Step
// without plain C.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "rondo/models.h"

// Registers the ops, once in a process.
rondo_status user_ops_register(void);
// Forgets which faults have come already, and which ops cannot be captured.
void user_ops_reset(void);
void user_ops_set_failing(bool is_failing);
// Launches of test.Step since the reset, recorded ones included.
size_t user_ops_count_launches(void);

// What ops of tests infer whose result is as their first input.
rondo_status user_ops_infer_same(rondo_op_node *node, const rondo_tensor *inputs,
                                 size_t input_count, rondo_tensor *outputs, size_t output_count);

enum { USER_OPS_WIDTH = 4 };

// A program of `count` Steps one behind the other, "step_<i>", from "x" to "y", each adding 1.
// faults[i] is NULL for none; `faults` may be NULL.
rondo_status user_ops_build_chain(size_t count, const char *const *faults,
                                  rondo_program **out_program);
// Runs it on zeroes into out_y.
rondo_status user_ops_run_chain(rondo_executor *executor, float *out_y);

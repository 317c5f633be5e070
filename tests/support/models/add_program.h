// support/models/add_program.h — a small model of additions that runs on every device, the fake
// driver included, where a C function takes the place of the element-wise kernel.
//
//   s = x + w        w: a parameter, w[i] = i / 2
//   y = s + x
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rondo/executor.h"

enum { ADD_COUNT = 64 };  // elements of each value
static const rondo_shape add_shape = {.rank = 1, .extent = {ADD_COUNT}};

// Such a value in host memory. Borrows `values`.
static inline rondo_tensor add_program_on_host(float *values) {
    return (rondo_tensor){.dtype = RONDO_DTYPE_F32, .shape = add_shape, .data = values};
}

// Lets the fake driver, which is installed, run additions. With options.op_by_op no two ops become
// one kernel.
void add_program_prepare_fake(void);

rondo_status add_program_build(rondo_program **out_program);

// The program and its executor, where no two ops become one kernel. Both are the caller's.
rondo_status add_program_create(rondo_device *device, rondo_graphs_mode graphs,
                                rondo_program **out_program, rondo_executor **out_executor);

// One run, which feeds first, first + 1, ... from host memory and fetches y.
rondo_status add_program_run(rondo_executor *executor, float first);

// Element i of y, for an x of which it is `x`.
float add_program_y(float x, size_t i);

// Fills a list of ADD_COUNT elements with first, first + 1, ...
void add_program_fill(float *values, float first);

// The first element that is not that of y (is_y) or s for such an x; ADD_COUNT when all are.
size_t add_program_check(const float *values, float first, bool is_y);

// executor/compile/device_control_kernel.h — what a control op on the device is made of: prepared
// by device_control_plan.c, launched by device_control.c.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/compile/body_plan.h"

enum { RONDO__CONTROL_PART_MAX = 2 };

typedef enum rondo__control_kind {
    RONDO__CONTROL_IF,
    RONDO__CONTROL_LOOP,
    RONDO__CONTROL_SCAN
} rondo__control_kind;

// A piece of memory: where the op's output is, where that is wanted, or in the workspace.
typedef struct rondo__control_piece {
    size_t output;  // SIZE_MAX: in the workspace
    size_t offset;
    size_t bytes;
} rondo__control_piece;

// A value that one turn hands on to the next.
typedef struct rondo__control_carried {
    rondo__control_piece place;
    rondo__control_piece
        staged;  // where a new value waits that lies in another's place; bytes 0: not needed
} rondo__control_carried;

// A tensor that the turns go through slice by slice. Its slices are inputs or outputs of the body.
typedef struct rondo__control_sliced {
    size_t index;                // of the node's input or output
    rondo__control_piece slice;  // of an input
    rondo__flow_slice move;
} rondo__control_sliced;

typedef struct rondo__control_kernel {
    rondo__kernel head;
    rondo__unit *unit;
    rondo__flow_kernels kernels;
    rondo__control_kind kind;
    bool is_decided;  // an If with one part
    size_t part_count;
    rondo__body_plan parts[RONDO__CONTROL_PART_MAX];
    size_t arenas[RONDO__CONTROL_PART_MAX];  // offsets in the workspace
    size_t output_count;
    rondo__control_piece *outputs;  // of an If
    size_t first_feed;              // carried value 0 among the body's inputs
    size_t first_made;              // and among its outputs
    size_t first_input;             // and among the node's inputs
    size_t carried_count;
    rondo__control_carried *carried;
    size_t in_count;
    rondo__control_sliced *ins;
    size_t out_count;
    rondo__control_sliced *outs;
    int64_t fixed_count;
    int64_t turn_max;  // of its loops and those inside; INT64_MAX: depends on data
    void **inputs_of_part;
    void **outputs_of_part;
    // of the launch at hand
    rondo__flow_state *outermost;  // of the op around it; NULL: none
    const void *const *inputs;
    void *const *given_outputs;
    char *workspace;
} rondo__control_kernel;

// Turns of the kernel's loops, at most; INT64_MAX when that depends on data, 0 of other kernels.
int64_t rondo__device_control_get_turns(const rondo__kernel *kernel);

// A kernel without parts; NULL when memory is exhausted.
//
// Ownership: free with rondo__kernel_destroy, whatever it has got by then.
// Threads:   one thread per executor.
rondo__control_kernel *rondo__control_kernel_create(rondo__unit *unit);

// kernel/host/host_kernel.h — what all host kernels share: one launch function, one way to fail.
//
// A host kernel is a `run` function with prebuilt state. Launching puts one host function on the
// stream; its argument bytes are the kernel's address and an address block:
//
//   | kernel | workspace | input 0 ... input n-1 | output 0 ... output m-1 |
//
// The stream copies those bytes, so that addresses may differ from launch to launch, and a recorded
// node keeps the addresses it was recorded with. Nothing is allocated between launch and finish.
// Where there are more than RONDO__HOST_ADDRESS_MAX, the kernel keeps them, and they never change.
//
// `run` may keep scratch state in the kernel object (memory objects whose handles it sets, say),
// because a lock keeps the runs of one kernel apart: a graph that recorded the kernel may be
// replayed on any stream.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>
#include <stdint.h>

#include "base/workers.h"
#include "kernel/kernel.h"

typedef struct rondo__host_kernel rondo__host_kernel;

// The work itself. Absent inputs and unwanted outputs are NULL; constants are always there. A
// failure writes the error record, as everywhere.
typedef rondo_status (*rondo__host_run)(rondo__host_kernel *kernel, const void *const *inputs,
                                        void *const *outputs, void *workspace);

// The head of every kind of host kernel: the first member of the kind's struct.
struct rondo__host_kernel {
    rondo__kernel base;
    rondo__host_run run;
    void (*deinit)(rondo__host_kernel *kernel);  // frees what the kind added; NULL: nothing
    const rondo__op *op;                         // outlives the kernel
    const void **constants;  // of each input its value when that is known, otherwise NULL
    uint32_t input_count;
    uint32_t output_count;
    void **table;  // the addresses, when they are more than a launch carries; NULL otherwise
    bool is_table_filled;
    rondo__workers_place place;  // of the thread that runs it
    pthread_mutex_t lock;        // held by a run
};

enum {
    RONDO__HOST_ADDRESS_MAX = 500  // operands that a launch carries, in its 4096 bytes
};

// Whether an input is there.
static inline bool rondo__host_has_input(const rondo__kernel_request *request, size_t input) {
    return input < request->input_count && request->inputs[input].dtype != RONDO_DTYPE_NONE;
}

// Allocates a zeroed kernel of a kind and fills its head: capturable, no workspace, constant inputs
// owned (the host reads them where they are).
//
// kind_bytes   size of the kind's struct.
// deinit       also called for a kernel whose preparation fails half-way.
//
// Returns:   the kernel, or NULL when memory is exhausted (record written).
// Ownership: free with rondo__kernel_destroy.
rondo__host_kernel *rondo__host_kernel_create(const rondo__kernel_request *request,
                                              size_t kind_bytes, const char *implementation,
                                              rondo__host_run run,
                                              void (*deinit)(rondo__host_kernel *kernel));

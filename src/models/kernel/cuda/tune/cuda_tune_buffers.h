// kernel/cuda/tune/cuda_tune_buffers.h — memory that stands for the tensors of a request while
// candidates are timed, filled with noise (zeros run faster than data on some chips).
//
// Each launch of a row finds constants where no other has them, as far as memory allows, and before
// the row the cache is filled with other data where a network's constants do not stay in it from
// run to run: then they come from memory, as they will.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/cuda/cuda_steps.h"

typedef struct rondo__tune_buffer {
    char *memory;
    size_t bytes;   // from copy to copy
    size_t copies;  // 1 but for constants
} rondo__tune_buffer;

typedef struct rondo__tune_buffers {
    rondo_device *device;
    rondo_stream *stream;
    const rondo__kernel_request *request;
    const rondo__cuda_kernel *kernel;  // the one that is to be built
    size_t launches;                   // of a row
    bool is_cold;                      // constants come from memory
    rondo__tune_buffer *inputs;        // behind them room for the forms that a candidate asks for
    rondo__tune_buffer *outputs;
    rondo__tune_buffer forms[RONDO__CUDA_FORMS_MAX];  // that `kernel` has made already
    rondo__tune_buffer workspace;
    rondo__tune_buffer other;  // what the cache is filled with
    const void **input_list;   // of one launch
    void **output_list;
} rondo__tune_buffers;

// Whether constants of this request's plan are more than a cache holds from run to run.
bool rondo__tune_is_cold(const rondo__kernel_request *request);

// `launches` candidates' launches make a row. Both `kernel` and its request are borrowed.
RONDO_MUST_USE rondo_status rondo__tune_buffers_init(const rondo__cuda_kernel *kernel,
                                                     size_t launches,
                                                     rondo__tune_buffers *out_buffers);
void rondo__tune_buffers_deinit(rondo__tune_buffers *buffers);

// Makes room for all that the candidate touches.
//
// Errors:    NO_DEVICE_MEMORY, DRIVER, LOST.
RONDO_MUST_USE rondo_status rondo__tune_buffers_prepare(rondo__tune_buffers *buffers,
                                                        const rondo__cuda_kernel *candidate);
// Launch `index` of a row.
RONDO_MUST_USE rondo_status rondo__tune_buffers_launch(const rondo__tune_buffers *buffers,
                                                       rondo__cuda_kernel *candidate, size_t index);
// A kernel on each multiprocessor that does nothing, but begins before the kernel in front of it
// has ended, and lets the one behind begin, as a network's do: what a candidate does not let its
// neighbours gain is counted so.
RONDO_MUST_USE rondo_status
rondo__tune_buffers_launch_neighbour(const rondo__tune_buffers *buffers);
// Fills the cache with other data, where constants are to come from memory.
RONDO_MUST_USE rondo_status rondo__tune_buffers_chill(rondo__tune_buffers *buffers);

// kernel/host/dnnl_kernel.h — a oneDNN primitive as a host kernel.
//
// Everything is made at preparation: the primitive, a memory object for each of its arguments, and
// the argument list. A run sets the addresses and executes. Constant operands are reordered once
// into the layout that the primitive chose.
//
//   rondo__dnnl_kernel_create(request, &kernel)
//   ... describe the primitive with kernel->engine ...
//   rondo__dnnl_kernel_set_primitive(kernel, description)      takes the description
//   rondo__dnnl_kernel_bind(kernel, DNNL_ARG_SRC, RONDO__DNNL_INPUT, 0, layout) ...
//   rondo__dnnl_kernel_bind_packed(kernel, DNNL_ARG_WEIGHTS, weights, constant, layout, wanted)
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_KERNEL_HOST_DNNL_KERNEL_H
#define RONDO_KERNEL_HOST_DNNL_KERNEL_H

#include "kernel/host/dnnl_compat.h"
#include "kernel/host/host_kernel.h"
#include "op/fused.h"

enum { RONDO__DNNL_SLOT_MAX = 12 };

// Where the address of one argument comes from at a run.
typedef enum rondo__dnnl_source {
    RONDO__DNNL_INPUT,
    RONDO__DNNL_OUTPUT,
    RONDO__DNNL_WORKSPACE,
    RONDO__DNNL_OWNED,  // set at preparation: a packed constant
} rondo__dnnl_source;

typedef struct rondo__dnnl_slot {
    rondo__dnnl_source source;
    size_t index;  // of input or output; byte offset into the workspace
    void *last;    // address the memory object has now
} rondo__dnnl_slot;

typedef struct rondo__dnnl_kernel {
    rondo__host_kernel head;
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_desc_t description;
    dnnl_primitive_t primitive;
    int slot_count;
    rondo__dnnl_slot slots[RONDO__DNNL_SLOT_MAX];
    dnnl_exec_arg_t arguments[RONDO__DNNL_SLOT_MAX];
    bool is_single;       // made for one thread
    size_t addend_bytes;  // 0, or a sum post-op wants input `addend_input` in output 0 beforehand
    size_t addend_input;
    rondo__activation ending;  // done to output 0 afterwards
    float alpha, beta;
    int64_t output_count;
} rondo__dnnl_kernel;

// UNSUPPORTED without a record for what oneDNN lacks, so that the next choice is tried.
rondo_status rondo__dnnl_convert_status(dnnl_status_t status, const char *call);

// oneDNN keeps up to 1024 primitives that nobody uses any more, with their machine code: some
// 100 MiB after forty plans of one network. When nobody holds the cache any more, they go; each
// kernel holds it.
//
// Threads:   safe.
void rondo__dnnl_hold_cache(void);
void rondo__dnnl_release_cache(void);

// Errors:    NO_MEMORY.
// Ownership: free with rondo__kernel_destroy(&kernel->head.base).
// Threads:   safe.
RONDO_MUST_USE rondo_status rondo__dnnl_kernel_create(const rondo__kernel_request *request,
                                                      rondo__dnnl_kernel **out_kernel);

// Threads for a primitive that computes and moves so much. Little runs on one thread: oneDNN uses
// all there are for anything, and beside a busy process each meeting of threads may take as long as
// the scheduler likes.
int32_t rondo__dnnl_choose_threads(double multiply_adds, double bytes);

// The primitive is described with that many; they are as they were after
// rondo__dnnl_kernel_describe_end.
int32_t rondo__dnnl_kernel_describe_begin(rondo__dnnl_kernel *kernel, double multiply_adds,
                                          double bytes);
void rondo__dnnl_kernel_describe_end(int32_t former_threads);

// Attributes of a primitive: scratch memory from us; adds_to_output: the result is added to what
// the output holds.
dnnl_status_t rondo__dnnl_attributes_create(bool adds_to_output,
                                            dnnl_primitive_attr_t *out_attributes);

// An activation that a run applies to its `output_count` outputs when the primitive is done.
//
// It is not one of the primitive's own post-ops, because those lose NaN: ReLU and clip always, the
// others in some of oneDNN's implementations. Over outputs that are still in the cache our loop
// costs next to nothing (docs/decisions.md).
void rondo__dnnl_kernel_set_ending(rondo__dnnl_kernel *kernel, rondo__activation activation,
                                   float alpha, float beta, int64_t output_count);

// Makes the primitive and binds its scratch memory to the workspace. Takes `description`.
dnnl_status_t rondo__dnnl_kernel_set_primitive(rondo__dnnl_kernel *kernel,
                                               dnnl_primitive_desc_t description);

// Binds an argument to an input or output as it lies in memory.
dnnl_status_t rondo__dnnl_kernel_bind(rondo__dnnl_kernel *kernel, int argument,
                                      rondo__dnnl_source source, size_t index,
                                      rondo__dnnl_const_layout layout);

// Binds an argument to a constant that lies in `layout` and is reordered to `wanted`; the list
// holds the result.
dnnl_status_t rondo__dnnl_kernel_bind_packed(rondo__dnnl_kernel *kernel, int argument,
                                             rondo__weight_list *weights,
                                             const rondo_tensor *constant,
                                             rondo__dnnl_const_layout layout,
                                             rondo__dnnl_const_layout wanted);

#endif  // RONDO_KERNEL_HOST_DNNL_KERNEL_H

// kernel/all_reduce_kernel.c — see all_reduce_kernel.h.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/all_reduce_kernel.h"

#include <string.h>

#include "backend/failure.h"
#include "base/error.h"
#include "base/memory.h"
#include "collective/communicator.h"

enum { PARTS_MAX = 240 };

typedef struct all_reduce_kernel {
    rondo__kernel head;
    const rondo__op *op;               // outlives the kernel
    rondo_communicator *communicator;  // the executor's
    rondo__reduction reduction;
    rondo__reduction_part parts[];
} all_reduce_kernel;

// What the host's stream copies.
typedef struct host_call {
    all_reduce_kernel *kernel;
    const void *inputs[PARTS_MAX];
    void *outputs[PARTS_MAX];
} host_call;

static void run_call(void *arguments) {
    const host_call *call = arguments;
    const all_reduce_kernel *kernel = call->kernel;
    if (rondo__host_has_failure()) {
        return;  // the others wait until this rank's run ends, which tells them
    }
    if (rondo__communicator_reduce(kernel->communicator, &kernel->reduction, call->inputs,
                                   call->outputs) != RONDO_STATUS_OK) {
        rondo__error_set_op(kernel->op->name);
        rondo__host_report_failure();
    }
}

static rondo_status launch_host(rondo__kernel *base, rondo_stream *stream,
                                const void *const *inputs, void *const *outputs, void *workspace) {
    (void)workspace;
    all_reduce_kernel *kernel = (all_reduce_kernel *)base;
    const size_t bytes = kernel->reduction.part_count * sizeof(void *);
    host_call call = {.kernel = kernel};
    memcpy(call.inputs, inputs, bytes);
    memcpy(call.outputs, outputs, bytes);
    return rondo_stream_call_host(stream, kernel->op->def->name, run_call, &call, sizeof call);
}

static rondo_status run_here(rondo__kernel *base, const void *const *inputs, void *const *outputs,
                             void *workspace) {
    (void)workspace;
    const all_reduce_kernel *kernel = (all_reduce_kernel *)base;
    return rondo__communicator_reduce(kernel->communicator, &kernel->reduction, inputs, outputs);
}

static rondo_status launch_device(rondo__kernel *base, rondo_stream *stream,
                                  const void *const *inputs, void *const *outputs,
                                  void *workspace) {
    (void)workspace;
    const all_reduce_kernel *kernel = (all_reduce_kernel *)base;
    return rondo__communicator_put(kernel->communicator, &kernel->reduction, inputs, outputs,
                                   stream);
}

static void destroy_kernel(rondo__kernel *base) {
    rondo__free(base);
}

static rondo_status check_place(const rondo__kernel_request *request) {
    if (request->communicator == NULL) {
        return rondo__op_fail_unsupported(
            request->op, request->is_in_body
                             ? "collectives in a body: not all ranks may come to them"
                             : "no ranks; options.communicator of the executor has them");
    }
    return rondo__communicator_get_device(request->communicator) == request->device
               ? RONDO_STATUS_OK
               : rondo__op_fail_unsupported(request->op, "another device than the communicator's");
}

// Element `i` of a list; `other` where it is shorter.
static int64_t get_listed(const rondo__op *op, const char *name, size_t i, int64_t other) {
    size_t count = 0;
    const int64_t *list = rondo__op_get_ints(op, name, &count);
    return list != NULL && i < count ? list[i] : other;
}

static void set_part(const rondo__kernel_request *request, size_t i, rondo__reduction_part *part) {
    const bool gathers = request->op->def->id == RONDO__FUSED_AllGather;
    const rondo__tensor_info *info = &request->inputs[i];
    *part =
        (rondo__reduction_part){.dtype = info->dtype,
                                .count = (size_t)rondo_shape_get_count(&info->shape),
                                .is_average = rondo__op_get_int(request->op, "average", 0) != 0};
    rondo__communicator_set_split(request->communicator,
                                  gathers || get_listed(request->op, "parts", i, 0) != 0, part);
    const int64_t elements = get_listed(request->op, "elements", i, 0);
    if (elements > 0) {
        // Where the tensor has no parts, all have the same.
        rondo__reduction_part tensor = {.count = (size_t)elements};
        rondo__communicator_set_split(request->communicator, true, &tensor);
        part->is_average = !tensor.is_split;
    }
}

rondo_status rondo__kernel_prepare_all_reduce(const rondo__kernel_request *request,
                                              rondo__kernel **out_kernel) {
    const size_t count = request->input_count;
    const bool is_host = rondo_device_is_host(request->device);
    RETURN_IF_ERROR(check_place(request));
    all_reduce_kernel *kernel =
        rondo__calloc(1, sizeof *kernel + count * sizeof(rondo__reduction_part));
    if (kernel == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    kernel->head = (rondo__kernel){.launch = is_host ? launch_host : launch_device,
                                   .run = is_host ? run_here : NULL,
                                   .destroy = destroy_kernel,
                                   .may_run_here = is_host,
                                   .implementation = "ranks"};
    kernel->op = request->op;
    kernel->communicator = request->communicator;
    kernel->reduction =
        (rondo__reduction){.gathers = request->op->def->id == RONDO__FUSED_AllGather,
                           .has_zeros = rondo__op_get_int(request->op, "zeros", 0) != 0,
                           .part_count = count,
                           .parts = kernel->parts};
    for (size_t i = 0; i < count; ++i) {
        set_part(request, i, &kernel->parts[i]);
    }
    *out_kernel = &kernel->head;
    return RONDO_STATUS_OK;
}

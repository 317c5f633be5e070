// kernel/host/host_kernel.c — see host_kernel.h.
// SPDX-License-Identifier: Apache-2.0

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "backend/backend.h"
#include "backend/host/host_device.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/thread_count.h"
#include "kernel/host/host_kernel.h"

// What the stream copies: the head, then the addresses.
typedef struct host_call {
    rondo__host_kernel *kernel;
    void *workspace;
    void *addresses[RONDO__HOST_ADDRESS_MAX];
} host_call;

static_assert(sizeof(host_call) <= 4096, "a launch carries at most 4096 bytes");

static rondo_status run_locked(rondo__host_kernel *kernel, void *const *addresses,
                               void *workspace) {
    const rondo__workers_place former = rondo__workers_enter(kernel->place);
    (void)pthread_mutex_lock(&kernel->lock);
    const rondo_status status = kernel->run(kernel, (const void *const *)addresses,
                                            addresses + kernel->input_count, workspace);
    (void)pthread_mutex_unlock(&kernel->lock);
    rondo__workers_leave(former);
    return status;
}

static void run_call(void *arguments) {
    const host_call *call = arguments;
    rondo__host_kernel *kernel = call->kernel;
    void *const *addresses = kernel->table != NULL ? kernel->table : call->addresses;
    if (run_locked(kernel, addresses, call->workspace) != RONDO_STATUS_OK) {
        rondo__error_set_op(kernel->op->name);
        rondo__host_report_failure();
    }
}

// Writes the addresses of one launch.
static void gather_addresses(const rondo__host_kernel *kernel, const void *const *inputs,
                             void *const *outputs, void **out_addresses) {
    for (uint32_t i = 0; i < kernel->input_count; ++i) {
        const void *address = kernel->constants[i] != NULL ? kernel->constants[i] : inputs[i];
        memcpy(&out_addresses[i], &address, sizeof address);
    }
    for (uint32_t i = 0; i < kernel->output_count; ++i) {
        out_addresses[kernel->input_count + i] = outputs[i];
    }
}

// A kernel of more operands than a launch carries has them in a table of its own, filled once: a
// plan launches it with the same addresses for ever.
static rondo_status fill_table(rondo__host_kernel *kernel, const void *const *inputs,
                               void *const *outputs) {
    if (!kernel->is_table_filled) {
        gather_addresses(kernel, inputs, outputs, kernel->table);
        kernel->is_table_filled = true;
        return RONDO_STATUS_OK;
    }
    for (uint32_t i = 0; i < kernel->input_count; ++i) {
        if (kernel->constants[i] == NULL && kernel->table[i] != inputs[i]) {
            return RONDO_FAIL(INTERNAL, "input %u of a launch with many has moved", (unsigned)i);
        }
    }
    for (uint32_t i = 0; i < kernel->output_count; ++i) {
        if (kernel->table[kernel->input_count + i] != outputs[i]) {
            return RONDO_FAIL(INTERNAL, "output %u of a launch with many has moved", (unsigned)i);
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status launch_call(rondo__kernel *base, rondo_stream *stream,
                                const void *const *inputs, void *const *outputs, void *workspace) {
    rondo__host_kernel *kernel = (rondo__host_kernel *)base;
    host_call call;
    call.kernel = kernel;
    call.workspace = workspace;
    size_t bytes = offsetof(host_call, addresses);
    if (kernel->table != NULL) {
        RETURN_IF_ERROR(fill_table(kernel, inputs, outputs));
    } else {
        gather_addresses(kernel, inputs, outputs, call.addresses);
        bytes += ((size_t)kernel->input_count + kernel->output_count) * sizeof call.addresses[0];
    }
    return rondo_stream_call_host(stream, kernel->op->def->name, run_call, &call, bytes);
}

static rondo_status run_here(rondo__kernel *base, const void *const *inputs, void *const *outputs,
                             void *workspace) {
    rondo__host_kernel *kernel = (rondo__host_kernel *)base;
    void *own[RONDO__HOST_ADDRESS_MAX];
    if (kernel->table != NULL) {
        RETURN_IF_ERROR(fill_table(kernel, inputs, outputs));
    } else {
        gather_addresses(kernel, inputs, outputs, own);
    }
    return run_locked(kernel, kernel->table != NULL ? kernel->table : own, workspace);
}

static void destroy_kernel(rondo__kernel *base) {
    rondo__host_kernel *kernel = (rondo__host_kernel *)base;
    if (kernel->deinit != NULL) {
        kernel->deinit(kernel);
    }
    (void)pthread_mutex_destroy(&kernel->lock);
    rondo__free(kernel->table);
    rondo__free(kernel);
}

rondo__host_kernel *rondo__host_kernel_create(const rondo__kernel_request *request,
                                              size_t kind_bytes, const char *implementation,
                                              rondo__host_run run,
                                              void (*deinit)(rondo__host_kernel *kernel)) {
    size_t constants_at = rondo__align_up(kind_bytes, sizeof(void *));
    rondo__host_kernel *kernel =
        rondo__calloc(1, constants_at + request->input_count * sizeof(void *));
    if (kernel == NULL) {
        return NULL;
    }
    const size_t address_count = request->input_count + request->output_count;
    if (address_count > RONDO__HOST_ADDRESS_MAX) {
        kernel->table = rondo__calloc(address_count, sizeof *kernel->table);
        if (kernel->table == NULL) {
            rondo__free(kernel);
            return NULL;
        }
    }
    kernel->base = (rondo__kernel){
        .launch = launch_call,
        .run = run_here,
        .destroy = destroy_kernel,
        .keeps_addresses = kernel->table != NULL,
        .may_run_here = true,
        .implementation = implementation,
    };
    rondo__workers *workers = rondo__workers_get_chosen();
    kernel->place = (rondo__workers_place){
        .workers = workers != NULL ? workers : rondo__host_device_of(request->device)->workers,
        .thread_count = rondo__host_get_thread_count(),
    };
    (void)pthread_mutex_init(&kernel->lock, NULL);
    kernel->run = run;
    kernel->deinit = deinit;
    kernel->op = request->op;
    kernel->constants = (const void **)((char *)kernel + constants_at);
    kernel->input_count = (uint32_t)request->input_count;
    kernel->output_count = (uint32_t)request->output_count;
    for (size_t i = 0; i < request->input_count; ++i) {
        const rondo_tensor *constant = request->inputs[i].constant;
        if (constant != NULL && constant->data != NULL) {
            kernel->constants[i] = constant->data;
            kernel->base.owned_inputs |= i < 64 ? UINT64_C(1) << i : 0;
        }
    }
    return kernel;
}

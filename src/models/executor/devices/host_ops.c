// executor/devices/host_ops.c — see host_ops.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/devices/host_ops.h"

#include <assert.h>

#include "backend/failure.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/thread_count.h"
#include "op/registered.h"

enum { GROUP_MAX = 64 };  // items of one host function

typedef struct hosted {
    rondo__kernel head;
    rondo__kernel *inner;  // of the host device
    const rondo__node *node;
    int32_t thread_count;
} hosted;

// One item, as the host function finds it. The lists of addresses belong to the plan.
typedef struct hosted_item {
    hosted *kernel;
    const void *const *inputs;
    void *const *outputs;
    void *workspace;
} hosted_item;

typedef struct hosted_call {
    size_t count;
    hosted_item items[GROUP_MAX];
} hosted_call;

static_assert(sizeof(hosted_call) <= 4096, "a host function carries at most 4096 bytes");

static rondo_status launch_one(rondo__kernel *head, rondo_stream *stream, const void *const *inputs,
                               void *const *outputs, void *workspace);

bool rondo__kernel_is_hosted(const rondo__kernel *kernel) {
    return kernel->launch == launch_one;
}

void rondo__host_ops_join(rondo__kernel *kernel) {
    rondo__kernel *inner = rondo__kernel_is_hosted(kernel) ? ((hosted *)kernel)->inner : kernel;
    if (inner->join_output != NULL) {
        inner->join_output(inner);
    }
}

// ---- running ----------------------------------------------------------------------------------

static rondo_status run_item(const hosted_item *item) {
    rondo__kernel *inner = item->kernel->inner;
    const int32_t former = rondo__host_choose_thread_count(item->kernel->thread_count);
    const rondo_status status = inner->run(inner, item->inputs, item->outputs, item->workspace);
    (void)rondo__host_choose_thread_count(former);
    if (status != RONDO_STATUS_OK) {
        rondo__node_blame(item->kernel->node);
    }
    return status;
}

// On a thread of the driver. It calls nothing of the GPU's.
static void run_items(void *arguments) {
    const hosted_call *call = arguments;
    for (size_t i = 0; i < call->count; ++i) {
        if (run_item(&call->items[i]) != RONDO_STATUS_OK) {
            rondo__host_report_failure();
            return;
        }
    }
}

static hosted_item find_item(const rondo__item *item) {
    return (hosted_item){(hosted *)item->kernel, item->inputs, item->outputs, item->workspace};
}

rondo_status rondo__host_ops_run(const rondo__item *item) {
    const hosted_item found = find_item(item);
    return run_item(&found);
}

static rondo_status call_items(rondo_stream *stream, const hosted_call *call) {
    const size_t bytes = offsetof(hosted_call, items) + call->count * sizeof call->items[0];
    const char *name =
        call->count == 1 ? call->items[0].kernel->node->op.def->name : "ops of the processor";
    return rondo_stream_call_host(stream, name, run_items, call, bytes);
}

static rondo_status launch_one(rondo__kernel *head, rondo_stream *stream, const void *const *inputs,
                               void *const *outputs, void *workspace) {
    const hosted_call call = {.count = 1, .items = {{(hosted *)head, inputs, outputs, workspace}}};
    return call_items(stream, &call);
}

size_t rondo__host_ops_count(const rondo__plan *plan, size_t first, size_t end) {
    size_t count = 0;
    while (count < GROUP_MAX && first + count < end &&
           rondo__kernel_is_hosted(plan->items[first + count].kernel)) {
        count += 1;
    }
    return count;
}

rondo_status rondo__host_ops_launch(rondo_stream *stream, const rondo__item *items, size_t count) {
    hosted_call call = {.count = count};
    for (size_t i = 0; i < count; ++i) {
        call.items[i] = find_item(&items[i]);
    }
    return call_items(stream, &call);
}

// ---- preparing --------------------------------------------------------------------------------

static void destroy_hosted(rondo__kernel *head) {
    hosted *kernel = (hosted *)head;
    rondo__kernel_destroy(kernel->inner);
    rondo__free(kernel);
}

// The host device, and the forms that its kernels make of constants; of a caller's executor.
static rondo_status open_host(rondo_executor *executor) {
    if (executor->resources.host_device != NULL) {
        return RONDO_STATUS_OK;
    }
    rondo_device *device = NULL;
    RETURN_IF_ERROR(rondo_device_open("host", &device));
    const rondo_status status =
        rondo__shared_acquire_store(executor->main.source, device, RONDO_MEMORY_DEVICE,
                                    &executor->resources.host_weights.store);
    if (status != RONDO_STATUS_OK) {
        rondo_device_release(device);
        return status;
    }
    executor->resources.host_weights.budget = executor->resources.budget;
    executor->resources.host_device = device;
    return RONDO_STATUS_OK;
}

void rondo__host_ops_free(rondo_executor *executor) {
    if (executor->resources.host_device != NULL) {
        rondo__shared_release_store(executor->main.source, executor->resources.host_weights.store);
        rondo_device_release(executor->resources.host_device);
        executor->resources.host_device = NULL;
    }
}

// A kernel of the host device that can be run here and now. One of the program's own may put
// whatever it likes on a stream; then its plain C is taken.
static rondo_status prepare_inner(const rondo__kernel_request *request, rondo__kernel **out_inner) {
    rondo__kernel_request own = *request;
    RETURN_IF_ERROR(rondo__kernel_prepare(&own, out_inner));
    if ((*out_inner)->run != NULL) {
        return RONDO_STATUS_OK;
    }
    rondo__kernel_destroy(*out_inner);
    *out_inner = NULL;
    if (!rondo__op_has_compute(request->op->def)) {
        return rondo__op_fail_unsupported(
            request->op, "on the processor, beside a GPU, it needs a compute function");
    }
    own.use_reference = true;
    return rondo__kernel_prepare(&own, out_inner);
}

rondo_status rondo__host_ops_prepare(rondo_executor *executor, rondo__plan *plan,
                                     const rondo__kernel_request *request, const rondo__node *node,
                                     rondo__kernel **out_kernel) {
    *out_kernel = NULL;
    RETURN_IF_ERROR(open_host(executor));
    if (plan->host_weights.account == NULL) {
        rondo__weight_list_init(&executor->resources.host_weights, &plan->host_weights);
    }
    hosted *kernel = rondo__calloc(1, sizeof *kernel);
    if (kernel == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo__kernel_request own = *request;
    own.device = executor->resources.host_device;
    own.weights = &plan->host_weights;
    const size_t weight_count = plan->host_weights.count;
    const rondo_status status = prepare_inner(&own, &kernel->inner);
    if (status != RONDO_STATUS_OK) {
        rondo__weight_list_cut(&plan->host_weights, weight_count);
        rondo__free(kernel);
        return status;
    }
    kernel->node = node;
    kernel->thread_count = (int32_t)executor->options.thread_count;
    kernel->head = (rondo__kernel){.launch = launch_one,
                                   .destroy = destroy_hosted,
                                   .workspace_bytes = kernel->inner->workspace_bytes,
                                   .owned_inputs = UINT64_MAX,
                                   .in_place_inputs = kernel->inner->in_place_inputs,
                                   .keeps_addresses = true,
                                   .implementation = "host"};
    *out_kernel = &kernel->head;
    return RONDO_STATUS_OK;
}

// kernel/user_kernel.c — see user_kernel.h.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/user_kernel.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "device/stream.h"
#include "op/registered.h"

typedef struct user_kernel {
    rondo__kernel head;
    const rondo__op *op;  // outlives the kernel
    const rondo_op_kernel *functions;
    void *state;
    bool is_prepared;
    size_t input_count;
    size_t output_count;
    rondo_tensor tensors[];  // inputs, then outputs; a launch sets their addresses
} user_kernel;

static rondo_status launch_user(rondo__kernel *base, rondo_stream *stream,
                                const void *const *inputs, void *const *outputs, void *workspace) {
    user_kernel *kernel = (user_kernel *)base;
    rondo_tensor *made = kernel->tensors + kernel->input_count;
    rondo_device *device = rondo_stream_get_device(stream);
    for (size_t i = 0; i < kernel->input_count; ++i) {
        memcpy(&kernel->tensors[i].data, &inputs[i], sizeof inputs[i]);
        kernel->tensors[i].device = inputs[i] != NULL ? device : NULL;
    }
    for (size_t i = 0; i < kernel->output_count; ++i) {
        made[i].data = outputs[i];
        made[i].device = outputs[i] != NULL ? device : NULL;
    }
    const rondo_op_launch launch = {.struct_size = sizeof launch,
                                    .stream = stream,
                                    .input_count = kernel->input_count,
                                    .inputs = kernel->tensors,
                                    .output_count = kernel->output_count,
                                    .outputs = made,
                                    .workspace = base->workspace_bytes > 0 ? workspace : NULL,
                                    .workspace_bytes = base->workspace_bytes,
                                    .state = kernel->state};
    const uint64_t sequence = rondo_error_get_last()->sequence;
    rondo_op_node node = {kernel->op, NULL};
    const bool was_lent = rondo__stream_lend(stream);
    const rondo_status status = kernel->functions->launch(&node, &launch);
    rondo__stream_take_back(stream, was_lent);
    return rondo__user_op_note(kernel->op, status, sequence, "its launch function");
}

static void destroy_user(rondo__kernel *base) {
    user_kernel *kernel = (user_kernel *)base;
    if (kernel->is_prepared && kernel->functions->release != NULL) {
        kernel->functions->release(rondo__user_op_get(kernel->op->def)->definition.data,
                                   kernel->state);
    }
    rondo__free(kernel);
}

// Lets the program prepare the node. Values that are known ahead are shown to it.
static rondo_status prepare(user_kernel *kernel, const rondo__kernel_request *request) {
    rondo_op_preparation preparation = {
        .struct_size = sizeof preparation,
        .device = request->device,
        .input_count = kernel->input_count,
        .inputs = kernel->tensors,
        .output_count = kernel->output_count,
        .outputs = kernel->tensors + kernel->input_count,
        .capture = rondo__user_op_get(kernel->op->def)->definition.capture};
    static const rondo__capture_rule rules[] = {RONDO__CAPTURE_PROBE, RONDO__CAPTURE_YES,
                                                RONDO__CAPTURE_NEVER};
    if (kernel->functions->prepare != NULL) {
        const uint64_t sequence = rondo_error_get_last()->sequence;
        rondo_op_node node = {kernel->op, NULL};
        RETURN_IF_ERROR(rondo__user_op_note(kernel->op,
                                            kernel->functions->prepare(&node, &preparation),
                                            sequence, "its prepare function"));
        kernel->is_prepared = true;
    }
    if ((int)preparation.capture < RONDO_OP_CAPTURE_UNKNOWN ||
        preparation.capture > RONDO_OP_CAPTURE_NO) {
        return RONDO_OP_FAIL(kernel->op, INVALID, "its prepare function says capture %d",
                             (int)preparation.capture);
    }
    kernel->state = preparation.state;
    kernel->head.workspace_bytes = preparation.workspace_bytes;
    kernel->head.capture = rules[preparation.capture];
    kernel->head.reason = preparation.reason;
    return RONDO_STATUS_OK;
}

rondo_status rondo__kernel_prepare_user(const rondo__kernel_request *request,
                                        rondo__kernel **out_kernel) {
    const rondo_op_definition *definition = &rondo__user_op_get(request->op->def)->definition;
    const bool is_host = rondo_device_is_host(request->device);
    const rondo_op_kernel *functions = is_host ? &definition->host : &definition->cuda;
    if (functions->launch == NULL) {
        return rondo__op_fail_unsupported(request->op, is_host
                                                           ? "it has no launch function for host"
                                                           : "it has no launch function for cuda");
    }
    const size_t count = request->input_count + request->output_count;
    user_kernel *kernel = rondo__calloc(1, sizeof *kernel + count * sizeof(rondo_tensor));
    if (kernel == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    kernel->head =
        (rondo__kernel){.launch = launch_user, .destroy = destroy_user, .implementation = "own"};
    kernel->op = request->op;
    kernel->functions = functions;
    kernel->input_count = request->input_count;
    kernel->output_count = request->output_count;
    for (size_t i = 0; i < count; ++i) {
        const bool is_input = i < request->input_count;
        rondo__tensor_show_info(
            is_input ? &request->inputs[i] : &request->outputs[i - request->input_count],
            &kernel->tensors[i]);
    }
    const rondo_status status = prepare(kernel, request);
    if (status != RONDO_STATUS_OK) {
        destroy_user(&kernel->head);
        return status;
    }
    *out_kernel = &kernel->head;
    return RONDO_STATUS_OK;
}

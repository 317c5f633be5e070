// kernel/kernel.c — which room makes the kernel of an op.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/kernel.h"

#include "base/error.h"
#include "base/log/hook.h"
#include "kernel/all_reduce_kernel.h"
#include "kernel/random_kernel.h"
#include "kernel/user_kernel.h"
#include "op/draws.h"
#include "op/registered.h"

static const rondo__kernel_room *get_room(rondo_device *device) {
    return rondo_device_is_host(device) ? &rondo__kernel_room_host : &rondo__kernel_room_cuda;
}

static rondo_status check_shapes(const rondo__kernel_request *request) {
    for (size_t i = 0; i < request->input_count; ++i) {
        if (request->inputs[i].dtype != RONDO_DTYPE_NONE && !request->inputs[i].is_shape_known) {
            return RONDO_OP_FAIL(request->op, INTERNAL, "input %zu has no known shape yet", i);
        }
    }
    for (size_t i = 0; i < request->output_count; ++i) {
        if (request->outputs[i].dtype != RONDO_DTYPE_NONE && !request->outputs[i].is_shape_known) {
            return rondo__op_fail_unsupported(request->op,
                                              "the shape of an output depends on data");
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status prepare(const rondo__kernel_request *request, rondo__kernel **out_kernel) {
    *out_kernel = NULL;
    if (request->op->def->compute == NULL) {
        return rondo__op_fail_unsupported(request->op, "control flow is run by the executor");
    }
    RETURN_IF_ERROR(check_shapes(request));
    if (rondo__op_is_collective(request->op)) {
        return rondo__kernel_prepare_all_reduce(request, out_kernel);
    }
    if (rondo__op_draws(request->op, request->inputs, request->input_count)) {
        return rondo__kernel_prepare_random(request, out_kernel);
    }
    if ((request->op->def->flags & RONDO__OP_USER) != 0) {
        const bool wants_compute =
            request->use_reference && rondo__op_has_compute(request->op->def);
        const rondo_status status = wants_compute ? RONDO_STATUS_UNSUPPORTED
                                                  : rondo__kernel_prepare_user(request, out_kernel);
        if (status != RONDO_STATUS_UNSUPPORTED || !rondo_device_is_host(request->device) ||
            !rondo__op_has_compute(request->op->def)) {
            return status;
        }
    }
    return get_room(request->device)->prepare(request, out_kernel);
}

bool rondo__kernel_write(rondo_device *device, const rondo__kernel *kernel,
                         const rondo__weight_list *weights, rondo__text *out) {
    const rondo__kernel_room *room = get_room(device);
    return room->write != NULL && room->write(kernel, weights, out);
}

rondo_status rondo__kernel_prepare(const rondo__kernel_request *request,
                                   rondo__kernel **out_kernel) {
    rondo__hook_scope scope = {0};
    if (rondo__hook_is_on(RONDO__HOOK_SPANS)) {
        scope = rondo__hook_begin_named(RONDO__SPAN_TUNE, "prepare %.40s", request->op->def->name);
    }
    const rondo_status status = prepare(request, out_kernel);
    rondo__hook_leave(&scope);
    return status;
}

void rondo__kernel_survey(const rondo__kernel_request *request) {
    rondo__kernel_request survey = *request;
    rondo__kernel *kernel = NULL;
    rondo_error saved;
    const bool is_made_elsewhere =
        request->op->def->compute == NULL || rondo__op_is_collective(request->op) ||
        (request->op->def->flags & RONDO__OP_USER) != 0 ||
        rondo__op_draws(request->op, request->inputs, request->input_count);
    if (is_made_elsewhere || rondo_device_is_host(request->device)) {
        return;
    }
    rondo__error_save(&saved);
    survey.is_survey = true;
    if (prepare(&survey, &kernel) == RONDO_STATUS_OK) {
        rondo__kernel_destroy(kernel);
    }
    rondo__error_restore(&saved);
}

void rondo__kernel_get_level(rondo_device *device, char *text, size_t text_bytes) {
    get_room(device)->get_level(device, text, text_bytes);
}

void rondo__kernel_get_traits(rondo_device *device, rondo_dtype dtype,
                              rondo__kernel_traits *out_traits) {
    const bool is_host = rondo_device_is_host(device);
    const rondo__kernel_room *room = get_room(device);
    bool is_float = dtype == RONDO_DTYPE_F32 || dtype == RONDO_DTYPE_F16;
    *out_traits = (rondo__kernel_traits){
        // The host's convolutions read what a window sees as runs of [N, H, W, C], and so do
        // cuDNN's tensor core kernels in half precision; in single precision cuDNN prefers planes.
        .prefers_channels_last = is_float && (is_host || dtype == RONDO_DTYPE_F16),
        .fuses_bytes = is_float && !is_host,
        .splits_transposed = !is_host && dtype == RONDO_DTYPE_F16,  // on tensor cores
        .widens_images = !is_host && dtype == RONDO_DTYPE_F16,      // the same
        .fuses_convolution = is_float,
        .fuses_matmul = is_float,
        .fuses_attention = is_float && !is_host,
        .keeps_shares = is_host,
        .fuses_group_norm = is_float,
        .fuses_concat = is_float && !is_host,
        .fuses_elementwise = is_float,
        .fuses_gradients = is_float,
        .fuses_conv_weights = is_host || dtype == RONDO_DTYPE_F16,
        .fuses_conv_back = !is_host,
        .lays_filters = !is_host && dtype == RONDO_DTYPE_F16,
        .fuses_attention_back = !is_host && dtype == RONDO_DTYPE_F16,
        .fuses_norm = !is_host && dtype == RONDO_DTYPE_F16,
        .ends_batches = is_float && !is_host,
        .fuses_rows = is_float && !is_host,
        .fuses_few_rows = room->fuses_few_rows != NULL && dtype == RONDO_DTYPE_F16 &&
                          room->fuses_few_rows(device),
        .appends_attention =
            is_float && room->appends_attention != NULL && room->appends_attention(device),
        .adds_shortcuts = room->adds_shortcuts != NULL && dtype == RONDO_DTYPE_F16 &&
                          room->adds_shortcuts(device),
        // By the same kernel.
        .turns_products = room->adds_shortcuts != NULL && dtype == RONDO_DTYPE_F16 &&
                          room->adds_shortcuts(device),
    };
}

// kernel/host/host_reference.c — an op's plain C reference as a host kernel.
// SPDX-License-Identifier: Apache-2.0

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "kernel/host/host_families.h"
#include "kernel/host/host_kernel.h"

// ---- the plain C reference --------------------------------------------------------------------

// Tensor structs are built once; a run only sets their addresses.
typedef struct reference_kernel {
    rondo__host_kernel head;
    rondo_tensor *tensors;          // inputs, then planned outputs, then this run's outputs
    const rondo_tensor **pointers;  // inputs; NULL where absent
    bool *wants_output;
} reference_kernel;

static void deinit_reference(rondo__host_kernel *head) {
    reference_kernel *kernel = (reference_kernel *)head;
    rondo__free(kernel->tensors);
    rondo__free((void *)kernel->pointers);
    rondo__free(kernel->wants_output);
}

static rondo_status run_reference(rondo__host_kernel *head, const void *const *inputs,
                                  void *const *outputs, void *workspace) {
    (void)workspace;
    reference_kernel *kernel = (reference_kernel *)head;
    size_t input_count = head->input_count;
    size_t output_count = head->output_count;
    for (size_t i = 0; i < input_count; ++i) {
        memcpy(&kernel->tensors[i].data, &inputs[i], sizeof inputs[i]);
    }
    rondo_tensor *planned = kernel->tensors + input_count;
    rondo_tensor *actual = planned + output_count;
    for (size_t i = 0; i < output_count; ++i) {
        actual[i] = planned[i];
        actual[i].data = outputs[i];
    }
    rondo__compute compute = {
        .op = head->op,
        .input_count = input_count,
        .output_count = output_count,
        .inputs = kernel->pointers,
        .outputs = actual,
        .wants_output = kernel->wants_output,
    };
    rondo_status status = rondo__op_compute(&compute);
    for (size_t i = 0; i < output_count; ++i) {
        if (!kernel->wants_output[i]) {
            rondo_tensor_deinit(&actual[i]);
        }
    }
    return status;
}

rondo_status rondo__host_prepare_reference(const rondo__kernel_request *request,
                                           rondo__kernel **out_kernel) {
    rondo__host_kernel *head = rondo__host_kernel_create(
        request, sizeof(reference_kernel), "reference", run_reference, deinit_reference);
    if (head == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    reference_kernel *kernel = (reference_kernel *)head;
    size_t input_count = request->input_count;
    size_t output_count = request->output_count;
    head->base.in_place_inputs = (request->op->def->flags & RONDO__OP_IN_PLACE) != 0 ? 1 : 0;
    kernel->tensors = rondo__calloc(input_count + 2 * output_count, sizeof *kernel->tensors);
    kernel->pointers = rondo__calloc(input_count, sizeof *kernel->pointers);
    kernel->wants_output = rondo__calloc(output_count, sizeof *kernel->wants_output);
    if (kernel->tensors == NULL || kernel->pointers == NULL || kernel->wants_output == NULL) {
        rondo__kernel_destroy(&head->base);
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < input_count; ++i) {
        kernel->tensors[i].dtype = request->inputs[i].dtype;
        kernel->tensors[i].shape = request->inputs[i].shape;
        if (request->inputs[i].dtype != RONDO_DTYPE_NONE) {
            kernel->pointers[i] = &kernel->tensors[i];
        }
    }
    for (size_t i = 0; i < output_count; ++i) {
        kernel->tensors[input_count + i].dtype = request->outputs[i].dtype;
        kernel->tensors[input_count + i].shape = request->outputs[i].shape;
        kernel->wants_output[i] = request->outputs[i].dtype != RONDO_DTYPE_NONE;
    }
    *out_kernel = &head->base;
    return RONDO_STATUS_OK;
}

// ---- views ------------------------------------------------------------------------------------

typedef struct view_kernel {
    rondo__host_kernel head;
    size_t bytes;
} view_kernel;

static rondo_status run_view(rondo__host_kernel *head, const void *const *inputs,
                             void *const *outputs, void *workspace) {
    (void)workspace;
    size_t bytes = ((view_kernel *)head)->bytes;
    if (bytes > 0 && inputs[0] != outputs[0]) {
        memcpy(outputs[0], inputs[0], bytes);
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__host_prepare_view(const rondo__kernel_request *request,
                                      rondo__kernel **out_kernel) {
    rondo__host_kernel *head =
        rondo__host_kernel_create(request, sizeof(view_kernel), "copy", run_view, NULL);
    if (head == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    ((view_kernel *)head)->bytes = (size_t)rondo_shape_get_count(&request->inputs[0].shape) *
                                   rondo_dtype_get_bytes(request->inputs[0].dtype);
    *out_kernel = &head->base;
    return RONDO_STATUS_OK;
}

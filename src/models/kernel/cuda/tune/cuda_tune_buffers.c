// kernel/cuda/tune/cuda_tune_buffers.c — see cuda_tune_buffers.h.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/cuda/tune/cuda_tune_buffers.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/memory.h"
#include "cu_sources.h"
#include "device/device.h"

// Bytes that no second-level cache (50 MB on an H200, 126 on a B200) keeps beside others, and more
// than any has; and what copies of constants may take in all.
static const size_t kept_bytes = (size_t)32 << 20;
static const size_t cache_bytes = (size_t)128 << 20;
static const size_t copies_bytes = (size_t)256 << 20;

bool rondo__tune_is_cold(const rondo__kernel_request *request) {
    return request->constant_bytes > kept_bytes;
}

// ---- kernels of our own -----------------------------------------------------------------------

static rondo_status run(rondo__tune_buffers *buffers, const char *name,
                        const rondo__tune_buffer *buffer, size_t unit) {
    void *function = NULL;
    const struct {
        uint64_t memory;
        int64_t count;
    } arguments = {(uint64_t)(uintptr_t)buffer->memory,
                   (int64_t)(buffer->bytes * buffer->copies / unit)};
    if (arguments.count == 0) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(
        rondo__device_get_function(buffers->device, rondo__cu_noise, NULL, 0, name, &function));
    const rondo_launch launch = {
        .struct_size = sizeof launch,
        .name = name,
        .function = function,
        .grid = {512, 1, 1},
        .block = {256, 1, 1},
        .arguments = &arguments,
        .argument_bytes = sizeof(arguments),
    };
    return rondo_stream_launch(buffers->stream, &launch);
}

// ---- buffers ----------------------------------------------------------------------------------

static void free_buffer(rondo_device *device, rondo__tune_buffer *buffer) {
    rondo_memory_free(device, buffer->memory);
    *buffer = (rondo__tune_buffer){0};
}

// Room for `copies` of so many bytes, unless there is as much; for one where memory is short.
static rondo_status reserve(rondo__tune_buffers *buffers, size_t bytes, size_t copies,
                            rondo__tune_buffer *buffer) {
    void *memory = NULL;
    rondo_device *device = buffers->device;
    if (buffer->bytes >= bytes) {
        return RONDO_STATUS_OK;
    }
    free_buffer(device, buffer);
    bytes = rondo__align_up(bytes, 256);
    rondo_status status =
        rondo_memory_allocate(device, RONDO_MEMORY_DEVICE, bytes * copies, &memory);
    if (status == RONDO_STATUS_NO_DEVICE_MEMORY && copies > 1) {
        copies = 1;
        status = rondo_memory_allocate(device, RONDO_MEMORY_DEVICE, bytes, &memory);
    }
    RETURN_IF_ERROR(status);
    *buffer = (rondo__tune_buffer){.memory = memory, .bytes = bytes, .copies = copies};
    return run(buffers, "noise", buffer, 2);
}

static size_t get_bytes(const rondo__tensor_info *info) {
    return info->dtype == RONDO_DTYPE_NONE
               ? 0
               : (size_t)rondo_shape_get_count(&info->shape) * rondo_dtype_get_bytes(info->dtype);
}

// How often so many bytes of constants may be there.
static size_t count_copies(const rondo__tune_buffers *buffers, size_t bytes) {
    const size_t most = bytes > 0 ? copies_bytes / bytes : buffers->launches;
    return !buffers->is_cold || most < 1 ? 1 : most < buffers->launches ? most : buffers->launches;
}

rondo_status rondo__tune_buffers_init(const rondo__cuda_kernel *kernel, size_t launches,
                                      rondo__tune_buffers *out_buffers) {
    const rondo__kernel_request *request = kernel->request;
    const size_t input_count = request->input_count + RONDO__CUDA_FORMS_MAX;
    *out_buffers = (rondo__tune_buffers){
        .device = request->device,
        .request = request,
        .kernel = kernel,
        .launches = launches,
        .is_cold = rondo__tune_is_cold(request),
        .inputs = rondo__calloc(input_count, sizeof *out_buffers->inputs),
        .outputs = rondo__calloc(request->output_count + 1, sizeof *out_buffers->outputs),
        .input_list = rondo__calloc(input_count, sizeof(void *)),
        .output_list = rondo__calloc(request->output_count + 1, sizeof(void *)),
    };
    if (out_buffers->inputs == NULL || out_buffers->outputs == NULL ||
        out_buffers->input_list == NULL || out_buffers->output_list == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    return rondo_stream_create(request->device, NULL, &out_buffers->stream);
}

void rondo__tune_buffers_deinit(rondo__tune_buffers *buffers) {
    const rondo__kernel_request *request = buffers->request;
    for (size_t i = 0; i < request->input_count + RONDO__CUDA_FORMS_MAX && buffers->inputs != NULL;
         i++) {
        free_buffer(buffers->device, &buffers->inputs[i]);
    }
    for (size_t i = 0; i < request->output_count && buffers->outputs != NULL; i++) {
        free_buffer(buffers->device, &buffers->outputs[i]);
    }
    for (size_t i = 0; i < RONDO__CUDA_FORMS_MAX; i++) {
        free_buffer(buffers->device, &buffers->forms[i]);
    }
    free_buffer(buffers->device, &buffers->workspace);
    free_buffer(buffers->device, &buffers->other);
    rondo__free(buffers->inputs);
    rondo__free(buffers->outputs);
    rondo__free(buffers->input_list);
    rondo__free(buffers->output_list);
    rondo_stream_destroy(buffers->stream);
}

// The constants that candidates read, in bytes.
static size_t count_constants(const rondo__tune_buffers *buffers,
                              const rondo__cuda_kernel *candidate, uint64_t owned) {
    const rondo__kernel_request *request = buffers->request;
    size_t bytes = 0;
    for (size_t i = 0; i < request->input_count; i++) {
        const bool is_read = request->inputs[i].constant != NULL && (owned >> i & 1) == 0;
        bytes += is_read ? get_bytes(&request->inputs[i]) : 0;
    }
    for (size_t i = 0; i < buffers->kernel->form_count; i++) {
        bytes += buffers->kernel->form_bytes[i];
    }
    for (size_t i = 0; i < candidate->form_count; i++) {
        bytes += candidate->form_bytes[i];
    }
    return bytes;
}

static rondo_status reserve_inputs(rondo__tune_buffers *buffers,
                                   const rondo__cuda_kernel *candidate) {
    const rondo__kernel_request *request = buffers->request;
    const uint64_t owned = (buffers->kernel->head.owned_inputs | candidate->head.owned_inputs) &
                           ~request->brought_inputs;
    const size_t copies = count_copies(buffers, count_constants(buffers, candidate, owned));
    for (size_t i = 0; i < request->input_count; i++) {
        const bool is_constant = request->inputs[i].constant != NULL;
        if (request->inputs[i].dtype != RONDO_DTYPE_NONE && (owned >> i & 1) == 0) {
            RETURN_IF_ERROR(reserve(buffers, get_bytes(&request->inputs[i]),
                                    is_constant ? copies : 1, &buffers->inputs[i]));
        }
    }
    for (size_t i = 0; i < buffers->kernel->form_count; i++) {
        RETURN_IF_ERROR(
            reserve(buffers, buffers->kernel->form_bytes[i], copies, &buffers->forms[i]));
    }
    for (size_t i = 0; i < candidate->form_count; i++) {
        RETURN_IF_ERROR(reserve(buffers, candidate->form_bytes[i], copies,
                                &buffers->inputs[request->input_count + i]));
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__tune_buffers_prepare(rondo__tune_buffers *buffers,
                                         const rondo__cuda_kernel *candidate) {
    const rondo__kernel_request *request = buffers->request;
    RETURN_IF_ERROR(reserve_inputs(buffers, candidate));
    for (size_t i = 0; i < request->output_count; i++) {
        if (request->outputs[i].dtype != RONDO_DTYPE_NONE) {
            RETURN_IF_ERROR(
                reserve(buffers, get_bytes(&request->outputs[i]), 1, &buffers->outputs[i]));
        }
    }
    if (candidate->head.workspace_bytes > 0) {
        RETURN_IF_ERROR(reserve(buffers, candidate->head.workspace_bytes, 1, &buffers->workspace));
    }
    const rondo_status status =
        buffers->is_cold ? reserve(buffers, cache_bytes, 1, &buffers->other) : RONDO_STATUS_OK;
    if (status != RONDO_STATUS_NO_DEVICE_MEMORY) {
        return status;
    }
    buffers->is_cold = false;  // better so than not at all
    return RONDO_STATUS_OK;
}

// ---- launches ---------------------------------------------------------------------------------

static void *get_copy(const rondo__tune_buffer *buffer, size_t index) {
    return buffer->memory == NULL ? NULL : buffer->memory + index % buffer->copies * buffer->bytes;
}

rondo_status rondo__tune_buffers_launch(const rondo__tune_buffers *buffers,
                                        rondo__cuda_kernel *candidate, size_t index) {
    const rondo__kernel_request *request = buffers->request;
    rondo__moved_form moved[RONDO__CUDA_FORMS_MAX];
    for (size_t i = 0; i < request->input_count + RONDO__CUDA_FORMS_MAX; i++) {
        buffers->input_list[i] = get_copy(&buffers->inputs[i], index);
    }
    for (size_t i = 0; i < request->output_count; i++) {
        buffers->output_list[i] = get_copy(&buffers->outputs[i], index);
    }
    for (size_t i = 0; i < buffers->kernel->form_count; i++) {
        moved[i].from = buffers->kernel->forms[i];
        moved[i].to = get_copy(&buffers->forms[i], index);
    }
    const rondo__cuda_arguments arguments = {
        .inputs = buffers->input_list,
        .outputs = buffers->output_list,
        .workspace = buffers->workspace.memory,
        .moved_count = buffers->kernel->form_count,
        .moved = moved,
    };
    return rondo__cuda_run_steps(candidate, buffers->stream, &arguments);
}

rondo_status rondo__tune_buffers_launch_neighbour(const rondo__tune_buffers *buffers) {
    rondo_device_info info = {.struct_size = sizeof info};
    void *function = NULL;
    RETURN_IF_ERROR(rondo__device_get_facts(buffers->device, &info));
    RETURN_IF_ERROR(rondo__device_get_function(buffers->device, rondo__cu_noise, NULL, 0,
                                               "neighbour", &function));
    const rondo_launch launch = {
        .struct_size = sizeof launch,
        .name = "neighbour",
        .function = function,
        .grid = {info.compute_units > 0 ? (uint32_t)info.compute_units : 1, 1, 1},
        .block = {128, 1, 1},
        .flags = RONDO_LAUNCH_OVERLAP,
    };
    return rondo_stream_launch(buffers->stream, &launch);
}

rondo_status rondo__tune_buffers_chill(rondo__tune_buffers *buffers) {
    return buffers->is_cold ? run(buffers, "look", &buffers->other, 16) : RONDO_STATUS_OK;
}

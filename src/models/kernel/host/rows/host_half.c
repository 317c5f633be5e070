// kernel/host/rows/host_half.c — see host_half.h.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/host/rows/host_half.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/memory.h"
#include "kernel/host/host_kernel.h"
#include "kernel/host/host_threads.h"
#include "op/half.h"

typedef struct conversion {
    bool is_needed;
    size_t offset;  // of the f32 form in the workspace
    int64_t count;  // of elements
} conversion;

typedef struct half_kernel {
    rondo__host_kernel head;
    rondo__host_kernel *inner;
    conversion *conversions;    // inputs, then outputs
    rondo_tensor *constants;    // widened; one for each input, empty where there is none
    rondo__tensor_info *infos;  // of the widened request, while `inner` is prepared
    const void **inputs;        // scratch of a run
    void **outputs;
} half_kernel;

static void deinit_half(rondo__host_kernel *head) {
    half_kernel *kernel = (half_kernel *)head;
    if (kernel->inner != NULL) {
        rondo__kernel_destroy(&kernel->inner->base);
    }
    for (size_t i = 0; kernel->constants != NULL && i < head->input_count; ++i) {
        rondo_tensor_deinit(&kernel->constants[i]);
    }
    rondo__free(kernel->constants);
    rondo__free(kernel->conversions);
    rondo__free(kernel->infos);
    rondo__free((void *)kernel->inputs);
    rondo__free(kernel->outputs);
}

enum { CHUNK = 1 << 14 };  // elements that are worth a thread's while

typedef struct converting {
    uint16_t *half;
    float *wide;
} converting;

static void widen_part(void *data, int64_t first, int64_t end) {
    const converting *c = data;
    rondo__half_to_float_array(RONDO_DTYPE_F16, c->half + first, c->wide + first,
                               (size_t)(end - first));
}

static void narrow_part(void *data, int64_t first, int64_t end) {
    const converting *c = data;
    rondo__half_from_float_array(RONDO_DTYPE_F16, c->wide + first, c->half + first,
                                 (size_t)(end - first));
}

static rondo_status run_half(rondo__host_kernel *head, const void *const *inputs,
                             void *const *outputs, void *workspace) {
    half_kernel *kernel = (half_kernel *)head;
    rondo__host_kernel *inner = kernel->inner;
    for (uint32_t i = 0; i < head->input_count; ++i) {
        const conversion *c = &kernel->conversions[i];
        kernel->inputs[i] = inner->constants[i] != NULL ? inner->constants[i] : inputs[i];
        if (c->is_needed && inner->constants[i] == NULL) {
            float *wide = (float *)((char *)workspace + c->offset);
            converting one = {.wide = wide};
            memcpy(&one.half, &inputs[i], sizeof one.half);  // only read
            rondo__workers_loop(c->count, CHUNK, widen_part, &one);
            kernel->inputs[i] = wide;
        }
    }
    for (uint32_t i = 0; i < head->output_count; ++i) {
        const conversion *c = &kernel->conversions[head->input_count + i];
        kernel->outputs[i] = c->is_needed ? (char *)workspace + c->offset : outputs[i];
    }
    rondo_status status = inner->run(inner, kernel->inputs, kernel->outputs, workspace);
    for (uint32_t i = 0; i < head->output_count && status == RONDO_STATUS_OK; ++i) {
        const conversion *c = &kernel->conversions[head->input_count + i];
        if (c->is_needed) {
            converting one = {outputs[i], kernel->outputs[i]};
            rondo__workers_loop(c->count, CHUNK, narrow_part, &one);
        }
    }
    return status;
}

static bool has_half(const rondo__kernel_request *request) {
    bool found = false;
    for (size_t i = 0; i < request->input_count; ++i) {
        found = found || request->inputs[i].dtype == RONDO_DTYPE_F16;
    }
    for (size_t i = 0; i < request->output_count; ++i) {
        found = found || request->outputs[i].dtype == RONDO_DTYPE_F16;
    }
    return found;
}

// The request in f32.
static rondo_status widen_request(const rondo__kernel_request *request, half_kernel *kernel,
                                  rondo__kernel_request *out_wide) {
    rondo__tensor_info *infos = kernel->infos;
    const size_t input_count = request->input_count;
    memcpy(infos, request->inputs, input_count * sizeof *infos);
    memcpy(infos + input_count, request->outputs, request->output_count * sizeof *infos);
    for (size_t i = 0; i < input_count + request->output_count; ++i) {
        if (infos[i].dtype != RONDO_DTYPE_F16) {
            continue;
        }
        infos[i].dtype = RONDO_DTYPE_F32;
        kernel->conversions[i] =
            (conversion){.is_needed = true, .count = rondo_shape_get_count(&infos[i].shape)};
        if (i < input_count && infos[i].constant != NULL) {
            rondo_tensor *wide = &kernel->constants[i];
            RETURN_IF_ERROR(rondo_tensor_init(RONDO_DTYPE_F32, &infos[i].shape, wide));
            rondo__half_to_float_array(RONDO_DTYPE_F16, infos[i].constant->data, wide->data,
                                       (size_t)kernel->conversions[i].count);
            infos[i].constant = wide;
        }
    }
    *out_wide = *request;
    out_wide->inputs = infos;
    out_wide->outputs = infos + input_count;
    return RONDO_STATUS_OK;
}

// Places for the f32 forms, behind what the f32 kernel itself needs.
static void lay_out(half_kernel *kernel) {
    size_t bytes = rondo__align_up(kernel->inner->base.workspace_bytes, 256);
    const size_t count = (size_t)kernel->head.input_count + kernel->head.output_count;
    for (size_t i = 0; i < count; ++i) {
        conversion *c = &kernel->conversions[i];
        const bool is_ready = i < kernel->head.input_count && kernel->inner->constants[i] != NULL;
        if (c->is_needed && !is_ready) {
            c->offset = bytes;
            bytes += rondo__align_up((size_t)c->count * sizeof(float), 256);
        }
    }
    kernel->head.base.workspace_bytes = bytes;
}

rondo_status rondo__host_half_begin(const rondo__kernel_request *request, rondo__kernel **out_half,
                                    rondo__kernel_request *out_wide) {
    const size_t count = request->input_count + request->output_count;
    *out_half = NULL;
    if (!has_half(request)) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    rondo__host_kernel *head =
        rondo__host_kernel_create(request, sizeof(half_kernel), "", run_half, deinit_half);
    half_kernel *kernel = (half_kernel *)head;
    if (kernel == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    *out_half = &head->base;
    kernel->infos = rondo__calloc(count, sizeof *kernel->infos);
    kernel->conversions = rondo__calloc(count, sizeof *kernel->conversions);
    kernel->constants = rondo__calloc(request->input_count, sizeof *kernel->constants);
    kernel->inputs = rondo__calloc(request->input_count, sizeof *kernel->inputs);
    kernel->outputs = rondo__calloc(request->output_count, sizeof *kernel->outputs);
    if (kernel->infos == NULL || kernel->conversions == NULL || kernel->constants == NULL ||
        kernel->inputs == NULL || kernel->outputs == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    return widen_request(request, kernel, out_wide);
}

void rondo__host_half_end(rondo__kernel *half, rondo__kernel *inner) {
    half_kernel *kernel = (half_kernel *)half;
    kernel->inner = (rondo__host_kernel *)inner;
    half->implementation = inner->implementation;
    lay_out(kernel);
    rondo__free(kernel->infos);
    kernel->infos = NULL;
}

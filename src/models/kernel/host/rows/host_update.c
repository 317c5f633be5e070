// kernel/host/rows/host_update.c — rondo.Update of f32: blocks of all tensors, dealt out to
// threads; each goes through all ops while it is in the cache.
// SPDX-License-Identifier: Apache-2.0
#include "op/fused/update.h"

#include <string.h>

#include "collective/communicator.h"
#include "kernel/host/host_families.h"
#include "kernel/host/host_kernel.h"
#include "kernel/host/host_threads.h"
#include "kernel/host/simd/simd.h"

enum { BLOCK = 512 };  // elements; all results of a block are 48 KiB of stack

typedef struct update_kernel {
    rondo__host_kernel head;
    const rondo__simd *simd;
    rondo__update_form form;
    int64_t grain;
    int64_t block_count;
    int64_t from[RONDO__UPDATE_KEPT_MAX];  // elements of a tensor
    int64_t ends[RONDO__UPDATE_KEPT_MAX];
    int64_t first[RONDO__UPDATE_KEPT_MAX];  // block of a tensor
} update_kernel;

typedef struct update_run {
    const update_kernel *kernel;
    const void *const *inputs;
    void *const *outputs;
    bool applies;
} update_run;

typedef struct block {
    const float *operands[RONDO__UPDATE_SCALARS_MAX + RONDO__UPDATE_WIDTH_MAX];
    float made[RONDO__UPDATE_OPS_MAX][BLOCK];
    int64_t count;
} block;

static const float *locate(const rondo__update_form *form, const block *b, int32_t operand) {
    const int32_t given = form->scalar_count + form->width;
    return operand < given ? b->operands[operand] : b->made[operand - given];
}

static void run_op(const update_kernel *kernel, block *b, int32_t i) {
    const rondo__update_form *form = &kernel->form;
    const rondo__scalar_op op = form->ops[i];
    const int32_t from = form->operands[i][0];
    const int32_t other = form->operands[i][1];
    const float *x = locate(form, b, from);
    const bool is_single = from < form->scalar_count;
    if (other < 0) {
        float one;
        kernel->simd->unary[op](x, is_single ? &one : b->made[i], is_single ? 1 : b->count,
                                form->alphas[i], form->betas[i]);
        for (int64_t k = 0; is_single && k < b->count; ++k) {
            b->made[i][k] = one;
        }
        return;
    }
    const float *y = locate(form, b, other);
    const bool is_other_single = other < form->scalar_count;
    if (is_single && is_other_single) {
        float one;
        kernel->simd->binary[op](x, y, &one, 1);
        for (int64_t k = 0; k < b->count; ++k) {
            b->made[i][k] = one;
        }
    } else if (is_single) {
        kernel->simd->binary_scalar_a[op](x, y, b->made[i], b->count);
    } else if (is_other_single) {
        kernel->simd->binary_scalar_b[op](x, y, b->made[i], b->count);
    } else {
        kernel->simd->binary[op](x, y, b->made[i], b->count);
    }
}

static void run_block(const update_run *run, int32_t t, int64_t begin) {
    const update_kernel *kernel = run->kernel;
    const rondo__update_form *form = &kernel->form;
    const int64_t rest = kernel->ends[t] - begin;
    block b;  // what is made is not cleared first: that took a quarter of the time
    b.count = rest < BLOCK ? rest : BLOCK;
    const size_t bytes = (size_t)b.count * sizeof(float);
    for (int32_t i = 0; i < form->scalar_count; ++i) {
        b.operands[i] = run->inputs[(form->is_conditional ? 1 : 0) + i];
    }
    for (int32_t i = 0; i < form->width; ++i) {
        b.operands[form->scalar_count + i] =
            (const float *)run->inputs[rondo__update_input(form, t, i)] + begin;
    }
    for (int32_t i = 0; i < form->op_count && run->applies; ++i) {
        run_op(kernel, &b, i);
    }
    for (int32_t k = 0; k < form->result_count; ++k) {
        float *y = (float *)run->outputs[t * form->result_count + k] + begin;
        const float *kept = b.operands[form->scalar_count + form->keeps[k]];
        if (run->applies || y != kept) {
            memcpy(y, run->applies ? b.made[form->results[k]] : kept, bytes);
        }
    }
}

static void run_blocks(void *data, int64_t first, int64_t end) {
    const update_run *run = data;
    int32_t t = 0;
    for (int64_t i = first; i < end; ++i) {
        while (t + 1 < run->kernel->form.tensor_count && i >= run->kernel->first[t + 1]) {
            ++t;
        }
        run_block(run, t, run->kernel->from[t] + (i - run->kernel->first[t]) * BLOCK);
    }
}

static rondo_status run_update(rondo__host_kernel *head, const void *const *inputs,
                               void *const *outputs, void *workspace) {
    (void)workspace;
    const update_kernel *kernel = (const update_kernel *)head;
    update_run run = {kernel, inputs, outputs, true};
    run.applies = !kernel->form.is_conditional || *(const uint8_t *)inputs[0] != 0;
    rondo__workers_loop(kernel->block_count, kernel->grain, run_blocks, &run);
    return RONDO_STATUS_OK;
}

rondo_status rondo__host_prepare_update(const rondo__kernel_request *request,
                                        rondo__kernel **out_kernel) {
    rondo__update_form form;
    if (request->output_count > RONDO__UPDATE_KEPT_MAX ||
        !rondo__update_read(request->op, request->input_count, request->output_count, &form)) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    for (size_t i = form.is_conditional ? 1 : 0; i < request->input_count; ++i) {
        if (request->inputs[i].dtype != RONDO_DTYPE_F32) {
            return RONDO_STATUS_UNSUPPORTED;
        }
    }
    for (size_t i = 0; i < request->output_count; ++i) {
        if (request->outputs[i].dtype == RONDO_DTYPE_NONE) {
            return RONDO_STATUS_UNSUPPORTED;
        }
    }
    rondo__host_kernel *head =
        rondo__host_kernel_create(request, sizeof(update_kernel), "simd", run_update, NULL);
    if (head == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    update_kernel *kernel = (update_kernel *)head;
    kernel->simd = rondo__simd_get();
    kernel->form = form;
    for (int32_t t = 0; t < form.tensor_count; ++t) {
        size_t from;
        size_t count;
        rondo__communicator_get_part(
            form.is_shared ? request->communicator : NULL,
            (size_t)rondo_shape_get_count(&request->inputs[rondo__update_input(&form, t, 0)].shape),
            &from, &count);
        kernel->from[t] = (int64_t)from;
        kernel->ends[t] = (int64_t)(from + count);
        kernel->first[t] = kernel->block_count;
        kernel->block_count += ((int64_t)count + BLOCK - 1) / BLOCK;
        for (int32_t k = 0; k < form.result_count; ++k) {
            head->base.kept[head->base.kept_count++] =
                (rondo__kernel_kept){.input = (int32_t)rondo__update_input(&form, t, form.keeps[k]),
                                     .output = t * form.result_count + k};
        }
    }
    const double bytes =
        (double)kernel->block_count * BLOCK * sizeof(float) * (double)(form.width + form.op_count);
    kernel->grain = rondo__host_get_grain(kernel->block_count, bytes, 0.0);
    *out_kernel = &head->base;
    return RONDO_STATUS_OK;
}

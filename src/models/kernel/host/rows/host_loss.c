// kernel/host/rows/host_loss.c — SoftmaxCrossEntropyLoss over rows of f32 without weights, and
// rondo.LossGradient. A unit of work is one row.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "kernel/host/host_families.h"
#include "kernel/host/host_kernel.h"
#include "kernel/host/host_threads.h"
#include "kernel/host/simd/simd.h"
#include "op/support.h"

typedef struct loss_kernel {
    rondo__host_kernel head;
    const rondo__simd *simd;
    int64_t rows, classes;
    int64_t grain;
    bool has_ignored, is_wide;  // labels are I64
    int64_t ignored;
    char reduction;  // the first letter
} loss_kernel;

typedef struct loss_run {
    const loss_kernel *kernel;
    const float *x, *share;
    const void *labels;
    float *y;        // of the gradient, or the logarithms; NULL: not wanted
    double *losses;  // [rows]
} loss_run;

static int64_t get_label(const loss_run *run, int64_t row) {
    return run->kernel->is_wide ? ((const int64_t *)run->labels)[row]
                                : ((const int32_t *)run->labels)[row];
}

static void find_losses(void *data, int64_t first, int64_t end) {
    const loss_run *run = data;
    const loss_kernel *kernel = run->kernel;
    const int64_t classes = kernel->classes;
    for (int64_t row = first; row < end; ++row) {
        const float *x = run->x + row * classes;
        const float maximum = kernel->simd->maximum(x, classes);
        const double logarithm = log(kernel->simd->sum_exp(x, classes, maximum));
        const int64_t label = get_label(run, row);
        const bool is_in = label >= 0 && label < classes;
        run->losses[row] = is_in ? logarithm - ((double)x[label] - (double)maximum) : 0.0;
        for (int64_t c = 0; run->y != NULL && c < classes; ++c) {
            run->y[row * classes + c] = x[c] - maximum - (float)logarithm;
        }
    }
}

static rondo_status run_loss(rondo__host_kernel *head, const void *const *inputs,
                             void *const *outputs, void *workspace) {
    const loss_kernel *kernel = (const loss_kernel *)head;
    loss_run run = {.kernel = kernel,
                    .x = inputs[0],
                    .labels = inputs[1],
                    .y = head->output_count > 1 ? outputs[1] : NULL,
                    .losses = workspace};
    double sum = 0.0;
    int64_t counted = 0;
    rondo__workers_loop(kernel->rows, kernel->grain, find_losses, &run);
    for (int64_t row = 0; row < kernel->rows; ++row) {
        const int64_t label = get_label(&run, row);
        if (kernel->has_ignored && label == kernel->ignored) {
            run.losses[row] = 0.0;
            continue;
        }
        if (label < 0 || label >= kernel->classes) {
            return RONDO_OP_FAIL(head->op, BAD_DATA, "label %lld is outside [0, %lld)",
                                 (long long)label, (long long)kernel->classes);
        }
        sum += run.losses[row];
        counted += 1;
    }
    float *loss = outputs[0];
    if (kernel->reduction == 'n') {
        for (int64_t row = 0; row < kernel->rows; ++row) {
            loss[row] = (float)run.losses[row];
        }
    } else if (loss != NULL) {
        *loss = (float)(kernel->reduction == 'm' ? sum / (double)counted : sum);
    }
    return RONDO_STATUS_OK;
}

static void change_rows(void *data, int64_t first, int64_t end) {
    const loss_run *run = data;
    const loss_kernel *kernel = run->kernel;
    const int64_t classes = kernel->classes;
    for (int64_t row = first; row < end; ++row) {
        float *y = run->y + row * classes;
        const int64_t label = get_label(run, row);
        if (run->share[row] == 0.0f) {
            memset(y, 0, (size_t)classes * sizeof *y);
            continue;
        }
        kernel->simd->softmax(run->x + row * classes, y, classes);
        if (label >= 0 && label < classes) {
            y[label] -= 1.0f;
        }
        kernel->simd->binary_scalar_b[RONDO__SCALAR_Mul](y, run->share + row, y, classes);
    }
}

static rondo_status run_change(rondo__host_kernel *head, const void *const *inputs,
                               void *const *outputs, void *workspace) {
    (void)workspace;
    const loss_kernel *kernel = (const loss_kernel *)head;
    loss_run run = {
        .kernel = kernel, .x = inputs[0], .labels = inputs[1], .share = inputs[2], .y = outputs[0]};
    rondo__workers_loop(kernel->rows, kernel->grain, change_rows, &run);
    return RONDO_STATUS_OK;
}

rondo_status rondo__host_prepare_loss(const rondo__kernel_request *request,
                                      rondo__kernel **out_kernel) {
    const rondo_shape *x = &request->inputs[0].shape;
    const bool is_back = request->op->def->id == RONDO__FUSED_LossGradient;
    const bool has_weights =
        !is_back && request->input_count > 2 && request->inputs[2].dtype != RONDO_DTYPE_NONE;
    if (request->inputs[0].dtype != RONDO_DTYPE_F32 || has_weights || x->rank < 2 ||
        request->outputs[0].dtype != RONDO_DTYPE_F32 || rondo__shape_multiply(x, 2, x->rank) != 1 ||
        (is_back && request->inputs[2].dtype != RONDO_DTYPE_F32)) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    rondo__host_kernel *head = rondo__host_kernel_create(request, sizeof(loss_kernel), "simd",
                                                         is_back ? run_change : run_loss, NULL);
    if (head == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    loss_kernel *kernel = (loss_kernel *)head;
    kernel->simd = rondo__simd_get();
    kernel->rows = x->extent[0];
    kernel->classes = x->extent[1];
    kernel->is_wide = request->inputs[1].dtype == RONDO_DTYPE_I64;
    kernel->has_ignored = rondo__op_find(request->op, "ignore_index") != NULL;
    kernel->ignored = rondo__op_get_int(request->op, "ignore_index", 0);
    kernel->reduction = *rondo__op_get_string(request->op, "reduction", "mean");
    kernel->grain = rondo__host_get_grain(
        kernel->rows, 16.0 * (double)rondo_shape_get_count(x) * sizeof(float), 0.0);
    head->base.workspace_bytes = is_back ? 0 : (size_t)kernel->rows * sizeof(double);
    *out_kernel = &head->base;
    return RONDO_STATUS_OK;
}

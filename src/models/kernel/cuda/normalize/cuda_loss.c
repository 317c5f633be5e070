// kernel/cuda/normalize/cuda_loss.c — losses of labels, and rondo.LossGradient; see loss.cu.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "cu_sources.h"
#include "kernel/cuda/cuda_families.h"

enum { WARP = 32, WARP_LENGTH_MAX = 1024 };

// [batch, length, inner], and as many lines as batch times inner.
typedef struct line_set {
    int64_t lines, length, inner;
} line_set;

static line_set find_lines(const rondo_shape *x) {
    line_set set = {.length = x->extent[1], .inner = rondo__cuda_product(x, 2, x->rank)};
    set.lines = x->extent[0] * set.inner;
    return set;
}

static rondo__step *add_lines(rondo__cuda_kernel *kernel, rondo__defines *defines, const char *name,
                              const line_set *set) {
    const int64_t lanes = set->inner > 1                  ? 1
                          : set->length > WARP_LENGTH_MAX ? RONDO__CUDA_BLOCK
                                                          : WARP;
    rondo__define_int(defines, "LANES", lanes);
    rondo__step *step = rondo__cuda_add_launch(
        kernel, rondo__cu_loss, defines, name,
        (set->lines * lanes + RONDO__CUDA_BLOCK - 1) / RONDO__CUDA_BLOCK, RONDO__CUDA_BLOCK);
    rondo__step_int(step, set->lines);
    return step;
}

static void push_loss(rondo__step *step, const rondo__cuda_kernel *kernel, const line_set *set,
                      const char *reduction, rondo__address parts) {
    const rondo__op *op = kernel->request->op;
    const bool is_each = strcmp(reduction, "none") == 0;
    rondo__step_input(step, 0);
    rondo__step_input(step, 1);
    rondo__step_optional_input(step, kernel, 2);
    if (is_each && rondo__cuda_wants_output(kernel, 0)) {
        rondo__step_output(step, 0);
    } else {
        rondo__step_int(step, 0);
    }
    rondo__step_optional_output(step, kernel, 1);
    rondo__step_address(step, parts);
    rondo__step_int(step, set->length);
    rondo__step_int(step, set->inner);
    rondo__step_int(step, rondo__op_find(op, "ignore_index") != NULL);
    rondo__step_int(step, rondo__op_get_int(op, "ignore_index", 0));
    rondo__step_output(step, 0);
    rondo__step_int(step, strcmp(reduction, "mean") == 0);
    rondo__step_faults(step, kernel, RONDO__FAULT_LABEL);
}

void rondo__cuda_prepare_loss(rondo__cuda_kernel *kernel) {
    const rondo__op *op = kernel->request->op;
    const rondo__tensor_info *x = rondo__cuda_input(kernel, 0);
    const char *reduction = rondo__op_get_string(op, "reduction", "mean");
    rondo__defines defines = {0};
    const line_set set = find_lines(&x->shape);
    const rondo__address parts = rondo__address_workspace(
        rondo__cuda_reserve_workspace(kernel, (size_t)set.lines * 2 * sizeof(double)));
    rondo__define_type(&defines, "T", x->dtype);
    rondo__define_type(&defines, "I", rondo__cuda_input(kernel, 1)->dtype);
    rondo__define_int(&defines, "SOFTMAX", op->def->id == RONDO__OP_SoftmaxCrossEntropyLoss);
    push_loss(add_lines(kernel, &defines, "loss_lines", &set), kernel, &set, reduction, parts);
    if (strcmp(reduction, "none") != 0 && rondo__cuda_wants_output(kernel, 0)) {
        rondo__step *step = rondo__cuda_add_launch(kernel, rondo__cu_loss, &defines, "loss_total",
                                                   1, RONDO__CUDA_BLOCK);
        rondo__step_int(step, set.lines);
        push_loss(step, kernel, &set, reduction, parts);
    }
}

// rondo.LossGradient(scores, labels, share).
void rondo__cuda_prepare_loss_gradient(rondo__cuda_kernel *kernel) {
    const line_set set = find_lines(&rondo__cuda_input(kernel, 0)->shape);
    rondo__defines defines = {0};
    rondo__define_type(&defines, "T", rondo__cuda_input(kernel, 0)->dtype);
    rondo__define_type(&defines, "Y", rondo__cuda_output(kernel, 0)->dtype);
    rondo__define_type(&defines, "I", rondo__cuda_input(kernel, 1)->dtype);
    rondo__step *step = add_lines(kernel, &defines, "loss_change", &set);
    for (size_t i = 0; i < 3; i++) {
        rondo__step_input(step, i);
    }
    rondo__step_output(step, 0);
    rondo__step_int(step, set.length);
    rondo__step_int(step, set.inner);
}

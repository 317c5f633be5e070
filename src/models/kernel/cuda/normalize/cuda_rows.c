// kernel/cuda/normalize/cuda_rows.c — LpNormalization, Hardmax and the losses; see rows.cu.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "cu_sources.h"
#include "kernel/cuda/cuda_families.h"

typedef struct line_set {
    int64_t lines, length, inner;
} line_set;

static rondo__step *add_lines(rondo__cuda_kernel *kernel, rondo__defines *defines, const char *name,
                              const line_set *set) {
    const int64_t lanes = set->inner > 1 ? 1 : 32;
    rondo__define_int(defines, "LANES", lanes);
    rondo__step *step =
        rondo__cuda_add_launch(kernel, rondo__cu_rows, defines, name,
                               rondo__cuda_blocks(set->lines * lanes), RONDO__CUDA_BLOCK);
    rondo__step_int(step, set->lines);
    return step;
}

static void add_rows(rondo__cuda_kernel *kernel, const char *name, const line_set *set, int64_t p) {
    rondo__defines defines = {0};
    rondo__define_type(&defines, "T", rondo__cuda_input(kernel, 0)->dtype);
    rondo__step *step = add_lines(kernel, &defines, name, set);
    rondo__step_input(step, 0);
    rondo__step_output(step, 0);
    rondo__step_int(step, set->length);
    rondo__step_int(step, set->inner);
    rondo__step_int(step, p);
}

// Everything from the axis on is one line when it flattens.
static line_set find_lines(const rondo__cuda_kernel *kernel, int64_t fallback, bool flattens) {
    const rondo_shape *x = &rondo__cuda_input(kernel, 0)->shape;
    const int32_t axis =
        rondo__cuda_wrap_axis(rondo__op_get_int(kernel->request->op, "axis", fallback), x->rank);
    line_set set = {.lines = rondo__cuda_product(x, 0, axis), .length = 1, .inner = 1};
    if (flattens) {
        set.length = rondo__cuda_product(x, axis, x->rank);
    } else if (axis < x->rank) {
        set.length = x->extent[axis];
        set.inner = rondo__cuda_product(x, axis + 1, x->rank);
    }
    set.lines *= set.inner;
    return set;
}

void rondo__cuda_prepare_lp_normalization(rondo__cuda_kernel *kernel) {
    const line_set set = find_lines(kernel, -1, false);
    add_rows(kernel, "lp_normalization", &set, rondo__op_get_int(kernel->request->op, "p", 2));
}

void rondo__cuda_prepare_hardmax(rondo__cuda_kernel *kernel) {
    const bool flattens = kernel->request->op->opset < 13;
    const line_set set = find_lines(kernel, flattens ? 1 : -1, flattens);
    add_rows(kernel, "hardmax", &set, 0);
}

static void push_loss(rondo__step *step, const rondo__cuda_kernel *kernel, const line_set *set,
                      const char *reduction, rondo__address parts) {
    const rondo__op *op = kernel->request->op;
    const bool is_each = strcmp(reduction, "none") == 0;
    rondo__step_input(step, 0);
    rondo__step_input(step, 1);
    if (rondo__cuda_has_input(kernel, 2)) {
        rondo__step_input(step, 2);
    } else {
        rondo__step_int(step, 0);
    }
    if (is_each && rondo__cuda_wants_output(kernel, 0)) {
        rondo__step_output(step, 0);
    } else {
        rondo__step_int(step, 0);
    }
    if (rondo__cuda_wants_output(kernel, 1)) {
        rondo__step_output(step, 1);
    } else {
        rondo__step_int(step, 0);
    }
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
    line_set set = {.length = x->shape.extent[1],
                    .inner = rondo__cuda_product(&x->shape, 2, x->shape.rank)};
    set.lines = x->shape.extent[0] * set.inner;
    const rondo__address parts = rondo__address_workspace(
        rondo__cuda_reserve_workspace(kernel, (size_t)set.lines * 2 * sizeof(double)));
    rondo__define_type(&defines, "T", x->dtype);
    rondo__define_type(&defines, "I", rondo__cuda_input(kernel, 1)->dtype);
    rondo__define_int(&defines, "SOFTMAX", op->def->id == RONDO__OP_SoftmaxCrossEntropyLoss);
    push_loss(add_lines(kernel, &defines, "loss_lines", &set), kernel, &set, reduction, parts);
    if (strcmp(reduction, "none") != 0 && rondo__cuda_wants_output(kernel, 0)) {
        rondo__step *step = rondo__cuda_add_launch(kernel, rondo__cu_rows, &defines, "loss_total",
                                                   1, RONDO__CUDA_BLOCK);
        rondo__step_int(step, set.lines);
        push_loss(step, kernel, &set, reduction, parts);
    }
}

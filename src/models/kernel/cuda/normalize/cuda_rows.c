// kernel/cuda/normalize/cuda_rows.c — LpNormalization and Hardmax; see rows.cu.
// SPDX-License-Identifier: Apache-2.0
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

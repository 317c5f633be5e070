// kernel/cuda/product/cuda_einsum.c — Einsum; see einsum.cu.
// SPDX-License-Identifier: Apache-2.0
#include "op/math/einsum.h"

#include "cu_sources.h"
#include "kernel/cuda/cuda_families.h"
#include "op/support.h"

enum { LABELS_MAX = 8, CLASS_COUNT = 4, GRID_MAX = 65535 };

typedef enum class_kind { CLASS_BATCH, CLASS_ROWS, CLASS_COLUMNS, CLASS_INNER } class_kind;

typedef struct label_class {
    int64_t count;
    int32_t label_count;
    int32_t labels[LABELS_MAX];
} label_class;

typedef struct einsum {
    rondo__einsum_plan plan;
    int64_t y_step[RONDO__EINSUM_LABEL_MAX];
    label_class classes[CLASS_COUNT];
    int32_t most;  // labels of a class
} einsum;

static class_kind classify(const rondo__einsum_plan *plan, int32_t label) {
    const bool left = plan->step[0][label] != 0, right = plan->step[1][label] != 0;
    if (label >= plan->output_count) {
        return CLASS_INNER;
    }
    return plan->operand_count != 2 || left == right ? CLASS_BATCH
           : left                                    ? CLASS_ROWS
                                                     : CLASS_COLUMNS;
}

static bool read_einsum(rondo__cuda_kernel *kernel, einsum *e) {
    const size_t count = kernel->request->input_count;
    const rondo_shape *shapes[RONDO__EINSUM_OPERAND_MAX] = {NULL};
    for (size_t i = 0; i < count && i < RONDO__EINSUM_OPERAND_MAX; i++) {
        shapes[i] = &rondo__cuda_input(kernel, i)->shape;
    }
    if (!rondo__cuda_check(kernel,
                           rondo__einsum_make_plan(kernel->request->op, count, shapes, &e->plan))) {
        return false;
    }
    const rondo__einsum_plan *plan = &e->plan;
    int64_t step = 1;
    for (int32_t i = plan->output_count - 1; i >= 0; i--) {
        e->y_step[i] = step;
        step *= plan->extent[i];
    }
    e->most = 1;
    for (int i = 0; i < CLASS_COUNT; i++) {
        e->classes[i] = (label_class){.count = 1};
    }
    for (int32_t label = 0; label < plan->label_count; label++) {
        label_class *c = &e->classes[classify(plan, label)];
        if (plan->extent[label] == 1) {
            continue;
        }
        if (c->label_count == LABELS_MAX) {
            rondo__cuda_refuse(kernel, "so many labels");
            return false;
        }
        c->labels[c->label_count++] = label;
        c->count *= plan->extent[label];
        e->most = c->label_count > e->most ? c->label_count : e->most;
    }
    return true;
}

static void push_class(rondo__step *step, const einsum *e, class_kind kind) {
    const label_class *c = &e->classes[kind];
    const int32_t missing = e->most - c->label_count;  // in front, with an extent of 1
    rondo__step_int(step, c->count);
    for (int32_t d = 0; d < e->most; d++) {
        rondo__step_int(step, d < missing ? 1 : e->plan.extent[c->labels[d - missing]]);
    }
    for (size_t x = 0; x <= e->plan.operand_count; x++) {
        const int64_t *steps = x < e->plan.operand_count ? e->plan.step[x] : e->y_step;
        for (int32_t d = 0; d < e->most; d++) {
            rondo__step_int(step, d < missing ? 0 : steps[c->labels[d - missing]]);
        }
    }
}

void rondo__cuda_prepare_einsum(rondo__cuda_kernel *kernel) {
    const rondo_dtype dtype = rondo__cuda_input(kernel, 0)->dtype;
    rondo__defines defines = {0};
    einsum e = {0};
    rondo__step *step;

    if (!read_einsum(kernel, &e)) {
        return;
    }
    const int64_t column_tiles = (e.classes[CLASS_COLUMNS].count + 63) / 64;
    rondo__define_type(&defines, "T", dtype);
    rondo__define_word(&defines, "A",
                       rondo__dtype_is_integer(dtype) ? "i64"
                       : dtype == RONDO_DTYPE_F64     ? "double"
                                                      : "float");
    rondo__define_int(&defines, "OPERANDS", (int64_t)e.plan.operand_count);
    rondo__define_int(&defines, "LABELS", e.most);
    if (e.plan.operand_count != 2) {
        step = rondo__cuda_add_launch(kernel, rondo__cu_einsum, &defines, "einsum_each",
                                      rondo__cuda_blocks(e.classes[CLASS_BATCH].count),
                                      RONDO__CUDA_BLOCK);
    } else if (column_tiles > GRID_MAX) {
        rondo__cuda_refuse(kernel, "more columns than a grid holds");
        return;
    } else {
        const int64_t batch = e.classes[CLASS_BATCH].count;
        step = rondo__cuda_add_launch(kernel, rondo__cu_einsum, &defines, "einsum_product",
                                      (e.classes[CLASS_ROWS].count + 63) / 64, RONDO__CUDA_BLOCK);
        if (step != NULL) {
            step->launch.grid[1] = (uint32_t)column_tiles;
            step->launch.grid[2] = (uint32_t)(batch > GRID_MAX ? GRID_MAX : batch);
        }
    }
    rondo__step_output(step, 0);
    for (size_t x = 0; x < e.plan.operand_count; x++) {
        rondo__step_input(step, x);
    }
    for (int kind = 0; kind < CLASS_COUNT; kind++) {
        push_class(step, &e, (class_kind)kind);
    }
}

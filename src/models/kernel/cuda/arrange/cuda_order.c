// kernel/cuda/arrange/cuda_order.c — ops that sort: TopK, and scatters that reduce.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/cuda/arrange/cuda_order.h"

#include <string.h>

#include "cu_sources.h"
#include "kernel/cuda/arrange/cuda_select.h"
#include "kernel/cuda/arrange/cuda_sort.h"
#include "kernel/cuda/cuda_families.h"
#include "op/support.h"

// ---- TopK -------------------------------------------------------------------------------------

enum { COUNTED_MAX = 512 };  // up to so long an axis, ranks are counted

typedef struct top_k {
    int64_t lines, length, inner, k, largest;
} top_k;

static void add_counting(rondo__cuda_kernel *kernel, const top_k *t, rondo__defines *defines) {
    rondo__step *step = rondo__cuda_add_launch(kernel, rondo__cu_top_k, defines, "top_k", t->lines,
                                               RONDO__CUDA_BLOCK);
    rondo__step_int(step, t->lines);
    rondo__step_input(step, 0);
    rondo__step_optional_output(step, kernel, 0);
    rondo__step_optional_output(step, kernel, 1);
    rondo__step_int(step, t->length);
    rondo__step_int(step, t->inner);
    rondo__step_int(step, t->k);
    rondo__step_int(step, t->largest);
}

static void add_sorting(rondo__cuda_kernel *kernel, const top_k *t, rondo__defines *defines) {
    rondo__cuda_sorted sorted;
    const int64_t count = t->lines * t->length;
    const rondo__address keys = rondo__cuda_reserve(kernel, count, sizeof(uint64_t));
    rondo__step *step = rondo__cuda_add_launch(kernel, rondo__cu_top_k, defines, "top_k_keys",
                                               rondo__cuda_blocks(count), RONDO__CUDA_BLOCK);
    rondo__step_int(step, count);
    rondo__step_input(step, 0);
    rondo__step_address(step, keys);
    rondo__step_int(step, t->length);
    rondo__step_int(step, t->inner);
    rondo__step_int(step, t->largest);
    if (!rondo__cuda_add_sort(kernel, keys, t->lines, t->length, t->k, &sorted)) {
        return;
    }
    step = rondo__cuda_add_launch(kernel, rondo__cu_top_k, defines, "top_k_pick",
                                  rondo__cuda_blocks(t->lines * t->k), RONDO__CUDA_BLOCK);
    rondo__step_int(step, t->lines * t->k);
    rondo__step_input(step, 0);
    rondo__step_optional_output(step, kernel, 0);
    rondo__step_optional_output(step, kernel, 1);
    rondo__step_address(step, sorted.order);
    rondo__step_int(step, t->length);
    rondo__step_int(step, t->inner);
    rondo__step_int(step, t->k);
}

void rondo__cuda_prepare_top_k(rondo__cuda_kernel *kernel) {
    const rondo__op *op = kernel->request->op;
    const rondo__tensor_info *x = rondo__cuda_input(kernel, 0);
    const rondo__tensor_info *y = rondo__cuda_output(kernel, 0);
    rondo__defines defines = {0};
    const int32_t rank = x->shape.rank;
    const int32_t axis = rondo__cuda_wrap_axis(rondo__op_get_int(op, "axis", -1), rank);
    if (y->dtype == RONDO_DTYPE_NONE) {
        y = rondo__cuda_output(kernel, 1);
    }
    const top_k t = {
        .lines = rondo_shape_get_count(&x->shape) / x->shape.extent[axis],
        .length = x->shape.extent[axis],
        .inner = rondo__cuda_product(&x->shape, axis + 1, rank),
        .k = y->shape.extent[axis],
        .largest = rondo__op_get_int(op, "largest", 1),
    };
    rondo__define_type(&defines, "T", x->dtype);
    if (t.length <= COUNTED_MAX) {
        add_counting(kernel, &t, &defines);
    } else {
        add_sorting(kernel, &t, &defines);
    }
}

// ---- scatter ----------------------------------------------------------------------------------

enum { FEW_UPDATES = 16 };  // one launch in the place of four

typedef struct scatter {
    int64_t updates, inner;
    int64_t axis;  // -1: tuples of indices
    int32_t rank;  // indices of a place
    int64_t extent[RONDO_RANK_MAX], stride[RONDO_RANK_MAX], index_extent[RONDO_RANK_MAX];
    rondo__address keys, order;
} scatter;

static void read_places(const rondo__cuda_kernel *kernel, bool is_nd, scatter *s) {
    const rondo_shape *y = &rondo__cuda_output(kernel, 0)->shape;
    const rondo_shape *index = &rondo__cuda_input(kernel, 1)->shape;
    s->rank = is_nd ? (int32_t)index->extent[index->rank - 1] : y->rank;
    s->updates =
        is_nd ? rondo__cuda_product(index, 0, index->rank - 1) : rondo_shape_get_count(index);
    s->inner = is_nd ? rondo__cuda_product(y, s->rank, y->rank) : 1;
    s->axis =
        is_nd ? -1
              : rondo__cuda_wrap_axis(rondo__op_get_int(kernel->request->op, "axis", 0), y->rank);
    for (int32_t d = 0; d < s->rank; d++) {
        s->extent[d] = y->extent[d];
        s->stride[d] = rondo__cuda_product(y, d + 1, y->rank);
        s->index_extent[d] = is_nd ? 1 : index->extent[d];
    }
}

static void push_scatter(rondo__step *step, const rondo__cuda_kernel *kernel, const scatter *s,
                         int64_t count) {
    rondo__step_int(step, count);
    rondo__step_input(step, 1);
    rondo__step_input(step, 2);
    rondo__step_output(step, 0);
    rondo__step_address(step, s->keys);
    rondo__step_address(step, s->order);
    rondo__step_int(step, s->inner);
    rondo__step_int(step, s->axis);
    for (int32_t d = 0; d < s->rank; d++) {
        rondo__step_int(step, s->extent[d]);
    }
    for (int32_t d = 0; d < s->rank; d++) {
        rondo__step_int(step, s->stride[d]);
    }
    for (int32_t d = 0; d < s->rank; d++) {
        rondo__step_int(step, s->index_extent[d]);
    }
    rondo__step_faults(step, kernel, RONDO__FAULT_INDEX);
}

static int64_t number_reduction(const rondo__op *op) {
    static const char *const names[] = {"none", "add", "mul", "max", "min"};
    const char *text = rondo__op_get_string(op, "reduction", "none");
    int64_t number = 4;
    while (number > 0 && strcmp(text, names[number]) != 0) {
        number--;
    }
    return number;
}

bool rondo__cuda_add_reduction(rondo__cuda_kernel *kernel) {
    const rondo__op *op = kernel->request->op;
    const rondo__tensor_info *y = rondo__cuda_output(kernel, 0);
    const int64_t reduction = number_reduction(op);
    rondo__defines defines = {0};
    rondo__cuda_sorted sorted;
    scatter s = {0};

    if (reduction == 0) {
        return false;
    }
    read_places(kernel, op->def->id == RONDO__OP_ScatterND, &s);
    if (s.rank == 0) {
        rondo__cuda_refuse(kernel, "index tuples of this length");
    }
    if (s.rank == 0 || s.updates * s.inner == 0) {
        return true;
    }
    rondo__define_type(&defines, "T", y->dtype);
    rondo__define_type(&defines, "I", rondo__cuda_input(kernel, 1)->dtype);
    rondo__define_int(&defines, "RANK", s.rank);
    rondo__define_int(&defines, "REDUCTION", reduction);
    rondo__define_int(&defines, "WHOLE", rondo__dtype_is_integer(y->dtype) ? 1 : 0);
    s.keys = rondo__cuda_reserve(kernel, s.updates, sizeof(uint64_t));
    s.order = s.keys;
    if (s.updates <= FEW_UPDATES) {
        push_scatter(
            rondo__cuda_add_launch(kernel, rondo__cu_scatter, &defines, "scatter_few",
                                   rondo__cuda_blocks(s.updates * s.inner), RONDO__CUDA_BLOCK),
            kernel, &s, s.updates * s.inner);
        return true;
    }
    push_scatter(rondo__cuda_add_launch(kernel, rondo__cu_scatter, &defines, "scatter_keys",
                                        rondo__cuda_blocks(s.updates), RONDO__CUDA_BLOCK),
                 kernel, &s, s.updates);
    if (rondo__cuda_add_sort(kernel, s.keys, 1, s.updates, s.updates, &sorted)) {
        s.keys = sorted.keys;
        s.order = sorted.order;
        push_scatter(
            rondo__cuda_add_launch(kernel, rondo__cu_scatter, &defines, "scatter_reduce",
                                   rondo__cuda_blocks(s.updates * s.inner), RONDO__CUDA_BLOCK),
            kernel, &s, s.updates * s.inner);
    }
    return true;
}

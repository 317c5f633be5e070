// kernel/cuda/normalize/cuda_reduce.c — Reductions, arg-extremes and softmax.
// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "cu_sources.h"
#include "kernel/cuda/cuda_families.h"

// In the order of reduce.cu.
static const rondo__op_id reductions[] = {
    RONDO__OP_ReduceSum,       RONDO__OP_ReduceMean,      RONDO__OP_ReduceMax,
    RONDO__OP_ReduceMin,       RONDO__OP_ReduceProd,      RONDO__OP_ReduceL1,
    RONDO__OP_ReduceL2,        RONDO__OP_ReduceSumSquare, RONDO__OP_ReduceLogSum,
    RONDO__OP_ReduceLogSumExp,
};

typedef struct merged_extents {
    int32_t rank;
    int64_t extent[RONDO_RANK_MAX];
    int64_t stride[RONDO_RANK_MAX];
} merged_extents;

static void merge_extent(merged_extents *merged, int64_t extent, int64_t stride) {
    if (extent == 1) {
        return;
    }
    const int32_t last = merged->rank - 1;
    if (merged->rank > 0 && merged->stride[last] == stride * extent) {
        merged->extent[last] *= extent;
        merged->stride[last] = stride;
        return;
    }
    merged->extent[merged->rank] = extent;
    merged->stride[merged->rank] = stride;
    merged->rank++;
}

static void finish_extents(merged_extents *merged, int64_t *out_count) {
    if (merged->rank == 0) {
        merged->extent[0] = 1;
        merged->stride[0] = 1;
        merged->rank = 1;
    }
    *out_count = 1;
    for (int32_t d = 0; d < merged->rank; d++) {
        *out_count *= merged->extent[d];
    }
}

static void push_extents(rondo__step *step, const merged_extents *merged) {
    for (int32_t d = 0; d < merged->rank; d++) {
        rondo__step_int(step, merged->extent[d]);
    }
    for (int32_t d = 0; d < merged->rank; d++) {
        rondo__step_int(step, merged->stride[d]);
    }
}

// As in the reference: what is no whole number, and every sum of floats, is made in double. Memory
// bounds a reduction, so that this costs little.
static const char *get_accumulator(rondo_dtype dtype, rondo__op_id op) {
    if (rondo__cuda_is_float(dtype)) {
        return op == RONDO__OP_ReduceMax || op == RONDO__OP_ReduceMin ? "float" : "double";
    }
    const bool is_wide = op == RONDO__OP_ReduceL2 || op == RONDO__OP_ReduceLogSum ||
                         op == RONDO__OP_ReduceLogSumExp || dtype == RONDO_DTYPE_F64;
    return is_wide ? "double" : dtype == RONDO_DTYPE_U64 ? "u64" : "i64";
}

enum { STRIP = 32, STRIP_ROWS = 16, STRIP_OUTPUTS_MAX = 1 << 17, ROWS_MANY = 2048, ROW_SHARE = 4 };

// The reduction of that name over the axes that are marked.
static void add_reduction(rondo__cuda_kernel *kernel, rondo__op_id id, const bool *is_reduced) {
    const rondo__tensor_info *x = rondo__cuda_input(kernel, 0);
    rondo__defines defines = {0};
    merged_extents kept = {0}, reduced = {0};
    int64_t outputs = 0, length = 0, stride = 1, strides[RONDO_RANK_MAX];
    const int32_t rank = x->shape.rank;

    for (int32_t d = rank - 1; d >= 0; d--) {
        strides[d] = stride;
        stride *= x->shape.extent[d];
    }
    for (int32_t d = 0; d < rank; d++) {
        merge_extent(is_reduced[d] ? &reduced : &kept, x->shape.extent[d], strides[d]);
    }
    finish_extents(&kept, &outputs);
    finish_extents(&reduced, &length);
    if (length >= INT64_C(1) << 32) {
        rondo__cuda_refuse(kernel, "2^32 elements into one");
        return;
    }
    int32_t kind = 0;
    for (size_t i = 0; i < sizeof(reductions) / sizeof(reductions[0]); i++) {
        if (id == reductions[i]) {
            kind = (int32_t)i;
        }
    }
    const bool is_extreme = id == RONDO__OP_ReduceMax || id == RONDO__OP_ReduceMin;
    if (length == 0 && is_extreme && !rondo__cuda_is_float(x->dtype)) {
        rondo__cuda_refuse(kernel, "the extreme of no whole numbers");
        return;
    }
    rondo__define_type(&defines, "T", x->dtype);
    rondo__define_word(&defines, "A", get_accumulator(x->dtype, id));
    rondo__define_int(&defines, "KIND", kind);
    rondo__define_int(&defines, "KEPT", kept.rank);
    rondo__define_int(&defines, "REDUCED", reduced.rank);
    // A block an output pays where rows are contiguous or outputs are few; a thread an output
    // otherwise.
    const bool is_row = reduced.stride[reduced.rank - 1] == 1;
    const bool by_block = (is_row && length >= 32) || (length >= 64 && outputs < 4096);
    // Neighbouring outputs that are neighbours in x, too few for a thread each.
    const bool by_strip = !is_row && length >= STRIP_ROWS && outputs >= STRIP &&
                          outputs < STRIP_OUTPUTS_MAX && kept.stride[kept.rank - 1] == 1 &&
                          id != RONDO__OP_ReduceLogSumExp;
    rondo__step *step = NULL;
    if (by_strip) {
        step = rondo__cuda_add_launch(kernel, rondo__cu_reduce, &defines, "reduce_strips",
                                      (outputs + STRIP - 1) / STRIP, STRIP * STRIP_ROWS);
    } else if (by_block) {
        // Many rows fill the device with fewer threads each, which have less to join.
        const int64_t share = outputs >= ROWS_MANY ? ROW_SHARE : 1;
        uint32_t threads = 32;
        while (threads < 256 && threads * share < length) {
            threads *= 2;
        }
        step = rondo__cuda_add_launch(kernel, rondo__cu_reduce, &defines, "reduce_rows", outputs,
                                      threads);
    } else {
        step = rondo__cuda_add_launch(kernel, rondo__cu_reduce, &defines, "reduce_columns",
                                      rondo__cuda_blocks(outputs), RONDO__CUDA_BLOCK);
    }
    rondo__step_int(step, outputs);
    rondo__step_int(step, length);
    rondo__step_input(step, 0);
    rondo__step_output(step, 0);
    push_extents(step, &kept);
    push_extents(step, &reduced);
}

void rondo__cuda_prepare_reduce(rondo__cuda_kernel *kernel) {
    const rondo__op *op = kernel->request->op;
    int64_t axes[RONDO_RANK_MAX];
    bool is_reduced[RONDO_RANK_MAX];
    const int32_t rank = rondo__cuda_input(kernel, 0)->shape.rank;

    const int64_t count = rondo__cuda_read_axes(kernel, "axes", 1, rank, axes);
    if (count < 0) {
        return;
    }
    const bool all = count == 0 && rondo__op_get_int(op, "noop_with_empty_axes", 0) == 0;
    for (int32_t d = 0; d < RONDO_RANK_MAX; d++) {
        is_reduced[d] = all;
    }
    for (int64_t i = 0; i < count; i++) {
        is_reduced[axes[i]] = true;
    }
    add_reduction(kernel, op->def->id, is_reduced);
}

void rondo__cuda_add_global_pool(rondo__cuda_kernel *kernel, bool is_average) {
    bool is_reduced[RONDO_RANK_MAX];
    for (int32_t d = 0; d < RONDO_RANK_MAX; d++) {
        is_reduced[d] = d >= 2;
    }
    add_reduction(kernel, is_average ? RONDO__OP_ReduceMean : RONDO__OP_ReduceMax, is_reduced);
}

void rondo__cuda_prepare_arg_extreme(rondo__cuda_kernel *kernel) {
    const rondo__op *op = kernel->request->op;
    const rondo__tensor_info *x = rondo__cuda_input(kernel, 0);
    rondo__defines defines = {0};
    const int32_t rank = x->shape.rank;
    if (rank == 0) {
        rondo__cuda_refuse(kernel, "a scalar input");
        return;
    }
    const int32_t axis = rondo__cuda_wrap_axis(rondo__op_get_int(op, "axis", 0), rank);
    const int64_t length = x->shape.extent[axis];
    const int64_t lines = rondo_shape_get_count(&x->shape) / length;

    rondo__define_type(&defines, "T", x->dtype);
    rondo__step *step = rondo__cuda_add_launch(kernel, rondo__cu_reduce, &defines, "arg_extreme",
                                               (lines + 7) / 8, RONDO__CUDA_BLOCK);
    rondo__step_int(step, lines);
    rondo__step_input(step, 0);
    rondo__step_output(step, 0);
    rondo__step_int(step, length);
    rondo__step_int(step, rondo__cuda_product(&x->shape, axis + 1, rank));
    rondo__step_int(step, op->def->id == RONDO__OP_ArgMin);
    rondo__step_int(step, rondo__op_get_int(op, "select_last_index", 0));
}

void rondo__cuda_prepare_softmax(rondo__cuda_kernel *kernel) {
    const rondo__op *op = kernel->request->op;
    const rondo__tensor_info *x = rondo__cuda_input(kernel, 0);
    rondo__defines defines = {0};
    const int32_t rank = x->shape.rank;
    // Before opset 13 everything from the axis on is one row.
    const bool flattens = op->opset < 13;
    const int32_t axis =
        rondo__cuda_wrap_axis(rondo__op_get_int(op, "axis", flattens ? 1 : -1), rank);
    const int64_t count = rondo_shape_get_count(&x->shape);
    const int64_t inner = flattens ? 1 : rondo__cuda_product(&x->shape, axis + 1, rank);
    const int64_t length = flattens      ? rondo__cuda_product(&x->shape, axis, rank)
                           : axis < rank ? x->shape.extent[axis]
                                         : 1;
    const int64_t lines = count / length;

    const bool is_wide = x->dtype == RONDO_DTYPE_F64 && op->def->id != RONDO__FUSED_Softmax;
    if (!rondo__cuda_is_float(x->dtype) && !is_wide) {
        rondo__cuda_refuse(kernel, "a tensor of this type");
        return;
    }
    rondo__define_type(&defines, "T", x->dtype);
    rondo__define_int(&defines, "LOGARITHM", op->def->id == RONDO__OP_LogSoftmax);
    rondo__define_int(&defines, "ZERO_ROWS", op->def->id == RONDO__FUSED_Softmax);
    rondo__step *step = NULL;
    if (inner > 1 || is_wide) {
        step = rondo__cuda_add_launch(kernel, rondo__cu_softmax, &defines, "softmax_columns",
                                      rondo__cuda_blocks(lines), RONDO__CUDA_BLOCK);
    } else if (length <= 2048) {
        const uint32_t threads = length <= 256 ? 32 : 256;
        rondo__define_int(&defines, "PER_THREAD", (length + threads - 1) / threads);
        step = rondo__cuda_add_launch(kernel, rondo__cu_softmax, &defines, "softmax_short_rows",
                                      lines, threads);
    } else {
        step = rondo__cuda_add_launch(kernel, rondo__cu_softmax, &defines, "softmax_rows", lines,
                                      RONDO__CUDA_BLOCK);
    }
    rondo__step_int(step, lines);
    rondo__step_input(step, 0);
    rondo__step_output(step, 0);
    rondo__step_int(step, length);
    rondo__step_int(step, inner);
}

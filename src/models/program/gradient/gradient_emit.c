// program/gradient/gradient_emit.c — nodes that rules append. See gradient_parts.h.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "op/support.h"
#include "program/edit.h"
#include "program/gradient/gradient_parts.h"

// ---- nodes --------------------------------------------------------------------------------------

void rondo__gradient_emit_many(rondo__gradient *g, const char *name, const int32_t *inputs,
                               size_t count, int32_t *out_values, size_t output_count) {
    for (size_t i = 0; i < output_count; ++i) {
        out_values[i] = RONDO__VALUE_NONE;
    }
    enum { INPUTS_MAX = 8 };
    int32_t copies[INPUTS_MAX];
    for (size_t i = 0; i < count && count <= INPUTS_MAX; ++i) {
        copies[i] = rondo__gradient_recompute(g, inputs[i]);
    }
    // A later version may have what version 21 of the op has not, or lacks.
    rondo__op op = {.opset = RONDO_OP_OPSET_WRITTEN};
    op.def = rondo__op_lookup("", name, op.opset);
    if (op.def == NULL) {
        op.opset = RONDO_OP_OPSET_MAX;
        op.def = rondo__op_lookup("", name, op.opset);
    }
    if (g->status == RONDO_STATUS_OK && op.def == NULL) {
        g->status = RONDO_FAIL(INTERNAL, "a gradient needs op %s", name);
    }
    for (size_t i = 0; i < output_count && g->status == RONDO_STATUS_OK; ++i) {
        char value_name[32];
        (void)snprintf(value_name, sizeof value_name, "d.%zu", g->program->value_count);
        g->status = rondo__program_add_value(g->program, value_name, &out_values[i]);
    }
    if (g->status == RONDO_STATUS_OK) {
        g->status = rondo__program_add_node(g->program, &op, count <= INPUTS_MAX ? copies : inputs,
                                            count, count, out_values, output_count);
    }
    rondo__op_deinit(&op);
}

int32_t rondo__gradient_emit(rondo__gradient *g, const char *op, const int32_t *inputs,
                             size_t count) {
    int32_t value = RONDO__VALUE_NONE;
    rondo__gradient_emit_many(g, op, inputs, count, &value, 1);
    return value;
}

static rondo__op *find_op(rondo__gradient *g, int32_t value) {
    return g->status == RONDO_STATUS_OK && value >= 0
               ? &g->program->nodes[g->program->values[value].producer].op
               : NULL;
}

int32_t rondo__gradient_set_int(rondo__gradient *g, int32_t value, const char *name,
                                int64_t number) {
    rondo__op *op = find_op(g, value);
    g->status = op != NULL ? rondo__op_set_int(op, name, number) : g->status;
    return value;
}

int32_t rondo__gradient_set_float(rondo__gradient *g, int32_t value, const char *name,
                                  float number) {
    rondo__op *op = find_op(g, value);
    g->status = op != NULL ? rondo__op_set_float(op, name, number) : g->status;
    return value;
}

int32_t rondo__gradient_set_ints(rondo__gradient *g, int32_t value, const char *name,
                                 const int64_t *numbers, size_t count) {
    rondo__op *op = find_op(g, value);
    g->status = op != NULL ? rondo__op_set_ints(op, name, numbers, count) : g->status;
    return value;
}

int32_t rondo__gradient_set_string(rondo__gradient *g, int32_t value, const char *name,
                                   const char *text) {
    rondo__op *op = find_op(g, value);
    g->status = op != NULL ? rondo__op_set_string(op, name, text) : g->status;
    return value;
}

void rondo__gradient_copy_attribute(rondo__gradient *g, int32_t value,
                                    const rondo__gradient_call *call, const char *name) {
    const rondo__attribute *a = rondo__op_find(&call->op, name);
    if (a == NULL) {
        return;
    }
    if (a->kind == RONDO__ATTRIBUTE_INT) {
        (void)rondo__gradient_set_int(g, value, name, a->int_value);
    } else if (a->kind == RONDO__ATTRIBUTE_FLOAT) {
        (void)rondo__gradient_set_float(g, value, name, a->float_value);
    } else if (a->kind == RONDO__ATTRIBUTE_STRING) {
        (void)rondo__gradient_set_string(g, value, name, a->string_value);
    } else if (a->kind == RONDO__ATTRIBUTE_INTS) {
        (void)rondo__gradient_set_ints(g, value, name, a->ints, a->count);
    }
}

// ---- constants ----------------------------------------------------------------------------------

static int32_t add_constant(rondo__gradient *g, const rondo_tensor *tensor) {
    int32_t value = RONDO__VALUE_NONE;
    char name[32];
    (void)snprintf(name, sizeof name, "d.%zu", g->program->value_count);
    if (g->status == RONDO_STATUS_OK) {
        g->status = rondo__program_add_constant(g->program, name, tensor, &value);
    }
    return value;
}

static int32_t add_numbers(rondo__gradient *g, rondo_dtype dtype, rondo_dtype from, int32_t rank,
                           const void *numbers, size_t count) {
    const rondo_shape shape = {.rank = rank, .extent = {(int64_t)count}};
    rondo_tensor tensor = {0};
    if (g->status != RONDO_STATUS_OK) {
        return RONDO__VALUE_NONE;
    }
    g->status = rondo_tensor_init(dtype, &shape, &tensor);
    int32_t value = RONDO__VALUE_NONE;
    if (g->status == RONDO_STATUS_OK) {
        rondo__convert_elements(from, numbers, dtype, tensor.data, count);
        value = add_constant(g, &tensor);
    }
    rondo_tensor_deinit(&tensor);
    return value;
}

int32_t rondo__gradient_ints(rondo__gradient *g, const int64_t *numbers, size_t count) {
    return add_numbers(g, RONDO_DTYPE_I64, RONDO_DTYPE_I64, 1, numbers, count);
}

int32_t rondo__gradient_int(rondo__gradient *g, int64_t number) {
    return rondo__gradient_ints(g, &number, 1);
}

int32_t rondo__gradient_index(rondo__gradient *g, int64_t number) {
    return add_numbers(g, RONDO_DTYPE_I64, RONDO_DTYPE_I64, 0, &number, 1);
}

int32_t rondo__gradient_number(rondo__gradient *g, double number, int32_t like) {
    const rondo_dtype dtype = rondo__gradient_info(g, like)->dtype;
    if (dtype != RONDO_DTYPE_NONE) {
        return add_numbers(g, dtype, RONDO_DTYPE_F64, 0, &number, 1);
    }
    const int32_t wide = add_numbers(g, RONDO_DTYPE_F64, RONDO_DTYPE_F64, 0, &number, 1);
    return RONDO__EMIT(g, "CastLike", wide, like);
}

int32_t rondo__gradient_fill_like(rondo__gradient *g, double number, int32_t like) {
    const rondo_dtype dtype = rondo__gradient_info(g, like)->dtype;
    const rondo_dtype made = dtype == RONDO_DTYPE_NONE ? RONDO_DTYPE_F32 : dtype;
    const rondo_shape one = {.rank = 1, .extent = {1}};
    const int32_t filled = RONDO__EMIT(g, "ConstantOfShape", rondo__gradient_shape(g, like));
    rondo__op *op = find_op(g, filled);
    rondo_tensor tensor = {0};
    if (op == NULL) {
        return RONDO__VALUE_NONE;
    }
    g->status = rondo_tensor_init(made, &one, &tensor);
    if (g->status == RONDO_STATUS_OK) {
        rondo__convert_elements(RONDO_DTYPE_F64, &number, made, tensor.data, 1);
        g->status = rondo__op_set_tensor(op, "value", &tensor);
    }
    rondo_tensor_deinit(&tensor);
    return dtype == RONDO_DTYPE_NONE ? RONDO__EMIT(g, "CastLike", filled, like) : filled;
}

// ---- what is known ------------------------------------------------------------------------------

int32_t rondo__gradient_rank(rondo__gradient *g, int32_t value) {
    const rondo__tensor_info *info = rondo__gradient_info(g, value);
    return rondo__info_has_rank(info) ? info->shape.rank : -1;
}

int64_t rondo__gradient_extent(rondo__gradient *g, int32_t value, int32_t axis) {
    const rondo__tensor_info *info = rondo__gradient_info(g, value);
    return rondo__info_has_rank(info) && axis >= 0 && axis < info->shape.rank
               ? info->shape.extent[axis]
               : -1;
}

int32_t rondo__gradient_read_ints(rondo__gradient *g, int32_t value, int64_t *out_values,
                                  size_t capacity) {
    const rondo_tensor *tensor = rondo__gradient_info(g, value)->constant;
    const int64_t count = tensor != NULL ? rondo_shape_get_count(&tensor->shape) : -1;
    if (count < 0 || (size_t)count > capacity || !rondo__dtype_is_integer(tensor->dtype)) {
        return -1;
    }
    for (int64_t i = 0; i < count; ++i) {
        out_values[i] = rondo__tensor_get_int(tensor, i);
    }
    return (int32_t)count;
}

bool rondo__gradient_read_number(rondo__gradient *g, int32_t value, double *out_number) {
    const rondo_tensor *tensor = rondo__gradient_info(g, value)->constant;
    if (tensor == NULL || rondo_shape_get_count(&tensor->shape) != 1) {
        return false;
    }
    *out_number = rondo__tensor_get_number(tensor, 0);
    return true;
}

// ---- shapes -------------------------------------------------------------------------------------

int32_t rondo__gradient_shape(rondo__gradient *g, int32_t value) {
    const rondo__tensor_info *info = rondo__gradient_info(g, value);
    if (info->is_shape_known) {
        const rondo_shape shape = info->shape;
        return rondo__gradient_ints(g, shape.extent, (size_t)shape.rank);
    }
    return RONDO__EMIT(g, "Shape", value);
}

int32_t rondo__gradient_axis_size(rondo__gradient *g, int32_t value, int64_t axis) {
    const int32_t rank = rondo__gradient_rank(g, value);
    const int64_t at = axis < 0 ? axis + rank : axis;
    const int64_t extent = rank >= 0 ? rondo__gradient_extent(g, value, (int32_t)at) : -1;
    if (extent >= 0) {
        return rondo__gradient_int(g, extent);
    }
    const int32_t shape = RONDO__EMIT(g, "Shape", value);
    return RONDO__EMIT(g, "Gather", shape, rondo__gradient_int(g, axis));
}

static bool have_same_shape(rondo__gradient *g, int32_t a, int32_t b) {
    const rondo__tensor_info first = *rondo__gradient_info(g, a);
    const rondo__tensor_info *second = rondo__gradient_info(g, b);
    return first.is_shape_known && second->is_shape_known &&
           rondo_shape_is_equal(&first.shape, &second->shape);
}

int32_t rondo__gradient_reshape_like(rondo__gradient *g, int32_t value, int32_t like) {
    if (g->status != RONDO_STATUS_OK || have_same_shape(g, value, like)) {
        return value;
    }
    const int32_t shape = rondo__gradient_shape(g, like);
    return rondo__gradient_set_int(g, RONDO__EMIT(g, "Reshape", value, shape), "allowzero", 1);
}

int32_t rondo__gradient_expand_like(rondo__gradient *g, int32_t value, int32_t like) {
    if (g->status != RONDO_STATUS_OK || have_same_shape(g, value, like)) {
        return value;
    }
    return RONDO__EMIT(g, "Expand", value, rondo__gradient_shape(g, like));
}

int32_t rondo__gradient_reshape(rondo__gradient *g, int32_t value, const int64_t *extents,
                                size_t rank) {
    return RONDO__EMIT(g, "Reshape", value, rondo__gradient_ints(g, extents, rank));
}

int32_t rondo__gradient_cast(rondo__gradient *g, int32_t value, rondo_dtype dtype) {
    // The numbers of ONNX's TensorProto.DataType.
    int64_t number = 0;
    for (int64_t i = 1; i <= 16 && number == 0; ++i) {
        number = rondo__dtype_from_onnx(i) == dtype ? i : 0;
    }
    if (rondo__gradient_info(g, value)->dtype == dtype) {
        return value;
    }
    return rondo__gradient_set_int(g, RONDO__EMIT(g, "Cast", value), "to", number);
}

int32_t rondo__gradient_cast_like(rondo__gradient *g, int32_t value, int32_t like) {
    const rondo_dtype dtype = rondo__gradient_info(g, like)->dtype;
    const rondo_dtype now = rondo__gradient_info(g, value)->dtype;
    if ((dtype == now && dtype != RONDO_DTYPE_NONE) || g->status != RONDO_STATUS_OK) {
        return value;
    }
    return dtype == RONDO_DTYPE_NONE ? RONDO__EMIT(g, "CastLike", value, like)
                                     : rondo__gradient_cast(g, value, dtype);
}

// ---- sums and moves -----------------------------------------------------------------------------

int32_t rondo__gradient_reduce(rondo__gradient *g, const char *op, int32_t value,
                               const int64_t *axes, size_t count) {
    // ReduceMax takes axes as an input from 18 on, as do all at 21.
    return RONDO__EMIT(g, op, value, rondo__gradient_ints(g, axes, count));
}

// Where shapes are not known, the nodes that compare them: a plan folds all but the sum.
static int32_t sum_unknown(rondo__gradient *g, int32_t value, int32_t like) {
    const int32_t have = RONDO__EMIT(g, "Shape", value);
    const int32_t want = RONDO__EMIT(g, "Shape", like);
    const int32_t have_rank = RONDO__EMIT(g, "Shape", have);
    const int32_t want_rank = RONDO__EMIT(g, "Shape", want);
    const int32_t missing = RONDO__EMIT(g, "Sub", have_rank, want_rank);
    const int32_t ones = RONDO__EMIT(g, "Expand", rondo__gradient_int(g, 1), missing);
    const int32_t front[2] = {ones, want};
    const int32_t full =
        rondo__gradient_set_int(g, rondo__gradient_emit(g, "Concat", front, 2), "axis", 0);
    const int32_t differs = RONDO__EMIT(g, "Not", RONDO__EMIT(g, "Equal", full, have));
    const int64_t flat = -1;
    const int32_t axes = rondo__gradient_reshape(g, RONDO__EMIT(g, "NonZero", differs), &flat, 1);
    const int32_t sum = rondo__gradient_set_int(g, RONDO__EMIT(g, "ReduceSum", value, axes),
                                                "noop_with_empty_axes", 1);
    return rondo__gradient_set_int(g, RONDO__EMIT(g, "Reshape", sum, want), "allowzero", 1);
}

int32_t rondo__gradient_sum_to(rondo__gradient *g, int32_t value, int32_t like) {
    const rondo__tensor_info have = *rondo__gradient_info(g, value);
    const rondo__tensor_info want = *rondo__gradient_info(g, like);
    if (g->status != RONDO_STATUS_OK || value < 0) {
        return RONDO__VALUE_NONE;
    }
    if (!rondo__info_has_rank(&have) || !rondo__info_has_rank(&want) ||
        have.shape.rank < want.shape.rank) {
        return sum_unknown(g, value, like);
    }
    int64_t axes[RONDO_RANK_MAX];
    size_t count = 0;
    const int32_t front = have.shape.rank - want.shape.rank;
    for (int32_t d = 0; d < have.shape.rank; ++d) {
        const int64_t from = have.shape.extent[d];
        const int64_t to = d < front ? 1 : want.shape.extent[d - front];
        if (d >= front && to < 0 && from != 1) {
            return sum_unknown(g, value, like);
        }
        if (d < front || (to == 1 && from != 1)) {
            axes[count++] = d;
        }
    }
    if (count == 0) {
        return value;
    }
    const int32_t sum = rondo__gradient_reduce(g, "ReduceSum", value, axes, count);
    return front > 0 ? rondo__gradient_reshape_like(g, sum, like) : sum;
}

int32_t rondo__gradient_transpose(rondo__gradient *g, int32_t value, const int64_t *order,
                                  int32_t rank) {
    bool is_same = true;
    for (int32_t d = 0; d < rank; ++d) {
        is_same = is_same && order[d] == d;
    }
    if (is_same) {
        return value;
    }
    return rondo__gradient_set_ints(g, RONDO__EMIT(g, "Transpose", value), "perm", order,
                                    (size_t)rank);
}

int32_t rondo__gradient_swap(rondo__gradient *g, int32_t value, int32_t rank) {
    int64_t order[RONDO_RANK_MAX];
    for (int32_t d = 0; d < rank; ++d) {
        order[d] = d < rank - 2 ? d : d == rank - 2 ? rank - 1 : rank - 2;
    }
    return rondo__gradient_transpose(g, value, order, rank);
}

int32_t rondo__gradient_join(rondo__gradient *g, int32_t a, int32_t b) {
    return a < 0 ? b : b < 0 ? a : RONDO__EMIT(g, "Add", a, b);
}

int32_t rondo__gradient_count_up(rondo__gradient *g, int32_t like) {
    const int32_t size = RONDO__EMIT(g, "Size", like);
    const int32_t line =
        RONDO__EMIT(g, "Range", rondo__gradient_index(g, 0), size, rondo__gradient_index(g, 1));
    return rondo__gradient_reshape_like(g, line, like);
}

int32_t rondo__gradient_sum_channels(rondo__gradient *g, int32_t value, int32_t rank) {
    int64_t axes[RONDO_RANK_MAX] = {0};
    for (int32_t d = 2; d < rank; ++d) {
        axes[d - 2] = d;
    }
    int32_t sum = value;
    if (rank > 2) {
        const int32_t list = rondo__gradient_ints(g, axes, (size_t)rank - 2);
        sum = rondo__gradient_set_int(g, RONDO__EMIT(g, "ReduceSum", sum, list), "keepdims", 0);
    }
    sum = RONDO__EMIT(g, "ReduceSum", sum, rondo__gradient_int(g, 0));
    return rondo__gradient_set_int(g, sum, "keepdims", 0);
}

int32_t rondo__gradient_scatter_flat(rondo__gradient *g, int32_t places, int32_t updates,
                                     int32_t like, bool is_apart) {
    const int64_t flat = -1;
    const int32_t zeros =
        rondo__gradient_reshape(g, rondo__gradient_fill_like(g, 0.0, like), &flat, 1);
    const int32_t at = rondo__gradient_reshape(g, places, &flat, 1);
    const int32_t added = rondo__gradient_reshape(g, updates, &flat, 1);
    const int32_t sums =
        rondo__gradient_set_string(g, RONDO__EMIT(g, "ScatterElements", zeros, at, added),
                                   "reduction", is_apart ? "none" : "add");
    return rondo__gradient_reshape_like(g, sums, like);
}

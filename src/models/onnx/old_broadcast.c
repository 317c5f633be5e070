// onnx/old_broadcast.c — see old_broadcast.h.
// SPDX-License-Identifier: Apache-2.0

#include "onnx/old_broadcast.h"

#include <stdbool.h>
#include <string.h>

#include "base/error.h"

enum { OPSET_OF_NUMPY = 7, PRELU_AXIS = 1 };

// Appends a node of one result; returns its value in *out_value.
static rondo_status add(rondo_program *program, const char *op, int32_t first, int32_t second,
                        int32_t *out_value) {
    const int32_t inputs[2] = {first, second};
    RETURN_IF_ERROR(rondo__program_add_value(program, "second_operand", out_value));
    return rondo__program_add_simple(program, "", op, NULL, inputs,
                                     second == RONDO__VALUE_NONE ? 1 : 2, out_value, 1);
}

static rondo_status add_number(rondo_program *program, int64_t number, int32_t *out_value) {
    const rondo_shape one = {.rank = 1, .extent = {1}};
    rondo_tensor tensor;
    RETURN_IF_ERROR(rondo_tensor_init(RONDO_DTYPE_I64, &one, &tensor));
    *(int64_t *)tensor.data = number;
    rondo_status status = rondo__program_add_constant(program, "number", &tensor, out_value);
    rondo_tensor_deinit(&tensor);
    return status;
}

static rondo_status add_rank(rondo_program *program, int32_t value, int32_t *out_shape,
                             int32_t *out_rank) {
    RETURN_IF_ERROR(add(program, "Shape", value, RONDO__VALUE_NONE, out_shape));
    return add(program, "Shape", *out_shape, RONDO__VALUE_NONE, out_rank);
}

// How many axes of the first operand lie behind the second, which begins at `axis`.
static rondo_status add_count(rondo_program *program, const int32_t *operands, int64_t axis,
                              int32_t *out_shape, int32_t *out_count) {
    int32_t first_shape, first_rank, rank, number, count;
    RETURN_IF_ERROR(add_rank(program, operands[1], out_shape, &rank));
    RETURN_IF_ERROR(add_number(program, axis < 0 ? -axis : axis, &number));
    if (axis < 0) {
        RETURN_IF_ERROR(add(program, "Sub", number, rank, &count));
    } else {
        RETURN_IF_ERROR(add_rank(program, operands[0], &first_shape, &first_rank));
        RETURN_IF_ERROR(add(program, "Sub", first_rank, rank, &count));
        RETURN_IF_ERROR(add(program, "Sub", count, number, &count));
    }
    RETURN_IF_ERROR(add_number(program, 0, &number));
    return add(program, "Max", count, number, out_count);
}

static rondo_status add_ones(rondo_program *program, int32_t count, int32_t *out_ones) {
    const rondo_shape one = {.rank = 1, .extent = {1}};
    rondo_tensor tensor;
    RETURN_IF_ERROR(add(program, "ConstantOfShape", count, RONDO__VALUE_NONE, out_ones));
    RETURN_IF_ERROR(rondo_tensor_init(RONDO_DTYPE_I64, &one, &tensor));
    *(int64_t *)tensor.data = 1;
    rondo_status status =
        rondo__op_set_tensor(&program->nodes[program->node_count - 1].op, "value", &tensor);
    rondo_tensor_deinit(&tensor);
    return status;
}

static bool find_axis(const rondo__op *op, int64_t *out_axis) {
    const rondo__attribute *axis = rondo__op_find(op, "axis");
    const bool is_prelu = op->def->id == RONDO__OP_PRelu;
    *out_axis = is_prelu ? PRELU_AXIS : axis != NULL ? axis->int_value : 0;
    return op->def->domain[0] == '\0' && op->opset < OPSET_OF_NUMPY &&
           (is_prelu || (axis != NULL && rondo__op_get_int(op, "broadcast", 0) != 0));
}

rondo_status rondo__node_move_second(rondo__node_builder *builder) {
    rondo__node *node = &builder->node;
    rondo_program *program = builder->scope->program;
    int64_t axis = 0;
    int32_t shape, count, ones, target;
    if (!find_axis(&node->op, &axis) || node->input_count != 2 ||
        node->inputs[0] == RONDO__VALUE_NONE || node->inputs[1] == RONDO__VALUE_NONE) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(add_count(program, node->inputs, axis, &shape, &count));
    RETURN_IF_ERROR(add_ones(program, count, &ones));
    RETURN_IF_ERROR(add(program, "Concat", shape, ones, &target));
    RETURN_IF_ERROR(rondo__op_set_int(&program->nodes[program->node_count - 1].op, "axis", 0));
    return add(program, "Reshape", node->inputs[1], target, &node->inputs[1]);
}

// program/passes/pass_moments.c — a product whose rows the next product normalises also outputs
// their moments.
//
//   before   x = rondo.MatMul(a, V)          after    x, m = rondo.MatMul(a, V)
//            y = rondo.NormMatMul(x, W)               y = rondo.NormMatMul(x, W, moments m)
//
// At its end a block of the first product has 32 or more columns of a row in registers. The second
// product needs mean and deviation of whole rows before its end; it joins them from a few pairs of
// numbers, without a launch and without reading each element again. With few rows the first product
// does not run in tiles, and with many rows reading them again hardly costs time: then the pass
// changes nothing. Reshapes between the two stay.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "op/fused/fused.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"

enum { INPUT_MOMENTS = 6, ROWS_MIN = 16, ELEMENTS_MAX = 1 << 20 };

// The node that made the rows, through views that leave their columns as they are; or -1.
static int32_t find_maker(const rondo_program *program, int32_t rows, int64_t columns) {
    int32_t maker = program->values[rows].producer;
    while (maker >= 0 && (program->nodes[maker].op.def->flags & RONDO__OP_VIEW) != 0) {
        const int32_t from = program->nodes[maker].inputs[0];
        rondo_shape shape;
        if (!rondo__value_get_shape(&program->values[from], &shape) || shape.rank < 2 ||
            shape.extent[shape.rank - 1] != columns) {
            return -1;
        }
        maker = program->values[from].producer;
    }
    return maker;
}

static bool is_constant_matrix(const rondo_program *program, int32_t value) {
    const rondo__value *matrix = &program->values[value];
    return rondo__value_is_constant(matrix) && matrix->constant.shape.rank == 2;
}

// A product by constant weights, on either side.
static bool is_product(const rondo_program *program, const rondo__node *node) {
    return rondo__node_is(node, RONDO__FUSED_MatMul) &&
           program->values[node->outputs[0]].dtype == RONDO_DTYPE_F16 &&
           (is_constant_matrix(program, node->inputs[0]) ||
            is_constant_matrix(program, node->inputs[1]));
}

// Gives the product its second output, if no other user of the rows has.
static rondo_status add_moments(rondo_program *program, int32_t product, int64_t rows,
                                int64_t columns, int32_t *out_moments) {
    const rondo_shape shape = {3, {rows, columns / RONDO__MOMENT_COLUMNS, 2}};
    if (program->nodes[product].output_count > 1) {
        *out_moments = program->nodes[product].outputs[1];
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(
        rondo__program_add_shaped(program, "moments", RONDO_DTYPE_F32, &shape, out_moments));
    rondo__node *node = &program->nodes[product];
    int32_t *outputs = rondo__realloc(node->outputs, 2 * sizeof *outputs);
    if (outputs == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    outputs[1] = *out_moments;
    node->outputs = outputs;
    node->output_count = 2;
    program->values[*out_moments].producer = product;
    return RONDO_STATUS_OK;
}

static rondo_status rewrite_node(rondo__rewriting *r, size_t n) {
    rondo_program *program = r->program;
    rondo_shape x;
    if (!rondo__node_is(&program->nodes[n], RONDO__FUSED_NormMatMul) ||
        program->nodes[n].input_count > INPUT_MOMENTS ||
        !rondo__value_get_shape(&program->values[program->nodes[n].inputs[0]], &x)) {
        return RONDO_STATUS_OK;
    }
    const int64_t columns = x.extent[x.rank - 1];
    const int64_t count = rondo_shape_get_count(&x);
    const int32_t maker = find_maker(program, program->nodes[n].inputs[0], columns);
    if (maker < 0 || !is_product(program, &program->nodes[maker]) || count <= 0 ||
        columns % RONDO__MOMENT_COLUMNS != 0 || count / columns < ROWS_MIN ||
        count > ELEMENTS_MAX) {
        return RONDO_STATUS_OK;
    }
    int32_t moments = RONDO__VALUE_NONE;
    RETURN_IF_ERROR(add_moments(program, maker, count / columns, columns, &moments));
    rondo__node *node = &program->nodes[n];
    int32_t *inputs = rondo__realloc(node->inputs, (INPUT_MOMENTS + 1) * sizeof *inputs);
    if (inputs == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = node->input_count; i < INPUT_MOMENTS; ++i) {
        inputs[i] = RONDO__VALUE_NONE;
    }
    inputs[INPUT_MOMENTS] = moments;
    node->inputs = inputs;
    node->input_count = node->explicit_count = INPUT_MOMENTS + 1;
    return RONDO_STATUS_OK;
}

rondo_status rondo__pass_moments(rondo_program *program) {
    return rondo__program_rewrite(program, rewrite_node);
}

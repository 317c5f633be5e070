// program/passes/pass_turned.c — a product by constant weights whose result is turned, becomes the
// product of the turned weights by what it read, turned.
//
//   before   y = Transpose(Add(MatMul(x, W), b))     x [1, M, K], W [K, N], y [1, N, M]
//   after    y = Add(MatMul(W', Transpose(x)), b')   W' [N, K], b' [N, 1]: one number for each row
//
// A product reads an operand turned at no cost (pass_matmul.c), and what stands behind y, such as
// the residual of a mixer's block, can be its ending. For x whose rows lie as tensor cores want
// them.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "program/passes/match.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"

enum { MULTIPLE = 8 };  // of the rows and columns of x

typedef struct pattern {
    rondo__rewriting *r;
    int32_t product, add;    // nodes; add -1: none
    int32_t x, w, bias;      // values; bias NONE: none
    rondo_shape shape_of_x;  // [1..., M, K]
    int64_t columns;         // N
} pattern;

// Whether a Transpose swaps the last two axes alone.
static bool swaps_last(const rondo__node *node) {
    size_t count = 0;
    const int64_t *perm = rondo__op_get_ints(&node->op, "perm", &count);
    if (perm == NULL || count < 2) {
        return false;
    }
    for (size_t i = 0; i + 2 < count; ++i) {
        if (perm[i] != (int64_t)i) {
            return false;
        }
    }
    return perm[count - 2] == (int64_t)count - 1 && perm[count - 1] == (int64_t)count - 2;
}

static const rondo_tensor *get_constant(const rondo_program *program, int32_t value, int32_t rank) {
    const rondo_tensor *constant = &program->values[value].constant;
    return constant->dtype == RONDO_DTYPE_F16 && constant->shape.rank == rank ? constant : NULL;
}

static bool match(pattern *p, const rondo__node *transpose) {
    const rondo_program *program = p->r->program;
    int32_t maker = rondo__rewriting_get_maker(p->r, transpose->inputs[0]);
    p->add = -1;
    p->bias = RONDO__VALUE_NONE;
    if (maker >= 0 && rondo__node_is(&program->nodes[maker], RONDO__OP_Add)) {
        const rondo__node *add = &program->nodes[maker];
        p->add = maker;
        const int bias = get_constant(program, add->inputs[0], 1) != NULL ? 0 : 1;
        p->bias = add->inputs[bias];
        maker = get_constant(program, p->bias, 1) != NULL
                    ? rondo__rewriting_get_maker(p->r, add->inputs[1 - bias])
                    : -1;
    }
    if (maker < 0 || !rondo__node_is(&program->nodes[maker], RONDO__OP_MatMul)) {
        return false;
    }
    const rondo__node *product = &program->nodes[maker];
    p->product = maker;
    p->x = product->inputs[0];
    p->w = product->inputs[1];
    const rondo_tensor *w = get_constant(program, p->w, 2);
    if (w == NULL || !rondo__program_get_shape(program, p->x, &p->shape_of_x) ||
        p->shape_of_x.rank < 2 || program->values[p->x].dtype != RONDO_DTYPE_F16) {
        return false;
    }
    const rondo_shape *x = &p->shape_of_x;
    const int64_t rows = x->extent[x->rank - 2], depth = x->extent[x->rank - 1];
    p->columns = w->shape.extent[1];
    return rondo_shape_get_count(x) == rows * depth && rows % MULTIPLE == 0 && rows > 1 &&
           depth % MULTIPLE == 0 && p->columns > 1 &&
           (p->bias < 0 || program->values[p->bias].constant.shape.extent[0] == p->columns);
}

static rondo_status turn_weights(const pattern *p, int32_t *out_w) {
    const rondo_tensor *w = &p->r->program->values[p->w].constant;
    const int64_t depth = w->shape.extent[0], columns = w->shape.extent[1];
    const rondo_shape shape = {.rank = 2, .extent = {columns, depth}};
    rondo_tensor turned;
    RETURN_IF_ERROR(rondo_tensor_init(RONDO_DTYPE_F16, &shape, &turned));
    for (int64_t n = 0; n < columns; ++n) {
        for (int64_t k = 0; k < depth; ++k) {
            ((uint16_t *)turned.data)[n * depth + k] = ((const uint16_t *)w->data)[k * columns + n];
        }
    }
    const rondo_status status =
        rondo__program_add_constant(p->r->program, "turned", &turned, out_w);
    rondo_tensor_deinit(&turned);
    return status;
}

static rondo_status stand_bias(const pattern *p, int32_t *out_bias) {
    rondo_tensor column;
    rondo_tensor_share(&p->r->program->values[p->bias].constant, &column);
    column.shape = (rondo_shape){.rank = 2, .extent = {p->columns, 1}};
    const rondo_status status =
        rondo__program_add_constant(p->r->program, "bias", &column, out_bias);
    rondo_tensor_deinit(&column);
    return status;
}

static rondo_status turn_rows(const pattern *p, const rondo__node *transpose, int32_t *out_rows) {
    rondo_program *program = p->r->program;
    rondo_shape shape = p->shape_of_x;
    int64_t perm[RONDO_RANK_MAX];
    size_t count = 0;
    const int64_t *given = rondo__op_get_ints(&transpose->op, "perm", &count);
    if (given == NULL || count != (size_t)shape.rank) {
        return RONDO_FAIL(INTERNAL, "a Transpose of another rank than what it reads");
    }
    memcpy(perm, given, count * sizeof *perm);
    shape.extent[shape.rank - 1] = p->shape_of_x.extent[shape.rank - 2];
    shape.extent[shape.rank - 2] = p->shape_of_x.extent[shape.rank - 1];
    RETURN_IF_ERROR(
        rondo__program_add_shaped(program, "turned", RONDO_DTYPE_F16, &shape, out_rows));
    RETURN_IF_ERROR(
        rondo__program_add_simple(program, "", "Transpose", NULL, &p->x, 1, out_rows, 1));
    return rondo__op_set_ints(&program->nodes[program->node_count - 1].op, "perm", perm, count);
}

static rondo_status rewrite_node(rondo__rewriting *r, size_t n) {
    rondo_program *program = r->program;
    pattern p = {.r = r};
    rondo_shape result;
    if (!rondo__node_is(&program->nodes[n], RONDO__OP_Transpose) || r->remove[n] ||
        !swaps_last(&program->nodes[n]) || !match(&p, &program->nodes[n]) ||
        !rondo__program_get_shape(program, program->nodes[n].outputs[0], &result)) {
        return RONDO_STATUS_OK;
    }
    const int32_t y = program->nodes[n].outputs[0];
    int32_t w, rows, bias = RONDO__VALUE_NONE, sums = y;
    RETURN_IF_ERROR(turn_weights(&p, &w));
    if (p.add >= 0) {
        RETURN_IF_ERROR(stand_bias(&p, &bias));
        RETURN_IF_ERROR(
            rondo__program_add_shaped(program, "sums", RONDO_DTYPE_F16, &result, &sums));
    }
    RETURN_IF_ERROR(turn_rows(&p, &program->nodes[n], &rows));
    rondo__node *product = &program->nodes[p.product];
    product->inputs[0] = w;
    product->inputs[1] = rows;
    product->outputs[0] = sums;
    program->values[sums].producer = p.product;
    if (p.add >= 0) {
        rondo__node *add = &program->nodes[p.add];
        add->inputs[0] = sums;
        add->inputs[1] = bias;
        add->outputs[0] = y;
        program->values[y].producer = p.add;
    }
    r->remove[n] = true;
    return RONDO_STATUS_OK;
}

rondo_status rondo__pass_turned(rondo_program *program) {
    return rondo__program_rewrite(program, rewrite_node);
}

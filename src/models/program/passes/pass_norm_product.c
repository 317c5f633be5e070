// program/passes/pass_norm_product.c — a LayerNormalization goes into the product behind it.
//
//   before   n = LayerNormalization(x)          after    y, n = rondo.NormMatMul(x, W)
//            y = rondo.MatMul(n, W)                      z = rondo.MatMul(y, V) + n
//            z = rondo.MatMul(y, V) + n
//
// n is an output where others use it, too. So the product must be the first user: no other can then
// stand between the two. Of f16 with constant weights, whose device decides whether that is one
// kernel or two (kernel/cuda/product/cuda_norm_product.c). Where a gain or a weight is not finite
// both stay: x W' - mean c would be NaN where ((x - mean) gain) W is infinite. Reshapes between the
// two go before them.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "program/passes/match.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"

enum { COLUMN_MULTIPLE = 8 };

// Of four f16 in a word.
#define EXPONENTS UINT64_C(0x7c007c007c007c00)
#define ONES UINT64_C(0x0400040004000400)
#define SIGNS UINT64_C(0x8000800080008000)

typedef struct pattern {
    rondo__rewriting *r;
    size_t norm;  // nodes
    size_t product;
    int32_t rows;     // what the product reads: the normalised rows, perhaps reshaped
    bool is_shared;   // others use the normalised rows
    int64_t columns;  // of x
} pattern;

// An f16 constant of finite numbers, or nothing. Four at a time, as each new shape asks: of numbers
// that are not finite the exponent overflows into the sign.
static bool is_finite_constant(const rondo_program *program, int32_t value) {
    const rondo_tensor *constant = value >= 0 ? &program->values[value].constant : NULL;
    uint64_t all = 0;
    if (constant == NULL) {
        return true;
    }
    if (constant->dtype != RONDO_DTYPE_F16) {
        return false;
    }
    const uint16_t *bits = constant->data;
    const int64_t count = rondo_shape_get_count(&constant->shape);
    for (int64_t i = 0; i < count; i += 4) {
        uint64_t four = 0;
        memcpy(&four, bits + i, (size_t)(count - i < 4 ? count - i : 4) * sizeof *bits);
        all |= (four & EXPONENTS) + ONES;
    }
    return (all & SIGNS) == 0;
}

// One number for each of `count` columns.
static bool is_list(const rondo_program *program, int32_t value, int64_t count) {
    rondo_shape shape;
    return rondo__value_get_shape(&program->values[value], &shape) && shape.rank == 1 &&
           shape.extent[0] == count;
}

// Whether the node normalises rows of f16 by a constant gain, and perhaps shift.
static bool match_norm(pattern *p) {
    const rondo_program *program = p->r->program;
    const rondo__node *node = &program->nodes[p->norm];
    rondo_shape x;
    if (!rondo__node_is(node, RONDO__OP_LayerNormalization) || p->r->remove[p->norm] ||
        program->values[node->inputs[0]].dtype != RONDO_DTYPE_F16 ||
        !rondo__value_get_shape(&program->values[node->inputs[0]], &x) || x.rank < 2) {
        return false;
    }
    for (size_t i = 1; i < node->output_count; ++i) {
        if (node->outputs[i] >= 0) {
            return false;
        }
    }
    const int64_t axis = rondo__op_get_int(&node->op, "axis", -1);
    const int32_t gain = rondo__match_input(node, 1), shift = rondo__match_input(node, 2);
    p->columns = x.extent[x.rank - 1];
    return (axis == -1 || axis == x.rank - 1) && p->columns > 0 &&
           p->columns % COLUMN_MULTIPLE == 0 && is_list(program, gain, p->columns) &&
           (shift < 0 || is_list(program, shift, p->columns)) &&
           is_finite_constant(program, gain) && is_finite_constant(program, shift);
}

// A view of the rows that leaves their columns as they are.
static bool is_row_reshape(const pattern *p, size_t n) {
    const rondo_program *program = p->r->program;
    const rondo__node *node = &program->nodes[n];
    rondo_shape rows;
    return (node->op.def->flags & RONDO__OP_VIEW) != 0 && !p->r->remove[n] &&
           node->inputs[0] == p->rows && node->output_count == 1 && node->outputs[0] >= 0 &&
           rondo__value_get_shape(&program->values[node->outputs[0]], &rows) && rows.rank >= 2 &&
           rows.extent[rows.rank - 1] == p->columns;
}

static bool is_product_of(const pattern *p, size_t n) {
    const rondo_program *program = p->r->program;
    const rondo__node *node = &program->nodes[n];
    rondo_shape b;
    if (!rondo__node_is(node, RONDO__FUSED_MatMul) || p->r->remove[n] ||
        node->inputs[0] != p->rows || rondo__op_get_int(&node->op, "trans_a", 0) != 0 ||
        rondo__op_find(&node->op, "gates") != NULL || rondo__match_input(node, 3) == p->rows ||
        !rondo__value_is_constant(&program->values[node->inputs[1]]) ||
        !rondo__value_get_shape(&program->values[node->inputs[1]], &b) || b.rank != 2) {
        return false;
    }
    return is_finite_constant(program, node->inputs[1]) &&
           is_finite_constant(program, rondo__match_input(node, 2));
}

// Finds the product, which has to be the first user.
static bool match_product(pattern *p) {
    const rondo__uses *uses = &p->r->uses;
    p->rows = p->r->program->nodes[p->norm].outputs[0];
    const size_t first = uses->first[p->rows], last = uses->first[p->rows + 1];
    if (first == last) {
        return false;
    }
    p->product = uses->users[first];
    p->is_shared = last - first > 1 || uses->is_output[p->rows];
    while (!p->is_shared && is_row_reshape(p, p->product)) {
        p->rows = p->r->program->nodes[p->product].outputs[0];
        const int32_t user = rondo__uses_get_single(uses, p->rows);
        if (user < 0) {
            return false;
        }
        p->product = (size_t)user;
    }
    return is_product_of(p, p->product);
}

// What the product is to read: x, reshaped as the normalised rows were.
static rondo_status add_rows(const pattern *p, int32_t *out_x) {
    rondo_program *program = p->r->program;
    const rondo__node *norm = &program->nodes[p->norm];
    const int32_t x = norm->inputs[0];
    rondo_shape rows;
    *out_x = x;
    if (p->rows == norm->outputs[0] || !rondo__value_get_shape(&program->values[p->rows], &rows)) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(rondo__program_add_shaped(program, "rows", RONDO_DTYPE_F16, &rows, out_x));
    return rondo__program_add_reshape(program, x, *out_x, &rows);
}

static rondo_status fold(const pattern *p) {
    enum { INPUTS = 6 };
    rondo_program *program = p->r->program;
    int32_t x = RONDO__VALUE_NONE;
    RETURN_IF_ERROR(add_rows(p, &x));
    rondo__node *product = &program->nodes[p->product];
    const rondo__node *norm = &program->nodes[p->norm];
    RETURN_IF_ERROR(rondo__op_set_float(&product->op, "epsilon",
                                        rondo__op_get_float(&norm->op, "epsilon", 1e-5f)));
    int32_t *inputs = rondo__calloc(INPUTS, sizeof *inputs);
    int32_t *outputs = rondo__calloc(2, sizeof *outputs);
    if (inputs == NULL || outputs == NULL) {
        rondo__free(inputs);
        rondo__free(outputs);
        return RONDO_STATUS_NO_MEMORY;
    }
    const int32_t from[INPUTS] = {x,
                                  product->inputs[1],
                                  rondo__match_input(product, 2),
                                  rondo__match_input(product, 3),
                                  norm->inputs[1],
                                  rondo__match_input(norm, 2)};
    memcpy(inputs, from, sizeof from);
    outputs[0] = product->outputs[0];
    outputs[1] = norm->outputs[0];
    rondo__free(product->inputs);
    rondo__free(product->outputs);
    product->op.def = rondo__op_get_def(
        RONDO__FUSED_NormMatMul);  // the attributes are the product's, and epsilon
    product->inputs = inputs;
    product->input_count = product->explicit_count = INPUTS;
    product->outputs = outputs;
    product->output_count = p->is_shared ? 2 : 1;
    if (p->is_shared) {
        program->values[outputs[1]].producer = (int32_t)p->product;
        p->r->remove[p->norm] = true;  // otherwise it has no reader any more
    }
    return RONDO_STATUS_OK;
}

static rondo_status rewrite_node(rondo__rewriting *r, size_t n) {
    pattern p = {.r = r, .norm = n};
    return match_norm(&p) && match_product(&p) ? fold(&p) : RONDO_STATUS_OK;
}

rondo_status rondo__pass_norm_product(rondo_program *program) {
    return rondo__program_rewrite(program, rewrite_node);
}

// program/attention/pass_row_product.c — what stands around products of one row goes into them.
//
//   before   n = RMSNormalization(x)             after   y = rondo.RowProduct(x, W, V)
//            v = rondo.MatMul(n, V), activated
//            y = v * rondo.MatMul(n, W)
//
// Such a product takes as long as reading its weights, and so does whatever is done to the row on
// the way; a launch of its own would cost more. What is added to a product of few bits becomes its
// bias. Then Muls of two products of one value become one, then normalisations go into products,
// where all their users are such. Weights are constants, so that they are read along k.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"

enum { INPUTS = 6, GAIN = 4, GATE = 5, VECTOR_BYTES = 16 };

static int32_t get_input(const rondo__node *node, size_t index) {
    return index < node->input_count ? node->inputs[index] : RONDO__VALUE_NONE;
}

static rondo_dtype get_dtype(const rondo_program *program, int32_t value) {
    const rondo__value *v = &program->values[value];
    return rondo__value_is_constant(v) ? v->constant.dtype : v->dtype;
}

// Whether node `n` is a product of one row and constant weights that kernels read in vectors.
static bool is_row_product(const rondo__rewriting *r, size_t n) {
    const rondo_program *program = r->program;
    const rondo__node *node = &program->nodes[n];
    const bool is_fused = rondo__node_is(node, RONDO__FUSED_RowProduct);
    rondo_shape x, w;
    if (r->remove[n] || (!is_fused && !rondo__node_is(node, RONDO__FUSED_MatMul)) ||
        node->output_count != 1 || rondo__op_find(&node->op, "to") != NULL ||
        rondo__op_get_int(&node->op, "trans_a", 0) != 0 ||
        rondo__op_get_float(&node->op, "alpha_scale", 1.0f) != 1.0f ||
        !rondo__value_get_shape(&program->values[node->inputs[0]], &x) ||
        !rondo__value_get_shape(&program->values[node->inputs[1]], &w) ||
        !rondo__value_is_constant(&program->values[node->inputs[1]]) || w.rank != 2 || x.rank < 2) {
        return false;
    }
    const rondo_dtype dtype = get_dtype(program, node->inputs[0]);
    const int64_t k = x.extent[x.rank - 1], n_columns = rondo_shape_get_count(&w) / (k > 0 ? k : 1);
    const int64_t width = VECTOR_BYTES / (int64_t)rondo_dtype_get_bytes(dtype);
    return (dtype == RONDO_DTYPE_F16 || dtype == RONDO_DTYPE_F32) && k > 0 && k % width == 0 &&
           n_columns > 1 && rondo_shape_get_count(&x) == k &&
           get_dtype(program, node->inputs[1]) == dtype;
}

// Makes the product `n` a rondo.RowProduct with these inputs; its attributes stay.
static rondo_status become(rondo_program *program, size_t n, const int32_t inputs[INPUTS]) {
    rondo__node *node = &program->nodes[n];
    int32_t *list = rondo__calloc(INPUTS, sizeof *list);
    if (list == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    memcpy(list, inputs, INPUTS * sizeof *list);
    rondo__free(node->inputs);
    node->op.def = rondo__op_get_def(RONDO__FUSED_RowProduct);
    node->inputs = list;
    node->input_count = node->explicit_count = INPUTS;
    return RONDO_STATUS_OK;
}

// ---- gates ------------------------------------------------------------------------------------

static bool is_bare(const rondo__node *product, bool has_activation) {
    return get_input(product, 2) < 0 && get_input(product, 3) < 0 &&
           (has_activation ||
            strcmp(rondo__op_get_string(&product->op, "activation", "none"), "none") == 0);
}

// The product that makes factor `i` of the Mul and has no other reader; -1: none.
static int32_t get_factor(const rondo__rewriting *r, const rondo__node *mul, size_t i,
                          bool has_activation) {
    const int32_t value = mul->inputs[i], maker = r->program->values[value].producer;
    const bool is_it = maker >= 0 && rondo__uses_get_single(&r->uses, value) >= 0 &&
                       rondo__node_is(&r->program->nodes[maker], RONDO__FUSED_MatMul) &&
                       is_row_product(r, (size_t)maker) &&
                       is_bare(&r->program->nodes[maker], has_activation);
    return is_it ? maker : -1;
}

static bool are_alike(const rondo_program *program, int32_t a, int32_t b) {
    const rondo__node *x = &program->nodes[a], *y = &program->nodes[b];
    rondo_shape of_x, of_y;
    return x->inputs[0] == y->inputs[0] &&
           rondo__op_get_int(&x->op, "trans_b", 0) == rondo__op_get_int(&y->op, "trans_b", 0) &&
           rondo__value_get_shape(&program->values[x->inputs[1]], &of_x) &&
           rondo__value_get_shape(&program->values[y->inputs[1]], &of_y) &&
           rondo_shape_is_equal(&of_x, &of_y) && memcmp(&x->place, &y->place, sizeof x->place) == 0;
}

static rondo_status join_gate(rondo__rewriting *r, size_t n) {
    rondo_program *program = r->program;
    const rondo__node *mul = &program->nodes[n];
    if (!rondo__node_is(mul, RONDO__OP_Mul) || r->remove[n] || mul->inputs[0] == mul->inputs[1]) {
        return RONDO_STATUS_OK;
    }
    for (size_t i = 0; i < 2; ++i) {
        const int32_t gate = get_factor(r, mul, i, true),
                      product = get_factor(r, mul, 1 - i, false);
        if (gate < 0 || product < 0 || !are_alike(program, gate, product) ||
            memcmp(&mul->place, &program->nodes[gate].place, sizeof mul->place) != 0) {
            continue;
        }
        const rondo__node *g = &program->nodes[gate];
        const int32_t inputs[INPUTS] = {g->inputs[0],      program->nodes[product].inputs[1],
                                        RONDO__VALUE_NONE, RONDO__VALUE_NONE,
                                        RONDO__VALUE_NONE, g->inputs[1]};
        const int32_t result = mul->outputs[0];
        RETURN_IF_ERROR(become(program, (size_t)gate, inputs));
        program->nodes[gate].outputs[0] = result;
        program->values[result].producer = gate;
        r->remove[product] = r->remove[n] = true;
        return RONDO_STATUS_OK;
    }
    return RONDO_STATUS_OK;
}

// ---- normalisations ---------------------------------------------------------------------------

static bool is_norm(const rondo__rewriting *r, size_t n) {
    const rondo_program *program = r->program;
    const rondo__node *node = &program->nodes[n];
    rondo_shape x, gain;
    if (!rondo__node_is(node, RONDO__OP_RMSNormalization) || r->remove[n] ||
        !rondo__value_get_shape(&program->values[node->inputs[0]], &x) ||
        !rondo__value_get_shape(&program->values[node->inputs[1]], &gain)) {
        return false;
    }
    const int64_t axis = rondo__op_get_int(&node->op, "axis", -1);
    return x.rank >= 2 && (axis == -1 || axis == x.rank - 1) && gain.rank == 1 &&
           gain.extent[0] == x.extent[x.rank - 1] &&
           get_dtype(program, node->inputs[1]) == get_dtype(program, node->inputs[0]);
}

static rondo_status join_norm(rondo__rewriting *r, size_t n) {
    rondo_program *program = r->program;
    if (!is_norm(r, n)) {
        return RONDO_STATUS_OK;
    }
    const int32_t rows = program->nodes[n].outputs[0];
    const size_t first = r->uses.first[rows], last = r->uses.first[rows + 1];
    bool are_products = first < last && !r->uses.is_output[rows];
    for (size_t u = first; u < last && are_products; ++u) {
        const rondo__node *user = &program->nodes[r->uses.users[u]];
        are_products = is_row_product(r, r->uses.users[u]) && user->inputs[0] == rows &&
                       get_input(user, 2) != rows && get_input(user, 3) != rows &&
                       get_input(user, GAIN) < 0;
    }
    for (size_t u = first; u < last && are_products; ++u) {
        const rondo__node *norm = &program->nodes[n];
        const rondo__node *product = &program->nodes[r->uses.users[u]];
        const int32_t inputs[INPUTS] = {norm->inputs[0],       product->inputs[1],
                                        get_input(product, 2), get_input(product, 3),
                                        norm->inputs[1],       get_input(product, GATE)};
        const float epsilon = rondo__op_get_float(&norm->op, "epsilon", 1e-5f);
        RETURN_IF_ERROR(become(program, r->uses.users[u], inputs));
        RETURN_IF_ERROR(
            rondo__op_set_float(&program->nodes[r->uses.users[u]].op, "epsilon", epsilon));
    }
    return RONDO_STATUS_OK;
}

// ---- products of weights of few bits ----------------------------------------------------------

enum { BITS_INPUTS = 6, BITS_BIAS = 5 };

// Whether operand `i` of the Add is such a product of one row that has no bias and no other reader.
static bool is_bits_product(const rondo__rewriting *r, const rondo__node *add, size_t i) {
    const rondo_program *program = r->program;
    const int32_t value = add->inputs[i], other = add->inputs[1 - i];
    const int32_t maker = program->values[value].producer;
    const rondo__node *node = maker >= 0 ? &program->nodes[maker] : NULL;
    rondo_shape row, addend;
    return node != NULL && other != value && !r->remove[maker] &&
           rondo__node_is(node, RONDO__MS_MatMulNBits) &&
           rondo__uses_get_single(&r->uses, value) >= 0 && get_input(node, BITS_BIAS) < 0 &&
           memcmp(&add->place, &node->place, sizeof add->place) == 0 &&
           rondo__value_get_shape(&program->values[value], &row) &&
           rondo__value_get_shape(&program->values[other], &addend) &&
           rondo_shape_is_equal(&row, &addend) && row.rank > 0 &&
           rondo_shape_get_count(&row) == row.extent[row.rank - 1] &&
           get_dtype(program, value) == get_dtype(program, other);
}

// Makes an Add to a product of one row the product's bias.
static rondo_status join_sum(rondo__rewriting *r, size_t n) {
    rondo_program *program = r->program;
    const rondo__node *add = &program->nodes[n];
    for (size_t i = 0; i < 2 && rondo__node_is(add, RONDO__OP_Add) && !r->remove[n]; ++i) {
        if (!is_bits_product(r, add, i)) {
            continue;
        }
        const int32_t maker = program->values[add->inputs[i]].producer;
        rondo__op op = {0};
        int32_t *list = rondo__calloc(BITS_INPUTS, sizeof *list);
        if (list == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
        for (size_t k = 0; k < BITS_BIAS; ++k) {
            list[k] = get_input(&program->nodes[maker], k);
        }
        list[BITS_BIAS] = add->inputs[1 - i];
        const rondo_status status = rondo__op_copy(&program->nodes[maker].op, &op);
        if (status != RONDO_STATUS_OK) {
            rondo__free(list);
            return status;
        }
        rondo__free(op.name);  // the sum's stays
        op.name = NULL;
        rondo__node_become(&program->nodes[n], &op, list, BITS_INPUTS);
        r->remove[maker] = true;
        break;
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__pass_row_product(rondo_program *program) {
    RETURN_IF_ERROR(rondo__program_rewrite(program, join_sum));
    RETURN_IF_ERROR(rondo__program_rewrite(program, join_gate));
    return rondo__program_rewrite(program, join_norm);
}

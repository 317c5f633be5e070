// program/passes/pass_widen.c — a cast to f32, or a factor of each element, goes into the product
// before it.
//
//   before   h = rondo.MatMul(a, b)  f16        after    y = rondo.MatMul(a, b)  f32
//            y = cast(h)             f32
//
//   before   h = rondo.MatMul(a, b)  f16        after    y = rondo.MatMul(a, b, z)  gates
//            y = h * activate(z)
//
// z is a product with an activation, mostly: its result is activated where it is a factor.
//
// The sums are f32 anyway: a launch is saved, and y is not rounded and does not leave the range of
// f16. Outputs of networks in half precision end that way. It runs when chains of element-wise ops
// are formed: a cast that is part of one costs nothing there.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "program/passes/match.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"

enum {
    ONNX_FLOAT = 1,   // TensorProto.DataType
    ROWS_LEAST = 16,  // products of fewer rows take what reading their weights takes
};

// A Cast, or what pass_half makes for one.
static bool is_cast_to_single(const rondo_program *program, const rondo__node *node) {
    const bool is_cast = rondo__node_is(node, RONDO__OP_Cast);
    if ((!is_cast && !rondo__node_is(node, RONDO__FUSED_Elementwise)) || node->inputs[0] < 0 ||
        rondo__op_get_int(&node->op, "to", 0) != ONNX_FLOAT ||
        program->values[node->inputs[0]].dtype != RONDO_DTYPE_F16) {
        return false;
    }
    const rondo__attribute *ops = rondo__op_find(&node->op, "ops");
    return is_cast ||
           (node->input_count == 1 && ops != NULL && ops->count == 1 &&
            strcmp(ops->strings[0], rondo__match_scalar_name(RONDO__SCALAR_Saturate)) == 0);
}

static rondo_status rewrite_node(rondo__rewriting *r, size_t n) {
    rondo_program *program = r->program;
    const rondo__node *cast = &program->nodes[n];
    if (!is_cast_to_single(program, cast)) {
        return RONDO_STATUS_OK;
    }
    const int32_t half = cast->inputs[0], maker = program->values[half].producer;
    if (maker < 0 || !rondo__node_is(&program->nodes[maker], RONDO__FUSED_MatMul) ||
        rondo__uses_get_single(&r->uses, half) != (int32_t)n) {
        return RONDO_STATUS_OK;
    }
    rondo__node *product = &program->nodes[maker];
    RETURN_IF_ERROR(rondo__op_set_int(&product->op, "to", ONNX_FLOAT));
    product->outputs[0] = cast->outputs[0];
    r->remove[n] = true;
    return RONDO_STATUS_OK;
}

// ---- gates ------------------------------------------------------------------------------------

static bool has_activation(const rondo__node *product) {
    return strcmp(rondo__op_get_string(&product->op, "activation", "none"), "none") != 0;
}

// Whether operand `i` of the Mul is a product of halves and constant weights that ends with nothing
// and has no other reader, and the other one a value of the same shape.
static bool is_gated(const rondo__rewriting *r, const rondo__node *mul, int i) {
    const rondo_program *program = r->program;
    const int32_t value = mul->inputs[i], other = mul->inputs[1 - i];
    const int32_t maker = value >= 0 ? program->values[value].producer : -1;
    const rondo__node *node = maker >= 0 ? &program->nodes[maker] : NULL;
    rondo_shape own, theirs;
    return node != NULL && other >= 0 && other != value && !r->remove[maker] &&
           rondo__node_is(node, RONDO__FUSED_MatMul) && node->output_count == 1 &&
           rondo__uses_get_single(&r->uses, value) >= 0 && rondo__match_input(node, 3) < 0 &&
           rondo__value_is_constant(&program->values[node->inputs[1]]) &&
           rondo__op_find(&node->op, "to") == NULL && !has_activation(node) &&
           node->precision == mul->precision &&
           memcmp(&node->place, &mul->place, sizeof node->place) == 0 &&
           rondo__match_dtype(program, value) == RONDO_DTYPE_F16 &&
           rondo__match_dtype(program, other) == RONDO_DTYPE_F16 &&
           rondo__value_get_shape(&program->values[value], &own) &&
           rondo__value_get_shape(&program->values[other], &theirs) &&
           rondo_shape_is_equal(&own, &theirs) && own.rank >= 2 &&
           rondo_shape_get_count(&own) >= ROWS_LEAST * own.extent[own.rank - 1];
}

// The product whose activation can go to where its result is read; -1: there is none.
static int32_t find_activated(const rondo__rewriting *r, int32_t value, const rondo__node *reader) {
    const rondo_program *program = r->program;
    const int32_t maker = program->values[value].producer;
    const rondo__node *node = maker >= 0 ? &program->nodes[maker] : NULL;
    const bool is_it = node != NULL && !r->remove[maker] &&
                       rondo__node_is(node, RONDO__FUSED_MatMul) && node->output_count == 1 &&
                       rondo__uses_get_single(&r->uses, value) >= 0 && has_activation(node) &&
                       rondo__op_find(&node->op, "gates") == NULL &&
                       node->precision == reader->precision &&
                       memcmp(&node->place, &reader->place, sizeof node->place) == 0;
    return is_it ? maker : -1;
}

// Takes the activation of product `from` to product `to`, which has none.
static rondo_status move_activation(rondo__op *from, rondo__op *to) {
    RETURN_IF_ERROR(
        rondo__op_set_string(to, "activation", rondo__op_get_string(from, "activation", "none")));
    RETURN_IF_ERROR(rondo__op_set_float(to, "alpha", rondo__op_get_float(from, "alpha", 0.0f)));
    RETURN_IF_ERROR(rondo__op_set_float(to, "beta", rondo__op_get_float(from, "beta", 0.0f)));
    return rondo__op_set_string(from, "activation", "none");
}

static rondo_status join_gate(rondo__rewriting *r, size_t n) {
    rondo_program *program = r->program;
    const rondo__node *mul = &program->nodes[n];
    if (!rondo__node_is(mul, RONDO__OP_Mul) || r->remove[n] || mul->input_count != 2) {
        return RONDO_STATUS_OK;
    }
    for (int i = 1; i >= 0; --i) {
        if (!is_gated(r, mul, i)) {
            continue;
        }
        rondo__node *product = &program->nodes[program->values[mul->inputs[i]].producer];
        int32_t *inputs = rondo__calloc(4, sizeof *inputs);
        if (inputs == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
        for (size_t k = 0; k < 3; ++k) {
            inputs[k] = rondo__match_input(product, k);
        }
        inputs[3] = mul->inputs[1 - i];
        rondo__free(product->inputs);
        product->inputs = inputs;
        product->input_count = product->explicit_count = 4;
        product->outputs[0] = mul->outputs[0];
        program->values[mul->outputs[0]].producer = program->values[mul->inputs[i]].producer;
        r->remove[n] = true;
        const int32_t activated = find_activated(r, inputs[3], product);
        if (activated >= 0) {
            RETURN_IF_ERROR(move_activation(&program->nodes[activated].op, &product->op));
        }
        return rondo__op_set_int(&product->op, "gates", 1);
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__pass_gate_products(rondo_program *program) {
    return rondo__program_rewrite(program, join_gate);
}

rondo_status rondo__pass_widen(rondo_program *program) {
    return rondo__program_rewrite(program, rewrite_node);
}

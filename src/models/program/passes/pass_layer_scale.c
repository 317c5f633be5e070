// program/passes/pass_layer_scale.c — a factor by channel behind a product goes into its weights,
// where the product is a term of a sum (LayerScale of ConvNeXt, CaiT and others).
//
//   before   x + s * T(a W + b)         T: Transposes, or none
//   after    x + T(a (W s) + (b s))     the product can take the sum in
//
// For MatMul, Gemm and Conv with constant weights, and a constant bias or none. Terms of sums only:
// weights of a channel with a small factor are coarse in f16, which does not matter beside x. It
// runs before shapes are known, so that the weights are made once for all plans. In double, rounded
// once. Source: Touvron et al., arXiv:2103.17239, section 2.2.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "base/error.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"

typedef struct chain {
    rondo__rewriting *r;
    size_t product;  // node
    bool is_by_row;  // a row of the weights makes a channel, not a column
    int64_t channels;
    int32_t rank;        // of `value`; 0: not known
    int32_t axis;        // of the channels in `value`, from its end: -1 is the last
    int32_t bias_node;   // that adds it; -1: none
    size_t bias_input;   // of that node
    int32_t value;       // the chain so far
    int32_t scale_node;  // -1: not there yet
    int32_t scale;       // constant
} chain;

static const rondo_tensor *get_floats(const rondo_program *program, int32_t value) {
    const rondo_tensor *constant = value >= 0 ? &program->values[value].constant : NULL;
    return constant != NULL && constant->dtype == RONDO_DTYPE_F32 ? constant : NULL;
}

// Whether a constant has one number for each channel of the chain's value, and of no higher rank.
static bool is_by_channel(const chain *c, int32_t value) {
    const rondo_tensor *constant = get_floats(c->r->program, value);
    return constant != NULL && constant->shape.rank >= -c->axis &&
           (constant->shape.rank <= c->rank || constant->shape.rank == 1) &&
           rondo_shape_get_count(&constant->shape) == c->channels &&
           constant->shape.extent[constant->shape.rank + c->axis] == c->channels;
}

// Starts at a product with constant weights.
static bool begin(chain *c) {
    const rondo_program *program = c->r->program;
    const rondo__node *node = &program->nodes[c->product];
    const bool is_gemm = rondo__node_is(node, RONDO__OP_Gemm),
               is_conv = rondo__node_is(node, RONDO__OP_Conv);
    if ((!is_gemm && !is_conv && !rondo__node_is(node, RONDO__OP_MatMul)) ||
        node->input_count < 2) {
        return false;
    }
    const rondo_tensor *weights = get_floats(program, node->inputs[1]);
    if (weights == NULL || rondo_shape_get_count(&weights->shape) == 0 ||
        (is_conv ? weights->shape.rank < 3 : weights->shape.rank != 2)) {
        return false;
    }
    c->is_by_row = is_conv || (is_gemm && rondo__op_get_int(&node->op, "transB", 0) != 0);
    c->channels = weights->shape.extent[c->is_by_row ? 0 : 1];
    c->rank = is_conv ? weights->shape.rank : is_gemm ? 2 : 0;
    c->value = node->outputs[0];
    c->axis = -1;
    if (node->input_count > 2 && node->inputs[2] >= 0) {
        if (!is_by_channel(c, node->inputs[2])) {
            return false;
        }
        c->bias_node = (int32_t)c->product;
        c->bias_input = 2;
    }
    c->axis = is_conv ? 1 - c->rank : -1;
    return true;
}

static bool take_transpose(chain *c, const rondo__node *node) {
    size_t count = 0;
    const int64_t *perm = rondo__op_get_ints(&node->op, "perm", &count);
    if (perm == NULL || (c->rank != 0 && (size_t)c->rank != count)) {
        return false;
    }
    c->rank = (int32_t)count;
    for (int32_t i = 0; i < c->rank; ++i) {
        if (perm[i] == c->rank + c->axis) {
            c->axis = i - c->rank;
            c->value = node->outputs[0];
            return true;
        }
    }
    return false;
}

// Takes the only user of the chain's value: a Transpose, the bias, or at last the factor.
static bool take_next(chain *c) {
    const rondo_program *program = c->r->program;
    const int32_t user = rondo__uses_get_single(&c->r->uses, c->value);
    if (user < 0 || c->r->remove[user] ||
        program->nodes[user].precision != program->nodes[c->product].precision) {
        return false;
    }
    const rondo__node *node = &program->nodes[user];
    if (rondo__node_is(node, RONDO__OP_Transpose)) {
        return take_transpose(c, node);
    }
    const bool is_factor = rondo__node_is(node, RONDO__OP_Mul);
    if (!is_factor && (!rondo__node_is(node, RONDO__OP_Add) || c->bias_node >= 0)) {
        return false;
    }
    const size_t other = node->inputs[0] == c->value ? 1 : 0;
    if (!is_by_channel(c, node->inputs[other])) {
        return false;
    }
    c->value = node->outputs[0];
    if (is_factor) {
        c->scale_node = user;
        c->scale = node->inputs[other];
    } else {
        c->bias_node = user;
        c->bias_input = other;
    }
    return true;
}

// Whether the only user, behind Transposes, adds something that is computed.
static bool is_term(const chain *c) {
    const rondo_program *program = c->r->program;
    int32_t value = c->value;
    int32_t user = rondo__uses_get_single(&c->r->uses, value);
    while (user >= 0 && rondo__node_is(&program->nodes[user], RONDO__OP_Transpose)) {
        value = program->nodes[user].outputs[0];
        user = rondo__uses_get_single(&c->r->uses, value);
    }
    if (user < 0 || !rondo__node_is(&program->nodes[user], RONDO__OP_Add)) {
        return false;
    }
    const rondo__node *add = &program->nodes[user];
    const int32_t other = add->inputs[add->inputs[0] == value ? 1 : 0];
    return !rondo__value_is_constant(&program->values[other]);
}

// A copy of the constant with each number times its channel's factor; false in *out_is_finite when
// one is no number then.
static rondo_status add_scaled(const chain *c, int32_t value, bool is_by_row, const char *name,
                               int32_t *out_value, bool *out_is_finite) {
    rondo_program *program = c->r->program;
    const rondo_tensor *source = &program->values[value].constant;
    const float *from = source->data, *scale = program->values[c->scale].constant.data;
    const int64_t count = rondo_shape_get_count(&source->shape);
    const int64_t each = count / c->channels;
    rondo_tensor scaled;
    RETURN_IF_ERROR(rondo_tensor_init(RONDO_DTYPE_F32, &source->shape, &scaled));
    float *to = scaled.data;
    *out_is_finite = true;
    for (int64_t i = 0; i < count; ++i) {
        const int64_t channel = is_by_row ? i / each : i % c->channels;
        to[i] = (float)((double)from[i] * (double)scale[channel]);
        *out_is_finite = *out_is_finite && isfinite(to[i]);
    }
    const rondo_status status = rondo__program_add_constant(program, name, &scaled, out_value);
    rondo_tensor_deinit(&scaled);
    return status;
}

static rondo_status fold(const chain *c) {
    rondo_program *program = c->r->program;
    int32_t weights, bias = RONDO__VALUE_NONE, last;
    bool is_finite, is_bias_finite = true;
    RETURN_IF_ERROR(add_scaled(c, program->nodes[c->product].inputs[1], c->is_by_row,
                               "scaled_weight", &weights, &is_finite));
    if (c->bias_node >= 0) {
        RETURN_IF_ERROR(add_scaled(c, program->nodes[c->bias_node].inputs[c->bias_input], false,
                                   "scaled_bias", &bias, &is_bias_finite));
    }
    if (!is_finite || !is_bias_finite) {
        return RONDO_STATUS_OK;
    }
    program->nodes[c->product].inputs[1] = weights;
    if (bias >= 0) {
        program->nodes[c->bias_node].inputs[c->bias_input] = bias;
    }
    const rondo__node *scale = &program->nodes[c->scale_node];
    last = scale->inputs[scale->inputs[0] == c->scale ? 1 : 0];
    rondo__program_replace_uses(program, scale->outputs[0], last);
    c->r->remove[c->scale_node] = true;
    return RONDO_STATUS_OK;
}

static rondo_status rewrite_node(rondo__rewriting *r, size_t n) {
    chain c = {.r = r, .product = n, .bias_node = -1, .scale_node = -1};
    if (!begin(&c)) {
        return RONDO_STATUS_OK;
    }
    while (c.scale_node < 0 && take_next(&c)) {
    }
    return c.scale_node >= 0 && is_term(&c) ? fold(&c) : RONDO_STATUS_OK;
}

rondo_status rondo__pass_layer_scale(rondo_program *program) {
    return rondo__program_rewrite(program, rewrite_node);
}

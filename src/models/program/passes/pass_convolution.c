// program/passes/pass_convolution.c — Conv with what follows it becomes rondo.Conv: bias, residual
// sum, activation.
//
// Shapes are known here, so that auto_pad turns into plain pads. The chain that is taken in is
// Conv -> (Add of a constant per channel) -> (Add of a tensor of the same shape) -> (activation),
// where each value in between has no other user.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "base/memory.h"
#include "program/passes/match.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"
#include "program/window_write.h"
#include "tensor/elements.h"

typedef struct chain {
    rondo_program *program;
    rondo__rewriting *rewriting;
    size_t node;       // the convolution
    int32_t bias;      // value or RONDO__VALUE_NONE
    int32_t residual;  // value or RONDO__VALUE_NONE
    rondo__activation activation;
    float alpha;
    float beta;
    int32_t result;  // value the chain ends in
} chain;

static rondo_status make_bias(rondo_program *program, int32_t value, int32_t *out_bias) {
    rondo_tensor flat;
    rondo_tensor_share(&program->values[value].constant, &flat);
    flat.shape = (rondo_shape){.rank = 1, .extent = {rondo_shape_get_count(&flat.shape)}};
    rondo_status status = rondo__program_add_constant(program, "bias", &flat, out_bias);
    rondo_tensor_deinit(&flat);
    return status;
}

// Takes an Add into the chain when it is a bias or a residual; *out_is_taken tells.
static rondo_status take_add(chain *c, const rondo__node *add, bool *out_is_taken) {
    *out_is_taken = false;
    if (add->input_count != 2 || add->inputs[0] == add->inputs[1]) {
        return RONDO_STATUS_OK;
    }
    int32_t other = add->inputs[0] == c->result ? add->inputs[1] : add->inputs[0];
    rondo_shape mine;
    rondo_shape theirs;
    if (!rondo__value_get_shape(&c->program->values[c->result], &mine) ||
        !rondo__value_get_shape(&c->program->values[other], &theirs)) {
        return RONDO_STATUS_OK;
    }
    if (c->bias < 0 && c->residual < 0 && rondo__match_channel_constant(c->program, other, &mine)) {
        *out_is_taken = true;
        return make_bias(c->program, other, &c->bias);
    }
    if (c->residual < 0 && rondo_shape_is_equal(&mine, &theirs) &&
        c->program->values[other].dtype == c->program->values[c->result].dtype) {
        *out_is_taken = true;
        c->residual = other;
    }
    return RONDO_STATUS_OK;
}

static rondo_status follow(chain *c) {
    for (;;) {
        int32_t user = rondo__uses_get_single(&c->rewriting->uses, c->result);
        if (user < 0 || c->rewriting->remove[user]) {
            return RONDO_STATUS_OK;
        }
        const rondo__node *next = &c->program->nodes[user];
        if (rondo__node_is(next, RONDO__OP_Add)) {
            bool is_taken;
            RETURN_IF_ERROR(take_add(c, next, &is_taken));
            if (!is_taken) {
                return RONDO_STATUS_OK;
            }
            c->rewriting->remove[user] = true;
            c->result = next->outputs[0];
            continue;
        }
        if (next->inputs[0] == c->result && next->output_count == 1 &&
            rondo__match_activation(c->program, next, &c->activation, &c->alpha, &c->beta)) {
            c->rewriting->remove[user] = true;
            c->result = next->outputs[0];
        } else {
            c->activation = RONDO__ACTIVATION_NONE;
        }
        return RONDO_STATUS_OK;
    }
}

static rondo_status write_attributes(const chain *c, const rondo__window *window, int64_t group,
                                     rondo__op *op) {
    RETURN_IF_ERROR(rondo__window_write(op, window));
    RETURN_IF_ERROR(rondo__op_set_int(op, "group", group));
    RETURN_IF_ERROR(rondo__op_set_int(op, "channels_last", 0));
    RETURN_IF_ERROR(
        rondo__op_set_string(op, "activation", rondo__match_activation_name(c->activation)));
    RETURN_IF_ERROR(rondo__op_set_float(op, "alpha", c->alpha));
    return rondo__op_set_float(op, "beta", c->beta);
}

// Turns the Conv node into rondo.Conv with the chain's inputs.
static rondo_status rewrite(const chain *c) {
    rondo__node *node = &c->program->nodes[c->node];
    rondo_shape x;
    rondo_shape w;
    if (!rondo__value_get_shape(&c->program->values[node->inputs[0]], &x) ||
        !rondo__value_get_shape(&c->program->values[node->inputs[1]], &w)) {
        return RONDO_FAIL(INTERNAL, "%s has no known shapes", rondo__node_describe(node));
    }
    rondo__window window;
    RETURN_IF_ERROR(rondo__window_init(&node->op, x.rank - 2, &x.extent[2], &w.extent[2], &window));
    int64_t group = rondo__op_get_int(&node->op, "group", 1);
    int32_t *inputs = rondo__calloc(4, sizeof *inputs);
    if (inputs == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    inputs[0] = node->inputs[0];
    inputs[1] = node->inputs[1];
    inputs[2] = c->bias;
    inputs[3] = c->residual;
    rondo__op op = {.opset = RONDO_OP_OPSET_MAX, .def = rondo__op_get_def(RONDO__FUSED_Conv)};
    rondo_status status = write_attributes(c, &window, group, &op);
    if (status != RONDO_STATUS_OK) {
        rondo__op_deinit(&op);
        rondo__free(inputs);
        return status;
    }
    rondo__node_become(node, &op, inputs, 4);
    node->outputs[0] = c->result;
    return RONDO_STATUS_OK;
}

// Convolutions of one or more spatial axes with known float shapes.
static bool is_candidate(const rondo_program *program, const rondo__node *node) {
    if (!rondo__node_is(node, RONDO__OP_Conv)) {
        return false;
    }
    const rondo__value *x = &program->values[node->inputs[0]];
    rondo_shape shape;
    return rondo__dtype_is_f32_or_f16(x->dtype) && rondo__value_get_shape(x, &shape) &&
           rondo__value_get_shape(&program->values[node->inputs[1]], &shape) && shape.rank >= 3 &&
           rondo__value_get_shape(&program->values[node->outputs[0]], &shape);
}

static rondo_status rewrite_node(rondo__rewriting *rewriting, size_t n) {
    const rondo__node *node = &rewriting->program->nodes[n];
    if (!is_candidate(rewriting->program, node)) {
        return RONDO_STATUS_OK;
    }
    chain c = {.program = rewriting->program,
               .rewriting = rewriting,
               .node = n,
               .bias = node->input_count > 2 ? node->inputs[2] : RONDO__VALUE_NONE,
               .residual = RONDO__VALUE_NONE,
               .activation = RONDO__ACTIVATION_NONE,
               .result = node->outputs[0]};
    RETURN_IF_ERROR(follow(&c));
    return rewrite(&c);
}

rondo_status rondo__pass_convolution(rondo_program *program) {
    return rondo__program_rewrite(program, rewrite_node);
}

// program/passes/pass_group_norm.c — InstanceNormalization and GroupNormalization become
// rondo.GroupNormalization, with the factor and the sum by channel and the activation behind them.
//
// PyTorch writes its GroupNorm for older opsets as
//
//   x [N, C, H, W] ── Reshape [N, G, -1] ── InstanceNormalization ── Reshape [N, C, H, W]
//     ── Mul [C, 1, 1] ── Add [C, 1, 1]
//
// which no layout of images goes through: one op with G groups does. Where scale and shift are
// constants, they and the factor and the sum become one gain and one shift by channel:
//
//   (x' s + t) m + a = x' (s m) + (t m + a)        x' = (x - mean) / sqrt(variance + epsilon)
// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "base/error.h"
#include "base/memory.h"
#include "program/passes/match.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"
#include "tensor/elements.h"

typedef struct norm {
    rondo__rewriting *rewriting;
    rondo_program *program;
    size_t node;
    int32_t x, result;  // values
    rondo_shape shape;  // of both
    int64_t groups;
    float epsilon;
    int32_t gain, shift;                 // values, where they are no constants
    rondo_tensor gain_made, shift_made;  // otherwise [C], f32
    rondo__activation activation;
    float alpha, beta;
} norm;

static float *get_gain(const norm *n) {
    return n->gain_made.data;
}

static float *get_shift(const norm *n) {
    return n->shift_made.data;
}

// ---- what is normalised -----------------------------------------------------------------------

// Sees an InstanceNormalization between two Reshapes as one of groups.
static void look_through_reshapes(norm *n) {
    const rondo_program *program = n->program;
    const int32_t maker = program->values[n->x].producer;
    const int32_t user = rondo__uses_get_single(&n->rewriting->uses, n->result);
    rondo_shape x, y;
    if (maker < 0 || user < 0 || !rondo__node_is(&program->nodes[maker], RONDO__OP_Reshape) ||
        !rondo__node_is(&program->nodes[user], RONDO__OP_Reshape) ||
        program->nodes[user].inputs[0] != n->result) {
        return;
    }
    const int32_t source = program->nodes[maker].inputs[0];
    const int32_t made = program->nodes[user].outputs[0];
    if (rondo__value_is_constant(&program->values[source]) ||
        !rondo__value_get_shape(&program->values[source], &x) ||
        !rondo__value_get_shape(&program->values[made], &y) || !rondo_shape_is_equal(&x, &y) ||
        x.rank < 3 || x.extent[0] != n->shape.extent[0] || x.extent[1] % n->groups != 0) {
        return;
    }
    n->rewriting->remove[user] = true;
    n->x = source;
    n->result = made;
    n->shape = x;
}

static bool read_node(norm *n) {
    const rondo__node *node = &n->program->nodes[n->node];
    const bool is_group = rondo__node_is(node, RONDO__OP_GroupNormalization);
    if (!is_group && !rondo__node_is(node, RONDO__OP_InstanceNormalization)) {
        return false;
    }
    n->x = node->inputs[0];
    n->result = node->outputs[0];
    const rondo__value *x = &n->program->values[n->x];
    if (!rondo__dtype_is_f32_or_f16(x->dtype) || n->program->values[n->result].dtype != x->dtype ||
        !rondo__value_get_shape(x, &n->shape) || n->shape.rank < 3 ||
        rondo_shape_get_count(&n->shape) < 1) {
        return false;
    }
    n->groups = is_group ? rondo__op_get_int(&node->op, "num_groups", 1) : n->shape.extent[1];
    n->epsilon = rondo__op_get_float(&node->op, "epsilon", 1e-5f);
    return true;
}

// ---- gain and shift ---------------------------------------------------------------------------

static const rondo__value *get_parameter(const norm *n, size_t input) {
    return &n->program->values[n->program->nodes[n->node].inputs[input]];
}

static float get_number(const rondo_tensor *tensor, int64_t index) {
    return tensor->dtype == RONDO_DTYPE_F32
               ? ((const float *)tensor->data)[index]
               : rondo_f16_to_float(((const uint16_t *)tensor->data)[index]);
}

// A constant with a number for each of some runs of channels, as one with a number for each.
static rondo_status spread(const norm *n, const rondo_tensor *source, rondo_tensor *out_made) {
    const rondo_shape shape = {.rank = 1, .extent = {n->shape.extent[1]}};
    RETURN_IF_ERROR(rondo_tensor_init(RONDO_DTYPE_F32, &shape, out_made));
    const int64_t run = shape.extent[0] / rondo_shape_get_count(&source->shape);
    float *numbers = out_made->data;
    for (int64_t c = 0; c < shape.extent[0]; ++c) {
        numbers[c] = get_number(source, c / run);
    }
    return RONDO_STATUS_OK;
}

static bool has_constant_parameters(const norm *n) {
    bool is_constant = true;
    for (size_t i = 1; i < 3; ++i) {
        is_constant =
            is_constant && rondo__dtype_is_f32_or_f16(get_parameter(n, i)->constant.dtype);
    }
    return is_constant;
}

static bool has_parameters_by_channel(const norm *n) {
    bool is_by_channel = true;
    for (size_t i = 1; i < 3; ++i) {
        rondo_shape shape;
        is_by_channel = is_by_channel && rondo__value_get_shape(get_parameter(n, i), &shape) &&
                        rondo_shape_get_count(&shape) == n->shape.extent[1];
    }
    return is_by_channel;
}

// Works a factor or a sum by channel into gain and shift. False, and nothing has changed, when a
// number would not be finite.
static bool work_in(norm *n, const rondo_tensor *constant, bool is_factor) {
    float *gain = get_gain(n), *shift = get_shift(n);
    const int64_t channels = n->shape.extent[1];
    for (int turn = 0; turn < 2; ++turn) {
        for (int64_t c = 0; c < channels; ++c) {
            const double number = (double)get_number(constant, c);
            const float new_gain = is_factor ? (float)((double)gain[c] * number) : gain[c];
            const float new_shift =
                (float)(is_factor ? (double)shift[c] * number : (double)shift[c] + number);
            if (!isfinite(new_gain) || !isfinite(new_shift)) {
                return false;
            }
            if (turn == 1) {
                gain[c] = new_gain;
                shift[c] = new_shift;
            }
        }
    }
    return true;
}

// ---- what follows -----------------------------------------------------------------------------

// The node that alone uses the result so far, and makes a value of its type and shape; -1: none.
static int32_t find_next(const norm *n) {
    const int32_t user = rondo__uses_get_single(&n->rewriting->uses, n->result);
    rondo_shape shape;
    if (user < 0 || n->rewriting->remove[user] || n->program->nodes[user].output_count != 1) {
        return -1;
    }
    const rondo__value *made = &n->program->values[n->program->nodes[user].outputs[0]];
    return made->dtype == n->program->values[n->result].dtype &&
                   rondo__value_get_shape(made, &shape) && rondo_shape_is_equal(&shape, &n->shape)
               ? user
               : -1;
}

static bool take_affine(norm *n, const rondo__node *next) {
    const bool is_factor = rondo__node_is(next, RONDO__OP_Mul);
    if (n->gain >= 0 || (!is_factor && !rondo__node_is(next, RONDO__OP_Add)) ||
        next->inputs[0] == next->inputs[1]) {
        return false;
    }
    const int32_t other = next->inputs[next->inputs[0] == n->result ? 1 : 0];
    return rondo__match_channel_constant(n->program, other, &n->shape) &&
           work_in(n, &n->program->values[other].constant, is_factor);
}

static void follow(norm *n) {
    int32_t user = find_next(n);
    while (user >= 0 && take_affine(n, &n->program->nodes[user])) {
        n->rewriting->remove[user] = true;
        n->result = n->program->nodes[user].outputs[0];
        user = find_next(n);
    }
    if (user >= 0 && n->program->nodes[user].inputs[0] == n->result &&
        rondo__match_activation(n->program, &n->program->nodes[user], &n->activation, &n->alpha,
                                &n->beta)) {
        n->rewriting->remove[user] = true;
        n->result = n->program->nodes[user].outputs[0];
        return;
    }
    n->activation = RONDO__ACTIVATION_NONE;
}

// ---- the op -----------------------------------------------------------------------------------

static rondo_status write_attributes(const norm *n, rondo__op *op) {
    RETURN_IF_ERROR(rondo__op_set_int(op, "groups", n->groups));
    RETURN_IF_ERROR(rondo__op_set_float(op, "epsilon", n->epsilon));
    RETURN_IF_ERROR(rondo__op_set_int(op, "channels_last", 0));
    RETURN_IF_ERROR(
        rondo__op_set_string(op, "activation", rondo__match_activation_name(n->activation)));
    RETURN_IF_ERROR(rondo__op_set_float(op, "alpha", n->alpha));
    return rondo__op_set_float(op, "beta", n->beta);
}

static rondo_status emit(norm *n) {
    if (n->gain < 0) {
        RETURN_IF_ERROR(rondo__program_add_constant(n->program, "gain", &n->gain_made, &n->gain));
        RETURN_IF_ERROR(
            rondo__program_add_constant(n->program, "shift", &n->shift_made, &n->shift));
    }
    int32_t *inputs = rondo__calloc(3, sizeof *inputs);
    if (inputs == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    inputs[0] = n->x;
    inputs[1] = n->gain;
    inputs[2] = n->shift;
    rondo__op op = {.opset = RONDO_OP_OPSET_MAX,
                    .def = rondo__op_get_def(RONDO__FUSED_GroupNormalization)};
    const rondo_status status = write_attributes(n, &op);
    if (status != RONDO_STATUS_OK) {
        rondo__op_deinit(&op);
        rondo__free(inputs);
        return status;
    }
    rondo__node *node = &n->program->nodes[n->node];
    rondo__node_become(node, &op, inputs, 3);
    node->outputs[0] = n->result;
    return status;
}

static rondo_status rewrite_node(rondo__rewriting *rewriting, size_t index) {
    norm n = {.rewriting = rewriting,
              .program = rewriting->program,
              .node = index,
              .gain = RONDO__VALUE_NONE,
              .shift = RONDO__VALUE_NONE};
    if (!read_node(&n)) {
        return RONDO_STATUS_OK;
    }
    rondo_status status = RONDO_STATUS_OK;
    if (has_constant_parameters(&n)) {
        look_through_reshapes(&n);
        status = spread(&n, &get_parameter(&n, 1)->constant, &n.gain_made);
        if (status == RONDO_STATUS_OK) {
            status = spread(&n, &get_parameter(&n, 2)->constant, &n.shift_made);
        }
    } else if (has_parameters_by_channel(&n)) {
        n.gain = rewriting->program->nodes[index].inputs[1];
        n.shift = rewriting->program->nodes[index].inputs[2];
    } else {
        return RONDO_STATUS_OK;
    }
    if (status == RONDO_STATUS_OK) {
        follow(&n);
        status = emit(&n);
    }
    rondo_tensor_deinit(&n.gain_made);
    rondo_tensor_deinit(&n.shift_made);
    return status;
}

rondo_status rondo__pass_group_norm(rondo_program *program) {
    return rondo__program_rewrite(program, rewrite_node);
}

// program/passes/pass_batch_norm.c — folds BatchNormalization (inference) into the convolution
// before it.
//
// y = scale * (conv(x, w) + b - mean) / sqrt(var + eps) + shift is the convolution with w * s and
// (b - mean) * s + shift, where s = scale / sqrt(var + eps) for each output channel. Computed in
// double, rounded once.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "base/error.h"
#include "base/memory.h"
#include "program/passes/match.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"

// Makes the folded weights and bias; *out_is_folded is false when something is not constant.
static rondo_status fold(rondo_program *program, rondo__node *conv, const rondo__node *norm,
                         bool *out_is_folded) {
    *out_is_folded = false;
    if (conv->input_count < 2 || conv->inputs[1] < 0) {
        return RONDO_STATUS_OK;
    }
    const rondo_tensor *weights = &program->values[conv->inputs[1]].constant;
    if (weights->dtype != RONDO_DTYPE_F32 || weights->shape.rank < 3 ||
        weights->shape.extent[0] < 1) {
        return RONDO_STATUS_OK;
    }
    int64_t channels = weights->shape.extent[0];
    int64_t each = rondo_shape_get_count(&weights->shape) / channels;
    bool has_bias = conv->input_count > 2 && conv->inputs[2] >= 0;
    const float *bias = has_bias ? rondo__match_floats(program, conv->inputs[2], channels) : NULL;
    const float *scale = rondo__match_floats(program, norm->inputs[1], channels);
    const float *shift = rondo__match_floats(program, norm->inputs[2], channels);
    const float *mean = rondo__match_floats(program, norm->inputs[3], channels);
    const float *variance = rondo__match_floats(program, norm->inputs[4], channels);
    if ((has_bias && bias == NULL) || scale == NULL || shift == NULL || mean == NULL ||
        variance == NULL) {
        return RONDO_STATUS_OK;
    }
    double epsilon = (double)rondo__op_get_float(&norm->op, "epsilon", 1e-5f);
    rondo_tensor new_weights = {0};
    rondo_tensor new_bias = {0};
    rondo_shape bias_shape = {.rank = 1, .extent = {channels}};
    rondo_status status = rondo_tensor_init(RONDO_DTYPE_F32, &weights->shape, &new_weights);
    if (status == RONDO_STATUS_OK) {
        status = rondo_tensor_init(RONDO_DTYPE_F32, &bias_shape, &new_bias);
    }
    int32_t weight_value;
    int32_t bias_value;
    int32_t *inputs = NULL;
    if (status != RONDO_STATUS_OK) {
        goto free_tensors;
    }
    for (int64_t c = 0; c < channels; ++c) {
        double s = (double)scale[c] / sqrt((double)variance[c] + epsilon);
        double b = bias != NULL ? (double)bias[c] : 0.0;
        const double folded_bias = (b - (double)mean[c]) * s + (double)shift[c];
        if (!isfinite(s) || !isfinite(folded_bias)) {
            goto free_tensors;  // folded, infinities would meet each other in another order
        }
        ((float *)new_bias.data)[c] = (float)folded_bias;
        const float *from = (const float *)weights->data + c * each;
        float *to = (float *)new_weights.data + c * each;
        for (int64_t i = 0; i < each; ++i) {
            to[i] = (float)((double)from[i] * s);
        }
    }
    status = rondo__program_add_constant(program, "folded_weight", &new_weights, &weight_value);
    if (status == RONDO_STATUS_OK) {
        status = rondo__program_add_constant(program, "folded_bias", &new_bias, &bias_value);
    }
    if (status != RONDO_STATUS_OK) {
        goto free_tensors;
    }
    inputs = rondo__calloc(3, sizeof *inputs);
    if (inputs == NULL) {
        status = RONDO_STATUS_NO_MEMORY;
        goto free_tensors;
    }
    inputs[0] = conv->inputs[0];
    inputs[1] = weight_value;
    inputs[2] = bias_value;
    rondo__free(conv->inputs);
    conv->inputs = inputs;
    conv->input_count = 3;
    conv->explicit_count = 3;
    *out_is_folded = true;

free_tensors:
    rondo_tensor_deinit(&new_weights);
    rondo_tensor_deinit(&new_bias);
    return status;
}

static rondo_status rewrite_node(rondo__rewriting *rewriting, size_t n) {
    rondo_program *program = rewriting->program;
    rondo__node *conv = &program->nodes[n];
    if (!rondo__node_is(conv, RONDO__OP_Conv)) {
        return RONDO_STATUS_OK;
    }
    int32_t user = rondo__uses_get_single(&rewriting->uses, conv->outputs[0]);
    if (user < 0 || !rondo__node_is(&program->nodes[user], RONDO__OP_BatchNormalization) ||
        program->nodes[user].inputs[0] != conv->outputs[0] ||
        !rondo__match_inference_norm(&program->nodes[user])) {
        return RONDO_STATUS_OK;
    }
    bool is_folded;
    RETURN_IF_ERROR(fold(program, conv, &program->nodes[user], &is_folded));
    if (is_folded) {
        conv->outputs[0] = program->nodes[user].outputs[0];
        if (program->nodes[user].precision != 0) {
            conv->precision = program->nodes[user].precision;
        }
        rewriting->remove[user] = true;
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__pass_batch_norm(rondo_program *program) {
    return rondo__program_rewrite(program, rewrite_node);
}

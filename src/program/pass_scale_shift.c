// program/pass_scale_shift.c — a BatchNormalization (inference) that no convolution took becomes a
// rondo.Elementwise, with the activation behind it:
//
//   y = act(x * s + t)      s = scale / sqrt(var + eps), t = shift - mean * s, by channel
//
// Networks that normalise before they convolve (ResNet v2, DenseNet) have one before each
// convolution. An element-wise op follows the layout of its images; as BatchNormalization it would
// stand between two transposes.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "base/error.h"
#include "program/match.h"
#include "program/passes.h"
#include "program/rewrite.h"

static const float *get_floats(const rondo_program *program, int32_t value, int64_t count) {
    if (value < 0 || program->values[value].constant.dtype != RONDO_DTYPE_F32 ||
        rondo_shape_get_count(&program->values[value].constant.shape) != count) {
        return NULL;
    }
    return program->values[value].constant.data;
}

static bool is_candidate(const rondo_program *program, const rondo__node *node,
                         rondo_shape *out_shape) {
    if (!rondo__node_is(node, "", "BatchNormalization") || !rondo__match_inference_norm(node) ||
        node->inputs[0] < 0) {
        return false;
    }
    const rondo__value *x = &program->values[node->inputs[0]];
    return (x->dtype == RONDO_DTYPE_F32 || x->dtype == RONDO_DTYPE_F16) &&
           program->values[node->outputs[0]].dtype == x->dtype &&
           rondo__value_get_shape(x, out_shape) && out_shape->rank >= 2;
}

// Fills s and t; false when a number is not finite, as (x - mean) * inf is not x * inf + t.
static bool fill_terms(const rondo_program *program, const rondo__node *norm, int64_t channels,
                       float *s, float *t) {
    const float *scale = get_floats(program, norm->inputs[1], channels);
    const float *shift = get_floats(program, norm->inputs[2], channels);
    const float *mean = get_floats(program, norm->inputs[3], channels);
    const float *variance = get_floats(program, norm->inputs[4], channels);
    if (scale == NULL || shift == NULL || mean == NULL || variance == NULL) {
        return false;
    }
    const double epsilon = (double)rondo__op_get_float(&norm->op, "epsilon", 1e-5f);
    for (int64_t c = 0; c < channels; ++c) {
        const double factor = (double)scale[c] / sqrt((double)variance[c] + epsilon);
        s[c] = (float)factor;
        t[c] = (float)((double)shift[c] - (double)mean[c] * factor);
        if (!isfinite(s[c]) || !isfinite(t[c])) {
            return false;
        }
    }
    return true;
}

// Adds s and t as constants [C, 1, ...], which stand over x from its axis 1 on.
static rondo_status add_terms(rondo_program *program, const rondo__node *norm, const rondo_shape *x,
                              int32_t *out_terms, bool *out_is_possible) {
    rondo_shape shape = {.rank = x->rank - 1, .extent = {x->extent[1]}};
    rondo_tensor terms[2] = {{0}};
    *out_is_possible = false;
    for (int32_t d = 1; d < shape.rank; ++d) {
        shape.extent[d] = 1;
    }
    rondo_status status = rondo_tensor_init(RONDO_DTYPE_F32, &shape, &terms[0]);
    if (status == RONDO_STATUS_OK) {
        status = rondo_tensor_init(RONDO_DTYPE_F32, &shape, &terms[1]);
    }
    if (status == RONDO_STATUS_OK &&
        fill_terms(program, norm, shape.extent[0], terms[0].data, terms[1].data)) {
        *out_is_possible = true;
        for (int i = 0; i < 2 && status == RONDO_STATUS_OK; ++i) {
            status = rondo__program_add_constant(program, i == 0 ? "norm_scale" : "norm_shift",
                                                 &terms[i], &out_terms[i]);
        }
    }
    rondo_tensor_deinit(&terms[0]);
    rondo_tensor_deinit(&terms[1]);
    return status;
}

// What x * s + t goes through behind the norm: an op of one operand that is its only user.
typedef struct ending {
    int32_t node;  // -1: nothing
    rondo__scalar_op op;
    float alpha, beta;
} ending;

static ending find_ending(const rondo_program *program, const rondo__uses *uses, int32_t value) {
    ending e = {.node = rondo__uses_get_single(uses, value)};
    int32_t first, second;
    if (e.node < 0 ||
        !rondo__match_scalar_op(program, &program->nodes[e.node], &e.op, &first, &second, &e.alpha,
                                &e.beta) ||
        second >= 0 || program->nodes[e.node].inputs[first] != value ||
        program->values[program->nodes[e.node].outputs[0]].dtype != program->values[value].dtype) {
        e.node = -1;
    }
    return e;
}

static rondo_status emit(rondo_program *program, size_t n, const int32_t *terms, const ending *e) {
    const char *ops[3] = {"Mul", "Add", e->node >= 0 ? rondo__match_scalar_name(e->op) : NULL};
    // Inputs are 0 to 2; results are numbered from 3 on.
    const int64_t operands[9] = {0, 1, -1, 3, 2, -1, 4, -1, -1};
    const float alphas[3] = {0, 0, e->alpha}, betas[3] = {0, 0, e->beta};
    const size_t count = e->node >= 0 ? 3 : 2;
    const int32_t inputs[3] = {program->nodes[n].inputs[0], terms[0], terms[1]};
    const size_t last = e->node >= 0 ? (size_t)e->node : n;
    const int32_t result = program->nodes[last].outputs[0];
    RETURN_IF_ERROR(rondo__program_add_simple(program, "rondo", "Elementwise",
                                              program->nodes[n].op.name, inputs, 3, &result, 1));
    rondo__op *op = &program->nodes[program->node_count - 1].op;
    RETURN_IF_ERROR(rondo__op_set_strings(op, "ops", ops, count));
    RETURN_IF_ERROR(rondo__op_set_ints(op, "operands", operands, 3 * count));
    RETURN_IF_ERROR(rondo__op_set_floats(op, "alphas", alphas, count));
    RETURN_IF_ERROR(rondo__op_set_floats(op, "betas", betas, count));
    // s and t are f32, whatever x is.
    const bool is_half = program->values[result].dtype == RONDO_DTYPE_F16;
    return is_half ? rondo__op_set_int(op, "to", 10) : RONDO_STATUS_OK;
}

static rondo_status visit(rondo__rewriting *r, size_t n) {
    rondo_program *program = r->program;
    rondo_shape shape;
    int32_t terms[2];
    bool is_possible;
    if (!is_candidate(program, &program->nodes[n], &shape)) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(add_terms(program, &program->nodes[n], &shape, terms, &is_possible));
    if (!is_possible) {
        return RONDO_STATUS_OK;
    }
    const ending e = find_ending(program, &r->uses, program->nodes[n].outputs[0]);
    RETURN_IF_ERROR(emit(program, n, terms, &e));
    r->remove[n] = true;
    if (e.node >= 0) {
        r->remove[e.node] = true;
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__pass_scale_shift(rondo_program *program) {
    return rondo__program_rewrite(program, visit);
}

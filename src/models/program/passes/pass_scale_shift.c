// program/passes/pass_scale_shift.c — a BatchNormalization (inference) that no convolution took
// becomes a rondo.Elementwise, with the activation behind it:
//
//   y = act(x * s + t)      s = scale / sqrt(var + eps), t = shift - mean * s, by channel
//
// Where a mean is so far from 0 that t, in f32, would lose digits of the result:
//
//   y = act((x - mean) * s + shift)
//
// Networks that normalise before they convolve (ResNet v2, DenseNet) have one before each
// convolution. An element-wise op follows the layout of its images; as BatchNormalization it would
// stand between two transposes.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "program/passes/match.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"
#include "tensor/elements.h"

static bool is_candidate(const rondo_program *program, const rondo__node *node,
                         rondo_shape *out_shape) {
    if (!rondo__node_is(node, RONDO__OP_BatchNormalization) || !rondo__match_inference_norm(node) ||
        node->inputs[0] < 0) {
        return false;
    }
    const rondo__value *x = &program->values[node->inputs[0]];
    return rondo__dtype_is_f32_or_f16(x->dtype) &&
           program->values[node->outputs[0]].dtype == x->dtype &&
           rondo__value_get_shape(x, out_shape) && out_shape->rank >= 2;
}

// What stands over the channels of x: operands of Mul and Add, or of Sub, Mul and Add.
enum { TERM_SCALE, TERM_SHIFT, TERM_MEAN, TERM_COUNT };
enum { NEAR_DEVIATIONS = 16 };  // a mean that is not further from 0 costs no digits worth a step

// Fills the terms; false when a number is not finite, as (x - mean) * inf is not x * inf + t.
static bool fill_terms(const rondo_program *program, const rondo__node *norm, int64_t channels,
                       rondo_tensor *terms, bool *out_is_far) {
    float *s = terms[TERM_SCALE].data, *t = terms[TERM_SHIFT].data;
    const float *scale = rondo__match_floats(program, norm->inputs[1], channels);
    const float *shift = rondo__match_floats(program, norm->inputs[2], channels);
    const float *mean = rondo__match_floats(program, norm->inputs[3], channels);
    const float *variance = rondo__match_floats(program, norm->inputs[4], channels);
    if (scale == NULL || shift == NULL || mean == NULL || variance == NULL) {
        return false;
    }
    const double epsilon = (double)rondo__op_get_float(&norm->op, "epsilon", 1e-5f);
    *out_is_far = false;
    for (int64_t c = 0; c < channels; ++c) {
        const double deviation = sqrt((double)variance[c] + epsilon);
        const double factor = (double)scale[c] / deviation;
        s[c] = (float)factor;
        t[c] = (float)((double)shift[c] - (double)mean[c] * factor);
        if (!isfinite(s[c]) || !isfinite(t[c])) {
            return false;
        }
        *out_is_far = *out_is_far || fabs((double)mean[c]) > NEAR_DEVIATIONS * deviation;
    }
    if (*out_is_far) {
        memcpy(t, shift, (size_t)channels * sizeof *t);
        memcpy(terms[TERM_MEAN].data, mean, (size_t)channels * sizeof *t);
    }
    return true;
}

// Adds the terms as constants [C, 1, ...], which stand over x from its axis 1 on. Only where a mean
// is far from 0 is there one of the means.
static rondo_status add_terms(rondo_program *program, const rondo__node *norm, const rondo_shape *x,
                              int32_t *out_terms, bool *out_is_far, bool *out_is_possible) {
    static const char *const names[TERM_COUNT] = {"norm_scale", "norm_shift", "norm_mean"};
    rondo_shape shape = {.rank = x->rank - 1, .extent = {x->extent[1]}};
    rondo_tensor terms[TERM_COUNT] = {{0}};
    rondo_status status = RONDO_STATUS_OK;
    *out_is_possible = false;
    for (int32_t d = 1; d < shape.rank; ++d) {
        shape.extent[d] = 1;
    }
    for (int i = 0; i < TERM_COUNT && status == RONDO_STATUS_OK; ++i) {
        status = rondo_tensor_init(RONDO_DTYPE_F32, &shape, &terms[i]);
    }
    if (status == RONDO_STATUS_OK &&
        fill_terms(program, norm, shape.extent[0], terms, out_is_far)) {
        *out_is_possible = true;
        for (int i = 0; i < (*out_is_far ? TERM_COUNT : TERM_MEAN) && status == RONDO_STATUS_OK;
             ++i) {
            status = rondo__program_add_constant(program, names[i], &terms[i], &out_terms[i]);
        }
    }
    for (int i = 0; i < TERM_COUNT; ++i) {
        rondo_tensor_deinit(&terms[i]);
    }
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

static rondo_status emit(rondo_program *program, size_t n, const int32_t *terms, bool is_far,
                         const ending *e) {
    enum { OPS_MAX = 4, INPUTS_MAX = 1 + TERM_COUNT };
    const int32_t inputs[INPUTS_MAX] = {program->nodes[n].inputs[0], terms[TERM_SCALE],
                                        terms[TERM_SHIFT], terms[TERM_MEAN]};
    const size_t input_count = is_far ? INPUTS_MAX : INPUTS_MAX - 1;
    const int64_t results = (int64_t)input_count;  // results are numbered behind the inputs
    const char *ops[OPS_MAX];
    int64_t operands[3 * OPS_MAX];
    float alphas[OPS_MAX] = {0}, betas[OPS_MAX] = {0};
    size_t count = 0;
    // Each takes the result of the one before it, the first one x, and a term.
    const struct {
        bool is_there;
        const char *op;
        int64_t term;  // of the inputs; -1: none
    } steps[OPS_MAX] = {
        {is_far, "Sub", 1 + TERM_MEAN},
        {true, "Mul", 1 + TERM_SCALE},
        {true, "Add", 1 + TERM_SHIFT},
        {e->node >= 0, e->node >= 0 ? rondo__match_scalar_name(e->op) : NULL, -1},
    };
    for (size_t i = 0; i < OPS_MAX; ++i) {
        if (steps[i].is_there) {
            ops[count] = steps[i].op;
            operands[3 * count] = count == 0 ? 0 : results + (int64_t)count - 1;
            operands[3 * count + 1] = steps[i].term;
            operands[3 * count + 2] = -1;
            count++;
        }
    }
    if (e->node >= 0) {
        alphas[count - 1] = e->alpha;
        betas[count - 1] = e->beta;
    }
    const size_t last = e->node >= 0 ? (size_t)e->node : n;
    const int32_t result = program->nodes[last].outputs[0];
    RETURN_IF_ERROR(rondo__program_add_simple(program, "rondo", "Elementwise",
                                              program->nodes[n].op.name, inputs, input_count,
                                              &result, 1));
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
    int32_t terms[TERM_COUNT] = {0};
    bool is_far = false, is_possible;
    if (!is_candidate(program, &program->nodes[n], &shape)) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(add_terms(program, &program->nodes[n], &shape, terms, &is_far, &is_possible));
    if (!is_possible) {
        return RONDO_STATUS_OK;
    }
    const ending e = find_ending(program, &r->uses, program->nodes[n].outputs[0]);
    RETURN_IF_ERROR(emit(program, n, terms, is_far, &e));
    r->remove[n] = true;
    if (e.node >= 0) {
        r->remove[e.node] = true;
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__pass_scale_shift(rondo_program *program) {
    return rondo__program_rewrite(program, visit);
}

// program/backward/pass_loss_gradient.c — how SoftmaxCrossEntropyLoss changes with its scores, as
// gradients write it (gradient/rules_loss.c), becomes rondo.LossGradient, which looks at the scores
// itself: then nobody keeps the logarithms of their softmax.
//
//   Where(share == 0, 0, (Exp(logarithms) - Where(classes == labels, 1, 0)) * share)
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "base/memory.h"
#include "op/op.h"
#include "program/backward/backward.h"
#include "program/backward/match_tree.h"
#include "program/passes/match.h"
#include "program/passes/rewrite.h"

enum { ONNX_FLOAT16 = 10 };

// 0, 1, 2, ... along the axis of classes.
static bool counts_classes(const rondo_program *program, int32_t value, int64_t classes) {
    const rondo_tensor *tensor = &program->values[value].constant;
    bool is_good = (tensor->dtype == RONDO_DTYPE_I64 || tensor->dtype == RONDO_DTYPE_I32) &&
                   rondo_shape_get_count(&tensor->shape) == classes && tensor->shape.rank > 1 &&
                   tensor->shape.extent[1] == classes;
    for (int64_t i = 0; i < classes && is_good; ++i) {
        is_good = tensor->dtype == RONDO_DTYPE_I64 ? ((const int64_t *)tensor->data)[i] == i
                                                   : ((const int32_t *)tensor->data)[i] == i;
    }
    return is_good;
}

static bool has_column(const rondo_program *program, int32_t value, const rondo_shape *x) {
    rondo_shape shape, column = *x;
    column.extent[1] = 1;
    return rondo__value_get_shape(&program->values[value], &shape) &&
           rondo_shape_is_equal(&shape, &column);
}

static bool is_single(const rondo_program *program, int32_t value) {
    const rondo__value *v = &program->values[value];
    return (rondo__value_is_constant(v) ? v->constant.dtype : v->dtype) == RONDO_DTYPE_F32;
}

// The condition says where the share is 0: computed so, or both are known.
static bool is_out_of_count(const rondo_program *program, const rondo__tree *tree) {
    rondo__tree equal = {0};
    if (rondo__match_tree(program, tree->value['q'], "Equal(s,a)", &equal)) {
        return equal.value['s'] == tree->value['s'] &&
               rondo__match_is_number(program, equal.value['a'], 0.0f);
    }
    const rondo_tensor *out = &program->values[tree->value['q']].constant;
    const rondo_tensor *share = &program->values[tree->value['s']].constant;
    bool is_good = out->dtype == RONDO_DTYPE_BOOL && share->dtype == RONDO_DTYPE_F32 &&
                   rondo_shape_is_equal(&out->shape, &share->shape);
    for (int64_t i = 0; is_good && i < rondo_shape_get_count(&out->shape); ++i) {
        is_good =
            (((const uint8_t *)out->data)[i] != 0) == (((const float *)share->data)[i] == 0.0f);
    }
    return is_good;
}

static rondo_status rewrite(rondo__rewriting *r, size_t n) {
    rondo_program *program = r->program;
    rondo__tree tree = {0};
    rondo_shape x;
    if (!rondo__node_is(&program->nodes[n], RONDO__OP_Where) ||
        !rondo__match_tree(program, program->nodes[n].outputs[0],
                           "Where(q,b,Mul(Sub(Exp(l),Where(Equal(C,L),o,z)),s))", &tree)) {
        return RONDO_STATUS_OK;
    }
    const int32_t maker = program->values[tree.value['l']].producer;
    const rondo__node *loss = maker >= 0 ? &program->nodes[maker] : NULL;
    if (loss == NULL || !rondo__node_is(loss, RONDO__OP_SoftmaxCrossEntropyLoss) ||
        loss->output_count < 2 || loss->outputs[1] != tree.value['l'] ||
        !rondo__value_get_shape(&program->values[loss->inputs[0]], &x) || x.rank < 2 ||
        program->values[loss->inputs[0]].dtype != RONDO_DTYPE_F32 ||
        !is_single(program, tree.value['s']) || !is_out_of_count(program, &tree) ||
        !rondo__match_is_number(program, tree.value['b'], 0.0f) ||
        !rondo__match_is_number(program, tree.value['o'], 1.0f) ||
        !rondo__match_is_number(program, tree.value['z'], 0.0f) ||
        !counts_classes(program, tree.value['C'], x.extent[1]) ||
        !has_column(program, tree.value['L'], &x) || !has_column(program, tree.value['s'], &x)) {
        return RONDO_STATUS_OK;
    }
    int32_t *inputs = rondo__calloc(3, sizeof *inputs);
    if (inputs == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    inputs[0] = loss->inputs[0];
    inputs[1] = tree.value['L'];
    inputs[2] = tree.value['s'];
    rondo__op op = {.opset = RONDO_OP_OPSET_MAX,
                    .def = rondo__op_get_def(RONDO__FUSED_LossGradient)};
    rondo__node_become(&program->nodes[n], &op, inputs, 3);
    return RONDO_STATUS_OK;
}

rondo_status rondo__pass_loss_gradient(rondo_program *program) {
    return rondo__program_rewrite(program, rewrite);
}

// ---- half precision -----------------------------------------------------------------------------

static rondo_status narrow(rondo__rewriting *r, size_t n) {
    rondo_program *program = r->program;
    rondo__node *cast = &program->nodes[n];
    if (!rondo__node_is(cast, RONDO__OP_Cast) ||
        rondo__op_get_int(&cast->op, "to", 0) != ONNX_FLOAT16) {
        return RONDO_STATUS_OK;
    }
    const int32_t wide = cast->inputs[0], half = cast->outputs[0];
    const int32_t maker = program->values[wide].producer;
    if (maker < 0 || !rondo__node_is(&program->nodes[maker], RONDO__FUSED_LossGradient) ||
        rondo__uses_get_single(&r->uses, wide) < 0) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(rondo__op_set_int(&program->nodes[maker].op, "to", ONNX_FLOAT16));
    program->nodes[maker].outputs[0] = half;
    program->values[half].producer = maker;
    program->values[wide].producer = -1;
    r->remove[n] = true;
    return RONDO_STATUS_OK;
}

// Where its result is only cast to f16, rondo.LossGradient makes that.
rondo_status rondo__pass_narrow_loss(rondo_program *program) {
    return rondo__program_rewrite(program, narrow);
}

// op/fused/update.h — rondo.Update: what a training step makes of many variables, in one op.
//
//   inputs      applies? (bool, one element), scalars (f32, one element each), and for each tensor
//               `width` operands of its shape (f32 or f16)
//   outputs     for each tensor its results, of the dtype and shape of the operand that each keeps
//   attributes  ops, operands, alphas, betas: as rondo.Elementwise, but that operands are two for
//               each op: a scalar, then scalars + an operand, then the result of an op before;
//               scalars (how many), width; is_conditional (1: input 0 is `applies`);
//               results: the op whose result each output is; keeps: the operand that it is instead
//               where `applies` is false; is_shared (1: ranks update a part of each tensor, see
//               op/rank_part.h; what comes out elsewhere is not defined)
//
// An output may lie where the operand lies that it keeps.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "op/fused/fused.h"
#include "op/op.h"

enum {
    RONDO__UPDATE_OPS_MAX = 24,
    RONDO__UPDATE_SCALARS_MAX = 8,
    RONDO__UPDATE_WIDTH_MAX = 8,
    RONDO__UPDATE_RESULTS_MAX = 4,
    RONDO__UPDATE_KEPT_MAX = 24,  // outputs of a node
};

typedef struct rondo__update_form {
    bool is_conditional;
    bool is_shared;
    int32_t scalar_count;
    int32_t width;
    int32_t result_count;
    int32_t tensor_count;
    int32_t op_count;
    rondo__scalar_op ops[RONDO__UPDATE_OPS_MAX];
    int32_t operands[RONDO__UPDATE_OPS_MAX][2];
    float alphas[RONDO__UPDATE_OPS_MAX];
    float betas[RONDO__UPDATE_OPS_MAX];
    int32_t results[RONDO__UPDATE_RESULTS_MAX];
    int32_t keeps[RONDO__UPDATE_RESULTS_MAX];  // below width
} rondo__update_form;

// False where the attributes, or the numbers of inputs and outputs, do not fit.
bool rondo__update_read(const rondo__op *op, size_t input_count, size_t output_count,
                        rondo__update_form *out_form);

// The inputs before the operands, and operand `index` of tensor `tensor`.
static inline size_t rondo__update_head(const rondo__update_form *form) {
    return (form->is_conditional ? 1u : 0u) + (size_t)form->scalar_count;
}
static inline size_t rondo__update_input(const rondo__update_form *form, int32_t tensor,
                                         int32_t index) {
    return rondo__update_head(form) + (size_t)tensor * (size_t)form->width + (size_t)index;
}

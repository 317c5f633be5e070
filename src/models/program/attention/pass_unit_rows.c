// program/attention/pass_unit_rows.c — rows that are divided by their lengths, as exporters write
// them out, are named LpNormalization.
//
//   x ─┬─ ReduceL2 (last axis) ── Clip from least ── Expand ──┐
//      └───────────────────────────────────────────────────── Div
//
// For plans in half precision: there a length is 0 or far above the least, which keeps zeros from
// being divided by 0, as LpNormalization does, too. What the caller wants in f32 stays.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "base/memory.h"
#include "program/half/half_pass.h"
#include "program/passes/match.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"

// Far below the least length of a row of f16 that is not 0, which is 2^-24.
static const float least_most = 1e-9f;

static bool is_free(const rondo__node *node) {
    return node != NULL && node->precision == RONDO__PRECISION_BY_RULE;
}

// Whether the node takes lengths of whole rows of `x`.
static bool is_length(const rondo_program *program, const rondo__node *node, int32_t x) {
    size_t count = 0;
    const int64_t *axes = rondo__op_get_ints(&node->op, "axes", &count);
    if (rondo__match_input(node, 1) >= 0) {
        const rondo_tensor *list = &program->values[node->inputs[1]].constant;
        const bool is_list = list->dtype == RONDO_DTYPE_I64 && list->shape.rank <= 1;
        axes = is_list ? list->data : NULL;
        count = is_list ? (size_t)rondo_shape_get_count(&list->shape) : 0;
    }
    const rondo__value *rows = &program->values[x];
    return node->inputs[0] == x && rondo__op_get_int(&node->op, "keepdims", 1) != 0 &&
           axes != NULL && count == 1 && rows->has_shape && rows->rank > 0 &&
           (axes[0] == -1 || axes[0] == rows->rank - 1);
}

// The lengths that a Clip keeps above 0.
static int32_t get_clipped(const rondo_program *program, int32_t value) {
    const rondo__node *clip = rondo__match_maker(program, value, RONDO__OP_Clip);
    float least;
    return is_free(clip) && rondo__match_input(clip, 2) < 0 &&
                   rondo__match_scalar(program, rondo__match_input(clip, 1), &least) &&
                   least > 0.0f && least <= least_most
               ? clip->inputs[0]
               : RONDO__VALUE_NONE;
}

static rondo_status rewrite_node(rondo__rewriting *r, size_t n) {
    rondo_program *program = r->program;
    rondo__node *node = &program->nodes[n];
    rondo_shape x, y;
    if (!rondo__node_is(node, RONDO__OP_Div) || !is_free(node)) {
        return RONDO_STATUS_OK;
    }
    const int32_t rows = node->inputs[0];
    int32_t divisor = node->inputs[1];
    const rondo__node *expand = rondo__match_maker(program, divisor, RONDO__OP_Expand);
    if (expand != NULL) {
        divisor = expand->inputs[0];
    }
    const int32_t lengths = get_clipped(program, divisor);
    const rondo__node *length =
        lengths >= 0 ? rondo__match_maker(program, lengths, RONDO__OP_ReduceL2) : NULL;
    if (!is_free(length) || (expand != NULL && !is_free(expand)) ||
        !is_length(program, length, rows) || !rondo__value_get_shape(&program->values[rows], &x) ||
        !rondo__value_get_shape(&program->values[node->outputs[0]], &y) ||
        !rondo_shape_is_equal(&x, &y)) {
        return RONDO_STATUS_OK;
    }
    rondo__op op = {.opset = RONDO_OP_OPSET_MAX,
                    .def = rondo__op_get_def(RONDO__OP_LpNormalization)};
    int32_t *inputs = rondo__calloc(1, sizeof *inputs);
    if (inputs == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    inputs[0] = rows;
    rondo__node_become(node, &op, inputs, 1);
    return RONDO_STATUS_OK;
}

rondo_status rondo__pass_unit_rows(rondo_program *program) {
    return rondo__program_rewrite(program, rewrite_node);
}

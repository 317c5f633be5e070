// program/half/half_nodes.c — what the rules know of a node: its op's rule, types, and moves.
// SPDX-License-Identifier: Apache-2.0
#include "program/half/half_judge.h"
#include "program/passes/match.h"
#include "tensor/elements.h"

const rondo__half_rule *rondo__half_find_rule(const rondo__node *node) {
    static const rondo__half_rule carrier = {HALF_CARRIES, HALF_PLAIN, NULL};
    const uint32_t carrying = RONDO__OP_ELEMENTWISE | RONDO__OP_VIEW | RONDO__OP_NATIVE_HALF;
    const rondo__op_def *def = node->op.def;
    return def->half.kind == 0 && (def->flags & carrying) != 0 ? &carrier : &def->half;
}

bool rondo__half_is_fixed_input(const rondo__node *node, size_t input) {
    return input < 32 && (node->op.def->wide_inputs >> input & 1u) != 0;
}

bool rondo__half_is_move(const rondo__node *node) {
    const uint32_t flags = node->op.def->flags;
    return (flags & (RONDO__OP_VIEW | RONDO__OP_NATIVE_HALF)) != 0 &&
           (flags & (RONDO__OP_ELEMENTWISE | RONDO__OP_RANDOM)) == 0;
}

rondo_dtype rondo__half_get_type(const rondo_program *program, int32_t value) {
    if (value < 0) {
        return RONDO_DTYPE_NONE;
    }
    const rondo__value *v = &program->values[value];
    return rondo__value_is_constant(v) ? v->constant.dtype : v->dtype;
}

bool rondo__half_is_single(const rondo_program *program, int32_t value) {
    return value >= 0 && rondo__half_get_type(program, value) == RONDO_DTYPE_F32;
}

bool rondo__half_is_constant(const rondo_program *program, int32_t value) {
    return value >= 0 && rondo__value_is_constant(&program->values[value]);
}

bool rondo__half_is_computed(const rondo_program *program, int32_t value) {
    return rondo__half_is_single(program, value) && !rondo__half_is_constant(program, value);
}

bool rondo__half_reads_single(const rondo_program *program, const rondo__node *node) {
    bool reads = false;
    for (size_t i = 0; i < node->input_count; ++i) {
        reads = reads || (rondo__half_is_single(program, node->inputs[i]) &&
                          !rondo__half_is_fixed_input(node, i));
    }
    return reads;
}

bool rondo__half_makes_single(const rondo_program *program, const rondo__node *node) {
    bool makes = false;
    for (size_t i = 0; i < node->output_count; ++i) {
        makes = makes || rondo__half_is_single(program, node->outputs[i]);
    }
    return makes;
}

bool rondo__half_is_known(const rondo_program *program, const rondo__node *node) {
    rondo_shape shape;
    for (size_t i = 0; i < node->input_count + node->output_count; ++i) {
        const int32_t value =
            i < node->input_count ? node->inputs[i] : node->outputs[i - node->input_count];
        if (value >= 0 && (rondo__half_get_type(program, value) == RONDO_DTYPE_NONE ||
                           !rondo__value_get_shape(&program->values[value], &shape))) {
            return false;
        }
    }
    return true;
}

bool rondo__half_has_objects(const rondo_program *program, const rondo__node *node) {
    bool has = false;
    for (size_t i = 0; i < node->input_count + node->output_count; ++i) {
        const rondo_dtype dtype = rondo__half_get_type(
            program,
            i < node->input_count ? node->inputs[i] : node->outputs[i - node->input_count]);
        has = has || (dtype != RONDO_DTYPE_NONE && !rondo__dtype_is_plain(dtype));
    }
    return has;
}

int64_t rondo__half_count_summed(const rondo_program *program, const rondo__node *node) {
    rondo_shape x;
    rondo_shape y;
    if (rondo__match_input(node, 0) < 0 || node->outputs[0] < 0 ||
        !rondo__value_get_shape(&program->values[node->inputs[0]], &x) ||
        !rondo__value_get_shape(&program->values[node->outputs[0]], &y)) {
        return INT64_MAX;
    }
    const int64_t outputs = rondo_shape_get_count(&y);
    int64_t longest = outputs > 0 ? rondo_shape_get_count(&x) / outputs : 0;
    if (rondo__node_is(node, RONDO__OP_CumSum)) {
        for (int32_t d = 0; d < x.rank; ++d) {
            longest = x.extent[d] > longest ? x.extent[d] : longest;
        }
    }
    return longest;
}

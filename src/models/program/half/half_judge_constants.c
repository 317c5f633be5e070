// program/half/half_judge_constants.c — which constants f16 cannot hold where they are used.
// SPDX-License-Identifier: Apache-2.0
#include "program/half/half_judge.h"
#include "program/passes/match.h"

static const char overflow_reason[] = "a constant is larger than f16 holds";
static const char tiny_reason[] = "a constant is smaller than f16 holds";
static const char large_reason[] = "a factor of 4096 or more leaves the range of f16";
static const char whole_reason[] = "a constant holds whole numbers that f16 rounds";

// A stand-in for infinity may become 65504 where it is chosen, compared or added, not as a factor.
static bool takes_infinity(const rondo__node *node) {
    return rondo__half_is_move(node) || rondo__node_is(node, RONDO__OP_Where) ||
           rondo__node_is(node, RONDO__OP_Add) || rondo__node_is(node, RONDO__OP_Sub) ||
           rondo__node_is(node, RONDO__OP_Max) || rondo__node_is(node, RONDO__OP_Min) ||
           rondo__node_is(node, RONDO__OP_Clip);
}

// Why a constant with these traits, input `input`, keeps its user in f32, and the class of the
// results then.
static const char *judge_constant(const rondo__node *node, const rondo__half_rule *r, size_t input,
                                  uint32_t traits, uint8_t *out_class) {
    const bool is_factor = rondo__node_is(node, RONDO__OP_Mul);
    const bool is_divisor = rondo__node_is(node, RONDO__OP_Div) && input == 1;
    const bool is_weight = (r->kind & HALF_PRODUCT) != 0 && input == 1;
    const bool is_operand =
        (node->op.def->flags & RONDO__OP_ELEMENTWISE) != 0 || rondo__half_is_move(node);
    if ((traits & RONDO__HALF_OVERFLOWS) != 0) {
        *out_class = is_divisor ? HALF_FINE : HALF_WIDE;
        return overflow_reason;
    }
    if ((traits & RONDO__HALF_INFINITE) != 0 && !takes_infinity(node)) {
        *out_class = HALF_EXACT;  // a mask, most often
        return overflow_reason;
    }
    if ((traits & RONDO__HALF_TINY) != 0 && (is_weight || is_operand)) {
        *out_class = is_divisor ? HALF_WIDE : HALF_FINE;
        return tiny_reason;
    }
    if ((traits & RONDO__HALF_LARGE) != 0 && is_factor) {
        *out_class = HALF_WIDE;
        return large_reason;
    }
    if ((traits & RONDO__HALF_WHOLE) != 0 && is_operand) {
        *out_class = HALF_EXACT;
        return whole_reason;
    }
    return NULL;
}

// What a value is added to, after moves and sums with constants, if it goes no other way.
static int32_t find_other_term(const rondo__half_analysis *a, int32_t value) {
    for (;;) {
        const int32_t user = rondo__uses_get_single(&a->uses, value);
        if (user < 0) {
            return RONDO__VALUE_NONE;
        }
        const rondo__node *node = &a->program->nodes[user];
        const int32_t other =
            rondo__match_input(node, rondo__match_input(node, 0) == value ? 1 : 0);
        if (rondo__node_is(node, RONDO__OP_Add) && !rondo__half_is_constant(a->program, other)) {
            return other;
        }
        if (!rondo__node_is(node, RONDO__OP_Add) &&
            (!rondo__half_is_move(node) || rondo__match_input(node, 0) != value)) {
            return RONDO__VALUE_NONE;
        }
        value = node->outputs[0];
    }
}

static bool has_tiny_factor(const rondo__half_analysis *a, const rondo__node *node) {
    const bool is_product = (rondo__half_find_rule(node)->kind & HALF_PRODUCT) != 0;
    for (size_t i = is_product ? 1 : 0;
         i < 2 && (is_product || rondo__node_is(node, RONDO__OP_Mul)); ++i) {
        const int32_t value = rondo__match_input(node, i);
        if (rondo__half_is_single(a->program, value) &&
            rondo__half_is_constant(a->program, value) &&
            (rondo__half_get_traits(a->cache, &a->program->values[value].constant) &
             RONDO__HALF_TINY) != 0) {
            return true;
        }
    }
    return false;
}

// A product with tiny factors that becomes a term of a sum is lost beside the other term in f16,
// whatever makes it, unless that is no ordinary value or has such a factor, too.
static bool is_lost_term(const rondo__half_analysis *a, const rondo__node *node) {
    int32_t other =
        has_tiny_factor(a, node) ? find_other_term(a, node->outputs[0]) : RONDO__VALUE_NONE;
    bool is_lost = other >= 0 && a->class_of[other] == HALF_PLAIN;
    while (is_lost && other >= 0 && a->program->values[other].producer >= 0) {
        const rondo__node *maker = &a->program->nodes[a->program->values[other].producer];
        const bool is_biased = rondo__node_is(maker, RONDO__OP_Add) &&
                               (rondo__half_is_constant(a->program, maker->inputs[0]) ||
                                rondo__half_is_constant(a->program, maker->inputs[1]));
        is_lost = !has_tiny_factor(a, maker);
        other = is_biased
                    ? maker->inputs[rondo__half_is_constant(a->program, maker->inputs[0]) ? 1 : 0]
                : rondo__half_is_move(maker) ? rondo__match_input(maker, 0)
                                             : RONDO__VALUE_NONE;
    }
    return is_lost;
}

// A bias below what f16 holds is lost beside a product in f16, whatever adds it.
static bool is_bias(const rondo__half_analysis *a, const rondo__node *node, size_t input) {
    const int32_t other = rondo__match_input(node, 1 - input);
    const int32_t maker = other >= 0 ? a->program->values[other].producer : -1;
    return rondo__node_is(node, RONDO__OP_Add) && maker >= 0 &&
           (rondo__half_find_rule(&a->program->nodes[maker])->kind & HALF_PRODUCT) != 0;
}

const char *rondo__half_judge_constants(const rondo__half_analysis *a, const rondo__node *node,
                                        const rondo__half_rule *r, uint8_t *out_class) {
    static const char *const bounds[] = {"min", "max"};  // of Clip, before they became inputs
    const char *reason = NULL;
    const bool is_lost = is_lost_term(a, node);
    for (size_t i = 0; i < 2 && rondo__node_is(node, RONDO__OP_Clip); ++i) {
        uint8_t result = HALF_PLAIN;
        float bound = rondo__op_get_float(&node->op, bounds[i], 0.0f);
        const rondo_tensor scalar = {.dtype = RONDO_DTYPE_F32, .data = &bound};
        const char *found =
            judge_constant(node, r, i + 1, rondo__half_get_traits(NULL, &scalar), &result);
        reason = found != NULL ? found : reason;
        *out_class = result > *out_class ? result : *out_class;
    }
    for (size_t i = 0; i < node->input_count; ++i) {
        uint8_t result = HALF_PLAIN;
        if (!rondo__half_is_single(a->program, node->inputs[i]) ||
            !rondo__half_is_constant(a->program, node->inputs[i]) ||
            rondo__half_is_fixed_input(node, i)) {
            continue;
        }
        const rondo_tensor *constant = &a->program->values[node->inputs[i]].constant;
        uint32_t traits = rondo__half_get_traits(a->cache, constant);
        traits &= ~(is_lost || is_bias(a, node, i) ? (uint32_t)RONDO__HALF_TINY : 0);
        const char *found = judge_constant(node, r, i, traits, &result);
        if (found != NULL && (reason == NULL || result > *out_class)) {
            reason = found;
            *out_class = result;
        }
    }
    return reason;
}

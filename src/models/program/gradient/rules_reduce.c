// program/gradient/rules_reduce.c — gradients of sums, extremes and running sums.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "program/gradient/gradient_parts.h"

#define E(...) RONDO__EMIT(g, __VA_ARGS__)
#define RULE(name) static void name(rondo__gradient *g, const rondo__gradient_call *call)
#define FIRST rondo__gradient_input(call, 0)
#define MADE rondo__gradient_output(call, 0)
#define DY (call->changes[0])

// The axes as a value; NONE where all are meant. *out_is_noop: none is.
static int32_t find_axes(rondo__gradient *g, const rondo__gradient_call *call, bool *out_is_noop) {
    size_t count = 0;
    int64_t known[RONDO_RANK_MAX];
    const int64_t *list = rondo__op_get_ints(&call->op, "axes", &count);
    const bool is_noop = rondo__op_get_int(&call->op, "noop_with_empty_axes", 0) != 0;
    const int32_t input = rondo__gradient_input(call, 1);
    *out_is_noop = false;
    if (count > 0) {
        return rondo__gradient_ints(g, list, count);
    }
    if (input < 0 || rondo__gradient_read_ints(g, input, known, RONDO_RANK_MAX) == 0) {
        *out_is_noop = is_noop;
        return RONDO__VALUE_NONE;
    }
    return input;
}

// A value of y's shape with the reduced axes as ones, so that it fits x.
static int32_t restore(rondo__gradient *g, const rondo__gradient_call *call, int32_t value) {
    bool is_noop = false;
    const int32_t axes = find_axes(g, call, &is_noop);
    if (is_noop || axes < 0 || rondo__op_get_int(&call->op, "keepdims", 1) != 0) {
        return value;
    }
    return E("Unsqueeze", value, axes);
}

RULE(rule_reduce_sum) {
    const int32_t change = restore(g, call, DY);
    rondo__gradient_give(g, call, 0, rondo__gradient_expand_like(g, change, FIRST));
}

RULE(rule_reduce_mean) {
    const int32_t count = E("Div", E("Size", FIRST), E("Size", MADE));
    const int32_t change = E("Div", DY, rondo__gradient_cast_like(g, count, FIRST));
    rondo__gradient_give(g, call, 0,
                         rondo__gradient_expand_like(g, restore(g, call, change), FIRST));
}

RULE(rule_sum_square) {
    const int32_t twice = E("Mul", FIRST, rondo__gradient_number(g, 2.0, FIRST));
    rondo__gradient_give(g, call, 0, E("Mul", twice, restore(g, call, DY)));
}

RULE(rule_l1) {
    rondo__gradient_give(g, call, 0, E("Mul", E("Sign", FIRST), restore(g, call, DY)));
}

RULE(rule_l2) {
    // The norm of zeros does not change.
    const int32_t zero = rondo__gradient_number(g, 0.0, FIRST);
    const int32_t is_zero = E("Equal", MADE, zero);
    const int32_t below = E("Where", is_zero, rondo__gradient_number(g, 1.0, FIRST), MADE);
    const int32_t ratio = E("Where", is_zero, zero, E("Div", DY, below));
    rondo__gradient_give(g, call, 0, E("Mul", FIRST, restore(g, call, ratio)));
}

RULE(rule_log_sum) {
    const int32_t change = restore(g, call, E("Div", DY, E("Exp", MADE)));
    rondo__gradient_give(g, call, 0, rondo__gradient_expand_like(g, change, FIRST));
}

RULE(rule_log_sum_exp) {
    const int32_t share = E("Exp", E("Sub", FIRST, restore(g, call, MADE)));
    rondo__gradient_give(g, call, 0, E("Mul", share, restore(g, call, DY)));
}

RULE(rule_extreme) {
    // Equals share it; a NaN among them makes it NaN.
    bool is_noop = false;
    const int32_t axes = find_axes(g, call, &is_noop);
    if (is_noop) {
        rondo__gradient_give(g, call, 0, DY);
        return;
    }
    const int32_t is_best =
        rondo__gradient_cast_like(g, E("Equal", FIRST, restore(g, call, MADE)), FIRST);
    const int32_t count = axes >= 0 ? E("ReduceSum", is_best, axes) : E("ReduceSum", is_best);
    const int32_t share = E("Div", restore(g, call, DY), count);
    rondo__gradient_give(g, call, 0, E("Mul", is_best, share));
}

RULE(rule_product) {
    // The product of the other elements: those before times those behind, so that a zero does no
    // harm.
    int64_t axes[RONDO_RANK_MAX];
    bool is_noop = false;
    const int32_t rank = rondo__gradient_need_rank(g, call, FIRST);
    const int32_t value = find_axes(g, call, &is_noop);
    int32_t count = value >= 0 ? rondo__gradient_read_ints(g, value, axes, RONDO_RANK_MAX) : rank;
    if (is_noop || rank == 0) {
        rondo__gradient_give(g, call, 0, DY);
        return;
    }
    if (count < 0) {
        rondo__gradient_refuse(g, call, "axes that are computed");
        return;
    }
    if (count > 1) {
        // One axis after the other.
        const size_t begin = rondo__gradient_begin(g);
        int32_t y = FIRST;
        for (int32_t i = 0; i < count; ++i) {
            const int64_t axis = value >= 0 ? axes[i] : i;
            y = rondo__gradient_reduce(g, "ReduceProd", y, &axis, 1);
        }
        y = rondo__gradient_reshape_like(g, y, MADE);
        rondo__gradient_expand(g, begin, &y, call->changes, 1);
        return;
    }
    const int32_t axis = rondo__gradient_index(g, value >= 0 ? axes[0] : 0);
    const int32_t before = rondo__gradient_set_int(g, E("CumProd", FIRST, axis), "exclusive", 1);
    const int32_t behind = rondo__gradient_set_int(
        g, rondo__gradient_set_int(g, E("CumProd", FIRST, axis), "exclusive", 1), "reverse", 1);
    const int32_t others = E("Mul", before, behind);
    rondo__gradient_give(g, call, 0, E("Mul", others, restore(g, call, DY)));
}

// Written out: each product is the one before times an element, so that zeros do no harm.
RULE(rule_cum_prod) {
    enum { PARTS_MAX = 256 };
    int64_t axis = 0;
    const int32_t rank = rondo__gradient_need_rank(g, call, FIRST);
    const bool has_axis =
        rondo__gradient_read_ints(g, rondo__gradient_input(call, 1), &axis, 1) == 1;
    const int32_t at = (int32_t)(axis < 0 ? axis + rank : axis);
    const int64_t count =
        has_axis && at >= 0 && at < rank ? rondo__gradient_extent(g, FIRST, at) : -1;
    if (count < 1 || count > PARTS_MAX) {
        rondo__gradient_refuse(g, call, "an axis whose extent is not known, or above 256");
        return;
    }
    const bool is_reverse = rondo__op_get_int(&call->op, "reverse", 0) != 0;
    const bool is_exclusive = rondo__op_get_int(&call->op, "exclusive", 0) != 0;
    const size_t begin = rondo__gradient_begin(g);
    const int32_t x = FIRST;
    int32_t parts[PARTS_MAX];
    int32_t made[PARTS_MAX];
    int32_t product = RONDO__VALUE_NONE;
    rondo__gradient_emit_many(g, "Split", &x, 1, parts, (size_t)count);
    (void)rondo__gradient_set_int(g, parts[0], "num_outputs", count);
    (void)rondo__gradient_set_int(g, parts[0], "axis", at);
    for (int64_t k = 0; k < count; ++k) {
        const int64_t i = is_reverse ? count - 1 - k : k;
        const int32_t before = product >= 0 ? product : rondo__gradient_fill_like(g, 1.0, parts[i]);
        product = E("Mul", before, parts[i]);
        made[i] = is_exclusive ? before : product;
    }
    const int32_t y = rondo__gradient_set_int(
        g, rondo__gradient_emit(g, "Concat", made, (size_t)count), "axis", at);
    rondo__gradient_expand(g, begin, &y, call->changes, 1);
}

RULE(rule_cum_sum) {
    const int32_t change = E("CumSum", DY, rondo__gradient_input(call, 1));
    rondo__gradient_copy_attribute(g, change, call, "exclusive");
    const int64_t reverse = rondo__op_get_int(&call->op, "reverse", 0);
    rondo__gradient_give(g, call, 0, rondo__gradient_set_int(g, change, "reverse", !reverse));
}

const rondo__gradient_row rondo__gradient_rows_reduce[] = {
    {RONDO__OP_ReduceSum, rule_reduce_sum},
    {RONDO__OP_ReduceMean, rule_reduce_mean},
    {RONDO__OP_ReduceSumSquare, rule_sum_square},
    {RONDO__OP_ReduceL1, rule_l1},
    {RONDO__OP_ReduceL2, rule_l2},
    {RONDO__OP_ReduceLogSum, rule_log_sum},
    {RONDO__OP_ReduceLogSumExp, rule_log_sum_exp},
    {RONDO__OP_ReduceMax, rule_extreme},
    {RONDO__OP_ReduceMin, rule_extreme},
    {RONDO__OP_ReduceProd, rule_product},
    {RONDO__OP_CumSum, rule_cum_sum},
    {RONDO__OP_CumProd, rule_cum_prod},
    {RONDO__OP_ArgMax, NULL},
    {RONDO__OP_ArgMin, NULL},
    {RONDO__OP_NONE, NULL},
};

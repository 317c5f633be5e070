// program/gradient/rules_loss.c — gradients of the two losses of labels.
//
//   loss = sum of -w[label] * x[label], over the rows that count, by the sum of their w (mean)
//
// A row that is ignored gets zeros, whatever the rest comes to: also where all are, and the loss is
// NaN. Classes are compared with the label, so nothing is scattered.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "program/gradient/gradient_parts.h"

#define E(...) RONDO__EMIT(g, __VA_ARGS__)
#define RULE(name) static void name(rondo__gradient *g, const rondo__gradient_call *call)
#define FIRST rondo__gradient_input(call, 0)
#define LABELS rondo__gradient_input(call, 1)
#define WEIGHTS rondo__gradient_input(call, 2)
#define DY (call->changes[0])

// What each row counts, [n, 1, d...]: w / sum of w, times dy; 0 where it is ignored.
static int32_t find_shares(rondo__gradient *g, const rondo__gradient_call *call, int32_t labels,
                           int32_t *out_clean) {
    const char *reduction = rondo__op_get_string(&call->op, "reduction", "mean");
    const rondo__attribute *ignored = rondo__op_find(&call->op, "ignore_index");
    const int32_t zero = rondo__gradient_number(g, 0.0, labels);
    int32_t counts = RONDO__VALUE_NONE;
    *out_clean = labels;
    if (ignored != NULL) {
        const int32_t mark = rondo__gradient_number(g, (double)ignored->int_value, labels);
        counts = E("Not", E("Equal", labels, mark));
        *out_clean = E("Where", counts, labels, zero);
    }
    const int32_t nothing = rondo__gradient_number(g, 0.0, FIRST);
    int32_t weights = WEIGHTS >= 0 ? E("Gather", WEIGHTS, *out_clean)
                                   : rondo__gradient_expand_like(
                                         g, rondo__gradient_number(g, 1.0, FIRST), labels);
    weights = counts >= 0 ? E("Where", counts, weights, nothing) : weights;
    int32_t change = DY;
    if (strcmp(reduction, "none") == 0) {
        change = E("Unsqueeze", change, rondo__gradient_int(g, 1));
    } else if (strcmp(reduction, "mean") == 0) {
        const int32_t sum = rondo__gradient_set_int(g, E("ReduceSum", weights), "keepdims", 0);
        change = E("Div", change, sum);
    }
    const int32_t share = E("Mul", weights, change);
    return counts >= 0 ? E("Where", counts, share, nothing) : share;
}

typedef struct rows {
    int32_t is_label;  // [n, c, d...]
    int32_t share;     // [n, 1, d...]
} rows;

static rows find_rows(rondo__gradient *g, const rondo__gradient_call *call) {
    const int32_t rank = rondo__gradient_need_rank(g, call, FIRST);
    int32_t clean = RONDO__VALUE_NONE;
    const int32_t labels = E("Unsqueeze", LABELS, rondo__gradient_int(g, 1));
    const int32_t share = find_shares(g, call, labels, &clean);
    const int32_t size = rondo__gradient_axis_size(g, FIRST, 1);
    const int64_t column[RONDO_RANK_MAX] = {1, -1, 1, 1, 1, 1, 1, 1};
    const int64_t none = 0;
    const int32_t end = E("Squeeze", size, rondo__gradient_ints(g, &none, 1));
    const int32_t line = E("Range", rondo__gradient_index(g, 0), end, rondo__gradient_index(g, 1));
    const int32_t classes = rondo__gradient_cast_like(
        g, rondo__gradient_reshape(g, line, column, rank > 0 ? (size_t)rank : 0), clean);
    return (rows){E("Equal", classes, clean), share};
}

RULE(rule_nll) {
    if (rondo__gradient_wants(g, call, 2)) {
        rondo__gradient_refuse(g, call, "weights that are trained");
        return;
    }
    const rows r = find_rows(g, call);
    const int32_t zero = rondo__gradient_number(g, 0.0, FIRST);
    rondo__gradient_give(g, call, 0, E("Where", r.is_label, E("Neg", r.share), zero));
}

RULE(rule_cross_entropy) {
    if (rondo__gradient_wants(g, call, 2)) {
        rondo__gradient_refuse(g, call, "weights that are trained");
        return;
    }
    const int64_t axis = 1;
    const rondo_dtype dtype = rondo__gradient_info(g, FIRST)->dtype;
    const int32_t logs = rondo__gradient_take_output(g, call, 1, dtype);
    const int32_t chances = E("Exp", logs);
    if (DY >= 0) {
        const rows r = find_rows(g, call);
        const int32_t one = rondo__gradient_number(g, 1.0, FIRST);
        const int32_t zero = rondo__gradient_number(g, 0.0, FIRST);
        const int32_t off = E("Sub", chances, E("Where", r.is_label, one, zero));
        // A row that does not count is chosen away, not multiplied by 0.
        const int32_t is_out = E("Equal", r.share, zero);
        rondo__gradient_give(g, call, 0, E("Where", is_out, zero, E("Mul", off, r.share)));
    }
    if (call->output_count > 1 && call->changes[1] >= 0) {
        const int32_t sum = rondo__gradient_reduce(g, "ReduceSum", call->changes[1], &axis, 1);
        rondo__gradient_give(g, call, 0, E("Sub", call->changes[1], E("Mul", chances, sum)));
    }
}

const rondo__gradient_row rondo__gradient_rows_loss[] = {
    {RONDO__OP_NegativeLogLikelihoodLoss, rule_nll},
    {RONDO__OP_SoftmaxCrossEntropyLoss, rule_cross_entropy},
    {RONDO__OP_NONE, NULL},
};

// program/gradient/rules_norm.c — gradients of normalisations and softmaxes.
//
// Means and deviations are computed again: that is cheaper than to keep x - mean. Half precision is
// widened to f32, as the ops do.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "program/gradient/gradient_parts.h"

#define E(...) RONDO__EMIT(g, __VA_ARGS__)
#define RULE(name) static void name(rondo__gradient *g, const rondo__gradient_call *call)
#define FIRST rondo__gradient_input(call, 0)
#define SECOND rondo__gradient_input(call, 1)
#define MADE rondo__gradient_output(call, 0)
#define DY (call->changes[0])

typedef struct axes {
    size_t count;
    int64_t list[RONDO_RANK_MAX];
} axes;

static axes axes_from(int64_t first, int32_t rank) {
    axes a = {0};
    for (int64_t d = first; d < rank; ++d) {
        a.list[a.count++] = d;
    }
    return a;
}

static int32_t mean(rondo__gradient *g, int32_t value, const axes *a) {
    if (a->count > 1 && a->list[0] == 0 && a->list[1] == 2) {
        // Of a batch: first over each image, whose elements lie together.
        const int32_t images =
            rondo__gradient_reduce(g, "ReduceMean", value, a->list + 1, a->count - 1);
        return rondo__gradient_reduce(g, "ReduceMean", images, a->list, 1);
    }
    return rondo__gradient_reduce(g, "ReduceMean", value, a->list, a->count);
}

static int32_t widen(rondo__gradient *g, int32_t value) {
    const rondo_dtype dtype = rondo__gradient_info(g, value)->dtype;
    return dtype == RONDO_DTYPE_F16 || dtype == RONDO_DTYPE_BF16
               ? rondo__gradient_cast(g, value, RONDO_DTYPE_F32)
               : value;
}

// x - mean, and 1 / sqrt(variance + epsilon).
typedef struct moments {
    int32_t inverse;
    int32_t normal;  // their product
} moments;

static moments find_moments(rondo__gradient *g, int32_t x, const axes *a, double epsilon) {
    const int32_t d = E("Sub", x, mean(g, x, a));
    const int32_t variance = mean(g, E("Mul", d, d), a);
    const int32_t root = E("Sqrt", E("Add", variance, rondo__gradient_number(g, epsilon, x)));
    const int32_t inverse = E("Reciprocal", root);
    return (moments){inverse, E("Mul", d, inverse)};
}

// inverse * (c - mean(c) - normal * mean(c * normal)), c being the change of the normalised value.
static int32_t change_through(rondo__gradient *g, const moments *m, int32_t c, const axes *a) {
    const int32_t along = E("Mul", m->normal, mean(g, E("Mul", c, m->normal), a));
    const int32_t rest = E("Sub", E("Sub", c, mean(g, c, a)), along);
    return E("Mul", rest, m->inverse);
}

// A vector of channels in the shape [1, c, 1, ...].
static int32_t as_channels(rondo__gradient *g, int32_t value, int32_t rank) {
    int64_t extents[RONDO_RANK_MAX] = {1, -1, 1, 1, 1, 1, 1, 1};
    return rondo__gradient_reshape(g, value, extents, (size_t)rank);
}

static double get_epsilon(const rondo__gradient_call *call) {
    return (double)rondo__op_get_float(&call->op, "epsilon", 1e-5f);
}

static int32_t sum_channels(rondo__gradient *g, int32_t value, int32_t rank) {
    return rondo__gradient_sum_channels(g, value, rank);
}

static void refuse_statistics(rondo__gradient *g, const rondo__gradient_call *call) {
    for (size_t i = 1; i < call->output_count; ++i) {
        if (call->changes[i] >= 0) {
            rondo__gradient_refuse(g, call, "a change of its statistics");
        }
    }
}

// ---- batches ------------------------------------------------------------------------------------

// With fixed mean and variance: inputs 3 and 4.
static void give_inference(rondo__gradient *g, const rondo__gradient_call *call, int32_t rank) {
    const size_t begin = rondo__gradient_begin(g);
    const int32_t middle = as_channels(g, call->inputs[3], rank);
    const int32_t variance = as_channels(g, call->inputs[4], rank);
    const int32_t epsilon = rondo__gradient_number(g, get_epsilon(call), variance);
    const int32_t inverse = E("Reciprocal", E("Sqrt", E("Add", variance, epsilon)));
    const int32_t factor = E("Mul", inverse, as_channels(g, SECOND, rank));
    const int32_t product = E("Mul", E("Sub", FIRST, middle), factor);
    const int32_t y = E("Add", product, as_channels(g, call->inputs[2], rank));
    rondo__gradient_expand(g, begin, &y, call->changes, 1);
}

// How many elements of x share a channel, a number of its type.
static int32_t count_shared(rondo__gradient *g, int32_t x, int32_t channels) {
    const int32_t all = rondo__gradient_cast_like(g, E("Size", x), x);
    return E("Div", all, rondo__gradient_cast_like(g, E("Size", channels), x));
}

// The sums of dy, and of dy times the normalised value, are the changes of shift and scale; divided
// by the count they are the means that the change of x needs.
static void give_training(rondo__gradient *g, const rondo__gradient_call *call, int32_t rank,
                          const axes *a) {
    const int32_t x = widen(g, FIRST);
    const int32_t dy = rondo__gradient_cast_like(g, DY, x);
    const moments m = find_moments(g, x, a, get_epsilon(call));
    const int32_t along = sum_channels(g, E("Mul", dy, m.normal), rank);
    const int32_t sum = sum_channels(g, dy, rank);
    if (rondo__gradient_wants(g, call, 0)) {
        const int32_t count = count_shared(g, x, SECOND);
        const int32_t scale = as_channels(g, rondo__gradient_cast_like(g, SECOND, x), rank);
        const int32_t part = E("Mul", m.normal, as_channels(g, E("Div", along, count), rank));
        const int32_t middle = as_channels(g, E("Div", sum, count), rank);
        const int32_t rest = E("Sub", E("Sub", dy, middle), part);
        rondo__gradient_give(g, call, 0, E("Mul", rest, E("Mul", m.inverse, scale)));
    }
    if (rondo__gradient_wants(g, call, 1)) {
        rondo__gradient_give(g, call, 1, along);
    }
    if (rondo__gradient_wants(g, call, 2)) {
        rondo__gradient_give(g, call, 2, sum);
    }
}

RULE(rule_batch) {
    const int32_t rank = rondo__gradient_need_rank(g, call, FIRST);
    const bool trains =
        rondo__op_trains(&call->op) || (call->op.opset < 14 && call->output_count > 1);
    if (rank < 2 || call->input_count < 5) {
        return;
    }
    if (!trains) {
        give_inference(g, call, rank);
        return;
    }
    refuse_statistics(g, call);
    axes a = axes_from(1, rank);
    a.list[0] = 0;
    give_training(g, call, rank, &a);
}

// ---- rows ---------------------------------------------------------------------------------------

static int64_t get_axis(const rondo__gradient_call *call, int64_t fallback, int32_t rank) {
    const int64_t axis = rondo__op_get_int(&call->op, "axis", fallback);
    return axis < 0 ? axis + rank : axis;
}

RULE(rule_layer) {
    const int32_t rank = rondo__gradient_need_rank(g, call, FIRST);
    const axes a = axes_from(get_axis(call, -1, rank), rank);
    refuse_statistics(g, call);
    if (g->status != RONDO_STATUS_OK) {
        return;
    }
    const int32_t x = widen(g, FIRST);
    const int32_t dy = rondo__gradient_cast_like(g, DY, x);
    const moments m = find_moments(g, x, &a, get_epsilon(call));
    if (rondo__gradient_wants(g, call, 0)) {
        const int32_t c = E("Mul", dy, rondo__gradient_cast_like(g, SECOND, x));
        rondo__gradient_give(g, call, 0, change_through(g, &m, c, &a));
    }
    if (rondo__gradient_wants(g, call, 1)) {
        const int32_t change = E("Mul", dy, m.normal);
        rondo__gradient_give(g, call, 1, rondo__gradient_sum_to(g, change, SECOND));
    }
    if (rondo__gradient_wants(g, call, 2)) {
        rondo__gradient_give(g, call, 2, rondo__gradient_sum_to(g, dy, call->inputs[2]));
    }
}

RULE(rule_rms) {
    const int32_t rank = rondo__gradient_need_rank(g, call, FIRST);
    const axes a = axes_from(get_axis(call, -1, rank), rank);
    const size_t begin = rondo__gradient_begin(g);
    const int32_t x = widen(g, FIRST);
    const int32_t square = mean(g, E("Mul", x, x), &a);
    const int32_t epsilon = rondo__gradient_number(g, get_epsilon(call), x);
    const int32_t inverse = E("Reciprocal", E("Sqrt", E("Add", square, epsilon)));
    const int32_t normal = rondo__gradient_cast_like(g, E("Mul", x, inverse), SECOND);
    const int32_t y = E("Mul", normal, SECOND);
    rondo__gradient_expand(g, begin, &y, call->changes, 1);
}

// ---- groups of channels -------------------------------------------------------------------------

// Each of `groups` (0: each channel) of an image normalised by itself.
static int32_t normalise_groups(rondo__gradient *g, const rondo__gradient_call *call,
                                int64_t groups) {
    const int64_t few[3] = {0, groups, -1};
    const axes last = {1, {2}};
    const int32_t x = rondo__gradient_reshape(g, widen(g, FIRST), few, 3);
    return find_moments(g, x, &last, get_epsilon(call)).normal;
}

RULE(rule_group) {
    const int32_t rank = rondo__gradient_need_rank(g, call, FIRST);
    const int64_t groups = rondo__op_get_int(&call->op, "num_groups", 1);
    const bool by_channel = call->op.opset >= 21;
    const size_t begin = rondo__gradient_begin(g);
    int32_t normal = rondo__gradient_cast_like(g, normalise_groups(g, call, groups), FIRST);
    normal = by_channel ? rondo__gradient_reshape_like(g, normal, FIRST) : normal;
    const int32_t wide = by_channel ? rank : 3;
    const int32_t scaled = E("Mul", normal, as_channels(g, SECOND, wide));
    const int32_t shifted = E("Add", scaled, as_channels(g, rondo__gradient_input(call, 2), wide));
    const int32_t y = by_channel ? shifted : rondo__gradient_reshape_like(g, shifted, FIRST);
    rondo__gradient_expand(g, begin, &y, call->changes, 1);
}

RULE(rule_instance) {
    const int32_t rank = rondo__gradient_need_rank(g, call, FIRST);
    const size_t begin = rondo__gradient_begin(g);
    int32_t normal = rondo__gradient_cast_like(g, normalise_groups(g, call, 0), FIRST);
    normal = rondo__gradient_reshape_like(g, normal, FIRST);
    const int32_t scaled = E("Mul", normal, as_channels(g, SECOND, rank));
    const int32_t y = E("Add", scaled, as_channels(g, rondo__gradient_input(call, 2), rank));
    rondo__gradient_expand(g, begin, &y, call->changes, 1);
}

RULE(rule_mean_variance) {
    axes a = {3, {0, 2, 3}};
    size_t count = 0;
    const int64_t *list = rondo__op_get_ints(&call->op, "axes", &count);
    if (count > 0 && count <= RONDO_RANK_MAX) {
        a.count = count;
        memcpy(a.list, list, count * sizeof *list);
    }
    const size_t begin = rondo__gradient_begin(g);
    const int32_t d = E("Sub", FIRST, mean(g, FIRST, &a));
    const int32_t root = E("Sqrt", mean(g, E("Mul", d, d), &a));
    const int32_t y = E("Div", d, E("Add", root, rondo__gradient_number(g, 1e-9, FIRST)));
    rondo__gradient_expand(g, begin, &y, call->changes, 1);
}

RULE(rule_lp) {
    const int32_t rank = rondo__gradient_need_rank(g, call, FIRST);
    const int64_t axis = get_axis(call, -1, rank);
    const bool is_sum = rondo__op_get_int(&call->op, "p", 2) == 1;
    const size_t begin = rondo__gradient_begin(g);
    const int32_t norm =
        rondo__gradient_reduce(g, is_sum ? "ReduceL1" : "ReduceL2", FIRST, &axis, 1);
    const int32_t y = E("Div", FIRST, norm);
    rondo__gradient_expand(g, begin, &y, call->changes, 1);
}

RULE(rule_lrn) {
    // Channels as the rows of an image, over which a window adds up.
    const int64_t size = rondo__op_get_int(&call->op, "size", 1);
    const double alpha = (double)rondo__op_get_float(&call->op, "alpha", 0.0001f);
    const double beta = (double)rondo__op_get_float(&call->op, "beta", 0.75f);
    const double bias = (double)rondo__op_get_float(&call->op, "bias", 1.0f);
    const int64_t window[2] = {size, 1};
    const int64_t pads[4] = {(size - 1) / 2, 0, size - 1 - (size - 1) / 2, 0};
    const size_t begin = rondo__gradient_begin(g);
    const int64_t front[1] = {1};
    const int32_t list[4] = {rondo__gradient_axis_size(g, FIRST, 0),
                             rondo__gradient_ints(g, front, 1),
                             rondo__gradient_axis_size(g, FIRST, 1), rondo__gradient_int(g, -1)};
    const int32_t extents =
        rondo__gradient_set_int(g, rondo__gradient_emit(g, "Concat", list, 4), "axis", 0);
    const int32_t square = E("Reshape", E("Mul", FIRST, FIRST), extents);
    int32_t average = E("AveragePool", square);
    average = rondo__gradient_set_ints(g, average, "kernel_shape", window, 2);
    average = rondo__gradient_set_ints(g, average, "pads", pads, 4);
    average = rondo__gradient_set_int(g, average, "count_include_pad", 1);
    average = rondo__gradient_reshape_like(g, average, FIRST);
    const int32_t part = E("Mul", average, rondo__gradient_number(g, alpha, FIRST));
    const int32_t base = E("Add", part, rondo__gradient_number(g, bias, FIRST));
    const int32_t y = E("Mul", FIRST, E("Pow", base, rondo__gradient_number(g, -beta, FIRST)));
    rondo__gradient_expand(g, begin, &y, call->changes, 1);
}

// ---- softmaxes ----------------------------------------------------------------------------------

// Before version 13 all axes from `axis` on are one.
static axes find_lines(rondo__gradient *g, const rondo__gradient_call *call) {
    const int32_t rank = rondo__gradient_need_rank(g, call, FIRST);
    const bool is_old = call->op.opset < 13;
    const int64_t axis = get_axis(call, is_old ? 1 : -1, rank);
    axes a = axes_from(axis, rank);
    a.count = is_old ? a.count : 1;
    return a;
}

RULE(rule_softmax) {
    const axes a = find_lines(g, call);
    const int32_t sum = rondo__gradient_reduce(g, "ReduceSum", E("Mul", DY, MADE), a.list, a.count);
    rondo__gradient_give(g, call, 0, E("Mul", E("Sub", DY, sum), MADE));
}

RULE(rule_log_softmax) {
    const axes a = find_lines(g, call);
    const int32_t sum = rondo__gradient_reduce(g, "ReduceSum", DY, a.list, a.count);
    rondo__gradient_give(g, call, 0, E("Sub", DY, E("Mul", E("Exp", MADE), sum)));
}

const rondo__gradient_row rondo__gradient_rows_norm[] = {
    {RONDO__OP_BatchNormalization, rule_batch},
    {RONDO__OP_LayerNormalization, rule_layer},
    {RONDO__OP_RMSNormalization, rule_rms},
    {RONDO__OP_GroupNormalization, rule_group},
    {RONDO__OP_InstanceNormalization, rule_instance},
    {RONDO__OP_MeanVarianceNormalization, rule_mean_variance},
    {RONDO__OP_LpNormalization, rule_lp},
    {RONDO__OP_LRN, rule_lrn},
    {RONDO__OP_Softmax, rule_softmax},
    {RONDO__OP_LogSoftmax, rule_log_softmax},
    {RONDO__OP_Hardmax, NULL},
    {RONDO__OP_NONE, NULL},
};

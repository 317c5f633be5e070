// program/gradient/rules_attention.c — the gradient of ONNX's Attention: written out in products
// and a softmax.
//
//   q, k, v as [batch, heads, rows, width]; keys and values repeated where heads share them
//   y = softmax(cap(scale * q k') + mask) v
// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "program/gradient/gradient_parts.h"

#define E(...) RONDO__EMIT(g, __VA_ARGS__)
#define RULE(name) static void name(rondo__gradient *g, const rondo__gradient_call *call)

static int32_t concat(rondo__gradient *g, const int32_t *parts, size_t count) {
    return rondo__gradient_set_int(g, rondo__gradient_emit(g, "Concat", parts, count), "axis", 0);
}

// [batch, rows, heads * width] as [batch, heads, rows, width]; one of four axes stays.
static int32_t split_heads(rondo__gradient *g, int32_t value, int32_t rank, int64_t heads) {
    const int64_t extents[4] = {0, 0, heads, -1};
    const int64_t order[4] = {0, 2, 1, 3};
    return rank == 4 ? value
                     : rondo__gradient_transpose(g, rondo__gradient_reshape(g, value, extents, 4),
                                                 order, 4);
}

// `repeated`, [batch, kv_heads, times, rows, width], as [batch, heads, rows, width]; `value` has
// these extents but for the heads. A list of numbers tells more of the result than a computed one.
static int32_t join_heads(rondo__gradient *g, int32_t value, int32_t repeated, int64_t heads) {
    const int64_t batch = rondo__gradient_extent(g, value, 0);
    const int64_t rows = rondo__gradient_extent(g, value, 2);
    const int64_t width = rondo__gradient_extent(g, value, 3);
    if (rows != 0 && width != 0 && (rows > 0 || width > 0)) {
        const int64_t numbers[4] = {batch > 0 ? batch : 0, heads, rows, width};  // 0: as it is
        return rondo__gradient_reshape(g, repeated, numbers, 4);
    }
    const int32_t joined[4] = {
        rondo__gradient_axis_size(g, value, 0), rondo__gradient_int(g, heads),
        rondo__gradient_axis_size(g, value, 2), rondo__gradient_axis_size(g, value, 3)};
    return E("Reshape", repeated, concat(g, joined, 4));
}

// Each head of keys or values as many times as heads of q share it.
static int32_t repeat_heads(rondo__gradient *g, int32_t value, int64_t heads, int64_t kv_heads) {
    if (heads == kv_heads) {
        return value;
    }
    const int32_t one = rondo__gradient_int(g, 1);
    const int32_t wide[5] = {one, one, rondo__gradient_int(g, heads / kv_heads), one, one};
    const int32_t repeated =
        E("Expand", E("Unsqueeze", value, rondo__gradient_int(g, 2)), concat(g, wide, 5));
    return join_heads(g, value, repeated, heads);
}

// 0, 1, 2, ... as a column or a row, as many as the axis of `value` has.
static int32_t count_axis(rondo__gradient *g, int32_t value, int64_t axis, bool is_column) {
    const int64_t first = 0;
    const int32_t size =
        E("Squeeze", rondo__gradient_axis_size(g, value, axis), rondo__gradient_ints(g, &first, 1));
    const int32_t line = E("Range", rondo__gradient_index(g, 0), size, rondo__gradient_index(g, 1));
    return E("Unsqueeze", line, rondo__gradient_int(g, is_column ? 1 : 0));
}

static int32_t mask_scores(rondo__gradient *g, const rondo__gradient_call *call, int32_t scores) {
    const int32_t mask = rondo__gradient_input(call, 3);
    const int32_t off = rondo__gradient_number(g, (double)-INFINITY, scores);
    if (mask >= 0 && rondo__gradient_info(g, mask)->dtype == RONDO_DTYPE_BOOL) {
        scores = E("Where", mask, scores, off);
    } else if (mask >= 0) {
        scores = E("Add", scores, mask);
    }
    if (rondo__op_get_int(&call->op, "is_causal", 0) != 0) {
        const int32_t sees =
            E("GreaterOrEqual", count_axis(g, scores, 2, true), count_axis(g, scores, 3, false));
        scores = E("Where", sees, scores, off);
    }
    return scores;
}

// A mask may have fewer columns than there are keys; then the rest is not seen.
static bool has_all_columns(rondo__gradient *g, const rondo__gradient_call *call, int32_t scores) {
    const int32_t mask = rondo__gradient_input(call, 3);
    const int32_t rank = mask >= 0 ? rondo__gradient_rank(g, mask) : 0;
    const int64_t columns = rank > 0 ? rondo__gradient_extent(g, mask, rank - 1) : -1;
    const int64_t keys = rondo__gradient_extent(g, scores, 3);
    if (columns >= 0 && keys >= 0 && columns != keys) {
        rondo__gradient_refuse(g, call, "a mask of fewer columns than keys");
    }
    return g->status == RONDO_STATUS_OK;
}

// Softmax; zeros where a mask leaves nothing to see.
static int32_t find_chances(rondo__gradient *g, int32_t scores, bool has_mask) {
    const int64_t last = -1;
    if (!has_mask) {
        return rondo__gradient_set_int(g, E("Softmax", scores), "axis", -1);
    }
    const int32_t most = rondo__gradient_reduce(g, "ReduceMax", scores, &last, 1);
    const int32_t sees = E("Greater", most, rondo__gradient_number(g, (double)-INFINITY, scores));
    const int32_t zero = rondo__gradient_number(g, 0.0, scores);
    const int32_t seen = E("Where", sees, scores, zero);
    const int32_t chances = rondo__gradient_set_int(g, E("Softmax", seen), "axis", -1);
    return E("Where", sees, chances, zero);
}

// Root of the scale, which is multiplied into q and k: 1 / sqrt(width) where none is given.
static int32_t find_root(rondo__gradient *g, const rondo__gradient_call *call, int32_t q) {
    const rondo__attribute *scale = rondo__op_find(&call->op, "scale");
    if (scale != NULL) {
        return rondo__gradient_number(g, sqrt((double)scale->float_value), q);
    }
    const int64_t first = 0;
    const int32_t width =
        E("Squeeze", rondo__gradient_axis_size(g, q, 3), rondo__gradient_ints(g, &first, 1));
    const int32_t real = rondo__gradient_cast(g, width, RONDO_DTYPE_F64);
    return rondo__gradient_cast_like(g, E("Reciprocal", E("Sqrt", E("Sqrt", real))), q);
}

static bool is_plain(rondo__gradient *g, const rondo__gradient_call *call) {
    bool is_good = true;
    for (size_t i = 4; i < call->input_count; ++i) {
        is_good = is_good && rondo__gradient_input(call, i) < 0;
    }
    for (size_t i = 1; i < call->output_count; ++i) {
        is_good = is_good && call->changes[i] < 0;
    }
    is_good = is_good && rondo__op_get_int(&call->op, "left_window_size", -1) < 0 &&
              rondo__op_get_int(&call->op, "right_window_size", -1) < 0;
    if (!is_good) {
        rondo__gradient_refuse(g, call,
                               "a past, lengths, a window, or a change of its other outputs");
    }
    return is_good;
}

RULE(rule_attention) {
    const int32_t q_rank = rondo__gradient_need_rank(g, call, call->inputs[0]);
    if (q_rank < 0 || !is_plain(g, call)) {
        return;
    }
    const int64_t heads = q_rank == 4 ? rondo__gradient_extent(g, call->inputs[0], 1)
                                      : rondo__op_get_int(&call->op, "q_num_heads", 0);
    const int64_t kv_heads = q_rank == 4 ? rondo__gradient_extent(g, call->inputs[1], 1)
                                         : rondo__op_get_int(&call->op, "kv_num_heads", 0);
    if (heads < 1 || kv_heads < 1 || heads % kv_heads != 0) {
        rondo__gradient_refuse(g, call, "a number of heads that is not known");
        return;
    }
    const size_t begin = rondo__gradient_begin(g);
    const int32_t q = split_heads(g, call->inputs[0], q_rank, heads);
    int32_t k = split_heads(g, call->inputs[1], q_rank, kv_heads);
    int32_t v = split_heads(g, call->inputs[2], q_rank, kv_heads);
    const int32_t root = find_root(g, call, q);
    k = repeat_heads(g, k, heads, kv_heads);
    v = repeat_heads(g, v, heads, kv_heads);
    int32_t scores = E("MatMul", E("Mul", q, root), rondo__gradient_swap(g, E("Mul", k, root), 4));
    const double cap = (double)rondo__op_get_float(&call->op, "softcap", 0.0f);
    if (cap > 0.0) {
        const int32_t limit = rondo__gradient_number(g, cap, scores);
        scores = E("Mul", E("Tanh", E("Div", scores, limit)), limit);
    }
    if (!has_all_columns(g, call, scores)) {
        return;
    }
    scores = mask_scores(g, call, scores);
    const int32_t chances = find_chances(g, scores, rondo__gradient_input(call, 3) >= 0);
    int32_t y = E("MatMul", chances, v);
    if (q_rank == 3) {
        const int64_t order[4] = {0, 2, 1, 3};
        const int64_t extents[3] = {0, 0, -1};
        y = rondo__gradient_reshape(g, rondo__gradient_transpose(g, y, order, 4), extents, 3);
    }
    rondo__gradient_expand(g, begin, &y, call->changes, 1);
}

const rondo__gradient_row rondo__gradient_rows_attention[] = {
    {RONDO__OP_Attention, rule_attention},
    {RONDO__OP_NONE, NULL},
};

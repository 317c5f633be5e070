// op/attention/attention_microsoft.c — the forms of Attention, DecoderMaskedMultiHeadAttention,
// GroupQueryAttention and MultiHeadAttention of com.microsoft; see attention_form.h.
//
// Source: ONNX Runtime's documents of these operators (ContribOperators.md); what they leave open
// is as its CPU kernels do it, which the tests' expected values come from. Rows of a padded first
// prompt that lie behind a batch's length see the keys that there are.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "op/attention/attention_form.h"
#include "op/reference.h"

enum { WINDOW_MOST = INT32_MAX };

typedef struct node {
    const rondo__op *op;
    const rondo__tensor_info *inputs;
    size_t input_count, output_count;
    rondo__attention_form *f;
} node;

static bool has(const node *n, int32_t input) {
    return input >= 0 && (size_t)input < n->input_count &&
           n->inputs[input].dtype != RONDO_DTYPE_NONE;
}

static const rondo_shape *get_shape(const node *n, int32_t input) {
    return &n->inputs[input].shape;
}

static bool is_shape(const node *n, int32_t input, int32_t rank, const int64_t *extents) {
    rondo_shape shape = {.rank = rank};
    memcpy(shape.extent, extents, (size_t)rank * sizeof *extents);
    return rondo_shape_is_equal(get_shape(n, input), &shape);
}

static rondo_status fail_input(const node *n, int32_t input, const char *expected) {
    char text[96];
    return RONDO_OP_FAIL(n->op, BAD_DATA, "input %d has shape %s, %s is expected", input,
                         rondo_shape_format(get_shape(n, input), text, sizeof text), expected);
}

// Refuses an input that other runtimes take.
static rondo_status refuse_input(const node *n, int32_t input, const char *name) {
    char detail[64];
    if (!has(n, input)) {
        return RONDO_STATUS_OK;
    }
    (void)snprintf(detail, sizeof detail, "input %s", name);
    return rondo__op_fail_unsupported(n->op, detail);
}

static rondo_status read_heads(const node *n, const char *name, int64_t *out_heads) {
    *out_heads = rondo__op_get_int(n->op, name, 0);
    return *out_heads > 0 ? RONDO_STATUS_OK
                          : RONDO_OP_FAIL(n->op, BAD_DATA, "attribute %s is %lld (at least 1)",
                                          name, (long long)*out_heads);
}

static void read_scale(const node *n) {
    const float scale = rondo__op_get_float(n->op, "scale", 0.0f);
    n->f->scale = scale != 0.0f ? scale : 1.0f / sqrtf((float)(n->f->width > 0 ? n->f->width : 1));
}

static rondo_status read_bias_mask(const node *n, int32_t input) {
    if (!has(n, input)) {
        return RONDO_STATUS_OK;
    }
    return get_shape(n, input)->rank == 4 &&
                   rondo__attention_set_mask(n->f, input, get_shape(n, input))
               ? RONDO_STATUS_OK
               : fail_input(n, input, "[batch, heads, rows, keys]");
}

// A part of a packed row [batch, rows, total], from `offset` on.
static void set_packed(rondo__attention_operand *operand, int32_t input, int64_t rows,
                       int64_t total, int64_t offset, int64_t width) {
    operand->input = input;
    operand->at = (rondo__attention_strides){rows * total, width, total, 1, offset};
}

// ---- keys of the past -------------------------------------------------------------------------

static rondo_status read_past(const node *n, int32_t k, int32_t v) {
    rondo__attention_form *f = n->f;
    if (has(n, k) != has(n, v)) {
        return RONDO_OP_FAIL(n->op, BAD_DATA, "past_key and past_value come together");
    }
    if (has(n, k)) {
        f->past = get_shape(n, k)->rank == 4 ? get_shape(n, k)->extent[2] : 0;
        const int64_t of_k[4] = {f->batch, f->kv_heads, f->past, f->width};
        const int64_t of_v[4] = {f->batch, f->kv_heads, f->past, f->v_width};
        if (!is_shape(n, k, 4, of_k)) {
            return fail_input(n, k, "[batch, heads, rows, width]");
        }
        if (!is_shape(n, v, 4, of_v)) {
            return fail_input(n, v, "[batch, heads, rows, width]");
        }
        rondo__attention_set_dense(&f->past_k, k, false, f->kv_heads, f->past, f->width);
        rondo__attention_set_dense(&f->past_v, v, false, f->kv_heads, f->past, f->v_width);
    }
    return rondo__add_i64(f->past, f->fresh, &f->n) ? RONDO_STATUS_OK
                                                    : fail_input(n, k, "fewer rows");
}

void rondo__attention_set_present(rondo__attention_form *f, int32_t k, int32_t v) {
    if (k >= 0) {
        rondo__attention_set_dense(&f->present_k, k, false, f->kv_heads, f->n, f->width);
    }
    if (v >= 0) {
        rondo__attention_set_dense(&f->present_v, v, false, f->kv_heads, f->n, f->v_width);
    }
}

bool rondo__attention_keeps_past(const rondo__attention_form *f, int which) {
    const rondo__attention_operand *past = which == 1 ? &f->past_k : &f->past_v;
    const rondo__attention_operand *present = which == 1 ? &f->present_k : &f->present_v;
    const bool is_apart = f->past_k.input != f->past_v.input;
    const bool has_room = f->lengths == RONDO__LENGTHS_LAST && f->n == f->past;
    const bool is_one_row = f->lengths == RONDO__LENGTHS_NONE && f->batch * f->kv_heads == 1;
    return past->input >= 0 && present->input >= 0 && is_apart && f->past > 0 &&
           past->at.offset == 0 && present->at.offset == 0 && (has_room || is_one_row);
}

// ---- GroupQueryAttention ----------------------------------------------------------------------

static rondo_status read_group_rows(const node *n) {
    rondo__attention_form *f = n->f;
    const rondo_shape *q = get_shape(n, 0);
    if (q->rank != 3) {
        return fail_input(n, 0, "[batch, rows, heads * width]");
    }
    f->batch = q->extent[0];
    f->m = f->fresh = q->extent[1];
    const bool is_packed = !has(n, 1);
    const int64_t heads = f->heads + (is_packed ? 2 * f->kv_heads : 0);
    if (q->extent[2] % heads != 0 || is_packed == has(n, 2)) {
        return fail_input(n, 0, "whole heads, and keys with values");
    }
    f->width = f->v_width = q->extent[2] / heads;
    rondo__attention_set_dense(&f->y, 0, true, f->heads, f->m, f->width);
    if (is_packed) {
        const int64_t total = q->extent[2], keys = f->heads * f->width;
        set_packed(&f->q, 0, f->m, total, 0, f->width);
        set_packed(&f->k, 0, f->m, total, keys, f->width);
        set_packed(&f->v, 0, f->m, total, keys + f->kv_heads * f->width, f->width);
        return RONDO_STATUS_OK;
    }
    const int64_t expected[3] = {f->batch, f->m, f->kv_heads * f->width};
    for (int32_t i = 1; i <= 2; i++) {
        if (!is_shape(n, i, 3, expected)) {
            return fail_input(n, i, "[batch, rows, kv_num_heads * width]");
        }
    }
    rondo__attention_set_dense(&f->q, 0, true, f->heads, f->m, f->width);
    rondo__attention_set_dense(&f->k, 1, true, f->kv_heads, f->m, f->width);
    rondo__attention_set_dense(&f->v, 2, true, f->kv_heads, f->m, f->width);
    return RONDO_STATUS_OK;
}

static rondo_status check_whole_input(const node *n, int32_t input, int64_t count) {
    if (!has(n, input)) {
        return RONDO_OP_FAIL(n->op, BAD_DATA, "input %s is missing",
                             input == 5 ? "seqlens_k" : "total_sequence_length");
    }
    if (n->inputs[input].dtype != RONDO_DTYPE_I32) {
        return rondo__op_fail_dtype(n->op, (size_t)input, n->inputs[input].dtype);
    }
    return rondo_shape_get_count(get_shape(n, input)) == count
               ? RONDO_STATUS_OK
               : fail_input(n, input, input == 5 ? "[batch]" : "one number");
}

static rondo_status read_angles(const node *n) {
    rondo__attention_form *f = n->f;
    if (rondo__op_get_int(n->op, "do_rotary", 0) == 0) {
        return RONDO_STATUS_OK;
    }
    if (!has(n, 7) || !has(n, 8)) {
        return RONDO_OP_FAIL(n->op, BAD_DATA, "do_rotary needs cos_cache and sin_cache");
    }
    const rondo_shape *cosines = get_shape(n, 7);
    if (cosines->rank != 2 || cosines->extent[1] > f->width / 2 ||
        !rondo_shape_is_equal(cosines, get_shape(n, 8))) {
        return fail_input(n, 7, "[places, half a width], as sin_cache");
    }
    f->angles.cosines = 7;
    f->angles.sines = 8;
    f->angles.rows = cosines->extent[0];
    f->angles.turned = 2 * cosines->extent[1];
    f->angles.is_interleaved = rondo__op_get_int(n->op, "rotary_interleaved", 0) != 0;
    if (has(n, 9)) {
        const int64_t rows[2] = {f->batch, f->m}, one[2] = {1, 1}, single[1] = {1};
        if (n->inputs[9].dtype != RONDO_DTYPE_I64) {
            return rondo__op_fail_dtype(n->op, 9, n->inputs[9].dtype);
        }
        if (!is_shape(n, 9, 2, rows) && !is_shape(n, 9, 2, one) && !is_shape(n, 9, 1, single)) {
            return fail_input(n, 9, "[batch, rows]");
        }
        f->angles.places = 9;
        f->angles.has_one_place = rondo_shape_get_count(get_shape(n, 9)) == 1;
    }
    return RONDO_STATUS_OK;
}

static rondo_status read_gains(const node *n) {
    rondo__attention_form *f = n->f;
    const float both = rondo__op_get_float(n->op, "qk_norm_epsilon", 1e-6f);
    if (has(n, 14) != has(n, 15)) {
        return RONDO_OP_FAIL(n->op, BAD_DATA, "q_norm_weight and k_norm_weight come together");
    }
    for (int32_t i = 14; i <= 15 && has(n, 14); i++) {
        if (!is_shape(n, i, 1, &f->width)) {
            return fail_input(n, i, "[width]");
        }
    }
    if (has(n, 14)) {
        f->norm.gain[0] = 14;
        f->norm.gain[1] = 15;
    }
    f->norm.epsilon[0] = rondo__op_get_float(n->op, "q_norm_epsilon", both);
    f->norm.epsilon[1] = rondo__op_get_float(n->op, "k_norm_epsilon", both);
    return RONDO_STATUS_OK;
}

static rondo_status read_group_attributes(const node *n) {
    rondo__attention_form *f = n->f;
    const int64_t window = rondo__op_get_int(n->op, "local_window_size", -1);
    f->softcap = rondo__op_get_float(n->op, "softcap", 0.0f);
    f->is_causal = rondo__op_get_int(n->op, "causal", 1) != 0;
    // The window holds the row's own key.
    f->left = window < 1 ? -1 : window > WINDOW_MOST ? WINDOW_MOST : window - 1;
    f->is_smooth = rondo__op_get_int(n->op, "smooth_softmax", 0) == 1;
    if (has(n, 11)) {
        if (!is_shape(n, 11, 1, &f->heads)) {
            return fail_input(n, 11, "[num_heads]");
        }
        f->sink = 11;
    }
    const int64_t shown = rondo__op_get_int(n->op, "qk_output", 0);
    if (shown != 0 && n->output_count > 3) {
        f->shown.output = 3;
        f->shown.unseen = 0.0f;
        f->shown.kind = shown == 1 ? RONDO__SCORES_MASKED : RONDO__SCORES_SOFTMAX;
    }
    return RONDO_STATUS_OK;
}

static rondo_status refuse_group(const node *n) {
    static const char *const names[] = {"k_scale", "v_scale"};
    RETURN_IF_ERROR(refuse_input(n, 12, names[0]));
    RETURN_IF_ERROR(refuse_input(n, 13, names[1]));
    RETURN_IF_ERROR(refuse_input(n, 16, "query_seqlens"));
    if (rondo__op_get_int(n->op, "sliding_window_cache", 0) != 0) {
        return rondo__op_fail_unsupported(n->op, "attribute sliding_window_cache");
    }
    return RONDO_STATUS_OK;
}

// `n` of the form is -1 where total_sequence_length is not known.
static rondo_status read_group(const node *n) {
    rondo__attention_form *f = n->f;
    RETURN_IF_ERROR(refuse_group(n));
    RETURN_IF_ERROR(read_heads(n, "num_heads", &f->heads));
    RETURN_IF_ERROR(read_heads(n, "kv_num_heads", &f->kv_heads));
    if (f->heads % f->kv_heads != 0) {
        return RONDO_OP_FAIL(n->op, BAD_DATA, "kv_num_heads %lld does not divide num_heads %lld",
                             (long long)f->kv_heads, (long long)f->heads);
    }
    RETURN_IF_ERROR(read_group_rows(n));
    RETURN_IF_ERROR(check_whole_input(n, 5, f->batch));
    RETURN_IF_ERROR(check_whole_input(n, 6, 1));
    RETURN_IF_ERROR(read_past(n, 3, 4));
    f->lengths = RONDO__LENGTHS_LAST;
    f->lengths_input = 5;
    f->total_input = 6;
    RETURN_IF_ERROR(read_angles(n));
    RETURN_IF_ERROR(read_gains(n));
    RETURN_IF_ERROR(read_group_attributes(n));
    read_scale(n);
    f->n = -1;
    if (n->inputs[6].constant != NULL) {
        const int64_t total = rondo__tensor_get_int(n->inputs[6].constant, 0);
        if (total < 1) {
            return RONDO_OP_FAIL(n->op, BAD_DATA, "total_sequence_length is %lld (at least 1)",
                                 (long long)total);
        }
        f->n = total > f->past ? total : f->past;
        f->mask_columns = total;
        RETURN_IF_ERROR(read_bias_mask(n, 10));
        if (f->shown.output >= 0 && f->n != total) {
            return rondo__op_fail_unsupported(n->op, "output_qk of keys in a shared buffer");
        }
    } else if (n->inputs[6].most > 0 && n->inputs[6].most <= f->past && f->shown.output < 0) {
        f->n = f->past;
    }
    if (n->inputs[6].constant == NULL && has(n, 10)) {
        f->mask_columns = get_shape(n, 10)->rank == 4 ? get_shape(n, 10)->extent[3] : 0;
        RETURN_IF_ERROR(read_bias_mask(n, 10));
    }
    rondo__attention_set_present(f, n->output_count > 1 ? 1 : -1, n->output_count > 2 ? 2 : -1);
    return RONDO_STATUS_OK;
}

// ---- padding ----------------------------------------------------------------------------------

static rondo_status read_padding(const node *n, int32_t input) {
    rondo__attention_form *f = n->f;
    f->padding.filter = rondo__op_get_float(n->op, "mask_filter_value", -10000.0f);
    if (!has(n, input)) {
        return RONDO_STATUS_OK;
    }
    const int64_t ends[1] = {f->batch}, ranges[1] = {2 * f->batch};
    const int64_t keys[2] = {f->batch, f->n}, scores[3] = {f->batch, f->m, f->n};
    if (n->inputs[input].dtype != RONDO_DTYPE_I32) {
        return rondo__op_fail_dtype(n->op, (size_t)input, n->inputs[input].dtype);
    }
    f->padding.kind = is_shape(n, input, 1, ends)     ? RONDO__PADDING_ENDS
                      : is_shape(n, input, 1, ranges) ? RONDO__PADDING_RANGES
                      : is_shape(n, input, 2, keys)   ? RONDO__PADDING_KEYS
                      : is_shape(n, input, 3, scores) ? RONDO__PADDING_SCORES
                                                      : RONDO__PADDING_NONE;
    if (f->padding.kind == RONDO__PADDING_NONE) {
        return rondo__op_fail_unsupported(n->op, "a padding mask of this shape");
    }
    f->padding.input = input;
    f->padding.columns = f->n;
    return RONDO_STATUS_OK;
}

// ---- MultiHeadAttention -----------------------------------------------------------------------

// Which input is what; -1: the op has none.
typedef struct places {
    int32_t bias, padding, added, past_k, past_v;
} places;

static rondo_status read_packed_rows(const node *n) {
    rondo__attention_form *f = n->f;
    const rondo_shape *q = get_shape(n, 0);
    const int64_t expected[5] = {f->batch, q->extent[1], f->heads, 3, q->extent[4]};
    if (!is_shape(n, 0, 5, expected) || has(n, 1) || has(n, 2)) {
        return fail_input(n, 0, "[batch, rows, heads, 3, width], alone");
    }
    f->m = f->fresh = q->extent[1];
    f->width = f->v_width = q->extent[4];
    rondo__attention_operand *operands[3] = {&f->q, &f->k, &f->v};
    for (int i = 0; i < 3; i++) {
        set_packed(operands[i], 0, f->m, f->heads * 3 * f->width, i * f->width, 3 * f->width);
    }
    return RONDO_STATUS_OK;
}

static rondo_status read_rows_of_keys(const node *n) {
    rondo__attention_form *f = n->f;
    const rondo_shape *k = get_shape(n, 1);
    if (k->rank == 5) {
        const int64_t expected[5] = {f->batch, k->extent[1], f->heads, 2, f->width};
        if (!is_shape(n, 1, 5, expected) || has(n, 2)) {
            return fail_input(n, 1, "[batch, rows, heads, 2, width], without value");
        }
        f->fresh = k->extent[1];
        f->v_width = f->width;
        set_packed(&f->k, 1, f->fresh, f->heads * 2 * f->width, 0, 2 * f->width);
        set_packed(&f->v, 1, f->fresh, f->heads * 2 * f->width, f->width, 2 * f->width);
        return RONDO_STATUS_OK;
    }
    if ((k->rank != 3 && k->rank != 4) || !has(n, 2) || get_shape(n, 2)->rank != k->rank) {
        return fail_input(n, 1, "as many extents as of value");
    }
    const rondo_shape *v = get_shape(n, 2);
    const bool is_rows = k->rank == 3;
    f->fresh = k->extent[is_rows ? 1 : 2];
    f->v_width = is_rows ? v->extent[2] / f->heads : v->extent[3];
    const int64_t of_k[4] = {f->batch, is_rows ? f->fresh : f->heads,
                             is_rows ? f->heads * f->width : f->fresh, f->width};
    const int64_t of_v[4] = {f->batch, is_rows ? f->fresh : f->heads,
                             is_rows ? f->heads * f->v_width : f->fresh, f->v_width};
    if (!is_shape(n, 1, k->rank, of_k)) {
        return fail_input(n, 1, "[batch, rows, heads * width] or [batch, heads, rows, width]");
    }
    if (!is_shape(n, 2, k->rank, of_v)) {
        return fail_input(n, 2, "[batch, rows, heads * width] or [batch, heads, rows, width]");
    }
    rondo__attention_set_dense(&f->k, 1, is_rows, f->heads, f->fresh, f->width);
    rondo__attention_set_dense(&f->v, 2, is_rows, f->heads, f->fresh, f->v_width);
    return RONDO_STATUS_OK;
}

static rondo_status read_rows(const node *n) {
    rondo__attention_form *f = n->f;
    const rondo_shape *q = get_shape(n, 0);
    if (q->rank == 5) {
        f->batch = q->extent[0];
        return read_packed_rows(n);
    }
    if (q->rank != 3 || q->extent[2] % f->heads != 0) {
        return fail_input(n, 0, "[batch, rows, heads * width]");
    }
    f->batch = q->extent[0];
    f->m = q->extent[1];
    f->width = q->extent[2] / f->heads;
    rondo__attention_set_dense(&f->q, 0, true, f->heads, f->m, f->width);
    return has(n, 1) ? read_rows_of_keys(n) : fail_input(n, 0, "a key beside it");
}

static rondo_status read_bias(const node *n, int32_t input) {
    rondo__attention_form *f = n->f;
    const int64_t of_q = f->heads * f->width, total = 2 * of_q + f->heads * f->v_width;
    if (!has(n, input)) {
        return RONDO_STATUS_OK;
    }
    if (!is_shape(n, input, 1, &total)) {
        return fail_input(n, input, "a number for each element of q, k and v");
    }
    f->bias = input;
    f->bias_at[1] = of_q;
    f->bias_at[2] = 2 * of_q;
    if (f->k.input >= 0 && get_shape(n, f->k.input)->rank == 4) {  // keys that have theirs
        f->bias_at[1] = f->bias_at[2] = RONDO__ATTENTION_ABSENT;
    }
    return RONDO_STATUS_OK;
}

static rondo_status read_multi_head(const node *n, const places *at) {
    rondo__attention_form *f = n->f;
    RETURN_IF_ERROR(read_heads(n, "num_heads", &f->heads));
    f->kv_heads = f->heads;
    RETURN_IF_ERROR(read_rows(n));
    rondo__attention_set_dense(&f->y, 0, true, f->heads, f->m, f->v_width);
    RETURN_IF_ERROR(read_past(n, at->past_k, at->past_v));
    RETURN_IF_ERROR(read_bias(n, at->bias));
    RETURN_IF_ERROR(read_padding(n, at->padding));
    f->mask_columns = f->n;
    RETURN_IF_ERROR(read_bias_mask(n, at->added));
    f->is_causal = rondo__op_get_int(n->op, "unidirectional", 0) != 0;
    f->shown.output = n->output_count > 3 ? 3 : RONDO__ATTENTION_ABSENT;
    f->shown.kind = RONDO__SCORES_SOFTMAX;
    read_scale(n);
    rondo__attention_set_present(f, n->output_count > 1 ? 1 : -1, n->output_count > 2 ? 2 : -1);
    return RONDO_STATUS_OK;
}

static rondo_status read_multi_head_alone(const node *n) {
    static const places at = {.bias = 3, .padding = 4, .added = 5, .past_k = 6, .past_v = 7};
    RETURN_IF_ERROR(refuse_input(n, 8, "past_sequence_length"));
    RETURN_IF_ERROR(refuse_input(n, 9, "cache_indirection"));
    return read_multi_head(n, &at);
}

static rondo_status read_decoder(const node *n) {
    static const places at = {.bias = 10, .padding = 3, .added = 4, .past_k = 5, .past_v = 6};
    RETURN_IF_ERROR(refuse_input(n, 8, "beam_width"));
    RETURN_IF_ERROR(refuse_input(n, 9, "cache_indirection"));
    if (rondo__op_get_int(n->op, "past_present_share_buffer", 0) != 0) {
        return rondo__op_fail_unsupported(n->op, "attribute past_present_share_buffer");
    }
    return read_multi_head(n, &at);
}

// ---- Attention --------------------------------------------------------------------------------

static rondo_status read_widths(const node *n, int64_t out_sizes[3]) {
    size_t count = 0;
    const int64_t *sizes = rondo__op_get_ints(n->op, "qkv_hidden_sizes", &count);
    const int64_t total = get_shape(n, 1)->extent[1];
    if (count != 0 && count != 3) {
        return RONDO_OP_FAIL(n->op, BAD_DATA, "attribute qkv_hidden_sizes has %zu numbers, not 3",
                             count);
    }
    for (int i = 0; i < 3; i++) {
        out_sizes[i] = count == 3 ? sizes[i] : total / 3;
        if (out_sizes[i] < 0 || out_sizes[i] > total || out_sizes[i] % n->f->heads != 0) {
            return fail_input(n, 1, "whole heads of q, k and v");
        }
    }
    return out_sizes[0] + out_sizes[1] + out_sizes[2] == total && out_sizes[0] == out_sizes[1]
               ? RONDO_STATUS_OK
               : fail_input(n, 1, "as many columns as q, k and v have");
}

// Both of the past, and of what is present, stand in one tensor [2, batch, heads, rows, width].
static rondo_status read_joined_past(const node *n) {
    rondo__attention_form *f = n->f;
    if (has(n, 4)) {
        f->past = get_shape(n, 4)->rank == 5 ? get_shape(n, 4)->extent[3] : 0;
        const int64_t expected[5] = {2, f->batch, f->heads, f->past, f->width};
        if (!is_shape(n, 4, 5, expected)) {
            return fail_input(n, 4, "[2, batch, heads, rows, width]");
        }
        rondo__attention_set_dense(&f->past_k, 4, false, f->heads, f->past, f->width);
        f->past_v = f->past_k;
        f->past_v.at.offset = f->batch * f->past_k.at.batch;
    }
    if (!rondo__add_i64(f->past, f->fresh, &f->n)) {
        return fail_input(n, 4, "fewer rows");
    }
    if ((has(n, 4) || n->output_count > 1) && f->width != f->v_width) {
        return fail_input(n, 1, "values as wide as keys, beside a past");
    }
    if (n->output_count > 1) {
        rondo__attention_set_dense(&f->present_k, 1, false, f->heads, f->n, f->width);
        f->present_v = f->present_k;
        f->present_v.at.offset = f->batch * f->present_k.at.batch;
    }
    return RONDO_STATUS_OK;
}

static rondo_status read_projected(const node *n) {
    rondo__attention_form *f = n->f;
    int64_t sizes[3];
    RETURN_IF_ERROR(refuse_input(n, 6, "past_sequence_length"));
    if (rondo__op_get_int(n->op, "do_rotary", 0) != 0) {
        return rondo__op_fail_unsupported(n->op, "attribute do_rotary");
    }
    RETURN_IF_ERROR(read_heads(n, "num_heads", &f->heads));
    f->kv_heads = f->heads;
    const rondo_shape *x = get_shape(n, 0), *w = get_shape(n, 1);
    if (x->rank != 3) {
        return fail_input(n, 0, "[batch, rows, columns]");
    }
    if (w->rank != 2 || w->extent[0] != x->extent[2]) {
        return fail_input(n, 1, "[columns of the input, all of q, k and v]");
    }
    RETURN_IF_ERROR(read_widths(n, sizes));
    f->batch = x->extent[0];
    f->m = f->fresh = x->extent[1];
    f->width = sizes[0] / f->heads;
    f->v_width = sizes[2] / f->heads;
    set_packed(&f->q, RONDO__ATTENTION_PROJECTED, f->m, w->extent[1], 0, f->width);
    set_packed(&f->k, RONDO__ATTENTION_PROJECTED, f->m, w->extent[1], sizes[0], f->width);
    set_packed(&f->v, RONDO__ATTENTION_PROJECTED, f->m, w->extent[1], 2 * sizes[0], f->v_width);
    rondo__attention_set_dense(&f->y, 0, true, f->heads, f->m, f->v_width);
    RETURN_IF_ERROR(read_bias(n, 2));
    RETURN_IF_ERROR(read_joined_past(n));
    RETURN_IF_ERROR(read_padding(n, 3));
    f->mask_columns = f->n;
    RETURN_IF_ERROR(read_bias_mask(n, 5));
    f->is_causal = rondo__op_get_int(n->op, "unidirectional", 0) != 0;
    read_scale(n);
    return RONDO_STATUS_OK;
}

// ---- all of them ------------------------------------------------------------------------------

rondo_status rondo__attention_read_microsoft(const rondo__op *op, const rondo__tensor_info *inputs,
                                             size_t input_count, size_t output_count,
                                             rondo__attention_form *out_form) {
    const node n = {op, inputs, input_count, output_count, out_form};
    const char *name = op->def->name;
    *out_form = rondo__attention_form_begin();
    out_form->empty_is_zero = true;
    if (strcmp(name, "GroupQueryAttention") == 0) {
        return read_group(&n);
    }
    return strcmp(name, "MultiHeadAttention") == 0 ? read_multi_head_alone(&n)
           : strcmp(name, "Attention") == 0        ? read_projected(&n)
                                                   : read_decoder(&n);
}

// op/attention/attention_onnx.c — the form of ONNX's Attention; see attention_form.h.
//
// Source: ONNX operator Attention, versions 23 to 25. Two points are read as the text has them:
// output mode 0 shows the scores before the soft cap, and a mask whose last extent is 1 is one key
// long from opset 24 on (it is filled up with -inf), where it repeats in opset 23.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "op/attention/attention_form.h"
#include "op/element_types.h"
#include "op/reference.h"

enum { WINDOW_MOST = INT32_MAX };

static bool has(const rondo__tensor_info *inputs, size_t input_count, size_t i) {
    return i < input_count && inputs[i].dtype != RONDO_DTYPE_NONE;
}

static rondo_status fail_shape(const rondo__op *op, const char *name, const rondo_shape *shape) {
    char text[96];
    return RONDO_OP_FAIL(op, BAD_DATA, "input %s has shape %s, which does not fit the others", name,
                         rondo_shape_format(shape, text, sizeof text));
}

// ---- extents ----------------------------------------------------------------------------------

// Heads and their width out of a tensor [batch, rows, heads * width] or [batch, heads, rows,
// width].
static bool split_heads(const rondo_shape *shape, int64_t heads, int64_t *out_heads,
                        int64_t *out_rows, int64_t *out_width) {
    if (shape->rank == 4) {
        *out_heads = shape->extent[1];
        *out_rows = shape->extent[2];
        *out_width = shape->extent[3];
        return true;
    }
    if (heads < 1 || shape->extent[2] % heads != 0) {
        return false;
    }
    *out_heads = heads;
    *out_rows = shape->extent[1];
    *out_width = shape->extent[2] / heads;
    return true;
}

static rondo_status read_rows(const rondo__op *op, const rondo__tensor_info *inputs,
                              rondo__attention_form *f) {
    const rondo_shape *q = &inputs[0].shape, *k = &inputs[1].shape, *v = &inputs[2].shape;
    const bool is_rows = q->rank == 3;
    int64_t v_heads, v_rows, width;
    if (q->rank != 3 && q->rank != 4) {
        return RONDO_OP_FAIL(op, BAD_DATA, "input Q has rank %d, 3 or 4 is expected", q->rank);
    }
    if (!split_heads(q, rondo__op_get_int(op, "q_num_heads", 0), &f->heads, &f->m, &f->width)) {
        return RONDO_OP_FAIL(
            op, BAD_DATA, "attribute q_num_heads is %lld, which does not divide %lld",
            (long long)rondo__op_get_int(op, "q_num_heads", 0), (long long)q->extent[2]);
    }
    const int64_t kv_heads = rondo__op_get_int(op, "kv_num_heads", 0);
    f->batch = q->extent[0];
    if (k->rank != q->rank || k->extent[0] != f->batch ||
        !split_heads(k, kv_heads, &f->kv_heads, &f->fresh, &width) || width != f->width) {
        return fail_shape(op, "K", k);
    }
    if (v->rank != q->rank || v->extent[0] != f->batch ||
        !split_heads(v, kv_heads, &v_heads, &v_rows, &f->v_width) || v_heads != f->kv_heads ||
        v_rows != f->fresh) {
        return fail_shape(op, "V", v);
    }
    if (f->kv_heads < 1 || f->heads % f->kv_heads != 0) {
        return RONDO_OP_FAIL(op, BAD_DATA, "%lld heads of K and V do not divide %lld heads of Q",
                             (long long)f->kv_heads, (long long)f->heads);
    }
    rondo__attention_set_dense(&f->q, 0, is_rows, f->heads, f->m, f->width);
    rondo__attention_set_dense(&f->k, 1, is_rows, f->kv_heads, f->fresh, f->width);
    rondo__attention_set_dense(&f->v, 2, is_rows, f->kv_heads, f->fresh, f->v_width);
    rondo__attention_set_dense(&f->y, 0, is_rows, f->heads, f->m, f->v_width);
    return RONDO_STATUS_OK;
}

static rondo_status read_past(const rondo__op *op, const rondo__tensor_info *inputs,
                              size_t input_count, size_t output_count, rondo__attention_form *f) {
    const bool has_past = has(inputs, input_count, 4);
    if (has_past != has(inputs, input_count, 5)) {
        return RONDO_OP_FAIL(op, BAD_DATA, "past_key and past_value come together");
    }
    if (has_past) {
        const rondo_shape *k = &inputs[4].shape, *v = &inputs[5].shape;
        f->past = k->rank == 4 ? k->extent[2] : 0;
        const rondo_shape of_k = {4, {f->batch, f->kv_heads, f->past, f->width}};
        const rondo_shape of_v = {4, {f->batch, f->kv_heads, f->past, f->v_width}};
        if (!rondo_shape_is_equal(k, &of_k) || !rondo_shape_is_equal(v, &of_v)) {
            return fail_shape(
                op, k->rank != 4 || !rondo_shape_is_equal(k, &of_k) ? "past_key" : "past_value",
                rondo_shape_is_equal(k, &of_k) ? v : k);
        }
        rondo__attention_set_dense(&f->past_k, 4, false, f->kv_heads, f->past, f->width);
        rondo__attention_set_dense(&f->past_v, 5, false, f->kv_heads, f->past, f->v_width);
    }
    if (!rondo__add_i64(f->past, f->fresh, &f->n)) {
        return fail_shape(op, "past_key", &inputs[4].shape);
    }
    if (output_count > 1) {
        rondo__attention_set_dense(&f->present_k, 1, false, f->kv_heads, f->n, f->width);
    }
    if (output_count > 2) {
        rondo__attention_set_dense(&f->present_v, 2, false, f->kv_heads, f->n, f->v_width);
    }
    return RONDO_STATUS_OK;
}

static rondo_status read_lengths(const rondo__op *op, const rondo__tensor_info *inputs,
                                 size_t input_count, rondo__attention_form *f) {
    if (!has(inputs, input_count, 6)) {
        return RONDO_STATUS_OK;
    }
    const rondo_shape batches = {1, {f->batch}};
    if (inputs[6].dtype != RONDO_DTYPE_I64) {
        return rondo__op_fail_dtype(op, 6, inputs[6].dtype);
    }
    if (!rondo_shape_is_equal(&inputs[6].shape, &batches)) {
        return fail_shape(op, "nonpad_kv_seqlen", &inputs[6].shape);
    }
    if (f->past_k.input >= 0) {
        return RONDO_OP_FAIL(op, BAD_DATA, "nonpad_kv_seqlen and past_key exclude each other");
    }
    f->lengths = RONDO__LENGTHS_VALID;
    f->lengths_input = 6;
    return RONDO_STATUS_OK;
}

static rondo_status read_mask(const rondo__op *op, const rondo__tensor_info *inputs,
                              size_t input_count, rondo__attention_form *f) {
    if (!has(inputs, input_count, 3)) {
        return RONDO_STATUS_OK;
    }
    const rondo_shape *mask = &inputs[3].shape;
    const int64_t last = mask->rank > 0 ? mask->extent[mask->rank - 1] : 1;
    if (inputs[3].dtype == RONDO_DTYPE_STRING) {
        return rondo__op_fail_dtype(op, 3, inputs[3].dtype);
    }
    f->mask_is_bool = inputs[3].dtype == RONDO_DTYPE_BOOL;
    f->mask_columns = (op->opset < 24 && last == 1) || last > f->n ? f->n : last;
    if (!rondo__attention_set_mask(f, 3, mask)) {
        char text[96];
        return RONDO_OP_FAIL(op, BAD_DATA,
                             "input attn_mask has shape %s, the scores have [%lld, %lld, %lld, "
                             "%lld]",
                             rondo_shape_format(mask, text, sizeof text), (long long)f->batch,
                             (long long)f->heads, (long long)f->m, (long long)f->n);
    }
    return RONDO_STATUS_OK;
}

static rondo_status read_window(const rondo__op *op, const char *name, int64_t *out_size) {
    const int64_t size = rondo__op_get_int(op, name, -1);
    if (size < -1) {
        return RONDO_OP_FAIL(op, BAD_DATA, "attribute %s is %lld (at least -1)", name,
                             (long long)size);
    }
    *out_size = size > WINDOW_MOST ? WINDOW_MOST : size;
    return RONDO_STATUS_OK;
}

static rondo_status read_attributes(const rondo__op *op, rondo__attention_form *f) {
    f->scale = rondo__op_get_float(op, "scale", 1.0f / sqrtf((float)(f->width > 0 ? f->width : 1)));
    f->softcap = rondo__op_get_float(op, "softcap", 0.0f);
    f->is_causal = rondo__op_get_int(op, "is_causal", 0) != 0;
    f->empty_is_zero = true;
    const int64_t mode = rondo__op_get_int(op, "qk_matmul_output_mode", 0);
    if (mode < RONDO__SCORES_RAW || mode > RONDO__SCORES_SOFTMAX) {
        return RONDO_OP_FAIL(op, BAD_DATA, "attribute qk_matmul_output_mode is %lld (0 to 3)",
                             (long long)mode);
    }
    f->shown.kind = (rondo__attention_scores)mode;
    const int64_t precision = rondo__op_get_int(op, "softmax_precision", 0);
    f->precision = precision == 0 ? RONDO_DTYPE_NONE : rondo__dtype_from_onnx(precision);
    if (precision != 0 && !rondo__dtype_is_float(f->precision)) {
        return rondo__op_fail_element_type(op, "softmax_precision", precision);
    }
    RETURN_IF_ERROR(read_window(op, "left_window_size", &f->left));
    return read_window(op, "right_window_size", &f->right);
}

rondo_status rondo__attention_read_onnx(const rondo__op *op, const rondo__tensor_info *inputs,
                                        size_t input_count, size_t output_count,
                                        rondo__attention_form *f) {
    *f = rondo__attention_form_begin();
    RETURN_IF_ERROR(read_rows(op, inputs, f));
    RETURN_IF_ERROR(read_past(op, inputs, input_count, output_count, f));
    RETURN_IF_ERROR(read_lengths(op, inputs, input_count, f));
    RETURN_IF_ERROR(read_mask(op, inputs, input_count, f));
    f->shown.output = output_count > 3 ? 3 : RONDO__ATTENTION_ABSENT;
    return read_attributes(op, f);
}

// op/attention/op_attention_family.c — Attention of ONNX, and those of com.microsoft.
// SPDX-License-Identifier: Apache-2.0
#include "op/attention/attention_form.h"
#include "op/reference.h"

static bool has(const rondo__tensor_info *inputs, size_t input_count, size_t i) {
    return i < input_count && inputs[i].dtype != RONDO_DTYPE_NONE;
}

// ---- ONNX -------------------------------------------------------------------------------------

static rondo_status infer_onnx(rondo__infer *infer) {
    const rondo__tensor_info *inputs = infer->inputs;
    rondo__attention_form f;
    RETURN_IF_ERROR(rondo__infer_check_float(infer, 0, 2));
    RETURN_IF_ERROR(rondo__infer_check_float(infer, 2, 1));
    RETURN_IF_ERROR(
        rondo__attention_read(infer->op, inputs, infer->input_count, infer->output_count, &f));
    for (size_t i = 4; i < 6 && has(inputs, infer->input_count, i); i++) {
        RETURN_IF_ERROR(rondo__infer_check_same_dtype(infer, i - 3, i));
    }
    rondo_shape y = inputs[0].shape;
    y.extent[y.rank - 1] = y.rank == 4 ? f.v_width : f.heads * f.v_width;
    const rondo_shape k = {4, {f.batch, f.kv_heads, f.n, f.width}};
    const rondo_shape v = {4, {f.batch, f.kv_heads, f.n, f.v_width}};
    const rondo_shape scores = {4, {f.batch, f.heads, f.m, f.n}};
    const rondo_shape *shapes[4] = {&y, &k, &v, &scores};
    for (size_t i = 0; i < infer->output_count; i++) {
        RETURN_IF_ERROR(rondo__infer_set_output(
            infer, i, i == 2 ? inputs[2].dtype : inputs[0].dtype, shapes[i]));
    }
    return RONDO_STATUS_OK;
}

static rondo_status compute_onnx(rondo__compute *compute) {
    rondo__tensor_info infos[8] = {{0}};
    rondo__attention_form form;
    for (size_t i = 0; i < compute->input_count; i++) {
        if (compute->inputs[i] != NULL) {
            infos[i].dtype = compute->inputs[i]->dtype;
            infos[i].shape = compute->inputs[i]->shape;
        }
    }
    RETURN_IF_ERROR(rondo__attention_read(compute->op, infos, compute->input_count,
                                          compute->output_count, &form));
    return rondo__attention_compute(compute, &form, NULL);
}

static const char *const attributes_23[] = {
    "is_causal", "kv_num_heads", "q_num_heads",       "qk_matmul_output_mode",
    "scale",     "softcap",      "softmax_precision", NULL};
static const char *const attributes_25[] = {"is_causal",
                                            "kv_num_heads",
                                            "left_window_size",
                                            "q_num_heads",
                                            "qk_matmul_output_mode",
                                            "right_window_size",
                                            "scale",
                                            "softcap",
                                            "softmax_precision",
                                            NULL};

// ---- com.microsoft ----------------------------------------------------------------------------

// All inputs of numbers have the type of the first.
static rondo_status check_dtypes(const rondo__infer *infer) {
    RETURN_IF_ERROR(rondo__infer_check_float(infer, 0, 1));
    for (size_t i = 1; i < infer->input_count; i++) {
        if (rondo__infer_has_input(infer, i) && rondo__dtype_is_float(infer->inputs[i].dtype)) {
            RETURN_IF_ERROR(rondo__infer_check_same_dtype(infer, 0, i));
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status infer_microsoft(rondo__infer *infer) {
    rondo__attention_form f;
    const rondo_dtype dtype = infer->inputs[0].dtype;
    RETURN_IF_ERROR(check_dtypes(infer));
    RETURN_IF_ERROR(rondo__attention_read(infer->op, infer->inputs, infer->input_count,
                                          infer->output_count, &f));
    const rondo_shape y = {3, {f.batch, f.m, f.heads * f.v_width}};
    const rondo_shape k = {4, {f.batch, f.kv_heads, f.n, f.width}};
    const rondo_shape v = {4, {f.batch, f.kv_heads, f.n, f.v_width}};
    const rondo_shape both = {5, {2, f.batch, f.heads, f.n, f.width}};
    const rondo_shape scores = {4, {f.batch, f.heads, f.m, f.n}};
    const bool is_joined = f.present_k.input >= 0 && f.present_k.input == f.present_v.input;
    const rondo_shape *shapes[4] = {&y, is_joined ? &both : &k, &v, &scores};
    for (size_t i = 0; i < infer->output_count; i++) {
        infer->outputs[i].dtype = dtype;
    }
    RETURN_IF_ERROR(rondo__infer_set_output(infer, 0, dtype, &y));
    if (f.n < 0) {  // a number that is computed says how many
        const size_t total = (size_t)f.total_input;
        RETURN_IF_ERROR(f.past_k.input >= 0
                            ? rondo__infer_needs_bound(infer, total, (size_t)f.past_k.input, 2)
                            : rondo__infer_needs_value(infer, total));
        return rondo__infer_set_partial(infer, 0, &y);
    }
    for (size_t i = 1; i < infer->output_count; i++) {
        if (i == 3 && f.shown.output < 0) {
            return rondo__op_fail_unsupported(infer->op, "output_qk without qk_output");
        }
        RETURN_IF_ERROR(rondo__infer_set_output(infer, i, dtype, shapes[i]));
    }
    return RONDO_STATUS_OK;
}

// The rows of q, k and v as a product, without the bias.
static double *project(const rondo__compute *compute, rondo__scratch *scratch) {
    const rondo_shape *x = &compute->inputs[0]->shape, *w = &compute->inputs[1]->shape;
    const int64_t rows = x->extent[0] * x->extent[1];
    const double *of_x = rondo__scratch_widen(scratch, compute->inputs[0]);
    const double *of_w = rondo__scratch_widen(scratch, compute->inputs[1]);
    double *y = rondo__scratch_create(scratch, rows * w->extent[1]);
    for (int64_t row = 0; scratch->status == RONDO_STATUS_OK && row < rows; row++) {
        for (int64_t i = 0; i < x->extent[2]; i++) {
            const double factor = of_x[row * x->extent[2] + i];
            for (int64_t j = 0; j < w->extent[1]; j++) {
                y[row * w->extent[1] + j] += factor * of_w[i * w->extent[1] + j];
            }
        }
    }
    return y;
}

static rondo_status compute_microsoft(rondo__compute *compute) {
    rondo__tensor_info infos[20] = {{0}};
    rondo__attention_form form;
    for (size_t i = 0; i < compute->input_count; i++) {
        if (compute->inputs[i] != NULL) {
            infos[i].dtype = compute->inputs[i]->dtype;
            infos[i].shape = compute->inputs[i]->shape;
            infos[i].constant = compute->inputs[i];
        }
    }
    RETURN_IF_ERROR(rondo__attention_read(compute->op, infos, compute->input_count,
                                          compute->output_count, &form));
    rondo__scratch scratch = {0};
    const double *projected =
        form.q.input == RONDO__ATTENTION_PROJECTED ? project(compute, &scratch) : NULL;
    if (scratch.status == RONDO_STATUS_OK) {
        scratch.status = rondo__attention_compute(compute, &form, projected);
    }
    return rondo__scratch_end(&scratch);
}

static const char *const group_attributes[] = {"causal",
                                               "do_rotary",
                                               "k_norm_epsilon",
                                               "k_quant_type",
                                               "kv_cache_bit_width",
                                               "kv_num_heads",
                                               "local_window_size",
                                               "num_heads",
                                               "q_norm_epsilon",
                                               "qk_norm_epsilon",
                                               "qk_output",
                                               "rotary_interleaved",
                                               "scale",
                                               "sliding_window_cache",
                                               "smooth_softmax",
                                               "softcap",
                                               "v_quant_type",
                                               NULL};
static const char *const multi_head_attributes[] = {"mask_filter_value", "num_heads", "scale",
                                                    "unidirectional", NULL};
static const char *const decoder_attributes[] = {"mask_filter_value", "num_heads",
                                                 "past_present_share_buffer", "scale", NULL};
static const char *const projected_attributes[] = {"do_rotary",
                                                   "mask_filter_value",
                                                   "num_heads",
                                                   "past_present_share_buffer",
                                                   "qkv_hidden_sizes",
                                                   "rotary_embedding_dim",
                                                   "scale",
                                                   "unidirectional",
                                                   NULL};

static rondo_status check_group(const rondo__op *op) {
    if (rondo__op_get_int(op, "kv_cache_bit_width", 0) != 0) {
        return rondo__op_fail_unsupported(op, "attribute kv_cache_bit_width");
    }
    return RONDO_STATUS_OK;
}

static rondo_status check_projected(const rondo__op *op) {
    return rondo__op_get_int(op, "past_present_share_buffer", 0) == 0
               ? RONDO_STATUS_OK
               : rondo__op_fail_unsupported(op, "attribute past_present_share_buffer");
}

#define MICROSOFT(op_name, least, most, outputs, attribute_list, check_function)            \
    RONDO_OP_ROW(MS, op_name, 1, 1, least, most, 1, outputs, .capture = RONDO__CAPTURE_YES, \
                 .attributes = (attribute_list), .infer = infer_microsoft,                  \
                 .compute = compute_microsoft, .check = (check_function), .is_fallible = true)

const rondo__op_def rondo__op_table_attention_family[] = {
    RONDO_OP_ENTRY(Attention, 23, 23, 3, 6, 1, 4, attributes_23, infer_onnx, compute_onnx),
    RONDO_OP_ENTRY(Attention, 24, 24, 3, 7, 1, 4, attributes_23, infer_onnx, compute_onnx,
                   .is_fallible = true),
    RONDO_OP_ENTRY(Attention, 25, 28, 3, 7, 1, 4, attributes_25, infer_onnx, compute_onnx,
                   .is_fallible = true),
    MICROSOFT(Attention, 2, 7, 2, projected_attributes, check_projected),
    MICROSOFT(DecoderMaskedMultiHeadAttention, 1, 11, 3, decoder_attributes, NULL),
    MICROSOFT(GroupQueryAttention, 1, 17, 4, group_attributes, check_group),
    MICROSOFT(MultiHeadAttention, 1, 10, 4, multi_head_attributes, NULL),
    {.name = NULL},
};

// op/fused/op_update.c — rondo.Update (see update.h); rondo.Finite: whether all numbers of all
// inputs are finite; and rondo.RoundParts: f32 to f16, finite numbers to finite ones, of each input
// the elements that are this rank's (op/rank_part.h); here, without ranks, all.
// SPDX-License-Identifier: Apache-2.0
#include "op/fused/update.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "op/reference.h"
#include "tensor/elements.h"

// ---- the form -----------------------------------------------------------------------------------

static bool read_ops(const rondo__op *op, rondo__update_form *f) {
    const rondo__attribute *names = rondo__op_find(op, "ops");
    size_t operand_count, alpha_count, beta_count;
    const int64_t *operands = rondo__op_get_ints(op, "operands", &operand_count);
    const float *alphas = rondo__op_get_floats(op, "alphas", &alpha_count);
    const float *betas = rondo__op_get_floats(op, "betas", &beta_count);
    if (names == NULL || names->kind != RONDO__ATTRIBUTE_STRINGS || names->count == 0 ||
        names->count > RONDO__UPDATE_OPS_MAX || operand_count != 2 * names->count ||
        alpha_count != names->count || beta_count != names->count) {
        return false;
    }
    f->op_count = (int32_t)names->count;
    for (int32_t i = 0; i < f->op_count; ++i) {
        const int code = rondo__scalar_op_parse(names->strings[i]);
        if (code < 0) {
            return false;
        }
        f->ops[i] = (rondo__scalar_op)code;
        f->alphas[i] = alphas[i];
        f->betas[i] = betas[i];
        for (int k = 0; k < 2; ++k) {
            const int64_t operand = operands[2 * i + k];
            const bool is_needed = k < rondo__scalar_op_get_operand_count(f->ops[i]);
            if (is_needed && (operand < 0 || operand >= f->scalar_count + f->width + i)) {
                return false;
            }
            f->operands[i][k] = is_needed ? (int32_t)operand : -1;
        }
    }
    return true;
}

bool rondo__update_read(const rondo__op *op, size_t input_count, size_t output_count,
                        rondo__update_form *f) {
    size_t result_count, keep_count;
    const int64_t *results = rondo__op_get_ints(op, "results", &result_count);
    const int64_t *keeps = rondo__op_get_ints(op, "keeps", &keep_count);
    const int64_t scalars = rondo__op_get_int(op, "scalars", -1);
    const int64_t width = rondo__op_get_int(op, "width", 0);
    memset(f, 0, sizeof *f);
    if (scalars < 0 || scalars > RONDO__UPDATE_SCALARS_MAX || width < 1 ||
        width > RONDO__UPDATE_WIDTH_MAX || result_count < 1 ||
        result_count > RONDO__UPDATE_RESULTS_MAX || keep_count != result_count) {
        return false;
    }
    f->is_conditional = rondo__op_get_int(op, "is_conditional", 0) != 0;
    f->is_shared = rondo__op_get_int(op, "is_shared", 0) != 0;
    f->scalar_count = (int32_t)scalars;
    f->width = (int32_t)width;
    f->result_count = (int32_t)result_count;
    if (!read_ops(op, f)) {
        return false;
    }
    for (size_t i = 0; i < result_count; ++i) {
        if (results[i] < 0 || results[i] >= f->op_count || keeps[i] < 0 || keeps[i] >= width) {
            return false;
        }
        f->results[i] = (int32_t)results[i];
        f->keeps[i] = (int32_t)keeps[i];
    }
    const size_t head = rondo__update_head(f);
    if (input_count <= head || (input_count - head) % (size_t)width != 0) {
        return false;
    }
    f->tensor_count = (int32_t)((input_count - head) / (size_t)width);
    return output_count == (size_t)f->tensor_count * result_count;
}

// ---- rondo.Update -------------------------------------------------------------------------------

static rondo_status infer_update(rondo__infer *infer) {
    const rondo__tensor_info *inputs = infer->inputs;
    rondo__update_form form;
    if (!rondo__update_read(infer->op, infer->input_count, infer->output_count, &form)) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "its attributes do not fit %zu inputs",
                             infer->input_count);
    }
    const size_t head = rondo__update_head(&form);
    for (size_t i = 0; i < infer->input_count; ++i) {
        const bool is_condition = i == 0 && form.is_conditional;
        const size_t tensor = i < head ? 0 : (i - head) / (size_t)form.width;
        const rondo_shape *like = &inputs[head + tensor * (size_t)form.width].shape;
        if (!rondo__infer_has_input(infer, i)) {
            return RONDO_OP_FAIL(infer->op, BAD_DATA, "input %zu is missing", i);
        }
        if (is_condition ? inputs[i].dtype != RONDO_DTYPE_BOOL
                         : !rondo__dtype_is_f32_or_f16(inputs[i].dtype)) {
            return rondo__op_fail_dtype(infer->op, i, inputs[i].dtype);
        }
        if (i < head ? rondo_shape_get_count(&inputs[i].shape) != 1
                     : !rondo_shape_is_equal(&inputs[i].shape, like)) {
            return RONDO_OP_FAIL(infer->op, BAD_DATA, "input %zu has a shape that does not fit", i);
        }
    }
    for (int32_t t = 0; t < form.tensor_count; ++t) {
        for (int32_t k = 0; k < form.result_count; ++k) {
            const rondo__tensor_info *kept = &inputs[rondo__update_input(&form, t, form.keeps[k])];
            RETURN_IF_ERROR(rondo__infer_set_output(infer, (size_t)(t * form.result_count + k),
                                                    kept->dtype, &kept->shape));
        }
    }
    return RONDO_STATUS_OK;
}

static void update_element(const rondo__update_form *form, float *values) {
    const int32_t first = form->scalar_count + form->width;
    for (int32_t i = 0; i < form->op_count; ++i) {
        const float a = values[form->operands[i][0]];
        const float b = form->operands[i][1] < 0 ? 0.0f : values[form->operands[i][1]];
        values[first + i] =
            rondo__scalar_op_apply(form->ops[i], form->alphas[i], form->betas[i], a, b);
    }
}

static rondo_status compute_tensor(rondo__compute *compute, const rondo__update_form *form,
                                   int32_t t, bool applies) {
    rondo__scratch scratch = {0};
    double *wide[RONDO__UPDATE_WIDTH_MAX] = {NULL};
    double *results[RONDO__UPDATE_RESULTS_MAX] = {NULL};
    float values[RONDO__UPDATE_SCALARS_MAX + RONDO__UPDATE_WIDTH_MAX + RONDO__UPDATE_OPS_MAX];
    const size_t head = rondo__update_head(form);
    const int64_t count =
        rondo_shape_get_count(&compute->inputs[rondo__update_input(form, t, 0)]->shape);
    for (int32_t i = 0; i < form->scalar_count; ++i) {
        const size_t input = head - (size_t)form->scalar_count + (size_t)i;
        values[i] = (float)rondo__tensor_get_number(compute->inputs[input], 0);
    }
    for (int32_t i = 0; i < form->width; ++i) {
        wide[i] = rondo__scratch_widen(&scratch, compute->inputs[rondo__update_input(form, t, i)]);
    }
    for (int32_t k = 0; k < form->result_count; ++k) {
        results[k] = rondo__scratch_create(&scratch, count);
    }
    for (int64_t at = 0; at < count && scratch.status == RONDO_STATUS_OK; ++at) {
        for (int32_t i = 0; i < form->width; ++i) {
            values[form->scalar_count + i] = (float)wide[i][at];
        }
        update_element(form, values);
        for (int32_t k = 0; k < form->result_count; ++k) {
            const int32_t from = applies ? form->width + form->results[k] : form->keeps[k];
            results[k][at] = (double)values[form->scalar_count + from];
        }
    }
    for (int32_t k = 0; k < form->result_count && scratch.status == RONDO_STATUS_OK; ++k) {
        scratch.status = rondo__narrow(compute, (size_t)(t * form->result_count + k), results[k]);
    }
    return rondo__scratch_end(&scratch);
}

static rondo_status compute_update(rondo__compute *compute) {
    rondo__update_form form;
    if (!rondo__update_read(compute->op, compute->input_count, compute->output_count, &form)) {
        return RONDO_OP_FAIL(compute->op, BAD_DATA, "its attributes do not fit");
    }
    const bool applies =
        !form.is_conditional || rondo__tensor_get_number(compute->inputs[0], 0) != 0.0;
    for (int32_t t = 0; t < form.tensor_count; ++t) {
        RETURN_IF_ERROR(compute_tensor(compute, &form, t, applies));
    }
    return RONDO_STATUS_OK;
}

// ---- rondo.Finite -------------------------------------------------------------------------------

static rondo_status infer_finite(rondo__infer *infer) {
    const rondo_shape scalar = {0};
    for (size_t i = 0; i < infer->input_count; ++i) {
        if (!rondo__infer_has_input(infer, i) ||
            !rondo__dtype_is_f32_or_f16(infer->inputs[i].dtype)) {
            return rondo__op_fail_dtype(infer->op, i, infer->inputs[i].dtype);
        }
    }
    return rondo__infer_set_output(infer, 0, RONDO_DTYPE_BOOL, &scalar);
}

static bool is_finite(const rondo_tensor *x) {
    const int64_t count = rondo_shape_get_count(&x->shape);
    uint32_t found = 0;  // an exponent of ones
    for (int64_t i = 0; i < count && x->dtype == RONDO_DTYPE_F32; ++i) {
        found |= (((const uint32_t *)x->data)[i] & 0x7f800000u) == 0x7f800000u;
    }
    for (int64_t i = 0; i < count && x->dtype == RONDO_DTYPE_F16; ++i) {
        found |= (((const uint16_t *)x->data)[i] & 0x7c00u) == 0x7c00u;
    }
    return found == 0;
}

static rondo_status compute_finite(rondo__compute *compute) {
    void *output;
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &output));
    bool all = true;
    for (size_t i = 0; i < compute->input_count; ++i) {
        all = is_finite(compute->inputs[i]) && all;
    }
    *(uint8_t *)output = all ? 1 : 0;
    return RONDO_STATUS_OK;
}

// ---- rondo.RoundParts ---------------------------------------------------------------------------

static rondo_status infer_round_parts(rondo__infer *infer) {
    if (infer->input_count != infer->output_count) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "it has %zu inputs and %zu outputs",
                             infer->input_count, infer->output_count);
    }
    for (size_t i = 0; i < infer->input_count; ++i) {
        if (infer->inputs[i].dtype != RONDO_DTYPE_F32) {
            return rondo__op_fail_dtype(infer->op, i, infer->inputs[i].dtype);
        }
        RETURN_IF_ERROR(
            rondo__infer_set_output(infer, i, RONDO_DTYPE_F16, &infer->inputs[i].shape));
    }
    return RONDO_STATUS_OK;
}

static rondo_status compute_round_parts(rondo__compute *compute) {
    for (size_t i = 0; i < compute->input_count; ++i) {
        void *output;
        RETURN_IF_ERROR(rondo__compute_get_inferred(compute, i, &output));
        const float *x = compute->inputs[i]->data;
        const int64_t count = rondo_shape_get_count(&compute->inputs[i]->shape);
        for (int64_t k = 0; k < count && output != NULL; ++k) {
            const float saturated = isinf(x[k])        ? x[k]
                                    : x[k] < -65504.0f ? -65504.0f
                                    : x[k] > 65504.0f  ? 65504.0f
                                                       : x[k];
            ((uint16_t *)output)[k] = rondo_f16_from_float(saturated);
        }
    }
    return RONDO_STATUS_OK;
}

const rondo__op_def rondo__op_table_update[] = {
    RONDO_OP_ROW(FUSED, Update, 1, RONDO_OP_OPSET_MAX, 1, RONDO_OP_ANY_COUNT, 1, RONDO_OP_ANY_COUNT,
                 .flags = RONDO__OP_INTERNAL, .capture = RONDO__CAPTURE_YES, .infer = infer_update,
                 .compute = compute_update),
    RONDO_OP_ROW(FUSED, Finite, 1, RONDO_OP_OPSET_MAX, 1, RONDO_OP_ANY_COUNT, 1, 1,
                 .flags = RONDO__OP_INTERNAL, .capture = RONDO__CAPTURE_YES, .infer = infer_finite,
                 .compute = compute_finite),
    RONDO_OP_ROW(FUSED, RoundParts, 1, RONDO_OP_OPSET_MAX, 1, RONDO_OP_ANY_COUNT, 1,
                 RONDO_OP_ANY_COUNT, .flags = RONDO__OP_INTERNAL | RONDO__OP_IMPURE,
                 .capture = RONDO__CAPTURE_YES, .infer = infer_round_parts,
                 .compute = compute_round_parts),
    {.name = NULL},
};

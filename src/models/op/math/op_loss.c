// op/math/op_loss.c — NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss.
//
// Both see scores [N, C, d...] and labels [N, d...]. The second is the first on the log-softmax of
// its scores over the classes.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "op/op.h"
#include "op/reference.h"

typedef enum reduction { REDUCTION_NONE, REDUCTION_SUM, REDUCTION_MEAN } reduction;

static rondo_status read_reduction(const rondo__op *op, reduction *out_reduction) {
    static const char *const names[] = {"none", "sum", "mean"};
    const char *text = rondo__op_get_string(op, "reduction", "mean");
    for (int i = 0; i < 3; i++) {
        if (strcmp(text, names[i]) == 0) {
            *out_reduction = (reduction)i;
            return RONDO_STATUS_OK;
        }
    }
    return RONDO_OP_FAIL(op, BAD_DATA, "attribute reduction is \"%.40s\", not none, sum or mean",
                         text);
}

static rondo_status infer_loss(rondo__infer *infer) {
    const rondo__tensor_info *inputs = infer->inputs;
    const rondo_shape *scores = &inputs[0].shape;
    const rondo_shape *labels = &inputs[1].shape;
    RETURN_IF_ERROR(rondo__infer_check_float(infer, 0, 1));
    if (inputs[1].dtype != RONDO_DTYPE_I32 && inputs[1].dtype != RONDO_DTYPE_I64) {
        return rondo__op_fail_dtype(infer->op, 1, inputs[1].dtype);
    }
    bool is_fit = scores->rank >= 2 && labels->rank == scores->rank - 1;
    for (int32_t i = 0; is_fit && i < labels->rank; i++) {
        is_fit = labels->extent[i] == scores->extent[i == 0 ? 0 : i + 1];
    }
    if (!is_fit) {
        char scores_text[96];
        char labels_text[96];
        return RONDO_OP_FAIL(infer->op, BAD_DATA,
                             "scores of shape %s do not fit labels of shape %s",
                             rondo_shape_format(scores, scores_text, sizeof scores_text),
                             rondo_shape_format(labels, labels_text, sizeof labels_text));
    }
    if (rondo__infer_has_input(infer, 2)) {
        RETURN_IF_ERROR(rondo__infer_check_same_dtype(infer, 0, 2));
        if (inputs[2].shape.rank != 1 || inputs[2].shape.extent[0] != scores->extent[1]) {
            return RONDO_OP_FAIL(infer->op, BAD_DATA, "input weight must have shape [%lld]",
                                 (long long)scores->extent[1]);
        }
    }
    reduction how = 0;
    RETURN_IF_ERROR(read_reduction(infer->op, &how));
    const rondo_shape scalar = {0};
    RETURN_IF_ERROR(rondo__infer_set_output(infer, 0, inputs[0].dtype,
                                            how == REDUCTION_NONE ? labels : &scalar));
    return rondo__infer_set_output(infer, 1, inputs[0].dtype, scores);
}

// x [batch, classes, span] becomes its log-softmax over the classes.
static void take_log_softmax(double *x, int64_t batch, int64_t classes, int64_t span) {
    for (int64_t line = 0; line < batch * span; line++) {
        double *values = x + line / span * classes * span + line % span;
        double maximum = values[0];
        for (int64_t c = 1; c < classes; c++) {
            maximum = values[c * span] > maximum ? values[c * span] : maximum;
        }
        double sum = 0.0;
        for (int64_t c = 0; c < classes; c++) {
            sum += exp(values[c * span] - maximum);
        }
        // Added up, a large maximum would swallow the logarithm.
        const double logarithm = log(sum);
        for (int64_t c = 0; c < classes; c++) {
            values[c * span] = values[c * span] - maximum - logarithm;
        }
    }
}

static rondo_status compute_loss(rondo__compute *compute, bool takes_softmax) {
    const rondo__op *op = compute->op;
    const rondo_shape *shape = &compute->inputs[0]->shape;
    const rondo_tensor *labels = compute->inputs[1];
    const int64_t classes = shape->extent[1];
    const int64_t span = rondo__shape_multiply(shape, 2, shape->rank);
    const int64_t count = shape->extent[0] * span;
    const bool has_ignored = rondo__op_find(op, "ignore_index") != NULL;
    const int64_t ignored = rondo__op_get_int(op, "ignore_index", 0);
    reduction how = 0;
    RETURN_IF_ERROR(read_reduction(op, &how));
    rondo__scratch scratch = {0};
    double *x = rondo__scratch_widen(&scratch, compute->inputs[0]);
    const double *weight = rondo__scratch_widen(&scratch, rondo__compute_get_input(compute, 2));
    double *losses = rondo__scratch_create(&scratch, count);
    if (scratch.status != RONDO_STATUS_OK) {
        return rondo__scratch_end(&scratch);
    }
    if (takes_softmax && classes > 0) {
        take_log_softmax(x, shape->extent[0], classes, span);
    }
    double sum = 0.0;
    double weights = 0.0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t label = rondo__tensor_get_int(labels, i);
        if (has_ignored && label == ignored) {
            continue;
        }
        if (label < 0 || label >= classes) {
            scratch.status = RONDO_OP_FAIL(op, BAD_DATA, "label %lld is outside [0, %lld)",
                                           (long long)label, (long long)classes);
            return rondo__scratch_end(&scratch);
        }
        const double factor = weight == NULL ? 1.0 : weight[label];
        losses[i] = -factor * x[(i / span * classes + label) * span + i % span];
        sum += losses[i];
        weights += factor;
    }
    const double result = how == REDUCTION_MEAN ? sum / weights : sum;
    scratch.status = rondo__narrow(compute, 0, how == REDUCTION_NONE ? losses : &result);
    if (scratch.status == RONDO_STATUS_OK && compute->output_count > 1) {
        scratch.status = rondo__narrow(compute, 1, x);
    }
    return rondo__scratch_end(&scratch);
}

static rondo_status compute_nll(rondo__compute *compute) {
    return compute_loss(compute, false);
}

static rondo_status compute_cross_entropy(rondo__compute *compute) {
    return compute_loss(compute, true);
}

// ---- the way back -------------------------------------------------------------------------------
//
// rondo.LossGradient(scores, labels, share): how SoftmaxCrossEntropyLoss changes with its scores,
// (softmax - is label) * share. Labels and share are [N, 1, d...]; a share of 0 leaves a row out.
// Attribute `to`: the type of the result, in the place of that of the scores.

static rondo_status infer_loss_gradient(rondo__infer *infer) {
    const rondo__tensor_info *inputs = infer->inputs;
    const rondo_shape *x = &inputs[0].shape;
    const int64_t to = rondo__op_get_int(infer->op, "to", 0);
    RETURN_IF_ERROR(rondo__infer_check_float(infer, 0, 1));
    RETURN_IF_ERROR(rondo__infer_check_same_dtype(infer, 0, 2));
    if (inputs[1].dtype != RONDO_DTYPE_I32 && inputs[1].dtype != RONDO_DTYPE_I64) {
        return rondo__op_fail_dtype(infer->op, 1, inputs[1].dtype);
    }
    rondo_shape column = *x;
    column.extent[1] = 1;
    if (x->rank < 2 || !rondo_shape_is_equal(&inputs[1].shape, &column) ||
        !rondo_shape_is_equal(&inputs[2].shape, &column)) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "labels or shares do not fit the scores");
    }
    return rondo__infer_set_output(infer, 0, to != 0 ? rondo__dtype_from_onnx(to) : inputs[0].dtype,
                                   x);
}

static rondo_status compute_loss_gradient(rondo__compute *compute) {
    const rondo_shape *shape = &compute->inputs[0]->shape;
    const int64_t classes = shape->extent[1];
    const int64_t span = rondo__shape_multiply(shape, 2, shape->rank);
    rondo__scratch scratch = {0};
    double *x = rondo__scratch_widen(&scratch, compute->inputs[0]);
    const double *share = rondo__scratch_widen(&scratch, compute->inputs[2]);
    if (scratch.status == RONDO_STATUS_OK) {
        take_log_softmax(x, shape->extent[0], classes, span);
        for (int64_t i = 0; i < rondo_shape_get_count(shape); ++i) {
            const int64_t line = i / span / classes * span + i % span;
            const bool is_label =
                rondo__tensor_get_int(compute->inputs[1], line) == i / span % classes;
            x[i] = share[line] == 0.0 ? 0.0 : (exp(x[i]) - (is_label ? 1.0 : 0.0)) * share[line];
        }
    }
    return rondo__scratch_end_as(&scratch, compute, 0, x);
}

static const char *const loss_attributes[] = {"ignore_index", "reduction", NULL};

const rondo__op_def rondo__op_table_loss[] = {
    RONDO_OP_ENTRY(NegativeLogLikelihoodLoss, 12, 28, 2, 3, 1, 1, loss_attributes, infer_loss,
                   compute_nll, .half = {HALF_STAYS, HALF_PLAIN, HALF_TRAINED},
                   .is_fallible = true),
    RONDO_OP_ENTRY(SoftmaxCrossEntropyLoss, 12, 28, 2, 3, 1, 2, loss_attributes, infer_loss,
                   compute_cross_entropy, .half = {HALF_STAYS, HALF_PLAIN, HALF_TRAINED},
                   .is_fallible = true),
    RONDO_OP_ROW(FUSED, LossGradient, 1, RONDO_OP_OPSET_MAX, 3, 3, 1, 1,
                 .flags = RONDO__OP_INTERNAL, .capture = RONDO__CAPTURE_YES,
                 .infer = infer_loss_gradient, .compute = compute_loss_gradient,
                 .wide_inputs = RONDO__INPUT_0 | RONDO__INPUT_2, .half.kind = HALF_PRODUCT),
    {.name = NULL},
};

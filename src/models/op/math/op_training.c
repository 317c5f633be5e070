// op/math/op_training.c — the optimisers of ONNX's training domain: Adagrad, Adam and Momentum.
//
// Inputs are the learning rate R, the update count T, and then for n tensors at once: all weights,
// all gradients, and one or two groups of state (n tensors each). Outputs are the new weights and
// the new state in the same order.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "op/op.h"
#include "op/reference.h"

enum { GROUP_MAX = 4 };

// The groups after R and T (weights, gradients, states) of an op; outputs are all but gradients.
static size_t count_groups(const rondo__op *op) {
    return op->def->id == RONDO__TRAINING_Adam ? 4 : 3;
}

static rondo_status infer_training(rondo__infer *infer) {
    const rondo__op *op = infer->op;
    const size_t groups = count_groups(op);
    const size_t count = (infer->input_count - 2) / groups;
    if (count == 0 || infer->input_count != 2 + groups * count) {
        return RONDO_OP_FAIL(op, BAD_DATA, "has %zu inputs, 2 and a multiple of %zu are expected",
                             infer->input_count, groups);
    }
    if (infer->output_count != (groups - 1) * count) {
        return RONDO_OP_FAIL(op, BAD_DATA, "names %zu outputs, %zu are expected",
                             infer->output_count, (groups - 1) * count);
    }
    for (size_t i = 0; i < 2; i++) {
        if (rondo_shape_get_count(&infer->inputs[i].shape) != 1) {
            return RONDO_OP_FAIL(op, BAD_DATA, "input %c must be one number", i == 0 ? 'R' : 'T');
        }
    }
    for (size_t i = 2; i < infer->input_count; i++) {
        const size_t weight = 2 + (i - 2) % count;
        if (!rondo__infer_has_input(infer, i)) {
            return RONDO_OP_FAIL(op, BAD_DATA, "input %zu is missing", i);
        }
        RETURN_IF_ERROR(rondo__infer_check_float(infer, i, 1));
        if (!rondo_shape_is_equal(&infer->inputs[i].shape, &infer->inputs[weight].shape)) {
            return RONDO_OP_FAIL(op, BAD_DATA, "input %zu has another shape than its weight", i);
        }
    }
    for (size_t i = 0; i < infer->output_count; i++) {
        const rondo__tensor_info *like = &infer->inputs[2 + (i < count ? i : i + count)];
        RETURN_IF_ERROR(rondo__infer_set_output(infer, i, like->dtype, &like->shape));
    }
    return RONDO_STATUS_OK;
}

// What the update of one element needs; the coefficients are read once.
typedef struct optimizer_plan {
    double rate;  // R, corrected for T where the op does that
    double alpha, beta, epsilon, norm, norm_post;
    bool is_nesterov;
} optimizer_plan;

// Each updates element i of weight x and states v and h from gradient g.
typedef void (*update_function)(const optimizer_plan *optimizer, double g, double *x, double *v,
                                double *h);

static void update_adagrad(const optimizer_plan *optimizer, double g, double *x, double *v,
                           double *h) {
    (void)h;
    const double gradient = optimizer->norm * *x + g;
    *v += gradient * gradient;
    *x -= optimizer->rate * gradient / (sqrt(*v) + optimizer->epsilon);
}

static void update_adam(const optimizer_plan *optimizer, double g, double *x, double *v,
                        double *h) {
    const double gradient = optimizer->norm * *x + g;
    *v = optimizer->alpha * *v + (1.0 - optimizer->alpha) * gradient;
    *h = optimizer->beta * *h + (1.0 - optimizer->beta) * gradient * gradient;
    *x -= optimizer->rate * *v / (sqrt(*h) + optimizer->epsilon);
    *x *= 1.0 - optimizer->norm_post;
}

static void update_momentum(const optimizer_plan *optimizer, double g, double *x, double *v,
                            double *h) {
    (void)h;
    const double gradient = optimizer->norm * *x + g;
    *v = optimizer->alpha * *v + optimizer->beta * gradient;
    *x -= optimizer->rate * (optimizer->is_nesterov ? gradient + optimizer->alpha * *v : *v);
}

static rondo_status run_updates(rondo__compute *compute, const optimizer_plan *optimizer,
                                update_function update) {
    const size_t groups = count_groups(compute->op);
    const size_t count = (compute->input_count - 2) / groups;
    rondo_status status = RONDO_STATUS_OK;
    for (size_t k = 0; k < count && status == RONDO_STATUS_OK; k++) {
        rondo__scratch scratch = {0};
        double *wide[GROUP_MAX] = {NULL};
        for (size_t group = 0; group < groups; group++) {
            wide[group] = rondo__scratch_widen(&scratch, compute->inputs[2 + group * count + k]);
        }
        if (scratch.status == RONDO_STATUS_OK) {
            const int64_t length = rondo_shape_get_count(&compute->inputs[2 + k]->shape);
            for (int64_t i = 0; i < length; i++) {
                update(optimizer, wide[1][i], &wide[0][i], &wide[2][i],
                       groups == 4 ? &wide[3][i] : NULL);
            }
            scratch.status = rondo__narrow(compute, k, wide[0]);
        }
        for (size_t group = 2; group < groups && scratch.status == RONDO_STATUS_OK; group++) {
            scratch.status = rondo__narrow(compute, (group - 1) * count + k, wide[group]);
        }
        status = rondo__scratch_end(&scratch);
    }
    return status;
}

static rondo_status compute_adagrad(rondo__compute *compute) {
    const rondo__op *op = compute->op;
    const double steps = rondo__tensor_get_number(compute->inputs[1], 0);
    const double decay = (double)rondo__op_get_float(op, "decay_factor", 0.0f);
    const optimizer_plan optimizer = {
        .rate = rondo__tensor_get_number(compute->inputs[0], 0) / (1.0 + steps * decay),
        .epsilon = (double)rondo__op_get_float(op, "epsilon", 1e-6f),
        .norm = (double)rondo__op_get_float(op, "norm_coefficient", 0.0f),
    };
    return run_updates(compute, &optimizer, update_adagrad);
}

// ONNX contradicts itself on the default of epsilon: 1e-6 in the schema, 1e-2 in the data of its
// own test adam_multiple. An Adam that leaves it out is refused rather than trained wrongly.
static rondo_status check_adam(const rondo__op *op) {
    if (rondo__op_find(op, "epsilon") == NULL) {
        return rondo__op_fail_unsupported(op, "attribute epsilon left to its disputed default");
    }
    return RONDO_STATUS_OK;
}

static rondo_status compute_adam(rondo__compute *compute) {
    const rondo__op *op = compute->op;
    const double steps = rondo__tensor_get_number(compute->inputs[1], 0);
    optimizer_plan optimizer = {
        .rate = rondo__tensor_get_number(compute->inputs[0], 0),
        .alpha = (double)rondo__op_get_float(op, "alpha", 0.9f),
        .beta = (double)rondo__op_get_float(op, "beta", 0.999f),
        .epsilon = (double)rondo__op_get_float(op, "epsilon", 1e-6f),
        .norm = (double)rondo__op_get_float(op, "norm_coefficient", 0.0f),
        .norm_post = (double)rondo__op_get_float(op, "norm_coefficient_post", 0.0f),
    };
    if (steps > 0.0) {
        optimizer.rate *=
            sqrt(1.0 - pow(optimizer.beta, steps)) / (1.0 - pow(optimizer.alpha, steps));
    }
    return run_updates(compute, &optimizer, update_adam);
}

static rondo_status infer_momentum(rondo__infer *infer) {
    const char *mode = rondo__op_get_string(infer->op, "mode", "standard");
    if (strcmp(mode, "standard") != 0 && strcmp(mode, "nesterov") != 0) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "attribute mode is \"%.40s\", which is unknown",
                             mode);
    }
    return infer_training(infer);
}

static rondo_status compute_momentum(rondo__compute *compute) {
    const rondo__op *op = compute->op;
    const double steps = rondo__tensor_get_number(compute->inputs[1], 0);
    const optimizer_plan optimizer = {
        .rate = rondo__tensor_get_number(compute->inputs[0], 0),
        .alpha = (double)rondo__op_get_float(op, "alpha", 0.0f),
        // The first update takes the gradient whole.
        .beta = steps > 0.0 ? (double)rondo__op_get_float(op, "beta", 0.0f) : 1.0,
        .norm = (double)rondo__op_get_float(op, "norm_coefficient", 0.0f),
        .is_nesterov = strcmp(rondo__op_get_string(op, "mode", "standard"), "nesterov") == 0,
    };
    return run_updates(compute, &optimizer, update_momentum);
}

static const char *const adagrad_attributes[] = {"decay_factor", "epsilon", "norm_coefficient",
                                                 NULL};
static const char *const adam_attributes[] = {
    "alpha", "beta", "epsilon", "norm_coefficient", "norm_coefficient_post", NULL};
static const char *const momentum_attributes[] = {"alpha", "beta", "mode", "norm_coefficient",
                                                  NULL};

#define TRAINING_ENTRY(op_name, attribute_list, infer_function, compute_function, ...)  \
    RONDO_OP_ROW(TRAINING, op_name, 1, 1, 2, RONDO_OP_ANY_COUNT, 1, RONDO_OP_ANY_COUNT, \
                 .capture = RONDO__CAPTURE_YES, .attributes = (attribute_list),         \
                 .infer = (infer_function), .compute = (compute_function), .check = __VA_ARGS__)

const rondo__op_def rondo__op_table_training[] = {
    TRAINING_ENTRY(Adagrad, adagrad_attributes, infer_training, compute_adagrad, NULL,
                   .half = {HALF_STAYS, HALF_PLAIN, HALF_TRAINED}),
    TRAINING_ENTRY(Adam, adam_attributes, infer_training, compute_adam, check_adam,
                   .half = {HALF_STAYS, HALF_PLAIN, HALF_TRAINED}),
    TRAINING_ENTRY(Momentum, momentum_attributes, infer_momentum, compute_momentum, NULL,
                   .half = {HALF_STAYS, HALF_PLAIN, HALF_TRAINED}),
    {.name = NULL},
};

// op/fused/op_row_product.c — rondo.RowProduct; see op/fused/fused.h.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "op/fused/fused.h"
#include "op/math/matrix.h"
#include "op/op.h"
#include "op/reference.h"

enum { X, W, BIAS, RESIDUAL, GAIN, GATE };

static rondo_status init_product(const rondo__op *op, const rondo_shape *x, const rondo_shape *w,
                                 rondo__product *out_product) {
    return rondo__product_init(op, x, w, false, rondo__op_get_int(op, "trans_b", 0) != 0,
                               out_product);
}

static bool is_list(const rondo__infer *infer, size_t input, int64_t count) {
    const rondo_shape *shape = &infer->inputs[input].shape;
    return !rondo__infer_has_input(infer, input) || (shape->rank == 1 && shape->extent[0] == count);
}

static bool is_like(const rondo__infer *infer, size_t input, const rondo_shape *shape) {
    return !rondo__infer_has_input(infer, input) ||
           rondo_shape_is_equal(&infer->inputs[input].shape, shape);
}

static rondo_status infer_row_product(rondo__infer *infer) {
    rondo__product product;
    RETURN_IF_ERROR(rondo__infer_check_float(infer, 0, infer->input_count));
    RETURN_IF_ERROR(
        init_product(infer->op, &infer->inputs[X].shape, &infer->inputs[W].shape, &product));
    const bool ends_twice =
        rondo__infer_has_input(infer, GATE) &&
        (rondo__infer_has_input(infer, BIAS) || rondo__infer_has_input(infer, RESIDUAL));
    if (!is_list(infer, BIAS, product.n) || !is_like(infer, RESIDUAL, &product.output) ||
        !is_list(infer, GAIN, product.k) || !is_like(infer, GATE, &infer->inputs[W].shape) ||
        rondo__activation_parse(rondo__op_get_string(infer->op, "activation", "none")) < 0 ||
        ends_twice) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "inputs or attributes do not fit together");
    }
    return rondo__infer_set_output(infer, 0, infer->inputs[X].dtype, &product.output);
}

void rondo__rows_normalise(double *x, int64_t count, int64_t length, const double *gain,
                           double epsilon) {
    for (int64_t i = 0; i < count; i += length) {
        double squares = 0.0;
        for (int64_t k = 0; k < length; k++) {
            squares += x[i + k] * x[i + k];
        }
        for (int64_t k = 0; k < length; k++) {
            x[i + k] *= gain[k] / sqrt(squares / (double)length + epsilon);
        }
    }
}

static rondo_status compute_row_product(rondo__compute *compute) {
    const rondo__op *op = compute->op;
    const rondo_shape *shape = &compute->inputs[X]->shape;
    const rondo__activation activation =
        (rondo__activation)rondo__activation_parse(rondo__op_get_string(op, "activation", "none"));
    const float alpha = rondo__op_get_float(op, "alpha", 0.0f);
    const float beta = rondo__op_get_float(op, "beta", 0.0f);
    rondo__product product;
    RETURN_IF_ERROR(init_product(op, shape, &compute->inputs[W]->shape, &product));
    const int64_t count = rondo_shape_get_count(&product.output);
    rondo__scratch scratch = {0};
    double *x = rondo__scratch_widen(&scratch, compute->inputs[X]);
    const double *w = rondo__scratch_widen(&scratch, compute->inputs[W]);
    const double *bias = rondo__scratch_widen(&scratch, rondo__compute_get_input(compute, BIAS));
    const double *z = rondo__scratch_widen(&scratch, rondo__compute_get_input(compute, RESIDUAL));
    const double *gain = rondo__scratch_widen(&scratch, rondo__compute_get_input(compute, GAIN));
    const double *gate = rondo__scratch_widen(&scratch, rondo__compute_get_input(compute, GATE));
    double *y = rondo__scratch_create(&scratch, count);
    double *gates = gate != NULL ? rondo__scratch_create(&scratch, count) : NULL;
    if (scratch.status != RONDO_STATUS_OK) {
        return rondo__scratch_end(&scratch);
    }
    if (gain != NULL && product.k > 0) {
        rondo__rows_normalise(x, rondo_shape_get_count(shape), product.k, gain,
                              (double)rondo__op_get_float(op, "epsilon", 1e-5f));
    }
    rondo__product_run(&product, x, w, y);
    if (gates != NULL) {
        rondo__product_run(&product, x, gate, gates);
    }
    for (int64_t i = 0; i < count; i++) {
        const double sum = gates != NULL ? gates[i]
                                         : y[i] + (bias != NULL ? bias[i % product.n] : 0.0) +
                                               (z != NULL ? z[i] : 0.0);
        const double end = (double)rondo__activation_apply(activation, alpha, beta, (float)sum);
        y[i] = gates != NULL ? end * y[i] : end;
    }
    scratch.status = rondo__narrow(compute, 0, y);
    return rondo__scratch_end(&scratch);
}

const rondo__op_def rondo__op_table_row_product[] = {
    RONDO_OP_ROW(FUSED, RowProduct, 1, RONDO_OP_OPSET_MAX, 2, 6, 1, 1, .flags = RONDO__OP_INTERNAL,
                 .capture = RONDO__CAPTURE_YES, .infer = infer_row_product,
                 .compute = compute_row_product, .weights = 1),
    {.name = NULL},
};

// kernel/host/product/product_form.c — see product_form.h.
// SPDX-License-Identifier: Apache-2.0

#include "kernel/host/product/product_form.h"

#include <string.h>

#include "base/error.h"
#include "kernel/host/host_kernel.h"

void rondo__product_locate_batch(const rondo__product *product, int64_t batch, int64_t *out_a,
                                 int64_t *out_b) {
    *out_a = 0;
    *out_b = 0;
    for (int32_t i = product->batch_rank - 1; i >= 0; --i) {
        const int64_t index = batch % product->batch[i];
        batch /= product->batch[i];
        *out_a += index * product->a_step[i];
        *out_b += index * product->b_step[i];
    }
}

void rondo__product_join_batches(rondo__product *product) {
    if (product->trans_a) {
        return;
    }
    int64_t dense = 1;
    for (int32_t i = product->batch_rank - 1; i >= 0; --i) {
        const bool is_dense = product->batch[i] == 1 || product->a_step[i] == dense;
        if (!is_dense || product->b_step[i] != 0) {
            return;
        }
        dense *= product->batch[i];
    }
    product->m *= product->batch_count;
    product->batch_count = 1;
    product->batch_rank = 0;
}

// Reads operands, bias, residual and scale of the three ops. False when the tuned form lacks one.
static bool read_operands(const rondo__kernel_request *request, rondo__product_form *form,
                          bool *out_trans_a, bool *out_trans_b) {
    const rondo__op *op = request->op;
    form->bias_input = -1;
    form->z_input = -1;
    form->scale = 1.0f;
    if ((op->def->flags & RONDO__OP_INTERNAL) != 0) {
        *out_trans_a = rondo__op_get_int(op, "trans_a", 0) != 0;
        *out_trans_b = rondo__op_get_int(op, "trans_b", 0) != 0;
        form->scale = rondo__op_get_float(op, "alpha_scale", 1.0f);
        form->bias_input = rondo__host_has_input(request, 2) ? 2 : -1;
        form->z_input = rondo__host_has_input(request, 3) ? 3 : -1;
        const int activation =
            rondo__activation_parse(rondo__op_get_string(op, "activation", "none"));
        form->activation = (rondo__activation)activation;
        form->alpha = rondo__op_get_float(op, "alpha", 0.0f);
        form->beta = rondo__op_get_float(op, "beta", 0.0f);
        // A bias for each row, and a factor of each element, are for GPUs.
        return activation >= 0 && rondo__op_get_int(op, "gates", 0) == 0 &&
               (form->bias_input < 0 || request->inputs[form->bias_input].shape.rank < 2);
    }
    *out_trans_a = rondo__op_get_int(op, "transA", 0) != 0;
    *out_trans_b = rondo__op_get_int(op, "transB", 0) != 0;
    // An operand that is multiplied by 0 is not read.
    if (op->def->id != RONDO__OP_Gemm || !rondo__host_has_input(request, 2) ||
        rondo__op_get_float(op, "beta", 1.0f) == 0.0f) {
        form->scale = rondo__op_get_float(op, "alpha", 1.0f);
        return true;
    }
    form->scale = rondo__op_get_float(op, "alpha", 1.0f);
    const rondo_shape *c = &request->inputs[2].shape;
    const rondo_shape *y = &request->outputs[0].shape;
    if (rondo__op_get_float(op, "beta", 1.0f) != 1.0f) {
        return false;
    }
    if (rondo_shape_is_equal(c, y)) {
        form->z_input = 2;
        return true;
    }
    form->bias_input = 2;
    return c->rank > 0 && rondo_shape_get_count(c) == y->extent[1] &&
           c->extent[c->rank - 1] == y->extent[1];
}

rondo_status rondo__product_form_init(rondo__product_form *form,
                                      const rondo__kernel_request *request) {
    bool trans_a, trans_b;
    memset(form, 0, sizeof *form);
    if (request->output_count != 1) {  // moments of the result are for GPUs
        return RONDO_STATUS_UNSUPPORTED;
    }
    for (size_t i = 0; i < request->input_count; ++i) {
        if (rondo__host_has_input(request, i) && request->inputs[i].dtype != RONDO_DTYPE_F32) {
            return RONDO_STATUS_UNSUPPORTED;
        }
    }
    if (!read_operands(request, form, &trans_a, &trans_b)) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    rondo__product *product = &form->product;
    RETURN_IF_ERROR(rondo__product_init(request->op, &request->inputs[0].shape,
                                        &request->inputs[1].shape, trans_a, trans_b, product));
    form->b_count = 1;
    for (int32_t i = 0; i < product->batch_rank; ++i) {
        form->b_count *= product->b_step[i] != 0 ? product->batch[i] : 1;
    }
    rondo__product_join_batches(product);
    return RONDO_STATUS_OK;
}

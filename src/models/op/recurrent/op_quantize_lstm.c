// op/recurrent/op_quantize_lstm.c — com.microsoft.DynamicQuantizeLSTM.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "op/op.h"
#include "op/recurrent/quantize_lstm.h"
#include "op/reference.h"

static rondo_status infer_quantize_lstm(rondo__infer *infer) {
    rondo__quantize_lstm plan;
    RETURN_IF_ERROR(rondo__quantize_lstm_plan(infer->op, infer->inputs, infer->input_count, &plan));
    const rondo_shape y = {.rank = 4,
                           .extent = {plan.seq, plan.directions, plan.batch, plan.hidden}};
    const rondo_shape state = {.rank = 3, .extent = {plan.directions, plan.batch, plan.hidden}};
    RETURN_IF_ERROR(rondo__infer_set_output(infer, 0, RONDO_DTYPE_F32, &y));
    RETURN_IF_ERROR(rondo__infer_set_output(infer, 1, RONDO_DTYPE_F32, &state));
    return rondo__infer_set_output(infer, 2, RONDO_DTYPE_F32, &state);
}

static rondo_status compute_quantize_lstm(rondo__compute *compute) {
    const void *inputs[RONDO__QLSTM_INPUT_COUNT] = {NULL};
    rondo__tensor_info infos[RONDO__QLSTM_INPUT_COUNT] = {{0}};
    void *outputs[3] = {NULL};
    rondo__quantize_lstm plan;
    for (size_t i = 0; i < RONDO__QLSTM_INPUT_COUNT; ++i) {
        const rondo_tensor *input = rondo__compute_get_input(compute, i);
        if (input != NULL) {
            inputs[i] = input->data;
            infos[i] = (rondo__tensor_info){.dtype = input->dtype, .shape = input->shape};
        }
    }
    RETURN_IF_ERROR(rondo__quantize_lstm_plan(compute->op, infos, RONDO__QLSTM_INPUT_COUNT, &plan));
    for (size_t i = 0; i < 3; ++i) {
        if (rondo__compute_wants_output(compute, i)) {
            RETURN_IF_ERROR(rondo__compute_get_inferred(compute, i, &outputs[i]));
        }
    }
    const rondo_tensor *weights[] = {compute->inputs[RONDO__QLSTM_W],
                                     compute->inputs[RONDO__QLSTM_R]};
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    int16_t *w = rondo__calloc((size_t)rondo_shape_get_count(&weights[0]->shape), sizeof(int16_t));
    int16_t *r = rondo__calloc((size_t)rondo_shape_get_count(&weights[1]->shape), sizeof(int16_t));
    void *work = rondo__malloc_aligned(rondo__quantize_lstm_get_work_bytes(&plan), 64);
    if (w != NULL && r != NULL && work != NULL) {
        rondo__quantize_lstm_unpack(&plan, weights[0],
                                    rondo__compute_get_input(compute, RONDO__QLSTM_W_ZERO), w);
        rondo__quantize_lstm_unpack(&plan, weights[1],
                                    rondo__compute_get_input(compute, RONDO__QLSTM_R_ZERO), r);
        status = rondo__quantize_lstm_run(compute->op, &plan, w, r, inputs, outputs, work);
    }
    rondo__free(work);
    rondo__free(r);
    rondo__free(w);
    return status;
}

static const char *const quantize_lstm_attributes[] = {
    "activation_alpha", "activation_beta", "activations",  "clip",
    "direction",        "hidden_size",     "input_forget", NULL};

const rondo__op_def rondo__op_table_quantize_lstm[] = {
    // Takes no half: what it does depends on every bit.
    RONDO_OP_ROW(MS, DynamicQuantizeLSTM, 1, 1, 3, RONDO__QLSTM_INPUT_COUNT, 0, 3,
                 .flags = RONDO__OP_NATIVE_HALF, .capture = RONDO__CAPTURE_YES,
                 .attributes = quantize_lstm_attributes, .infer = infer_quantize_lstm,
                 .compute = compute_quantize_lstm,
                 .half = {HALF_STAYS, HALF_PLAIN, HALF_QUANTISED}),
    {0},
};

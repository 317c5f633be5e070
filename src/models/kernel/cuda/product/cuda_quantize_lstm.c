// kernel/cuda/product/cuda_quantize_lstm.c — com.microsoft.DynamicQuantizeLSTM: x to bytes and one
// product for all steps, then step by step.
// SPDX-License-Identifier: Apache-2.0
#include "op/recurrent/quantize_lstm.h"

#include <stdint.h>

#include "cu_sources.h"
#include "kernel/cuda/arrange/cuda_select.h"
#include "kernel/cuda/cuda_families.h"
#include "kernel/cuda/product/cuda_byte_product.h"

enum { STEPS_MAX = 4096, GRID_MAX = 65535 };

typedef struct lstm {
    rondo__quantize_lstm plan;
    rondo__byte_product w, r;       // all but where x and y are; their weights are packed
    rondo__address x, scale, zero;  // x in bytes
    rondo__address from_x;          // [directions, seq * batch, 4 * hidden]
    rondo__address states[2], cells;
} lstm;

// The scales or zero points of direction `d`, of `count` each.
static rondo__byte_parameter get_parameter(const rondo__cuda_kernel *kernel, size_t index,
                                           int32_t d, int64_t count, size_t bytes) {
    rondo__byte_parameter parameter = {0};
    if (rondo__cuda_has_input(kernel, index)) {
        parameter.count = count;
        parameter.at =
            rondo__address_offset(rondo__address_input(index), (size_t)(d * count) * bytes);
    }
    return parameter;
}

// The products of x with all weights of direction `d`.
static void add_x_product(rondo__cuda_kernel *kernel, const lstm *l, int32_t d) {
    const rondo__quantize_lstm *plan = &l->plan;
    const int64_t count = plan->has_scale_for_each[0] ? 4 * plan->hidden : 1;
    const size_t columns = (size_t)(d * l->w.columns);
    const bool is_unsigned = l->w.w.dtype == RONDO_DTYPE_U8;
    rondo__byte_product p = l->w;
    p.x = (rondo__byte_operand){
        .data = l->x,
        .dtype = RONDO_DTYPE_U8,
        .zero = {.count = 1, .at = l->zero},
        .scale = {.count = 1, .at = l->scale},
        .is_off_middle = true,
        .is_off_zero = true,
    };
    p.w.data = rondo__address_offset(p.w.data, columns * (size_t)p.pitch);
    p.w_sums = rondo__address_offset(p.w_sums, columns * sizeof(int32_t));
    p.w.zero = get_parameter(kernel, RONDO__QLSTM_W_ZERO, d, count, 1);
    p.w.scale = get_parameter(kernel, RONDO__QLSTM_W_SCALE, d, count, sizeof(float));
    p.w.is_off_middle = is_unsigned || p.w.zero.count > 0;
    p.y =
        rondo__address_offset(l->from_x, (size_t)(p.rows * d) * (size_t)p.columns * sizeof(float));
    p.y_dtype = RONDO_DTYPE_F32;
    p.scale_dtype = RONDO_DTYPE_F32;
    rondo__byte_product_add(kernel, &p, -1);
}

static void add_step(rondo__cuda_kernel *kernel, const lstm *l, int64_t number) {
    const rondo__quantize_lstm *plan = &l->plan;
    rondo__defines defines = {0};
    rondo__define_int(&defines, "R_IS_UNSIGNED", l->r.w.dtype == RONDO_DTYPE_U8);
    rondo__step *step =
        rondo__cuda_add_launch(kernel, rondo__cu_quantize_lstm, &defines, "quantize_lstm_step",
                               (plan->hidden + 7) / 8, RONDO__CUDA_BLOCK);
    if (step != NULL) {
        step->launch.grid[1] = (uint32_t)plan->batch;
        step->launch.grid[2] = (uint32_t)plan->directions;
    }
    rondo__step_address(step, l->from_x);
    rondo__step_address(step, l->r.w.data);
    rondo__step_input(step, RONDO__QLSTM_R_SCALE);
    rondo__step_optional_input(step, kernel, RONDO__QLSTM_R_ZERO);
    rondo__step_optional_input(step, kernel, RONDO__QLSTM_B);
    rondo__step_optional_input(step, kernel, RONDO__QLSTM_P);
    rondo__step_optional_input(step, kernel, RONDO__QLSTM_INITIAL_H);
    rondo__step_optional_input(step, kernel, RONDO__QLSTM_INITIAL_C);
    for (size_t i = 0; i < 3; i++) {
        rondo__step_optional_output(step, kernel, i);
    }
    rondo__step_address(step, l->states[number % 2]);
    rondo__step_address(step, l->states[(number + 1) % 2]);
    rondo__step_address(step, l->cells);
    rondo__step_int(step, plan->seq);
    rondo__step_int(step, plan->batch);
    rondo__step_int(step, plan->hidden);
    rondo__step_int(step, plan->directions);
    rondo__step_int(step, number);
    rondo__step_int(step, plan->is_reverse[0]);
    rondo__step_int(step, l->r.pitch / 4);
    rondo__step_int(step, plan->has_scale_for_each[1]);
    rondo__step_int(step, plan->has_coupled_gates);
    rondo__step_float(step, (double)plan->clip);
}

// Takes places for everything between the launches. False, and refused, for what the kernels lack.
static bool read_lstm(rondo__cuda_kernel *kernel, lstm *l) {
    const rondo__kernel_request *request = kernel->request;
    if (!rondo__cuda_check(kernel, rondo__quantize_lstm_plan(request->op, request->inputs,
                                                             request->input_count, &l->plan))) {
        return false;
    }
    const rondo__quantize_lstm *plan = &l->plan;
    if (rondo__cuda_has_input(kernel, RONDO__QLSTM_LENGTHS) ||
        rondo__cuda_input(kernel, RONDO__QLSTM_W)->constant == NULL ||
        rondo__cuda_input(kernel, RONDO__QLSTM_R)->constant == NULL || plan->seq > STEPS_MAX ||
        plan->batch > GRID_MAX || plan->input > GRID_MAX || plan->hidden > GRID_MAX ||
        plan->seq * plan->batch > (int64_t)GRID_MAX * 64) {
        rondo__cuda_refuse(kernel, "sequence lengths, computed weights or such a size");
        return false;
    }
    const int64_t columns = 4 * plan->hidden, rows = plan->seq * plan->batch;
    const int64_t states = plan->directions * plan->batch * plan->hidden;
    l->x = rondo__cuda_reserve(kernel, rows * plan->input, 1);
    l->scale = rondo__cuda_reserve(kernel, 1, sizeof(float));
    l->zero = rondo__cuda_reserve(kernel, 1, 1);
    l->from_x = rondo__cuda_reserve(kernel, plan->directions * rows * columns, sizeof(float));
    l->states[0] = rondo__cuda_reserve(kernel, states, sizeof(float));
    l->states[1] = rondo__cuda_reserve(kernel, states, sizeof(float));
    l->cells = rondo__cuda_reserve(kernel, states, sizeof(float));
    const rondo__byte_product product = {
        .rows = rows, .columns = columns, .batches = 1, .batch_extent = {1, 1, 1, 1}};
    l->w = product;
    l->w.depth = plan->input;
    l->w.w.dtype = rondo__cuda_input(kernel, RONDO__QLSTM_W)->dtype;
    l->r = product;
    l->r.depth = plan->hidden;
    l->r.w.dtype = rondo__cuda_input(kernel, RONDO__QLSTM_R)->dtype;
    return rondo__byte_product_pack_weights(kernel, RONDO__QLSTM_W, &l->w) &&
           rondo__byte_product_pack_weights(kernel, RONDO__QLSTM_R, &l->r);
}

void rondo__cuda_prepare_quantize_lstm(rondo__cuda_kernel *kernel) {
    lstm l = {0};
    if (!read_lstm(kernel, &l)) {
        return;
    }
    const rondo__dynamic_quantize dynamic = {
        .count = l.plan.seq * l.plan.batch * l.plan.input,
        .x = rondo__address_input(RONDO__QLSTM_X),
        .y = &l.x,
        .scale = &l.scale,
        .zero = &l.zero,
        .is_lstm = true,
    };
    rondo__cuda_add_dynamic_quantize(kernel, &dynamic);
    for (int32_t d = 0; d < l.plan.directions; d++) {
        add_x_product(kernel, &l, d);
    }
    for (int64_t i = 0; i < l.plan.seq; i++) {
        add_step(kernel, &l, i);
    }
}

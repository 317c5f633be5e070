// com.microsoft.DynamicQuantizeLSTM: x to bytes and one product for all steps, then step by step.
// SPDX-License-Identifier: Apache-2.0
#include "op/quantize_lstm.h"

#include <stdint.h>

#include "cu_sources.h"
#include "kernel/cuda/cuda_byte_product.h"
#include "kernel/cuda/cuda_families.h"

enum { STEPS_MAX = 4096, GRID_MAX = 65535 };

typedef struct lstm {
    rondo__quantize_lstm plan;
    rondo__address w, r;            // packed
    rondo__address x, scale, zero;  // x in bytes
    rondo__address from_x;          // [directions, seq * batch, 4 * hidden]
    rondo__address states[2], cells;
} lstm;

static rondo__address reserve(rondo__cuda_kernel *kernel, int64_t count, size_t bytes) {
    return rondo__address_workspace(rondo__cuda_reserve_workspace(kernel, (size_t)count * bytes));
}

static bool is_unsigned(const rondo__cuda_kernel *kernel, size_t index) {
    return rondo__cuda_input(kernel, index)->dtype == RONDO_DTYPE_U8;
}

// Where the scale or zero point of a direction is, and how many it has.
static void push_parameter(rondo__step *step, const rondo__cuda_kernel *kernel, size_t index,
                           size_t offset) {
    const rondo__address address = rondo__address_offset(rondo__address_input(index), offset);
    rondo__step_optional(step, rondo__cuda_has_input(kernel, index) ? &address : NULL);
}

// The products of x with all weights of direction `d`.
static void add_x_product(rondo__cuda_kernel *kernel, const lstm *l, int32_t d) {
    const rondo__quantize_lstm *plan = &l->plan;
    const int64_t rows = plan->seq * plan->batch, columns = 4 * plan->hidden;
    const int64_t words = (plan->input + 3) / 4;
    const int64_t count = plan->has_scale_for_each[0] ? columns : 1;
    const size_t first = (size_t)(d * count);
    rondo__defines defines = {0};
    rondo__define_word(&defines, "Y", "float");
    rondo__define_int(&defines, "A_IS_UNSIGNED", 1);
    rondo__define_int(&defines, "B_IS_UNSIGNED", is_unsigned(kernel, RONDO__QLSTM_W));
    rondo__define_int(&defines, "A_IS_WHOLE", plan->input % 4 == 0);
    rondo__define_int(&defines, "B_IS_PACKED", 1);
    rondo__step *step =
        rondo__cuda_add_launch(kernel, rondo__cu_byte_product, &defines, "byte_matmul",
                               (columns + 63) / 64, RONDO__CUDA_BLOCK);
    if (step != NULL) {
        step->launch.grid[1] = (uint32_t)((rows + 63) / 64);
    }
    rondo__step_address(step, l->x);
    rondo__step_address(step, rondo__address_offset(l->w, (size_t)(d * columns * words * 4)));
    rondo__step_address(
        step, rondo__address_offset(l->from_x, (size_t)(d * rows * columns) * sizeof(float)));
    rondo__step_int(step, rows);
    rondo__step_int(step, columns);
    rondo__step_int(step, plan->input);
    rondo__step_int(step, words);
    for (int i = 0; i < 12; i++) {  // one batch
        rondo__step_int(step, i < 4);
    }
    rondo__step_address(step, l->zero);
    push_parameter(step, kernel, RONDO__QLSTM_W_ZERO, first);
    rondo__step_int(step, 1);
    rondo__step_int(step, count);
    rondo__step_address(step, l->scale);
    push_parameter(step, kernel, RONDO__QLSTM_W_SCALE, first * sizeof(float));
    rondo__step_int(step, 0);  // y has no scale
    rondo__step_int(step, 1);
    rondo__step_int(step, count);
    rondo__step_int(step, 0);  // nor a zero point
    rondo__step_int(step, 0);
    rondo__step_int(step, plan->input);
}

static void add_step(rondo__cuda_kernel *kernel, const lstm *l, int64_t number) {
    const rondo__quantize_lstm *plan = &l->plan;
    rondo__defines defines = {0};
    rondo__define_int(&defines, "R_IS_UNSIGNED", is_unsigned(kernel, RONDO__QLSTM_R));
    rondo__step *step =
        rondo__cuda_add_launch(kernel, rondo__cu_quantize_lstm, &defines, "quantize_lstm_step",
                               (plan->hidden + 7) / 8, RONDO__CUDA_BLOCK);
    if (step != NULL) {
        step->launch.grid[1] = (uint32_t)plan->batch;
        step->launch.grid[2] = (uint32_t)plan->directions;
    }
    rondo__step_address(step, l->from_x);
    rondo__step_address(step, l->r);
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
    rondo__step_int(step, (plan->hidden + 3) / 4);
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
    l->x = reserve(kernel, rows * plan->input, 1);
    l->scale = reserve(kernel, 1, sizeof(float));
    l->zero = reserve(kernel, 1, 1);
    l->from_x = reserve(kernel, plan->directions * rows * columns, sizeof(float));
    l->states[0] = reserve(kernel, states, sizeof(float));
    l->states[1] = reserve(kernel, states, sizeof(float));
    l->cells = reserve(kernel, states, sizeof(float));
    return rondo__byte_product_pack(kernel, RONDO__QLSTM_W, plan->input, columns, &l->w) &&
           rondo__byte_product_pack(kernel, RONDO__QLSTM_R, plan->hidden, columns, &l->r);
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

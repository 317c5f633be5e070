// kernel/cuda/product/cuda_recurrent.c — LSTM, GRU and RNN: one product for what the inputs add,
// then the steps; see recurrent.cu.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "cu_sources.h"
#include "device/device.h"
#include "kernel/cuda/cuda_families.h"
#include "op/recurrent/recurrent.h"

enum {
    STEPS_MAX = 4096,     // of one launch each
    PARTS_MAX = 1 << 26,  // bytes of what inputs add; more is made in several turns
    REGISTERS = 65536,
    REGISTERS_BESIDE = 48,  // of a thread, beside its row of R
    ROW_MAX = 200,          // a thread has 255 registers
    THREADS_MAX = 1024,
    INPUT_LENGTHS = 4,
    INPUT_H = 5,
    INPUT_C = 6,
    INPUT_PEEPHOLES = 7,
};

typedef struct recurrence {
    int64_t gates, steps, batch, inputs, hidden, directions;
    bool is_reset_first, is_usual, is_batch_first;
    rondo__recurrent_function functions[2][3];
    double clip;
    rondo__address parts, states[2], cells, update_gate, reset_gate;
    rondo__defines defines;
} recurrence;

static bool read_recurrence(rondo__cuda_kernel *kernel, recurrence *out_r) {
    const rondo__op *op = kernel->request->op;
    const rondo__tensor_info *x = rondo__cuda_input(kernel, 0);
    recurrence r = {.clip = (double)INFINITY};
    r.gates = op->def->id == RONDO__OP_LSTM ? 4 : op->def->id == RONDO__OP_GRU ? 3 : 1;
    r.is_batch_first = rondo__op_get_int(op, "layout", 0) != 0;
    r.steps = x->shape.extent[r.is_batch_first ? 1 : 0];
    r.batch = x->shape.extent[r.is_batch_first ? 0 : 1];
    r.inputs = x->shape.extent[2];
    r.directions = rondo__cuda_input(kernel, 1)->shape.extent[0];
    r.hidden = rondo__cuda_input(kernel, 2)->shape.extent[2];
    r.is_reset_first = r.gates == 3 && rondo__op_get_int(op, "linear_before_reset", 0) == 0;
    r.is_usual = rondo__recurrent_has_usual_functions(op);
    if (rondo__op_find(op, "clip") != NULL) {
        r.clip = (double)rondo__op_get_float(op, "clip", 0.0f);
        r.is_usual = false;
    }
    if (!rondo__cuda_is_float(x->dtype)) {
        rondo__cuda_refuse(kernel, "tensors of this type");
        return false;
    }
    if (!rondo__cuda_check(kernel,
                           rondo__recurrent_read_functions(op, r.directions, r.functions))) {
        return false;
    }
    rondo__define_type(&r.defines, "T", x->dtype);
    rondo__define_int(&r.defines, "GATES", r.gates);
    rondo__define_int(&r.defines, "RESET_FIRST", r.is_reset_first ? 1 : 0);
    rondo__define_int(&r.defines, "USUAL", r.is_usual ? 1 : 0);
    *out_r = r;
    return true;
}

static bool fits_a_block(const recurrence *r) {
    const int64_t rows = (r->gates * r->hidden + 31) / 32 * 32;
    return rows <= THREADS_MAX && r->hidden <= ROW_MAX &&
           rows * (r->hidden + REGISTERS_BESIDE) <= REGISTERS;
}

// ---- one launch -------------------------------------------------------------------------------

typedef struct turn {
    int64_t first, last;  // steps whose parts there are
    int64_t step, stage;
    int from;  // which of the two states goes in
} turn;

static void push_recurrence(rondo__step *step, const rondo__cuda_kernel *kernel,
                            const recurrence *r, const turn *now) {
    const rondo__op *op = kernel->request->op;
    rondo__step_input(step, 0);
    rondo__step_input(step, 1);
    rondo__step_input(step, 2);
    rondo__step_optional_input(step, kernel, 3);
    rondo__step_optional_input(step, kernel, INPUT_LENGTHS);
    rondo__step_optional_input(step, kernel, INPUT_H);
    rondo__step_optional_input(step, kernel, INPUT_C);
    rondo__step_optional_input(step, kernel, INPUT_PEEPHOLES);
    rondo__step_optional_output(step, kernel, 0);
    rondo__step_optional_output(step, kernel, 1);
    rondo__step_optional_output(step, kernel, 2);
    rondo__step_address(step, r->parts);
    rondo__step_address(step, r->states[now->from]);
    rondo__step_address(step, r->states[1 - now->from]);
    rondo__step_address(step, r->cells);
    rondo__step_address(step, r->update_gate);
    rondo__step_address(step, r->reset_gate);
    rondo__step_int(step, r->steps);
    rondo__step_int(step, r->batch);
    rondo__step_int(step, r->inputs);
    rondo__step_int(step, r->hidden);
    rondo__step_int(step, r->directions);
    rondo__step_int(step, now->first);
    rondo__step_int(step, now->last);
    rondo__step_int(step, now->step);
    rondo__step_int(step, now->stage);
    rondo__step_int(step, strcmp(rondo__op_get_string(op, "direction", "forward"), "reverse") == 0);
    rondo__step_int(step, r->is_batch_first);
    rondo__step_int(step, rondo__op_get_int(op, "input_forget", 0) != 0);
    rondo__step_float(step, r->clip);
    for (int field = 0; field < 3; field++) {
        for (int i = 0; i < 6; i++) {
            const rondo__recurrent_function *function = &r->functions[i / 3][i % 3];
            if (field == 0) {
                rondo__step_int(step, (int64_t)function->kind);
            } else {
                rondo__step_float(step, field == 1 ? function->alpha : function->beta);
            }
        }
    }
}

static bool has_tensor_cores(const rondo__cuda_kernel *kernel) {
    rondo_device_info info = {.struct_size = sizeof info};
    return rondo__cuda_input(kernel, 0)->dtype == RONDO_DTYPE_F16 &&
           rondo__device_get_facts(kernel->device, &info) == RONDO_STATUS_OK &&
           info.arch_major >= 8;
}

static void add_inputs(rondo__cuda_kernel *kernel, recurrence *r, const turn *now) {
    const int64_t rows = (now->last - now->first) * r->batch;
    const bool has_tensor = has_tensor_cores(kernel) && r->inputs % 2 == 0;
    const int64_t height = has_tensor ? 16 : 64, width = has_tensor ? 4 * 32 : 64;
    rondo__step *step =
        rondo__cuda_add_launch(kernel, rondo__cu_recurrent, &r->defines,
                               has_tensor ? "recurrent_inputs_tensor" : "recurrent_inputs",
                               (rows + height - 1) / height, has_tensor ? 128 : RONDO__CUDA_BLOCK);
    if (step != NULL) {
        step->launch.grid[1] = (uint32_t)((r->gates * r->hidden + width - 1) / width);
        step->launch.grid[2] = (uint32_t)r->directions;
    }
    push_recurrence(step, kernel, r, now);
}

static void add_step(rondo__cuda_kernel *kernel, recurrence *r, const turn *now) {
    const int64_t units = r->directions * r->batch * r->hidden;
    push_recurrence(rondo__cuda_add_launch(kernel, rondo__cu_recurrent, &r->defines,
                                           "recurrent_step", (units + 3) / 4, 128),
                    kernel, r, now);
}

static void add_sequence(rondo__cuda_kernel *kernel, recurrence *r, const turn *now) {
    push_recurrence(rondo__cuda_add_launch(kernel, rondo__cu_recurrent, &r->defines,
                                           "recurrent_sequence", r->directions * r->batch,
                                           (uint32_t)((r->gates * r->hidden + 31) / 32 * 32)),
                    kernel, r, now);
}

// ---- all of them ------------------------------------------------------------------------------

static rondo__address reserve(rondo__cuda_kernel *kernel, size_t bytes) {
    return rondo__address_workspace(rondo__cuda_reserve_workspace(kernel, bytes));
}

void rondo__cuda_prepare_recurrent(rondo__cuda_kernel *kernel) {
    recurrence r;
    int64_t step_bytes, state_bytes;

    if (!read_recurrence(kernel, &r)) {
        return;
    }
    if (!rondo__mul_i64(r.directions * r.batch, r.hidden * (int64_t)sizeof(float), &state_bytes) ||
        !rondo__mul_i64(state_bytes, r.gates, &step_bytes) ||
        r.gates * r.hidden > INT64_C(64) * 65535) {
        rondo__cuda_refuse(kernel, "a state of this size");
        return;
    }
    const bool is_small = fits_a_block(&r);
    if (!is_small && r.steps > STEPS_MAX) {
        rondo__cuda_refuse(kernel, "more than 4096 steps of so large a state");
        return;
    }
    int64_t chunk = PARTS_MAX / step_bytes;
    chunk = chunk < 1 ? 1 : chunk > r.steps ? r.steps : chunk;
    r.parts = reserve(kernel, (size_t)(chunk * step_bytes));
    r.states[0] = reserve(kernel, (size_t)state_bytes);
    r.states[1] = reserve(kernel, (size_t)state_bytes);
    r.cells = reserve(kernel, (size_t)state_bytes);
    r.update_gate = reserve(kernel, (size_t)state_bytes);
    r.reset_gate = reserve(kernel, (size_t)state_bytes);
    if (is_small) {
        rondo__define_int(&r.defines, "HIDDEN", r.hidden);
        rondo__define_int(&r.defines, "FIXED_R", rondo__cuda_input(kernel, 2)->constant != NULL);
    }
    int from = 0;
    for (int64_t first = 0; first < r.steps; first += chunk) {
        const int64_t last = first + chunk < r.steps ? first + chunk : r.steps;
        turn now = {.first = first, .last = last, .step = first};
        add_inputs(kernel, &r, &now);
        for (; now.step < last; now.step += is_small ? chunk : 1) {
            now.from = from;
            now.stage = 0;
            if (is_small) {
                add_sequence(kernel, &r, &now);
            } else {
                add_step(kernel, &r, &now);
            }
            if (!is_small && r.is_reset_first) {
                now.stage = 1;
                add_step(kernel, &r, &now);
            }
            from = 1 - from;
        }
    }
}

// LSTM, GRU and RNN with their usual functions, step by step.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "cu_sources.h"
#include "kernel/cuda/cuda_families.h"
#include "op/recurrent.h"

enum { STEPS_MAX = 4096, INPUT_LENGTHS = 4, INPUT_H = 5, INPUT_C = 6, INPUT_PEEPHOLES = 7 };

static void push_input(rondo__step *step, const rondo__cuda_kernel *kernel, size_t index) {
    if (rondo__cuda_has_input(kernel, index)) {
        rondo__step_input(step, index);
    } else {
        rondo__step_int(step, 0);
    }
}

static void push_output(rondo__step *step, const rondo__cuda_kernel *kernel, size_t index) {
    if (rondo__cuda_wants_output(kernel, index)) {
        rondo__step_output(step, index);
    } else {
        rondo__step_int(step, 0);
    }
}

void rondo__cuda_prepare_recurrent(rondo__cuda_kernel *kernel) {
    const rondo__op *op = kernel->request->op;
    const rondo__tensor_info *x = rondo__cuda_input(kernel, 0);
    const rondo__tensor_info *w = rondo__cuda_input(kernel, 1);
    const rondo__tensor_info *r = rondo__cuda_input(kernel, 2);
    const char *direction = rondo__op_get_string(op, "direction", "forward");
    const int64_t gates = strcmp(op->def->name, "LSTM") == 0  ? 4
                          : strcmp(op->def->name, "GRU") == 0 ? 3
                                                              : 1;
    rondo__defines defines = {0};

    if (x->shape.rank != 3 || w->shape.rank != 3 || r->shape.rank != 3) {
        rondo__cuda_refuse(kernel, "tensors of this rank");
        return;
    }
    const int64_t steps = x->shape.extent[0], batch = x->shape.extent[1];
    const int64_t inputs = x->shape.extent[2], directions = w->shape.extent[0];
    const int64_t hidden = r->shape.extent[2];
    if (!rondo__cuda_is_float(x->dtype) || w->dtype != x->dtype || r->dtype != x->dtype ||
        steps > STEPS_MAX || rondo__cuda_has_input(kernel, INPUT_LENGTHS) ||
        (gates == 4 && rondo__cuda_has_input(kernel, INPUT_PEEPHOLES)) ||
        rondo__op_get_int(op, "layout", 0) != 0 || rondo__op_get_int(op, "input_forget", 0) != 0 ||
        rondo__op_find(op, "clip") != NULL ||
        (gates == 3 && rondo__op_get_int(op, "linear_before_reset", 0) == 0) ||
        !rondo__recurrent_has_usual_functions(op)) {
        rondo__cuda_refuse(kernel, "sequence lengths, peepholes, clipping or other functions");
        return;
    }
    const size_t state_bytes = (size_t)(directions * batch * hidden) * sizeof(float);
    const size_t states[2] = {rondo__cuda_reserve_workspace(kernel, state_bytes),
                              rondo__cuda_reserve_workspace(kernel, state_bytes)};
    const size_t cells = rondo__cuda_reserve_workspace(kernel, state_bytes);
    rondo__define_type(&defines, "T", x->dtype);
    rondo__define_int(&defines, "GATES", gates);
    for (int64_t s = 0; s < steps; s++) {
        rondo__step *step =
            rondo__cuda_add_launch(kernel, rondo__cu_recurrent, &defines, "recurrent_step",
                                   (directions * batch * hidden + 3) / 4, 128);
        rondo__step_input(step, 0);
        rondo__step_input(step, 1);
        rondo__step_input(step, 2);
        push_input(step, kernel, 3);
        push_input(step, kernel, INPUT_H);
        if (gates == 4) {
            push_input(step, kernel, INPUT_C);
        } else {
            rondo__step_int(step, 0);
        }
        push_output(step, kernel, 0);
        push_output(step, kernel, 1);
        if (gates == 4) {
            push_output(step, kernel, 2);
        } else {
            rondo__step_int(step, 0);
        }
        rondo__step_address(step, rondo__address_workspace(states[s % 2]));
        rondo__step_address(step, rondo__address_workspace(states[(s + 1) % 2]));
        rondo__step_address(step, rondo__address_workspace(cells));
        rondo__step_int(step, steps);
        rondo__step_int(step, batch);
        rondo__step_int(step, inputs);
        rondo__step_int(step, hidden);
        rondo__step_int(step, directions);
        rondo__step_int(step, s);
        rondo__step_int(step, strcmp(direction, "reverse") == 0);
    }
}

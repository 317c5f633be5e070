// kernel/cuda/elementwise/cuda_optimize.c — Adagrad, Adam and Momentum; see optimize.cu.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "cu_sources.h"
#include "kernel/cuda/cuda_families.h"

void rondo__cuda_prepare_optimize(rondo__cuda_kernel *kernel) {
    const rondo__op *op = kernel->request->op;
    const bool is_adam = op->def->id == RONDO__TRAINING_Adam;
    const bool is_adagrad = op->def->id == RONDO__TRAINING_Adagrad;
    const size_t groups = is_adam ? 4 : 3;
    const size_t count = (kernel->request->input_count - 2) / groups;
    const float alpha = is_adam ? 0.9f : 0.0f, beta = is_adam ? 0.999f : 0.0f;
    // Inputs: rate, steps, then all weights, all gradients, all of each state.
    for (size_t k = 0; k < count; k++) {
        const rondo__tensor_info *x = rondo__cuda_input(kernel, 2 + k);
        const int64_t elements = rondo_shape_get_count(&x->shape);
        rondo__defines defines = {0};
        for (size_t group = 1; group < groups; group++) {
            if (rondo__cuda_input(kernel, 2 + group * count + k)->dtype != x->dtype) {
                rondo__cuda_refuse(kernel, "a gradient or state of another type than its weight");
            }
        }
        rondo__define_type(&defines, "T", x->dtype);
        rondo__define_type(&defines, "R", rondo__cuda_input(kernel, 0)->dtype);
        rondo__define_type(&defines, "S", rondo__cuda_input(kernel, 1)->dtype);
        rondo__define_int(&defines, "KIND", is_adagrad ? 0 : is_adam ? 1 : 2);
        rondo__step *step = rondo__cuda_add_launch(kernel, rondo__cu_optimize, &defines, "optimize",
                                                   rondo__cuda_blocks(elements), RONDO__CUDA_BLOCK);
        rondo__step_int(step, elements);
        rondo__step_input(step, 0);
        rondo__step_input(step, 1);
        for (size_t group = 0; group < 4; group++) {
            if (group < groups) {
                rondo__step_input(step, 2 + group * count + k);
            } else {
                rondo__step_int(step, 0);
            }
        }
        rondo__step_optional_output(step, kernel, k);
        rondo__step_optional_output(step, kernel, count + k);
        rondo__step_optional_output(step, kernel, 2 * count + k);
        rondo__step_float(step, (double)rondo__op_get_float(op, "alpha", alpha));
        rondo__step_float(step, (double)rondo__op_get_float(op, "beta", beta));
        rondo__step_float(step, (double)rondo__op_get_float(op, "epsilon", 1e-6f));
        rondo__step_float(step, (double)rondo__op_get_float(op, "norm_coefficient", 0.0f));
        rondo__step_float(step, (double)rondo__op_get_float(op, "norm_coefficient_post", 0.0f));
        rondo__step_float(step, (double)rondo__op_get_float(op, "decay_factor", 0.0f));
        rondo__step_int(step, strcmp(rondo__op_get_string(op, "mode", ""), "nesterov") == 0);
    }
}

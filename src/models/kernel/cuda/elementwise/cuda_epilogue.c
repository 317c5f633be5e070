// kernel/cuda/elementwise/cuda_epilogue.c — see cuda_epilogue.h.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/cuda/elementwise/cuda_epilogue.h"

bool rondo__cuda_read_epilogue(rondo__cuda_kernel *kernel, rondo__cuda_epilogue *out_epilogue) {
    const rondo__op *op = kernel->request->op;
    const int activation = rondo__activation_parse(rondo__op_get_string(op, "activation", "none"));
    const bool is_fused = (op->def->flags & RONDO__OP_INTERNAL) != 0;
    *out_epilogue = (rondo__cuda_epilogue){
        .has_bias = rondo__cuda_has_input(kernel, 2),
        .has_residual = is_fused && rondo__cuda_has_input(kernel, 3),
        .bias = rondo__address_input(2),
        .residual = rondo__address_input(3),
    };
    if (activation < 0) {
        rondo__cuda_refuse(kernel, "attribute activation");
        return false;
    }
    if (is_fused) {
        out_epilogue->activation = (rondo__activation)activation;
        out_epilogue->gates = rondo__op_get_int(op, "gates", 0) != 0;
        out_epilogue->alpha = rondo__op_get_float(op, "alpha", 0.0f);
        out_epilogue->beta = rondo__op_get_float(op, "beta", 0.0f);
    }
    return true;
}

void rondo__step_epilogue_addresses(rondo__step *step, const rondo__cuda_epilogue *epilogue) {
    rondo__step_optional(step, epilogue->has_bias ? &epilogue->bias : NULL);
    rondo__step_optional(step, epilogue->has_residual ? &epilogue->residual : NULL);
}

static void push_norm(rondo__step *step, const rondo__cuda_row_norm *norm) {
    rondo__step_address(step, norm->x);
    rondo__step_address(step, norm->weight_sums);
    rondo__step_address(step, norm->offsets);
    rondo__step_address(step, norm->weight_scale);
    rondo__step_address(step, norm->gain);
    rondo__step_optional(step, norm->has_shift ? &norm->shift : NULL);
    rondo__step_optional(step, norm->is_wanted ? &norm->normal : NULL);
    rondo__step_float(step, (double)norm->epsilon);
    if (norm->has_moments) {
        rondo__step_address(step, norm->moments);
    }
}

void rondo__define_ending(rondo__defines *defines, const rondo__cuda_ending *ending) {
    rondo__define_int(defines, "NARROW", ending->filters % 8 != 0);
    if (ending->norm != NULL) {
        rondo__define_int(defines, "NORM", 1);
        rondo__define_int(defines, "NORM_OUT", ending->norm->is_wanted);
        rondo__define_int(defines, "NORM_GIVEN",
                          ending->norm->has_moments ? ending->depth / RONDO__MOMENT_COLUMNS : 0);
    }
    if (ending->epilogue->has_moments) {
        rondo__define_int(defines, "MOMENTS", 1);
    }
    if (ending->epilogue->gates) {
        rondo__define_int(defines, "GATES", 1);
    }
    if (ending->epilogue->has_row_bias) {
        rondo__define_int(defines, "ROW_BIAS", 1);
    }
}

void rondo__step_ending(rondo__step *step, const rondo__cuda_ending *ending) {
    rondo__step_epilogue_addresses(step, ending->epilogue);
    rondo__step_address(step, ending->y);
    rondo__step_int(step, ending->pixels);
    rondo__step_int(step, ending->filters);
    rondo__step_int(step, ending->depth);
    rondo__step_float(step, (double)ending->epilogue->alpha);
    rondo__step_float(step, (double)ending->epilogue->beta);
    if (ending->norm != NULL) {
        push_norm(step, ending->norm);
    }
    if (ending->epilogue->has_moments) {
        rondo__step_address(step, ending->epilogue->moments);
    }
}

// Normalisations that need statistics of the data.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "cu_sources.h"
#include "kernel/cuda/cuda_families.h"

static uint32_t choose_threads(int64_t length) {
    uint32_t threads = 32;
    while (threads < RONDO__CUDA_BLOCK && threads * 2 <= length) {
        threads *= 2;
    }
    return threads;
}

static void push_optional(rondo__step *step, bool is_present, rondo__address address) {
    if (is_present) {
        rondo__step_address(step, address);
    } else {
        rondo__step_int(step, 0);
    }
}

void rondo__cuda_prepare_layer_normalization(rondo__cuda_kernel *kernel) {
    const rondo__op *op = kernel->request->op;
    const rondo__tensor_info *x = rondo__cuda_input(kernel, 0);
    rondo__defines defines = {0};
    const int32_t rank = x->shape.rank;
    const int32_t axis = rondo__cuda_wrap_axis(rondo__op_get_int(op, "axis", -1), rank);
    const int64_t rows = rondo__cuda_product(&x->shape, 0, axis);
    const int64_t length = rondo__cuda_product(&x->shape, axis, rank);

    if (!rondo__cuda_is_float(x->dtype) || rondo__cuda_input(kernel, 1)->dtype != x->dtype ||
        rondo_shape_get_count(&rondo__cuda_input(kernel, 1)->shape) != length) {
        rondo__cuda_refuse(kernel, "a scale of this type or shape");
        return;
    }
    if (rondo__cuda_has_input(kernel, 2) &&
        rondo_shape_get_count(&rondo__cuda_input(kernel, 2)->shape) != length) {
        rondo__cuda_refuse(kernel, "a bias of this shape");
        return;
    }
    rondo__define_type(&defines, "T", x->dtype);
    if (rondo__cuda_wants_output(kernel, 1)) {
        rondo__define_type(&defines, "S", rondo__cuda_output(kernel, 1)->dtype);
    } else if (rondo__cuda_wants_output(kernel, 2)) {
        rondo__define_type(&defines, "S", rondo__cuda_output(kernel, 2)->dtype);
    }
    rondo__step *step = rondo__cuda_add_launch(kernel, rondo__cu_normalize, &defines,
                                               "layer_normalization", rows, choose_threads(length));
    rondo__step_int(step, rows);
    rondo__step_input(step, 0);
    rondo__step_input(step, 1);
    push_optional(step, rondo__cuda_has_input(kernel, 2), rondo__address_input(2));
    rondo__step_output(step, 0);
    push_optional(step, rondo__cuda_wants_output(kernel, 1), rondo__address_output(1));
    push_optional(step, rondo__cuda_wants_output(kernel, 2), rondo__address_output(2));
    rondo__step_int(step, length);
    rondo__step_float(step, (double)rondo__op_get_float(op, "epsilon", 1e-5f));
}

void rondo__cuda_prepare_group_normalization(rondo__cuda_kernel *kernel) {
    const rondo__op *op = kernel->request->op;
    const rondo__tensor_info *x = rondo__cuda_input(kernel, 0);
    rondo__defines defines = {0};
    const bool is_group = strcmp(op->def->name, "GroupNormalization") == 0;
    const int64_t channels = x->shape.rank > 1 ? x->shape.extent[1] : 0;
    const int64_t groups = is_group ? rondo__op_get_int(op, "num_groups", 1) : channels;
    const int64_t scales = rondo_shape_get_count(&rondo__cuda_input(kernel, 1)->shape);

    if (!rondo__cuda_is_float(x->dtype) || groups <= 0 || channels % groups != 0 ||
        (scales != channels && scales != groups)) {
        rondo__cuda_refuse(kernel, "a scale of this type or shape");
        return;
    }
    const int64_t rows = x->shape.extent[0] * groups;
    const int64_t length = rondo_shape_get_count(&x->shape) / rows;
    rondo__define_type(&defines, "T", x->dtype);
    rondo__step *step = rondo__cuda_add_launch(kernel, rondo__cu_normalize, &defines,
                                               "group_normalization", rows, choose_threads(length));
    rondo__step_int(step, rows);
    rondo__step_input(step, 0);
    rondo__step_input(step, 1);
    rondo__step_input(step, 2);
    rondo__step_output(step, 0);
    rondo__step_int(step, groups);
    rondo__step_int(step, length);
    rondo__step_int(step, rondo__cuda_product(&x->shape, 2, x->shape.rank));
    rondo__step_int(step, scales != channels);
    rondo__step_float(step, (double)rondo__op_get_float(op, "epsilon", 1e-5f));
}

void rondo__cuda_prepare_lrn(rondo__cuda_kernel *kernel) {
    const rondo__op *op = kernel->request->op;
    const rondo__tensor_info *x = rondo__cuda_input(kernel, 0);
    rondo__defines defines = {0};
    const int64_t count = rondo_shape_get_count(&x->shape);

    if (!rondo__cuda_is_float(x->dtype) || x->shape.rank < 2) {
        rondo__cuda_refuse(kernel, "a tensor of this type");
        return;
    }
    rondo__define_type(&defines, "T", x->dtype);
    rondo__step *step = rondo__cuda_add_launch(kernel, rondo__cu_normalize, &defines, "lrn",
                                               rondo__cuda_blocks(count), RONDO__CUDA_BLOCK);
    rondo__step_int(step, count);
    rondo__step_input(step, 0);
    rondo__step_output(step, 0);
    rondo__step_int(step, x->shape.extent[1]);
    rondo__step_int(step, rondo__cuda_product(&x->shape, 2, x->shape.rank));
    rondo__step_int(step, rondo__op_get_int(op, "size", 1));
    rondo__step_float(step, (double)rondo__op_get_float(op, "alpha", 0.0001f));
    rondo__step_float(step, (double)rondo__op_get_float(op, "beta", 0.75f));
    rondo__step_float(step, (double)rondo__op_get_float(op, "bias", 1.0f));
}

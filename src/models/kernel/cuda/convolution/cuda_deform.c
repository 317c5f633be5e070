// kernel/cuda/convolution/cuda_deform.c — DeformConv, and Det, which has no better place; see
// deform.cu and determinant.cu.
// SPDX-License-Identifier: Apache-2.0
#include "cu_sources.h"
#include "kernel/cuda/cuda_families.h"
#include "op/image/convolution.h"

enum { GRID_MAX = 65535 };

static void push_two(rondo__step *step, const int64_t *values) {
    rondo__step_int(step, values[0]);
    rondo__step_int(step, values[1]);
}

static void push_deform(rondo__step *step, const rondo__cuda_kernel *kernel,
                        const rondo__convolution *c, rondo__address columns) {
    for (size_t i = 0; i < 5; i++) {
        rondo__step_optional_input(step, kernel, i);
    }
    rondo__step_output(step, 0);
    rondo__step_address(step, columns);
    rondo__step_int(step, c->batch);
    rondo__step_int(step, c->channels);
    rondo__step_int(step, c->filters);
    rondo__step_int(step, c->group);
    rondo__step_int(step, rondo__op_get_int(kernel->request->op, "offset_group", 1));
    push_two(step, c->window.input);
    push_two(step, c->window.output);
    push_two(step, c->window.kernel);
    push_two(step, c->window.stride);
    push_two(step, c->window.dilation);
    push_two(step, c->window.pad_begin);
}

void rondo__cuda_prepare_deform_conv(rondo__cuda_kernel *kernel) {
    const rondo__tensor_info *x = rondo__cuda_input(kernel, 0);
    rondo__convolution c;
    rondo__defines defines = {0};

    if (!rondo__cuda_check(
            kernel, rondo__convolution_init(kernel->request->op, &x->shape,
                                            &rondo__cuda_input(kernel, 1)->shape, false, &c))) {
        return;
    }
    const bool is_wide = x->dtype == RONDO_DTYPE_F64;
    const int64_t count = c.batch * c.channels * c.kernel_span * c.output_span;
    const int64_t filter_tiles = (c.filters / c.group + 63) / 64;
    const int64_t parts = c.batch * c.group;
    if (filter_tiles > GRID_MAX) {
        rondo__cuda_refuse(kernel, "more filters than a grid holds");
        return;
    }
    const rondo__address columns = rondo__address_workspace(rondo__cuda_reserve_workspace(
        kernel, (size_t)count * (is_wide ? sizeof(double) : sizeof(float))));
    rondo__define_type(&defines, "T", x->dtype);
    rondo__define_word(&defines, "A", is_wide ? "double" : "float");
    push_deform(rondo__cuda_add_launch(kernel, rondo__cu_deform, &defines, "deform_columns",
                                       rondo__cuda_blocks(count), RONDO__CUDA_BLOCK),
                kernel, &c, columns);
    rondo__step *step = rondo__cuda_add_launch(kernel, rondo__cu_deform, &defines, "deform_product",
                                               (c.output_span + 63) / 64, RONDO__CUDA_BLOCK);
    if (step != NULL) {
        step->launch.grid[1] = (uint32_t)filter_tiles;
        step->launch.grid[2] = (uint32_t)(parts > GRID_MAX ? GRID_MAX : parts);
    }
    push_deform(step, kernel, &c, columns);
}

void rondo__cuda_prepare_determinant(rondo__cuda_kernel *kernel) {
    const rondo__tensor_info *x = rondo__cuda_input(kernel, 0);
    const int64_t count = rondo_shape_get_count(&rondo__cuda_output(kernel, 0)->shape);
    rondo__defines defines = {0};
    const rondo__address rows = rondo__address_workspace(rondo__cuda_reserve_workspace(
        kernel, (size_t)rondo_shape_get_count(&x->shape) * sizeof(double)));
    rondo__define_type(&defines, "T", x->dtype);
    rondo__step *step = rondo__cuda_add_launch(kernel, rondo__cu_determinant, &defines,
                                               "determinant", count, RONDO__CUDA_BLOCK);
    rondo__step_int(step, count);
    rondo__step_input(step, 0);
    rondo__step_output(step, 0);
    rondo__step_address(step, rows);
    rondo__step_int(step, x->shape.extent[x->shape.rank - 1]);
}

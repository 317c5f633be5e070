// kernel/cuda/convolution/cuda_conv_transpose.c — ConvTranspose, by phases of the stride; see
// conv_transpose.cu.
// SPDX-License-Identifier: Apache-2.0
#include "base/checked.h"
#include "cu_sources.h"
#include "kernel/cuda/cuda_families.h"
#include "op/image/convolution.h"

enum {
    SPATIAL = 3,
    TILE = 64,
    GRID_MAX = 65535,
    FEW_FILTERS = 4,  // with so many in a group, tiles of 16 are mostly empty
};

typedef struct transposed {
    rondo__convolution convolution;
    int64_t in[SPATIAL], out[SPATIAL], kernel[SPATIAL], stride[SPATIAL], dilation[SPATIAL];
    int64_t before[SPATIAL];
    int64_t step[SPATIAL], width[SPATIAL];
    int64_t phases, outputs;  // outputs of a phase, at most
} transposed;

// Models with fewer spatial extents have extents of 1 in front.
static bool read_transposed(rondo__cuda_kernel *kernel, transposed *out_form) {
    const rondo__tensor_info *x = rondo__cuda_input(kernel, 0);
    const rondo__tensor_info *w = rondo__cuda_input(kernel, 1);
    transposed form = {.phases = 1};
    if (!rondo__cuda_check(
            kernel, rondo__convolution_init_transposed(kernel->request->op, &x->shape, &w->shape,
                                                       &form.convolution))) {
        return false;
    }
    const rondo__window *window = &form.convolution.window;
    if (window->rank > SPATIAL) {
        rondo__cuda_refuse(kernel, "more than three spatial extents");
        return false;
    }
    form.outputs = form.convolution.batch;
    for (int32_t d = 0; d < SPATIAL; d++) {
        const int32_t i = d - (SPATIAL - window->rank);
        form.in[d] = i < 0 ? 1 : window->input[i];
        form.out[d] = i < 0 ? 1 : window->output[i];
        form.kernel[d] = i < 0 ? 1 : window->kernel[i];
        form.stride[d] = i < 0 ? 1 : window->stride[i];
        form.dilation[d] = i < 0 ? 1 : window->dilation[i];
        form.before[d] = i < 0 ? 0 : window->pad_begin[i];
        form.step[d] = form.stride[d] / rondo__find_divisor(form.stride[d], form.dilation[d]);
        form.width[d] = (form.out[d] + form.stride[d] - 1) / form.stride[d];
        form.phases *= form.stride[d];
        form.outputs *= form.width[d];
        if (form.in[d] > INT32_MAX || form.out[d] > INT32_MAX || form.phases > INT64_C(1) << 30) {
            rondo__cuda_refuse(kernel, "extents or strides of this size");
            return false;
        }
    }
    *out_form = form;
    return true;
}

static void push_form(rondo__step *step, const rondo__cuda_kernel *kernel, const transposed *form) {
    const rondo__convolution *c = &form->convolution;
    rondo__step_input(step, 0);
    rondo__step_input(step, 1);
    rondo__step_optional_input(step, kernel, 2);
    rondo__step_output(step, 0);
    rondo__step_int(step, c->batch);
    rondo__step_int(step, c->group);
    rondo__step_int(step, c->channels / c->group);
    rondo__step_int(step, c->filters / c->group);
    rondo__step_ints(step, form->in, 3);
    rondo__step_ints(step, form->out, 3);
    rondo__step_ints(step, form->kernel, 3);
    rondo__step_ints(step, form->stride, 3);
    rondo__step_ints(step, form->dilation, 3);
    rondo__step_ints(step, form->before, 3);
    rondo__step_ints(step, form->step, 3);
    rondo__step_ints(step, form->width, 3);
}

void rondo__cuda_prepare_conv_transpose(rondo__cuda_kernel *kernel) {
    const rondo__tensor_info *x = rondo__cuda_input(kernel, 0);
    transposed form;
    rondo__defines defines = {0};

    if (!read_transposed(kernel, &form)) {
        return;
    }
    const int64_t filters = form.convolution.filters / form.convolution.group;
    const int64_t blocks = (form.outputs + TILE - 1) / TILE * form.phases;
    const int64_t columns = filters > 32 ? 4 : filters > 16 ? 2 : 1;
    const int64_t filter_tiles = (filters + 16 * columns - 1) / (16 * columns);
    rondo__define_type(&defines, "T", x->dtype);
    if (x->dtype == RONDO_DTYPE_F64) {
        rondo__define_word(&defines, "A", "double");
    }
    if (filters <= FEW_FILTERS || form.convolution.group > GRID_MAX || filter_tiles > GRID_MAX ||
        blocks > INT64_C(1) << 30) {
        const int64_t count = rondo_shape_get_count(&form.convolution.output);
        push_form(rondo__cuda_add_launch(kernel, rondo__cu_conv_transpose, &defines,
                                         "conv_transpose_each", rondo__cuda_blocks(count),
                                         RONDO__CUDA_BLOCK),
                  kernel, &form);
        return;
    }
    rondo__define_int(&defines, "COLUMNS", columns);
    rondo__step *step = rondo__cuda_add_launch(kernel, rondo__cu_conv_transpose, &defines,
                                               "conv_transpose", blocks, RONDO__CUDA_BLOCK);
    if (step != NULL) {
        step->launch.grid[1] = (uint32_t)filter_tiles;
        step->launch.grid[2] = (uint32_t)form.convolution.group;
    }
    push_form(step, kernel, &form);
}

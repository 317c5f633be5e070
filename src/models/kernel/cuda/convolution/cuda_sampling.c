// kernel/cuda/convolution/cuda_sampling.c — GridSample, AffineGrid, RoiAlign and MaxRoiPool; see
// sampling.cu.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/text.h"
#include "cu_sources.h"
#include "kernel/cuda/cuda_families.h"
#include "op/reference.h"

enum { SPATIAL_MAX = 3, GRID_Y_MAX = 64 };

// Products and sums as the reference rounds them.
static void define_places(rondo__defines *defines) {
    rondo__define_option(defines, "-fmad=false");
}

static rondo__step *add_elements(rondo__cuda_kernel *kernel, rondo__defines *defines,
                                 const char *name, int64_t count) {
    rondo__step *step = rondo__cuda_add_launch(kernel, rondo__cu_sampling, defines, name,
                                               rondo__cuda_blocks(count), RONDO__CUDA_BLOCK);
    rondo__step_int(step, count);
    return step;
}

static void define_range(rondo__defines *defines, rondo_dtype dtype) {
    if (rondo__dtype_is_integer(dtype)) {
        char text[32];
        (void)rondo__text_print(text, sizeof text, "%.17g", rondo__saturate(-1e30, dtype));
        rondo__define_text(defines, "WHOLE_LOW", text);
        (void)rondo__text_print(text, sizeof text, "%.17g", rondo__saturate(1e30, dtype));
        rondo__define_text(defines, "WHOLE_HIGH", text);
    }
}

void rondo__cuda_prepare_grid_sample(rondo__cuda_kernel *kernel) {
    static const char *const modes[] = {"nearest", "linear", "cubic"};
    static const char *const paddings[] = {"zeros", "border", "reflection"};
    const rondo__op *op = kernel->request->op;
    const rondo_shape *x = &rondo__cuda_input(kernel, 0)->shape;
    const rondo_shape *y = &rondo__cuda_output(kernel, 0)->shape;
    const char *mode = rondo__op_get_string(op, "mode", "linear");
    const char *padding = rondo__op_get_string(op, "padding_mode", "zeros");
    const rondo_dtype dtype = rondo__cuda_input(kernel, 0)->dtype;
    rondo__defines defines = {0};
    const int32_t rank = x->rank - 2;
    if (rank > SPATIAL_MAX) {
        rondo__cuda_refuse(kernel, "more than three spatial extents");
        return;
    }
    mode += strncmp(mode, "bi", 2) == 0 ? 2 : 0;  // as before version 20
    for (int i = 0; i < 3; i++) {
        if (strcmp(mode, modes[i]) == 0) {
            rondo__define_int(&defines, "MODE", i);
        }
        if (strcmp(padding, paddings[i]) == 0) {
            rondo__define_int(&defines, "PADDING", i);
        }
    }
    define_places(&defines);
    rondo__define_type(&defines, "T", dtype);
    rondo__define_type(&defines, "G", rondo__cuda_input(kernel, 1)->dtype);
    rondo__define_int(&defines, "RANK", rank);
    rondo__define_int(&defines, "ALIGNS", rondo__op_get_int(op, "align_corners", 0) != 0);
    define_range(&defines, dtype);
    const int64_t places = rondo__cuda_product(y, 2, y->rank);
    rondo__step *step = add_elements(kernel, &defines, "grid_sample", y->extent[0] * places);
    if (step != NULL) {
        const int64_t slices = (x->extent[1] + 3) / 4;
        step->launch.grid[1] = (uint32_t)(slices < 1            ? 1
                                          : slices > GRID_Y_MAX ? GRID_Y_MAX
                                                                : slices);
    }
    rondo__step_input(step, 0);
    rondo__step_input(step, 1);
    rondo__step_output(step, 0);
    rondo__step_int(step, x->extent[1]);
    rondo__step_int(step, rondo__cuda_product(x, 2, x->rank));
    rondo__step_int(step, places);
    for (int32_t d = 0; d < rank; d++) {
        rondo__step_int(step, x->extent[2 + d]);
    }
}

void rondo__cuda_prepare_affine_grid(rondo__cuda_kernel *kernel) {
    const rondo_shape *y = &rondo__cuda_output(kernel, 0)->shape;
    rondo__defines defines = {0};
    const int32_t rank = y->rank - 2;
    define_places(&defines);
    rondo__define_type(&defines, "T", rondo__cuda_input(kernel, 0)->dtype);
    rondo__define_int(&defines, "RANK", rank);
    rondo__define_int(&defines, "ALIGNS",
                      rondo__op_get_int(kernel->request->op, "align_corners", 0) != 0);
    rondo__step *step = add_elements(kernel, &defines, "affine_grid", rondo_shape_get_count(y));
    rondo__step_input(step, 0);
    rondo__step_output(step, 0);
    for (int32_t d = 0; d < rank; d++) {
        rondo__step_int(step, y->extent[1 + d]);
    }
}

static void add_boxes(rondo__cuda_kernel *kernel, const char *name, bool has_batches, int64_t ratio,
                      bool is_half_pixel, bool takes_max) {
    const rondo__op *op = kernel->request->op;
    const rondo_shape *x = &rondo__cuda_input(kernel, 0)->shape;
    const rondo_shape *y = &rondo__cuda_output(kernel, 0)->shape;
    rondo__defines defines = {0};
    define_places(&defines);
    rondo__define_type(&defines, "T", rondo__cuda_input(kernel, 0)->dtype);
    rondo__define_type(&defines, "G", rondo__cuda_input(kernel, 1)->dtype);
    rondo__step *step = add_elements(kernel, &defines, name, rondo_shape_get_count(y));
    rondo__step_input(step, 0);
    rondo__step_input(step, 1);
    if (has_batches) {
        rondo__step_input(step, 2);
    } else {
        rondo__step_int(step, 0);
    }
    rondo__step_output(step, 0);
    for (int32_t d = 0; d < 4; d++) {
        rondo__step_int(step, x->extent[d]);
    }
    rondo__step_int(step, y->extent[2]);
    rondo__step_int(step, y->extent[3]);
    rondo__step_int(step, ratio);
    rondo__step_int(step, is_half_pixel);
    rondo__step_int(step, takes_max);
    rondo__step_float(step, (double)rondo__op_get_float(op, "spatial_scale", 1.0f));
    rondo__step_faults(step, kernel, RONDO__FAULT_BOX);
}

void rondo__cuda_prepare_roi_align(rondo__cuda_kernel *kernel) {
    const rondo__op *op = kernel->request->op;
    const char *transform = rondo__op_get_string(
        op, "coordinate_transformation_mode", op->opset < 16 ? "output_half_pixel" : "half_pixel");
    add_boxes(kernel, "roi_align", true, rondo__op_get_int(op, "sampling_ratio", 0),
              strcmp(transform, "half_pixel") == 0,
              strcmp(rondo__op_get_string(op, "mode", "avg"), "max") == 0);
}

void rondo__cuda_prepare_max_roi_pool(rondo__cuda_kernel *kernel) {
    add_boxes(kernel, "max_roi_pool", false, 0, false, true);
}

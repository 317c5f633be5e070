// kernel/cuda/convolution/cuda_space_to_depth.c — rondo.SpaceToDepth; see space_to_depth.cu.
// SPDX-License-Identifier: Apache-2.0
#include "op/image/space_to_depth.h"

#include "cu_sources.h"
#include "kernel/cuda/cuda_families.h"

enum { THREADS = 128, ACCESS_BYTES = 16 };

static const int64_t most = INT32_MAX;

// Pixels of a row that can be read at once: as many as divide all that a run must not cross.
static int64_t find_run(const rondo__space_to_depth *s, int64_t width, size_t element_bytes) {
    int64_t run = s->pixel_stride[1] == 1 ? ACCESS_BYTES / (int64_t)element_bytes : 1;
    while (width % run != 0 || s->block[1] % run != 0 || s->before[1] % run != 0 ||
           s->image[1] % run != 0) {
        run /= 2;
    }
    return run;
}

// The text counts pixels in 32 bits.
static bool is_small_enough(const rondo__space_to_depth *s) {
    for (int d = 0; d < RONDO__SPACE_AXES; d++) {
        if (s->image[d] > most || s->output.extent[1 + d] * s->block[d] > most) {
            return false;
        }
    }
    return true;
}

static void push_form(rondo__step *step, const rondo__space_to_depth *s, int64_t pieces) {
    rondo__step_input(step, 0);
    rondo__step_output(step, 0);
    rondo__step_int(step, pieces);
    rondo__step_int(step, s->output.extent[1]);
    rondo__step_int(step, s->output.extent[2]);
    rondo__step_int(step, s->image[0]);
    rondo__step_int(step, s->image[1]);
    rondo__step_int(step, s->before[0]);
    rondo__step_int(step, s->before[1]);
    rondo__step_int(step, s->image_stride);
    rondo__step_int(step, s->channel_stride);
    rondo__step_int(step, s->pixel_stride[0]);
    rondo__step_int(step, s->pixel_stride[1]);
}

void rondo__cuda_prepare_space_to_depth(rondo__cuda_kernel *kernel) {
    const rondo__tensor_info *x = rondo__cuda_input(kernel, 0);
    rondo__space_to_depth s;
    rondo__defines defines = {0};
    if (!rondo__cuda_check(kernel,
                           rondo__space_to_depth_init(kernel->request->op, &x->shape, &s))) {
        return;
    }
    if (!is_small_enough(&s)) {
        rondo__cuda_refuse(kernel, "an image of 2^31 rows or columns");
        return;
    }
    int64_t width = ACCESS_BYTES / (int64_t)rondo_dtype_get_bytes(s.dtype);
    while (s.output.extent[3] % width != 0) {
        width /= 2;
    }
    const int64_t count = rondo_shape_get_count(&s.output);
    const bool is_small = count < most && rondo_shape_get_count(&x->shape) < most;
    rondo__define_type(&defines, "FROM", x->dtype);
    rondo__define_type(&defines, "TO", s.dtype);
    rondo__define_word(&defines, "INDEX", is_small ? "u32" : "u64");
    rondo__define_int(&defines, "BLOCK_Y", s.block[0]);
    rondo__define_int(&defines, "BLOCK_X", s.block[1]);
    rondo__define_int(&defines, "DEPTH", s.depth);
    rondo__define_int(&defines, "WIDTH", width);
    rondo__define_int(&defines, "PIECES", s.output.extent[3] / width);
    rondo__define_int(&defines, "RUN", find_run(&s, width, rondo_dtype_get_bytes(x->dtype)));
    rondo__define_int(&defines, "SATURATE", s.saturates);
    rondo__step *step =
        rondo__cuda_add_launch(kernel, rondo__cu_space_to_depth, &defines, "space_to_depth",
                               (count / width + THREADS - 1) / THREADS, THREADS);
    push_form(step, &s, count / width);
}

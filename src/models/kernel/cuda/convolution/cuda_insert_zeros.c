// kernel/cuda/convolution/cuda_insert_zeros.c — rondo.InsertZeros; see insert_zeros.cu.
// SPDX-License-Identifier: Apache-2.0
#include "cu_sources.h"
#include "kernel/cuda/cuda_families.h"

void rondo__cuda_prepare_insert_zeros(rondo__cuda_kernel *kernel) {
    const rondo__tensor_info *x = rondo__cuda_input(kernel, 0);
    const rondo__op *op = kernel->request->op;
    const bool is_last = rondo__op_get_int(op, "channels_last", 0) != 0;
    const int64_t *image = x->shape.extent + (is_last ? 1 : 2);
    const size_t bytes = rondo_dtype_get_bytes(x->dtype);
    const int64_t inner = is_last ? x->shape.extent[3] : 1;
    size_t pack = 16;
    size_t count = 0;
    const int64_t *steps = rondo__op_get_ints(op, "strides", &count);
    rondo__defines defines = {0};
    while ((size_t)inner * bytes % pack != 0) {
        pack /= 2;
    }
    rondo__define_bytes(&defines, "P", pack);
    rondo__define_int(&defines, "HEIGHT", image[0]);
    rondo__define_int(&defines, "WIDE", image[1]);
    rondo__define_int(&defines, "STEP_Y", steps[0]);
    rondo__define_int(&defines, "STEP_X", steps[1]);
    rondo__define_int(&defines, "INNER", inner * (int64_t)bytes / (int64_t)pack);
    const int64_t all = rondo_shape_get_count(&rondo__cuda_output(kernel, 0)->shape) *
                        (int64_t)bytes / (int64_t)pack;
    rondo__step *step =
        rondo__cuda_add_launch(kernel, rondo__cu_insert_zeros, &defines, "insert_zeros",
                               rondo__cuda_blocks(all), RONDO__CUDA_BLOCK);
    rondo__step_input(step, 0);
    rondo__step_output(step, 0);
    rondo__step_int(step, all);
}

// kernel/cuda/arrange/cuda_spread.c — MaxUnpool, Col2Im and ReverseSequence; see spread.cu.
// SPDX-License-Identifier: Apache-2.0
#include "cu_sources.h"
#include "kernel/cuda/cuda_families.h"

static rondo__step *add_elements(rondo__cuda_kernel *kernel, rondo__defines *defines,
                                 const char *name, int64_t count) {
    rondo__step *step = rondo__cuda_add_launch(kernel, rondo__cu_spread, defines, name,
                                               rondo__cuda_blocks(count), RONDO__CUDA_BLOCK);
    rondo__step_int(step, count);
    return step;
}

// Entry `index` of an attribute that may be absent.
static int64_t get_entry(const rondo__op *op, const char *name, size_t index, int64_t fallback) {
    size_t count;
    const int64_t *values = rondo__op_get_ints(op, name, &count);
    return values != NULL && index < count ? values[index] : fallback;
}

void rondo__cuda_prepare_max_unpool(rondo__cuda_kernel *kernel) {
    const rondo__op *op = kernel->request->op;
    const rondo__tensor_info *x = rondo__cuda_input(kernel, 0);
    const rondo__tensor_info *y = rondo__cuda_output(kernel, 0);
    const size_t bytes = rondo_dtype_get_bytes(x->dtype);
    const size_t spatial = (size_t)x->shape.rank - 2;
    rondo_shape pooled = x->shape;
    rondo__defines defines = {0};

    for (size_t i = 0; i < spatial; i++) {
        pooled.extent[2 + i] = (pooled.extent[2 + i] - 1) * get_entry(op, "strides", i, 1) +
                               get_entry(op, "kernel_shape", i, 1) - get_entry(op, "pads", i, 0) -
                               get_entry(op, "pads", spatial + i, 0);
    }
    (void)rondo__cuda_add_zero(kernel, rondo__address_output(0),
                               (size_t)rondo_shape_get_count(&y->shape) * bytes);
    rondo__define_bytes(&defines, "T", bytes);
    rondo__define_int(&defines, "RANK", x->shape.rank);
    rondo__step *step =
        add_elements(kernel, &defines, "max_unpool", rondo_shape_get_count(&x->shape));
    rondo__step_input(step, 0);
    rondo__step_input(step, 1);
    rondo__step_output(step, 0);
    rondo__step_int(step, rondo_shape_get_count(&pooled));
    rondo__step_ints(step, pooled.extent, x->shape.rank);
    rondo__step_ints(step, y->shape.extent, x->shape.rank);
    rondo__step_faults(step, kernel, RONDO__FAULT_INDEX);
}

void rondo__cuda_prepare_columns(rondo__cuda_kernel *kernel) {
    const rondo__op *op = kernel->request->op;
    const rondo__tensor_info *x = rondo__cuda_input(kernel, 0);
    const rondo_shape *y = &rondo__cuda_output(kernel, 0)->shape;
    int64_t block[RONDO_RANK_MAX], positions[RONDO_RANK_MAX], stride[RONDO_RANK_MAX];
    int64_t dilation[RONDO_RANK_MAX], before[RONDO_RANK_MAX];
    const int32_t rank = y->rank - 2;
    rondo__defines defines = {0};

    if (rondo__cuda_read_ints(kernel, 2, block, RONDO_RANK_MAX) != rank) {
        rondo__cuda_refuse(kernel, "a block shape of this form");
        return;
    }
    for (int32_t d = 0; d < rank; d++) {
        const size_t i = (size_t)d;
        stride[d] = get_entry(op, "strides", i, 1);
        dilation[d] = get_entry(op, "dilations", i, 1);
        before[d] = get_entry(op, "pads", i, 0);
        const int64_t room = y->extent[2 + d] + before[d] +
                             get_entry(op, "pads", (size_t)rank + i, 0) -
                             dilation[d] * (block[d] - 1) - 1;
        positions[d] = room < 0 ? 0 : room / stride[d] + 1;
    }
    rondo__define_type(&defines, "T", x->dtype);
    rondo__define_int(&defines, "RANK", rank);
    rondo__step *step =
        add_elements(kernel, &defines, "columns_to_image", rondo_shape_get_count(y));
    rondo__step_input(step, 0);
    rondo__step_output(step, 0);
    rondo__step_int(step, y->extent[1] > 0 ? x->shape.extent[1] / y->extent[1] : 0);
    rondo__step_int(step, x->shape.extent[2]);
    rondo__step_ints(step, block, rank);
    rondo__step_ints(step, positions, rank);
    rondo__step_ints(step, y->extent + 2, rank);
    rondo__step_ints(step, stride, rank);
    rondo__step_ints(step, dilation, rank);
    rondo__step_ints(step, before, rank);
}

void rondo__cuda_prepare_reverse_sequence(rondo__cuda_kernel *kernel) {
    const rondo__tensor_info *x = rondo__cuda_input(kernel, 0);
    rondo__defines defines = {0};
    if (x->dtype == RONDO_DTYPE_STRING) {
        rondo__cuda_refuse(kernel, "strings");
        return;
    }
    // Pairs of doubles are twice as many words.
    const size_t bytes = rondo_dtype_get_bytes(x->dtype);
    const int64_t words = bytes > 8 ? (int64_t)(bytes / 8) : 1;
    rondo__define_bytes(&defines, "T", bytes / (size_t)words);
    rondo__step *step = add_elements(kernel, &defines, "reverse_sequence",
                                     rondo_shape_get_count(&x->shape) * words);
    rondo__step_input(step, 0);
    rondo__step_input(step, 1);
    rondo__step_output(step, 0);
    rondo__step_int(step, x->shape.extent[0]);
    rondo__step_int(step, x->shape.extent[1]);
    rondo__step_int(step, rondo__cuda_product(&x->shape, 2, x->shape.rank) * words);
    rondo__step_int(step, rondo__op_get_int(kernel->request->op, "time_axis", 0) == 0);
    rondo__step_faults(step, kernel, RONDO__FAULT_LENGTH);
}

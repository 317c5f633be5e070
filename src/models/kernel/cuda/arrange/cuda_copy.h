// kernel/cuda/arrange/cuda_copy.h — one strided move, the common form of all ops that only
// rearrange.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/cuda/cuda_steps.h"

enum { RONDO__COPY_RANK_MAX = 16 };

// y[offset_y + sum i_d * stride_y[d]] = x[offset_x + sum i_d * stride_x[d]], for all i below
// extent. Strides and offsets count elements; strides of x may be 0 or negative.
typedef struct rondo__strided_copy {
    size_t element_bytes;
    rondo__address from, to;
    int64_t offset_x, offset_y;
    int32_t rank;
    int64_t extent[RONDO__COPY_RANK_MAX];
    int64_t stride_x[RONDO__COPY_RANK_MAX];
    int64_t stride_y[RONDO__COPY_RANK_MAX];
} rondo__strided_copy;

// Appends an extent with its strides.
void rondo__strided_copy_push(rondo__strided_copy *copy, int64_t extent, int64_t stride_x,
                              int64_t stride_y);
// Simplifies and adds the cheapest step that does it.
void rondo__cuda_add_strided_copy(rondo__cuda_kernel *kernel, rondo__strided_copy *copy);

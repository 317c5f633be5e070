// kernel/cuda/convolution/cuda_window.h — the sliding window of convolutions and pools, in numbers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/cuda/cuda_steps.h"

// Three spatial extents; models with fewer have extents of 1 in front.
typedef struct rondo__window {
    bool channels_last;
    int32_t spatial_rank;  // as the model has it
    int64_t batch, channels_in, channels_out;
    int64_t in[3], out[3];
    int64_t kernel[3], stride[3], dilation[3], before[3], after[3];
} rondo__window;

// Reads attributes, resolves auto_pad, and spreads the extents of x and y. `kernel_shape` NULL
// takes the attribute of that name. False, and refused, for more than three spatial extents.
bool rondo__cuda_read_window(rondo__cuda_kernel *kernel, const int64_t *kernel_shape,
                             rondo__window *out_window);
// The same of images that are not input 0 and output 0.
bool rondo__cuda_spread_window(rondo__cuda_kernel *kernel, const rondo_shape *x,
                               const rondo_shape *y, bool channels_last,
                               const int64_t *kernel_shape, rondo__window *out_window);

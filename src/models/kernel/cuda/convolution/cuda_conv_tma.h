// kernel/cuda/convolution/cuda_conv_tma.h — convolutions on Hopper's tensor cores, whose operands
// the tensor memory accelerator copies: conv_tma.cu.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/cuda/convolution/cuda_convolution.h"

// A tile of m pixels x n filters, by `split` blocks; `stages` buffers for 64 elements of the inner
// extent, more where a step has fewer, and at most one for each step.
typedef struct rondo__cuda_tma_tile {
    int64_t m, n;
    int32_t stages, split;
} rondo__cuda_tma_tile;

// Whether the device has the copies and products that these kernels are made of.
bool rondo__cuda_has_tma(rondo_device *device);
// Whether the kernel is for the convolution, one that suits tensor cores, on this device.
bool rondo__cuda_suits_tma(const rondo__cuda_kernel *kernel,
                           const rondo__cuda_convolution *convolution);
// Where the channels of a second convolution may begin in a filter.
int64_t rondo__cuda_align_second(const rondo__window *window);
// Whether the filters are applied to single pixels: a matrix product.
bool rondo__cuda_is_point(const rondo__window *window);
// Buffers that its blocks use: no more than a block has steps.
int64_t rondo__cuda_get_tma_stages(const rondo__cuda_convolution *convolution,
                                   const rondo__cuda_tma_tile *tile);
// Shared memory of a block.
int64_t rondo__cuda_get_tma_bytes(const rondo__cuda_convolution *convolution,
                                  const rondo__cuda_tma_tile *tile);
// How it ends, by this kernel and conv_tensor.cu.
rondo__cuda_ending rondo__cuda_get_ending(const rondo__cuda_convolution *convolution);
void rondo__cuda_add_tma(rondo__cuda_kernel *kernel, const rondo__cuda_convolution *convolution,
                         const rondo__cuda_tma_tile *tile);

// kernel/cuda/convolution/cuda_conv_tensor.h — convolutions on tensor cores by our own kernels,
// conv_tensor.cu and, on Hopper, conv_tma.cu.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/cuda/convolution/cuda_convolution.h"

enum { RONDO__CUDA_TENSOR_PLANS = 24 };  // at most

// How many candidates there are for this device, the best by estimate first; 0 when the convolution
// is not for it.
size_t rondo__cuda_count_tensor_plans(const rondo__cuda_kernel *kernel,
                                      const rondo__cuda_convolution *convolution);
void rondo__cuda_add_tensor_plan(rondo__cuda_kernel *kernel,
                                 const rondo__cuda_convolution *convolution, size_t plan);
// "tma 64x32 stages 6 split 2", "tensor 64x32 2 2 mma split 2": tile, buffers or warps, split.
void rondo__cuda_describe_tensor_plan(const rondo__cuda_kernel *kernel,
                                      const rondo__cuda_convolution *convolution, size_t plan,
                                      char *text, size_t text_bytes);

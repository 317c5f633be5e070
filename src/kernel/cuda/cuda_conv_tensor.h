// kernel/cuda/cuda_conv_tensor.h — convolutions on tensor cores by our own kernel, conv_tensor.cu.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_KERNEL_CUDA_CONV_TENSOR_H
#define RONDO_KERNEL_CUDA_CONV_TENSOR_H

#include "kernel/cuda/cuda_convolution.h"

enum { RONDO__CUDA_TENSOR_PLANS = 24 };  // at most

// How many candidates there are for this device, the best by estimate first; 0 when the convolution
// is not for it.
size_t rondo__cuda_count_tensor_plans(const rondo__cuda_kernel *kernel,
                                      const rondo__cuda_convolution *convolution);
void rondo__cuda_add_tensor_plan(rondo__cuda_kernel *kernel,
                                 const rondo__cuda_convolution *convolution, size_t plan);
// "tensor 64x32 4 2 wgmma split 2": tile, warps, instruction, split.
void rondo__cuda_describe_tensor_plan(const rondo__cuda_kernel *kernel,
                                      const rondo__cuda_convolution *convolution, size_t plan,
                                      char *text, size_t text_bytes);

#endif  // RONDO_KERNEL_CUDA_CONV_TENSOR_H

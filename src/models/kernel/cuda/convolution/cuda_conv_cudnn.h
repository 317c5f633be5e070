// kernel/cuda/convolution/cuda_conv_cudnn.h — convolutions by cuDNN.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/cuda/convolution/cuda_convolution.h"

// What cuDNN offers for a convolution: its graph, and the engines its
// heuristics propose, best first, less those that do not suit us. Asking takes much longer than
// choosing, so it is asked once. `fuses`: the epilogue is part of cuDNN's graph; otherwise ours
// follows.
typedef struct rondo__cudnn_menu rondo__cudnn_menu;

enum { RONDO__CUDNN_PLANS = 8 };  // the most a menu lists

// NULL, and refused, where cuDNN is absent or cannot do the graph. Free with the function below.
rondo__cudnn_menu *rondo__cuda_open_cudnn_menu(rondo__cuda_kernel *kernel,
                                               const rondo__cuda_convolution *convolution,
                                               bool fuses);
void rondo__cuda_close_cudnn_menu(rondo__cudnn_menu *menu);
// Adds engine `plan` of the menu; refuses when it has fewer.
void rondo__cuda_add_cudnn_plan(rondo__cuda_kernel *kernel, const rondo__cudnn_menu *menu,
                                size_t plan);
// The version, 0 when the library is absent; part of names of its plans. Both load it.
size_t rondo__cuda_get_cudnn_version(const rondo__cuda_kernel *kernel);
bool rondo__cuda_has_cudnn(const rondo__cuda_kernel *kernel);

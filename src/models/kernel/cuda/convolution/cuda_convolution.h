// kernel/cuda/convolution/cuda_convolution.h — one convolution in numbers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/cuda/convolution/cuda_window.h"
#include "kernel/cuda/elementwise/cuda_epilogue.h"
#include "kernel/cuda/normalize/cuda_row_norm.h"

// y = act(conv(x, w) + bias + residual). Weights lie as ONNX has them, [filters, channels of a
// group, taps], when channels come first; as [filters, taps, channels of a group] when they come
// last, or as [taps, channels] when the convolution is depthwise, too.
typedef struct rondo__cuda_convolution {
    rondo_dtype dtype, y_dtype;  // which differ for the tensor core kernel alone
    rondo__window window;
    int64_t groups;
    bool is_depthwise;
    int64_t taps;
    int64_t pixels;        // of all images of y
    int64_t weight_pitch;  // elements of a filter
    rondo__address x, w, y;
    rondo__cuda_epilogue epilogue;
    // The other way: x and the change of y are given, and that of w, of this type, is made; by
    // cuDNN alone. NONE: y is made.
    rondo_dtype weights_dtype;
    // Of a product as a 1 x 1 convolution by the tensor core kernel: rows of x are normalised
    // first, and the epilogue has no bias. NULL: they are not.
    const rondo__cuda_row_norm *norm;
    // Of a product alone, by conv_tma.cu: x lies as [x_depth, pixels], and w has zeros behind
    // x_depth columns. 0: it lies as pixels of channels.
    int64_t x_depth;
    // A second convolution by single pixels, added by conv_tma.cu alone: its channels begin at
    // second_at elements of a filter.
    bool has_second;
    rondo__window second;
    rondo__address second_x;
    int64_t second_at;
} rondo__cuda_convolution;

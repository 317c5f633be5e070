// kernel/cuda/cuda_convolution.h — one convolution in numbers, and the ways to do it.
#ifndef RONDO_KERNEL_CUDA_CONVOLUTION_H
#define RONDO_KERNEL_CUDA_CONVOLUTION_H

#include "kernel/cuda/cuda_window.h"
#include "op/fused.h"

typedef struct rondo__cuda_epilogue {
    rondo__activation activation;
    float alpha, beta;
    bool has_bias, has_residual;
    rondo__address bias, residual;
} rondo__cuda_epilogue;

// y = act(conv(x, w) + bias + residual). Weights lie as ONNX has them, [filters, channels of a
// group, taps], when channels come first; as [filters, taps, channels of a group] when they come
// last, or as [taps, channels] when the convolution is depthwise, too.
typedef struct rondo__cuda_convolution {
    rondo_dtype dtype;
    rondo__window window;
    int64_t groups;
    bool is_depthwise;
    int64_t taps;
    int64_t pixels;        // of all images of y
    int64_t weight_pitch;  // elements of a filter; more than taps * channels when padded
    rondo__address x, w, y;
    rondo__cuda_epilogue epilogue;
} rondo__cuda_convolution;

// Attributes activation, alpha and beta of a fused op; an op of a file has none.
bool rondo__cuda_read_epilogue(rondo__cuda_kernel *kernel, rondo__cuda_epilogue *out_epilogue);
void rondo__step_epilogue_addresses(rondo__step *step, const rondo__cuda_epilogue *epilogue);

// Tensor cores, our own kernel (cuda_conv_tensor.c): how many candidates there are for this device;
// 0 when the convolution is not for it.
size_t rondo__cuda_count_tensor_plans(const rondo__cuda_kernel *kernel,
                                      const rondo__cuda_convolution *convolution);
void rondo__cuda_add_tensor_plan(rondo__cuda_kernel *kernel,
                                 const rondo__cuda_convolution *convolution, size_t plan);
// Whether our tensor core kernel wants filters padded to a multiple of 8 elements.
bool rondo__cuda_is_stem(const rondo__cuda_kernel *kernel,
                         const rondo__cuda_convolution *convolution);

// What cuDNN offers for a convolution (cuda_conv_cudnn.c): its graph, and the engines its
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
// The version, 0 when the library is absent; part of tuning keys.
size_t rondo__cuda_get_cudnn_version(const rondo__cuda_kernel *kernel);

#endif  // RONDO_KERNEL_CUDA_CONVOLUTION_H

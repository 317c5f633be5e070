// kernel/cuda/cuda_families.h — the op families of the CUDA room; kernel_cuda.c maps op names here.
//
// Each function adds the steps of one op to the kernel, or refuses (UNSUPPORTED sticks). The
// request is kernel->request; outputs are never empty when it is called.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/text.h"
#include "kernel/cuda/cuda_steps.h"

#define RONDO_CUDA_FAMILY_MAP(X) \
    X(elementwise)               \
    X(fused_elementwise)         \
    X(update)                    \
    X(finite)                    \
    X(round_parts)               \
    X(batch_normalization)       \
    X(view)                      \
    X(transpose)                 \
    X(concat)                    \
    X(fused_concat)              \
    X(split)                     \
    X(slice)                     \
    X(expand)                    \
    X(tile)                      \
    X(depth_space)               \
    X(space_to_depth)            \
    X(pad)                       \
    X(gather)                    \
    X(gather_elements)           \
    X(gather_nd)                 \
    X(scatter_elements)          \
    X(scatter_nd)                \
    X(constant_of_shape)         \
    X(range)                     \
    X(one_hot)                   \
    X(cum_sum)                   \
    X(trilu)                     \
    X(eye_like)                  \
    X(reduce)                    \
    X(arg_extreme)               \
    X(top_k)                     \
    X(non_zero)                  \
    X(compress)                  \
    X(best_rows)                 \
    X(unique)                    \
    X(suppression)               \
    X(softmax)                   \
    X(layer_normalization)       \
    X(group_normalization)       \
    X(fused_group_normalization) \
    X(lrn)                       \
    X(pool)                      \
    X(convolution)               \
    X(matmul)                    \
    X(bits_product)              \
    X(gather_bits)               \
    X(norm_product)              \
    X(row_product)               \
    X(append_attention)          \
    X(recurrent)                 \
    X(resize)                    \
    X(grid_sample)               \
    X(affine_grid)               \
    X(roi_align)                 \
    X(max_roi_pool)              \
    X(max_unpool)                \
    X(columns)                   \
    X(reverse_sequence)          \
    X(center_crop_pad)           \
    X(lp_normalization)          \
    X(hardmax)                   \
    X(loss)                      \
    X(loss_gradient)             \
    X(dft)                       \
    X(stft)                      \
    X(cosine_window)             \
    X(optimize)                  \
    X(einsum)                    \
    X(deform_conv)               \
    X(determinant)               \
    X(axes_normalization)        \
    X(batch_training)            \
    X(norm_gradient)             \
    X(dropout)                   \
    X(conv_transpose)            \
    X(conv_weights)              \
    X(insert_zeros)              \
    X(turn_filters)              \
    X(lay_filters)               \
    X(unfold)                    \
    X(pool_gradient)             \
    X(attention)                 \
    X(attention_form)            \
    X(attention_gradient)        \
    X(rotary)                    \
    X(rotate)                    \
    X(cache_write)               \
    X(linear_attention)          \
    X(causal_conv)               \
    X(quantize)                  \
    X(dequantize)                \
    X(dynamic_quantize)          \
    X(quantize_lstm)             \
    X(matmul_integer)            \
    X(qlinear_matmul)            \
    X(conv_integer)              \
    X(qlinear_add)               \
    X(qlinear_conv)

#define RONDO_CUDA_FAMILY_DECLARE(family) \
    void rondo__cuda_prepare_##family(rondo__cuda_kernel *kernel);
RONDO_CUDA_FAMILY_MAP(RONDO_CUDA_FAMILY_DECLARE)
#undef RONDO_CUDA_FAMILY_DECLARE

// What the family of normalisations by groups does with channels last where rows are too wide for a
// block.
void rondo__cuda_add_strided_norm(rondo__cuda_kernel *kernel);
// What the family of pools does where a window is a whole image, channels first: a mean or maximum.
void rondo__cuda_add_global_pool(rondo__cuda_kernel *kernel, bool is_average);

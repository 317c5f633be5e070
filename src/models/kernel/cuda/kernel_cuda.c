// kernel/cuda/kernel_cuda.c — which family makes the kernel of an op.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>

#include "base/error.h"
#include "device/device.h"
#include "kernel/cuda/convolution/cuda_conv_tma.h"
#include "kernel/cuda/cuda_families.h"

typedef struct kernel_family {
    void (*prepare)(rondo__cuda_kernel *kernel);
    // Prepares a request with an empty input, for which most kernels have no sums, strides or rows.
    // NULL: the host runs such ops.
    void (*prepare_empty)(rondo__cuda_kernel *kernel);
} kernel_family;

// A product over no elements.
static void add_zeros(rondo__cuda_kernel *kernel) {
    const rondo__tensor_info *y = rondo__cuda_output(kernel, 0);
    (void)rondo__cuda_add_zero(
        kernel, rondo__address_output(0),
        (size_t)rondo_shape_get_count(&y->shape) * rondo_dtype_get_bytes(y->dtype));
}

#define ROW(domain, op, family) [RONDO__##domain##_##op] = {rondo__cuda_prepare_##family, NULL}
// A family that knows the result of no elements.
#define EMPTY(domain, op, family) \
    [RONDO__##domain##_##op] = {rondo__cuda_prepare_##family, rondo__cuda_prepare_##family}
static const kernel_family families[RONDO__OP_ID_COUNT] = {
    // one operand
    ROW(OP, Abs, elementwise),
    ROW(OP, Acos, elementwise),
    ROW(OP, Acosh, elementwise),
    ROW(OP, Asin, elementwise),
    ROW(OP, Asinh, elementwise),
    ROW(OP, Atan, elementwise),
    ROW(OP, Atanh, elementwise),
    ROW(OP, BitwiseNot, elementwise),
    ROW(OP, Cast, elementwise),
    EMPTY(OP, CastLike, elementwise),
    ROW(OP, Ceil, elementwise),
    ROW(OP, Celu, elementwise),
    ROW(OP, Clip, elementwise),
    ROW(OP, Cos, elementwise),
    ROW(OP, Cosh, elementwise),
    ROW(OP, Elu, elementwise),
    ROW(OP, Erf, elementwise),
    ROW(OP, Exp, elementwise),
    ROW(OP, Floor, elementwise),
    ROW(OP, Gelu, elementwise),
    ROW(OP, HardSigmoid, elementwise),
    ROW(OP, HardSwish, elementwise),
    ROW(OP, IsInf, elementwise),
    ROW(OP, IsNaN, elementwise),
    ROW(OP, LeakyRelu, elementwise),
    ROW(OP, Log, elementwise),
    ROW(OP, Mish, elementwise),
    ROW(OP, Neg, elementwise),
    ROW(OP, Not, elementwise),
    ROW(OP, Reciprocal, elementwise),
    ROW(OP, Relu, elementwise),
    ROW(OP, Round, elementwise),
    ROW(OP, Selu, elementwise),
    ROW(OP, Shrink, elementwise),
    ROW(OP, Sigmoid, elementwise),
    ROW(OP, Sign, elementwise),
    ROW(OP, Sin, elementwise),
    ROW(OP, Sinh, elementwise),
    ROW(OP, Softplus, elementwise),
    ROW(OP, Softsign, elementwise),
    ROW(OP, Sqrt, elementwise),
    ROW(OP, Tan, elementwise),
    ROW(OP, Tanh, elementwise),
    ROW(OP, ThresholdedRelu, elementwise),
    // two and more
    ROW(OP, Add, elementwise),
    ROW(OP, And, elementwise),
    ROW(OP, BitShift, elementwise),
    ROW(OP, BitwiseAnd, elementwise),
    ROW(OP, BitwiseOr, elementwise),
    ROW(OP, BitwiseXor, elementwise),
    ROW(OP, Div, elementwise),
    ROW(OP, Equal, elementwise),
    ROW(OP, Greater, elementwise),
    ROW(OP, GreaterOrEqual, elementwise),
    ROW(OP, Less, elementwise),
    ROW(OP, LessOrEqual, elementwise),
    ROW(OP, Max, elementwise),
    ROW(OP, Mean, elementwise),
    ROW(OP, Min, elementwise),
    ROW(OP, Mod, elementwise),
    ROW(OP, Mul, elementwise),
    ROW(OP, Or, elementwise),
    ROW(OP, PRelu, elementwise),
    ROW(OP, Pow, elementwise),
    ROW(OP, Sub, elementwise),
    ROW(OP, Sum, elementwise),
    ROW(OP, SwiGLU, elementwise),
    ROW(OP, Swish, elementwise),
    ROW(OP, Where, elementwise),
    ROW(OP, Xor, elementwise),
    ROW(FUSED, Elementwise, fused_elementwise),
    ROW(FUSED, Update, update),
    ROW(FUSED, Finite, finite),
    ROW(FUSED, RoundParts, round_parts),
    ROW(OP, BatchNormalization, batch_normalization),
    ROW(FUSED, BatchNormalization, batch_training),
    ROW(FUSED, NormGradient, norm_gradient),
    // rearranging
    ROW(OP, Dropout, dropout),
    ROW(OP, BitCast, view),
    ROW(OP, Flatten, view),
    ROW(OP, Identity, view),
    ROW(OP, Reshape, view),
    ROW(OP, Squeeze, view),
    ROW(OP, Unsqueeze, view),
    ROW(OP, Transpose, transpose),
    EMPTY(OP, Concat, concat),
    EMPTY(FUSED, Concat, fused_concat),
    ROW(OP, Split, split),
    ROW(OP, Slice, slice),
    ROW(OP, Expand, expand),
    ROW(OP, Tile, tile),
    ROW(OP, DepthToSpace, depth_space),
    ROW(OP, SpaceToDepth, depth_space),
    ROW(FUSED, SpaceToDepth, space_to_depth),
    EMPTY(OP, Pad, pad),
    EMPTY(OP, CenterCropPad, center_crop_pad),
    ROW(OP, ReverseSequence, reverse_sequence),
    // by index
    ROW(OP, Gather, gather),
    ROW(OP, GatherElements, gather_elements),
    ROW(OP, GatherND, gather_nd),
    EMPTY(OP, Scatter, scatter_elements),
    EMPTY(OP, ScatterElements, scatter_elements),
    EMPTY(OP, ScatterND, scatter_nd),
    ROW(OP, ConstantOfShape, constant_of_shape),
    ROW(OP, Range, range),
    ROW(OP, OneHot, one_hot),
    ROW(OP, CumProd, cum_sum),
    ROW(OP, CumSum, cum_sum),
    ROW(OP, Trilu, trilu),
    ROW(OP, EyeLike, eye_like),
    ROW(OP, TopK, top_k),
    // what they find decides their results' shapes
    ROW(FUSED, BestRows, best_rows),
    ROW(OP, Compress, compress),
    ROW(OP, NonMaxSuppression, suppression),
    ROW(OP, NonZero, non_zero),
    ROW(OP, Unique, unique),
    // statistics
    ROW(OP, ArgMax, arg_extreme),
    ROW(OP, ArgMin, arg_extreme),
    ROW(OP, LogSoftmax, softmax),
    EMPTY(OP, ReduceL1, reduce),
    EMPTY(OP, ReduceL2, reduce),
    EMPTY(OP, ReduceLogSum, reduce),
    EMPTY(OP, ReduceLogSumExp, reduce),
    EMPTY(OP, ReduceMax, reduce),
    EMPTY(OP, ReduceMean, reduce),
    EMPTY(OP, ReduceMin, reduce),
    EMPTY(OP, ReduceProd, reduce),
    EMPTY(OP, ReduceSum, reduce),
    EMPTY(OP, ReduceSumSquare, reduce),
    ROW(OP, Softmax, softmax),
    ROW(FUSED, Softmax, softmax),
    ROW(OP, GroupNormalization, group_normalization),
    ROW(FUSED, GroupNormalization, fused_group_normalization),
    ROW(OP, InstanceNormalization, group_normalization),
    ROW(OP, LayerNormalization, layer_normalization),
    ROW(OP, RMSNormalization, layer_normalization),
    ROW(OP, LRN, lrn),
    ROW(OP, Hardmax, hardmax),
    ROW(OP, LpNormalization, lp_normalization),
    ROW(OP, MeanVarianceNormalization, axes_normalization),
    // losses and optimisers
    ROW(OP, NegativeLogLikelihoodLoss, loss),
    ROW(OP, SoftmaxCrossEntropyLoss, loss),
    ROW(FUSED, LossGradient, loss_gradient),
    ROW(TRAINING, Adagrad, optimize),
    ROW(TRAINING, Adam, optimize),
    ROW(TRAINING, Momentum, optimize),
    // signals
    ROW(OP, BlackmanWindow, cosine_window),
    ROW(OP, DFT, dft),
    ROW(OP, HammingWindow, cosine_window),
    ROW(OP, HannWindow, cosine_window),
    ROW(OP, STFT, stft),
    // windows
    ROW(OP, Conv, convolution),
    ROW(FUSED, Conv, convolution),
    ROW(OP, ConvTranspose, conv_transpose),
    ROW(FUSED, ConvWeights, conv_weights),
    ROW(FUSED, InsertZeros, insert_zeros),
    ROW(FUSED, TurnFilters, turn_filters),
    ROW(FUSED, LayFilters, lay_filters),
    ROW(FUSED, Unfold, unfold),
    ROW(FUSED, PoolGradient, pool_gradient),
    ROW(OP, DeformConv, deform_conv),
    ROW(OP, Resize, resize),
    ROW(OP, Upsample, resize),
    // sequences
    ROW(OP, GRU, recurrent),
    ROW(OP, LSTM, recurrent),
    ROW(OP, RNN, recurrent),
    // products
    ROW(OP, Det, determinant),
    ROW(OP, Einsum, einsum),
    ROW(OP, Gemm, matmul),
    [RONDO__OP_MatMul] = {rondo__cuda_prepare_matmul, add_zeros},
    ROW(FUSED, MatMul, matmul),
    ROW(FUSED, NormMatMul, norm_product),
    ROW(FUSED, RowProduct, row_product),
    ROW(FUSED, BitsRow, bits_product),
    ROW(FUSED, Attention, attention),
    ROW(FUSED, AttentionGradient, attention_gradient),
    ROW(FUSED, AppendAttention, append_attention),
    EMPTY(OP, Attention, attention_form),
    ROW(OP, CausalConvWithState, causal_conv),
    ROW(OP, LinearAttention, linear_attention),
    ROW(OP, RotaryEmbedding, rotary),
    ROW(FUSED, Rotate, rotate),
    ROW(OP, TensorScatter, cache_write),
    EMPTY(MS, Attention, attention_form),
    EMPTY(MS, DecoderMaskedMultiHeadAttention, attention_form),
    EMPTY(MS, GroupQueryAttention, attention_form),
    EMPTY(MS, MultiHeadAttention, attention_form),
    ROW(MS, RotaryEmbedding, rotary),
    // 8-bit integers
    ROW(OP, ConvInteger, conv_integer),
    ROW(OP, DequantizeLinear, dequantize),
    ROW(OP, DynamicQuantizeLinear, dynamic_quantize),
    ROW(MS, DynamicQuantizeLSTM, quantize_lstm),
    ROW(MS, FusedMatMul, matmul),
    ROW(MS, GatherBlockQuantized, gather_bits),
    ROW(MS, MatMulNBits, bits_product),
    ROW(MS, TransposeMatMul, matmul),
    ROW(OP, MatMulInteger, matmul_integer),
    ROW(OP, QLinearConv, qlinear_conv),
    ROW(OP, QLinearMatMul, qlinear_matmul),
    ROW(OP, QuantizeLinear, quantize),
    ROW(FUSED, ConvInteger, conv_integer),
    ROW(FUSED, MatMulInteger, matmul_integer),
    ROW(FUSED, QLinearAdd, qlinear_add),
    ROW(FUSED, QLinearConv, qlinear_conv),
    ROW(OP, AveragePool, pool),
    ROW(OP, GlobalAveragePool, pool),
    ROW(OP, GlobalMaxPool, pool),
    ROW(OP, MaxPool, pool),
    ROW(OP, GlobalLpPool, pool),
    ROW(OP, LpPool, pool),
    ROW(OP, MaxUnpool, max_unpool),
    ROW(OP, Col2Im, columns),
    ROW(OP, GridSample, grid_sample),
    ROW(OP, AffineGrid, affine_grid),
    ROW(OP, RoiAlign, roi_align),
    ROW(OP, MaxRoiPool, max_roi_pool),
    ROW(FUSED, AveragePool, pool),
    ROW(FUSED, GlobalAveragePool, pool),
    ROW(FUSED, MaxPool, pool),
};
#undef ROW
#undef EMPTY

// ---- preparing --------------------------------------------------------------------------------

static bool has_work(const rondo__kernel_request *request) {
    for (size_t i = 0; i < request->output_count; i++) {
        if (request->outputs[i].dtype != RONDO_DTYPE_NONE &&
            rondo_shape_get_count(&request->outputs[i].shape) > 0) {
            return true;
        }
    }
    return false;
}

static bool has_empty_input(const rondo__kernel_request *request) {
    for (size_t i = 0; i < request->input_count; i++) {
        if (request->inputs[i].dtype != RONDO_DTYPE_NONE && request->inputs[i].constant == NULL &&
            rondo_shape_get_count(&request->inputs[i].shape) == 0) {
            return true;
        }
    }
    return false;
}

// Pairs of doubles move like other elements, but some kernels have no word for one.
static bool lacks_wide_words(const rondo__kernel_request *request) {
    const rondo__op_id id = request->op->def->id;
    return request->output_count > 0 && request->outputs[0].dtype == RONDO_DTYPE_C128 &&
           (id == RONDO__OP_ConstantOfShape || id == RONDO__OP_OneHot || id == RONDO__OP_Pad ||
            id == RONDO__OP_Where);
}

static rondo_status prepare(const rondo__kernel_request *request, rondo__kernel **out_kernel) {
    *out_kernel = NULL;
    const kernel_family *family = &families[request->op->def->id];
    if (family->prepare == NULL) {
        return rondo__op_fail_unsupported(request->op, "no CUDA kernel");
    }
    if (lacks_wide_words(request)) {
        return rondo__op_fail_unsupported(request->op, "CUDA kernel for c128");
    }
    const bool works = has_work(request);
    const bool is_empty = works && has_empty_input(request);
    if (is_empty && family->prepare_empty == NULL) {
        return rondo__op_fail_unsupported(request->op, "CUDA kernel for an input without elements");
    }
    rondo__cuda_kernel *kernel = NULL;
    RETURN_IF_ERROR(rondo__cuda_begin_kernel(request, &kernel));
    if (!request->is_survey) {
        rondo__cuda_name_request(kernel);
    }
    if (works && !rondo__cuda_restore_kernel(kernel)) {
        (is_empty ? family->prepare_empty : family->prepare)(kernel);
    }
    return rondo__cuda_finish_kernel(kernel, out_kernel);
}

static void get_level(rondo_device *device, char *text, size_t text_bytes) {
    rondo_device_info info = {.struct_size = sizeof info};
    const bool is_known = rondo__device_get_facts(device, &info) == RONDO_STATUS_OK;
    (void)snprintf(text, text_bytes, "sm_%d%d%s", is_known ? (int)info.arch_major : 0,
                   is_known ? (int)info.arch_minor : 0, rondo__cuda_has_tma(device) ? ", tma" : "");
}

static bool is_from(rondo_device *device, int32_t arch_major) {
    rondo_device_info info = {.struct_size = sizeof info};
    return rondo__device_get_facts(device, &info) == RONDO_STATUS_OK &&
           info.arch_major >= arch_major;
}

static bool has_clusters(rondo_device *device) {
    return is_from(device, 9);
}

static bool has_tensor_cores(rondo_device *device) {  // of instructions that our kernels use
    return is_from(device, 8);
}

const rondo__kernel_room rondo__kernel_room_cuda = {.prepare = prepare,
                                                    .write = rondo__cuda_write_kernel,
                                                    .adds_shortcuts = rondo__cuda_has_tma,
                                                    .fuses_few_rows = has_tensor_cores,
                                                    .appends_attention = has_clusters,
                                                    .get_level = get_level};

// kernel/host/host_prepare.c — which family makes the kernel of an op.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>

#include "base/thread_count.h"
#include "kernel/host/host_families.h"
#include "kernel/host/host_kernel.h"
#include "kernel/host/host_threads.h"
#include "kernel/host/rows/host_half.h"
#include "kernel/host/simd/byte_simd.h"
#include "kernel/host/simd/simd.h"

typedef rondo_status (*prepare_function)(const rondo__kernel_request *request,
                                         rondo__kernel **out_kernel);

// The tuned kernels. The reference runs what has none.
#define ROW(domain, op, family) [RONDO__##domain##_##op] = rondo__host_prepare_##family
static const prepare_function families[RONDO__OP_ID_COUNT] = {
    ROW(OP, Add, elementwise),
    ROW(OP, Sub, elementwise),
    ROW(OP, Mul, elementwise),
    ROW(OP, Div, elementwise),
    ROW(OP, Max, elementwise),
    ROW(OP, Min, elementwise),
    ROW(OP, Pow, elementwise),
    ROW(OP, Relu, elementwise),
    ROW(OP, Sigmoid, elementwise),
    ROW(OP, Tanh, elementwise),
    ROW(OP, Erf, elementwise),
    ROW(OP, Exp, elementwise),
    ROW(OP, Log, elementwise),
    ROW(OP, Sqrt, elementwise),
    ROW(OP, Neg, elementwise),
    ROW(OP, Abs, elementwise),
    ROW(OP, Reciprocal, elementwise),
    ROW(OP, Floor, elementwise),
    ROW(OP, Ceil, elementwise),
    ROW(OP, Softplus, elementwise),
    ROW(OP, Gelu, elementwise),
    ROW(OP, HardSwish, elementwise),
    ROW(OP, Clip, elementwise),
    ROW(OP, LeakyRelu, elementwise),
    ROW(OP, Elu, elementwise),
    ROW(OP, Selu, elementwise),
    ROW(OP, HardSigmoid, elementwise),
    ROW(OP, Sum, elementwise),
    ROW(FUSED, Elementwise, elementwise),
    ROW(FUSED, Update, update),
    ROW(OP, Where, choice),
    ROW(OP, Sin, plain),
    ROW(OP, Cos, plain),
    ROW(OP, Atan, plain),
    ROW(OP, Mish, plain),
    ROW(OP, Round, plain),
    ROW(OP, Sign, plain),
    ROW(OP, PRelu, plain),
    ROW(OP, IsNaN, plain),
    ROW(OP, IsInf, plain),
    ROW(OP, Not, plain),
    ROW(OP, And, plain),
    ROW(OP, Or, plain),
    ROW(OP, Xor, plain),
    ROW(OP, Less, plain),
    ROW(OP, LessOrEqual, plain),
    ROW(OP, Greater, plain),
    ROW(OP, GreaterOrEqual, plain),
    ROW(OP, Equal, plain),
    ROW(OP, MatMul, product),
    ROW(OP, Gemm, product),
    ROW(FUSED, MatMul, product),
    ROW(OP, Conv, convolution),
    ROW(FUSED, Conv, convolution),
    ROW(OP, ConvTranspose, conv_transpose),
    ROW(OP, DeformConv, deform),
    ROW(OP, GridSample, grid_sample),
    ROW(OP, Resize, resize),
    ROW(OP, Upsample, resize),
    ROW(OP, Transpose, transpose),
    ROW(OP, Expand, expand),
    ROW(OP, Slice, slice),
    ROW(OP, Concat, concat),
    ROW(OP, Split, split),
    ROW(OP, Gather, gather),
    ROW(OP, Softmax, softmax),
    ROW(FUSED, Softmax, softmax),
    ROW(OP, LogSoftmax, softmax),
    ROW(OP, LayerNormalization, layer_normalization),
    ROW(OP, RMSNormalization, layer_normalization),
    ROW(OP, InstanceNormalization, group_norm),
    ROW(OP, GroupNormalization, group_norm),
    ROW(FUSED, GroupNormalization, group_norm),
    ROW(OP, ReduceSum, reduction),
    ROW(OP, ReduceMean, reduction),
    ROW(OP, ReduceMax, reduction),
    ROW(OP, ReduceMin, reduction),
    ROW(OP, GlobalAveragePool, global_pool),
    ROW(OP, GlobalMaxPool, global_pool),
    ROW(FUSED, GlobalAveragePool, global_pool),
    ROW(OP, BatchNormalization, batch_normalization),
    ROW(FUSED, BatchNormalization, batch_training),
    ROW(FUSED, NormGradient, norm_gradient),
    ROW(FUSED, LossGradient, loss),
    ROW(OP, SoftmaxCrossEntropyLoss, loss),
    ROW(FUSED, ConvWeights, conv_weights),
    ROW(FUSED, PoolGradient, pool_gradient),
    ROW(OP, MaxPool, max_pool),
    ROW(OP, AveragePool, average_pool),
    ROW(FUSED, MaxPool, max_pool),
    ROW(FUSED, AveragePool, average_pool),
    ROW(OP, LSTM, recurrent),
    ROW(OP, GRU, recurrent),
    ROW(OP, RNN, recurrent),
    ROW(OP, LRN, lrn),
    ROW(OP, CumSum, scan),
    ROW(OP, RotaryEmbedding, rotary),
    ROW(MS, RotaryEmbedding, rotary),
    ROW(OP, SwiGLU, swiglu),
    ROW(OP, Attention, attention),
    ROW(MS, Attention, attention),
    ROW(MS, DecoderMaskedMultiHeadAttention, attention),
    ROW(MS, GroupQueryAttention, attention),
    ROW(MS, MultiHeadAttention, attention),
    ROW(OP, MatMulInteger, byte_product),
    ROW(OP, QLinearMatMul, byte_product),
    ROW(OP, ConvInteger, byte_convolution),
    ROW(OP, QLinearConv, byte_convolution),
    ROW(OP, QuantizeLinear, quantize),
    ROW(OP, DequantizeLinear, quantize),
    ROW(OP, DynamicQuantizeLinear, quantize),
    ROW(FUSED, QLinearAdd, quantized_sum),
    ROW(OP, BitCast, view),
    ROW(OP, Cast, cast),
    ROW(OP, CastLike, cast),
    ROW(MS, DynamicQuantizeLSTM, quantize_lstm),
    ROW(MS, MatMulNBits, bits_product),
    ROW(ML, TreeEnsemble, trees),
    ROW(ML, TreeEnsembleClassifier, trees),
    ROW(ML, TreeEnsembleRegressor, trees),
};
#undef ROW

static bool is_empty(const rondo__tensor_info *info) {
    return info->dtype != RONDO_DTYPE_NONE && rondo_shape_get_count(&info->shape) == 0;
}

// Of Resize, a known input without elements is an absent one (older exporters write roi so). Of
// attention, a past without rows is none.
static bool counts_as_absent(const rondo__kernel_request *request, size_t input) {
    const rondo__op_id id = request->op->def->id;
    return (input > 0 && request->inputs[input].constant != NULL && id == RONDO__OP_Resize) ||
           (input > 2 && families[id] == rondo__host_prepare_attention);
}

// Tensors without elements may have no address either. So the kernels of the table never see one:
// there is next to nothing to do, and the reference does that.
static bool has_empty_tensor(const rondo__kernel_request *request) {
    for (size_t i = 0; i < request->input_count; ++i) {
        if (is_empty(&request->inputs[i]) && !counts_as_absent(request, i)) {
            return true;
        }
    }
    for (size_t i = 0; i < request->output_count; ++i) {
        if (is_empty(&request->outputs[i])) {
            return true;
        }
    }
    return false;
}

// The tuned kernel, if there is one that takes the request.
static rondo_status prepare_tuned(const rondo__kernel_request *request,
                                  rondo__kernel **out_kernel) {
    const prepare_function family = families[request->op->def->id];
    if (family == NULL) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    const rondo_status status = family(request, out_kernel);
    // Add of whole numbers, say, is an element-wise op that chains do not have.
    return status == RONDO_STATUS_UNSUPPORTED && family == rondo__host_prepare_elementwise
               ? rondo__host_prepare_plain(request, out_kernel)
               : status;
}

// Where inputs or outputs are f16: the tuned f32 kernel, between conversions.
static rondo_status prepare_half(const rondo__kernel_request *request, rondo__kernel **out_kernel) {
    rondo__kernel *half;
    rondo__kernel *inner;
    rondo__kernel_request wide;
    rondo_status status = rondo__host_half_begin(request, &half, &wide);
    if (status == RONDO_STATUS_OK) {
        status = prepare_tuned(&wide, &inner);
    }
    if (status != RONDO_STATUS_OK) {
        rondo__kernel_destroy(half);
        return status;
    }
    rondo__host_half_end(half, inner);
    *out_kernel = half;
    return RONDO_STATUS_OK;
}

// The tuned kernel, or the reference.
static rondo_status prepare_best(const rondo__kernel_request *request, rondo__kernel **out_kernel) {
    const rondo__op_def *def = request->op->def;
    if ((def->flags & RONDO__OP_VIEW) != 0 && request->output_count == 1) {
        return rondo__host_prepare_view(request, out_kernel);
    }
    if (has_empty_tensor(request)) {
        return rondo__host_prepare_reference(request, out_kernel);
    }
    rondo_status status = prepare_tuned(request, out_kernel);
    if (status == RONDO_STATUS_UNSUPPORTED) {
        status = prepare_half(request, out_kernel);
    }
    if (status == RONDO_STATUS_UNSUPPORTED) {
        status = rondo__host_prepare_reference(request, out_kernel);
    }
    return status;
}

static rondo_status prepare(const rondo__kernel_request *request, rondo__kernel **out_kernel) {
    *out_kernel = NULL;
    if (request->use_reference) {
        return rondo__host_prepare_reference(request, out_kernel);
    }
    return prepare_best(request, out_kernel);
}

static void get_level(rondo_device *device, char *text, size_t text_bytes) {
    (void)device;
    (void)snprintf(text, text_bytes, "%s, bytes %s", rondo__simd_get()->name,
                   rondo__byte_simd_get()->name);
}

const rondo__kernel_room rondo__kernel_room_host = {.prepare = prepare, .get_level = get_level};

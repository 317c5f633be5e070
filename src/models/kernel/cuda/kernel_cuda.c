// kernel/cuda/kernel_cuda.c — which family makes the kernel of an op.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "kernel/cuda/convolution/cuda_conv_tma.h"
#include "kernel/cuda/cuda_families.h"

typedef struct family_entry {
    const char *domain;
    const char *name;
    void (*prepare)(rondo__cuda_kernel *kernel);
} family_entry;

#define ENTRY(name_, family) \
    { "", name_, rondo__cuda_prepare_##family }
#define FUSED(name_, family) \
    { "rondo", name_, rondo__cuda_prepare_##family }

#define MICROSOFT(name_, family) \
    { "com.microsoft", name_, rondo__cuda_prepare_##family }
#define TRAINING(name_, family) \
    { "ai.onnx.preview.training", name_, rondo__cuda_prepare_##family }

static const family_entry family_entries[] = {
    // one operand
    ENTRY("Abs", elementwise),
    ENTRY("Acos", elementwise),
    ENTRY("Acosh", elementwise),
    ENTRY("Asin", elementwise),
    ENTRY("Asinh", elementwise),
    ENTRY("Atan", elementwise),
    ENTRY("Atanh", elementwise),
    ENTRY("BitwiseNot", elementwise),
    ENTRY("Cast", elementwise),
    ENTRY("CastLike", elementwise),
    ENTRY("Ceil", elementwise),
    ENTRY("Celu", elementwise),
    ENTRY("Clip", elementwise),
    ENTRY("Cos", elementwise),
    ENTRY("Cosh", elementwise),
    ENTRY("Elu", elementwise),
    ENTRY("Erf", elementwise),
    ENTRY("Exp", elementwise),
    ENTRY("Floor", elementwise),
    ENTRY("Gelu", elementwise),
    ENTRY("HardSigmoid", elementwise),
    ENTRY("HardSwish", elementwise),
    ENTRY("IsInf", elementwise),
    ENTRY("IsNaN", elementwise),
    ENTRY("LeakyRelu", elementwise),
    ENTRY("Log", elementwise),
    ENTRY("Mish", elementwise),
    ENTRY("Neg", elementwise),
    ENTRY("Not", elementwise),
    ENTRY("Reciprocal", elementwise),
    ENTRY("Relu", elementwise),
    ENTRY("Round", elementwise),
    ENTRY("Selu", elementwise),
    ENTRY("Shrink", elementwise),
    ENTRY("Sigmoid", elementwise),
    ENTRY("Sign", elementwise),
    ENTRY("Sin", elementwise),
    ENTRY("Sinh", elementwise),
    ENTRY("Softplus", elementwise),
    ENTRY("Softsign", elementwise),
    ENTRY("Sqrt", elementwise),
    ENTRY("Tan", elementwise),
    ENTRY("Tanh", elementwise),
    ENTRY("ThresholdedRelu", elementwise),
    // two and more
    ENTRY("Add", elementwise),
    ENTRY("And", elementwise),
    ENTRY("BitShift", elementwise),
    ENTRY("BitwiseAnd", elementwise),
    ENTRY("BitwiseOr", elementwise),
    ENTRY("BitwiseXor", elementwise),
    ENTRY("Div", elementwise),
    ENTRY("Equal", elementwise),
    ENTRY("Greater", elementwise),
    ENTRY("GreaterOrEqual", elementwise),
    ENTRY("Less", elementwise),
    ENTRY("LessOrEqual", elementwise),
    ENTRY("Max", elementwise),
    ENTRY("Mean", elementwise),
    ENTRY("Min", elementwise),
    ENTRY("Mod", elementwise),
    ENTRY("Mul", elementwise),
    ENTRY("Or", elementwise),
    ENTRY("PRelu", elementwise),
    ENTRY("Pow", elementwise),
    ENTRY("Sub", elementwise),
    ENTRY("Sum", elementwise),
    ENTRY("SwiGLU", elementwise),
    ENTRY("Swish", elementwise),
    ENTRY("Where", elementwise),
    ENTRY("Xor", elementwise),
    FUSED("Elementwise", fused_elementwise),
    ENTRY("BatchNormalization", batch_normalization),
    // rearranging
    ENTRY("Dropout", dropout),
    ENTRY("BitCast", view),
    ENTRY("Flatten", view),
    ENTRY("Identity", view),
    ENTRY("Reshape", view),
    ENTRY("Squeeze", view),
    ENTRY("Unsqueeze", view),
    ENTRY("Transpose", transpose),
    ENTRY("Concat", concat),
    FUSED("Concat", fused_concat),
    ENTRY("Split", split),
    ENTRY("Slice", slice),
    ENTRY("Expand", expand),
    ENTRY("Tile", tile),
    ENTRY("DepthToSpace", depth_space),
    ENTRY("SpaceToDepth", depth_space),
    FUSED("SpaceToDepth", space_to_depth),
    ENTRY("Pad", pad),
    ENTRY("CenterCropPad", center_crop_pad),
    ENTRY("ReverseSequence", reverse_sequence),
    // by index
    ENTRY("Gather", gather),
    ENTRY("GatherElements", gather_elements),
    ENTRY("GatherND", gather_nd),
    ENTRY("Scatter", scatter_elements),
    ENTRY("ScatterElements", scatter_elements),
    ENTRY("ScatterND", scatter_nd),
    ENTRY("ConstantOfShape", constant_of_shape),
    ENTRY("Range", range),
    ENTRY("OneHot", one_hot),
    ENTRY("CumProd", cum_sum),
    ENTRY("CumSum", cum_sum),
    ENTRY("Trilu", trilu),
    ENTRY("EyeLike", eye_like),
    ENTRY("TopK", top_k),
    // what they find decides their results' shapes
    ENTRY("Compress", compress),
    ENTRY("NonMaxSuppression", suppression),
    ENTRY("NonZero", non_zero),
    ENTRY("Unique", unique),
    // statistics
    ENTRY("ArgMax", arg_extreme),
    ENTRY("ArgMin", arg_extreme),
    ENTRY("LogSoftmax", softmax),
    ENTRY("ReduceL1", reduce),
    ENTRY("ReduceL2", reduce),
    ENTRY("ReduceLogSum", reduce),
    ENTRY("ReduceLogSumExp", reduce),
    ENTRY("ReduceMax", reduce),
    ENTRY("ReduceMean", reduce),
    ENTRY("ReduceMin", reduce),
    ENTRY("ReduceProd", reduce),
    ENTRY("ReduceSum", reduce),
    ENTRY("ReduceSumSquare", reduce),
    ENTRY("Softmax", softmax),
    ENTRY("GroupNormalization", group_normalization),
    FUSED("GroupNormalization", fused_group_normalization),
    ENTRY("InstanceNormalization", group_normalization),
    ENTRY("LayerNormalization", layer_normalization),
    ENTRY("LRN", lrn),
    ENTRY("Hardmax", hardmax),
    ENTRY("LpNormalization", lp_normalization),
    ENTRY("MeanVarianceNormalization", axes_normalization),
    // losses and optimisers
    ENTRY("NegativeLogLikelihoodLoss", loss),
    ENTRY("SoftmaxCrossEntropyLoss", loss),
    TRAINING("Adagrad", optimize),
    TRAINING("Adam", optimize),
    TRAINING("Momentum", optimize),
    // signals
    ENTRY("BlackmanWindow", cosine_window),
    ENTRY("DFT", dft),
    ENTRY("HammingWindow", cosine_window),
    ENTRY("HannWindow", cosine_window),
    ENTRY("STFT", stft),
    // windows
    ENTRY("Conv", convolution),
    FUSED("Conv", convolution),
    ENTRY("ConvTranspose", conv_transpose),
    ENTRY("DeformConv", deform_conv),
    ENTRY("Resize", resize),
    ENTRY("Upsample", resize),
    // sequences
    ENTRY("GRU", recurrent),
    ENTRY("LSTM", recurrent),
    ENTRY("RNN", recurrent),
    // products
    ENTRY("Det", determinant),
    ENTRY("Einsum", einsum),
    ENTRY("Gemm", matmul),
    ENTRY("MatMul", matmul),
    FUSED("MatMul", matmul),
    FUSED("NormMatMul", norm_product),
    FUSED("Attention", attention),
    ENTRY("Attention", attention_form),
    ENTRY("CausalConvWithState", causal_conv),
    ENTRY("LinearAttention", linear_attention),
    ENTRY("RotaryEmbedding", rotary),
    ENTRY("TensorScatter", cache_write),
    MICROSOFT("Attention", attention_form),
    MICROSOFT("DecoderMaskedMultiHeadAttention", attention_form),
    MICROSOFT("GroupQueryAttention", attention_form),
    MICROSOFT("MultiHeadAttention", attention_form),
    MICROSOFT("RotaryEmbedding", rotary),
    // 8-bit integers
    ENTRY("ConvInteger", conv_integer),
    ENTRY("DequantizeLinear", dequantize),
    ENTRY("DynamicQuantizeLinear", dynamic_quantize),
    MICROSOFT("DynamicQuantizeLSTM", quantize_lstm),
    ENTRY("MatMulInteger", matmul_integer),
    ENTRY("QLinearConv", qlinear_conv),
    ENTRY("QLinearMatMul", qlinear_matmul),
    ENTRY("QuantizeLinear", quantize),
    FUSED("ConvInteger", conv_integer),
    FUSED("MatMulInteger", matmul_integer),
    FUSED("QLinearConv", qlinear_conv),
    ENTRY("AveragePool", pool),
    ENTRY("GlobalAveragePool", pool),
    ENTRY("GlobalMaxPool", pool),
    ENTRY("MaxPool", pool),
    ENTRY("GlobalLpPool", pool),
    ENTRY("LpPool", pool),
    ENTRY("MaxUnpool", max_unpool),
    ENTRY("Col2Im", columns),
    ENTRY("GridSample", grid_sample),
    ENTRY("AffineGrid", affine_grid),
    ENTRY("RoiAlign", roi_align),
    ENTRY("MaxRoiPool", max_roi_pool),
    FUSED("AveragePool", pool),
    FUSED("GlobalAveragePool", pool),
    FUSED("MaxPool", pool),
};

#undef ENTRY
#undef FUSED
#undef MICROSOFT
#undef TRAINING

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

// A tensor without elements has no sums, strides or rows to speak of; such ops are the host's.
static bool has_empty_input(const rondo__kernel_request *request) {
    for (size_t i = 0; i < request->input_count; i++) {
        if (request->inputs[i].dtype != RONDO_DTYPE_NONE && request->inputs[i].constant == NULL &&
            rondo_shape_get_count(&request->inputs[i].shape) == 0) {
            return true;
        }
    }
    return false;
}

// Whose kernels know what none of the elements come to.
static bool takes_empty_input(const char *name) {
    static const char *const families[] = {"Concat",     "Pad",       "CenterCropPad",
                                           "Scatter",    "Reduce",    "Attention",
                                           "GroupQuery", "MultiHead", "DecoderMasked"};
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        if (strncmp(name, families[i], strlen(families[i])) == 0) {
            return true;
        }
    }
    return false;
}

// A product over no elements.
static void add_zeros(rondo__cuda_kernel *kernel) {
    const rondo__tensor_info *y = rondo__cuda_output(kernel, 0);
    (void)rondo__cuda_add_zero(
        kernel, rondo__address_output(0),
        (size_t)rondo_shape_get_count(&y->shape) * rondo_dtype_get_bytes(y->dtype));
}

static const family_entry *find_family(const rondo__op_def *def) {
    for (size_t i = 0; i < sizeof(family_entries) / sizeof(family_entries[0]); i++) {
        if (strcmp(family_entries[i].name, def->name) == 0 &&
            strcmp(family_entries[i].domain, def->domain) == 0) {
            return &family_entries[i];
        }
    }
    return NULL;
}

static rondo_status prepare(const rondo__kernel_request *request, rondo__kernel **out_kernel) {
    *out_kernel = NULL;
    const family_entry *family = find_family(request->op->def);
    if (family == NULL) {
        return rondo__op_fail_unsupported(request->op, "no CUDA kernel");
    }
    const bool works = has_work(request);
    const bool is_empty = works && has_empty_input(request);
    const bool is_product =
        strcmp(request->op->def->name, "MatMul") == 0 && request->op->def->domain[0] == '\0';
    if (is_empty && !is_product && !takes_empty_input(request->op->def->name)) {
        return rondo__op_fail_unsupported(request->op, "CUDA kernel for an input without elements");
    }
    rondo__cuda_kernel *kernel = NULL;
    RETURN_IF_ERROR(rondo__cuda_begin_kernel(request, &kernel));
    if (is_empty && is_product) {
        add_zeros(kernel);
    } else if (works) {
        family->prepare(kernel);
    }
    return rondo__cuda_finish_kernel(kernel, out_kernel);
}

const rondo__kernel_room rondo__kernel_room_cuda = {.prepare = prepare,
                                                    .adds_shortcuts = rondo__cuda_has_tma};

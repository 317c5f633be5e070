// kernel/host/host_prepare.c — which family makes the kernel of an op.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/thread_count.h"
#include "kernel/host/host_families.h"
#include "kernel/host/host_kernel.h"
#include "kernel/host/host_threads.h"
#include "kernel/host/rows/host_half.h"
#include "op/fused/fused.h"

typedef struct table_entry {
    const char *domain;
    const char *name;
    rondo_status (*prepare)(const rondo__kernel_request *request, rondo__kernel **out_kernel);
} table_entry;

// Tried in order; several entries for one op are choices, best first.
#define ELEMENTWISE_ENTRY(name, operands) {"", #name, rondo__host_prepare_elementwise},
static const table_entry table[] = {
    RONDO_SCALAR_OP_MAP(ELEMENTWISE_ENTRY){"", "Sum", rondo__host_prepare_elementwise},
    {"rondo", "Elementwise", rondo__host_prepare_elementwise},
    {"", "MatMul", rondo__host_prepare_product},
    {"", "Gemm", rondo__host_prepare_product},
    {"rondo", "MatMul", rondo__host_prepare_product},
    {"", "Conv", rondo__host_prepare_convolution},
    {"rondo", "Conv", rondo__host_prepare_convolution},
    {"", "ConvTranspose", rondo__host_prepare_conv_transpose},
    {"", "Resize", rondo__host_prepare_resize},
    {"", "Upsample", rondo__host_prepare_resize},
    {"", "Transpose", rondo__host_prepare_transpose},
    {"", "Expand", rondo__host_prepare_expand},
    {"", "Slice", rondo__host_prepare_slice},
    {"", "Concat", rondo__host_prepare_concat},
    {"", "Split", rondo__host_prepare_split},
    {"", "Gather", rondo__host_prepare_gather},
    {"", "Softmax", rondo__host_prepare_softmax},
    {"", "LogSoftmax", rondo__host_prepare_softmax},
    {"", "LayerNormalization", rondo__host_prepare_layer_normalization},
    {"", "InstanceNormalization", rondo__host_prepare_group_norm},
    {"", "GroupNormalization", rondo__host_prepare_group_norm},
    {"rondo", "GroupNormalization", rondo__host_prepare_group_norm},
    {"", "ReduceSum", rondo__host_prepare_reduction},
    {"", "ReduceMean", rondo__host_prepare_reduction},
    {"", "ReduceMax", rondo__host_prepare_reduction},
    {"", "ReduceMin", rondo__host_prepare_reduction},
    {"", "GlobalAveragePool", rondo__host_prepare_global_pool},
    {"", "GlobalMaxPool", rondo__host_prepare_global_pool},
    {"rondo", "GlobalAveragePool", rondo__host_prepare_global_pool},
    {"", "BatchNormalization", rondo__host_prepare_batch_normalization},
    {"", "MaxPool", rondo__host_prepare_max_pool},
    {"", "AveragePool", rondo__host_prepare_average_pool},
    {"rondo", "MaxPool", rondo__host_prepare_max_pool},
    {"rondo", "AveragePool", rondo__host_prepare_average_pool},
    {"", "LSTM", rondo__host_prepare_recurrent},
    {"", "GRU", rondo__host_prepare_recurrent},
    {"", "RNN", rondo__host_prepare_recurrent},
    {"", "LRN", rondo__host_prepare_lrn},
    {"", "Attention", rondo__host_prepare_attention},
    {"com.microsoft", "Attention", rondo__host_prepare_attention},
    {"com.microsoft", "DecoderMaskedMultiHeadAttention", rondo__host_prepare_attention},
    {"com.microsoft", "GroupQueryAttention", rondo__host_prepare_attention},
    {"com.microsoft", "MultiHeadAttention", rondo__host_prepare_attention},
    {"", "MatMulInteger", rondo__host_prepare_byte_product},
    {"", "QLinearMatMul", rondo__host_prepare_byte_product},
    {"", "ConvInteger", rondo__host_prepare_byte_convolution},
    {"", "QLinearConv", rondo__host_prepare_byte_convolution},
    {"", "QuantizeLinear", rondo__host_prepare_quantize},
    {"", "DequantizeLinear", rondo__host_prepare_quantize},
    {"", "DynamicQuantizeLinear", rondo__host_prepare_quantize},
    {"", "Cast", rondo__host_prepare_cast},
    {"com.microsoft", "DynamicQuantizeLSTM", rondo__host_prepare_quantize_lstm},
    {"ai.onnx.ml", "TreeEnsemble", rondo__host_prepare_trees},
    {"ai.onnx.ml", "TreeEnsembleClassifier", rondo__host_prepare_trees},
    {"ai.onnx.ml", "TreeEnsembleRegressor", rondo__host_prepare_trees},
    {NULL, NULL, NULL},
};

static bool is_empty(const rondo__tensor_info *info) {
    return info->dtype != RONDO_DTYPE_NONE && rondo_shape_get_count(&info->shape) == 0;
}

// Of Resize, a known input without elements is an absent one (older exporters write roi so). Of
// attention, a past without rows is none.
static bool counts_as_absent(const rondo__kernel_request *request, size_t input) {
    const char *name = request->op->def->name;
    return (input > 0 && request->inputs[input].constant != NULL && strcmp(name, "Resize") == 0) ||
           (input > 2 && strstr(name, "Attention") != NULL);
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

// The first tuned kernel of the table that takes the request.
static rondo_status prepare_tuned(const rondo__kernel_request *request,
                                  rondo__kernel **out_kernel) {
    const rondo__op_def *def = request->op->def;
    for (const table_entry *entry = table; entry->name != NULL; ++entry) {
        if (strcmp(entry->name, def->name) != 0 || strcmp(entry->domain, def->domain) != 0) {
            continue;
        }
        rondo_status status = entry->prepare(request, out_kernel);
        if (status != RONDO_STATUS_UNSUPPORTED) {
            return status;
        }
    }
    return RONDO_STATUS_UNSUPPORTED;
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

// The first choice of the table that takes the request, or the reference.
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

const rondo__kernel_room rondo__kernel_room_host = {.prepare = prepare};

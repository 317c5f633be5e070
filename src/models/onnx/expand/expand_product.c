// onnx/expand/expand_product.c — products and convolutions of real numbers with what optimisers
// fuse behind them, and images with channels last.
// SPDX-License-Identifier: Apache-2.0
#include "onnx/expand/expand.h"

#define NEW RONDO__VALUE_NONE

static const char *const window_names[] = {"auto_pad", "dilations", "group", "kernel_shape",
                                           "pads",     "strides",   NULL};

// A convolution, an addend, an activation.
static void add_convolution(rondo__expander *e, bool is_last, bool are_filters_last) {
    const rondo__op *op = rondo__expand_op(e);
    const char *activation = rondo__op_get_string(op, "activation", "");
    size_t param_count = 0;
    const float *params = rondo__op_get_floats(op, "activation_params", &param_count);
    const int32_t result = rondo__expand_out(e, 0), addend = rondo__expand_in(e, 3);
    int32_t x = rondo__expand_in(e, 0), w = rondo__expand_in(e, 1);
    x = is_last ? rondo__expand_channels_first(e, x, NEW) : x;
    w = are_filters_last ? rondo__expand_channels_first(e, w, NEW) : w;
    const bool is_plain = activation[0] == '\0';
    const bool is_bare = is_plain && addend == RONDO__VALUE_NONE && !is_last;
    int32_t y = EXPAND(e, "Conv", is_bare ? result : NEW, x, w, rondo__expand_in(e, 2));
    rondo__expand_copy(e, window_names);
    if (is_last && (addend >= 0 || !is_plain)) {
        y = rondo__expand_channels_last(e, y, NEW);
    } else if (is_last) {
        y = rondo__expand_channels_last(e, y, result);
    }
    if (addend >= 0) {
        y = EXPAND(e, "Add", is_plain ? result : NEW, y, addend);
    }
    if (!is_plain) {
        (void)rondo__expand_activation(e, activation, params, param_count, y, result);
    }
}

static void expand_fused_conv(rondo__expander *e) {
    add_convolution(e, false, false);
}

static void expand_nhwc_fused_conv(rondo__expander *e) {
    add_convolution(e, true, false);
}

// Its filters are [M, kH, kW, C / group], as onnxruntime's optimiser writes them.
static void expand_nhwc_conv(rondo__expander *e) {
    add_convolution(e, true, true);
}

static void expand_fused_gemm(rondo__expander *e) {
    const rondo__op *op = rondo__expand_op(e);
    const char *activation = rondo__op_get_string(op, "activation", "");
    const bool has_beta = rondo__op_find(op, "activation_beta") != NULL;
    const bool has_alpha = has_beta || rondo__op_find(op, "activation_alpha") != NULL;
    const bool is_sigmoid = activation[0] == 'H';
    const float params[] = {
        rondo__op_get_float(op, "activation_alpha", is_sigmoid ? 0.2f : 0.01f),
        rondo__op_get_float(op, "activation_beta", 0.5f),
    };
    const int32_t result = rondo__expand_out(e, 0);
    const int32_t y =
        EXPAND(e, "Gemm", activation[0] == '\0' ? result : NEW, rondo__expand_in(e, 0),
               rondo__expand_in(e, 1), rondo__expand_in(e, 2));
    rondo__expand_copy(e, (const char *const[]){"alpha", "beta", "transA", "transB", NULL});
    if (activation[0] != '\0') {
        (void)rondo__expand_activation(e, activation, params,
                                       has_beta    ? 2
                                       : has_alpha ? 1
                                                   : 0,
                                       y, result);
    }
}

static void expand_nhwc_max_pool(rondo__expander *e) {
    const int32_t x = rondo__expand_channels_first(e, rondo__expand_in(e, 0), NEW);
    const int32_t y = EXPAND(e, "MaxPool", NEW, x);
    rondo__expand_copy(e, (const char *const[]){"auto_pad", "ceil_mode", "dilations",
                                                "kernel_shape", "pads", "strides", NULL});
    (void)rondo__expand_channels_last(e, y, rondo__expand_out(e, 0));
}

static const char *const conv_attributes[] = {
    "activation", "activation_params", "auto_pad", "dilations", "group", "kernel_shape",
    "pads",       "strides",           NULL};
static const char *const pool_attributes[] = {"auto_pad", "ceil_mode", "dilations", "kernel_shape",
                                              "pads",     "strides",   NULL};
static const char *const gemm_attributes[] = {"activation",
                                              "activation_alpha",
                                              "activation_beta",
                                              "activation_gamma",
                                              "alpha",
                                              "beta",
                                              "transA",
                                              "transB",
                                              NULL};

const rondo__expansion rondo__expansions_product[] = {
    RONDO_EXPANSION("FusedConv", 2, 4, 1, 1, conv_attributes, expand_fused_conv),
    RONDO_EXPANSION("NhwcFusedConv", 2, 4, 1, 1, conv_attributes, expand_nhwc_fused_conv),
    RONDO_EXPANSION("NhwcConv", 2, 3, 1, 1, window_names, expand_nhwc_conv),
    RONDO_EXPANSION("NhwcMaxPool", 1, 1, 1, 1, pool_attributes, expand_nhwc_max_pool),
    RONDO_EXPANSION("FusedGemm", 2, 3, 1, 1, gemm_attributes, expand_fused_gemm),
    {.def = {.name = NULL}},
};

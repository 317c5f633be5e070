// onnx/expand/expand_quantized.c — ops on 8-bit numbers with a scale and a zero point.
//
// Products stay products of integers, whose sums are scaled: passes make one kernel of that. Other
// ops go by real numbers: bytes to numbers, the op, numbers to bytes.
// SPDX-License-Identifier: Apache-2.0
#include "onnx/expand/expand.h"

#define NEW RONDO__VALUE_NONE

// What stands at `first`: values, scale, zero point.
static int32_t add_real(rondo__expander *e, size_t first) {
    return EXPAND(e, "DequantizeLinear", NEW, rondo__expand_in(e, first),
                  rondo__expand_in(e, first + 1), rondo__expand_in(e, first + 2));
}

// Bytes of the type of `like` with the scale and zero point at `first`, as the first output.
static void add_bytes(rondo__expander *e, int32_t real, size_t first, int32_t like) {
    const int32_t scale = rondo__expand_in(e, first);
    int32_t zero = rondo__expand_in(e, first + 1);
    zero = zero == RONDO__VALUE_NONE ? rondo__expand_number(e, 0.0f, like) : zero;
    EXPAND(e, "QuantizeLinear", rondo__expand_out(e, 0), real, scale, zero);
}

static void add_binary(rondo__expander *e, const char *op) {
    const int32_t a = add_real(e, 0), b = add_real(e, 3);
    add_bytes(e, EXPAND(e, op, NEW, a, b), 6, rondo__expand_in(e, 0));
}

static void expand_add(rondo__expander *e) {
    add_binary(e, "Add");
}

static void expand_mul(rondo__expander *e) {
    add_binary(e, "Mul");
}

static void add_unary(rondo__expander *e, const char *op, const char *const *attributes) {
    const int32_t y = EXPAND(e, op, NEW, add_real(e, 0));
    rondo__expand_copy(e, attributes);
    add_bytes(e, y, 3, rondo__expand_in(e, 0));
}

static void expand_sigmoid(rondo__expander *e) {
    add_unary(e, "Sigmoid", (const char *const[]){NULL});
}

static void expand_leaky_relu(rondo__expander *e) {
    add_unary(e, "LeakyRelu", (const char *const[]){"alpha", NULL});
}

// With an opset before 13 all axes from `axis` on are one row.
static void expand_softmax(rondo__expander *e) {
    const rondo__op *op = rondo__expand_op(e);
    const int32_t x = add_real(e, 0);
    e->opset = rondo__op_get_int(op, "opset", 13) < 13 ? 12 : RONDO_OP_OPSET_MAX;
    const int32_t y = EXPAND(e, "Softmax", NEW, x);
    rondo__expand_set_int(e, "axis", rondo__op_get_int(op, "axis", -1));
    e->opset = RONDO_OP_OPSET_MAX;
    add_bytes(e, y, 3, rondo__expand_in(e, 0));
}

static void expand_concat(rondo__expander *e) {
    enum { PARTS_MAX = 1024, FIRST = 2 };
    int32_t parts[PARTS_MAX];
    const size_t inputs = e->builder->node.input_count - FIRST, count = inputs / 3;
    if (inputs % 3 != 0 || count > PARTS_MAX) {
        rondo__expand_refuse(e, "inputs are not triples, or more than 1024");
        return;
    }
    for (size_t i = 0; i < count; ++i) {
        parts[i] = add_real(e, FIRST + 3 * i);
    }
    const int32_t y = rondo__expand_node(e, "Concat", NEW, parts, count);
    rondo__expand_copy(e, (const char *const[]){"axis", NULL});
    add_bytes(e, y, 0, rondo__expand_in(e, FIRST));
}

// Means are of whole numbers, which sums hold exactly, so that ties stay ties: the steps of x, less
// the zero point, then times the ratio of the scales.
static int32_t add_steps(rondo__expander *e) {
    const int32_t one = rondo__expand_number(e, 1.0f, RONDO__VALUE_NONE);
    return EXPAND(e, "DequantizeLinear", NEW, rondo__expand_in(e, 0), one, rondo__expand_in(e, 2));
}

static void add_rescaled(rondo__expander *e, int32_t steps, size_t first) {
    const int32_t one = rondo__expand_number(e, 1.0f, RONDO__VALUE_NONE);
    const int32_t ratio = EXPAND(e, "Div", NEW, rondo__expand_in(e, 1), rondo__expand_in(e, first));
    const int32_t y = EXPAND(e, "Mul", NEW, steps, ratio);
    int32_t zero = rondo__expand_in(e, first + 1);
    zero = zero >= 0 ? zero : rondo__expand_number(e, 0.0f, rondo__expand_in(e, 0));
    EXPAND(e, "QuantizeLinear", rondo__expand_out(e, 0), y, one, zero);
}

static void add_pool(rondo__expander *e, const char *pool, const char *const *attributes) {
    const bool is_last = rondo__op_get_int(rondo__expand_op(e), "channels_last", 0) != 0;
    const int32_t rank = rondo__expand_get_rank(e, rondo__expand_in(e, 0));
    if (is_last && rank >= 0 && rank != 4) {
        rondo__expand_refuse(e, "channels_last of a tensor that is no image");
    }
    int32_t x = add_steps(e);
    x = is_last ? rondo__expand_channels_first(e, x, NEW) : x;
    int32_t y = EXPAND(e, pool, NEW, x);
    rondo__expand_copy(e, attributes);
    y = is_last ? rondo__expand_channels_last(e, y, NEW) : y;
    add_rescaled(e, y, 3);
}

static void expand_average_pool(rondo__expander *e) {
    add_pool(e, "AveragePool",
             (const char *const[]){"auto_pad", "ceil_mode", "count_include_pad", "kernel_shape",
                                   "pads", "strides", NULL});
}

static void expand_global_average_pool(rondo__expander *e) {
    add_pool(e, "GlobalAveragePool", (const char *const[]){NULL});
}

static void expand_reduce_mean(rondo__expander *e) {
    size_t count = 0;
    const int64_t *axes = rondo__op_get_ints(rondo__expand_op(e), "axes", &count);
    const int32_t x = add_steps(e);
    const int32_t list = axes != NULL ? rondo__expand_ints(e, axes, count) : NEW;
    const int32_t y = EXPAND(e, "ReduceMean", NEW, x, list);
    rondo__expand_copy(e, (const char *const[]){"keepdims", NULL});
    add_rescaled(e, y, 3);
}

static void expand_where(rondo__expander *e) {
    const int32_t x = add_real(e, 1), y = add_real(e, 4);
    const int32_t z = EXPAND(e, "Where", NEW, rondo__expand_in(e, 0), x, y);
    add_bytes(e, z, 7, rondo__expand_in(e, 1));
}

// The standard's, whose image may have its channels last.
static void expand_convolution(rondo__expander *e) {
    const bool is_last = rondo__op_get_int(rondo__expand_op(e), "channels_last", 0) != 0;
    int32_t inputs[9];
    for (size_t i = 0; i < 9; ++i) {
        inputs[i] = rondo__expand_in(e, i);
    }
    inputs[0] = is_last ? rondo__expand_channels_first(e, inputs[0], NEW) : inputs[0];
    const int32_t y =
        rondo__expand_node(e, "QLinearConv", is_last ? NEW : rondo__expand_out(e, 0), inputs, 9);
    rondo__expand_copy(e, (const char *const[]){"auto_pad", "dilations", "group", "kernel_shape",
                                                "pads", "strides", NULL});
    if (is_last) {
        (void)rondo__expand_channels_last(e, y, rondo__expand_out(e, 0));
    }
}

// ---- scales alone -----------------------------------------------------------------------------

static void add_linear(rondo__expander *e, const char *op) {
    EXPAND(e, op, rondo__expand_out(e, 0), rondo__expand_in(e, 0), rondo__expand_in(e, 1),
           rondo__expand_in(e, 2));
    rondo__expand_copy(e, (const char *const[]){"axis", "block_size", NULL});
}

static void expand_quantize(rondo__expander *e) {
    add_linear(e, "QuantizeLinear");
}

static void expand_dequantize(rondo__expander *e) {
    add_linear(e, "DequantizeLinear");
}

// ---- products ---------------------------------------------------------------------------------

// y = f32(sums) * step + bias; the bias may be absent.
static int32_t add_scaled(rondo__expander *e, int32_t sums, int32_t step, int32_t bias,
                          int32_t result) {
    const int32_t real = EXPAND(e, "Cast", NEW, sums);
    rondo__expand_set_int(e, "to", 1);  // f32
    const int32_t y = EXPAND(e, "Mul", bias >= 0 ? NEW : result, real, step);
    return bias >= 0 ? EXPAND(e, "Add", result, y, bias) : y;
}

static void expand_integer_to_float(rondo__expander *e) {
    const int32_t sums =
        EXPAND(e, "MatMulInteger", NEW, rondo__expand_in(e, 0), rondo__expand_in(e, 1),
               rondo__expand_in(e, 4), rondo__expand_in(e, 5));
    const int32_t step = EXPAND(e, "Mul", NEW, rondo__expand_in(e, 2), rondo__expand_in(e, 3));
    (void)add_scaled(e, sums, step, rondo__expand_in(e, 6), rondo__expand_out(e, 0));
}

static void expand_dynamic_product(rondo__expander *e) {
    const int32_t a = rondo__expand_in(e, 0);
    const int32_t made[] = {rondo__expand_value(e, "bytes"), rondo__expand_value(e, "scale"),
                            rondo__expand_value(e, "zero")};
    rondo__expand_node_of(e, "DynamicQuantizeLinear", &a, 1, made, 3);
    const int32_t sums = EXPAND(e, "MatMulInteger", NEW, made[0], rondo__expand_in(e, 1), made[2],
                                rondo__expand_in(e, 3));
    const int32_t step = EXPAND(e, "Mul", NEW, made[1], rondo__expand_in(e, 2));
    (void)add_scaled(e, sums, step, rondo__expand_in(e, 4), rondo__expand_out(e, 0));
}

static int32_t add_transposed(rondo__expander *e, int32_t value, const char *attribute) {
    if (rondo__op_get_int(rondo__expand_op(e), attribute, 0) == 0) {
        return value;
    }
    value = EXPAND(e, "Transpose", NEW, value);
    rondo__expand_set_ints(e, "perm", (const int64_t[]){1, 0}, 2);
    return value;
}

// Inputs: A, its scale and zero point, B, likewise, C in steps, scale and zero point of y. Without
// a scale of y the result is real.
static void expand_gemm(rondo__expander *e) {
    const float alpha = rondo__op_get_float(rondo__expand_op(e), "alpha", 1.0f);
    const int32_t addend = rondo__expand_in(e, 6), y_scale = rondo__expand_in(e, 7);
    const int32_t a = add_transposed(e, rondo__expand_in(e, 0), "transA");
    const int32_t b = add_transposed(e, rondo__expand_in(e, 3), "transB");
    const int32_t sums =
        EXPAND(e, "MatMulInteger", NEW, a, b, rondo__expand_in(e, 2), rondo__expand_in(e, 5));
    int32_t step = EXPAND(e, "Mul", NEW, rondo__expand_in(e, 1), rondo__expand_in(e, 4));
    if (alpha != 1.0f) {
        step = EXPAND(e, "Mul", NEW, step, rondo__expand_number(e, alpha, step));
    }
    if (y_scale >= 0) {
        step = EXPAND(e, "Div", NEW, step, y_scale);
    }
    int32_t bias = RONDO__VALUE_NONE;
    if (addend >= 0) {
        const int32_t real = EXPAND(e, "Cast", NEW, addend);
        rondo__expand_set_int(e, "to", 1);
        bias = EXPAND(e, "Mul", NEW, real, step);
    }
    const int32_t y = add_scaled(e, sums, step, bias, y_scale >= 0 ? NEW : rondo__expand_out(e, 0));
    if (y_scale >= 0) {
        int32_t zero = rondo__expand_in(e, 8);
        const int32_t one = rondo__expand_number(e, 1.0f, RONDO__VALUE_NONE);
        zero = zero >= 0 ? zero : rondo__expand_number(e, 0.0f, a);
        EXPAND(e, "QuantizeLinear", rondo__expand_out(e, 0), y, one, zero);
    }
}

// A value as i32, less its zero point.
static int32_t add_centred(rondo__expander *e, size_t first, size_t zero_input) {
    const int32_t zero = rondo__expand_in(e, zero_input);
    int32_t value = EXPAND(e, "Cast", NEW, rondo__expand_in(e, first));
    rondo__expand_set_int(e, "to", 6);  // i32
    if (zero >= 0) {
        const int32_t wide = EXPAND(e, "Cast", NEW, zero);
        rondo__expand_set_int(e, "to", 6);
        value = EXPAND(e, "Sub", NEW, value, wide);
    }
    return value;
}

static void expand_mul_integer(rondo__expander *e) {
    const int32_t a = add_centred(e, 0, 1), b = add_centred(e, 2, 3);
    EXPAND(e, "Mul", rondo__expand_out(e, 0), a, b);
}

static void expand_product_of_16_bits(rondo__expander *e) {
    enum { NO_INPUT = 9 };
    const int32_t a = add_centred(e, 0, NO_INPUT), b = add_centred(e, 1, NO_INPUT);
    EXPAND(e, "MatMul", rondo__expand_out(e, 0), a, b);
}

static const char *const attention_attributes[] = {
    "do_rotary", "mask_filter_value", "num_heads", "past_present_share_buffer",
    "scale",     "unidirectional",    NULL};

// Inputs: x and the weights, both bytes, the bias, two scales, the mask, two zero points, the past.
static void expand_attention(rondo__expander *e) {
    const int32_t x = EXPAND(e, "DequantizeLinear", NEW, rondo__expand_in(e, 0),
                             rondo__expand_in(e, 3), rondo__expand_in(e, 6));
    const int32_t weights = EXPAND(e, "DequantizeLinear", NEW, rondo__expand_in(e, 1),
                                   rondo__expand_in(e, 4), rondo__expand_in(e, 7));
    rondo__expand_set_int(e, "axis", 1);
    const int32_t inputs[] = {x, weights, rondo__expand_in(e, 2), rondo__expand_in(e, 5),
                              rondo__expand_in(e, 8)};
    const int32_t outputs[] = {rondo__expand_out(e, 0), rondo__expand_out(e, 1)};
    rondo__expand_node_of(e, "com.microsoft.Attention", inputs, 5, outputs,
                          outputs[1] == NEW ? 1 : 2);
    rondo__expand_copy(e, attention_attributes);
}

static const char *const no_attributes[] = {NULL};
static const char *const alpha_attributes[] = {"alpha", NULL};
static const char *const axis_attributes[] = {"axis", NULL};
static const char *const linear_attributes[] = {"axis", "block_size", NULL};
static const char *const last_attributes[] = {"channels_last", NULL};
static const char *const gemm_attributes[] = {"alpha", "transA", "transB", NULL};
static const char *const reduce_attributes[] = {"axes", "keepdims", NULL};
static const char *const softmax_attributes[] = {"axis", "opset", NULL};
static const char *const pool_attributes[] = {
    "auto_pad",     "ceil_mode", "channels_last", "count_include_pad",
    "kernel_shape", "pads",      "strides",       NULL};
static const char *const conv_attributes[] = {"auto_pad",     "channels_last", "dilations", "group",
                                              "kernel_shape", "pads",          "strides",   NULL};

const rondo__expansion rondo__expansions_quantized[] = {
    RONDO_EXPANSION("QuantizeLinear", 2, 3, 1, 1, linear_attributes, expand_quantize),
    RONDO_EXPANSION("DequantizeLinear", 2, 3, 1, 1, linear_attributes, expand_dequantize),
    RONDO_EXPANSION("QLinearAdd", 7, 8, 1, 1, no_attributes, expand_add),
    RONDO_EXPANSION("QLinearMul", 7, 8, 1, 1, no_attributes, expand_mul),
    RONDO_EXPANSION("QLinearSigmoid", 4, 5, 1, 1, no_attributes, expand_sigmoid),
    RONDO_EXPANSION("QLinearLeakyRelu", 4, 5, 1, 1, alpha_attributes, expand_leaky_relu),
    RONDO_EXPANSION("QLinearSoftmax", 4, 5, 1, 1, softmax_attributes, expand_softmax),
    RONDO_EXPANSION("QLinearConcat", 5, RONDO_OP_ANY_COUNT, 1, 1, axis_attributes, expand_concat),
    RONDO_EXPANSION("QLinearAveragePool", 4, 5, 1, 1, pool_attributes, expand_average_pool),
    RONDO_EXPANSION("QLinearGlobalAveragePool", 5, 5, 1, 1, last_attributes,
                    expand_global_average_pool),
    RONDO_EXPANSION("QLinearReduceMean", 4, 5, 1, 1, reduce_attributes, expand_reduce_mean),
    RONDO_EXPANSION("QLinearWhere", 9, 9, 1, 1, no_attributes, expand_where),
    RONDO_EXPANSION("QLinearConv", 8, 9, 1, 1, conv_attributes, expand_convolution),
    RONDO_EXPANSION("QAttention", 5, 9, 1, 2, attention_attributes, expand_attention),
    RONDO_EXPANSION("QGemm", 6, 9, 1, 1, gemm_attributes, expand_gemm),
    RONDO_EXPANSION("MatMulIntegerToFloat", 4, 7, 1, 1, no_attributes, expand_integer_to_float),
    RONDO_EXPANSION("DynamicQuantizeMatMul", 3, 5, 1, 1, no_attributes, expand_dynamic_product),
    RONDO_EXPANSION("MulInteger", 3, 4, 1, 1, no_attributes, expand_mul_integer),
    RONDO_EXPANSION("MatMulInteger16", 2, 2, 1, 1, no_attributes, expand_product_of_16_bits),
    {.def = {.name = NULL}},
};

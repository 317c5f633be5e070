// op/fused/fused.h — the internal ops (domain "rondo") that passes make and kernels run. Never in a
// file.
//
// Every one has a plain C reference like any other op (op/fused/op_fused.c), so that a fused plan
// runs on any device and can be compared with the model as written.
//
// rondo.Conv         inputs x, w, b?, z?, x2?, w2?
//   output           y = act(conv(x, w) + b + z + conv2(x2, w2))
//   attributes       kernel_shape, strides, dilations, pads (begin..., end...; always explicit),
//                    group, channels_last (0: x, z, y are [N, C, spatial...];
//                    1: [N, spatial..., C]), filters_last, activation, alpha, beta
//   w                [M, C / group, kernel...] in either layout, as ONNX has it; with filters_last
//                    1 [M, kernel..., C / group]; b [M]; z has y's shape
//   x2, w2           a second convolution by single pixels, as beside a block of a ResNet: x2
//                    [N, spatial..., C2] (channels_last 1), w2 [M, C2, 1...]; attribute
//                    second_strides
//
// rondo.MatMul       inputs a, b, bias?, z?   outputs y, moments?
//   y                act(alpha_scale * (op(a) x op(b)) + bias + z)
//   attributes       trans_a, trans_b (swap the last two extents first), alpha_scale, activation,
//                    alpha, beta, to (ONNX's number of y's dtype, f32 or f16; without it a's),
//                    gates (1: y is alpha_scale * (op(a) x op(b)) + bias, times act(z))
//   a, b             as ONNX MatMul (rank 1 and broadcast batch extents included); bias [N], or
//                    [M, 1]: one number for each row; z has y's shape
//   moments          f32 [rows of y, N / 32, 2], for N divisible by 32: of each 32 neighbouring
//                    columns of a row of y, as rounded, the mean and the sum of squared deviations
//                    from it
//
// rondo.NormMatMul   inputs x, b, bias?, z?, gain, shift?, moments?   outputs y, normal?
//   normal           LayerNormalization of x along its last axis: (x - mean) / sqrt(variance +
//                    epsilon) * gain + shift; gain and shift have one number for each column of x
//   y                rondo.MatMul of `normal`, not rounded before, and the inputs after it; its
//                    attributes (trans_a is never set), and epsilon
//   moments          of x, as rondo.MatMul makes them, and no others: from them a kernel may find
//                    mean and variance
//
// rondo.RowProduct   inputs x, w, bias?, z?, gain?, gate?: few rows, for which weights are read
//   y                act(n w + bias + z), or, with gate, act(n gate) * (n w), where bias and z are
//                    missing; n is x, or with gain RMSNormalization of x along its last axis:
//                    x / sqrt(mean of squares + epsilon) * gain, not rounded in between
//   attributes       trans_b (of w and gate), activation, alpha, beta, epsilon
//
// rondo.BitsRow      inputs as com.microsoft.MatMulNBits (op/math/bits_product.h), without g_idx,
//                    then gain?, and of a gate B?, scales?, zeros?
//   y                as rondo.RowProduct's, of weights of a few bits; bias may have y's shape
//   attributes       those of MatMulNBits; activation, alpha, beta, epsilon
//
// rondo.MaxPool, rondo.AveragePool, rondo.GlobalAveragePool
//   attributes       as the ONNX op (pads explicit, auto_pad never), and channels_last (always 1):
//                    x, y are [N, spatial..., C]
//
// rondo.GroupNormalization   inputs x, gain, shift
//   output           y = act((x - mean) / sqrt(variance + epsilon) * gain + shift), statistics of
//                    each image over groups of neighbouring channels
//   attributes       groups (as many as channels: InstanceNormalization), epsilon, channels_last
//                    (as rondo.Conv), activation, alpha, beta, way (which of a GPU's ways to take;
//                    -1, the default: the fastest)
//   gain, shift      [C], of x's dtype or f32
//
// rondo.LayFilters   inputs w0 ... wn [M, C, kernel...], with the same two axes of taps
//   outputs          two for each, which may be left out: w for a rondo.Conv with filters_last, [M,
//                    kernel..., C], and the same of the taps turned round, [C, kernel..., M], for
//                    one that goes back
//   attributes       to (ONNX's number of their dtype, f32 or f16), saturate (1: finite numbers
//                    stay finite)
//
// rondo.Concat       inputs x0 ... xn, images with channels last
//   output           y, their channels beside each other
//   attributes       blocks (ints, b for each input): xi is [N, H / b, W / b, b * b * C], and goes
//                    through DepthToSpace of b in between, C last (mode DCR)
//
// rondo.Elementwise  inputs x0 ... xn, of float dtypes, broadcast to y
//   output           y, the result of the last op; arithmetic in f32
//   attributes       ops (strings, in order of evaluation), operands (ints, 3 for each op: i <
//                    n_inputs is an input, n_inputs + k the result of op k, -1 none), alphas and
//                    betas (floats, one for each op), to (ONNX's number of y's dtype, f32 or f16;
//                    without it x0's)
//
// rondo.Update       what a training step makes of many variables (see op/fused/update.h)
// rondo.Finite       inputs x0 ... xn, f32 or f16
//   output           bool []: none holds an infinity or NaN
//
// rondo.Attention    inputs q, k, v, mask?
//   output           y = softmax(scale * q k^T + mask) v by head
//   attributes       scale; extents, q, k, v, y and shape (their layouts, if they are not rows of
//                    heads; see op/fused/attention.h); way (which of a GPU's ways to take; -1, the
//                    default: the fastest)
//
// rondo.AppendAttention  one token over a growing cache (see op/fused/append_attention.h)
//
// rondo.Rotate       inputs x, cosines, sines
//   output           y = x * cosines + r * sines, where r is x with the halves of its last axis
//                    swapped and the first of them then negated; both operands broadcast to x
//   attributes       heads (numbers; without it as above): x is [batch, rows, columns], whose
//                    columns are heads of equal width, and output i is [batch, heads[i], rows,
//                    width], the next heads[i] of them; those of the first `turned` outputs are
//                    turned as above, the others stay as they are
//
// rondo.BestRows     inputs scores [n, m], rows [n, w], both f32
//   outputs          of each of `columns` columns from `first` on the rows whose score is above
//                    `threshold`, the best first and equal ones as they stand, at most `most`: rows
//                    [found, w], scores [found], labels i64 [found] (the first column's `label`)
//   attributes       first, columns, label, most, threshold
//
// rondo.SpaceToDepth   input x
//   output           y: blocks of pixels as channels; see op/image/space_to_depth.h
//
// rondo.MatMulInteger  inputs a, b, a_zero?, b_zero?, scale?, factor?, bias?, z?
//   y                act(f32(sum) * (scale * factor) + bias + z), where sum is what ONNX's op makes
//                    of the first four, or that sum itself where neither scale nor factor is there
//   scale, factor    f32; scale one value, factor one or one for each column; bias [N]; z has y's
//                    shape
//   attributes       activation, alpha, beta; way (as rondo.Attention's)
// rondo.ConvInteger    the same of x, w, x_zero?, w_zero?; factor and bias by filter
//   attributes       those, those of rondo.Conv, and bias_in_steps (1: the bias over scale *
//                    factor, rounded down, is added to the sum)
// rondo.QLinearAdd     inputs a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero; a, b and y
//                    of 8 or 16 bits, the parameters one value each; a and b broadcast
//   output           y: what Add makes of both in f32, in steps of y_scale, bit for bit
// rondo.QLinearConv    as ONNX's, with the attributes of rondo.Conv up to channels_last, and way
//
// activation: "none", "relu", "clip" (alpha = min, beta = max), "leaky_relu" (alpha), "sigmoid",
//             "tanh", "gelu" (erf form), "silu", "hard_swish", "gelu_tanh" (0.5 x (1 + tanh(
//             sqrt(2 / pi) (x + 0.044715 x^3))))
//
// Elementwise op names: two operands: Add Sub Mul Div Max Min Pow Gate (0 where the first is at
// most 0, otherwise the second); one: Relu Sigmoid Tanh Erf Exp Log Sqrt Neg Abs Reciprocal Floor
// Ceil Softplus Gelu GeluTanh Silu HardSwish; one, with constants: Clip (alpha, beta), LeakyRelu
// (alpha), Elu (alpha), HardSigmoid (alpha, beta), Affine (alpha * x + beta), Saturate (finite
// numbers are kept within the range of f16)
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "op/op_list.h"

enum { RONDO__MOMENT_COLUMNS = 32 };  // columns of y that share a pair of moments

#define RONDO_ACTIVATION_MAP(X) \
    X(NONE, "none")             \
    X(RELU, "relu")             \
    X(CLIP, "clip")             \
    X(LEAKY_RELU, "leaky_relu") \
    X(SIGMOID, "sigmoid")       \
    X(TANH, "tanh")             \
    X(GELU, "gelu")             \
    X(SILU, "silu")             \
    X(HARD_SWISH, "hard_swish") \
    X(GELU_TANH, "gelu_tanh")

typedef enum rondo__activation {
#define RONDO_ACTIVATION_ENUM(name, text) RONDO__ACTIVATION_##name,
    RONDO_ACTIVATION_MAP(RONDO_ACTIVATION_ENUM)
#undef RONDO_ACTIVATION_ENUM
        RONDO__ACTIVATION_COUNT
} rondo__activation;

// X(name, operand count, op of ONNX that is this function)
#define RONDO_SCALAR_OP_MAP(X)               \
    X(Add, 2, RONDO__OP_Add)                 \
    X(Sub, 2, RONDO__OP_Sub)                 \
    X(Mul, 2, RONDO__OP_Mul)                 \
    X(Div, 2, RONDO__OP_Div)                 \
    X(Max, 2, RONDO__OP_Max)                 \
    X(Min, 2, RONDO__OP_Min)                 \
    X(Pow, 2, RONDO__OP_Pow)                 \
    X(Gate, 2, RONDO__OP_NONE)               \
    X(Relu, 1, RONDO__OP_Relu)               \
    X(Sigmoid, 1, RONDO__OP_Sigmoid)         \
    X(Tanh, 1, RONDO__OP_Tanh)               \
    X(Erf, 1, RONDO__OP_Erf)                 \
    X(Exp, 1, RONDO__OP_Exp)                 \
    X(Log, 1, RONDO__OP_Log)                 \
    X(Sqrt, 1, RONDO__OP_Sqrt)               \
    X(Neg, 1, RONDO__OP_Neg)                 \
    X(Abs, 1, RONDO__OP_Abs)                 \
    X(Reciprocal, 1, RONDO__OP_Reciprocal)   \
    X(Floor, 1, RONDO__OP_Floor)             \
    X(Ceil, 1, RONDO__OP_Ceil)               \
    X(Softplus, 1, RONDO__OP_Softplus)       \
    X(Gelu, 1, RONDO__OP_Gelu)               \
    X(GeluTanh, 1, RONDO__OP_NONE)           \
    X(Silu, 1, RONDO__OP_NONE)               \
    X(HardSwish, 1, RONDO__OP_HardSwish)     \
    X(Clip, 1, RONDO__OP_Clip)               \
    X(LeakyRelu, 1, RONDO__OP_LeakyRelu)     \
    X(Elu, 1, RONDO__OP_Elu)                 \
    X(HardSigmoid, 1, RONDO__OP_HardSigmoid) \
    X(Affine, 1, RONDO__OP_NONE)             \
    X(Saturate, 1, RONDO__OP_NONE)

typedef enum rondo__scalar_op {
#define RONDO_SCALAR_OP_ENUM(name, operands, op) RONDO__SCALAR_##name,
    RONDO_SCALAR_OP_MAP(RONDO_SCALAR_OP_ENUM)
#undef RONDO_SCALAR_OP_ENUM
        RONDO__SCALAR_COUNT
} rondo__scalar_op;

// -1 when the text names none.
int rondo__activation_parse(const char *text);
float rondo__activation_apply(rondo__activation activation, float alpha, float beta, float x);
int rondo__scalar_op_parse(const char *text);
// The function of an op of ONNX, Gelu without its mode; -1 when it has none.
int rondo__scalar_op_of(rondo__op_id op);
int rondo__scalar_op_get_operand_count(rondo__scalar_op op);
float rondo__scalar_op_apply(rondo__scalar_op op, float alpha, float beta, float a, float b);

// RMSNormalization of rows of `length` numbers, in place.
void rondo__rows_normalise(double *x, int64_t count, int64_t length, const double *gain,
                           double epsilon);

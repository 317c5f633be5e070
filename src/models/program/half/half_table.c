// program/half/half_table.c — the rules of half precision, op by op.
// SPDX-License-Identifier: Apache-2.0
#include "program/half/half_table.h"

#include <string.h>

#include "program/half/half_pass.h"

#define POWER "powers leave the range of f16"
#define EXPONENTIAL "exponentials leave the range of f16"
#define LOGARITHM "logarithms are taken of numbers that f16 flushes to 0"
#define ROOT "roots are taken of numbers that f16 flushes to 0"
#define SPECTRUM "spectra span more than f16 holds"
#define QUANTISED "quantisation steps are finer than f16"
#define BOXED "coordinates need more than the 11 bits of f16"
#define SUMMED "sums of many elements may leave the range of f16"
#define COMPARED "thresholds, categories and labels are compared in f32"
#define BITS "the bits of f32 are read"
#define TRAINED "a training step sums many elements and divides by small ones"

static const rondo__half_rule rules[] = {
    {"Pow", HALF_STAYS, HALF_WIDE, POWER},
    {"ReduceSumSquare", HALF_STAYS, HALF_WIDE, POWER},
    {"ReduceProd", HALF_STAYS, HALF_WIDE, POWER},
    {"Det", HALF_STAYS, HALF_WIDE, POWER},
    {"ReduceL2", HALF_STAYS, HALF_FINE, POWER},
    {"CumProd", HALF_STAYS, HALF_WIDE, POWER},
    {"BitCast", HALF_STAYS, HALF_WIDE, BITS},
    {"Exp", HALF_STAYS, HALF_WIDE, EXPONENTIAL},
    {"Sinh", HALF_STAYS, HALF_WIDE, EXPONENTIAL},
    {"Cosh", HALF_STAYS, HALF_WIDE, EXPONENTIAL},
    {"Tan", HALF_STAYS, HALF_WIDE, EXPONENTIAL},
    {"Log", HALF_STAYS | HALF_TRACED, HALF_PLAIN, LOGARITHM},
    {"ReduceLogSum", HALF_STAYS | HALF_TRACED, HALF_PLAIN, LOGARITHM},
    {"Sqrt", HALF_STAYS | HALF_TRACED, HALF_FINE, ROOT},
    {"DFT", HALF_STAYS | HALF_TRACED, HALF_WIDE, SPECTRUM},
    {"STFT", HALF_STAYS | HALF_TRACED, HALF_WIDE, SPECTRUM},
    {"MelWeightMatrix", HALF_STAYS, HALF_WIDE, SPECTRUM},
    {"BlackmanWindow", HALF_STAYS, HALF_EXACT, SPECTRUM},
    {"HammingWindow", HALF_STAYS, HALF_EXACT, SPECTRUM},
    {"HannWindow", HALF_STAYS, HALF_EXACT, SPECTRUM},
    {"QuantizeLinear", HALF_STAYS, HALF_PLAIN, QUANTISED},
    {"DequantizeLinear", HALF_STAYS, HALF_PLAIN, QUANTISED},
    {"DynamicQuantizeLinear", HALF_STAYS | HALF_TRACED, HALF_FINE, QUANTISED},
    {"DynamicQuantizeLSTM", HALF_STAYS, HALF_PLAIN, QUANTISED},
    {"DynamicQuantizeMatMul", HALF_STAYS, HALF_WIDE, QUANTISED},
    {"MatMulIntegerToFloat", HALF_STAYS, HALF_WIDE, QUANTISED},
    {"MatMulInteger", HALF_COUNTING, HALF_WIDE, QUANTISED},
    {"ConvInteger", HALF_COUNTING, HALF_WIDE, QUANTISED},
    {"QLinearConv", HALF_STAYS, HALF_PLAIN, QUANTISED},
    {"QLinearMatMul", HALF_STAYS, HALF_PLAIN, QUANTISED},
    {"Range", HALF_STAYS | HALF_TRACED, HALF_EXACT, HALF_COUNTED},
    {"NonMaxSuppression", HALF_STAYS | HALF_TRACED, HALF_PLAIN, BOXED},
    {"RoiAlign", HALF_STAYS | HALF_TRACED, HALF_PLAIN, BOXED},
    {"MaxRoiPool", HALF_STAYS | HALF_TRACED, HALF_PLAIN, BOXED},
    {"GridSample", HALF_STAYS | HALF_TRACED, HALF_PLAIN, BOXED},
    {"AffineGrid", HALF_STAYS | HALF_TRACED, HALF_EXACT, BOXED},
    {"TreeEnsemble", HALF_STAYS | HALF_TRACED, HALF_PLAIN, COMPARED},
    {"TreeEnsembleClassifier", HALF_STAYS | HALF_TRACED, HALF_PLAIN, COMPARED},
    {"TreeEnsembleRegressor", HALF_STAYS | HALF_TRACED, HALF_PLAIN, COMPARED},
    {"Binarizer", HALF_STAYS | HALF_TRACED, HALF_PLAIN, COMPARED},
    {"LabelEncoder", HALF_STAYS | HALF_TRACED, HALF_EXACT, COMPARED},
    {"OneHotEncoder", HALF_STAYS | HALF_TRACED, HALF_PLAIN, COMPARED},
    {"SVMClassifier", HALF_STAYS, HALF_PLAIN, EXPONENTIAL},
    {"SVMRegressor", HALF_STAYS, HALF_PLAIN, EXPONENTIAL},
    {"NegativeLogLikelihoodLoss", HALF_STAYS, HALF_PLAIN, TRAINED},
    {"SoftmaxCrossEntropyLoss", HALF_STAYS, HALF_PLAIN, TRAINED},
    {"Adagrad", HALF_STAYS, HALF_PLAIN, TRAINED},
    {"Adam", HALF_STAYS, HALF_PLAIN, TRAINED},
    {"Momentum", HALF_STAYS, HALF_PLAIN, TRAINED},
    {"ReduceSum", HALF_LONG_SUM | HALF_CARRIES, HALF_WIDE, SUMMED},
    {"ReduceL1", HALF_LONG_SUM | HALF_CARRIES, HALF_WIDE, SUMMED},
    {"CumSum", HALF_LONG_SUM | HALF_CARRIES, HALF_WIDE, SUMMED},
    {"ReduceMean", HALF_CARRIES, HALF_PLAIN, NULL},
    {"ReduceMax", HALF_CARRIES, HALF_PLAIN, NULL},
    {"ReduceMin", HALF_CARRIES, HALF_PLAIN, NULL},
    {"MatMul", HALF_PRODUCT, HALF_PLAIN, NULL},
    {"Gemm", HALF_PRODUCT, HALF_PLAIN, NULL},
    {"Conv", HALF_PRODUCT, HALF_PLAIN, NULL},
    {"ConvTranspose", HALF_PRODUCT, HALF_PLAIN, NULL},
    {"DeformConv", HALF_PRODUCT, HALF_PLAIN, NULL},
    {"Einsum", HALF_PRODUCT, HALF_PLAIN, NULL},
    {"Sigmoid", HALF_BOUNDED, HALF_PLAIN, NULL},
    {"Tanh", HALF_BOUNDED, HALF_PLAIN, NULL},
    {"Erf", HALF_BOUNDED, HALF_PLAIN, NULL},
    {"Sin", HALF_BOUNDED, HALF_PLAIN, NULL},
    {"Cos", HALF_BOUNDED, HALF_PLAIN, NULL},
    {"Atan", HALF_BOUNDED, HALF_PLAIN, NULL},
    {"HardSigmoid", HALF_BOUNDED, HALF_PLAIN, NULL},
    {"Softsign", HALF_BOUNDED, HALF_PLAIN, NULL},
    {"Sign", HALF_BOUNDED, HALF_PLAIN, NULL},
    {"Softmax", HALF_BOUNDED, HALF_PLAIN, NULL},
    {"LogSoftmax", HALF_BOUNDED, HALF_PLAIN, NULL},
    {"Hardmax", HALF_BOUNDED, HALF_PLAIN, NULL},
    {"ReduceLogSumExp", HALF_BOUNDED, HALF_PLAIN, NULL},
    {"BatchNormalization", HALF_BOUNDED, HALF_PLAIN, NULL},
    {"InstanceNormalization", HALF_BOUNDED, HALF_PLAIN, NULL},
    {"GroupNormalization", HALF_BOUNDED, HALF_PLAIN, NULL},
    {"LayerNormalization", HALF_BOUNDED, HALF_PLAIN, NULL},
    {"RMSNormalization", HALF_BOUNDED, HALF_PLAIN, NULL},
    {"LpNormalization", HALF_BOUNDED, HALF_PLAIN, NULL},
    {"MeanVarianceNormalization", HALF_BOUNDED, HALF_PLAIN, NULL},
    {"LSTM", HALF_BOUNDED, HALF_PLAIN, NULL},
    {"GRU", HALF_BOUNDED, HALF_PLAIN, NULL},
    {"RNN", HALF_BOUNDED, HALF_PLAIN, NULL},
};

// Inputs that keep f32 in f16 nodes: those that ONNX fixes, and parameters that kernels read in f32
// anyway.
static const struct {
    const char *op;
    size_t first;
    size_t last;
} fixed_inputs[] = {
    {"Resize", 1, 2},  // roi and scales; before opset 11 scales alone
    {"Upsample", 1, 1},
    {"Dropout", 1, 1},
    {"BatchNormalization", 1, 4},
};

bool rondo__half_is_fixed_input(const rondo__node *node, size_t input) {
    for (size_t i = 0; i < sizeof fixed_inputs / sizeof fixed_inputs[0]; ++i) {
        if (strcmp(node->op.def->name, fixed_inputs[i].op) == 0) {
            return input >= fixed_inputs[i].first && input <= fixed_inputs[i].last;
        }
    }
    return false;
}

const rondo__half_rule *rondo__half_find_rule(const rondo__node *node) {
    static const rondo__half_rule other = {NULL, 0, HALF_PLAIN, NULL};
    static const rondo__half_rule carrier = {NULL, HALF_CARRIES, HALF_PLAIN, NULL};
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; ++i) {
        if (strcmp(rules[i].op, node->op.def->name) == 0) {
            return &rules[i];
        }
    }
    const uint32_t carrying = RONDO__OP_ELEMENTWISE | RONDO__OP_VIEW | RONDO__OP_NATIVE_HALF;
    return (node->op.def->flags & carrying) != 0 ? &carrier : &other;
}

// program/half_table.c — the rules of half precision, op by op.
#include "program/half_table.h"

#include <string.h>

#include "program/half_pass.h"

#define POWER "powers leave the range of f16"
#define EXPONENTIAL "exponentials leave the range of f16"
#define LOGARITHM "logarithms are taken of numbers that f16 flushes to 0"
#define ROOT "roots are taken of numbers that f16 flushes to 0"
#define SPECTRUM "spectra span more than f16 holds"
#define QUANTISED "quantisation steps are finer than f16"
#define BOXED "coordinates need more than the 11 bits of f16"
#define SUMMED "sums of many elements may leave the range of f16"
#define COMPARED "thresholds, categories and labels are compared in f32"
#define TRAINED "a training step sums many elements and divides by small ones"

static const rondo__half_rule rules[] = {
    {"Pow", STAYS, WIDE, POWER},
    {"ReduceSumSquare", STAYS, WIDE, POWER},
    {"ReduceProd", STAYS, WIDE, POWER},
    {"Det", STAYS, WIDE, POWER},
    {"ReduceL2", STAYS, FINE, POWER},
    {"Exp", STAYS, WIDE, EXPONENTIAL},
    {"Sinh", STAYS, WIDE, EXPONENTIAL},
    {"Cosh", STAYS, WIDE, EXPONENTIAL},
    {"Tan", STAYS, WIDE, EXPONENTIAL},
    {"Log", STAYS | TRACED, PLAIN, LOGARITHM},
    {"ReduceLogSum", STAYS | TRACED, PLAIN, LOGARITHM},
    {"Sqrt", STAYS | TRACED, FINE, ROOT},
    {"DFT", STAYS | TRACED, WIDE, SPECTRUM},
    {"STFT", STAYS | TRACED, WIDE, SPECTRUM},
    {"MelWeightMatrix", STAYS, WIDE, SPECTRUM},
    {"BlackmanWindow", STAYS, EXACT, SPECTRUM},
    {"HammingWindow", STAYS, EXACT, SPECTRUM},
    {"HannWindow", STAYS, EXACT, SPECTRUM},
    {"QuantizeLinear", STAYS, PLAIN, QUANTISED},
    {"DequantizeLinear", STAYS, PLAIN, QUANTISED},
    {"DynamicQuantizeLinear", STAYS | TRACED, FINE, QUANTISED},
    {"DynamicQuantizeLSTM", STAYS, PLAIN, QUANTISED},
    {"DynamicQuantizeMatMul", STAYS, WIDE, QUANTISED},
    {"MatMulIntegerToFloat", STAYS, WIDE, QUANTISED},
    {"MatMulInteger", COUNTING, WIDE, QUANTISED},
    {"ConvInteger", COUNTING, WIDE, QUANTISED},
    {"QLinearConv", STAYS, PLAIN, QUANTISED},
    {"QLinearMatMul", STAYS, PLAIN, QUANTISED},
    {"Range", STAYS | TRACED, EXACT, COUNTED},
    {"NonMaxSuppression", STAYS | TRACED, PLAIN, BOXED},
    {"RoiAlign", STAYS | TRACED, PLAIN, BOXED},
    {"MaxRoiPool", STAYS | TRACED, PLAIN, BOXED},
    {"GridSample", STAYS | TRACED, PLAIN, BOXED},
    {"AffineGrid", STAYS | TRACED, EXACT, BOXED},
    {"TreeEnsemble", STAYS | TRACED, PLAIN, COMPARED},
    {"TreeEnsembleClassifier", STAYS | TRACED, PLAIN, COMPARED},
    {"TreeEnsembleRegressor", STAYS | TRACED, PLAIN, COMPARED},
    {"Binarizer", STAYS | TRACED, PLAIN, COMPARED},
    {"LabelEncoder", STAYS | TRACED, EXACT, COMPARED},
    {"OneHotEncoder", STAYS | TRACED, PLAIN, COMPARED},
    {"SVMClassifier", STAYS, PLAIN, EXPONENTIAL},
    {"SVMRegressor", STAYS, PLAIN, EXPONENTIAL},
    {"NegativeLogLikelihoodLoss", STAYS, PLAIN, TRAINED},
    {"SoftmaxCrossEntropyLoss", STAYS, PLAIN, TRAINED},
    {"Adagrad", STAYS, PLAIN, TRAINED},
    {"Adam", STAYS, PLAIN, TRAINED},
    {"Momentum", STAYS, PLAIN, TRAINED},
    {"ReduceSum", LONG_SUM | CARRIES, WIDE, SUMMED},
    {"ReduceL1", LONG_SUM | CARRIES, WIDE, SUMMED},
    {"CumSum", LONG_SUM | CARRIES, WIDE, SUMMED},
    {"ReduceMean", CARRIES, PLAIN, NULL},
    {"ReduceMax", CARRIES, PLAIN, NULL},
    {"ReduceMin", CARRIES, PLAIN, NULL},
    {"MatMul", PRODUCT, PLAIN, NULL},
    {"Gemm", PRODUCT, PLAIN, NULL},
    {"Conv", PRODUCT, PLAIN, NULL},
    {"ConvTranspose", PRODUCT, PLAIN, NULL},
    {"DeformConv", PRODUCT, PLAIN, NULL},
    {"Einsum", PRODUCT, PLAIN, NULL},
    {"Sigmoid", BOUNDED, PLAIN, NULL},
    {"Tanh", BOUNDED, PLAIN, NULL},
    {"Erf", BOUNDED, PLAIN, NULL},
    {"Sin", BOUNDED, PLAIN, NULL},
    {"Cos", BOUNDED, PLAIN, NULL},
    {"Atan", BOUNDED, PLAIN, NULL},
    {"HardSigmoid", BOUNDED, PLAIN, NULL},
    {"Softsign", BOUNDED, PLAIN, NULL},
    {"Sign", BOUNDED, PLAIN, NULL},
    {"Softmax", BOUNDED, PLAIN, NULL},
    {"LogSoftmax", BOUNDED, PLAIN, NULL},
    {"Hardmax", BOUNDED, PLAIN, NULL},
    {"ReduceLogSumExp", BOUNDED, PLAIN, NULL},
    {"BatchNormalization", BOUNDED, PLAIN, NULL},
    {"InstanceNormalization", BOUNDED, PLAIN, NULL},
    {"GroupNormalization", BOUNDED, PLAIN, NULL},
    {"LayerNormalization", BOUNDED, PLAIN, NULL},
    {"LpNormalization", BOUNDED, PLAIN, NULL},
    {"MeanVarianceNormalization", BOUNDED, PLAIN, NULL},
    {"LSTM", BOUNDED, PLAIN, NULL},
    {"GRU", BOUNDED, PLAIN, NULL},
    {"RNN", BOUNDED, PLAIN, NULL},
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
    static const rondo__half_rule other = {NULL, 0, PLAIN, NULL};
    static const rondo__half_rule carrier = {NULL, CARRIES, PLAIN, NULL};
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; ++i) {
        if (strcmp(rules[i].op, node->op.def->name) == 0) {
            return &rules[i];
        }
    }
    const uint32_t carrying = RONDO__OP_ELEMENTWISE | RONDO__OP_VIEW | RONDO__OP_NATIVE_HALF;
    return (node->op.def->flags & carrying) != 0 ? &carrier : &other;
}

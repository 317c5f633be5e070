// Sums so long that f32 alone loses digits of them, along rows, along columns and over everything.
// SPDX-License-Identifier: Apache-2.0
#include "support/cases/op_cases.h"

#define REDUCE(op)                                                                          \
    {op, 13, "T[1048577]:p", "", 1}, {op, 13, "T[3,400009]:p", "axes=1,", 1},               \
        {op, 13, "T[400009,3]:p", "axes=0,", 1}, {op, 13, "T[20011,40]:p", "axes=0,", 1}, { \
        op, 13, "T[5,3001,7,11]:p", "axes=1,3 keepdims=0", 1                                \
    }

const op_case op_long_cases[] = {
    {"ReduceSum", 13, "T[1048577]:p i64[1]:=0", "", 1},
    {"ReduceSum", 13, "T[3,400009]:p i64[1]:=1", "", 1},
    {"ReduceSum", 13, "T[400009,3]:p i64[1]:=0", "", 1},
    {"ReduceSum", 13, "T[20011,40]:p i64[1]:=0", "", 1},
    {"ReduceSum", 13, "T[5,3001,7,11]:p i64[2]:=1,3", "", 1},
    REDUCE("ReduceMean"),
    REDUCE("ReduceL1"),
    REDUCE("ReduceL2"),
    REDUCE("ReduceSumSquare"),
    REDUCE("ReduceLogSum"),
    REDUCE("ReduceLogSumExp"),
    {"GlobalAveragePool", 13, "T[1,2,700,700]:p", "", 1},
    {"rondo.GlobalAveragePool", 17, "T[1,700,700,8]:p", "channels_last=1", 1},
    {"AveragePool", 13, "T[1,2,300,301]:p", "kernel_shape=300,300", 1},
    {"Softmax", 13, "T[2,1000003]", "", 1},
    {"Softmax", 13, "T[300007,3]", "axis=0", 1},
    {"Softmax", 11, "T[2,700,700]", "axis=1", 1},
    {"LogSoftmax", 13, "T[2,1000003]", "", 1},
    {"LogSoftmax", 13, "T[300007,3]", "axis=0", 1},
    {"LayerNormalization", 17, "T[2,400009]:p T[400009] T[400009]", "", 3},
    {"InstanceNormalization", 13, "T[1,2,700,700]:p T[2] T[2]", "", 1},
    {"GroupNormalization", 21, "T[1,4,500,500]:p T[4] T[4]", "num_groups=2", 1},
    {"rondo.GroupNormalization", 17, "T[1,700,700,2]:p T[2] T[2]", "groups=2 channels_last=1", 1},
    {"rondo.GroupNormalization", 17, "T[1,500,500,4]:p T[4] T[4]", "groups=2 channels_last=1", 1},
    {"rondo.GroupNormalization", 17, "T[1,90,90,16]:p T[16] T[16]", "groups=4 channels_last=1", 1},
    {"MeanVarianceNormalization", 13, "T[2,3,300,300]:p", "", 1},
    {"CumSum", 14, "T[400009]:p i32[1]:=0", "", 1},
    {"CumSum", 14, "T[200003,3]:p i32[1]:=0", "reverse=1", 1},
    {"NegativeLogLikelihoodLoss", 13, "T[300007,3]:p i64[300007]:i3", "", 1},
    {"SoftmaxCrossEntropyLoss", 13, "T[300007,3] i64[300007]:i3", "", 1},
};

const size_t op_long_case_count = sizeof(op_long_cases) / sizeof(op_long_cases[0]);

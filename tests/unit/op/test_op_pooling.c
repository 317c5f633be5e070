// Awkward semantics of pools.
//
// Expected numbers come from ONNX Runtime on the same inputs, unless a row says
// otherwise.
// SPDX-License-Identifier: Apache-2.0

#include "support/cases/op_rows.h"
#include "support/test.h"

static const op_row max_pool_rows[] = {
    // Indices are flat over all of x
    {"MaxPool", 12, "f32[2,2,4,4]:~1", "kernel_shape=I:2,2 strides=I:2,2",
     "f32[2,2,2,2]:1.25,0.75,1.375,0.375,1,1.125,0.625,1.25,1.375,0.875,1.125,0.5,0.75,"
     "1.375,0.375,1 i64[2,2,2,2]:4,7,9,15,17,22,25,27,32,35,45,43,53,55,61,63"},
    // Storage order counts columns first
    {"MaxPool", 12, "f32[1,1,4,5]:~1", "kernel_shape=I:2,2 strides=I:2,2 storage_order=1",
     "f32[1,1,2,2]:0.125,0.75,0.375,1 i64[1,1,2,2]:1,9,3,11"},
    // Padding never wins
    {"MaxPool", 12, "f32[1,1,2,2]:-1,-2,-3,-4", "kernel_shape=I:3,3 pads=I:1,1,1,1",
     "f32[1,1,2,2]:-1"},
    {"MaxPool", 12, "f32[1,1,6,6]:~1",
     "kernel_shape=I:2,2 strides=I:2,2 dilations=I:2,2 ceil_mode=1",
     "f32[1,1,3,3]:0.875,1.25,1.25,0.875,0.125,0.125,-0.5,0.125"},
    // Of bytes
    {"MaxPool", 12, "i8[1,1,2,2]:-128,-5,-100,-7", "kernel_shape=I:2,2 pads=I:1,1,0,0",
     "i8[1,1,2,2]:-128,-5,-100,-5"},
    {"MaxPool", 12, "f32[1,1,3,3]:~1", "kernel_shape=I:2,2 auto_pad=s:SAME_LOWER",
     "f32[1,1,3,3]:0,0,0.625,0,1.25,1.25,-0.5,1.25"},
    // As numpy: NaN wins.
    {"MaxPool", 12, "f32[1,1,4]:1,nan,2,3", "kernel_shape=I:2", "f32[1,1,3]:nan,nan,3"},
    // In windows side by side, too, wherever it is.
    {"MaxPool", 12, "f32[1,1,2,12]:1,nan,2,3,4,5,nan,7,8,9,1,2,3,2,nan,1,0,1,2,3,4,nan,5,6",
     "kernel_shape=I:2,2 strides=I:2,2", "f32[1,1,1,6]:nan,nan,5,nan,nan,6"},
    // The third window would start in the padding, so there are two.
    {"MaxPool", 12, "f32[1,1,4,4]:~1",
     "kernel_shape=I:1,1 strides=I:2,2 pads=I:0,0,1,1 ceil_mode=1",
     "f32[1,1,2,2]:0,0.625,-0.375,0.25"},
    {"MaxPool", 13, "f32[1,2,5,5]:~1", "", "!BAD_DATA attribute kernel_shape is missing"},
    {"MaxPool", 13, "f32[1,2,5,5]:~1", "kernel_shape=I:0,2",
     "!BAD_DATA attribute kernel_shape[0] is 0"},
    {"MaxPool", 13, "f32[1,2,5,5]:~1", "kernel_shape=I:2",
     "!BAD_DATA attribute kernel_shape has 1 entries"},
    {"MaxPool", 13, "f32[1,2,5,5]:~1", "kernel_shape=I:2,2 strides=I:0,1",
     "!BAD_DATA attribute strides[0] is 0"},
    {"MaxPool", 13, "f32[1,2,5,5]:~1", "kernel_shape=I:4611686018427387904,1",
     "!BAD_DATA attribute kernel_shape[0]"},
    {"MaxPool", 13, "f32[1,2,5,5]:~1", "kernel_shape=I:6,1", "!BAD_DATA spans 6"},
};
OP_ROWS_TEST(test_op_pooling__max_pool, max_pool_rows)

static const op_row average_pool_rows[] = {
    // Excludes padding
    {"AveragePool", 11, "f32[1,1,4,4]:~1", "kernel_shape=I:3,3 pads=I:1,1,1,1 strides=I:2,2",
     "f32[1,1,2,2]:0.0625,-0.1875,0.5,-0.06944445"},
    // Includes padding
    {"AveragePool", 11, "f32[1,1,4,4]:~1",
     "kernel_shape=I:3,3 pads=I:1,1,1,1 strides=I:2,2 count_include_pad=1",
     "f32[1,1,2,2]:0.02777778,-0.125,0.3333333,-0.06944445"},
    // The last window has two elements inside; ONNX 1.17 and PyTorch divide by two.
    {"AveragePool", 19, "f32[1,1,4]:1,2,3,4",
     "kernel_shape=I:3 strides=I:2 ceil_mode=1 count_include_pad=1", "f32[1,1,2]:2,3.5"},
    // Numbers from onnx.reference.
    {"AveragePool", 19, "f32[1,1,4,4]:~1", "kernel_shape=I:2,2 dilations=I:2,2",
     "f32[1,1,2,2]:0.125,-0.28125,-0.0625,0.25"},
};
OP_ROWS_TEST(test_op_pooling__average_pool, average_pool_rows)

static const op_row lp_pool_rows[] = {
    {"LpPool", 11, "f32[1,1,4,3]:~1", "kernel_shape=I:2,2 p=3 strides=I:2,1",
     "f32[1,1,2,2]:1.518577,1.535882,1.592295,1.050765"},
    {"LpPool", 13, "f32[1,2,5,5]:~1", "kernel_shape=I:2,2 p=0", "!BAD_DATA attribute p is 0"},
};
OP_ROWS_TEST(test_op_pooling__lp_pool, lp_pool_rows)

static const op_row global_lp_pool_rows[] = {
    {"GlobalLpPool", 2, "f32[1,2,3,3]:~1", "p=3", "f32[1,2,1,1]:1.734991,2.003737"},
};
OP_ROWS_TEST(test_op_pooling__global_lp_pool, global_lp_pool_rows)

static const op_row global_max_pool_rows[] = {
    // Max of one axis
    {"GlobalMaxPool", 13, "f32[2,2,5]:~1", "", "f32[2,2,1]:1.25,1.375,0.875,1"},
};
OP_ROWS_TEST(test_op_pooling__global_max_pool, global_max_pool_rows)

static const op_row max_unpool_rows[] = {
    // Unpool to a larger shape: numbers from onnx.reference.
    {"MaxUnpool", 11, "f32[1,1,2,2]:5,6,7,8 i64[1,1,2,2]:5,7,13,15 i64[4]:1,1,5",
     "kernel_shape=I:2,2 strides=I:2,2", "f32[1,1,5,5]:0,0,0,0,0,0,5,0,6,0,0,0,0,0,0,0,7,0,8,0"},
    {"MaxUnpool", 13, "f32[1,1,1]:5 i64[1,1,1]:99", "kernel_shape=I:2", "!BAD_DATA index 99"},
    {"MaxUnpool", 13, "f32[1,1,1]:5 i64[1,1,1] i64[3]:1,1,-7", "kernel_shape=I:2",
     "!BAD_DATA MaxUnpool"},
};
OP_ROWS_TEST(test_op_pooling__max_unpool, max_unpool_rows)

TEST_MAIN()

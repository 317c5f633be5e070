// Awkward semantics of quantisation.
//
// Expected numbers come from ONNX Runtime on the same inputs, unless a row says
// otherwise.
// SPDX-License-Identifier: Apache-2.0

#include "support/cases/op_rows.h"
#include "support/test.h"

static const op_row quantize_linear_rows[] = {
    // Rounds ties to even and saturates
    {"QuantizeLinear", 13, "f32[8]:1,3,5,-1,-3,1000,-1000,0.9 f32[]:2 u8[]:128", "",
     "u8[8]:128,130,130,128,126,255,0,128"},
    // Signed with axis
    {"QuantizeLinear", 13, "f32[2,3]:~1 f32[2]:0.1,0.25 i8[2]:5,-7", "axis=0",
     "i8[2,3]:5,-6,11,-9,-2,-7"},
    // Zero point is optional
    {"QuantizeLinear", 13, "f32[3]:1,2.5,-1 f32[]:0.5", "", "u8[3]:2,5,0"},
    {"QuantizeLinear", 25, "f32[3]:1,2.5,-1 f32[]:0.5", "precision=1", "u8[3]:2,5,0"},
    {"QuantizeLinear", 25, "f32[2]:2.5003,1 f32[]:1", "precision=1", "u8[2]:3,1"},
    {"QuantizeLinear", 25, "f32[2]:2.5003,1 f32[]:1", "precision=10", "u8[2]:2,1"},
    {"QuantizeLinear", 25, "f32[2]:2.505,1 f32[]:1", "precision=16", "u8[2]:2,1"},
    {"QuantizeLinear", 25, "f32[1]:1.75 f32[]:0.7", "", "u8[1]:2"},
    {"QuantizeLinear", 25, "f32[1]:1.75 f32[]:0.7", "precision=11", "u8[1]:3"},
    {"QuantizeLinear", 25, "f32[3]:1,2.5,-1 f32[]:0.5", "precision=6",
     "!UNSUPPORTED version 25 (attribute precision=6, int32)"},
    {"QuantizeLinear", 25, "i32[3]:7,-8,5 i32[]:2", "output_dtype=3", "i8[3]:4,-4,2"},
    {"QuantizeLinear", 25, "f32[1]:1 f32[]:1 u8[]", "output_dtype=3",
     "!BAD_DATA attribute output_dtype is i8 and the zero point u8"},
    {"QuantizeLinear", 21, "f32[3,2]:~1 f32[2,2]:0.1,0.5,0.2,0.25",
     "axis=0 block_size=2 output_dtype=3", "i8[3,2]:0,-2,6,-1,6,0"},
    // ONNX leaves NaN open; here it is 0, never undefined behaviour.
    {"QuantizeLinear", 13, "f32[1]:nan f32[]:1", "", "u8[1]"},
    {"QuantizeLinear", 13, "f32[2,3]:~1 f32[2]:0.1,0.25", "axis=1",
     "!BAD_DATA scale has shape [2]"},
    {"QuantizeLinear", 13, "f32[2,3]:~1 f32[2]:0.1,0.25", "axis=5", "!BAD_DATA axis"},
    {"QuantizeLinear", 13, "f32[2,3]:~1 f32[2]:0.1,0.25 i8[1]:5", "axis=0",
     "!BAD_DATA different shapes"},
    {"QuantizeLinear", 21, "f32[2,3]:~1 f32[]:0.1", "output_dtype=27",
     "!UNSUPPORTED unsupported: op QuantizeLinear"},
    {"QuantizeLinear", 25, "f32[2,3]:~1 f32[]:0.1", "output_dtype=24",
     "!UNSUPPORTED attribute output_dtype=24, float8e8m0"},
};
OP_ROWS_TEST(test_op_quantize__quantize_linear, quantize_linear_rows)

// Numbers from onnx's reference.
static const op_row narrow_types_rows[] = {
    {"QuantizeLinear", 21, "f32[5]:1,2.5,-30,30,3.5 f32[]:0.5 i4[]:1", "", "i4[5]:3,6,-8,7,7"},
    {"QuantizeLinear", 21, "f32[2,3]:1,2.5,3,-30,30,3.5 f32[2]:0.5,2 u4[2]:3,9", "axis=0",
     "u4[2,3]:5,8,9,0,15,11"},
    {"QuantizeLinear", 25, "f32[2,3]:1,2.5,3,-30,30,3.5 f32[2,2]:0.5,2,4,1",
     "axis=1 block_size=2 output_dtype=26", "i2[2,3]:1,1,1,-2,1,1"},
    {"QuantizeLinear", 25, "f32[1]:nan f32[]:1 u2[]:2", "", "u2[1]:0"},
    {"QuantizeLinear", 19, "f32[4]:1,2.6,-3000,0.001 f32[]:0.5 f8e4m3fn[]", "",
     "f8e4m3fn[4]:2,5,-448,0.001953125"},
    {"QuantizeLinear", 21, "f32[4]:1e6,2.6,-3000,0.001 f32[]:0.5", "output_dtype=19 saturate=0",
     "f8e5m2[4]:inf,5,-6144,0.001953125"},
    {"QuantizeLinear", 21, "f16[2]:1e4,nan f16[]:0.5", "output_dtype=18 saturate=0",
     "f8e4m3fnuz[2]:nan,nan"},
    {"QuantizeLinear", 23, "f32[4]:1,2.6,-3000,0.3 f32[]:0.5 f4e2m1[]", "", "f4e2m1[4]:2,6,-6,0.5"},
    {"QuantizeLinear", 24, "f32[4]:1,2.6,-3000,0.3 f8e8m0[]:2 i8[]:1", "", "i8[4]:1,2,-128,1"},
    {"DequantizeLinear", 21, "i4[3]:-8,7,0 f32[]:0.5 i4[]:1", "", "f32[3]:-4.5,3,-0.5"},
    {"DequantizeLinear", 21, "i4[2,3]:-8,7,0,1,2,3 f32[2,2]:0.5,2,1,10", "axis=1 block_size=2",
     "f32[2,3]:-4,3.5,0,1,2,30"},
    {"DequantizeLinear", 25, "i2[3]:-2,1,0 f16[]:0.5", "", "f16[3]:-1,0.5,0"},
    {"DequantizeLinear", 19, "f8e4m3fn[3]:0.5,-448,nan f32[]:2 f8e4m3fn[]", "",
     "f32[3]:1,-896,nan"},
    {"DequantizeLinear", 23, "f8e5m2[3]:0.5,-inf,3 f32[]:2", "output_dtype=10", "f16[3]:1,-inf,6"},
    {"DequantizeLinear", 24, "f4e2m1[3]:0.5,-6,3 f8e8m0[]:4", "output_dtype=1", "f32[3]:2,-24,12"},
    {"DequantizeLinear", 24, "f4e2m1[3]:0.5,-6,3 f8e8m0[]:4", "",
     "!UNSUPPORTED a scale of f8e8m0 without attribute output_dtype: set it"},
    {"DequantizeLinear", 21, "f8e8m0[1]:1 f32[]:1", "", "!UNSUPPORTED input 0 of type f8e8m0"},
    {"DequantizeLinear", 21, "i4[1]:1 f32[]:1 i8[]", "", "!BAD_DATA of one type"},
};
OP_ROWS_TEST(test_op_quantize__narrow_types, narrow_types_rows)

static const op_row dequantize_linear_rows[] = {
    {"DequantizeLinear", 25, "i8[2]:-128,127 f32[]:0.5", "output_dtype=1", "f32[2]:-64,63.5"},
    {"DequantizeLinear", 25, "i8[2]:-128,127 f32[]:0.3", "output_dtype=10",
     "~1e-9 f16[2]:-38.40625,38.09375"},
    {"DequantizeLinear", 25, "i8[2]:-128,127 f32[]:0.3", "output_dtype=6",
     "!UNSUPPORTED attribute output_dtype=6, int32"},
    {"DequantizeLinear", 13, "i8[2,2]:-128,127,5,6 f32[2]:0.5,2 i8[2]:1,-2", "axis=-1",
     "f32[2,2]:-64.5,258,2,16"},
    {"DequantizeLinear", 13, "i32[2]:100000,-7 f32[]:0.5", "", "f32[2]:50000,-3.5"},
    {"DequantizeLinear", 21, "u8[2,4]:0,1,2,3,4,5,6,7 f32[2,2]:1,0.5,2,0.25 u8[2,2]:1,2,3,4",
     "axis=1 block_size=2", "f32[2,4]:-1,0,0,0.5,2,4,0.5,0.75"},
    {"DequantizeLinear", 21, "u8[2,4]:0,1,2,3,4,5,6,7 f32[2,2]:1,0.5,2,0.25",
     "axis=1 block_size=-2", "!BAD_DATA block_size"},
};
OP_ROWS_TEST(test_op_quantize__dequantize_linear, dequantize_linear_rows)

static const op_row dynamic_quantize_linear_rows[] = {
    // Of positive numbers starts at zero
    {"DynamicQuantizeLinear", 11, "f32[4]:1,2,3,4", "",
     "u8[4]:64,127,191,255 f32[]:0.01568628 u8[]"},
    // All zeros: the scale is 0 and nothing divides by it.
    {"DynamicQuantizeLinear", 11, "f32[2]", "", "u8[2] f32[] u8[]"},
};
OP_ROWS_TEST(test_op_quantize__dynamic_quantize_linear, dynamic_quantize_linear_rows)

// Where the scale of an element stands, in every form that a scale can have; above all those whose
// extents are 1, which look like another form.
static const op_row finds_scales_rows[] = {
    {"DequantizeLinear", 21, "u8[4]:1,2,3,4 f32[4]:1,10,100,1000", "axis=0 block_size=1",
     "f32[4]:1,20,300,4000"},
    {"DequantizeLinear", 21, "u8[2,2]:1,2,3,4 f32[2,2]:1,10,100,1000", "axis=0 block_size=1",
     "f32[2,2]:1,20,300,4000"},
    {"DequantizeLinear", 21, "i8[1,3]:1,2,3 f32[1,3]:1,10,100 i8[1,3]:0,1,2", "axis=0 block_size=1",
     "f32[1,3]:1,10,100"},
    {"DequantizeLinear", 21, "u8[3,1]:1,2,3 f32[3,1]:1,10,100", "axis=1 block_size=2",
     "f32[3,1]:1,20,300"},
    {"DequantizeLinear", 21, "u8[1,3]:1,2,3 f32[1,3]:1,10,100", "axis=0 block_size=7",
     "f32[1,3]:1,20,300"},
    {"DequantizeLinear", 21, "u8[2,3,1]:1,2,3,4,5,6 f32[2,2,1]:1,10,100,1000",
     "axis=-2 block_size=2", "f32[2,3,1]:1,2,30,400,500,6000"},
    {"DequantizeLinear", 21, "u8[1,3]:1,2,3 f32[1]:10", "axis=0", "f32[1,3]:10,20,30"},
    {"DequantizeLinear", 21, "u8[1,3]:1,2,3 f32[3]:1,10,100", "", "f32[1,3]:1,20,300"},
    {"DequantizeLinear", 21, "u8[]:7 f32[]:10", "", "f32[]:70"},
    {"DequantizeLinear", 21, "u8[]:7 f32[1]:10 u8[1]:2", "", "f32[]:50"},
    {"DequantizeLinear", 21, "u8[0,2] f32[0,2]", "axis=0 block_size=3", "f32[0,2]"},
    {"DequantizeLinear", 21, "u8[2] f32[1]", "axis=0 block_size=1",
     "!BAD_DATA scale has shape [1], which attribute block_size = 1 does not fit"},
    {"QuantizeLinear", 21, "f32[2,2]:1,20,300,4000 f32[2,2]:1,10,100,1000", "axis=1 block_size=1",
     "u8[2,2]:1,2,3,4"},
    {"QuantizeLinear", 21, "f32[3,1]:1,20,300 f32[3,1]:1,10,100 i8[3,1]:1,2,3",
     "axis=1 block_size=4", "i8[3,1]:2,4,6"},
    {"QuantizeLinear", 21, "f32[1,2]:5,-5 f32[1]:2 i16[1]:100", "axis=0", "i16[1,2]:102,98"},
};
OP_ROWS_TEST(test_op_quantize__finds_scales, finds_scales_rows)

// Sums are brought to steps in f32: ties are those of f32. Numbers from ONNX Runtime.
static const op_row requantizes_in_f32_rows[] = {
    {"QLinearMatMul", 10,
     "u8[4,1]:27,63,99,200 f32[]:0.1 u8[] i8[1,1]:1 f32[]:0.05 i8[] f32[]:0.09 u8[]", "",
     "u8[4,1]:2,4,6,11"},
    {"QLinearMatMul", 10,
     "u8[4,1]:27,63,99,200 f32[4]:0.1 u8[4] i8[1,2]:1 f32[2]:0.05 i8[2] f32[]:0.09 u8[]:3", "",
     "u8[4,2]:5,5,7,7,9,9,14,14"},
};
OP_ROWS_TEST(test_op_quantize__requantizes_in_f32, requantizes_in_f32_rows)

TEST_MAIN()

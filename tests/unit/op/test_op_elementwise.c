// Awkward semantics of element-wise ops.
// SPDX-License-Identifier: Apache-2.0

#include "support/cases/op_rows.h"
#include "support/test.h"

TEST(test_op_elementwise__broadcasts_both_ways) {
    static const op_row rows[] = {
        {"Add", 14, "f32[2,1]:1,2 f32[3]:10,20,30", "", "f32[2,3]:11,21,31,12,22,32"},
        {"Sub", 14, "i32[]:5 i32[2,2]:1,2,3,4", "", "i32[2,2]:4,3,2,1"},
        {"Mul", 14, "f32[2,1,2]:1,2,3,4 f32[1,2,1]:1,10", "", "f32[2,2,2]:1,2,10,20,3,4,30,40"},
        {"Add", 14, "f32[0,3] f32[3]:1", "", "f32[0,3]"},
        {"Add", 14, "f32[1,1] f32[0,1]", "", "f32[0,1]"},
        {"Max", 13, "f32[2]:1,5 f32[3,1]:0,2,9 f32[]:3", "", "f32[3,2]:3,5,3,5,9,9"},
        {"Where", 16, "bool[2,1]:1,0 i8[2]:1,2 i8[]:9", "", "i8[2,2]:1,2,9,9"},
        {"Add", 14, "f32[2,3] f32[2]", "", "!BAD_DATA do not broadcast"},
        {"Add", 14, "f32[2] f64[2]", "", "!BAD_DATA must be of one type"},
        {"PRelu", 16, "f32[2,2]:-1,2,-3,4 f32[2]:0.5,2", "", "f32[2,2]:-0.5,2,-1.5,4"},
        {"PRelu", 16, "f32[2] f32[2,2]", "", "!BAD_DATA slope must broadcast"},
    };
    OP_ROWS_CHECK(rows);
}

TEST(test_op_elementwise__integers_never_trap) {
    static const op_row rows[] = {
        {"Div", 14, "i32[2]:-2147483648,7 i32[2]:-1,-2", "", "i32[2]:-2147483648,-3"},
        {"Div", 14, "i64[1]:-9223372036854775808 i64[1]:-1", "", "i64[1]:-9223372036854775808"},
        {"Div", 14, "i32[2]:1,2 i32[2]:1,0", "", "!BAD_DATA element 1 of the divisor"},
        {"Mod", 13, "u8[1]:1 u8[1]:0", "", "!BAD_DATA element 0 of the divisor"},
        {"Mod", 13, "i32[1]:-2147483648 i32[1]:-1", "", "i32[1]:0"},
        {"Mod", 13, "i32[4]:-7,7,-7,7 i32[4]:3,-3,-3,3", "", "i32[4]:2,-2,-1,1"},
        {"Mod", 13, "i32[4]:-7,7,-7,7 i32[4]:3,-3,-3,3", "fmod=1", "i32[4]:-1,1,-1,1"},
        {"Mod", 27, "f32[1]:1 f32[1]:1", "", "!BAD_DATA fmod must be 1 for f32 below opset 28"},
        {"Mod", 28, "f32[6]:-7.5,7.5,-6,6,0,1 f32[6]:2,-2,2,-2,-3,inf", "",
         "f32[6]:0.5,-0.5,0,-0,-0,1"},
        {"Mod", 28, "f64[5]:-1,1,inf,1,nan f64[5]:inf,-inf,2,0,2", "",
         "f64[5]:inf,-inf,nan,nan,nan"},
        {"Mod", 28, "f16[2]:-7.5,7.5 f16[1]:2", "", "f16[2]:0.5,1.5"},
        {"Mod", 13, "f32[2]:-7.5,7.5 f32[2]:2", "fmod=1", "f32[2]:-1.5,1.5"},
        {"BitCast", 26, "f32[3]:1,-0,inf", "to=6", "i32[3]:1065353216,-2147483648,2139095040"},
        {"BitCast", 26, "u16[2]:15360,49152", "to=10", "f16[2]:1,-2"},
        {"BitCast", 26, "f32[1]:1", "to=7", "!BAD_DATA the bits of f32 do not make i64"},
        {"BitCast", 26, "f32[1]:1", "to=8", "!BAD_DATA the bits of f32 do not make string"},
        {"BitCast", 26, "f32[1]:1", "to=27", "!UNSUPPORTED attribute to=27, float6e2m3"},
        {"BitCast", 26, "i4[3]:-8,7,-1", "to=21", "u4[3]:8,7,15"},
        {"BitCast", 26, "i4[3]:-8,7,-1", "to=23", "f4e2m1[3]:-0,6,-6"},
        {"BitCast", 26, "i4[1]", "to=3", "!BAD_DATA the bits of i4 do not make i8"},
        {"BitCast", 26, "u8[2]:56,255", "to=17", "f8e4m3fn[2]:1,nan"},
        {"BitCast", 26, "u2[2]:3,1", "to=26", "i2[2]:-1,1"},
        {"BitCast", 26, "f64[1]:0", "to=14", "c64[1]:0,0"},
        {"Swish", 24, "f32[4]:-100,-1,0,2", "", "f32[4]:0,-0.26894142,0,1.7615942"},
        {"Swish", 24, "f64[2]:-1,2", "alpha=f:0.5",
         "f64[2]:-0.3775406687981454,1.4621171572600098"},
        {"Swish", 24, "i32[1]:1", "", "!UNSUPPORTED input 0 of type i32"},
        {"SwiGLU", 28, "f32[2]:-1,2 f32[2]:3,-0.5", "", "f32[2]:-0.80682426,-0.8807971"},
        {"SwiGLU", 28, "f16[2]:-1,2 f16[2]:1,1", "alpha=f:0.5", "f16[2]:-0.37754,1.46212"},
        {"SwiGLU", 28, "f32[2] f32[1]", "", "!BAD_DATA gate and value have different shapes"},
        {"SwiGLU", 28, "i32[2] i32[2]", "", "!UNSUPPORTED input 0 of type i32"},
        {"Add", 6, "f32[2,2]:1,2,3,4 f32[2]:10,20", "broadcast=1 axis=1", "f32[2,2]:11,22,13,24"},
        {"Add", 6, "f32[2,2]:1,2,3,4 f32[2]:10,20", "broadcast=1", "f32[2,2]:11,22,13,24"},
        {"Sub", 6, "f32[2,2]:1,2,3,4 f32[1]:1", "broadcast=1 axis=0", "f32[2,2]:0,1,2,3"},
        {"Mul", 6, "f32[2,2] f32[2]", "broadcast=1 axis=0", "!UNSUPPORTED attribute axis away"},
        {"Pow", 6, "f32[2,2] f32[2]", "broadcast=1 axis=-2", "!UNSUPPORTED attribute axis away"},
        {"Max", 6, "f32[2]:1,2 f32[2]:2,1", "", "f32[2]:2,2"},
        {"PRelu", 6, "f32[2]:-2,2 f32[1]:0.5", "", "f32[2]:-1,2"},
        {"PRelu", 6, "f32[1,2,2] f32[2]", "", "!UNSUPPORTED a slope for each channel"},
        {"Abs", 13, "i8[2]:-128,-5", "", "i8[2]:-128,5"},
        {"Neg", 13, "i8[2]:-128,5", "", "i8[2]:-128,-5"},
        {"Add", 14, "i8[1]:127 i8[1]:1", "", "i8[1]:-128"},
        {"Mul", 14, "u16[1]:65535 u16[1]:65535", "", "u16[1]:1"},
        {"BitShift", 11, "u8[3]:255,1,3 u8[3]:4,8,200", "direction=s:LEFT", "u8[3]:240,0,0"},
        {"BitShift", 11, "u64[1]:4 u64[1]:1", "direction=s:RIGHT", "u64[1]:2"},
        {"BitShift", 11, "u8[1] u8[1]", "direction=s:UP", "!BAD_DATA direction"},
        {"BitShift", 27, "i8[1] i8[1]", "direction=s:LEFT", "!UNSUPPORTED input 0 of type i8"},
        {"BitShift", 28, "i8[5]:-128,-1,127,3,-5 i8[5]:1,8,1,-1,1", "direction=s:RIGHT",
         "i8[5]:-64,-1,63,0,-3"},
        {"BitShift", 28, "i8[5]:-128,-1,127,3,-5 i8[5]:1,8,1,-1,1", "direction=s:LEFT",
         "i8[5]:0,0,-2,0,-10"},
        {"BitShift", 28, "i64[3]:-8,9,-1 i64[3]:2,70,-1", "direction=s:RIGHT", "i64[3]:-2,0,-1"},
        {"Pow", 15, "i32[4]:-2,2,1,-1 i32[4]:3,-1,-5,-3", "", "i32[4]:-8,0,1,-1"},
        {"Pow", 15, "i32[2]:4,9 f32[1]:0.5", "", "i32[2]:2,3"},
        {"Pow", 15, "f32[2]:3,-3 i64[1]:2", "", "f32[2]:9,9"},
    };
    OP_ROWS_CHECK(rows);
}

TEST(test_op_elementwise__nan_and_infinity) {
    static const op_row rows[] = {
        {"Max", 13, "f32[3]:nan,1,2 f32[3]:1,nan,3", "", "f32[3]:nan,nan,3"},
        {"Min", 13, "f64[3]:nan,1,2 f64[3]:1,nan,3", "", "f64[3]:nan,nan,2"},
        {"Relu", 14, "f32[3]:nan,-1,inf", "", "f32[3]:nan,0,inf"},
        {"Clip", 13, "f32[3]:nan,-9,9 f32[]:-1 f32[]:1", "", "f32[3]:nan,-1,1"},
        {"Sign", 13, "f32[4]:nan,-0.0,3,-inf", "", "f32[4]:nan,0,1,-1"},
        {"Softplus", 9, "f32[3]:1000,-1000,0", "", "f32[3]:1000,0,0.69314718"},
        {"Sigmoid", 13, "f32[3]:1000,-1000,0", "", "f32[3]:1,0,0.5"},
        {"IsInf", 10, "f32[4]:inf,-inf,nan,1", "", "bool[4]:1,1,0,0"},
        {"IsInf", 10, "f32[2]:inf,-inf", "detect_negative=0", "bool[2]:1,0"},
        {"IsNaN", 13, "f16[3]:nan,inf,1", "", "bool[3]:1,0,0"},
        {"Equal", 13, "f32[2]:nan,0 f32[2]:nan,-0.0", "", "bool[2]:0,1"},
        {"Round", 11, "f32[5]:0.5,1.5,2.5,-0.5,-1.5", "", "f32[5]:0,2,2,0,-2"},
    };
    OP_ROWS_CHECK(rows);
}

TEST(test_op_elementwise__casts) {
    static const op_row rows[] = {
        {"Cast", 13, "f32[4]:1.9,-1.9,nan,0.4", "to=7", "i64[4]:1,-1,0,0"},
        {"Cast", 13, "f32[2]:1e30,-1e30", "to=7",
         "i64[2]:9223372036854775807,-9223372036854775808"},
        {"Cast", 13, "f64[2]:1e30,18446744073709549568", "to=13",
         "u64[2]:18446744073709551615,18446744073709549568"},
        {"Cast", 13, "i32[2]:300,-1", "to=2", "u8[2]:44,255"},
        {"Cast", 13, "f32[4]:nan,0,-0.0,0.1", "to=9", "bool[4]:1,0,0,1"},
        {"Cast", 13, "bool[2]:1,0", "to=1", "f32[2]:1,0"},
        {"Cast", 13, "f32[3]:65504,65520,1e-8", "to=10", "f16[3]:65504,inf,0"},
        {"Cast", 13, "f16[2]:1.5,-2", "to=16", "bf16[2]:1.5,-2"},
        {"Cast", 13, "f32[1]:1", "to=14",
         "!UNSUPPORTED Cast version 13 (attribute to=14, complex64: use two"},
        {"CastLike", 15, "f32[2]:1.5,2.5 i32[1]", "", "i32[2]:1,2"},
        // Narrow types: integers wrap, floats saturate or not, each is rounded once.
        {"Cast", 21, "f32[6]:-9,-8,7.9,8,300.7,nan", "to=22", "i4[6]:7,-8,7,-8,-4,0"},
        {"Cast", 21, "i64[4]:-9,8,16,255", "to=21", "u4[4]:7,8,0,15"},
        {"Cast", 21, "i4[3]:-8,7,-1", "to=21", "u4[3]:8,7,15"},
        {"Cast", 21, "i4[3]:-8,7,-1", "to=7", "i64[3]:-8,7,-1"},
        {"Cast", 25, "u2[4]:0,1,2,3", "to=16", "bf16[4]:0,1,2,3"},
        {"Cast", 25, "bool[2]:1,0", "to=26", "i2[2]:1,0"},
        {"Cast", 25, "i2[3]:-2,0,1", "to=9", "bool[3]:1,0,1"},
        {"Cast", 19, "f32[5]:1e6,-inf,464,465,nan", "to=17", "f8e4m3fn[5]:448,-448,448,448,nan"},
        {"Cast", 19, "f32[5]:1e6,-inf,464,465,nan", "to=17 saturate=0",
         "f8e4m3fn[5]:nan,nan,448,nan,nan"},
        {"Cast", 19, "f32[4]:1e6,-inf,61439,61440", "to=19 saturate=0",
         "f8e5m2[4]:inf,-inf,57344,inf"},
        {"Cast", 19, "f64[3]:1.125,1.1250000000009095,1.1249999999990905", "to=19",
         "f8e5m2[3]:1,1.25,1"},
        {"Cast", 19, "i64[2]:4503599627370497,-3", "to=17", "f8e4m3fn[2]:448,-3"},
        {"Cast", 23, "f16[5]:0.25,0.26,5,-7,0.75", "to=23", "f4e2m1[5]:0,0.5,4,-6,1"},
        {"Cast", 19, "f8e5m2[4]:0.5,inf,nan,-3", "to=10", "f16[4]:0.5,inf,nan,-3"},
        {"Cast", 19, "f8e4m3fn[3]:448,0.001953125,-17", "to=19", "f8e5m2[3]:448,0.001953125,-16"},
        {"Cast", 19, "f8e5m2[3]:3.5,-1,nan", "to=6", "i32[3]:3,-1,0"},
        {"Cast", 24, "f32[4]:0,0.124,1.1,3", "to=24", "f8e8m0[4]:5.8774717541114375e-39,0.125,2,4"},
        {"Cast", 24, "f32[4]:0.124,1.1,3,2.9", "to=24 round_mode=s:down", "f8e8m0[4]:0.0625,1,2,2"},
        {"Cast", 24, "f32[4]:0,1.1,3,2.9", "to=24 round_mode=s:nearest saturate=0",
         "f8e8m0[4]:nan,1,4,2"},
        {"Cast", 24, "f32[1]", "to=24 round_mode=s:odd",
         "!UNSUPPORTED attribute round_mode=odd; up, down and nearest are"},
        {"Cast", 21, "string[4]:3.7,-9,\\s7,1e1", "to=22", "i4[4]:3,7,7,-6"},
        {"Cast", 19, "string[3]:1.06250000001,INF,-1e9", "to=17", "f8e4m3fn[3]:1.125,448,-448"},
        {"Cast", 19, "f8e5m2[3]:0.5,-inf,nan", "to=8", "string[3]:0.5,-INF,NaN"},
        {"Cast", 21, "i4[2]:-8,7", "to=8", "string[2]:-8,7"},
        {"Cast", 13, "c64[1]", "to=1", "!UNSUPPORTED Cast version 13 (input 0 of type c64)"},
        {"CastLike", 25, "f32[2]:1.5,-70 i4[1]", "", "i4[2]:1,-6"},
        {"CastLike", 24, "f32[1]:3 f8e8m0[1]", "round_mode=s:down", "f8e8m0[1]:2"},
        {"CastLike", 15, "f32[1]:3 c64[1]", "", "!UNSUPPORTED input 1 of type c64"},
        {"Add", 14, "i4[1] i4[1]", "", "!UNSUPPORTED Add version 14 (input 0 of type i4)"},
        {"Relu", 14, "f8e5m2[1]", "", "!UNSUPPORTED Relu version 14 (input 0 of type f8e5m2)"},
        {"Mul", 14, "c128[1] c128[1]", "", "!UNSUPPORTED Mul version 14 (input 0 of type c128)"},
        {"Where", 16, "bool[3]:1,0,1 i4[3]:1,2,-3 i4[]:7", "", "i4[3]:1,7,-3"},
        {"Where", 16, "bool[2]:1,0 c128[1]:1,2 c128[2]:3,4,5,6", "", "c128[2]:1,2,5,6"},
        {"Add", 14, "f16[2]:1,2 f16[1]:0.5", "", "f16[2]:1.5,2.5"},
        {"Exp", 13, "bf16[1]:0", "", "bf16[1]:1"},
        {"Add", 14, "bool[1] bool[1]", "", "!UNSUPPORTED Add version 14 (input 0 of type bool)"},
        {"Sqrt", 13, "i32[1]:4", "", "!UNSUPPORTED input 0 of type i32"},
    };
    OP_ROWS_CHECK(rows);
}

TEST(test_op_elementwise__clip_in_both_forms) {
    static const op_row rows[] = {
        {"Clip", 9, "f32[3]:-5,0,5", "min=f:-1 max=f:2", "f32[3]:-1,0,2"},
        {"Clip", 9, "f32[2]:inf,-inf", "", "f32[2]:3.4028234e38,-3.4028234e38"},
        {"Clip", 11, "f32[3]:-5,0,5 - f32[]:2", "", "f32[3]:-5,0,2"},
        {"Clip", 13, "i8[3]:-5,0,5 i8[]:-1 -", "", "i8[3]:-1,0,5"},
        {"Clip", 13, "f32[2]:1,2 f32[]:5 f32[]:3", "", "f32[2]:3,3"},
        {"Clip", 13, "f32[2] f32[2] -", "", "!BAD_DATA bound 1 must be one number"},
        {"Clip", 13, "f32[2] i32[] -", "", "!BAD_DATA must be of one type"},
    };
    OP_ROWS_CHECK(rows);
}

TEST_MAIN()

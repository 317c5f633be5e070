// The op cases of narrow and complex types; see op_cases.h for their writing. Results are compared
// bit for bit.
// SPDX-License-Identifier: Apache-2.0
#include "support/cases/op_cases.h"

#define CAST(inputs, attributes) \
    { "Cast", 25, inputs, attributes, 1 }
// From each kind of number.
#define CAST_TO(to)                                                                   \
    CAST("T[3,37]", to), CAST("T[3,37]:n600", to), CAST("f64[7]:n600", to),           \
        CAST("bf16[40]:n9", to), CAST("i64[40]:n600", to), CAST("u64[5]:i70000", to), \
        CAST("i8[3,4]:n9", to), CAST("u16[9]:i300", to), CAST("bool[9]:i2", to),      \
        CAST("i4[16]:n8", to), CAST("f8e5m2[33]:n60", to), CAST("f8e4m3fnuz[33]", to)
#define CAST_FROM(x)                                                                        \
    CAST(x, "to=1"), CAST(x, "to=10"), CAST(x, "to=16"), CAST(x, "to=11"), CAST(x, "to=3"), \
        CAST(x, "to=7"), CAST(x, "to=13"), CAST(x, "to=9")
#define QUANTIZE(inputs, attributes) \
    { "QuantizeLinear", 25, inputs, attributes, 1 }
#define DEQUANTIZE(inputs, attributes) \
    { "DequantizeLinear", 25, inputs, attributes, 1 }
// One scale, one for each place, blocks that fit and blocks that do not, on the last axis and on
// another.
#define QUANTIZE_TO(type, zeros, attributes)                                                 \
    QUANTIZE("T[3,40]:n50 T[]:p " type "[]" zeros, attributes),                              \
        QUANTIZE("T[3,40]:n9 T[40]:p " type "[40]" zeros, attributes),                       \
        QUANTIZE("f32[3,40]:n9 f32[3,5]:p " type "[3,5]" zeros, "block_size=8 " attributes), \
        QUANTIZE("f32[3,41]:n9 f32[3,6]:p " type "[3,6]" zeros, "block_size=8 " attributes), \
        QUANTIZE("f32[7,4]:n9 f32[3,4]:p " type "[3,4]" zeros, "axis=0 block_size=3 " attributes)
#define DEQUANTIZE_FROM(type, values)                                                         \
    DEQUANTIZE(type "[3,40]" values " T[]:p " type "[]" values, ""),                          \
        DEQUANTIZE(type "[3,40]" values " T[40]:p", ""),                                      \
        DEQUANTIZE(type "[3,40]" values " f32[3,5]:p " type "[3,5]" values, "block_size=8"),  \
        DEQUANTIZE(type "[3,41]" values " f32[3,6]:p " type "[3,6]" values, "block_size=8"),  \
        DEQUANTIZE(type "[7,4]" values " f32[3,4]:p", "axis=0 block_size=3 output_dtype=10"), \
        DEQUANTIZE(type "[5,3000]" values " f32[5]:p " type "[5]" values, "axis=0"),          \
        DEQUANTIZE(type "[2,8]" values " f8e8m0[2,2]:p", "block_size=4 output_dtype=1")
#define MOVE(type, values)                                                                     \
    {"Transpose", 23, type "[3,4,5]" values, "perm=2,0,1", 1},                                 \
        {"Transpose", 23, type "[40,48]" values, "", 1},                                       \
        {"Concat", 13, type "[3,1]" values " " type "[3,4]" values, "axis=1", 1},              \
        {"Split", 13, type "[3,5]" values " i64[2]:=2,3", "axis=1", 2},                        \
        {"Slice", 13, type "[9]" values " i64[1]:=7 i64[1]:=-10 i64[1]:=0 i64[1]:=-2", "", 1}, \
        {"Gather", 13, type "[5,3]" values " i64[4]:=4,0,-1,2", "", 1},                        \
        {"GatherElements", 13, type "[5]" values " i64[4]:=4,0,-1,2", "", 1},                  \
        {"GatherND", 13, type "[5,3]" values " i64[2,1]:=4,0", "", 1},                         \
        {"ScatterElements", 18, type "[5]" values " i64[2]:=4,0 " type "[2]" values, "", 1},   \
        {"ScatterND", 18, type "[5,3]" values " i64[1,1]:=2 " type "[1,3]" values, "", 1},     \
        {"Expand", 13, type "[1,3]" values " i64[2]:=4,3", "", 1},                             \
        {"Tile", 13, type "[2,3]" values " i64[2]:=2,3", "", 1},                               \
        {"DepthToSpace", 13, type "[1,8,2,3]" values, "blocksize=2", 1},                       \
        {"ReverseSequence", 10, type "[4,3]" values " i64[3]:=1,4,2", "", 1},                  \
        {"Reshape", 23, type "[4,3]" values " i64[1]:=12", "", 1}, {                           \
        "Identity", 23, type "[4,3]" values, "", 1                                             \
    }

// Whose kernels have no word for pairs of doubles.
#define MOVE_WORDS(type, values)                                                           \
    {"Pad", 25, type "[3,3]" values " i64[4]:=1,0,2,1", "mode=reflect", 1},                \
        {"Pad", 25, type "[3,3]" values " i64[4]:=1,0,2,1 " type "[]" values, "", 1},      \
        {"Where", 16, "bool[4,3]:i2 " type "[4,3]" values " " type "[3]" values, "", 1}, { \
        "OneHot", 11, "i64[4]:i3 i64[]:=3 " type "[2]" values, "", 1                       \
    }

const op_case op_narrow_cases[] = {
    CAST_TO("to=17"),
    CAST_TO("to=17 saturate=0"),
    CAST_TO("to=18"),
    CAST_TO("to=18 saturate=0"),
    CAST_TO("to=19"),
    CAST_TO("to=19 saturate=0"),
    CAST_TO("to=20"),
    CAST_TO("to=20 saturate=0"),
    CAST_TO("to=21"),
    CAST_TO("to=22"),
    CAST_TO("to=23"),
    CAST_TO("to=24"),
    CAST_TO("to=24 round_mode=down"),
    CAST_TO("to=24 round_mode=nearest saturate=0"),
    CAST_TO("to=25"),
    CAST_TO("to=26"),
    CAST_FROM("i4[40]:n8"),
    CAST_FROM("u4[40]:i16"),
    CAST_FROM("i2[5,3]:n2"),
    CAST_FROM("u2[7]:i4"),
    CAST_FROM("f4e2m1[40]:n7"),
    CAST_FROM("f8e4m3fn[40]:n500"),
    CAST_FROM("f8e4m3fnuz[41]"),
    CAST_FROM("f8e5m2[40]:n9000"),
    CAST_FROM("f8e5m2fnuz[40]"),
    CAST_FROM("f8e8m0[40]:i90"),
    {"CastLike", 25, "T[40] f8e4m3fn[1]", "", 1},
    {"CastLike", 25, "T[7,33] bf16[0]", "", 1},
    {"CastLike", 25, "f64[40] f16[2,0]", "", 1},
    {"BitCast", 26, "i4[33]:n8", "to=21", 1},
    {"BitCast", 26, "f32[33]", "to=6", 1},
    {"BitCast", 26, "f64[9]", "to=14", 1},
    QUANTIZE_TO("i4", ":n8", ""),
    QUANTIZE_TO("u4", ":i16", ""),
    QUANTIZE_TO("i2", ":n2", ""),
    QUANTIZE_TO("u2", ":i4", ""),
    QUANTIZE_TO("f8e4m3fn", ":n1", ""),
    QUANTIZE_TO("f8e5m2", ":n1", "saturate=0"),
    QUANTIZE_TO("f8e4m3fnuz", ":n1", ""),
    QUANTIZE_TO("f4e2m1", ":n1", ""),
    QUANTIZE_TO("u8", ":i9", "precision=10"),
    QUANTIZE_TO("i8", ":n9", "precision=16"),
    QUANTIZE_TO("i16", ":n9", "precision=11"),
    QUANTIZE("i32[3,40]:n50 i32[]:=3 i8[]:n9", ""),
    QUANTIZE("f32[3,40]:n50 f8e8m0[]:p", "output_dtype=22"),
    DEQUANTIZE_FROM("i4", ":n8"),
    DEQUANTIZE_FROM("u4", ":i16"),
    DEQUANTIZE_FROM("i2", ":n2"),
    DEQUANTIZE_FROM("u2", ":i4"),
    DEQUANTIZE_FROM("f8e4m3fn", ""),
    DEQUANTIZE_FROM("f8e5m2fnuz", ":n9"),
    DEQUANTIZE_FROM("f4e2m1", ":n7"),
    DEQUANTIZE_FROM("i8", ":n90"),
    MOVE_WORDS("i4", ":n8"),
    MOVE_WORDS("f8e5m2", ""),
    MOVE_WORDS("c64", ""),
    MOVE("i4", ":n8"),
    MOVE("f8e5m2", ""),
    MOVE("c64", ""),
    MOVE("c128", ""),
};
const size_t op_narrow_case_count = sizeof(op_narrow_cases) / sizeof(op_narrow_cases[0]);

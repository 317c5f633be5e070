// Awkward semantics of ops on shapes and layouts.
// SPDX-License-Identifier: Apache-2.0

#include "support/cases/op_rows.h"
#include "support/test.h"

TEST(test_op_shape__reshapes) {
    static const op_row rows[] = {
        {"Reshape", 13, "i32[2,3]:1,2,3,4,5,6 i64[2]:0,-1", "", "i32[2,3]:1,2,3,4,5,6"},
        {"Reshape", 13, "i32[6]:1,2,3,4,5,6 i64[3]:-1,1,2", "", "i32[3,1,2]:1,2,3,4,5,6"},
        {"Reshape", 13, "f32[1]:7 i64[0]", "", "f32[]:7"},
        {"Reshape", 14, "f32[0,3] i64[2]:3,0", "allowzero=1", "f32[3,0]"},
        {"Reshape", 13, "f32[6] i64[2]:4,-1", "", "!BAD_DATA do not fill the new shape"},
        {"Reshape", 13, "f32[6] i64[2]:-1,-1", "", "!BAD_DATA extent 1 of the new shape is -1"},
        {"Reshape", 13, "f32[6] i64[2]:6,0", "", "!BAD_DATA copied from an input of rank 1"},
        {"Reshape", 13, "f32[6] i64[2]:4611686018427387904,4", "", "!BAD_DATA too large"},
        {"Reshape", 13, "f32[6] f32[1]:6", "", "!BAD_DATA must be a list of integers"},
        {"Reshape", 13, "f32[1] i64[9]:1,1,1,1,1,1,1,1,1", "", "!UNSUPPORTED at most 8 axes"},
        {"Expand", 13, "f32[1] i64[9]:1,1,1,1,1,1,1,1,1", "", "!UNSUPPORTED at most 8 axes"},
        {"ConstantOfShape", 13, "i64[9]:1,1,1,1,1,1,1,1,1", "", "!UNSUPPORTED at most 8 axes"},
        {"Unsqueeze", 11, "f32[1]:1", "axes=I:0,1,2,3,4,5,6,7,8", "!UNSUPPORTED of more than 8"},
        {"Unsqueeze", 13, "f32[1] i64[9]:0,1,2,3,4,5,6,7,8", "", "!UNSUPPORTED at most 8 axes"},
        {"Squeeze", 13, "f32[1,2,1]:1,2", "", "f32[2]:1,2"},
        {"Squeeze", 13, "f32[1,2,1]:1,2 i64[1]:-1", "", "f32[1,2]:1,2"},
        {"Squeeze", 11, "f32[1,2,1]:1,2", "axes=I:0", "f32[2,1]:1,2"},
        {"Squeeze", 13, "f32[1,2] i64[1]:1", "", "!BAD_DATA has extent 2, not 1"},
        {"Squeeze", 13, "f32[1,2] i64[2]:0,-2", "", "!BAD_DATA given twice"},
        {"Unsqueeze", 13, "f32[2]:1,2 i64[2]:0,-1", "", "f32[1,2,1]:1,2"},
        {"Unsqueeze", 11, "f32[2]:1,2", "axes=I:1", "f32[2,1]:1,2"},
        {"Unsqueeze", 13, "f32[2] i64[1]:3", "", "!BAD_DATA axis 3 is outside"},
        {"Unsqueeze", 13, "f32[1,1,1,1,1,1,1,1] i64[1]:0", "", "!UNSUPPORTED rank above 8"},
        {"Flatten", 13, "f32[2,3]:1", "axis=0", "f32[1,6]:1"},
        {"Flatten", 13, "f32[2,3]:1", "axis=-1", "f32[2,3]:1"},
        {"Flatten", 13, "f32[]:1", "axis=0", "f32[1,1]:1"},
        {"Flatten", 13, "f32[2]:1", "axis=2", "!BAD_DATA axis 2 is outside [-1, 1]"},
        {"Dropout", 13, "f32[2]:1,2 f32[]:0.5 bool[]:0", "", "f32[2]:1,2 bool[2]:1,1"},
        {"Dropout", 9, "f32[2]:1,2", "ratio=f:0.5", "f32[2]:1,2 f32[2]:1,1"},
    };
    OP_ROWS_CHECK(rows);
}

TEST(test_op_shape__makes_tensors) {
    static const op_row rows[] = {
        {"Constant", 13, "", "value=T:i32[2]:4,5", "i32[2]:4,5"},
        {"Constant", 13, "", "value_float=f:1.5", "f32[]:1.5"},
        {"Constant", 13, "", "value_ints=I:1,2", "i64[2]:1,2"},
        {"Constant", 13, "", "", "!BAD_DATA one attribute"},
        {"ConstantOfShape", 9, "i64[2]:2,1", "value=T:i8[1]:7", "i8[2,1]:7,7"},
        {"ConstantOfShape", 9, "i64[0]", "", "f32[]:0"},
        // Narrow and complex elements are moved like others, and nobody calculates with them.
        {"ConstantOfShape", 21, "i64[1]:3", "value=T:i4[1]:-7", "i4[3]:-7,-7,-7"},
        {"ConstantOfShape", 20, "i64[1]:2", "value=T:c128[1]:1,-2", "c128[2]:1,-2,1,-2"},
        {"EyeLike", 9, "i32[2,2]", "dtype=22", "!UNSUPPORTED an output of i4"},
        {"Shape", 23, "f8e5m2[2,3]", "", "i64[2]:2,3"},
        {"Transpose", 23, "i4[2,3]:1,2,3,-4,-5,-6", "", "i4[3,2]:1,-4,2,-5,3,-6"},
        {"Transpose", 13, "c64[2,2]:1,2,3,4,5,6,7,8", "", "c64[2,2]:1,2,5,6,3,4,7,8"},
        {"Transpose", 13, "c128[2,2]:1,2,3,4,5,6,7,8", "", "c128[2,2]:1,2,5,6,3,4,7,8"},
        {"Reshape", 23, "f8e8m0[2,3]:1,2,4,8,16,32 i64[1]:-1", "", "f8e8m0[6]:1,2,4,8,16,32"},
        {"Concat", 13, "c64[1]:1,2 c64[1]:3,4", "axis=0", "c64[2]:1,2,3,4"},
        {"Concat", 13, "u2[1]:3 u2[2]:1,2", "axis=0", "u2[3]:3,1,2"},
        {"Slice", 13, "i4[5]:1,2,3,4,5 i64[1]:4 i64[1]:-6 i64[1] i64[1]:-2", "", "i4[3]:5,3,1"},
        {"Expand", 13, "f4e2m1[1]:1.5 i64[1]:3", "", "f4e2m1[3]:1.5"},
        {"Tile", 13, "c128[1]:1,2 i64[1]:2", "", "c128[2]:1,2,1,2"},
        {"Pad", 25, "i4[2]:1,-2 i64[2]:1,2 i4[]:-8", "", "i4[5]:-8,1,-2,-8,-8"},
        {"Pad", 19, "c128[1]:1,2 i64[2]:1,1 c128[]:3,4", "", "c128[3]:3,4,1,2,3,4"},
        {"Pad", 9, "c64[1]:1,2", "pads=I:1,1 value=f:3", "!UNSUPPORTED input 0 of type c64"},
        {"Split", 18, "f8e4m3fn[3]:1,2,3", "num_outputs=2", "f8e4m3fn[2]:1,2 f8e4m3fn[1]:3"},
        {"ConstantOfShape", 9, "i64[2]:4611686018427387904,4611686018427387904", "",
         "!BAD_DATA not a size of memory"},
        {"ConstantOfShape", 9, "i64[1]:-1", "", "!BAD_DATA not a size of memory"},
        {"Expand", 13, "i32[2,1]:1,2 i64[2]:1,3", "", "i32[2,3]:1,1,1,2,2,2"},
        {"Expand", 13, "i32[3] i64[1]:2", "", "!BAD_DATA do not broadcast"},
        {"EyeLike", 9, "i32[2,3]", "k=1", "i32[2,3]:0,1,0,0,0,1"},
        {"EyeLike", 9, "i32[2,3]", "k=-9223372036854775808", "i32[2,3]"},
        {"EyeLike", 9, "f32[2]", "", "!BAD_DATA must be a matrix"},
        {"Range", 11, "i64[]:10 i64[]:0 i64[]:-4", "", "i64[3]:10,6,2"},
        {"Range", 11, "i64[]:0 i64[]:0 i64[]:1", "", "i64[0]"},
        {"Range", 11, "f32[]:0 f32[]:1 f32[]:0.4", "", "f32[3]:0,0.4,0.8"},
        {"Range", 11, "i32[]:0 i32[]:1 i32[]:0", "", "!BAD_DATA delta is 0"},
        {"Range", 11, "f32[]:0 f32[]:1 f32[]:0", "", "!BAD_DATA elements"},
        {"Range", 11, "i64[]:-9223372036854775808 i64[]:9223372036854775807 i64[]:1", "",
         "!BAD_DATA memory"},
        {"Shape", 15, "f32[2,3,4]", "start=-2 end=9", "i64[2]:3,4"},
        {"Shape", 15, "f32[2,3,4]", "start=2 end=1", "i64[0]"},
        {"Size", 13, "f32[2,0]", "", "i64[]:0"},
    };
    OP_ROWS_CHECK(rows);
}

TEST(test_op_shape__slices) {
    static const op_row rows[] = {
        {"Slice", 13, "i32[5]:0,1,2,3,4 i64[1]:-1 i64[1]:-9223372036854775808 i64[1]:0 i64[1]:-2",
         "", "i32[3]:4,2,0"},
        {"Slice", 13, "i32[5]:0,1,2,3,4 i64[1]:1 i64[1]:9223372036854775807", "", "i32[4]:1,2,3,4"},
        {"Slice", 13, "i32[5]:0,1,2,3,4 i32[1]:4 i32[1]:1", "", "i32[0]"},
        {"Slice", 13, "i32[5]:0,1,2,3,4 i64[1]:0 i64[1]:5 i64[1]:0 i64[1]:9223372036854775807", "",
         "i32[1]:0"},
        {"Slice", 13, "i32[5]:0,1,2,3,4 i64[1]:9 i64[1]:-9 i64[1]:0 i64[1]:-9223372036854775808",
         "", "i32[1]:4"},
        {"Slice", 9, "i32[2,3]:0,1,2,3,4,5", "starts=I:1 ends=I:3 axes=I:-1", "i32[2,2]:1,2,4,5"},
        {"Slice", 13, "i32[5] i64[1]:0 i64[1]:5 i64[1]:0 i64[1]:0", "", "!BAD_DATA step 0"},
        {"Slice", 13, "i32[5] i64[1]:0 i64[2]:5", "", "!BAD_DATA equally long"},
        {"Slice", 13, "i32[5] i64[1]:0 i64[1]:5 i64[1]:1", "", "!BAD_DATA axis 1 is outside"},
        {"Slice", 9, "i32[5]", "starts=I:1", "!BAD_DATA attribute ends is missing"},
        {"Split", 13, "i32[5]:0,1,2,3,4 i64[3]:2,0,3", "", "i32[2]:0,1 i32[0] i32[3]:2,3,4"},
        {"Split", 18, "i32[5]:0,1,2,3,4", "num_outputs=2", "i32[3]:0,1,2 i32[2]:3,4"},
        {"Split", 11, "i32[2,2]:0,1,2,3", "axis=1 split=I:1,1", "i32[2,1]:0,2 i32[2,1]:1,3"},
        {"Split", 13, "i32[5] i64[1]:4", "", "!BAD_DATA add up to 4"},
        {"Split", 13, "i32[5] i64[2]:4,1", "", "!BAD_DATA 2 sizes are given for 1"},
        {"Split", 13, "i32[5] i64[1]:-5", "", "!BAD_DATA size 0 is -5"},
    };
    OP_ROWS_CHECK(rows);
}

TEST(test_op_shape__moves_elements) {
    static const op_row rows[] = {
        {"Concat", 13, "i32[1,2]:1,2 i32[0,2] i32[1,2]:3,4", "axis=-2", "i32[2,2]:1,2,3,4"},
        // An input without elements adds nothing, whatever its shape.
        {"Concat", 13, "i32[0,0] i32[1,2]:1,2 i32[5,0]", "axis=0", "i32[1,2]:1,2"},
        {"Concat", 13, "i32[2,1]:1,2 i32[0] i32[2,1]:3,4", "axis=1", "i32[2,2]:1,3,2,4"},
        {"Concat", 13, "i32[0,2,3] i32[0,0,0]", "axis=0", "i32[0,2,3]"},
        {"Concat", 13, "i32[2,0] i32[3,0]", "axis=0", "i32[5,0]"},
        {"Concat", 13, "i32[0] i32[1,2] i32[1,3]", "axis=0", "!BAD_DATA do not join along axis 0"},
        {"Concat", 13, "i32[1,2] i32[1,3]", "axis=0", "!BAD_DATA do not join along axis 0"},
        {"Concat", 13, "i32[1]", "", "!BAD_DATA attribute axis is missing"},
        {"Transpose", 13, "i8[2,3]:0,1,2,3,4,5", "", "i8[3,2]:0,3,1,4,2,5"},
        {"Transpose", 13, "i8[2,1,3]:0,1,2,3,4,5", "perm=I:1,2,0", "i8[1,3,2]:0,3,1,4,2,5"},
        {"Transpose", 13, "i8[2,3]", "perm=I:0,0", "!BAD_DATA given twice"},
        {"Transpose", 13, "i8[2,3]", "perm=I:0", "!BAD_DATA perm has 1 entries"},
        {"Tile", 13, "i16[1,2]:1,2 i64[2]:2,2", "", "i16[2,4]:1,2,1,2,1,2,1,2"},
        {"Tile", 13, "i16[1] i64[1]:-1", "", "!BAD_DATA repeat 0 is -1"},
        {"Tile", 13, "i16[1] i64[2]:1,1", "", "!BAD_DATA 2 repeats"},
        {"DepthToSpace", 13, "i32[1,4,1,1]:1,2,3,4", "blocksize=2", "i32[1,1,2,2]:1,2,3,4"},
        {"DepthToSpace", 13, "i32[1,8,1,1]:1,2,3,4,5,6,7,8", "blocksize=2",
         "i32[1,2,2,2]:1,3,5,7,2,4,6,8"},
        {"DepthToSpace", 13, "i32[1,8,1,1]:1,2,3,4,5,6,7,8", "blocksize=2 mode=s:CRD",
         "i32[1,2,2,2]:1,2,3,4,5,6,7,8"},
        {"DepthToSpace", 13, "i32[1,3,1,1]", "blocksize=2", "!BAD_DATA do not make blocks"},
        {"DepthToSpace", 13, "i32[1,3,1,1]", "blocksize=0", "!BAD_DATA blocksize above 0"},
        {"SpaceToDepth", 13, "i32[1,1,2,2]:1,2,3,4", "blocksize=2", "i32[1,4,1,1]:1,2,3,4"},
        {"SpaceToDepth", 28, "i32[1,2,2,2]:1,2,3,4,5,6,7,8", "blocksize=2 mode=s:DCR",
         "i32[1,8,1,1]:1,5,2,6,3,7,4,8"},
        {"SpaceToDepth", 28, "i32[1,2,2,2]:1,2,3,4,5,6,7,8", "blocksize=2 mode=s:CRD",
         "i32[1,8,1,1]:1,2,3,4,5,6,7,8"},
        {"Trilu", 14, "i32[2,2]:1,2,3,4", "", "i32[2,2]:1,2,0,4"},
        {"Trilu", 14, "i4[2,2]:1,2,3,-4", "", "i4[2,2]:1,2,0,-4"},
        {"CenterCropPad", 18, "c128[1]:1,2 i64[1]:3", "", "c128[3]:0,0,1,2,0,0"},
        {"Trilu", 14, "i32[2,2]:1,2,3,4 i64[]:-9223372036854775808", "", "i32[2,2]:1,2,3,4"},
        {"Trilu", 14, "i32[2,2]:1,2,3,4 i64[]:9223372036854775807", "upper=0", "i32[2,2]:1,2,3,4"},
        {"Trilu", 14, "i32[2]", "", "!BAD_DATA must have matrices"},
        {"ReverseSequence", 10, "i32[3,2]:0,1,2,3,4,5 i64[2]:3,1", "", "i32[3,2]:4,1,2,3,0,5"},
        {"ReverseSequence", 10, "i32[3,2] i64[2]:4,1", "", "!BAD_DATA length 4 of sequence 0"},
        {"ReverseSequence", 10, "i32[3,2] i64[2]:1,1", "time_axis=1", "!BAD_DATA must be 0 and 1"},
    };
    OP_ROWS_CHECK(rows);
}

TEST(test_op_shape__pads) {
    static const op_row rows[] = {
        {"Pad", 13, "i32[3]:1,2,3 i64[2]:2,1 i32[]:9", "", "i32[6]:9,9,1,2,3,9"},
        {"Pad", 13, "i32[3]:1,2,3 i64[2]:4,3", "mode=s:reflect", "i32[10]:1,2,3,2,1,2,3,2,1,2"},
        {"Pad", 13, "i32[3]:1,2,3 i64[2]:2,1", "mode=s:edge", "i32[6]:1,1,1,2,3,3"},
        {"Pad", 19, "i32[3]:1,2,3 i64[2]:2,4", "mode=s:wrap", "i32[9]:2,3,1,2,3,1,2,3,1"},
        {"Pad", 13, "i32[3]:1,2,3 i64[2]:-1,1", "mode=s:edge", "i32[3]:2,3,3"},
        {"Pad", 19, "i32[3]:1,2,3 i64[2]:-1,1", "mode=s:wrap", "i32[3]:2,3,2"},
        {"Pad", 18, "i32[2,2]:1,2,3,4 i64[2]:0,1 - i64[1]:-1", "", "i32[2,3]:1,2,0,3,4,0"},
        {"Pad", 9, "f32[1]:1", "pads=I:1,0 value=f:0.5", "f32[2]:0.5,1"},
        {"Pad", 13, "i32[3] i64[2]:-2,-2", "", "!BAD_DATA do not fit extent 3"},
        {"Pad", 13, "i32[0] i64[2]:1,0", "mode=s:edge", "!BAD_DATA nothing to repeat"},
        {"Pad", 13, "i32[0] i64[2]:1,0", "", "i32[1]:0"},
        {"Pad", 13, "i32[3] i64[3]:1,1,1", "", "!BAD_DATA 3 pads"},
        {"Pad", 13, "i32[3] i64[2]:-9223372036854775808,9223372036854775807", "",
         "!BAD_DATA do not fit"},
        {"Pad", 13, "i32[3] i64[2]:1,1", "mode=s:wrap", "!UNSUPPORTED (attribute mode)"},
        {"CenterCropPad", 18, "i32[4]:1,2,3,4 i64[1]:1", "", "i32[1]:2"},
        {"CenterCropPad", 18, "i32[2]:1,2 i64[1]:5", "", "i32[5]:0,1,2,0,0"},
        {"CenterCropPad", 18, "i32[2] i64[2]:5,5", "", "!BAD_DATA which are not the axes"},
        {"Col2Im", 18, "f32[1,2,2]:1,2,3,4 i64[1]:3 i64[1]:2", "", "f32[1,1,3]:1,5,4"},
        {"Col2Im", 18, "f32[1,2,2] i64[1]:5 i64[1]:2", "", "!BAD_DATA do not make"},
        {"Col2Im", 18, "f32[1,2,2] i64[1]:3 i64[1]:0", "", "!BAD_DATA out of range"},
    };
    OP_ROWS_CHECK(rows);
}

TEST_MAIN()

// Awkward semantics of gathers and scatters; above all indices that are out of range.
// SPDX-License-Identifier: Apache-2.0

#include "support/cases/op_rows.h"
#include "support/test.h"

TEST(test_op_index__gathers) {
    static const op_row rows[] = {
        {"Gather", 13, "i32[3]:10,20,30 i64[]:-1", "", "i32[]:30"},
        {"Gather", 13, "i4[3]:1,2,-3 i64[2]:-1,0", "", "i4[2]:-3,1"},
        {"Gather", 13, "c128[3]:1,2,3,4,5,6 i64[2]:-1,0", "", "c128[2]:5,6,1,2"},
        {"GatherND", 13, "c64[2]:1,2,3,4 i64[1,1]:1", "", "c64[1]:3,4"},
        {"GatherElements", 13, "u2[3]:1,2,3 i64[2]:2,0", "", "u2[2]:3,1"},
        {"ScatterElements", 18, "i4[3]:1,2,3 i64[1]:1 i4[1]:-8", "", "i4[3]:1,-8,3"},
        {"ScatterElements", 18, "i4[3] i64[1] i4[1]", "reduction=s:add",
         "!UNSUPPORTED ScatterElements version 18 (input 0 of type i4)"},
        {"ScatterND", 18, "c128[2]:1,2,3,4 i64[1,1]:1 c128[1]:5,6", "", "c128[2]:1,2,5,6"},
        {"ScatterND", 18, "c64[1] i64[1,1] c64[1]", "reduction=s:mul",
         "!UNSUPPORTED input 0 of type c64"},
        {"OneHot", 11, "i64[2]:0,1 i64[]:2 f8e5m2[2]:0.5,2", "", "f8e5m2[2,2]:2,0.5,0.5,2"},
        {"Compress", 11, "i4[3]:1,-2,3 bool[3]:0,1,1", "", "i4[2]:-2,3"},
        {"Gather", 13, "i32[2,2]:1,2,3,4 i32[2]:1,0", "axis=-1", "i32[2,2]:2,1,4,3"},
        {"Gather", 13, "i32[2,2]:1,2,3,4 i64[0]", "", "i32[0,2]"},
        {"Gather", 13, "i32[3] i64[1]:3", "", "!BAD_DATA index 3 is outside [-3, 3)"},
        {"Gather", 13, "i32[3] i64[1]:-4", "", "!BAD_DATA index -4 is outside"},
        {"Gather", 13, "i32[3] i64[1]:-9223372036854775808", "", "!BAD_DATA is outside"},
        {"Gather", 13, "i32[0] i64[1]:0", "", "!BAD_DATA index 0 is outside [0, 0)"},
        {"Gather", 13, "i32[3] i16[1]:0", "", "!BAD_DATA must be i32 or i64"},
        {"Gather", 13, "i32[] i64[1]:0", "", "!BAD_DATA axis 0 is outside"},
        {"Gather", 13, "i8[1,1,1,1,1,1,1,1] i64[1,1]:0", "", "!UNSUPPORTED rank above 8"},
        {"GatherElements", 13, "i32[2,2]:1,2,3,4 i64[1,2]:-1,0", "", "i32[1,2]:3,2"},
        {"GatherElements", 13, "i32[2,2]:1,2,3,4 i64[2,1]:1,0", "axis=1", "i32[2,1]:2,3"},
        {"GatherElements", 13, "i32[2,2] i64[2,3]:0", "", "!BAD_DATA indices [2, 3] do not fit"},
        {"GatherElements", 13, "i32[2,2] i64[1,1]:2", "", "!BAD_DATA index 2 is outside [-2, 2)"},
        {"GatherND", 13, "i32[2,2]:1,2,3,4 i64[2,2]:0,0,-1,-1", "", "i32[2]:1,4"},
        {"GatherND", 13, "i32[2,2]:1,2,3,4 i64[2,1]:1,0", "batch_dims=1", "i32[2]:2,3"},
        {"GatherND", 13, "i32[2,2] i64[1,2]:0,2", "", "!BAD_DATA index 2 is outside"},
        {"GatherND", 13, "i32[2,2] i64[1,3]:0", "", "!BAD_DATA indices of 3 parts"},
        {"GatherND", 13, "i32[2,2] i64[2,1]:0", "batch_dims=2", "!BAD_DATA batch_dims 2"},
        {"OneHot", 11, "i64[3]:0,-1,7 i64[]:2 f32[2]:5,9", "", "f32[3,2]:9,5,5,9,5,5"},
        {"OneHot", 11, "i32[2]:1,0 i64[1]:2 i8[2]:0,1", "axis=0", "i8[2,2]:0,1,1,0"},
        {"OneHot", 11, "i64[1] i64[]:-2 f32[2]", "", "!BAD_DATA depth is -2"},
        {"OneHot", 11, "i64[1] i64[]:4611686018427387904 f32[2]", "", "!BAD_DATA depth is"},
    };
    OP_ROWS_CHECK(rows);
}

TEST(test_op_index__scatters) {
    static const op_row rows[] = {
        {"ScatterElements", 18, "i32[3]:1,2,3 i64[2]:0,-1 i32[2]:7,9", "", "i32[3]:7,2,9"},
        {"ScatterElements", 18, "i32[3]:1,2,3 i64[2]:1,1 i32[2]:7,9", "reduction=s:add",
         "i32[3]:1,18,3"},
        {"ScatterElements", 18, "f32[2]:1,2 i64[2]:0,0 f32[2]:3,4", "reduction=s:mul",
         "f32[2]:12,2"},
        {"ScatterElements", 18, "u8[2]:1,2 i64[2]:0,1 u8[2]:3,0", "reduction=s:max", "u8[2]:3,2"},
        {"ScatterElements", 18, "f16[2]:1,2 i64[1]:1 f16[1]:0.5", "", "f16[2]:1,0.5"},
        {"ScatterElements", 18, "bool[2]:1,0 i64[1]:1 bool[1]:1", "", "bool[2]:1,1"},
        {"ScatterElements", 18, "bool[2] i64[1] bool[1]", "reduction=s:add", "!UNSUPPORTED bool"},
        {"ScatterElements", 18, "i32[3] i64[1]:3 i32[1]", "", "!BAD_DATA index 3 is outside"},
        {"ScatterElements", 18, "i32[3] i64[2]:0 i32[1]", "", "!BAD_DATA one shape"},
        {"ScatterElements", 18, "i32[3] i64[1] i32[1]", "reduction=s:avg",
         "!UNSUPPORTED (attribute reduction)"},
        {"Scatter", 9, "i32[2,2]:1,2,3,4 i64[1,2]:1,0 i32[1,2]:8,9", "", "i32[2,2]:1,9,8,4"},
        {"TensorScatter", 24, "f32[2,3,1]:1,2,3,4,5,6 f32[2,1,1]:7,8 i64[2]:2,0", "",
         "f32[2,3,1]:1,2,7,8,5,6"},
        {"TensorScatter", 24, "f32[1,3,1]:1,2,3 f32[1,2,1]:7,8 i64[1]:5", "mode=s:circular",
         "f32[1,3,1]:8,2,7"},
        {"TensorScatter", 24, "i8[1,2,2,1]:1,2,3,4 i8[1,2,1,1]:7,8", "", "i8[1,2,2,1]:7,2,8,4"},
        {"TensorScatter", 24, "f32[1,3,1] f32[1,2,1] i64[1]:2", "",
         "!BAD_DATA write index 2 is outside [0, 1]"},
        {"TensorScatter", 24, "f32[1,3,1] f32[1,2,1] i64[1]:-1", "mode=s:circular",
         "!BAD_DATA write index -1 is outside"},
        {"TensorScatter", 24, "f32[1,3,1] f32[1,4,1]", "", "!BAD_DATA the update does not fit"},
        {"TensorScatter", 24, "f32[1,3,1] f32[1,1,1]", "axis=0", "!BAD_DATA the axis of batches"},
        {"TensorScatter", 24, "f32[1,3,1] f32[1,1,1]", "mode=s:x", "!UNSUPPORTED attribute mode"},
        {"TensorScatter", 24, "f32[1,3,1] f32[1,1,1] i64[2]", "", "!BAD_DATA one write index"},
        {"ScatterND", 18, "i32[3]:1,2,3 i64[2,1]:2,0 i32[2]:7,8", "", "i32[3]:8,2,7"},
        {"ScatterND", 18, "i32[2,2]:1,2,3,4 i64[1,1]:-1 i32[1,2]:7,8", "reduction=s:min",
         "i32[2,2]:1,2,3,4"},
        {"ScatterND", 18, "i32[3] i64[1,1]:3 i32[1]", "", "!BAD_DATA index 3 is outside"},
        {"ScatterND", 18, "i32[3] i64[1,2] i32[1]", "", "!BAD_DATA indices of 2 parts"},
        {"ScatterND", 18, "i32[3] i64[1,1] i32[2]", "", "!BAD_DATA updates [2] do not fit"},
    };
    OP_ROWS_CHECK(rows);
}

TEST_MAIN()

// Sequences and optionals, op by op.
// SPDX-License-Identifier: Apache-2.0

#include "op/op.h"
#include "support/cases/op_rows.h"
#include "support/test.h"

#define TWO "{f32[1]:1;f32[2]:2,3}"

TEST(test_op_sequence__made_and_taken_apart) {
    const op_row rows[] = {
        {"SequenceEmpty", 11, "", "", "{}"},
        {"SequenceEmpty", 11, "", "dtype=14", "{}"},
        {"SequenceEmpty", 11, "", "dtype=27", "!UNSUPPORTED attribute dtype=27, float6e2m3: use"},
        {"SequenceConstruct", 11, "i4[1]:1 i4[2]:2,-3", "", "{i4[1]:1;i4[2]:2,-3}"},
        {"SequenceConstruct", 11, "f32[1]:1 f32[2]:2,3", "", TWO},
        {"SequenceConstruct", 11, "string[1]:a string[0]", "", "{string[1]:a;string[0]}"},
        {"SequenceConstruct", 11, "f16[1]:1.5", "", "{f16[1]:1.5}"},
        {"SequenceConstruct", 11, "f32[1] i64[1]", "", "!BAD_DATA must be of one type"},
        {"SequenceConstruct", 11, "{f32[1]}", "", "!UNSUPPORTED input 0 of type sequence"},
        {"SequenceLength", 11, TWO, "", "i64[]:2"},
        {"SequenceLength", 11, "{}", "", "i64[]:0"},
        {"SequenceLength", 11, "f32[2]", "", "!UNSUPPORTED input 0 of type f32"},
        {"SequenceAt", 11, TWO " i64[]:1", "", "f32[2]:2,3"},
        {"SequenceAt", 11, TWO " i32[]:-2", "", "f32[1]:1"},
        {"SequenceAt", 11, TWO " i64[]:2", "", "!BAD_DATA position 2 is outside [-2, 2)"},
        {"SequenceAt", 11, "{} i64[]:0", "", "!BAD_DATA position 0 is outside [0, 0)"},
        {"SequenceInsert", 11, TWO " f32[1]:9", "", "{f32[1]:1;f32[2]:2,3;f32[1]:9}"},
        {"SequenceInsert", 11, TWO " f32[1]:9 i64[]:0", "", "{f32[1]:9;f32[1]:1;f32[2]:2,3}"},
        {"SequenceInsert", 11, TWO " f32[1]:9 i64[]:-1", "", "{f32[1]:1;f32[1]:9;f32[2]:2,3}"},
        {"SequenceInsert", 11, TWO " f32[1]:9 i64[]:-2", "", "{f32[1]:9;f32[1]:1;f32[2]:2,3}"},
        {"SequenceInsert", 11, TWO " f32[1]:9 i64[]:2", "", "{f32[1]:1;f32[2]:2,3;f32[1]:9}"},
        {"SequenceInsert", 11, TWO " f32[1]:9 i64[]:3", "", "!BAD_DATA position 3 is outside"},
        {"SequenceInsert", 11, TWO " f32[1]:9 i64[]:-3", "", "!BAD_DATA position -3 is outside"},
        {"SequenceInsert", 11, "{} string[1]:a", "", "{string[1]:a}"},
        {"SequenceInsert", 11, TWO " i64[1]:9", "", "!BAD_DATA the sequence holds f32"},
        {"SequenceErase", 11, TWO, "", "{f32[1]:1}"},
        {"SequenceErase", 11, TWO " i64[]:0", "", "{f32[2]:2,3}"},
        {"SequenceErase", 11, "{}", "", "!BAD_DATA the sequence is empty"},
        {"Identity", 16, TWO, "", TWO},
        {"Identity", 16, "<" TWO ">", "", "<" TWO ">"},
        {"Relu", 14, TWO, "", "!UNSUPPORTED input 0 of type sequence"},
        {"Concat", 13, TWO, "axis=0", "!UNSUPPORTED input 0 of type sequence"},
        {"Shape", 13, TWO, "", "!UNSUPPORTED input 0 of type sequence"},
    };
    OP_ROWS_CHECK(rows);
}

TEST(test_op_sequence__joined_and_split) {
    static const char rows_of_two[] = "f32[3,2]:1,2,3,4,5,6";
    const op_row rows[] = {
        {"ConcatFromSequence", 11, TWO, "axis=0", "f32[3]:1,2,3"},
        {"ConcatFromSequence", 11, "{i64[2,1]:1,2;i64[2,2]:3,4,5,6}", "axis=-1",
         "i64[2,3]:1,3,4,2,5,6"},
        {"ConcatFromSequence", 11, "{f32[2]:1,2;f32[2]:3,4}", "axis=1 new_axis=1",
         "f32[2,2]:1,3,2,4"},
        {"ConcatFromSequence", 11, "{f32[2]:1,2;f32[2]:3,4}", "axis=-2 new_axis=1",
         "f32[2,2]:1,2,3,4"},
        {"ConcatFromSequence", 11, "{string[1]:a;string[2]:b,c}", "axis=0", "string[3]:a,b,c"},
        {"ConcatFromSequence", 11, "{f32[0];f32[1]:3}", "axis=0", "f32[1]:3"},
        {"ConcatFromSequence", 11, "{}", "axis=0", "!BAD_DATA the sequence is empty"},
        {"ConcatFromSequence", 11, TWO, "axis=0 new_axis=1", "!BAD_DATA do not join along axis 0"},
        {"ConcatFromSequence", 11, "{f32[1];f32[1,1]}", "axis=0", "!BAD_DATA do not join"},
        {"ConcatFromSequence", 11, TWO, "axis=1", "!BAD_DATA axis 1 is outside [-1, 1)"},
        {"SplitToSequence", 11, rows_of_two, "", "{f32[1,2]:1,2;f32[1,2]:3,4;f32[1,2]:5,6}"},
        {"SplitToSequence", 11, rows_of_two, "axis=1 keepdims=0", "{f32[3]:1,3,5;f32[3]:2,4,6}"},
        {"SplitToSequence", 11, rows_of_two, "keepdims=0", "{f32[2]:1,2;f32[2]:3,4;f32[2]:5,6}"},
        {"SplitToSequence", 11, "f32[3,2]:1,2,3,4,5,6 i64[]:2", "",
         "{f32[2,2]:1,2,3,4;f32[1,2]:5,6}"},
        {"SplitToSequence", 11, "f32[3,2]:1,2,3,4,5,6 i64[]:2", "keepdims=0 axis=-1",
         "{f32[3,2]:1,2,3,4,5,6}"},
        {"SplitToSequence", 11, "f32[3,2]:1,2,3,4,5,6 i64[2]:1,2", "",
         "{f32[1,2]:1,2;f32[2,2]:3,4,5,6}"},
        {"SplitToSequence", 11, "string[3]:a,b,c i32[2]:0,3", "", "{string[0];string[3]:a,b,c}"},
        {"SplitToSequence", 11, "f32[0,2]", "", "{}"},
        {"SplitToSequence", 11, "f32[3] i64[2]:1,1", "",
         "!BAD_DATA split adds up to 2, axis 0 has 3"},
        {"SplitToSequence", 11, "f32[3] i64[]:0", "", "!BAD_DATA split is 0"},
        {"SplitToSequence", 11, "f32[3] i64[2]:-1,4", "", "!BAD_DATA entry 0 of split is -1"},
        {"SplitToSequence", 11, "f32[3] f32[]:1", "", "!BAD_DATA split must be an integer"},
        {"SplitToSequence", 11, "f32[100000,0]", "",
         "!BAD_DATA parts of a tensor without elements"},
        {"SplitToSequence", 11, "f32[]:1", "", "!BAD_DATA axis 0 is outside"},
    };
    OP_ROWS_CHECK(rows);
}

TEST(test_op_sequence__optionals) {
    const op_row rows[] = {
        {"Optional", 15, "f32[2]:1,2", "", "<f32[2]:1,2>"},
        {"Optional", 15, "string[1]:a", "", "<string[1]:a>"},
        {"Optional", 15, TWO, "", "<" TWO ">"},
        {"Optional", 15, "", "", "<>"},
        {"Optional", 15, "<f32[]:1>", "", "!UNSUPPORTED input 0 of type optional"},
        {"OptionalHasElement", 15, "<f32[]:1>", "", "bool[]:1"},
        {"OptionalHasElement", 15, "<>", "", "bool[]:0"},
        {"OptionalHasElement", 18, "f32[1]:1", "", "bool[]:1"},
        {"OptionalHasElement", 18, "{}", "", "bool[]:1"},
        {"OptionalHasElement", 18, "-", "", "bool[]:0"},
        {"OptionalGetElement", 15, "<f32[2]:1,2>", "", "f32[2]:1,2"},
        {"OptionalGetElement", 15, "<" TWO ">", "", TWO},
        {"OptionalGetElement", 18, "string[1]:a", "", "string[1]:a"},
        {"OptionalGetElement", 15, "<>", "", "!BAD_DATA the optional has no element"},
    };
    OP_ROWS_CHECK(rows);
}

TEST_MAIN()

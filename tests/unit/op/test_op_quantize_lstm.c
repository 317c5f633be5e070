// com.microsoft.DynamicQuantizeLSTM: one direction; two with a scale for each column, lengths and
// initial states; unsigned weights with peepholes and a clip. Expected values are ONNX Runtime's.
// SPDX-License-Identifier: Apache-2.0

#include "op/op.h"
#include "support/cases/op_rows.h"
#include "support/test.h"

TEST(test_op_quantize_lstm__results) {
    const op_row rows[] = {
        {"com.microsoft.DynamicQuantizeLSTM", 1,
         "f32[2,1,2]:1.69,-0.47,0.03,0.41 "
         "i8[1,2,8]:-55,-38,-17,-85,91,9,40,103,-59,49,0,8,45,-127,-52,-72 "
         "i8[1,2,8]:123,-121,-108,61,-83,64,-58,-71,25,56,54,-15,124,62,65,-93 f32[1,16]:0.33,"
         "0.03,-0.08,0.41,-0.01,-0.29,-0.08,-0.46,0.21,-0.08,-0.15,0.21,-0.33,0.11,-0.41,"
         "-0.13 - - - - f32[1]:0.0019 i8[1]:0 f32[1]:0.0032 i8[1]:0",
         "hidden_size=2 direction=s:forward",
         "f32[2,1,1,2]:-0.07803535,-0.04999979,-0.1591544,-0.1934324 "
         "f32[1,1,2]:-0.1591544,-0.1934324 f32[1,1,2]:-0.3723431,-0.3081556"},
        {"com.microsoft.DynamicQuantizeLSTM", 1,
         "f32[3,2,2]:1.69,-0.47,0.03,0.41,-0.79,0,-0,-1.75,1.02,0.6,-0.63,-0.17 i8[2,2,8]:123,"
         "-121,-108,61,-83,64,-58,-71,25,56,54,-15,124,62,65,-93,-71,74,79,-89,-123,111,10,"
         "-40,100,68,-55,-44,49,-126,65,17 i8[2,2,8]:-9,32,-34,45,-35,125,-56,-104,-117,106,"
         "-92,65,-66,8,24,-35,120,97,22,-27,36,98,-60,-4,92,98,-108,28,-123,-108,-94,-4 f32[2,"
         "16]:-0.24,-0.21,-0.06,-0.24,0.3,-0.06,0.02,0.29,0.3,-0.04,0.07,0.15,-0.04,-0.36,"
         "0.13,0.18,0.08,-0.18,-0.04,-0.12,-0.06,0.26,0.31,0.13,0.11,0.14,-0,-0.02,-0.13,"
         "-0.01,0.45,0.17 i32[2]:3,2 f32[2,2,2]:-0.17,-0.24,-0.43,0.19,0.2,-0.72,0.24,-0.28 "
         "f32[2,2,2]:0.71,0.08,0.86,-0.23,-0.14,0.15,0.53,0.28 - f32[2,8]:0.0027,0.0046,"
         "0.0017,0.004,0.0027,0.0027,0.0035,0.0031,0.0027,0.001,0.0014,0.0038,0.0031,0.0038,"
         "0.0048,0.0037 i8[2,8]:0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0 f32[2,8]:0.0012,0.0022,0.0034,"
         "0.0019,0.0049,0.0048,0.0044,0.0029,0.0044,0.0015,0.0022,0.0029,0.004,0.0029,0.0015,"
         "0.0024 i8[2,8]:0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0",
         "hidden_size=2 direction=s:bidirectional",
         "f32[3,2,2,2]:0.06331608,0.05412474,0.3056571,0.05467786,0.2170812,0.0774733,"
         "0.2448306,0.1354708,0.114542,0.1415288,0.05844791,0.1409402,0.2297887,0.1468271,"
         "0.1708525,0.1555148,0.07057982,0.09187379,0,0,0.1726211,0.06518853,0,0 f32[2,2,"
         "2]:0.07057982,0.09187379,0.05844791,0.1409402,0.2170812,0.0774733,0.2448306,"
         "0.1354708 f32[2,2,2]:0.1564476,0.1724988,0.1308333,0.2825382,0.4263175,0.2278817,"
         "0.5689353,0.3137638"},
        {"com.microsoft.DynamicQuantizeLSTM", 1,
         "f32[2,2,3]:1.69,-0.47,0.03,0.41,-0.79,0,-0,-1.75,1.02,0.6,-0.63,-0.17 u8[1,3,8]:250,"
         "6,19,188,44,191,69,56,152,183,181,112,251,189,192,34,56,201,206,38,4,238,137,87 "
         "u8[1,2,8]:227,195,72,83,176,1,192,144,118,159,93,172,92,252,71,23 - - - - "
         "f32[1,6]:-0.12,-0.3,-0.14,0.38,0.14,0.21 f32[1]:0.0025 u8[1]:107 f32[1]:0.0044 "
         "u8[1]:123",
         "hidden_size=2 direction=s:forward clip=f:0.4",
         "f32[2,1,2,2]:-0.06030126,-0.02995704,-0.04660065,0.02128374,-0.09013536,0.04702085,"
         "-0.07027406,0.01887778 f32[1,2,2]:-0.09013536,0.04702085,-0.07027406,0.01887778 "
         "f32[1,2,2]:-0.1848462,0.1023243,-0.1629162,0.03484061"},
    };
    OP_ROWS_CHECK(rows);
}

#define REFUSED(inputs, attributes, expected) \
    { "com.microsoft.DynamicQuantizeLSTM", 1, inputs, attributes, expected }
#define WEIGHTS "i8[1,2,8] i8[1,2,8]"
#define SCALES "- - - - - f32[1]:1 - f32[1]:1"

TEST(test_op_quantize_lstm__refused) {
    const op_row rows[] = {
        REFUSED("f32[1,1,2] f32[1,2,8] i8[1,2,8] " SCALES, "", "!UNSUPPORTED input 1 of type f32"),
        REFUSED("f64[1,1,2] " WEIGHTS " " SCALES, "", "!UNSUPPORTED input 0 of type f64"),
        REFUSED("f32[1,2] " WEIGHTS " " SCALES, "", "!BAD_DATA must have rank 3"),
        REFUSED("f32[1,1,3] " WEIGHTS " " SCALES, "", "!BAD_DATA input 1 has shape [1, 2, 8]"),
        REFUSED("f32[1,1,2] " WEIGHTS, "", "!BAD_DATA input 8 is missing"),
        REFUSED("f32[1,1,2] " WEIGHTS " - - - - - f32[2]:1 - f32[1]:1", "",
                "!BAD_DATA input 8 has shape [2], [1] is expected"),
        REFUSED("f32[1,1,2] " WEIGHTS " - - - - - f32[1]:1 u8[1]:1 f32[1]:1", "",
                "!UNSUPPORTED input 9 of type u8"),
        REFUSED("f32[1,1,2] " WEIGHTS " - i32[1]:2 - - - f32[1]:1 - f32[1]:1", "",
                "!BAD_DATA sequence_lens[0] is 2, the sequence has 1"),
        REFUSED("f32[1,1,2] " WEIGHTS " " SCALES, "hidden_size=3",
                "!BAD_DATA attribute hidden_size is 3, input R has 2"),
        REFUSED("f32[1,1,2] " WEIGHTS " " SCALES, "direction=s:up",
                "!BAD_DATA attribute direction"),
        REFUSED("f32[1,1,2] " WEIGHTS " " SCALES, "activations=S:Relu,Tanh,Tanh",
                "!UNSUPPORTED attribute activations"),
    };
    OP_ROWS_CHECK(rows);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_op_quantize_lstm__results),
        cmocka_unit_test(test_op_quantize_lstm__refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

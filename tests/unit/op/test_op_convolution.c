// Awkward semantics of Conv and its relatives.
//
// Expected numbers come from ONNX Runtime on the same inputs, unless a row says
// otherwise.
// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/cases/op_rows.h"

static void test_op_convolution__conv(void **state) {
    (void)state;
    static const op_row rows[] = {
        // Strides dilations and uneven pads
        {"Conv", 13, "f32[1,2,5,4]:~1 f32[3,2,3,2]:~2 f32[3]:~3",
         "strides=I:2,1 dilations=I:1,2 pads=I:1,0,2,1",
         "f32[1,3,3,3]:3,-1.421875,1.328125,1.390625,-3.71875,0.28125,2.15625,-4.1875,-1.859375,"
         "-0.59375,1.125,-2.8125,-4.953125,2.921875,-2.53125,-1.0625,1.96875,-1.859375,-3.46875,"
         "-0.640625,2.03125,0.203125,2.734375,2.203125,-1.046875,3.09375,0.65625"},
        {"Conv", 13, "f32[1,4,3,3]:~1 f32[4,2,2,2]:~2", "group=2 pads=I:1,1,1,1",
         "f32[1,4,4,4]:-1.03125,-0.65625,2.28125,-0.875,-2.984375,1.078125,-0.296875,0.453125,"
         "-2.484375,1.984375,1.6875,1.21875,-0.765625,-0.25,-0.25,-0.765625,-1.546875,-0.84375,"
         "2.703125,-0.78125,0.3125,1.09375,-2.296875,1.015625,0.125,0.984375,-2.40625,1.453125,"
         "0.546875,-2.171875,2.390625,-1,1.703125,-0.609375,-2.921875,1,1.953125,-2.046875,"
         "1.53125,0.796875,1.078125,-4.609375,4.359375,-2.328125,0.75,-1.921875,2.171875,"
         "-1.1875,1.28125,-0.609375,-2.3125,1.1875,1.484375,-2.375,1.34375,0.46875,1.359375,"
         "-4.515625,3.515625,-2.984375,1.078125,-1.5,2.125,-1.328125"},
        // Depthwise multiplier
        {"Conv", 13, "f32[2,2,3,3]:~1 f32[4,1,2,2]:~2 f32[4]:~5", "group=2",
         "f32[2,4,2,2]:1,-2.625,0.90625,0.515625,-0.953125,-1.578125,-3.90625,-1.296875,0.5,"
         "0.359375,0.4375,1.734375,-1.046875,-0.34375,-0.734375,-3.265625,0.796875,-2.828125,"
         "0.703125,0.3125,-0.703125,-1.328125,-3.65625,-1.046875,0.484375,1.78125,0.421875,"
         "1.359375,-0.96875,-3.5,-0.65625,0.046875"},
        // Same upper pads more at the end
        {"Conv", 13, "f32[1,1,4,5]:~1 f32[1,1,3,2]:~2", "auto_pad=s:SAME_UPPER strides=I:2,2",
         "f32[1,1,2,3]:-0.125,-0.125,0.859375,-0.859375,0.15625,-0.796875"},
        // Same lower pads more at the start
        {"Conv", 13, "f32[1,1,4,5]:~1 f32[1,1,3,2]:~2", "auto_pad=s:SAME_LOWER strides=I:2,2",
         "f32[1,1,2,3]:-0.171875,0.75,-0.265625,-0.265625,-0.84375,0.59375"},
        // Valid leaves no row out
        {"Conv", 13, "f32[1,1,4,5]:~1 f32[1,1,3,2]:~2", "auto_pad=s:VALID",
         "f32[1,1,2,4]:-0.125,-0.84375,-0.125,3.109375,-0.125,-0.84375,-0.125,0.59375"},
        // One axis
        {"Conv", 13, "f32[2,2,7]:~1 f32[2,2,3]:~2", "pads=I:2,1 strides=I:3",
         "f32[2,2,3]:-1.03125,-1.96875,1.984375,0.375,-2.9375,-1.734375,2.0625,1.984375,"
         "-1.96875,-1.6875,1,2.5625"},
        // Three axes
        {"Conv", 13, "f32[1,1,3,3,3]:~1 f32[1,1,2,2,2]:~2", "pads=I:1,0,1,0,1,0 strides=I:1,2,1",
         "f32[1,1,3,2,3]:0.375,0.421875,-0.203125,1.375,-0.78125,0.328125,-2.984375,1.078125,"
         "-0.296875,-0.765625,-0.25,-0.25,1.75,1.640625,-0.8125,1.640625,-0.25"},
        // A kernel of one may have pads
        {"Conv", 13, "f32[1,2,2,2]:~1 f32[1,2,1,1]:~2", "pads=I:1,1,1,1",
         "f32[1,1,4,4]:0,0,0,0,0,0.3125,-1.515625,0,0,0.609375,-0.5,0"},
        {"Conv", 13, "f32[1,2,5,4]:~1 f32[3,2,3,2]:~2", "strides=I:-1,1",
         "!BAD_DATA attribute strides[0] is -1"},
        {"Conv", 13, "f32[1,2,5,4]:~1 f32[3,2,3,2]:~2", "dilations=I:1,0",
         "!BAD_DATA attribute dilations[1] is 0"},
        {"Conv", 13, "f32[1,2,5,4]:~1 f32[3,2,3,2]:~2", "group=0",
         "!BAD_DATA attribute group is 0"},
        {"Conv", 13, "f32[1,2,5,4]:~1 f32[3,2,3,2]:~2", "group=3",
         "!BAD_DATA attribute group is 3"},
        {"Conv", 13, "f32[1,2,5,4]:~1 f32[3,2,3,2]:~2", "group=4611686018427387904",
         "!BAD_DATA attribute group"},
        {"Conv", 13, "f32[1,2,5,4]:~1 f32[3,2,3,2]:~2", "pads=I:-1,0,0,0",
         "!BAD_DATA attribute pads[0] is -1"},
        {"Conv", 13, "f32[1,2,5,4]:~1 f32[3,2,3,2]:~2", "pads=I:0,0,0,4611686018427387904",
         "!BAD_DATA attribute pads[3]"},
        {"Conv", 13, "f32[1,2,5,4]:~1 f32[3,2,3,2]:~2", "pads=I:0,0",
         "!BAD_DATA attribute pads has 2 entries, 4 are expected"},
        {"Conv", 13, "f32[1,2,5,4]:~1 f32[3,2,3,2]:~2", "kernel_shape=I:3,3",
         "!BAD_DATA attribute kernel_shape[1] is 3"},
        {"Conv", 13, "f32[1,2,5,4]:~1 f32[3,2,3,2]:~2", "dilations=I:2147483647,1",
         "!BAD_DATA kernel_shape, dilations"},
        {"Conv", 13, "f32[1,2,5,4]:~1 f32[3,2,3,2]:~2", "auto_pad=s:SAME",
         "!BAD_DATA attribute auto_pad"},
        {"Conv", 13, "f32[1,2,5,4]:~1 f32[3,2,3]:~1", "", "!BAD_DATA input W has rank 3"},
        {"Conv", 13, "f32[1,2,5,4]:~1 f32[3,3,3,2]:~1", "",
         "!BAD_DATA input W has 3 channels, X 2"},
        {"Conv", 13, "f32[1,2,5,4]:~1 f32[3,2,3,2]:~2 f32[2]:~1", "",
         "!BAD_DATA input B has shape [2]"},
        {"Conv", 13, "f32[1,2,5,4]:~1 f32[3,2,0,2]:~1", "", "!BAD_DATA kernel extent 0"},
        {"Conv", 13, "f32[2,2]:~1 f32[2,2]:~1", "", "!BAD_DATA rank 2"},
        {"Conv", 13, "i32[1,2,5,4]:~1 i32[3,2,3,2]:~1", "", "!UNSUPPORTED unsupported: op Conv"},
    };
    OP_ROWS_CHECK(rows);
}

static void test_op_convolution__conv_transpose(void **state) {
    (void)state;
    static const op_row rows[] = {
        {"ConvTranspose", 11, "f32[1,2,2,3]:~1 f32[2,1,3,3]:~2 f32[1]:~3",
         "strides=I:2,3 output_padding=I:1,1 pads=I:0,1,1,0",
         "f32[1,1,5,9]:1.125,-0.625,-1.765625,-1.34375,1.234375,0.78125,0.5,-0.859375,-0.125,"
         "-1.25,-0.125,-1.578125,1,1.421875,0.65625,-0.703125,-0.984375,-0.125,-2.59375,1.5,"
         "0.296875,1.1875,-2.59375,0.8125,0.296875,0.140625,-0.125,1.546875,0.5625,0.8125,"
         "-0.15625,-1.84375,0.53125,-1.140625,-0.296875,-0.125,1.109375,-1.3125,0.0625,-0.90625,"
         "1,0.90625,-0.765625,0.4375,-0.125"},
        {"ConvTranspose", 11, "f32[1,4,2,2]:~1 f32[4,1,2,2]:~2", "group=2 dilations=I:2,1",
         "f32[1,2,4,3]:-0.3125,-3.296875,-0.453125,1.109375,0.65625,-1.15625,0.46875,0.09375,"
         "-1.078125,-0.921875,2.015625,-1,-0.921875,2.5625,-0.453125,1.109375,-2.6875,0.53125,"
         "0.46875,-2.890625,0.96875,-0.3125,2.765625,-0.859375"},
        {"ConvTranspose", 11, "f32[1,1,2,3]:~1 f32[1,1,3,3]:~2", "strides=I:3,2 output_shape=I:8,6",
         "f32[1,1,8,6]:0,-1.546875,-0.28125,1.84375,0.15625,-0.546875,0,-0.984375,0.28125,"
         "2.09375,-0.15625,-0.859375,0,-0.421875,0.84375,-0.890625,-0.46875,0.625,-0.125,"
         "2.15625,0.3125,-0.921875,0.03125,-0.109375,0.125,1.78125,-0.3125,-1.609375,-0.03125,"
         "-0.171875,0.375,-0.03125,-0.9375,1.296875,-0.09375,0.125,0"},
        {"ConvTranspose", 11, "f32[1,1,3,3]:~1 f32[1,1,3,3]:~2",
         "strides=I:2,2 auto_pad=s:SAME_UPPER",
         "f32[1,1,6,6]:0,0,-1.546875,-0.28125,1.84375,0.15625,0,0,-0.984375,0.28125,2.09375,"
         "-0.15625,-0.6875,-0.125,1.734375,1.15625,-1.8125,-0.4375,-0.4375,0.125,1.78125,"
         "-0.3125,-1.609375,-0.03125,-1.5625,0.125,1.875,-0.75,0.125,-0.1875,-0.875,0.25,"
         "2.03125,-0.1875,-1.359375,0.09375"},
        {"ConvTranspose", 13, "f32[1,2,2,2]:~1 f32[2,1,2,2]:~1", "pads=I:9,9,9,9",
         "!BAD_DATA attribute pads cuts"},
        {"ConvTranspose", 13, "f32[1,2,4,4]:~1 f32[2,1,2,2]:~1",
         "strides=I:2147483647,2147483647 auto_pad=s:SAME_UPPER", "!BAD_DATA overflows"},
        {"ConvTranspose", 13, "f32[1,2,4,4]:~1 f32[2,1,2,2]:~1", "output_padding=I:-5,0",
         "!BAD_DATA attribute output_padding[0]"},
    };
    OP_ROWS_CHECK(rows);
}

static void test_op_convolution__conv_integer(void **state) {
    (void)state;
    static const op_row rows[] = {
        // Integer zero point of each filter: numbers computed with numpy from the definition.
        {"ConvInteger", 10,
         "u8[1,1,3,3]:1,2,3,4,5,6,7,8,9 u8[2,1,2,2]:1,2,3,4,5,6,7,8 u8[]:4 u8[2]:1,3", "",
         "i32[1,2,2,2]:1,7,19,25,-7,7,35,49"},
    };
    OP_ROWS_CHECK(rows);
}

static void test_op_convolution__qlinear_conv(void **state) {
    (void)state;
    static const op_row rows[] = {
        // Scale of each filter
        {"QLinearConv", 10,
         "u8[1,1,3,3]:10,20,30,40,250,60,70,80,90 f32[]:0.05 u8[]:100 "
         "u8[2,1,2,2]:1,200,3,40,50,6,70,8 f32[2]:0.02,0.05 u8[2]:30 f32[]:0.3 u8[]:120 "
         "i32[2]:100,-50",
         "pads=I:1,1,0,0",
         "u8[1,2,3,3]:117,126,125,67,94,74,85,213,85,136,104,106,149,73,178,137,73,148"},
        // Ties are those of f32: numbers from ONNX Runtime
        {"QLinearConv", 10,
         "u8[1,1,1,4]:27,63,99,200 f32[]:0.1 u8[] i8[1,1,1,1]:1 f32[]:0.05 i8[] f32[]:0.09 u8[]:3",
         "", "u8[1,1,1,4]:5,7,9,14"},
    };
    OP_ROWS_CHECK(rows);
}

static void test_op_convolution__deform_conv(void **state) {
    (void)state;
    static const op_row rows[] = {
        // Conv with mask: numbers from onnx.reference.
        {"DeformConv", 19,
         "f32[1,1,3,3]:~1 f32[1,1,2,2]:~2 f32[1,8,2,2]:~3*0.0625 f32[1]:~4 f32[1,4,2,2]:~5",
         "kernel_shape=I:2,2 pads=I:0,0,0,0", "f32[1,1,2,2]:1.134529,1.391571,1.576538,1.804855"},
        {"DeformConv", 19, "f32[1,1,3,3]:~1 f32[1,1,2,2]:~2 f32[1,8,2,2]:~3", "offset_group=0",
         "!BAD_DATA attribute offset_group"},
    };
    OP_ROWS_CHECK(rows);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_op_convolution__conv),
        cmocka_unit_test(test_op_convolution__conv_transpose),
        cmocka_unit_test(test_op_convolution__conv_integer),
        cmocka_unit_test(test_op_convolution__qlinear_conv),
        cmocka_unit_test(test_op_convolution__deform_conv),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

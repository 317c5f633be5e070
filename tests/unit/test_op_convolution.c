// Awkward semantics of Conv and its relatives.
//
// Expected numbers come from ONNX Runtime on the same inputs (op_probe patterns), unless a test
// says otherwise.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/op_probe.h"

static void test_op_convolution__strides_dilations_and_uneven_pads(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Conv", 13);
    op_probe_set_ints(&test, "strides", "2,1");
    op_probe_set_ints(&test, "dilations", "1,2");
    op_probe_set_ints(&test, "pads", "1,0,2,1");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x5x4", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3x2x3x2", 2, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3", 3, 0.125);
    static const double expected_0[] = {
        3.0,      -1.421875, 1.328125, 1.390625,  -3.71875, 0.28125,  2.15625,   -4.1875, -1.859375,
        -0.59375, 1.125,     -2.8125,  -4.953125, 2.921875, -2.53125, -1.0625,   1.96875, -1.859375,
        -3.46875, -0.640625, 2.03125,  0.203125,  2.734375, 2.203125, -1.046875, 3.09375, 0.65625};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x3x3x3", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_convolution__groups_of_two(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Conv", 13);
    op_probe_set_int(&test, "group", 2);
    op_probe_set_ints(&test, "pads", "1,1,1,1");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x4x3x3", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "4x2x2x2", 2, 0.125);
    static const double expected_0[] = {
        -1.03125,  -0.65625,  2.28125,   -0.875,    -2.984375, 1.078125,  -0.296875, 0.453125,
        -2.484375, 1.984375,  1.6875,    1.21875,   -0.765625, -0.25,     -0.25,     -0.765625,
        -1.546875, -0.84375,  2.703125,  -0.78125,  0.3125,    1.09375,   -2.296875, 1.015625,
        0.125,     0.984375,  -2.40625,  1.453125,  0.546875,  -2.171875, 2.390625,  -1.0,
        1.703125,  -0.609375, -2.921875, 1.0,       1.953125,  -2.046875, 1.53125,   0.796875,
        1.078125,  -4.609375, 4.359375,  -2.328125, 0.75,      -1.921875, 2.171875,  -1.1875,
        1.28125,   -0.609375, -2.3125,   1.1875,    1.484375,  -2.375,    1.34375,   0.46875,
        1.359375,  -4.515625, 3.515625,  -2.984375, 1.078125,  -1.5,      2.125,     -1.328125};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x4x4x4", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_convolution__depthwise_multiplier(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Conv", 13);
    op_probe_set_int(&test, "group", 2);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x2x3x3", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "4x1x2x2", 2, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "4", 5, 0.125);
    static const double expected_0[] = {
        1.0,      -2.625,    0.90625,  0.515625, -0.953125, -1.578125, -3.90625,  -1.296875,
        0.5,      0.359375,  0.4375,   1.734375, -1.046875, -0.34375,  -0.734375, -3.265625,
        0.796875, -2.828125, 0.703125, 0.3125,   -0.703125, -1.328125, -3.65625,  -1.046875,
        0.484375, 1.78125,   0.421875, 1.359375, -0.96875,  -3.5,      -0.65625,  0.046875};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "2x4x2x2", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_convolution__same_upper_pads_more_at_the_end(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Conv", 13);
    op_probe_set_string(&test, "auto_pad", "SAME_UPPER");
    op_probe_set_ints(&test, "strides", "2,2");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x4x5", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x3x2", 2, 0.125);
    static const double expected_0[] = {-0.125, -0.125, 0.859375, -0.859375, 0.15625, -0.796875};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x2x3", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_convolution__same_lower_pads_more_at_the_start(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Conv", 13);
    op_probe_set_string(&test, "auto_pad", "SAME_LOWER");
    op_probe_set_ints(&test, "strides", "2,2");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x4x5", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x3x2", 2, 0.125);
    static const double expected_0[] = {-0.171875, 0.75, -0.265625, -0.265625, -0.84375, 0.59375};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x2x3", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_convolution__valid_ignores_nothing(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Conv", 13);
    op_probe_set_string(&test, "auto_pad", "VALID");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x4x5", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x3x2", 2, 0.125);
    static const double expected_0[] = {-0.125, -0.84375, -0.125, 3.109375,
                                        -0.125, -0.84375, -0.125, 0.59375};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x2x4", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_convolution__one_axis(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Conv", 13);
    op_probe_set_ints(&test, "pads", "2,1");
    op_probe_set_ints(&test, "strides", "3");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x2x7", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x2x3", 2, 0.125);
    static const double expected_0[] = {-1.03125, -1.96875, 1.984375, 0.375,   -2.9375, -1.734375,
                                        2.0625,   1.984375, -1.96875, -1.6875, 1.0,     2.5625};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "2x2x3", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_convolution__three_axes(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Conv", 13);
    op_probe_set_ints(&test, "pads", "1,0,1,0,1,0");
    op_probe_set_ints(&test, "strides", "1,2,1");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x3x3x3", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x2x2x2", 2, 0.125);
    static const double expected_0[] = {
        0.375,     0.421875, -0.203125, 1.375, -0.78125, 0.328125, -2.984375, 1.078125, -0.296875,
        -0.765625, -0.25,    -0.25,     1.75,  1.640625, -0.8125,  1.640625,  -0.25,    -0.25};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x3x2x3", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_convolution__a_kernel_of_one_may_have_pads(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Conv", 13);
    op_probe_set_ints(&test, "pads", "1,1,1,1");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x2x2", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x1x1", 2, 0.125);
    static const double expected_0[] = {0.0, 0.0,      0.0,  0.0, 0.0, 0.3125, -1.515625, 0.0,
                                        0.0, 0.609375, -0.5, 0.0, 0.0, 0.0,    0.0,       0.0};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x4x4", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_convolution__transpose_with_output_padding(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "ConvTranspose", 11);
    op_probe_set_ints(&test, "strides", "2,3");
    op_probe_set_ints(&test, "output_padding", "1,1");
    op_probe_set_ints(&test, "pads", "0,1,1,0");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x2x3", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x1x3x3", 2, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1", 3, 0.125);
    static const double expected_0[] = {
        1.125,    -0.625,  -1.765625, -1.34375, 1.234375, 0.78125, 0.5,       -0.859375, -0.125,
        -1.25,    -0.125,  -1.578125, 1.0,      1.421875, 0.65625, -0.703125, -0.984375, -0.125,
        -2.59375, 1.5,     0.296875,  1.1875,   -2.59375, 0.8125,  0.296875,  0.140625,  -0.125,
        1.546875, 0.5625,  0.8125,    -0.15625, -1.84375, 0.53125, -1.140625, -0.296875, -0.125,
        1.109375, -1.3125, 0.0625,    -0.90625, 1.0,      0.90625, -0.765625, 0.4375,    -0.125};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x5x9", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_convolution__transpose_groups_and_dilations(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "ConvTranspose", 11);
    op_probe_set_int(&test, "group", 2);
    op_probe_set_ints(&test, "dilations", "2,1");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x4x2x2", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "4x1x2x2", 2, 0.125);
    static const double expected_0[] = {
        -0.3125,   -3.296875, -0.453125, 1.109375,  0.65625,   -1.15625, 0.46875,   0.09375,
        -1.078125, -0.921875, 2.015625,  -1.0,      -0.921875, 2.5625,   -0.453125, 1.109375,
        -2.6875,   0.53125,   0.46875,   -2.890625, 0.96875,   -0.3125,  2.765625,  -0.859375};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x2x4x3", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_convolution__transpose_output_shape(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "ConvTranspose", 11);
    op_probe_set_ints(&test, "strides", "3,2");
    op_probe_set_ints(&test, "output_shape", "8,6");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x2x3", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x3x3", 2, 0.125);
    static const double expected_0[] = {
        0.0,      -1.546875, -0.28125, 1.84375,   0.15625,  -0.546875, 0.0,     -0.984375,
        0.28125,  2.09375,   -0.15625, -0.859375, 0.0,      -0.421875, 0.84375, -0.890625,
        -0.46875, 0.625,     -0.125,   2.15625,   0.3125,   -0.921875, 0.03125, -0.109375,
        0.125,    1.78125,   -0.3125,  -1.609375, -0.03125, -0.171875, 0.375,   -0.03125,
        -0.9375,  1.296875,  -0.09375, 0.125,     0.0,      0.0,       0.0,     0.0,
        0.0,      0.0,       0.0,      0.0,       0.0,      0.0,       0.0,     0.0};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x8x6", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_convolution__transpose_same_upper(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "ConvTranspose", 11);
    op_probe_set_ints(&test, "strides", "2,2");
    op_probe_set_string(&test, "auto_pad", "SAME_UPPER");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x3x3", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x3x3", 2, 0.125);
    static const double expected_0[] = {
        0.0,     0.0,     -1.546875, -0.28125, 1.84375,   0.15625,  0.0,     0.0,       -0.984375,
        0.28125, 2.09375, -0.15625,  -0.6875,  -0.125,    1.734375, 1.15625, -1.8125,   -0.4375,
        -0.4375, 0.125,   1.78125,   -0.3125,  -1.609375, -0.03125, -1.5625, 0.125,     1.875,
        -0.75,   0.125,   -0.1875,   -0.875,   0.25,      2.03125,  -0.1875, -1.359375, 0.09375};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x6x6", expected_0, 1e-05);
    op_probe_deinit(&test);
}

// Expected numbers computed with numpy from the definition.
static void test_op_convolution__integer_zero_point_of_each_filter(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "ConvInteger", 10);
    op_probe_add_values(&test, RONDO_DTYPE_U8, "1x1x3x3",
                        (const double[]){1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0});
    op_probe_add_values(&test, RONDO_DTYPE_U8, "2x1x2x2",
                        (const double[]){1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0});
    op_probe_add_values(&test, RONDO_DTYPE_U8, "", (const double[]){4.0});
    op_probe_add_values(&test, RONDO_DTYPE_U8, "2", (const double[]){1.0, 3.0});
    static const double expected_0[] = {1.0, 7.0, 19.0, 25.0, -7.0, 7.0, 35.0, 49.0};
    op_probe_check(&test, 0, RONDO_DTYPE_I32, "1x2x2x2", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_convolution__qlinear_scale_of_each_filter(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "QLinearConv", 10);
    op_probe_set_ints(&test, "pads", "1,1,0,0");
    op_probe_add_values(&test, RONDO_DTYPE_U8, "1x1x3x3",
                        (const double[]){10.0, 20.0, 30.0, 40.0, 250.0, 60.0, 70.0, 80.0, 90.0});
    op_probe_add_values(&test, RONDO_DTYPE_F32, "", (const double[]){0.05});
    op_probe_add_values(&test, RONDO_DTYPE_U8, "", (const double[]){100.0});
    op_probe_add_values(&test, RONDO_DTYPE_U8, "2x1x2x2",
                        (const double[]){1.0, 200.0, 3.0, 40.0, 50.0, 6.0, 70.0, 8.0});
    op_probe_add_values(&test, RONDO_DTYPE_F32, "2", (const double[]){0.02, 0.05});
    op_probe_add_values(&test, RONDO_DTYPE_U8, "2", (const double[]){30.0, 30.0});
    op_probe_add_values(&test, RONDO_DTYPE_F32, "", (const double[]){0.3});
    op_probe_add_values(&test, RONDO_DTYPE_U8, "", (const double[]){120.0});
    op_probe_add_values(&test, RONDO_DTYPE_I32, "2", (const double[]){100.0, -50.0});
    static const double expected_0[] = {117.0, 126.0, 125.0, 67.0,  94.0,  74.0,
                                        85.0,  213.0, 85.0,  136.0, 104.0, 106.0,
                                        149.0, 73.0,  178.0, 137.0, 73.0,  148.0};
    op_probe_check(&test, 0, RONDO_DTYPE_U8, "1x2x3x3", expected_0, 1e-05);
    op_probe_deinit(&test);
}

// Expected numbers from onnx.reference.
static void test_op_convolution__deform_conv_with_mask(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "DeformConv", 19);
    op_probe_set_ints(&test, "kernel_shape", "2,2");
    op_probe_set_ints(&test, "pads", "0,0,0,0");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x3x3", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x2x2", 2, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x8x2x2", 3, 0.0625);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1", 4, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x4x2x2", 5, 0.125);
    static const double expected_0[] = {1.13452911, 1.39157104, 1.57653809, 1.80485535};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x2x2", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_convolution__refuses_negative_strides(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Conv", 13);
    op_probe_set_ints(&test, "strides", "-1,1");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x5x4", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3x2x3x2", 2, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "attribute strides[0] is -1");
    op_probe_deinit(&test);
}

static void test_op_convolution__refuses_zero_dilations(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Conv", 13);
    op_probe_set_ints(&test, "dilations", "1,0");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x5x4", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3x2x3x2", 2, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "attribute dilations[1] is 0");
    op_probe_deinit(&test);
}

static void test_op_convolution__refuses_group_zero(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Conv", 13);
    op_probe_set_int(&test, "group", 0);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x5x4", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3x2x3x2", 2, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "attribute group is 0");
    op_probe_deinit(&test);
}

static void test_op_convolution__refuses_group_that_does_not_divide(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Conv", 13);
    op_probe_set_int(&test, "group", 3);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x5x4", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3x2x3x2", 2, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "attribute group is 3");
    op_probe_deinit(&test);
}

static void test_op_convolution__refuses_huge_group(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Conv", 13);
    op_probe_set_int(&test, "group", 4611686018427387904);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x5x4", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3x2x3x2", 2, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "attribute group");
    op_probe_deinit(&test);
}

static void test_op_convolution__refuses_negative_pads(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Conv", 13);
    op_probe_set_ints(&test, "pads", "-1,0,0,0");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x5x4", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3x2x3x2", 2, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "attribute pads[0] is -1");
    op_probe_deinit(&test);
}

static void test_op_convolution__refuses_absurd_pads(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Conv", 13);
    op_probe_set_ints(&test, "pads", "0,0,0,4611686018427387904");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x5x4", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3x2x3x2", 2, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "attribute pads[3]");
    op_probe_deinit(&test);
}

static void test_op_convolution__refuses_short_pads(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Conv", 13);
    op_probe_set_ints(&test, "pads", "0,0");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x5x4", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3x2x3x2", 2, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA,
                         "attribute pads has 2 entries, 4 are expected");
    op_probe_deinit(&test);
}

static void test_op_convolution__refuses_another_kernel_shape(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Conv", 13);
    op_probe_set_ints(&test, "kernel_shape", "3,3");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x5x4", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3x2x3x2", 2, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "attribute kernel_shape[1] is 3");
    op_probe_deinit(&test);
}

static void test_op_convolution__refuses_a_window_larger_than_the_input(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Conv", 13);
    op_probe_set_ints(&test, "dilations", "2147483647,1");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x5x4", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3x2x3x2", 2, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "kernel_shape, dilations");
    op_probe_deinit(&test);
}

static void test_op_convolution__refuses_unknown_auto_pad(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Conv", 13);
    op_probe_set_string(&test, "auto_pad", "SAME");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x5x4", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3x2x3x2", 2, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "attribute auto_pad");
    op_probe_deinit(&test);
}

static void test_op_convolution__refuses_weights_of_another_rank(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Conv", 13);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x5x4", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3x2x3", 1, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "input W has rank 3");
    op_probe_deinit(&test);
}

static void test_op_convolution__refuses_other_channels(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Conv", 13);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x5x4", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3x3x3x2", 1, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "input W has 3 channels, X 2");
    op_probe_deinit(&test);
}

static void test_op_convolution__refuses_a_wrong_bias(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Conv", 13);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x5x4", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3x2x3x2", 2, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2", 1, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "input B has shape [2]");
    op_probe_deinit(&test);
}

static void test_op_convolution__refuses_a_kernel_without_extent(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Conv", 13);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x5x4", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3x2x0x2", 1, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "kernel extent 0");
    op_probe_deinit(&test);
}

static void test_op_convolution__refuses_a_matrix(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Conv", 13);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x2", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x2", 1, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "rank 2");
    op_probe_deinit(&test);
}

static void test_op_convolution__refuses_integers(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Conv", 13);
    op_probe_add_pattern(&test, RONDO_DTYPE_I32, "1x2x5x4", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_I32, "3x2x3x2", 1, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_UNSUPPORTED, "unsupported: op Conv");
    op_probe_deinit(&test);
}

static void test_op_convolution__transpose_refuses_pads_that_leave_nothing(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "ConvTranspose", 13);
    op_probe_set_ints(&test, "pads", "9,9,9,9");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x2x2", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x1x2x2", 1, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "attribute pads cuts");
    op_probe_deinit(&test);
}

static void test_op_convolution__transpose_refuses_overflowing_strides(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "ConvTranspose", 13);
    op_probe_set_ints(&test, "strides", "2147483647,2147483647");
    op_probe_set_string(&test, "auto_pad", "SAME_UPPER");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x4x4", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x1x2x2", 1, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "overflows");
    op_probe_deinit(&test);
}

static void test_op_convolution__transpose_refuses_negative_output_padding(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "ConvTranspose", 13);
    op_probe_set_ints(&test, "output_padding", "-5,0");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x4x4", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x1x2x2", 1, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "attribute output_padding[0]");
    op_probe_deinit(&test);
}

static void test_op_convolution__deform_refuses_offset_group_zero(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "DeformConv", 19);
    op_probe_set_int(&test, "offset_group", 0);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x3x3", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x2x2", 2, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x8x2x2", 3, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "attribute offset_group");
    op_probe_deinit(&test);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_op_convolution__strides_dilations_and_uneven_pads),
        cmocka_unit_test(test_op_convolution__groups_of_two),
        cmocka_unit_test(test_op_convolution__depthwise_multiplier),
        cmocka_unit_test(test_op_convolution__same_upper_pads_more_at_the_end),
        cmocka_unit_test(test_op_convolution__same_lower_pads_more_at_the_start),
        cmocka_unit_test(test_op_convolution__valid_ignores_nothing),
        cmocka_unit_test(test_op_convolution__one_axis),
        cmocka_unit_test(test_op_convolution__three_axes),
        cmocka_unit_test(test_op_convolution__a_kernel_of_one_may_have_pads),
        cmocka_unit_test(test_op_convolution__transpose_with_output_padding),
        cmocka_unit_test(test_op_convolution__transpose_groups_and_dilations),
        cmocka_unit_test(test_op_convolution__transpose_output_shape),
        cmocka_unit_test(test_op_convolution__transpose_same_upper),
        cmocka_unit_test(test_op_convolution__integer_zero_point_of_each_filter),
        cmocka_unit_test(test_op_convolution__qlinear_scale_of_each_filter),
        cmocka_unit_test(test_op_convolution__deform_conv_with_mask),
        cmocka_unit_test(test_op_convolution__refuses_negative_strides),
        cmocka_unit_test(test_op_convolution__refuses_zero_dilations),
        cmocka_unit_test(test_op_convolution__refuses_group_zero),
        cmocka_unit_test(test_op_convolution__refuses_group_that_does_not_divide),
        cmocka_unit_test(test_op_convolution__refuses_huge_group),
        cmocka_unit_test(test_op_convolution__refuses_negative_pads),
        cmocka_unit_test(test_op_convolution__refuses_absurd_pads),
        cmocka_unit_test(test_op_convolution__refuses_short_pads),
        cmocka_unit_test(test_op_convolution__refuses_another_kernel_shape),
        cmocka_unit_test(test_op_convolution__refuses_a_window_larger_than_the_input),
        cmocka_unit_test(test_op_convolution__refuses_unknown_auto_pad),
        cmocka_unit_test(test_op_convolution__refuses_weights_of_another_rank),
        cmocka_unit_test(test_op_convolution__refuses_other_channels),
        cmocka_unit_test(test_op_convolution__refuses_a_wrong_bias),
        cmocka_unit_test(test_op_convolution__refuses_a_kernel_without_extent),
        cmocka_unit_test(test_op_convolution__refuses_a_matrix),
        cmocka_unit_test(test_op_convolution__refuses_integers),
        cmocka_unit_test(test_op_convolution__transpose_refuses_pads_that_leave_nothing),
        cmocka_unit_test(test_op_convolution__transpose_refuses_overflowing_strides),
        cmocka_unit_test(test_op_convolution__transpose_refuses_negative_output_padding),
        cmocka_unit_test(test_op_convolution__deform_refuses_offset_group_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// Awkward semantics of Resize and Upsample.
//
// Expected numbers come from ONNX Runtime on the same inputs (op_probe patterns), unless a test
// says otherwise.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/op_probe.h"
#include "support/op_rows.h"

static void test_op_resize__nearest_prefers_floor(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Resize", 13);
    op_probe_set_string(&test, "mode", "nearest");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x4x4", 1, 0.5);
    op_probe_add_absent(&test);
    op_probe_add_absent(&test);
    op_probe_add_values(&test, RONDO_DTYPE_I64, "4", (const double[]){1.0, 1.0, 7.0, 3.0});
    static const double expected_0[] = {0.0, -4.5, -2.0, 0.0,  -4.5, -2.0, 5.0, 0.5, 3.0,  5.0, 0.5,
                                        3.0, -1.5, 5.5,  -3.5, 3.5,  -1.0, 1.5, 3.5, -1.0, 1.5};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x7x3", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_resize__nearest_prefers_ceil(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Resize", 13);
    op_probe_set_string(&test, "mode", "nearest");
    op_probe_set_string(&test, "nearest_mode", "round_prefer_ceil");
    op_probe_set_string(&test, "coordinate_transformation_mode", "asymmetric");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x4x4", 1, 0.5);
    op_probe_add_absent(&test);
    op_probe_add_absent(&test);
    op_probe_add_values(&test, RONDO_DTYPE_I64, "4", (const double[]){1.0, 1.0, 7.0, 3.0});
    static const double expected_0[] = {0.0,  -4.5, -2.0, 5.0, 0.5,  3.0,  5.0,
                                        0.5,  3.0,  -1.5, 5.5, -3.5, -1.5, 5.5,
                                        -3.5, 3.5,  -1.0, 1.5, 3.5,  -1.0, 1.5};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x7x3", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_resize__nearest_floor_align_corners(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Resize", 13);
    op_probe_set_string(&test, "mode", "nearest");
    op_probe_set_string(&test, "nearest_mode", "floor");
    op_probe_set_string(&test, "coordinate_transformation_mode", "align_corners");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x4x4", 1, 0.5);
    op_probe_add_absent(&test);
    op_probe_add_absent(&test);
    op_probe_add_values(&test, RONDO_DTYPE_I64, "4", (const double[]){1.0, 1.0, 7.0, 3.0});
    static const double expected_0[] = {0.0,  -4.5, -2.0, 0.0,  -4.5, -2.0, 5.0,
                                        0.5,  3.0,  5.0,  0.5,  3.0,  -1.5, 5.5,
                                        -3.5, -1.5, 5.5,  -3.5, 3.5,  -1.0, 1.5};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x7x3", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_resize__linear_half_pixel_up(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Resize", 13);
    op_probe_set_string(&test, "mode", "linear");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x4x4", 1, 0.5);
    op_probe_add_absent(&test);
    op_probe_add_values(&test, RONDO_DTYPE_F32, "4", (const double[]){1.0, 1.0, 2.0, 1.5});
    static const double expected_0[] = {0.0,   -2.25,  -3.33333373,  1.33333266,  0.25,    -2.0,
                                        1.25,  -1.0,   -2.5625,      0.187499762, 0.0625,  -0.75,
                                        3.75,  1.5,    -1.02083325,  -2.10416651, -0.3125, 1.75,
                                        3.375, 2.5625, 1.00000012,   -1.99999976, -0.6875, 1.375,
                                        0.125, 2.1875, 3.5,          0.500000417, -1.0625, -1.875,
                                        -0.25, 1.8125, 3.12500024,   0.125000238, -1.4375, -2.25,
                                        2.25,  1.4375, -0.124999821, -3.12499976, -1.8125, 0.25,
                                        3.5,   1.25,   -1.74999976,  -4.75,       -2.0,    1.5};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x8x6", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_resize__linear_pytorch_half_pixel_to_one(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Resize", 13);
    op_probe_set_string(&test, "mode", "linear");
    op_probe_set_string(&test, "coordinate_transformation_mode", "pytorch_half_pixel");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x4x4", 1, 0.5);
    op_probe_add_absent(&test);
    op_probe_add_absent(&test);
    op_probe_add_values(&test, RONDO_DTYPE_I64, "4", (const double[]){1.0, 1.0, 1.0, 6.0});
    static const double expected_0[] = {0.0, -2.25, -3.33333373, 1.33333266, 0.25, -2.0};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x1x6", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_resize__linear_one_axis(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Resize", 13);
    op_probe_set_string(&test, "mode", "linear");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x4x4", 1, 0.5);
    op_probe_add_absent(&test);
    op_probe_add_absent(&test);
    op_probe_add_values(&test, RONDO_DTYPE_I64, "4", (const double[]){1.0, 1.0, 4.0, 7.0});
    static const double expected_0[] = {
        0.0,  -1.60714293, -4.1785717,   -1.0,  2.1785717,   -0.392856836, -2.0,
        5.0,  3.39285707,  0.821428418,  -1.75, -3.50000024, 0.499999523,  3.0,
        -1.5, 1.0,         5.0,          3.25,  0.678571582, -1.89285684,  -3.5,
        3.5,  1.89285707,  -0.678571582, -3.25, -5.00000048, -1.00000048,  1.5};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x4x7", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_resize__linear_three_axes(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Resize", 13);
    op_probe_set_string(&test, "mode", "linear");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x2x2x2", 1, 0.125);
    op_probe_add_absent(&test);
    op_probe_add_absent(&test);
    op_probe_add_values(&test, RONDO_DTYPE_I64, "5", (const double[]){1.0, 1.0, 3.0, 3.0, 3.0});
    static const double expected_0[] = {
        0.0,   -0.5625, -1.125, 0.3125,  -0.25,    -0.8125, 0.625,   0.0625,   -0.5,
        0.625, 0.0625,  -0.5,   0.21875, 0.015625, -0.1875, -0.1875, -0.03125, 0.125,
        1.25,  0.6875,  0.125,  0.125,   0.28125,  0.4375,  -1.0,    -0.125,   0.75};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x3x3x3", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_resize__cubic_excludes_outside(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Resize", 13);
    op_probe_set_string(&test, "mode", "cubic");
    op_probe_set_int(&test, "exclude_outside", 1);
    op_probe_set_float(&test, "cubic_coeff_a", -0.5);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x4x4", 1, 0.5);
    op_probe_add_absent(&test);
    op_probe_add_values(&test, RONDO_DTYPE_F32, "4", (const double[]){1.0, 1.0, 1.5, 2.0});
    static const double expected_0[] = {
        0.0681127906, -1.35281265,  -4.36565733, -3.44659686, 1.61620963,  2.29685497,
        -1.16149569,  -2.79276133,  3.19204187,  1.71811938,  -1.40435553, -2.51976109,
        -1.40854788,  -0.392231703, 0.468656003, 0.875432611, 4.71224833,  3.9961381,
        2.48159504,   0.0633764043, -3.15202618, -2.69291472, 1.16915894,  2.99155712,
        -1.50330186,  0.344443321,  4.25997686,  4.91823244,  2.04389977,  -0.42683661,
        -2.35817981,  -3.27096915,  0.624567509, 1.16466308,  2.3105073,   1.52918196,
        -1.25988054,  -2.25437808,  -1.50686991, -1.15484416, 4.29276323,  2.92988873,
        0.0451987982, -2.89309216,  -5.68215466, -4.51968718, 0.258355796, 2.51335144};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x6x8", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_resize__cubic_half_pixel_down(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Resize", 13);
    op_probe_set_string(&test, "mode", "cubic");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x4x4", 1, 0.5);
    op_probe_add_absent(&test);
    op_probe_add_absent(&test);
    op_probe_add_values(&test, RONDO_DTYPE_I64, "4", (const double[]){1.0, 1.0, 3.0, 2.0});
    static const double expected_0[] = {-2.02090621, 0.65690124, 3.43701172,
                                        -1.39794922, 1.7664932,  -2.32725716};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x3x2", expected_0, 1e-05);
    op_probe_deinit(&test);
}

// Expected numbers from onnx.reference.
static void test_op_resize__crop_extrapolates(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Resize", 13);
    op_probe_set_string(&test, "mode", "linear");
    op_probe_set_string(&test, "coordinate_transformation_mode", "tf_crop_and_resize");
    op_probe_set_float(&test, "extrapolation_value", 9.5);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x4x4", 1, 0.5);
    op_probe_add_values(&test, RONDO_DTYPE_F32, "8",
                        (const double[]){0.0, 0.0, 0.4, -0.3, 1.0, 1.0, 1.2, 0.8});
    op_probe_add_absent(&test);
    op_probe_add_values(&test, RONDO_DTYPE_I64, "4", (const double[]){1.0, 1.0, 3.0, 4.0});
    static const double expected_0[] = {9.5, 3.25999975,  0.150000185, -1.11999977,
                                        9.5, 0.980000377, 1.549999,    -1.5600003,
                                        9.5, 9.5,         9.5,         9.5};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x3x4", expected_0, 1e-05);
    op_probe_deinit(&test);
}

// Expected numbers from onnx.reference.
static void test_op_resize__symmetric_half_pixel(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Resize", 19);
    op_probe_set_string(&test, "mode", "linear");
    op_probe_set_string(&test, "coordinate_transformation_mode", "half_pixel_symmetric");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x4x4", 1, 0.5);
    op_probe_add_absent(&test);
    op_probe_add_values(&test, RONDO_DTYPE_F32, "4", (const double[]){1.0, 1.0, 0.6, 0.6});
    static const double expected_0[] = {0.333333343, -0.77777797, 2.27777791, -1.38888884};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x2x2", expected_0, 1e-05);
    op_probe_deinit(&test);
}

// Expected numbers from onnx.reference.
static void test_op_resize__antialias_linear(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Resize", 18);
    op_probe_set_string(&test, "mode", "linear");
    op_probe_set_int(&test, "antialias", 1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x4x4", 1, 0.5);
    op_probe_add_absent(&test);
    op_probe_add_absent(&test);
    op_probe_add_values(&test, RONDO_DTYPE_I64, "4", (const double[]){1.0, 1.0, 3.0, 2.0});
    static const double expected_0[] = {-0.403409094, -0.4375,     1.8125,
                                        -0.3125,      0.892045438, -1.2329545};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x3x2", expected_0, 1e-05);
    op_probe_deinit(&test);
}

// Expected numbers from onnx.reference.
static void test_op_resize__antialias_cubic_excluding_outside(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Resize", 18);
    op_probe_set_string(&test, "mode", "cubic");
    op_probe_set_int(&test, "antialias", 1);
    op_probe_set_int(&test, "exclude_outside", 1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x4x4", 1, 0.5);
    op_probe_add_absent(&test);
    op_probe_add_absent(&test);
    op_probe_add_values(&test, RONDO_DTYPE_I64, "4", (const double[]){1.0, 1.0, 3.0, 2.0});
    static const double expected_0[] = {-0.799673975, -0.485096365, 2.26942492,
                                        -0.406528622, 0.800227046,  -1.6793648};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x3x2", expected_0, 1e-05);
    op_probe_deinit(&test);
}

// Expected numbers from onnx.reference.
static void test_op_resize__only_the_given_axes(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Resize", 18);
    op_probe_set_string(&test, "mode", "linear");
    op_probe_set_ints(&test, "axes", "3,2");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x4x4", 1, 0.5);
    op_probe_add_absent(&test);
    op_probe_add_absent(&test);
    op_probe_add_values(&test, RONDO_DTYPE_I64, "2", (const double[]){6.0, 2.0});
    static const double expected_0[] = {2.5, 0.25,  -1.79166663, -0.958333313, -0.125, 0.5,
                                        1.0, 1.625, 1.5,         -1.5,         -1.625, -1.0};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x2x6", expected_0, 1e-05);
    op_probe_deinit(&test);
}

// Expected numbers from onnx.reference.
static void test_op_resize__keeps_the_ratio_not_larger(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Resize", 18);
    op_probe_set_string(&test, "mode", "nearest");
    op_probe_set_ints(&test, "axes", "2,3");
    op_probe_set_string(&test, "keep_aspect_ratio_policy", "not_larger");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x2x3", 1, 0.125);
    op_probe_add_absent(&test);
    op_probe_add_absent(&test);
    op_probe_add_values(&test, RONDO_DTYPE_I64, "2", (const double[]){7.0, 9.0});
    static const double expected_0[] = {
        0.0,    0.0,    0.0,    -1.125, -1.125, -1.125, 0.625, 0.625, 0.625, 0.0,   0.0,
        0.0,    -1.125, -1.125, -1.125, 0.625,  0.625,  0.625, 0.0,   0.0,   0.0,   -1.125,
        -1.125, -1.125, 0.625,  0.625,  0.625,  -0.5,   -0.5,  -0.5,  1.25,  1.25,  1.25,
        0.125,  0.125,  0.125,  -0.5,   -0.5,   -0.5,   1.25,  1.25,  1.25,  0.125, 0.125,
        0.125,  -0.5,   -0.5,   -0.5,   1.25,   1.25,   1.25,  0.125, 0.125, 0.125};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x6x9", expected_0, 1e-05);
    op_probe_deinit(&test);
}

// Expected numbers from onnx.reference.
static void test_op_resize__keeps_the_ratio_not_smaller(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Resize", 18);
    op_probe_set_string(&test, "mode", "nearest");
    op_probe_set_ints(&test, "axes", "2,3");
    op_probe_set_string(&test, "keep_aspect_ratio_policy", "not_smaller");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x2x3", 1, 0.125);
    op_probe_add_absent(&test);
    op_probe_add_absent(&test);
    op_probe_add_values(&test, RONDO_DTYPE_I64, "2", (const double[]){3.0, 4.0});
    static const double expected_0[] = {0.0,   0.0,   -1.125, 0.625, 0.625, 0.0,   0.0,  -1.125,
                                        0.625, 0.625, -0.5,   -0.5,  1.25,  0.125, 0.125};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x3x5", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_resize__version_10_is_asymmetric(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Resize", 10);
    op_probe_set_string(&test, "mode", "linear");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x4x4", 1, 0.5);
    op_probe_add_values(&test, RONDO_DTYPE_F32, "4", (const double[]){1.0, 1.0, 1.5, 2.0});
    static const double expected_0[] = {
        0.0,         -2.25,         -4.5,         -1.0,         2.5,         0.25,
        -2.0,        -2.0,          3.33333349,   1.08333349,   -1.16666651, -1.5,
        -1.83333349, -0.25,         1.33333337,   1.33333337,   2.83333302,  2.5,
        2.16666675,  -0.0833331943, -2.33333302,  -0.75,        0.833333135, 0.833333135,
        -1.5,        2.0,           5.5,          3.25,         1.0,         -1.25,
        -3.5,        -3.5,          1.83333361,   1.49999988,   1.16666615,  -1.08333385,
        -3.33333373, -1.75,         -0.166666269, -0.166666269, 3.5,         1.25,
        -1.0,        -3.25,         -5.5,         -2.0,         1.5,         1.5};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x6x8", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_resize__version_10_rounds_by_direction(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Resize", 10);
    op_probe_set_string(&test, "mode", "nearest");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x4x4", 1, 0.5);
    op_probe_add_values(&test, RONDO_DTYPE_F32, "4", (const double[]){1.0, 1.0, 0.6, 1.6});
    static const double expected_0[] = {0.0,  0.0,  -4.5, -4.5, 2.5, -2.0,
                                        -1.5, -1.5, 5.5,  5.5,  1.0, -3.5};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x2x6", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_resize__upsample_linear(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Upsample", 9);
    op_probe_set_string(&test, "mode", "linear");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x4x4", 1, 0.5);
    op_probe_add_values(&test, RONDO_DTYPE_F32, "4", (const double[]){1.0, 1.0, 1.5, 2.0});
    static const double expected_0[] = {
        0.0,         -2.25,         -4.5,         -1.0,         2.5,         0.25,
        -2.0,        -2.0,          3.33333349,   1.08333349,   -1.16666651, -1.5,
        -1.83333349, -0.25,         1.33333337,   1.33333337,   2.83333302,  2.5,
        2.16666675,  -0.0833331943, -2.33333302,  -0.75,        0.833333135, 0.833333135,
        -1.5,        2.0,           5.5,          3.25,         1.0,         -1.25,
        -3.5,        -3.5,          1.83333361,   1.49999988,   1.16666615,  -1.08333385,
        -3.33333373, -1.75,         -0.166666269, -0.166666269, 3.5,         1.25,
        -1.0,        -3.25,         -5.5,         -2.0,         1.5,         1.5};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x6x8", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_resize__extent_is_floored_in_f32(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Resize", 13);
    op_probe_set_string(&test, "mode", "nearest");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "10", 1, 0.125);
    op_probe_add_absent(&test);
    op_probe_add_values(&test, RONDO_DTYPE_F32, "1", (const double[]){0.6});
    static const double expected_0[] = {0.0, 0.625, 1.25, 0.125, 0.75, 1.375};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "6", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_resize__refuses_zero_scales(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Resize", 13);
    op_probe_set_string(&test, "mode", "linear");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x4x4", 1, 0.5);
    op_probe_add_absent(&test);
    op_probe_add_values(&test, RONDO_DTYPE_F32, "4", (const double[]){1.0, 1.0, 0.0, 1.0});
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "scales[2] is 0");
    op_probe_deinit(&test);
}

static void test_op_resize__refuses_nan_scales(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Resize", 13);
    op_probe_set_string(&test, "mode", "linear");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x4x4", 1, 0.5);
    op_probe_add_absent(&test);
    op_probe_add_values(&test, RONDO_DTYPE_F32, "4", (const double[]){1.0, 1.0, (double)NAN, 1.0});
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "scales[2]");
    op_probe_deinit(&test);
}

static void test_op_resize__refuses_huge_scales(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Resize", 13);
    op_probe_set_string(&test, "mode", "linear");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x4x4", 1, 0.5);
    op_probe_add_absent(&test);
    op_probe_add_values(&test, RONDO_DTYPE_F32, "4",
                        (const double[]){1.0, 1.0, 100000000000.0, 100000000000.0});
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "Resize");
    op_probe_deinit(&test);
}

static void test_op_resize__refuses_negative_sizes(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Resize", 13);
    op_probe_set_string(&test, "mode", "linear");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x4x4", 1, 0.5);
    op_probe_add_absent(&test);
    op_probe_add_absent(&test);
    op_probe_add_values(&test, RONDO_DTYPE_I64, "4", (const double[]){1.0, 1.0, -3.0, 4.0});
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "sizes[2] is -3");
    op_probe_deinit(&test);
}

static void test_op_resize__refuses_too_few_sizes(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Resize", 13);
    op_probe_set_string(&test, "mode", "linear");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x4x4", 1, 0.5);
    op_probe_add_absent(&test);
    op_probe_add_absent(&test);
    op_probe_add_values(&test, RONDO_DTYPE_I64, "2", (const double[]){4.0, 4.0});
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA,
                         "input sizes has 2 elements, 4 are expected");
    op_probe_deinit(&test);
}

static void test_op_resize__refuses_unknown_modes(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Resize", 13);
    op_probe_set_string(&test, "mode", "quartic");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x4x4", 1, 0.5);
    op_probe_add_absent(&test);
    op_probe_add_absent(&test);
    op_probe_add_values(&test, RONDO_DTYPE_I64, "4", (const double[]){1.0, 1.0, 4.0, 4.0});
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "attribute mode");
    op_probe_deinit(&test);
}

static void test_op_resize__refuses_unknown_transforms(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Resize", 13);
    op_probe_set_string(&test, "coordinate_transformation_mode", "polar");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x4x4", 1, 0.5);
    op_probe_add_absent(&test);
    op_probe_add_absent(&test);
    op_probe_add_values(&test, RONDO_DTYPE_I64, "4", (const double[]){1.0, 1.0, 4.0, 4.0});
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "attribute coordinate_transformation_mode");
    op_probe_deinit(&test);
}

static void test_op_resize__refuses_crops_without_roi(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Resize", 13);
    op_probe_set_string(&test, "coordinate_transformation_mode", "tf_crop_and_resize");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x4x4", 1, 0.5);
    op_probe_add_absent(&test);
    op_probe_add_absent(&test);
    op_probe_add_values(&test, RONDO_DTYPE_I64, "4", (const double[]){1.0, 1.0, 4.0, 4.0});
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "input roi is missing");
    op_probe_deinit(&test);
}

static void test_op_resize__refuses_repeated_axes(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Resize", 18);
    op_probe_set_ints(&test, "axes", "2,-2");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x4x4", 1, 0.5);
    op_probe_add_absent(&test);
    op_probe_add_absent(&test);
    op_probe_add_values(&test, RONDO_DTYPE_I64, "2", (const double[]){4.0, 4.0});
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "Resize");
    op_probe_deinit(&test);
}

static void test_op_resize__refuses_axes_beyond_rank(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Resize", 18);
    op_probe_set_ints(&test, "axes", "9");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x4x4", 1, 0.5);
    op_probe_add_absent(&test);
    op_probe_add_absent(&test);
    op_probe_add_values(&test, RONDO_DTYPE_I64, "1", (const double[]){4.0});
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "axis");
    op_probe_deinit(&test);
}

static void test_op_resize__refuses_an_empty_input(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Resize", 13);
    op_probe_set_string(&test, "mode", "linear");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x0x4", 1, 0.125);
    op_probe_add_absent(&test);
    op_probe_add_absent(&test);
    op_probe_add_values(&test, RONDO_DTYPE_I64, "4", (const double[]){1.0, 1.0, 4.0, 4.0});
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "sizes[2]");
    op_probe_deinit(&test);
}

static void test_op_resize__refuses_neither_scales_nor_sizes(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Resize", 13);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x4x4", 1, 0.5);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "neither input scales nor input sizes");
    op_probe_deinit(&test);
}

// tf_half_pixel_for_nn moves no batch and no channel; a crop leaves the extents to scales alone.
static void test_op_resize__leaves_other_axes_alone(void **state) {
    (void)state;
    static const op_row rows[] = {
        {"Resize", 13, "f32[2,1,2]:0,1,10,11 - f32[3]:1,1,2",
         "mode=s:linear coordinate_transformation_mode=s:tf_half_pixel_for_nn",
         "f32[2,1,4]:0.25,0.75,1,1,10.25,10.75,11,11"},
        {"Resize", 13, "f32[2,2,1]:0,1,10,11 - - i64[3]:2,2,2",
         "mode=s:cubic coordinate_transformation_mode=s:tf_half_pixel_for_nn",
         "f32[2,2,2]:0,0,1,1,10,10,11,11"},
        {"Resize", 13, "f32[2,1,2]:0,1,10,11 - f32[3]:1,1,2",
         "nearest_mode=s:ceil coordinate_transformation_mode=s:tf_half_pixel_for_nn",
         "f32[2,1,4]:1,1,1,1,11,11,11,11"},
        {"Resize", 13, "f32[1,1,4]:0,1,2,3 f32[6]:0,0,0.25,1,1,0.75 f32[3]:1,1,0.75",
         "mode=s:linear coordinate_transformation_mode=s:tf_crop_and_resize",
         "f32[1,1,3]:0.75,1.5,2.25"},
    };
    OP_ROWS_CHECK(rows);
}

// Nearest only moves elements: no number between loses the last bits of 64-bit integers.
static void test_op_resize__nearest_is_exact(void **state) {
    (void)state;
    static const op_row rows[] = {
        {"Resize", 13, "i64[2]:9007199254740993,-9007199254740993 - f32[1]:2",
         "coordinate_transformation_mode=s:asymmetric nearest_mode=s:floor",
         "i64[4]:9007199254740993,9007199254740993,-9007199254740993,-9007199254740993"},
        {"Upsample", 9, "u64[1,1,1,1]:9007199254740993 f32[4]:1,1,1,2", "",
         "u64[1,1,1,2]:9007199254740993,9007199254740993"},
        {"Resize", 13, "i64[1,3]:9007199254740993,2,3 f32[4]:0,0,1,2 f32[2]:1,1",
         "coordinate_transformation_mode=s:tf_crop_and_resize extrapolation_value=f:7",
         "i64[1,3]:9007199254740993,3,7"},
    };
    OP_ROWS_CHECK(rows);
}

// Cubic weights overshoot; what no integer of the type holds is the nearest limit, in 64 bits too.
static void test_op_resize__integers_saturate(void **state) {
    (void)state;
#define CROPPED(input, value, expected)                                          \
    {                                                                            \
        "Resize", 13, input " f32[2]:1,2 f32[1]:1",                              \
            "coordinate_transformation_mode=s:tf_crop_and_resize mode=s:linear " \
            "extrapolation_value=f:" value,                                      \
            expected                                                             \
    }
    static const op_row rows[] = {
        {"Resize", 13, "u64[4]:9,9,0,0 - f32[1]:2",
         "coordinate_transformation_mode=s:asymmetric mode=s:cubic", "u64[8]:9,10,9,4,0,0,0,0"},
        {"Resize", 13, "u32[4]:9,9,0,0 - f32[1]:2",
         "coordinate_transformation_mode=s:asymmetric mode=s:cubic", "u32[8]:9,10,9,4,0,0,0,0"},
        CROPPED("u64[2]:1,2", "-5", "u64[2]:2,0"),
        CROPPED("u64[2]:1,2", "1e30", "u64[2]:2,18446744073709551615"),
        CROPPED("i64[2]:1,2", "1e30", "i64[2]:2,9223372036854775807"),
        CROPPED("i64[2]:1,2", "-1e30", "i64[2]:2,-9223372036854775808"),
    };
    OP_ROWS_CHECK(rows);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_op_resize__nearest_prefers_floor),
        cmocka_unit_test(test_op_resize__nearest_prefers_ceil),
        cmocka_unit_test(test_op_resize__nearest_floor_align_corners),
        cmocka_unit_test(test_op_resize__linear_half_pixel_up),
        cmocka_unit_test(test_op_resize__linear_pytorch_half_pixel_to_one),
        cmocka_unit_test(test_op_resize__linear_one_axis),
        cmocka_unit_test(test_op_resize__linear_three_axes),
        cmocka_unit_test(test_op_resize__cubic_excludes_outside),
        cmocka_unit_test(test_op_resize__cubic_half_pixel_down),
        cmocka_unit_test(test_op_resize__crop_extrapolates),
        cmocka_unit_test(test_op_resize__symmetric_half_pixel),
        cmocka_unit_test(test_op_resize__antialias_linear),
        cmocka_unit_test(test_op_resize__antialias_cubic_excluding_outside),
        cmocka_unit_test(test_op_resize__only_the_given_axes),
        cmocka_unit_test(test_op_resize__keeps_the_ratio_not_larger),
        cmocka_unit_test(test_op_resize__keeps_the_ratio_not_smaller),
        cmocka_unit_test(test_op_resize__version_10_is_asymmetric),
        cmocka_unit_test(test_op_resize__version_10_rounds_by_direction),
        cmocka_unit_test(test_op_resize__upsample_linear),
        cmocka_unit_test(test_op_resize__extent_is_floored_in_f32),
        cmocka_unit_test(test_op_resize__refuses_zero_scales),
        cmocka_unit_test(test_op_resize__refuses_nan_scales),
        cmocka_unit_test(test_op_resize__refuses_huge_scales),
        cmocka_unit_test(test_op_resize__refuses_negative_sizes),
        cmocka_unit_test(test_op_resize__refuses_too_few_sizes),
        cmocka_unit_test(test_op_resize__refuses_unknown_modes),
        cmocka_unit_test(test_op_resize__refuses_unknown_transforms),
        cmocka_unit_test(test_op_resize__refuses_crops_without_roi),
        cmocka_unit_test(test_op_resize__refuses_repeated_axes),
        cmocka_unit_test(test_op_resize__refuses_axes_beyond_rank),
        cmocka_unit_test(test_op_resize__refuses_an_empty_input),
        cmocka_unit_test(test_op_resize__leaves_other_axes_alone),
        cmocka_unit_test(test_op_resize__refuses_neither_scales_nor_sizes),
        cmocka_unit_test(test_op_resize__nearest_is_exact),
        cmocka_unit_test(test_op_resize__integers_saturate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// Awkward semantics of GridSample, AffineGrid, RoiAlign and MaxRoiPool.
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

static void test_op_sampling__grid_bilinear_zeros_centered(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "GridSample", 16);
    op_probe_set_string(&test, "mode", "bilinear");
    op_probe_set_string(&test, "padding_mode", "zeros");
    op_probe_set_int(&test, "align_corners", 0);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x3x4", 1, 0.5);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x3x4x2", 5, 0.15);
    static const double expected_0[] = {0.0,           0.454999745, 0.187499866, 0.0,
                                        0.0,           0.0,         -1.50000024, 0.0,
                                        -0.0974999219, 0.0,         0.871250391, 0.299999952};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x3x4", expected_0, 2e-05);
    op_probe_deinit(&test);
}

static void test_op_sampling__grid_bilinear_zeros_aligned(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "GridSample", 16);
    op_probe_set_string(&test, "mode", "bilinear");
    op_probe_set_string(&test, "padding_mode", "zeros");
    op_probe_set_int(&test, "align_corners", 1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x3x4", 1, 0.5);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x3x4x2", 5, 0.15);
    static const double expected_0[] = {-1.4525001,   1.26374924,   1.57499969,    0.274999976,
                                        0.731250107,  -0.649999976, -0.0375000089, 0.506250083,
                                        -0.594999909, 1.49624979,   2.04249954,    1.38750029};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x3x4", expected_0, 2e-05);
    op_probe_deinit(&test);
}

static void test_op_sampling__grid_bilinear_border_centered(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "GridSample", 16);
    op_probe_set_string(&test, "mode", "bilinear");
    op_probe_set_string(&test, "padding_mode", "border");
    op_probe_set_int(&test, "align_corners", 0);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x3x4", 1, 0.5);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x3x4x2", 5, 0.15);
    static const double expected_0[] = {-4.04999971, 0.699999571, 1.87500048,  -0.85000062,
                                        -1.5,        -1.0,        -1.50000024, 1.53750062,
                                        -1.5,        2.70000029,  2.05000043,  0.749999762};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x3x4", expected_0, 2e-05);
    op_probe_deinit(&test);
}

static void test_op_sampling__grid_bilinear_border_aligned(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "GridSample", 16);
    op_probe_set_string(&test, "mode", "bilinear");
    op_probe_set_string(&test, "padding_mode", "border");
    op_probe_set_int(&test, "align_corners", 1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x3x4", 1, 0.5);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x3x4x2", 5, 0.15);
    static const double expected_0[] = {-4.1500001,   1.26374924, 2.25000024,    1.0999999,
                                        1.125,        -1.0,       -0.0375000089, 2.02500033,
                                        -0.849999785, 4.27500057, 2.14999938,    1.49999988};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x3x4", expected_0, 2e-05);
    op_probe_deinit(&test);
}

static void test_op_sampling__grid_bilinear_reflection_centered(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "GridSample", 16);
    op_probe_set_string(&test, "mode", "bilinear");
    op_probe_set_string(&test, "padding_mode", "reflection");
    op_probe_set_int(&test, "align_corners", 0);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x3x4", 1, 0.5);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x3x4x2", 5, 0.15);
    static const double expected_0[] = {-1.67500031, 0.699999571, 1.87500048,  2.07499981,
                                        -1.33750093, -1.01875007, -1.50000024, -0.668749928,
                                        -1.5,        2.51000023,  2.05000043,  0.749999762};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x3x4", expected_0, 2e-05);
    op_probe_deinit(&test);
}

static void test_op_sampling__grid_bilinear_reflection_aligned(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "GridSample", 16);
    op_probe_set_string(&test, "mode", "bilinear");
    op_probe_set_string(&test, "padding_mode", "reflection");
    op_probe_set_int(&test, "align_corners", 1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x3x4", 1, 0.5);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x3x4x2", 5, 0.15);
    static const double expected_0[] = {-1.27374995, 1.26374924,  0.667499065,   2.9000001,
                                        1.89062476,  -1.26250005, -0.0375000089, -1.93124998,
                                        0.905000329, 2.33312464,  1.85374975,    1.23375058};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x3x4", expected_0, 2e-05);
    op_probe_deinit(&test);
}

static void test_op_sampling__grid_nearest_zeros_centered(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "GridSample", 16);
    op_probe_set_string(&test, "mode", "nearest");
    op_probe_set_string(&test, "padding_mode", "zeros");
    op_probe_set_int(&test, "align_corners", 0);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x3x4", 1, 0.5);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x3x4x2", 5, 0.15);
    static const double expected_0[] = {0.0,  2.5, 0.0, 0.0, 0.0, 0.0,
                                        -2.0, 0.0, 0.0, 0.0, 0.0, 0.0};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x3x4", expected_0, 2e-05);
    op_probe_deinit(&test);
}

static void test_op_sampling__grid_nearest_zeros_aligned(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "GridSample", 16);
    op_probe_set_string(&test, "mode", "nearest");
    op_probe_set_string(&test, "padding_mode", "zeros");
    op_probe_set_int(&test, "align_corners", 1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x3x4", 1, 0.5);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x3x4x2", 5, 0.15);
    static const double expected_0[] = {0.0,  2.5, 3.0,  0.0, -1.5, 2.5,
                                        -2.0, 0.0, -1.5, 0.0, 2.5,  3.0};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x3x4", expected_0, 2e-05);
    op_probe_deinit(&test);
}

static void test_op_sampling__grid_nearest_border_centered(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "GridSample", 16);
    op_probe_set_string(&test, "mode", "nearest");
    op_probe_set_string(&test, "padding_mode", "border");
    op_probe_set_int(&test, "align_corners", 0);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x3x4", 1, 0.5);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x3x4x2", 5, 0.15);
    static const double expected_0[] = {-4.5, 2.5, 3.0,  -1.5, -1.5, 2.5,
                                        -2.0, 3.0, -1.5, 5.5,  2.5,  3.0};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x3x4", expected_0, 2e-05);
    op_probe_deinit(&test);
}

static void test_op_sampling__grid_nearest_border_aligned(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "GridSample", 16);
    op_probe_set_string(&test, "mode", "nearest");
    op_probe_set_string(&test, "padding_mode", "border");
    op_probe_set_int(&test, "align_corners", 1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x3x4", 1, 0.5);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x3x4x2", 5, 0.15);
    static const double expected_0[] = {-4.5, 2.5, 3.0,  -1.5, -1.5, 2.5,
                                        -2.0, 3.0, -1.5, 5.5,  2.5,  3.0};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x3x4", expected_0, 2e-05);
    op_probe_deinit(&test);
}

static void test_op_sampling__grid_nearest_reflection_centered(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "GridSample", 16);
    op_probe_set_string(&test, "mode", "nearest");
    op_probe_set_string(&test, "padding_mode", "reflection");
    op_probe_set_int(&test, "align_corners", 0);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x3x4", 1, 0.5);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x3x4x2", 5, 0.15);
    static const double expected_0[] = {-4.5, 2.5, 3.0,  5.5, -1.5, 2.5,
                                        -2.0, 3.0, -1.5, 5.5, 2.5,  3.0};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x3x4", expected_0, 2e-05);
    op_probe_deinit(&test);
}

static void test_op_sampling__grid_nearest_reflection_aligned(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "GridSample", 16);
    op_probe_set_string(&test, "mode", "nearest");
    op_probe_set_string(&test, "padding_mode", "reflection");
    op_probe_set_int(&test, "align_corners", 1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x3x4", 1, 0.5);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x3x4x2", 5, 0.15);
    static const double expected_0[] = {0.5,  2.5,  3.0,  5.5, -1.5, 2.5,
                                        -2.0, -4.0, -1.5, 0.5, 2.5,  3.0};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x3x4", expected_0, 2e-05);
    op_probe_deinit(&test);
}

static void test_op_sampling__grid_bicubic_zeros_centered(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "GridSample", 16);
    op_probe_set_string(&test, "mode", "bicubic");
    op_probe_set_string(&test, "padding_mode", "zeros");
    op_probe_set_int(&test, "align_corners", 0);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x3x4", 1, 0.5);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x3x4x2", 5, 0.15);
    static const double expected_0[] = {0.447382867,  1.23505366,   0.251396537, 0.0960352123,
                                        0.0267362595, 0.0178244114, -1.66762507, -0.196606413,
                                        -0.181289628, -0.310480773, 1.54201746,  0.689656734};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x3x4", expected_0, 2e-05);
    op_probe_deinit(&test);
}

static void test_op_sampling__grid_bicubic_zeros_aligned(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "GridSample", 16);
    op_probe_set_string(&test, "mode", "bicubic");
    op_probe_set_string(&test, "padding_mode", "zeros");
    op_probe_set_int(&test, "align_corners", 1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x3x4", 1, 0.5);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x3x4x2", 5, 0.15);
    static const double expected_0[] = {-1.72500682, 2.06390882,   2.76872325,  0.160601467,
                                        0.429500073, -0.464312315, 0.320681334, 0.797412574,
                                        -1.45324075, 1.78952658,   2.49381399,  2.32619166};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x3x4", expected_0, 2e-05);
    op_probe_deinit(&test);
}

static void test_op_sampling__grid_bicubic_border_centered(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "GridSample", 16);
    op_probe_set_string(&test, "mode", "bicubic");
    op_probe_set_string(&test, "padding_mode", "border");
    op_probe_set_int(&test, "align_corners", 0);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x3x4", 1, 0.5);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x3x4x2", 5, 0.15);
    static const double expected_0[] = {-4.55624962, 1.87377238,  2.69320869,  -0.933251023,
                                        -1.50000083, -1.00000072, -1.54612553, 2.2001276,
                                        -2.27674866, 3.27000046,  3.04352999,  1.66560352};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x3x4", expected_0, 2e-05);
    op_probe_deinit(&test);
}

static void test_op_sampling__grid_bicubic_border_aligned(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "GridSample", 16);
    op_probe_set_string(&test, "mode", "bicubic");
    op_probe_set_string(&test, "padding_mode", "border");
    op_probe_set_int(&test, "align_corners", 1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x3x4", 1, 0.5);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x3x4x2", 5, 0.15);
    static const double expected_0[] = {-4.63946533, 1.94707322,   3.60280395,  1.29277325,
                                        1.05780268,  -0.797249973, 0.290622652, 2.80376935,
                                        -1.60103166, 5.03574562,   2.58694696,  2.56512618};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x3x4", expected_0, 2e-05);
    op_probe_deinit(&test);
}

static void test_op_sampling__grid_bicubic_reflection_centered(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "GridSample", 16);
    op_probe_set_string(&test, "mode", "bicubic");
    op_probe_set_string(&test, "padding_mode", "reflection");
    op_probe_set_int(&test, "align_corners", 0);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x3x4", 1, 0.5);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x3x4x2", 5, 0.15);
    static const double expected_0[] = {-2.2275939,  2.06965017,  3.04882693,  2.52440286,
                                        -1.37284374, -1.03838778, -1.54612553, -1.25793183,
                                        -3.21400785, 3.57066607,  3.70278835,  1.99718964};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x3x4", expected_0, 2e-05);
    op_probe_deinit(&test);
}

static void test_op_sampling__grid_bicubic_reflection_aligned(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "GridSample", 16);
    op_probe_set_string(&test, "mode", "bicubic");
    op_probe_set_string(&test, "padding_mode", "reflection");
    op_probe_set_int(&test, "align_corners", 1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x3x4", 1, 0.5);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x3x4x2", 5, 0.15);
    static const double expected_0[] = {-2.21936011, 2.21931696,  1.61936462,  4.03264141,
                                        1.69753063,  -1.83326292, 0.230391249, -2.74217868,
                                        0.028180778, 3.53108931,  2.3242538,   2.02768135};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x3x4", expected_0, 2e-05);
    op_probe_deinit(&test);
}

// Expected numbers from onnx.reference.
static void test_op_sampling__grid_of_three_axes(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "GridSample", 20);
    op_probe_set_string(&test, "mode", "linear");
    op_probe_set_string(&test, "padding_mode", "reflection");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x2x3x2", 1, 0.5);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x2x2x3", 5, 0.15);
    static const double expected_0[] = {-1.32750046, 3.5999999,   4.75,        -2.0,
                                        3.25,        0.549999833, 0.605999887, 4.19999981};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x2x2x2", expected_0, 1e-05);
    op_probe_deinit(&test);
}

// NaN and infinity read at the low edge, as PyTorch; large numbers at the edge they lie beyond.
static void test_op_sampling__grid_survives_nan_and_infinity(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "GridSample", 16);
    op_probe_set_string(&test, "padding_mode", "border");
    op_probe_add_values(&test, RONDO_DTYPE_F32, "1x1x1x2", (const double[]){1.0, 2.0});
    op_probe_add_values(&test, RONDO_DTYPE_F32, "1x1x3x2",
                        (const double[]){(double)NAN, 0.0, (double)INFINITY, 0.0, 1e+30, 0.0});
    static const double expected_0[] = {1.0, 1.0, 2.0};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x1x3", expected_0, 1e-05);
    op_probe_deinit(&test);
}

// Expected numbers from onnx.reference.
static void test_op_sampling__affine_aligned(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "AffineGrid", 20);
    op_probe_set_int(&test, "align_corners", 1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x3", 3, 0.25);
    op_probe_add_values(&test, RONDO_DTYPE_I64, "4", (const double[]){1.0, 1.0, 2.0, 3.0});
    static const double expected_0[] = {3.75,  -1.0, 3.5,  -2.25, 3.25,  -3.5,
                                        -1.25, 3.5,  -1.5, 2.25,  -1.75, 1.0};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x2x3x2", expected_0, 1e-05);
    op_probe_deinit(&test);
}

// Expected numbers from onnx.reference.
static void test_op_sampling__affine_of_three_axes(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "AffineGrid", 20);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x3x4", 3, 0.25);
    op_probe_add_values(&test, RONDO_DTYPE_I64, "5", (const double[]){1.0, 1.0, 2.0, 2.0, 2.0});
    static const double expected_0[] = {
        -0.375, 1.25, -2.875, -0.625, 3.5,  -3.875, -2.875, 1.25, -0.375, -3.125, 3.5,  -1.375,
        0.625,  -1.0, -2.625, 0.375,  1.25, -3.625, -1.875, -1.0, -0.125, -2.125, 1.25, -1.125};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x2x2x2x3", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_sampling__roi_align_version_10_has_no_half_pixel(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "RoiAlign", 10);
    op_probe_set_int(&test, "output_height", 2);
    op_probe_set_int(&test, "output_width", 2);
    op_probe_set_float(&test, "spatial_scale", 0.5);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x4x4", 1, 0.125);
    op_probe_add_values(&test, RONDO_DTYPE_F32, "2x4",
                        (const double[]){0.0, 0.0, 6.0, 7.0, 2.0, 1.0, 3.0, 2.0});
    op_probe_add_values(&test, RONDO_DTYPE_I64, "2", (const double[]){0.0, 0.0});
    static const double expected_0[] = {0.16015625, -0.174072266, 0.326416016, -0.462646484,
                                        -0.2890625, -0.4921875,   0.15625,     -0.40625};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "2x1x2x2", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_sampling__roi_align_half_pixel_samples(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "RoiAlign", 16);
    op_probe_set_int(&test, "output_height", 2);
    op_probe_set_int(&test, "output_width", 3);
    op_probe_set_int(&test, "sampling_ratio", 2);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x1x4x4", 1, 0.125);
    op_probe_add_values(&test, RONDO_DTYPE_F32, "2x4",
                        (const double[]){0.0, 0.0, 3.0, 3.0, -1.0, 1.5, 5.0, 2.0});
    op_probe_add_values(&test, RONDO_DTYPE_I64, "2", (const double[]){1.0, 0.0});
    static const double expected_0[] = {-0.252929688, 0.357421875, 0.153320312, -0.455078125,
                                        0.04296875,   0.17578125,  1.046875,    -0.28125,
                                        0.546875,     0.640625,    0.03125,     0.140625};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "2x1x2x3", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_sampling__max_roi_pool(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "MaxRoiPool", 1);
    op_probe_set_ints(&test, "pooled_shape", "2,2");
    op_probe_set_float(&test, "spatial_scale", 0.5);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x4x4", 1, 0.125);
    op_probe_add_values(&test, RONDO_DTYPE_F32, "2x5",
                        (const double[]){0.0, 0.0, 0.0, 6.0, 6.0, 0.0, 2.0, 3.0, 5.0, 4.0});
    static const double expected_0[] = {1.25,  0.75, 1.375, 0.375, 1.0,   1.125, 0.625, 1.25,
                                        1.375, 0.25, 1.375, 0.25,  0.625, 1.25,  0.625, 1.25};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "2x2x2x2", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_sampling__refuses_unknown_paddings(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "GridSample", 16);
    op_probe_set_string(&test, "padding_mode", "mirror");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x3x4", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x3x4x2", 5, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "attribute padding_mode");
    op_probe_deinit(&test);
}

static void test_op_sampling__refuses_a_grid_of_three_for_two_axes(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "GridSample", 16);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x3x4", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x3x4x3", 5, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "grid of shape");
    op_probe_deinit(&test);
}

static void test_op_sampling__refuses_a_grid_on_nothing(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "GridSample", 16);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x0x4", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x3x4x2", 5, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "empty spatial axis");
    op_probe_deinit(&test);
}

static void test_op_sampling__roi_align_refuses_wild_batches(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "RoiAlign", 16);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x4x4", 1, 0.125);
    op_probe_add_values(&test, RONDO_DTYPE_F32, "1x4", (const double[]){0.0, 0.0, 3.0, 3.0});
    op_probe_add_values(&test, RONDO_DTYPE_I64, "1", (const double[]){7.0});
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "batch_indices[0] is 7");
    op_probe_deinit(&test);
}

static void test_op_sampling__roi_align_refuses_absurd_boxes(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "RoiAlign", 16);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x4x4", 1, 0.125);
    op_probe_add_values(&test, RONDO_DTYPE_F32, "1x4", (const double[]){0.0, 0.0, 1e+30, 3.0});
    op_probe_add_values(&test, RONDO_DTYPE_I64, "1", (const double[]){0.0});
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "box 0");
    op_probe_deinit(&test);
}

static void test_op_sampling__roi_align_refuses_height_zero(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "RoiAlign", 16);
    op_probe_set_int(&test, "output_height", 0);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x4x4", 1, 0.125);
    op_probe_add_values(&test, RONDO_DTYPE_F32, "1x4", (const double[]){0.0, 0.0, 3.0, 3.0});
    op_probe_add_values(&test, RONDO_DTYPE_I64, "1", (const double[]){0.0});
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "attribute output_height is 0");
    op_probe_deinit(&test);
}

static void test_op_sampling__max_roi_pool_refuses_wild_batches(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "MaxRoiPool", 1);
    op_probe_set_ints(&test, "pooled_shape", "1,1");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x4x4", 1, 0.125);
    op_probe_add_values(&test, RONDO_DTYPE_F32, "1x5", (const double[]){-1.0, 0.0, 0.0, 3.0, 3.0});
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "names batch -1");
    op_probe_deinit(&test);
}

static void test_op_sampling__affine_refuses_other_sizes(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "AffineGrid", 20);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x3", 3, 0.125);
    op_probe_add_values(&test, RONDO_DTYPE_I64, "4", (const double[]){2.0, 1.0, 2.0, 3.0});
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "theta of shape");
    op_probe_deinit(&test);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_op_sampling__grid_bilinear_zeros_centered),
        cmocka_unit_test(test_op_sampling__grid_bilinear_zeros_aligned),
        cmocka_unit_test(test_op_sampling__grid_bilinear_border_centered),
        cmocka_unit_test(test_op_sampling__grid_bilinear_border_aligned),
        cmocka_unit_test(test_op_sampling__grid_bilinear_reflection_centered),
        cmocka_unit_test(test_op_sampling__grid_bilinear_reflection_aligned),
        cmocka_unit_test(test_op_sampling__grid_nearest_zeros_centered),
        cmocka_unit_test(test_op_sampling__grid_nearest_zeros_aligned),
        cmocka_unit_test(test_op_sampling__grid_nearest_border_centered),
        cmocka_unit_test(test_op_sampling__grid_nearest_border_aligned),
        cmocka_unit_test(test_op_sampling__grid_nearest_reflection_centered),
        cmocka_unit_test(test_op_sampling__grid_nearest_reflection_aligned),
        cmocka_unit_test(test_op_sampling__grid_bicubic_zeros_centered),
        cmocka_unit_test(test_op_sampling__grid_bicubic_zeros_aligned),
        cmocka_unit_test(test_op_sampling__grid_bicubic_border_centered),
        cmocka_unit_test(test_op_sampling__grid_bicubic_border_aligned),
        cmocka_unit_test(test_op_sampling__grid_bicubic_reflection_centered),
        cmocka_unit_test(test_op_sampling__grid_bicubic_reflection_aligned),
        cmocka_unit_test(test_op_sampling__grid_of_three_axes),
        cmocka_unit_test(test_op_sampling__grid_survives_nan_and_infinity),
        cmocka_unit_test(test_op_sampling__affine_aligned),
        cmocka_unit_test(test_op_sampling__affine_of_three_axes),
        cmocka_unit_test(test_op_sampling__roi_align_version_10_has_no_half_pixel),
        cmocka_unit_test(test_op_sampling__roi_align_half_pixel_samples),
        cmocka_unit_test(test_op_sampling__max_roi_pool),
        cmocka_unit_test(test_op_sampling__refuses_unknown_paddings),
        cmocka_unit_test(test_op_sampling__refuses_a_grid_of_three_for_two_axes),
        cmocka_unit_test(test_op_sampling__refuses_a_grid_on_nothing),
        cmocka_unit_test(test_op_sampling__roi_align_refuses_wild_batches),
        cmocka_unit_test(test_op_sampling__roi_align_refuses_absurd_boxes),
        cmocka_unit_test(test_op_sampling__roi_align_refuses_height_zero),
        cmocka_unit_test(test_op_sampling__max_roi_pool_refuses_wild_batches),
        cmocka_unit_test(test_op_sampling__affine_refuses_other_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// Awkward semantics of DFT, STFT, windows and the mel matrix.
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

static void test_op_signal__dft_of_a_power_of_two(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "DFT", 17);
    op_probe_set_int(&test, "axis", 1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x8x1", 1, 0.125);
    static const double expected_0[] = {
        0.125,       0.0,        -1.25,       0.142766953,     1.62500012,  1.25,
        -1.24999976, 3.39276695, 1.625,       -6.55670789e-08, -1.25000048, -3.39276671,
        1.625,       -1.25,      -1.25000048, -0.142766833};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x8x2", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_signal__dft_of_six_onesided(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "DFT", 17);
    op_probe_set_int(&test, "axis", 1);
    op_probe_set_int(&test, "onesided", 1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x6x1", 1, 0.125);
    static const double expected_0[] = {0.37500006, 3.87430191e-07, -0.937498748,
                                        1.62379742, -0.937500358,   0.54126662,
                                        3.37499952, -1.41115333e-06};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x4x2", expected_0, 1e-05);
    op_probe_deinit(&test);
}

// Expected numbers from onnx.reference.
static void test_op_signal__dft_pads_with_zeros(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "DFT", 17);
    op_probe_set_int(&test, "axis", 0);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3x2x2", 1, 0.125);
    op_probe_add_values(&test, RONDO_DTYPE_I64, "", (const double[]){5.0});
    static const double expected_0[] = {0.875,        0.375,       -0.125,        -0.625,
                                        1.61673939,   -3.16717243, 0.312709063,   1.24376285,
                                        -2.36138225,  -1.8926065,  2.78428459,    -0.551603258,
                                        0.107076935,  0.290149003, 0.238257855,   -2.20270205,
                                        -0.237434164, -1.23037004, -0.0852515325, -0.364457577};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "5x2x2", expected_0, 1e-05);
    op_probe_deinit(&test);
}

// Expected numbers from onnx.reference.
static void test_op_signal__dft_cuts(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "DFT", 20);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x6x2", 1, 0.125);
    op_probe_add_values(&test, RONDO_DTYPE_I64, "", (const double[]){4.0});
    static const double expected_0[] = {0.875, -0.75, -2.5, -2.875, 1.625, -1.25, 0.0, 0.375};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x4x2", expected_0, 1e-05);
    op_probe_deinit(&test);
}

// Expected numbers from onnx.reference.
static void test_op_signal__dft_inverse_divides(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "DFT", 17);
    op_probe_set_int(&test, "axis", 1);
    op_probe_set_int(&test, "inverse", 1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x4x2", 1, 0.125);
    static const double expected_0[] = {0.21875, -0.1875, 0.0,    0.09375,
                                        0.40625, -0.3125, -0.625, -0.71875};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x4x2", expected_0, 1e-05);
    op_probe_deinit(&test);
}

// Expected numbers from numpy.fft.irfft.
static void test_op_signal__dft_inverse_to_real(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "DFT", 20);
    op_probe_set_int(&test, "inverse", 1);
    op_probe_set_int(&test, "onesided", 1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x4x2", 1, 0.125);
    static const double expected_0[] = {0.458333343, 0.170753181,  -0.298744708,
                                        0.375,       -0.659588635, -0.0457531773};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x6x1", expected_0, 1e-05);
    op_probe_deinit(&test);
}

// Expected numbers from numpy.fft.irfft, which cuts the spectrum.
static void test_op_signal__dft_inverse_to_real_of_odd_length(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "DFT", 20);
    op_probe_set_int(&test, "inverse", 1);
    op_probe_set_int(&test, "onesided", 1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x4x2", 1, 0.125);
    op_probe_add_values(&test, RONDO_DTYPE_I64, "", (const double[]){5.0});
    static const double expected_0[] = {0.75, -0.166432202, 0.117364123, -0.212855622,
                                        -0.488076299};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x5x1", expected_0, 1e-05);
    op_probe_deinit(&test);
}

// Expected numbers from onnx.reference.
static void test_op_signal__dft_20_takes_the_axis_as_input(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "DFT", 20);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x3x2x1", 1, 0.125);
    op_probe_add_absent(&test);
    op_probe_add_values(&test, RONDO_DTYPE_I64, "", (const double[]){0.0});
    static const double expected_0[] = {-1.0, 0.0, -0.375, 0.0, 0.25, 0.0, 0.875,  0.0,
                                        1.5,  0.0, -0.75,  0.0, 1.0,  0.0, -1.875, 0.0,
                                        1.0,  0.0, -1.875, 0.0, 1.0,  0.0, 1.0,    0.0};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "2x3x2x2", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_signal__stft_onesided_with_window(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "STFT", 17);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x10x1", 1, 0.125);
    op_probe_add_values(&test, RONDO_DTYPE_I64, "", (const double[]){3.0});
    op_probe_add_values(&test, RONDO_DTYPE_F32, "4", (const double[]){0.25, 1.0, 0.5, 0.75});
    static const double expected_0[] = {
        -1.1875, 0.0, -0.3125,       0.75,       1.8125,   -1.31134158e-07,
        0.4375,  0.0, -0.187500149,  -2.0,       -0.5625,  4.37113883e-08,
        1.34375, 0.0, -0.0624998957, 0.28124997, -2.21875, 1.55721821e-07};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x3x3x2", expected_0, 1e-05);
    op_probe_deinit(&test);
}

// Expected numbers from onnx.reference.
static void test_op_signal__stft_complex(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "STFT", 17);
    op_probe_set_int(&test, "onesided", 0);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x6x2", 1, 0.125);
    op_probe_add_values(&test, RONDO_DTYPE_I64, "", (const double[]){2.0});
    op_probe_add_absent(&test);
    op_probe_add_values(&test, RONDO_DTYPE_I64, "", (const double[]){3.0});
    static const double expected_0[] = {1.875,        -1.5,         -1.47876585, -0.396234125,
                                        -0.396234125, -1.47876585,  -0.125,      2.25,
                                        1.39623415,   -0.396234125, 2.47876596,  -1.47876585};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x2x3x2", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_signal__hann_symmetric(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "HannWindow", 17);
    op_probe_set_int(&test, "periodic", 0);
    op_probe_add_values(&test, RONDO_DTYPE_I64, "", (const double[]){5.0});
    static const double expected_0[] = {0.0, 0.5, 1.0, 0.5, 0.0};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "5", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_signal__hamming_periodic_in_doubles(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "HammingWindow", 17);
    op_probe_set_int(&test, "output_datatype", 11);
    op_probe_add_values(&test, RONDO_DTYPE_I64, "", (const double[]){5.0});
    static const double expected_0[] = {0.086956501, 0.402405272, 0.912812104, 0.912812104,
                                        0.402405272};
    op_probe_check(&test, 0, RONDO_DTYPE_F64, "5", expected_0, 1e-06);
    op_probe_deinit(&test);
}

static void test_op_signal__blackman_periodic(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "BlackmanWindow", 17);
    op_probe_add_values(&test, RONDO_DTYPE_I64, "", (const double[]){5.0});
    static const double expected_0[] = {1.49011612e-08, 0.200770155, 0.849229872, 0.849229872,
                                        0.200770155};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "5", expected_0, 1e-05);
    op_probe_deinit(&test);
}

// The period is 0; the angle counts as 0.
static void test_op_signal__window_of_one(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "HannWindow", 17);
    op_probe_set_int(&test, "periodic", 0);
    op_probe_add_values(&test, RONDO_DTYPE_I64, "", (const double[]){1.0});
    // 0 / 0 in the function body of the standard.
    static const double expected_0[] = {(double)NAN};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_signal__mel_matrix(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "MelWeightMatrix", 17);
    op_probe_add_values(&test, RONDO_DTYPE_I64, "", (const double[]){4.0});
    op_probe_add_values(&test, RONDO_DTYPE_I64, "", (const double[]){16.0});
    op_probe_add_values(&test, RONDO_DTYPE_I64, "", (const double[]){8192.0});
    op_probe_add_values(&test, RONDO_DTYPE_F32, "", (const double[]){0.0});
    op_probe_add_values(&test, RONDO_DTYPE_F32, "", (const double[]){4096.0});
    static const double expected_0[] = {1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0,
                                        0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0,
                                        0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "9x4", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_signal__dft_refuses_length_zero(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "DFT", 17);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x6x1", 1, 0.125);
    op_probe_add_values(&test, RONDO_DTYPE_I64, "", (const double[]){0.0});
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "input dft_length");
    op_probe_deinit(&test);
}

static void test_op_signal__dft_refuses_the_last_axis(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "DFT", 17);
    op_probe_set_int(&test, "axis", -1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x6x1", 1, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "axis is the last one");
    op_probe_deinit(&test);
}

static void test_op_signal__dft_refuses_three_parts(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "DFT", 17);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x6x3", 1, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "last extent must be 1 or 2");
    op_probe_deinit(&test);
}

static void test_op_signal__dft_refuses_absurd_lengths(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "DFT", 17);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x6x1", 1, 0.125);
    op_probe_add_values(&test, RONDO_DTYPE_I64, "", (const double[]){2.305843009213694e+18});
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "input dft_length");
    op_probe_deinit(&test);
}

static void test_op_signal__stft_refuses_step_zero(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "STFT", 17);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x6x1", 1, 0.125);
    op_probe_add_values(&test, RONDO_DTYPE_I64, "", (const double[]){0.0});
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "input frame_step");
    op_probe_deinit(&test);
}

static void test_op_signal__stft_refuses_frames_beyond_the_signal(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "STFT", 17);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x6x1", 1, 0.125);
    op_probe_add_values(&test, RONDO_DTYPE_I64, "", (const double[]){1.0});
    op_probe_add_absent(&test);
    op_probe_add_values(&test, RONDO_DTYPE_I64, "", (const double[]){7.0});
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "a frame has 7 samples, the signal 6");
    op_probe_deinit(&test);
}

static void test_op_signal__window_refuses_negative_sizes(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "HannWindow", 17);
    op_probe_add_values(&test, RONDO_DTYPE_I64, "", (const double[]){-1.0});
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "input size");
    op_probe_deinit(&test);
}

static void test_op_signal__mel_refuses_edges_beyond_the_spectrum(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "MelWeightMatrix", 17);
    op_probe_add_values(&test, RONDO_DTYPE_I64, "", (const double[]){4.0});
    op_probe_add_values(&test, RONDO_DTYPE_I64, "", (const double[]){16.0});
    op_probe_add_values(&test, RONDO_DTYPE_I64, "", (const double[]){100.0});
    op_probe_add_values(&test, RONDO_DTYPE_F32, "", (const double[]){0.0});
    op_probe_add_values(&test, RONDO_DTYPE_F32, "", (const double[]){4096.0});
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "sample_rate 100");
    op_probe_deinit(&test);
}

static void test_op_signal__mel_refuses_no_bins(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "MelWeightMatrix", 17);
    op_probe_add_values(&test, RONDO_DTYPE_I64, "", (const double[]){0.0});
    op_probe_add_values(&test, RONDO_DTYPE_I64, "", (const double[]){16.0});
    op_probe_add_values(&test, RONDO_DTYPE_I64, "", (const double[]){100.0});
    op_probe_add_values(&test, RONDO_DTYPE_F32, "", (const double[]){0.0});
    op_probe_add_values(&test, RONDO_DTYPE_F32, "", (const double[]){40.0});
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "input num_mel_bins");
    op_probe_deinit(&test);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_op_signal__dft_of_a_power_of_two),
        cmocka_unit_test(test_op_signal__dft_of_six_onesided),
        cmocka_unit_test(test_op_signal__dft_pads_with_zeros),
        cmocka_unit_test(test_op_signal__dft_cuts),
        cmocka_unit_test(test_op_signal__dft_inverse_divides),
        cmocka_unit_test(test_op_signal__dft_inverse_to_real),
        cmocka_unit_test(test_op_signal__dft_inverse_to_real_of_odd_length),
        cmocka_unit_test(test_op_signal__dft_20_takes_the_axis_as_input),
        cmocka_unit_test(test_op_signal__stft_onesided_with_window),
        cmocka_unit_test(test_op_signal__stft_complex),
        cmocka_unit_test(test_op_signal__hann_symmetric),
        cmocka_unit_test(test_op_signal__hamming_periodic_in_doubles),
        cmocka_unit_test(test_op_signal__blackman_periodic),
        cmocka_unit_test(test_op_signal__window_of_one),
        cmocka_unit_test(test_op_signal__mel_matrix),
        cmocka_unit_test(test_op_signal__dft_refuses_length_zero),
        cmocka_unit_test(test_op_signal__dft_refuses_the_last_axis),
        cmocka_unit_test(test_op_signal__dft_refuses_three_parts),
        cmocka_unit_test(test_op_signal__dft_refuses_absurd_lengths),
        cmocka_unit_test(test_op_signal__stft_refuses_step_zero),
        cmocka_unit_test(test_op_signal__stft_refuses_frames_beyond_the_signal),
        cmocka_unit_test(test_op_signal__window_refuses_negative_sizes),
        cmocka_unit_test(test_op_signal__mel_refuses_edges_beyond_the_spectrum),
        cmocka_unit_test(test_op_signal__mel_refuses_no_bins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

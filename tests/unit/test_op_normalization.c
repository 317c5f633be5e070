// Awkward semantics of normalisations and softmax.
//
// Expected numbers come from ONNX Runtime on the same inputs (op_probe patterns), unless a test
// says otherwise.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/op_probe.h"

static void test_op_normalization__batch_inference(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "BatchNormalization", 15);
    op_probe_set_float(&test, "epsilon", 0.01);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x3x2x2", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3", 2, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3", 3, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3", 4, 0.125);
    op_probe_add_values(&test, RONDO_DTYPE_F32, "3", (const double[]){0.5, 1.0, 2.0});
    static const double expected_0[] = {
        -2.53173113,  -4.69778919, -1.32836556, -3.49442363,  -0.970145822, -1.25,
        -1.52985418,  -1.09452546, 0.114264101, -0.965796411, -0.271471798, 0.422852814,
        -0.847019196, -3.01307726, -5.17913532, -1.80971169,  -1.46766436,  -1.03233564,
        -1.31218982,  -1.592044,   -0.42576614, 0.268558472,  -0.811502039, -0.117177427};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "2x3x2x2", expected_0, 1e-05);
    op_probe_deinit(&test);
}

// Expected numbers from onnx.reference.
static void test_op_normalization__batch_training_gives_running_values(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "BatchNormalization", 15);
    op_probe_set_int(&test, "training_mode", 1);
    op_probe_set_float(&test, "momentum", 0.75);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x3x2x2", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3", 2, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3", 3, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3", 4, 0.125);
    op_probe_add_values(&test, RONDO_DTYPE_F32, "3", (const double[]){0.5, 1.0, 2.0});
    test.output_count = 3;
    static const double expected_0[] = {
        0.189080656, -1.86671996,  1.33119214,  -0.724608481, -0.89732945,  -1.21473289,
        -1.53213644, -1.03839767,  1.13594842,  -0.899086475, 0.409150243,  1.71738696,
        1.7880367,   -0.267763913, -2.32356453, 0.874347508,  -1.46160233,  -0.96786356,
        -1.28526711, -1.60267055,  0.118430942, 1.42666769,   -0.608367205, 0.699869514};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "2x3x2x2", expected_0, 1e-05);
    static const double expected_1[] = {0.89453125, 0.09375, -0.70703125};
    op_probe_check(&test, 1, RONDO_DTYPE_F32, "3", expected_1, 1e-05);
    static const double expected_2[] = {0.516540527, 0.946289062, 1.64154053};
    op_probe_check(&test, 2, RONDO_DTYPE_F32, "3", expected_2, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_normalization__instance_normalises_each_plane(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "InstanceNormalization", 6);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x3x2x2", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3", 2, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3", 3, 0.125);
    static const double expected_0[] = {
        0.409200788, -1.9947027,  1.7447027,   -0.659200788, -0.961776376, -1.29648757,
        -1.63119888, -1.11053693, 0.988120556, -0.83419627,  0.337293148,  1.50878263,
        1.46022975,  -0.3806822,  -2.2215941,  0.64204669,   -1.38946307,  -0.868801117,
        -1.20351243, -1.53822362, 0.160054028, 1.68981075,   -0.689810872, 0.839945912};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "2x3x2x2", expected_0, 1e-05);
    op_probe_deinit(&test);
}

// Expected numbers from onnx.reference.
static void test_op_normalization__group_18_scales_by_group(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "GroupNormalization", 18);
    op_probe_set_int(&test, "num_groups", 2);
    op_probe_set_float(&test, "epsilon", 0.01);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x4x3", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2", 2, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2", 3, 0.125);
    static const double expected_0[] = {-0.237183541, -2.25648737,   0.884651899, -1.1346519,
                                        2.00648737,   -0.0128164515, -1.54537034, -1.03902125,
                                        -1.36453128,  -0.858182311,  -1.18369234, -1.50920248};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x4x3", expected_0, 1e-05);
    op_probe_deinit(&test);
}

// Expected numbers from onnx.reference.
static void test_op_normalization__group_21_scales_by_channel(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "GroupNormalization", 21);
    op_probe_set_int(&test, "num_groups", 2);
    op_probe_set_float(&test, "epsilon", 0.01);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x4x3", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "4", 2, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "4", 3, 0.125);
    static const double expected_0[] = {-0.237183541, -2.25648737, 0.884651899,  -1.43357313,
                                        -0.862456799, -1.22960293, 1.53379607,   -0.238425732,
                                        0.900859714,  0.746361971, -0.392923325, -1.53220868};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x4x3", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_normalization__layer_over_two_axes_with_statistics(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "LayerNormalization", 17);
    op_probe_set_int(&test, "axis", -2);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x3x2x2", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x2", 2, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x2", 3, 0.125);
    test.output_count = 3;
    static const double expected_0[] = {
        0.409200788, -1.58994591,  -0.689810753, -0.964945912, 1.46022964,   -1.29648769,
        1.83419621,  -0.136879414, -0.89204663,  -0.868801117, 0.337293148,  -1.63378251,
        1.46022964,  -1.29648769,  1.83419621,   -0.136879414, -0.89204663,  -0.868801117,
        0.337293148, -1.63378251,  0.409200788,  -1.58994591,  -0.689810753, -0.964945912};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "2x3x2x2", expected_0, 1e-05);
    static const double expected_1[] = {-0.25, 0.28125, 0.09375, -0.09375, -0.28125, 0.25};
    op_probe_check(&test, 1, RONDO_DTYPE_F32, "2x3x1x1", expected_1, 1e-05);
    static const double expected_2[] = {1.55403864, 1.19008446, 1.19008446,
                                        1.19008446, 1.19008446, 1.55403864};
    op_probe_check(&test, 2, RONDO_DTYPE_F32, "2x3x1x1", expected_2, 1e-05);
    op_probe_deinit(&test);
}

// Expected numbers from onnx.reference.
static void test_op_normalization__layer_scale_may_broadcast(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "LayerNormalization", 17);
    op_probe_set_int(&test, "axis", 1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x3x2", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3x1", 2, 0.125);
    static const double expected_0[] = {-0.113150813, -2.14986539,   0.185155869,  -0.185155869,
                                        -1.36809611,  -0.0720050633, -1.63551641,  1.168226,
                                        -0.115305424, 0.394465923,   -0.233645201, 0.91334033};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "2x3x2", expected_0, 1e-05);
    op_probe_deinit(&test);
}

// Expected numbers computed with numpy from the definition.
static void test_op_normalization__lrn_of_even_size_reaches_further_up(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "LRN", 13);
    op_probe_set_int(&test, "size", 2);
    op_probe_set_float(&test, "alpha", 0.5);
    op_probe_set_float(&test, "beta", 0.5);
    op_probe_set_float(&test, "bias", 2.0);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x4x2x1", 1, 0.125);
    static const double expected_0[] = {0.0,         -0.72939682,  0.396214426,  -0.347826093,
                                        0.769230783, 0.0853579193, -0.666666687, 0.512614608};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x4x2x1", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_normalization__lp_of_one(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "LpNormalization", 1);
    op_probe_set_int(&test, "p", 1);
    op_probe_set_int(&test, "axis", 0);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3x2", 1, 0.125);
    static const double expected_0[] = {0.0,          -0.642857134, 0.333333343,
                                        -0.285714298, 0.666666687,  0.0714285746};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "3x2", expected_0, 1e-05);
    op_probe_deinit(&test);
}

// ONNX 1.17: a zero norm gives zeros.
static void test_op_normalization__lp_of_zeros_is_zero(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "LpNormalization", 1);
    op_probe_set_int(&test, "p", 2);
    op_probe_add_values(&test, RONDO_DTYPE_F32, "1x3", (const double[]){0.0, 0.0, 0.0});
    static const double expected_0[] = {0.0, 0.0, 0.0};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x3", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_normalization__mean_variance_over_chosen_axes(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "MeanVarianceNormalization", 13);
    op_probe_set_ints(&test, "axes", "1");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x3", 1, 0.125);
    static const double expected_0[] = {0.230174124, -1.32350123, 1.09332716,
                                        -1.09332716, 1.32350135,  -0.230174124};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "2x3", expected_0, 0.0001);
    op_probe_deinit(&test);
}

static void test_op_normalization__softmax_12_flattens(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Softmax", 11);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x2x3", 1, 0.125);
    static const double expected_0[] = {0.118723676,  0.0385439321, 0.221805036,  0.0720095485,
                                        0.414386332,  0.134531543,  0.0416712612, 0.239801571,
                                        0.0778521672, 0.448008299,  0.145447001,  0.0472197309};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "2x2x3", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_normalization__softmax_13_takes_one_axis(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Softmax", 13);
    op_probe_set_int(&test, "axis", 1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x2x3", 1, 0.125);
    static const double expected_0[] = {0.622459352, 0.0850990415, 0.622459352,  0.377540678,
                                        0.914900959, 0.377540678,  0.0850990415, 0.622459352,
                                        0.622459352, 0.914900959,  0.377540678,  0.377540678};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "2x2x3", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_normalization__softmax_survives_large_numbers(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Softmax", 13);
    op_probe_add_values(&test, RONDO_DTYPE_F32, "1x3", (const double[]){1000.0, 999.0, -1000.0});
    static const double expected_0[] = {0.731058598, 0.268941432, 0.0};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x3", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_normalization__log_softmax_survives_large_numbers(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "LogSoftmax", 13);
    op_probe_add_values(&test, RONDO_DTYPE_F32, "1x3", (const double[]){1000.0, 999.0, -1000.0});
    static const double expected_0[] = {-0.313261658, -1.31326163, -2000.31323};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x3", expected_0, 1e-05);
    op_probe_deinit(&test);
}

// axis may equal the rank: rows of one element.
static void test_op_normalization__softmax_12_of_rank_axis(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Softmax", 11);
    op_probe_set_int(&test, "axis", 2);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x2", 1, 0.125);
    static const double expected_0[] = {1.0, 1.0, 1.0, 1.0};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "2x2", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_normalization__hardmax_takes_the_first_of_equals(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Hardmax", 13);
    op_probe_add_values(&test, RONDO_DTYPE_F32, "2x3",
                        (const double[]){1.0, 3.0, 3.0, 2.0, 2.0, 1.0});
    static const double expected_0[] = {0.0, 1.0, 0.0, 1.0, 0.0, 0.0};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "2x3", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_normalization__batch_refuses_wrong_scale(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "BatchNormalization", 15);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x3x2x2", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2", 2, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3", 3, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3", 4, 0.125);
    op_probe_add_values(&test, RONDO_DTYPE_F32, "3", (const double[]){0.5, 1.0, 2.0});
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "input 1 has shape [2]");
    op_probe_deinit(&test);
}

static void test_op_normalization__batch_refuses_outputs_of_inference(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "BatchNormalization", 15);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x3x2x2", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3", 2, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3", 3, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3", 4, 0.125);
    op_probe_add_values(&test, RONDO_DTYPE_F32, "3", (const double[]){0.5, 1.0, 2.0});
    test.output_count = 3;
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "training_mode");
    op_probe_deinit(&test);
}

static void test_op_normalization__group_refuses_zero_groups(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "GroupNormalization", 18);
    op_probe_set_int(&test, "num_groups", 0);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x3x2x2", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3", 2, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "attribute num_groups is 0");
    op_probe_deinit(&test);
}

static void test_op_normalization__group_refuses_odd_groups(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "GroupNormalization", 18);
    op_probe_set_int(&test, "num_groups", 2);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x3x2x2", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3", 2, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "attribute num_groups is 2");
    op_probe_deinit(&test);
}

static void test_op_normalization__layer_refuses_axis_beyond_rank(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "LayerNormalization", 17);
    op_probe_set_int(&test, "axis", 4);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x3x2x2", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3", 1, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "axis");
    op_probe_deinit(&test);
}

static void test_op_normalization__layer_refuses_stretching_scale(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "LayerNormalization", 17);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x3x2x2", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3", 1, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "does not fit X");
    op_probe_deinit(&test);
}

static void test_op_normalization__lrn_refuses_size_zero(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "LRN", 13);
    op_probe_set_int(&test, "size", 0);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x3x2x2", 1, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "attribute size is 0");
    op_probe_deinit(&test);
}

static void test_op_normalization__lrn_survives_huge_size(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "LRN", 13);
    op_probe_set_int(&test, "size", -4611686018427387904);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x3x2x2", 1, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "attribute size");
    op_probe_deinit(&test);
}

static void test_op_normalization__lp_refuses_p_three(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "LpNormalization", 1);
    op_probe_set_int(&test, "p", 3);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x3x2x2", 1, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "attribute p is 3");
    op_probe_deinit(&test);
}

static void test_op_normalization__mean_variance_refuses_axes_beyond_rank(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "MeanVarianceNormalization", 13);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x3", 1, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "MeanVarianceNormalization");
    op_probe_deinit(&test);
}

static void test_op_normalization__softmax_refuses_axis(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Softmax", 13);
    op_probe_set_int(&test, "axis", -5);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x3x2x2", 1, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "axis");
    op_probe_deinit(&test);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_op_normalization__batch_inference),
        cmocka_unit_test(test_op_normalization__batch_training_gives_running_values),
        cmocka_unit_test(test_op_normalization__instance_normalises_each_plane),
        cmocka_unit_test(test_op_normalization__group_18_scales_by_group),
        cmocka_unit_test(test_op_normalization__group_21_scales_by_channel),
        cmocka_unit_test(test_op_normalization__layer_over_two_axes_with_statistics),
        cmocka_unit_test(test_op_normalization__layer_scale_may_broadcast),
        cmocka_unit_test(test_op_normalization__lrn_of_even_size_reaches_further_up),
        cmocka_unit_test(test_op_normalization__lp_of_one),
        cmocka_unit_test(test_op_normalization__lp_of_zeros_is_zero),
        cmocka_unit_test(test_op_normalization__mean_variance_over_chosen_axes),
        cmocka_unit_test(test_op_normalization__softmax_12_flattens),
        cmocka_unit_test(test_op_normalization__softmax_13_takes_one_axis),
        cmocka_unit_test(test_op_normalization__softmax_survives_large_numbers),
        cmocka_unit_test(test_op_normalization__log_softmax_survives_large_numbers),
        cmocka_unit_test(test_op_normalization__softmax_12_of_rank_axis),
        cmocka_unit_test(test_op_normalization__hardmax_takes_the_first_of_equals),
        cmocka_unit_test(test_op_normalization__batch_refuses_wrong_scale),
        cmocka_unit_test(test_op_normalization__batch_refuses_outputs_of_inference),
        cmocka_unit_test(test_op_normalization__group_refuses_zero_groups),
        cmocka_unit_test(test_op_normalization__group_refuses_odd_groups),
        cmocka_unit_test(test_op_normalization__layer_refuses_axis_beyond_rank),
        cmocka_unit_test(test_op_normalization__layer_refuses_stretching_scale),
        cmocka_unit_test(test_op_normalization__lrn_refuses_size_zero),
        cmocka_unit_test(test_op_normalization__lrn_survives_huge_size),
        cmocka_unit_test(test_op_normalization__lp_refuses_p_three),
        cmocka_unit_test(test_op_normalization__mean_variance_refuses_axes_beyond_rank),
        cmocka_unit_test(test_op_normalization__softmax_refuses_axis),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// Awkward semantics of losses.
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

// Expected numbers from onnx.reference.
static void test_op_loss__nll_mean_divides_by_the_weights(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "NegativeLogLikelihoodLoss", 13);
    op_probe_set_string(&test, "reduction", "mean");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3x4", 1, 0.125);
    op_probe_add_values(&test, RONDO_DTYPE_I64, "3", (const double[]){1.0, 0.0, 3.0});
    op_probe_add_values(&test, RONDO_DTYPE_F32, "4", (const double[]){0.5, 2.0, 1.0, 0.25});
    static const double expected_0[] = {0.670454562};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "", expected_0, 1e-05);
    op_probe_deinit(&test);
}

// Expected numbers from onnx.reference.
static void test_op_loss__cross_entropy_ignores_an_index(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "SoftmaxCrossEntropyLoss", 13);
    op_probe_set_int(&test, "ignore_index", -1);
    op_probe_set_string(&test, "reduction", "none");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x3x3", 1, 0.125);
    op_probe_add_values(&test, RONDO_DTYPE_I64, "2x3",
                        (const double[]){0.0, 2.0, -1.0, 1.0, 1.0, 2.0});
    op_probe_add_values(&test, RONDO_DTYPE_F32, "3", (const double[]){0.5, 1.0, 2.0});
    test.output_count = 2;
    static const double expected_0[] = {0.340134829, 2.0607214, 0.0,
                                        1.1802696,   1.1802696, 0.440469801};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "2x3", expected_0, 1e-05);
    static const double expected_1[] = {
        -0.680269659, -2.9053607, -0.680269659, -1.1802696,   -0.530360639, -1.1802696,
        -1.68026972,  -1.0303607, -1.68026972,  -0.680269659, -0.680269659, -2.09523487,
        -1.1802696,   -1.1802696, -2.59523487,  -1.68026972,  -1.68026972,  -0.220234901};
    op_probe_check(&test, 1, RONDO_DTYPE_F32, "2x3x3", expected_1, 1e-05);
    op_probe_deinit(&test);
}

// Expected numbers from onnx.reference.
static void test_op_loss__cross_entropy_survives_large_scores(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "SoftmaxCrossEntropyLoss", 13);
    op_probe_set_string(&test, "reduction", "sum");
    op_probe_add_values(&test, RONDO_DTYPE_F32, "1x2", (const double[]){1000.0, -1000.0});
    op_probe_add_values(&test, RONDO_DTYPE_I64, "1", (const double[]){1.0});
    static const double expected_0[] = {(double)INFINITY};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_loss__refuses_labels_beyond_the_classes(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "NegativeLogLikelihoodLoss", 13);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x3x3", 1, 0.125);
    op_probe_add_values(&test, RONDO_DTYPE_I64, "2x3",
                        (const double[]){0.0, 2.0, -1.0, 1.0, 1.0, 2.0});
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "label -1 is outside [0, 3)");
    op_probe_deinit(&test);
}

static void test_op_loss__refuses_labels_of_another_shape(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "NegativeLogLikelihoodLoss", 13);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x3x2", 1, 0.125);
    op_probe_add_values(&test, RONDO_DTYPE_I64, "2x3",
                        (const double[]){0.0, 2.0, -1.0, 1.0, 1.0, 2.0});
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "do not fit labels");
    op_probe_deinit(&test);
}

static void test_op_loss__refuses_unknown_reductions(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "NegativeLogLikelihoodLoss", 13);
    op_probe_set_string(&test, "reduction", "max");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x3x3", 1, 0.125);
    op_probe_add_values(&test, RONDO_DTYPE_I64, "2x3",
                        (const double[]){0.0, 2.0, -1.0, 1.0, 1.0, 2.0});
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "attribute reduction");
    op_probe_deinit(&test);
}

static void test_op_loss__refuses_short_weights(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "NegativeLogLikelihoodLoss", 13);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x3x3", 1, 0.125);
    op_probe_add_values(&test, RONDO_DTYPE_I64, "2x3",
                        (const double[]){0.0, 2.0, -1.0, 1.0, 1.0, 2.0});
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2", 1, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "input weight");
    op_probe_deinit(&test);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_op_loss__nll_mean_divides_by_the_weights),
        cmocka_unit_test(test_op_loss__cross_entropy_ignores_an_index),
        cmocka_unit_test(test_op_loss__cross_entropy_survives_large_scores),
        cmocka_unit_test(test_op_loss__refuses_labels_beyond_the_classes),
        cmocka_unit_test(test_op_loss__refuses_labels_of_another_shape),
        cmocka_unit_test(test_op_loss__refuses_unknown_reductions),
        cmocka_unit_test(test_op_loss__refuses_short_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

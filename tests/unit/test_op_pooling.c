// Awkward semantics of pools.
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

static void test_op_pooling__max_indices_are_flat_over_all_of_x(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "MaxPool", 12);
    op_probe_set_ints(&test, "kernel_shape", "2,2");
    op_probe_set_ints(&test, "strides", "2,2");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x2x4x4", 1, 0.125);
    test.output_count = 2;
    static const double expected_0[] = {1.25,  0.75,  1.375, 0.375, 1.0,  1.125, 0.625, 1.25,
                                        1.375, 0.875, 1.125, 0.5,   0.75, 1.375, 0.375, 1.0};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "2x2x2x2", expected_0, 1e-05);
    static const double expected_1[] = {4.0,  7.0,  9.0,  15.0, 17.0, 22.0, 25.0, 27.0,
                                        32.0, 35.0, 45.0, 43.0, 53.0, 55.0, 61.0, 63.0};
    op_probe_check(&test, 1, RONDO_DTYPE_I64, "2x2x2x2", expected_1, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_pooling__max_storage_order_counts_columns_first(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "MaxPool", 12);
    op_probe_set_ints(&test, "kernel_shape", "2,2");
    op_probe_set_ints(&test, "strides", "2,2");
    op_probe_set_int(&test, "storage_order", 1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x4x5", 1, 0.125);
    test.output_count = 2;
    static const double expected_0[] = {0.125, 0.75, 0.375, 1.0};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x2x2", expected_0, 1e-05);
    static const double expected_1[] = {1.0, 9.0, 3.0, 11.0};
    op_probe_check(&test, 1, RONDO_DTYPE_I64, "1x1x2x2", expected_1, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_pooling__max_padding_never_wins(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "MaxPool", 12);
    op_probe_set_ints(&test, "kernel_shape", "3,3");
    op_probe_set_ints(&test, "pads", "1,1,1,1");
    op_probe_add_values(&test, RONDO_DTYPE_F32, "1x1x2x2",
                        (const double[]){-1.0, -2.0, -3.0, -4.0});
    static const double expected_0[] = {-1.0, -1.0, -1.0, -1.0};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x2x2", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_pooling__max_dilations_and_ceil(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "MaxPool", 12);
    op_probe_set_ints(&test, "kernel_shape", "2,2");
    op_probe_set_ints(&test, "strides", "2,2");
    op_probe_set_ints(&test, "dilations", "2,2");
    op_probe_set_int(&test, "ceil_mode", 1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x6x6", 1, 0.125);
    static const double expected_0[] = {0.875, 1.25, 1.25, 0.875, 0.125, 0.125, -0.5, 0.125, 0.125};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x3x3", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_pooling__max_of_bytes(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "MaxPool", 12);
    op_probe_set_ints(&test, "kernel_shape", "2,2");
    op_probe_set_ints(&test, "pads", "1,1,0,0");
    op_probe_add_values(&test, RONDO_DTYPE_I8, "1x1x2x2",
                        (const double[]){-128.0, -5.0, -100.0, -7.0});
    static const double expected_0[] = {-128.0, -5.0, -100.0, -5.0};
    op_probe_check(&test, 0, RONDO_DTYPE_I8, "1x1x2x2", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_pooling__max_with_same_lower(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "MaxPool", 12);
    op_probe_set_ints(&test, "kernel_shape", "2,2");
    op_probe_set_string(&test, "auto_pad", "SAME_LOWER");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x3x3", 1, 0.125);
    static const double expected_0[] = {0.0, 0.0, 0.625, 0.0, 1.25, 1.25, -0.5, 1.25, 1.25};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x3x3", expected_0, 1e-05);
    op_probe_deinit(&test);
}

// As numpy: NaN wins.
static void test_op_pooling__max_hands_nan_on(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "MaxPool", 12);
    op_probe_set_ints(&test, "kernel_shape", "2");
    op_probe_add_values(&test, RONDO_DTYPE_F32, "1x1x4",
                        (const double[]){1.0, (double)NAN, 2.0, 3.0});
    static const double expected_0[] = {(double)NAN, (double)NAN, 3.0};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x3", expected_0, 1e-05);
    op_probe_deinit(&test);
}

// The third window would start in the padding, so there are two.
static void test_op_pooling__ceil_drops_windows_in_the_end_padding(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "MaxPool", 12);
    op_probe_set_ints(&test, "kernel_shape", "1,1");
    op_probe_set_ints(&test, "strides", "2,2");
    op_probe_set_ints(&test, "pads", "0,0,1,1");
    op_probe_set_int(&test, "ceil_mode", 1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x4x4", 1, 0.125);
    static const double expected_0[] = {0.0, 0.625, -0.375, 0.25};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x2x2", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_pooling__average_excludes_padding(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "AveragePool", 11);
    op_probe_set_ints(&test, "kernel_shape", "3,3");
    op_probe_set_ints(&test, "pads", "1,1,1,1");
    op_probe_set_ints(&test, "strides", "2,2");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x4x4", 1, 0.125);
    static const double expected_0[] = {0.0625, -0.1875, 0.5, -0.0694444478};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x2x2", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_pooling__average_includes_padding(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "AveragePool", 11);
    op_probe_set_ints(&test, "kernel_shape", "3,3");
    op_probe_set_ints(&test, "pads", "1,1,1,1");
    op_probe_set_ints(&test, "strides", "2,2");
    op_probe_set_int(&test, "count_include_pad", 1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x4x4", 1, 0.125);
    static const double expected_0[] = {0.027777778, -0.125, 0.333333343, -0.0694444478};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x2x2", expected_0, 1e-05);
    op_probe_deinit(&test);
}

// The last window has two elements inside; ONNX 1.17 and PyTorch divide by two.
static void test_op_pooling__average_ceil_does_not_count_beyond_the_padding(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "AveragePool", 19);
    op_probe_set_ints(&test, "kernel_shape", "3");
    op_probe_set_ints(&test, "strides", "2");
    op_probe_set_int(&test, "ceil_mode", 1);
    op_probe_set_int(&test, "count_include_pad", 1);
    op_probe_add_values(&test, RONDO_DTYPE_F32, "1x1x4", (const double[]){1.0, 2.0, 3.0, 4.0});
    static const double expected_0[] = {2.0, 3.5};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x2", expected_0, 1e-05);
    op_probe_deinit(&test);
}

// Expected numbers from onnx.reference.
static void test_op_pooling__average_dilations(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "AveragePool", 19);
    op_probe_set_ints(&test, "kernel_shape", "2,2");
    op_probe_set_ints(&test, "dilations", "2,2");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x4x4", 1, 0.125);
    static const double expected_0[] = {0.125, -0.28125, -0.0625, 0.25};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x2x2", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_pooling__lp_of_three(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "LpPool", 11);
    op_probe_set_ints(&test, "kernel_shape", "2,2");
    op_probe_set_int(&test, "p", 3);
    op_probe_set_ints(&test, "strides", "2,1");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x1x4x3", 1, 0.125);
    static const double expected_0[] = {1.51857686, 1.53588247, 1.59229493, 1.0507648};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x2x2", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_pooling__global_lp(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "GlobalLpPool", 2);
    op_probe_set_int(&test, "p", 3);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x3x3", 1, 0.125);
    static const double expected_0[] = {1.73499072, 2.0037365};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x2x1x1", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_pooling__global_max_of_one_axis(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "GlobalMaxPool", 13);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x2x5", 1, 0.125);
    static const double expected_0[] = {1.25, 1.375, 0.875, 1.0};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "2x2x1", expected_0, 1e-05);
    op_probe_deinit(&test);
}

// Expected numbers from onnx.reference.
static void test_op_pooling__unpool_to_a_larger_shape(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "MaxUnpool", 11);
    op_probe_set_ints(&test, "kernel_shape", "2,2");
    op_probe_set_ints(&test, "strides", "2,2");
    op_probe_add_values(&test, RONDO_DTYPE_F32, "1x1x2x2", (const double[]){5.0, 6.0, 7.0, 8.0});
    op_probe_add_values(&test, RONDO_DTYPE_I64, "1x1x2x2", (const double[]){5.0, 7.0, 13.0, 15.0});
    op_probe_add_values(&test, RONDO_DTYPE_I64, "4", (const double[]){1.0, 1.0, 5.0, 5.0});
    static const double expected_0[] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 5.0, 0.0, 6.0,
                                        0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 7.0, 0.0,
                                        8.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "1x1x5x5", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_pooling__refuses_a_missing_kernel_shape(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "MaxPool", 13);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x5x5", 1, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "attribute kernel_shape is missing");
    op_probe_deinit(&test);
}

static void test_op_pooling__refuses_a_zero_kernel(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "MaxPool", 13);
    op_probe_set_ints(&test, "kernel_shape", "0,2");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x5x5", 1, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "attribute kernel_shape[0] is 0");
    op_probe_deinit(&test);
}

static void test_op_pooling__refuses_a_kernel_of_other_rank(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "MaxPool", 13);
    op_probe_set_ints(&test, "kernel_shape", "2");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x5x5", 1, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "attribute kernel_shape has 1 entries");
    op_probe_deinit(&test);
}

static void test_op_pooling__refuses_zero_strides(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "MaxPool", 13);
    op_probe_set_ints(&test, "kernel_shape", "2,2");
    op_probe_set_ints(&test, "strides", "0,1");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x5x5", 1, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "attribute strides[0] is 0");
    op_probe_deinit(&test);
}

static void test_op_pooling__refuses_huge_kernels(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "MaxPool", 13);
    op_probe_set_ints(&test, "kernel_shape", "4611686018427387904,1");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x5x5", 1, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "attribute kernel_shape[0]");
    op_probe_deinit(&test);
}

static void test_op_pooling__refuses_kernels_beyond_the_input(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "MaxPool", 13);
    op_probe_set_ints(&test, "kernel_shape", "6,1");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x5x5", 1, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "spans 6");
    op_probe_deinit(&test);
}

static void test_op_pooling__lp_refuses_p_zero(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "LpPool", 13);
    op_probe_set_ints(&test, "kernel_shape", "2,2");
    op_probe_set_int(&test, "p", 0);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "1x2x5x5", 1, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "attribute p is 0");
    op_probe_deinit(&test);
}

static void test_op_pooling__unpool_refuses_wild_indices(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "MaxUnpool", 13);
    op_probe_set_ints(&test, "kernel_shape", "2");
    op_probe_add_values(&test, RONDO_DTYPE_F32, "1x1x1", (const double[]){5.0});
    op_probe_add_values(&test, RONDO_DTYPE_I64, "1x1x1", (const double[]){99.0});
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "index 99");
    op_probe_deinit(&test);
}

static void test_op_pooling__unpool_refuses_negative_output_shape(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "MaxUnpool", 13);
    op_probe_set_ints(&test, "kernel_shape", "2");
    op_probe_add_values(&test, RONDO_DTYPE_F32, "1x1x1", (const double[]){5.0});
    op_probe_add_values(&test, RONDO_DTYPE_I64, "1x1x1", (const double[]){0.0});
    op_probe_add_values(&test, RONDO_DTYPE_I64, "3", (const double[]){1.0, 1.0, -7.0});
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "MaxUnpool");
    op_probe_deinit(&test);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_op_pooling__max_indices_are_flat_over_all_of_x),
        cmocka_unit_test(test_op_pooling__max_storage_order_counts_columns_first),
        cmocka_unit_test(test_op_pooling__max_padding_never_wins),
        cmocka_unit_test(test_op_pooling__max_dilations_and_ceil),
        cmocka_unit_test(test_op_pooling__max_of_bytes),
        cmocka_unit_test(test_op_pooling__max_with_same_lower),
        cmocka_unit_test(test_op_pooling__max_hands_nan_on),
        cmocka_unit_test(test_op_pooling__ceil_drops_windows_in_the_end_padding),
        cmocka_unit_test(test_op_pooling__average_excludes_padding),
        cmocka_unit_test(test_op_pooling__average_includes_padding),
        cmocka_unit_test(test_op_pooling__average_ceil_does_not_count_beyond_the_padding),
        cmocka_unit_test(test_op_pooling__average_dilations),
        cmocka_unit_test(test_op_pooling__lp_of_three),
        cmocka_unit_test(test_op_pooling__global_lp),
        cmocka_unit_test(test_op_pooling__global_max_of_one_axis),
        cmocka_unit_test(test_op_pooling__unpool_to_a_larger_shape),
        cmocka_unit_test(test_op_pooling__refuses_a_missing_kernel_shape),
        cmocka_unit_test(test_op_pooling__refuses_a_zero_kernel),
        cmocka_unit_test(test_op_pooling__refuses_a_kernel_of_other_rank),
        cmocka_unit_test(test_op_pooling__refuses_zero_strides),
        cmocka_unit_test(test_op_pooling__refuses_huge_kernels),
        cmocka_unit_test(test_op_pooling__refuses_kernels_beyond_the_input),
        cmocka_unit_test(test_op_pooling__lp_refuses_p_zero),
        cmocka_unit_test(test_op_pooling__unpool_refuses_wild_indices),
        cmocka_unit_test(test_op_pooling__unpool_refuses_negative_output_shape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

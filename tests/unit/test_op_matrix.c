// Awkward semantics of products.
//
// Expected numbers come from ONNX Runtime on the same inputs (op_probe patterns), unless a test
// says otherwise.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/op_probe.h"

static void test_op_matrix__vector_times_batch(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "MatMul", 13);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x3x2", 2, 0.125);
    static const double expected_0[] = {0.828125, -1.84375, -1.90625, 0.453125};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "2x2", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_matrix__batch_times_vector(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "MatMul", 13);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x3x4", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "4", 2, 0.125);
    static const double expected_0[] = {-1.265625, 3.28125,   -1.15625,
                                        2.671875,  -1.765625, -0.453125};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "2x3", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_matrix__vector_times_vector_is_a_scalar(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "MatMul", 13);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "4", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "4", 2, 0.125);
    static const double expected_0[] = {-1.265625};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_matrix__batches_broadcast_both_ways(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "MatMul", 13);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x1x2x3", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3x3x2", 2, 0.125);
    static const double expected_0[] = {0.828125, -1.84375, -1.8125,  0.796875, -1.90625, 0.453125,
                                        0.90625,  0.28125,  0.390625, 0.953125, 0.390625, -2.03125,
                                        -1.9375,  0.921875, 1.890625, 1.765625, 0.84375,  0.46875,
                                        1.859375, -1.5,     0.390625, -1.78125, -1.40625, 1.703125};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "2x3x2x2", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_matrix__an_empty_sum_is_zero(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "MatMul", 13);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x0", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "0x3", 2, 0.125);
    static const double expected_0[] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "2x3", expected_0, 1e-05);
    op_probe_deinit(&test);
}

// Modulo 2^32, as numpy.
static void test_op_matrix__integers_wrap(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "MatMul", 13);
    op_probe_add_values(&test, RONDO_DTYPE_I32, "1x2", (const double[]){2147483647.0, 2.0});
    op_probe_add_values(&test, RONDO_DTYPE_I32, "2x1", (const double[]){2.0, 3.0});
    static const double expected_0[] = {4.0};
    op_probe_check(&test, 0, RONDO_DTYPE_I32, "1x1", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_matrix__gemm_transposes_and_broadcasts_a_column(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Gemm", 13);
    op_probe_set_int(&test, "transA", 1);
    op_probe_set_int(&test, "transB", 1);
    op_probe_set_float(&test, "alpha", 0.5);
    op_probe_set_float(&test, "beta", 2.0);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3x2", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "4x3", 2, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x1", 3, 0.125);
    static const double expected_0[] = {-0.71875,  -1.1875,   0.140625,   -0.328125,
                                        -3.390625, -3.015625, -2.4609375, -2.0859375};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "2x4", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_matrix__gemm_without_c(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Gemm", 13);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x3", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3x2", 2, 0.125);
    static const double expected_0[] = {0.828125, -1.84375, -1.8125, 0.796875};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "2x2", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_matrix__det_needs_a_pivot(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Det", 11);
    op_probe_add_values(&test, RONDO_DTYPE_F32, "2x2x2",
                        (const double[]){0.0, 2.0, 3.0, 4.0, 1.0, 2.0, 2.0, 4.0});
    static const double expected_0[] = {-6.0, -0.0};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "2", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_matrix__einsum_diagonal_of_a_batch(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Einsum", 12);
    op_probe_set_string(&test, "equation", "...ii->...i");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x3x3", 1, 0.125);
    static const double expected_0[] = {0.0, 1.25, -0.375, 1.375, -0.25, 1.0};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "2x3", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_matrix__einsum_implicit_output(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Einsum", 12);
    op_probe_set_string(&test, "equation", "ba,cb");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x3", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "4x2", 2, 0.125);
    static const double expected_0[] = {-0.125,  -0.4375,   0.6875,   0.375,   -1.234375, 2.078125,
                                        -1.4375, -1.359375, 0.890625, -0.4375, -0.328125, 0.140625};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "3x4", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_matrix__einsum_three_inputs_with_spaces(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Einsum", 12);
    op_probe_set_string(&test, "equation", "i j , jk, k -> i");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x3", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3x4", 2, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "4", 3, 0.125);
    static const double expected_0[] = {-3.2734375, 3.62890625};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "2", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_matrix__einsum_sums_everything(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Einsum", 12);
    op_probe_set_string(&test, "equation", "ij->");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x3", 1, 0.125);
    static const double expected_0[] = {0.375};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "", expected_0, 1e-05);
    op_probe_deinit(&test);
}

// Computed by hand: one zero point for each row of A and each column of B.
static void test_op_matrix__integer_row_zero_points(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "MatMulInteger", 10);
    op_probe_add_values(&test, RONDO_DTYPE_U8, "2x2", (const double[]){1.0, 2.0, 3.0, 4.0});
    op_probe_add_values(&test, RONDO_DTYPE_I8, "2x2", (const double[]){5.0, -6.0, 7.0, 8.0});
    op_probe_add_values(&test, RONDO_DTYPE_U8, "2", (const double[]){1.0, 2.0});
    op_probe_add_values(&test, RONDO_DTYPE_I8, "2", (const double[]){3.0, -1.0});
    static const double expected_0[] = {4.0, 9.0, 10.0, 13.0};
    op_probe_check(&test, 0, RONDO_DTYPE_I32, "2x2", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_matrix__matmul_refuses_scalars(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "MatMul", 13);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3", 1, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "scalars");
    op_probe_deinit(&test);
}

static void test_op_matrix__matmul_refuses_inner_extents(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "MatMul", 13);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x3x4", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3x2", 1, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "inner extents 4 and 3");
    op_probe_deinit(&test);
}

static void test_op_matrix__matmul_refuses_batches(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "MatMul", 13);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x1x1", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3x1x1", 1, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "do not broadcast");
    op_probe_deinit(&test);
}

static void test_op_matrix__gemm_refuses_rank_three(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Gemm", 13);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x3x4", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "4x2", 2, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "ranks 3 and 2");
    op_probe_deinit(&test);
}

static void test_op_matrix__gemm_refuses_a_wrong_c(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Gemm", 13);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x3", 1, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3x2", 2, 0.125);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3", 3, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "input C");
    op_probe_deinit(&test);
}

static void test_op_matrix__det_refuses_oblongs(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Det", 11);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x3", 1, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "no batch of squares");
    op_probe_deinit(&test);
}

static void test_op_matrix__einsum_refuses_too_many_terms(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Einsum", 12);
    op_probe_set_string(&test, "equation", "ij,jk->ik");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x3", 1, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "attribute equation");
    op_probe_deinit(&test);
}

static void test_op_matrix__einsum_refuses_too_few_labels(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Einsum", 12);
    op_probe_set_string(&test, "equation", "i->i");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x3", 1, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "attribute equation");
    op_probe_deinit(&test);
}

static void test_op_matrix__einsum_refuses_unknown_output_labels(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Einsum", 12);
    op_probe_set_string(&test, "equation", "ij->k");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x3", 1, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "output label");
    op_probe_deinit(&test);
}

static void test_op_matrix__einsum_refuses_repeated_output_labels(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Einsum", 12);
    op_probe_set_string(&test, "equation", "ij->ii");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x3", 1, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "output label");
    op_probe_deinit(&test);
}

static void test_op_matrix__einsum_refuses_extents_that_differ(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Einsum", 12);
    op_probe_set_string(&test, "equation", "ii->i");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x3", 1, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "extents 2 and 3");
    op_probe_deinit(&test);
}

static void test_op_matrix__einsum_refuses_other_signs(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Einsum", 12);
    op_probe_set_string(&test, "equation", "i.j->ij");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x3", 1, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "malformed: byte 1 of the term \"i.j\"");
    op_probe_deinit(&test);
}

static void test_op_matrix__einsum_refuses_more_labels_than_axes(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Einsum", 12);
    op_probe_set_string(&test, "equation", "abcdefghi->a");
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x3", 1, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_UNSUPPORTED, "a term with more than 8 labels");
    op_probe_deinit(&test);
}

static void test_op_matrix__einsum_refuses_nothing(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "Einsum", 12);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x3", 1, 0.125);
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "attribute equation is missing");
    op_probe_deinit(&test);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_op_matrix__vector_times_batch),
        cmocka_unit_test(test_op_matrix__batch_times_vector),
        cmocka_unit_test(test_op_matrix__vector_times_vector_is_a_scalar),
        cmocka_unit_test(test_op_matrix__batches_broadcast_both_ways),
        cmocka_unit_test(test_op_matrix__an_empty_sum_is_zero),
        cmocka_unit_test(test_op_matrix__integers_wrap),
        cmocka_unit_test(test_op_matrix__gemm_transposes_and_broadcasts_a_column),
        cmocka_unit_test(test_op_matrix__gemm_without_c),
        cmocka_unit_test(test_op_matrix__det_needs_a_pivot),
        cmocka_unit_test(test_op_matrix__einsum_diagonal_of_a_batch),
        cmocka_unit_test(test_op_matrix__einsum_implicit_output),
        cmocka_unit_test(test_op_matrix__einsum_three_inputs_with_spaces),
        cmocka_unit_test(test_op_matrix__einsum_sums_everything),
        cmocka_unit_test(test_op_matrix__integer_row_zero_points),
        cmocka_unit_test(test_op_matrix__matmul_refuses_scalars),
        cmocka_unit_test(test_op_matrix__matmul_refuses_inner_extents),
        cmocka_unit_test(test_op_matrix__matmul_refuses_batches),
        cmocka_unit_test(test_op_matrix__gemm_refuses_rank_three),
        cmocka_unit_test(test_op_matrix__gemm_refuses_a_wrong_c),
        cmocka_unit_test(test_op_matrix__det_refuses_oblongs),
        cmocka_unit_test(test_op_matrix__einsum_refuses_too_many_terms),
        cmocka_unit_test(test_op_matrix__einsum_refuses_too_few_labels),
        cmocka_unit_test(test_op_matrix__einsum_refuses_unknown_output_labels),
        cmocka_unit_test(test_op_matrix__einsum_refuses_repeated_output_labels),
        cmocka_unit_test(test_op_matrix__einsum_refuses_extents_that_differ),
        cmocka_unit_test(test_op_matrix__einsum_refuses_other_signs),
        cmocka_unit_test(test_op_matrix__einsum_refuses_more_labels_than_axes),
        cmocka_unit_test(test_op_matrix__einsum_refuses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

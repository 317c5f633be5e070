// The comparison that decides whether an ONNX test passes: it must fail on what is wrong.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "compare.h"

static const cli_tolerance onnx_tolerance = {.relative = 1e-3, .absolute = 1e-7};

static rondo_tensor make_row(float *values, int64_t count) {
    return (rondo_tensor){
        .dtype = RONDO_DTYPE_F32, .shape = {.rank = 1, .extent = {count}}, .data = values};
}

static cli_comparison compare_floats(float actual, float expected) {
    const rondo_tensor a = make_row(&actual, 1);
    const rondo_tensor e = make_row(&expected, 1);
    return cli_compare(&a, &e, &onnx_tolerance);
}

static void test_cli_compare__tolerance(void **state) {
    (void)state;
    assert_true(compare_floats(1.0f, 1.0f).is_equal);
    assert_true(compare_floats(1.0009f, 1.0f).is_equal);
    assert_false(compare_floats(1.0011f, 1.0f).is_equal);
    assert_false(compare_floats(-1.0f, 1.0f).is_equal);
    assert_true(compare_floats(0.5e-7f, 0.0f).is_equal);
    assert_false(compare_floats(2e-7f, 0.0f).is_equal);
    assert_true(compare_floats(0.5f, 0.0f).largest_error == 0.5);
}

static void test_cli_compare__nan_and_infinity(void **state) {
    (void)state;
    assert_true(compare_floats(NAN, NAN).is_equal);
    assert_false(compare_floats(NAN, 1.0f).is_equal);
    assert_false(compare_floats(1.0f, NAN).is_equal);
    assert_true(compare_floats(INFINITY, INFINITY).is_equal);
    assert_false(compare_floats(-INFINITY, INFINITY).is_equal);
    assert_false(compare_floats(3e38f, INFINITY).is_equal);
    assert_false(compare_floats(INFINITY, 3e38f).is_equal);
    assert_true(isinf(compare_floats(NAN, 1.0f).largest_error));
}

static void test_cli_compare__scale_belongs_to_the_output(void **state) {
    (void)state;
    const cli_tolerance tolerance = {.scale = 1e-5};
    float actual[2] = {1000.0f, 0.009f};
    float expected[2] = {1000.0f, 0.0f};
    const rondo_tensor a = make_row(actual, 2);
    const rondo_tensor e = make_row(expected, 2);
    assert_true(cli_compare(&a, &e, &tolerance).is_equal);
    actual[1] = 0.011f;
    const cli_comparison worse = cli_compare(&a, &e, &tolerance);
    assert_false(worse.is_equal);
    assert_int_equal(worse.mismatch_count, 1);
    assert_int_equal(worse.first_mismatch, 1);
    assert_true(isinf(worse.largest_relative));  // of an expected 0
}

static void test_cli_compare__dtype_and_shape(void **state) {
    (void)state;
    float values[2] = {1.0f, 2.0f};
    rondo_tensor a = make_row(values, 2);
    const rondo_tensor e = make_row(values, 2);
    a.shape = (rondo_shape){.rank = 2, .extent = {1, 2}};
    assert_false(cli_compare(&a, &e, &onnx_tolerance).is_equal);
    a = make_row(values, 2);
    a.dtype = RONDO_DTYPE_I32;
    assert_false(cli_compare(&a, &e, &onnx_tolerance).is_equal);
    const rondo_tensor empty = make_row(NULL, 0);
    assert_true(cli_compare(&empty, &empty, &onnx_tolerance).is_equal);
}

static void test_cli_compare__whole_numbers_are_exact(void **state) {
    (void)state;
    int64_t actual = INT64_MAX;
    int64_t expected = INT64_MAX - 1;  // the same double
    const rondo_shape shape = {.rank = 0};
    const rondo_tensor a = {.dtype = RONDO_DTYPE_I64, .shape = shape, .data = &actual};
    const rondo_tensor e = {.dtype = RONDO_DTYPE_I64, .shape = shape, .data = &expected};
    assert_false(cli_compare(&a, &e, &onnx_tolerance).is_equal);
    expected = INT64_MAX;
    assert_true(cli_compare(&a, &e, &onnx_tolerance).is_equal);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cli_compare__tolerance),
        cmocka_unit_test(test_cli_compare__nan_and_infinity),
        cmocka_unit_test(test_cli_compare__scale_belongs_to_the_output),
        cmocka_unit_test(test_cli_compare__dtype_and_shape),
        cmocka_unit_test(test_cli_compare__whole_numbers_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

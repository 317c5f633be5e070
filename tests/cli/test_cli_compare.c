// The comparison that decides whether an ONNX test passes: it must fail on what is wrong.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "compare.h"
#include "support/test.h"

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

TEST(test_cli_compare__tolerance) {
    assert_true(compare_floats(1.0f, 1.0f).is_equal);
    assert_true(compare_floats(1.0009f, 1.0f).is_equal);
    assert_false(compare_floats(1.0011f, 1.0f).is_equal);
    assert_false(compare_floats(-1.0f, 1.0f).is_equal);
    assert_true(compare_floats(0.5e-7f, 0.0f).is_equal);
    assert_false(compare_floats(2e-7f, 0.0f).is_equal);
    assert_true(compare_floats(0.5f, 0.0f).largest_error == 0.5);
}

TEST(test_cli_compare__nan_and_infinity) {
    assert_true(compare_floats(NAN, NAN).is_equal);
    assert_false(compare_floats(NAN, 1.0f).is_equal);
    assert_false(compare_floats(1.0f, NAN).is_equal);
    assert_true(compare_floats(INFINITY, INFINITY).is_equal);
    assert_false(compare_floats(-INFINITY, INFINITY).is_equal);
    assert_false(compare_floats(3e38f, INFINITY).is_equal);
    assert_false(compare_floats(INFINITY, 3e38f).is_equal);
    assert_true(isinf(compare_floats(NAN, 1.0f).largest_error));
}

TEST(test_cli_compare__scale_belongs_to_the_output) {
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

TEST(test_cli_compare__dtype_and_shape) {
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

TEST(test_cli_compare__whole_numbers_are_exact) {
    int64_t actual = INT64_MAX;
    int64_t expected = INT64_MAX - 1;  // the same double
    const rondo_shape shape = {.rank = 0};
    const rondo_tensor a = {.dtype = RONDO_DTYPE_I64, .shape = shape, .data = &actual};
    const rondo_tensor e = {.dtype = RONDO_DTYPE_I64, .shape = shape, .data = &expected};
    assert_false(cli_compare(&a, &e, &onnx_tolerance).is_equal);
    const cli_comparison near = cli_compare(&a, &e, &onnx_tolerance);
    assert_true(near.largest_error == 1.0);
    assert_string_equal(near.reason,
                        "element 0 is 9223372036854775807, expected 9223372036854775806");
    expected = INT64_MIN;
    assert_string_equal(cli_compare(&a, &e, &onnx_tolerance).reason,
                        "element 0 is 9223372036854775807, expected -9223372036854775808");
    assert_true(cli_compare(&a, &e, &onnx_tolerance).largest_error == 0x1p64);
    expected = INT64_MAX;
    assert_true(cli_compare(&a, &e, &onnx_tolerance).is_equal);
    uint64_t large = UINT64_MAX;
    uint64_t larger = UINT64_MAX - 3;
    const rondo_tensor u = {.dtype = RONDO_DTYPE_U64, .shape = shape, .data = &large};
    const rondo_tensor v = {.dtype = RONDO_DTYPE_U64, .shape = shape, .data = &larger};
    assert_string_equal(cli_compare(&u, &v, &onnx_tolerance).reason,
                        "element 0 is 18446744073709551615, expected 18446744073709551612");
    assert_true(cli_compare(&u, &v, &onnx_tolerance).largest_error == 3.0);
}

// Two units in the last place of bf16, as ONNX's own tests allow; not with a tolerance of 0.
TEST(test_cli_compare__bf16_has_eight_bits) {
    static const cli_tolerance none = {.relative = 0.0};
    uint16_t one = 0x3f80;
    uint16_t next = 0x3f82;  // 1 + 2^-6
    uint16_t third = 0x3f83;
    const rondo_shape shape = {.rank = 0};
    const rondo_tensor e = {.dtype = RONDO_DTYPE_BF16, .shape = shape, .data = &one};
    const rondo_tensor a = {.dtype = RONDO_DTYPE_BF16, .shape = shape, .data = &next};
    const rondo_tensor b = {.dtype = RONDO_DTYPE_BF16, .shape = shape, .data = &third};
    assert_true(cli_compare(&a, &e, &onnx_tolerance).is_equal);
    assert_false(cli_compare(&b, &e, &onnx_tolerance).is_equal);
    assert_false(cli_compare(&a, &e, &none).is_equal);
}

TEST(test_cli_compare__strings_are_exact) {
    rondo_string actual[3] = {{"one", 3}, {"", 0}, {"a\0b", 3}};
    rondo_string expected[3] = {{"one", 3}, {NULL, 0}, {"a\0b", 3}};
    const rondo_tensor a = {
        .dtype = RONDO_DTYPE_STRING, .shape = {.rank = 1, .extent = {3}}, .data = actual};
    rondo_tensor e = a;
    e.data = expected;
    assert_true(cli_compare(&a, &e, &onnx_tolerance).is_equal);
    actual[2] = (rondo_string){"a\0c", 3};
    const cli_comparison other = cli_compare(&a, &e, &onnx_tolerance);
    assert_false(other.is_equal);
    assert_int_equal(other.mismatch_count, 1);
    assert_string_equal(other.reason, "element 2 is \"a\\x01c\", expected \"a\\x01b\"");
    actual[2] = (rondo_string){"a", 1};
    assert_false(cli_compare(&a, &e, &onnx_tolerance).is_equal);
}

TEST(test_cli_compare__sequences_go_item_by_item) {
    float first[2] = {1.0f, 2.0f};
    float second[1] = {3.0f};
    rondo_tensor items[2] = {make_row(first, 2), make_row(second, 1)};
    rondo_tensor a = {
        .dtype = RONDO_DTYPE_SEQUENCE, .shape = {.rank = 1, .extent = {2}}, .data = items};
    rondo_tensor others[2] = {make_row(first, 2), make_row(first, 1)};
    rondo_tensor e = a;
    assert_true(cli_compare(&a, &e, &onnx_tolerance).is_equal);
    e.data = others;
    const cli_comparison different = cli_compare(&a, &e, &onnx_tolerance);
    assert_false(different.is_equal);
    assert_true(different.largest_error == 2.0);
    assert_string_equal(different.reason, "item 1: element 0 is 3, expected 1");
    others[1] = make_row(first, 2);  // of another shape
    assert_false(cli_compare(&a, &e, &onnx_tolerance).is_equal);
    e.shape.extent[0] = 1;
    assert_false(cli_compare(&a, &e, &onnx_tolerance).is_equal);
    rondo_tensor optional = a;
    optional.dtype = RONDO_DTYPE_OPTIONAL;
    optional.shape.extent[0] = 0;
    assert_true(cli_compare(&optional, &optional, &onnx_tolerance).is_equal);
    assert_false(cli_compare(&optional, &a, &onnx_tolerance).is_equal);
}

TEST_MAIN()

// Awkward semantics of quantisation.
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

static void test_op_quantize__rounds_ties_to_even_and_saturates(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "QuantizeLinear", 13);
    op_probe_add_values(&test, RONDO_DTYPE_F32, "8",
                        (const double[]){1.0, 3.0, 5.0, -1.0, -3.0, 1000.0, -1000.0, 0.9});
    op_probe_add_values(&test, RONDO_DTYPE_F32, "", (const double[]){2.0});
    op_probe_add_values(&test, RONDO_DTYPE_U8, "", (const double[]){128.0});
    static const double expected_0[] = {128.0, 130.0, 130.0, 128.0, 126.0, 255.0, 0.0, 128.0};
    op_probe_check(&test, 0, RONDO_DTYPE_U8, "8", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_quantize__signed_with_axis(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "QuantizeLinear", 13);
    op_probe_set_int(&test, "axis", 0);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x3", 1, 0.125);
    op_probe_add_values(&test, RONDO_DTYPE_F32, "2", (const double[]){0.1, 0.25});
    op_probe_add_values(&test, RONDO_DTYPE_I8, "2", (const double[]){5.0, -7.0});
    static const double expected_0[] = {5.0, -6.0, 11.0, -9.0, -2.0, -7.0};
    op_probe_check(&test, 0, RONDO_DTYPE_I8, "2x3", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_quantize__zero_point_is_optional(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "QuantizeLinear", 13);
    op_probe_add_values(&test, RONDO_DTYPE_F32, "3", (const double[]){1.0, 2.5, -1.0});
    op_probe_add_values(&test, RONDO_DTYPE_F32, "", (const double[]){0.5});
    static const double expected_0[] = {2.0, 5.0, 0.0};
    op_probe_check(&test, 0, RONDO_DTYPE_U8, "3", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_quantize__dequantize_with_axis(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "DequantizeLinear", 13);
    op_probe_set_int(&test, "axis", -1);
    op_probe_add_values(&test, RONDO_DTYPE_I8, "2x2", (const double[]){-128.0, 127.0, 5.0, 6.0});
    op_probe_add_values(&test, RONDO_DTYPE_F32, "2", (const double[]){0.5, 2.0});
    op_probe_add_values(&test, RONDO_DTYPE_I8, "2", (const double[]){1.0, -2.0});
    static const double expected_0[] = {-64.5, 258.0, 2.0, 16.0};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "2x2", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_quantize__dequantize_i32(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "DequantizeLinear", 13);
    op_probe_add_values(&test, RONDO_DTYPE_I32, "2", (const double[]){100000.0, -7.0});
    op_probe_add_values(&test, RONDO_DTYPE_F32, "", (const double[]){0.5});
    static const double expected_0[] = {50000.0, -3.5};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "2", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_quantize__blocks_of_two(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "DequantizeLinear", 21);
    op_probe_set_int(&test, "axis", 1);
    op_probe_set_int(&test, "block_size", 2);
    op_probe_add_values(&test, RONDO_DTYPE_U8, "2x4",
                        (const double[]){0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0});
    op_probe_add_values(&test, RONDO_DTYPE_F32, "2x2", (const double[]){1.0, 0.5, 2.0, 0.25});
    op_probe_add_values(&test, RONDO_DTYPE_U8, "2x2", (const double[]){1.0, 2.0, 3.0, 4.0});
    static const double expected_0[] = {-1.0, 0.0, 0.0, 0.5, 2.0, 4.0, 0.5, 0.75};
    op_probe_check(&test, 0, RONDO_DTYPE_F32, "2x4", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_quantize__quantize_in_blocks(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "QuantizeLinear", 21);
    op_probe_set_int(&test, "axis", 0);
    op_probe_set_int(&test, "block_size", 2);
    op_probe_set_int(&test, "output_dtype", 3);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "3x2", 1, 0.125);
    op_probe_add_values(&test, RONDO_DTYPE_F32, "2x2", (const double[]){0.1, 0.5, 0.2, 0.25});
    static const double expected_0[] = {0.0, -2.0, 6.0, -1.0, 6.0, 0.0};
    op_probe_check(&test, 0, RONDO_DTYPE_I8, "3x2", expected_0, 1e-05);
    op_probe_deinit(&test);
}

// Where the scale of an element stands, in every form that a scale can have; above all those whose
// extents are 1, which look like another form.
static void test_op_quantize__finds_scales(void **state) {
    (void)state;
    static const op_row rows[] = {
        {"DequantizeLinear", 21, "u8[4]:1,2,3,4 f32[4]:1,10,100,1000", "axis=0 block_size=1",
         "f32[4]:1,20,300,4000"},
        {"DequantizeLinear", 21, "u8[2,2]:1,2,3,4 f32[2,2]:1,10,100,1000", "axis=0 block_size=1",
         "f32[2,2]:1,20,300,4000"},
        {"DequantizeLinear", 21, "i8[1,3]:1,2,3 f32[1,3]:1,10,100 i8[1,3]:0,1,2",
         "axis=0 block_size=1", "f32[1,3]:1,10,100"},
        {"DequantizeLinear", 21, "u8[3,1]:1,2,3 f32[3,1]:1,10,100", "axis=1 block_size=2",
         "f32[3,1]:1,20,300"},
        {"DequantizeLinear", 21, "u8[1,3]:1,2,3 f32[1,3]:1,10,100", "axis=0 block_size=7",
         "f32[1,3]:1,20,300"},
        {"DequantizeLinear", 21, "u8[2,3,1]:1,2,3,4,5,6 f32[2,2,1]:1,10,100,1000",
         "axis=-2 block_size=2", "f32[2,3,1]:1,2,30,400,500,6000"},
        {"DequantizeLinear", 21, "u8[1,3]:1,2,3 f32[1]:10", "axis=0", "f32[1,3]:10,20,30"},
        {"DequantizeLinear", 21, "u8[1,3]:1,2,3 f32[3]:1,10,100", "", "f32[1,3]:1,20,300"},
        {"DequantizeLinear", 21, "u8[]:7 f32[]:10", "", "f32[]:70"},
        {"DequantizeLinear", 21, "u8[]:7 f32[1]:10 u8[1]:2", "", "f32[]:50"},
        {"DequantizeLinear", 21, "u8[0,2] f32[0,2]", "axis=0 block_size=3", "f32[0,2]"},
        {"DequantizeLinear", 21, "u8[2] f32[1]", "axis=0 block_size=1",
         "!BAD_DATA scale has shape [1], which attribute block_size = 1 does not fit"},
        {"QuantizeLinear", 21, "f32[2,2]:1,20,300,4000 f32[2,2]:1,10,100,1000",
         "axis=1 block_size=1", "u8[2,2]:1,2,3,4"},
        {"QuantizeLinear", 21, "f32[3,1]:1,20,300 f32[3,1]:1,10,100 i8[3,1]:1,2,3",
         "axis=1 block_size=4", "i8[3,1]:2,4,6"},
        {"QuantizeLinear", 21, "f32[1,2]:5,-5 f32[1]:2 i16[1]:100", "axis=0", "i16[1,2]:102,98"},
    };
    OP_ROWS_CHECK(rows);
}

static void test_op_quantize__dynamic_of_positive_numbers_starts_at_zero(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "DynamicQuantizeLinear", 11);
    op_probe_add_values(&test, RONDO_DTYPE_F32, "4", (const double[]){1.0, 2.0, 3.0, 4.0});
    test.output_count = 3;
    static const double expected_0[] = {64.0, 127.0, 191.0, 255.0};
    op_probe_check(&test, 0, RONDO_DTYPE_U8, "4", expected_0, 1e-05);
    static const double expected_1[] = {0.0156862754};
    op_probe_check(&test, 1, RONDO_DTYPE_F32, "", expected_1, 1e-05);
    static const double expected_2[] = {0.0};
    op_probe_check(&test, 2, RONDO_DTYPE_U8, "", expected_2, 1e-05);
    op_probe_deinit(&test);
}

// All zeros: the scale is 0 and nothing divides by it.
static void test_op_quantize__dynamic_of_zeros(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "DynamicQuantizeLinear", 11);
    op_probe_add_values(&test, RONDO_DTYPE_F32, "2", (const double[]){0.0, 0.0});
    test.output_count = 3;
    static const double expected_0[] = {0.0, 0.0};
    op_probe_check(&test, 0, RONDO_DTYPE_U8, "2", expected_0, 1e-05);
    static const double expected_1[] = {0.0};
    op_probe_check(&test, 1, RONDO_DTYPE_F32, "", expected_1, 1e-05);
    static const double expected_2[] = {0.0};
    op_probe_check(&test, 2, RONDO_DTYPE_U8, "", expected_2, 1e-05);
    op_probe_deinit(&test);
}

// ONNX leaves NaN open; here it is 0, never undefined behaviour.
static void test_op_quantize__nan_becomes_the_lowest_or_zero(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "QuantizeLinear", 13);
    op_probe_add_values(&test, RONDO_DTYPE_F32, "1", (const double[]){(double)NAN});
    op_probe_add_values(&test, RONDO_DTYPE_F32, "", (const double[]){1.0});
    static const double expected_0[] = {0.0};
    op_probe_check(&test, 0, RONDO_DTYPE_U8, "1", expected_0, 1e-05);
    op_probe_deinit(&test);
}

static void test_op_quantize__refuses_scales_of_other_length(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "QuantizeLinear", 13);
    op_probe_set_int(&test, "axis", 1);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x3", 1, 0.125);
    op_probe_add_values(&test, RONDO_DTYPE_F32, "2", (const double[]){0.1, 0.25});
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "scale has shape [2]");
    op_probe_deinit(&test);
}

static void test_op_quantize__refuses_axes_beyond_rank(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "QuantizeLinear", 13);
    op_probe_set_int(&test, "axis", 5);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x3", 1, 0.125);
    op_probe_add_values(&test, RONDO_DTYPE_F32, "2", (const double[]){0.1, 0.25});
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "axis");
    op_probe_deinit(&test);
}

static void test_op_quantize__refuses_negative_blocks(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "DequantizeLinear", 21);
    op_probe_set_int(&test, "axis", 1);
    op_probe_set_int(&test, "block_size", -2);
    op_probe_add_values(&test, RONDO_DTYPE_U8, "2x4",
                        (const double[]){0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0});
    op_probe_add_values(&test, RONDO_DTYPE_F32, "2x2", (const double[]){1.0, 0.5, 2.0, 0.25});
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "block_size");
    op_probe_deinit(&test);
}

static void test_op_quantize__refuses_another_zero_point_shape(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "QuantizeLinear", 13);
    op_probe_set_int(&test, "axis", 0);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x3", 1, 0.125);
    op_probe_add_values(&test, RONDO_DTYPE_F32, "2", (const double[]){0.1, 0.25});
    op_probe_add_values(&test, RONDO_DTYPE_I8, "1", (const double[]){5.0});
    op_probe_check_fails(&test, RONDO_STATUS_BAD_DATA, "different shapes");
    op_probe_deinit(&test);
}

static void test_op_quantize__refuses_float8(void **state) {
    (void)state;
    op_probe test;
    op_probe_init(&test, "", "QuantizeLinear", 21);
    op_probe_set_int(&test, "output_dtype", 17);
    op_probe_add_pattern(&test, RONDO_DTYPE_F32, "2x3", 1, 0.125);
    op_probe_add_values(&test, RONDO_DTYPE_F32, "", (const double[]){0.1});
    op_probe_check_fails(&test, RONDO_STATUS_UNSUPPORTED, "unsupported: op QuantizeLinear");
    op_probe_deinit(&test);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_op_quantize__rounds_ties_to_even_and_saturates),
        cmocka_unit_test(test_op_quantize__signed_with_axis),
        cmocka_unit_test(test_op_quantize__zero_point_is_optional),
        cmocka_unit_test(test_op_quantize__dequantize_with_axis),
        cmocka_unit_test(test_op_quantize__dequantize_i32),
        cmocka_unit_test(test_op_quantize__blocks_of_two),
        cmocka_unit_test(test_op_quantize__quantize_in_blocks),
        cmocka_unit_test(test_op_quantize__finds_scales),
        cmocka_unit_test(test_op_quantize__dynamic_of_positive_numbers_starts_at_zero),
        cmocka_unit_test(test_op_quantize__dynamic_of_zeros),
        cmocka_unit_test(test_op_quantize__nan_becomes_the_lowest_or_zero),
        cmocka_unit_test(test_op_quantize__refuses_scales_of_other_length),
        cmocka_unit_test(test_op_quantize__refuses_axes_beyond_rank),
        cmocka_unit_test(test_op_quantize__refuses_negative_blocks),
        cmocka_unit_test(test_op_quantize__refuses_another_zero_point_shape),
        cmocka_unit_test(test_op_quantize__refuses_float8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

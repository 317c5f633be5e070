// Awkward semantics of reductions, arg-reductions and running sums.
// SPDX-License-Identifier: Apache-2.0

#include "rondo/tensor.h"
#include "support/cases/op_probe.h"
#include "support/cases/op_rows.h"
#include "support/expect_ok.h"
#include "support/test.h"

static const op_row axes_in_all_forms_rows[] = {
    {"ReduceSum", 11, "f32[2,3]:1,2,3,4,5,6", "axes=I:-1 keepdims=0", "f32[2]:6,15"},
    {"ReduceSum", 13, "f32[2,3]:1,2,3,4,5,6 i64[1]:0", "", "f32[1,3]:5,7,9"},
    {"ReduceSum", 13, "f32[2,3]:1,2,3,4,5,6", "keepdims=0", "f32[]:21"},
    {"ReduceSum", 13, "f32[2]:1,2 i64[0]", "noop_with_empty_axes=1", "f32[2]:1,2"},
    {"ReduceSumSquare", 18, "f32[2]:-3,2", "noop_with_empty_axes=1", "f32[2]:9,4"},
    {"ReduceSum", 13, "f32[2]:1,2 i64[0]", "keepdims=0", "f32[]:3"},
    {"ReduceMean", 13, "i32[4]:1,2,3,5", "", "i32[1]:2"},
    // Whole numbers do not go through doubles: exact arithmetic.
    {"ReduceMean", 13, "i64[2]:9007199254740993,9007199254740995", "", "i64[1]:9007199254740994"},
    {"ReduceMean", 13, "i64[2]:-9007199254740993,-9007199254740994", "",
     "i64[1]:-9007199254740993"},
    {"ReduceMean", 13, "u64[1]:18446744073709551615", "", "u64[1]:18446744073709551615"},
    {"ReduceMax", 13, "i8[2,2,2]:1,-5,3,4,-1,0,7,-8", "axes=I:0,2 keepdims=0", "i8[2]:1,7"},
    {"ReduceMin", 18, "u8[3]:9,4,200 i64[1]:0", "", "u8[1]:4"},
    {"ReduceMax", 20, "bool[2,2]:0,1,0,0 i64[1]:1", "keepdims=0", "bool[2]:1,0"},
    {"ReduceSum", 13, "f32[]:5", "", "f32[]:5"},
    {"ReduceSum", 13, "f16[3]:1,2,3", "", "f16[1]:6"},
    {"ReduceL1", 13, "i64[3]:-1,2,-3", "", "i64[1]:6"},
    {"ReduceL2", 13, "f32[2]:3,4", "", "f32[1]:5"},
    {"ReduceProd", 13, "i32[2]:65536,65536", "", "i32[1]:0"},
    {"ReduceSum", 11, "f32[2]", "axes=I:1", "!BAD_DATA axis 1 is outside"},
    {"ReduceSum", 13, "f32[2,2] i64[2]:0,-2", "", "!BAD_DATA given twice"},
    {"ReduceSum", 13, "u8[2]", "", "!UNSUPPORTED input 0 of type u8"},
    {"ReduceMean", 13, "f32[2] i64[1]", "", "!BAD_DATA takes at most 1"},
};
OP_ROWS_TEST(test_op_reduce__axes_in_all_forms, axes_in_all_forms_rows)

static const op_row empty_sets_and_extremes_rows[] = {
    {"ReduceSum", 13, "f32[0,2] i64[1]:0", "", "f32[1,2]:0,0"},
    {"ReduceProd", 18, "f32[0,2] i64[1]:0", "keepdims=0", "f32[2]:1,1"},
    {"ReduceMax", 18, "f32[0] i64[1]:0", "", "f32[1]:-inf"},
    {"ReduceMin", 18, "i32[0] i64[1]:0", "", "i32[1]:2147483647"},
    {"ReduceMax", 18, "i64[0] i64[1]:0", "", "i64[1]:-9223372036854775808"},
    {"ReduceLogSumExp", 18, "f32[0] i64[1]:0", "", "f32[1]:-inf"},
    {"ReduceMean", 18, "f32[0] i64[1]:0", "", "f32[1]:nan"},
    {"ReduceSum", 13, "f32[0,2] i64[1]:1", "", "f32[0,1]"},
    {"ReduceLogSumExp", 18, "f32[2]:1000,1000", "", "f32[1]:1000.69314718"},
    {"ReduceLogSumExp", 18, "f32[2]:-inf,-inf", "", "f32[1]:-inf"},
    {"ReduceLogSumExp", 18, "f32[2]:inf,1", "", "f32[1]:inf"},
    {"ReduceMax", 18, "f32[3]:1,nan,3", "", "f32[1]:nan"},
    {"ReduceMin", 18, "f64[3]:nan,1,3", "", "f64[1]:nan"},
};
OP_ROWS_TEST(test_op_reduce__empty_sets_and_extremes, empty_sets_and_extremes_rows)

static const op_row runs_along_an_axis_rows[] = {
    {"ArgMax", 13, "f32[2,3]:1,3,3,9,2,9", "axis=1", "i64[2,1]:1,0"},
    {"ArgMax", 13, "f32[2,3]:1,3,3,9,2,9", "axis=1 select_last_index=1 keepdims=0", "i64[2]:2,2"},
    {"ArgMin", 13, "i8[3]:5,-128,-128", "", "i64[1]:1"},
    {"ArgMax", 13, "f32[4]:1,nan,5,nan", "", "i64[1]:1"},
    {"ArgMax", 13, "f32[4]:1,nan,5,nan", "select_last_index=1", "i64[1]:3"},
    {"ArgMax", 13, "f32[0,2]", "axis=0", "!BAD_DATA axis 0 is empty"},
    {"ArgMax", 13, "f32[0,2]", "axis=1", "i64[0,1]"},
    {"CumSum", 14, "i32[4]:1,2,3,4 i64[]:0", "", "i32[4]:1,3,6,10"},
    {"CumSum", 14, "i32[4]:1,2,3,4 i64[]:0", "exclusive=1 reverse=1", "i32[4]:9,7,4,0"},
    {"CumSum", 14, "f32[2,2]:1,2,3,4 i32[]:-2", "", "f32[2,2]:1,2,4,6"},
    {"CumSum", 14, "i64[2,2]:1,2,3,4 i64[]:0", "exclusive=1", "i64[2,2]:0,0,1,2"},
    {"CumSum", 14, "f32[2] i64[]:1", "", "!BAD_DATA axis 1 is outside"},
    {"CumProd", 26, "i32[4]:1,2,3,4 i64[]:0", "", "i32[4]:1,2,6,24"},
    {"CumProd", 26, "i32[3]:1,2,3 i64[]:0", "exclusive=1 reverse=1", "i32[3]:6,3,1"},
    {"CumProd", 26, "i64[3]:9223372036854775807,2,2 i64[]:0", "",
     "i64[3]:9223372036854775807,-2,-4"},
    {"CumProd", 26, "f32[2,2]:1,2,3,4 i32[]:-2", "", "f32[2,2]:1,2,3,8"},
    {"CumProd", 26, "f16[3]:2,3,4 i32[]:0", "exclusive=1", "f16[3]:1,2,6"},
    {"CumProd", 26, "i8[2] i64[]:0", "", "!UNSUPPORTED input 0 of type i8"},
    {"CumSum", 14, "f32[2] f32[]:1", "", "!BAD_DATA must be one i32 or i64"},
};
OP_ROWS_TEST(test_op_reduce__runs_along_an_axis, runs_along_an_axis_rows)

// More lines side by side than are summed up at once, and one alone.
TEST(test_op_reduce__many_running_sums) {
    enum { OUTER = 2, EXTENT = 3, INNER_MAX = 131 };
    static const int64_t inner[] = {1, 2, 64, 65, INNER_MAX};
    for (size_t r = 0; r < 4 * sizeof inner / sizeof inner[0]; ++r) {
        const bool is_exclusive = r % 2 != 0, is_reverse = r / 2 % 2 != 0;
        const rondo_shape shape = {3, {OUTER, EXTENT, inner[r / 4]}}, none = {0, {0}};
        rondo_tensor x, axis;
        op_probe test;
        OK(rondo_tensor_init(RONDO_DTYPE_I64, &shape, &x));
        OK(rondo_tensor_init(RONDO_DTYPE_I32, &none, &axis));
        for (int64_t i = 0; i < rondo_shape_get_count(&shape); ++i) {
            ((int64_t *)x.data)[i] = i * i % 101;
        }
        *(int32_t *)axis.data = 1;
        op_probe_init(&test, "", "CumSum", 14);
        op_probe_set_int(&test, "exclusive", is_exclusive);
        op_probe_set_int(&test, "reverse", is_reverse);
        op_probe_add_tensor(&test, &x);
        op_probe_add_tensor(&test, &axis);
        op_probe_run(&test);
        for (int64_t o = 0; o < OUTER; ++o) {
            for (int64_t i = 0; i < inner[r / 4]; ++i) {
                int64_t sum = 0;
                for (int64_t step = 0; step < EXTENT; ++step) {
                    const int64_t e = is_reverse ? EXTENT - 1 - step : step;
                    const int64_t at = (o * EXTENT + e) * inner[r / 4] + i;
                    const int64_t before = sum;
                    sum += ((const int64_t *)x.data)[at];
                    assert_int_equal(((const int64_t *)test.output.data)[at],
                                     is_exclusive ? before : sum);
                }
            }
        }
        op_probe_deinit(&test);
        rondo_tensor_deinit(&x);
        rondo_tensor_deinit(&axis);
    }
}

TEST_MAIN()

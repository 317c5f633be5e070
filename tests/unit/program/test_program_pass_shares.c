// Shares of an attention in f16 are rounded once, behind the product; and what is in the way of
// that goes: a Where that takes all of one side, an Expand to the shape that is there.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "program/edit.h"
#include "program/passes/passes.h"
#include "rondo/rondo.h"
#include "support/cases/interpret.h"
#include "support/cases/pass_program.h"
#include "support/expect_ok.h"
#include "support/test.h"

enum { KEYS = 40, WIDTH = 6 };

static void fill(rondo_tensor *tensor, rondo_dtype dtype, const rondo_shape *shape, float step) {
    OK(rondo_tensor_init(dtype, shape, tensor));
    for (int64_t e = 0; e < rondo_shape_get_count(shape); ++e) {
        const float value = (float)(e * 7 % 23) * step - step;
        if (dtype == RONDO_DTYPE_F16) {
            ((uint16_t *)tensor->data)[e] = rondo_f16_from_float(value);
        } else {
            ((float *)tensor->data)[e] = value;
        }
    }
}

// y = Softmax(x) v, fused; `also` makes the shares an output, too, `is_second` the second operand.
static rondo_program *make_product(rondo_dtype dtype, bool also, bool is_second) {
    const rondo_shape x_shape = {2, {is_second ? WIDTH : 3, is_second ? 3 : KEYS}};
    const rondo_shape v_shape = {2, {is_second ? 2 : KEYS, WIDTH}};
    rondo_program *source;
    OK(rondo__program_create("shares", &source));
    const int32_t x = pass_add_input(source, dtype, &x_shape);
    const int32_t v = pass_add_input(source, dtype, &v_shape);
    const int32_t shares = pass_add_node(source, "", "Softmax", &x, 1);
    const int32_t operands[2] = {is_second ? v : shares, is_second ? shares : v};
    OK(rondo__program_add_output(source, pass_add_node(source, "", "MatMul", operands, 2)));
    if (also) {
        OK(rondo__program_add_output(source, shares));
    }
    rondo_program *program = pass_specialise(source);
    OK(rondo__pass_matmul(program));
    return program;
}

TEST(test_program_pass_shares__where_only_a_product_reads_them) {
    static const struct {
        rondo_dtype dtype;
        bool also, is_second;
        size_t casts;
    } rows[] = {{RONDO_DTYPE_F16, false, false, 1},
                {RONDO_DTYPE_F16, true, false, 0},
                {RONDO_DTYPE_F16, false, true, 0},
                {RONDO_DTYPE_F32, false, false, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        rondo_program *program = make_product(rows[i].dtype, rows[i].also, rows[i].is_second);
        rondo_tensor inputs[2];
        for (size_t n = 0; n < 2; ++n) {
            rondo_shape shape;
            assert_true(rondo__value_get_shape(&program->values[program->inputs[n]], &shape));
            fill(&inputs[n], rows[i].dtype, &shape, 0.19f);
        }
        pass_rewrite(program, rondo__pass_shares, inputs, 2e-3, "shares");
        assert_int_equal(interpret_count(program, RONDO__OP_Cast), rows[i].casts);
        assert_int_equal(interpret_count(program, RONDO__FUSED_MatMul), 1);
        assert_int_equal(program->values[program->outputs[0]].dtype, rows[i].dtype);
        for (size_t n = 0; n < 2; ++n) {
            rondo_tensor_deinit(&inputs[n]);
        }
        rondo_program_destroy(program);
    }
}

// The exact result, with f16 operands.
static double find_exact(const rondo_tensor *x, const rondo_tensor *v, int64_t row,
                         int64_t column) {
    const uint16_t *of_x = (const uint16_t *)x->data + row * KEYS, *of_v = v->data;
    double peak = -(double)INFINITY, total = 0.0, sum = 0.0;
    for (int64_t k = 0; k < KEYS; ++k) {
        peak = fmax(peak, (double)rondo_f16_to_float(of_x[k]));
    }
    for (int64_t k = 0; k < KEYS; ++k) {
        const double share = exp((double)rondo_f16_to_float(of_x[k]) - peak);
        total += share;
        sum += share * (double)rondo_f16_to_float(of_v[k * WIDTH + column]);
    }
    return sum / total;
}

// Half a unit of f16, and what f32 may be off; rounded shares are further off.
TEST(test_program_pass_shares__the_result_is_rounded_once) {
    rondo_program *program = make_product(RONDO_DTYPE_F16, false, false);
    const rondo_shape x_shape = {2, {3, KEYS}}, v_shape = {2, {KEYS, WIDTH}};
    rondo_tensor inputs[2], y = {0};
    fill(&inputs[0], RONDO_DTYPE_F16, &x_shape, 0.19f);
    fill(&inputs[1], RONDO_DTYPE_F16, &v_shape, 0.19f);
    OK(rondo__pass_shares(program));
    OK(interpret_program(program, inputs, &y));
    for (int64_t e = 0; e < 3 * WIDTH; ++e) {
        const double exact = find_exact(&inputs[0], &inputs[1], e / WIDTH, e % WIDTH);
        const double got = (double)rondo_f16_to_float(((const uint16_t *)y.data)[e]);
        const double unit = ldexp(1.0, (int)floor(log2(fabs(exact))) - 10);
        if (!(fabs(got - exact) <= 0.501 * unit)) {
            fail_msg("element %d is %g, exact %g, %g units off", (int)e, got, exact,
                     fabs(got - exact) / unit);
        }
    }
    rondo_tensor_deinit(&y);
    rondo_tensor_deinit(&inputs[0]);
    rondo_tensor_deinit(&inputs[1]);
    rondo_program_destroy(program);
}

static int32_t add_condition(rondo_program *program, const rondo_shape *shape, int truths) {
    rondo_tensor tensor;
    OK(rondo_tensor_init(RONDO_DTYPE_BOOL, shape, &tensor));
    for (int64_t e = 0; e < rondo_shape_get_count(shape); ++e) {
        ((uint8_t *)tensor.data)[e] = e < truths;
    }
    const int32_t value = pass_add_constant(program, &tensor);
    rondo_tensor_deinit(&tensor);
    return value;
}

TEST(test_program_pass_shares__choices_that_are_none_go) {
    static const struct {
        int truths;        // of the condition's three
        rondo_shape a, b;  // what is chosen from
        size_t left;       // Where
    } rows[] = {{3, {2, {2, 3}}, {2, {2, 3}}, 0}, {0, {2, {2, 3}}, {2, {2, 3}}, 0},
                {3, {2, {2, 3}}, {0, {0}}, 0},    {0, {0, {0}}, {2, {2, 3}}, 0},
                {1, {2, {2, 3}}, {2, {2, 3}}, 1},  // both
                {3, {0, {0}}, {2, {2, 3}}, 1},     // what is chosen is broadcast
                {0, {2, {2, 3}}, {1, {3}}, 1}};
    const rondo_shape list = {1, {3}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        rondo_program *source;
        OK(rondo__program_create("choice", &source));
        const int32_t inputs[3] = {add_condition(source, &list, rows[i].truths),
                                   pass_add_input(source, RONDO_DTYPE_F32, &rows[i].a),
                                   pass_add_input(source, RONDO_DTYPE_F32, &rows[i].b)};
        OK(rondo__program_add_output(source, pass_add_node(source, "", "Where", inputs, 3)));
        rondo_program *program = pass_specialise(source);
        rondo_tensor feeds[2];
        fill(&feeds[0], RONDO_DTYPE_F32, &rows[i].a, 0.25f);
        fill(&feeds[1], RONDO_DTYPE_F32, &rows[i].b, 0.5f);
        pass_rewrite(program, rondo__pass_choices, feeds, 0.0, "a choice");
        assert_int_equal(interpret_count(program, RONDO__OP_Where), rows[i].left);
        rondo_tensor_deinit(&feeds[0]);
        rondo_tensor_deinit(&feeds[1]);
        rondo_program_destroy(program);
    }
}

TEST(test_program_pass_shares__expands_to_the_same_shape_go) {
    const rondo_shape shape = {2, {1, 3}};
    const int64_t extents[] = {1, 3, 2, 1, 1};
    for (size_t i = 0; i < 2; ++i) {  // to [1, 3], and to [2, 1, 1]
        rondo_program *source;
        OK(rondo__program_create("expand", &source));
        const int32_t x = pass_add_input(source, RONDO_DTYPE_F32, &shape);
        const int32_t inputs[2] = {x, pass_add_list(source, extents + 2 * i, 2 + i)};
        OK(rondo__program_add_output(source, pass_add_node(source, "", "Expand", inputs, 2)));
        rondo_program *program = pass_specialise(source);
        rondo_tensor feed;
        fill(&feed, RONDO_DTYPE_F32, &shape, 0.25f);
        pass_rewrite(program, rondo__pass_choices, &feed, 0.0, "an Expand");
        assert_int_equal(interpret_count(program, RONDO__OP_Expand), i);
        rondo_tensor_deinit(&feed);
        rondo_program_destroy(program);
    }
}

TEST_MAIN()

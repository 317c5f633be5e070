// A BatchNormalization that becomes element-wise keeps its digits, however far from 0 its means.
// SPDX-License-Identifier: Apache-2.0

#include "program/edit.h"
#include "program/passes/passes.h"
#include "support/cases/pass_program.h"
#include "support/expect_ok.h"
#include "support/test.h"

enum { CHANNELS = 2, SPAN = 9 };

static int32_t add_list(rondo_program *program, float first, float second) {
    const rondo_shape shape = {1, {CHANNELS}};
    rondo_tensor tensor;
    OK(rondo_tensor_init(RONDO_DTYPE_F32, &shape, &tensor));
    ((float *)tensor.data)[0] = first;
    ((float *)tensor.data)[1] = second;
    const int32_t value = pass_add_constant(program, &tensor);
    rondo_tensor_deinit(&tensor);
    return value;
}

// y = relu(norm(x))
static rondo_program *make_program(const rondo_shape *shape, float mean, float variance) {
    rondo_program *source;
    OK(rondo__program_create("norm", &source));
    const int32_t x = pass_add_input(source, RONDO_DTYPE_F32, shape);
    const int32_t inputs[5] = {x, add_list(source, 1.5f, -0.5f), add_list(source, 0.25f, 1.0f),
                               add_list(source, mean, 0.0f), add_list(source, variance, 1.0f)};
    const int32_t n = pass_add_node(source, "", "BatchNormalization", inputs, 5);
    OK(rondo__program_add_output(source, pass_add_node(source, "", "Relu", &n, 1)));
    return pass_specialise(source);
}

TEST(test_program_pass_scale_shift__means_far_from_zero) {
    static const struct {
        float mean, variance;
        size_t operands;  // the mean is one where beside it, scaled, digits would be lost
    } rows[] = {{2.0f, 1.0f, 3},
                {-10.0f, 1.0f, 3},
                {577350.0f, 0.5f, 4},
                {-577350.0f, 0.5f, 4},
                {1.0f, 1e-12f, 4}};
    const rondo_shape shape = {3, {1, CHANNELS, SPAN}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        rondo_program *program = make_program(&shape, rows[i].mean, rows[i].variance);
        rondo_tensor x;
        OK(rondo_tensor_init(RONDO_DTYPE_F32, &shape, &x));
        for (int64_t e = 0; e < CHANNELS * SPAN; ++e) {
            const float mean = e < SPAN ? rows[i].mean : 0.0f;
            ((float *)x.data)[e] = mean + (float)(e % SPAN) / 4.0f;
        }
        pass_rewrite(program, rondo__pass_scale_shift, &x, 1e-6, "a norm");
        assert_int_equal(program->node_count, 1);
        assert_true(rondo__node_is(&program->nodes[0], RONDO__FUSED_Elementwise));
        assert_int_equal(program->nodes[0].input_count, rows[i].operands);
        rondo_tensor_deinit(&x);
        rondo_program_destroy(program);
    }
}

TEST_MAIN()

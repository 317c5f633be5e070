// Factors by channel go into the weights of the product before them: which do, and that the results
// stay.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program/edit.h"
#include "program/passes/passes.h"
#include "program/shapes/specialise.h"
#include "support/cases/interpret.h"
#include "support/expect_ok.h"
#include "support/test.h"

enum { SIZE = 4 };  // of every axis, so that no shape gives a wrong axis away

static void fill(rondo_tensor *tensor, const rondo_shape *shape, float first) {
    OK(rondo_tensor_init(RONDO_DTYPE_F32, shape, tensor));
    for (int64_t i = 0; i < rondo_shape_get_count(shape); ++i) {
        ((float *)tensor->data)[i] = i == 0 ? first : (float)((i * 7 + 3) % 11) / 8.0f - 0.5f;
    }
}

static void add_constants(rondo_program *program) {
    static const struct {
        const char *name;
        rondo_shape shape;
        float first;
    } constants[] = {
        {"matrix", {2, {SIZE, SIZE}}, 1.5f},
        {"kernel", {4, {SIZE, SIZE, 1, 1}}, 1.5f},
        {"bias", {1, {SIZE}}, -2.0f},
        {"wide_bias", {2, {1, SIZE}}, -2.0f},
        {"by_column", {1, {SIZE}}, 0.75f},
        {"by_channel", {3, {SIZE, 1, 1}}, 0.75f},
        {"by_image", {4, {SIZE, 1, 1, 1}}, 2.f},
        {"by_row", {2, {SIZE, 1}}, 0.75f},
        {"vast", {1, {SIZE}}, 3e38f},
        {"long", {5, {1, 1, 1, 1, SIZE}}, 0.75f},
    };
    for (size_t i = 0; i < sizeof constants / sizeof constants[0]; ++i) {
        rondo_tensor tensor;
        int32_t value;
        fill(&tensor, &constants[i].shape, constants[i].first);
        OK(rondo__program_add_constant(program, constants[i].name, &tensor, &value));
        rondo_tensor_deinit(&tensor);
    }
}

static void add_input(rondo_program *program, const char *name, const rondo_shape *shape) {
    int32_t value;
    OK(rondo__program_add_shaped(program, name, RONDO_DTYPE_F32, shape, &value));
    OK(rondo__program_add_input(program, value));
}

// "Op inputs > output". ToNHWC and ToNCHW are Transposes, Turned is a Gemm whose matrix lies so.
static void add_line(rondo_program *program, char *line) {
    static const int64_t to_nhwc[] = {0, 2, 3, 1}, to_nchw[] = {0, 3, 1, 2};
    char *rest = NULL;
    const char *name = strtok_r(line, " ", &rest);
    const bool is_move = strncmp(name, "To", 2) == 0, is_turned = strcmp(name, "Turned") == 0;
    int32_t inputs[4], output;
    size_t count = 0;
    const char *word = strtok_r(NULL, " ", &rest);
    for (; strcmp(word, ">") != 0; word = strtok_r(NULL, " ", &rest)) {
        inputs[count] = rondo__program_find_value(program, word);
        assert_true(inputs[count++] >= 0);
    }
    OK(rondo__program_add_value(program, strtok_r(NULL, " ", &rest), &output));
    OK(rondo__program_add_simple(program, "",
                                 is_move     ? "Transpose"
                                 : is_turned ? "Gemm"
                                             : name,
                                 NULL, inputs, count, &output, 1));
    rondo__op *op = &program->nodes[program->node_count - 1].op;
    if (is_move) {
        const bool is_last = strcmp(name, "ToNHWC") == 0;
        OK(rondo__op_set_ints(op, "perm", is_last ? to_nhwc : to_nchw, 4));
    }
    if (is_turned) {
        OK(rondo__op_set_int(op, "transB", 1));
        OK(rondo__op_set_float(op, "alpha", 0.5f));
        OK(rondo__op_set_float(op, "beta", 2.0f));
    }
}

static const struct {
    const char *story, *lines;
    bool is_taken;
} rows[] = {
    {"a bias and a factor", "MatMul x matrix > p;Add bias p > q;Mul q by_column > s;Add s x > y",
     true},
    {"no bias", "MatMul x matrix > p;Mul by_column p > s;Add x s > y", true},
    {"as ConvNeXt has it",
     "MatMul x matrix > p;Add p bias > q;ToNCHW q > t;Mul by_channel t > s;Add s x > y", true},
    {"a Transpose behind the factor",
     "MatMul x matrix > p;Add p bias > q;Mul by_column q > s;ToNCHW s > t;Add t x > y", true},
    {"there and back",
     "MatMul x matrix > p;ToNCHW p > t;ToNHWC t > u;Mul by_column u > s;Add s x > y", true},
    {"a convolution", "Conv x kernel bias > p;Mul p by_channel > s;Add s x > y", true},
    {"a convolution whose bias comes later",
     "Conv x kernel > p;Add p by_channel > q;Mul q by_channel > s;Add s x > y", true},
    {"Gemm", "Gemm m matrix wide_bias > p;Mul p by_column > s;Add s m > y", true},
    {"Gemm with factors of its own", "Turned m matrix bias > p;Mul p by_column > s;Add s m > y",
     true},
    {"no term of a sum", "MatMul x matrix > p;Mul p by_column > s;Sigmoid s > y", false},
    {"a sum with a constant", "MatMul x matrix > p;Mul p by_column > s;Add s bias > y", false},
    {"a sum with itself", "MatMul x matrix > p;Mul p by_column > s;Add s s > y", false},
    {"a factor by row", "MatMul x matrix > p;Mul p by_row > s;Add s x > y", false},
    {"a factor by image",
     "ToNHWC x > u;MatMul u matrix > p;ToNCHW p > t;Mul t by_image > s;Add s x > y", false},
    {"a factor that adds an axis", "Gemm m matrix > p;Mul p long > s;Add s m > y", false},
    {"columns are rows by then", "MatMul x matrix > p;ToNCHW p > t;Mul t by_column > s;Add s x > y",
     false},
    {"another use of the product", "MatMul x matrix > p;Mul p by_column > s;Add s p > y", false},
    {"a factor that is computed", "MatMul x matrix > p;Sigmoid m > f;Mul p f > s;Add s x > y",
     false},
    {"weights that are computed", "MatMul x m > p;Mul p by_column > s;Add s x > y", false},
    {"weights out of range", "MatMul x matrix > p;Mul p vast > s;Add s x > y", false},
};

TEST(test_program_layer_scale__forms) {
    const rondo_shape image = {4, {SIZE, SIZE, SIZE, SIZE}}, matrix = {2, {SIZE, SIZE}};
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; ++r) {
        rondo_program *source, *program;
        rondo_tensor inputs[2], expected[1], outputs[1], shapes[2] = {{0}};
        char text[256], *rest = NULL;
        (void)snprintf(text, sizeof text, "%s", rows[r].lines);
        OK(rondo__program_create("p", &source));
        add_input(source, "x", &image);
        add_input(source, "m", &matrix);
        add_constants(source);
        for (char *line = strtok_r(text, ";", &rest); line != NULL;
             line = strtok_r(NULL, ";", &rest)) {
            add_line(source, line);
        }
        OK(rondo__program_add_output(source, rondo__program_find_value(source, "y")));
        OK(rondo__program_verify(source));
        fill(&inputs[0], &image, 0.25f);
        fill(&inputs[1], &matrix, 0.25f);
        for (size_t i = 0; i < 2; ++i) {
            shapes[i] = (rondo_tensor){.dtype = RONDO_DTYPE_F32, .shape = inputs[i].shape};
        }
        OK(rondo__program_specialise(source, shapes, 1 << 20, &program, NULL));
        OK(interpret_program(program, inputs, expected));
        OK(rondo__pass_layer_scale(program));
        OK(interpret_program(program, inputs, outputs));
        // What stays is the same, infinities included, whose difference is no number.
        const double error = rows[r].is_taken ? compare_tensors(&outputs[0], &expected[0]) : 0.0;
        if (interpret_count(program, RONDO__OP_Mul) != (rows[r].is_taken ? 0 : 1) ||
            !(error <= 1e-5)) {
            fail_msg("%s: %zu factors left, error %g", rows[r].story,
                     interpret_count(program, RONDO__OP_Mul), error);
        }
        for (size_t i = 0; i < 2; ++i) {
            rondo_tensor_deinit(&inputs[i]);
        }
        rondo_tensor_deinit(&expected[0]);
        rondo_tensor_deinit(&outputs[0]);
        rondo_program_destroy(program);
        rondo_program_destroy(source);
    }
}

TEST_MAIN()

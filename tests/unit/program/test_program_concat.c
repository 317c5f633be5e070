// A Concat of images in NHWC reads what a DepthToSpace would make where it lies: when it does, what
// is left, and that the results stay.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program/edit.h"
#include "program/passes/passes.h"
#include "program/shapes/specialise.h"
#include "support/cases/interpret.h"
#include "support/expect_ok.h"
#include "support/test.h"

static void fill(rondo_tensor *tensor, const rondo_shape *shape) {
    OK(rondo_tensor_init(RONDO_DTYPE_F32, shape, tensor));
    for (int64_t i = 0; i < rondo_shape_get_count(shape); ++i) {
        ((float *)tensor->data)[i] = (float)((i * 7 + 3) % 23) / 8.0f - 1.25f;
    }
}

// x is half as large as z; grow makes blocks of 2 x 2 pixels of it, with 4 channels.
static const rondo_shape small = {4, {2, 4, 3, 5}}, large = {4, {2, 3, 6, 10}};

static void add_constants(rondo_program *program) {
    static const struct {
        const char *name;
        rondo_shape shape;
    } constants[] = {{"grow", {4, {16, 4, 1, 1}}},
                     {"keep", {4, {3, 3, 1, 1}}},
                     {"seven", {4, {2, 7, 1, 1}}},
                     {"eight", {4, {2, 8, 1, 1}}},
                     {"four", {4, {2, 4, 1, 1}}}};
    for (size_t i = 0; i < sizeof constants / sizeof constants[0]; ++i) {
        rondo_tensor tensor;
        int32_t value;
        fill(&tensor, &constants[i].shape);
        OK(rondo__program_add_constant(program, constants[i].name, &tensor, &value));
        rondo_tensor_deinit(&tensor);
    }
}

// "Op inputs > output". Spread is DepthToSpace, SpreadCRD the one with the channel in front.
static void add_line(rondo_program *program, char *line) {
    char *rest = NULL;
    const char *name = strtok_r(line, " ", &rest);
    const bool is_spread = strncmp(name, "Spread", 6) == 0;
    int32_t inputs[4], output;
    size_t count = 0;
    const char *word = strtok_r(NULL, " ", &rest);
    for (; strcmp(word, ">") != 0; word = strtok_r(NULL, " ", &rest)) {
        inputs[count] = rondo__program_find_value(program, word);
        assert_true(inputs[count++] >= 0);
    }
    OK(rondo__program_add_value(program, strtok_r(NULL, " ", &rest), &output));
    OK(rondo__program_add_simple(program, "", is_spread ? "DepthToSpace" : name, NULL, inputs,
                                 count, &output, 1));
    rondo__op *op = &program->nodes[program->node_count - 1].op;
    if (is_spread) {
        OK(rondo__op_set_int(op, "blocksize", 2));
        OK(rondo__op_set_string(op, "mode", strcmp(name, "Spread") == 0 ? "DCR" : "CRD"));
    }
    if (strcmp(name, "Concat") == 0) {
        OK(rondo__op_set_int(op, "axis", 1));
    }
}

#define MADE "Conv x grow > g;Spread g > d;Conv z keep > s;"

static const struct {
    const char *story, *lines;
    size_t joined, transposes;  // two at the inputs, one at the result
} rows[] = {
    {"beside a skip", MADE "Concat d s > c;Conv c seven > y", 1, 3},
    {"behind it", MADE "Concat s d > c;Conv c seven > y", 1, 3},
    {"two of them",
     "Conv x grow > g;Spread g > d;Conv x grow > h;Spread h > e;Concat d e > c;"
     "Conv c eight > y",
     1, 2},
    {"the channel in front of the block",
     "Conv x grow > g;SpreadCRD g > d;Conv z keep > s;"
     "Concat d s > c;Conv c seven > y",
     0, 4},
    {"another use", MADE "Concat d s > c;Conv c seven > e;Conv d four > f;Add e f > y", 0, 4},
    {"twice in one", "Conv x grow > g;Spread g > d;Concat d d > c;Conv c eight > y", 0, 3},
    {"something in between", MADE "Sigmoid d > e;Concat e s > c;Conv c seven > y", 0, 4},
};

TEST(test_program_concat__forms) {
    static const rondo__pass_options all = {.channels_last = true,
                                            .fuse_convolution = true,
                                            .fuse_concat = true,
                                            .fuse_elementwise = true};
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; ++r) {
        rondo_program *source, *program;
        rondo_tensor inputs[2], expected[1], outputs[1], shapes[2] = {{0}};
        char text[256], *rest = NULL;
        (void)snprintf(text, sizeof text, "%s", rows[r].lines);
        OK(rondo__program_create("p", &source));
        for (size_t i = 0; i < 2; ++i) {
            int32_t value;
            OK(rondo__program_add_shaped(source, i == 0 ? "x" : "z", RONDO_DTYPE_F32,
                                         i == 0 ? &small : &large, &value));
            OK(rondo__program_add_input(source, value));
            fill(&inputs[i], i == 0 ? &small : &large);
            shapes[i] = (rondo_tensor){.dtype = RONDO_DTYPE_F32, .shape = inputs[i].shape};
        }
        add_constants(source);
        for (char *line = strtok_r(text, ";", &rest); line != NULL;
             line = strtok_r(NULL, ";", &rest)) {
            add_line(source, line);
        }
        OK(rondo__program_add_output(source, rondo__program_find_value(source, "y")));
        OK(rondo__program_verify(source));
        OK(rondo__program_specialise(source, shapes, 1 << 20, &program, NULL));
        OK(interpret_program(program, inputs, expected));
        OK(rondo__program_optimise(program, &all));
        OK(interpret_program(program, inputs, outputs));
        const double error = compare_tensors(&outputs[0], &expected[0]);
        const size_t joined = interpret_count(program, RONDO__FUSED_Concat);
        const size_t transposes = interpret_count(program, RONDO__OP_Transpose);
        if (joined != rows[r].joined || transposes != rows[r].transposes || !(error <= 1e-5)) {
            fail_msg("%s: %zu joined, %zu transposes, error %g", rows[r].story, joined, transposes,
                     error);
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

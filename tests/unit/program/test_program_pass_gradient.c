// The passes that name what gradients write: a small network's gradients stay what they were, and
// each pattern becomes its op.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "program/backward/backward.h"
#include "program/passes/passes.h"
#include "program/shapes/specialise.h"
#include "rondo/models.h"
#include "support/cases/interpret.h"
#include "support/expect_ok.h"
#include "support/models/build_node.h"
#include "support/short_forms.h"
#include "support/test.h"

typedef struct port {
    const char *name;
    rondo_shape shape;
} port;

// Images 12 x 12; the labels come last.
static const port ports[] = {
    {"x", {4, {2, 3, 12, 12}}}, {"w1", {4, {8, 3, 3, 3}}}, {"scale", {1, {8}}},
    {"shift", {1, {8}}},        {"mean", {1, {8}}},        {"variance", {1, {8}}},
    {"w2", {4, {6, 8, 3, 3}}},  {"w3", {4, {6, 8, 1, 1}}}, {"row_scale", {1, {54}}},
    {"row_shift", {1, {54}}},   {"w4", {2, {54, 5}}},      {"y", {1, {2}}},
};
enum { PORTS = sizeof ports / sizeof ports[0], GRADIENTS = 7, OUTPUTS = GRADIENTS + 1 };

static rondo_attribute int_of(const char *name, int64_t value) {
    return ATTRIBUTE_INT(name, value);
}

static rondo_attribute ints_of(const char *name, const int64_t *values, size_t count) {
    return ATTRIBUTE_INTS(name, values, count);
}

static void add(rondo_builder *b, const char *op, const char *const *inputs, size_t count,
                const char *output, const rondo_attribute *attributes, size_t attribute_count) {
    OK(rondo_builder_add_node(b, op, inputs, count, &output, 1,
                              &WITH_LIST(attributes, attribute_count)));
}

#define ADD(b, op, output, attributes, attribute_count, ...)                                 \
    add((b), (op), (const char *const[]){__VA_ARGS__},                                       \
        sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *), (output), (attributes), \
        (attribute_count))

// A norm and a Relu of convolutions, a pool whose windows overlap, convolutions with steps,
// attention, a norm of rows, and the loss of a softmax.
static void add_net(rondo_builder *b) {
    static const int64_t ones[] = {1, 1, 1, 1}, twos[] = {2, 2}, threes[] = {3, 3};
    const rondo_attribute pads = ints_of("pads", ones, 4);
    const rondo_attribute steps[] = {pads, ints_of("strides", twos, 2),
                                     ints_of("kernel_shape", threes, 2)};
    const rondo_attribute trains = int_of("training_mode", 1);
    ADD(b, "Conv", "c", &pads, 1, "x", "w1");
    ADD(b, "BatchNormalization", "n", &trains, 1, "c", "scale", "shift", "mean", "variance");
    ADD(b, "Relu", "r", NULL, 0, "n");
    ADD(b, "MaxPool", "p", steps, 3, "r");
    ADD(b, "Conv", "a", steps, 2, "p", "w2");
    ADD(b, "Conv", "b", &steps[1], 1, "p", "w3");
    ADD(b, "Add", "s", NULL, 0, "a", "b");
    const rondo_attribute heads[] = {int_of("q_num_heads", 2), int_of("kv_num_heads", 2),
                                     int_of("is_causal", 1)};
    const rondo_shape two = {1, {2}}, three = {1, {3}};
    OK(rondo_builder_add_constant(b, "nine", RONDO_DTYPE_I64, &three, (const int64_t[]){2, 9, 6}));
    OK(rondo_builder_add_constant(b, "one", RONDO_DTYPE_I64, &two, (const int64_t[]){2, 54}));
    ADD(b, "Reshape", "g", NULL, 0, "s", "nine");
    ADD(b, "Attention", "m", heads, 3, "g", "g", "g");
    ADD(b, "Reshape", "f", NULL, 0, "m", "one");
    ADD(b, "LayerNormalization", "l", NULL, 0, "f", "row_scale", "row_shift");
    ADD(b, "MatMul", "scores", NULL, 0, "l", "w4");
    ADD(b, "SoftmaxCrossEntropyLoss", "loss", NULL, 0, "scores", "y");
}

static rondo_program *make_program(void) {
    static const char *const of[GRADIENTS] = {"w1", "scale",     "shift",    "w2",
                                              "w3", "row_scale", "row_shift"};
    static const char *const names[GRADIENTS] = {"d1", "d2", "d3", "d4", "d5", "d6", "d7"};
    const rondo_builder_options opset = {.struct_size = sizeof opset, .opset = 23};
    rondo_builder *b;
    rondo_program *source, *program;
    rondo_tensor shapes[PORTS] = {0};
    OK(rondo_builder_create(&opset, &b));
    for (size_t i = 0; i < PORTS; ++i) {
        rondo_port in = {.struct_size = sizeof in,
                         .name = ports[i].name,
                         .dtype = i + 1 < PORTS ? RONDO_DTYPE_F32 : RONDO_DTYPE_I64,
                         .rank = ports[i].shape.rank};
        shapes[i] = (rondo_tensor){.dtype = in.dtype, .shape = ports[i].shape};
        memcpy(in.extent, ports[i].shape.extent, sizeof in.extent);
        OK(rondo_builder_add_input(b, &in));
    }
    add_net(b);
    OK(rondo_builder_add_output(b, "loss", NULL));
    OK(rondo_builder_add_gradients(b, "loss", of, names, GRADIENTS, NULL));
    for (size_t i = 0; i < GRADIENTS; ++i) {
        OK(rondo_builder_add_output(b, names[i], NULL));
    }
    source = build_finish(b);
    OK(rondo__program_specialise(source, shapes, 1 << 20, &program, NULL));
    rondo_program_destroy(source);
    OK(rondo__program_simplify(program));
    return program;
}

static void make_feeds(rondo_tensor *feeds) {
    uint32_t seed = 7;
    for (size_t i = 0; i < PORTS; ++i) {
        const bool is_last = i + 1 == PORTS;
        OK(rondo_tensor_init(is_last ? RONDO_DTYPE_I64 : RONDO_DTYPE_F32, &ports[i].shape,
                             &feeds[i]));
        for (int64_t e = 0; e < rondo_shape_get_count(&ports[i].shape); ++e) {
            seed = seed * 1664525u + 1013904223u;
            if (is_last) {
                ((int64_t *)feeds[i].data)[e] = e * 3 % 5;
            } else {
                ((float *)feeds[i].data)[e] = (float)(seed >> 8) / 8388608.0f - 0.9f;
            }
        }
    }
}

typedef struct op_count {
    rondo__op_id op;
    size_t count;
} op_count;

// The program has so many of these ops once the passes have run, and results as before.
static void expect_ops(const rondo__backward_options *options, const op_count *rows,
                       size_t row_count) {
    rondo_tensor feeds[PORTS], expected[OUTPUTS] = {0}, results[OUTPUTS] = {0};
    make_feeds(feeds);
    rondo_program *program = make_program();
    OK(interpret_program(program, feeds, expected));
    OK(rondo__program_name_gradients(program, options));
    for (size_t i = 0; i < row_count; ++i) {
        if (interpret_count(program, rows[i].op) != rows[i].count) {
            print_error("row %zu: %zu of them\n", i, interpret_count(program, rows[i].op));
        }
        assert_int_equal(interpret_count(program, rows[i].op), rows[i].count);
    }
    OK(interpret_program(program, feeds, results));
    for (size_t i = 0; i < OUTPUTS; ++i) {
        assert_true(compare_tensors(&results[i], &expected[i]) <= 1e-5);
        rondo_tensor_deinit(&results[i]);
        rondo_tensor_deinit(&expected[i]);
    }
    for (size_t i = 0; i < PORTS; ++i) {
        rondo_tensor_deinit(&feeds[i]);
    }
    rondo_program_destroy(program);
}

TEST(test_program_pass_gradient__each_pattern_is_one_op) {
    static const op_count rows[] = {
        {RONDO__FUSED_BatchNormalization, 1},
        {RONDO__FUSED_NormGradient, 2},
        {RONDO__FUSED_ConvWeights, 3},
        {RONDO__FUSED_InsertZeros, 2},
        {RONDO__FUSED_TurnFilters, 2},
        {RONDO__FUSED_Unfold, 0},
        {RONDO__FUSED_PoolGradient, 1},
        {RONDO__FUSED_LossGradient, 1},
        {RONDO__FUSED_AttentionGradient, 1},
        {RONDO__OP_ConvTranspose, 0},
        {RONDO__OP_ScatterElements, 0},
        {RONDO__OP_Where, 0},
        {RONDO__OP_Sqrt, 0},
    };
    const rondo__backward_options all = {true, true, true};
    expect_ops(&all, rows, sizeof rows / sizeof rows[0]);
}

// Products make filters' gradients where a device has no op for all of it.
TEST(test_program_pass_gradient__products_stay) {
    static const op_count rows[] = {
        {RONDO__FUSED_ConvWeights, 0}, {RONDO__FUSED_Unfold, 2}, {RONDO__OP_Concat, 0}};
    const rondo__backward_options options = {false, true, true};
    expect_ops(&options, rows, sizeof rows / sizeof rows[0]);
}

TEST_MAIN()

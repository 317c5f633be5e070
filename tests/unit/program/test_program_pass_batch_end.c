// BatchNormalization in training takes in the Add and the Relu behind it, where nobody else reads
// what is between; results of the way there and back stay what they were.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "program/backward/backward.h"
#include "program/passes/passes.h"
#include "program/shapes/specialise.h"
#include "rondo/models.h"
#include "support/cases/interpret.h"
#include "support/expect_ok.h"
#include "support/test.h"

enum { PORTS = 6, WEIGHTS = 4, ENDS_MAX = 4, OUTPUTS = 1 + WEIGHTS + 1 };

static const struct {
    const char *name;
    rondo_shape shape;
} ports[PORTS] = {
    {"x", {4, {2, 4, 6, 4}}}, {"scale", {1, {4}}},    {"shift", {1, {4}}},
    {"mean", {1, {4}}},       {"variance", {1, {4}}}, {"w", {4, {4, 4, 1, 1}}},
};

// What stands behind y, the first norm's result: op, operands, result. "z" goes on to the loss.
typedef struct tail {
    const char *ends[ENDS_MAX][4];
    const char *output;  // beside the loss; NULL: none
    size_t relu_count, add_count;
} tail;

static const tail tails[] = {
    {{{"Relu", "y", NULL, "z"}}, NULL, 0, 0},
    {{{"Add", "y", "x", "s"}, {"Relu", "s", NULL, "z"}}, NULL, 0, 0},
    {{{"Add", "x", "y", "s"}, {"Relu", "s", NULL, "z"}}, NULL, 0, 0},
    {{{"Relu", "y", NULL, "z"}}, "y", 1, 0},
    {{{"Add", "y", "x", "s"}, {"Relu", "s", NULL, "z"}}, "s", 1, 1},
    {{{"Add", "y", "y", "s"}, {"Relu", "s", NULL, "z"}}, NULL, 1, 1},
    {{{"Add", "y", "mean", "s"}, {"Relu", "s", NULL, "z"}}, NULL, 1, 1},  // along the last axis
    {{{"Add", "y", "x", "z"}}, NULL, 0, 1},
    {{{"Relu", "y", NULL, "r"}, {"Add", "y", "r", "z"}}, NULL, 1, 1},
    // made of the running mean, which the node itself puts out
    {{{"Floor", "own", NULL, "f"},
      {"Mul", "x", "f", "m"},
      {"Add", "y", "m", "s"},
      {"Relu", "s", NULL, "z"}},
     NULL,
     1,
     1},
};

static void add_node(rondo_builder *b, const char *op, const char *const *inputs, size_t count,
                     const char *const *outputs, size_t output_count,
                     const rondo_attribute *attribute) {
    const rondo_builder_node_options options = {.struct_size = sizeof options,
                                                .attributes = attribute,
                                                .attribute_count = attribute != NULL ? 1 : 0};
    OK(rondo_builder_add_node(b, op, inputs, count, outputs, output_count, &options));
}

// loss = mean((norm(conv(x)) and its tail)^2), and the gradients of all weights.
static rondo_program *make_program(const tail *t, rondo_tensor *shapes) {
    static const char *const of[WEIGHTS] = {"w", "scale", "shift", "x"};
    static const char *const names[WEIGHTS] = {"d0", "d1", "d2", "d3"};
    const rondo_builder_options opset = {.struct_size = sizeof opset, .opset = 23};
    const rondo_attribute trains = {
        .name = "training_mode", .kind = RONDO_ATTRIBUTE_INT, .int_value = 1};
    rondo_builder *b;
    rondo_program *source, *program;
    OK(rondo_builder_create(&opset, &b));
    for (size_t i = 0; i < PORTS; ++i) {
        rondo_port in = {.struct_size = sizeof in,
                         .name = ports[i].name,
                         .dtype = RONDO_DTYPE_F32,
                         .rank = ports[i].shape.rank};
        memcpy(in.extent, ports[i].shape.extent, sizeof in.extent);
        shapes[i] = (rondo_tensor){.dtype = in.dtype, .shape = ports[i].shape};
        OK(rondo_builder_add_input(b, &in));
    }
    add_node(b, "Conv", (const char *[]){"x", "w"}, 2, (const char *[]){"c"}, 1, NULL);
    add_node(b, "BatchNormalization", (const char *[]){"c", "scale", "shift", "mean", "variance"},
             5, (const char *[]){"y", "running"}, 2, &trains);
    OK(rondo_builder_add_constant(b, "column", RONDO_DTYPE_I64, &(rondo_shape){1, {3}},
                                  (const int64_t[]){4, 1, 1}));
    add_node(b, "Reshape", (const char *[]){"running", "column"}, 2, (const char *[]){"own"}, 1,
             NULL);
    for (size_t i = 0; i < ENDS_MAX && t->ends[i][0] != NULL; ++i) {
        add_node(b, t->ends[i][0], &t->ends[i][1], t->ends[i][2] != NULL ? 2 : 1, &t->ends[i][3], 1,
                 NULL);
    }
    add_node(b, "Mul", (const char *[]){"z", "z"}, 2, (const char *[]){"square"}, 1, NULL);
    OK(rondo_builder_add_mean(b, "square", "loss"));
    OK(rondo_builder_add_output(b, "loss", NULL));
    OK(rondo_builder_add_gradients(b, "loss", of, names, WEIGHTS, NULL));
    for (size_t i = 0; i < WEIGHTS; ++i) {
        OK(rondo_builder_add_output(b, names[i], NULL));
    }
    if (t->output != NULL) {
        OK(rondo_builder_add_output(b, t->output, NULL));
    }
    OK(rondo_builder_finish(b, &source));
    rondo_builder_destroy(b);
    OK(rondo__program_specialise(source, shapes, 1 << 20, &program, NULL));
    rondo_program_destroy(source);
    OK(rondo__program_simplify(program));
    return program;
}

static void fill(rondo_tensor *feeds) {
    uint32_t seed = 11;
    for (size_t i = 0; i < PORTS; ++i) {
        OK(rondo_tensor_init(RONDO_DTYPE_F32, &ports[i].shape, &feeds[i]));
        for (int64_t e = 0; e < rondo_shape_get_count(&ports[i].shape); ++e) {
            seed = seed * 1664525u + 1013904223u;
            ((float *)feeds[i].data)[e] = (float)(seed >> 8) / 8388608.0f - (i == 4 ? 0.0f : 0.9f);
        }
    }
}

TEST(test_program_pass_batch_end__takes_what_nobody_else_reads) {
    const rondo__backward_options backward = {true, true, true};
    const rondo__pass_options options = {.end_batches = true};
    for (size_t k = 0; k < sizeof tails / sizeof tails[0]; ++k) {
        rondo_tensor feeds[PORTS], shapes[PORTS], wanted[OUTPUTS] = {0}, found[OUTPUTS] = {0};
        fill(feeds);
        rondo_program *program = make_program(&tails[k], shapes);
        const size_t outputs = program->output_count;
        OK(interpret_program(program, feeds, wanted));
        OK(rondo__program_name_gradients(program, &backward));
        const size_t adds = interpret_count(program, RONDO__OP_Add);
        const size_t own_adds = k == 0 || k == 3 ? 0 : 1;
        OK(rondo__program_optimise(program, &options));
        if (interpret_count(program, RONDO__OP_Relu) != tails[k].relu_count ||
            interpret_count(program, RONDO__OP_Add) + own_adds != adds + tails[k].add_count) {
            fail_msg("tail %zu: %zu Relu, %zu Add", k, interpret_count(program, RONDO__OP_Relu),
                     interpret_count(program, RONDO__OP_Add));
        }
        OK(interpret_program(program, feeds, found));
        for (size_t i = 0; i < outputs; ++i) {
            assert_true(compare_tensors(&found[i], &wanted[i]) <= 1e-5);
            rondo_tensor_deinit(&found[i]);
            rondo_tensor_deinit(&wanted[i]);
        }
        for (size_t i = 0; i < PORTS; ++i) {
            rondo_tensor_deinit(&feeds[i]);
        }
        rondo_program_destroy(program);
    }
}

TEST_MAIN()

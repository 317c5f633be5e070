// Programs built in code: what they compute, what is refused and with which words, and what is read
// back.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "support/expect_ok.h"
#include "support/models/code_programs.h"
#include "support/short_forms.h"
#include "support/text_sink.h"

#define NAMES(...)          \
    (const char *const[]) { \
        __VA_ARGS__         \
    }

// ---- results

enum { BATCH = CODE_PROGRAM_EXTENT };

static double get_sum(const double *row, size_t row_step, size_t count, size_t first, size_t step) {
    double sum = 0;
    for (size_t k = 0; k < count; ++k) {
        sum += row[k * row_step] * (double)code_program_get_number(first + k * step);
    }
    return sum;
}

static void check_perceptron(const rondo_tensor *y) {
    assert_int_equal(y->shape.extent[0], BATCH);
    for (size_t n = 0; n < BATCH; ++n) {
        double x[4];
        double h[5];
        for (size_t k = 0; k < 4; ++k) {
            x[k] = (double)code_program_get_number(n * 4 + k);
        }
        for (size_t j = 0; j < 5; ++j) {
            h[j] = fmax(get_sum(x, 1, 4, j, 5) + (double)code_program_get_number(j), 0);
        }
        for (size_t m = 0; m < 3; ++m) {
            const double wanted = get_sum(h, 1, 5, m, 3);
            assert_true(fabs((double)((const float *)y->data)[n * 3 + m] - wanted) <= 1e-5);
        }
    }
}

// Element (channel, row, column) of the convolution of 2 x 6 x 6 with 3 x 3 kernels, padded by 1.
static double convolve(size_t channel, int row, int column) {
    double sum = 0;
    for (size_t c = 0; c < 2; ++c) {
        for (int i = 0; i < 3; ++i) {
            for (int j = 0; j < 3; ++j) {
                const int y = row + i - 1;
                const int x = column + j - 1;
                if (y >= 0 && y < 6 && x >= 0 && x < 6) {
                    const size_t at = (c * 6 + (size_t)y) * 6 + (size_t)x;
                    const size_t weight = ((channel * 2 + c) * 3 + (size_t)i) * 3 + (size_t)j;
                    sum += (double)code_program_get_number(at) *
                           (double)code_program_get_number(weight);
                }
            }
        }
    }
    return fmax(sum, 0);
}

static void check_convolution(const rondo_tensor *y) {
    assert_true(rondo_shape_is_equal(&y->shape, &(rondo_shape){4, {1, 3, 5, 5}}));
    for (size_t i = 0; i < 75; ++i) {
        const int row = (int)(i % 25 / 5);
        const int column = (int)(i % 5);
        const double above = fmax(convolve(i / 25, row, column), convolve(i / 25, row, column + 1));
        const double below =
            fmax(convolve(i / 25, row + 1, column), convolve(i / 25, row + 1, column + 1));
        assert_true(fabs((double)((const float *)y->data)[i] - fmax(above, below)) <= 1e-5);
    }
}

static void expect_floats(const rondo_tensor *tensor, rondo_shape shape, const double *wanted) {
    assert_true(rondo_shape_is_equal(&tensor->shape, &shape));
    for (int64_t i = 0; i < rondo_shape_get_count(&shape); ++i) {
        assert_true(fabs((double)((const float *)tensor->data)[i] - wanted[i]) <= 1e-6);
    }
}

// rows, normal, normal_x, cost, mean, extents, slice
static void check_calls(const rondo_tensor *outputs) {
    double rows[24];
    double normal[24];
    double x[20];
    double normal_x[20];
    double cost[20];
    double mean = 0;
    for (size_t i = 0; i < 20; ++i) {
        x[i] = (double)code_program_get_number(i);
    }
    for (size_t i = 0; i < 24; ++i) {
        rows[i] = (double)code_program_get_number(i / 4 % 3 * 4 + i % 4);
    }
    for (size_t i = 0; i < 24; ++i) {
        normal[i] = rows[i] / sqrt(get_sum(&rows[i / 4 * 4], 1, 4, i / 4 % 3 * 4, 1) + 1e-6);
    }
    for (size_t i = 0; i < 20; ++i) {
        normal_x[i] = x[i] / sqrt(get_sum(&x[i / 5 * 5], 1, 5, i / 5 * 5, 1) + 0.25);
        cost[i] = (x[i] - normal_x[i]) * (x[i] - normal_x[i]);
        mean += cost[i] / 20;
    }
    expect_floats(&outputs[0], (rondo_shape){3, {BATCH, 2, 4}}, rows);
    expect_floats(&outputs[1], (rondo_shape){3, {BATCH, 2, 4}}, normal);
    expect_floats(&outputs[2], (rondo_shape){2, {4, 5}}, normal_x);
    expect_floats(&outputs[3], (rondo_shape){2, {4, 5}}, cost);
    expect_floats(&outputs[4], (rondo_shape){0}, &mean);
    assert_memory_equal(outputs[5].data, ((const int64_t[]){BATCH, 2, 4}), 24);
    expect_floats(&outputs[6], (rondo_shape){2, {3, 2}},
                  (double[]){x[9], x[7], x[14], x[12], x[19], x[17]});
}

// last and all: three turns that double |x|; each gives out the doubled values times p.
static void check_control(const rondo_tensor *outputs) {
    double last[4];
    double all[12];
    for (size_t i = 0; i < 12; ++i) {
        const double start = fabs((double)code_program_get_number(i % 4));
        all[i] = start * (double)(2 << i / 4) * (double)code_program_get_number(i % 4);
        last[i % 4] = start * 8;
    }
    expect_floats(&outputs[0], (rondo_shape){1, {4}}, last);
    expect_floats(&outputs[1], (rondo_shape){2, {3, 4}}, all);
}

static void test_program_builder__programs_compute(void **state) {
    void (*const checks[])(const rondo_tensor *) = {check_perceptron, check_convolution,
                                                    check_calls, check_control};
    (void)state;
    for (size_t i = 0; i < 4; ++i) {
        rondo_program *program = NULL;
        rondo_tensor outputs[CODE_PROGRAM_OUTPUTS_MAX];
        size_t count = 0;
        OK(code_program_build(&code_programs[i], &program));
        code_program_run(program, outputs, &count);
        checks[i](outputs);
        for (size_t k = 0; k < count; ++k) {
            rondo_tensor_deinit(&outputs[k]);
        }
        rondo_program_destroy(program);
    }
}

// ---- one builder for each test: x [2, 3] and w [3, 4]

static const float twelve[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
static const rondo_shape w_shape = {2, {3, 4}};

static int set_up(void **state) {
    rondo_builder *builder = NULL;
    OK(rondo_builder_create(NULL, &builder));
    OK(rondo_builder_add_input(builder, &PORT("x", RONDO_DTYPE_F32, 2, 3)));
    OK(rondo_builder_add_constant(builder, "w", RONDO_DTYPE_F32, &w_shape, twelve));
    *state = builder;
    return 0;
}

static int tear_down(void **state) {
    rondo_builder_destroy(*state);
    return 0;
}

static rondo_status add(rondo_builder *builder, const char *op, const char *a, const char *b,
                        const char *output) {
    return rondo_builder_add_node(builder, op, NAMES(a, b), b != NULL ? 2 : 1, &output, 1, NULL);
}

static rondo_status add_with(rondo_builder *builder, const char *op, const char *output,
                             const rondo_attribute *attributes, size_t count) {
    const rondo_builder_node_options options = {.struct_size = sizeof options,
                                                .name = "node",
                                                .attributes = attributes,
                                                .attribute_count = count};
    return rondo_builder_add_node(builder, op, NAMES("x"), 1, &output, 1, &options);
}

static void test_program_builder__inputs_and_parameters_are_checked(void **state) {
    rondo_builder *builder = *state;
    const struct {
        rondo_port port;
        const char *words;
    } ports[] = {
        {{.name = NULL, .dtype = RONDO_DTYPE_F32}, "a value needs a name"},
        {{.name = "w", .dtype = RONDO_DTYPE_F32}, "there is a value \"w\" already"},
        {{.name = "a"}, "\"a\": dtype 0"},
        {{.name = "a", .dtype = 99}, "dtype 99"},
        {{.name = "a", .dtype = RONDO_DTYPE_F32, .rank = 9}, "rank 9"},
        {{.name = "a", .dtype = RONDO_DTYPE_F32, .rank = 1, .extent = {-2}}, "extent 0 is -2"},
        {{.name = "a", .dtype = RONDO_DTYPE_F32, .rank = 1, .symbol = {""}}, "without a name"},
        {{.name = "a", .dtype = RONDO_DTYPE_F32, .rank = 2, .extent = {INT64_MAX, 2}},
         "more bytes than can be addressed"},
    };
    for (size_t i = 0; i < sizeof ports / sizeof ports[0]; ++i) {
        rondo_port port = ports[i].port;
        port.struct_size = sizeof port;
        EXPECT(INVALID, ports[i].words, rondo_builder_add_input(builder, &port));
    }
    EXPECT(INVALID, "port is NULL", rondo_builder_add_input(builder, NULL));
    EXPECT(INVALID, "there is a value \"x\" already",
           rondo_builder_add_constant(builder, "x", RONDO_DTYPE_F32, &w_shape, twelve));
    EXPECT(INVALID, "parameter \"v\": data is NULL",
           rondo_builder_add_constant(builder, "v", RONDO_DTYPE_F32, &w_shape, NULL));
    EXPECT(INVALID, "none of numbers and strings",
           rondo_builder_add_constant(builder, "v", RONDO_DTYPE_SEQUENCE, &w_shape, twelve));
    EXPECT(INVALID, "the shape is not valid",
           rondo_builder_add_constant(builder, "v", RONDO_DTYPE_F32,
                                      &(rondo_shape){2, {INT64_MAX, 2}}, twelve));
    const rondo_tensor crooked = {
        RONDO_DTYPE_F32, {1, {2}}, (void *)((uintptr_t)(const void *)twelve + 1), NULL, NULL};
    EXPECT(INVALID, "not aligned to 4 bytes",
           rondo_builder_add_parameter(builder, "v", &crooked, RONDO_PARAMETER_SHARED));
    EXPECT(INVALID, "kind 7", rondo_builder_add_parameter(builder, "v", &crooked, 7));
}

static void test_program_builder__nodes_are_checked(void **state) {
    rondo_builder *builder = *state;
    const rondo_attribute twice[] = {ATTRIBUTE_FLOAT("alpha", 0.5f),
                                     ATTRIBUTE_FLOAT("alpha", 0.0f)};
    const rondo_attribute wrong = ATTRIBUTE_INT("beta", 0);
    const rondo_attribute no_kind = {.name = "alpha"};
    const rondo_attribute no_ints = {.name = "axes", .kind = RONDO_ATTRIBUTE_INTS, .count = 2};
    const rondo_builder_node_options old = {.struct_size = sizeof old, .version = 13};
    const rondo_builder_node_options foreign = {.struct_size = sizeof foreign, .domain = "far"};
    EXPECT(UNSUPPORTED, "unsupported: op Frobnicate version 21",
           add(builder, "Frobnicate", "x", NULL, "y"));
    EXPECT(INVALID, "MatMul node \"\": no input, parameter or node makes a value \"z\"",
           add(builder, "MatMul", "x", "z", "y"));
    EXPECT(INVALID, "has 1 inputs; the op takes 2", add(builder, "MatMul", "x", NULL, "y"));
    EXPECT(INVALID, "input 1 is left out", add(builder, "MatMul", "x", "", "y"));
    EXPECT(INVALID, "there is a value \"w\" already", add(builder, "Relu", "x", NULL, "w"));
    EXPECT(INVALID, "all outputs are left out", add(builder, "Relu", "x", NULL, ""));
    EXPECT(INVALID, "has 2 outputs; the op makes 1",
           rondo_builder_add_node(builder, "Relu", NAMES("x"), 1, NAMES("a", "b"), 2, NULL));
    EXPECT(INVALID, "there is a value \"a\" already",
           rondo_builder_add_node(builder, "TopK", NAMES("x", "x"), 2, NAMES("a", "a"), 2, NULL));
    EXPECT(UNSUPPORTED, "attribute beta", add_with(builder, "Elu", "y", &wrong, 1));
    EXPECT(INVALID, "\"alpha\" stands there twice", add_with(builder, "Elu", "y", twice, 2));
    assert_string_equal(rondo_error_get_last()->op, "node");
    EXPECT(INVALID, "kind 0 is not", add_with(builder, "Elu", "y", &no_kind, 1));
    EXPECT(INVALID, "ints is NULL", add_with(builder, "Elu", "y", &no_ints, 1));
    EXPECT(INVALID, "attributes is NULL", add_with(builder, "Elu", "y", NULL, 1));
    EXPECT(INVALID, "of which the program has version 21",
           rondo_builder_add_node(builder, "Relu", NAMES("x"), 1, NAMES("y"), 1, &old));
    EXPECT(UNSUPPORTED, "op far.Relu version 1",
           rondo_builder_add_node(builder, "Relu", NAMES("x"), 1, NAMES("y"), 1, &foreign));
    EXPECT(INVALID, "op is NULL", rondo_builder_add_node(builder, NULL, NULL, 0, NULL, 0, NULL));
    EXPECT(INVALID, "no input, parameter or node makes a value \"q\"",
           rondo_builder_add_square_error_cost(builder, "x", "q", "cost"));
    EXPECT(INVALID, "epsilon is", rondo_builder_add_l2_normalize(builder, "x", 0, NAN, "n"));
    // After all that the builder is as it was.
    OK(add(builder, "MatMul", "x", "w", "y"));
    OK(rondo_builder_add_output(builder, "y", NULL));
    rondo_program *program = NULL;
    OK(rondo_builder_finish(builder, &program));
    assert_int_equal(rondo_program_get_node_count(program), 1);
    rondo_program_destroy(program);
}

static void test_program_builder__the_end_is_checked(void **state) {
    rondo_builder *builder = *state;
    rondo_program *program = NULL;
    rondo_port wide = {
        .struct_size = sizeof wide, .dtype = RONDO_DTYPE_F32, .rank = 1, .extent = {7}};
    EXPECT(INVALID, "the program has no outputs", rondo_builder_finish(builder, &program));
    EXPECT(INVALID, "makes a value \"y\"", rondo_builder_add_output(builder, "y", NULL));
    EXPECT(INVALID, "\"x\" is f32 [2, 3], which is not as declared",
           rondo_builder_add_output(builder, "x", &wide));
    OK(add(builder, "MatMul", "x", "w", "y"));
    OK(rondo_builder_add_output(builder, "y", &wide));
    EXPECT(INVALID, "\"y\" is an output already", rondo_builder_add_output(builder, "y", NULL));
    EXPECT(BAD_DATA, "output \"y\" is declared f32 [7]; it is f32 [2, 4]",
           rondo_builder_finish(builder, &program));
    assert_null(program);
    OK(add(builder, "MatMul", "w", "w", "bad"));
    EXPECT(BAD_DATA, "MatMul node \"MatMul_1\"", rondo_builder_finish(builder, &program));
    rondo_builder *body = NULL;
    OK(rondo_builder_create_body(builder, NULL, &body));
    EXPECT(INVALID, "a body ends by being", rondo_builder_finish(body, &program));
    wide.name = "n";
    wide.symbol[0] = "batch";
    EXPECT(INVALID, "in a body", rondo_builder_add_input(body, &wide));
    const rondo_attribute branches[] = {ATTRIBUTE_BODY("then_branch", body),
                                        ATTRIBUTE_BODY("else_branch", body)};
    EXPECT(INVALID, "the body is \"then_branch\", too", add_with(builder, "If", "o", branches, 2));
    const rondo_attribute other = ATTRIBUTE_BODY("body", builder);
    EXPECT(INVALID, "for another builder", add_with(builder, "Loop", "o", &other, 1));
    rondo_builder_destroy(body);
}

static void test_program_builder__types_that_differ_are_named(void **state) {
    rondo_builder *builder = *state;
    rondo_program *program = NULL;
    const int64_t one = 1;
    OK(rondo_builder_add_constant(builder, "i", RONDO_DTYPE_I64, &(rondo_shape){0}, &one));
    OK(add(builder, "Add", "x", "i", "y"));
    OK(rondo_builder_add_output(builder, "y", NULL));
    const rondo_status status = rondo_builder_finish(builder, &program);
    assert_true(status == RONDO_STATUS_BAD_DATA || status == RONDO_STATUS_UNSUPPORTED);
    assert_non_null(strstr(rondo_error_get_last()->message, "Add node \"Add_0\""));
}

static void test_program_builder__a_finished_builder_is_empty(void **state) {
    rondo_builder *builder = *state;
    rondo_builder *body = NULL;
    rondo_program *program = NULL;
    OK(rondo_builder_create_body(builder, NULL, &body));
    OK(rondo_builder_add_output(builder, "x", NULL));
    OK(rondo_builder_finish(builder, &program));
    EXPECT(STATE, "the builder is finished", rondo_builder_add_output(builder, "w", NULL));
    EXPECT(STATE, "the builder is finished", add(builder, "Relu", "x", NULL, "y"));
    EXPECT(STATE, "the builder around this body is finished", add(body, "Relu", "x", NULL, "y"));
    rondo_builder_destroy(body);
    rondo_program_destroy(program);
    EXPECT(INVALID, "builder is NULL", rondo_builder_add_output(NULL, "w", NULL));
    EXPECT(INVALID, "opset 8; 9 to 28",
           rondo_builder_create(
               &(rondo_builder_options){.struct_size = sizeof(rondo_builder_options), .opset = 8},
               &body));
}

// ---- parameters: whose bytes

static void test_program_builder__parameters_are_copied_or_shared(void **state) {
    rondo_builder *builder = *state;
    float mine[3] = {1, 2, 3};
    const rondo_tensor tensor = {RONDO_DTYPE_F32, {1, {3}}, mine, NULL, NULL};
    OK(rondo_builder_add_parameter(builder, "copied", &tensor, RONDO_PARAMETER_COPIED));
    OK(rondo_builder_add_parameter(builder, "shared", &tensor, RONDO_PARAMETER_SHARED));
    OK(rondo_builder_add_parameter(builder, "fed", &tensor, RONDO_PARAMETER_INPUT));
    OK(add(builder, "Add", "copied", "shared", "sum"));
    OK(add(builder, "Add", "sum", "fed", "y"));
    OK(rondo_builder_add_output(builder, "y", NULL));
    rondo_program *program = NULL;
    OK(rondo_builder_finish(builder, &program));
    rondo_parameter parameters[4];
    size_t count = 0;
    OK(rondo_program_list_parameters(program, 4, parameters, &count));
    assert_int_equal(count, 4);
    assert_string_equal(parameters[2].name, "shared");
    assert_ptr_equal(parameters[2].tensor->data, mine);
    assert_ptr_not_equal(parameters[1].tensor->data, mine);
    rondo_port fed = {.struct_size = sizeof fed};
    assert_int_equal(rondo_program_get_optional_input_count(program), 1);
    OK(rondo_program_get_optional_input(program, 0, &fed));
    assert_string_equal(fed.name, "fed");
    rondo_program_destroy(program);
}

// ---- reading back

TEST(test_program_builder__programs_are_read_back) {
    rondo_program *program = NULL;
    OK(code_program_build(&code_programs[1], &program));
    rondo_program_node node = {.struct_size = sizeof node};
    rondo_attribute attribute;
    assert_int_equal(rondo_program_get_node_count(program), 3);
    OK(rondo_program_get_node(program, 0, &node));
    assert_string_equal(node.op, "Conv");
    assert_string_equal(node.name, "first");
    assert_int_equal(node.version, 17);
    assert_int_equal(rondo_program_get_opset(program, "ai.onnx"), 17);
    assert_int_equal(rondo_program_get_opset(program, "far"), 0);
    assert_string_equal(rondo_program_get_node_input(program, 0, 1), "w");
    assert_string_equal(rondo_program_get_node_output(program, 2, 0), "y");
    assert_string_equal(rondo_program_get_node_output(program, 2, 1), "");
    assert_null(rondo_program_get_node_output(program, 2, 2));
    assert_null(rondo_program_get_node_input(program, 3, 0));
    OK(rondo_program_get_node_attribute(program, 0, 1, &attribute));
    assert_string_equal(attribute.name, "pads");
    assert_int_equal(attribute.kind, RONDO_ATTRIBUTE_INTS);
    assert_int_equal(attribute.count, 4);
    assert_int_equal(attribute.ints[3], 1);
    OK(rondo_program_get_node_attribute(program, 0, 2, &attribute));
    assert_string_equal(attribute.string_value, "NOTSET");
    EXPECT(INVALID, "attribute 4 asked for",
           rondo_program_get_node_attribute(program, 0, 4, &attribute));
    EXPECT(INVALID, "node 3 asked for", rondo_program_get_node(program, 3, &node));
    rondo_program_destroy(program);
    OK(code_program_build(&code_programs[3], &program));
    OK(rondo_program_get_node_attribute(program, 1, 1, &attribute));
    assert_int_equal(attribute.kind, RONDO_ATTRIBUTE_GRAPH);
    assert_int_equal(rondo_program_get_node_count(attribute.program), 1);
    assert_string_equal(rondo_program_get_node_input(attribute.program, 0, 0), "h");
    rondo_program_destroy(program);
}

TEST(test_program_builder__programs_are_printed) {
    static text_sink text;
    rondo_program *program = NULL;
    OK(code_program_build(&code_programs[0], &program));
    OK(rondo_program_describe(program, RONDO_TEXT_PLAIN, text_sink_append, &text));
    assert_string_equal(text.text,
                        "program perceptron\n"
                        "  inputs\n"
                        "    x  f32 [batch, 4]\n"
                        "  parameters\n"
                        "    w1  f32 [4, 5]\n"
                        "    b1  f32 [5]\n"
                        "    w2  f32 [5, 3]\n"
                        "  nodes\n"
                        "    h = Gemm(x, w1, b1)\n"
                        "    r = Relu(h)\n"
                        "    y = MatMul(r, w2)\n"
                        "  outputs\n"
                        "    y  f32 [?, ?]\n");
    rondo_program_destroy(program);
    OK(code_program_build(&code_programs[3], &program));
    text.length = 0;
    OK(rondo_program_describe(program, RONDO_TEXT_PLAIN, text_sink_append, &text));
    assert_non_null(strstr(text.text, "chosen = If(flag) then_branch=\n    body body"));
    assert_non_null(strstr(text.text, "\n        scaled = Mul(h, p)"));
    text.length = 0;
    OK(rondo_program_describe(program, RONDO_TEXT_JSON, text_sink_append, &text));
    assert_non_null(strstr(text.text, "{\"op\": \"If\", \"domain\": \"\", \"version\": 17"));
    long depth = 0;
    for (size_t i = 0; i < text.length; ++i) {
        depth += text.text[i] == '{' || text.text[i] == '[';
        depth -= text.text[i] == '}' || text.text[i] == ']';
    }
    assert_int_equal(depth, 0);
    EXPECT(INVALID, "format 2",
           rondo_program_describe(program, RONDO_TEXT_DOT, text_sink_append, &text));
    rondo_program_destroy(program);
}

int main(void) {
#define WITH_BUILDER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_program_builder__programs_compute),
        WITH_BUILDER(test_program_builder__inputs_and_parameters_are_checked),
        WITH_BUILDER(test_program_builder__nodes_are_checked),
        WITH_BUILDER(test_program_builder__the_end_is_checked),
        WITH_BUILDER(test_program_builder__types_that_differ_are_named),
        WITH_BUILDER(test_program_builder__a_finished_builder_is_empty),
        WITH_BUILDER(test_program_builder__parameters_are_copied_or_shared),
        cmocka_unit_test(test_program_builder__programs_are_read_back),
        cmocka_unit_test(test_program_builder__programs_are_printed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

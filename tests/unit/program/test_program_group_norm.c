// Normalisations by groups become one op with what stands behind them: which do, with how many
// groups, what is left beside them, and that the results stay.
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

enum { IMAGES = 2, CHANNELS = 6, GROUPS = 3, HEIGHT = 5, WIDTH = 7 };

static void fill(rondo_tensor *tensor, rondo_dtype dtype, const rondo_shape *shape, float first) {
    OK(rondo_tensor_init(dtype, shape, tensor));
    for (int64_t i = 0; i < rondo_shape_get_count(shape); ++i) {
        const float number = i == 0 ? first : (float)((i * 7 + 3) % 11) / 8.0f - 0.5f;
        if (dtype == RONDO_DTYPE_F16) {
            ((uint16_t *)tensor->data)[i] = rondo_f16_from_float(number);
        } else {
            ((float *)tensor->data)[i] = number;
        }
    }
}

static void add_constants(rondo_program *program, rondo_dtype dtype) {
    static const struct {
        const char *name;
        rondo_shape shape;
        float first;
    } constants[] = {
        {"scale", {1, {CHANNELS}}, 1.5f},
        {"shift", {1, {CHANNELS}}, -0.25f},
        {"group_scale", {1, {GROUPS}}, 0.75f},
        {"group_shift", {1, {GROUPS}}, 2.0f},
        {"factor", {3, {CHANNELS, 1, 1}}, -1.25f},
        {"wide_factor", {4, {1, CHANNELS, 1, 1}}, 0.5f},
        {"term", {3, {CHANNELS, 1, 1}}, 0.625f},
        {"infinite", {3, {CHANNELS, 1, 1}}, 1e30f * 1e30f},
        {"by_image", {4, {IMAGES, 1, 1, 1}}, 2.0f},
        {"by_row", {2, {HEIGHT, 1}}, 2.0f},
        {"single", {1, {1}}, 2.0f},
        {"kernel", {4, {CHANNELS, CHANNELS, 1, 1}}, 1.0f},
    };
    static const struct {
        const char *name;
        int64_t count, extents[4];
    } shapes[] = {
        {"to_groups", 3, {0, GROUPS, -1}},
        {"to_flat", 3, {0, CHANNELS, -1}},
        {"to_joined", 3, {1, CHANNELS, -1}},
        {"back", 4, {IMAGES, CHANNELS, HEIGHT, WIDTH}},
        {"to_turned", 4, {IMAGES, CHANNELS, WIDTH, HEIGHT}},
    };
    rondo_tensor tensor;
    int32_t value;
    for (size_t i = 0; i < sizeof constants / sizeof constants[0]; ++i) {
        fill(&tensor, dtype, &constants[i].shape, constants[i].first);
        OK(rondo__program_add_constant(program, constants[i].name, &tensor, &value));
        rondo_tensor_deinit(&tensor);
    }
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; ++i) {
        const rondo_shape shape = {1, {shapes[i].count}};
        OK(rondo_tensor_init(RONDO_DTYPE_I64, &shape, &tensor));
        memcpy(tensor.data, shapes[i].extents, (size_t)shapes[i].count * sizeof(int64_t));
        OK(rondo__program_add_constant(program, shapes[i].name, &tensor, &value));
        rondo_tensor_deinit(&tensor);
    }
}

static void add_input(rondo_program *program, const char *name, rondo_dtype dtype,
                      const rondo_shape *shape) {
    int32_t value;
    OK(rondo__program_add_shaped(program, name, dtype, shape, &value));
    OK(rondo__program_add_input(program, value));
}

// "Op inputs > output". Instance and Group stand for their normalisations, Group18 for the one that
// scales by group.
static void add_line(rondo_program *program, char *line) {
    char *rest = NULL;
    const char *name = strtok_r(line, " ", &rest);
    const bool is_group = strncmp(name, "Group", 5) == 0, is_old = strcmp(name, "Group18") == 0;
    int32_t inputs[4], output;
    size_t count = 0;
    const char *word = strtok_r(NULL, " ", &rest);
    for (; strcmp(word, ">") != 0; word = strtok_r(NULL, " ", &rest)) {
        inputs[count] = rondo__program_find_value(program, word);
        assert_true(inputs[count++] >= 0);
    }
    OK(rondo__program_add_value(program, strtok_r(NULL, " ", &rest), &output));
    OK(rondo__program_add_simple(program, "",
                                 is_group                        ? "GroupNormalization"
                                 : strcmp(name, "Instance") == 0 ? "InstanceNormalization"
                                                                 : name,
                                 NULL, inputs, count, &output, 1));
    rondo__op *op = &program->nodes[program->node_count - 1].op;
    if (is_group) {
        op->opset = is_old ? 18 : 21;
        OK(rondo__op_set_int(op, "num_groups", GROUPS));
        OK(rondo__op_set_float(op, "epsilon", 0.125f));
    }
    if (strcmp(name, "LeakyRelu") == 0) {
        OK(rondo__op_set_float(op, "alpha", 0.25f));
    }
}

typedef struct row {
    const char *story, *lines;
    int64_t groups;  // of the one op; 0: there is none
    const char *ending;
    size_t node_count;  // afterwards
} row;

#define BETWEEN_RESHAPES \
    "Reshape x to_groups > a;Instance a group_scale group_shift > b;Reshape b back > c;"

static const row rows[] = {
    {"each channel by itself", "Instance x scale shift > y", CHANNELS, "none", 1},
    {"an activation", "Instance x scale shift > a;LeakyRelu a > y", CHANNELS, "leaky_relu", 1},
    {"x * sigmoid(x)", "Instance x scale shift > a;Sigmoid a > s;Mul a s > y", CHANNELS, "silu", 1},
    {"as PyTorch writes it",
     BETWEEN_RESHAPES "Mul c factor > d;Add d term > e;Sigmoid e > s;Mul s e > y", GROUPS, "silu",
     1},
    {"operands the other way round",
     BETWEEN_RESHAPES "Mul wide_factor c > d;Add term d > e;Relu e > y", GROUPS, "relu", 1},
    {"the sum before the factor", BETWEEN_RESHAPES "Add c term > d;Mul d factor > y", GROUPS,
     "none", 1},
    {"two factors, no sum", BETWEEN_RESHAPES "Mul c factor > d;Mul d wide_factor > y", GROUPS,
     "none", 1},
    {"neither", BETWEEN_RESHAPES "Tanh c > y", GROUPS, "tanh", 1},
    {"ONNX's own, by channel", "Group x scale shift > a;Relu a > y", GROUPS, "relu", 1},
    {"ONNX's own, by group", "Group18 x group_scale group_shift > a;Mul a factor > y", GROUPS,
     "none", 1},
    {"one axis", "Reshape x to_flat > a;Instance a scale shift > b;Relu b > y", CHANNELS, "relu",
     2},
    {"another shape behind it",
     "Reshape x to_groups > a;Instance a group_scale group_shift > b;Reshape b to_turned > y",
     GROUPS, "none", 3},
    {"images joined", "Reshape x to_joined > a;Instance a scale shift > b;Reshape b back > y",
     CHANNELS, "none", 3},
    {"a scale that is computed", "Instance x m shift > a;Mul a factor > y", CHANNELS, "none", 2},
    {"one by group, too", "Reshape x to_groups > a;Instance a n group_shift > b;Reshape b back > y",
     GROUPS, "none", 3},
    {"version 18 of it", "Group18 x n group_shift > y", 0, NULL, 1},
    {"a factor by image", "Instance x scale shift > a;Mul a by_image > y", CHANNELS, "none", 2},
    {"a factor by row", "Instance x scale shift > a;Mul a by_row > y", CHANNELS, "none", 2},
    {"one number", "Instance x scale shift > a;Mul a single > y", CHANNELS, "none", 2},
    {"a factor that is computed", "Instance x scale shift > a;Mul a x > y", CHANNELS, "none", 2},
    {"no finite factor", "Instance x scale shift > a;Mul a infinite > b;Relu b > y", CHANNELS,
     "none", 3},
    {"a square", "Instance x scale shift > a;Mul a a > y", CHANNELS, "none", 2},
    {"another use", "Instance x scale shift > a;Mul a factor > b;Add a b > y", CHANNELS, "none", 3},
    {"another use of what was reshaped",
     BETWEEN_RESHAPES "Add b a > d;Reshape d back > e;Add c e > y", GROUPS, "none", 6},
    {"no ending", "Instance x scale shift > a;Softplus a > y", CHANNELS, "none", 2},
};

static rondo_program *build(const char *lines, rondo_dtype dtype) {
    const rondo_shape image = {4, {IMAGES, CHANNELS, HEIGHT, WIDTH}};
    const rondo_shape by_channel = {1, {CHANNELS}}, by_group = {1, {GROUPS}};
    rondo_program *program;
    char text[256], *rest = NULL;
    (void)snprintf(text, sizeof text, "%s", lines);
    OK(rondo__program_create("p", &program));
    add_input(program, "x", dtype, &image);
    add_input(program, "m", dtype, &by_channel);
    add_input(program, "n", dtype, &by_group);
    add_constants(program, dtype);
    for (char *line = strtok_r(text, ";", &rest); line != NULL; line = strtok_r(NULL, ";", &rest)) {
        add_line(program, line);
    }
    OK(rondo__program_add_output(program, rondo__program_find_value(program, "y")));
    OK(rondo__program_verify(program));
    return program;
}

typedef struct model {
    rondo_program *source, *program;
    rondo_tensor inputs[3], expected[1];
} model;

static void load(model *m, const char *lines, rondo_dtype dtype) {
    rondo_tensor shapes[3] = {{0}};
    m->source = build(lines, dtype);
    for (size_t i = 0; i < 3; ++i) {
        const rondo__value *value = &m->source->values[m->source->inputs[i]];
        rondo_shape shape;
        assert_true(rondo__value_get_shape(value, &shape));
        fill(&m->inputs[i], dtype, &shape, 0.25f);
        shapes[i] = (rondo_tensor){.dtype = dtype, .shape = shape};
    }
    OK(rondo__program_specialise(m->source, shapes, 1 << 20, &m->program, NULL));
    OK(interpret_program(m->program, m->inputs, m->expected));
}

// How far the program's results are from what they were. Then all of it is gone.
static double unload(model *m) {
    rondo_tensor outputs[1];
    OK(interpret_program(m->program, m->inputs, outputs));
    const double error = compare_tensors(&outputs[0], &m->expected[0]);
    for (size_t i = 0; i < 3; ++i) {
        rondo_tensor_deinit(&m->inputs[i]);
    }
    rondo_tensor_deinit(&m->expected[0]);
    rondo_tensor_deinit(&outputs[0]);
    rondo_program_destroy(m->program);
    rondo_program_destroy(m->source);
    return error;
}

static const rondo__node *find_norm(const rondo_program *program, size_t *out_count) {
    const rondo__node *found = NULL;
    *out_count = 0;
    for (size_t n = 0; n < program->node_count; ++n) {
        if (rondo__node_is(&program->nodes[n], RONDO__FUSED_GroupNormalization)) {
            found = &program->nodes[n];
            *out_count += 1;
        }
    }
    return found;
}

static void check_row(const row *r, rondo_dtype dtype, double tolerance) {
    model m;
    size_t count;
    load(&m, r->lines, dtype);
    OK(rondo__pass_silu(m.program));
    OK(rondo__pass_group_norm(m.program));
    const rondo__node *norm = find_norm(m.program, &count);
    const size_t nodes = m.program->node_count;
    const int64_t groups = norm != NULL ? rondo__op_get_int(&norm->op, "groups", 0) : 0;
    const bool is_ending =
        norm == NULL || strcmp(rondo__op_get_string(&norm->op, "activation", ""), r->ending) == 0;
    // What is not finite stays so, and has no difference.
    const bool is_finite = strstr(r->lines, "infinite") == NULL;
    const double error = unload(&m);
    if (count != (r->groups > 0 ? 1 : 0) || groups != r->groups || !is_ending ||
        nodes != r->node_count || (is_finite && !(error <= tolerance))) {
        fail_msg("%s, %s: %zu norms, %lld groups, %zu nodes, error %g%s", r->story,
                 rondo_dtype_get_name(dtype), count, (long long)groups, nodes, error,
                 is_ending ? "" : ", another ending");
    }
}

TEST(test_program_group_norm__forms) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        check_row(&rows[i], RONDO_DTYPE_F32, 1e-5);
        check_row(&rows[i], RONDO_DTYPE_F16, 1e-2);
    }
}

TEST(test_program_group_norm__double_precision_stays) {
    const row r = {"f64", "Instance x scale shift > a;Sigmoid a > s;Mul a s > y", 0, NULL, 3};
    model m = {.source = build(r.lines, RONDO_DTYPE_F32)};
    for (size_t v = 0; v < m.source->value_count; ++v) {
        m.source->values[v].dtype = RONDO_DTYPE_F64;
    }
    size_t count;
    OK(rondo__pass_silu(m.source));
    OK(rondo__pass_group_norm(m.source));
    assert_null(find_norm(m.source, &count));
    assert_int_equal(m.source->node_count, r.node_count);
    rondo_program_destroy(m.source);
}

// Between convolutions nothing turns the image any more: once in front, once behind.
TEST(test_program_group_norm__follows_nhwc) {
    static const rondo__pass_options all = {.channels_last = true,
                                            .fuse_convolution = true,
                                            .fuse_group_norm = true,
                                            .fuse_elementwise = true};
    static const struct {
        const char *lines;
        size_t norms, transposes;
        int64_t channels_last;
    } forms[] = {
        {"Conv x kernel > w;Instance w scale shift > a;Relu a > b;Conv b kernel > y", 1, 2, 1},
        {"Conv x kernel > w;Reshape w to_groups > a;Instance a group_scale group_shift > b;"
         "Reshape b back > c;Mul c factor > d;Sigmoid d > s;Mul d s > e;Conv e kernel > y",
         1, 2, 1},
        {"Instance x scale shift > a;Conv a kernel > y", 1, 2, 0},
        {"Instance x scale shift > y", 1, 0, 0},
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; ++i) {
        model m;
        size_t count, transposes = 0;
        load(&m, forms[i].lines, RONDO_DTYPE_F32);
        OK(rondo__program_simplify(m.program));
        OK(rondo__program_optimise(m.program, &all));
        const rondo__node *norm = find_norm(m.program, &count);
        for (size_t n = 0; n < m.program->node_count; ++n) {
            transposes += rondo__node_is(&m.program->nodes[n], RONDO__OP_Transpose) ? 1 : 0;
        }
        assert_int_equal(count, forms[i].norms);
        assert_int_equal(rondo__op_get_int(&norm->op, "channels_last", -1), forms[i].channels_last);
        assert_int_equal(transposes, forms[i].transposes);
        assert_true(unload(&m) <= 1e-5);
    }
}

TEST_MAIN()

// Which convolutions on shortcuts go into the one they are added to, which products leave moments,
// and that the results stay the same.
// SPDX-License-Identifier: Apache-2.0
#include <stdbool.h>
#include "program/edit.h"
#include "program/passes/passes.h"
#include "support/cases/interpret.h"
#include "support/cases/pass_program.h"
#include "support/expect_ok.h"
#include "support/test.h"

static void fill(rondo_tensor *tensor, int64_t seed) {
    for (int64_t e = 0; e < rondo_shape_get_count(&tensor->shape); ++e) {
        const float value = (float)((e * 7 + seed * 5 + e / 11) % 23) / 32.0f - 0.3f;
        ((uint16_t *)tensor->data)[e] = rondo_f16_from_float(value);
    }
}

static int32_t add_constant(rondo_program *program, const rondo_shape *shape, int64_t seed) {
    rondo_tensor tensor;
    OK(rondo_tensor_init(RONDO_DTYPE_F16, shape, &tensor));
    fill(&tensor, seed);
    const int32_t value = pass_add_constant(program, &tensor);
    rondo_tensor_deinit(&tensor);
    return value;
}

static int32_t add_input(rondo_program *program, const rondo_shape *shape) {
    return pass_add_input(program, RONDO_DTYPE_F16, shape);
}

static void rewrite_and_compare(rondo_program *program, rondo_status (*rewrite)(rondo_program *),
                                const char *what) {
    rondo_tensor x[2] = {{0}};
    for (size_t i = 0; i < program->input_count; ++i) {
        rondo_shape shape;
        assert_true(rondo__value_get_shape(&program->values[program->inputs[i]], &shape));
        OK(rondo_tensor_init(RONDO_DTYPE_F16, &shape, &x[i]));
        fill(&x[i], (int64_t)i + 40);
    }
    pass_rewrite(program, rewrite, x, 1e-2, what);
    rondo_tensor_deinit(&x[0]);
    rondo_tensor_deinit(&x[1]);
}

// ---- shortcuts --------------------------------------------------------------------------------

typedef struct row {
    const char *what;
    int64_t kernel;    // of the convolution that is added to; 0: 1
    int64_t channels;  // of x; 0: 64
    int64_t second_channels;
    int64_t stride, second_kernel;  // of the shortcut; 0: 1
    int64_t first_stride;           // of the other; 0: 1
    int64_t group;
    bool has_no_bias, has_no_second_bias;
    bool first_is_last;  // channels
    const char *activation;
    bool is_shown, is_read_twice, computes_weights;
    bool is_joined;
} row;

static const row rows[] = {
    {.what = "single pixels", .is_joined = true},
    {.what = "a stride", .stride = 2, .is_joined = true},
    {.what = "a window", .kernel = 3, .stride = 2, .is_joined = true},
    {.what = "no bias", .has_no_bias = true, .has_no_second_bias = true, .is_joined = true},
    {.what = "a bias of the shortcut alone", .has_no_bias = true, .is_joined = true},
    {.what = "channels that fill no step",
     .channels = 24,
     .second_channels = 40,
     .is_joined = true},
    {.what = "a stride on the first",
     .channels = 24,
     .first_stride = 2,
     .second_channels = 40,
     .is_joined = true},
    {.what = "strides on both",
     .channels = 24,
     .first_stride = 2,
     .second_channels = 40,
     .stride = 2},
    {.what = "a window of few channels", .kernel = 3, .channels = 32},
    {.what = "channels that fill no row", .second_channels = 12},
    {.what = "a window on the shortcut", .second_kernel = 3},
    {.what = "a long stride", .stride = 3},
    {.what = "groups", .group = 2},
    {.what = "an activation on the shortcut", .activation = "relu"},
    {.what = "a shortcut that is an output", .is_shown = true},
    {.what = "a shortcut that is read twice", .is_read_twice = true},
    {.what = "computed weights", .computes_weights = true},
    {.what = "channels first", .first_is_last = true},
};

static int64_t or_one(int64_t value) {
    return value > 0 ? value : 1;
}

static void set_window(rondo_program *program, const row *r, int64_t kernel, int64_t stride) {
    rondo__op *op = &program->nodes[program->node_count - 1].op;
    const int64_t kernels[] = {kernel, kernel}, strides[] = {stride, stride}, ones[] = {1, 1};
    const int64_t half = kernel / 2, pads[] = {half, half, half, half};
    OK(rondo__op_set_ints(op, "kernel_shape", kernels, 2));
    OK(rondo__op_set_ints(op, "strides", strides, 2));
    OK(rondo__op_set_ints(op, "dilations", ones, 2));
    OK(rondo__op_set_ints(op, "pads", pads, 4));
    OK(rondo__op_set_int(op, "channels_last", r->first_is_last ? 0 : 1));
}

static rondo_shape make_image(const row *r, int64_t channels, int64_t height, int64_t width) {
    return r->first_is_last ? (rondo_shape){4, {1, channels, height, width}}
                            : (rondo_shape){4, {1, height, width, channels}};
}

static rondo_program *make_program(const row *r) {
    enum { HEIGHT = 3, WIDTH = 4, FILTERS = 8 };
    const int64_t channels = r->channels > 0 ? r->channels : 64, group = or_one(r->group);
    const int64_t second = r->second_channels > 0 ? r->second_channels : 16;
    const int64_t kernel = or_one(r->kernel), stride = or_one(r->stride);
    const int64_t second_kernel = or_one(r->second_kernel);
    const int64_t first_stride = or_one(r->first_stride);
    const rondo_shape x_shape =
        make_image(r, channels, HEIGHT * first_stride, WIDTH * first_stride);
    const rondo_shape x2_shape = make_image(r, second, HEIGHT * stride, WIDTH * stride);
    const rondo_shape w_shape = {4, {FILTERS, channels / group, kernel, kernel}};
    const rondo_shape w2_shape = {4, {FILTERS, second, second_kernel, second_kernel}};
    const rondo_shape list = {1, {FILTERS}};
    rondo_program *program;
    OK(rondo__program_create("shortcut", &program));
    const int32_t x = add_input(program, &x_shape), x2 = add_input(program, &x2_shape);
    const int32_t none = RONDO__VALUE_NONE;
    int32_t w2 = add_constant(program, &w2_shape, 2);
    if (r->computes_weights) {
        const int32_t sum[] = {w2, w2};
        w2 = pass_add_node(program, "", "Add", sum, 2);
        OK(rondo__program_add_output(program, w2));
    }
    const int32_t of_second[] = {x2, w2,
                                 r->has_no_second_bias ? none : add_constant(program, &list, 3)};
    const int32_t z = pass_add_node(program, "rondo", "Conv", of_second, 3);
    set_window(program, r, second_kernel, stride);
    if (r->activation != NULL) {
        OK(rondo__op_set_string(&program->nodes[program->node_count - 1].op, "activation",
                                r->activation));
    }
    const int32_t of_first[] = {x, add_constant(program, &w_shape, 4),
                                r->has_no_bias ? none : add_constant(program, &list, 5), z};
    int32_t y = pass_add_node(program, "rondo", "Conv", of_first, 4);
    set_window(program, r, kernel, first_stride);
    OK(rondo__op_set_int(&program->nodes[program->node_count - 1].op, "group", group));
    OK(rondo__op_set_string(&program->nodes[program->node_count - 1].op, "activation", "relu"));
    if (r->is_read_twice) {
        const int32_t sum[] = {y, z};
        y = pass_add_node(program, "", "Add", sum, 2);
    }
    OK(rondo__program_add_output(program, y));
    if (r->is_shown) {
        OK(rondo__program_add_output(program, z));
    }
    return program;
}

TEST(test_program_pass_shortcut__what_is_joined) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        const row *r = &rows[i];
        rondo_program *program =
            r->computes_weights ? make_program(r) : pass_specialise(make_program(r));
        if (r->computes_weights) {  // a specialised program would know the sum
            OK(rondo__pass_shortcut(program));
        } else {
            rewrite_and_compare(program, rondo__pass_shortcut, r->what);
        }
        const rondo__node *node = interpret_find(program, RONDO__FUSED_Conv);
        const bool is_joined = node != NULL && node->input_count == 6;
        if (is_joined != r->is_joined) {
            fail_msg("%s: %s", r->what, is_joined ? "joined" : "not joined");
        }
        rondo_program_destroy(program);
    }
}

// ---- moments ----------------------------------------------------------------------------------

typedef struct moment_row {
    const char *what;
    int64_t rows, columns;
    bool reshapes;     // between the two
    bool is_sum;       // an Add makes the rows
    bool has_moments;  // afterwards
} moment_row;

static const moment_row moment_rows[] = {
    {.what = "a product", .rows = 16, .columns = 64, .has_moments = true},
    {"a product in another shape", 32, 96, .reshapes = true, .has_moments = true},
    {.what = "few rows", .rows = 15, .columns = 64},
    {.what = "columns that are no whole parts", .rows = 16, .columns = 72},
    {"a sum", 16, 64, .is_sum = true},
};

static rondo_program *make_norm(const moment_row *r) {
    enum { DEPTH = 8, FILTERS = 16 };
    const rondo_shape a = {2, {r->rows, DEPTH}}, v = {2, {DEPTH, r->columns}};
    const rondo_shape w = {2, {r->columns, FILTERS}}, list = {1, {r->columns}};
    const rondo_shape turned = {3, {2, r->rows / 2, r->columns}};
    rondo_program *program;
    OK(rondo__program_create("moments", &program));
    const int32_t of_product[] = {add_input(program, &a), add_constant(program, &v, 1)};
    int32_t x = pass_add_node(program, "rondo", "MatMul", of_product, 2);
    if (r->is_sum) {
        const int32_t sum[] = {x, x};
        x = pass_add_node(program, "", "Add", sum, 2);
    }
    if (r->reshapes) {
        int32_t reshaped;
        OK(rondo__program_add_shaped(program, "rows", RONDO_DTYPE_F16, &turned, &reshaped));
        OK(rondo__program_add_reshape(program, x, reshaped, &turned));
        x = reshaped;
    }
    const int32_t none = RONDO__VALUE_NONE;
    const int32_t of_norm[] = {x, add_constant(program, &w, 2), none, none,
                               add_constant(program, &list, 3)};
    OK(rondo__program_add_output(program,
                                 pass_add_node(program, "rondo", "NormMatMul", of_norm, 5)));
    return program;
}

TEST(test_program_pass_moments__what_has_them) {
    for (size_t i = 0; i < sizeof moment_rows / sizeof moment_rows[0]; ++i) {
        const moment_row *r = &moment_rows[i];
        rondo_program *program = pass_specialise(make_norm(r));
        rewrite_and_compare(program, rondo__pass_moments, r->what);
        const rondo__node *norm = interpret_find(program, RONDO__FUSED_NormMatMul);
        const rondo__node *product = interpret_find(program, RONDO__FUSED_MatMul);
        const bool has_moments = norm->input_count == 7 && product->output_count == 2 &&
                                 norm->inputs[6] == product->outputs[1];
        if (has_moments != r->has_moments) {
            fail_msg("%s: %s", r->what, has_moments ? "has moments" : "has none");
        }
        rondo_program_destroy(program);
    }
}

TEST_MAIN()

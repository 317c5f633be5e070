// Weights and addends that are denormal beside others of their constant become zeros for the
// products of the host, and stay for everybody else, and for logarithms.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "program/passes/passes.h"
#include "rondo/builder.h"
#include "rondo/models.h"
#include "support/expect_ok.h"
#include "support/models/build_node.h"
#include "support/short_forms.h"
#include "support/sweep.h"
#include "support/test.h"

enum { ROWS = 4, COLUMNS = 512, WIDE = 4096 };  // WIDE: of these a part is read

typedef struct weights_row {
    const char *story;
    float large, small;
    bool is_cleared;
} weights_row;

static const weights_row rows[] = {
    {"denormal beside usual ones", 0.5f, -1e-40f, true},
    {"the largest denormal", 0.5f, -1.1754942e-38f, true},
    {"the least normal number", 0.5f, -1.17549435e-38f, false},
    {"Planck's constant", 3e8f, 6.626e-34f, false},
    {"beside 2^-63", 1.1e-19f, 1e-40f, true},
    {"all are small", 5e-20f, 1e-40f, false},
    {"beside infinity", INFINITY, 1e-40f, true},
    {"nothing small", 0.5f, 0.25f, false},
};

// The first column is small, in all else the others are.
static void fill(float *values, int64_t height, int64_t width, const weights_row *row) {
    for (int64_t i = 0; i < height * width; ++i) {
        values[i] = i % width == 0 ? row->small : i % width == 1 ? row->large : 0.0f;
    }
}

// y = x w + b, and m = x * w, which reads the same weights.
// And l, the logarithm of z, where asked for.
static rondo_program *build_beside(const weights_row *row, int64_t width, const char *log_op) {
    static float values[WIDE * WIDE / 8];
    const int64_t height = width == WIDE ? WIDE / 8 : ROWS;
    rondo_builder *builder;
    OK(rondo_builder_create(NULL, &builder));
    OK(rondo_builder_add_input(builder, &PORT("x", RONDO_DTYPE_F32, 1, height)));
    OK(rondo_builder_add_input(builder, &PORT("z", RONDO_DTYPE_F32, height, width)));
    fill(values, height, width, row);
    const rondo_binding w = BIND("w", RONDO_DTYPE_F32, values, height, width);
    OK(rondo_builder_add_parameter(builder, "w", &w.tensor, RONDO_PARAMETER_COPIED));
    const rondo_binding b = BIND("b", RONDO_DTYPE_F32, values, width);
    OK(rondo_builder_add_parameter(builder, "b", &b.tensor, RONDO_PARAMETER_COPIED));
    OK(rondo_builder_add_node(builder, "MatMul", (const char *[]){"x", "w"}, 2,
                              (const char *[]){"p"}, 1, NULL));
    OK(rondo_builder_add_node(builder, "Add", (const char *[]){"b", "p"}, 2, (const char *[]){"y"},
                              1, NULL));
    OK(rondo_builder_add_node(builder, "Mul", (const char *[]){"z", "w"}, 2, (const char *[]){"m"},
                              1, NULL));
    OK(rondo_builder_add_output(builder, "y", NULL));
    OK(rondo_builder_add_output(builder, "m", NULL));
    if (log_op != NULL) {
        OK(rondo_builder_add_node(builder, log_op, (const char *[]){"z"}, 1, (const char *[]){"l"},
                                  1, NULL));
        OK(rondo_builder_add_output(builder, "l", NULL));
    }
    return build_finish(builder);
}

static rondo_program *build(const weights_row *row, int64_t width) {
    return build_beside(row, width, NULL);
}

static const float *find_constant(const rondo_program *program, rondo__op_id op, size_t input) {
    for (size_t n = 0; n < program->node_count; ++n) {
        if (rondo__node_is(&program->nodes[n], op)) {
            return program->values[program->nodes[n].inputs[input]].constant.data;
        }
    }
    return NULL;
}

static void expect_column(const char *story, const float *found, int64_t width,
                          const weights_row *row, bool is_cleared) {
    assert_non_null(found);
    const float small = is_cleared ? 0.0f : row->small;
    if (found[0] != small || !signbit(found[0]) != !signbit(row->small) || found[1] != row->large ||
        found[width] != small || found[width + 1] != row->large) {
        fail_msg("%s: %s: %g %g, %g %g", row->story, story, (double)found[0], (double)found[1],
                 (double)found[width], (double)found[width + 1]);
    }
}

TEST(test_program_pass_denormals__small_weights_are_zeros) {
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; ++r) {
        for (int64_t width = COLUMNS; width <= WIDE; width += WIDE - COLUMNS) {
            rondo_program *program = build(&rows[r], width);
            OK(rondo__pass_denormals(program));
            expect_column("weights", find_constant(program, RONDO__OP_MatMul, 1), width, &rows[r],
                          rows[r].is_cleared);
            expect_column("factors", find_constant(program, RONDO__OP_Mul, 1), width, &rows[r],
                          false);
            const float *addends = find_constant(program, RONDO__OP_Add, 0);
            assert_true(addends[0] == (rows[r].is_cleared ? 0.0f : rows[r].small));
            assert_true(addends[1] == rows[r].large);
            rondo_program_destroy(program);
        }
    }
}

TEST(test_program_pass_denormals__no_memory) {
    bool has_failed = true;
    size_t n = 0;
    for (; has_failed; ++n) {
        rondo_program *program = build(&rows[0], COLUMNS);
        sweep_fail_allocation(n, false);
        const rondo_status status = rondo__pass_denormals(program);
        has_failed = sweep_end_allocations();
        assert_int_equal(status, has_failed ? RONDO_STATUS_NO_MEMORY : RONDO_STATUS_OK);
        rondo_program_destroy(program);
    }
    assert_true(n > 5);
}

static float find_sum(rondo_program *program, rondo_device *device,
                      const rondo_executor_options *options) {
    static float x[ROWS] = {0x1p126f, 0x1p126f, 0x1p126f, 0x1p126f}, z[ROWS * COLUMNS];
    const rondo_binding feeds[] = {BIND("x", RONDO_DTYPE_F32, x, 1, ROWS),
                                   BIND("z", RONDO_DTYPE_F32, z, ROWS, COLUMNS)};
    rondo_binding fetch = {.name = "y"};
    rondo_executor *executor;
    OK(rondo_executor_create(program, device, options, &executor));
    OK(rondo_executor_run(executor, feeds, 2, &fetch, 1));
    const float sum = ((const float *)fetch.tensor.data)[0];
    rondo_tensor_deinit(&fetch.tensor);
    rondo_executor_destroy(executor);
    return sum;
}

// Feeds that large show it: the host computes without what it does not need to compute, and with
// all of it when asked to run the model as it is.
TEST(test_program_pass_denormals__by_the_host) {
    const weights_row row = {"a test", 0.5f, 0x1p-128f, true};
    const rondo_executor_options plain = {.struct_size = sizeof plain, .op_by_op = true};
    const rondo_executor_options unfolded = {.struct_size = sizeof unfolded, .no_folding = true};
    rondo_program *program = build(&row, COLUMNS);
    rondo_device *device;
    OK(rondo_device_open("host", &device));
    assert_true(find_sum(program, device, NULL) == 0.0f);
    assert_true(find_sum(program, device, &plain) == 1.0f);
    assert_true(find_sum(program, device, &unfolded) == 1.0f);
    rondo_program_destroy(program);
    static const char *const logs[] = {"Log", "ReduceLogSum"};  // they tell denormals from zeros
    for (size_t i = 0; i < sizeof logs / sizeof logs[0]; ++i) {
        program = build_beside(&row, COLUMNS, logs[i]);
        assert_true(find_sum(program, device, NULL) == 1.0f);
        rondo_program_destroy(program);
    }
    rondo_device_release(device);
}

TEST_MAIN()

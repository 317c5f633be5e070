// Which casts go into the product before them, and what that product then makes.
// SPDX-License-Identifier: Apache-2.0
#include <stdbool.h>
#include <string.h>

#include "program/edit.h"
#include "program/passes/passes.h"
#include "support/cases/interpret.h"
#include "support/cases/pass_program.h"
#include "support/expect_ok.h"
#include "support/test.h"

enum { FLOAT = 1, HALF = 10, DOUBLE = 11, SIDE = 8 };

typedef struct row {
    const char *what;
    const char *op;      // of the cast; NULL: Cast
    const char *second;  // another op of the same rondo.Elementwise
    int64_t to;          // 0: f32
    bool activates;      // an op between product and cast, which no product takes in
    bool shows_half;     // the product's own result is an output, too
    bool is_widened;
} row;

static const row rows[] = {
    {.what = "Cast", .is_widened = true},
    {.what = "what pass_half makes", .op = "Saturate", .is_widened = true},
    {.what = "another op", .op = "Neg"},
    {.what = "a cast and another op", .op = "Saturate", .second = "Neg"},
    {.what = "to f64", .to = DOUBLE},
    {.what = "to f16", .to = HALF},
    {.what = "behind another op", .activates = true},
    {.what = "of what others see", .shows_half = true},
};

static const rondo_shape square = {2, {SIDE, SIDE}};

// Products of numbers up to 300: some results are beyond the range of f16.
static void make_half(rondo_tensor *tensor) {
    OK(rondo_tensor_init(RONDO_DTYPE_F16, &square, tensor));
    for (int64_t e = 0; e < SIDE * SIDE; ++e) {
        ((uint16_t *)tensor->data)[e] = rondo_f16_from_float((float)(e * 7 % 61) * 5.0f - 0.125f);
    }
}

static int32_t add_node(rondo_program *program, const char *domain, const char *op, int32_t first,
                        int32_t second) {
    const int32_t inputs[2] = {first, second};
    return pass_add_node(program, domain, op, inputs, second >= 0 ? 2 : 1);
}

static int32_t add_cast(rondo_program *program, const row *r, int32_t value) {
    const int64_t to = r->to != 0 ? r->to : FLOAT;
    if (r->op == NULL) {
        const int32_t cast = add_node(program, "", "Cast", value, RONDO__VALUE_NONE);
        OK(rondo__op_set_int(&program->nodes[program->node_count - 1].op, "to", to));
        return cast;
    }
    const char *ops[2] = {r->op, r->second};
    static const int64_t operands[6] = {0, -1, -1, 1, -1, -1};
    const size_t count = r->second != NULL ? 2 : 1;
    const int32_t cast = add_node(program, "rondo", "Elementwise", value, RONDO__VALUE_NONE);
    rondo__op *op = &program->nodes[program->node_count - 1].op;
    OK(rondo__op_set_strings(op, "ops", ops, count));
    OK(rondo__op_set_ints(op, "operands", operands, 3 * count));
    OK(rondo__op_set_int(op, "to", to));
    return cast;
}

static rondo_program *make_program(const row *r, const rondo_tensor *weights) {
    rondo_program *source;
    OK(rondo__program_create("widen", &source));
    const int32_t x = pass_add_input(source, RONDO_DTYPE_F16, &square);
    const int32_t w = pass_add_constant(source, weights);
    int32_t y = add_node(source, "", "MatMul", x, w);
    if (r->shows_half) {
        OK(rondo__program_add_output(source, y));
    }
    y = r->activates ? add_node(source, "", "Softsign", y, RONDO__VALUE_NONE) : y;
    OK(rondo__program_add_output(source, add_cast(source, r, y)));
    return pass_specialise(source);
}

// As f16 holds it: what the cast had to work with.
static void round_to_half(rondo_tensor *tensor) {
    float *values = tensor->data;
    for (int64_t e = 0; e < SIDE * SIDE && tensor->dtype == RONDO_DTYPE_F32; ++e) {
        values[e] = rondo_f16_to_float(rondo_f16_from_float(values[e]));
    }
}

static void check_row(const row *r) {
    rondo_tensor x, expected[2] = {{0}}, results[2] = {{0}};
    make_half(&x);
    rondo_program *program = make_program(r, &x);
    OK(interpret_program(program, &x, expected));
    const rondo_dtype dtype = program->values[program->outputs[program->output_count - 1]].dtype;
    OK(rondo__pass_matmul(program));
    const size_t node_count = program->node_count;
    OK(rondo__pass_widen(program));
    if ((program->node_count < node_count) != r->is_widened) {
        fail_msg("%s: %zu nodes of %zu are left", r->what, program->node_count, node_count);
    }
    assert_int_equal(program->values[program->outputs[program->output_count - 1]].dtype, dtype);
    OK(interpret_program(program, &x, results));
    bool is_finer = false;
    for (size_t o = 0; o < program->output_count; ++o) {
        is_finer = is_finer || (expected[o].dtype == RONDO_DTYPE_F32 &&
                                memcmp(results[o].data, expected[o].data,
                                       rondo_tensor_get_bytes(&expected[o])) != 0);
        if (r->is_widened) {
            round_to_half(&results[o]);
        }
        assert_memory_equal(results[o].data, expected[o].data,
                            rondo_tensor_get_bytes(&expected[o]));
        rondo_tensor_deinit(&results[o]);
        rondo_tensor_deinit(&expected[o]);
    }
    assert_int_equal(is_finer, r->is_widened);
    rondo_tensor_deinit(&x);
    rondo_program_destroy(program);
}

TEST(test_program_pass_widen__what_is_widened) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        check_row(&rows[i]);
    }
}

TEST_MAIN()

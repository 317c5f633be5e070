// Ordering and checking of programs.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "program/program.h"
#include "support/test.h"

static rondo_program *create(void) {
    rondo_program *program = NULL;
    assert_int_equal(rondo__program_create("test", &program), RONDO_STATUS_OK);
    return program;
}

static int32_t add_value(rondo_program *program, const char *name) {
    int32_t value = RONDO__VALUE_NONE;
    assert_int_equal(rondo__program_add_value(program, name, &value), RONDO_STATUS_OK);
    return value;
}

static void add_relu(rondo_program *program, const char *name, int32_t from, int32_t to) {
    assert_int_equal(rondo__program_add_simple(program, "", "Relu", name, &from, 1, &to, 1),
                     RONDO_STATUS_OK);
}

static void assert_message_has(const char *part) {
    const char *message = rondo_error_get_last()->message;
    if (strstr(message, part) == NULL) {
        fail_msg("\"%s\" does not contain \"%s\"", message, part);
    }
}

TEST(test_program_verify__keeps_a_right_order) {
    rondo_program *program = create();
    int32_t x = add_value(program, "x");
    int32_t a = add_value(program, "a");
    int32_t b = add_value(program, "b");
    assert_int_equal(rondo__program_add_input(program, x), RONDO_STATUS_OK);
    add_relu(program, "one", x, a);
    add_relu(program, "two", x, b);
    assert_int_equal(rondo__program_add_output(program, b), RONDO_STATUS_OK);
    assert_int_equal(rondo__program_verify(program), RONDO_STATUS_OK);
    assert_string_equal(program->nodes[0].op.name, "one");
    assert_string_equal(program->nodes[1].op.name, "two");
    assert_int_equal(program->values[x].producer, -1);
    assert_int_equal(program->values[b].producer, 1);
    rondo_program_destroy(program);
}

// A chain of 100 000 nodes in reversed order: neither recursion nor quadratic work.
TEST(test_program_verify__sorts_a_long_reversed_chain) {
    enum { COUNT = 100000 };
    rondo_program *program = create();
    int32_t *values = calloc(COUNT + 1, sizeof(*values));
    assert_non_null(values);
    for (size_t i = 0; i <= COUNT; ++i) {
        values[i] = add_value(program, "value");
    }
    assert_int_equal(rondo__program_add_input(program, values[0]), RONDO_STATUS_OK);
    for (size_t i = COUNT; i-- > 0;) {
        add_relu(program, NULL, values[i], values[i + 1]);
    }
    assert_int_equal(rondo__program_add_output(program, values[COUNT]), RONDO_STATUS_OK);
    assert_int_equal(rondo__program_verify(program), RONDO_STATUS_OK);
    for (size_t i = 0; i < COUNT; ++i) {
        assert_int_equal(program->nodes[i].inputs[0], values[i]);
        assert_int_equal(program->values[values[i + 1]].producer, (int)i);
    }
    free(values);
    rondo_program_destroy(program);
}

TEST(test_program_verify__names_a_node_on_a_cycle) {
    rondo_program *program = create();
    int32_t x = add_value(program, "x");
    int32_t a = add_value(program, "a");
    int32_t b = add_value(program, "b");
    int32_t inputs[2] = {x, b};
    assert_int_equal(rondo__program_add_input(program, x), RONDO_STATUS_OK);
    assert_int_equal(rondo__program_add_simple(program, "", "Add", "there", inputs, 2, &a, 1),
                     RONDO_STATUS_OK);
    add_relu(program, "back", a, b);
    assert_int_equal(rondo__program_verify(program), RONDO_STATUS_BAD_DATA);
    assert_message_has("cycle");
    assert_message_has("node \"");
    rondo_program_destroy(program);
}

TEST(test_program_verify__refuses_two_makers) {
    rondo_program *program = create();
    int32_t x = add_value(program, "x");
    int32_t a = add_value(program, "a");
    assert_int_equal(rondo__program_add_input(program, x), RONDO_STATUS_OK);
    add_relu(program, "first", x, a);
    add_relu(program, "second", x, a);
    assert_int_equal(rondo__program_verify(program), RONDO_STATUS_BAD_DATA);
    assert_message_has("first");
    assert_message_has("second");
    rondo_program_destroy(program);
}

TEST(test_program_verify__refuses_an_input_made_by_a_node) {
    rondo_program *program = create();
    int32_t x = add_value(program, "x");
    assert_int_equal(rondo__program_add_input(program, x), RONDO_STATUS_OK);
    add_relu(program, "self", x, x);
    assert_int_equal(rondo__program_verify(program), RONDO_STATUS_BAD_DATA);
    rondo_program_destroy(program);
}

TEST(test_program_verify__names_what_nobody_makes) {
    rondo_program *program = create();
    int32_t x = add_value(program, "orphan");
    int32_t a = add_value(program, "a");
    add_relu(program, "user", x, a);
    assert_int_equal(rondo__program_verify(program), RONDO_STATUS_BAD_DATA);
    assert_message_has("user");
    assert_message_has("orphan");
    rondo_program_destroy(program);

    program = create();
    int32_t out = add_value(program, "result");
    assert_int_equal(rondo__program_add_output(program, out), RONDO_STATUS_OK);
    assert_int_equal(rondo__program_verify(program), RONDO_STATUS_BAD_DATA);
    assert_message_has("result");
    rondo_program_destroy(program);
}

// A constant scalar.
static int32_t add_zero(rondo_program *program, const char *name, rondo_dtype dtype) {
    const rondo_shape scalar = {0};
    rondo_tensor zero;
    int32_t value = -1;
    assert_int_equal(rondo_tensor_init(dtype, &scalar, &zero), RONDO_STATUS_OK);
    assert_int_equal(rondo__program_add_constant(program, name, &zero, &value), RONDO_STATUS_OK);
    rondo_tensor_deinit(&zero);
    return value;
}

// A body that gives out a constant of this dtype.
static rondo_program *make_leaf(rondo_dtype dtype) {
    rondo_program *program = create();
    const int32_t value = add_zero(program, "leaf", dtype);
    assert_int_equal(rondo__program_add_output(program, value), RONDO_STATUS_OK);
    return program;
}

static void add_body(rondo_program *program, const char *name, rondo_program *body) {
    rondo__attribute attribute = {
        .name = rondo__strdup(name), .kind = RONDO__ATTRIBUTE_BODY, .body = body};
    assert_int_equal(rondo__op_take_attribute(&program->nodes[0].op, &attribute), RONDO_STATUS_OK);
}

// An If around `body`; its other branch is a leaf, or missing.
static rondo_program *wrap_in_if(rondo_program *body, rondo_dtype other) {
    rondo_program *program = create();
    int32_t condition = add_zero(program, "condition", RONDO_DTYPE_BOOL);
    int32_t result = add_value(program, "result");
    assert_int_equal(
        rondo__program_add_simple(program, "", "If", "branch", &condition, 1, &result, 1),
        RONDO_STATUS_OK);
    add_body(program, "then_branch", body);
    if (other != RONDO_DTYPE_NONE) {
        add_body(program, "else_branch", make_leaf(other));
    }
    assert_int_equal(rondo__program_add_output(program, result), RONDO_STATUS_OK);
    return program;
}

TEST(test_program_verify__branches_fit_each_other) {
    rondo_program *program = wrap_in_if(make_leaf(RONDO_DTYPE_F32), RONDO_DTYPE_F32);
    assert_int_equal(rondo__program_verify(program), RONDO_STATUS_OK);
    rondo_program_destroy(program);

    program = wrap_in_if(make_leaf(RONDO_DTYPE_F32), RONDO_DTYPE_NONE);
    assert_int_equal(rondo__program_verify(program), RONDO_STATUS_BAD_DATA);
    assert_message_has("If node \"branch\" has no else_branch");
    rondo_program_destroy(program);

    program = wrap_in_if(make_leaf(RONDO_DTYPE_F32), RONDO_DTYPE_I64);
    assert_int_equal(rondo__program_verify(program), RONDO_STATUS_BAD_DATA);
    assert_message_has("f32 (\"leaf\") in then_branch and i64 (\"leaf\") in else_branch");
    rondo_program_destroy(program);

    rondo_program *two = make_leaf(RONDO_DTYPE_F32);
    assert_int_equal(rondo__program_add_output(two, two->outputs[0]), RONDO_STATUS_OK);
    program = wrap_in_if(two, RONDO_DTYPE_F32);
    assert_int_equal(rondo__program_verify(program), RONDO_STATUS_BAD_DATA);
    assert_message_has("then_branch has 2 outputs, else_branch 1");
    rondo_program_destroy(program);
}

TEST(test_program_verify__limits_nesting) {
    rondo_program *program = make_leaf(RONDO_DTYPE_F32);
    for (int i = 0; i < RONDO__BODY_DEPTH_MAX; ++i) {
        program = wrap_in_if(program, RONDO_DTYPE_F32);
        assert_int_equal(rondo__program_verify(program), RONDO_STATUS_OK);
    }
    program = wrap_in_if(program, RONDO_DTYPE_F32);
    assert_int_equal(rondo__program_verify(program), RONDO_STATUS_BAD_DATA);
    assert_message_has("nested more than 32 deep");
    rondo_program_destroy(program);
}

TEST(test_program_verify__checks_captured_counts) {
    rondo_program *body = make_leaf(RONDO_DTYPE_F32);
    int32_t captured = add_value(body, "outside");
    assert_int_equal(rondo__program_add_captured(body, captured), RONDO_STATUS_OK);
    rondo_program *program = wrap_in_if(body, RONDO_DTYPE_F32);
    assert_int_equal(rondo__program_verify(program), RONDO_STATUS_INTERNAL);
    rondo_program_destroy(program);
}

TEST_MAIN()

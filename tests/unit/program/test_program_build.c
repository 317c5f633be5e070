// Building, naming, pruning and cloning of programs; ports and symbols.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static int32_t add_relu(rondo_program *program, int32_t from, const char *to_name) {
    int32_t to = add_value(program, to_name);
    assert_int_equal(rondo__program_add_simple(program, "", "Relu", to_name, &from, 1, &to, 1),
                     RONDO_STATUS_OK);
    return to;
}

TEST(test_program_build__makes_names_unique) {
    rondo_program *program = create();
    int32_t first = add_value(program, "x");
    int32_t second = add_value(program, "x");
    assert_string_equal(program->values[first].name, "x");
    assert_string_equal(program->values[second].name, "x.1");
    for (int i = 0; i < 50000; ++i) {
        add_value(program, "x");
    }
    assert_int_equal(rondo__program_find_value(program, "x"), first);
    for (size_t i = 0; i < program->value_count; ++i) {
        assert_int_equal(rondo__program_find_value(program, program->values[i].name), (int)i);
    }
    assert_int_equal(rondo__program_find_value(program, "y"), RONDO__VALUE_NONE);
    rondo_program_destroy(program);
}

TEST(test_program_build__refuses_unknown_ops) {
    rondo_program *program = create();
    assert_int_equal(rondo__program_add_simple(program, "", "NoSuchOp", NULL, NULL, 0, NULL, 0),
                     RONDO_STATUS_UNSUPPORTED);
    assert_string_equal(rondo_error_get_last()->message, "unsupported: op NoSuchOp version 21");
    assert_int_equal(program->node_count, 0);
    rondo_program_destroy(program);
}

TEST(test_program_build__names_nodes) {
    rondo_program *program = create();
    int32_t x = add_value(program, "x");
    int32_t y = add_value(program, "y");
    assert_int_equal(rondo__program_add_simple(program, "", "Relu", NULL, &x, 1, &y, 1),
                     RONDO_STATUS_OK);
    assert_string_equal(program->nodes[0].op.name, "Relu_0");
    assert_string_equal(rondo__node_describe(&program->nodes[0]), "Relu node \"Relu_0\"");
    rondo_program_destroy(program);
}

// x -> a -> b -> result, and a side chain a -> dead -> deader that nobody uses.
static rondo_program *make_with_dead_ends(void) {
    rondo_program *program = create();
    int32_t unused = add_value(program, "never mentioned");
    int32_t x = add_value(program, "x");
    assert_int_equal(rondo__program_add_input(program, x), RONDO_STATUS_OK);
    int32_t a = add_relu(program, x, "a");
    int32_t dead = add_relu(program, a, "dead");
    add_relu(program, dead, "deader");
    int32_t b = add_relu(program, a, "b");
    assert_int_equal(rondo__program_add_output(program, b), RONDO_STATUS_OK);
    assert_int_equal(unused, 0);
    return program;
}

TEST(test_program_build__removes_what_is_dead) {
    rondo_program *program = make_with_dead_ends();
    assert_int_equal(rondo__program_remove_dead(program), RONDO_STATUS_OK);
    assert_int_equal(program->node_count, 2);
    assert_int_equal(program->value_count, 3);
    assert_int_equal(rondo__program_find_value(program, "dead"), RONDO__VALUE_NONE);
    assert_int_equal(program->inputs[0], rondo__program_find_value(program, "x"));
    assert_int_equal(program->outputs[0], rondo__program_find_value(program, "b"));
    assert_int_equal(program->values[program->outputs[0]].producer, 1);
    assert_int_equal(rondo__program_verify(program), RONDO_STATUS_OK);
    // Names that went are free again.
    int32_t again = add_value(program, "dead");
    assert_string_equal(program->values[again].name, "dead");
    rondo_program_destroy(program);
}

TEST(test_program_build__counts_uses) {
    rondo_program *program = make_with_dead_ends();
    uint32_t counts[8];
    assert_true(program->value_count <= 8);
    rondo__program_count_uses(program, counts);
    assert_int_equal(counts[rondo__program_find_value(program, "a")], 2);
    assert_int_equal(counts[rondo__program_find_value(program, "b")], 1);
    assert_int_equal(counts[rondo__program_find_value(program, "deader")], 0);
    rondo_program_destroy(program);
}

TEST(test_program_build__clones_share_constants) {
    rondo_program *program = create();
    rondo_shape shape = {.rank = 1, .extent = {4}};
    rondo_tensor tensor;
    assert_int_equal(rondo_tensor_init(RONDO_DTYPE_F32, &shape, &tensor), RONDO_STATUS_OK);
    int32_t weight = RONDO__VALUE_NONE;
    int32_t symbol = -1;
    assert_int_equal(rondo__program_add_constant(program, "weight", &tensor, &weight),
                     RONDO_STATUS_OK);
    rondo_tensor_deinit(&tensor);
    assert_int_equal(rondo__program_add_symbol(program, "batch", &symbol), RONDO_STATUS_OK);
    int32_t result = add_relu(program, weight, "result");
    assert_int_equal(rondo__program_add_output(program, result), RONDO_STATUS_OK);

    rondo_program *copy = NULL;
    assert_int_equal(rondo__program_clone(program, &copy), RONDO_STATUS_OK);
    const void *data = program->values[weight].constant.data;
    rondo_program_destroy(program);
    assert_ptr_equal(copy->values[weight].constant.data, data);
    assert_int_equal(copy->node_count, 1);
    assert_string_equal(copy->nodes[0].op.name, "result");
    assert_string_equal(copy->symbols[0].name, "batch");
    assert_int_equal(rondo__program_find_value(copy, "result"), result);
    assert_int_equal(rondo__program_verify(copy), RONDO_STATUS_OK);
    rondo_program_destroy(copy);
}

TEST(test_program_build__describes_ports) {
    rondo_program *program = create();
    int32_t symbol = -1;
    int32_t same = -1;
    int32_t x = add_value(program, "x");
    assert_int_equal(rondo__program_add_symbol(program, "batch", &symbol), RONDO_STATUS_OK);
    assert_int_equal(rondo__program_add_symbol(program, "batch", &same), RONDO_STATUS_OK);
    assert_int_equal(symbol, same);
    assert_int_equal(rondo__program_add_input(program, x), RONDO_STATUS_OK);
    rondo_port port = {.struct_size = sizeof port};
    assert_int_equal(rondo_program_get_input(program, 0, &port), RONDO_STATUS_OK);
    assert_int_equal(port.rank, -1);
    program->values[x].dtype = RONDO_DTYPE_F32;
    program->values[x].has_shape = true;
    program->values[x].rank = 2;
    program->values[x].dims[0].symbol = symbol;
    program->values[x].dims[1].number = 7;
    assert_int_equal(rondo_program_get_input(program, 0, &port), RONDO_STATUS_OK);
    assert_string_equal(port.name, "x");
    assert_int_equal(port.rank, 2);
    assert_int_equal(port.extent[0], -1);
    assert_string_equal(port.symbol[0], "batch");
    assert_int_equal(port.extent[1], 7);
    assert_null(port.symbol[1]);
    assert_int_equal(rondo_program_set_dimension(program, "batch", 4), RONDO_STATUS_OK);
    assert_int_equal(rondo_program_get_input(program, 0, &port), RONDO_STATUS_OK);
    assert_int_equal(port.extent[0], 4);
    assert_int_equal(rondo_program_get_input(program, 1, &port), RONDO_STATUS_INVALID);
    assert_int_equal(rondo_program_get_output(program, 0, &port), RONDO_STATUS_INVALID);
    assert_int_equal(rondo_program_get_input(NULL, 0, &port), RONDO_STATUS_INVALID);
    rondo_program_destroy(program);
}

TEST(test_program_build__lists_symbols_when_one_is_unknown) {
    rondo_program *program = create();
    int32_t symbol = -1;
    assert_int_equal(rondo_program_set_dimension(program, "batch", 1), RONDO_STATUS_INVALID);
    assert_non_null(strstr(rondo_error_get_last()->message, "no symbolic dimensions"));
    assert_int_equal(rondo__program_add_symbol(program, "batch", &symbol), RONDO_STATUS_OK);
    assert_int_equal(rondo__program_add_symbol(program, "length", &symbol), RONDO_STATUS_OK);
    assert_int_equal(rondo_program_set_dimension(program, "width", 1), RONDO_STATUS_INVALID);
    assert_non_null(strstr(rondo_error_get_last()->message, "batch, length"));
    assert_int_equal(rondo_program_set_dimension(program, "batch", -2), RONDO_STATUS_INVALID);
    rondo_program_destroy(program);
}

TEST(test_program_build__expressions_do_not_crowd_out_symbols) {
    rondo_program *program = create();
    char expression[400];
    int32_t symbol = -1;
    memset(expression, '1', sizeof expression);
    memcpy(expression, "floor(height/2) + ", 18);
    expression[sizeof expression - 1] = '\0';
    assert_int_equal(rondo__program_add_symbol(program, expression, &symbol), RONDO_STATUS_OK);
    assert_int_equal(rondo_program_set_dimension(program, "hight", 2), RONDO_STATUS_INVALID);
    assert_string_equal(rondo_error_get_last()->message,
                        "no dimension \"hight\"; there are: 1 with long names or expressions");
    assert_int_equal(rondo__program_add_symbol(program, "height", &symbol), RONDO_STATUS_OK);
    assert_int_equal(rondo_program_set_dimension(program, "hight", 2), RONDO_STATUS_INVALID);
    assert_string_equal(rondo_error_get_last()->message,
                        "no dimension \"hight\"; there are: height and 1 more");
    rondo_program_destroy(program);
}

TEST_MAIN()

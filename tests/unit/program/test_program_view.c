// What strides can tell of chains of moves: each row's view must show, element for element, what
// the moves compute.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "program/shapes/specialise.h"
#include "program/view.h"
#include "support/cases/interpret.h"
#include "support/cases/pass_program.h"
#include "support/expect_ok.h"
#include "support/test.h"

enum { MOVES_MAX = 6, LIST_MAX = 6 };

// What the list says depends on the op: the permutation of a Transpose, the shape of a Reshape,
// axis and index of a Gather, axis, start, end and step of a Slice, the axis, the result that goes
// on and the sizes of a Split, the number of a Mul or Div (first operand: 1, second: 0).
typedef struct move {
    const char *op;
    size_t count;
    int64_t list[LIST_MAX];
} move;

typedef struct row {
    const char *what;
    rondo_shape shape;
    move moves[MOVES_MAX];
    int32_t seen_from;  // the move whose input is the base: 0 sees through all of them
} row;

static const row rows[] = {
    {"nothing moves", {2, {3, 4}}, {{NULL, 0, {0}}}, 0},
    {"a transpose", {3, {2, 3, 4}}, {{"Transpose", 3, {2, 0, 1}}}, 0},
    {"heads in front", {2, {5, 12}}, {{"Reshape", 3, {5, 3, 4}}, {"Transpose", 3, {1, 2, 0}}}, 0},
    {"merged again", {3, {2, 3, 4}}, {{"Transpose", 3, {1, 0, 2}}, {"Reshape", 2, {6, 4}}}, 1},
    {"merged and apart again",
     {3, {5, 2, 12}},
     {{"Reshape", 3, {5, 6, 4}}, {"Transpose", 3, {1, 0, 2}}, {"Reshape", 4, {2, 3, 5, 4}}},
     0},
    {"merged of what is not even, and apart again",
     {4, {5, 2, 3, 12}},
     {{"Gather", 2, {2, 1}},
      {"Reshape", 3, {5, 6, 4}},
      {"Transpose", 3, {1, 0, 2}},
      {"Reshape", 4, {2, 3, 5, 4}}},
     0},
    {"apart elsewhere",
     {3, {4, 3, 2}},
     {{"Transpose", 3, {1, 0, 2}}, {"Reshape", 2, {12, 2}}, {"Reshape", 3, {2, 6, 2}}},
     1},
    {"one of three side by side, as PyTorch packs them",
     {3, {7, 1, 24}},
     {{"Reshape", 5, {1, 7, 1, 3, 8}},
      {"Transpose", 5, {3, 1, 2, 0, 4}},
      {"Reshape", 4, {3, 7, 1, 8}},
      {"Gather", 2, {0, -1}},
      {"Reshape", 3, {7, 2, 4}},
      {"Transpose", 3, {1, 0, 2}}},
     0},
    {"a slice", {2, {6, 8}}, {{"Slice", 4, {1, 2, 7, 1}}, {"Transpose", 2, {1, 0}}}, 0},
    {"a slice from behind", {2, {6, 8}}, {{"Slice", 4, {-1, -3, 99, 1}}}, 0},
    {"a slice with a step", {2, {6, 8}}, {{"Slice", 4, {1, 0, 8, 2}}, {"Transpose", 2, {1, 0}}}, 1},
    {"the second part", {2, {4, 9}}, {{"Split", 4, {1, 1, 2, 7}}, {"Transpose", 2, {1, 0}}}, 0},
    {"the last part", {2, {4, 9}}, {{"Split", 5, {-1, 2, 2, 3, 4}}, {"Reshape", 3, {4, 2, 2}}}, 0},
    {"numbers", {2, {4, 6}}, {{"Mul", 2, {3, 0}}, {"Reshape", 1, {24}}, {"Mul", 2, {2, 1}}}, 0},
    {"a divisor", {1, {6}}, {{"Div", 2, {4, 0}}}, 0},
    {"a divided number", {1, {6}}, {{"Div", 2, {4, 1}}}, 1},
};

static int32_t add_scalar(rondo_program *program, rondo_dtype dtype, int64_t number) {
    rondo_tensor tensor;
    const rondo_shape shape = {0, {0}};
    OK(rondo_tensor_init(dtype, &shape, &tensor));
    if (dtype == RONDO_DTYPE_F32) {
        *(float *)tensor.data = (float)number;
    } else {
        *(int64_t *)tensor.data = number;
    }
    const int32_t value = pass_add_constant(program, &tensor);
    rondo_tensor_deinit(&tensor);
    return value;
}

// Returns the value that the next move reads.
static int32_t add_move(rondo_program *program, const move *m, int32_t value) {
    int32_t inputs[5] = {value}, outputs[3];
    size_t input_count = 2, output_count = 1, next = 0;
    const bool is_split = strcmp(m->op, "Split") == 0;
    if (strcmp(m->op, "Transpose") == 0) {
        input_count = 1;
    } else if (strcmp(m->op, "Reshape") == 0) {
        inputs[1] = pass_add_list(program, m->list, m->count);
    } else if (strcmp(m->op, "Gather") == 0) {
        inputs[1] = add_scalar(program, RONDO_DTYPE_I64, m->list[1]);
    } else if (strcmp(m->op, "Slice") == 0) {
        static const int at[] = {1, 2, 0, 3};  // starts, ends, axes, steps
        for (int i = 0; i < 4; ++i) {
            inputs[1 + i] = pass_add_list(program, &m->list[at[i]], 1);
        }
        input_count = 5;
    } else if (is_split) {
        inputs[1] = pass_add_list(program, m->list + 2, m->count - 2);
        output_count = m->count - 2;
        next = (size_t)m->list[1];
    } else {
        const int number = m->list[1] != 0 ? 0 : 1;
        inputs[number] = add_scalar(program, RONDO_DTYPE_F32, m->list[0]);
        inputs[1 - number] = value;
    }
    for (size_t i = 0; i < output_count; ++i) {
        OK(rondo__program_add_value(program, "moved", &outputs[i]));
    }
    OK(rondo__program_add_simple(program, "", m->op, NULL, inputs, input_count, outputs,
                                 output_count));
    rondo__op *op = &program->nodes[program->node_count - 1].op;
    if (input_count == 1) {
        OK(rondo__op_set_ints(op, "perm", m->list, m->count));
    } else if (is_split || strcmp(m->op, "Gather") == 0) {
        OK(rondo__op_set_int(op, "axis", m->list[0]));
    }
    return outputs[next];
}

static rondo_program *make_program(const row *r) {
    rondo_program *source, *program;
    int32_t value;
    OK(rondo__program_create("moves", &source));
    OK(rondo__program_add_shaped(source, "x", RONDO_DTYPE_F32, &r->shape, &value));
    OK(rondo__program_add_input(source, value));
    for (size_t i = 0; i < MOVES_MAX && r->moves[i].op != NULL; ++i) {
        value = add_move(source, &r->moves[i], value);
    }
    const int32_t zero = add_scalar(source, RONDO_DTYPE_F32, 0);
    int32_t y;
    OK(rondo__program_add_value(source, "y", &y));
    OK(rondo__program_add_simple(source, "", "Add", NULL, (int32_t[]){value, zero}, 2, &y, 1));
    OK(rondo__program_add_output(source, y));
    OK(rondo__program_verify(source));
    const rondo_tensor shapes[1] = {{.dtype = RONDO_DTYPE_F32, .shape = r->shape}};
    OK(rondo__program_specialise(source, shapes, 1 << 20, &program, NULL));
    rondo_program_destroy(source);
    return program;
}

// The value that is read by the node that makes `value`, `moves` moves further up.
static int32_t go_up(const rondo_program *program, int32_t value, int32_t moves) {
    for (; moves > 0; --moves) {
        const rondo__node *node = &program->nodes[program->values[value].producer];
        value = rondo__value_is_constant(&program->values[node->inputs[0]]) ? node->inputs[1]
                                                                            : node->inputs[0];
    }
    return value;
}

static float find_element(const rondo__view *view, const float *base, int64_t e) {
    int64_t at = view->offset;
    for (int32_t d = view->rank - 1; d >= 0; --d) {
        at += e % view->extent[d] * view->stride[d];
        e /= view->extent[d];
    }
    return base[at] * view->factor;
}

TEST(test_program_view__shows_what_moves_compute) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        const row *r = &rows[i];
        int32_t moves = 0;
        while (moves < MOVES_MAX && r->moves[moves].op != NULL) {
            moves += 1;
        }
        rondo_program *program = make_program(r);
        const rondo__node *last = &program->nodes[program->values[program->outputs[0]].producer];
        const int32_t moved = last->inputs[0], base = go_up(program, moved, moves - r->seen_from);
        rondo__view view;
        rondo__view_trace(program, moved, true, &view);
        if (view.base != base) {
            print_error("%s: looked through another number of moves\n", r->what);
        }
        assert_int_equal(view.base, base);
        rondo_tensor x = {0}, results[2] = {{0}};
        OK(rondo_tensor_init(RONDO_DTYPE_F32, &r->shape, &x));
        for (int64_t e = 0; e < rondo_shape_get_count(&r->shape); ++e) {
            ((float *)x.data)[e] = (float)(e + 1);
        }
        OK(rondo__program_add_output(program, base));
        OK(interpret_program(program, &x, results));
        for (int64_t e = 0; e < rondo_shape_get_count(&results[0].shape); ++e) {
            const float expected = ((const float *)results[0].data)[e];
            assert_float_equal(find_element(&view, results[1].data, e), expected, 1e-4f);
        }
        rondo_tensor_deinit(&results[0]);
        rondo_tensor_deinit(&results[1]);
        rondo_tensor_deinit(&x);
        rondo_program_destroy(program);
    }
}

TEST(test_program_view__factors_only_where_asked) {
    const row scaled = {"", {2, {4, 6}}, {{"Mul", 2, {3, 0}}, {"Transpose", 2, {1, 0}}}, 1};
    rondo_program *program = make_program(&scaled);
    const rondo__node *last = &program->nodes[program->values[program->outputs[0]].producer];
    rondo__view view;
    rondo__view_trace(program, last->inputs[0], false, &view);
    assert_int_equal(view.base, go_up(program, last->inputs[0], 1));
    assert_float_equal(view.factor, 1.0f, 0.0f);
    rondo_program_destroy(program);
}

TEST(test_program_view__whole_or_not) {
    static const struct {
        row moves;
        bool is_whole;
    } cases[] = {
        {{"", {3, {5, 1, 4}}, {{"Transpose", 3, {1, 0, 2}}}, 0}, true},
        {{"", {3, {5, 2, 4}}, {{"Transpose", 3, {1, 0, 2}}}, 0}, false},
        {{"", {3, {5, 2, 4}}, {{"Transpose", 3, {1, 2, 0}}, {"Transpose", 3, {2, 0, 1}}}, 0}, true},
        {{"", {2, {5, 4}}, {{"Slice", 4, {0, 0, 3, 1}}}, 0}, false},
        {{"", {2, {5, 4}}, {{"Gather", 2, {0, 1}}}, 0}, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        rondo_program *program = make_program(&cases[i].moves);
        const rondo__node *last = &program->nodes[program->values[program->outputs[0]].producer];
        rondo__view view;
        rondo__view_trace(program, last->inputs[0], true, &view);
        assert_int_equal(rondo__view_is_whole(program, &view), cases[i].is_whole);
        rondo_program_destroy(program);
    }
}

TEST_MAIN()

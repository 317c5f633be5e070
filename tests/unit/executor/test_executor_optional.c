// Inputs that have a default: fed or not, in any order, also inside bodies.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/models/model_fixture.h"
#include "support/short_forms.h"
#include "support/test.h"

enum { FLOAT = 1, INT64 = 7, BOOL = 9 };

static rondo_binding feed(const char *name, float *values, int32_t rank, int64_t a, int64_t b) {
    return (rondo_binding){
        name,
        {.dtype = RONDO_DTYPE_F32, .shape = {.rank = rank, .extent = {a, b}}, .data = values}};
}

// y = x * scale + shift, where scale [2] and shift [n] have defaults; z is the scale itself. The
// same again inside a Loop of one turn inside an If.
static void build(model_fixture *f, int64_t ir_version) {
    model_builder *b = &f->builder;
    model_fixture_init(f);
    b->model->ir_version = ir_version;
    const float scale[2] = {10, 20};
    const float shift[2] = {1, 2};
    const float fixed[1] = {100};
    model_builder_add_floats(b, b->graph, "scale", scale, 2);
    model_builder_add_floats(b, b->graph, "shift", shift, 2);
    model_builder_add_floats(b, b->graph, "fixed", fixed, 1);
    model_builder_add_input(b, b->graph, "shift", FLOAT, "n");
    model_builder_add_input(b, b->graph, "x", FLOAT, "2");
    model_builder_add_input(b, b->graph, "scale", FLOAT, "2");
    model_builder_add_node(b, b->graph, "Mul", "mul", "x scale", "m");
    model_builder_add_node(b, b->graph, "Add", "add", "m shift", "y");

    const int64_t one = 1;
    const uint8_t yes = 1;
    model_builder_set_raw(b, model_builder_add_initializer(b, b->graph, "one", INT64, 0, NULL),
                          &one, sizeof one);
    model_builder_set_raw(b, model_builder_add_initializer(b, b->graph, "yes", BOOL, 0, NULL), &yes,
                          sizeof yes);
    Onnx__GraphProto *turn = model_builder_new_graph(b, "turn");
    model_builder_add_input(b, turn, "i", INT64, "");
    model_builder_add_input(b, turn, "c", BOOL, "");
    model_builder_add_input(b, turn, "s", FLOAT, "2");
    model_builder_add_node(b, turn, "Identity", "keep", "c", "c2");
    model_builder_add_node(b, turn, "Mul", "inner_mul", "s scale", "t");
    model_builder_add_node(b, turn, "Add", "inner_add", "t fixed", "s2");
    model_builder_add_output(b, turn, "c2", BOOL, "");
    model_builder_add_output(b, turn, "s2", FLOAT, NULL);
    Onnx__GraphProto *branches[2];
    for (int i = 0; i < 2; ++i) {
        branches[i] = model_builder_new_graph(b, "branch");
        model_builder_add_node(b, branches[i], i == 0 ? "Loop" : "Identity", "inside",
                               i == 0 ? "one yes x" : "shift", "r");
        model_builder_add_output(b, branches[i], "r", FLOAT, NULL);
    }
    model_builder_add_body(b, branches[0]->node[0], "body", turn);
    Onnx__NodeProto *choice = model_builder_add_node(b, b->graph, "If", "choice", "yes", "w");
    model_builder_add_body(b, choice, "then_branch", branches[0]);
    model_builder_add_body(b, choice, "else_branch", branches[1]);
    model_builder_add_output(b, b->graph, "y", FLOAT, NULL);
    model_builder_add_output(b, b->graph, "w", FLOAT, NULL);
    model_builder_add_output(b, b->graph, "scale", FLOAT, NULL);
    model_fixture_load(f);
}

static float x_values[2] = {1, 2};

static void expect_run(model_fixture *f, float *scale, float *shift, int64_t shift_count) {
    static const float default_scale[2] = {10, 20};
    static const float default_shift[2] = {1, 2};
    rondo_binding feeds[3] = {feed("x", x_values, 1, 2, 0)};
    size_t count = 1;
    if (shift != NULL) {
        feeds[count++] = feed("shift", shift, 1, shift_count, 0);
    }
    if (scale != NULL) {
        feeds[count++] = feed("scale", scale, 1, 2, 0);
    }
    rondo_binding fetches[3] = {{.name = "scale"}, {.name = "y"}, {.name = "w"}};
    OK(rondo_executor_run(f->executor, feeds, count, fetches, 3));
    const float *used_scale = scale != NULL ? scale : default_scale;
    const float *used_shift = shift != NULL ? shift : default_shift;
    for (int i = 0; i < 2; ++i) {
        const float m = x_values[i] * used_scale[i];
        assert_true(((float *)fetches[0].tensor.data)[i] == used_scale[i]);
        assert_true(((float *)fetches[1].tensor.data)[i] ==
                    m + used_shift[shift_count == 1 ? 0 : i]);
        assert_true(((float *)fetches[2].tensor.data)[i] == m + 100);
    }
    for (int i = 0; i < 3; ++i) {
        rondo_tensor_deinit(&fetches[i].tensor);
    }
}

TEST(test_executor_optional__fed_or_not_in_any_order) {
    static const int64_t versions[] = {3, 4, 8};
    for (size_t v = 0; v < sizeof versions / sizeof versions[0]; ++v) {
        model_fixture f;
        build(&f, versions[v]);
        float scale[2] = {3, 4};
        float shift[2] = {-1, -2};
        for (int round = 0; round < 4; ++round) {
            expect_run(&f, NULL, NULL, 2);
            scale[0] += 1;
            expect_run(&f, scale, NULL, 2);
            expect_run(&f, scale, NULL, 2);
            expect_run(&f, NULL, shift, 2);
            expect_run(&f, NULL, shift, 1);  // another extent: its dimension is a symbol
            expect_run(&f, scale, shift, 2);
            expect_run(&f, NULL, NULL, 2);
            OK(rondo_executor_rerun(f.executor));
        }
        rondo_executor_stats stats = {.struct_size = sizeof stats};
        OK(rondo_executor_get_stats(f.executor, &stats));
        assert_int_equal(stats.eager_run_count + stats.replay_run_count, 4 * 8);
        model_fixture_deinit(&f);
    }
}

TEST(test_executor_optional__are_listed_apart) {
    model_fixture f;
    rondo_port port = {.struct_size = sizeof port};
    build(&f, 8);
    assert_int_equal(rondo_program_get_input_count(f.program), 1);
    OK(rondo_program_get_input(f.program, 0, &port));
    assert_string_equal(port.name, "x");
    assert_int_equal(rondo_program_get_optional_input_count(f.program), 2);
    OK(rondo_program_get_optional_input(f.program, 0, &port));
    assert_string_equal(port.name, "shift");
    assert_int_equal(port.rank, 1);
    assert_int_equal(port.extent[0], -1);
    assert_string_equal(port.symbol[0], "n");
    OK(rondo_program_get_optional_input(f.program, 1, &port));
    assert_string_equal(port.name, "scale");
    assert_int_equal(port.extent[0], 2);
    assert_int_equal(rondo_program_get_optional_input(f.program, 2, &port), RONDO_STATUS_INVALID);
    assert_int_equal(rondo_program_get_optional_input(NULL, 0, &port), RONDO_STATUS_INVALID);
    assert_int_equal(rondo_program_get_optional_input_count(NULL), 0);
    model_fixture_deinit(&f);
}

static void expect_refusal(model_fixture *f, const rondo_binding *feeds, size_t count,
                           const char *part) {
    assert_int_equal(rondo_executor_run(f->executor, feeds, count, NULL, 0), RONDO_STATUS_INVALID);
    if (strstr(rondo_error_get_last()->message, part) == NULL) {
        print_error("\"%s\" lacks \"%s\"\n", rondo_error_get_last()->message, part);
    }
    assert_non_null(strstr(rondo_error_get_last()->message, part));
}

TEST(test_executor_optional__wrong_feeds_are_told) {
    model_fixture f;
    build(&f, 8);
    float values[3] = {1, 2, 3};
    rondo_binding feeds[3] = {feed("x", x_values, 1, 2, 0), feed("scale", values, 1, 3, 0)};
    expect_refusal(&f, feeds, 2, "feed \"scale\" has shape [3], the model takes [2]");
    feeds[1] = feed("scale", values, 1, 2, 0);
    feeds[1].tensor.dtype = RONDO_DTYPE_I32;
    expect_refusal(&f, feeds, 2, "feed \"scale\" is i32, the model takes f32");
    feeds[1].tensor.dtype = RONDO_DTYPE_F32;
    feeds[2] = feeds[1];
    expect_refusal(&f, feeds, 3, "input \"scale\" is fed twice");
    expect_refusal(&f, feeds + 1, 1, "input \"x\" is not fed");
    feeds[1] = feed("fixed", values, 1, 1, 0);  // an initializer that is no input
    expect_refusal(&f, feeds, 2, "no input \"fixed\"");
    feeds[1] = feed("m", values, 1, 2, 0);  // a value between nodes
    expect_refusal(&f, feeds, 2, "no input \"m\"");
    expect_run(&f, NULL, NULL, 2);
    model_fixture_deinit(&f);
}

// A default that decides a shape: reshaped differently when fed, the default again when not.
TEST(test_executor_optional__a_default_may_decide_shapes) {
    model_fixture f;
    model_builder *b = &f.builder;
    model_fixture_init(&f);
    const int64_t dims[] = {2};
    const int64_t target[2] = {2, 3};
    model_builder_set_raw(b, model_builder_add_initializer(b, b->graph, "target", INT64, 1, dims),
                          target, sizeof target);
    model_builder_add_input(b, b->graph, "x", FLOAT, "6");
    model_builder_add_input(b, b->graph, "target", INT64, "2");
    model_builder_add_node(b, b->graph, "Reshape", "fold", "x target", "r");
    model_builder_add_node(b, b->graph, "Transpose", "turn", "r", "y");
    model_builder_add_output(b, b->graph, "y", FLOAT, "a b");
    model_fixture_load(&f);
    float x[6] = {1, 2, 3, 4, 5, 6};
    int64_t fed[2] = {6, 1};
    for (int round = 0; round < 6; ++round) {
        const bool is_fed = round % 2 == 1;
        rondo_binding feeds[2] = {feed("x", x, 1, 6, 0), BIND("target", RONDO_DTYPE_I64, fed, 2)};
        rondo_binding fetch = {.name = "y"};
        OK(rondo_executor_run(f.executor, feeds, is_fed ? 2 : 1, &fetch, 1));
        assert_int_equal(fetch.tensor.shape.extent[0], is_fed ? 1 : 3);
        assert_true(((float *)fetch.tensor.data)[1] == (is_fed ? 2.0f : 4.0f));
        rondo_tensor_deinit(&fetch.tensor);
    }
    model_fixture_deinit(&f);
}

// More sets of fed inputs than are kept.
TEST(test_executor_optional__many_sets_take_turns) {
    enum { COUNT = 7 };
    model_fixture f;
    model_builder *b = &f.builder;
    model_fixture_init(&f);
    char wires[64] = "x";
    const float one[1] = {1};
    model_builder_add_input(b, b->graph, "x", FLOAT, "1");
    for (int i = 0; i < COUNT; ++i) {
        char name[8];
        (void)snprintf(name, sizeof name, "w%d", i);
        model_builder_add_floats(b, b->graph, name, one, 1);
        model_builder_add_input(b, b->graph, name, FLOAT, "1");
        (void)snprintf(wires + strlen(wires), sizeof wires - strlen(wires), " %s", name);
    }
    model_builder_add_node(b, b->graph, "Sum", "sum", wires, "y");
    model_builder_add_output(b, b->graph, "y", FLOAT, "1");
    model_fixture_load(&f);
    for (int round = 0; round < 3; ++round) {
        for (int i = 0; i < COUNT; ++i) {
            char name[8];
            float x = 1;
            float w = 5;
            (void)snprintf(name, sizeof name, "w%d", i);
            rondo_binding feeds[2] = {feed("x", &x, 1, 1, 0), feed(name, &w, 1, 1, 0)};
            rondo_binding fetch = {.name = "y"};
            OK(rondo_executor_set_graphs(f.executor,
                                         round == 1 ? RONDO_GRAPHS_OFF : RONDO_GRAPHS_ON));
            OK(rondo_executor_run(f.executor, feeds, 2, &fetch, 1));
            assert_true(*(float *)fetch.tensor.data == 1 + 5 + COUNT - 1);
            rondo_tensor_deinit(&fetch.tensor);
        }
    }
    model_fixture_deinit(&f);
}

TEST_MAIN()

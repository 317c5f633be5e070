// Bodies, what they capture, and functions written out in place.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>

#include "program/program.h"
#include "rondo/onnx.h"
#include "support/models/model_builder.h"
#include "support/models/parse_model.h"
#include "support/test.h"

static int set_up(void **state) {
    (void)parse_model_set_up(state);
    model_builder *builder = *state;
    model_builder_add_input(builder, builder->graph, "c", 9, "");
    model_builder_add_input(builder, builder->graph, "x", 1, "2");
    return 0;
}

// A body that gives out what it makes of `input`.
static Onnx__GraphProto *make_relu_body(model_builder *builder, const char *input) {
    Onnx__GraphProto *body = model_builder_new_graph(builder, "body");
    model_builder_add_node(builder, body, "Relu", "", input, "inner");
    model_builder_add_output(builder, body, "inner", 1, NULL);
    return body;
}

static Onnx__NodeProto *add_if(model_builder *builder, Onnx__GraphProto *graph,
                               Onnx__GraphProto *then_body, Onnx__GraphProto *else_body,
                               const char *output) {
    Onnx__NodeProto *node = model_builder_add_node(builder, graph, "If", "", "c", output);
    model_builder_add_body(builder, node, "then_branch", then_body);
    model_builder_add_body(builder, node, "else_branch", else_body);
    return node;
}

static const rondo_program *get_body(const rondo__node *node, const char *name) {
    const rondo__attribute *attribute = rondo__op_find(&node->op, name);
    assert_non_null(attribute);
    assert_int_equal(attribute->kind, RONDO__ATTRIBUTE_BODY);
    return attribute->body;
}

TEST(test_onnx_graphs__captures_outer_values) {
    model_builder *builder = *state;
    model_builder_add_input(builder, builder->graph, "y", 1, "2");
    add_if(builder, builder->graph, make_relu_body(builder, "x"), make_relu_body(builder, "y"),
           "z");
    model_builder_add_output(builder, builder->graph, "z", 1, "2");
    rondo_program *program = parse_model_ok(builder);
    assert_int_equal(program->node_count, 1);
    const rondo__node *node = &program->nodes[0];
    assert_int_equal(node->explicit_count, 1);
    assert_int_equal(node->input_count, 3);
    assert_string_equal(program->values[node->inputs[1]].name, "x");
    assert_string_equal(program->values[node->inputs[2]].name, "y");
    const rondo_program *then_body = get_body(node, "then_branch");
    assert_int_equal(then_body->declared_count, 0);
    assert_int_equal(then_body->input_count, 1);
    assert_string_equal(then_body->values[then_body->inputs[0]].name, "x");
    assert_int_equal(then_body->values[then_body->inputs[0]].dtype, RONDO_DTYPE_F32);
    rondo_program_destroy(program);
}

TEST(test_onnx_graphs__captures_through_two_levels) {
    model_builder *builder = *state;
    Onnx__GraphProto *outer = model_builder_new_graph(builder, "outer");
    add_if(builder, outer, make_relu_body(builder, "x"), make_relu_body(builder, "x"), "nested");
    model_builder_add_output(builder, outer, "nested", 1, NULL);
    add_if(builder, builder->graph, outer, make_relu_body(builder, "x"), "z");
    model_builder_add_output(builder, builder->graph, "z", 1, "2");
    rondo_program *program = parse_model_ok(builder);
    const rondo_program *body = get_body(&program->nodes[0], "then_branch");
    // The condition of the inner If, and x once for all its uses.
    assert_int_equal(body->input_count, 2);
    assert_int_equal(program->nodes[0].input_count, 1 + 2 + 1);
    assert_int_equal(body->nodes[0].input_count, 1 + 1 + 1);
    assert_int_equal(body->nodes[0].inputs[1], body->nodes[0].inputs[2]);
    rondo_program_destroy(program);
}

TEST(test_onnx_graphs__shares_constants_with_bodies) {
    model_builder *builder = *state;
    const float values[2] = {1, 2};
    model_builder_add_floats(builder, builder->graph, "w", values, 2);
    add_if(builder, builder->graph, make_relu_body(builder, "w"), make_relu_body(builder, "w"),
           "z");
    model_builder_add_output(builder, builder->graph, "z", 1, "2");
    rondo_program *program = parse_model_ok(builder);
    assert_int_equal(program->nodes[0].input_count, 1);
    const rondo_program *body = get_body(&program->nodes[0], "then_branch");
    int32_t inner = rondo__program_find_value(body, "w");
    int32_t outer = rondo__program_find_value(program, "w");
    assert_ptr_equal(body->values[inner].constant.data, program->values[outer].constant.data);
    rondo_program_destroy(program);
}

TEST(test_onnx_graphs__prefers_inner_names) {
    model_builder *builder = *state;
    const float value = 3;
    Onnx__GraphProto *body = make_relu_body(builder, "x");
    model_builder_add_floats(builder, body, "x", &value, 1);
    add_if(builder, builder->graph, body, make_relu_body(builder, "x"), "z");
    model_builder_add_output(builder, builder->graph, "z", 1, NULL);
    rondo_program *program = parse_model_ok(builder);
    assert_int_equal(get_body(&program->nodes[0], "then_branch")->input_count, 0);
    assert_int_equal(get_body(&program->nodes[0], "else_branch")->input_count, 1);
    rondo_program_destroy(program);
}

TEST(test_onnx_graphs__captures_what_is_only_given_out) {
    model_builder *builder = *state;
    Onnx__GraphProto *body = model_builder_new_graph(builder, "body");
    model_builder_add_output(builder, body, "x", 1, NULL);
    add_if(builder, builder->graph, body, make_relu_body(builder, "x"), "z");
    model_builder_add_output(builder, builder->graph, "z", 1, NULL);
    rondo_program *program = parse_model_ok(builder);
    const rondo_program *imported = get_body(&program->nodes[0], "then_branch");
    assert_int_equal(imported->outputs[0], imported->inputs[0]);
    rondo_program_destroy(program);
}

TEST(test_onnx_graphs__refuses_bodies_that_use_later_values_in_a_circle) {
    model_builder *builder = *state;
    add_if(builder, builder->graph, make_relu_body(builder, "z"), make_relu_body(builder, "x"),
           "z");
    model_builder_add_output(builder, builder->graph, "z", 1, NULL);
    parse_model_refused(builder, RONDO_STATUS_BAD_DATA, "cycle");
}

TEST(test_onnx_graphs__names_nodes_in_bodies) {
    model_builder *builder = *state;
    Onnx__GraphProto *body = model_builder_new_graph(builder, "body");
    model_builder_add_node(builder, body, "Relu", "deep", "nowhere", "inner");
    model_builder_add_output(builder, body, "inner", 1, NULL);
    add_if(builder, builder->graph, body, make_relu_body(builder, "x"), "z");
    parse_model_refused(builder, RONDO_STATUS_BAD_DATA,
                        "Relu node \"deep\": value \"nowhere\" is used, but nothing makes it");
    assert_string_equal(rondo_error_get_last()->op, "deep");
}

static Onnx__GraphProto *nest(model_builder *builder, int depth) {
    Onnx__GraphProto *body = make_relu_body(builder, "x");
    for (int i = 1; i < depth; ++i) {
        Onnx__GraphProto *outer = model_builder_new_graph(builder, "outer");
        add_if(builder, outer, body, make_relu_body(builder, "x"), "nested");
        model_builder_add_output(builder, outer, "nested", 1, NULL);
        body = outer;
    }
    return body;
}

TEST(test_onnx_graphs__limits_nesting) {
    model_builder *builder = *state;
    model_builder_add_output(builder, builder->graph, "z", 1, NULL);
    add_if(builder, builder->graph, nest(builder, RONDO__BODY_DEPTH_MAX),
           make_relu_body(builder, "x"), "z");
    rondo_program_destroy(parse_model_ok(builder));
    builder->graph->n_node = 0;
    add_if(builder, builder->graph, nest(builder, RONDO__BODY_DEPTH_MAX + 1),
           make_relu_body(builder, "x"), "z");
    parse_model_refused(builder, RONDO_STATUS_BAD_DATA, "nested more than 32 deep");
    builder->graph->n_node = 0;
    add_if(builder, builder->graph, nest(builder, 1000), make_relu_body(builder, "x"), "z");
    parse_model_refused(builder, RONDO_STATUS_BAD_DATA, "nested too deep");
}

// ---- functions

TEST(test_onnx_graphs__writes_functions_out) {
    model_builder *builder = *state;
    Onnx__FunctionProto *function =
        model_builder_add_function(builder, "my", "Twice", "a b", "result");
    model_builder_add_function_node(builder, function, "Add", "a b", "x");
    model_builder_add_function_node(builder, function, "Relu", "x", "result");
    model_builder_add_input(builder, builder->graph, "y", 1, "2");
    model_builder_add_node(builder, builder->graph, "my:Twice", "", "x y", "one");
    model_builder_add_node(builder, builder->graph, "my:Twice", "", "one y", "z");
    model_builder_add_output(builder, builder->graph, "z", 1, "2");
    rondo_program *program = parse_model_ok(builder);
    assert_int_equal(program->node_count, 4);
    assert_string_equal(program->nodes[0].op.def->name, "Add");
    assert_int_equal(program->nodes[0].inputs[0], program->inputs[1]);
    assert_int_equal(program->nodes[2].inputs[0], program->nodes[1].outputs[0]);
    assert_int_equal(program->nodes[3].outputs[0], program->outputs[0]);
    rondo_program_destroy(program);
}

TEST(test_onnx_graphs__passes_attributes_to_functions) {
    model_builder *builder = *state;
    Onnx__FunctionProto *inner = model_builder_add_function(builder, "my", "Leak", "a", "r");
    Onnx__NodeProto *node = model_builder_add_function_node(builder, inner, "LeakyRelu", "a", "r");
    model_builder_add_attribute(builder, node, "alpha",
                                ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT)
        ->ref_attr_name = model_builder_copy(builder, "slope");
    Onnx__FunctionProto *outer = model_builder_add_function(builder, "my", "Outer", "a", "r");
    model_builder_import_opset(builder, "my", 1);
    node = model_builder_add_function_node(builder, outer, "my:Leak", "a", "r");
    model_builder_add_attribute(builder, node, "slope",
                                ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT)
        ->ref_attr_name = model_builder_copy(builder, "steepness");
    node = model_builder_add_node(builder, builder->graph, "my:Outer", "", "x", "z");
    model_builder_add_attribute(builder, node, "steepness",
                                ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT)
        ->f = 0.75f;
    // Without the attribute, the op's own default holds.
    model_builder_add_node(builder, builder->graph, "my:Outer", "", "x", "w");
    model_builder_add_output(builder, builder->graph, "z", 1, "2");
    model_builder_add_output(builder, builder->graph, "w", 1, "2");
    rondo_program *program = parse_model_ok(builder);
    assert_int_equal(program->node_count, 2);
    assert_true(rondo__op_get_float(&program->nodes[0].op, "alpha", 0) == 0.75f);
    assert_null(rondo__op_find(&program->nodes[1].op, "alpha"));
    rondo_program_destroy(program);
}

static Onnx__AttributeProto *set_slope(model_builder *builder, Onnx__NodeProto *node,
                                       const char *name, float value) {
    Onnx__AttributeProto *attribute = model_builder_add_attribute(
        builder, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
    attribute->has_f = 1;
    attribute->f = value;
    return attribute;
}

static void set_default(model_builder *builder, Onnx__FunctionProto *function, const char *name,
                        float value) {
    Onnx__NodeProto *holder = model_builder_allocate(builder, sizeof *holder);
    onnx__node_proto__init(holder);
    set_slope(builder, holder, name, value);
    function->attribute_proto = holder->attribute;
    function->n_attribute_proto = holder->n_attribute;
}

// Leak(slope) is called by Outer(steepness), by name or with nothing said, and both may have a
// default.
TEST(test_onnx_graphs__functions_have_attribute_defaults) {
    static const struct {
        float inner, outer, given;  // 0: none
        float expected;             // 0: the op's own default
    } rows[] = {
        {0, 0, 0, 0},          {0.1f, 0, 0, 0.1f},       {0, 0.2f, 0, 0.2f},
        {0.1f, 0.2f, 0, 0.2f}, {0.1f, 0.2f, 0.3f, 0.3f}, {0.1f, 0, 0.3f, 0.3f},
    };
    model_builder *builder = *state;
    model_builder_import_opset(builder, "my", 1);
    Onnx__FunctionProto *inner = model_builder_add_function(builder, "my", "Leak", "a", "r");
    Onnx__NodeProto *node = model_builder_add_function_node(builder, inner, "LeakyRelu", "a", "r");
    set_slope(builder, node, "alpha", 0)->ref_attr_name = model_builder_copy(builder, "slope");
    Onnx__FunctionProto *outer = model_builder_add_function(builder, "my", "Outer", "a", "r");
    node = model_builder_add_function_node(builder, outer, "my:Leak", "a", "r");
    set_slope(builder, node, "slope", 0)->ref_attr_name = model_builder_copy(builder, "steepness");
    node = model_builder_add_node(builder, builder->graph, "my:Outer", "", "x", "z");
    set_slope(builder, node, "steepness", 0);
    model_builder_add_output(builder, builder->graph, "z", 1, "2");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        set_default(builder, inner, "slope", rows[i].inner);
        inner->n_attribute_proto = rows[i].inner > 0;
        set_default(builder, outer, "steepness", rows[i].outer);
        outer->n_attribute_proto = rows[i].outer > 0;
        node->attribute[0]->f = rows[i].given;
        node->n_attribute = rows[i].given > 0;
        rondo_program *program = parse_model_ok(builder);
        assert_int_equal(program->node_count, 1);
        assert_true(rondo__op_get_float(&program->nodes[0].op, "alpha", 0) == rows[i].expected);
        rondo_program_destroy(program);
    }
    set_default(builder, inner, "slope", 1);
    inner->attribute_proto[0]->ref_attr_name = model_builder_copy(builder, "other");
    parse_model_refused(builder, RONDO_STATUS_BAD_DATA, "\"slope\" refers to another attribute");
    inner->attribute_proto[0]->name = model_builder_copy(builder, "");
    parse_model_refused(builder, RONDO_STATUS_BAD_DATA,
                        "\"Leak\": an attribute's default has no name");
}

// Functions of one name are told apart by their overload.
TEST(test_onnx_graphs__functions_have_overloads) {
    static const char *const overloads[] = {NULL, "float", "other"};
    static const char *const ops[] = {"Relu", "Exp", "Neg"};
    model_builder *builder = *state;
    model_builder_import_opset(builder, "my", 1);
    Onnx__NodeProto *node = model_builder_add_node(builder, builder->graph, "my:F", "n", "x", "z");
    model_builder_add_output(builder, builder->graph, "z", 1, "2");
    for (int i = 0; i < 3; ++i) {
        Onnx__FunctionProto *function = model_builder_add_function(builder, "my", "F", "a", "r");
        function->overload =
            overloads[i] != NULL ? model_builder_copy(builder, overloads[i]) : function->overload;
        model_builder_add_function_node(builder, function, ops[i], "a", "r");
    }
    for (int i = 0; i < 3; ++i) {
        node->overload = model_builder_copy(builder, overloads[i] != NULL ? overloads[i] : "");
        rondo_program *program = parse_model_ok(builder);
        assert_int_equal(program->node_count, 1);
        assert_string_equal(program->nodes[0].op.def->name, ops[i]);
        rondo_program_destroy(program);
    }
    node->overload = model_builder_copy(builder, "third");
    parse_model_refused(builder, RONDO_STATUS_UNSUPPORTED,
                        "op my.F version 1 (overload \"third\" of no function of the model)");
    builder->model->functions[2]->overload = model_builder_copy(builder, "float");
    parse_model_refused(builder, RONDO_STATUS_BAD_DATA, "function \"F\" stands there twice");
}

TEST(test_onnx_graphs__passes_inputs_through_functions) {
    model_builder *builder = *state;
    Onnx__FunctionProto *function = model_builder_add_function(builder, "my", "Same", "a b", "a");
    model_builder_add_function_node(builder, function, "Relu", "a", "unused");
    model_builder_add_node(builder, builder->graph, "my:Same", "", "x", "z");
    model_builder_add_output(builder, builder->graph, "z", 1, "2");
    rondo_program *program = parse_model_ok(builder);
    assert_int_equal(rondo__program_remove_dead(program), RONDO_STATUS_OK);
    assert_int_equal(program->node_count, 1);
    assert_string_equal(program->nodes[0].op.def->name, "Identity");
    rondo_program_destroy(program);
}

TEST(test_onnx_graphs__functions_see_nothing_outside) {
    model_builder *builder = *state;
    Onnx__FunctionProto *function = model_builder_add_function(builder, "my", "Peek", "a", "r");
    model_builder_add_function_node(builder, function, "Add", "a x", "r");
    model_builder_add_node(builder, builder->graph, "my:Peek", "call", "x", "z");
    model_builder_add_output(builder, builder->graph, "z", 1, "2");
    parse_model_refused(builder, RONDO_STATUS_BAD_DATA, "\"x\"");
}

TEST(test_onnx_graphs__limits_functions) {
    model_builder *builder = *state;
    Onnx__FunctionProto *endless = model_builder_add_function(builder, "my", "Endless", "a", "r");
    model_builder_add_function_node(builder, endless, "my:Endless", "a", "r");
    model_builder_add_node(builder, builder->graph, "my:Endless", "", "x", "z");
    model_builder_add_output(builder, builder->graph, "z", 1, "2");
    parse_model_refused(builder, RONDO_STATUS_BAD_DATA, "more than 32 deep");

    // Each calls the next one 16 times: 16^30 nodes of a file of a few kB.
    char name[16];
    char next[16];
    for (int level = 0; level < 30; ++level) {
        snprintf(name, sizeof(name), "F%d", level);
        snprintf(next, sizeof(next), level == 29 ? "Relu" : "my:F%d", level + 1);
        Onnx__FunctionProto *function = model_builder_add_function(builder, "my", name, "a", "r");
        for (int i = 0; i < 15; ++i) {
            char output[16];
            snprintf(output, sizeof(output), "t%d", i);
            model_builder_add_function_node(builder, function, next, "a", output);
        }
        model_builder_add_function_node(builder, function, next, "a", "r");
    }
    builder->graph->n_node = 0;
    model_builder_add_node(builder, builder->graph, "my:F0", "", "x", "z");
    parse_model_refused(builder, RONDO_STATUS_BAD_DATA, "functions come to more than");
}

TEST_MAIN_WITH(set_up, parse_model_tear_down)

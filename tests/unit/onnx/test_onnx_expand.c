// Ops that are written out as they are read, and what is said of those of other domains.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "onnx/expand/expand.h"
#include "program/program.h"
#include "rondo/onnx.h"
#include "rondo/user_op.h"
#include "support/models/model_builder.h"
#include "support/models/parse_model.h"
#include "support/models/user_ops.h"
#include "support/test.h"

static int set_up(void **state) {
    (void)parse_model_set_up(state);
    model_builder_import_opset(*state, "com.microsoft", 1);
    return 0;
}

static Onnx__NodeProto *add(model_builder *builder, const char *domain, const char *op,
                            const char *inputs, const char *outputs) {
    Onnx__NodeProto *node =
        model_builder_add_node(builder, builder->graph, op, "node", inputs, outputs);
    node->domain = model_builder_copy(builder, domain);
    return node;
}

// One node with inputs a, b, ..., and an output y.
static rondo_status parse(model_builder *builder, rondo_program **out_program) {
    size_t count = 0;
    const char *const names[] = {"a", "b", "c", "d", "e"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
        model_builder_add_input(builder, builder->graph, names[i], 1, "2 4");
    }
    model_builder_add_output(builder, builder->graph, "y", 1, NULL);
    const uint8_t *bytes = model_builder_pack(builder, &count);
    return rondo_program_parse_onnx(bytes, count, out_program);
}

// "Add:node/Add Gelu:node", or the message.
static void expect(model_builder *builder, const char *expected) {
    char text[512] = "";
    size_t length = 0;
    rondo_program *program = NULL;
    if (parse(builder, &program) != RONDO_STATUS_OK) {
        (void)snprintf(text, sizeof text, "%s", rondo_error_get_last()->message);
    }
    for (size_t n = 0; program != NULL && n < program->node_count; ++n) {
        const rondo__op *op = &program->nodes[n].op;
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%s:%s", n > 0 ? " " : "",
                                   op->def->name, op->name);
    }
    rondo_program_destroy(program);
    assert_string_equal(text, expected);
}

TEST(test_onnx_expand__names_nodes) {
    model_builder *builder = *state;
    add(builder, "com.microsoft", "SkipLayerNormalization", "a b c d e", "y");
    expect(builder, "Add:node/Add Add:node/Add LayerNormalization:node");
}

TEST(test_onnx_expand__keeps_places) {
    model_builder *builder = *state;
    rondo_program *program = NULL;
    Onnx__NodeProto *node = add(builder, "com.microsoft", "BiasGelu", "a b", "y");
    node->doc_string = model_builder_copy(builder, "rondo.place=cpu");
    assert_int_equal(parse(builder, &program), RONDO_STATUS_OK);
    assert_int_equal(program->node_count, 2);
    assert_int_not_equal(program->nodes[0].place.place, 0);
    assert_int_equal(program->nodes[1].place.place, program->nodes[0].place.place);
    rondo_program_destroy(program);
}

// A body's nodes stand between the products, with what they capture.
static void add_body(model_builder *builder, Onnx__NodeProto *node, const char *inputs) {
    Onnx__AttributeProto *attribute = model_builder_add_attribute(
        builder, node, "score_mod", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH);
    attribute->g = model_builder_new_graph(builder, "body");
    for (size_t i = 0; inputs[i] != '\0'; ++i) {
        const char name[2] = {inputs[i], '\0'};
        model_builder_add_input(builder, attribute->g, name, 1, NULL);
    }
    model_builder_add_node(builder, attribute->g, "Add", "inner", "s d", "t");
    model_builder_add_output(builder, attribute->g, "t", 1, NULL);
}

TEST(test_onnx_expand__writes_out_bodies) {
    model_builder *builder = *state;
    rondo_program *program = NULL;
    model_builder_import_opset(builder, "ai.onnx.preview", 1);
    add_body(builder, add(builder, "ai.onnx.preview", "FlexAttention", "a b c", "y"), "s");
    assert_int_equal(parse(builder, &program), RONDO_STATUS_OK);
    bool is_there = false;
    for (size_t n = 0; n < program->node_count; ++n) {
        const rondo__node *node = &program->nodes[n];
        is_there = is_there || (strcmp(node->op.name, "inner") == 0 &&
                                strcmp(program->values[node->inputs[1]].name, "d") == 0);
    }
    assert_true(is_there);
    rondo_program_destroy(program);
}

TEST(test_onnx_expand__counts_inputs_of_bodies) {
    model_builder *builder = *state;
    model_builder_import_opset(builder, "ai.onnx.preview", 1);
    add_body(builder, add(builder, "ai.onnx.preview", "FlexAttention", "a b c", "y"), "su");
    expect(
        builder,
        "FlexAttention node \"node\": score_mod takes 2 inputs and makes 1 outputs, not one each");
}

TEST(test_onnx_expand__checks_attributes) {
    model_builder *builder = *state;
    Onnx__NodeProto *node = add(builder, "com.microsoft", "QuickGelu", "a", "y");
    model_builder_set_int(builder, node, "beta", 1);
    expect(builder, "unsupported: op com.microsoft.QuickGelu version 1 (attribute beta)");
}

TEST(test_onnx_expand__wants_sections_of_positions) {
    add(*state, "com.microsoft", "MRotaryEmbedding", "a b c d", "y");
    expect(*state,
           "unsupported: op com.microsoft.MRotaryEmbedding version 1 (mrope_section is not three "
           "numbers from 0 whose sum is 1 to 1024)");
}

TEST(test_onnx_expand__wants_what_a_gate_is_made_of) {
    add(*state, "com.microsoft", "LinearAttentionGate", "a b c", "decay y");
    expect(*state,
           "unsupported: op com.microsoft.LinearAttentionGate version 1 (output beta without "
           "input b)");
}

TEST(test_onnx_expand__counts_inputs) {
    model_builder *builder = *state;
    add(builder, "com.microsoft", "BiasGelu", "a", "y");
    expect(builder, "BiasGelu node \"node\": has 1 inputs; the op takes 2 to 2");
}

TEST(test_onnx_expand__names_an_activation) {
    model_builder *builder = *state;
    Onnx__NodeProto *node = add(builder, "com.microsoft", "FusedGemm", "a b", "y");
    Onnx__AttributeProto *attribute = model_builder_add_attribute(
        builder, node, "activation", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);
    attribute->s.data = (uint8_t *)model_builder_copy(builder, "Frob");
    attribute->s.len = 4;
    attribute->has_s = true;
    expect(builder, "unsupported: op com.microsoft.FusedGemm version 1 (activation Frob)");
}

TEST(test_onnx_expand__refuses_an_output_that_nothing_makes) {
    model_builder *builder = *state;
    add(builder, "com.microsoft", "SkipSimplifiedLayerNormalization", "a b c", "y mean");
    expect(builder,
           "unsupported: op com.microsoft.SkipSimplifiedLayerNormalization version 1 (output 1)");
}

TEST(test_onnx_expand__names_the_version) {
    model_builder *builder = *state;
    model_builder_import_opset(builder, "com.microsoft", 2);
    builder->model->opset_import[1]->version = 2;
    add(builder, "com.microsoft", "BiasGelu", "a b", "y");
    expect(builder, "unsupported: op com.microsoft.BiasGelu version 2 (versions 1 to 1 are known)");
}

TEST(test_onnx_expand__says_what_to_do_about_other_domains) {
    model_builder *builder = *state;
    add(builder, "com.microsoft.nchwc", "Conv", "a b", "y");
    add(builder, "some.vendor", "Conv", "a b", "z");
    expect(builder,
           "unsupported: op com.microsoft.nchwc.Conv version 1 (a layout of ONNX Runtime's for "
           "one machine: save the model with a lower optimisation level); op some.vendor.Conv "
           "version 1 (the op is unknown: rondo_op_register adds one)");
}

static rondo_status launch_nothing(rondo_op_node *node, const rondo_op_launch *launch) {
    (void)node;
    (void)launch;
    return RONDO_STATUS_OK;
}

// A user's op goes before what is written out; last, as it stays.
TEST(test_onnx_expand__leaves_an_op_of_a_user) {
    model_builder *builder = *state;
    const rondo_op_definition definition = {.struct_size = sizeof definition,
                                            .domain = "com.microsoft",
                                            .name = "BiasGelu",
                                            .version_min = 1,
                                            .input_min = 2,
                                            .input_max = 2,
                                            .output_min = 1,
                                            .output_max = 1,
                                            .infer = user_ops_infer_same,
                                            .host = {.launch = launch_nothing}};
    assert_int_equal(rondo_op_register(&definition), RONDO_STATUS_OK);
    add(builder, "com.microsoft", "BiasGelu", "a b", "y");
    expect(builder, "BiasGelu:node");
}

TEST_MAIN_WITH(set_up, parse_model_tear_down)

// Each allocation of an import fails once, in turn: a clear error, no leak, no half-made program.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "program/program.h"
#include "rondo/onnx.h"
#include "support/models/model_builder.h"
#include "support/sweep.h"

// Strings, and a ZipMap with its labels.
static void add_strings(model_builder *builder, Onnx__GraphProto *graph) {
    static const char *const texts[] = {"yes", "no"};
    ProtobufCBinaryData *words = model_builder_allocate(builder, 2 * sizeof *words);
    for (size_t i = 0; i < 2; ++i) {
        char *copy = model_builder_copy(builder, texts[i]);
        words[i] = (ProtobufCBinaryData){.len = strlen(copy), .data = (uint8_t *)copy};
    }
    Onnx__TensorProto *tensor =
        model_builder_add_initializer(builder, graph, "words", 8, 1, (const int64_t[]){2});
    tensor->n_string_data = 2;
    tensor->string_data = words;
    Onnx__NodeProto *constant = model_builder_add_node(builder, graph, "Constant", "", "", "more");
    Onnx__AttributeProto *strings = model_builder_add_attribute(
        builder, constant, "value_strings", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS);
    strings->n_strings = 2;
    strings->strings = words;
    model_builder_add_node(builder, graph, "Concat", "", "words more", "all");
    Onnx__NodeProto *zip =
        model_builder_add_node(builder, graph, "ai.onnx.ml:ZipMap", "", "x", "scores");
    Onnx__AttributeProto *labels = model_builder_add_attribute(
        builder, zip, "classlabels_strings", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS);
    labels->n_strings = 2;
    labels->strings = words;
    model_builder_add_output(builder, graph, "all", 8, "4");
    model_builder_add_output(builder, graph, "scores", 1, NULL);
}

// A model with a bit of everything: weights, constants, symbols, bodies with captures, functions.
static uint8_t *build_model(model_builder *builder, size_t *out_count) {
    model_builder_init(builder);
    const float values[3] = {1, 2, 3};
    Onnx__GraphProto *graph = builder->graph;
    model_builder_add_floats(builder, graph, "weight", values, 3);
    model_builder_add_input(builder, graph, "c", 9, "");
    model_builder_add_input(builder, graph, "x", 1, "batch 3");
    Onnx__FunctionProto *function =
        model_builder_add_function(builder, "my", "Shift", "a b", "result");
    model_builder_add_function_node(builder, function, "Add", "a b", "inner");
    model_builder_add_function_node(builder, function, "Relu", "inner", "result");
    model_builder_add_node(builder, graph, "my:Shift", "", "x weight", "shifted");
    Onnx__GraphProto *bodies[2];
    for (int i = 0; i < 2; ++i) {
        bodies[i] = model_builder_new_graph(builder, "body");
        model_builder_add_node(builder, bodies[i], "Mul", "", "shifted weight", "product");
        model_builder_add_output(builder, bodies[i], "product", 1, NULL);
    }
    Onnx__NodeProto *branch = model_builder_add_node(builder, graph, "If", "", "c", "y");
    model_builder_add_body(builder, branch, "then_branch", bodies[0]);
    model_builder_add_body(builder, branch, "else_branch", bodies[1]);
    Onnx__NodeProto *softmax = model_builder_add_node(builder, graph, "Softmax", "", "y", "z");
    model_builder_add_attribute(builder, softmax, "axis",
                                ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT)
        ->i = -1;
    model_builder_add_output(builder, graph, "z", 1, "batch 3");
    add_strings(builder, graph);
    return model_builder_pack(builder, out_count);
}

static rondo_status import_and_copy(const uint8_t *bytes, size_t count) {
    rondo_program *program = NULL;
    rondo_program *copy = NULL;
    rondo_status status = rondo_program_parse_onnx(bytes, count, &program);
    if (status == RONDO_STATUS_OK) {
        status = rondo__program_clone(program, &copy);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__program_remove_dead(copy);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__program_verify(copy);
    }
    rondo_program_destroy(copy);
    rondo_program_destroy(program);
    return status;
}

TEST(test_onnx_import__every_allocation_fails_once) {
    model_builder builder;
    size_t count = 0;
    const uint8_t *bytes = build_model(&builder, &count);
    OK(import_and_copy(bytes, count));
    size_t points = 0;
    for (bool has_failed = true; has_failed;) {
        uint64_t sequence = rondo_error_get_last()->sequence;
        sweep_fail_allocation(points, false);
        rondo_status status = import_and_copy(bytes, count);
        has_failed = sweep_end_allocations();
        (void)sweep_step(status, sequence, "import_and_copy");
        assert_int_equal(status, has_failed ? RONDO_STATUS_NO_MEMORY : RONDO_STATUS_OK);
        points += has_failed;
    }
    print_message("%zu allocations failed in turn\n", points);
    assert_true(points > 100);
    model_builder_deinit(&builder);
}

TEST_MAIN()

// Whole models: ports, constants, mapped weights, what is unsupported, what is malformed.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "program/program.h"
#include "rondo/onnx.h"
#include "support/models/model_builder.h"
#include "support/models/parse_model.h"
#include "support/test.h"

static const rondo_tensor *get_constant(const rondo_program *program, const char *name) {
    int32_t number = rondo__program_find_value(program, name);
    assert_true(number >= 0);
    const rondo_tensor *tensor = &program->values[number].constant;
    assert_int_not_equal(tensor->dtype, RONDO_DTYPE_NONE);
    return tensor;
}

TEST(test_onnx_importer__reads_ports_and_nodes) {
    model_builder *builder = *state;
    const float values[3] = {1, 2, 3};
    model_builder_add_floats(builder, builder->graph, "weight", values, 3);
    model_builder_add_input(builder, builder->graph, "x", 1, "batch 3");
    // An initializer may be an input as well (files of IR version 3 list them all).
    model_builder_add_input(builder, builder->graph, "weight", 1, "3");
    // Users before makers: files need not be sorted.
    model_builder_add_node(builder, builder->graph, "Relu", "", "sum", "y");
    model_builder_add_node(builder, builder->graph, "Add", "add", "x weight", "sum");
    model_builder_add_output(builder, builder->graph, "y", 1, "batch ?");
    rondo_program *program = parse_model_ok(builder);
    assert_int_equal(rondo_program_get_input_count(program), 1);
    assert_int_equal(rondo_program_get_output_count(program), 1);
    rondo_port port = {.struct_size = sizeof port};
    assert_int_equal(rondo_program_get_input(program, 0, &port), RONDO_STATUS_OK);
    assert_string_equal(port.name, "x");
    assert_int_equal(port.dtype, RONDO_DTYPE_F32);
    assert_int_equal(port.rank, 2);
    assert_string_equal(port.symbol[0], "batch");
    assert_int_equal(port.extent[1], 3);
    assert_int_equal(rondo_program_get_output(program, 0, &port), RONDO_STATUS_OK);
    assert_string_equal(port.symbol[0], "batch");
    assert_int_equal(port.extent[1], -1);
    assert_null(port.symbol[1]);
    assert_int_equal(program->symbol_count, 1);
    assert_int_equal(program->node_count, 2);
    assert_string_equal(program->nodes[0].op.name, "add");
    assert_int_equal(program->nodes[0].op.opset, 17);
    assert_string_equal(program->nodes[1].op.name, "Relu_0");
    assert_memory_equal(get_constant(program, "weight")->data, values, sizeof(values));
    rondo_program_destroy(program);
}

TEST(test_onnx_importer__maps_large_weights) {
    model_builder *builder = *state;
    enum { COUNT = 4096 };
    float values[COUNT];
    for (int i = 0; i < COUNT; ++i) {
        values[i] = (float)i;
    }
    // Four weights whose offsets differ by their names' lengths: at least one is aligned.
    const char *names[4] = {"a", "ab", "abc", "abcd"};
    for (int i = 0; i < 4; ++i) {
        model_builder_add_floats(builder, builder->graph, names[i], values, COUNT);
        model_builder_add_output(builder, builder->graph, names[i], 1, NULL);
    }
    size_t count = 0;
    const uint8_t *bytes = model_builder_pack(builder, &count);
    char *folder = model_builder_make_folder(builder);
    char *path = model_builder_write_file(builder, folder, "model.onnx", bytes, count);
    rondo_program *program = NULL;
    assert_int_equal(rondo_program_load_onnx(path, &program), RONDO_STATUS_OK);
    int mapped_count = 0;
    for (int i = 0; i < 4; ++i) {
        const rondo_tensor *tensor = get_constant(program, names[i]);
        assert_int_equal((uintptr_t)tensor->data % sizeof(float), 0);
        assert_memory_equal(tensor->data, values, sizeof(values));
        // Copies are aligned to 64 bytes; what lies in the file is behind a header.
        mapped_count += (uintptr_t)tensor->data % 64 != 0;
    }
    assert_true(mapped_count >= 1);
    // A tensor keeps the file mapped when the program is gone.
    rondo_tensor kept;
    rondo_tensor_share(get_constant(program, "abc"), &kept);
    rondo_program_destroy(program);
    remove(path);
    remove(folder);
    assert_memory_equal(kept.data, values, sizeof(values));
    rondo_tensor_deinit(&kept);
}

TEST(test_onnx_importer__reads_all_forms_of_constant) {
    model_builder *builder = *state;
    float floats[2] = {0.5f, 2};
    int64_t ints[3] = {7, 8, 9};
    const int64_t dims[1] = {3};
    Onnx__NodeProto *node =
        model_builder_add_node(builder, builder->graph, "Constant", "", "", "tensor");
    Onnx__AttributeProto *attribute = model_builder_add_attribute(
        builder, node, "value", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR);
    attribute->t = model_builder_new_tensor(builder, "", 7, 1, dims);
    model_builder_set_raw(builder, attribute->t, ints, sizeof(ints));
    node = model_builder_add_node(builder, builder->graph, "Constant", "", "", "float");
    model_builder_add_attribute(builder, node, "value_float",
                                ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT)
        ->f = 0.25f;
    node = model_builder_add_node(builder, builder->graph, "Constant", "", "", "int");
    model_builder_add_attribute(builder, node, "value_int",
                                ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT)
        ->i = -3;
    node = model_builder_add_node(builder, builder->graph, "Constant", "", "", "floats");
    attribute = model_builder_add_attribute(builder, node, "value_floats",
                                            ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS);
    attribute->n_floats = 2;
    attribute->floats = floats;
    node = model_builder_add_node(builder, builder->graph, "Constant", "", "", "ints");
    attribute = model_builder_add_attribute(builder, node, "value_ints",
                                            ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
    attribute->n_ints = 3;
    attribute->ints = ints;
    model_builder_add_output(builder, builder->graph, "ints", 7, NULL);
    rondo_program *program = parse_model_ok(builder);
    assert_int_equal(program->node_count, 0);
    assert_memory_equal(get_constant(program, "tensor")->data, ints, sizeof(ints));
    assert_int_equal(get_constant(program, "float")->shape.rank, 0);
    assert_true(*(const float *)get_constant(program, "float")->data == 0.25f);
    assert_int_equal(*(const int64_t *)get_constant(program, "int")->data, -3);
    assert_int_equal(get_constant(program, "floats")->shape.extent[0], 2);
    assert_memory_equal(get_constant(program, "floats")->data, floats, sizeof(floats));
    assert_memory_equal(get_constant(program, "ints")->data, ints, sizeof(ints));
    rondo_program_destroy(program);
}

// ---- what is unsupported

TEST(test_onnx_importer__names_unsupported_ops) {
    model_builder *builder = *state;
    model_builder_add_input(builder, builder->graph, "x", 1, "2");
    Onnx__NodeProto *node =
        model_builder_add_node(builder, builder->graph, "NoSuchOp", "odd", "x", "y");
    model_builder_add_output(builder, builder->graph, "y", 1, "2");
    parse_model_refused(builder, RONDO_STATUS_UNSUPPORTED, "unsupported: op NoSuchOp version 17");
    assert_string_equal(rondo_error_get_last()->op, "odd");
    node->domain = model_builder_copy(builder, "com.example");
    parse_model_refused(builder, RONDO_STATUS_UNSUPPORTED,
                        "unsupported: op com.example.NoSuchOp version 1");
    node->domain = model_builder_copy(builder, "ai.onnx");
    node->op_type = model_builder_copy(builder, "Relu");
    rondo_program_destroy(parse_model_ok(builder));
}

TEST(test_onnx_importer__names_unsupported_attributes) {
    model_builder *builder = *state;
    model_builder_add_input(builder, builder->graph, "x", 1, "2");
    Onnx__NodeProto *node = model_builder_add_node(builder, builder->graph, "Relu", "", "x", "y");
    model_builder_add_attribute(builder, node, "speed", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    model_builder_add_output(builder, builder->graph, "y", 1, "2");
    parse_model_refused(builder, RONDO_STATUS_UNSUPPORTED,
                        "unsupported: op Relu version 17 (attribute speed)");
    node = model_builder_add_node(builder, builder->graph, "Constant", "", "", "c");
    model_builder_add_attribute(builder, node, "sparse_value",
                                ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);
    parse_model_refused(builder, RONDO_STATUS_UNSUPPORTED,
                        "unsupported: op Constant version 17 (attribute sparse_value)");
}

TEST(test_onnx_importer__names_all_that_is_unsupported) {
    model_builder *builder = *state;
    model_builder_add_input(builder, builder->graph, "x", 1, "2");
    model_builder_add_node(builder, builder->graph, "NoSuchOp", "first", "x", "a");
    model_builder_add_node(builder, builder->graph, "Relu", "", "a", "b");
    model_builder_add_node(builder, builder->graph, "NoSuchOp", "second", "b", "c");
    Onnx__NodeProto *node = model_builder_add_node(builder, builder->graph, "Relu", "", "c", "y");
    model_builder_add_attribute(builder, node, "speed", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    model_builder_add_output(builder, builder->graph, "y", 1, "2");
    parse_model_refused(builder, RONDO_STATUS_UNSUPPORTED,
                        "unsupported: op NoSuchOp version 17 (the op is unknown), 2 nodes; op Relu "
                        "version 17 (attribute "
                        "speed)");
    assert_string_equal(rondo_error_get_last()->op, "first");
    // More than a message can hold are counted.
    for (int i = 0; i < 40; ++i) {
        char op[32];
        char name[32];
        snprintf(op, sizeof op, "Strange%02d", i);
        snprintf(name, sizeof name, "v%d", i);
        model_builder_add_node(builder, builder->graph, op, "", "x", name);
    }
    parse_model_refused(builder, RONDO_STATUS_UNSUPPORTED, "op Strange00 version 17");
    assert_non_null(strstr(rondo_error_get_last()->message, "; and "));
    assert_string_equal(
        rondo_error_get_last()->message + strlen(rondo_error_get_last()->message) - strlen(" more"),
        " more");
}

TEST(test_onnx_importer__names_ops_that_touch_odd_types) {
    model_builder *builder = *state;
    model_builder_add_input(builder, builder->graph, "x", 27, "2");
    model_builder_add_node(builder, builder->graph, "Identity", "", "x", "y");
    model_builder_add_output(builder, builder->graph, "y", 27, "2");
    parse_model_refused(builder, RONDO_STATUS_UNSUPPORTED,
                        "unsupported: op Identity version 17 (input \"x\" is a tensor of "
                        "float6e2m3: use float8e4m3fn)");
    builder->graph->n_node = 0;
    builder->graph->n_output = 0;
    parse_model_refused(builder, RONDO_STATUS_UNSUPPORTED,
                        "unsupported: input \"x\" is a tensor of float6e2m3: use float8e4m3fn");
}

// Each type that ONNX defines and Rondo does not have is refused by ONNX's name, with the tensor,
// wherever it stands: inputs, outputs, initializers, Constants, casts.
TEST(test_onnx_importer__names_element_types) {
    model_builder *builder = *state;
    static const struct {
        int32_t number;
        const char *name;
    } types[] = {
        {27, "float6e2m3"},
        {28, "float6e3m2"},
    };
    static const int64_t two[] = {2};
    Onnx__GraphProto *graph = builder->graph;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; ++i) {
        const char *type = types[i].name;
        char wanted[128];
        graph->n_input = graph->n_output = graph->n_node = graph->n_initializer = 0;
        model_builder_add_input(builder, graph, "x", types[i].number, "2");
        snprintf(wanted, sizeof wanted, "unsupported: input \"x\" is a tensor of %s: use ", type);
        parse_model_refused(builder, RONDO_STATUS_UNSUPPORTED, wanted);
        model_builder_add_node(builder, graph, "Identity", "", "x", "y");
        snprintf(wanted, sizeof wanted, "Identity version 17 (input \"x\" is a tensor of %s: use ",
                 type);
        parse_model_refused(builder, RONDO_STATUS_UNSUPPORTED, wanted);
        graph->n_input = 0;
        model_builder_add_initializer(builder, graph, "x", types[i].number, 1, two);
        parse_model_refused(builder, RONDO_STATUS_UNSUPPORTED, wanted);
        graph->n_initializer = graph->n_node = 0;
        Onnx__NodeProto *node = model_builder_add_node(builder, graph, "Constant", "", "", "c");
        model_builder_add_attribute(builder, node, "value",
                                    ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR)
            ->t = model_builder_new_tensor(builder, "", types[i].number, 1, two);
        snprintf(wanted, sizeof wanted,
                 "Constant version 17 (attribute value is a tensor of %s: use ", type);
        parse_model_refused(builder, RONDO_STATUS_UNSUPPORTED, wanted);
        graph->n_node = 0;
        model_builder_add_input(builder, graph, "x", 1, "2");
        node = model_builder_add_node(builder, graph, "Cast", "", "x", "y");
        model_builder_set_int(builder, node, "to", types[i].number);
        snprintf(wanted, sizeof wanted, "Cast version 17 (attribute to=%d, %s: use ",
                 (int)types[i].number, type);
        parse_model_refused(builder, RONDO_STATUS_UNSUPPORTED, wanted);
        model_builder_add_output(builder, graph, "y", types[i].number, "2");
        snprintf(wanted, sizeof wanted, "Cast version 17 (output \"y\" is a tensor of %s: use ",
                 type);
        parse_model_refused(builder, RONDO_STATUS_UNSUPPORTED, wanted);
    }
}

// What is missing for one reason is one entry, however many values or ops it meets.
TEST(test_onnx_importer__one_reason_is_one_entry) {
    model_builder *builder = *state;
    static const int64_t two[] = {2};
    for (int i = 0; i < 20; ++i) {
        char name[16];
        char result[16];
        snprintf(name, sizeof name, "w%d", i);
        snprintf(result, sizeof result, "y%d", i);
        model_builder_add_initializer(builder, builder->graph, name, 27, 1, two);
        model_builder_add_node(builder, builder->graph, "Relu", "", name, result);
    }
    parse_model_refused(
        builder, RONDO_STATUS_UNSUPPORTED,
        "unsupported: op Relu version 17 (input \"w0\" is a tensor of float6e2m3: use "
        "float8e4m3fn), 20 nodes");
    // Ops that are known in other opsets, and one that is known in none.
    builder->model->opset_import[0]->version = 30;
    builder->graph->n_initializer = builder->graph->n_node = 0;
    model_builder_add_input(builder, builder->graph, "x", 1, "2");
    model_builder_add_node(builder, builder->graph, "Relu", "", "x", "a");
    model_builder_add_node(builder, builder->graph, "Exp", "", "a", "b");
    model_builder_add_node(builder, builder->graph, "NoSuchOp", "", "b", "c");
    parse_model_refused(
        builder, RONDO_STATUS_UNSUPPORTED,
        "unsupported: opset 30 (opsets 9 to 28 are known: export the model for one of "
        "them, or try allow_newer_opset (--allow-newer-opset)), 3 nodes");
    builder->model->opset_import[0]->version = 28;
    parse_model_refused(builder, RONDO_STATUS_UNSUPPORTED,
                        "unsupported: op NoSuchOp version 28 (the op is unknown)");
}

typedef struct missing_list {
    int entry_count;
    size_t exotic_count;
    size_t attribute_count;
} missing_list;

static void visit_missing(void *user_data, const char *domain, const char *op, int64_t version,
                          const char *detail, size_t count) {
    missing_list *list = user_data;
    list->entry_count += 1;
    if (strcmp(domain, "com.example") == 0 && strcmp(op, "Exotic") == 0 && version == 3 &&
        strcmp(detail, "the op is unknown: rondo_op_register adds one") == 0) {
        list->exotic_count = count;
    }
    if (strcmp(op, "Relu") == 0 && strcmp(detail, "attribute speed") == 0) {
        list->attribute_count = count;
    }
}

TEST(test_onnx_importer__lists_all_that_is_unsupported) {
    model_builder *builder = *state;
    model_builder_import_opset(builder, "com.example", 3);
    model_builder_add_input(builder, builder->graph, "x", 1, "2");
    Onnx__GraphProto *body = model_builder_new_graph(builder, "body");
    model_builder_add_node(builder, body, "com.example:Exotic", "", "x", "inner");
    model_builder_add_output(builder, body, "inner", 1, NULL);
    Onnx__GraphProto *other = model_builder_new_graph(builder, "other");
    model_builder_add_output(builder, other, "x", 1, NULL);
    model_builder_add_input(builder, builder->graph, "c", 9, "");
    model_builder_add_node(builder, builder->graph, "com.example:Exotic", "", "x", "y");
    Onnx__NodeProto *node = model_builder_add_node(builder, builder->graph, "Relu", "", "y", "z");
    model_builder_add_attribute(builder, node, "speed", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    node = model_builder_add_node(builder, builder->graph, "If", "", "c", "w");
    model_builder_add_body(builder, node, "then_branch", body);
    model_builder_add_body(builder, node, "else_branch", other);
    model_builder_add_output(builder, builder->graph, "z", 1, "2");
    size_t count = 0;
    const uint8_t *bytes = model_builder_pack(builder, &count);
    char *folder = model_builder_make_folder(builder);
    char *path = model_builder_write_file(builder, folder, "model.onnx", bytes, count);
    missing_list list = {0};
    assert_int_equal(rondo_onnx_list_unsupported(path, visit_missing, &list), RONDO_STATUS_OK);
    assert_int_equal(list.entry_count, 2);
    assert_int_equal(list.exotic_count, 2);
    assert_int_equal(list.attribute_count, 1);
    remove(path);
    remove(folder);
}

// ---- what is malformed

TEST(test_onnx_importer__refuses_what_is_no_model) {
    rondo_program *program = NULL;
    assert_int_equal(rondo_program_parse_onnx("", 0, &program), RONDO_STATUS_BAD_DATA);
    assert_int_equal(rondo_program_parse_onnx(NULL, 4, &program), RONDO_STATUS_INVALID);
    assert_int_equal(rondo_program_parse_onnx("hello, world", 12, &program), RONDO_STATUS_BAD_DATA);
    const uint8_t no_graph[] = {0x08, 0x08};
    assert_int_equal(rondo_program_parse_onnx(no_graph, 2, &program), RONDO_STATUS_BAD_DATA);
    assert_non_null(strstr(rondo_error_get_last()->message, "no graph"));
    assert_null(program);
}

TEST(test_onnx_importer__names_the_file) {
    char *folder = model_builder_make_folder(*state);
    char *path = model_builder_write_file(*state, folder, "broken.onnx", "hello, world", 12);
    rondo_program *program = NULL;
    assert_int_equal(rondo_program_load_onnx(path, &program), RONDO_STATUS_BAD_DATA);
    assert_non_null(strstr(rondo_error_get_last()->message, "broken.onnx: malformed protobuf"));
    assert_int_equal(rondo_program_load_onnx(folder, &program), RONDO_STATUS_UNAVAILABLE);
    remove(path);
    assert_int_equal(rondo_program_load_onnx(path, &program), RONDO_STATUS_UNAVAILABLE);
    assert_non_null(strstr(rondo_error_get_last()->message, "broken.onnx"));
    remove(folder);
}

TEST(test_onnx_importer__refuses_cycles) {
    model_builder *builder = *state;
    model_builder_add_node(builder, builder->graph, "Relu", "there", "b", "a");
    model_builder_add_node(builder, builder->graph, "Relu", "back", "a", "b");
    model_builder_add_output(builder, builder->graph, "b", 1, NULL);
    parse_model_refused(builder, RONDO_STATUS_BAD_DATA, "cycle");
}

TEST(test_onnx_importer__refuses_duplicate_names) {
    model_builder *builder = *state;
    const float value = 1;
    model_builder_add_input(builder, builder->graph, "x", 1, "2");
    model_builder_add_node(builder, builder->graph, "Relu", "", "x", "y");
    model_builder_add_node(builder, builder->graph, "Relu", "again", "x", "y");
    parse_model_refused(builder, RONDO_STATUS_BAD_DATA, "\"y\" is made twice");
    builder->graph->n_node = 1;
    model_builder_add_input(builder, builder->graph, "x", 1, "2");
    parse_model_refused(builder, RONDO_STATUS_BAD_DATA, "\"x\" is declared twice");
    builder->graph->n_input = 1;
    model_builder_add_floats(builder, builder->graph, "w", &value, 1);
    model_builder_add_floats(builder, builder->graph, "w", &value, 1);
    parse_model_refused(builder, RONDO_STATUS_BAD_DATA, "\"w\" stands there twice");
    builder->graph->n_initializer = 0;
    model_builder_add_floats(builder, builder->graph, "y", &value, 1);
    parse_model_refused(builder, RONDO_STATUS_BAD_DATA, "\"y\" is made twice");
}

TEST(test_onnx_importer__refuses_dangling_names) {
    model_builder *builder = *state;
    model_builder_add_node(builder, builder->graph, "Relu", "user", "nowhere", "y");
    model_builder_add_output(builder, builder->graph, "y", 1, NULL);
    parse_model_refused(builder, RONDO_STATUS_BAD_DATA, "Relu node \"user\"");
    parse_model_refused(builder, RONDO_STATUS_BAD_DATA, "\"nowhere\"");
    builder->graph->n_node = 0;
    parse_model_refused(builder, RONDO_STATUS_BAD_DATA, "\"y\"");
}

TEST(test_onnx_importer__knows_ir_versions_1_to_14) {
    model_builder *builder = *state;
    model_builder_add_input(builder, builder->graph, "x", 1, "2");
    model_builder_add_node(builder, builder->graph, "Relu", "r", "x", "y");
    model_builder_add_output(builder, builder->graph, "y", 1, "2");
    for (int64_t version = 1; version <= 14; ++version) {
        builder->model->ir_version = version;
        rondo_program_destroy(parse_model_ok(builder));
    }
    builder->model->ir_version = 15;
    parse_model_refused(builder, RONDO_STATUS_UNSUPPORTED,
                        "ir_version 15, with opset 17; 1 to 14 are known");
    builder->model->ir_version = INT64_MAX;
    parse_model_refused(builder, RONDO_STATUS_UNSUPPORTED, "ir_version 9223372036854775807");
    builder->model->ir_version = 0;
    parse_model_refused(builder, RONDO_STATUS_BAD_DATA, "names no ir_version");
    builder->model->has_ir_version = 0;
    parse_model_refused(builder, RONDO_STATUS_BAD_DATA, "names no ir_version");
}

// Ops that a later opset defines anew with more types only, or not at all, are read as before.
TEST(test_onnx_importer__knows_opsets_9_to_28) {
    model_builder *builder = *state;
    Onnx__GraphProto *graph = builder->graph;
    model_builder_add_input(builder, graph, "x", 1, "2 3");
    model_builder_add_node(builder, graph, "Identity", "", "x", "a");
    model_builder_add_node(builder, graph, "Relu", "", "a", "b");
    model_builder_add_node(builder, graph, "Sin", "", "b", "c");
    model_builder_add_node(builder, graph, "Flatten", "", "c", "y");
    model_builder_add_node(builder, graph, "Shape", "", "a", "s");
    model_builder_add_output(builder, graph, "y", 1, "2 3");
    model_builder_add_output(builder, graph, "s", 7, "2");
    for (int64_t opset = 9; opset <= 28; ++opset) {
        builder->model->opset_import[0]->version = opset;
        rondo_program_destroy(parse_model_ok(builder));
    }
    builder->model->opset_import[0]->version = 29;
    parse_model_refused(builder, RONDO_STATUS_UNSUPPORTED, "unsupported: opset 29 (opsets 9 to 28");
}

// What a version adds is asked for by name, and is not there before it.
TEST(test_onnx_importer__versions_bring_attributes) {
    static const struct {
        const char *op, *attribute;
        int64_t value;
        int64_t since;
        const char *refused;  // of the value, at `since`; NULL: it is understood
    } rows[] = {
        {"QuantizeLinear", "precision", 1, 23, NULL},
        {"DequantizeLinear", "output_dtype", 1, 23, NULL},
        {"Range", "stash_type", 1, 27, NULL},
        {"Range", "stash_type", 16, 27, "(attribute stash_type is no f32)"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        model_builder *builder = *state;
        Onnx__GraphProto *graph = builder->graph;
        const bool takes_bytes = rows[i].op[0] == 'D';
        const bool is_range = rows[i].op[0] == 'R';
        char wanted[120];
        graph->n_input = graph->n_output = graph->n_node = 0;
        model_builder_add_input(builder, graph, "x", takes_bytes ? 2 : 1, is_range ? "" : "2");
        model_builder_add_input(builder, graph, "scale", 1, "");
        model_builder_add_input(builder, graph, "step", 1, "");
        Onnx__NodeProto *node = model_builder_add_node(builder, graph, rows[i].op, "",
                                                       is_range ? "x scale step" : "x scale", "y");
        model_builder_set_int(builder, node, rows[i].attribute, rows[i].value);
        model_builder_add_output(builder, graph, "y", takes_bytes || is_range ? 1 : 2, NULL);
        builder->model->opset_import[0]->version = rows[i].since - 1;
        snprintf(wanted, sizeof wanted, "op %s version %d (attribute %s)", rows[i].op,
                 (int)rows[i].since - 1, rows[i].attribute);
        parse_model_refused(builder, RONDO_STATUS_UNSUPPORTED, wanted);
        builder->model->opset_import[0]->version = rows[i].since;
        if (rows[i].refused != NULL) {
            parse_model_refused(builder, RONDO_STATUS_UNSUPPORTED, rows[i].refused);
        } else {
            rondo_program_destroy(parse_model_ok(builder));
        }
    }
}

TEST(test_onnx_importer__flags_are_0_or_1) {
    model_builder *builder = *state;
    model_builder_add_input(builder, builder->graph, "x", 1, "2 3");
    Onnx__NodeProto *node =
        model_builder_add_node(builder, builder->graph, "ReduceMax", "most", "x", "y");
    Onnx__AttributeProto *flag = model_builder_add_attribute(
        builder, node, "keepdims", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    flag->has_i = 1;
    model_builder_add_output(builder, builder->graph, "y", 1, NULL);
    for (flag->i = 0; flag->i <= 1; ++flag->i) {
        rondo_program_destroy(parse_model_ok(builder));
    }
    static const int64_t wrong[] = {2, -1, INT64_MIN};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) {
        flag->i = wrong[i];
        parse_model_refused(builder, RONDO_STATUS_BAD_DATA,
                            "ReduceMax node \"most\": attribute keepdims is ");
    }
}

// A function that a model calls again and again is written out each time.
TEST(test_onnx_importer__a_load_has_a_memory_limit) {
    model_builder *builder = *state;
    enum { CALLS = 64, ELEMENTS = 4096, LIST = 2048 };
    model_builder_import_opset(builder, "own", 1);
    Onnx__FunctionProto *function = model_builder_add_function(builder, "own", "Big", "a", "b");
    const int64_t dims[1] = {ELEMENTS};
    float *elements = model_builder_allocate(builder, ELEMENTS * sizeof *elements);
    Onnx__TensorProto *tensor = model_builder_new_tensor(builder, "big", 1, 1, dims);
    model_builder_set_raw(builder, tensor, elements, ELEMENTS * sizeof *elements);
    Onnx__NodeProto *constant =
        model_builder_add_function_node(builder, function, "Constant", "", "c");
    model_builder_add_attribute(builder, constant, "value",
                                ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR)
        ->t = tensor;
    Onnx__NodeProto *transpose =
        model_builder_add_function_node(builder, function, "Transpose", "a", "b");
    Onnx__AttributeProto *perm = model_builder_add_attribute(
        builder, transpose, "perm", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
    perm->ints = model_builder_allocate(builder, LIST * sizeof *perm->ints);
    perm->n_ints = LIST;
    model_builder_add_input(builder, builder->graph, "x", 1, "2");
    for (int i = 0; i < CALLS; ++i) {
        char output[16];
        (void)snprintf(output, sizeof output, "y%d", i);
        model_builder_add_node(builder, builder->graph, "Big", output, "x", output)->domain =
            model_builder_copy(builder, "own");
    }
    model_builder_add_output(builder, builder->graph, "y0", 1, NULL);
    char *folder = model_builder_make_folder(builder);
    size_t count = 0;
    const uint8_t *bytes = model_builder_pack(builder, &count);
    char *path = model_builder_write_file(builder, folder, "model.onnx", bytes, count);
    static const uint64_t limits[] = {1, 100 << 10, 1 << 20, 64 << 20, 0};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; ++i) {
        rondo_program *program = NULL;
        const rondo_load_options options = {.struct_size = sizeof options,
                                            .memory_limit_bytes = limits[i]};
        rondo_status status = rondo_program_load_onnx_with(path, &options, &program);
        const char *message = rondo_error_get_last()->message;
        if (i >= 3) {
            assert_int_equal(status, RONDO_STATUS_OK);
        } else {
            assert_int_equal(status, RONDO_STATUS_NO_MEMORY);
            assert_null(program);
            assert_non_null(strstr(message, "model.onnx: "));
            assert_non_null(strstr(message, " node \""));
            assert_non_null(strstr(message, "memory_limit_bytes"));
        }
        rondo_program_destroy(program);
    }
    remove(path);
    remove(folder);
}

TEST(test_onnx_importer__initializers_fit_their_inputs) {
    model_builder *builder = *state;
    const float values[3] = {1, 2, 3};
    model_builder_add_floats(builder, builder->graph, "w", values, 3);
    model_builder_add_output(builder, builder->graph, "w", 1, NULL);
    static const struct {
        int32_t type;
        const char *shape;
        const char *message;  // NULL: fine
    } rows[] = {
        {1, "3", NULL},
        {1, "n", NULL},
        {1, "-1", NULL},
        {1, NULL, NULL},
        {0, "3", NULL},
        {1, "4", "input \"w\" is declared [4], its initializer is [3]"},
        {1, "3 1", "input \"w\" is declared [3, 1], its initializer is [3]"},
        {1, "", "input \"w\" is declared [], its initializer is [3]"},
        {7, "3", "input \"w\" is declared i64, its initializer is f32"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        builder->graph->n_input = 0;
        model_builder_add_input(builder, builder->graph, "w", rows[i].type, rows[i].shape);
        if (rows[i].message == NULL) {
            rondo_program_destroy(parse_model_ok(builder));
        } else {
            parse_model_refused(builder, RONDO_STATUS_BAD_DATA, rows[i].message);
        }
    }
}

// Old exporters write -1 for what they do not know, others a mark.
TEST(test_onnx_importer__negative_extents_are_unknown) {
    model_builder *builder = *state;
    model_builder_add_input(builder, builder->graph, "x", 1, "-1 3 -2 ? None n");
    model_builder_add_output(builder, builder->graph, "x", 1, NULL);
    rondo_program *program = parse_model_ok(builder);
    rondo_port port = {.struct_size = sizeof port};
    assert_int_equal(rondo_program_get_input(program, 0, &port), RONDO_STATUS_OK);
    assert_int_equal(port.rank, 6);
    for (int32_t d = 0; d < 6; ++d) {
        assert_int_equal(port.extent[d], d == 1 ? 3 : -1);
        assert_int_equal(port.symbol[d] != NULL, d == 5);
    }
    rondo_program_destroy(program);
}

// A file that is no ONNX model is told by what it is, and what to do.
TEST(test_onnx_importer__names_files_of_other_kinds) {
    static const struct {
        const char *bytes;
        size_t count;
        const char *message;
    } files[] = {
#define FILE_OF(text, message) {text, sizeof(text) - 1, message}
        FILE_OF("version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git lfs pull"),
        FILE_OF("\x18\0\0\0ORTM\0\0\0\0", "(.ort): use the .onnx file"),
        FILE_OF("\x1c\0\0\0TFL3\0\0\0\0", "a TensorFlow Lite model"),
        FILE_OF("GGUF\3\0\0\0", "a GGUF file"),
        FILE_OF(
            "\x40\0\0\0\0\0\0\0{\"w\":{\"dtype\":\"F32\"}}                                       "
            "          ",
            "a safetensors file"),
        FILE_OF("\n<!DOCTYPE html><html>", "an HTML page"),
        FILE_OF("<html><body>404", "an HTML page"),
        FILE_OF("PK\3\4..........................model/data.pkl", "a PyTorch file"),
        FILE_OF("PK\3\4..........................x.npy", "a NumPy archive"),
        FILE_OF("PK\3\4..........................model.onnx", "a zip archive: unpack it"),
        FILE_OF("\x80\2}q\0.", "a Python pickle"),
        FILE_OF("\x80\4\x95\0", "a Python pickle"),
        FILE_OF("\x1f\x8b\x08\0", "compressed by gzip"),
        FILE_OF("\x93NUMPY\1\0", "a NumPy array"),
        FILE_OF("{\"error\": \"not found\"}", "a JSON text"),
        FILE_OF("neither", "malformed protobuf"),
#undef FILE_OF
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; ++i) {
        rondo_program *program = NULL;
        assert_int_equal(rondo_program_parse_onnx(files[i].bytes, files[i].count, &program),
                         RONDO_STATUS_BAD_DATA);
        const char *message = rondo_error_get_last()->message;
        if (strstr(message, files[i].message) == NULL) {
            fail_msg("\"%s\" does not contain \"%s\"", message, files[i].message);
        }
    }
}

TEST(test_onnx_importer__refuses_absurd_declarations) {
    model_builder *builder = *state;
    model_builder_add_input(builder, builder->graph, "x", 1, "4611686018427387904");
    parse_model_refused(builder, RONDO_STATUS_BAD_DATA, "\"x\"");
    builder->graph->n_input = 0;
    model_builder_add_input(builder, builder->graph, "x", 1, "2147483648 2147483648 8 batch");
    parse_model_refused(builder, RONDO_STATUS_BAD_DATA, "overflows");
    builder->graph->n_input = 0;
    model_builder_add_input(builder, builder->graph, "x", 99, "3");
    parse_model_refused(builder, RONDO_STATUS_BAD_DATA, "element type 99");
    builder->graph->n_input = 0;
    model_builder_add_input(builder, builder->graph, "x", 1, "1 1 1 1 1 1 1 1 1");
    parse_model_refused(builder, RONDO_STATUS_UNSUPPORTED, "rank");
}

TEST(test_onnx_importer__refuses_wrong_counts) {
    model_builder *builder = *state;
    model_builder_add_input(builder, builder->graph, "x", 1, "2");
    model_builder_add_node(builder, builder->graph, "Relu", "many", "x x", "y");
    parse_model_refused(builder, RONDO_STATUS_BAD_DATA, "Relu node \"many\": has 2 inputs");
    builder->graph->n_node = 0;
    model_builder_add_node(builder, builder->graph, "Add", "few", "x", "y");
    parse_model_refused(builder, RONDO_STATUS_BAD_DATA, "has 1 inputs");
    builder->graph->n_node = 0;
    model_builder_add_node(builder, builder->graph, "Relu", "pair", "x", "y z");
    parse_model_refused(builder, RONDO_STATUS_BAD_DATA, "has 2 outputs");
}

TEST(test_onnx_importer__handles_long_chains) {
    model_builder *builder = *state;
    enum { COUNT = 20000 };
    char from[16];
    char to[16];
    model_builder_add_input(builder, builder->graph, "v0", 1, "2");
    for (int i = COUNT; i > 0; --i) {
        snprintf(from, sizeof(from), "v%d", i - 1);
        snprintf(to, sizeof(to), "v%d", i);
        model_builder_add_node(builder, builder->graph, "Relu", "", from, to);
    }
    model_builder_add_output(builder, builder->graph, to, 1, NULL);
    rondo_program *program = parse_model_ok(builder);
    assert_int_equal(program->node_count, COUNT);
    rondo_program_destroy(program);
}

TEST_MAIN_WITH(parse_model_set_up, parse_model_tear_down)

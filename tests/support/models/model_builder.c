// support/models/model_builder.c — small ONNX models for tests.
// SPDX-License-Identifier: Apache-2.0
#include "support/models/model_builder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void fail(const char *what) {
    fprintf(stderr, "model_builder: %s failed\n", what);
    abort();
}

void *model_builder_allocate(model_builder *builder, size_t bytes) {
    void *block = calloc(1, bytes == 0 ? 1 : bytes);
    // Room is there when the count is not a power of two.
    if ((builder->block_count & (builder->block_count - 1)) == 0) {
        const size_t capacity = builder->block_count == 0 ? 1 : 2 * builder->block_count;
        void **blocks = realloc(builder->blocks, capacity * sizeof(*blocks));
        if (blocks == NULL) {
            fail("allocation");
        }
        builder->blocks = blocks;
    }
    if (block == NULL) {
        fail("allocation");
    }
    builder->blocks[builder->block_count++] = block;
    return block;
}

char *model_builder_copy(model_builder *builder, const char *text) {
    char *copy = model_builder_allocate(builder, strlen(text) + 1);
    strcpy(copy, text);
    return copy;
}

// Appends to a list of pointers, whose address is given without its type. Lists grow by copying;
// the old ones stay with the builder.
static void append(model_builder *builder, void *list_address, size_t *count, void *element) {
    void **list = NULL;
    memcpy(&list, list_address, sizeof(list));
    // Room is there when the count is not a power of two.
    if ((*count & (*count - 1)) == 0) {
        size_t capacity = *count == 0 ? 1 : 2 * *count;
        void **grown = model_builder_allocate(builder, capacity * sizeof(*grown));
        if (*count > 0) {
            memcpy(grown, list, *count * sizeof(*grown));
        }
        list = grown;
        memcpy(list_address, &grown, sizeof(grown));
    }
    list[*count] = element;
    *count += 1;
}

static void append_names(model_builder *builder, char ***list, size_t *count, const char *names) {
    while (*names != '\0') {
        size_t length = strcspn(names, " ");
        char *name = model_builder_allocate(builder, length + 1);
        memcpy(name, names, length);
        if (strcmp(name, "-") == 0) {
            name[0] = '\0';
        }
        append(builder, list, count, name);
        names += length;
        names += strspn(names, " ");
    }
}

void model_builder_init(model_builder *builder) {
    *builder = (model_builder){0};
    builder->model = model_builder_allocate(builder, sizeof(*builder->model));
    onnx__model_proto__init(builder->model);
    builder->model->has_ir_version = 1;
    builder->model->ir_version = 8;
    builder->graph = model_builder_new_graph(builder, "main");
    builder->model->graph = builder->graph;
    model_builder_import_opset(builder, "", 17);
}

void model_builder_deinit(model_builder *builder) {
    for (size_t i = 0; i < builder->block_count; ++i) {
        free(builder->blocks[i]);
    }
    free(builder->blocks);
    *builder = (model_builder){0};
}

Onnx__GraphProto *model_builder_new_graph(model_builder *builder, const char *name) {
    Onnx__GraphProto *graph = model_builder_allocate(builder, sizeof(*graph));
    onnx__graph_proto__init(graph);
    graph->name = model_builder_copy(builder, name);
    return graph;
}

static Onnx__OperatorSetIdProto *new_opset(model_builder *builder, const char *domain,
                                           int64_t version) {
    Onnx__OperatorSetIdProto *opset = model_builder_allocate(builder, sizeof(*opset));
    onnx__operator_set_id_proto__init(opset);
    opset->domain = model_builder_copy(builder, domain);
    opset->has_version = 1;
    opset->version = version;
    return opset;
}

void model_builder_import_opset(model_builder *builder, const char *domain, int64_t version) {
    append(builder, &builder->model->opset_import, &builder->model->n_opset_import,
           new_opset(builder, domain, version));
}

Onnx__FunctionProto *model_builder_add_function(model_builder *builder, const char *domain,
                                                const char *name, const char *inputs,
                                                const char *outputs) {
    Onnx__FunctionProto *function = model_builder_allocate(builder, sizeof(*function));
    onnx__function_proto__init(function);
    function->domain = model_builder_copy(builder, domain);
    function->name = model_builder_copy(builder, name);
    append_names(builder, &function->input, &function->n_input, inputs);
    append_names(builder, &function->output, &function->n_output, outputs);
    append(builder, &function->opset_import, &function->n_opset_import, new_opset(builder, "", 17));
    append(builder, &builder->model->functions, &builder->model->n_functions, function);
    return function;
}

static Onnx__NodeProto *new_node(model_builder *builder, const char *op, const char *name,
                                 const char *inputs, const char *outputs) {
    Onnx__NodeProto *node = model_builder_allocate(builder, sizeof(*node));
    onnx__node_proto__init(node);
    const char *colon = strchr(op, ':');
    if (colon != NULL) {
        node->domain = model_builder_copy(builder, op);
        node->domain[colon - op] = '\0';
        op = colon + 1;
    }
    node->op_type = model_builder_copy(builder, op);
    node->name = model_builder_copy(builder, name);
    append_names(builder, &node->input, &node->n_input, inputs);
    append_names(builder, &node->output, &node->n_output, outputs);
    return node;
}

Onnx__NodeProto *model_builder_add_node(model_builder *builder, Onnx__GraphProto *graph,
                                        const char *op, const char *name, const char *inputs,
                                        const char *outputs) {
    Onnx__NodeProto *node = new_node(builder, op, name, inputs, outputs);
    append(builder, &graph->node, &graph->n_node, node);
    return node;
}

Onnx__NodeProto *model_builder_add_function_node(model_builder *builder,
                                                 Onnx__FunctionProto *function, const char *op,
                                                 const char *inputs, const char *outputs) {
    Onnx__NodeProto *node = new_node(builder, op, "", inputs, outputs);
    append(builder, &function->node, &function->n_node, node);
    return node;
}

Onnx__AttributeProto *model_builder_add_attribute(model_builder *builder, Onnx__NodeProto *node,
                                                  const char *name,
                                                  Onnx__AttributeProto__AttributeType type) {
    Onnx__AttributeProto *attribute = model_builder_allocate(builder, sizeof(*attribute));
    onnx__attribute_proto__init(attribute);
    attribute->name = model_builder_copy(builder, name);
    attribute->has_type = 1;
    attribute->type = type;
    attribute->has_f = type == ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT;
    attribute->has_i = type == ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
    attribute->has_s = type == ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING;
    append(builder, &node->attribute, &node->n_attribute, attribute);
    return attribute;
}

void model_builder_set_int(model_builder *builder, Onnx__NodeProto *node, const char *name,
                           int64_t value) {
    Onnx__AttributeProto *attribute = model_builder_add_attribute(
        builder, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    attribute->has_i = 1;
    attribute->i = value;
}

void model_builder_add_body(model_builder *builder, Onnx__NodeProto *node, const char *name,
                            Onnx__GraphProto *body) {
    model_builder_add_attribute(builder, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH)
        ->g = body;
}

static Onnx__TensorShapeProto *new_shape(model_builder *builder, const char *text) {
    Onnx__TensorShapeProto *shape = model_builder_allocate(builder, sizeof(*shape));
    onnx__tensor_shape_proto__init(shape);
    char **parts = NULL;
    size_t count = 0;
    append_names(builder, &parts, &count, text);
    for (size_t i = 0; i < count; ++i) {
        Onnx__TensorShapeProto__Dimension *dimension =
            model_builder_allocate(builder, sizeof(*dimension));
        onnx__tensor_shape_proto__dimension__init(dimension);
        char *end = NULL;
        long long number = strtoll(parts[i], &end, 10);
        if (end != parts[i] && *end == '\0') {
            dimension->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
            dimension->dim_value = number;
        } else if (strcmp(parts[i], "?") != 0) {
            dimension->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
            dimension->dim_param = parts[i];
        }
        append(builder, &shape->dim, &shape->n_dim, dimension);
    }
    return shape;
}

static Onnx__ValueInfoProto *new_info(model_builder *builder, const char *name, int32_t type,
                                      const char *shape) {
    Onnx__ValueInfoProto *info = model_builder_allocate(builder, sizeof(*info));
    onnx__value_info_proto__init(info);
    info->name = model_builder_copy(builder, name);
    info->type = model_builder_allocate(builder, sizeof(*info->type));
    onnx__type_proto__init(info->type);
    info->type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    info->type->tensor_type = model_builder_allocate(builder, sizeof(*info->type->tensor_type));
    onnx__type_proto__tensor__init(info->type->tensor_type);
    info->type->tensor_type->has_elem_type = 1;
    info->type->tensor_type->elem_type = type;
    info->type->tensor_type->shape = shape == NULL ? NULL : new_shape(builder, shape);
    return info;
}

Onnx__ValueInfoProto *model_builder_add_input(model_builder *builder, Onnx__GraphProto *graph,
                                              const char *name, int32_t type, const char *shape) {
    Onnx__ValueInfoProto *info = new_info(builder, name, type, shape);
    append(builder, &graph->input, &graph->n_input, info);
    return info;
}

Onnx__ValueInfoProto *model_builder_add_output(model_builder *builder, Onnx__GraphProto *graph,
                                               const char *name, int32_t type, const char *shape) {
    Onnx__ValueInfoProto *info = new_info(builder, name, type, shape);
    append(builder, &graph->output, &graph->n_output, info);
    return info;
}

Onnx__TensorProto *model_builder_new_tensor(model_builder *builder, const char *name, int32_t type,
                                            size_t rank, const int64_t *dims) {
    Onnx__TensorProto *tensor = model_builder_allocate(builder, sizeof(*tensor));
    onnx__tensor_proto__init(tensor);
    tensor->name = model_builder_copy(builder, name);
    tensor->has_data_type = 1;
    tensor->data_type = type;
    tensor->n_dims = rank;
    tensor->dims = model_builder_allocate(builder, (rank + 1) * sizeof(*tensor->dims));
    if (rank > 0) {
        memcpy(tensor->dims, dims, rank * sizeof(*dims));
    }
    return tensor;
}

void model_builder_set_raw(model_builder *builder, Onnx__TensorProto *tensor, const void *bytes,
                           size_t byte_count) {
    tensor->has_raw_data = 1;
    tensor->raw_data.len = byte_count;
    tensor->raw_data.data = model_builder_allocate(builder, byte_count);
    if (byte_count > 0) {
        memcpy(tensor->raw_data.data, bytes, byte_count);
    }
}

void model_builder_set_external(model_builder *builder, Onnx__TensorProto *tensor,
                                const char *location, const char *offset, const char *length) {
    const char *pairs[3][2] = {{"location", location}, {"offset", offset}, {"length", length}};
    tensor->has_data_location = 1;
    tensor->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    for (size_t i = 0; i < 3; ++i) {
        if (pairs[i][1] == NULL) {
            continue;
        }
        Onnx__StringStringEntryProto *entry = model_builder_allocate(builder, sizeof(*entry));
        onnx__string_string_entry_proto__init(entry);
        entry->key = model_builder_copy(builder, pairs[i][0]);
        entry->value = model_builder_copy(builder, pairs[i][1]);
        append(builder, &tensor->external_data, &tensor->n_external_data, entry);
    }
}

Onnx__TensorProto *model_builder_add_initializer(model_builder *builder, Onnx__GraphProto *graph,
                                                 const char *name, int32_t type, size_t rank,
                                                 const int64_t *dims) {
    Onnx__TensorProto *tensor = model_builder_new_tensor(builder, name, type, rank, dims);
    append(builder, &graph->initializer, &graph->n_initializer, tensor);
    return tensor;
}

void model_builder_add_floats(model_builder *builder, Onnx__GraphProto *graph, const char *name,
                              const float *values, size_t count) {
    int64_t extent = (int64_t)count;
    Onnx__TensorProto *tensor = model_builder_add_initializer(builder, graph, name, 1, 1, &extent);
    model_builder_set_raw(builder, tensor, values, count * sizeof(*values));
}

uint8_t *model_builder_pack_message(model_builder *builder, const ProtobufCMessage *message,
                                    size_t *out_byte_count) {
    *out_byte_count = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes = model_builder_allocate(builder, *out_byte_count);
    protobuf_c_message_pack(message, bytes);
    return bytes;
}

uint8_t *model_builder_pack(model_builder *builder, size_t *out_byte_count) {
    return model_builder_pack_message(builder, &builder->model->base, out_byte_count);
}

char *model_builder_make_folder(model_builder *builder) {
    const char *root = getenv("TMPDIR");
    char path[256];
    snprintf(path, sizeof(path), "%s/rondo-test-XXXXXX", root == NULL ? "/tmp" : root);
    if (mkdtemp(path) == NULL) {
        fail("mkdtemp");
    }
    return model_builder_copy(builder, path);
}

char *model_builder_write_file(model_builder *builder, const char *folder, const char *name,
                               const void *bytes, size_t byte_count) {
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(bytes, 1, byte_count, file) != byte_count || fclose(file) != 0) {
        fail(path);
    }
    return model_builder_copy(builder, path);
}

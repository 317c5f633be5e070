// support/models/model_builder.h — small ONNX models for tests, put together in C and packed to
// bytes.
//
// Everything belongs to the builder and is freed at once. Any failure to allocate ends the test.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "onnx.pb-c.h"

typedef struct model_builder {
    Onnx__ModelProto *model;
    Onnx__GraphProto *graph;  // the main one
    void **blocks;
    size_t block_count;
} model_builder;

// A model of IR version 8 that imports opset 17 and has an empty graph.
void model_builder_init(model_builder *builder);
void model_builder_deinit(model_builder *builder);

// Memory that lives as long as the builder.
void *model_builder_allocate(model_builder *builder, size_t bytes);
char *model_builder_copy(model_builder *builder, const char *text);

Onnx__GraphProto *model_builder_new_graph(model_builder *builder, const char *name);
Onnx__FunctionProto *model_builder_add_function(model_builder *builder, const char *domain,
                                                const char *name, const char *inputs,
                                                const char *outputs);
void model_builder_import_opset(model_builder *builder, const char *domain, int64_t version);

// Names are separated by spaces; "-" is an empty name.
Onnx__NodeProto *model_builder_add_node(model_builder *builder, Onnx__GraphProto *graph,
                                        const char *op, const char *name, const char *inputs,
                                        const char *outputs);
Onnx__NodeProto *model_builder_add_function_node(model_builder *builder,
                                                 Onnx__FunctionProto *function, const char *op,
                                                 const char *inputs, const char *outputs);

Onnx__AttributeProto *model_builder_add_attribute(model_builder *builder, Onnx__NodeProto *node,
                                                  const char *name,
                                                  Onnx__AttributeProto__AttributeType type);
void model_builder_set_int(model_builder *builder, Onnx__NodeProto *node, const char *name,
                           int64_t value);
void model_builder_add_body(model_builder *builder, Onnx__NodeProto *node, const char *name,
                            Onnx__GraphProto *body);

// shape    extents and symbols separated by spaces ("batch 3 224"); "" is a scalar, NULL no shape.
Onnx__ValueInfoProto *model_builder_add_input(model_builder *builder, Onnx__GraphProto *graph,
                                              const char *name, int32_t type, const char *shape);
Onnx__ValueInfoProto *model_builder_add_output(model_builder *builder, Onnx__GraphProto *graph,
                                               const char *name, int32_t type, const char *shape);

Onnx__TensorProto *model_builder_new_tensor(model_builder *builder, const char *name, int32_t type,
                                            size_t rank, const int64_t *dims);
void model_builder_set_raw(model_builder *builder, Onnx__TensorProto *tensor, const void *bytes,
                           size_t byte_count);
void model_builder_set_external(model_builder *builder, Onnx__TensorProto *tensor,
                                const char *location, const char *offset, const char *length);
Onnx__TensorProto *model_builder_add_initializer(model_builder *builder, Onnx__GraphProto *graph,
                                                 const char *name, int32_t type, size_t rank,
                                                 const int64_t *dims);
// A float initializer of one dimension.
void model_builder_add_floats(model_builder *builder, Onnx__GraphProto *graph, const char *name,
                              const float *values, size_t count);

// The serialized message; freed with the builder.
uint8_t *model_builder_pack(model_builder *builder, size_t *out_byte_count);
uint8_t *model_builder_pack_message(model_builder *builder, const ProtobufCMessage *message,
                                    size_t *out_byte_count);

// A new empty folder for files of a test, freed with the builder (the folder itself is not).
char *model_builder_make_folder(model_builder *builder);
// Writes a file and returns its path, freed with the builder.
char *model_builder_write_file(model_builder *builder, const char *folder, const char *name,
                               const void *bytes, size_t byte_count);

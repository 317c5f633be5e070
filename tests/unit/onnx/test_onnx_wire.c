// The walk over serialized messages that stands before protobuf-c.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "onnx/wire.h"
#include "support/models/model_builder.h"
#include "support/test.h"

static rondo_status unpack(const uint8_t *bytes, size_t count, Onnx__ModelProto **out_model) {
    ProtobufCMessage *message = NULL;
    rondo_status status =
        rondo__wire_unpack(&onnx__model_proto__descriptor, bytes, count, &message);
    *out_model = (Onnx__ModelProto *)message;
    return status;
}

static void assert_refused(const uint8_t *bytes, size_t count, const char *reason) {
    Onnx__ModelProto *model = NULL;
    assert_int_equal(unpack(bytes, count, &model), RONDO_STATUS_BAD_DATA);
    assert_null(model);
    const char *message = rondo_error_get_last()->message;
    if (strstr(message, reason) == NULL) {
        fail_msg("\"%s\" does not contain \"%s\"", message, reason);
    }
}

static void build_small_model(model_builder *builder) {
    model_builder_init(builder);
    const float values[3] = {1, 2, 3};
    model_builder_add_floats(builder, builder->graph, "weight", values, 3);
    model_builder_add_input(builder, builder->graph, "x", 1, "batch 3");
    model_builder_add_node(builder, builder->graph, "Add", "sum", "x weight", "y");
    model_builder_add_output(builder, builder->graph, "y", 1, "batch 3");
}

TEST(test_onnx_wire__refuses_texts_with_zero_bytes) {
    model_builder builder;
    build_small_model(&builder);
    builder.model->doc_string = model_builder_copy(&builder, "documentation");
    size_t count = 0;
    uint8_t *bytes = model_builder_pack(&builder, &count);
    Onnx__ModelProto *model = NULL;
    uint8_t *text = memmem(bytes, count, "documentation", 13);
    assert_non_null(text);
    text[3] = 0;  // nobody reads it
    assert_int_equal(unpack(bytes, count, &model), RONDO_STATUS_OK);
    rondo__wire_free((ProtobufCMessage *)model);
    uint8_t *name = memmem(bytes, count, "weight", 6);
    assert_non_null(name);
    name[2] = 0;  // "we", for a C string
    assert_refused(bytes, count, "holds a zero byte");
    model_builder_deinit(&builder);
}

TEST(test_onnx_wire__leaves_tensor_bytes_where_they_are) {
    model_builder builder;
    build_small_model(&builder);
    size_t count = 0;
    uint8_t *bytes = model_builder_pack(&builder, &count);
    Onnx__ModelProto *model = NULL;
    assert_int_equal(unpack(bytes, count, &model), RONDO_STATUS_OK);
    assert_int_equal(model->graph->n_node, 1);
    assert_string_equal(model->graph->node[0]->input[1], "weight");
    rondo__wire_reference reference =
        rondo__wire_get_reference(&model->graph->initializer[0]->raw_data);
    assert_int_equal(reference.byte_count, 12);
    const float values[3] = {1, 2, 3};
    assert_true(reference.offset + reference.byte_count <= count);
    assert_memory_equal(bytes + reference.offset, values, sizeof(values));
    rondo__wire_free(&model->base);
    model_builder_deinit(&builder);
}

// Every shorter file is refused or unpacks into something that can be freed.
TEST(test_onnx_wire__survives_every_cut) {
    model_builder builder;
    build_small_model(&builder);
    size_t count = 0;
    const uint8_t *bytes = model_builder_pack(&builder, &count);
    for (size_t length = 0; length < count; ++length) {
        uint8_t *cut = malloc(length + 1);  // exact size, so that ASan sees one byte too many
        assert_non_null(cut);
        memcpy(cut, bytes, length);
        Onnx__ModelProto *model = NULL;
        rondo_status status = unpack(cut, length, &model);
        assert_true(status == RONDO_STATUS_OK || status == RONDO_STATUS_BAD_DATA);
        rondo__wire_free(model == NULL ? NULL : &model->base);
        free(cut);
    }
    model_builder_deinit(&builder);
}

TEST(test_onnx_wire__survives_every_flipped_bit) {
    model_builder builder;
    build_small_model(&builder);
    size_t count = 0;
    uint8_t *bytes = model_builder_pack(&builder, &count);
    for (size_t bit = 0; bit < 8 * count; ++bit) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        Onnx__ModelProto *model = NULL;
        (void)!unpack(bytes, count, &model);
        rondo__wire_free(model == NULL ? NULL : &model->base);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    model_builder_deinit(&builder);
}

TEST(test_onnx_wire__limits_nesting) {
    // A sequence type of a sequence type of ... inside one input; lengths grow inwards to outwards.
    enum { LEVELS = 20000, ROOM = LEVELS * 16 };
    uint8_t *bytes = malloc(ROOM);
    assert_non_null(bytes);
    size_t start = ROOM;
    // TypeProto.sequence_type (4) holds Sequence.elem_type (1): tags 0x22 and 0x0A in turn.
    const uint8_t tags[2] = {0x0A, 0x22};
    for (int level = 0; level < LEVELS; ++level) {
        size_t length = ROOM - start;
        uint8_t head[8] = {tags[level % 2]};
        size_t used = 1;
        do {
            head[used++] = (uint8_t)((length & 0x7F) | (length > 0x7F ? 0x80 : 0));
            length >>= 7;
        } while (length > 0);
        start -= used;
        memcpy(bytes + start, head, used);
    }
    ProtobufCMessage *message = NULL;
    assert_int_equal(
        rondo__wire_unpack(&onnx__type_proto__descriptor, bytes + start, ROOM - start, &message),
        RONDO_STATUS_BAD_DATA);
    assert_non_null(strstr(rondo_error_get_last()->message, "nested too deep"));
    free(bytes);
}

// A message that stands in several parts is all of them together, in each of its own messages, too.
TEST(test_onnx_wire__merges_parts) {
    // ModelProto.graph (7): {name "a", node {op_type "Relu"}}, ir_version; {name "b", node {}}.
    const uint8_t bytes[] = {0x3A, 0x0B, 0x12, 0x01, 'a',  0x0A, 0x06, 0x22, 0x04, 'R',  'e',
                             'l',  'u',  0x08, 0x08, 0x3A, 0x05, 0x12, 0x01, 'b',  0x0A, 0x00};
    Onnx__ModelProto *model = NULL;
    assert_int_equal(unpack(bytes, sizeof bytes, &model), RONDO_STATUS_OK);
    assert_int_equal(model->ir_version, 8);
    assert_int_equal(model->graph->n_node, 2);
    assert_string_equal(model->graph->node[0]->op_type, "Relu");
    assert_string_equal(model->graph->name, "b");  // the last one counts
    rondo__wire_free(&model->base);
    // ValueInfoProto.type (2): {tensor_type {elem_type}}, then {tensor_type {shape}}.
    const uint8_t typed[] = {0x12, 0x04, 0x0A, 0x02, 0x08, 0x01, 0x0A, 0x01,
                             'x',  0x12, 0x04, 0x0A, 0x02, 0x12, 0x00};
    ProtobufCMessage *message = NULL;
    assert_int_equal(
        rondo__wire_unpack(&onnx__value_info_proto__descriptor, typed, sizeof typed, &message),
        RONDO_STATUS_OK);
    const Onnx__ValueInfoProto *info = (const Onnx__ValueInfoProto *)message;
    assert_string_equal(info->name, "x");
    assert_int_equal(info->type->tensor_type->elem_type, 1);
    assert_non_null(info->type->tensor_type->shape);
    rondo__wire_free(message);
    // A tensor type, a sequence type, a tensor type: the last would stand for itself alone.
    const uint8_t rivals[] = {0x12, 0x02, 0x0A, 0x00, 0x12, 0x02,
                              0x22, 0x00, 0x12, 0x02, 0x0A, 0x00};
    assert_int_equal(
        rondo__wire_unpack(&onnx__value_info_proto__descriptor, rivals, sizeof rivals, &message),
        RONDO_STATUS_BAD_DATA);
    assert_non_null(strstr(rondo_error_get_last()->message, "a choice is made several times"));
}

// A million empty parts of one message cost no more than a million fields.
TEST(test_onnx_wire__many_parts) {
    enum { COUNT = 1 << 20 };
    uint8_t *bytes = malloc(2 * (size_t)COUNT);
    assert_non_null(bytes);
    for (size_t i = 0; i < COUNT; ++i) {
        bytes[2 * i] = 0x3A;
        bytes[2 * i + 1] = 0;
    }
    Onnx__ModelProto *model = NULL;
    assert_int_equal(unpack(bytes, 2 * (size_t)COUNT, &model), RONDO_STATUS_OK);
    assert_int_equal(model->graph->n_node, 0);
    rondo__wire_free(&model->base);
    free(bytes);
}

TEST(test_onnx_wire__refuses_wrong_types) {
    // ModelProto.graph (7) as a number.
    const uint8_t bytes[] = {0x38, 0x01};
    assert_refused(bytes, sizeof(bytes), "field \"graph\"");
    const uint8_t group[] = {0x3B, 0x3C};
    assert_refused(group, sizeof(group), "field \"graph\"");
    const uint8_t end[] = {0x3C};
    assert_refused(end, sizeof(end), "wire type");
    const uint8_t zero_field[] = {0x00, 0x00};
    assert_refused(zero_field, sizeof(zero_field), "field number");
    const uint8_t long_number[] = {0x08, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
                                   0xFF, 0xFF, 0xFF, 0xFF, 0x7F};
    assert_refused(long_number, sizeof(long_number), "too long");
    const uint8_t huge_length[] = {0x3A, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F};
    assert_refused(huge_length, sizeof(huge_length), "beyond its end");
}

TEST(test_onnx_wire__skips_unknown_fields) {
    // Field 1000 with 3 bytes, then ir_version = 8.
    const uint8_t bytes[] = {0xC2, 0x3E, 0x03, 'a', 'b', 'c', 0x08, 0x08};
    Onnx__ModelProto *model = NULL;
    assert_int_equal(unpack(bytes, sizeof(bytes), &model), RONDO_STATUS_OK);
    assert_int_equal(model->ir_version, 8);
    assert_int_equal(model->base.n_unknown_fields, 0);
    rondo__wire_free(&model->base);
    // Groups: field 200 with {1: 7, 2: 8 bytes, 3: group, 4: "x", 5: 4 bytes}, then ir_version = 8.
    const uint8_t group[] = {0xC3, 0x0C, 0x08, 0x07, 0x11, 1, 2, 3, 4, 5,    6,    7,    8,   0x1B,
                             0x1C, 0x22, 0x01, 'x',  0x2D, 1, 2, 3, 4, 0xC4, 0x0C, 0x08, 0x08};
    assert_int_equal(unpack(group, sizeof(group), &model), RONDO_STATUS_OK);
    assert_int_equal(model->ir_version, 8);
    rondo__wire_free(&model->base);
    for (size_t count = 1; count < sizeof(group) - 2; ++count) {
        assert_int_equal(unpack(group, count, &model), RONDO_STATUS_BAD_DATA);
    }
    const uint8_t crossed[] = {0xC3, 0x0C, 0x1B, 0xC4, 0x0C, 0x1C};
    assert_refused(crossed, sizeof(crossed), "a group is cut off or nested wrongly");
    uint8_t deep[1000];
    memset(deep, 0x1B, sizeof(deep));
    deep[0] = 0xC3;
    deep[1] = 0x0C;
    assert_refused(deep, sizeof(deep), "a group is cut off or nested wrongly");
}

// Two bytes each, some hundreds unpacked: 16 MiB of empty attributes must not become gigabytes.
TEST(test_onnx_wire__limits_what_fields_unpack_into) {
    enum { COUNT = 8 << 20 };
    uint8_t *bytes = malloc(2 * (size_t)COUNT);
    assert_non_null(bytes);
    for (size_t i = 0; i < COUNT; ++i) {
        bytes[2 * i] = 0x2A;  // NodeProto.attribute (5)
        bytes[2 * i + 1] = 0;
    }
    ProtobufCMessage *message = NULL;
    assert_int_equal(
        rondo__wire_unpack(&onnx__node_proto__descriptor, bytes, 2 * (size_t)COUNT, &message),
        RONDO_STATUS_BAD_DATA);
    assert_non_null(strstr(rondo_error_get_last()->message, "more fields"));
    free(bytes);
}

TEST_MAIN()

// onnx/save.c — programs to ONNX files: the messages of protobuf-c are filled in, packed, written.
//
// The messages belong to a writer and are freed at once; names and tensor bytes are the program's.
//
// Names. ONNX wants each name once in a graph and all graphs around it, so values of bodies whose
// name stands in the file already get another. A value that a body captured has the name of the
// value around; where a body gives such a value out, an Identity makes it, as ONNX wants.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "onnx.pb-c.h"
#include "onnx/saved_variables.h"
#include "onnx/tensors.h"
#include "program/edit.h"
#include "program/names.h"
#include "program/place_mark.h"
#include "program/program.h"
#include "rondo/onnx.h"
#include "rondo/version.h"
#include "tensor/elements.h"
#include "tensor/narrow.h"

enum { IR_VERSION = 8 };  // at least; newer where an element type is

typedef struct writer {
    void **blocks;
    size_t block_count, block_capacity;
    rondo__namemap names;  // of all values written so far
    size_t new_name_count;
    Onnx__ModelProto *model;
    size_t opset_capacity;
} writer;

// A program while it is written.
typedef struct written {
    const rondo_program *program;
    const struct written *around;  // of a body; NULL otherwise
    char **names;                  // in the file, one for each value
    Onnx__GraphProto *graph;
} written;

static rondo_status write_graph(writer *w, const written *around, const rondo_program *program,
                                const int32_t *captured, Onnx__GraphProto **out_graph);

// ---- memory

// Zeroed memory that lives as long as the writer.
static rondo_status take(writer *w, size_t count, size_t bytes, void *out_address) {
    void *block = NULL;
    RETURN_IF_ERROR(RONDO__ARRAY_RESERVE(w->blocks, w->block_capacity, w->block_count + 1));
    block = rondo__calloc(count + 1, bytes);
    if (block == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    w->blocks[w->block_count++] = block;
    memcpy(out_address, &block, sizeof block);
    return RONDO_STATUS_OK;
}

// protobuf-c's fields are not const; what they point to is only read.
static void *unconst(const void *address) {
    union {
        const void *from;
        void *to;
    } both = {.from = address};
    return both.to;
}

#define TAKE(w, count, pointer) take((w), (count), sizeof *(pointer), (void *)&(pointer))

// ---- names

// A name that is not in the file: `name` itself or, where that is taken, one made of it.
static rondo_status choose_name(writer *w, const char *name, char **out_name) {
    bool is_new = false;
    *out_name = unconst(name);
    RETURN_IF_ERROR(rondo__namemap_add(&w->names, name, 0, &is_new));
    while (!is_new) {
        const size_t bytes = strlen(name) + 24;
        char *candidate = NULL;
        RETURN_IF_ERROR(take(w, bytes, 1, &candidate));
        (void)snprintf(candidate, bytes, "%s.%zu", name, ++w->new_name_count);
        RETURN_IF_ERROR(rondo__namemap_add(&w->names, candidate, 0, &is_new));
        *out_name = candidate;
    }
    return RONDO_STATUS_OK;
}

static rondo_status choose_names(writer *w, written *at, const int32_t *captured) {
    const rondo_program *program = at->program;
    RETURN_IF_ERROR(TAKE(w, program->value_count, at->names));
    for (size_t i = program->declared_count; i < program->input_count; ++i) {
        at->names[program->inputs[i]] = at->around->names[captured[i - program->declared_count]];
    }
    for (size_t i = 0; i < program->value_count; ++i) {
        const rondo__value *value = &program->values[i];
        if (at->around != NULL && value->origin >= 0) {
            at->names[i] = at->around->names[value->origin];
        } else if (at->names[i] == NULL) {
            RETURN_IF_ERROR(choose_name(w, value->name, &at->names[i]));
        }
    }
    return RONDO_STATUS_OK;
}

// ---- tensors

static rondo_status write_strings(writer *w, const rondo_tensor *tensor, Onnx__TensorProto *proto) {
    proto->n_string_data = (size_t)rondo_shape_get_count(&tensor->shape);
    RETURN_IF_ERROR(TAKE(w, proto->n_string_data, proto->string_data));
    for (size_t i = 0; i < proto->n_string_data; ++i) {
        const rondo_string *string = (const rondo_string *)tensor->data + i;
        proto->string_data[i] =
            (ProtobufCBinaryData){.len = string->size, .data = unconst(string->data)};
    }
    return RONDO_STATUS_OK;
}

// ONNX's number of the type; the file gets the IR version that brought it.
static int32_t use_type(writer *w, rondo_dtype dtype) {
    static const uint8_t versions[] = {
        [RONDO_DTYPE_F8E4M3FN] = 9,   [RONDO_DTYPE_F8E4M3FNUZ] = 9, [RONDO_DTYPE_F8E5M2] = 9,
        [RONDO_DTYPE_F8E5M2FNUZ] = 9, [RONDO_DTYPE_I4] = 10,        [RONDO_DTYPE_U4] = 10,
        [RONDO_DTYPE_F4E2M1] = 11,    [RONDO_DTYPE_F8E8M0] = 12,    [RONDO_DTYPE_I2] = 13,
        [RONDO_DTYPE_U2] = 13,
    };
    const bool is_listed = dtype >= 0 && (size_t)dtype < sizeof versions;
    if (is_listed && versions[dtype] > w->model->ir_version) {
        w->model->ir_version = versions[dtype];
    }
    return rondo__onnx_from_dtype(dtype);
}

static rondo_status write_tensor(writer *w, const rondo_tensor *tensor, char *name,
                                 Onnx__TensorProto **out_proto) {
    Onnx__TensorProto *proto = NULL;
    RETURN_IF_ERROR(TAKE(w, 1, proto));
    *out_proto = proto;
    onnx__tensor_proto__init(proto);
    proto->name = name;
    proto->has_data_type = true;
    proto->data_type = use_type(w, tensor->dtype);
    proto->n_dims = (size_t)tensor->shape.rank;
    proto->dims = unconst(tensor->shape.extent);
    if (tensor->dtype == RONDO_DTYPE_STRING) {
        return write_strings(w, tensor, proto);
    }
    // A tensor without elements has no bytes, which is not the same as none of them.
    proto->has_raw_data = rondo_tensor_get_bytes(tensor) > 0;
    proto->raw_data =
        (ProtobufCBinaryData){.len = rondo_tensor_get_bytes(tensor), .data = tensor->data};
    if (proto->has_raw_data && rondo__dtype_is_narrow(tensor->dtype)) {
        const size_t count = proto->raw_data.len;
        (void)rondo__dtype_get_packed_bytes(tensor->dtype, count, &proto->raw_data.len);
        RETURN_IF_ERROR(TAKE(w, proto->raw_data.len, proto->raw_data.data));
        rondo__narrow_pack(tensor->dtype, tensor->data, count, proto->raw_data.data);
    }
    return RONDO_STATUS_OK;
}

// ---- types

static rondo_status write_shape(writer *w, const rondo_program *program, const rondo__value *value,
                                Onnx__TensorShapeProto **out_shape) {
    Onnx__TensorShapeProto *shape = NULL;
    RETURN_IF_ERROR(TAKE(w, 1, shape));
    *out_shape = shape;
    onnx__tensor_shape_proto__init(shape);
    RETURN_IF_ERROR(TAKE(w, (size_t)value->rank, shape->dim));
    for (int32_t d = 0; d < value->rank; ++d) {
        Onnx__TensorShapeProto__Dimension *dim = NULL;
        RETURN_IF_ERROR(TAKE(w, 1, dim));
        onnx__tensor_shape_proto__dimension__init(dim);
        if (value->dims[d].number >= 0) {
            dim->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
            dim->dim_value = value->dims[d].number;
        } else if (value->dims[d].symbol >= 0) {
            dim->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
            dim->dim_param = program->symbols[value->dims[d].symbol].name;
        }
        shape->dim[shape->n_dim++] = dim;
    }
    return RONDO_STATUS_OK;
}

static rondo_status new_type(writer *w, Onnx__TypeProto **out_type) {
    RETURN_IF_ERROR(TAKE(w, 1, *out_type));
    onnx__type_proto__init(*out_type);
    return RONDO_STATUS_OK;
}

static rondo_status write_tensor_type(writer *w, rondo_dtype dtype, Onnx__TensorShapeProto *shape,
                                      Onnx__TypeProto **out_type) {
    RETURN_IF_ERROR(new_type(w, out_type));
    Onnx__TypeProto *type = *out_type;
    RETURN_IF_ERROR(TAKE(w, 1, type->tensor_type));
    type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    onnx__type_proto__tensor__init(type->tensor_type);
    type->tensor_type->has_elem_type = true;
    type->tensor_type->elem_type = use_type(w, dtype);
    type->tensor_type->shape = shape;
    return RONDO_STATUS_OK;
}

// A sequence or optional of `items`, of which there are one or two.
static rondo_status write_nested_type(writer *w, rondo_dtype dtype, const rondo_dtype *items,
                                      Onnx__TypeProto **out_type) {
    Onnx__TypeProto *held = NULL;
    if (rondo__dtype_is_nested(items[0])) {
        RETURN_IF_ERROR(write_nested_type(w, items[0], items + 1, &held));
    } else {
        RETURN_IF_ERROR(write_tensor_type(w, items[0], NULL, &held));
    }
    RETURN_IF_ERROR(new_type(w, out_type));
    Onnx__TypeProto *type = *out_type;
    if (dtype == RONDO_DTYPE_SEQUENCE) {
        RETURN_IF_ERROR(TAKE(w, 1, type->sequence_type));
        type->value_case = ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE;
        onnx__type_proto__sequence__init(type->sequence_type);
        type->sequence_type->elem_type = held;
    } else {
        RETURN_IF_ERROR(TAKE(w, 1, type->optional_type));
        type->value_case = ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE;
        onnx__type_proto__optional__init(type->optional_type);
        type->optional_type->elem_type = held;
    }
    return RONDO_STATUS_OK;
}

// What a ZipMap makes in ONNX: a sequence of maps from labels to scores.
static rondo_status write_labels_type(writer *w, const rondo_tensor *labels,
                                      Onnx__TypeProto **out_type) {
    Onnx__TypeProto *score = NULL;
    Onnx__TypeProto *map = NULL;
    Onnx__TensorShapeProto *scalar = NULL;
    RETURN_IF_ERROR(TAKE(w, 1, scalar));
    onnx__tensor_shape_proto__init(scalar);
    RETURN_IF_ERROR(write_tensor_type(w, RONDO_DTYPE_F32, scalar, &score));
    RETURN_IF_ERROR(new_type(w, &map));
    RETURN_IF_ERROR(TAKE(w, 1, map->map_type));
    map->value_case = ONNX__TYPE_PROTO__VALUE_MAP_TYPE;
    onnx__type_proto__map__init(map->map_type);
    map->map_type->has_key_type = true;
    map->map_type->key_type = rondo__onnx_from_dtype(labels->dtype);
    map->map_type->value_type = score;
    RETURN_IF_ERROR(new_type(w, out_type));
    Onnx__TypeProto *type = *out_type;
    RETURN_IF_ERROR(TAKE(w, 1, type->sequence_type));
    type->value_case = ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE;
    onnx__type_proto__sequence__init(type->sequence_type);
    type->sequence_type->elem_type = map;
    return RONDO_STATUS_OK;
}

static rondo_status write_type(writer *w, const rondo_program *program, const rondo__value *value,
                               Onnx__TypeProto **out_type) {
    Onnx__TensorShapeProto *shape = NULL;
    if (value->labels.dtype != RONDO_DTYPE_NONE) {
        return write_labels_type(w, &value->labels, out_type);
    }
    if (value->dtype == RONDO_DTYPE_NONE) {
        return RONDO_STATUS_OK;  // not declared
    }
    if (rondo__dtype_is_nested(value->dtype)) {
        return value->item_dtype[0] == RONDO_DTYPE_NONE
                   ? RONDO_STATUS_OK
                   : write_nested_type(w, value->dtype, value->item_dtype, out_type);
    }
    if (value->has_shape) {
        RETURN_IF_ERROR(write_shape(w, program, value, &shape));
    }
    return write_tensor_type(w, value->dtype, shape, out_type);
}

static rondo_status write_port(writer *w, const written *at, const rondo__value *value, char *name,
                               Onnx__ValueInfoProto **out_info) {
    RETURN_IF_ERROR(TAKE(w, 1, *out_info));
    onnx__value_info_proto__init(*out_info);
    (*out_info)->name = name;
    return write_type(w, at->program, value, &(*out_info)->type);
}

// ---- nodes

static rondo_status add_opset(writer *w, const char *domain, int32_t version) {
    Onnx__ModelProto *model = w->model;
    Onnx__OperatorSetIdProto *opset = NULL;
    RETURN_IF_ERROR(TAKE(w, 1, opset));
    RETURN_IF_ERROR(
        RONDO__ARRAY_RESERVE(model->opset_import, w->opset_capacity, model->n_opset_import + 1));
    onnx__operator_set_id_proto__init(opset);
    opset->domain = unconst(domain);
    opset->has_version = true;
    opset->version = version;
    model->opset_import[model->n_opset_import++] = opset;
    return RONDO_STATUS_OK;
}

static const Onnx__OperatorSetIdProto *find_opset(const writer *w, const char *domain) {
    for (size_t i = 0; i < w->model->n_opset_import; ++i) {
        if (strcmp(w->model->opset_import[i]->domain, domain) == 0) {
            return w->model->opset_import[i];
        }
    }
    return NULL;
}

// The model has one version of each domain; enters what a node needs.
static rondo_status import_opset(writer *w, const rondo__node *node) {
    const char *domain = node->op.def->domain;
    if ((node->op.def->flags & RONDO__OP_INTERNAL) != 0) {
        rondo_status status = RONDO_FAIL_AS(
            "rondo_program_save_onnx", UNSUPPORTED,
            "unsupported: %s is of Rondo's own, and no file has it; of a program that is trained "
            "save what rondo_executor_get_trained gives out",
            rondo__node_describe(node));
        rondo__error_set_op(node->op.name);
        return status;
    }
    const Onnx__OperatorSetIdProto *known = find_opset(w, domain);
    if (known == NULL) {
        return add_opset(w, domain, node->op.opset);
    }
    if (known->version == node->op.opset) {
        return RONDO_STATUS_OK;
    }
    rondo_status status = RONDO_FAIL_AS(
        "rondo_program_save_onnx", UNSUPPORTED,
        "unsupported: %s has version %d of domain \"%.48s\", nodes before it version %lld; a file "
        "has one",
        rondo__node_describe(node), node->op.opset, domain[0] == '\0' ? "ai.onnx" : domain,
        (long long)known->version);
    rondo__error_set_op(node->op.name);
    return status;
}

static ProtobufCBinaryData get_text(const char *text) {
    return (ProtobufCBinaryData){.len = strlen(text), .data = unconst(text)};
}

// `captured`: of the attribute's body.
static rondo_status fill_attribute(writer *w, const written *at, const rondo__attribute *a,
                                   const int32_t *captured, Onnx__AttributeProto *proto) {
    switch (a->kind) {
        case RONDO__ATTRIBUTE_INT:
            proto->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
            proto->has_i = true;
            proto->i = a->int_value;
            return RONDO_STATUS_OK;
        case RONDO__ATTRIBUTE_FLOAT:
            proto->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT;
            proto->has_f = true;
            proto->f = a->float_value;
            return RONDO_STATUS_OK;
        case RONDO__ATTRIBUTE_STRING:
            proto->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING;
            proto->has_s = true;
            proto->s = get_text(a->string_value);
            return RONDO_STATUS_OK;
        case RONDO__ATTRIBUTE_TENSOR:
            proto->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR;
            return write_tensor(w, &a->tensor_value, NULL, &proto->t);
        case RONDO__ATTRIBUTE_INTS:
            proto->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
            proto->n_ints = a->count;
            proto->ints = a->ints;
            return RONDO_STATUS_OK;
        case RONDO__ATTRIBUTE_FLOATS:
            proto->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS;
            proto->n_floats = a->count;
            proto->floats = a->floats;
            return RONDO_STATUS_OK;
        case RONDO__ATTRIBUTE_STRINGS:
            proto->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS;
            proto->n_strings = a->count;
            RETURN_IF_ERROR(TAKE(w, a->count, proto->strings));
            for (size_t i = 0; i < a->count; ++i) {
                proto->strings[i] = get_text(a->strings[i]);
            }
            return RONDO_STATUS_OK;
        case RONDO__ATTRIBUTE_BODY:
            proto->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH;
            return write_graph(w, at, a->body, captured, &proto->g);
    }
    return RONDO_FAIL(INTERNAL, "attribute \"%.64s\" has no kind", a->name);
}

static rondo_status write_attributes(writer *w, const written *at, const rondo__node *node,
                                     Onnx__NodeProto *proto) {
    const int32_t *captured = node->inputs + node->explicit_count;
    RETURN_IF_ERROR(TAKE(w, node->op.attribute_count, proto->attribute));
    for (size_t i = 0; i < node->op.attribute_count; ++i) {
        const rondo__attribute *a = &node->op.attributes[i];
        Onnx__AttributeProto *attribute = NULL;
        RETURN_IF_ERROR(TAKE(w, 1, attribute));
        onnx__attribute_proto__init(attribute);
        attribute->name = a->name;
        attribute->has_type = true;
        RETURN_IF_ERROR(fill_attribute(w, at, a, captured, attribute));
        captured += a->body != NULL ? a->body->input_count - a->body->declared_count : 0;
        proto->attribute[proto->n_attribute++] = attribute;
    }
    return RONDO_STATUS_OK;
}

static rondo_status write_names(writer *w, const written *at, const int32_t *values, size_t count,
                                char ***out_names) {
    RETURN_IF_ERROR(TAKE(w, count, *out_names));
    for (size_t i = 0; i < count; ++i) {
        (*out_names)[i] = values[i] >= 0 ? at->names[values[i]] : unconst("");
    }
    return RONDO_STATUS_OK;
}

static rondo_status check_lost(const rondo__node *node) {
    if (rondo__node_is(node, RONDO__OP_Optional) && node->explicit_count == 0) {
        rondo_status status =
            RONDO_FAIL_AS("rondo_program_save_onnx", UNSUPPORTED,
                          "unsupported: %s is empty, and the type that it would hold was not kept",
                          rondo__node_describe(node));
        rondo__error_set_op(node->op.name);
        return status;
    }
    return RONDO_STATUS_OK;
}

// The place of a node is a line of its text, which other readers pass over.
static rondo_status write_place(writer *w, const rondo__node *node, Onnx__NodeProto *proto) {
    enum { LINE_MAX_BYTES = 32 };
    if (node->place.place == RONDO__PLACE_ANY) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(TAKE(w, LINE_MAX_BYTES, proto->doc_string));
    (void)snprintf(proto->doc_string, LINE_MAX_BYTES, "%s%s", RONDO__PLACE_TEXT_KEY,
                   rondo__place_get_name(node->place.place));
    return RONDO_STATUS_OK;
}

static rondo_status write_node(writer *w, const written *at, const rondo__node *node,
                               Onnx__NodeProto **out_proto) {
    Onnx__NodeProto *proto = NULL;
    RETURN_IF_ERROR(check_lost(node));
    RETURN_IF_ERROR(import_opset(w, node));
    RETURN_IF_ERROR(TAKE(w, 1, proto));
    *out_proto = proto;
    onnx__node_proto__init(proto);
    proto->name = node->op.name;
    proto->op_type = unconst(node->op.def->name);
    proto->domain = node->op.def->domain[0] != '\0' ? unconst(node->op.def->domain) : NULL;
    proto->n_input = node->explicit_count;
    RETURN_IF_ERROR(write_names(w, at, node->inputs, node->explicit_count, &proto->input));
    proto->n_output = node->output_count;
    RETURN_IF_ERROR(write_names(w, at, node->outputs, node->output_count, &proto->output));
    RETURN_IF_ERROR(write_place(w, node, proto));
    return write_attributes(w, at, node, proto);
}

// ---- graphs

// A body that gives out a value from around it: an Identity, whose result has a name of its own.
static rondo_status write_identity(writer *w, written *at, char *from, char **out_name) {
    Onnx__NodeProto *proto = NULL;
    RETURN_IF_ERROR(choose_name(w, from, out_name));
    RETURN_IF_ERROR(TAKE(w, 1, proto));
    onnx__node_proto__init(proto);
    proto->op_type = unconst("Identity");
    proto->n_input = 1;
    proto->n_output = 1;
    RETURN_IF_ERROR(TAKE(w, 1, proto->input));
    RETURN_IF_ERROR(TAKE(w, 1, proto->output));
    proto->input[0] = from;
    proto->output[0] = *out_name;
    at->graph->node[at->graph->n_node++] = proto;
    return RONDO_STATUS_OK;
}

static bool is_from_around(const rondo_program *program, int32_t number) {
    if (program->values[number].origin >= 0) {
        return true;
    }
    for (size_t i = program->declared_count; i < program->input_count; ++i) {
        if (program->inputs[i] == number) {
            return true;
        }
    }
    return false;
}

static rondo_status write_outputs(writer *w, written *at) {
    const rondo_program *program = at->program;
    RETURN_IF_ERROR(TAKE(w, program->output_count, at->graph->output));
    for (size_t i = 0; i < program->output_count; ++i) {
        const int32_t number = program->outputs[i];
        char *name = at->names[number];
        if (at->around != NULL && is_from_around(program, number)) {
            RETURN_IF_ERROR(write_identity(w, at, name, &name));
        }
        RETURN_IF_ERROR(write_port(w, at, &program->values[number], name, &at->graph->output[i]));
        at->graph->n_output = i + 1;
    }
    return RONDO_STATUS_OK;
}

static rondo_status write_inputs(writer *w, written *at) {
    const rondo_program *program = at->program;
    Onnx__GraphProto *graph = at->graph;
    RETURN_IF_ERROR(TAKE(w, program->declared_count + program->optional_count, graph->input));
    for (size_t i = 0; i < program->declared_count; ++i) {
        const int32_t number = program->inputs[i];
        RETURN_IF_ERROR(write_port(w, at, &program->values[number], at->names[number],
                                   &graph->input[graph->n_input]));
        graph->n_input += 1;
    }
    for (size_t i = 0; i < program->optional_count; ++i) {
        const rondo__optional *optional = &program->optionals[i];
        RETURN_IF_ERROR(write_port(w, at, &optional->declared, at->names[optional->value],
                                   &graph->input[graph->n_input]));
        graph->n_input += 1;
    }
    return RONDO_STATUS_OK;
}

static rondo_status write_initializers(writer *w, written *at) {
    const rondo_program *program = at->program;
    Onnx__GraphProto *graph = at->graph;
    RETURN_IF_ERROR(TAKE(w, program->value_count + program->variable_count, graph->initializer));
    for (size_t i = 0; i < program->variable_count; ++i) {
        const rondo__variable *variable = &program->variables[i];
        if (variable->first.dtype != RONDO_DTYPE_NONE) {
            RETURN_IF_ERROR(write_tensor(w, &variable->first, at->names[variable->value],
                                         &graph->initializer[graph->n_initializer]));
            graph->n_initializer += 1;
        }
    }
    for (size_t i = 0; i < program->value_count; ++i) {
        const rondo__value *value = &program->values[i];
        if (value->constant.dtype == RONDO_DTYPE_NONE || value->origin >= 0) {
            continue;
        }
        RETURN_IF_ERROR(write_tensor(w, &value->constant, at->names[i],
                                     &graph->initializer[graph->n_initializer]));
        graph->n_initializer += 1;
    }
    return RONDO_STATUS_OK;
}

// `captured`: numbers around a body, one for each of its inputs beyond the declared ones. Graphs,
// nodes and bodies call each other; RONDO__BODY_DEPTH_MAX bounds that.
static rondo_status write_graph(writer *w, const written *around, const rondo_program *program,
                                const int32_t *captured, Onnx__GraphProto **out_graph) {
    written at = {.program = program, .around = around};
    RETURN_IF_ERROR(TAKE(w, 1, at.graph));
    *out_graph = at.graph;
    onnx__graph_proto__init(at.graph);
    at.graph->name = program->name[0] != '\0' ? program->name : unconst("program");
    RETURN_IF_ERROR(choose_names(w, &at, captured));
    RETURN_IF_ERROR(write_initializers(w, &at));
    RETURN_IF_ERROR(write_inputs(w, &at));
    RETURN_IF_ERROR(TAKE(w, program->node_count + program->output_count, at.graph->node));
    for (size_t i = 0; i < program->node_count; ++i) {
        RETURN_IF_ERROR(write_node(w, &at, &program->nodes[i], &at.graph->node[at.graph->n_node]));
        at.graph->n_node += 1;
    }
    return write_outputs(w, &at);
}

// ---- variables

// See saved_variables.h. Names of the main program's values are those in the file.
static rondo_status write_variable(writer *w, const rondo_program *program,
                                   const rondo__variable *variable,
                                   Onnx__StringStringEntryProto **out_entry) {
    const bool has_update = variable->update != RONDO__VALUE_NONE;
    const char *name = program->values[variable->value].name;
    const char *update = has_update ? program->values[variable->update].name : "";
    const size_t key_bytes = sizeof RONDO__VARIABLE_KEY + strlen(name);
    const size_t value_bytes = RONDO__VARIABLE_NUMBERS_MAX + strlen(update) + 1;
    Onnx__StringStringEntryProto *entry = NULL;
    RETURN_IF_ERROR(TAKE(w, 1, entry));
    *out_entry = entry;
    onnx__string_string_entry_proto__init(entry);
    RETURN_IF_ERROR(take(w, key_bytes, 1, &entry->key));
    RETURN_IF_ERROR(take(w, value_bytes, 1, &entry->value));
    (void)snprintf(entry->key, key_bytes, "%s%s", RONDO__VARIABLE_KEY, name);
    rondo__variable_write_numbers(&variable->start, entry->value);
    const size_t length = strlen(entry->value);
    (void)snprintf(entry->value + length, value_bytes - length, "%s", update);
    return RONDO_STATUS_OK;
}

static rondo_status write_variables(writer *w, const rondo_program *program) {
    RETURN_IF_ERROR(TAKE(w, program->variable_count, w->model->metadata_props));
    for (size_t i = 0; i < program->variable_count; ++i) {
        RETURN_IF_ERROR(
            write_variable(w, program, &program->variables[i], &w->model->metadata_props[i]));
        w->model->n_metadata_props = i + 1;
    }
    return RONDO_STATUS_OK;
}

// ---- the file

static rondo_status write_model(writer *w, const rondo_program *program) {
    RETURN_IF_ERROR(TAKE(w, 1, w->model));
    onnx__model_proto__init(w->model);
    w->model->has_ir_version = true;
    w->model->ir_version = IR_VERSION;
    w->model->producer_name = unconst("rondo");
    w->model->producer_version = unconst(rondo_version_get_text());
    RETURN_IF_ERROR(write_graph(w, NULL, program, NULL, &w->model->graph));
    RETURN_IF_ERROR(write_variables(w, program));
    // A file names this domain even when no node is of it.
    return find_opset(w, "") != NULL ? RONDO_STATUS_OK : add_opset(w, "", RONDO_OP_OPSET_WRITTEN);
}

static rondo_status write_file(const Onnx__ModelProto *model, const char *path) {
    const size_t bytes = onnx__model_proto__get_packed_size(model);
    if (bytes > INT32_MAX) {
        return RONDO_FAIL_AS("rondo_program_save_onnx", UNSUPPORTED,
                             "unsupported: the file would have %zu bytes; weights stand in the "
                             "file itself, and protobuf files have at most 2 GiB",
                             bytes);
    }
    uint8_t *packed = rondo__malloc(bytes);
    if (packed == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    (void)onnx__model_proto__pack(model, packed);
    const rondo_status status = rondo__file_write_atomic(path, packed, bytes);
    rondo__free(packed);
    return status;
}

rondo_status rondo_program_save_onnx(const rondo_program *program, const char *path) {
    if (program == NULL || path == NULL) {
        return RONDO_FAIL(INVALID, "%s is NULL", program == NULL ? "program" : "path");
    }
    writer w = {0};
    rondo_status status = write_model(&w, program);
    if (status == RONDO_STATUS_OK) {
        status = write_file(w.model, path);
    }
    if (w.model != NULL) {
        rondo__free(w.model->opset_import);
    }
    for (size_t i = 0; i < w.block_count; ++i) {
        rondo__free(w.blocks[i]);
    }
    rondo__free(w.blocks);
    rondo__namemap_deinit(&w.names);
    return status;
}

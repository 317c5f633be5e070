#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "onnx/importer.h"

enum { ATTRIBUTE_COUNT_MAX = 256 };

// ---- versions and references

const char *rondo__onnx_domain(const char *domain) {
    return domain == NULL || strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

int32_t rondo__scope_get_opset(const rondo__scope *scope, const char *domain) {
    for (size_t i = 0; i < scope->opset_count; ++i) {
        const Onnx__OperatorSetIdProto *opset = scope->opsets[i];
        if (strcmp(rondo__onnx_domain(opset->domain), domain) == 0) {
            return opset->version < 1           ? 1
                   : opset->version > INT16_MAX ? INT16_MAX
                                                : (int32_t)opset->version;
        }
    }
    return 1;
}

const Onnx__AttributeProto *rondo__scope_get_attribute(const rondo__scope *scope,
                                                       const Onnx__AttributeProto *attribute) {
    while (attribute->ref_attr_name != NULL && attribute->ref_attr_name[0] != '\0') {
        while (scope != NULL && scope->function == NULL) {
            scope = scope->parent;
        }
        if (scope == NULL) {
            return NULL;
        }
        const Onnx__AttributeProto *found = NULL;
        for (size_t i = 0; i < scope->call->n_attribute && found == NULL; ++i) {
            const Onnx__AttributeProto *candidate = scope->call->attribute[i];
            if (candidate->name != NULL && strcmp(candidate->name, attribute->ref_attr_name) == 0) {
                found = candidate;
            }
        }
        if (found == NULL) {
            return NULL;
        }
        attribute = found;
        scope = scope->parent;
    }
    return attribute;
}

// ---- what is unsupported

// The wording of rondo__op_fail_unsupported for a node that has no op.
static rondo_status fail_unsupported(const Onnx__NodeProto *proto, int32_t opset,
                                     const char *detail) {
    const char *domain = rondo__onnx_domain(proto->domain);
    rondo_status status =
        RONDO_FAIL(UNSUPPORTED, "unsupported: op %.48s%s%.64s version %d%s%s%s", domain,
                   domain[0] == '\0' ? "" : ".", proto->op_type, opset,
                   detail[0] == '\0' ? "" : " (", detail, detail[0] == '\0' ? "" : ")");
    return status;
}

// The node's name, or the one that it will have in the program.
static void format_name(const rondo__scope *scope, const Onnx__NodeProto *proto, char *buffer,
                        size_t buffer_bytes) {
    if (proto->name != NULL && proto->name[0] != '\0') {
        (void)snprintf(buffer, buffer_bytes, "%s", proto->name);
    } else {
        (void)snprintf(buffer, buffer_bytes, "%.64s_%zu", proto->op_type,
                       scope->program->node_count);
    }
}

// An unsupported node is an entry in the list, and the import goes on to find the others.
static rondo_status finish_node(rondo__importer *importer, const rondo__scope *scope,
                                const Onnx__NodeProto *proto, int32_t opset, rondo_status status) {
    char name[128];
    if (status == RONDO_STATUS_OK) {
        return status;
    }
    format_name(scope, proto, name, sizeof name);
    if (status == RONDO_STATUS_UNSUPPORTED) {
        rondo__error_set_op(name);
        return rondo__missing_add(importer->missing, rondo__onnx_domain(proto->domain),
                                  proto->op_type, opset);
    }
    // Only the innermost node is named: the reason must not be pushed out of the record.
    if (rondo_error_get_last()->op[0] == '\0') {
        rondo__error_prefix("%.48s node \"%.64s\"", proto->op_type, name);
        rondo__error_set_op(name);
    }
    return status;
}

// ---- attributes

static rondo_status copy_string(const ProtobufCBinaryData *bytes, const char *name,
                                char **out_string) {
    if (bytes->len > 0 && memchr(bytes->data, 0, bytes->len) != NULL) {
        return RONDO_FAIL(BAD_DATA, "attribute \"%.64s\" is a string with a zero inside", name);
    }
    *out_string = rondo__strndup(bytes->len == 0 ? "" : (const char *)bytes->data, bytes->len);
    return *out_string == NULL ? RONDO_STATUS_NO_MEMORY : RONDO_STATUS_OK;
}

static rondo_status copy_strings(const Onnx__AttributeProto *proto, rondo__attribute *attribute) {
    attribute->strings = rondo__calloc(proto->n_strings + 1, sizeof(*attribute->strings));
    if (attribute->strings == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < proto->n_strings; ++i) {
        RETURN_IF_ERROR(copy_string(&proto->strings[i], attribute->name, &attribute->strings[i]));
        attribute->count = i + 1;
    }
    return RONDO_STATUS_OK;
}

static rondo_status copy_list(const void *list, size_t count, size_t element_bytes,
                              void **out_copy) {
    *out_copy = rondo__calloc(count + 1, element_bytes);
    if (*out_copy == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    if (count > 0) {
        memcpy(*out_copy, list, count * element_bytes);
    }
    return RONDO_STATUS_OK;
}

// Files of the first IR version have no `type`: the field that is there tells.
static Onnx__AttributeProto__AttributeType get_type(const Onnx__AttributeProto *proto) {
    if (proto->has_type && proto->type != ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__UNDEFINED) {
        return proto->type;
    }
    return proto->has_f           ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT
           : proto->has_i         ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT
           : proto->has_s         ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING
           : proto->t != NULL     ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR
           : proto->g != NULL     ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH
           : proto->n_floats > 0  ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS
           : proto->n_strings > 0 ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS
                                  : ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
}

// A node under construction. The captured values of its bodies stand behind its own inputs.
typedef struct node_builder {
    rondo__importer *importer;
    rondo__scope *scope;
    const Onnx__NodeProto *proto;
    rondo__op op;
    size_t input_count;
    size_t input_capacity;
    int32_t *inputs;
    size_t explicit_count;
    int32_t *outputs;
} node_builder;

static rondo_status append_input(node_builder *builder, int32_t value) {
    RETURN_IF_ERROR(rondo__array_reserve((void **)&builder->inputs, &builder->input_capacity,
                                         builder->input_count + 1, sizeof(*builder->inputs)));
    builder->inputs[builder->input_count++] = value;
    return RONDO_STATUS_OK;
}

static rondo_status import_body(node_builder *builder, const Onnx__GraphProto *graph,
                                rondo__attribute *attribute) {
    int32_t *captured = NULL;
    size_t captured_count = 0;
    rondo_status status = rondo__import_body(builder->importer, builder->scope, graph,
                                             &attribute->body, &captured, &captured_count);
    for (size_t i = 0; i < captured_count && status == RONDO_STATUS_OK; ++i) {
        status = append_input(builder, captured[i]);
    }
    rondo__free(captured);
    return status;
}

static rondo_status fail_attribute(const node_builder *builder, const char *name) {
    char detail[96];
    snprintf(detail, sizeof(detail), "attribute %.80s", name);
    return rondo__op_fail_unsupported(&builder->op, detail);
}

static rondo_status import_tensor(node_builder *builder, const Onnx__TensorProto *proto,
                                  rondo__attribute *attribute) {
    rondo_status status =
        rondo__tensor_read(&builder->importer->reader, proto, &attribute->tensor_value);
    return status == RONDO_STATUS_UNSUPPORTED ? fail_attribute(builder, attribute->name) : status;
}

static rondo_status fill_attribute(node_builder *builder, const Onnx__AttributeProto *proto,
                                   rondo__attribute *attribute) {
    switch (get_type(proto)) {
        case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT:
            attribute->kind = RONDO__ATTRIBUTE_INT;
            attribute->int_value = proto->i;
            return RONDO_STATUS_OK;
        case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT:
            attribute->kind = RONDO__ATTRIBUTE_FLOAT;
            attribute->float_value = proto->f;
            return RONDO_STATUS_OK;
        case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING:
            attribute->kind = RONDO__ATTRIBUTE_STRING;
            return copy_string(&proto->s, attribute->name, &attribute->string_value);
        case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS:
            attribute->kind = RONDO__ATTRIBUTE_INTS;
            attribute->count = proto->n_ints;
            return copy_list(proto->ints, proto->n_ints, sizeof(*proto->ints),
                             (void **)&attribute->ints);
        case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS:
            attribute->kind = RONDO__ATTRIBUTE_FLOATS;
            attribute->count = proto->n_floats;
            return copy_list(proto->floats, proto->n_floats, sizeof(*proto->floats),
                             (void **)&attribute->floats);
        case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS:
            attribute->kind = RONDO__ATTRIBUTE_STRINGS;
            return copy_strings(proto, attribute);
        case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR:
            attribute->kind = RONDO__ATTRIBUTE_TENSOR;
            if (proto->t == NULL) {
                return RONDO_FAIL(BAD_DATA, "attribute \"%.64s\" has no tensor", attribute->name);
            }
            return import_tensor(builder, proto->t, attribute);
        case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH:
            attribute->kind = RONDO__ATTRIBUTE_BODY;
            if (proto->g == NULL) {
                return RONDO_FAIL(BAD_DATA, "attribute \"%.64s\" has no graph", attribute->name);
            }
            return import_body(builder, proto->g, attribute);
        default:
            return fail_attribute(builder, attribute->name);
    }
}

static rondo_status import_attribute(node_builder *builder, const Onnx__AttributeProto *proto) {
    if (proto->name == NULL || proto->name[0] == '\0') {
        return RONDO_FAIL(BAD_DATA, "an attribute has no name");
    }
    if (rondo__op_find(&builder->op, proto->name) != NULL) {
        return RONDO_FAIL(BAD_DATA, "attribute \"%.64s\" stands there twice", proto->name);
    }
    const Onnx__AttributeProto *value = rondo__scope_get_attribute(builder->scope, proto);
    if (value == NULL) {
        return RONDO_STATUS_OK;  // refers to one that the caller leaves to its default
    }
    rondo__attribute attribute = {.name = rondo__strdup(proto->name)};
    if (attribute.name == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo_status status = fill_attribute(builder, value, &attribute);
    if (status == RONDO_STATUS_OK) {
        status = rondo__op_take_attribute(&builder->op, &attribute);
    }
    rondo__attribute_deinit(&attribute);
    return status;
}

static rondo_status import_attributes(node_builder *builder) {
    // Attributes are looked up one by one; the limit keeps that cheap for files that mean harm.
    if (builder->proto->n_attribute > ATTRIBUTE_COUNT_MAX) {
        return RONDO_FAIL(BAD_DATA, "%zu attributes; no op has more than %d",
                          builder->proto->n_attribute, ATTRIBUTE_COUNT_MAX);
    }
    for (size_t i = 0; i < builder->proto->n_attribute; ++i) {
        RETURN_IF_ERROR(import_attribute(builder, builder->proto->attribute[i]));
    }
    return RONDO_STATUS_OK;
}

// ---- wiring

static rondo_status fail_odd(const node_builder *builder, const char *role, const char *name,
                             const char *reason) {
    char detail[160];
    snprintf(detail, sizeof(detail), "%s %.64s is %s", role, name, reason);
    return rondo__op_fail_unsupported(&builder->op, detail);
}

static rondo_status import_inputs(node_builder *builder) {
    const Onnx__NodeProto *proto = builder->proto;
    for (size_t i = 0; i < proto->n_input; ++i) {
        int32_t value = RONDO__VALUE_NONE;
        if (proto->input[i] != NULL && proto->input[i][0] != '\0') {
            RETURN_IF_ERROR(rondo__scope_resolve(builder->scope, proto->input[i], &value));
        }
        const char *reason = rondo__oddities_get(builder->scope->oddities, value);
        if (reason != NULL) {
            return fail_odd(builder, "input", proto->input[i], reason);
        }
        RETURN_IF_ERROR(append_input(builder, value));
    }
    builder->explicit_count = builder->input_count;
    return RONDO_STATUS_OK;
}

static rondo_status import_outputs(node_builder *builder) {
    const Onnx__NodeProto *proto = builder->proto;
    builder->outputs = rondo__calloc(proto->n_output + 1, sizeof(*builder->outputs));
    if (builder->outputs == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < proto->n_output; ++i) {
        builder->outputs[i] = RONDO__VALUE_NONE;
        if (proto->output[i] == NULL || proto->output[i][0] == '\0') {
            continue;
        }
        RETURN_IF_ERROR(
            rondo__scope_resolve(builder->scope, proto->output[i], &builder->outputs[i]));
        const char *reason = rondo__oddities_get(builder->scope->oddities, builder->outputs[i]);
        if (reason != NULL) {
            return fail_odd(builder, "output", proto->output[i], reason);
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status check_counts(const node_builder *builder) {
    const rondo__op_def *def = builder->op.def;
    size_t inputs = builder->explicit_count;
    size_t outputs = builder->proto->n_output;
    if (inputs < def->input_min ||
        (def->input_max != RONDO_OP_ANY_COUNT && inputs > def->input_max)) {
        return RONDO_FAIL(BAD_DATA, "has %zu inputs; the op takes %d to %d", inputs, def->input_min,
                          def->input_max);
    }
    if (outputs < def->output_min ||
        (def->output_max != RONDO_OP_ANY_COUNT && outputs > def->output_max)) {
        return RONDO_FAIL(BAD_DATA, "has %zu outputs; the op makes %d to %d", outputs,
                          def->output_min, def->output_max);
    }
    return RONDO_STATUS_OK;
}

static rondo_status build_node(node_builder *builder) {
    RETURN_IF_ERROR(import_inputs(builder));
    RETURN_IF_ERROR(import_outputs(builder));
    RETURN_IF_ERROR(check_counts(builder));
    RETURN_IF_ERROR(import_attributes(builder));
    RETURN_IF_ERROR(rondo__op_check(&builder->op));
    return rondo__program_add_node(builder->scope->program, &builder->op, builder->inputs,
                                   builder->input_count, builder->explicit_count, builder->outputs,
                                   builder->proto->n_output);
}

static const char *const known_opsets = "opsets 9 to 21 are known";

static rondo_status import_op(rondo__importer *importer, rondo__scope *scope,
                              const Onnx__NodeProto *proto, const char *domain, int32_t opset) {
    node_builder builder = {
        .importer = importer,
        .scope = scope,
        .proto = proto,
        .op = {.def = rondo__op_lookup(domain, proto->op_type, opset), .opset = opset},
    };
    if (builder.op.def == NULL) {
        bool is_known_opset = opset >= RONDO_OP_OPSET_MIN && opset <= RONDO_OP_OPSET_MAX;
        return fail_unsupported(proto, opset,
                                is_known_opset || domain[0] != '\0' ? "" : known_opsets);
    }
    if ((builder.op.def->flags & RONDO__OP_INTERNAL) != 0) {
        return RONDO_FAIL(BAD_DATA, "the op is internal and cannot stand in a file");
    }
    char name[128];
    format_name(scope, proto, name, sizeof name);
    // A name of the file's is kept whole.
    const bool has_name = proto->name != NULL && proto->name[0] != '\0';
    builder.op.name = rondo__strdup(has_name ? proto->name : name);
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    if (builder.op.name != NULL) {
        status = build_node(&builder);
    }
    rondo__op_deinit(&builder.op);
    rondo__free(builder.inputs);
    rondo__free(builder.outputs);
    return status;
}

rondo_status rondo__import_node(rondo__importer *importer, rondo__scope *scope,
                                const Onnx__NodeProto *proto) {
    const char *domain = rondo__onnx_domain(proto->domain);
    int32_t opset = rondo__scope_get_opset(scope, domain);
    int32_t function = -1;
    RETURN_IF_ERROR(rondo__importer_find_function(importer, domain, proto->op_type, &function));
    rondo_status status = function >= 0 ? rondo__import_call(importer, scope, proto, function)
                                        : import_op(importer, scope, proto, domain, opset);
    return finish_node(importer, scope, proto, opset, status);
}

// ---- constants

bool rondo__node_is_constant(const Onnx__NodeProto *node) {
    return node->op_type != NULL && strcmp(node->op_type, "Constant") == 0 &&
           rondo__onnx_domain(node->domain)[0] == '\0';
}

static rondo_status make_list(rondo_dtype dtype, int32_t rank, const void *elements, size_t count,
                              rondo_tensor *out_tensor) {
    rondo_shape shape = {.rank = rank};
    if (rank == 1) {
        shape.extent[0] = (int64_t)count;
    }
    RETURN_IF_ERROR(rondo_tensor_init(dtype, &shape, out_tensor));
    if (count > 0) {
        memcpy(out_tensor->data, elements, count * rondo_dtype_get_bytes(dtype));
    }
    return RONDO_STATUS_OK;
}

// Makes the tensor that one attribute of a Constant node describes.
static rondo_status read_constant(rondo__importer *importer, const Onnx__NodeProto *proto,
                                  int32_t opset, const char *name,
                                  const Onnx__AttributeProto *value, rondo_tensor *out_tensor) {
    if (strcmp(name, "value") == 0 && value->t != NULL) {
        rondo_status status = rondo__tensor_read(&importer->reader, value->t, out_tensor);
        return status == RONDO_STATUS_UNSUPPORTED
                   ? fail_unsupported(proto, opset, "attribute value: its element type or rank")
                   : status;
    }
    if (strcmp(name, "value_float") == 0) {
        return make_list(RONDO_DTYPE_F32, 0, &value->f, 1, out_tensor);
    }
    if (strcmp(name, "value_int") == 0) {
        return make_list(RONDO_DTYPE_I64, 0, &value->i, 1, out_tensor);
    }
    if (strcmp(name, "value_floats") == 0) {
        return make_list(RONDO_DTYPE_F32, 1, value->floats, value->n_floats, out_tensor);
    }
    if (strcmp(name, "value_ints") == 0) {
        return make_list(RONDO_DTYPE_I64, 1, value->ints, value->n_ints, out_tensor);
    }
    char detail[96];
    snprintf(detail, sizeof(detail), "attribute %.80s", name);
    return fail_unsupported(proto, opset, detail);
}

static rondo_status set_constant(rondo__scope *scope, int32_t number, rondo_tensor *tensor) {
    rondo__value *value = &scope->program->values[number];
    if (value->constant.dtype != RONDO_DTYPE_NONE) {
        return RONDO_FAIL(BAD_DATA, "value \"%.80s\" is made twice", value->name);
    }
    value->constant = *tensor;
    *tensor = (rondo_tensor){0};
    value->dtype = value->constant.dtype;
    value->has_shape = true;
    value->rank = value->constant.shape.rank;
    for (int32_t i = 0; i < value->rank; ++i) {
        value->dims[i].number = value->constant.shape.extent[i];
    }
    return RONDO_STATUS_OK;
}

static rondo_status import_constant_checked(rondo__importer *importer, rondo__scope *scope,
                                            const Onnx__NodeProto *proto, int32_t opset) {
    if (proto->n_output != 1 || proto->output[0] == NULL || proto->output[0][0] == '\0' ||
        proto->n_input != 0) {
        return RONDO_FAIL(BAD_DATA, "a Constant has no input and one output");
    }
    int32_t number = RONDO__VALUE_NONE;
    RETURN_IF_ERROR(rondo__scope_declare(scope, proto->output[0], &number));
    if (number == RONDO__VALUE_NONE) {
        return RONDO_STATUS_OK;  // an output of a function that the caller leaves out
    }
    if (proto->n_attribute != 1 || proto->attribute[0]->name == NULL) {
        return RONDO_FAIL(BAD_DATA, "a Constant has one attribute, this one %zu",
                          proto->n_attribute);
    }
    const Onnx__AttributeProto *value = rondo__scope_get_attribute(scope, proto->attribute[0]);
    if (value == NULL) {
        return RONDO_FAIL(BAD_DATA, "attribute \"%.64s\" refers to one that is not given",
                          proto->attribute[0]->name);
    }
    rondo_tensor tensor = {0};
    rondo_status status =
        read_constant(importer, proto, opset, proto->attribute[0]->name, value, &tensor);
    if (status == RONDO_STATUS_OK) {
        status = set_constant(scope, number, &tensor);
    }
    rondo_tensor_deinit(&tensor);
    return status;
}

rondo_status rondo__import_constant(rondo__importer *importer, rondo__scope *scope,
                                    const Onnx__NodeProto *proto) {
    int32_t opset = rondo__scope_get_opset(scope, "");
    return finish_node(importer, scope, proto, opset,
                       import_constant_checked(importer, scope, proto, opset));
}

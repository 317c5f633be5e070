// onnx/nodes.c — see nodes.h.
// SPDX-License-Identifier: Apache-2.0
#include "onnx/nodes.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/log/logging.h"
#include "base/memory.h"
#include "onnx/expand/expand.h"
#include "program/place_mark.h"

enum { ATTRIBUTE_COUNT_MAX = 256 };

// ---- what is unsupported

rondo_status rondo__node_fail_unsupported(const Onnx__NodeProto *proto, int32_t opset,
                                          const char *detail) {
    const char *domain = rondo__onnx_domain(proto->domain);
    return RONDO_FAIL(UNSUPPORTED, "unsupported: op %.48s%s%.64s version %d%s%s%s", domain,
                      domain[0] == '\0' ? "" : ".", proto->op_type, opset,
                      detail[0] == '\0' ? "" : " (", detail, detail[0] == '\0' ? "" : ")");
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

rondo_status rondo__node_finish(rondo__importer *importer, const rondo__scope *scope,
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

static rondo_status append_input(rondo__node_builder *builder, int32_t value) {
    rondo__node *node = &builder->node;
    RETURN_IF_ERROR(
        RONDO__ARRAY_RESERVE(node->inputs, builder->input_capacity, node->input_count + 1));
    node->inputs[node->input_count++] = value;
    return RONDO_STATUS_OK;
}

static rondo_status fail_attribute(const rondo__node_builder *builder, const char *name) {
    char detail[96];
    snprintf(detail, sizeof(detail), "attribute %.80s", name);
    return rondo__op_fail_unsupported(&builder->node.op, detail);
}

static rondo_status import_tensor(rondo__node_builder *builder, const Onnx__TensorProto *proto,
                                  rondo__attribute *attribute) {
    rondo_status status =
        rondo__tensor_read(&builder->importer->reader, proto, &attribute->tensor_value);
    if (status == RONDO_STATUS_UNSUPPORTED) {
        char detail[192];
        snprintf(detail, sizeof detail, "attribute %.60s is %s", attribute->name,
                 rondo__tensor_explain(proto));
        return rondo__op_fail_unsupported(&builder->node.op, detail);
    }
    return status;
}

static rondo_status fill_attribute(rondo__node_builder *builder, const Onnx__AttributeProto *proto,
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
        default:
            return fail_attribute(builder, attribute->name);
    }
}

rondo_status rondo__node_add_attribute(rondo__node_builder *builder,
                                       const Onnx__AttributeProto *proto,
                                       const Onnx__GraphProto **out_graph) {
    *out_graph = NULL;
    if (proto->name == NULL || proto->name[0] == '\0') {
        return RONDO_FAIL(BAD_DATA, "an attribute has no name");
    }
    if (rondo__op_find(&builder->node.op, proto->name) != NULL) {
        return RONDO_FAIL(BAD_DATA, "attribute \"%.64s\" stands there twice", proto->name);
    }
    const Onnx__AttributeProto *value = rondo__scope_get_attribute(builder->scope, proto);
    if (value == NULL) {
        return RONDO_STATUS_OK;  // refers to one that the caller leaves to its default
    }
    const Onnx__AttributeProto__AttributeType type = get_type(value);
    if (type == ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TYPE_PROTO &&
        builder->node.op.def->id == RONDO__OP_Optional) {
        return RONDO_STATUS_OK;  // says what an empty one would hold, which is not needed
    }
    if (type == ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH) {
        *out_graph = value->g;
        return value->g != NULL
                   ? RONDO_STATUS_OK
                   : RONDO_FAIL(BAD_DATA, "attribute \"%.64s\" has no graph", proto->name);
    }
    rondo__attribute attribute = {.name = rondo__strdup(proto->name)};
    if (attribute.name == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo_status status = fill_attribute(builder, value, &attribute);
    if (status == RONDO_STATUS_OK) {
        status = rondo__op_take_attribute(&builder->node.op, &attribute);
    }
    rondo__attribute_deinit(&attribute);
    return status;
}

rondo_status rondo__node_add_body(rondo__node_builder *builder, const char *name,
                                  rondo_program *body, const int32_t *captured,
                                  size_t captured_count) {
    rondo__attribute attribute = {
        .name = rondo__strdup(name), .kind = RONDO__ATTRIBUTE_BODY, .body = body};
    rondo_status status = attribute.name != NULL ? RONDO_STATUS_OK : RONDO_STATUS_NO_MEMORY;
    for (size_t i = 0; i < captured_count && status == RONDO_STATUS_OK; ++i) {
        status = append_input(builder, captured[i]);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__op_take_attribute(&builder->node.op, &attribute);
    }
    rondo_program_destroy(attribute.body);  // NULL when the node has it
    rondo__attribute_deinit(&attribute);
    return status;
}

// ---- wiring

static rondo_status fail_odd(const rondo__node_builder *builder, const char *role, const char *name,
                             const char *reason) {
    char detail[192];
    snprintf(detail, sizeof(detail), "%s \"%.64s\" is %s", role, name, reason);
    return rondo__op_fail_unsupported(&builder->node.op, detail);
}

static rondo_status import_inputs(rondo__node_builder *builder) {
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
    builder->node.explicit_count = builder->node.input_count;
    return RONDO_STATUS_OK;
}

static rondo_status import_outputs(rondo__node_builder *builder) {
    const Onnx__NodeProto *proto = builder->proto;
    builder->node.outputs = rondo__calloc(proto->n_output + 1, sizeof(*builder->node.outputs));
    if (builder->node.outputs == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < proto->n_output; ++i) {
        builder->node.outputs[i] = RONDO__VALUE_NONE;
        builder->node.output_count = i + 1;
        if (proto->output[i] == NULL || proto->output[i][0] == '\0') {
            continue;
        }
        RETURN_IF_ERROR(
            rondo__scope_resolve(builder->scope, proto->output[i], &builder->node.outputs[i]));
        const char *reason =
            rondo__oddities_get(builder->scope->oddities, builder->node.outputs[i]);
        if (reason != NULL) {
            return fail_odd(builder, "output", proto->output[i], reason);
        }
    }
    return RONDO_STATUS_OK;
}

// The advice for an unknown op.
static const char *explain_domain(const char *domain) {
    if (strcmp(domain, "com.microsoft.nchwc") == 0) {
        return "a layout of ONNX Runtime's for one machine: save the model with a lower "
               "optimisation level";
    }
    return domain[0] == '\0' || strncmp(domain, "ai.onnx.", sizeof "ai.onnx." - 1) == 0
               ? "the op is unknown"
               : "the op is unknown: rondo_op_register adds one";
}

// Says whether the op is unknown, or this version of it, or all of this opset.
static rondo_status fail_version(const Onnx__NodeProto *proto, const char *domain, int32_t opset) {
    const bool is_known_opset =
        domain[0] != '\0' || (opset >= RONDO_OP_OPSET_MIN && opset <= RONDO_OP_OPSET_MAX);
    char detail[128];
    int32_t first = 0;
    int32_t last = 0;
    if (proto->overload != NULL && proto->overload[0] != '\0') {
        snprintf(detail, sizeof detail, "overload \"%.80s\" of no function of the model",
                 proto->overload);
        return rondo__node_fail_unsupported(proto, opset, detail);
    }
    const bool is_known_op = rondo__op_get_versions(domain, proto->op_type, &first, &last) ||
                             rondo__expansion_get_versions(domain, proto->op_type, &first, &last);
    // In a later opset the importer cannot tell whether the op exists there.
    if (!is_known_opset && (is_known_op || opset > RONDO_OP_OPSET_MAX)) {
        return rondo__node_fail_unsupported(proto, opset, RONDO__MISSING_OPSET);
    }
    if (!is_known_op) {
        return rondo__node_fail_unsupported(proto, opset, explain_domain(domain));
    }
    snprintf(detail, sizeof detail, "versions %d to %d are known", first, last);
    return rondo__node_fail_unsupported(proto, opset, detail);
}

int32_t rondo__node_get_opset(rondo__importer *importer, const rondo__scope *scope,
                              const Onnx__NodeProto *proto) {
    const char *domain = rondo__onnx_domain(proto->domain);
    const int32_t opset = rondo__scope_get_opset(scope, domain);
    int32_t first = 0;
    int32_t newest = RONDO_OP_OPSET_MAX;  // an op that ONNX took away before does not come back
    if (!importer->allow_newer_opset ||
        (domain[0] != '\0' && !rondo__op_get_versions(domain, proto->op_type, &first, &newest))) {
        return opset;
    }
    if (opset > newest && !importer->has_told_newer) {
        importer->has_told_newer = true;
        RONDO_LOG_WARN_F(
            "op %.48s%s%.64s version %d is read as version %d has it, and so are other "
            "ops of versions that came later",
            domain, domain[0] == '\0' ? "" : ".", proto->op_type, opset, newest);
    }
    return opset > newest ? newest : opset;
}

rondo_status rondo__node_begin(rondo__importer *importer, rondo__scope *scope,
                               const Onnx__NodeProto *proto, int32_t opset,
                               rondo__node_builder *out_builder) {
    const char *domain = rondo__onnx_domain(proto->domain);
    rondo__node_builder *builder = out_builder;
    *builder = (rondo__node_builder){
        .importer = importer,
        .scope = scope,
        .proto = proto,
        .node.op = {.def = rondo__op_lookup(domain, proto->op_type, opset), .opset = opset},
    };
    if (builder->node.op.def == NULL) {  // an op of ours, or a user's, goes before
        builder->expansion = rondo__expansion_find(domain, proto->op_type, opset);
        builder->node.op.def = builder->expansion != NULL ? &builder->expansion->def : NULL;
    }
    if (builder->node.op.def == NULL) {
        return fail_version(proto, domain, opset);
    }
    if ((builder->node.op.def->flags & RONDO__OP_INTERNAL) != 0) {
        return RONDO_FAIL(BAD_DATA, "the op is internal and cannot stand in a file");
    }
    char name[128];
    format_name(scope, proto, name, sizeof name);
    // A name of the file's is kept whole.
    const bool has_name = proto->name != NULL && proto->name[0] != '\0';
    builder->node.op.name = rondo__strdup(has_name ? proto->name : name);
    if (builder->node.op.name == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    RETURN_IF_ERROR(import_inputs(builder));
    RETURN_IF_ERROR(import_outputs(builder));
    RETURN_IF_ERROR(rondo__op_check_counts(builder->node.op.def, builder->node.explicit_count,
                                           builder->node.output_count));
    // Attributes are looked up one by one; the limit keeps that cheap for files that mean harm.
    if (proto->n_attribute > ATTRIBUTE_COUNT_MAX) {
        return RONDO_FAIL(BAD_DATA, "%zu attributes; no op has more than %d", proto->n_attribute,
                          ATTRIBUTE_COUNT_MAX);
    }
    return RONDO_STATUS_OK;
}

static rondo_status add_to_program(rondo__node_builder *builder) {
    rondo__node *node = &builder->node;
    return rondo__program_add_node(builder->scope->program, &node->op, node->inputs,
                                   node->input_count, node->explicit_count, node->outputs,
                                   node->output_count);
}

// A line of the node's text may give it a place.
static rondo_status read_place(const Onnx__NodeProto *proto, rondo__place_mark *out_mark) {
    static const char key[] = RONDO__PLACE_TEXT_KEY;
    const char *line = proto->doc_string;
    while (line != NULL && strncmp(line, key, sizeof key - 1) != 0) {
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    if (line == NULL) {
        return RONDO_STATUS_OK;
    }
    char place[16] = {0};
    const char *begin = line + sizeof key - 1;
    const size_t length = strcspn(begin, "\r\n");
    memcpy(place, begin, length < sizeof place ? length : sizeof place - 1);
    if (rondo__place_parse(place, __func__, &out_mark->place) != RONDO_STATUS_OK) {
        return RONDO_FAIL(BAD_DATA, "its text says %s%s, which is no place", key, place);
    }
    out_mark->by = RONDO__PLACED_BY_PROGRAM;
    return RONDO_STATUS_OK;
}

rondo_status rondo__node_end(rondo__node_builder *builder) {
    rondo__node *node = &builder->node;
    rondo__place_mark mark = {0};
    RETURN_IF_ERROR(rondo__op_check(&node->op));
    RETURN_IF_ERROR(read_place(builder->proto, &mark));
    rondo_program *program = builder->scope->program;
    const size_t first = program->node_count;
    RETURN_IF_ERROR(builder->expansion != NULL ? rondo__expansion_run(builder->expansion, builder)
                                               : add_to_program(builder));
    for (size_t n = first; n < program->node_count; ++n) {
        program->nodes[n].place = mark;
    }
    return RONDO_STATUS_OK;
}

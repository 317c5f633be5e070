#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "onnx/importer.h"

// ---- names

rondo_status rondo__scope_declare(rondo__scope *scope, const char *name, int32_t *out_value) {
    *out_value = RONDO__VALUE_NONE;
    if (scope->function == NULL) {
        if (rondo__program_find_value(scope->program, name) != RONDO__VALUE_NONE) {
            return RONDO_FAIL(BAD_DATA, "value \"%.80s\" is made twice", name);
        }
        return rondo__program_add_value(scope->program, name, out_value);
    }
    // Inside a function: its outputs are mapped to the caller's values already.
    enum { UNKNOWN = -2 };
    int32_t number = rondo__namemap_find(&scope->names, name, UNKNOWN);
    if (number == UNKNOWN) {
        bool is_new = false;
        RETURN_IF_ERROR(rondo__program_add_value(scope->program, name, &number));
        RETURN_IF_ERROR(rondo__namemap_add(&scope->names, name, number, &is_new));
    }
    *out_value = number;
    return RONDO_STATUS_OK;
}

// Brings a value of the scope around into a body.
static rondo_status capture(rondo__scope *scope, const char *name, int32_t outer,
                            int32_t *out_value) {
    const rondo__value *source = &scope->parent->program->values[outer];
    if (source->constant.dtype != RONDO_DTYPE_NONE) {
        RETURN_IF_ERROR(
            rondo__program_add_constant(scope->program, name, &source->constant, out_value));
        scope->program->values[*out_value].origin = outer;
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(rondo__array_reserve((void **)&scope->captured, &scope->captured_capacity,
                                         scope->captured_count + 1, sizeof(*scope->captured)));
    RETURN_IF_ERROR(rondo__program_add_value(scope->program, name, out_value));
    rondo__value *value = &scope->program->values[*out_value];
    value->dtype = source->dtype;
    value->has_shape = source->has_shape;
    value->rank = source->rank;
    for (int32_t i = 0; i < source->rank; ++i) {
        value->dims[i].number = source->dims[i].number;
    }
    const char *reason = rondo__oddities_get(scope->parent->oddities, outer);
    if (reason != NULL) {
        RETURN_IF_ERROR(rondo__oddities_set(scope->oddities, *out_value, reason));
    }
    RETURN_IF_ERROR(rondo__program_add_captured(scope->program, *out_value));
    scope->captured[scope->captured_count++] = outer;
    return RONDO_STATUS_OK;
}

// Finds a name; RONDO__VALUE_NONE when no scope knows it. Recurses once for each body around.
static rondo_status find_or_capture(rondo__scope *scope, const char *name, int32_t *out_value) {
    if (scope->function != NULL) {
        *out_value = rondo__namemap_find(&scope->names, name, RONDO__VALUE_NONE);
        return RONDO_STATUS_OK;
    }
    *out_value = rondo__program_find_value(scope->program, name);
    if (*out_value != RONDO__VALUE_NONE || scope->parent == NULL) {
        return RONDO_STATUS_OK;
    }
    int32_t outer = RONDO__VALUE_NONE;
    RETURN_IF_ERROR(find_or_capture(scope->parent, name, &outer));
    if (outer == RONDO__VALUE_NONE) {
        return RONDO_STATUS_OK;
    }
    return capture(scope, name, outer, out_value);
}

rondo_status rondo__scope_resolve(rondo__scope *scope, const char *name, int32_t *out_value) {
    RETURN_IF_ERROR(find_or_capture(scope, name, out_value));
    if (*out_value == RONDO__VALUE_NONE && scope->function != NULL) {
        // An argument that the caller left out, perhaps.
        enum { UNKNOWN = -2 };
        if (rondo__namemap_find(&scope->names, name, UNKNOWN) == RONDO__VALUE_NONE) {
            return RONDO_STATUS_OK;
        }
    }
    if (*out_value == RONDO__VALUE_NONE) {
        return RONDO_FAIL(BAD_DATA, "value \"%.80s\" is used, but nothing makes it", name);
    }
    return RONDO_STATUS_OK;
}

// ---- the parts of a graph

static bool is_empty(const char *name) {
    return name == NULL || name[0] == '\0';
}

static rondo_status import_initializer(rondo__importer *importer, rondo__scope *scope,
                                       const Onnx__TensorProto *proto) {
    if (is_empty(proto->name)) {
        return RONDO_FAIL(BAD_DATA, "an initializer has no name");
    }
    if (rondo__program_find_value(scope->program, proto->name) != RONDO__VALUE_NONE) {
        return RONDO_FAIL(BAD_DATA, "initializer \"%.80s\" stands there twice", proto->name);
    }
    rondo_tensor tensor = {0};
    int32_t number = RONDO__VALUE_NONE;
    rondo_status status = rondo__tensor_read(&importer->reader, proto, &tensor);
    if (status == RONDO_STATUS_UNSUPPORTED) {
        // The node that uses it knows better what cannot be done.
        RETURN_IF_ERROR(rondo__program_add_value(scope->program, proto->name, &number));
        return rondo__oddities_set(scope->oddities, number, "an unsupported initializer");
    }
    if (status != RONDO_STATUS_OK) {
        return status;
    }
    status = rondo__program_add_constant(scope->program, proto->name, &tensor, &number);
    rondo_tensor_deinit(&tensor);
    return status;
}

static rondo_status import_input(rondo__importer *importer, rondo__scope *scope,
                                 const Onnx__ValueInfoProto *info, size_t initializer_count) {
    if (is_empty(info->name)) {
        return RONDO_FAIL(BAD_DATA, "an input has no name");
    }
    int32_t number = rondo__program_find_value(scope->program, info->name);
    if (number != RONDO__VALUE_NONE) {
        // Initializers came first, so the lower numbers are theirs.
        if ((size_t)number >= initializer_count) {
            return RONDO_FAIL(BAD_DATA, "input \"%.80s\" is declared twice", info->name);
        }
        if (scope->parent != NULL) {
            return RONDO_FAIL(BAD_DATA, "input \"%.80s\" of a body is an initializer too",
                              info->name);
        }
        return rondo__import_optional(importer, scope, number, info->type);
    }
    RETURN_IF_ERROR(rondo__program_add_value(scope->program, info->name, &number));
    RETURN_IF_ERROR(rondo__program_add_input(scope->program, number));
    return rondo__import_type(importer, scope, number, info->type, true);
}

static rondo_status import_output(rondo__importer *importer, rondo__scope *scope,
                                  const Onnx__ValueInfoProto *info) {
    int32_t number = RONDO__VALUE_NONE;
    if (is_empty(info->name)) {
        return RONDO_FAIL(BAD_DATA, "an output has no name");
    }
    rondo_status status = rondo__scope_resolve(scope, info->name, &number);
    if (status != RONDO_STATUS_OK) {
        rondo__error_prefix("output");
        return status;
    }
    RETURN_IF_ERROR(rondo__program_add_output(scope->program, number));
    return rondo__import_type(importer, scope, number, info->type, true);
}

rondo_status rondo__import_declarations(rondo__importer *importer, rondo__scope *scope,
                                        Onnx__NodeProto *const *nodes, size_t node_count) {
    for (size_t i = 0; i < node_count; ++i) {
        const Onnx__NodeProto *node = nodes[i];
        if (rondo__node_is_constant(node)) {
            RETURN_IF_ERROR(rondo__import_constant(importer, scope, node));
            continue;
        }
        for (size_t j = 0; j < node->n_output; ++j) {
            int32_t ignored = RONDO__VALUE_NONE;
            if (is_empty(node->output[j])) {
                continue;
            }
            rondo_status status = rondo__scope_declare(scope, node->output[j], &ignored);
            if (status != RONDO_STATUS_OK) {
                rondo__error_set_op(node->name);
                return status;
            }
        }
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__import_nodes(rondo__importer *importer, rondo__scope *scope,
                                 Onnx__NodeProto *const *nodes, size_t node_count) {
    for (size_t i = 0; i < node_count; ++i) {
        if (is_empty(nodes[i]->op_type)) {
            return RONDO_FAIL(BAD_DATA, "node number %zu, \"%.80s\", has no op type", i,
                              nodes[i]->name == NULL ? "" : nodes[i]->name);
        }
        if (!rondo__node_is_constant(nodes[i])) {
            RETURN_IF_ERROR(rondo__import_node(importer, scope, nodes[i]));
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status import_ports(rondo__importer *importer, rondo__scope *scope,
                                 const Onnx__GraphProto *graph) {
    if (graph->n_sparse_initializer > 0) {
        return RONDO_FAIL(UNSUPPORTED, "unsupported: the model has sparse initializers");
    }
    for (size_t i = 0; i < graph->n_initializer; ++i) {
        RETURN_IF_ERROR(import_initializer(importer, scope, graph->initializer[i]));
    }
    for (size_t i = 0; i < graph->n_input; ++i) {
        RETURN_IF_ERROR(import_input(importer, scope, graph->input[i], graph->n_initializer));
    }
    return RONDO_STATUS_OK;
}

// What is known of values between nodes. Names that nobody makes are left-overs of optimisers.
static rondo_status import_value_infos(rondo__importer *importer, rondo__scope *scope,
                                       const Onnx__GraphProto *graph) {
    for (size_t i = 0; i < graph->n_value_info; ++i) {
        const Onnx__ValueInfoProto *info = graph->value_info[i];
        int32_t number =
            is_empty(info->name) ? -1 : rondo__program_find_value(scope->program, info->name);
        if (number >= 0) {
            RETURN_IF_ERROR(rondo__import_type(importer, scope, number, info->type, false));
        }
    }
    // Outputs are resolved last, but their nodes want to know of odd types before.
    for (size_t i = 0; i < graph->n_output; ++i) {
        const Onnx__ValueInfoProto *info = graph->output[i];
        int32_t number =
            is_empty(info->name) ? -1 : rondo__program_find_value(scope->program, info->name);
        if (number >= 0) {
            RETURN_IF_ERROR(rondo__import_type(importer, scope, number, info->type, false));
        }
    }
    return RONDO_STATUS_OK;
}

// A port of an odd type that no node complained about.
static rondo_status check_ports(const rondo__importer *importer, const rondo__scope *scope) {
    if (importer->is_listing || importer->missing->count > 0) {
        return RONDO_STATUS_OK;
    }
    const rondo_program *program = scope->program;
    for (size_t i = 0; i < program->input_count + program->output_count; ++i) {
        bool is_input = i < program->input_count;
        int32_t number = is_input ? program->inputs[i] : program->outputs[i - program->input_count];
        const char *reason = rondo__oddities_get(scope->oddities, number);
        if (reason != NULL) {
            return RONDO_FAIL(UNSUPPORTED, "unsupported: %s \"%.80s\" is %s",
                              is_input ? "input" : "output", program->values[number].name, reason);
        }
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__import_graph(rondo__importer *importer, rondo__scope *scope,
                                 const Onnx__GraphProto *graph) {
    RETURN_IF_ERROR(import_ports(importer, scope, graph));
    RETURN_IF_ERROR(rondo__import_declarations(importer, scope, graph->node, graph->n_node));
    RETURN_IF_ERROR(import_value_infos(importer, scope, graph));
    RETURN_IF_ERROR(rondo__import_nodes(importer, scope, graph->node, graph->n_node));
    for (size_t i = 0; i < graph->n_output; ++i) {
        RETURN_IF_ERROR(import_output(importer, scope, graph->output[i]));
    }
    return check_ports(importer, scope);
}

rondo_status rondo__import_body(rondo__importer *importer, rondo__scope *scope,
                                const Onnx__GraphProto *graph, rondo_program **out_body,
                                int32_t **out_captured, size_t *out_captured_count) {
    *out_body = NULL;
    *out_captured = NULL;
    *out_captured_count = 0;
    if (scope->depth >= RONDO__BODY_DEPTH_MAX) {
        return RONDO_FAIL(BAD_DATA, "bodies are nested more than %d deep", RONDO__BODY_DEPTH_MAX);
    }
    rondo_program *body = NULL;
    RETURN_IF_ERROR(rondo__program_create(graph->name, &body));
    rondo__oddities oddities = {0};
    rondo__scope inner = {
        .parent = scope,
        .program = body,
        .oddities = &oddities,
        .depth = scope->depth + 1,
        .call_depth = scope->call_depth,
        .opset_count = scope->opset_count,
        .opsets = scope->opsets,
    };
    rondo_status status = rondo__import_graph(importer, &inner, graph);
    rondo__free(oddities.reasons);
    if (status != RONDO_STATUS_OK) {
        rondo__free(inner.captured);
        rondo_program_destroy(body);
        return status;
    }
    *out_body = body;
    *out_captured = inner.captured;
    *out_captured_count = inner.captured_count;
    return RONDO_STATUS_OK;
}

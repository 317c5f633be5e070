// onnx/graphs.c — see graphs.h.
// SPDX-License-Identifier: Apache-2.0
#include "onnx/graphs.h"

#include <stdbool.h>

#include "base/error.h"
#include "base/memory.h"
#include "onnx/constant_nodes.h"
#include "onnx/functions.h"
#include "onnx/gradient_nodes.h"
#include "onnx/nodes.h"
#include "onnx/old_broadcast.h"
#include "onnx/sparse.h"
#include "onnx/types.h"

// ---- the parts of a graph

static rondo_status import_nodes(rondo__importer *importer, rondo__scope *scope,
                                 Onnx__NodeProto *const *nodes, size_t node_count);

static bool is_empty(const char *name) {
    return name == NULL || name[0] == '\0';
}

// Adds the initializer `name`, which was read, or could not be with `status`.
static rondo_status add_initializer(rondo__scope *scope, const char *name, rondo_status status,
                                    const char *explanation, rondo_tensor *tensor) {
    int32_t number = RONDO__VALUE_NONE;
    if (status == RONDO_STATUS_UNSUPPORTED) {
        // The node that uses it knows better what cannot be done.
        RETURN_IF_ERROR(rondo__program_add_value(scope->program, name, &number));
        return rondo__oddities_set(scope->oddities, number, explanation);
    }
    if (status != RONDO_STATUS_OK) {
        return status;
    }
    status = rondo__program_add_constant(scope->program, name, tensor, &number);
    rondo_tensor_deinit(tensor);
    return status;
}

static rondo_status check_new(const rondo__scope *scope, const char *name) {
    if (is_empty(name)) {
        return RONDO_FAIL(BAD_DATA, "an initializer has no name");
    }
    if (rondo__program_find_value(scope->program, name) != RONDO__VALUE_NONE) {
        return RONDO_FAIL(BAD_DATA, "initializer \"%.80s\" stands there twice", name);
    }
    return RONDO_STATUS_OK;
}

static rondo_status import_initializers(rondo__importer *importer, rondo__scope *scope,
                                        const Onnx__GraphProto *graph) {
    rondo_tensor tensor = {0};
    for (size_t i = 0; i < graph->n_initializer; ++i) {
        const Onnx__TensorProto *proto = graph->initializer[i];
        RETURN_IF_ERROR(check_new(scope, proto->name));
        const rondo_status status = rondo__tensor_read(&importer->reader, proto, &tensor);
        RETURN_IF_ERROR(
            add_initializer(scope, proto->name, status, rondo__tensor_explain(proto), &tensor));
    }
    for (size_t i = 0; i < graph->n_sparse_initializer; ++i) {
        const Onnx__SparseTensorProto *proto = graph->sparse_initializer[i];
        const char *name = rondo__sparse_get_name(proto);
        RETURN_IF_ERROR(check_new(scope, name));
        const rondo_status status = rondo__sparse_read(&importer->reader, proto, &tensor);
        RETURN_IF_ERROR(
            add_initializer(scope, name, status, rondo__sparse_explain(proto), &tensor));
    }
    return RONDO_STATUS_OK;
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

static rondo_status import_ports(rondo__importer *importer, rondo__scope *scope,
                                 const Onnx__GraphProto *graph) {
    RETURN_IF_ERROR(import_initializers(importer, scope, graph));
    const size_t initializer_count = graph->n_initializer + graph->n_sparse_initializer;
    for (size_t i = 0; i < graph->n_input; ++i) {
        RETURN_IF_ERROR(import_input(importer, scope, graph->input[i], initializer_count));
    }
    return RONDO_STATUS_OK;
}

// Declared types of values between nodes. Names that no node makes are left-overs of optimisers.
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

// Declares the outputs of all nodes, and imports the Constant nodes among them.
static rondo_status import_declarations(rondo__importer *importer, rondo__scope *scope,
                                        Onnx__NodeProto *const *nodes, size_t node_count) {
    for (size_t i = 0; i < node_count; ++i) {
        const Onnx__NodeProto *node = nodes[i];
        if (rondo__node_is_constant(node)) {
            RETURN_IF_ERROR(rondo__import_constant(importer, scope, node));
            continue;
        }
        for (size_t j = 0; j < node->n_output; ++j) {
            int32_t number = RONDO__VALUE_NONE;
            if (is_empty(node->output[j])) {
                continue;
            }
            rondo_status status = rondo__scope_declare(scope, node->output[j], &number);
            if (status == RONDO_STATUS_OK && j == 0) {
                status = rondo__import_labels(scope, node, number);
            }
            if (status != RONDO_STATUS_OK) {
                rondo__error_set_op(node->name);
                return status;
            }
        }
    }
    return RONDO_STATUS_OK;
}

// Imports the body `name` of the node that is being built. Graphs, nodes and bodies call each
// other; RONDO__BODY_DEPTH_MAX bounds that.
static rondo_status import_body(rondo__node_builder *builder, const char *name,
                                const Onnx__GraphProto *graph) {
    rondo__scope *scope = builder->scope;
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
    rondo_status status = rondo__import_graph(builder->importer, &inner, graph);
    if (status == RONDO_STATUS_OK) {
        status = rondo__node_add_body(builder, name, body, inner.captured, inner.captured_count);
    } else {
        rondo_program_destroy(body);
    }
    rondo__free(oddities.reasons);
    rondo__free(inner.captured);
    return status;
}

static rondo_status import_op(rondo__importer *importer, rondo__scope *scope,
                              const Onnx__NodeProto *proto, int32_t opset) {
    rondo__node_builder builder;
    rondo_status status = rondo__node_begin(importer, scope, proto, opset, &builder);
    for (size_t i = 0; i < proto->n_attribute && status == RONDO_STATUS_OK; ++i) {
        const Onnx__GraphProto *graph = NULL;
        status = rondo__node_add_attribute(&builder, proto->attribute[i], &graph);
        if (graph != NULL) {
            status = import_body(&builder, proto->attribute[i]->name, graph);
        }
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__node_move_second(&builder);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__node_end(&builder);
    }
    rondo__node_deinit(&builder.node);
    return status;
}

static rondo_status import_call(rondo__importer *importer, rondo__scope *scope,
                                const Onnx__NodeProto *call, int32_t index) {
    const Onnx__FunctionProto *function = importer->model->functions[index];
    rondo__scope inner;
    rondo_status status = rondo__function_enter(importer, scope, call, index, &inner);
    if (status == RONDO_STATUS_OK) {
        status = import_declarations(importer, &inner, function->node, function->n_node);
    }
    if (status == RONDO_STATUS_OK) {
        status = import_nodes(importer, &inner, function->node, function->n_node);
    }
    rondo__namemap_deinit(&inner.names);
    return status;
}

static rondo_status import_node(rondo__importer *importer, rondo__scope *scope,
                                const Onnx__NodeProto *proto) {
    const int32_t opset = rondo__node_get_opset(importer, scope, proto);
    int32_t function = -1;
    RETURN_IF_ERROR(rondo__importer_find_function(importer, proto, &function));
    rondo_status status = function >= 0 ? import_call(importer, scope, proto, function)
                          : rondo__node_is_gradient(proto)
                              ? rondo__import_gradient(scope, proto)
                              : import_op(importer, scope, proto, opset);
    return rondo__node_finish(importer, scope, proto, opset, status);
}

// Imports all nodes but Constant, which were declared with the others.
static rondo_status import_nodes(rondo__importer *importer, rondo__scope *scope,
                                 Onnx__NodeProto *const *nodes, size_t node_count) {
    for (size_t i = 0; i < node_count; ++i) {
        if (is_empty(nodes[i]->op_type)) {
            return RONDO_FAIL(BAD_DATA, "node number %zu, \"%.80s\", has no op type", i,
                              nodes[i]->name == NULL ? "" : nodes[i]->name);
        }
        if (!rondo__node_is_constant(nodes[i])) {
            RETURN_IF_ERROR(import_node(importer, scope, nodes[i]));
        }
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__import_graph(rondo__importer *importer, rondo__scope *scope,
                                 const Onnx__GraphProto *graph) {
    RETURN_IF_ERROR(import_ports(importer, scope, graph));
    RETURN_IF_ERROR(import_declarations(importer, scope, graph->node, graph->n_node));
    RETURN_IF_ERROR(import_value_infos(importer, scope, graph));
    RETURN_IF_ERROR(import_nodes(importer, scope, graph->node, graph->n_node));
    for (size_t i = 0; i < graph->n_output; ++i) {
        RETURN_IF_ERROR(import_output(importer, scope, graph->output[i]));
    }
    return check_ports(importer, scope);
}

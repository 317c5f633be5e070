// program/builder/builder_node.c — nodes of a program built in code. See builder_parts.h.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/read_options.h"
#include "program/builder/builder_parts.h"
#include "program/training/step_parts.h"

// What one call of rondo_builder_add_node asks for, and what it comes to.
typedef struct node_request {
    const char *op;
    const char *domain;
    const char *const *inputs;
    const char *const *outputs;
    size_t input_count, output_count;
    const rondo_builder_node_options *options;
    rondo__node node;  // op, inputs and outputs while they are put together
    size_t input_capacity;
} node_request;

static const char call_name[] = "rondo_builder_add_node";

// ---- versions of domains

static rondo_builder *find_root(rondo_builder *builder) {
    while (builder->parent != NULL) {
        builder = builder->parent;
    }
    return builder;
}

// The version that a node of the domain has; a new domain is not entered yet.
static rondo_status choose_version(rondo_builder *builder, const char *domain, int32_t wanted,
                                   int32_t *out_version, bool *out_is_new) {
    const rondo_builder *root = find_root(builder);
    *out_is_new = false;
    for (size_t i = 0; i < root->domain_count; ++i) {
        const rondo__builder_domain *known = &root->domains[i];
        if (strcmp(known->name, domain) == 0) {
            *out_version = known->version;
            return wanted == 0 || wanted == known->version
                       ? RONDO_STATUS_OK
                       : RONDO_FAIL_AS(call_name, INVALID,
                                       "version %d of domain \"%.64s\", of which the program has "
                                       "version %d; a program has one",
                                       wanted, domain[0] == '\0' ? "ai.onnx" : domain,
                                       known->version);
        }
    }
    *out_is_new = true;
    *out_version = wanted != 0 ? wanted : strcmp(domain, "ai.onnx.ml") == 0 ? 3 : 1;
    return *out_version > 0
               ? RONDO_STATUS_OK
               : RONDO_FAIL_AS(call_name, INVALID, "version %d; versions begin at 1", wanted);
}

static rondo_status enter_domain(rondo_builder *builder, const char *domain, int32_t version) {
    rondo_builder *root = find_root(builder);
    RETURN_IF_ERROR(
        RONDO__ARRAY_RESERVE(root->domains, root->domain_capacity, root->domain_count + 1));
    char *name = rondo__strdup(domain);
    if (name == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    root->domains[root->domain_count++] = (rondo__builder_domain){name, version};
    return RONDO_STATUS_OK;
}

// ---- attributes

static rondo_status add_body(rondo_builder *builder, node_request *request,
                             const rondo_attribute *given) {
    const rondo_builder *body = given->body;
    if (body == NULL || body->parent != builder || body->program == NULL) {
        return RONDO_FAIL_AS(call_name, INVALID, "attribute \"%.64s\": the body %s", given->name,
                             body == NULL              ? "is NULL"
                             : body->program == NULL   ? "is in a node already"
                             : body->parent != builder ? "was created for another builder"
                                                       : "");
    }
    rondo__node *node = &request->node;
    for (size_t i = 0; i < node->op.attribute_count; ++i) {
        if (node->op.attributes[i].body == body->program) {
            return RONDO_FAIL_AS(call_name, INVALID,
                                 "attribute \"%.64s\": the body is \"%.64s\", too", given->name,
                                 node->op.attributes[i].name);
        }
    }
    RETURN_IF_ERROR(RONDO__ARRAY_RESERVE(node->inputs, request->input_capacity,
                                         node->input_count + body->capture_count));
    for (size_t i = 0; i < body->capture_count; ++i) {
        // Perhaps read before there was a step.
        RETURN_IF_ERROR(
            rondo__step_check_reader(builder->program, body->captures[i].outer, call_name));
        RETURN_IF_ERROR(rondo__program_add_captured(body->program, body->captures[i].inner));
        node->inputs[node->input_count++] = body->captures[i].outer;
    }
    rondo__attribute attribute = {.name = rondo__strdup(given->name),
                                  .kind = RONDO__ATTRIBUTE_BODY};
    attribute.body = body->program;
    rondo_status status = attribute.name != NULL ? rondo__op_take_attribute(&node->op, &attribute)
                                                 : RONDO_STATUS_NO_MEMORY;
    rondo__attribute_deinit(&attribute);
    return status;
}

static rondo_status add_tensor(node_request *request, const rondo_attribute *given) {
    char what[96];
    rondo_tensor copy = {0};
    (void)snprintf(what, sizeof what, "attribute \"%.64s\"", given->name);
    RETURN_IF_ERROR(rondo__builder_copy_tensor(given->tensor, what, call_name, &copy));
    const rondo_status status = rondo__op_set_tensor(&request->node.op, given->name, &copy);
    rondo_tensor_deinit(&copy);
    return status;
}

static rondo_status add_attribute(rondo_builder *builder, node_request *request,
                                  const rondo_attribute *given) {
    rondo__op *op = &request->node.op;
    const char *missing = NULL;
    if (given->name == NULL || given->name[0] == '\0') {
        return RONDO_FAIL_AS(call_name, INVALID, "an attribute has no name");
    }
    if (rondo__op_find(op, given->name) != NULL) {
        return RONDO_FAIL_AS(call_name, INVALID, "attribute \"%.64s\" stands there twice",
                             given->name);
    }
    switch (given->kind) {
        case RONDO_ATTRIBUTE_INT:
            return rondo__op_set_int(op, given->name, given->int_value);
        case RONDO_ATTRIBUTE_FLOAT:
            return rondo__op_set_float(op, given->name, given->float_value);
        case RONDO_ATTRIBUTE_STRING:
            missing = given->string_value == NULL ? "string_value" : NULL;
            break;
        case RONDO_ATTRIBUTE_TENSOR:
            return add_tensor(request, given);
        case RONDO_ATTRIBUTE_INTS:
            missing = given->ints == NULL && given->count > 0 ? "ints" : NULL;
            break;
        case RONDO_ATTRIBUTE_FLOATS:
            missing = given->floats == NULL && given->count > 0 ? "floats" : NULL;
            break;
        case RONDO_ATTRIBUTE_STRINGS:
            missing = given->strings == NULL && given->count > 0 ? "strings" : NULL;
            for (size_t i = 0; missing == NULL && i < given->count; ++i) {
                missing = given->strings[i] == NULL ? "one of strings" : NULL;
            }
            break;
        case RONDO_ATTRIBUTE_GRAPH:
            return add_body(builder, request, given);
        default:
            return RONDO_FAIL_AS(call_name, INVALID,
                                 "attribute \"%.64s\": kind %d is not a rondo_attribute_kind",
                                 given->name, (int)given->kind);
    }
    if (missing != NULL) {
        return RONDO_FAIL_AS(call_name, INVALID, "attribute \"%.64s\": %s is NULL", given->name,
                             missing);
    }
    return given->kind == RONDO_ATTRIBUTE_STRING
               ? rondo__op_set_string(op, given->name, given->string_value)
           : given->kind == RONDO_ATTRIBUTE_INTS
               ? rondo__op_set_ints(op, given->name, given->ints, given->count)
           : given->kind == RONDO_ATTRIBUTE_FLOATS
               ? rondo__op_set_floats(op, given->name, given->floats, given->count)
               : rondo__op_set_strings(op, given->name, given->strings, given->count);
}

// ---- wiring

static bool is_absent(const char *name) {
    return name == NULL || name[0] == '\0';
}

static rondo_status add_inputs(rondo_builder *builder, node_request *request) {
    rondo__node *node = &request->node;
    RETURN_IF_ERROR(
        RONDO__ARRAY_RESERVE(node->inputs, request->input_capacity, request->input_count + 1));
    for (size_t i = 0; i < request->input_count; ++i) {
        int32_t value = RONDO__VALUE_NONE;
        if (!is_absent(request->inputs[i])) {
            RETURN_IF_ERROR(rondo__builder_find(builder, request->inputs[i], call_name, &value));
        } else if (i < node->op.def->input_min) {
            return RONDO_FAIL_AS(call_name, INVALID, "input %zu is left out; the op needs %d", i,
                                 node->op.def->input_min);
        }
        node->inputs[node->input_count++] = value;
    }
    node->explicit_count = node->input_count;
    return RONDO_STATUS_OK;
}

static rondo_status add_outputs(rondo_builder *builder, node_request *request) {
    rondo__node *node = &request->node;
    node->outputs = rondo__calloc(request->output_count + 1, sizeof *node->outputs);
    if (node->outputs == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    bool has_any = false;
    for (size_t i = 0; i < request->output_count; ++i) {
        node->outputs[i] = RONDO__VALUE_NONE;
        node->output_count = i + 1;
        if (is_absent(request->outputs[i])) {
            continue;
        }
        has_any = true;
        RETURN_IF_ERROR(rondo__builder_check_name(builder, request->outputs[i], call_name));
        RETURN_IF_ERROR(
            rondo__program_add_value(builder->program, request->outputs[i], &node->outputs[i]));
    }
    return has_any ? RONDO_STATUS_OK
                   : RONDO_FAIL_AS(call_name, INVALID, "all outputs are left out");
}

static rondo_status check_counts(const node_request *request) {
    const rondo_status status =
        rondo__op_check_counts(request->node.op.def, request->input_count, request->output_count);
    if (status != RONDO_STATUS_BAD_DATA) {
        return status;
    }
    // For a file this error means bad data; here it means a bad argument.
    char message[RONDO__MESSAGE_BYTES];
    (void)snprintf(message, sizeof message, "%s", rondo_error_get_last()->message);
    return RONDO_FAIL_AS(call_name, INVALID, "%s", message);
}

static rondo_status make_node(rondo_builder *builder, node_request *request) {
    const rondo_builder_node_options *options = request->options;
    rondo__op *op = &request->node.op;
    bool is_new = false;
    RETURN_IF_ERROR(
        choose_version(builder, request->domain, options->version, &op->opset, &is_new));
    op->def = rondo__op_lookup(request->domain, request->op, op->opset);
    if (op->def == NULL || (op->def->flags & RONDO__OP_INTERNAL) != 0) {
        return RONDO_FAIL_AS(call_name, UNSUPPORTED, "unsupported: op %.48s%s%.64s version %d",
                             request->domain, request->domain[0] == '\0' ? "" : ".", request->op,
                             op->opset);
    }
    op->name = options->name != NULL && options->name[0] != '\0'
                   ? rondo__strdup(options->name)
                   : rondo__strformat("%s_%zu", request->op, builder->program->node_count);
    if (op->name == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    RETURN_IF_ERROR(check_counts(request));
    RETURN_IF_ERROR(add_inputs(builder, request));
    for (size_t i = 0; i < options->attribute_count; ++i) {
        RETURN_IF_ERROR(add_attribute(builder, request, &options->attributes[i]));
    }
    RETURN_IF_ERROR(rondo__op_check(op));
    RETURN_IF_ERROR(add_outputs(builder, request));
    const int32_t version = op->opset;
    RETURN_IF_ERROR(rondo__program_add_node(builder->program, op, request->node.inputs,
                                            request->node.input_count, request->node.explicit_count,
                                            request->node.outputs, request->node.output_count));
    rondo__builder_place_node(builder);
    return is_new ? enter_domain(builder, request->domain, version) : RONDO_STATUS_OK;
}

// Gives the contents of the bodies to the node, or back to their builders.
static void settle_bodies(const rondo_builder_node_options *options, rondo__op *op, bool is_made) {
    for (size_t i = 0; i < options->attribute_count; ++i) {
        rondo_builder *body = options->attributes[i].body;
        if (options->attributes[i].kind != RONDO_ATTRIBUTE_GRAPH || body == NULL ||
            body->program == NULL) {
            continue;
        }
        if (is_made) {
            body->program = NULL;
        } else {
            body->program->input_count = body->program->declared_count;
        }
    }
    for (size_t i = 0; !is_made && i < op->attribute_count; ++i) {
        op->attributes[i].body = NULL;
    }
}

rondo_status rondo_builder_add_node(rondo_builder *builder, const char *op,
                                    const char *const *inputs, size_t input_count,
                                    const char *const *outputs, size_t output_count,
                                    const rondo_builder_node_options *options) {
    rondo_builder_node_options merged = {.struct_size = sizeof merged};
    RETURN_IF_ERROR(rondo__builder_check(builder, __func__));
    if (op == NULL || (inputs == NULL && input_count > 0) ||
        (outputs == NULL && output_count > 0)) {
        return RONDO_FAIL(INVALID, "%s is NULL",
                          op == NULL       ? "op"
                          : inputs == NULL ? "inputs"
                                           : "outputs");
    }
    RETURN_IF_ERROR(rondo__read_options(options, &merged, sizeof merged, __func__,
                                        "rondo_builder_node_options"));
    if (merged.attributes == NULL && merged.attribute_count > 0) {
        return RONDO_FAIL(INVALID, "attributes is NULL");
    }
    const bool is_plain = merged.domain == NULL || strcmp(merged.domain, "ai.onnx") == 0;
    node_request request = {
        .op = op,
        .domain = is_plain ? "" : merged.domain,
        .inputs = inputs,
        .input_count = input_count,
        .outputs = outputs,
        .output_count = output_count,
        .options = &merged,
    };
    const rondo__builder_mark mark = rondo__builder_get_mark(builder);
    const size_t node_count = builder->program->node_count;
    const rondo_status status = make_node(builder, &request);
    if (status != RONDO_STATUS_OK) {
        if (rondo_error_get_last()->op[0] == '\0') {
            const char *name = merged.name != NULL ? merged.name : "";
            rondo__error_prefix("%.48s node \"%.64s\"", op, name);
            rondo__error_set_op(name[0] != '\0' ? name : op);
        }
        // A node that was added already owns its bodies: they go back before it is freed.
        const bool is_added = builder->program->node_count > node_count;
        settle_bodies(&merged,
                      is_added ? &builder->program->nodes[node_count].op : &request.node.op, false);
        rondo__builder_take_back(builder, &mark);
    } else {
        settle_bodies(&merged, &request.node.op, true);
    }
    rondo__node_deinit(&request.node);
    return status;
}

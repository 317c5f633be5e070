// program/clone.c — a copy of a program.
// SPDX-License-Identifier: Apache-2.0

#include "base/error.h"
#include "base/memory.h"
#include "program/program.h"

static rondo_status clone_values(const rondo_program *source, rondo_program *copy) {
    RETURN_IF_ERROR(RONDO__ARRAY_RESERVE(copy->values, copy->value_capacity, source->value_count));
    RETURN_IF_ERROR(rondo__namemap_reserve(&copy->names, source->value_count));
    for (size_t i = 0; i < source->value_count; ++i) {
        const rondo__value *value = &source->values[i];
        char *name = rondo__strdup(value->name);
        if (name == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
        copy->values[i] = *value;
        copy->values[i].name = name;
        rondo_tensor_share(&value->constant, &copy->values[i].constant);
        rondo_tensor_share(&value->labels, &copy->values[i].labels);
        copy->value_count = i + 1;
        (void)rondo__namemap_put(&copy->names, name, (int32_t)i);
    }
    return RONDO_STATUS_OK;
}

// Clones the bodies of `source` into `op`, whose attributes are copies of the node's.
static rondo_status clone_bodies(const rondo__node *source, rondo__op *op) {
    for (size_t i = 0; i < op->attribute_count; ++i) {
        const rondo_program *body = source->op.attributes[i].body;
        if (body != NULL) {
            RETURN_IF_ERROR(rondo__program_clone(body, &op->attributes[i].body));
        }
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__program_add_copy(rondo_program *program, const rondo__node *node,
                                     const int32_t *inputs, const int32_t *outputs) {
    rondo__op op = {0};
    RETURN_IF_ERROR(rondo__op_copy(&node->op, &op));
    rondo_status status = rondo__program_add_node(
        program, &op, inputs, node->input_count, node->explicit_count, outputs, node->output_count);
    rondo__op_deinit(&op);
    RETURN_IF_ERROR(status);
    rondo__node *copy = &program->nodes[program->node_count - 1];
    copy->precision = node->precision;
    copy->place = node->place;
    return clone_bodies(node, &copy->op);
}

static rondo_status clone_nodes(const rondo_program *source, rondo_program *copy) {
    RETURN_IF_ERROR(RONDO__ARRAY_RESERVE(copy->nodes, copy->node_capacity, source->node_count));
    for (size_t i = 0; i < source->node_count; ++i) {
        const rondo__node *node = &source->nodes[i];
        RETURN_IF_ERROR(rondo__program_add_copy(copy, node, node->inputs, node->outputs));
    }
    return RONDO_STATUS_OK;
}

static rondo_status clone_ports(const rondo_program *source, rondo_program *copy) {
    for (size_t i = 0; i < source->input_count; ++i) {
        if (i < source->declared_count) {
            RETURN_IF_ERROR(rondo__program_add_input(copy, source->inputs[i]));
        } else {
            RETURN_IF_ERROR(rondo__program_add_captured(copy, source->inputs[i]));
        }
    }
    for (size_t i = 0; i < source->output_count; ++i) {
        RETURN_IF_ERROR(rondo__program_add_output(copy, source->outputs[i]));
    }
    for (size_t i = 0; i < source->symbol_count; ++i) {
        int32_t symbol = -1;
        RETURN_IF_ERROR(rondo__program_add_symbol(copy, source->symbols[i].name, &symbol));
        copy->symbols[symbol].extent = source->symbols[i].extent;
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__program_clone(const rondo_program *program, rondo_program **out_program) {
    rondo_program *copy = NULL;
    *out_program = NULL;
    rondo_status status = rondo__program_create(program->name, &copy);
    if (status != RONDO_STATUS_OK) {
        return status;
    }
    status = clone_values(program, copy);
    if (status != RONDO_STATUS_OK) {
        goto fail;
    }
    status = clone_nodes(program, copy);
    if (status != RONDO_STATUS_OK) {
        goto fail;
    }
    status = clone_ports(program, copy);
    if (status != RONDO_STATUS_OK) {
        goto fail;
    }
    *out_program = copy;
    return RONDO_STATUS_OK;

fail:
    rondo_program_destroy(copy);
    return status;
}

void rondo__program_set_training(rondo_program *program) {
    for (size_t n = 0; n < program->node_count; ++n) {
        rondo__op *op = &program->nodes[n].op;
        op->is_training = true;
        for (size_t a = 0; a < op->attribute_count; ++a) {
            if (op->attributes[a].kind == RONDO__ATTRIBUTE_BODY) {
                rondo__program_set_training(op->attributes[a].body);  // bounded depth: program.h
            }
        }
    }
}

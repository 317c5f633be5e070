// program/builder/read_back.c — reads a program's nodes and parameters back. See rondo/builder.h.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "base/write_struct.h"
#include "op/registered.h"
#include "program/place_mark.h"
#include "program/program.h"
#include "rondo/builder.h"

_Static_assert(RONDO_ATTRIBUTE_INT == (int)RONDO__ATTRIBUTE_INT + 1 &&
                   RONDO_ATTRIBUTE_GRAPH == (int)RONDO__ATTRIBUTE_BODY + 1,
               "the public kinds are ours and one");

rondo_status rondo_program_list_parameters(const rondo_program *program, size_t capacity,
                                           rondo_parameter *out_parameters, size_t *out_count) {
    if (program == NULL || out_count == NULL || (out_parameters == NULL && capacity > 0)) {
        return RONDO_FAIL(INVALID, "%s is NULL",
                          program == NULL     ? "program"
                          : out_count == NULL ? "out_count"
                                              : "out_parameters");
    }
    size_t count = 0;
    for (size_t i = 0; i < program->value_count; ++i) {
        const rondo__value *value = &program->values[i];
        if (value->constant.dtype == RONDO_DTYPE_NONE || value->origin >= 0) {
            continue;
        }
        if (count < capacity) {
            out_parameters[count] = (rondo_parameter){value->name, &value->constant};
        }
        count += 1;
    }
    *out_count = count;
    return RONDO_STATUS_OK;
}

int32_t rondo_program_get_opset(const rondo_program *program, const char *domain) {
    if (program == NULL || domain == NULL) {
        return 0;
    }
    domain = strcmp(domain, "ai.onnx") == 0 ? "" : domain;
    for (size_t i = 0; i < program->node_count; ++i) {
        if (strcmp(program->nodes[i].op.def->domain, domain) == 0) {
            return program->nodes[i].op.opset;
        }
    }
    return 0;
}

size_t rondo_program_get_node_count(const rondo_program *program) {
    return program == NULL ? 0 : program->node_count;
}

static rondo_status check_node(const rondo_program *program, size_t index, const char *call) {
    if (program == NULL) {
        return RONDO_FAIL_AS(call, INVALID, "program is NULL");
    }
    if (index >= program->node_count) {
        return RONDO_FAIL_AS(call, INVALID, "node %zu asked for; the program has %zu", index,
                             program->node_count);
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo_program_get_node(const rondo_program *program, size_t index,
                                    rondo_program_node *out_node) {
    RETURN_IF_ERROR(
        rondo__clear_struct(out_node, sizeof *out_node, __func__, "rondo_program_node"));
    RETURN_IF_ERROR(check_node(program, index, __func__));
    const rondo__node *node = &program->nodes[index];
    const rondo_program_node facts = {
        .struct_size = sizeof facts,
        .op = node->op.def->name,
        .domain = node->op.def->domain,
        .version = node->op.opset,
        .name = node->op.name,
        .input_count = node->explicit_count,
        .output_count = node->output_count,
        .attribute_count = node->op.attribute_count,
        .place = rondo__place_get_name(node->place.place),
    };
    rondo__write_struct(out_node, &facts);
    return RONDO_STATUS_OK;
}

static const char *get_name(const rondo_program *program, const int32_t *values, size_t count,
                            size_t index) {
    return index >= count ? NULL : values[index] >= 0 ? program->values[values[index]].name : "";
}

const char *rondo_program_get_node_input(const rondo_program *program, size_t node, size_t index) {
    if (program == NULL || node >= program->node_count) {
        return NULL;
    }
    const rondo__node *n = &program->nodes[node];
    return get_name(program, n->inputs, n->explicit_count, index);
}

const char *rondo_program_get_node_output(const rondo_program *program, size_t node, size_t index) {
    if (program == NULL || node >= program->node_count) {
        return NULL;
    }
    const rondo__node *n = &program->nodes[node];
    return get_name(program, n->outputs, n->output_count, index);
}

rondo_status rondo_program_get_node_attribute(const rondo_program *program, size_t node,
                                              size_t index, rondo_attribute *out_attribute) {
    if (out_attribute == NULL) {
        return RONDO_FAIL(INVALID, "out_attribute is NULL");
    }
    *out_attribute = (rondo_attribute){0};
    RETURN_IF_ERROR(check_node(program, node, __func__));
    const rondo__op *op = &program->nodes[node].op;
    if (index >= op->attribute_count) {
        return RONDO_FAIL(INVALID, "attribute %zu asked for; %s has %zu", index,
                          rondo__node_describe(&program->nodes[node]), op->attribute_count);
    }
    rondo__attribute_show(&op->attributes[index], out_attribute);
    return RONDO_STATUS_OK;
}

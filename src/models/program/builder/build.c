// program/builder/build.c — the calls that build nodes, for passes and tests.
// SPDX-License-Identifier: Apache-2.0

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "program/program.h"

// Value numbers are int32_t, and the name table holds number + 1.
enum { COUNT_MAX = INT32_MAX - 1 };

// Takes `name` for a value, with a number behind it when another value has it. After a few tries
// in order the number of values is tried, which is nearly always free: a thousand equal names cost
// no more than a thousand different ones. There is room in the table. NULL: no memory.
static char *take_unique_name(rondo_program *program, const char *name, int32_t value) {
    char *taken = rondo__strdup(name);
    for (size_t attempt = 1; taken != NULL && !rondo__namemap_put(&program->names, taken, value);
         ++attempt) {
        const size_t number = attempt <= 4 ? attempt : program->value_count + attempt;
        rondo__free(taken);
        taken = rondo__strformat("%s.%zu", name, number);
    }
    return taken;
}

rondo_status rondo__program_add_value(rondo_program *program, const char *name,
                                      int32_t *out_value) {
    *out_value = RONDO__VALUE_NONE;
    if (program->value_count >= COUNT_MAX) {
        return RONDO_FAIL(BAD_DATA, "the program has more than %d values", COUNT_MAX);
    }
    RETURN_IF_ERROR(
        RONDO__ARRAY_RESERVE(program->values, program->value_capacity, program->value_count + 1));
    RETURN_IF_ERROR(rondo__namemap_reserve(&program->names, program->value_count + 1));
    const int32_t number = (int32_t)program->value_count;
    char *copy = take_unique_name(program, name, number);
    if (copy == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo__value *value = &program->values[program->value_count];
    *value = (rondo__value){.name = copy, .producer = -1, .origin = -1};
    for (int32_t i = 0; i < RONDO_RANK_MAX; ++i) {
        value->dims[i] = (rondo__dimension){.number = -1, .symbol = -1};
    }
    *out_value = number;
    program->value_count += 1;
    return RONDO_STATUS_OK;
}

rondo_status rondo__program_add_constant(rondo_program *program, const char *name,
                                         const rondo_tensor *tensor, int32_t *out_value) {
    RETURN_IF_ERROR(rondo__program_add_value(program, name, out_value));
    rondo__value *value = &program->values[*out_value];
    rondo_tensor_share(tensor, &value->constant);
    value->dtype = tensor->dtype;
    value->has_shape = true;
    value->rank = tensor->shape.rank;
    for (int32_t i = 0; i < tensor->shape.rank; ++i) {
        value->dims[i].number = tensor->shape.extent[i];
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__program_add_from_around(rondo_program *body, const char *name,
                                            const rondo_program *around, int32_t outer,
                                            int32_t *out_value) {
    const rondo__value *source = &around->values[outer];
    if (source->constant.dtype != RONDO_DTYPE_NONE) {
        RETURN_IF_ERROR(rondo__program_add_constant(body, name, &source->constant, out_value));
        body->values[*out_value].origin = outer;
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(rondo__program_add_value(body, name, out_value));
    rondo__value *value = &body->values[*out_value];
    value->dtype = source->dtype;
    memcpy(value->item_dtype, source->item_dtype, sizeof value->item_dtype);
    value->has_shape = source->has_shape;
    value->rank = source->rank;
    for (int32_t i = 0; i < source->rank; ++i) {
        value->dims[i].number = source->dims[i].number;
    }
    return RONDO_STATUS_OK;
}

// A copy of a value list; an empty list still gets an address, so NULL always means no memory.
static int32_t *copy_list(const int32_t *list, size_t count) {
    int32_t *copy = rondo__calloc(count == 0 ? 1 : count, sizeof(*copy));
    if (copy != NULL && count > 0) {
        memcpy(copy, list, count * sizeof(*copy));
    }
    return copy;
}

rondo_status rondo__program_add_node(rondo_program *program, rondo__op *op, const int32_t *inputs,
                                     size_t input_count, size_t explicit_count,
                                     const int32_t *outputs, size_t output_count) {
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    if (program->node_count >= COUNT_MAX) {
        return RONDO_FAIL(BAD_DATA, "the program has more than %d nodes", COUNT_MAX);
    }
    RETURN_IF_ERROR(
        RONDO__ARRAY_RESERVE(program->nodes, program->node_capacity, program->node_count + 1));
    int32_t *input_copy = copy_list(inputs, input_count);
    if (input_copy == NULL) {
        goto done;
    }
    int32_t *output_copy = copy_list(outputs, output_count);
    if (output_copy == NULL) {
        goto free_inputs;
    }
    if (op->name == NULL) {
        op->name = rondo__strformat("%s_%zu", op->def->name, program->node_count);
        if (op->name == NULL) {
            goto free_outputs;
        }
    }
    program->nodes[program->node_count] = (rondo__node){
        .op = *op,
        .input_count = input_count,
        .inputs = input_copy,
        .output_count = output_count,
        .outputs = output_copy,
        .explicit_count = explicit_count,
    };
    *op = (rondo__op){0};
    for (size_t i = 0; i < output_count; ++i) {
        if (outputs[i] >= 0 && (size_t)outputs[i] < program->value_count) {
            program->values[outputs[i]].producer = (int32_t)program->node_count;
        }
    }
    program->node_count += 1;
    return RONDO_STATUS_OK;

free_outputs:
    rondo__free(output_copy);
free_inputs:
    rondo__free(input_copy);
done:
    return status;
}

rondo_status rondo__program_add_simple(rondo_program *program, const char *domain,
                                       const char *op_name, const char *node_name,
                                       const int32_t *inputs, size_t input_count,
                                       const int32_t *outputs, size_t output_count) {
    rondo__op op = {.opset = RONDO_OP_OPSET_WRITTEN};
    op.def = rondo__op_lookup(domain, op_name, op.opset);
    if (op.def == NULL) {
        return RONDO_FAIL(UNSUPPORTED, "unsupported: op %s%s%s version %d", domain,
                          domain[0] == '\0' ? "" : ".", op_name, op.opset);
    }
    if (node_name != NULL) {
        op.name = rondo__strdup(node_name);
        if (op.name == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
    }
    rondo_status status = rondo__program_add_node(program, &op, inputs, input_count, input_count,
                                                  outputs, output_count);
    rondo__op_deinit(&op);
    return status;
}

// Appends a value number to one of the program's lists.
static rondo_status append_number(int32_t **list, size_t *count, size_t *capacity, int32_t number) {
    RETURN_IF_ERROR(RONDO__ARRAY_RESERVE(*list, *capacity, *count + 1));
    (*list)[*count] = number;
    *count += 1;
    return RONDO_STATUS_OK;
}

rondo_status rondo__program_add_input(rondo_program *program, int32_t value) {
    RETURN_IF_ERROR(
        append_number(&program->inputs, &program->input_count, &program->input_capacity, value));
    program->declared_count = program->input_count;
    return RONDO_STATUS_OK;
}

rondo_status rondo__program_add_captured(rondo_program *program, int32_t value) {
    return append_number(&program->inputs, &program->input_count, &program->input_capacity, value);
}

rondo_status rondo__program_add_output(rondo_program *program, int32_t value) {
    return append_number(&program->outputs, &program->output_count, &program->output_capacity,
                         value);
}

rondo_status rondo__program_add_symbol(rondo_program *program, const char *name,
                                       int32_t *out_symbol) {
    *out_symbol = -1;
    for (size_t i = 0; i < program->symbol_count; ++i) {
        if (strcmp(program->symbols[i].name, name) == 0) {
            *out_symbol = (int32_t)i;
            return RONDO_STATUS_OK;
        }
    }
    if (program->symbol_count >= RONDO__SYMBOL_COUNT_MAX) {
        return RONDO_FAIL(BAD_DATA, "the program has more than %d symbolic dimensions",
                          RONDO__SYMBOL_COUNT_MAX);
    }
    RETURN_IF_ERROR(RONDO__ARRAY_RESERVE(program->symbols, program->symbol_capacity,
                                         program->symbol_count + 1));
    char *copy = rondo__strdup(name);
    if (copy == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    program->symbols[program->symbol_count] = (rondo__symbol){.name = copy, .extent = -1};
    *out_symbol = (int32_t)program->symbol_count;
    program->symbol_count += 1;
    return RONDO_STATUS_OK;
}

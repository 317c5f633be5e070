// program/prune.c — removing unused nodes and values.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/memory.h"
#include "program/program.h"

void rondo__program_count_uses(const rondo_program *program, uint32_t *out_counts) {
    memset(out_counts, 0, program->value_count * sizeof(*out_counts));
    for (size_t i = 0; i < program->node_count; ++i) {
        const rondo__node *node = &program->nodes[i];
        for (size_t j = 0; j < node->input_count; ++j) {
            if (node->inputs[j] >= 0) {
                out_counts[node->inputs[j]] += 1;
            }
        }
    }
    for (size_t i = 0; i < program->output_count; ++i) {
        out_counts[program->outputs[i]] += 1;
    }
}

static bool is_node_used(const rondo__node *node, const uint32_t *uses) {
    for (size_t i = 0; i < node->output_count; ++i) {
        if (node->outputs[i] >= 0 && uses[node->outputs[i]] > 0) {
            return true;
        }
    }
    return false;
}

// Frees unused nodes from the back, so that one sweep also finds those that only fed others. Makers
// precede users.
static void remove_nodes(rondo_program *program, uint32_t *uses) {
    for (size_t i = program->node_count; i-- > 0;) {
        rondo__node *node = &program->nodes[i];
        if (is_node_used(node, uses)) {
            continue;
        }
        for (size_t j = 0; j < node->input_count; ++j) {
            if (node->inputs[j] >= 0) {
                uses[node->inputs[j]] -= 1;
            }
        }
        rondo__node_deinit(node);
    }
    size_t kept = 0;
    for (size_t i = 0; i < program->node_count; ++i) {
        if (program->nodes[i].op.def != NULL) {
            program->nodes[kept++] = program->nodes[i];
        }
    }
    program->node_count = kept;
}

// Marks what nodes, inputs and outputs mention, then numbers the rest away. `numbers` has room for
// all values; it ends as the new number of each old one.
static void remove_values(rondo_program *program, int32_t *numbers) {
    memset(numbers, 0, program->value_count * sizeof(*numbers));
    for (size_t i = 0; i < program->node_count; ++i) {
        const rondo__node *node = &program->nodes[i];
        for (size_t j = 0; j < node->input_count; ++j) {
            if (node->inputs[j] >= 0) {
                numbers[node->inputs[j]] = 1;
            }
        }
        for (size_t j = 0; j < node->output_count; ++j) {
            if (node->outputs[j] >= 0) {
                numbers[node->outputs[j]] = 1;
            }
        }
    }
    for (size_t i = 0; i < program->input_count; ++i) {
        numbers[program->inputs[i]] = 1;
    }
    for (size_t i = 0; i < program->output_count; ++i) {
        numbers[program->outputs[i]] = 1;
    }

    int32_t kept = 0;
    for (size_t i = 0; i < program->value_count; ++i) {
        rondo__value *value = &program->values[i];
        if (numbers[i] == 0) {
            rondo_tensor_deinit(&value->constant);
            rondo_tensor_deinit(&value->labels);
            rondo__free(value->name);
            numbers[i] = RONDO__VALUE_NONE;
            continue;
        }
        numbers[i] = kept;
        program->values[kept] = *value;
        kept += 1;
    }
    program->value_count = (size_t)kept;
}

static void renumber(int32_t *list, size_t count, const int32_t *numbers) {
    for (size_t i = 0; i < count; ++i) {
        if (list[i] >= 0) {
            list[i] = numbers[list[i]];
        }
    }
}

static void renumber_program(rondo_program *program, const int32_t *numbers) {
    renumber(program->inputs, program->input_count, numbers);
    renumber(program->outputs, program->output_count, numbers);
    for (size_t i = 0; i < program->value_count; ++i) {
        program->values[i].producer = -1;
    }
    for (size_t i = 0; i < program->node_count; ++i) {
        rondo__node *node = &program->nodes[i];
        renumber(node->inputs, node->input_count, numbers);
        renumber(node->outputs, node->output_count, numbers);
        for (size_t j = 0; j < node->output_count; ++j) {
            if (node->outputs[j] >= 0) {
                program->values[node->outputs[j]].producer = (int32_t)i;
            }
        }
    }
    rondo__program_rebuild_names(program);
}

rondo_status rondo__program_remove_dead(rondo_program *program) {
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    size_t count = program->value_count == 0 ? 1 : program->value_count;
    uint32_t *uses = rondo__calloc(count, sizeof(*uses));
    if (uses == NULL) {
        goto done;
    }
    int32_t *numbers = rondo__calloc(count, sizeof(*numbers));
    if (numbers == NULL) {
        goto free_uses;
    }
    rondo__program_count_uses(program, uses);
    remove_nodes(program, uses);
    remove_values(program, numbers);
    renumber_program(program, numbers);
    status = RONDO_STATUS_OK;

    rondo__free(numbers);
free_uses:
    rondo__free(uses);
done:
    return status;
}

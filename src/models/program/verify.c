// program/verify.c — checking and ordering of programs.
//
// The sort is a depth-first walk from node to makers, started from each node in file order, with
// its own stack instead of recursion. Nodes that already stand in a right order keep it, and the
// cost is one visit for each node and each input.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "program/program.h"

static rondo_status verify_program(rondo_program *program, int depth);

static bool is_value(const rondo_program *program, int32_t number) {
    return number >= 0 && (size_t)number < program->value_count;
}

static bool is_constant(const rondo__value *value) {
    return value->constant.dtype != RONDO_DTYPE_NONE;
}

// How values get their content, while makers are collected.
enum { MADE_BY_NOBODY = -1, MADE_BY_INPUT = -2, MADE_BY_CONSTANT = -3 };

static rondo_status collect_inputs(rondo_program *program) {
    for (size_t i = 0; i < program->value_count; ++i) {
        rondo__value *value = &program->values[i];
        if (value->name == NULL) {
            return RONDO_FAIL(INTERNAL, "value %zu has no name", i);
        }
        value->producer = is_constant(value) ? MADE_BY_CONSTANT : MADE_BY_NOBODY;
    }
    if (program->declared_count > program->input_count) {
        return RONDO_FAIL(INTERNAL, "%zu declared inputs among %zu", program->declared_count,
                          program->input_count);
    }
    for (size_t i = 0; i < program->input_count; ++i) {
        if (!is_value(program, program->inputs[i])) {
            return RONDO_FAIL(INTERNAL, "input %zu has no value %d", i, program->inputs[i]);
        }
        rondo__value *value = &program->values[program->inputs[i]];
        if (value->producer != MADE_BY_NOBODY) {
            return RONDO_FAIL(BAD_DATA, "input \"%.80s\" is %s", value->name,
                              value->producer == MADE_BY_INPUT ? "declared twice" : "a constant");
        }
        value->producer = MADE_BY_INPUT;
    }
    return RONDO_STATUS_OK;
}

static rondo_status fail_made_twice(const rondo_program *program, const rondo__value *value,
                                    const rondo__node *second) {
    const char *first = value->producer >= 0               ? program->nodes[value->producer].op.name
                        : value->producer == MADE_BY_INPUT ? "(an input)"
                                                           : "(an initializer)";
    rondo_status status = RONDO_FAIL(BAD_DATA, "%s makes value \"%.48s\", which %.48s makes too",
                                     rondo__node_describe(second), value->name, first);
    rondo__error_set_op(second->op.name);
    return status;
}

static rondo_status collect_makers(rondo_program *program) {
    for (size_t i = 0; i < program->node_count; ++i) {
        const rondo__node *node = &program->nodes[i];
        if (node->op.def == NULL || node->op.name == NULL) {
            return RONDO_FAIL(INTERNAL, "node %zu has no op or no name", i);
        }
        for (size_t j = 0; j < node->output_count; ++j) {
            int32_t number = node->outputs[j];
            if (number == RONDO__VALUE_NONE) {
                continue;
            }
            if (!is_value(program, number)) {
                return RONDO_FAIL(INTERNAL, "%s: output %zu has no value %d",
                                  rondo__node_describe(node), j, number);
            }
            rondo__value *value = &program->values[number];
            if (value->producer != MADE_BY_NOBODY) {
                return fail_made_twice(program, value, node);
            }
            value->producer = (int32_t)i;
        }
    }
    return RONDO_STATUS_OK;
}

// ---- control flow: what its bodies must have

static const rondo_program *find_body(const rondo__node *node, const char *name) {
    const rondo__attribute *attribute = rondo__op_find(&node->op, name);
    return attribute != NULL && attribute->kind == RONDO__ATTRIBUTE_BODY ? attribute->body : NULL;
}

static rondo_dtype get_output_dtype(const rondo_program *body, size_t index) {
    const rondo__value *value = &body->values[body->outputs[index]];
    return is_constant(value) ? value->constant.dtype : value->dtype;
}

static rondo_status verify_if(const rondo__node *node) {
    const rondo_program *yes = find_body(node, "then_branch");
    const rondo_program *no = find_body(node, "else_branch");
    if (yes == NULL || no == NULL) {
        return RONDO_FAIL(BAD_DATA, "%s has no %s; an If needs both branches",
                          rondo__node_describe(node), yes == NULL ? "then_branch" : "else_branch");
    }
    if (yes->declared_count != 0 || no->declared_count != 0) {
        return RONDO_FAIL(BAD_DATA, "%s: a branch declares inputs; branches take none",
                          rondo__node_describe(node));
    }
    if (yes->output_count != no->output_count || yes->output_count < node->output_count) {
        return RONDO_FAIL(
            BAD_DATA,
            "%s: then_branch has %zu outputs, else_branch %zu, and the node %zu; they "
            "must be as many",
            rondo__node_describe(node), yes->output_count, no->output_count, node->output_count);
    }
    for (size_t i = 0; i < yes->output_count; ++i) {
        const rondo_dtype a = get_output_dtype(yes, i);
        const rondo_dtype b = get_output_dtype(no, i);
        if (a != b && a != RONDO_DTYPE_NONE && b != RONDO_DTYPE_NONE) {
            return RONDO_FAIL(
                BAD_DATA,
                "%s: output %zu is %s (\"%.40s\") in then_branch and %s (\"%.40s\") in "
                "else_branch",
                rondo__node_describe(node), i, rondo_dtype_get_name(a),
                yes->values[yes->outputs[i]].name, rondo_dtype_get_name(b),
                no->values[no->outputs[i]].name);
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status verify_loop(const rondo__node *node) {
    const rondo_program *body = find_body(node, "body");
    const size_t carried = node->explicit_count > 2 ? node->explicit_count - 2 : 0;
    if (body == NULL) {
        return RONDO_FAIL(BAD_DATA, "%s has no body", rondo__node_describe(node));
    }
    if (body->declared_count != 2 + carried || node->output_count < carried ||
        body->output_count != 1 + node->output_count) {
        return RONDO_FAIL(BAD_DATA,
                          "%s carries %zu values and has %zu outputs; its body has %zu inputs and "
                          "%zu outputs, expected %zu and %zu",
                          rondo__node_describe(node), carried, node->output_count,
                          body->declared_count, body->output_count, 2 + carried,
                          1 + node->output_count);
    }
    return RONDO_STATUS_OK;
}

static rondo_status verify_scan(const rondo__node *node) {
    if (find_body(node, "body") == NULL) {
        return RONDO_FAIL(BAD_DATA, "%s has no body", rondo__node_describe(node));
    }
    return RONDO_STATUS_OK;
}

static rondo_status verify_control(const rondo__node *node) {
    static const struct {
        rondo__op_id op;
        rondo_status (*verify)(const rondo__node *);
    } rows[] = {
        {RONDO__OP_If, verify_if}, {RONDO__OP_Loop, verify_loop}, {RONDO__OP_Scan, verify_scan}};
    rondo_status status = RONDO_STATUS_OK;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0] && status == RONDO_STATUS_OK; ++i) {
        if (node->op.def->id == rows[i].op) {
            status = rows[i].verify(node);
        }
    }
    if (status != RONDO_STATUS_OK) {
        rondo__error_set_op(node->op.name);
    }
    return status;
}

// Checks that what a node lists behind its own inputs is what its bodies capture, and the bodies.
static rondo_status verify_bodies(const rondo__node *node, int depth) {
    size_t captured = 0;
    for (size_t i = 0; i < node->op.attribute_count; ++i) {
        const rondo__attribute *attribute = &node->op.attributes[i];
        if (attribute->kind != RONDO__ATTRIBUTE_BODY) {
            continue;
        }
        if (attribute->body == NULL) {
            return RONDO_FAIL(INTERNAL, "%s: attribute \"%s\" has no body",
                              rondo__node_describe(node), attribute->name);
        }
        if (depth >= RONDO__BODY_DEPTH_MAX) {
            return RONDO_FAIL(BAD_DATA, "%s: bodies are nested more than %d deep",
                              rondo__node_describe(node), RONDO__BODY_DEPTH_MAX);
        }
        rondo_status status = verify_program(attribute->body, depth + 1);
        if (status != RONDO_STATUS_OK) {
            // Only the outermost: the reason must not be pushed out of the record.
            if (depth == 0) {
                rondo__error_prefix("in %s of %s", attribute->name, rondo__node_describe(node));
            }
            return status;
        }
        captured += attribute->body->input_count - attribute->body->declared_count;
    }
    if (node->explicit_count > node->input_count ||
        node->input_count - node->explicit_count != captured) {
        return RONDO_FAIL(INTERNAL, "%s lists %zu inputs of which %zu are its own; bodies use %zu",
                          rondo__node_describe(node), node->input_count, node->explicit_count,
                          captured);
    }
    return RONDO_STATUS_OK;
}

static rondo_status check_uses(const rondo_program *program, int depth) {
    for (size_t i = 0; i < program->node_count; ++i) {
        const rondo__node *node = &program->nodes[i];
        for (size_t j = 0; j < node->input_count; ++j) {
            int32_t number = node->inputs[j];
            if (number == RONDO__VALUE_NONE && j < node->explicit_count) {
                continue;
            }
            if (!is_value(program, number)) {
                return RONDO_FAIL(INTERNAL, "%s: input %zu has no value %d",
                                  rondo__node_describe(node), j, number);
            }
            if (program->values[number].producer == MADE_BY_NOBODY) {
                return RONDO_FAIL(
                    BAD_DATA, "%s uses value \"%.80s\", which no node, input or initializer makes",
                    rondo__node_describe(node), program->values[number].name);
            }
        }
        RETURN_IF_ERROR(verify_bodies(node, depth));
        if ((node->op.def->flags & RONDO__OP_CONTROL) != 0) {
            RETURN_IF_ERROR(verify_control(node));
        }
    }
    for (size_t i = 0; i < program->output_count; ++i) {
        int32_t number = program->outputs[i];
        if (!is_value(program, number)) {
            return RONDO_FAIL(INTERNAL, "output %zu has no value %d", i, number);
        }
        if (program->values[number].producer == MADE_BY_NOBODY) {
            return RONDO_FAIL(BAD_DATA, "no node, input or initializer makes the output \"%.80s\"",
                              program->values[number].name);
        }
    }
    return RONDO_STATUS_OK;
}

static bool is_sorted(const rondo_program *program) {
    for (size_t i = 0; i < program->node_count; ++i) {
        const rondo__node *node = &program->nodes[i];
        for (size_t j = 0; j < node->input_count; ++j) {
            int32_t number = node->inputs[j];
            if (number >= 0 && program->values[number].producer >= (int32_t)i) {
                return false;
            }
        }
    }
    return true;
}

// Where the walk stands in one node.
typedef struct walk_frame {
    int32_t node;
    size_t next_input;
} walk_frame;

enum { NODE_NEW = 0, NODE_OPEN = 1, NODE_DONE = 2 };

// Writes the node numbers in a right order. `stack` and `order` have room for all nodes, `state`
// is zeroed.
static rondo_status walk_nodes(const rondo_program *program, walk_frame *stack, uint8_t *state,
                               int32_t *order) {
    size_t done_count = 0;
    for (size_t start = 0; start < program->node_count; ++start) {
        if (state[start] != NODE_NEW) {
            continue;
        }
        size_t depth = 0;
        stack[depth++] = (walk_frame){.node = (int32_t)start};
        state[start] = NODE_OPEN;
        while (depth > 0) {
            walk_frame *frame = &stack[depth - 1];
            const rondo__node *node = &program->nodes[frame->node];
            if (frame->next_input == node->input_count) {
                state[frame->node] = NODE_DONE;
                order[done_count++] = frame->node;
                depth -= 1;
                continue;
            }
            int32_t number = node->inputs[frame->next_input++];
            int32_t maker = number < 0 ? -1 : program->values[number].producer;
            if (maker < 0 || state[maker] == NODE_DONE) {
                continue;
            }
            if (state[maker] == NODE_OPEN) {
                return RONDO_FAIL(BAD_DATA, "the nodes form a cycle through %s (value \"%.64s\")",
                                  rondo__node_describe(&program->nodes[maker]),
                                  program->values[number].name);
            }
            state[maker] = NODE_OPEN;
            stack[depth++] = (walk_frame){.node = maker};
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status sort_nodes(rondo_program *program) {
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    size_t count = program->node_count;
    walk_frame *stack = rondo__calloc(count, sizeof(*stack));
    if (stack == NULL) {
        goto done;
    }
    uint8_t *state = rondo__calloc(count, sizeof(*state));
    if (state == NULL) {
        goto free_stack;
    }
    int32_t *order = rondo__calloc(count, sizeof(*order));
    if (order == NULL) {
        goto free_state;
    }
    rondo__node *sorted = rondo__calloc(count, sizeof(*sorted));
    if (sorted == NULL) {
        goto free_order;
    }
    status = walk_nodes(program, stack, state, order);
    if (status != RONDO_STATUS_OK) {
        goto free_sorted;
    }
    for (size_t i = 0; i < count; ++i) {
        sorted[i] = program->nodes[order[i]];
    }
    memcpy(program->nodes, sorted, count * sizeof(*sorted));
    for (size_t i = 0; i < count; ++i) {
        for (size_t j = 0; j < program->nodes[i].output_count; ++j) {
            int32_t number = program->nodes[i].outputs[j];
            if (number >= 0) {
                program->values[number].producer = (int32_t)i;
            }
        }
    }

free_sorted:
    rondo__free(sorted);
free_order:
    rondo__free(order);
free_state:
    rondo__free(state);
free_stack:
    rondo__free(stack);
done:
    return status;
}

static rondo_status verify_makers_and_order(rondo_program *program, int depth) {
    RETURN_IF_ERROR(collect_inputs(program));
    RETURN_IF_ERROR(collect_makers(program));
    RETURN_IF_ERROR(check_uses(program, depth));
    if (!is_sorted(program)) {
        RETURN_IF_ERROR(sort_nodes(program));
    }
    return RONDO_STATUS_OK;
}

static rondo_status verify_program(rondo_program *program, int depth) {
    rondo_status status = verify_makers_and_order(program, depth);
    for (size_t i = 0; i < program->value_count; ++i) {
        if (program->values[i].producer < 0) {
            program->values[i].producer = -1;
        }
    }
    return status;
}

rondo_status rondo__program_verify(rondo_program *program) {
    return verify_program(program, 0);
}

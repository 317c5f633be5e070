// executor/compile/skipped_moves.c — see skipped_moves.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/compile/skipped_moves.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "op/support.h"
#include "program/edit.h"

typedef struct joining {
    rondo__plan *plan;
    size_t *first_uses;
    uint32_t *uses;     // by value
    int32_t *maker_of;  // by value: the item whose output 0 it is; -1: none
    bool *is_port;      // by value: others know its address
} joining;

static void mark_ports(joining *j) {
    const rondo__plan *plan = j->plan;
    const rondo_program *program = plan->program;
    for (size_t i = 0; i < program->input_count; ++i) {
        j->is_port[plan->slots[program->inputs[i]].root] = true;
    }
    for (size_t i = 0; i < program->output_count; ++i) {
        j->is_port[plan->slots[program->outputs[i]].root] = true;
    }
    for (size_t v = 0; v < program->value_count; ++v) {
        const int32_t root = plan->slots[v].root;
        if (root != (int32_t)v) {  // has views
            j->is_port[root] = true;
            j->is_port[v] = true;
        }
        j->maker_of[v] = -1;
    }
    for (size_t i = 0; i < plan->item_count; ++i) {
        const rondo__node *node = rondo__plan_get_node(plan, i);
        if (node->output_count == 1 && node->outputs[0] >= 0) {
            j->maker_of[node->outputs[0]] = (int32_t)i;
        }
    }
}

static const rondo__kernel_moves *get_moves(const rondo__kernel *kernel) {
    static const rondo__kernel_moves none = {0};
    return kernel->moves != NULL ? kernel->moves : &none;
}

// Whether the value is made in one piece of the arena, for one reader.
static bool is_own(const joining *j, int32_t value, uint32_t use_count) {
    const rondo__slot *slot = &j->plan->slots[value];
    return slot->kind == RONDO__SLOT_ARENA && slot->bytes > 0 && !j->is_port[value] &&
           j->maker_of[value] >= 0 && j->uses[value] >= use_count;
}

// Input `input` of the Concat, whose elements stand from `offset` bytes on in each of `outer` runs
// of the result.
static void join_input(joining *j, const rondo__item *concat, size_t input, size_t offset,
                       int64_t outer, bool is_last_axis) {
    const rondo__node *node = &j->plan->program->nodes[concat->node];
    const int32_t value = node->inputs[input], result = node->outputs[0];
    if (!is_own(j, value, 1) || j->uses[value] != 1) {
        return;
    }
    rondo__kernel *maker = j->plan->items[j->maker_of[value]].kernel;
    rondo__slot *slot = &j->plan->slots[value];
    const rondo__slot *whole = &j->plan->slots[result];
    const rondo__kernel_moves *moves = get_moves(maker);
    const bool is_joined = moves->skip_input != NULL;  // a Concat's parts would have to move, too
    if (is_joined || !maker->may_run_here ||
        (outer > 1 && (moves->set_output_pitch == NULL || !is_last_axis))) {
        return;
    }
    if (outer > 1) {
        moves->set_output_pitch(maker, whole->shape.extent[whole->shape.rank - 1]);
        slot->bytes = whole->bytes - offset;  // where its rows lie, and others' between them
    }
    concat->kernel->moves->skip_input(concat->kernel, input);
    slot->root = result;
    slot->part_at = offset;
    if (j->first_uses[value] < j->first_uses[result]) {
        j->first_uses[result] = j->first_uses[value];
    }
}

static void join_inputs(joining *j, const rondo__item *concat) {
    const rondo__node *node = &j->plan->program->nodes[concat->node];
    const rondo__slot *whole = &j->plan->slots[node->outputs[0]];
    const int32_t rank = whole->shape.rank;
    int64_t axis = rondo__op_get_int(&node->op, "axis", 1);
    axis = axis < 0 ? axis + rank : axis;
    const int64_t outer = rondo__shape_multiply(&whole->shape, 0, (int32_t)axis);
    const int64_t element = (int64_t)rondo_dtype_get_bytes(whole->dtype);
    int64_t offset = 0;
    for (size_t i = 0; i < node->input_count; ++i) {
        const rondo_shape *part = &j->plan->slots[node->inputs[i]].shape;
        const int64_t elements = rondo__shape_multiply(part, (int32_t)axis, part->rank);
        if (part->rank == rank && rondo_shape_get_count(part) > 0) {
            join_input(j, concat, i, (size_t)(offset * element), outer, axis == rank - 1);
            offset += elements;
        }
    }
}

// The Transpose before a kernel that can do without.
static void join_transpose(joining *j, const rondo__item *reader, size_t *last_uses) {
    static const int64_t wanted[] = {0, 2, 3, 1};
    const rondo_program *program = j->plan->program;
    const int32_t value = program->nodes[reader->node].inputs[0];
    if (!is_own(j, value, 1) || j->uses[value] != 1) {
        return;
    }
    const rondo__item *maker = &j->plan->items[j->maker_of[value]];
    const rondo__node *node = &program->nodes[maker->node];
    size_t rank = 0;
    const int64_t *perm = rondo__op_get_ints(&node->op, "perm", &rank);
    if (!rondo__node_is(node, RONDO__OP_Transpose) ||
        get_moves(maker->kernel)->skip_input == NULL || rank != 4 ||
        memcmp(perm, wanted, sizeof wanted) != 0 ||
        j->plan->slots[node->inputs[0]].kind != RONDO__SLOT_ARENA) {
        return;
    }
    const int32_t root = j->plan->slots[node->inputs[0]].root;
    reader->kernel->moves->read_planes(reader->kernel);
    maker->kernel->moves->skip_input(maker->kernel, 0);
    j->plan->slots[value].root = root;
    j->is_port[root] = true;
    if (last_uses[value] > last_uses[root]) {
        last_uses[root] = last_uses[value];
    }
}

rondo_status rondo__skipped_moves_join(const rondo__unit *unit, rondo__plan *plan,
                                       size_t *first_uses, size_t *last_uses) {
    const rondo_program *program = plan->program;
    if (!rondo_device_is_host(unit->executor->device) || unit->part != RONDO__PART_NONE ||
        plan->sides != NULL) {
        return RONDO_STATUS_OK;
    }
    const size_t count = program->value_count + 1;
    joining j = {.plan = plan,
                 .first_uses = first_uses,
                 .uses = rondo__calloc(count, sizeof *j.uses),
                 .maker_of = rondo__calloc(count, sizeof *j.maker_of),
                 .is_port = rondo__calloc(count, sizeof *j.is_port)};
    rondo_status status = j.uses == NULL || j.maker_of == NULL || j.is_port == NULL
                              ? RONDO_STATUS_NO_MEMORY
                              : RONDO_STATUS_OK;
    if (status == RONDO_STATUS_OK) {
        rondo__program_count_uses(program, j.uses);
        mark_ports(&j);
    }
    for (size_t i = 0; status == RONDO_STATUS_OK && i < plan->item_count; ++i) {
        const rondo__item *item = &plan->items[i];
        const rondo__node *node = &program->nodes[item->node];
        const rondo__kernel_moves *moves = get_moves(item->kernel);
        if (rondo__node_is(node, RONDO__OP_Concat) && moves->skip_input != NULL &&
            is_own(&j, node->outputs[0], 0)) {
            join_inputs(&j, item);
        }
        if (moves->read_planes != NULL) {
            join_transpose(&j, item, last_uses);
        }
    }
    rondo__free(j.uses);
    rondo__free(j.maker_of);
    rondo__free(j.is_port);
    return status;
}

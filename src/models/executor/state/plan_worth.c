// executor/state/plan_worth.c — see plan_worth.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/state/plan_worth.h"

#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "executor/state/plan.h"
#include "program/passes/passes.h"
#include "tensor/elements.h"

// Bodies in bodies: behind this depth ops that wait run one by one. DEPTH_MAX of executor.c leaves
// room for the control flow of the model.
enum { REST_DEPTH_MAX = 8 };

rondo_status rondo__plan_worth_gather(const rondo__unit *unit, rondo_program *program) {
    const bool is_one_by_one =
        unit->executor->options.op_by_op || unit->executor->options.reference;
    if (is_one_by_one || unit->depth >= REST_DEPTH_MAX) {
        return RONDO_STATUS_OK;
    }
    for (size_t i = 0; i < program->input_count && unit->worth != NULL; ++i) {
        const rondo__value *input = &program->values[program->inputs[i]];
        if (!input->has_shape && rondo__dtype_is_plain(input->dtype)) {
            return RONDO_STATUS_OK;  // the plan for shapes of every kind
        }
    }
    RETURN_IF_ERROR(rondo__pass_detections(program));
    const rondo__rest_options options = {.is_body = unit->worth != NULL,
                                         .stays_on_device = rondo__unit_has_two_sides(unit)};
    return rondo__pass_rest(program, &options);
}

// In steps of the reference, about a nanosecond each: what planning one node takes, and calling the
// reference for one; where the reference would have to bring an input from a GPU, what stopping for
// it takes; and bytes that are copied in one.
enum { NODE_STEPS = 40000, CALL_STEPS = 1000, STOP_STEPS = 10000, STEP_BYTES = 8 };

void rondo__plan_worth_init(const rondo_program *body, rondo__plan_worth *out_worth) {
    memset(out_worth, 0, sizeof *out_worth);
    out_worth->credit = RONDO__WORTH_CREDIT * RONDO__WORTH_HITS;
    for (size_t n = 0; n < body->node_count; ++n) {
        const uint32_t flags = body->nodes[n].op.def->flags;
        out_worth->is_always = out_worth->is_always || (flags & RONDO__OP_RANDOM) != 0;
    }
}

void rondo__plan_worth_note_use(rondo__plan_worth *worth) {
    worth->credit += worth->credit < RONDO__WORTH_CREDIT * RONDO__WORTH_HITS ? 1 : 0;
}

static uint64_t get_count(const rondo__plan *plan, int32_t value) {
    const rondo__slot *slot = value >= 0 ? &plan->slots[value] : NULL;
    const int64_t count =
        slot != NULL && slot->is_shape_known ? rondo_shape_get_count(&slot->shape) : 0;
    return count > 0 ? (uint64_t)count : 0;
}

// The input whose elements meet those of input 0 more than once each; -1: no input does.
static int32_t find_weights(const rondo__node *node) {
    const size_t weights = node->op.def->weights;
    return weights != 0 && weights < node->input_count ? node->inputs[weights] : -1;
}

// Whether what the op takes of the input arrives in its outputs, and counts there: of a Slice or a
// Gather little may.
static bool is_moved(const rondo__node *node, size_t input) {
    return (node->op.def->moved >> (input < 31 ? input : 31) & 1u) != 0;
}

uint64_t rondo__plan_measure_node(const rondo__plan *plan, const rondo__node *node) {
    uint64_t most = 1;
    for (size_t i = 0; i < node->input_count + node->output_count; ++i) {
        const bool is_input = i < node->input_count;
        const int32_t value = is_input ? node->inputs[i] : node->outputs[i - node->input_count];
        const uint64_t count = is_input && is_moved(node, i) ? 0 : get_count(plan, value);
        most = count > most ? count : most;
    }
    const int32_t weights = find_weights(node);
    const rondo__slot *slot = weights >= 0 ? &plan->slots[weights] : NULL;
    if (slot == NULL || !slot->is_shape_known || slot->shape.rank < 2) {
        return most;
    }
    // A product takes one factor for each row of its weights; a convolution takes as many as a
    // filter has elements.
    const uint64_t results = get_count(plan, node->outputs[0]);
    const int64_t outer = slot->shape.extent[0] > 0 ? slot->shape.extent[0] : 1;
    const uint64_t factors =
        slot->shape.rank > 2 ? get_count(plan, weights) / (uint64_t)outer : (uint64_t)outer;
    return factors > 0 && results > UINT64_MAX / 4096 / factors ? UINT64_MAX / 4096
                                                                : most + results * factors;
}

static void add_work(rondo__plan_worth *worth, uint64_t steps) {
    worth->work = worth->work > UINT64_MAX - steps ? UINT64_MAX : worth->work + steps;
}

// What the host copies for each run of the plan, in steps; the reference reads inputs where they
// lie.
static uint64_t measure_copies(const rondo__plan *plan) {
    uint64_t steps = 0;
    for (size_t i = 0; i < plan->program->input_count && plan->sides == NULL; ++i) {
        const rondo__slot *slot = &plan->slots[plan->program->inputs[i]];
        steps += slot->kind == RONDO__SLOT_ARENA ? slot->bytes / STEP_BYTES : 0;
    }
    return steps;
}

void rondo__plan_worth_note_plan(rondo__plan_worth *worth, rondo__plan *plan) {
    worth->planning = (uint64_t)plan->program->node_count * NODE_STEPS;
    worth->work = 0;
    for (size_t n = 0; n < plan->program->node_count; ++n) {
        add_work(worth, rondo__plan_measure_node(plan, &plan->program->nodes[n]));
    }
    for (size_t i = 0; i < plan->program->input_count && plan->sides != NULL; ++i) {
        const rondo__slot *slot = &plan->slots[plan->program->inputs[i]];
        if (slot->kind == RONDO__SLOT_ARENA && !slot->is_on_host) {
            add_work(worth, STOP_STEPS + slot->bytes / STEP_BYTES);
        }
    }
    plan->is_outweighed =
        !worth->is_always &&
        measure_copies(plan) > worth->work + plan->program->node_count * CALL_STEPS;
}

static bool was_seen(const rondo__plan_worth *worth, uint64_t hash) {
    for (size_t i = 0; i < worth->seen_count; ++i) {
        if (worth->seen[i] == hash) {
            return true;
        }
    }
    return false;
}

bool rondo__plan_worth_admits(rondo__plan_worth *worth, const void *key, size_t key_bytes) {
    const uint64_t hash = rondo__hash64(0, key, key_bytes);
    if (worth->is_always || worth->work > worth->planning || was_seen(worth, hash)) {
        return true;
    }
    if (worth->credit >= RONDO__WORTH_HITS) {
        worth->credit -= RONDO__WORTH_HITS;
        return true;
    }
    worth->seen[worth->seen_next] = hash;
    worth->seen_next = (worth->seen_next + 1) % RONDO__WORTH_MEMORY;
    worth->seen_count += worth->seen_count < RONDO__WORTH_MEMORY ? 1 : 0;
    return false;
}

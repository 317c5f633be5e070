// executor/compile/place_constants.c — constants where kernels read them, and the addresses
// that items read and write.
// SPDX-License-Identifier: Apache-2.0
#include "executor/compile/planning.h"

#include "base/error.h"
#include "base/memory.h"
#include "executor/devices/host_ops.h"
#include "executor/devices/streamed_weights.h"

// The constant where kernels find it: on a GPU in a copy, on the host where it is. `list`: what the
// plan has there.
static rondo_status place_constant(const rondo_executor *executor, const rondo__plan *plan,
                                   int32_t value, rondo__weight_list *list, void **out_address) {
    const rondo_tensor *constant = &plan->program->values[value].constant;
    const rondo__weight_want want = {.constant = constant,
                                     .bytes = rondo_tensor_get_bytes(constant)};
    if (rondo_device_is_host(executor->device)) {
        *out_address = constant->data;
        return RONDO_STATUS_OK;
    }
    const rondo_status status = rondo__weight_list_add(list, &want, out_address);
    if (status != RONDO_STATUS_OK) {
        char shape[96];
        rondo__error_prefix("weights \"%.60s\" %s %s", plan->program->values[value].name,
                            rondo_dtype_get_name(constant->dtype),
                            rondo_shape_format(&constant->shape, shape, sizeof shape));
    }
    return status;
}

// The same on another GPU.
static rondo_status place_far_constant(const rondo_executor *executor, rondo__plan *plan,
                                       rondo__plan_peer *peer, int32_t value) {
    if (plan->slots[value].kind != RONDO__SLOT_CONSTANT) {
        return RONDO_STATUS_OK;
    }
    if (peer->constants == NULL) {
        peer->constants = rondo__calloc(plan->program->value_count, sizeof *peer->constants);
    }
    return peer->constants == NULL
               ? RONDO_STATUS_NO_MEMORY
               : place_constant(executor, plan, value, &peer->weights, &peer->constants[value]);
}

rondo_status rondo__planning_place_constants(rondo__planning *p) {
    const rondo__unit *unit = p->unit;
    rondo__plan *plan = p->plan;
    const rondo_program *program = plan->program;
    for (size_t i = 0; i < plan->item_count; ++i) {
        const rondo__node *node = rondo__plan_get_node(plan, i);
        if (rondo__kernel_is_hosted(plan->items[i].kernel)) {
            continue;  // it reads them where they are
        }
        for (size_t k = 0; k < node->input_count; ++k) {
            bool is_owned = k < 64 && (plan->items[i].kernel->owned_inputs >> k & 1u) != 0;
            const int32_t root = node->inputs[k] >= 0 ? plan->slots[node->inputs[k]].root : -1;
            rondo__plan_peer *peer = rondo__plan_get_peer(plan, plan->items[i].side);
            if (root >= 0 && !is_owned && peer != NULL) {
                RETURN_IF_ERROR(place_far_constant(unit->executor, plan, peer, root));
            } else if (root >= 0 && !is_owned && rondo__streamed_has(plan, root)) {
                RETURN_IF_ERROR(rondo__streamed_add(plan, plan->items[i].node, k, root));
            } else if (root >= 0 && !is_owned) {
                plan->slots[root].needs_device = true;
            }
        }
    }
    // The outputs of a part are copied on the device.
    for (size_t i = 0; unit->part != RONDO__PART_NONE && i < program->output_count; ++i) {
        plan->slots[plan->slots[program->outputs[i]].root].needs_device = true;
    }
    for (size_t v = 0; v < program->value_count; ++v) {
        rondo__slot *slot = &plan->slots[v];
        if (slot->kind != RONDO__SLOT_CONSTANT || slot->root != (int32_t)v || !slot->needs_device) {
            continue;
        }
        RETURN_IF_ERROR(
            place_constant(unit->executor, plan, (int32_t)v, &plan->weights, &slot->address));
    }
    for (size_t v = 0; v < program->value_count; ++v) {
        rondo__slot *slot = &plan->slots[v];
        if (slot->kind == RONDO__SLOT_CONSTANT) {
            slot->address = plan->slots[slot->root].address;
        }
    }
    return RONDO_STATUS_OK;
}

// Where an item of `side` reads a value.
static void *find_input(const rondo__plan *plan, uint8_t side, int32_t value) {
    const rondo__plan_peer *peer = rondo__plan_get_peer(plan, side);
    const rondo__slot *slot = value >= 0 ? &plan->slots[value] : NULL;
    if (slot != NULL && peer != NULL && slot->kind == RONDO__SLOT_CONSTANT) {
        return peer->constants != NULL ? peer->constants[slot->root] : NULL;
    }
    return slot != NULL ? slot->address : NULL;
}

rondo_status rondo__planning_resolve_addresses(rondo__planning *p) {
    rondo__plan *plan = p->plan;
    const rondo_program *program = plan->program;
    uint32_t *uses = rondo__calloc(program->value_count + 1, sizeof *uses);
    if (uses == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo__program_count_uses(program, uses);
    rondo_status status = RONDO_STATUS_OK;
    for (size_t i = 0; i < plan->item_count; ++i) {
        rondo__item *item = &plan->items[i];
        const rondo__node *node = &program->nodes[item->node];
        item->inputs = rondo__calloc(node->input_count + 1, sizeof *item->inputs);
        item->outputs = rondo__calloc(node->output_count + 1, sizeof *item->outputs);
        if (item->inputs == NULL || item->outputs == NULL) {
            status = RONDO_STATUS_NO_MEMORY;
            break;
        }
        for (size_t k = 0; k < node->input_count; ++k) {
            item->inputs[k] = find_input(plan, item->side, node->inputs[k]);
        }
        for (size_t k = 0; k < node->output_count; ++k) {
            bool is_wanted = node->outputs[k] >= 0 && uses[node->outputs[k]] > 0;
            item->outputs[k] = is_wanted ? plan->slots[node->outputs[k]].address : NULL;
        }
    }
    rondo__free(uses);
    return status;
}

// executor/compile/branch_levels.c — see branch_levels.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/compile/branch_levels.h"

#include "base/error.h"
#include "base/memory.h"
#include "executor/devices/host_ops.h"

bool rondo__branch_levels_may_branch(const rondo__unit *unit, const rondo__plan *plan) {
    // On a GPU a program with states tries both graphs in its own runs, which draw once each.
    const bool has_states = unit->executor->caller.states != NULL;
    const uint32_t refused =
        RONDO__OP_CONTROL | RONDO__OP_USER | (has_states ? 0 : RONDO__OP_RANDOM);
    bool may =
        unit->executor->options.branches != RONDO_BRANCHES_OFF &&
        (has_states ? !rondo_device_is_host(unit->executor->device) : plan->random_count == 0) &&
        unit->executor->options.graphs != RONDO_GRAPHS_OFF && unit->part == RONDO__PART_NONE &&
        plan->peer_count == 0 && plan->streamed == NULL &&
        // A trial would run without the other ranks.
        unit->executor->options.communicator == NULL;
    for (size_t i = 0; i < plan->item_count && may; ++i) {
        // A body or an op of the program's may have other effects than its outputs; they are not
        // known here.
        may = (rondo__plan_get_op(plan, i)->def->flags & refused) == 0 &&
              !rondo__kernel_is_hosted(plan->items[i].kernel);  // one host function runs several
    }
    return may;
}

rondo_status rondo__branch_levels_find(const rondo__plan *plan, size_t *out_levels) {
    const rondo_program *program = plan->program;
    size_t *made = rondo__calloc(program->value_count + 1, sizeof *made);  // level behind its maker
    if (made == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    size_t first = 0;
    for (size_t s = 0; s < plan->step_count; ++s) {
        const rondo__step *step = &plan->steps[s];
        size_t end = first + 1;
        out_levels[plan->item_count + s] = first;
        for (size_t i = step->first_item; i < step->first_item + step->item_count; ++i) {
            const rondo__node *node = rondo__plan_get_node(plan, i);
            size_t level = first;
            for (size_t k = 0; k < node->input_count; ++k) {
                const int32_t root = node->inputs[k] >= 0 ? plan->slots[node->inputs[k]].root : -1;
                level = root >= 0 && made[root] > level ? made[root] : level;
            }
            for (size_t k = 0; k < node->output_count; ++k) {
                if (node->outputs[k] >= 0) {
                    made[plan->slots[node->outputs[k]].root] = level + 1;
                }
            }
            out_levels[i] = level;
            end = level + 1 > end ? level + 1 : end;
        }
        first = end;
    }
    rondo__free(made);
    return RONDO_STATUS_OK;
}

// executor/describe/describe_steps.c — see describe_steps.h.
// SPDX-License-Identifier: Apache-2.0

#include "executor/describe/describe_steps.h"

#include "executor/compile/device_control.h"
#include "executor/foresee.h"
#include "executor/run/deferred_body.h"

const char *rondo__describe_get_kind(const rondo__step *step) {
    return step->is_ahead                      ? "ahead"
           : step->kind == RONDO__STEP_SEGMENT ? "segment"
           : step->kind == RONDO__STEP_COUNT   ? "count"
                                               : "bypassed";
}

const char *rondo__describe_get_state(const rondo__step *step) {
    return step->is_ahead                  ? "on the processor before the graphs"
           : rondo__step_is_captured(step) ? "captured"
                                           : "not captured for now";
}

const char *rondo__describe_get_implementation(const rondo__plan *plan, const rondo__step *step,
                                               size_t item) {
    return rondo__step_has_kernels(step)                 ? plan->items[item].kernel->implementation
           : rondo__deferred_stays_on_device(plan, step) ? "body"
                                                         : "host";
}

size_t rondo__describe_count_nodes(const rondo__step *step) {
    return rondo__step_has_kernels(step) ? step->item_count : 1;
}

size_t rondo__describe_get_node(const rondo__plan *plan, const rondo__step *step, size_t index) {
    return rondo__step_has_kernels(step) ? plan->items[step->first_item + index].node : step->node;
}

bool rondo__describe_has_bodies(const rondo__plan *plan, const rondo__step *step, size_t index) {
    const size_t n = rondo__describe_get_node(plan, step, index);
    return (plan->program->nodes[n].op.def->flags & RONDO__OP_CONTROL) != 0;
}

rondo_status rondo__describe_find_body(rondo__unit *unit, const rondo__plan *plan,
                                       rondo__step *step, size_t index, const char *name,
                                       rondo__unit **out_body, rondo__plan **out_plan,
                                       bool *out_is_dead) {
    *out_is_dead = false;
    if (step->kind == RONDO__STEP_BYPASS) {
        return rondo__control_plan_body(unit, plan, step, name, out_body, out_plan);
    }
    const rondo__kernel *kernel = plan->items[step->first_item + index].kernel;
    const rondo__body_plan *part = rondo__device_control_get_part(kernel, name);
    *out_is_dead = part == NULL;
    *out_body = part != NULL ? part->unit : NULL;
    *out_plan = part != NULL ? part->plan : NULL;
    return RONDO_STATUS_OK;
}

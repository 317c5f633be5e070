// executor/compile/retire.c — see retire.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/compile/retire.h"

#include "executor/compile/destroy.h"

void rondo__plan_give_up(rondo__unit *unit, rondo__plan *plan) {
    if (!rondo__plan_is_pinned(plan)) {
        rondo__plan_destroy(unit, plan);
        return;
    }
    plan->entry = NULL;
    plan->next_retired = unit->retired_plans;
    unit->retired_plans = plan;
}

static bool has_pins(const rondo__unit *unit) {
    for (rondo__plan *plan = rondo__unit_next_plan(unit, NULL); plan != NULL;
         plan = rondo__unit_next_plan(unit, plan)) {
        if (rondo__plan_is_pinned(plan)) {
            return true;
        }
    }
    for (rondo__plan *plan = unit->retired_plans; plan != NULL; plan = plan->next_retired) {
        if (rondo__plan_is_pinned(plan)) {
            return true;
        }
    }
    return false;
}

void rondo__variant_give_up(rondo_executor *executor, rondo__unit *variant) {
    if (!has_pins(variant)) {
        rondo__unit_destroy(variant);
        return;
    }
    variant->next_retired = executor->variants.retired;
    executor->variants.retired = variant;
}

void rondo__executor_sweep(rondo_executor *executor) {
    for (rondo__plan **link = &executor->main.retired_plans; *link != NULL;) {
        rondo__plan *plan = *link;
        if (rondo__plan_is_pinned(plan)) {
            link = &plan->next_retired;
        } else {
            *link = plan->next_retired;
            rondo__plan_destroy(&executor->main, plan);
        }
    }
    for (rondo__unit **link = &executor->variants.retired; *link != NULL;) {
        rondo__unit *variant = *link;
        if (has_pins(variant)) {
            link = &variant->next_retired;
        } else {
            *link = variant->next_retired;
            rondo__unit_destroy(variant);
        }
    }
}

bool rondo__executor_is_pinned(rondo_executor *executor) {
    bool is_pinned = has_pins(&executor->main);
    for (size_t v = 0; v < executor->variants.count; ++v) {
        is_pinned = is_pinned || has_pins(executor->variants.list[v]);
    }
    for (rondo__unit *variant = executor->variants.retired; variant != NULL;
         variant = variant->next_retired) {
        is_pinned = is_pinned || has_pins(variant);
    }
    return is_pinned;
}

void rondo__executor_drop_plans(rondo_executor *executor) {
    rondo__executor_sweep(executor);
    while (executor->variants.count > 0) {
        rondo__unit_destroy(executor->variants.list[--executor->variants.count]);
    }
    while (rondo__lru_map_evict_oldest(&executor->main.plans)) {
    }
    executor->variants.active = &executor->main;
    executor->variants.ran = NULL;
    executor->main.runs.has_run = false;
}

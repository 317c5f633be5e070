// executor/compile/retire.c — see retire.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/compile/retire.h"

#include "executor/compile/destroy.h"

void rondo__plan_give_up(rondo_executor *executor, rondo__plan *plan) {
    if (!rondo__plan_is_pinned(plan)) {
        rondo__plan_destroy(executor, plan);
        return;
    }
    plan->entry = NULL;
    plan->next_retired = executor->retired_plans;
    executor->retired_plans = plan;
}

static bool has_pins(const rondo_executor *executor) {
    for (rondo__plan *plan = rondo__executor_next_plan(executor, NULL); plan != NULL;
         plan = rondo__executor_next_plan(executor, plan)) {
        if (rondo__plan_is_pinned(plan)) {
            return true;
        }
    }
    for (rondo__plan *plan = executor->retired_plans; plan != NULL; plan = plan->next_retired) {
        if (rondo__plan_is_pinned(plan)) {
            return true;
        }
    }
    return false;
}

void rondo__variant_give_up(rondo_executor *root, rondo_executor *variant) {
    if (!has_pins(variant)) {
        rondo_executor_destroy(variant);
        return;
    }
    variant->next_retired = root->variants.retired;
    root->variants.retired = variant;
}

void rondo__executor_sweep(rondo_executor *executor) {
    for (rondo__plan **link = &executor->retired_plans; *link != NULL;) {
        rondo__plan *plan = *link;
        if (rondo__plan_is_pinned(plan)) {
            link = &plan->next_retired;
        } else {
            *link = plan->next_retired;
            rondo__plan_destroy(executor, plan);
        }
    }
    for (rondo_executor **link = &executor->variants.retired; *link != NULL;) {
        rondo_executor *variant = *link;
        if (has_pins(variant)) {
            link = &variant->next_retired;
        } else {
            *link = variant->next_retired;
            rondo_executor_destroy(variant);
        }
    }
}

bool rondo__executor_is_pinned(rondo_executor *executor) {
    bool is_pinned = has_pins(executor);
    for (size_t v = 0; v < executor->variants.count; ++v) {
        is_pinned = is_pinned || has_pins(executor->variants.list[v]);
    }
    for (rondo_executor *variant = executor->variants.retired; variant != NULL;
         variant = variant->next_retired) {
        is_pinned = is_pinned || has_pins(variant);
    }
    return is_pinned;
}

void rondo__executor_drop_plans(rondo_executor *executor) {
    rondo__executor_sweep(executor);
    while (executor->variants.count > 0) {
        rondo_executor_destroy(executor->variants.list[--executor->variants.count]);
    }
    while (rondo__lru_map_evict_oldest(&executor->plans)) {
    }
    executor->variants.active = executor;
    executor->variants.ran = NULL;
    executor->runs.has_run = false;
}

// executor/compile/destroy.c — see destroy.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/compile/destroy.h"
#include "backend/backend.h"
#include "base/memory.h"
#include "capture/capture.h"
#include "executor/devices/host_ops.h"
#include "executor/devices/other_gpus.h"
#include "executor/devices/streamed_weights.h"
#include "executor/state/generators.h"
#include "executor/state/limits.h"
#include "executor/state/run_memory.h"
#include "executor/state/run_state.h"
#include "executor/state/states.h"

void rondo__plan_destroy(rondo_executor *executor, rondo__plan *plan) {
    if (plan == NULL) {
        return;
    }
    rondo__executor_drain(executor);  // its kernels and memory must be idle
    rondo__in_place_free(plan);
    for (size_t s = 0; s < plan->step_count; ++s) {
        rondo_graph_destroy(plan->steps[s].run.graph);
        for (size_t b = 0; b < plan->steps[s].run.body_count; ++b) {
            rondo_executor_destroy(plan->steps[s].run.bodies[b]);
        }
        rondo__free(plan->steps[s].run.bodies);
    }
    for (size_t i = 0; i < plan->item_count; ++i) {
        rondo__kernel_destroy(plan->items[i].kernel);
        rondo__free(plan->items[i].inputs);
        rondo__free(plan->items[i].outputs);
    }
    rondo__free(plan->items);
    for (size_t v = 0; plan->run.dynamic != NULL && v < plan->program->value_count; ++v) {
        rondo_tensor_deinit(&plan->run.dynamic[v]);
    }
    rondo__free(plan->run.dynamic);
    for (size_t n = 0; plan->refusals != NULL && n < plan->program->node_count; ++n) {
        rondo__free(plan->refusals[n]);
    }
    rondo__free(plan->refusals);
    rondo__free(plan->slots);
    rondo__peers_drop(executor, plan);
    rondo__spill_drop(executor, plan);
    rondo__free(plan->steps);
    rondo__weight_list_cut(&plan->weights, 0);
    if (plan->host_weights.account != NULL) {
        rondo__weight_list_cut(&plan->host_weights, 0);
    }
    rondo__free(plan->homes);
    rondo__free(plan->order);
    rondo__free(plan->sides);
    rondo__free(plan->mirrors);
    rondo__run_memory_release(executor, plan->memory.arena);
    rondo__run_memory_release(executor, plan->memory.staging_memory);
    rondo__late_values_free(executor, plan);
    rondo__free(plan->memory.input_staging);
    rondo__free(plan->memory.output_staging);
    rondo__half_report_deinit(&plan->halves);
    rondo_program_destroy(plan->program);
    rondo__free(plan);
}

// Recorded runs in captures that were not Rondo's.
static void drop_recordings(rondo_executor *executor) {
    rondo__participants_destroy(executor->caller.recordings);
    executor->caller.recordings = NULL;
}

// Plans first, those of variants, too: they own bodies, and use what the root has.
static void destroy_plans(rondo_executor *executor) {
    for (size_t v = 0; v < executor->variants.count; ++v) {
        rondo_executor_destroy(executor->variants.list[v]);
    }
    while (executor->variants.retired != NULL) {
        rondo_executor *variant = executor->variants.retired;
        executor->variants.retired = variant->next_retired;
        rondo_executor_destroy(variant);
    }
    executor->variants.count = 0;
    rondo__lru_map_deinit(&executor->plans);
    while (executor->retired_plans != NULL) {
        rondo__plan *plan = executor->retired_plans;
        executor->retired_plans = plan->next_retired;
        rondo__plan_destroy(executor, plan);
    }
}

void rondo_executor_destroy(rondo_executor *executor) {
    // In the child of a fork another thread of the parent may hold the locks of what is shared.
    if (executor == NULL || atomic_load(&executor->device->is_forked)) {
        return;
    }
    rondo__executor_drain(executor);
    rondo__async *async = executor->root->caller.async;
    if (async != NULL && async->active == executor) {
        async->active = executor->root;
    }
    if (executor->root->variants.ran == executor) {
        executor->root->variants.ran = NULL;
    }
    rondo__executor_release(executor);
}

void rondo__executor_release(rondo_executor *executor) {
    if (atomic_fetch_sub(&executor->reference_count, 1) > 1) {
        return;  // graphs that recorded a run need it
    }
    drop_recordings(executor);
    destroy_plans(executor);
    rondo__free(executor->keys.key);
    rondo__executor_release_generators(executor);
    rondo__async_free(executor);
    rondo__states_free(executor);
    for (size_t i = 0; i < 4; ++i) {
        rondo_event_destroy(executor->events[i]);
    }
    if (executor->owns_stream) {
        rondo_stream_destroy(executor->stream);
    }
    rondo__executor_free_pinned(executor, executor->resources.watch,
                                sizeof *executor->resources.watch);
    rondo__shared_release_base(executor->source, executor->base_form,
                               executor->root->resources.budget);
    rondo__shared_release_store(executor->source, executor->resources.weights.store);
    rondo__hosted_free(executor);
    rondo__peers_free(executor);
    rondo__spill_free(executor);
    rondo_program_destroy(executor->source);
    rondo_workers_release(executor->options.workers);
    rondo__free(executor->worth);
    rondo__free(executor->keys.keyed);
    rondo__free(executor->keys.deciding);
    rondo__free(executor->keys.bounds);
    rondo__free(executor->keys.most);
    rondo__free(executor->ports.is_fed);
    rondo__free(executor->ports.input_of);
    rondo__free(executor->ports.output_of);
    rondo__free(executor->ports.symbols);
    rondo__free(executor->ports.fresh);
    rondo__free(executor->ports.lists.feeds);
    rondo__free(executor->ports.lists.results);
    rondo__free(executor->ports.lists.wants);
    rondo__free(executor->ports.lists.places);
    rondo__free(executor->ports.lists.is_fed);
    for (size_t i = 0; i < executor->caller.pattern_count; ++i) {
        rondo__free(executor->caller.patterns[i]);
    }
    rondo__free(executor->caller.patterns);
    rondo__tuning_choices_destroy(executor->resources.choices);
    rondo__self_check_destroy(executor);
    rondo_device_release(executor->device);
    rondo__budget_release(executor->resources.budget);
    rondo__budget_release(executor->resources.device_budget);
    const bool is_callers = executor->root == executor;
    rondo__free(executor);
    if (is_callers) {
        rondo__memory_trim();  // the small pieces of its plans lay between others'
    }
}

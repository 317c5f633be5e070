// executor/compile/destroy.c — see destroy.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/compile/destroy.h"
#include "backend/backend.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/use_count.h"
#include "capture/capture.h"
#include "collective/communicator.h"
#include "executor/devices/host_ops.h"
#include "executor/devices/other_gpus.h"
#include "executor/devices/ranks.h"
#include "executor/devices/streamed_weights.h"
#include "executor/state/generators.h"
#include "executor/state/limits.h"
#include "executor/state/run_arena.h"
#include "executor/state/run_memory.h"
#include "executor/state/run_state.h"
#include "executor/state/states.h"

void rondo__plan_destroy(rondo__unit *unit, rondo__plan *plan) {
    if (plan == NULL) {
        return;
    }
    rondo__unit_drain(unit);  // its kernels and memory must be idle
    rondo__in_place_free(plan);
    for (size_t s = 0; s < plan->step_count; ++s) {
        rondo_graph_destroy(plan->steps[s].run.graph);
        rondo_graph_destroy(plan->steps[s].run.other);
        for (size_t b = 0; b < plan->steps[s].run.body_count; ++b) {
            rondo__unit_destroy(plan->steps[s].run.bodies[b]);
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
    rondo__other_gpus_drop(unit, plan);
    rondo__streamed_drop(unit, plan);
    rondo__ranks_drop(plan);
    rondo__free(plan->steps);
    rondo__weight_list_cut(&plan->weights, 0);
    if (plan->host_weights.account != NULL) {
        rondo__weight_list_cut(&plan->host_weights, 0);
    }
    rondo__free(plan->homes);
    rondo__free(plan->order);
    rondo__free(plan->sides);
    rondo__free(plan->mirrors);
    rondo__run_memory_release(unit, plan->memory.arena);
    rondo__run_memory_release(unit, plan->memory.staging_memory);
    rondo__late_values_free(unit, plan);
    rondo__free(plan->memory.input_staging);
    rondo__free(plan->memory.output_staging);
    rondo__half_report_deinit(&plan->halves);
    rondo_program_destroy(plan->program);
    rondo__free(plan);
}

void rondo__unit_init(rondo__unit *unit, rondo_executor *executor, rondo_program *program,
                      bool is_training) {
    rondo__program_retain(program);
    unit->executor = executor;
    unit->source = program;
    unit->is_training = is_training;
}

static void destroy_plans(rondo__unit *unit) {
    rondo__lru_map_deinit(&unit->plans);
    while (unit->retired_plans != NULL) {
        rondo__plan *plan = unit->retired_plans;
        unit->retired_plans = plan->next_retired;
        rondo__plan_destroy(unit, plan);
    }
}

// Frees a unit with its plans, and itself where it has memory of its own.
static void deinit_unit(rondo__unit *unit) {
    destroy_plans(unit);
    for (size_t i = 0; i < 4; ++i) {
        rondo_event_destroy(unit->events[i]);
    }
    if (unit->owns_stream) {
        rondo_stream_destroy(unit->stream);
    }
    rondo__shared_release_base(unit->source, unit->base_form, unit->executor->resources.budget);
    rondo_program_destroy(unit->source);
    rondo__free(unit->worth);
    rondo__free(unit->keys.key);
    rondo__free(unit->keys.keyed);
    rondo__free(unit->keys.deciding);
    rondo__free(unit->keys.bounds);
    rondo__free(unit->keys.most);
    rondo__free(unit->feeds_optional);
    rondo__free(unit->fresh);
}

void rondo__unit_destroy(rondo__unit *unit) {
    if (unit == NULL) {
        return;
    }
    rondo_executor *executor = unit->executor;
    rondo__unit_drain(unit);
    rondo__async *async = executor->caller.async;
    if (async != NULL && async->active == unit) {
        async->active = &executor->main;
    }
    if (executor->variants.ran == unit) {
        executor->variants.ran = NULL;
    }
    deinit_unit(unit);
    rondo__free(unit);
}

rondo_status rondo__unit_finish(rondo__unit *unit, rondo_status status, rondo__unit **out_unit) {
    if (status == RONDO_STATUS_OK) {
        *out_unit = unit;
        return status;
    }
    rondo_error saved;
    rondo__error_save(&saved);
    rondo__unit_destroy(unit);
    rondo__error_restore(&saved);
    return status;
}

void rondo_executor_destroy(rondo_executor *executor) {
    // In the child of a fork another thread of the parent may hold the locks of what is shared.
    if (executor == NULL || atomic_load(&executor->device->is_forked)) {
        return;
    }
    rondo__unit_drain(&executor->main);
    rondo__executor_release(executor);
}

// Plans first, those of variants, too: they own bodies, and use what the executor has.
static void destroy_variants(rondo_executor *executor) {
    for (size_t v = 0; v < executor->variants.count; ++v) {
        rondo__unit_destroy(executor->variants.list[v]);
    }
    while (executor->variants.retired != NULL) {
        rondo__unit *variant = executor->variants.retired;
        executor->variants.retired = variant->next_retired;
        rondo__unit_destroy(variant);
    }
    executor->variants.count = 0;
}

static void free_ports(rondo__ports *ports) {
    rondo__free(ports->input_of);
    rondo__free(ports->output_of);
    rondo__free(ports->symbols);
    rondo__free(ports->lists.feeds);
    rondo__free(ports->lists.results);
    rondo__free(ports->lists.wants);
    rondo__free(ports->lists.places);
    rondo__free(ports->lists.is_fed);
}

void rondo__executor_release(rondo_executor *executor) {
    if (!rondo__reference_drop(&executor->reference_count)) {
        return;  // graphs that recorded a run need it
    }
    rondo__participants_destroy(executor->caller.recordings);  // in captures not of Rondo's
    executor->caller.recordings = NULL;
    if (executor->caller.end_repeated != NULL) {
        executor->caller.end_repeated(executor);
    }
    destroy_variants(executor);
    destroy_plans(&executor->main);
    rondo__executor_release_generators(executor);
    rondo__async_free(executor);
    rondo__states_free(executor);
    rondo__executor_free_pinned(executor, executor->resources.watch,
                                sizeof *executor->resources.watch);
    rondo__shared_release_store(executor->main.source, executor->resources.weights.store);
    rondo__host_ops_free(executor);
    rondo__other_gpus_free(executor);
    rondo__streamed_free(executor);
    rondo__ranks_free(executor);
    deinit_unit(&executor->main);
    rondo__run_arena_forget(executor);
    rondo_run_arena_destroy(executor->options.run_arena);
    rondo_workers_release(executor->options.workers);
    rondo_communicator_destroy(executor->options.communicator);
    free_ports(&executor->ports);
    for (size_t i = 0; i < executor->caller.pattern_count; ++i) {
        rondo__free(executor->caller.patterns[i]);
    }
    rondo__free(executor->caller.patterns);
    rondo__tuning_choices_destroy(executor->resources.choices);
    rondo__self_check_destroy(executor);
    rondo_device_release(executor->device);
    rondo__budget_release(executor->resources.budget);
    rondo__budget_release(executor->resources.device_budget);
    rondo__free(executor);
    rondo__memory_trim();  // the small pieces of its plans lay between others'
}

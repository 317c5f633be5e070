// executor/destroy.c — see destroy.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/destroy.h"
#include "backend/backend.h"
#include "base/memory.h"
#include "executor/generators.h"
#include "executor/run_memory.h"

void rondo__plan_destroy(rondo_executor *executor, rondo__plan *plan) {
    if (plan == NULL) {
        return;
    }
    (void)!rondo_stream_synchronize(executor->stream);  // its kernels and memory must be idle
    for (size_t s = 0; s < plan->step_count; ++s) {
        rondo_graph_destroy(plan->steps[s].graph);
        for (size_t b = 0; b < plan->steps[s].body_count; ++b) {
            rondo_executor_destroy(plan->steps[s].bodies[b]);
        }
        rondo__free(plan->steps[s].bodies);
    }
    rondo__free(plan->steps);
    for (size_t i = 0; i < plan->item_count; ++i) {
        rondo__kernel_destroy(plan->items[i].kernel);
        rondo__free(plan->items[i].inputs);
        rondo__free(plan->items[i].outputs);
    }
    rondo__free(plan->items);
    for (size_t v = 0; plan->dynamic != NULL && v < plan->program->value_count; ++v) {
        rondo_tensor_deinit(&plan->dynamic[v]);
    }
    rondo__free(plan->dynamic);
    rondo__free(plan->slots);
    rondo__weight_list_cut(&plan->weights, 0);
    rondo__run_memory_release(executor, plan->arena);
    rondo__run_memory_release(executor, plan->staging_memory);
    rondo__free(plan->input_staging);
    rondo__free(plan->output_staging);
    rondo__half_report_deinit(&plan->halves);
    rondo_program_destroy(plan->program);
    rondo__free(plan);
}

void rondo_executor_destroy(rondo_executor *executor) {
    if (executor == NULL) {
        return;
    }
    for (size_t v = 0; v < executor->variant_count; ++v) {
        rondo_executor_destroy(executor->variants[v]);
    }
    rondo__lru_map_deinit(&executor->plans);
    rondo__free(executor->key);
    rondo__executor_release_generators(executor);
    for (size_t i = 0; i < 4; ++i) {
        rondo_event_destroy(executor->events[i]);
    }
    rondo_stream_destroy(executor->stream);
    rondo__shared_release_base(executor->source, executor->base_form, executor->root->budget);
    rondo__shared_release_store(executor->source, executor->weights.store);
    rondo_program_destroy(executor->source);
    rondo__free(executor->worth);
    rondo__free(executor->keyed);
    rondo__free(executor->is_fed);
    rondo__free(executor->input_of);
    rondo__free(executor->output_of);
    rondo__free(executor->symbols);
    for (size_t i = 0; i < executor->pattern_count; ++i) {
        rondo__free(executor->patterns[i]);
    }
    rondo__free(executor->patterns);
    rondo_device_release(executor->device);
    rondo__budget_release(executor->budget);
    rondo__budget_release(executor->device_budget);
    const bool is_callers = executor->root == executor;
    rondo__free(executor);
    if (is_callers) {
        rondo__memory_trim();  // the small pieces of its plans lay between others'
    }
}

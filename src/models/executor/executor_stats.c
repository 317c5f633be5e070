// executor/executor_stats.c — settings, times and statistics of an executor.
// SPDX-License-Identifier: Apache-2.0
#include "backend/check.h"
#include "base/budget.h"
#include "base/error.h"
#include "base/write_struct.h"
#include "executor/devices/streamed_weights.h"
#include "executor/state/plan.h"
#include "executor/state/spans.h"
#include "executor/state/states.h"

rondo_status rondo_executor_set_graphs(rondo_executor *executor, rondo_graphs_mode graphs) {
    if (executor == NULL || (int)graphs < RONDO_GRAPHS_AUTO || graphs > RONDO_GRAPHS_MEASURED) {
        return RONDO_FAIL(INVALID,
                          executor == NULL ? "executor is NULL" : "no such rondo_graphs_mode");
    }
    executor->graphs = graphs;
    return RONDO_STATUS_OK;
}

rondo_status rondo_executor_set_training(rondo_executor *executor, bool training) {
    if (executor == NULL) {
        return RONDO_FAIL(INVALID, "executor is NULL");
    }
    executor->variants.is_training = training;
    return RONDO_STATUS_OK;
}

rondo_status rondo_executor_get_times(const rondo_executor *executor, rondo_run_times *out_times) {
    RETURN_IF_ERROR(rondo__clear_struct(out_times, sizeof *out_times, __func__, "rondo_run_times"));
    if (executor == NULL) {
        return RONDO_FAIL(INVALID, "executor is NULL");
    }
    if (!executor->variants.active->runs.has_run) {
        return RONDO_FAIL(STATE, "nothing has run yet; call rondo_executor_run first");
    }
    rondo__unit_read_spans(executor->variants.active);
    rondo__write_struct(out_times, &executor->variants.active->runs.times);
    return RONDO_STATUS_OK;
}

// Adds what the plans of an executor take, those of bodies included.
static void add_plan_bytes(const rondo__unit *unit, rondo_executor_stats *stats) {
    stats->plan_bytes += unit->plans.stats.bytes + unit->run_memory_bytes;
    for (const rondo__plan *plan = rondo__unit_next_plan(unit, NULL); plan != NULL;
         plan = rondo__unit_next_plan(unit, plan)) {
        for (size_t s = 0; s < plan->step_count; ++s) {
            for (size_t b = 0; b < plan->steps[s].run.body_count; ++b) {
                if (plan->steps[s].run.bodies[b] != NULL) {
                    add_plan_bytes(plan->steps[s].run.bodies[b], stats);
                }
            }
        }
    }
}

// Adds what an executor and its plans have counted.
static void add_counts(const rondo__unit *unit, rondo_executor_stats *stats) {
    const rondo__lru_stats *plans = &unit->plans.stats;
    stats->plan_count += plans->entry_count;
    stats->plan_hit_count += plans->hit_count;
    stats->plan_miss_count += plans->miss_count;
    stats->plan_eviction_count += plans->eviction_count;
    stats->eager_run_count += unit->runs.eager_count;
    stats->replay_run_count += unit->runs.replay_count;
    stats->in_place_run_count += unit->runs.in_place_count;
    add_plan_bytes(unit, stats);
}

// Adds what the graphs of a plan hold, those inside bodies included.
static void add_graph_stats(const rondo__plan *plan, rondo_executor_stats *stats) {
    for (size_t s = 0; s < plan->step_count; ++s) {
        const rondo__step *step = &plan->steps[s];
        rondo_graph_stats graph = {.struct_size = sizeof graph};
        if (step->run.graph != NULL &&
            rondo_graph_get_stats(step->run.graph, &graph) == RONDO_STATUS_OK) {
            stats->node_count += graph.node_count;
            stats->capture_ns += graph.capture_ns;
            stats->instantiate_ns += graph.instantiate_ns;
            stats->graph_bytes += graph.device_bytes;
        }
        for (size_t b = 0; b < step->run.body_count; ++b) {
            const rondo__unit *body = step->run.bodies[b];
            const rondo__plan *inner = body != NULL ? rondo__unit_next_plan(body, NULL) : NULL;
            for (; inner != NULL; inner = rondo__unit_next_plan(body, inner)) {
                add_graph_stats(inner, stats);
            }
        }
    }
}

rondo_status rondo_executor_get_stats(const rondo_executor *executor,
                                      rondo_executor_stats *out_stats) {
    RETURN_IF_ERROR(
        rondo__clear_struct(out_stats, sizeof *out_stats, __func__, "rondo_executor_stats"));
    if (executor == NULL) {
        return RONDO_FAIL(INVALID, "executor is NULL");
    }
    RETURN_IF_ERROR(rondo__check_process(executor->device, __func__));
    const rondo__plan *plan = executor->variants.active->current;
    if (plan == NULL) {
        return RONDO_FAIL(STATE, "nothing has run yet; call rondo_executor_run first");
    }
    rondo_executor_stats stats = {
        .op_count = rondo__plan_count_ops(plan),
        .segment_count = rondo__plan_count_segments(plan),
        .bypassed_count = plan->bypassed_count,
        .branch_count = 1,
        .random_op_count = plan->random_count,
        .first_replay_ns = plan->run.first_replay_ns,
        .prepare_ns = plan->prepare_ns,
        .arena_bytes = plan->memory.arena_bytes,
        .arena_naive_bytes = plan->memory.arena_naive_bytes,
        .constant_bytes = rondo__plan_get_constant_bytes(plan),
        .shared_constant_bytes = rondo__weight_list_get_shared_bytes(&plan->weights),
        .memory_bytes = rondo__budget_get_used(executor->resources.budget),
        .device_memory_bytes = executor->resources.device_budget != NULL
                                   ? rondo__budget_get_used(executor->resources.device_budget)
                                   : 0,
    };
    for (size_t i = 0; i < RONDO__PLACE_GPU_MAX; ++i) {
        const rondo__peer *peer = executor->resources.peers[i];
        stats.device_memory_bytes += peer != NULL ? rondo__budget_get_used(peer->budget) : 0;
    }
    stats.spilled_constant_bytes = rondo__streamed_get_bytes(plan);
    stats.state_bytes = rondo__states_get_bytes(executor);
    add_counts(&executor->main, &stats);
    for (size_t v = 0; v < executor->variants.count; ++v) {
        add_counts(executor->variants.list[v], &stats);
    }
    add_graph_stats(plan, &stats);
    for (size_t s = 0; s < plan->step_count; ++s) {
        const uint64_t count = plan->steps[s].run.branch_count;
        stats.branch_count = count > stats.branch_count ? count : stats.branch_count;
    }
    rondo__write_struct(out_stats, &stats);
    return RONDO_STATUS_OK;
}

rondo_status rondo_executor_list_graphs(rondo_executor *executor, rondo_graph **graphs,
                                        size_t capacity, size_t *out_count) {
    RETURN_IF_ERROR(rondo__check_pointer(out_count, __func__, "out_count"));
    *out_count = 0;
    RETURN_IF_ERROR(rondo__check_pointer(executor, __func__, "executor"));
    if (capacity > 0) {
        RETURN_IF_ERROR(rondo__check_pointer(graphs, __func__, "graphs"));
    }
    const rondo__plan *plan = executor->variants.active->current;
    size_t count = 0;
    for (size_t i = 0; plan != NULL && i < plan->step_count; ++i) {
        rondo_graph *graph = plan->steps[i].run.graph;
        if (graph != NULL && count < capacity) {
            graphs[count] = graph;
        }
        count += graph != NULL ? 1 : 0;
    }
    *out_count = count;
    return RONDO_STATUS_OK;
}

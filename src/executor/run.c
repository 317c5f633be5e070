// executor/run.c — see run.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/run.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/logging.h"
#include "base/memory.h"
#include "executor/bypass.h"
#include "executor/lanes.h"
#include "executor/limits.h"

static rondo_status launch_items(rondo_executor *executor, rondo__plan *plan,
                                 const rondo__step *step) {
    for (size_t i = step->first_item; i < step->first_item + step->item_count; ++i) {
        rondo__item *item = &plan->items[i];
        rondo_status status = item->kernel->launch(item->kernel, executor->stream, item->inputs,
                                                   item->outputs, item->workspace);
        if (status != RONDO_STATUS_OK) {
            rondo__node_blame(&plan->program->nodes[item->node]);
            return status;
        }
    }
    return RONDO_STATUS_OK;
}

// Records the segment. On failure the step is as before, and the stream usable.
static rondo_status capture_step(rondo_executor *executor, rondo__plan *plan, rondo__step *step) {
    rondo_graph_options options = {.struct_size = sizeof options};
    char label[48];
    (void)snprintf(label, sizeof label, "segment %zu", (size_t)(step - plan->steps));
    options.label = label;
    rondo_graph *graph = NULL;
    rondo_status status = rondo_graph_create(executor->device, &options, &graph);
    if (status != RONDO_STATUS_OK) {
        return status;
    }
    status = rondo_graph_capture_begin(graph, executor->stream, RONDO_CAPTURE_THREAD_LOCAL);
    if (status != RONDO_STATUS_OK) {
        goto destroy_graph;
    }
    status = launch_items(executor, plan, step);
    if (status != RONDO_STATUS_OK) {
        rondo_error saved;
        rondo__error_save(&saved);
        rondo_graph_capture_abort(graph);
        rondo__error_restore(&saved);
        goto destroy_graph;
    }
    status = rondo_graph_capture_end(graph);

destroy_graph:
    if (status == RONDO_STATUS_OK) {
        step->graph = graph;
    } else {
        rondo_error saved;
        rondo__error_save(&saved);
        rondo_graph_destroy(graph);
        rondo__error_restore(&saved);
    }
    return status;
}

// Adds a new graph to what the plan takes; `taken` is what the thread held before.
static void count_graph(rondo_executor *executor, rondo__plan *plan, const rondo__step *step,
                        int64_t taken) {
    rondo_graph_stats stats = {.struct_size = sizeof stats};
    const int64_t held = rondo__memory_get_thread_bytes() - taken;
    plan->bytes += held > 0 ? (uint64_t)held : 0;
    if (rondo_graph_get_stats(step->graph, &stats) == RONDO_STATUS_OK) {
        plan->bytes += stats.device_bytes;
    }
    rondo__lru_map_set_bytes(&executor->plans, plan->entry, plan->bytes);
}

// Captures what can be, once. In AUTO mode a segment that refuses is run conventionally from then
// on.
static rondo_status capture_plan(rondo_executor *executor, rondo__plan *plan) {
    for (size_t s = 0; s < plan->step_count; ++s) {
        rondo__step *step = &plan->steps[s];
        if (step->kind != RONDO__STEP_SEGMENT || !step->is_capturable || step->graph != NULL) {
            continue;
        }
        const int64_t taken = rondo__memory_get_thread_bytes();
        rondo_status status = capture_step(executor, plan, step);
        if (status == RONDO_STATUS_OK) {
            count_graph(executor, plan, step, taken);
            continue;
        }
        if (executor->graphs == RONDO_GRAPHS_ON || status == RONDO_STATUS_LOST) {
            return status;
        }
        step->is_capturable = false;
        (void)snprintf(step->reason, sizeof step->reason, "capture failed: %.120s",
                       rondo_error_get_last()->message);
        RONDO_LOG_WARN_F("segment %zu runs without a graph: %s", s, step->reason);
    }
    return RONDO_STATUS_OK;
}

// Inputs stay: they were fed, or a run is repeated.
static void drop_dynamic(rondo__plan *plan) {
    for (size_t v = 0; v < plan->program->value_count; ++v) {
        if (plan->program->values[v].producer >= 0) {
            rondo_tensor_deinit(&plan->dynamic[v]);
        }
    }
}

// Brings the graphs to the device now, or the first replay would (85 us for 180 nodes on an H200).
static rondo_status upload_plan(rondo_executor *executor, rondo__plan *plan) {
    for (size_t s = 0; s < plan->step_count; ++s) {
        if (plan->steps[s].graph != NULL) {
            RETURN_IF_ERROR(rondo_graph_upload(plan->steps[s].graph, executor->stream));
        }
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__plan_capture_ahead(rondo_executor *executor, rondo__plan *plan) {
    // A single plan waits for its second run, which may never come; a body's shapes may change with
    // each turn; and generators are recorded when nothing draws.
    if (plan->run_count > 0 || executor->graphs == RONDO_GRAPHS_OFF || executor->depth > 0 ||
        plan->random_count > 0 || executor->plans.stats.entry_count < 2) {
        return RONDO_STATUS_OK;
    }
    rondo_error saved;
    rondo__error_save(&saved);
    rondo_status status = capture_plan(executor, plan);
    if (status == RONDO_STATUS_OK) {
        status = upload_plan(executor, plan);
    }
    if (status == RONDO_STATUS_LOST) {
        return status;
    }
    rondo__error_restore(&saved);  // what failed is tried, and reported, by the second run
    return RONDO_STATUS_OK;
}

rondo_status rondo__plan_run_steps(rondo_executor *executor, rondo__plan *plan,
                                   rondo__body_runner run_body, bool *out_was_replayed) {
    *out_was_replayed = false;
    bool use_graphs = executor->graphs != RONDO_GRAPHS_OFF && plan->run_count > 0;
    if (plan->bypassed_count > 0) {
        drop_dynamic(plan);
    }
    if (use_graphs) {
        RETURN_IF_ERROR(capture_plan(executor, plan));
    }
    size_t replayed_count = 0;
    size_t capturable_count = 0;
    uint64_t start_ns = plan->first_replay_ns == 0 ? rondo__clock_now_ns() : 0;
    for (size_t s = 0; s < plan->step_count; ++s) {
        rondo__step *step = &plan->steps[s];
        rondo_status status = rondo__executor_check_cancelled(executor);
        if (status != RONDO_STATUS_OK) {
            return status;
        }
        if (step->kind == RONDO__STEP_BYPASS) {
            status = rondo__bypass_run(executor, plan, step, run_body);
        } else if (use_graphs && step->graph != NULL) {
            status = rondo_graph_replay(step->graph, executor->stream);
            replayed_count += 1;
            capturable_count += 1;
        } else {
            capturable_count += step->is_capturable ? 1 : 0;
            status = launch_items(executor, plan, step);
        }
        if (status != RONDO_STATUS_OK) {
            return status;
        }
    }
    *out_was_replayed = replayed_count > 0 && replayed_count == capturable_count;
    const bool may_wait = executor->depth > 0 || !rondo__executor_is_putting(executor);
    if (*out_was_replayed && plan->first_replay_ns == 0 && may_wait) {
        RETURN_IF_ERROR(rondo_stream_synchronize(executor->stream));
        plan->first_replay_ns = rondo__clock_now_ns() - start_ns;
    }
    return RONDO_STATUS_OK;
}

// executor/state/governed.c — see governed.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/state/governed.h"

#include "base/error.h"
#include "base/log/logging.h"
#include "base/memory.h"

static bool is_governed(const rondo__unit *unit) {
    const rondo_executor *executor = unit->executor;
    return executor->graphs == RONDO_GRAPHS_MEASURED && unit->depth == 0 &&
           executor->caller.self_check == NULL && executor->options.self_check_every == 0 &&
           executor->options.communicator == NULL;
}

// Errors of runs that recovered leave no record, and destroying a graph leaves none either.
static void drop_graphs(rondo__unit *unit, rondo__plan *plan) {
    const int64_t taken = rondo__memory_get_thread_bytes();
    uint64_t device_bytes = 0;
    rondo_error saved;
    rondo__error_save(&saved);
    for (size_t s = 0; s < plan->step_count; ++s) {
        rondo__step_run *run = &plan->steps[s].run;
        rondo_graph_stats stats = {.struct_size = sizeof stats};
        if (run->graph != NULL && rondo_graph_get_stats(run->graph, &stats) == RONDO_STATUS_OK) {
            device_bytes += stats.device_bytes;
        }
        rondo_graph_destroy(run->graph);
        rondo_graph_destroy(run->other);
        run->graph = NULL;
        run->other = NULL;
        run->branch_count = 0;
        run->turn_count = 0;
    }
    rondo__error_restore(&saved);
    const int64_t freed = taken - rondo__memory_get_thread_bytes() + (int64_t)device_bytes;
    const uint64_t less = freed > 0 ? (uint64_t)freed : 0;
    plan->bytes -= less < plan->bytes ? less : plan->bytes;
    rondo__lru_map_set_bytes(&unit->plans, plan->entry, plan->bytes);
}

static void tell(const rondo__unit *unit, const rondo__plan *plan) {
    char text[320];
    if (RONDO_LOG_IS_WANTED(RONDO_LOG_INFO)) {
        rondo__governor_explain(&plan->run.measures, &unit->executor->resources.governor.experience,
                                RONDO_CACHE_MEASURED, NULL, text, sizeof text);
        RONDO_LOG_INFO_F("a plan of %zu ops: %s", plan->item_count, text);
    }
}

void rondo__governed_choose_now(rondo__unit *unit, rondo__plan *plan, bool waits) {
    rondo_executor *executor = unit->executor;
    rondo__measures *m = &plan->run.measures;
    if (!is_governed(unit)) {
        return;
    }
    if (!waits) {
        executor->work.choice =
            m->reason == RONDO__REASON_SLOWER ? RONDO__CHOICE_EAGER : RONDO__CHOICE_REPLAY;
        return;
    }
    executor->work.choice = rondo__governor_choose(&executor->resources.governor, m);
    if (executor->work.choice == RONDO__CHOICE_GIVE_UP) {
        drop_graphs(unit, plan);
        tell(unit, plan);
    }
}

void rondo__governed_note_capture(rondo__unit *unit, rondo__plan *plan, uint64_t ns) {
    rondo_executor *executor = unit->executor;
    if (executor->work.choice == RONDO__CHOICE_CAPTURE && unit->depth == 0) {
        rondo__governor_note_capture(&executor->resources.governor, &plan->run.measures, ns);
    }
}

void rondo__governed_note_run_now(rondo__unit *unit, rondo__plan *plan, uint64_t latency_ns) {
    rondo_executor *executor = unit->executor;
    const rondo__choice choice = executor->work.choice;
    if (!is_governed(unit)) {
        return;
    }
    const bool is_timed = rondo__governor_is_timed(&plan->run.measures, choice);
    rondo__governor_note_end(&executor->resources.governor, &plan->run.measures, choice,
                             is_timed ? latency_ns : 0);
    if (choice == RONDO__CHOICE_CAPTURE) {
        tell(unit, plan);
    }
}

void rondo__governed_describe(rondo__text *text, const rondo__unit *unit, const rondo__plan *plan,
                              bool is_json) {
    if (!is_governed(unit)) {
        return;
    }
    rondo__text_append(text, "%s", is_json ? "  \"graphs\": " : "");
    rondo__governor_describe(&unit->executor->resources.governor, &plan->run.measures, text,
                             is_json);
    rondo__text_append(text, "%s", is_json ? ",\n" : "");
}

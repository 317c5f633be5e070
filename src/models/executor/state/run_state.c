// executor/state/run_state.c — see run_state.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/state/run_state.h"

#include "base/error.h"
#include "base/memory.h"
#include "executor/state/limits.h"
#include "executor/state/run_memory.h"

// ---- of a plan ----------------------------------------------------------------------------------

void rondo__stand_ins_deinit(rondo__stand_ins *places) {
    rondo__free(places->by_root);
    rondo__free(places->inputs);
    rondo__free(places->outputs);
    *places = (rondo__stand_ins){0};
}

void rondo__branches_deinit(rondo__branches *branches) {
    rondo__free(branches->items);
    rondo__free(branches->waits);
    *branches = (rondo__branches){.count = 0};
}

void rondo__branches_close(rondo__branch_recorder *r) {
    if (r == NULL) {
        return;
    }
    for (size_t b = 1; b < RONDO__BRANCH_MAX; ++b) {
        rondo_stream_destroy(r->streams[b]);
    }
    for (size_t e = 0; r->events != NULL && e < r->event_count; ++e) {
        rondo_event_destroy(r->events[e]);
    }
    rondo__free(r->events);
    rondo__branches_deinit(&r->branches);
    rondo__free(r);
}

void rondo__in_place_free(rondo__plan *plan) {
    rondo__in_place *in_place = plan->run.in_place;
    if (in_place != NULL) {
        rondo_learned_destroy(in_place->learned);
        rondo__branches_close(in_place->branches);
        rondo__stand_ins_deinit(&in_place->places);
        rondo__free(in_place->roots);
        rondo__free(in_place->found);
        rondo__free(in_place->values);
        rondo__free(in_place->uses);
        rondo__free(in_place);
        plan->run.in_place = NULL;
        plan->run.is_in_place = false;
    }
}

void rondo__late_values_drop(rondo__plan *plan) {
    for (size_t v = 0; plan->run.late_copies != NULL && v < plan->program->value_count; ++v) {
        rondo_tensor_deinit(&plan->run.late_copies[v]);
    }
}

void rondo__late_values_free(rondo__unit *unit, rondo__plan *plan) {
    rondo__late_values_drop(plan);
    rondo__free(plan->run.late_copies);
    rondo__run_memory_release(unit, plan->run.late_staging);
}

// ---- of an executor -----------------------------------------------------------------------------

void rondo__self_check_destroy(rondo_executor *executor) {
    rondo__free(executor->caller.self_check);
    executor->caller.self_check = NULL;
}

void rondo__input_lane_empty(rondo_executor *executor, rondo__input_lane *lane) {
    rondo__executor_free(executor, RONDO__OWNER_STAGING, lane->device, lane->bytes);
    rondo__executor_free_pinned(executor, lane->pinned, lane->bytes);
    executor->main.run_memory_bytes -= lane->pinned != NULL ? lane->bytes : 0;
    executor->main.run_memory_bytes -= lane->device != NULL ? lane->bytes : 0;
    lane->device = NULL;
    lane->pinned = NULL;
    lane->bytes = 0;
}

void rondo__async_free(rondo_executor *executor) {
    rondo__async *async = executor->caller.async;
    if (async == NULL) {
        return;
    }
    for (size_t i = 0; i < 2; ++i) {
        rondo__input_lane_empty(executor, &async->lanes[i]);
        rondo_event_destroy(async->lanes[i].consumed);
        rondo_event_destroy(async->lanes[i].uploaded);
    }
    rondo_stream_destroy(async->copy_stream);
    rondo_event_destroy(async->finished);
    executor->caller.async = NULL;
    rondo__free(async);
}

// Whether a wait would break a capture. Nothing says so: then it waits.
static bool is_recording(rondo_stream *stream) {
    bool is = false;
    return rondo_stream_is_recording(stream, &is) == RONDO_STATUS_OK && is;
}

void rondo__unit_drain(rondo__unit *unit) {
    rondo_error saved;
    rondo__error_save(&saved);
    const rondo__unit *main = &unit->executor->main;
    const rondo__async *async = unit->executor->caller.async;
    const bool has_runs = async != NULL && async->is_under_way;
    // If the program has the stream, it may be recording on it, which forbids a wait for it. Only
    // runs that were not waited for can be under way, and these have an event. A failed wait says
    // nothing new: the next wait for the run fails in the same way.
    const bool may_record = unit->executor->caller.may_record_stream;
    if (has_runs && may_record) {
        (void)!rondo_event_synchronize(async->finished);
    } else if (has_runs && !unit->owns_stream) {
        (void)!rondo_stream_synchronize(main->stream);
    }
    if (unit->owns_stream && !(may_record && is_recording(unit->stream))) {
        (void)!rondo_stream_synchronize(unit->stream);
    }
    rondo__error_restore(&saved);
}

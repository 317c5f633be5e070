// executor/compile/unit.c — see unit.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/compile/unit.h"

#include "base/crew.h"
#include "base/error.h"
#include "base/float_scope.h"
#include "base/memory.h"
#include "base/thread_count.h"
#include "executor/compile/base_form.h"
#include "executor/compile/destroy.h"
#include "executor/compile/plan_cache.h"
#include "executor/state/prepared.h"

enum { DEPTH_MAX = 16 };  // bodies within bodies

// Runs on the stream's own worker, which has its choice from then on.
static void choose_threads(void *arguments) {
    const uint32_t *count = arguments;
    (void)rondo__host_choose_thread_count((int32_t)*count);
}

static rondo_status make_base(rondo__unit *unit) {
    const int32_t former =
        rondo__host_choose_thread_count((int32_t)unit->executor->options.thread_count);
    const rondo__float_scope scope = rondo__float_enter();
    rondo__crew_enter();
    const rondo_status status = rondo__unit_make_base(unit);
    rondo__crew_leave();
    rondo__float_leave(&scope);
    (void)rondo__host_choose_thread_count(former);
    return status;
}

// What plans are found by, and the results of a run: nothing is keyed, no input limits another.
static rondo_status make_lists(rondo__unit *unit) {
    const size_t count = unit->base->input_count + 1;
    rondo__plan_keys *keys = &unit->keys;
    keys->keyed = rondo__calloc(count, sizeof *keys->keyed);
    keys->deciding = rondo__calloc(count, sizeof *keys->deciding);
    keys->bounds = rondo__calloc(count, sizeof *keys->bounds);
    keys->most = rondo__calloc(count, sizeof *keys->most);
    unit->fresh = rondo__calloc(unit->source->output_count + 1, sizeof *unit->fresh);
    if (keys->keyed == NULL || keys->deciding == NULL || keys->bounds == NULL ||
        keys->most == NULL || unit->fresh == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < count; ++i) {
        keys->bounds[i].of = -1;
    }
    if (unit->source->saved == NULL) {
        return RONDO_STATUS_OK;
    }
    char *key = rondo__unit_write_base_key(unit);
    const rondo_status status =
        key != NULL ? rondo__prepared_give_keys(unit, key) : RONDO_STATUS_NO_MEMORY;
    rondo__free(key);
    return status;
}

static rondo_status make_stream(rondo__unit *unit, rondo_stream *given) {
    rondo_device *device = unit->executor->device;
    const rondo_executor_options *options = &unit->executor->options;
    unit->owns_stream = given == NULL;
    unit->stream = given;
    if (given == NULL) {
        RETURN_IF_ERROR(rondo_stream_create(device, NULL, &unit->stream));
    }
    if (options->thread_count > 0 && rondo_device_is_host(device)) {
        RETURN_IF_ERROR(rondo_stream_call_host(unit->stream, "threads", choose_threads,
                                               &options->thread_count,
                                               sizeof options->thread_count));
    }
    for (size_t i = 0; !rondo_device_is_host(device) && i < 4; ++i) {
        RETURN_IF_ERROR(rondo_event_create(device, RONDO_EVENT_TIMED, &unit->events[i]));
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__unit_prepare(rondo__unit *unit, rondo_stream *stream) {
    rondo__unit_init_plans(unit);
    rondo__budget *before = rondo__budget_enter(unit->executor->resources.budget);
    rondo_status status = make_base(unit);
    if (status == RONDO_STATUS_OK) {
        status = make_lists(unit);
    }
    if (status == RONDO_STATUS_OK) {
        status = make_stream(unit, stream);
    }
    (void)rondo__budget_enter(before);
    return status;
}

rondo_status rondo__unit_create_body(const rondo__unit *parent, rondo_program *body,
                                     rondo_stream *stream, rondo__unit **out_unit) {
    *out_unit = NULL;
    if (parent->depth >= DEPTH_MAX) {
        return RONDO_FAIL(BAD_DATA, "control flow is nested more than %d levels deep", DEPTH_MAX);
    }
    rondo__unit *unit = rondo__calloc(1, sizeof *unit);
    if (unit == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo__unit_init(unit, parent->executor, body, parent->is_training);
    unit->depth = parent->depth + 1;
    return rondo__unit_finish(unit, rondo__unit_prepare(unit, stream), out_unit);
}

rondo_status rondo__unit_create_variant(rondo_executor *executor, rondo_program *program,
                                        rondo__unit **out_unit) {
    *out_unit = NULL;
    rondo__unit *unit = rondo__calloc(1, sizeof *unit);
    if (unit == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo__unit_init(unit, executor, program, executor->variants.is_training);
    return rondo__unit_finish(unit, rondo__unit_prepare(unit, executor->main.stream), out_unit);
}

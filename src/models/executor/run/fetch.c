// executor/run/fetch.c — see fetch.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/run/fetch.h"

#include <string.h>

#include "backend/areas.h"
#include "backend/backend.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/memory.h"
#include "executor/devices/transfers.h"
#include "executor/run/carried.h"
#include "executor/run/in_place_replay.h"
#include "executor/run/late_values.h"
#include "executor/state/arena_plan.h"
#include "executor/state/objects.h"
#include "executor/state/op_span.h"
#include "tensor/elements.h"
#include "tensor/storage.h"

static bool is_wanted(const rondo__fetch *fetch, size_t i) {
    return fetch->wants == NULL || fetch->wants[i];
}

static const char *get_name(const rondo__fetch *fetch, size_t i) {
    const rondo_program *source = fetch->unit->source;
    return source->values[source->outputs[i]].name;
}

rondo_status rondo__fetch_view(const rondo__fetch *fetch, size_t i, rondo_tensor *out_view) {
    const rondo__plan *plan = fetch->plan;
    const int32_t value = plan->program->outputs[i];
    const rondo__slot *slot = &plan->slots[value];
    *out_view = (rondo_tensor){.dtype = slot->dtype, .shape = slot->shape};
    switch (slot->kind) {
        case RONDO__SLOT_CONSTANT:
            out_view->data = plan->program->values[slot->root].constant.data;
            out_view->storage = plan->program->values[slot->root].constant.storage;
            return RONDO_STATUS_OK;
        case RONDO__SLOT_DYNAMIC:
            *out_view = plan->run.dynamic[value];
            if (out_view->dtype != RONDO_DTYPE_NONE) {
                return RONDO_STATUS_OK;
            }
            break;
        case RONDO__SLOT_ARENA:
            out_view->data = rondo__in_place_find(plan, value);
            out_view->device = slot->is_on_host ? NULL : fetch->unit->executor->device;
            return RONDO_STATUS_OK;
        case RONDO__SLOT_NONE:
            break;
    }
    return RONDO_FAIL(INTERNAL, "output \"%s\" was not computed", get_name(fetch, i));
}

// Whether an output is a new tensor of the executor's: strings, sequences and optionals always are,
// in place of one of an earlier run.
static bool is_made_new(const rondo_tensor *view, const rondo_tensor *result) {
    return result->data == NULL || (!rondo__dtype_is_plain(view->dtype) &&
                                    result->dtype == view->dtype && result->storage != NULL);
}

// A result in the memory of a device must be in that of the executor's.
static rondo_status check_place(const rondo__fetch *fetch, size_t i, const rondo_tensor *view,
                                const rondo_tensor *result) {
    if (rondo_tensor_is_on_host(result)) {
        return RONDO_STATUS_OK;
    }
    if (!rondo__dtype_is_plain(view->dtype)) {
        return RONDO_FAIL(INVALID, "fetch \"%s\": a %s is always in host memory, not on %s",
                          get_name(fetch, i), rondo_dtype_get_name(view->dtype),
                          rondo_device_get_name(result->device));
    }
    return result->device == fetch->unit->executor->device
               ? RONDO_STATUS_OK
               : RONDO_FAIL(INVALID,
                            "fetch \"%s\": the tensor given lies on %s, the executor runs on %s; "
                            "give one on that device or in host memory, and copy it with "
                            "rondo_tensor_copy",
                            get_name(fetch, i), rondo_device_get_name(result->device),
                            rondo_device_get_name(fetch->unit->executor->device));
}

static rondo_status check_result(const rondo__fetch *fetch, size_t i, const rondo_tensor *view,
                                 const rondo_tensor *result) {
    RETURN_IF_ERROR(check_place(fetch, i, view, result));
    if (is_made_new(view, result) ||
        (rondo__dtype_is_plain(view->dtype) && result->dtype == view->dtype &&
         rondo_shape_is_equal(&result->shape, &view->shape))) {
        return RONDO_STATUS_OK;
    }
    char have[96];
    char want[96];
    if (!rondo__dtype_is_plain(view->dtype)) {
        return RONDO_FAIL(INVALID,
                          "fetch \"%s\": a %s is always allocated; give a tensor with data = NULL, "
                          "or the one of an earlier run",
                          get_name(fetch, i), rondo_dtype_get_name(view->dtype));
    }
    return RONDO_FAIL(
        INVALID, "fetch \"%s\": the tensor given is %s %s, the output is %s %s", get_name(fetch, i),
        rondo_dtype_get_name(result->dtype), rondo_shape_format(&result->shape, have, sizeof have),
        rondo_dtype_get_name(view->dtype), rondo_shape_format(&view->shape, want, sizeof want));
}

// Memory that the program's callback gives: the tensor does not own it.
static rondo_status ask_program(const rondo__fetch *fetch, size_t i, const rondo_tensor *view,
                                rondo_tensor *out_result) {
    const rondo__fetch_memory *memory = fetch->unit->executor->ports.lists.memory;
    rondo_device *device = fetch->results[i].device;
    const size_t bytes = rondo_tensor_get_bytes(view);
    rondo_tensor wanted = {.dtype = view->dtype, .shape = view->shape, .device = device};
    wanted.data = memory->allocate(memory->user_data, get_name(fetch, i), &wanted, bytes);
    if (wanted.data == NULL) {
        return rondo_tensor_is_on_host(&wanted)
                   ? RONDO_FAIL(NO_MEMORY, "the program's allocator gave no %zu bytes", bytes)
                   : RONDO_FAIL(NO_DEVICE_MEMORY, "the program's allocator gave no %zu bytes on %s",
                                bytes, rondo_device_get_name(device));
    }
    *out_result = wanted;
    return RONDO_STATUS_OK;
}

static rondo_status allocate_result(const rondo__fetch *fetch, size_t i, const rondo_tensor *view) {
    rondo_tensor *fresh = &fetch->unit->fresh[i];
    if (!rondo__dtype_is_plain(view->dtype)) {
        return rondo__unit_pass_object(fetch->unit, view, fresh);
    }
    if (fetch->unit->depth == 0 && fetch->unit->executor->ports.lists.memory != NULL &&
        rondo_tensor_get_bytes(view) > 0) {
        return ask_program(fetch, i, view, fresh);
    }
    return fetch->results[i].device != NULL
               ? rondo_tensor_init_device(fetch->results[i].device, view->dtype, &view->shape,
                                          fresh)
               : rondo__tensor_init_result(view->dtype, &view->shape, fresh);
}

static rondo_status prepare_output(const rondo__fetch *fetch, size_t i) {
    rondo_tensor view;
    RETURN_IF_ERROR(rondo__fetch_view(fetch, i, &view));
    if (fetch->unit->stays_on_device) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(check_result(fetch, i, &view, &fetch->results[i]));
    if (!is_made_new(&view, &fetch->results[i])) {
        return RONDO_STATUS_OK;
    }
    const rondo_status status = allocate_result(fetch, i, &view);
    if (status != RONDO_STATUS_OK) {
        rondo__error_prefix("output \"%.60s\"", get_name(fetch, i));
    }
    return status;
}

static rondo_tensor *get_target(const rondo__fetch *fetch, size_t i) {
    rondo_tensor *fresh = &fetch->unit->fresh[i];
    return fresh->dtype != RONDO_DTYPE_NONE ? fresh : &fetch->results[i];
}

// Whether output `i` of a GPU, of a shape that only this run has told, goes to host memory.
static bool is_late(const rondo__fetch *fetch, size_t i) {
    const int32_t value = fetch->plan->program->outputs[i];
    return fetch->plan->slots[value].kind == RONDO__SLOT_DYNAMIC &&
           rondo__late_values_is_on_gpu(fetch->unit->executor, &fetch->plan->run.dynamic[value]) &&
           rondo_tensor_is_on_host(get_target(fetch, i));
}

// Lets such outputs have places in pinned memory.
static rondo_status stage_late(const rondo__fetch *fetch) {
    size_t end = 0;
    for (size_t i = 0; i < fetch->plan->program->output_count; ++i) {
        if (is_wanted(fetch, i) && !fetch->unit->stays_on_device && is_late(fetch, i)) {
            const int32_t value = fetch->plan->program->outputs[i];
            fetch->plan->memory.output_staging[i] = end;
            end += rondo__align_up(rondo_tensor_get_bytes(&fetch->plan->run.dynamic[value]),
                                   RONDO__ARENA_ALIGNMENT);
        }
    }
    return rondo__late_values_reserve(fetch->unit, fetch->plan, end);
}

// Whether the shape of output `i` is known before the run.
static bool is_known(const rondo__fetch *fetch, size_t i) {
    return fetch->plan->slots[fetch->plan->program->outputs[i]].kind != RONDO__SLOT_DYNAMIC;
}

static rondo_status prepare_outputs(const rondo__fetch *fetch, bool known) {
    // A tensor that a caller fetches is the caller's, and no longer counts against the limit.
    rondo__budget *entered = rondo__budget_get_entered();
    (void)rondo__budget_enter(fetch->unit->depth == 0 ? NULL : entered);
    rondo_status status = RONDO_STATUS_OK;
    for (size_t i = 0; status == RONDO_STATUS_OK && i < fetch->plan->program->output_count; ++i) {
        if (is_wanted(fetch, i) && is_known(fetch, i) == known) {
            status = prepare_output(fetch, i);
        }
    }
    (void)rondo__budget_enter(entered);
    return status;
}

rondo_status rondo__fetch_prepare_known(const rondo__fetch *fetch) {
    return prepare_outputs(fetch, true);
}

rondo_status rondo__fetch_prepare_found(const rondo__fetch *fetch) {
    RETURN_IF_ERROR(prepare_outputs(fetch, false));
    return stage_late(fetch);
}

// ---- copies -----------------------------------------------------------------------------------

bool rondo__unit_copy_here(const rondo__unit *unit, void *to, const void *from, size_t bytes) {
    bool is_idle = false;
    if (!rondo_device_is_host(unit->executor->device) || rondo__hook_is_on(RONDO__HOOK_WORK) ||
        rondo__copy_is_told() || rondo_stream_query(unit->stream, &is_idle) != RONDO_STATUS_OK ||
        !is_idle) {
        return false;
    }
    memcpy(to, from, bytes);
    return true;
}

// Whether output `i` may lie in the memory of a state that changes when the outputs have been put:
// its new value is written there, or moves to other memory. Settled states do not change.
static bool may_be_state(const rondo__fetch *fetch, size_t i) {
    const rondo__unit *unit = fetch->unit;
    const rondo__slot *slot = &fetch->plan->slots[fetch->plan->program->outputs[i]];
    return unit->depth == 0 && unit->executor->caller.states != NULL && !fetch->is_settled &&
           (slot->kind == RONDO__SLOT_DYNAMIC || fetch->plan->slots[slot->root].is_kept);
}

// Whether the processor writes the result behind the wait. It does not write device tensors, which
// are written in stream order, nor outputs of the host that may lie in a state's memory.
static bool is_left_to_finish(const rondo__fetch *fetch, size_t i, const rondo_tensor *view,
                              const rondo_tensor *to) {
    return fetch->waits && to->device != fetch->unit->executor->device &&
           !(rondo_tensor_is_on_host(view) && may_be_state(fetch, i));
}

// The place of output `i`, in the memory of a GPU, in pinned memory.
static char *get_staged(const rondo__fetch *fetch, size_t i) {
    const rondo__plan *plan = fetch->plan;
    const bool is_dynamic = plan->slots[plan->program->outputs[i]].kind == RONDO__SLOT_DYNAMIC;
    char *staging = is_dynamic ? plan->run.late_staging->address : plan->memory.staging;
    return staging + plan->memory.output_staging[i];
}

// An output in the memory of a GPU.
static rondo_status put_from_gpu(const rondo__fetch *fetch, size_t i, const rondo_tensor *view,
                                 const rondo_tensor *to, size_t bytes) {
    rondo_stream *stream = fetch->unit->stream;
    rondo__copy_note note =
        rondo__plan_note_copy(fetch->plan, fetch->plan->program->outputs[i], NULL, "fetch");
    note.shape = &view->shape;
    if (!rondo_tensor_is_on_host(to)) {
        return rondo__stream_copy_noted(stream, to->data, view->data, bytes,
                                        RONDO_COPY_DEVICE_TO_DEVICE, &note);
    }
    char *staged = get_staged(fetch, i);
    if (is_left_to_finish(fetch, i, view, to)) {
        return rondo__stream_copy_noted(stream, staged, view->data, bytes,
                                        RONDO_COPY_DEVICE_TO_HOST, &note);
    }
    if (!rondo__areas_is_pageable(fetch->unit->executor->device, to->data, bytes)) {
        return rondo__stream_copy_noted(stream, to->data, view->data, bytes,
                                        RONDO_COPY_DEVICE_TO_HOST, &note);
    }
    RETURN_IF_ERROR(rondo__stream_copy_noted(stream, staged, view->data, bytes,
                                             RONDO_COPY_DEVICE_TO_HOST, &note));
    return rondo__transfers_put_bytes(stream, to->data, staged, bytes);
}

rondo_status rondo__fetch_put_output(const rondo__fetch *fetch, size_t i, const rondo_tensor *to) {
    rondo_tensor view;
    RETURN_IF_ERROR(rondo__fetch_view(fetch, i, &view));
    const size_t bytes = rondo_tensor_get_bytes(&view);
    rondo_stream *stream = fetch->unit->stream;
    const rondo__copy_note note =
        rondo__plan_note_copy(fetch->plan, fetch->plan->program->outputs[i], NULL, "fetch");
    if (bytes == 0 || !rondo__dtype_is_plain(view.dtype) || to->data == view.data) {
        return RONDO_STATUS_OK;
    }
    // To a tensor of the host device, also a constant needs no other thread.
    if (fetch->waits && to->device == fetch->unit->executor->device &&
        rondo__unit_copy_here(fetch->unit, to->data, view.data, bytes)) {
        return RONDO_STATUS_OK;
    }
    fetch->plan->run.has_put = true;
    if (!rondo_tensor_is_on_host(&view)) {
        return put_from_gpu(fetch, i, &view, to, bytes);
    }
    if (!rondo_tensor_is_on_host(to)) {
        return rondo__stream_copy_noted(stream, to->data, view.data, bytes,
                                        RONDO_COPY_HOST_TO_DEVICE, &note);
    }
    if (is_left_to_finish(fetch, i, &view, to)) {
        return RONDO_STATUS_OK;
    }
    if (view.device != NULL) {  // the host device's arena
        return rondo__stream_copy_noted(stream, to->data, view.data, bytes,
                                        RONDO_COPY_DEVICE_TO_DEVICE, &note);
    }
    if (fetch->plan->slots[fetch->plan->program->outputs[i]].kind == RONDO__SLOT_DYNAMIC) {
        memcpy(to->data, view.data, bytes);  // a bypass made it, which has waited for all before
        return RONDO_STATUS_OK;
    }
    return rondo__transfers_put_bytes(stream, to->data, view.data, bytes);
}

// The same without a look at output `i`: on the host only the place of the result counts.
static bool is_surely_left(const rondo__fetch *fetch, size_t i) {
    return fetch->waits && get_target(fetch, i)->device == NULL &&
           rondo_device_is_host(fetch->unit->executor->device) && !may_be_state(fetch, i);
}

rondo_status rondo__fetch_put(const rondo__fetch *fetch) {
    for (size_t i = 0; i < fetch->plan->program->output_count; ++i) {
        if (is_wanted(fetch, i) && !fetch->unit->stays_on_device && !is_surely_left(fetch, i)) {
            RETURN_IF_ERROR(rondo__fetch_put_output(fetch, i, get_target(fetch, i)));
        }
    }
    return RONDO_STATUS_OK;
}

// Where the processor finds the bytes of an output behind the wait; NULL: nothing is left to copy.
static const void *find_bytes(const rondo__fetch *fetch, size_t i, const rondo_tensor *view,
                              const rondo_tensor *to) {
    if (!is_left_to_finish(fetch, i, view, to) || !rondo__dtype_is_plain(view->dtype) ||
        rondo_tensor_get_bytes(view) == 0 || to->data == view->data) {
        return NULL;
    }
    return rondo_tensor_is_on_host(view) ? view->data : get_staged(fetch, i);
}

bool rondo__fetch_leaves_pinned(const rondo__fetch *fetch) {
    const rondo__plan *plan = fetch->plan;
    bool leaves = false;
    for (size_t i = 0; i < plan->program->output_count; ++i) {
        const rondo__slot *slot = &plan->slots[plan->program->outputs[i]];
        leaves = leaves || (is_wanted(fetch, i) && slot->kind == RONDO__SLOT_ARENA &&
                            slot->is_on_host && slot->bytes > 0);
    }
    return leaves;
}

// Where the run has left the value of an output; NULL: not in an arena.
static const void *find_left(const rondo__fetch *fetch, size_t i) {
    const int32_t value = fetch->plan->program->outputs[i];
    if (fetch->plan->slots[value].kind != RONDO__SLOT_ARENA) {
        return NULL;
    }
    return fetch->carried != NULL ? rondo__carried_get_place(fetch->carried, i)
                                  : rondo__in_place_find(fetch->plan, value);
}

// Finishes a result that was given and that the host device has made.
static bool finish_given(const rondo__fetch *fetch, size_t i) {
    const rondo__slot *slot = &fetch->plan->slots[fetch->plan->program->outputs[i]];
    const void *from = find_left(fetch, i);
    if (!fetch->is_prepared || from == NULL || !is_surely_left(fetch, i)) {
        return false;
    }
    if (from != fetch->results[i].data) {
        memcpy(fetch->results[i].data, from, slot->bytes);
    }
    return true;
}

void rondo__fetch_finish(const rondo__fetch *fetch) {
    for (size_t i = 0; i < fetch->plan->program->output_count; ++i) {
        if (is_wanted(fetch, i) &&
            ((fetch->carried != NULL && rondo__carried_writes(fetch->carried, i)) ||
             finish_given(fetch, i))) {
            continue;
        }
        rondo_tensor view;
        rondo_tensor *fresh = &fetch->unit->fresh[i];
        if (!is_wanted(fetch, i) || rondo__fetch_view(fetch, i, &view) != RONDO_STATUS_OK) {
            continue;
        }
        if (fetch->unit->stays_on_device) {
            rondo_tensor_share(&view, &fetch->results[i]);
            continue;
        }
        rondo_tensor *to = get_target(fetch, i);
        const void *bytes = find_bytes(fetch, i, &view, to);
        if (bytes != NULL) {
            memcpy(to->data, bytes, rondo_tensor_get_bytes(&view));
        }
        if (to == fresh) {
            if (!rondo__dtype_is_plain(view.dtype) && fetch->results[i].dtype == view.dtype) {
                rondo_tensor_deinit(&fetch->results[i]);
            }
            fetch->results[i] = *fresh;
            *fresh = (rondo_tensor){0};
        }
    }
}

void rondo__fetch_drop(const rondo__fetch *fetch) {
    for (size_t i = 0; i < fetch->plan->program->output_count; ++i) {
        rondo_tensor_deinit(&fetch->unit->fresh[i]);
    }
}

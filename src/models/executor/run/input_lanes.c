// executor/run/input_lanes.c — see input_lanes.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/run/input_lanes.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "executor/devices/transfers.h"
#include "executor/run/fetch.h"
#include "executor/state/limits.h"
#include "executor/state/op_span.h"

// ---- life -------------------------------------------------------------------------------------

rondo_status rondo__async_make(rondo_executor *executor) {
    if (executor->caller.async != NULL) {
        return RONDO_STATUS_OK;
    }
    rondo__async *async = rondo__calloc(1, sizeof *async);
    if (async == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    executor->caller.async = async;
    rondo_status status = rondo_event_create(executor->device, 0, &async->finished);
    if (status == RONDO_STATUS_OK && !rondo_device_is_host(executor->device)) {
        status = rondo_stream_create(executor->device, NULL, &async->copy_stream);
    }
    for (size_t i = 0; i < 2 && status == RONDO_STATUS_OK; ++i) {
        status = rondo_event_create(executor->device, 0, &async->lanes[i].consumed);
        if (status == RONDO_STATUS_OK) {
            status = rondo_event_create(executor->device, 0, &async->lanes[i].uploaded);
        }
    }
    if (status != RONDO_STATUS_OK) {
        rondo_error saved;
        rondo__error_save(&saved);
        rondo__async_free(executor);
        rondo__error_restore(&saved);
    }
    return status;
}

// ---- inputs -----------------------------------------------------------------------------------

// An input lane with room for `bytes` that no run reads any more.
static rondo_status take_lane(rondo_executor *executor, size_t bytes,
                              rondo__input_lane **out_lane) {
    rondo__async *async = executor->caller.async;
    const bool is_host = rondo_device_is_host(executor->device);
    rondo__input_lane *lane = &async->lanes[async->next];
    if (lane->is_used) {
        const bool is_read_late = is_host || lane->is_read_late;
        RETURN_IF_ERROR(rondo_event_synchronize(is_read_late ? lane->consumed : lane->uploaded));
    }
    if (lane->bytes < bytes) {
        if (lane->is_used) {
            RETURN_IF_ERROR(rondo_event_synchronize(lane->consumed));
        }
        rondo__input_lane_empty(executor, lane);
        RETURN_IF_ERROR(rondo__executor_allocate_pinned(executor, bytes, &lane->pinned));
        lane->bytes = bytes;  // not before there are so many
        executor->main.run_memory_bytes += bytes;
        if (!is_host) {
            const rondo_status status =
                rondo__executor_allocate(executor, RONDO__OWNER_STAGING, bytes, &lane->device);
            executor->main.run_memory_bytes += status == RONDO_STATUS_OK ? bytes : 0;
            if (status != RONDO_STATUS_OK) {
                rondo__input_lane_empty(executor, lane);
                return status;
            }
        }
    }
    async->next = 1 - async->next;
    *out_lane = lane;
    return RONDO_STATUS_OK;
}

static bool goes_through(const rondo_executor *executor, const rondo__plan *plan, size_t input,
                         const rondo_tensor *feed) {
    const rondo__slot *slot = &plan->slots[plan->program->inputs[input]];
    return slot->kind == RONDO__SLOT_ARENA && slot->bytes > 0 && feed->device != executor->device;
}

// Beside whatever the run's stream does, which waits for the end of it.
static rondo_status upload(rondo__unit *unit, rondo__input_lane *lane, size_t bytes) {
    rondo_stream *side = unit->executor->caller.async->copy_stream;
    if (lane->is_used) {
        RETURN_IF_ERROR(rondo_stream_wait_event(side, lane->consumed));
    }
    RETURN_IF_ERROR(
        rondo_stream_copy(side, lane->device, lane->pinned, bytes, RONDO_COPY_HOST_TO_DEVICE));
    RETURN_IF_ERROR(rondo_event_record(lane->uploaded, side));
    return rondo_stream_wait_event(unit->stream, lane->uploaded);
}

rondo_status rondo__input_lanes_feed(rondo__unit *unit, const rondo__plan *plan,
                                     const rondo_tensor *feeds) {
    const rondo_program *program = plan->program;
    size_t end = 0;  // of the last input that goes through
    for (size_t i = 0; i < program->input_count; ++i) {
        if (goes_through(unit->executor, plan, i, &feeds[i])) {
            end = plan->memory.input_staging[i] + plan->slots[program->inputs[i]].bytes;
        }
    }
    if (end == 0) {
        return RONDO_STATUS_OK;
    }
    rondo__input_lane *lane = NULL;
    RETURN_IF_ERROR(take_lane(unit->executor, end, &lane));
    for (size_t i = 0; i < program->input_count; ++i) {
        if (goes_through(unit->executor, plan, i, &feeds[i])) {
            memcpy((char *)lane->pinned + plan->memory.input_staging[i], feeds[i].data,
                   plan->slots[program->inputs[i]].bytes);
        }
    }
    if (lane->device != NULL) {
        RETURN_IF_ERROR(upload(unit, lane, end));
    }
    lane->is_read_late = false;
    const char *from = lane->device != NULL ? lane->device : lane->pinned;
    for (size_t i = 0; i < program->input_count; ++i) {
        const rondo__slot *slot = &plan->slots[program->inputs[i]];
        const rondo__slot *host = rondo__plan_get_host_input(plan, i);
        if (!goes_through(unit->executor, plan, i, &feeds[i])) {
            continue;
        }
        if (!slot->is_on_host) {
            const rondo__copy_note note =
                rondo__plan_note_copy(plan, program->inputs[i], NULL, "feed");
            RETURN_IF_ERROR(rondo__stream_copy_noted(
                unit->stream, slot->address, from + plan->memory.input_staging[i], slot->bytes,
                RONDO_COPY_DEVICE_TO_DEVICE, &note));
        }
        if (host != NULL) {
            const char *pinned = lane->pinned;
            lane->is_read_late = true;
            RETURN_IF_ERROR(rondo__transfers_put_bytes(
                unit->stream, host->address, pinned + plan->memory.input_staging[i], host->bytes));
        }
    }
    lane->is_used = true;
    return rondo_event_record(lane->consumed, unit->stream);
}

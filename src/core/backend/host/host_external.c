// backend/host/host_external.c — events that graphs record and wait for at each replay.
//
// An external event numbers its records (`record_serial` is the latest that was asked for) and
// knows which of them have happened. An eager record asks and puts a stamp on the stream. A replay
// asks when it is put on its stream, so that later waits are for it, and its nodes stamp when they
// run:
//
//   replay of A (records e)   asks: record 7 ....... runs ... node stamps record 7
//   replay of B (waits for e)        reads: 7 ...... node sleeps until record 7 has happened
//
// A later record on another stream may happen first; that does not mean that an earlier one has
// happened.
//
// All waits of a replay are resolved before its own records are asked for. So a wait always means
// work that was put on streams earlier, and no graph can wait for itself.
//
// Replays of one executable run one after the other, so the serials live in the nodes' arguments
// and are set by the command that runs the program.
// SPDX-License-Identifier: Apache-2.0

#include "backend/host/host_external.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/use_count.h"

// ---- what nodes run ---------------------------------------------------------------------------

// Room for the record before it is asked for, so that whatever happens to it can be noted.
static rondo_status promise_record(rondo__host_event *event) {
    pthread_mutex_lock(&event->lock);
    size_t wanted = (size_t)(event->record_serial - event->done_serial) + event->promised_count + 1;
    rondo_status status = RONDO__ARRAY_RESERVE(event->early, event->early_capacity, wanted);
    if (status == RONDO_STATUS_OK) {
        event->promised_count += 1;
    }
    pthread_mutex_unlock(&event->lock);
    return status;
}

static void break_promise(rondo__host_event *event) {
    pthread_mutex_lock(&event->lock);
    event->promised_count -= 1;
    pthread_mutex_unlock(&event->lock);
}

static uint64_t ask_record(rondo__host_event *event) {
    pthread_mutex_lock(&event->lock);
    event->promised_count -= 1;
    uint64_t serial = ++event->record_serial;
    pthread_mutex_unlock(&event->lock);
    return serial;
}

static uint64_t get_record_serial(rondo__host_event *event) {
    pthread_mutex_lock(&event->lock);
    uint64_t serial = event->record_serial;
    pthread_mutex_unlock(&event->lock);
    return serial;
}

// The caller holds the lock, here and below.
static size_t find_early(const rondo__host_event *event, uint64_t serial) {
    size_t at = 0;
    while (at < event->early_count && event->early[at] != serial) {
        ++at;
    }
    return at;
}

static bool has_happened(const rondo__host_event *event, uint64_t serial) {
    return serial <= event->done_serial || find_early(event, serial) < event->early_count;
}

static void note_happened(rondo__host_event *event, uint64_t serial) {
    if (serial != event->done_serial + 1) {
        event->early[event->early_count++] = serial;
        return;
    }
    event->done_serial = serial;
    size_t next = find_early(event, serial + 1);
    while (next < event->early_count) {
        event->done_serial += 1;
        event->early[next] = event->early[--event->early_count];
        next = find_early(event, event->done_serial + 1);
    }
}

static void wait_for_stamp(rondo__host_event *event, uint64_t serial) {
    pthread_mutex_lock(&event->lock);
    while (!has_happened(event, serial)) {
        pthread_cond_wait(&event->happened, &event->lock);
    }
    pthread_mutex_unlock(&event->lock);
}

static void stamp(rondo__host_event *event, uint64_t serial) {
    rondo__host_stamp_event(event, serial);
    pthread_mutex_lock(&event->lock);
    note_happened(event, serial);
    pthread_cond_broadcast(&event->happened);
    pthread_mutex_unlock(&event->lock);
}

static void run_record_node(void *data) {
    const rondo__host_external *node = data;
    stamp(node->event, node->serial);
}

static void run_wait_node(void *data) {
    const rondo__host_external *node = data;
    wait_for_stamp(node->event, node->serial);
}

rondo__host_external *rondo__host_get_external(void (*run)(void *), void *arguments) {
    return run == run_record_node || run == run_wait_node ? arguments : NULL;
}

rondo_status rondo__host_promise_externals(rondo__host_external *const *externals, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        rondo_status status =
            externals[i]->is_record ? promise_record(externals[i]->event) : RONDO_STATUS_OK;
        if (status != RONDO_STATUS_OK) {
            rondo__host_break_promises(externals, i);
            return status;
        }
    }
    return RONDO_STATUS_OK;
}

void rondo__host_break_promises(rondo__host_external *const *externals, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        if (externals[i]->is_record) {
            break_promise(externals[i]->event);
        }
    }
}

void rondo__host_ask_externals(rondo__host_external *const *externals, size_t count,
                               uint64_t *out_serials) {
    for (size_t i = 0; i < count; ++i) {
        if (!externals[i]->is_record) {
            out_serials[i] = get_record_serial(externals[i]->event);
        }
    }
    for (size_t i = 0; i < count; ++i) {
        if (externals[i]->is_record) {
            out_serials[i] = ask_record(externals[i]->event);
        }
    }
}

// ---- on a stream ------------------------------------------------------------------------------

static rondo_status record_node(rondo__host_stream *stream, rondo__host_event *event,
                                bool is_record, bool *out_was_recorded) {
    *out_was_recorded = false;
    if (atomic_load_explicit(&stream->capture, memory_order_acquire) == NULL) {
        return RONDO_STATUS_OK;
    }
    // A body may not run, or run often: a record and its waits would lose each other.
    RETURN_IF_ERROR(rondo__host_refuse_in_body(
        stream, is_record ? "rondo_event_record" : "rondo_stream_wait_event",
        is_record ? "records of external events" : "waits for external events"));
    rondo__host_external arguments;
    memset(&arguments, 0, sizeof arguments);
    arguments.event = event;
    arguments.is_record = is_record;
    rondo__host_node node = {.kind = is_record ? RONDO__NODE_EVENT_RECORD : RONDO__NODE_EVENT_WAIT,
                             .run = is_record ? run_record_node : run_wait_node,
                             .name = "",
                             .arguments = &arguments,
                             .argument_bytes = sizeof arguments};
    return rondo__host_record_node(stream, &node, out_was_recorded);
}

// Eagerly the event is retained until the command has run.
static void run_eager_record(void *data) {
    const rondo__host_external *command = data;
    stamp(command->event, command->serial);
    rondo__host_release_event(command->event);
}

static void run_eager_wait(void *data) {
    const rondo__host_external *command = data;
    wait_for_stamp(command->event, command->serial);
    rondo__host_release_event(command->event);
}

rondo_status rondo__host_record_external(rondo__host_event *event, rondo__host_stream *stream) {
    bool was_recorded;
    RETURN_IF_ERROR(record_node(stream, event, true, &was_recorded));
    if (was_recorded) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(promise_record(event));
    void *room;
    rondo_status status =
        rondo__host_submit(stream, run_eager_record, sizeof(rondo__host_external), &room);
    if (status != RONDO_STATUS_OK) {
        break_promise(event);
        return status;
    }
    *(rondo__host_external *)room =
        (rondo__host_external){.event = event, .serial = ask_record(event), .is_record = true};
    rondo__reference_take(&event->reference_count);
    rondo__host_publish(stream);
    return RONDO_STATUS_OK;
}

rondo_status rondo__host_wait_external(rondo__host_stream *stream, rondo__host_event *event) {
    bool was_recorded;
    RETURN_IF_ERROR(record_node(stream, event, false, &was_recorded));
    if (was_recorded || rondo__host_has_happened(event)) {
        return RONDO_STATUS_OK;
    }
    uint64_t serial = get_record_serial(event);
    void *room;
    RETURN_IF_ERROR(
        rondo__host_submit(stream, run_eager_wait, sizeof(rondo__host_external), &room));
    *(rondo__host_external *)room = (rondo__host_external){.event = event, .serial = serial};
    rondo__reference_take(&event->reference_count);
    rondo__host_publish(stream);
    return RONDO_STATUS_OK;
}

// ---- on the calling thread --------------------------------------------------------------------

bool rondo__host_has_happened(rondo__host_event *event) {
    pthread_mutex_lock(&event->lock);
    bool is_done = has_happened(event, event->record_serial);
    pthread_mutex_unlock(&event->lock);
    return is_done;
}

void rondo__host_wait_happened(rondo__host_event *event) {
    wait_for_stamp(event, get_record_serial(event));
}

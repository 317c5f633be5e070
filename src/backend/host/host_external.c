// backend/host/host_external.c — events that graphs record and wait for at each replay.
//
// An external event counts its records: `record_serial` is how often one was asked for,
// `stamp_serial` the latest that has happened. An eager record asks and puts a stamp on the stream.
// A replay asks when it is put on its stream, so that whoever waits from then on waits for it, and
// its nodes stamp when they run:
//
//   replay of A (records e)   asks: e.record_serial = 7 ... runs ... node stamps: stamp_serial = 7
//   replay of B (waits for e)        reads: target 7 .......... node sleeps until stamp_serial >= 7
//
// All waits of a replay are resolved before its own records are asked for. So a wait always means
// work that was put on streams earlier, and no graph can wait for itself.
//
// Replays of one executable run one after the other, so the serials live in the nodes' arguments
// and are set by the command that runs the program.
#include <string.h>

#include "backend/host/host_backend.h"

// ---- what nodes run ---------------------------------------------------------------------------

static uint64_t ask_record(rondo__host_event *event) {
    pthread_mutex_lock(&event->lock);
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

static void wait_for_stamp(rondo__host_event *event, uint64_t serial) {
    pthread_mutex_lock(&event->lock);
    while (event->stamp_serial < serial) {
        pthread_cond_wait(&event->happened, &event->lock);
    }
    pthread_mutex_unlock(&event->lock);
}

// A node that runs more often than its program (in the body of a loop) finds its serial used up and
// asks for another one by itself.
static void run_record_node(void *data) {
    rondo__host_external *node = data;
    uint64_t serial = node->serial != 0 ? node->serial : ask_record(node->event);
    node->serial = 0;
    rondo__host_stamp_event(node->event, serial);
}

static void run_wait_node(void *data) {
    const rondo__host_external *node = data;
    wait_for_stamp(node->event, node->serial);
}

rondo__host_external *rondo__host_get_external(void (*run)(void *), void *arguments) {
    return run == run_record_node || run == run_wait_node ? arguments : NULL;
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
    rondo__host_stamp_event(command->event, command->serial);
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
    void *room;
    RETURN_IF_ERROR(
        rondo__host_submit(stream, run_eager_record, sizeof(rondo__host_external), &room));
    *(rondo__host_external *)room =
        (rondo__host_external){.event = event, .serial = ask_record(event), .is_record = true};
    atomic_fetch_add_explicit(&event->reference_count, 1, memory_order_relaxed);
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
    atomic_fetch_add_explicit(&event->reference_count, 1, memory_order_relaxed);
    rondo__host_publish(stream);
    return RONDO_STATUS_OK;
}

// ---- on the calling thread --------------------------------------------------------------------

bool rondo__host_has_happened(rondo__host_event *event) {
    pthread_mutex_lock(&event->lock);
    bool has_happened = event->stamp_serial >= event->record_serial;
    pthread_mutex_unlock(&event->lock);
    return has_happened;
}

void rondo__host_wait_happened(rondo__host_event *event) {
    wait_for_stamp(event, get_record_serial(event));
}

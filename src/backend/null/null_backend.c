// backend/null/null_backend.c — the smallest backend: it has every object, runs no work, records
// nothing.
//
// It is the model of a new one (CONTRIBUTING.md, "Recipe: a backend"): copy the folder, then let
// one part after the other work, in the order of the sections below, and run
// `rondo_conformance NAME` after each. An entry that stays NULL is one of those that backend.h
// calls optional, or belongs to captures, which this backend refuses where they begin.
//
// Device memory is memory of the process. Work that is put on a stream is complete at once, because
// nothing runs.
#include "backend/null/null_backend.h"

#include <stdio.h>

#include "base/block.h"
#include "base/error.h"
#include "base/memory.h"

enum { ALIGNMENT = 512 };  // what pools promise for their blocks

// ---- the device -------------------------------------------------------------------------------

static int32_t count_devices(char *reason, size_t reason_bytes) {
    (void)reason;
    (void)reason_bytes;
    return 1;
}

static rondo_status describe_device(int32_t ordinal, rondo_device_info *out_info) {
    snprintf(out_info->name, sizeof out_info->name, "null:%d", (int)ordinal);
    snprintf(out_info->description, sizeof out_info->description, "nothing runs here");
    out_info->available = true;
    return RONDO_STATUS_OK;
}

static rondo_status open_device(int32_t ordinal, rondo_device **out_device) {
    rondo_device *device = rondo__calloc(1, sizeof *device);
    if (device == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    device->ordinal = ordinal;
    snprintf(device->name, sizeof device->name, "null:%d", (int)ordinal);
    atomic_init(&device->reference_count, 1);
    *out_device = device;
    return RONDO_STATUS_OK;
}

static void close_device(rondo_device *device) {
    rondo__free(device);
}

static rondo_status synchronize_device(rondo_device *device) {
    (void)device;
    return RONDO_STATUS_OK;
}

// ---- memory -----------------------------------------------------------------------------------

static rondo_status allocate(rondo_device *device, rondo_memory_kind kind, size_t bytes,
                             void **out_address) {
    (void)device;
    (void)kind;
    *out_address = rondo__block_allocate(bytes, ALIGNMENT);
    return *out_address != NULL ? RONDO_STATUS_OK : RONDO_STATUS_NO_MEMORY;
}

static void deallocate(rondo_device *device, rondo_memory_kind kind, void *address) {
    (void)device;
    (void)kind;
    rondo__block_free(address);
}

// ---- streams and events -----------------------------------------------------------------------

static rondo_status create_stream(rondo_device *device, int32_t priority,
                                  rondo_stream **out_stream) {
    (void)priority;
    rondo_stream *stream = rondo__calloc(1, sizeof *stream);
    if (stream == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    stream->device = device;
    *out_stream = stream;
    return RONDO_STATUS_OK;
}

static bool destroy_stream(rondo_stream *stream) {
    rondo__free(stream);
    return true;
}

static rondo_status synchronize_stream(rondo_stream *stream) {
    (void)stream;
    return RONDO_STATUS_OK;
}

static rondo_status query_stream(rondo_stream *stream, bool *out_is_idle) {
    (void)stream;
    *out_is_idle = true;
    return RONDO_STATUS_OK;
}

static rondo_status wait_event(rondo_stream *stream, rondo_event *event) {
    (void)stream;
    (void)event;
    return RONDO_STATUS_OK;
}

static rondo_status create_event(rondo_device *device, uint32_t flags, rondo_event **out_event) {
    rondo_event *event = rondo__calloc(1, sizeof *event);
    if (event == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    event->device = device;
    event->flags = flags;
    *out_event = event;
    return RONDO_STATUS_OK;
}

static void destroy_event(rondo_event *event) {
    rondo__free(event);
}

static rondo_status record_event(rondo_event *event, rondo_stream *stream) {
    (void)event;
    (void)stream;
    return RONDO_STATUS_OK;
}

static rondo_status query_event(rondo_event *event, bool *out_is_complete) {
    (void)event;
    *out_is_complete = true;
    return RONDO_STATUS_OK;
}

static rondo_status synchronize_event(rondo_event *event) {
    (void)event;
    return RONDO_STATUS_OK;
}

static rondo_status get_elapsed_ns(rondo_event *start, rondo_event *end, int64_t *out_ns) {
    *out_ns = 0;
    bool were_recorded = atomic_load(&start->was_recorded) && atomic_load(&end->was_recorded);
    return were_recorded
               ? RONDO_STATUS_OK
               : RONDO_FAIL_AS("rondo_event_get_elapsed_ns", STATE,
                               "an event was never recorded; record it on a stream first");
}

// ---- work -------------------------------------------------------------------------------------

static rondo_status copy(rondo_stream *stream, void *destination, const void *source, size_t bytes,
                         rondo_copy_kind kind) {
    (void)stream;
    (void)destination;
    (void)source;
    (void)bytes;
    (void)kind;
    return RONDO_STATUS_OK;
}

static rondo_status fill(rondo_stream *stream, void *destination, uint32_t value,
                         uint32_t element_bytes, size_t count) {
    (void)stream;
    (void)destination;
    (void)value;
    (void)element_bytes;
    (void)count;
    return RONDO_STATUS_OK;
}

static rondo_status call_host(rondo_stream *stream, const char *name, rondo_host_function function,
                              const void *arguments, size_t argument_bytes) {
    (void)stream;
    (void)name;
    (void)function;
    (void)arguments;
    (void)argument_bytes;
    return RONDO_STATUS_OK;
}

static rondo_status launch(rondo_stream *stream, const rondo_launch *launch) {
    (void)stream;
    (void)launch;
    return RONDO_STATUS_OK;
}

// ---- captures ---------------------------------------------------------------------------------

static rondo_status begin_capture(rondo_stream *stream, rondo_capture_mode mode, uint64_t *out_id) {
    (void)mode;
    (void)out_id;
    return RONDO_FAIL_AS("rondo_graph_capture_begin", UNSUPPORTED,
                         "device %s records nothing; open host or cuda:0", stream->device->name);
}

static rondo_status get_capture_state(rondo_stream *stream, rondo__capture_state *out_state) {
    (void)stream;
    *out_state = RONDO__CAPTURE_NONE;
    return RONDO_STATUS_OK;
}

static rondo_status get_capture_id(rondo_stream *stream, rondo__capture_state *out_state,
                                   uint64_t *out_id) {
    *out_id = 0;
    return get_capture_state(stream, out_state);
}

static rondo_status get_position(rondo_stream *stream, rondo__capture_state *out_state,
                                 uint64_t *out_id, rondo__node_handle *nodes, size_t capacity,
                                 size_t *out_count) {
    (void)nodes;
    (void)capacity;
    *out_count = 0;
    return get_capture_id(stream, out_state, out_id);
}

static rondo_status check_feature(rondo_device *device, rondo_feature feature) {
    (void)feature;
    return RONDO_FAIL_AS("rondo_device_supports", UNSUPPORTED, "device %s runs nothing",
                         device->name);
}

// ---- the table --------------------------------------------------------------------------------

const rondo__backend rondo__backend_null = {
    .name = "null",
    .count_devices = count_devices,
    .describe_device = describe_device,
    .open_device = open_device,
    .close_device = close_device,
    .synchronize_device = synchronize_device,
    .allocate = allocate,
    .deallocate = deallocate,
    .create_stream = create_stream,
    .destroy_stream = destroy_stream,
    .synchronize_stream = synchronize_stream,
    .query_stream = query_stream,
    .wait_event = wait_event,
    .create_event = create_event,
    .destroy_event = destroy_event,
    .record_event = record_event,
    .record_from_outside = record_event,
    .query_event = query_event,
    .synchronize_event = synchronize_event,
    .get_elapsed_ns = get_elapsed_ns,
    .copy = copy,
    .fill = fill,
    .call_host = call_host,
    .launch = launch,
    .begin_capture = begin_capture,
    .get_capture_state = get_capture_state,
    .get_capture_id = get_capture_id,
    .get_position = get_position,
    .check_feature = check_feature,
};

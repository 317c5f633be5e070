// backend/null/null_backend.c — the smallest backend: it has every object, records the structure of
// captures, and runs nothing.
//
// It is the recipe for a new one (CONTRIBUTING.md, "Recipe: a backend"): copy the folder, then let
// one part after the other work, in the order of the sections below, and run
// `rondo_conformance NAME` after each. An entry that stays NULL is one that backend.h calls
// optional, or belongs to conditional nodes, which check_feature refuses.
//
// Device memory is memory of the process. Work that is put on a stream is complete at once, because
// nothing runs.
// SPDX-License-Identifier: Apache-2.0

#include <stdio.h>

#include "backend/null/null_capture.h"
#include "base/block.h"
#include "base/error.h"
#include "base/memory.h"

enum { ALIGNMENT = 512 };  // what pools promise for their blocks

// Memory that the device claims to have: more than any test takes, and less than the heap promises
// without looking.
static const size_t memory_bytes = (size_t)1 << 36;

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
    *out_address = bytes <= memory_bytes ? rondo__block_allocate(bytes, ALIGNMENT) : NULL;
    if (*out_address != NULL) {
        return RONDO_STATUS_OK;
    }
    return rondo__error_set(
        kind == RONDO_MEMORY_PINNED ? RONDO_STATUS_NO_MEMORY : RONDO_STATUS_NO_DEVICE_MEMORY, 0, "",
        __FILE__, __LINE__, "rondo_memory_allocate", "device %s has no %zu bytes of memory",
        device->name, bytes);
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
    rondo__null_stream *stream = rondo__calloc(1, sizeof *stream);
    if (stream == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    stream->head.device = device;
    *out_stream = &stream->head;
    return RONDO_STATUS_OK;
}

static bool destroy_stream(rondo_stream *stream) {
    rondo__null_leave(stream);
    rondo__free(((rondo__null_stream *)stream)->place.nodes);
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

static rondo_status create_event(rondo_device *device, uint32_t flags, rondo_event **out_event) {
    if ((flags & RONDO_EVENT_EXTERNAL) != 0) {
        return RONDO_FAIL_AS("rondo_event_create", UNSUPPORTED,
                             "device %s has no external events; open host or cuda:0", device->name);
    }
    rondo__null_event *event = rondo__calloc(1, sizeof *event);
    if (event == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    event->head.device = device;
    event->head.flags = flags;
    *out_event = &event->head;
    return RONDO_STATUS_OK;
}

static void destroy_event(rondo_event *event) {
    rondo__free(((rondo__null_event *)event)->place.nodes);
    rondo__free(event);
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
    rondo__node_info info = {.kind = RONDO__NODE_COPY,
                             .name = "",
                             .copy_kind = kind,
                             .destination = destination,
                             .source = source,
                             .byte_count = bytes,
                             .width = bytes,
                             .height = 1,
                             .depth = 1};
    return rondo__null_record(stream, &info, NULL, 0);
}

static rondo_status fill(rondo_stream *stream, void *destination, uint32_t value,
                         uint32_t element_bytes, size_t count) {
    rondo__node_info info = {.kind = RONDO__NODE_FILL,
                             .name = "",
                             .destination = destination,
                             .byte_count = (uint64_t)count * element_bytes,
                             .fill_value = value,
                             .element_bytes = element_bytes,
                             .width = count,
                             .height = 1};
    return rondo__null_record(stream, &info, NULL, 0);
}

static rondo_status call_host(rondo_stream *stream, const char *name, rondo_host_function function,
                              const void *arguments, size_t argument_bytes) {
    (void)function;
    rondo__node_info info = {.kind = RONDO__NODE_HOST, .name = name};
    return rondo__null_record(stream, &info, arguments, argument_bytes);
}

static rondo_status launch(rondo_stream *stream, const rondo_launch *launch) {
    rondo__node_info info = {.kind = RONDO__NODE_KERNEL,
                             .name = launch->name != NULL ? launch->name : "",
                             .grid = {launch->grid[0], launch->grid[1], launch->grid[2]},
                             .block = {launch->block[0], launch->block[1], launch->block[2]},
                             .shared_bytes = launch->shared_bytes};
    return rondo__null_record(stream, &info, launch->arguments, launch->argument_bytes);
}

// ---- what only other backends can -------------------------------------------------------------

static rondo_status check_feature(rondo_device *device, rondo_feature feature) {
    (void)feature;
    return RONDO_FAIL_AS("rondo_device_supports", UNSUPPORTED,
                         "device %s has no conditional nodes; open host or cuda:0", device->name);
}

static rondo_status add_child(rondo_stream *stream, rondo__template *template_) {
    (void)template_;
    return RONDO_FAIL_AS("rondo_stream_add_graph", UNSUPPORTED,
                         "device %s has no graphs inside graphs; open host or cuda:0",
                         stream->device->name);
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
    .wait_event = rondo__null_wait_event,
    .create_event = create_event,
    .destroy_event = destroy_event,
    .record_event = rondo__null_record_event,
    .record_from_outside = rondo__null_record_from_outside,
    .query_event = query_event,
    .synchronize_event = synchronize_event,
    .get_elapsed_ns = get_elapsed_ns,
    .copy = copy,
    .fill = fill,
    .call_host = call_host,
    .launch = launch,
    .begin_capture = rondo__null_begin_capture,
    .get_capture_state = rondo__null_get_capture_state,
    .end_capture = rondo__null_end_capture,
    .get_capture_id = rondo__null_get_capture_id,
    .get_frontier = rondo__null_get_frontier,
    .get_position = rondo__null_get_position,
    .get_predecessors = rondo__null_get_predecessors,
    .add_dependencies = rondo__null_add_dependencies,
    .count_recorded = rondo__null_count_recorded,
    .describe_recorded = rondo__null_describe_recorded,
    .destroy_template = rondo__null_destroy_template,
    .count_nodes = rondo__null_count_nodes,
    .count_kinds = rondo__null_count_kinds,
    .describe_node = rondo__null_describe_node,
    .list_handles = rondo__null_list_handles,
    .list_edges = rondo__null_list_edges,
    .visit_arguments = rondo__null_visit_arguments,
    .instantiate = rondo__null_instantiate,
    .update = rondo__null_update,
    .upload = rondo__null_run,
    .replay = rondo__null_run,
    .destroy_executable = rondo__null_destroy_executable,
    .check_feature = check_feature,
    .add_child = add_child,
};

// backend/host/host_device.c — the host as a device, and its table of functions.
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "backend/host/host_backend.h"
#include "backend/host/host_patience.h"
#include "base/memory.h"

static int32_t count_devices(char *reason, size_t reason_bytes) {
    if (reason_bytes > 0) {
        reason[0] = '\0';
    }
    return 1;
}

// Copies the value of the first line of `path` that starts with `key`, without "key :".
static bool read_value(const char *path, const char *key, char *value, size_t value_bytes) {
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    bool was_found = false;
    char line[256];
    while (!was_found && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, key, strlen(key)) != 0) {
            continue;
        }
        const char *text = line + strlen(key);
        text += strspn(text, " \t:");
        size_t length = strcspn(text, "\n");
        length = length < value_bytes - 1 ? length : value_bytes - 1;
        memcpy(value, text, length);
        value[length] = '\0';
        was_found = true;
    }
    fclose(file);
    return was_found;
}

static rondo_status describe_device(int32_t ordinal, rondo_device_info *out_info) {
    (void)ordinal;
    rondo_device_info info = {.available = true,
                              .compute_units = rondo__host_get_processor_count()};
    snprintf(info.name, sizeof info.name, "host");
    if (!read_value("/proc/cpuinfo", "model name", info.description, sizeof info.description)) {
        snprintf(info.description, sizeof info.description, "processor of this machine");
    }
    struct sysinfo facts;
    if (sysinfo(&facts) == 0) {
        info.memory_bytes = (uint64_t)facts.totalram * facts.mem_unit;
        info.free_bytes = (uint64_t)facts.freeram * facts.mem_unit;
    }
    // What the page cache would give back counts as free.
    char text[64];
    unsigned long long kibibytes = 0;
    if (read_value("/proc/meminfo", "MemAvailable", text, sizeof text) &&
        sscanf(text, "%llu", &kibibytes) == 1) {
        info.free_bytes = (uint64_t)kibibytes * 1024;
    }
    *out_info = info;
    return RONDO_STATUS_OK;
}

static rondo_status open_device(int32_t ordinal, rondo_device **out_device) {
    rondo__host_device *device = rondo__calloc(1, sizeof *device);
    if (device == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    device->team = rondo__host_team_create();
    if (device->team == NULL) {
        rondo__free(device);
        return RONDO_STATUS_NO_MEMORY;
    }
    struct sysinfo facts;
    device->memory_bytes = sysinfo(&facts) == 0
                               ? ((uint64_t)facts.totalram + facts.totalswap) * facts.mem_unit
                               : UINT64_MAX;
    device->head.backend = &rondo__backend_host;
    device->head.ordinal = ordinal;
    snprintf(device->head.name, sizeof device->head.name, "host");
    atomic_init(&device->head.reference_count, 1);
    pthread_mutex_init(&device->lock, NULL);
    pthread_mutex_init(&device->capture_lock, NULL);
    pthread_mutex_init(&device->memory_lock, NULL);
    *out_device = &device->head;
    return RONDO_STATUS_OK;
}

static void close_device(rondo_device *device_) {
    rondo__host_device *device = rondo__host_device_of(device_);
    rondo__host_team_destroy(device->team);
    rondo__host_patience_end();
    pthread_mutex_destroy(&device->lock);
    pthread_mutex_destroy(&device->capture_lock);
    pthread_mutex_destroy(&device->memory_lock);
    rondo__free(device->areas);
    rondo__free(device);
}

// A lane and how far it has to come.
typedef struct lane_target {
    rondo__host_lane *lane;
    uint64_t position;
} lane_target;

static rondo_status synchronize_device(rondo_device *device_) {
    rondo__host_device *device = rondo__host_device_of(device_);
    // The streams are noted under the lock and waited for without it: they may be destroyed
    // meanwhile, their lanes stay.
    rondo_status status = RONDO_STATUS_OK;
    void *targets = NULL;
    size_t capacity = 0;
    size_t count = 0;
    pthread_mutex_lock(&device->lock);
    for (rondo__host_stream *stream = device->streams; stream != NULL && status == RONDO_STATUS_OK;
         stream = stream->next) {
        status = rondo__array_reserve(&targets, &capacity, count + 1, sizeof(lane_target));
        if (status == RONDO_STATUS_OK) {
            ((lane_target *)targets)[count++] =
                (lane_target){.lane = rondo__host_lane_retain(stream->lane),
                              .position = atomic_load(&stream->published)};
        }
    }
    pthread_mutex_unlock(&device->lock);
    for (size_t i = 0; i < count; ++i) {
        lane_target *target = &((lane_target *)targets)[i];
        if (status == RONDO_STATUS_OK) {
            rondo__host_lane_wait(target->lane, target->position);
            status = rondo__failure_take(&target->lane->failure);
        }
        rondo__host_lane_release(target->lane);
    }
    rondo__free(targets);
    return status;
}

const rondo__backend rondo__backend_host = {
    .name = "host",
    .count_devices = count_devices,
    .describe_device = describe_device,
    .open_device = open_device,
    .close_device = close_device,
    .synchronize_device = synchronize_device,
    .allocate = rondo__host_allocate,
    .deallocate = rondo__host_deallocate,
    .is_pageable = rondo__host_is_pageable,
    .create_stream = rondo__host_create_stream,
    .wrap_stream = NULL,
    .destroy_stream = rondo__host_destroy_stream,
    .synchronize_stream = rondo__host_synchronize_stream,
    .drain_stream = rondo__host_drain_stream,
    .query_stream = rondo__host_query_stream,
    .wait_event = rondo__host_wait_event,
    .create_event = rondo__host_create_event,
    .destroy_event = rondo__host_destroy_event,
    .record_event = rondo__host_record_event,
    .record_from_outside = rondo__host_record_from_outside,
    .query_event = rondo__host_query_event,
    .synchronize_event = rondo__host_synchronize_event,
    .get_elapsed_ms = rondo__host_get_elapsed_ms,
    .copy = rondo__host_copy,
    .fill = rondo__host_fill,
    .call_host = rondo__host_call,
    .launch = rondo__host_launch,
    .begin_capture = rondo__host_begin_capture,
    .get_capture_state = rondo__host_get_capture_state,
    .get_capture_id = rondo__host_get_capture_id,
    .get_frontier = rondo__host_get_frontier,
    .get_position = rondo__host_get_position,
    .get_predecessors = rondo__host_get_predecessors,
    .add_dependencies = rondo__host_add_dependencies,
    .count_recorded = rondo__host_count_recorded,
    .describe_recorded = rondo__host_describe_recorded,
    .end_capture = rondo__host_end_capture,
    .check_feature = rondo__host_check_feature,
    .add_conditional = rondo__host_add_conditional,
    .begin_body = rondo__host_begin_body,
    .end_body = rondo__host_end_body,
    .release_conditional = rondo__host_release_conditional,
    .destroy_template = rondo__host_destroy_template,
    .count_nodes = rondo__host_count_nodes,
    .count_kinds = rondo__host_count_kinds,
    .describe_node = rondo__host_describe_node,
    .list_handles = rondo__host_list_handles,
    .list_edges = rondo__host_list_edges,
    .visit_arguments = rondo__host_visit_arguments,
    .get_child = rondo__host_get_child,
    .add_child = rondo__host_add_child,
    .get_body = rondo__host_get_body,
    .instantiate = rondo__host_instantiate,
    .update = rondo__host_update,
    .upload = rondo__host_upload,
    .replay = rondo__host_replay,
    .count_executed = rondo__host_count_executed,
    .destroy_executable = rondo__host_destroy_executable,
    .get_native_template = NULL,
    .get_native_executable = NULL,
    .get_function = NULL,
};

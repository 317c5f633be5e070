// backend/host/host_device.c — the host as a device, and its table of functions.
// SPDX-License-Identifier: Apache-2.0

#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "backend/backend.h"
#include "backend/host/host_device.h"
#include "backend/host/host_stream.h"
#include "backend/host/host_team.h"
#include "base/memory.h"
#include "base/thread_count.h"

int32_t rondo__host_count_devices(char *reason, size_t reason_bytes) {
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

rondo_status rondo__host_describe_device(int32_t ordinal, rondo_device_info *out_info) {
    (void)ordinal;
    rondo_device_info info = {.struct_size = sizeof info,
                              .available = true,
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
    // Memory that the page cache would give back counts as free.
    char text[64];
    unsigned long long kibibytes = 0;
    if (read_value("/proc/meminfo", "MemAvailable", text, sizeof text) &&
        sscanf(text, "%llu", &kibibytes) == 1) {
        info.free_bytes = (uint64_t)kibibytes * 1024;
    }
    *out_info = info;
    return RONDO_STATUS_OK;
}

rondo_status rondo__host_open_device(int32_t ordinal, rondo_device **out_device) {
    rondo__host_device *device = rondo__calloc(1, sizeof *device);
    if (device == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    device->team = rondo__host_team_create();
    device->workers = rondo__workers_create(rondo__host_get_processor_count(), false);
    if (device->team == NULL || device->workers == NULL) {
        rondo__host_team_destroy(device->team);
        rondo__workers_release(device->workers);
        rondo__free(device);
        return RONDO_STATUS_NO_MEMORY;
    }
    struct sysinfo facts;
    device->memory_bytes = sysinfo(&facts) == 0
                               ? ((uint64_t)facts.totalram + facts.totalswap) * facts.mem_unit
                               : UINT64_MAX;
    device->head.ordinal = ordinal;
    snprintf(device->head.name, sizeof device->head.name, "host");
    atomic_init(&device->head.reference_count, 1);
    pthread_mutex_init(&device->lock, NULL);
    pthread_mutex_init(&device->capture_lock, NULL);
    *out_device = &device->head;
    return RONDO_STATUS_OK;
}

void rondo__host_close_device(rondo_device *device_) {
    rondo__host_device *device = rondo__host_device_of(device_);
    rondo__host_team_destroy(device->team);
    rondo__workers_release(device->workers);
    pthread_mutex_destroy(&device->lock);
    pthread_mutex_destroy(&device->capture_lock);
    rondo__free(device);
}

// A host lane and how far it has to come.
typedef struct lane_target {
    rondo__host_lane *lane;
    uint64_t position;
} lane_target;

rondo_status rondo__host_synchronize_device(rondo_device *device_) {
    rondo__host_device *device = rondo__host_device_of(device_);
    // The streams are noted under the lock and waited for without it: they may be destroyed
    // meanwhile, their lanes stay.
    rondo_status status = RONDO_STATUS_OK;
    lane_target *targets = NULL;
    size_t capacity = 0;
    size_t count = 0;
    pthread_mutex_lock(&device->lock);
    for (rondo__host_stream *stream = device->streams; stream != NULL && status == RONDO_STATUS_OK;
         stream = stream->next) {
        status = RONDO__ARRAY_RESERVE(targets, capacity, count + 1);
        if (status == RONDO_STATUS_OK) {
            targets[count++] = (lane_target){.lane = rondo__host_lane_retain(stream->lane),
                                             .position = atomic_load(&stream->published)};
        }
    }
    pthread_mutex_unlock(&device->lock);
    for (size_t i = 0; i < count; ++i) {
        lane_target *target = &targets[i];
        if (status == RONDO_STATUS_OK) {
            status = rondo__host_lane_wait_outside(target->lane, target->position);
        }
        if (status == RONDO_STATUS_OK) {
            status = rondo__failure_take(&target->lane->failure);
        }
        rondo__host_lane_release(target->lane);
    }
    rondo__free(targets);
    return status;
}

// backend/device.c — the device registry, and the calls on devices and their memory.
//
// The registry is process-wide state, the only one besides the log sink: it makes two opens of one
// device give one object. It holds no reference of its own; the last release takes the device out.
//
// Fork: threads and drivers do not survive into the child, so the child's handler marks every open
// device lost and forgets it. Old handles then answer LOST, and destroying them touches nothing; a
// fresh open works.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "backend/blame.h"
#include "backend/captured.h"
#include "backend/check.h"
#include "backend/forbid.h"
#include "base/logging.h"
#include "base/memory.h"
#include "base/text.h"

static const rondo__backend *const default_backends[] = {
    &rondo__backend_host,
    &rondo__backend_cuda,
    NULL,
};
const rondo__backend *const *rondo__backend_list = default_backends;

static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static rondo_device **open_devices;  // guarded by registry_lock
static size_t open_count;            // guarded by registry_lock
static size_t open_capacity;         // guarded by registry_lock
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

// ---- checks -----------------------------------------------------------------------------------

rondo_status rondo__check_fail_null(const char *call, const char *argument) {
    return RONDO_FAIL_AS(call, INVALID, "argument \"%s\" is NULL", argument);
}

rondo_status rondo__check_fail_lost(const rondo_device *device, const char *call) {
    return RONDO_FAIL_AS(
        call, LOST, "device %s is lost: %s", device->name,
        atomic_load(&device->is_forked)
            ? "it was opened before a fork; open it again in this process"
            : "an earlier failure poisoned it; destroy its objects and start the process again");
}

// ---- fork -------------------------------------------------------------------------------------

static void before_fork(void) {
    pthread_mutex_lock(&registry_lock);
}

static void after_fork_in_parent(void) {
    pthread_mutex_unlock(&registry_lock);
}

static void after_fork_in_child(void) {
    for (size_t i = 0; i < open_count; ++i) {
        atomic_store(&open_devices[i]->is_forked, true);
        atomic_store(&open_devices[i]->is_lost, true);
    }
    open_count = 0;
    pthread_mutex_unlock(&registry_lock);
}

static void install_fork_handlers(void) {
    if (pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) != 0) {
        RONDO_LOG_WARN_F("no memory for a fork handler: do not use open devices after a fork");
    }
}

// ---- listing ----------------------------------------------------------------------------------

static void describe_or_explain(const rondo__backend *backend, int32_t ordinal,
                                rondo_device_info *out_info) {
    memset(out_info, 0, sizeof *out_info);
    if (backend->describe_device(ordinal, out_info) != RONDO_STATUS_OK) {
        memset(out_info, 0, sizeof *out_info);
        snprintf(out_info->name, sizeof out_info->name, "%s:%d", backend->name, (int)ordinal);
        snprintf(out_info->reason, sizeof out_info->reason, "%s", rondo_error_get_last()->message);
    }
}

rondo_status rondo_device_list(rondo_device_info *infos, size_t capacity, size_t *out_count) {
    RETURN_IF_ERROR(rondo__check_pointer(out_count, __func__, "out_count"));
    *out_count = 0;
    if (capacity > 0) {
        RETURN_IF_ERROR(rondo__check_pointer(infos, __func__, "infos"));
    }
    // What a device lacks is told in its entry; the caller's record stays as it was.
    rondo_error saved;
    rondo__error_save(&saved);
    size_t count = 0;
    for (const rondo__backend *const *backend = rondo__backend_list; *backend != NULL; ++backend) {
        char reason[sizeof infos->reason] = "";
        int32_t devices = (*backend)->count_devices(reason, sizeof reason);
        if (devices <= 0) {
            if (count < capacity) {
                memset(&infos[count], 0, sizeof infos[count]);
                snprintf(infos[count].name, sizeof infos[count].name, "%s", (*backend)->name);
                snprintf(infos[count].reason, sizeof infos[count].reason, "%s",
                         reason[0] != '\0' ? reason : "no device was found");
            }
            ++count;
        }
        for (int32_t i = 0; i < devices; ++i) {
            if (count < capacity) {
                describe_or_explain(*backend, i, &infos[count]);
            }
            ++count;
        }
    }
    rondo__error_restore(&saved);
    *out_count = count;
    return RONDO_STATUS_OK;
}

// ---- opening ----------------------------------------------------------------------------------

// One more reference to an open device, or a newly opened one.
static rondo_status open_ordinal(const rondo__backend *backend, int32_t ordinal,
                                 rondo_device **out_device) {
    pthread_once(&fork_once, install_fork_handlers);
    pthread_mutex_lock(&registry_lock);
    rondo_status status = RONDO_STATUS_OK;
    rondo_device *device = NULL;
    for (size_t i = 0; i < open_count; ++i) {
        if (open_devices[i]->backend == backend && open_devices[i]->ordinal == ordinal) {
            device = open_devices[i];
            rondo_device_retain(device);
            goto unlock;
        }
    }
    void *devices = open_devices;
    status = rondo__array_reserve(&devices, &open_capacity, open_count + 1, sizeof(rondo_device *));
    open_devices = devices;
    if (status != RONDO_STATUS_OK) {
        goto unlock;
    }
    status = backend->open_device(ordinal, &device);
    if (status == RONDO_STATUS_OK) {
        device->backend = backend;
        pthread_mutex_init(&device->capture_list_lock, NULL);
        pthread_mutex_init(&device->captured_lock, NULL);
        rondo__areas_init(&device->areas);
    }
    if (status == RONDO_STATUS_OK) {
        open_devices[open_count++] = device;
    }
    if (open_count == 0) {
        rondo__free(open_devices);
        open_devices = NULL;
        open_capacity = 0;
    }
unlock:
    pthread_mutex_unlock(&registry_lock);
    if (status == RONDO_STATUS_OK) {
        *out_device = device;
    }
    return status;
}

static rondo_status open_auto(rondo_device **out_device) {
    char reason[256] = "";
    rondo_error saved;
    rondo__error_save(&saved);
    for (const rondo__backend *const *backend = rondo__backend_list; *backend != NULL; ++backend) {
        if (*backend == &rondo__backend_host) {
            continue;
        }
        int32_t devices = (*backend)->count_devices(reason, sizeof reason);
        for (int32_t i = 0; i < devices; ++i) {
            if (open_ordinal(*backend, i, out_device) == RONDO_STATUS_OK) {
                rondo__error_restore(&saved);
                return RONDO_STATUS_OK;
            }
            RONDO_LOG_WARN_F("%s:%d cannot be used: %s", (*backend)->name, (int)i,
                             rondo_error_get_last()->message);
        }
    }
    rondo__error_restore(&saved);
    return open_ordinal(&rondo__backend_host, 0, out_device);
}

static rondo_status fail_unknown(const char *name) {
    rondo__text names = {0};
    for (const rondo__backend *const *backend = rondo__backend_list; *backend != NULL; ++backend) {
        char reason[256] = "";
        int32_t devices = (*backend)->count_devices(reason, sizeof reason);
        for (int32_t i = 0; i < devices; ++i) {
            if (*backend == &rondo__backend_host) {
                rondo__text_append(&names, "%s, ", (*backend)->name);
            } else {
                rondo__text_append(&names, "%s:%d, ", (*backend)->name, (int)i);
            }
        }
    }
    rondo_status status = RONDO_FAIL_AS("rondo_device_open", INVALID,
                                        "there is no device \"%.60s\"; use one of: %sauto", name,
                                        names.bytes != NULL ? names.bytes : "");
    rondo__text_deinit(&names);
    return status;
}

// Splits "cuda:3" into a backend and 3; "host" is whole. NULL when it names no backend.
static const rondo__backend *parse_name(const char *name, int32_t *out_ordinal) {
    *out_ordinal = 0;
    for (const rondo__backend *const *backend = rondo__backend_list; *backend != NULL; ++backend) {
        size_t length = strlen((*backend)->name);
        if (strncmp(name, (*backend)->name, length) != 0) {
            continue;
        }
        const char *rest = name + length;
        if (*backend == &rondo__backend_host) {
            if (*rest == '\0') {
                return *backend;
            }
            continue;
        }
        if (rest[0] != ':' || rest[1] < '0' || rest[1] > '9') {
            continue;
        }
        char *end = NULL;
        unsigned long value = strtoul(rest + 1, &end, 10);
        if (*end == '\0' && value <= 9999) {
            *out_ordinal = (int32_t)value;
            return *backend;
        }
    }
    return NULL;
}

rondo_status rondo_device_open(const char *name, rondo_device **out_device) {
    RETURN_IF_ERROR(rondo__check_pointer(out_device, __func__, "out_device"));
    *out_device = NULL;
    RETURN_IF_ERROR(rondo__check_pointer(name, __func__, "name"));
    if (strcmp(name, "auto") == 0) {
        return open_auto(out_device);
    }
    int32_t ordinal;
    const rondo__backend *backend = parse_name(name, &ordinal);
    if (backend == NULL) {
        return fail_unknown(name);
    }
    char reason[256] = "";
    int32_t devices = backend->count_devices(reason, sizeof reason);
    if (devices <= 0) {
        return RONDO_FAIL(UNAVAILABLE, "device %s cannot be used: %s", name, reason);
    }
    if (ordinal >= devices) {
        return fail_unknown(name);
    }
    return open_ordinal(backend, ordinal, out_device);
}

void rondo_device_retain(rondo_device *device) {
    if (device != NULL) {
        atomic_fetch_add_explicit(&device->reference_count, 1, memory_order_relaxed);
    }
}

void rondo_device_release(rondo_device *device) {
    if (device == NULL) {
        return;
    }
    // Not the last one: no lock needed.
    int count = atomic_load_explicit(&device->reference_count, memory_order_relaxed);
    while (count > 1) {
        if (atomic_compare_exchange_weak_explicit(&device->reference_count, &count, count - 1,
                                                  memory_order_release, memory_order_relaxed)) {
            return;
        }
    }
    // Perhaps the last one. Under the lock nobody can find the device any more, or it was found
    // just before and lives on.
    pthread_mutex_lock(&registry_lock);
    if (atomic_fetch_sub_explicit(&device->reference_count, 1, memory_order_acq_rel) == 1) {
        for (size_t i = 0; i < open_count; ++i) {
            if (open_devices[i] == device) {
                open_devices[i] = open_devices[--open_count];
                break;
            }
        }
        if (open_count == 0) {
            rondo__free(open_devices);
            open_devices = NULL;
            open_capacity = 0;
        }
        if (!atomic_load(&device->is_forked)) {
            // Closed under the lock, so that a new open does not meet a half closed device.
            pthread_mutex_destroy(&device->capture_list_lock);
            pthread_mutex_destroy(&device->captured_lock);
            rondo__areas_deinit(&device->areas);
            device->backend->close_device(device);
        }
    }
    pthread_mutex_unlock(&registry_lock);
}

void rondo__device_visit_others(const rondo_device *device,
                                void (*visit)(rondo_device *other, void *data), void *data) {
    pthread_mutex_lock(&registry_lock);
    for (size_t i = 0; i < open_count; ++i) {
        if (open_devices[i] != device) {
            visit(open_devices[i], data);
        }
    }
    pthread_mutex_unlock(&registry_lock);
}

// ---- calls on a device ------------------------------------------------------------------------

rondo_status rondo_device_get_info(rondo_device *device, rondo_device_info *out_info) {
    RETURN_IF_ERROR(rondo__check_pointer(out_info, __func__, "out_info"));
    memset(out_info, 0, sizeof *out_info);
    RETURN_IF_ERROR(rondo__check_device(device, __func__));
    return device->backend->describe_device(device->ordinal, out_info);
}

const char *rondo_device_get_name(const rondo_device *device) {
    return device != NULL ? device->name : "";
}

bool rondo_device_is_host(const rondo_device *device) {
    return device != NULL && device->backend == &rondo__backend_host;
}

rondo_status rondo_device_synchronize(rondo_device *device) {
    RETURN_IF_ERROR(rondo__check_device(device, __func__));
    RETURN_IF_ERROR(rondo__forbid_device_wait(device, __func__));
    RETURN_IF_ERROR(rondo__mark_call(device, NULL, RONDO_CAUSE_SYNCHRONIZE,
                                     device->backend->synchronize_device(device)));
    return rondo__failure_take(&device->failure);
}

rondo_status rondo_memory_allocate(rondo_device *device, rondo_memory_kind kind, size_t bytes,
                                   void **out_address) {
    RETURN_IF_ERROR(rondo__check_pointer(out_address, __func__, "out_address"));
    *out_address = NULL;
    RETURN_IF_ERROR(rondo__check_device(device, __func__));
    if (kind != RONDO_MEMORY_DEVICE && kind != RONDO_MEMORY_PINNED) {
        return RONDO_FAIL(INVALID, "%d is not a kind of memory", (int)kind);
    }
    if (bytes == 0) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(rondo__forbid_unsafe(device, __func__, RONDO_CAUSE_ALLOCATION));
    return rondo__memory_take(device, kind, bytes, out_address);
}

rondo_status rondo__memory_take(rondo_device *device, rondo_memory_kind kind, size_t bytes,
                                void **out_address) {
    *out_address = NULL;
    RETURN_IF_ERROR(rondo__check_alive(device, "rondo_memory_allocate"));
    if (bytes > (size_t)PTRDIFF_MAX) {
        return RONDO_FAIL_AS("rondo_memory_allocate", NO_DEVICE_MEMORY,
                             "%zu bytes are more than any device has", bytes);
    }
    RETURN_IF_ERROR(rondo__mark_call(device, NULL, RONDO_CAUSE_ALLOCATION,
                                     device->backend->allocate(device, kind, bytes, out_address)));
    rondo_status status = rondo__areas_add(device, kind, *out_address, bytes);
    if (status != RONDO_STATUS_OK) {
        device->backend->deallocate(device, kind, *out_address);
        *out_address = NULL;
    }
    return status;
}

bool rondo__memory_is_pageable(rondo_device *device, const void *address, size_t bytes) {
    return !rondo__areas_cover(device, address, bytes) &&
           (device->backend->is_pageable == NULL ||
            device->backend->is_pageable(device, address, bytes));
}

void rondo_memory_free(rondo_device *device, rondo_memory_kind kind, void *address) {
    if (device == NULL || address == NULL || atomic_load(&device->is_forked)) {
        return;
    }
    switch (rondo__areas_remove(device, address, &kind)) {
        case RONDO__AREA_REMOVED:
            device->backend->deallocate(device, kind, address);
            break;
        case RONDO__AREA_HELD:
            RONDO_LOG_WARN_F(
                "rondo_memory_free: %p is memory of a pool and stays; give blocks back with "
                "rondo_pool_free",
                address);
            break;
        case RONDO__AREA_UNKNOWN:
            RONDO_LOG_WARN_F(
                "rondo_memory_free: %p is not memory that rondo_memory_allocate gave out on %s",
                address, device->name);
            break;
    }
}

rondo_status rondo__device_get_function(rondo_device *device, const char *source,
                                        const char *const *options, size_t option_count,
                                        const char *kernel_name, void **out_function) {
    RETURN_IF_ERROR(rondo__check_pointer(out_function, __func__, "out_function"));
    *out_function = NULL;
    RETURN_IF_ERROR(rondo__check_device(device, __func__));
    RETURN_IF_ERROR(rondo__check_pointer(source, __func__, "source"));
    RETURN_IF_ERROR(rondo__check_pointer(kernel_name, __func__, "kernel_name"));
    if (option_count > 0) {
        RETURN_IF_ERROR(rondo__check_pointer(options, __func__, "options"));
    }
    if (device->backend->get_function == NULL) {
        return RONDO_FAIL(UNSUPPORTED, "device %s runs no CUDA code; launch C functions on it",
                          device->name);
    }
    return device->backend->get_function(device, source, options, option_count, kernel_name,
                                         out_function);
}

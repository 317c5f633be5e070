// device/device.c — the calls on devices and their memory.
// SPDX-License-Identifier: Apache-2.0

#include "device/device.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/check.h"
#include "backend/open_devices.h"
#include "base/log/hook.h"
#include "base/log/logging.h"
#include "base/text.h"
#include "base/write_struct.h"
#include "capture/blame.h"
#include "capture/forbid.h"
#include "rondo/pool.h"

// ---- listing ----------------------------------------------------------------------------------

static rondo_device_info explain_absence(const rondo__backend *backend, const char *reason) {
    rondo_device_info info = {.struct_size = sizeof info};
    snprintf(info.name, sizeof info.name, "%s", backend->name);
    snprintf(info.reason, sizeof info.reason, "%s",
             reason[0] != '\0' ? reason : "no device was found");
    return info;
}

static rondo_device_info describe_or_explain(const rondo__backend *backend, int32_t ordinal) {
    rondo_device_info info = {.struct_size = sizeof info};
    if (backend->describe_device(ordinal, &info) != RONDO_STATUS_OK) {
        info = (rondo_device_info){.struct_size = sizeof info};
        snprintf(info.name, sizeof info.name, "%s:%d", backend->name, (int)ordinal);
        snprintf(info.reason, sizeof info.reason, "%s", rondo_error_get_last()->message);
    }
    return info;
}

// Writes an entry of the caller's list, where it has room. The first entry's size holds for all.
static void write_entry(rondo_device_info *infos, size_t capacity, size_t index,
                        const rondo_device_info *info) {
    if (index < capacity) {
        const size_t bytes = infos->struct_size;
        void *entry = (char *)infos + index * bytes;
        memcpy(entry, &bytes, sizeof bytes);
        rondo__write_struct(entry, info);
    }
}

rondo_status rondo_device_list(rondo_device_info *infos, size_t capacity, size_t *out_count) {
    RETURN_IF_ERROR(rondo__check_pointer(out_count, __func__, "out_count"));
    *out_count = 0;
    if (capacity > 0) {
        RETURN_IF_ERROR(rondo__clear_struct(infos, sizeof *infos, __func__, "rondo_device_info"));
    }
    // The entry says what a device lacks; the caller's record stays as it was.
    rondo_error saved;
    rondo__error_save(&saved);
    size_t count = 0;
    for (const rondo__backend *const *backend = rondo__backend_list; *backend != NULL; ++backend) {
        char reason[sizeof infos->reason] = "";
        int32_t devices = (*backend)->count_devices(reason, sizeof reason);
        if (devices <= 0) {
            const rondo_device_info info = explain_absence(*backend, reason);
            write_entry(infos, capacity, count++, &info);
        }
        for (int32_t i = 0; i < devices; ++i) {
            if (count < capacity) {
                const rondo_device_info info = describe_or_explain(*backend, i);
                write_entry(infos, capacity, count, &info);
            }
            ++count;
        }
    }
    rondo__error_restore(&saved);
    *out_count = count;
    return RONDO_STATUS_OK;
}

// ---- opening ----------------------------------------------------------------------------------

static rondo_status open_auto(rondo_device **out_device) {
    char reason[RONDO__MESSAGE_BYTES] = "";
    rondo_error saved;
    rondo__error_save(&saved);
    for (const rondo__backend *const *backend = rondo__backend_list; *backend != NULL; ++backend) {
        if (*backend == &rondo__backend_host) {
            continue;
        }
        int32_t devices = (*backend)->count_devices(reason, sizeof reason);
        for (int32_t i = 0; i < devices; ++i) {
            if (rondo__registry_open(*backend, i, out_device) == RONDO_STATUS_OK) {
                rondo__error_restore(&saved);
                return RONDO_STATUS_OK;
            }
            RONDO_LOG_WARN_F("%s:%d cannot be used: %s", (*backend)->name, (int)i,
                             rondo_error_get_last()->message);
        }
    }
    rondo__error_restore(&saved);
    return rondo__registry_open(&rondo__backend_host, 0, out_device);
}

static rondo_status fail_unknown(const char *name) {
    rondo__text names = {0};
    for (const rondo__backend *const *backend = rondo__backend_list; *backend != NULL; ++backend) {
        char reason[RONDO__MESSAGE_BYTES] = "";
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
    char reason[RONDO__MESSAGE_BYTES] = "";
    int32_t devices = backend->count_devices(reason, sizeof reason);
    if (devices <= 0) {
        return RONDO_FAIL(UNAVAILABLE, "device %s cannot be used: %s", name, reason);
    }
    if (ordinal >= devices) {
        return fail_unknown(name);
    }
    return rondo__registry_open(backend, ordinal, out_device);
}

// ---- calls on a device ------------------------------------------------------------------------

rondo_status rondo_device_get_info(rondo_device *device, rondo_device_info *out_info) {
    RETURN_IF_ERROR(rondo__clear_struct(out_info, sizeof *out_info, __func__, "rondo_device_info"));
    RETURN_IF_ERROR(rondo__check_device(device, __func__));
    rondo_device_info info = {.struct_size = sizeof info};
    RETURN_IF_ERROR(device->backend->describe_device(device->ordinal, &info));
    rondo__write_struct(out_info, &info);
    return RONDO_STATUS_OK;
}

rondo_status rondo__device_get_facts(rondo_device *device, rondo_device_info *out_facts) {
    static pthread_mutex_t facts_lock = PTHREAD_MUTEX_INITIALIZER;
    if (!atomic_load(&device->has_facts)) {
        rondo_device_info facts = {.struct_size = sizeof facts};
        RETURN_IF_ERROR(device->backend->describe_device(device->ordinal, &facts));
        facts.free_bytes = 0;
        pthread_mutex_lock(&facts_lock);
        if (!atomic_load(&device->has_facts)) {
            device->facts = facts;
            atomic_store(&device->has_facts, true);
        }
        pthread_mutex_unlock(&facts_lock);
    }
    *out_facts = device->facts;
    return RONDO_STATUS_OK;
}

rondo_status rondo_device_synchronize(rondo_device *device) {
    RETURN_IF_ERROR(rondo__check_device(device, __func__));
    RETURN_IF_ERROR(rondo__forbid_device_wait(device, __func__));
    const rondo__hook_scope scope = rondo__hook_enter(RONDO__SPAN_WAIT, "wait for a device");
    const rondo_status status = device->backend->synchronize_device(device);
    rondo__hook_leave(&scope);
    RETURN_IF_ERROR(rondo__mark_call(device, NULL, RONDO_CAUSE_SYNCHRONIZE, status));
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
    return rondo__mark_call(device, NULL, RONDO_CAUSE_ALLOCATION,
                            rondo__areas_allocate(device, kind, bytes, out_address));
}

void rondo_memory_free(rondo_device *device, void *address) {
    if (device == NULL || address == NULL || atomic_load(&device->is_forked)) {
        return;
    }
    switch (rondo__areas_free(device, address)) {
        case RONDO__AREA_REMOVED:
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

void rondo__device_want_function(rondo_device *device, const char *source,
                                 const char *const *options, size_t option_count,
                                 const char *kernel_name) {
    if (device->backend->want_function != NULL) {
        device->backend->want_function(device, source, options, option_count, kernel_name);
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

rondo_status rondo__device_prefer_shared(rondo_device *device, void *function, int percent) {
    return device->backend->prefer_shared != NULL
               ? device->backend->prefer_shared(device, function, percent)
               : RONDO_STATUS_OK;
}

size_t rondo__device_count_kernels(rondo_device *device) {
    return device->backend->count_kernels != NULL ? device->backend->count_kernels(device) : 0;
}

rondo_status rondo__device_visit_kernels(rondo_device *device, rondo__kernel_code_visit visit,
                                         void *user_data) {
    return device->backend->visit_kernels != NULL
               ? device->backend->visit_kernels(device, visit, user_data)
               : RONDO_STATUS_OK;
}

rondo_status rondo__device_offer_kernel(rondo_device *device, const rondo__kernel_code *code) {
    return device->backend->offer_kernel != NULL ? device->backend->offer_kernel(device, code)
                                                 : RONDO_STATUS_OK;
}

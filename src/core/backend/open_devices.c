// backend/open_devices.c — the devices that are open.
//
// The registry is process-wide state, the only one besides the log sink: it makes two opens of one
// device give one object. It holds no reference of its own; the last release takes the device out.
//
// Fork: threads and drivers do not survive into the child, so the child's handler marks every open
// device lost and forgets it. Old handles then answer LOST, and destroying them touches nothing; a
// fresh open works.
// SPDX-License-Identifier: Apache-2.0

#include "backend/open_devices.h"

#include <pthread.h>

#include "base/log/hook.h"
#include "base/log/logging.h"
#include "base/memory.h"
#include "base/use_count.h"

static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static rondo_device **open_devices;  // guarded by registry_lock
static size_t open_count;            // guarded by registry_lock
static size_t open_capacity;         // guarded by registry_lock
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

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
    rondo__hook_forget();
    pthread_mutex_unlock(&registry_lock);
}

static void install_fork_handlers(void) {
    if (pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) != 0) {
        RONDO_LOG_WARN_F("no memory for a fork handler: do not use open devices after a fork");
    }
}

// ---- opening and closing ----------------------------------------------------------------------

// One more reference to an open device, or a newly opened one.
rondo_status rondo__registry_open(const rondo__backend *backend, int32_t ordinal,
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
    status = RONDO__ARRAY_RESERVE(open_devices, open_capacity, open_count + 1);
    if (status != RONDO_STATUS_OK) {
        goto unlock;
    }
    status = backend->open_device(ordinal, &device);
    if (status == RONDO_STATUS_OK) {
        device->backend = backend;
        pthread_mutex_init(&device->capture_list_lock, NULL);
        pthread_mutex_init(&device->host_memory_lock, NULL);
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

void rondo_device_retain(rondo_device *device) {
    if (device != NULL) {
        rondo__reference_take(&device->reference_count);
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
    // Perhaps the last reference. Under the lock no other call can find the device; if one found it
    // just before, the device lives on.
    pthread_mutex_lock(&registry_lock);
    if (rondo__reference_drop(&device->reference_count)) {
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
            pthread_mutex_destroy(&device->host_memory_lock);
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

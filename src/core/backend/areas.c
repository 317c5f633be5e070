// backend/areas.c — the memory that rondo_memory_allocate has given out.
// SPDX-License-Identifier: Apache-2.0

#include "backend/areas.h"

#include <stdio.h>
#include <string.h>

#include "backend/backend.h"
#include "base/error.h"
#include "base/log/hook.h"
#include "base/memory.h"

void rondo__areas_init(rondo__areas *areas) {
    *areas = (rondo__areas){0};
    pthread_mutex_init(&areas->lock, NULL);
}

void rondo__areas_deinit(rondo__areas *areas) {
    pthread_mutex_destroy(&areas->lock);
    rondo__free(areas->list);
    *areas = (rondo__areas){0};
}

// ---- the caller holds the lock ----------------------------------------------------------------

// Index of the first area that begins behind the address.
static size_t find_after(const rondo__areas *areas, uintptr_t address) {
    size_t low = 0;
    size_t high = areas->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (areas->list[middle].begin <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static rondo__area *find_area(const rondo__areas *areas, uintptr_t address) {
    size_t after = find_after(areas, address);
    rondo__area *area = after > 0 ? &areas->list[after - 1] : NULL;
    return area != NULL && address - area->begin < area->bytes ? area : NULL;
}

// ---- calls ------------------------------------------------------------------------------------

rondo_status rondo__areas_add(rondo_device *device, rondo_memory_kind kind, const void *address,
                              size_t bytes) {
    rondo__areas *areas = &device->areas;
    pthread_mutex_lock(&areas->lock);
    rondo_status status = RONDO__ARRAY_RESERVE(areas->list, areas->capacity, areas->count + 1);
    if (status == RONDO_STATUS_OK) {
        size_t index = find_after(areas, (uintptr_t)address);
        memmove(&areas->list[index + 1], &areas->list[index],
                (areas->count - index) * sizeof *areas->list);
        areas->list[index] = (rondo__area){.begin = (uintptr_t)address,
                                           .bytes = bytes,
                                           .kind = kind,
                                           .serial = ++areas->last_serial};
        ++areas->count;
        areas->bytes_by_kind[kind] += bytes;
    }
    pthread_mutex_unlock(&areas->lock);
    return status;
}

static rondo__area_removal remove_area(rondo_device *device, const void *address,
                                       rondo_memory_kind *out_kind) {
    rondo__areas *areas = &device->areas;
    rondo__area_removal result = RONDO__AREA_UNKNOWN;
    pthread_mutex_lock(&areas->lock);
    rondo__area *area = find_area(areas, (uintptr_t)address);
    if (area != NULL && area->holder != NULL) {
        result = RONDO__AREA_HELD;
    } else if (area != NULL && area->begin == (uintptr_t)address) {
        result = RONDO__AREA_REMOVED;
        *out_kind = area->kind;
        areas->bytes_by_kind[area->kind] -= area->bytes;
        size_t index = (size_t)(area - areas->list);
        --areas->count;
        atomic_fetch_add_explicit(&areas->removal_count, 1, memory_order_release);
        memmove(area, area + 1, (areas->count - index) * sizeof *area);
    }
    pthread_mutex_unlock(&areas->lock);
    return result;
}

void rondo__areas_remove(rondo_device *device, const void *address) {
    rondo_memory_kind kind;
    (void)remove_area(device, address, &kind);
}

void rondo__areas_set_holder(rondo_device *device, const void *address, const void *holder) {
    rondo__areas *areas = &device->areas;
    pthread_mutex_lock(&areas->lock);
    rondo__area *area = find_area(areas, (uintptr_t)address);
    if (area != NULL) {
        area->holder = holder;
    }
    pthread_mutex_unlock(&areas->lock);
}

bool rondo__areas_find(rondo_device *device, const void *address, rondo__area *out_area) {
    rondo__areas *areas = &device->areas;
    pthread_mutex_lock(&areas->lock);
    const rondo__area *area = find_area(areas, (uintptr_t)address);
    if (area != NULL) {
        *out_area = *area;
    }
    pthread_mutex_unlock(&areas->lock);
    return area != NULL;
}

bool rondo__areas_cover(rondo_device *device, const void *address, size_t bytes) {
    rondo__area area;
    return rondo__areas_find(device, address, &area) &&
           bytes <= area.bytes - ((uintptr_t)address - area.begin);
}

bool rondo__areas_is_pageable(rondo_device *device, const void *address, size_t bytes) {
    return !rondo__areas_cover(device, address, bytes) &&
           (device->backend->is_pageable == NULL ||
            device->backend->is_pageable(device, address, bytes));
}

_Static_assert(RONDO_MEMORY_DEVICE == 0 && RONDO_MEMORY_PINNED == 1, "they are counted by kind");

// Tells a profile how much there is of a kind.
static void tell_amount(rondo_device *device, rondo_memory_kind kind) {
    if (!rondo__hook_is_on(RONDO__HOOK_COUNTERS)) {
        return;
    }
    char name[64];
    (void)snprintf(name, sizeof name, "%s %s memory", device->name,
                   kind == RONDO_MEMORY_PINNED ? "pinned" : "device");
    pthread_mutex_lock(&device->areas.lock);
    const uint64_t bytes = device->areas.bytes_by_kind[kind];
    pthread_mutex_unlock(&device->areas.lock);
    rondo__hook_post_counter(name, bytes);
}

static rondo__hook_scope enter(const char *name, size_t bytes) {
    return rondo__hook_is_on(RONDO__HOOK_SPANS)
               ? rondo__hook_begin(&(rondo__hook_span){
                     .category = RONDO__SPAN_ALLOCATE, .name = name, .bytes = bytes})
               : (rondo__hook_scope){0};
}

static rondo_status allocate(rondo_device *device, rondo_memory_kind kind, size_t bytes,
                             void **out_address) {
    RETURN_IF_ERROR(device->backend->allocate(device, kind, bytes, out_address));
    rondo_status status = rondo__areas_add(device, kind, *out_address, bytes);
    if (status != RONDO_STATUS_OK) {
        device->backend->deallocate(device, kind, *out_address);
        *out_address = NULL;
    }
    return status;
}

rondo_status rondo__areas_allocate(rondo_device *device, rondo_memory_kind kind, size_t bytes,
                                   void **out_address) {
    *out_address = NULL;
    const rondo__hook_scope scope = enter(
        kind == RONDO_MEMORY_PINNED ? "allocate pinned memory" : "allocate device memory", bytes);
    const rondo_status status = allocate(device, kind, bytes, out_address);
    rondo__hook_leave(&scope);
    tell_amount(device, kind);
    return status;
}

rondo__area_removal rondo__areas_free(rondo_device *device, void *address) {
    rondo_memory_kind kind = RONDO_MEMORY_DEVICE;
    rondo__area_removal result = remove_area(device, address, &kind);
    if (result == RONDO__AREA_REMOVED) {
        const rondo__hook_scope scope = enter("free memory", 0);
        device->backend->deallocate(device, kind, address);
        rondo__hook_leave(&scope);
        tell_amount(device, kind);
    }
    return result;
}

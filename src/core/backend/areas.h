// backend/areas.h — the memory that rondo_memory_allocate has given out.
//
// Freeing looks an address up here, so a wrong one does no harm. Copies ask here whether host
// memory is pinned. Each area has a number that is never used twice, so memory that was freed and
// allocated again at the same address can be told from the old.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rondo/device.h"
#include "rondo/status.h"

typedef struct rondo__area {
    uintptr_t begin;
    size_t bytes;
    rondo_memory_kind kind;
    uint64_t serial;
    const void *holder;  // the pool that hands out parts of it; NULL: none
} rondo__area;

// Part of a device.
typedef struct rondo__areas {
    pthread_mutex_t lock;
    rondo__area *list;  // by address; guarded by lock, as all below
    size_t count;
    size_t capacity;
    uint64_t last_serial;
    uint64_t bytes_by_kind[2];       // of all areas
    _Atomic uint64_t removal_count;  // written under lock: while it stays, no area has gone
} rondo__areas;

void rondo__areas_init(rondo__areas *areas);
void rondo__areas_deinit(rondo__areas *areas);

// Takes memory from the driver and lists it.
//
// Errors:    NO_MEMORY, NO_DEVICE_MEMORY, DRIVER, LOST.
// Threads:   safe, all below.
RONDO_MUST_USE rondo_status rondo__areas_allocate(rondo_device *device, rondo_memory_kind kind,
                                                  size_t bytes, void **out_address);

// Lists memory that the driver did not give out as if it had, and removes it from the list. These
// calls neither allocate nor free it.
//
// Errors:    NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__areas_add(rondo_device *device, rondo_memory_kind kind,
                                             const void *address, size_t bytes);
void rondo__areas_remove(rondo_device *device, const void *address);

typedef enum rondo__area_removal {
    RONDO__AREA_REMOVED,  // the memory was freed
    RONDO__AREA_HELD,     // a pool hands out parts of it, so it stays
    RONDO__AREA_UNKNOWN,  // no area begins there
} rondo__area_removal;

// Frees the area that begins at the address.
rondo__area_removal rondo__areas_free(rondo_device *device, void *address);
// The pool that hands out parts of the area, or NULL.
void rondo__areas_set_holder(rondo_device *device, const void *address, const void *holder);
// The area that holds the address; false when none does.
bool rondo__areas_find(rondo_device *device, const void *address, rondo__area *out_area);
// How many areas have gone so far: while the number stays, all that were there are. Takes no lock.
static inline uint64_t rondo__areas_count_removals(const rondo__areas *areas) {
    return atomic_load_explicit(&areas->removal_count, memory_order_acquire);
}
// Whether all these bytes lie in one area.
bool rondo__areas_cover(rondo_device *device, const void *address, size_t bytes);

// True for host memory that the device cannot copy from without a detour.
bool rondo__areas_is_pageable(rondo_device *device, const void *address, size_t bytes);

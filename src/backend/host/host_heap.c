// backend/host/host_heap.c — memory of the host device. Device memory and pinned memory are both
// ordinary memory; the areas given out are listed, because a copy from memory that is not pinned
// must wait, and cannot be recorded, here as on a GPU.
#include <string.h>
#include <sys/mman.h>

#include "backend/host/host_backend.h"
#include "base/block.h"
#include "base/error.h"
#include "base/memory.h"

enum {
    AREA_ALIGNMENT = 512,  // what pools promise for their blocks
    HUGE_PAGE_BYTES = 2 * 1024 * 1024,
    HUGE_AREA_BYTES = 4 * HUGE_PAGE_BYTES,  // from here on, large pages are asked for
};

// Index of the first area that begins after `begin`.
static size_t find_after(const rondo__host_device *device, uintptr_t begin) {
    size_t low = 0;
    size_t high = device->area_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (device->areas[middle].begin <= begin) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static rondo_status list_area(rondo__host_device *device, uintptr_t begin, size_t bytes) {
    pthread_mutex_lock(&device->memory_lock);
    void *areas = device->areas;
    rondo_status status = rondo__array_reserve(&areas, &device->area_capacity,
                                               device->area_count + 1, sizeof *device->areas);
    device->areas = areas;
    if (status == RONDO_STATUS_OK) {
        size_t index = find_after(device, begin);
        memmove(&device->areas[index + 1], &device->areas[index],
                (device->area_count - index) * sizeof *device->areas);
        device->areas[index] = (rondo__host_area){.begin = begin, .bytes = bytes};
        ++device->area_count;
    }
    pthread_mutex_unlock(&device->memory_lock);
    return status;
}

rondo_status rondo__host_allocate(rondo_device *device_, rondo_memory_kind kind, size_t bytes,
                                  void **out_address) {
    rondo__host_device *device = rondo__host_device_of(device_);
    bool is_huge = bytes >= HUGE_AREA_BYTES;
    // The system would promise more than there is, and end the process when the promise is called.
    void *address = NULL;
    if (bytes > device->memory_bytes) {
        (void)RONDO_FAIL(NO_MEMORY, "%zu bytes are more than this machine has", bytes);
    } else {
        address = rondo__block_allocate(bytes,
                                        is_huge ? (size_t)HUGE_PAGE_BYTES : (size_t)AREA_ALIGNMENT);
    }
    if (address == NULL) {
        return rondo__error_set(
            kind == RONDO_MEMORY_PINNED ? RONDO_STATUS_NO_MEMORY : RONDO_STATUS_NO_DEVICE_MEMORY, 0,
            "", __FILE__, __LINE__, "rondo_memory_allocate", "%s", rondo_error_get_last()->message);
    }
    if (is_huge) {
        // Large weights and activations walk fewer page tables. A refusal does no harm.
        (void)madvise(address, bytes & ~((size_t)HUGE_PAGE_BYTES - 1), MADV_HUGEPAGE);
    }
    rondo_status status = list_area(device, (uintptr_t)address, bytes);
    if (status != RONDO_STATUS_OK) {
        rondo__block_free(address);
        return status;
    }
    *out_address = address;
    return RONDO_STATUS_OK;
}

void rondo__host_deallocate(rondo_device *device_, rondo_memory_kind kind, void *address) {
    (void)kind;
    rondo__host_device *device = rondo__host_device_of(device_);
    pthread_mutex_lock(&device->memory_lock);
    size_t after = find_after(device, (uintptr_t)address);
    bool is_listed = after > 0 && device->areas[after - 1].begin == (uintptr_t)address;
    if (is_listed) {
        memmove(&device->areas[after - 1], &device->areas[after],
                (device->area_count - after) * sizeof *device->areas);
        --device->area_count;
    }
    pthread_mutex_unlock(&device->memory_lock);
    if (is_listed) {
        rondo__block_free(address);
    }
}

bool rondo__host_is_pinned(rondo__host_device *device, const void *address, size_t bytes) {
    uintptr_t begin = (uintptr_t)address;
    pthread_mutex_lock(&device->memory_lock);
    size_t after = find_after(device, begin);
    bool is_inside = false;
    if (after > 0) {
        const rondo__host_area *area = &device->areas[after - 1];
        size_t offset = begin - area->begin;
        is_inside = offset < area->bytes && bytes <= area->bytes - offset;
    }
    pthread_mutex_unlock(&device->memory_lock);
    return is_inside;
}

bool rondo__host_is_pageable(rondo_device *device, const void *address, size_t bytes) {
    return !rondo__host_is_pinned(rondo__host_device_of(device), address, bytes);
}

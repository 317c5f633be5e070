// backend/host/host_heap.c — memory of the host device: device memory and pinned memory are both
// ordinary memory.
// SPDX-License-Identifier: Apache-2.0

#include "backend/host/host_heap.h"

#include <sys/mman.h>

#include "backend/host/host_device.h"
#include "base/block.h"
#include "base/error.h"

enum {
    AREA_ALIGNMENT = 512,  // what pools promise for their blocks
    HUGE_PAGE_BYTES = 2 * 1024 * 1024,
    HUGE_AREA_BYTES = 4 * HUGE_PAGE_BYTES,  // from here on, large pages are asked for
};

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
    *out_address = address;
    return RONDO_STATUS_OK;
}

void rondo__host_deallocate(rondo_device *device, rondo_memory_kind kind, void *address) {
    (void)device;
    (void)kind;
    rondo__block_free(address);
}

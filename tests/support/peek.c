// SPDX-License-Identifier: Apache-2.0

#include "support/peek.h"

#include <stdatomic.h>

#include "backend/backend.h"
#include "backend/null/null_backend.h"
#include "base/memory.h"
#include "device/device.h"

void peek_install_null(void) {
    static const rondo__backend *const list[] = {&rondo__backend_host, &rondo__backend_cuda,
                                                 &rondo__backend_null, NULL};
    rondo__backend_list = list;
}

rondo_status peek_compile(rondo_device *device, const char *text, const char *name,
                          void **out_function) {
    return rondo__device_get_function(device, text, NULL, 0, name, out_function);
}

size_t peek_count_areas(const rondo_device *device) {
    return device->areas.count;
}

static rondo__backend counting;
static const rondo__backend *counted;
static rondo_device *counted_device;
static atomic_long live_count;
static size_t areas_before;

static rondo_status count_allocate(rondo_device *device, rondo_memory_kind kind, size_t bytes,
                                   void **out_address) {
    atomic_fetch_add(&live_count, 1);
    return counted->allocate(device, kind, bytes, out_address);
}

static void count_deallocate(rondo_device *device, rondo_memory_kind kind, void *address) {
    atomic_fetch_sub(&live_count, 1);
    counted->deallocate(device, kind, address);
}

void peek_begin_counting(rondo_device *device) {
    counted = device->backend;
    counting = *counted;
    counting.allocate = count_allocate;
    counting.deallocate = count_deallocate;
    counted_device = device;
    atomic_store(&live_count, 0);
    areas_before = device->areas.count;
    if (!rondo_device_is_host(device)) {
        device->backend = &counting;
    }
}

long peek_count_allocations(void) {
    return rondo_device_is_host(counted_device)
               ? (long)counted_device->areas.count - (long)areas_before
               : atomic_load(&live_count);
}

void peek_end_counting(rondo_device *device) {
    device->backend = counted;
}

static bool fail_always(void *user_data) {
    (void)user_data;
    return true;
}

void peek_fail_allocations(bool do_fail) {
    rondo__memory_set_fault(do_fail ? fail_always : NULL, NULL);
}

void peek_set_lost(rondo_device *device, bool is_lost) {
    atomic_store(&device->is_lost, is_lost);
}

uint32_t peek_get_number(const rondo_stream *stream) {
    return stream->number;
}

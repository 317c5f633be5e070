// backend/host/host_heap.h — memory of the host device.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_BACKEND_HOST_HOST_HEAP_H
#define RONDO_BACKEND_HOST_HOST_HEAP_H

#include "backend/backend.h"

rondo_status rondo__host_allocate(rondo_device *device, rondo_memory_kind kind, size_t bytes,
                                  void **out_address);
void rondo__host_deallocate(rondo_device *device, rondo_memory_kind kind, void *address);

#endif  // RONDO_BACKEND_HOST_HOST_HEAP_H

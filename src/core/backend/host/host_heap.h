// backend/host/host_heap.h — memory of the host device.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/backend.h"

rondo_status rondo__host_allocate(rondo_device *device, rondo_memory_kind kind, size_t bytes,
                                  void **out_address);
void rondo__host_deallocate(rondo_device *device, rondo_memory_kind kind, void *address);

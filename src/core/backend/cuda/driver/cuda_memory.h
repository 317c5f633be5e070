// backend/cuda/driver/cuda_memory.h — memory, copies and fills.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/backend.h"

rondo_status rondo__cuda_allocate(rondo_device *device, rondo_memory_kind kind, size_t bytes,
                                  void **out_address);
void rondo__cuda_deallocate(rondo_device *device, rondo_memory_kind kind, void *address);
bool rondo__cuda_is_pageable(rondo_device *device, const void *address, size_t bytes);
rondo_status rondo__cuda_get_free_bytes(rondo_device *device, uint64_t *out_bytes);
rondo_status rondo__cuda_copy(rondo_stream *stream, void *destination, const void *source,
                              size_t bytes, rondo_copy_kind kind);
rondo_status rondo__cuda_fill(rondo_stream *stream, void *destination, uint32_t value,
                              uint32_t element_bytes, size_t count);

// support/driver.h — the CUDA driver, real or fake, as a program of its own calls it beside Rondo.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/driver/cuda_api.h"
#include "rondo/device.h"

// The driver's functions, with the device's context current to the calling thread until
// driver_leave; NULL where that fails. The device must be one of CUDA.
const rondo__cuda_api *driver_enter(rondo_device *device);
// False when no context was current.
bool driver_leave(const rondo__cuda_api *api);

// The same as single calls, each with an error record when it fails: memory of the driver's that
// Rondo was not asked for, a fill, and a launch with an array of parameters, or with packed
// arguments (parameters NULL, extra as the driver takes it).
rondo_status driver_allocate(rondo_device *device, size_t bytes, void **out_address);
void driver_free(rondo_device *device, void *address);
rondo_status driver_fill(rondo_stream *stream, void *address, uint32_t value, size_t count);
rondo_status driver_launch(rondo_stream *stream, void *function, uint32_t threads,
                           void **parameters, void **extra);

// A function of the driver's behind the device, by its exported name (driver_symbols.h); NULL: this
// driver lacks it.
void *driver_find(rondo_device *device, const char *symbol);

// Memory that the program's own cudaMallocAsync takes in stream order and does not give back.
//
// Returns:   UNSUPPORTED where the driver has no such memory.
rondo_status driver_take_in_order(rondo_stream *stream, size_t bytes);

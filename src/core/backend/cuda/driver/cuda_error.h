// backend/cuda/driver/cuda_error.h — driver failures as error records.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/backend.h"
#include "backend/cuda/driver/cuda_api.h"

typedef struct rondo__cuda_device rondo__cuda_device;

// Writes the record of a failed driver call: its code and name, what was wanted (format), and the
// cure that belongs to the code. Marks the device lost when the code says that its context is
// poisoned. `device` may be NULL.
//
// Returns:   NO_DEVICE_MEMORY, STATE, LOST, UNSUPPORTED or DRIVER, as the code says.
RONDO_PRINTF(7, 8)
rondo_status rondo__cuda_fail(const rondo__cuda_api *api, rondo_device *device,
                              rondo__cu_result code, const char *call, const char *file,
                              int32_t line, const char *format, ...);

#define RONDO__CUDA_FAIL(device, code, call, ...)                                        \
    rondo__cuda_fail((device)->api, &(device)->head, (code), (call), __FILE__, __LINE__, \
                     __VA_ARGS__)

// The driver knows the object but not this of it: a kernel of a library, a copy of an array, an
// address that is plain host memory.
bool rondo__cuda_is_refusal(rondo__cu_result code);

// A failed driver call during clean-up: logged, never returned. Silent when the driver has shut
// down already, as it has at the end of the process, and when the device is lost, which is noted.
void rondo__cuda_log_failure(rondo__cuda_device *device, rondo__cu_result code, const char *call);

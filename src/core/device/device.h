// device/device.h — memory and device code for the library itself.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/backend.h"

// rondo_memory_allocate for the library itself: no capture forbids it.
//
// Errors:    NO_DEVICE_MEMORY, NO_MEMORY, DRIVER, LOST.
// Ownership: give back with rondo_memory_free.
// Threads:   safe.
RONDO_MUST_USE rondo_status rondo__memory_take(rondo_device *device, rondo_memory_kind kind,
                                               size_t bytes, void **out_address);

// The facts of rondo_device_get_info without the free memory: read from the backend once, because a
// plan asks some hundred times, and a driver takes long to count free memory.
//
// Errors:    those of the backend's describe_device.
// Threads:   safe.
RONDO_MUST_USE rondo_status rondo__device_get_facts(rondo_device *device,
                                                    rondo_device_info *out_facts);

// Argument-checked entry to get_function. Compiled modules are cached in memory for the device's
// life.
//
// source     does not change if it is static: then it is known again by its address.
//
// Errors:    UNSUPPORTED (host), UNAVAILABLE (no NVRTC: says how to get it), BAD_DATA (compiler
//            log), DRIVER, NO_MEMORY. Threads:   safe.
RONDO_MUST_USE rondo_status rondo__device_get_function(rondo_device *device, const char *source,
                                                       const char *const *options,
                                                       size_t option_count, const char *kernel_name,
                                                       void **out_function);

// Asks for `percent` of the memory that a multiprocessor has for its first-level cache and for
// shared memory, as shared memory, where that kernel runs. Kernels that ask for the same share run
// beside each other; others wait until a multiprocessor is empty. A driver may refuse what is only
// a wish: then the kernel runs as without it.
//
// Errors:    DRIVER, LOST: of what was in flight.
// Threads:   safe.
RONDO_MUST_USE rondo_status rondo__device_prefer_shared(rondo_device *device, void *function,
                                                        int percent);

// Shows the machine code that rondo__device_get_function has loaded for the device so far.
//
// Errors:    NO_MEMORY, and what `visit` returns.
// Threads:   safe.
RONDO_MUST_USE rondo_status rondo__device_visit_kernels(rondo_device *device,
                                                        rondo__kernel_code_visit visit,
                                                        void *user_data);

// How many modules that call and rondo__device_offer_kernel have loaded.
//
// Threads:   safe.
size_t rondo__device_count_kernels(rondo_device *device);

// Loads machine code that another process has shown, so that the call above finds it.
//
// Errors:    DRIVER (the driver refuses it), NO_MEMORY.
// Threads:   safe.
RONDO_MUST_USE rondo_status rondo__device_offer_kernel(rondo_device *device,
                                                       const rondo__kernel_code *code);

// Says that rondo__device_get_function will be called with these texts, so that they are compiled
// meanwhile.
//
// Threads:   safe.
void rondo__device_want_function(rondo_device *device, const char *source,
                                 const char *const *options, size_t option_count,
                                 const char *kernel_name);

// backend/open_devices.h — the devices that are open.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/backend.h"

// One more reference to an open device, or a newly opened one.
//
// Errors:    those of the backend's open_device; NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__registry_open(const rondo__backend *backend, int32_t ordinal,
                                                 rondo_device **out_device);

// Calls `visit` for every open device but `device`; none of them is closed meanwhile.
//
// Threads: safe; `visit` neither opens nor releases devices.
void rondo__device_visit_others(const rondo_device *device,
                                void (*visit)(rondo_device *other, void *data), void *data);

// support/driver.h — the CUDA driver, real or fake, as a program of its own calls it beside Rondo.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_TESTS_SUPPORT_DRIVER_H
#define RONDO_TESTS_SUPPORT_DRIVER_H

#include "backend/cuda/cuda_api.h"
#include "rondo/device.h"

// The driver's functions, with the device's context current to the calling thread until
// driver_leave; NULL where that fails. The device must be one of CUDA.
const rondo__cuda_api *driver_enter(rondo_device *device);
// False when no context was current.
bool driver_leave(const rondo__cuda_api *api);

#endif  // RONDO_TESTS_SUPPORT_DRIVER_H

// SPDX-License-Identifier: Apache-2.0

#include "support/driver.h"

#include "backend/cuda/cuda_device.h"

const rondo__cuda_api *driver_enter(rondo_device *device) {
    const rondo__cuda_device *cuda = rondo__cuda_device_of(device);
    return cuda->api->cuCtxPushCurrent(cuda->context) == RONDO__CU_SUCCESS ? cuda->api : NULL;
}

bool driver_leave(const rondo__cuda_api *api) {
    rondo__cu_context popped = NULL;
    return api->cuCtxPopCurrent(&popped) == RONDO__CU_SUCCESS && popped != NULL;
}

// backend/cuda/driver/cuda_device.c — the context of a device on the calling thread.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/driver/cuda_device.h"

rondo_status rondo__cuda_push_context(rondo__cuda_device *device) {
    rondo__cu_result code = device->api->cuCtxPushCurrent(device->context);
    if (code != RONDO__CU_SUCCESS) {
        return RONDO__CUDA_FAIL(device, code, "cuCtxPushCurrent", "cannot select %s",
                                device->head.name);
    }
    return RONDO_STATUS_OK;
}

// The former mode, or -1. Tried twice: objects that this call fails to destroy are lost, and a
// thread that stays relaxed no longer breaks the captures that it should.
static int exchange_mode(const rondo__cuda_device *device, int wanted) {
    for (int i = 0; i < 2; i++) {
        int mode = wanted;
        if (device->api->cuThreadExchangeStreamCaptureMode(&mode) == RONDO__CU_SUCCESS) {
            return mode;
        }
    }
    return -1;
}

int rondo__cuda_relax(const rondo__cuda_device *device) {
    return exchange_mode(device, RONDO__CU_CAPTURE_MODE_RELAXED);
}

void rondo__cuda_restore(const rondo__cuda_device *device, int mode) {
    if (mode >= 0) {
        (void)exchange_mode(device, mode);
    }
}

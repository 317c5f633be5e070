// device/dlpack_device.c — what DLPack calls a device's memory.
// SPDX-License-Identifier: Apache-2.0
#include "backend/check.h"
#include "rondo/dlpack.h"

rondo_status rondo_dlpack_get_device(const rondo_device *device, rondo_memory_kind kind,
                                     rondo_dlpack_device *out_device) {
    RETURN_IF_ERROR(rondo__check_pointer(out_device, __func__, "out_device"));
    *out_device = (rondo_dlpack_device){0};
    RETURN_IF_ERROR(rondo__check_pointer(device, __func__, "device"));
    if (kind != RONDO_MEMORY_DEVICE && kind != RONDO_MEMORY_PINNED) {
        return RONDO_FAIL(INVALID, "%d is not a kind of memory", (int)kind);
    }
    if (rondo_device_is_host(device)) {
        *out_device = (rondo_dlpack_device){.type = RONDO_DLPACK_CPU};
    } else if (kind == RONDO_MEMORY_PINNED) {
        *out_device = (rondo_dlpack_device){.type = RONDO_DLPACK_CUDA_HOST};
    } else {
        *out_device = (rondo_dlpack_device){.type = RONDO_DLPACK_CUDA, .id = device->ordinal};
    }
    return RONDO_STATUS_OK;
}

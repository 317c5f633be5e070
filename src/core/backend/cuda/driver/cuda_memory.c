// backend/cuda/driver/cuda_memory.c — memory of the CUDA backend: device and pinned allocations,
// copies and fills.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/driver/cuda_memory.h"

#include "backend/cuda/driver/cuda_stream.h"
#include "base/error.h"

static rondo__cu_address address_of(const void *address) {
    return (rondo__cu_address)(uintptr_t)address;
}

rondo_status rondo__cuda_allocate(rondo_device *device_, rondo_memory_kind kind, size_t bytes,
                                  void **out_address) {
    rondo__cuda_device *device = rondo__cuda_device_of(device_);
    const rondo__cuda_api *api = device->api;
    *out_address = NULL;
    bool was_pushed = false;
    RETURN_IF_ERROR(rondo__cuda_enter(device, &was_pushed));
    int mode = rondo__cuda_relax(device);
    rondo_status status = RONDO_STATUS_OK;
    if (kind == RONDO_MEMORY_PINNED) {
        void *address = NULL;
        rondo__cu_result code =
            api->cuMemHostAlloc(&address, bytes, RONDO__CU_MEMORY_HOST_ALLOC_PORTABLE);
        if (code == RONDO__CU_ERROR_OUT_OF_MEMORY) {
            status = RONDO_FAIL_DRIVER(RONDO_STATUS_NO_MEMORY, code, "CUDA_ERROR_OUT_OF_MEMORY",
                                       "cuMemHostAlloc",
                                       "cannot pin %zu bytes of host memory; look at ulimit -l "
                                       "and free memory",
                                       bytes);
        } else if (code != RONDO__CU_SUCCESS) {
            status = RONDO__CUDA_FAIL(device, code, "cuMemHostAlloc",
                                      "cannot pin %zu bytes of host memory", bytes);
        } else {
            *out_address = address;
        }
    } else {
        rondo__cu_address address = 0;
        rondo__cu_result code = api->cuMemAlloc(&address, bytes);
        if (code != RONDO__CU_SUCCESS) {
            size_t free_bytes = 0;
            size_t total_bytes = 0;
            (void)api->cuMemGetInfo(&free_bytes, &total_bytes);
            status = RONDO__CUDA_FAIL(device, code, "cuMemAlloc",
                                      "cannot allocate %zu bytes on %s (%zu of %zu free)", bytes,
                                      device->head.name, free_bytes, total_bytes);
        } else {
            *out_address = (void *)(uintptr_t)address;
        }
    }
    rondo__cuda_restore(device, mode);
    rondo__cuda_leave(device, was_pushed);
    return status;
}

void rondo__cuda_deallocate(rondo_device *device_, rondo_memory_kind kind, void *address) {
    rondo__cuda_device *device = rondo__cuda_device_of(device_);
    const rondo__cuda_api *api = device->api;
    rondo_error saved;
    rondo__error_save(&saved);
    bool was_pushed = false;
    rondo__cuda_enter_cleanup(device, &was_pushed);
    int mode = rondo__cuda_relax(device);
    if (kind == RONDO_MEMORY_PINNED) {
        rondo__cuda_log_failure(device, api->cuMemFreeHost(address), "cuMemFreeHost");
    } else {
        rondo__cuda_log_failure(device, api->cuMemFree(address_of(address)), "cuMemFree");
    }
    rondo__cuda_restore(device, mode);
    rondo__cuda_leave(device, was_pushed);
    rondo__error_restore(&saved);
}

bool rondo__cuda_is_pageable(rondo_device *device, const void *address, size_t bytes) {
    (void)bytes;
    unsigned int memory_type = 0;
    return rondo__cuda_device_of(device)->api->cuPointerGetAttribute(
               &memory_type, RONDO__CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address_of(address)) !=
           RONDO__CU_SUCCESS;
}

rondo_status rondo__cuda_copy(rondo_stream *stream, void *destination, const void *source,
                              size_t bytes, rondo_copy_kind kind) {
    rondo__cuda_device *device = rondo__cuda_device_of(stream->device);
    const rondo__cuda_api *api = device->api;
    rondo__cu_stream native = rondo__cuda_native_stream(stream);
    bool was_pushed = false;
    RETURN_IF_ERROR(rondo__cuda_enter(device, &was_pushed));
    rondo_status status = RONDO_STATUS_OK;
    rondo__cu_result code = RONDO__CU_SUCCESS;
    const char *call = "";
    switch (kind) {
        case RONDO_COPY_HOST_TO_DEVICE:
            call = "cuMemcpyHtoDAsync";
            code = api->cuMemcpyHtoDAsync(address_of(destination), source, bytes, native);
            break;
        case RONDO_COPY_DEVICE_TO_HOST:
            call = "cuMemcpyDtoHAsync";
            code = api->cuMemcpyDtoHAsync(destination, address_of(source), bytes, native);
            break;
        case RONDO_COPY_DEVICE_TO_DEVICE:
            call = "cuMemcpyDtoDAsync";
            code =
                api->cuMemcpyDtoDAsync(address_of(destination), address_of(source), bytes, native);
            break;
    }
    if (code != RONDO__CU_SUCCESS) {
        status = RONDO__CUDA_STREAM_FAIL(stream, code, call, "cannot copy %zu bytes", bytes);
    }
    rondo__cuda_leave(device, was_pushed);
    return status;
}

rondo_status rondo__cuda_fill(rondo_stream *stream, void *destination, uint32_t value,
                              uint32_t element_bytes, size_t count) {
    rondo__cuda_device *device = rondo__cuda_device_of(stream->device);
    const rondo__cuda_api *api = device->api;
    rondo__cu_stream native = rondo__cuda_native_stream(stream);
    rondo__cu_address address = address_of(destination);
    bool was_pushed = false;
    RETURN_IF_ERROR(rondo__cuda_enter(device, &was_pushed));
    rondo_status status = RONDO_STATUS_OK;
    rondo__cu_result code = RONDO__CU_SUCCESS;
    const char *call = "";
    switch (element_bytes) {
        case 1:
            call = "cuMemsetD8Async";
            code = api->cuMemsetD8Async(address, (unsigned char)(value & 0xffu), count, native);
            break;
        case 2:
            call = "cuMemsetD16Async";
            code = api->cuMemsetD16Async(address, (unsigned short)(value & 0xffffu), count, native);
            break;
        default:
            call = "cuMemsetD32Async";
            code = api->cuMemsetD32Async(address, value, count, native);
            break;
    }
    if (code != RONDO__CU_SUCCESS) {
        status = RONDO__CUDA_STREAM_FAIL(stream, code, call, "cannot fill %zu elements of %u bytes",
                                         count, (unsigned)element_bytes);
    }
    rondo__cuda_leave(device, was_pushed);
    return status;
}

rondo_status rondo__cuda_get_free_bytes(rondo_device *device_, uint64_t *out_bytes) {
    rondo__cuda_device *device = rondo__cuda_device_of(device_);
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    bool was_pushed = false;
    *out_bytes = 0;
    RETURN_IF_ERROR(rondo__cuda_enter(device, &was_pushed));
    rondo_status status = RONDO_STATUS_OK;
    rondo__cu_result code = device->api->cuMemGetInfo(&free_bytes, &total_bytes);
    if (code != RONDO__CU_SUCCESS) {
        status = RONDO__CUDA_FAIL(device, code, "cuMemGetInfo",
                                  "cannot ask for the free memory of %s", device->head.name);
    }
    rondo__cuda_leave(device, was_pushed);
    *out_bytes = free_bytes;
    return status;
}

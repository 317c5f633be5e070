// SPDX-License-Identifier: Apache-2.0

#include "support/driver.h"

#include <dlfcn.h>

#include "backend/cuda/driver/cuda_device.h"
#include "support/fake/fake_cuda.h"

const rondo__cuda_api *driver_enter(rondo_device *device) {
    const rondo__cuda_device *cuda = rondo__cuda_device_of(device);
    return cuda->api->cuCtxPushCurrent(cuda->context) == RONDO__CU_SUCCESS ? cuda->api : NULL;
}

bool driver_leave(const rondo__cuda_api *api) {
    rondo__cu_context popped = NULL;
    return api->cuCtxPopCurrent(&popped) == RONDO__CU_SUCCESS && popped != NULL;
}

rondo_status driver_allocate(rondo_device *device, size_t bytes, void **out_address) {
    return device->backend->allocate(device, RONDO_MEMORY_DEVICE, bytes, out_address);
}

void driver_free(rondo_device *device, void *address) {
    device->backend->deallocate(device, RONDO_MEMORY_DEVICE, address);
}

rondo_status driver_fill(rondo_stream *stream, void *address, uint32_t value, size_t count) {
    return rondo_stream_get_device(stream)->backend->fill(stream, address, value, 4, count);
}

rondo_status driver_launch(rondo_stream *stream, void *function, uint32_t threads,
                           void **parameters, void **extra) {
    rondo__cuda_device *device = rondo__cuda_device_of(rondo_stream_get_device(stream));
    rondo__cu_stream native = (rondo__cu_stream)rondo_stream_get_native(stream);
    rondo__cu_result code =
        device->api->cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, native, parameters, extra);
    return code == RONDO__CU_SUCCESS
               ? RONDO_STATUS_OK
               : RONDO__CUDA_FAIL(device, code, "cuLaunchKernel", "the program's own");
}

void *driver_find(rondo_device *device, const char *symbol) {
    union {
        void *symbol;
        rondo__cu_result (*init)(unsigned int);
    } found = {.symbol = fake_cuda_resolve(NULL, "cuInit")};
    if (found.init == rondo__cuda_device_of(device)->api->cuInit) {
        return fake_cuda_resolve(NULL, symbol);
    }
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    found.symbol = library != NULL ? dlsym(library, symbol) : NULL;
    if (library != NULL) {
        dlclose(library);
    }
    return found.symbol;
}

rondo_status driver_take_in_order(rondo_stream *stream, size_t bytes) {
    rondo__cuda_device *device = rondo__cuda_device_of(rondo_stream_get_device(stream));
    rondo__cu_stream native = (rondo__cu_stream)rondo_stream_get_native(stream);
    union {
        void *symbol;
        rondo__cu_result (*allocate)(rondo__cu_address *, size_t, rondo__cu_stream);
    } found = {.symbol = driver_find(&device->head, "cuMemAllocAsync")};
    rondo__cu_address address = 0;
    if (found.symbol == NULL || driver_enter(&device->head) == NULL) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    rondo__cu_result code = found.allocate(&address, bytes, native);
    (void)driver_leave(device->api);
    return code == RONDO__CU_SUCCESS
               ? RONDO_STATUS_OK
               : RONDO__CUDA_FAIL(device, code, "cuMemAllocAsync", "the program's own");
}

// SPDX-License-Identifier: Apache-2.0
#include "support/driver_calls.h"

#include "backend/cuda/driver/cuda_device.h"
#include "base/error.h"

static rondo__cu_address address_of(const void *address) {
    return (rondo__cu_address)(uintptr_t)address;
}

// Calls with the context of the stream's device.
#define CALL(stream, ...)                                                            \
    rondo__cu_result code = RONDO__CU_ERROR_NOT_SUPPORTED;                           \
    rondo_device *device = rondo_stream_get_device(stream);                          \
    const rondo__cuda_api *api = found.symbol != NULL ? driver_enter(device) : NULL; \
    if (api == NULL) {                                                               \
        return RONDO_FAIL_AS("driver", UNSUPPORTED, "the driver lacks this call");   \
    }                                                                                \
    code = found.call(__VA_ARGS__, rondo_stream_get_native(stream));                 \
    (void)driver_leave(api);                                                         \
    return code == RONDO__CU_SUCCESS                                                 \
               ? RONDO_STATUS_OK                                                     \
               : RONDO_FAIL_AS("driver", DRIVER, "the driver's call answered %d", (int)code)

rondo_status driver_fill_rows(rondo_stream *stream, void *destination, size_t pitch_bytes,
                              unsigned char value, size_t width, size_t rows) {
    union {
        void *symbol;
        rondo__cu_result (*call)(rondo__cu_address, size_t, unsigned char, size_t, size_t,
                                 rondo__cu_stream);
    } found = {.symbol = driver_find(rondo_stream_get_device(stream), "cuMemsetD2D8Async")};
    CALL(stream, address_of(destination), pitch_bytes, value, width, rows);
}

rondo_status driver_copy_rows(rondo_stream *stream, void *destination, const void *source,
                              size_t pitch_bytes, size_t width_bytes, size_t rows) {
    union {
        void *symbol;
        rondo__cu_result (*call)(const rondo__cu_copy_node *, rondo__cu_stream);
    } found = {.symbol = driver_find(rondo_stream_get_device(stream), "cuMemcpy3DAsync_v2")};
    const rondo__cu_copy_node copy = {
        .source = {.memory_type = RONDO__CU_MEMORY_TYPE_DEVICE,
                   .device = address_of(source),
                   .pitch_bytes = pitch_bytes,
                   .height = rows},
        .destination = {.memory_type = RONDO__CU_MEMORY_TYPE_DEVICE,
                        .device = address_of(destination),
                        .pitch_bytes = pitch_bytes,
                        .height = rows},
        .width_bytes = width_bytes,
        .height = rows,
        .depth = 1,
    };
    CALL(stream, &copy);
}

rondo_status driver_copy_default(rondo_stream *stream, void *destination, const void *source,
                                 size_t bytes) {
    union {
        void *symbol;
        rondo__cu_result (*call)(rondo__cu_address, rondo__cu_address, size_t, rondo__cu_stream);
    } found = {.symbol = driver_find(rondo_stream_get_device(stream), "cuMemcpyAsync")};
    CALL(stream, address_of(destination), address_of(source), bytes);
}

rondo_status driver_take(rondo_stream *stream, size_t bytes, void **out_address) {
    union {
        void *symbol;
        rondo__cu_result (*call)(void **, size_t, rondo__cu_stream);
    } found = {.symbol = driver_find(rondo_stream_get_device(stream), "cuMemAllocAsync")};
    CALL(stream, out_address, bytes);
}

rondo_status driver_give_back(rondo_stream *stream, void *address) {
    union {
        void *symbol;
        rondo__cu_result (*call)(rondo__cu_address, rondo__cu_stream);
    } found = {.symbol = driver_find(rondo_stream_get_device(stream), "cuMemFreeAsync")};
    CALL(stream, address_of(address));
}

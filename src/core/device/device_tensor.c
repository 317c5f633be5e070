// device/device_tensor.c — tensors in a device's memory: made and copied.
// SPDX-License-Identifier: Apache-2.0
#include "backend/check.h"
#include "base/error.h"
#include "base/memory.h"
#include "rondo/copy.h"
#include "rondo/tensor.h"
#include "tensor/elements.h"
#include "tensor/storage.h"

// ---- memory -----------------------------------------------------------------------------------

typedef struct device_block {
    rondo_device *device;  // retained
    void *address;
} device_block;

static void free_block(void *user_data) {
    device_block *block = user_data;
    rondo_memory_free(block->device, block->address);
    rondo_device_release(block->device);
    rondo__free(block);
}

static rondo_status make_block(rondo_device *device, size_t bytes, rondo_storage **out_storage,
                               void **out_address) {
    *out_storage = NULL;
    *out_address = NULL;
    device_block *block = rondo__calloc(1, sizeof *block);
    if (block == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    // Empty tensors get an address as well: NULL would mean absent.
    rondo_status status =
        rondo_memory_allocate(device, RONDO_MEMORY_DEVICE, bytes > 0 ? bytes : 1, &block->address);
    if (status == RONDO_STATUS_OK) {
        rondo_device_retain(device);
        block->device = device;
        status = rondo__storage_wrap(free_block, block, out_storage);
        if (status == RONDO_STATUS_OK) {
            *out_address = block->address;
            return RONDO_STATUS_OK;
        }
        rondo_memory_free(device, block->address);
        rondo_device_release(device);
    }
    rondo__free(block);
    return status;
}

rondo_status rondo_tensor_init_device(rondo_device *device, rondo_dtype dtype,
                                      const rondo_shape *shape, rondo_tensor *out_tensor) {
    RETURN_IF_ERROR(rondo__check_pointer(out_tensor, __func__, "out_tensor"));
    RETURN_IF_ERROR(rondo__check_pointer(shape, __func__, "shape"));
    const rondo_shape wanted = *shape;  // it may lie inside *out_tensor
    *out_tensor = (rondo_tensor){0};
    RETURN_IF_ERROR(rondo__check_device(device, __func__));
    if (rondo_dtype_get_bytes(dtype) > 0 && !rondo__dtype_is_plain(dtype)) {
        return RONDO_FAIL(INVALID, "a %s is always in host memory; a device holds numbers",
                          rondo_dtype_get_name(dtype));
    }
    rondo_tensor shell;
    RETURN_IF_ERROR(rondo__tensor_init_shell(dtype, &wanted, &shell));
    void *address = NULL;
    rondo_storage *storage = NULL;
    rondo_status status = make_block(device, rondo_tensor_get_bytes(&shell), &storage, &address);
    if (status != RONDO_STATUS_OK) {
        char text[192];
        rondo__error_prefix("a tensor %s %s", rondo_dtype_get_name(dtype),
                            rondo_shape_format(&wanted, text, sizeof text));
        return status;
    }
    shell.data = address;
    shell.storage = storage;
    shell.device = device;
    *out_tensor = shell;
    return RONDO_STATUS_OK;
}

// ---- copies -----------------------------------------------------------------------------------

static const char copy_call[] = "rondo_tensor_copy";

static rondo_status check_alike(const rondo_tensor *source, const rondo_tensor *destination) {
    char from[96];
    char to[96];
    if (!rondo__dtype_is_plain(source->dtype) || rondo_shape_get_count(&source->shape) < 0) {
        return RONDO_FAIL_AS(copy_call, INVALID,
                             "source is %s %s; tensors of numbers with a valid shape are copied",
                             rondo_dtype_get_name(source->dtype),
                             rondo_shape_format(&source->shape, from, sizeof from));
    }
    return source->dtype == destination->dtype &&
                   rondo_shape_is_equal(&source->shape, &destination->shape)
               ? RONDO_STATUS_OK
               : RONDO_FAIL_AS(copy_call, INVALID, "source is %s %s, destination is %s %s",
                               rondo_dtype_get_name(source->dtype),
                               rondo_shape_format(&source->shape, from, sizeof from),
                               rondo_dtype_get_name(destination->dtype),
                               rondo_shape_format(&destination->shape, to, sizeof to));
}

// The direction of the copy; refuses tensors that the stream cannot reach.
static rondo_status choose_kind(const rondo_stream *stream, const rondo_tensor *source,
                                const rondo_tensor *destination, rondo_copy_kind *out_kind) {
    const bool from_host = rondo_tensor_is_on_host(source);
    const bool to_host = rondo_tensor_is_on_host(destination);
    const bool is_near =
        rondo_device_is_host(stream->device)
            ? from_host && to_host
            : source->device == stream->device || destination->device == stream->device;
    *out_kind = from_host && !to_host   ? RONDO_COPY_HOST_TO_DEVICE
                : !from_host && to_host ? RONDO_COPY_DEVICE_TO_HOST
                                        : RONDO_COPY_DEVICE_TO_DEVICE;
    return is_near ? RONDO_STATUS_OK
                   : RONDO_FAIL_AS(copy_call, INVALID,
                                   "source is in %s, destination in %s, the stream is of %s; take "
                                   "a stream of a GPU that holds one of them, on the host device "
                                   "both must be in host memory",
                                   rondo__tensor_get_place(source),
                                   rondo__tensor_get_place(destination), stream->device->name);
}

rondo_status rondo_tensor_copy(rondo_stream *stream, const rondo_tensor *source,
                               const rondo_tensor *destination) {
    RETURN_IF_ERROR(rondo__check_stream(stream, __func__));
    RETURN_IF_ERROR(rondo__check_pointer(source, __func__, "source"));
    RETURN_IF_ERROR(rondo__check_pointer(destination, __func__, "destination"));
    RETURN_IF_ERROR(check_alike(source, destination));
    rondo_copy_kind kind;
    RETURN_IF_ERROR(choose_kind(stream, source, destination, &kind));
    const size_t bytes = rondo_tensor_get_bytes(source);
    return kind == RONDO_COPY_DEVICE_TO_DEVICE && source->device != destination->device &&
                   !rondo_device_is_host(stream->device)
               ? rondo_stream_copy_between(stream, destination->device, destination->data,
                                           source->device, source->data, bytes)
               : rondo_stream_copy(stream, destination->data, source->data, bytes, kind);
}

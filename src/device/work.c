// device/work.c — work put on a stream: argument checks, the same for every backend.
// SPDX-License-Identifier: Apache-2.0
#include "device/work.h"
#include "backend/check.h"
#include "base/read_options.h"
#include "capture/addresses.h"
#include "capture/host_memory.h"

enum { ARGUMENT_BYTES_MAX = 4096 };

// Inside checks, which are given the name of the public `call`.
#define FAIL_INVALID(...) RONDO_FAIL_AS(call, INVALID, __VA_ARGS__)

rondo_status rondo__work_check_copy(const void *destination, const void *source, size_t bytes,
                                    rondo_copy_kind kind, const char *call) {
    if (kind != RONDO_COPY_HOST_TO_DEVICE && kind != RONDO_COPY_DEVICE_TO_HOST &&
        kind != RONDO_COPY_DEVICE_TO_DEVICE) {
        return FAIL_INVALID("%d is not a kind of copy", (int)kind);
    }
    if (bytes == 0) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(rondo__check_pointer(destination, call, "destination"));
    RETURN_IF_ERROR(rondo__check_pointer(source, call, "source"));
    uintptr_t to = (uintptr_t)destination;
    uintptr_t from = (uintptr_t)source;
    if (bytes > (size_t)PTRDIFF_MAX || (to < from ? from - to : to - from) < bytes) {
        return FAIL_INVALID("the areas of a copy of %zu bytes overlap", bytes);
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo_stream_copy(rondo_stream *stream, void *destination, const void *source,
                               size_t bytes, rondo_copy_kind kind) {
    RETURN_IF_ERROR(rondo__check_stream(stream, __func__));
    rondo_status status = rondo__work_check_copy(destination, source, bytes, kind, __func__);
    if (status == RONDO_STATUS_OK && bytes == 0) {
        return RONDO_STATUS_OK;
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__capture_refuse_broken(stream, __func__);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__host_memory_prepare_copy(stream, &source, destination, bytes, kind);
    }
    if (status == RONDO_STATUS_OK) {
        status = stream->device->backend->copy(stream, destination, source, bytes, kind);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__addresses_note(stream, destination, "a copy");
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__addresses_note(stream, source, "a copy");
    }
    return rondo__mark_work(stream, "memcpy", status);
}

rondo_status rondo__work_check_fill(const void *destination, uint32_t element_bytes, size_t count,
                                    const char *call) {
    if (element_bytes != 1 && element_bytes != 2 && element_bytes != 4) {
        return FAIL_INVALID("a fill has elements of 1, 2 or 4 bytes, not %u",
                            (unsigned)element_bytes);
    }
    if (count == 0) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(rondo__check_pointer(destination, call, "destination"));
    if ((uintptr_t)destination % element_bytes != 0) {
        return FAIL_INVALID(
            "the destination of a fill is not aligned to its elements of "
            "%u bytes",
            (unsigned)element_bytes);
    }
    if (count > (size_t)PTRDIFF_MAX / element_bytes) {
        return FAIL_INVALID("a fill of %zu elements is larger than memory", count);
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo_stream_fill(rondo_stream *stream, void *destination, uint32_t value,
                               uint32_t element_bytes, size_t count) {
    RETURN_IF_ERROR(rondo__check_stream(stream, __func__));
    rondo_status status = rondo__work_check_fill(destination, element_bytes, count, __func__);
    if (status == RONDO_STATUS_OK && count == 0) {
        return RONDO_STATUS_OK;
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__capture_refuse_broken(stream, __func__);
    }
    if (status == RONDO_STATUS_OK) {
        status = stream->device->backend->fill(stream, destination, value, element_bytes, count);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__addresses_note(stream, destination, "a fill");
    }
    return rondo__mark_work(stream, "memset", status);
}

rondo_status rondo__work_check_arguments(const void *arguments, size_t argument_bytes,
                                         const char *call) {
    if (argument_bytes > ARGUMENT_BYTES_MAX) {
        return RONDO_FAIL_AS(call, INVALID,
                             "%zu bytes of arguments are more than %d; pass the address of a "
                             "buffer instead",
                             argument_bytes, (int)ARGUMENT_BYTES_MAX);
    }
    return argument_bytes == 0 ? RONDO_STATUS_OK
                               : rondo__check_pointer(arguments, call, "arguments");
}

rondo_status rondo_stream_call_host(rondo_stream *stream, const char *name,
                                    rondo_host_function function, const void *arguments,
                                    size_t argument_bytes) {
    RETURN_IF_ERROR(rondo__check_stream(stream, __func__));
    name = name != NULL ? name : "";
    rondo_status status = function != NULL
                              ? rondo__work_check_arguments(arguments, argument_bytes, __func__)
                              : rondo__check_fail_null(__func__, "function");
    if (status == RONDO_STATUS_OK) {
        status = rondo__capture_refuse_broken(stream, __func__);
    }
    if (status == RONDO_STATUS_OK) {
        status =
            stream->device->backend->call_host(stream, name, function, arguments, argument_bytes);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__addresses_note_words(stream, arguments, argument_bytes, name);
    }
    return rondo__mark_work(stream, name, status);
}

rondo_status rondo__work_check_launch(const rondo_launch **in_out_launch, rondo_launch *whole,
                                      const char *call) {
    const rondo_launch *launch = *in_out_launch;
    if (launch->struct_size != sizeof *launch) {
        *whole = (rondo_launch){.struct_size = sizeof *whole};
        RETURN_IF_ERROR(rondo__read_options(launch, whole, sizeof *whole, call, "rondo_launch"));
        launch = *in_out_launch = whole;
    }
    RETURN_IF_ERROR(rondo__check_pointer(launch->function, call, "launch->function"));
    for (int i = 0; i < 3; ++i) {
        if (launch->grid[i] == 0 || launch->block[i] == 0) {
            return FAIL_INVALID(
                "kernel \"%s\": grid %u x %u x %u and block %u x %u x %u must all be "
                "at least 1",
                launch->name != NULL ? launch->name : "", (unsigned)launch->grid[0],
                (unsigned)launch->grid[1], (unsigned)launch->grid[2], (unsigned)launch->block[0],
                (unsigned)launch->block[1], (unsigned)launch->block[2]);
        }
    }
    if ((launch->flags & ~(uint32_t)RONDO_LAUNCH_OVERLAP) != 0) {
        return FAIL_INVALID("launch flags 0x%x have unknown bits; there is RONDO_LAUNCH_OVERLAP",
                            (unsigned)launch->flags);
    }
    return rondo__work_check_arguments(launch->arguments, launch->argument_bytes, call);
}

rondo_status rondo_stream_launch(rondo_stream *stream, const rondo_launch *launch) {
    RETURN_IF_ERROR(rondo__check_stream(stream, __func__));
    rondo_status status = rondo__check_pointer(launch, __func__, "launch");
    if (status != RONDO_STATUS_OK) {
        return rondo__mark_work(stream, "", status);
    }
    rondo_launch whole;
    status = rondo__work_check_launch(&launch, &whole, __func__);
    if (status == RONDO_STATUS_OK) {
        status = rondo__capture_refuse_broken(stream, __func__);
    }
    if (status == RONDO_STATUS_OK) {
        status = stream->device->backend->launch(stream, launch);
    }
    if (status == RONDO_STATUS_OK && rondo__addresses_are_wanted(stream)) {
        status = rondo__addresses_note_words(stream, launch->arguments, launch->argument_bytes,
                                             launch->name != NULL ? launch->name : "a kernel");
    }
    return rondo__mark_work(stream, launch->name != NULL ? launch->name : "", status);
}

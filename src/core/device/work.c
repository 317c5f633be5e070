// device/work.c — work put on a stream: argument checks, the same for every backend.
// SPDX-License-Identifier: Apache-2.0
#include "device/work.h"
#include "backend/cause.h"
#include "backend/check.h"
#include "base/read_options.h"
#include "capture/addresses.h"
#include "capture/host_memory.h"
#include "device/copy_note.h"
#include "rondo/copy.h"

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

static bool is_recording(rondo_stream *stream) {
    rondo__capture_state state = RONDO__CAPTURE_NONE;
    return rondo__stream_may_record(stream) &&
           stream->device->backend->get_capture_state(stream, &state) == RONDO_STATUS_OK &&
           state != RONDO__CAPTURE_NONE;
}

// Reports a copy that is not recorded, if a listener is registered.
static rondo__hook_scope tell_copy(rondo_stream *stream, const void *destination,
                                   const void *source, size_t bytes, rondo_copy_kind kind,
                                   const rondo__copy_note *note) {
    static const rondo__way ways[] = {[RONDO_COPY_HOST_TO_DEVICE] = RONDO__WAY_H2D,
                                      [RONDO_COPY_DEVICE_TO_HOST] = RONDO__WAY_D2H,
                                      [RONDO_COPY_DEVICE_TO_DEVICE] = RONDO__WAY_D2D};
    if (!rondo__copy_is_told() || is_recording(stream)) {
        return (rondo__hook_scope){0};
    }
    const bool is_from_host = kind == RONDO_COPY_HOST_TO_DEVICE;
    const bool is_to_host = kind == RONDO_COPY_DEVICE_TO_HOST;
    const bool is_pageable =
        (is_from_host && rondo__areas_is_pageable(stream->device, source, bytes)) ||
        (is_to_host && rondo__areas_is_pageable(stream->device, destination, bytes));
    const rondo__copy_tale tale = {.from = is_from_host ? "the host" : stream->device->name,
                                   .to = is_to_host ? "the host" : stream->device->name,
                                   .way = ways[kind],
                                   .bytes = bytes,
                                   .is_async = !is_pageable,
                                   .stream = stream};
    return rondo__copy_tell(&tale, note);
}

rondo_status rondo_stream_copy(rondo_stream *stream, void *destination, const void *source,
                               size_t bytes, rondo_copy_kind kind) {
    return rondo__stream_copy_noted(stream, destination, source, bytes, kind, NULL);
}

rondo_status rondo__stream_copy_noted(rondo_stream *stream, void *destination, const void *source,
                                      size_t bytes, rondo_copy_kind kind,
                                      const rondo__copy_note *note) {
    static const char call[] = "rondo_stream_copy";
    RETURN_IF_ERROR(rondo__check_stream(stream, call));
    rondo_status status = rondo__work_check_copy(destination, source, bytes, kind, call);
    if (status == RONDO_STATUS_OK && bytes == 0) {
        return RONDO_STATUS_OK;
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__capture_refuse_broken(stream, call);
    }
    const rondo__hook_scope scope = status == RONDO_STATUS_OK
                                        ? tell_copy(stream, destination, source, bytes, kind, note)
                                        : (rondo__hook_scope){0};
    if (status == RONDO_STATUS_OK) {
        status = rondo__host_memory_prepare_copy(stream, &source, destination, bytes, kind);
    }
    if (status == RONDO_STATUS_OK) {
        status = stream->device->backend->copy(stream, destination, source, bytes, kind);
    }
    rondo__hook_leave(&scope);
    if (status == RONDO_STATUS_OK) {
        status = rondo__addresses_note(stream, destination, "a copy");
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__addresses_note(stream, source, "a copy");
    }
    return rondo__mark_work(stream, "memcpy", status);
}

// ---- between devices --------------------------------------------------------------------------

static rondo_status fail_other_device(const char *call, const rondo_stream *stream,
                                      const rondo_device *to, const rondo_device *from,
                                      const char *cure) {
    rondo_status status =
        RONDO_FAIL_AS(call, INVALID, "a copy from %s to %s cannot be put on a stream of %s; %s",
                      from->name, to->name, stream->device->name, cure);
    rondo__cause_set(RONDO_CAUSE_OTHER_DEVICE);
    return status;
}

// The copy needs a backend that knows both ends: one's own, or a GPU's where the other is the host.
static rondo_status check_ends(const rondo_device *to, const rondo_device *from, const char *call) {
    RETURN_IF_ERROR(rondo__check_pointer(to, call, "to"));
    RETURN_IF_ERROR(rondo__check_pointer(from, call, "from"));
    RETURN_IF_ERROR(rondo__check_alive(to, call));
    RETURN_IF_ERROR(rondo__check_alive(from, call));
    const bool is_known = to == from || rondo_device_is_host(to) || rondo_device_is_host(from) ||
                          (to->backend == from->backend && to->backend->copy_between != NULL);
    return is_known ? RONDO_STATUS_OK
                    : RONDO_FAIL_AS(call, UNSUPPORTED,
                                    "no driver copies from %s to %s; copy to host memory, and from "
                                    "there",
                                    from->name, to->name);
}

static rondo_status check_between(const rondo_stream *stream, const rondo_device *to,
                                  const rondo_device *from, const char *call) {
    RETURN_IF_ERROR(check_ends(to, from, call));
    if (stream->device != to && stream->device != from) {
        return fail_other_device(call, stream, to, from, "take a stream of either");
    }
    return to != from && rondo_device_is_host(stream->device)
               ? fail_other_device(call, stream, to, from, "take a stream of the other one")
               : RONDO_STATUS_OK;
}

static rondo_status copy_between(rondo_stream *stream, rondo_device *to, void *destination,
                                 rondo_device *from, const void *source, size_t bytes) {
    if (rondo_device_is_host(to) == rondo_device_is_host(from)) {
        return to == from ? stream->device->backend->copy(stream, destination, source, bytes,
                                                          RONDO_COPY_DEVICE_TO_DEVICE)
                          : stream->device->backend->copy_between(stream, to, destination, from,
                                                                  source, bytes);
    }
    const rondo_copy_kind kind =
        rondo_device_is_host(to) ? RONDO_COPY_DEVICE_TO_HOST : RONDO_COPY_HOST_TO_DEVICE;
    RETURN_IF_ERROR(rondo__host_memory_prepare_copy(stream, &source, destination, bytes, kind));
    return stream->device->backend->copy(stream, destination, source, bytes, kind);
}

// The same for a copy between the memory of two devices.
static rondo__hook_scope tell_between(rondo_stream *stream, const rondo_device *to,
                                      const void *destination, const rondo_device *from,
                                      const void *source, size_t bytes,
                                      const rondo__copy_note *note) {
    if (!rondo__copy_is_told() || is_recording(stream)) {
        return (rondo__hook_scope){0};
    }
    const bool is_from_host = rondo_device_is_host(from);
    const bool is_to_host = rondo_device_is_host(to);
    const bool is_pageable =
        is_from_host != is_to_host &&
        rondo__areas_is_pageable(stream->device, is_from_host ? source : destination, bytes);
    const rondo__copy_tale tale = {.from = from->name,
                                   .to = to->name,
                                   .way = is_from_host == is_to_host ? RONDO__WAY_D2D
                                          : is_from_host             ? RONDO__WAY_H2D
                                                                     : RONDO__WAY_D2H,
                                   .bytes = bytes,
                                   .is_async = !is_pageable,
                                   .stream = stream};
    return rondo__copy_tell(&tale, note);
}

rondo_status rondo_stream_copy_between(rondo_stream *stream, rondo_device *to, void *destination,
                                       rondo_device *from, const void *source, size_t bytes) {
    return rondo__stream_copy_between_noted(stream, to, destination, from, source, bytes, NULL);
}

rondo_status rondo__stream_copy_between_noted(rondo_stream *stream, rondo_device *to,
                                              void *destination, rondo_device *from,
                                              const void *source, size_t bytes,
                                              const rondo__copy_note *note) {
    static const char call[] = "rondo_stream_copy_between";
    RETURN_IF_ERROR(rondo__check_stream(stream, call));
    rondo_status status = check_between(stream, to, from, call);
    if (status == RONDO_STATUS_OK) {
        status =
            rondo__work_check_copy(destination, source, bytes, RONDO_COPY_DEVICE_TO_DEVICE, call);
    }
    if (status == RONDO_STATUS_OK && bytes == 0) {
        return RONDO_STATUS_OK;
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__capture_refuse_broken(stream, call);
    }
    if (status == RONDO_STATUS_OK) {
        const rondo__hook_scope scope =
            tell_between(stream, to, destination, from, source, bytes, note);
        status = copy_between(stream, to, destination, from, source, bytes);
        rondo__hook_leave(&scope);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__addresses_note(stream, destination, "a copy");
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__addresses_note(stream, source, "a copy");
    }
    return rondo__mark_work(stream, "memcpy", status);
}

rondo_status rondo_device_copies_directly(rondo_device *to, rondo_device *from,
                                          bool *out_is_direct) {
    RETURN_IF_ERROR(rondo__check_pointer(out_is_direct, __func__, "out_is_direct"));
    *out_is_direct = false;
    RETURN_IF_ERROR(check_ends(to, from, __func__));
    if (to == from || rondo_device_is_host(to) || rondo_device_is_host(from)) {
        *out_is_direct = true;
        return RONDO_STATUS_OK;
    }
    return to->backend->reaches(to, from, out_is_direct);
}

// ---- fills ------------------------------------------------------------------------------------

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

// The grid is whole clusters.
static rondo_status check_cluster(const rondo_launch *launch, const char *call) {
    const uint32_t *cluster = launch->cluster;
    if ((cluster[0] | cluster[1] | cluster[2]) == 0) {
        return RONDO_STATUS_OK;
    }
    for (int i = 0; i < 3; ++i) {
        if (cluster[i] == 0 || launch->grid[i] % cluster[i] != 0) {
            return FAIL_INVALID(
                "kernel \"%s\": clusters of %u x %u x %u blocks do not divide the grid of %u x %u "
                "x %u; each must be at least 1, or all of them 0",
                launch->name != NULL ? launch->name : "", (unsigned)cluster[0],
                (unsigned)cluster[1], (unsigned)cluster[2], (unsigned)launch->grid[0],
                (unsigned)launch->grid[1], (unsigned)launch->grid[2]);
        }
    }
    return RONDO_STATUS_OK;
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
    const uint32_t flags =
        RONDO_LAUNCH_OVERLAP | RONDO_LAUNCH_ONE_PARAMETER | RONDO_LAUNCH_COOPERATIVE;
    if ((launch->flags & ~flags) != 0) {
        return FAIL_INVALID(
            "launch flags 0x%x have unknown bits; there are RONDO_LAUNCH_OVERLAP, "
            "RONDO_LAUNCH_ONE_PARAMETER and RONDO_LAUNCH_COOPERATIVE",
            (unsigned)launch->flags);
    }
    RETURN_IF_ERROR(check_cluster(launch, call));
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

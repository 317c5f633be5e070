// backend/host/host_work.c — copies, fills and functions: run eagerly or recorded.
// SPDX-License-Identifier: Apache-2.0

#include <string.h>

#include "backend/backend.h"
#include "backend/host/host_capture.h"
#include "backend/host/host_timing.h"
#include "backend/host/host_work.h"
#include "base/error.h"

enum { INLINE_COPY_BYTES = 4096 };

// ---- what runs --------------------------------------------------------------------------------

static void run_copy(void *data) {
    const rondo__host_copy_arguments *arguments = data;
    memcpy(arguments->destination, arguments->source, arguments->bytes);
}

// A small pageable source, kept behind the arguments.
static void run_inline_copy(void *data) {
    const rondo__host_copy_arguments *arguments = data;
    memcpy(arguments->destination, arguments + 1, arguments->bytes);
}

static void run_fill(void *data) {
    const rondo__host_fill_arguments *arguments = data;
    if (arguments->element_bytes == 1) {
        memset(arguments->destination, (int)(arguments->value & 0xffu), arguments->count);
    } else if (arguments->element_bytes == 2) {
        uint16_t *elements = arguments->destination;
        for (size_t i = 0; i < arguments->count; ++i) {
            elements[i] = (uint16_t)arguments->value;
        }
    } else {
        uint32_t *elements = arguments->destination;
        for (size_t i = 0; i < arguments->count; ++i) {
            elements[i] = arguments->value;
        }
    }
}

// ---- running or recording ---------------------------------------------------------------------

// True when the work was recorded; *out_status is then the result of recording it.
static bool is_recorded(rondo__host_stream *stream, const rondo__host_node *node,
                        rondo_status *out_status) {
    if (__builtin_expect(atomic_load_explicit(&stream->capture, memory_order_acquire) == NULL, 1)) {
        return false;
    }
    bool was_recorded = false;
    *out_status = rondo__host_record_node(stream, node, &was_recorded);
    return was_recorded || *out_status != RONDO_STATUS_OK;
}

static rondo_status run_or_record(rondo__host_stream *stream, const rondo__host_node *node) {
    rondo_status status;
    if (is_recorded(stream, node, &status)) {
        return status;
    }
    void *room;
    RETURN_IF_ERROR(rondo__host_submit_node(stream, node, 0, &room));
    if (node->argument_bytes > 0) {
        memcpy(room, node->arguments, node->argument_bytes);
    }
    rondo__host_publish(stream);
    return RONDO_STATUS_OK;
}

// Whether a short copy can be made at once: nothing is on the stream, and nothing watches it.
// Waking the worker takes longer than the copy.
static bool can_copy_here(rondo__host_stream *stream, size_t bytes) {
    return bytes <= INLINE_COPY_BYTES &&
           atomic_load_explicit(&stream->capture, memory_order_acquire) == NULL &&
           !rondo__hook_is_on(RONDO__HOOK_WORK) &&
           rondo__host_lane_has_passed(stream->lane, stream->submitted);
}

// ---- the table's entries ----------------------------------------------------------------------

rondo_status rondo__host_copy(rondo_stream *stream_, void *destination, const void *source,
                              size_t bytes, rondo_copy_kind kind) {
    rondo__host_stream *stream = (rondo__host_stream *)stream_;
    rondo_device *device = stream_->device;
    if (can_copy_here(stream, bytes)) {
        memcpy(destination, source, bytes);
        return RONDO_STATUS_OK;
    }
    rondo__host_copy_arguments arguments = {
        .destination = destination, .source = source, .bytes = bytes, .kind = kind};
    rondo__host_node node = {.kind = RONDO__NODE_COPY,
                             .run = run_copy,
                             .name = "",
                             .arguments = &arguments,
                             .argument_bytes = sizeof arguments};
    bool is_pageable =
        (kind == RONDO_COPY_HOST_TO_DEVICE && !rondo__areas_cover(device, source, bytes)) ||
        (kind == RONDO_COPY_DEVICE_TO_HOST && !rondo__areas_cover(device, destination, bytes));
    if (!is_pageable) {
        return run_or_record(stream, &node);
    }
    // A stream that records never gets here with such memory (capture/host_memory.c).
    if (kind == RONDO_COPY_HOST_TO_DEVICE && bytes <= INLINE_COPY_BYTES) {
        void *room;
        node.run = run_inline_copy;
        RETURN_IF_ERROR(rondo__host_submit_node(stream, &node, bytes, &room));
        memcpy(room, &arguments, sizeof arguments);
        memcpy((char *)room + sizeof arguments, source, bytes);
        rondo__host_publish(stream);
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(run_or_record(stream, &node));
    rondo__host_lane_wait(stream->lane, stream->submitted);
    return RONDO_STATUS_OK;
}

rondo_status rondo__host_fill(rondo_stream *stream, void *destination, uint32_t value,
                              uint32_t element_bytes, size_t count) {
    rondo__host_fill_arguments arguments = {
        .destination = destination, .count = count, .value = value, .element_bytes = element_bytes};
    rondo__host_node node = {.kind = RONDO__NODE_FILL,
                             .run = run_fill,
                             .name = "",
                             .arguments = &arguments,
                             .argument_bytes = sizeof arguments};
    return run_or_record((rondo__host_stream *)stream, &node);
}

rondo_status rondo__host_call(rondo_stream *stream, const char *name, rondo_host_function function,
                              const void *arguments, size_t argument_bytes) {
    rondo__host_node node = {.kind = RONDO__NODE_HOST,
                             .run = function,
                             .name = name,
                             .arguments = arguments,
                             .argument_bytes = argument_bytes};
    return run_or_record((rondo__host_stream *)stream, &node);
}

rondo_status rondo__host_launch(rondo_stream *stream, const rondo_launch *launch) {
    // An object pointer holds a function's address on every system this library is for.
    union {
        void *address;
        rondo_host_function function;
    } target = {.address = launch->function};
    rondo__host_node node = {
        .kind = RONDO__NODE_KERNEL,
        .run = target.function,
        .name = launch->name != NULL ? launch->name : "",
        .arguments = launch->arguments,
        .argument_bytes = launch->argument_bytes,
        .grid = {launch->grid[0], launch->grid[1], launch->grid[2]},
        .block = {launch->block[0], launch->block[1], launch->block[2]},
        .shared_bytes = launch->shared_bytes,
        .attributes = {.cluster = {launch->cluster[0], launch->cluster[1], launch->cluster[2]},
                       .is_cooperative = (launch->flags & RONDO_LAUNCH_COOPERATIVE) != 0,
                       .priority = launch->priority}};
    return run_or_record((rondo__host_stream *)stream, &node);
}

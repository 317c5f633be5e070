// capture/host_memory.c — see host_memory.h.
// SPDX-License-Identifier: Apache-2.0

#include "capture/host_memory.h"

#include <stdlib.h>
#include <string.h>

#include "backend/cause.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/memory.h"

enum { CHUNK_BYTES = 64 * 1024, SNAPSHOT_ALIGNMENT = 64 };

// Pinned memory for snapshots, filled from the front.
typedef struct chunk {
    struct chunk *next;
    char *bytes;
    size_t capacity;
    size_t used;
} chunk;

typedef struct host_range {
    uintptr_t begin;
    uintptr_t end;
} host_range;

// A graph's use of host memory.
typedef struct host_use {
    rondo__participant participant;
    rondo_device *device;
    chunk *chunks;  // of the recording thread
    // Guarded by device->host_memory_lock.
    host_range *ranges;
    size_t count;
    size_t sorted_count;  // of the first, which lie apart and in order
    size_t capacity;
    struct host_use *next;
    struct host_use *previous;
} host_use;

// Memory that waits for the graphs that use it.
typedef struct waiting_area {
    struct waiting_area *next;
    void *base;
    size_t bytes;
} waiting_area;
_Static_assert(sizeof(waiting_area) <= RONDO__HOST_MEMORY_RECORD_BYTES, "it fits a record");

// ---- host memory of graphs --------------------------------------------------------------------

static bool is_covered(const rondo_device *device, uintptr_t begin, uintptr_t end) {
    for (const host_use *use = device->host_uses; use != NULL; use = use->next) {
        for (size_t i = 0; i < use->count; ++i) {
            if (use->ranges[i].begin < end && use->ranges[i].end > begin) {
                return true;
            }
        }
    }
    return false;
}

bool rondo__host_memory_covers(rondo_device *device, const void *address, size_t bytes) {
    if (atomic_load_explicit(&device->host_use_count, memory_order_acquire) == 0) {
        return false;
    }
    pthread_mutex_lock(&device->host_memory_lock);
    bool is_used = is_covered(device, (uintptr_t)address, (uintptr_t)address + bytes);
    pthread_mutex_unlock(&device->host_memory_lock);
    return is_used;
}

void rondo__host_memory_leave_behind(rondo_device *device, void *base, size_t bytes, void *record) {
    waiting_area *o = record;
    *o = (waiting_area){.base = base, .bytes = bytes};
    pthread_mutex_lock(&device->host_memory_lock);
    bool is_used = is_covered(device, (uintptr_t)base, (uintptr_t)base + bytes);
    if (is_used) {
        o->next = device->waiting;
        device->waiting = o;
    }
    pthread_mutex_unlock(&device->host_memory_lock);
    if (!is_used) {
        (void)rondo__areas_free(device, base);
        rondo__free(o);
    }
}

// Takes those out of the list that no graph uses any more.
static waiting_area *take_unused(rondo_device *device) {
    waiting_area *taken = NULL;
    for (waiting_area **link = (waiting_area **)&device->waiting; *link != NULL;) {
        waiting_area *o = *link;
        if (is_covered(device, (uintptr_t)o->base, (uintptr_t)o->base + o->bytes)) {
            link = &o->next;
        } else {
            *link = o->next;
            o->next = taken;
            taken = o;
        }
    }
    return taken;
}

static void destroy_host_use(rondo__participant *participant) {
    host_use *use = (host_use *)participant;
    rondo_device *device = use->device;
    pthread_mutex_lock(&device->host_memory_lock);
    if (use->next != NULL) {
        use->next->previous = use->previous;
    }
    if (use->previous != NULL) {
        use->previous->next = use->next;
    } else {
        device->host_uses = use->next;
    }
    atomic_fetch_sub(&device->host_use_count, 1);
    waiting_area *list = take_unused(device);
    pthread_mutex_unlock(&device->host_memory_lock);
    while (list != NULL) {
        waiting_area *next = list->next;
        (void)rondo__areas_free(device, list->base);
        rondo__free(list);
        list = next;
    }
    while (use->chunks != NULL) {
        chunk *next = use->chunks->next;
        (void)rondo__areas_free(device, use->chunks->bytes);
        rondo__free(use->chunks);
        use->chunks = next;
    }
    rondo__free(use->ranges);
    rondo__free(use);
    rondo_device_release(device);
}

static const rondo__participant_type host_use_type = {
    .name = "host memory of copies",
    .destroy = destroy_host_use,
};

static rondo_status create_host_use(rondo_device *device, host_use **out_use) {
    host_use *use = rondo__calloc(1, sizeof *use);
    if (use == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    use->participant.type = &host_use_type;
    rondo_device_retain(device);
    use->device = device;
    pthread_mutex_lock(&device->host_memory_lock);
    use->next = device->host_uses;
    if (use->next != NULL) {
        use->next->previous = use;
    }
    device->host_uses = use;
    atomic_fetch_add(&device->host_use_count, 1);
    pthread_mutex_unlock(&device->host_memory_lock);
    *out_use = use;
    return RONDO_STATUS_OK;
}

static rondo_status get_host_use(rondo__capture *capture, host_use **out_use) {
    *out_use = (host_use *)rondo__capture_find_participant(capture, &host_use_type, NULL);
    if (*out_use == NULL) {
        RETURN_IF_ERROR(create_host_use(capture->device, out_use));
        rondo__capture_add_participant(capture, &(*out_use)->participant);
    }
    return RONDO_STATUS_OK;
}

static rondo_status add_range(host_use *use, const void *address, size_t bytes) {
    pthread_mutex_lock(&use->device->host_memory_lock);
    rondo_status status = RONDO__ARRAY_RESERVE(use->ranges, use->capacity, use->count + 1);
    if (status == RONDO_STATUS_OK) {
        use->ranges[use->count++] =
            (host_range){.begin = (uintptr_t)address, .end = (uintptr_t)address + bytes};
    }
    pthread_mutex_unlock(&use->device->host_memory_lock);
    return status;
}

static rondo_status take_snapshot(host_use *use, const void *source, size_t bytes,
                                  const void **out_copy) {
    size_t wanted = rondo__align_up(bytes, (size_t)SNAPSHOT_ALIGNMENT);
    chunk *c = use->chunks;
    if (c == NULL || c->capacity - c->used < wanted) {
        c = rondo__calloc(1, sizeof *c);
        if (c == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
        c->capacity = wanted > CHUNK_BYTES ? wanted : CHUNK_BYTES;
        void *memory = NULL;
        rondo_status status =
            rondo__areas_allocate(use->device, RONDO_MEMORY_PINNED, c->capacity, &memory);
        if (status != RONDO_STATUS_OK) {
            rondo__free(c);
            return status;
        }
        c->bytes = memory;
        c->next = use->chunks;
        use->chunks = c;
    }
    memcpy(c->bytes + c->used, source, bytes);
    *out_copy = c->bytes + c->used;
    c->used += wanted;
    return RONDO_STATUS_OK;
}

// A graph reads and writes host memory anew at each replay, when this may be gone or stand for
// something else.
static rondo_status fail_pageable(const void *host, bool is_source) {
    rondo_status status = RONDO_FAIL_AS(
        "rondo_stream_copy", STATE,
        "%s %p is pageable host memory, which may be gone at a replay; allocate it with "
        "RONDO_MEMORY_PINNED, copy before the capture%s",
        is_source ? "the source" : "the destination", host,
        is_source ? ", or let the graph keep a copy (RONDO_PAGEABLE_SNAPSHOT)" : "");
    rondo__cause_set(RONDO_CAUSE_PAGEABLE_COPY);
    return status;
}

// Whether the capture refuses a copy from or to that host memory, or takes a copy of its own.
static bool is_refused(const rondo_stream *stream, const rondo__place *place, const void *host,
                       size_t bytes, bool is_source, bool *out_wants_snapshot) {
    const bool is_pageable = rondo__areas_is_pageable(stream->device, host, bytes);
    *out_wants_snapshot =
        is_source && place->capture != NULL && place->capture->snapshots_pageable && is_pageable;
    return is_pageable && !*out_wants_snapshot;
}

rondo_status rondo__host_memory_may_record(rondo_stream *stream, const void *host, size_t bytes,
                                           bool is_source, bool *out_may) {
    rondo__place place;
    bool wants_snapshot = false;
    *out_may = true;
    RETURN_IF_ERROR(rondo__capture_locate(stream, &place));
    *out_may = place.state != RONDO__CAPTURE_ACTIVE ||
               !is_refused(stream, &place, host, bytes, is_source, &wants_snapshot);
    return RONDO_STATUS_OK;
}

rondo_status rondo__host_memory_prepare_copy(rondo_stream *stream, const void **in_out_source,
                                             const void *destination, size_t bytes,
                                             rondo_copy_kind kind) {
    if (kind == RONDO_COPY_DEVICE_TO_DEVICE) {
        return RONDO_STATUS_OK;
    }
    rondo__place place;
    RETURN_IF_ERROR(rondo__capture_locate(stream, &place));
    if (place.state == RONDO__CAPTURE_NONE) {
        return RONDO_STATUS_OK;
    }
    if (place.state == RONDO__CAPTURE_BROKEN) {
        return rondo__cause_fail_broken(stream, "a recorded call");
    }
    bool is_source = kind == RONDO_COPY_HOST_TO_DEVICE;
    const void *host = is_source ? *in_out_source : destination;
    bool wants_snapshot = false;
    if (is_refused(stream, &place, host, bytes, is_source, &wants_snapshot)) {
        return fail_pageable(host, is_source);
    }
    host_use *use = NULL;
    if (place.capture != NULL) {
        RETURN_IF_ERROR(get_host_use(place.capture, &use));
    }
    return use == NULL      ? RONDO_STATUS_OK
           : wants_snapshot ? take_snapshot(use, host, bytes, in_out_source)
                            : add_range(use, host, bytes);
}

static int compare_ranges(const void *a, const void *b) {
    uintptr_t left = ((const host_range *)a)->begin;
    uintptr_t right = ((const host_range *)b)->begin;
    return left < right ? -1 : left > right;
}

static void sort_ranges(host_use *use) {
    size_t kept = 0;
    pthread_mutex_lock(&use->device->host_memory_lock);
    qsort(use->ranges, use->count, sizeof *use->ranges, compare_ranges);
    for (size_t i = 1; i < use->count; ++i) {
        const host_range *range = &use->ranges[i];
        if (range->begin <= use->ranges[kept].end) {
            use->ranges[kept].end =
                range->end > use->ranges[kept].end ? range->end : use->ranges[kept].end;
        } else {
            use->ranges[++kept] = *range;
        }
    }
    use->count = kept + 1;
    use->sorted_count = use->count;
    pthread_mutex_unlock(&use->device->host_memory_lock);
}

static bool holds(const host_range *range, uintptr_t begin, uintptr_t end) {
    return range->begin <= begin && end <= range->end;
}

static bool has_range(const host_use *use, uintptr_t begin, uintptr_t end) {
    size_t low = 0;
    size_t high = use->sorted_count;
    while (low < high) {  // the first that begins behind it
        size_t middle = low + (high - low) / 2;
        if (use->ranges[middle].begin <= begin) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    bool is_held = low > 0 && holds(&use->ranges[low - 1], begin, end);
    for (size_t i = use->sorted_count; i < use->count && !is_held; ++i) {
        is_held = holds(&use->ranges[i], begin, end);
    }
    return is_held;
}

// Memory that the copy used before stays in use until the graph is reset: replays in flight may
// need it.
rondo_status rondo__host_memory_patch_copy(rondo_device *device, rondo__participant **list,
                                           const void *host, size_t bytes, const char *call) {
    if (rondo__areas_is_pageable(device, host, bytes)) {
        return RONDO_FAIL_AS(call, STATE,
                             "%p is pageable host memory, which may be gone at a replay; allocate "
                             "it with RONDO_MEMORY_PINNED",
                             host);
    }
    while (*list != NULL && (*list)->type != &host_use_type) {
        list = &(*list)->next;
    }
    host_use *use = (host_use *)*list;
    if (use == NULL) {
        RETURN_IF_ERROR(create_host_use(device, &use));
        *list = &use->participant;
    }
    // Seldom enough, and often enough that few are left to be looked at one by one.
    if (use->count - use->sorted_count > 64 + use->sorted_count / 8) {
        sort_ranges(use);
    }
    uintptr_t begin = (uintptr_t)host;
    return has_range(use, begin, begin + bytes) ? RONDO_STATUS_OK : add_range(use, host, bytes);
}

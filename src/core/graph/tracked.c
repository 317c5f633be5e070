// graph/tracked.c — see tracked.h.
// SPDX-License-Identifier: Apache-2.0
#include "graph/tracked.h"

#include "base/error.h"
#include "base/memory.h"
#include "graph/template.h"

struct rondo__tracked {
    rondo__participant participant;
    uint64_t recording;
    // The backend's handles; from rondo__tracked_resolve on indices.
    rondo__node_handle *nodes;
    size_t count;
    size_t capacity;
    // While it is recorded: open addressing by the backend's handle, so that each node has one
    // handle of the program's. 0: empty; otherwise one more than the position in `nodes`.
    size_t *slots;
    size_t slot_count;  // a power of two, or 0
    // Afterwards, once a node was asked for by its index: by index, one more than the position in
    // `nodes`; 0: it has no handle.
    size_t *by_index;
};

// Guards all that record: handles are taken once, and seldom by two threads.
static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t g_last_recording;

static void destroy_participant(rondo__participant *participant) {
    rondo__tracked_destroy((rondo__tracked *)participant);
}

static const rondo__participant_type tracked_type = {
    .name = "handles of nodes",
    .destroy = destroy_participant,
};

static rondo__tracked *find_or_create(rondo__capture *capture) {
    rondo__tracked *tracked =
        (rondo__tracked *)rondo__capture_find_participant(capture, &tracked_type, NULL);
    if (tracked == NULL) {
        tracked = rondo__calloc(1, sizeof *tracked);
        if (tracked == NULL) {
            return NULL;
        }
        tracked->participant.type = &tracked_type;
        tracked->recording = ++g_last_recording;
        rondo__capture_add_participant(capture, &tracked->participant);
    }
    return tracked;
}

static size_t find_slot(const rondo__tracked *tracked, rondo__node_handle handle) {
    size_t i = (size_t)((uint64_t)handle * UINT64_C(0x9E3779B97F4A7C15) >> 20);
    for (;; ++i) {
        i &= tracked->slot_count - 1;
        if (tracked->slots[i] == 0 || tracked->nodes[tracked->slots[i] - 1] == handle) {
            return i;
        }
    }
}

// Room for one more node.
static rondo_status reserve(rondo__tracked *tracked) {
    rondo_status status =
        RONDO__ARRAY_RESERVE(tracked->nodes, tracked->capacity, tracked->count + 1);
    if (status != RONDO_STATUS_OK || 2 * (tracked->count + 1) <= tracked->slot_count) {
        return status;
    }
    const size_t slot_count = tracked->slot_count > 0 ? 2 * tracked->slot_count : 16;
    size_t *slots = rondo__calloc(slot_count, sizeof *slots);
    if (slots == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo__free(tracked->slots);
    tracked->slots = slots;
    tracked->slot_count = slot_count;
    for (size_t i = 0; i < tracked->count; ++i) {
        slots[find_slot(tracked, tracked->nodes[i])] = i + 1;
    }
    return RONDO_STATUS_OK;
}

static size_t enter(rondo__tracked *tracked, rondo__node_handle handle) {
    size_t *slot = &tracked->slots[find_slot(tracked, handle)];
    if (*slot == 0) {
        tracked->nodes[tracked->count++] = handle;
        *slot = tracked->count;
    }
    return *slot;
}

rondo_status rondo__tracked_add(rondo__capture *capture, rondo__node_handle handle,
                                rondo_node *out_node) {
    pthread_mutex_lock(&g_lock);
    rondo__tracked *tracked = find_or_create(capture);
    rondo_status status = tracked == NULL ? RONDO_STATUS_NO_MEMORY : reserve(tracked);
    if (status == RONDO_STATUS_OK) {
        *out_node = (rondo_node){.recording = tracked->recording, .number = enter(tracked, handle)};
    }
    pthread_mutex_unlock(&g_lock);
    return status;
}

static bool holds(const rondo__tracked *tracked, rondo_node node) {
    return tracked != NULL && node.recording == tracked->recording && node.number > 0 &&
           node.number <= tracked->count;
}

bool rondo__tracked_get_handle(rondo__capture *capture, rondo_node node,
                               rondo__node_handle *out_handle) {
    pthread_mutex_lock(&g_lock);
    const rondo__tracked *tracked =
        (rondo__tracked *)rondo__capture_find_participant(capture, &tracked_type, NULL);
    bool is_held = holds(tracked, node);
    if (is_held) {
        *out_handle = tracked->nodes[node.number - 1];
    }
    pthread_mutex_unlock(&g_lock);
    return is_held;
}

rondo_status rondo__tracked_join(rondo__capture *capture, rondo_stream *stream) {
    pthread_mutex_lock(&g_lock);
    const rondo__tracked *tracked =
        (rondo__tracked *)rondo__capture_find_participant(capture, &tracked_type, NULL);
    pthread_mutex_unlock(&g_lock);
    return tracked != NULL
               ? stream->device->backend->set_frontier(stream, tracked->nodes, tracked->count)
               : RONDO_STATUS_OK;
}

rondo__tracked *rondo__tracked_find(rondo__participant *list) {
    while (list != NULL && list->type != &tracked_type) {
        list = list->next;
    }
    return (rondo__tracked *)list;
}

rondo_status rondo__tracked_resolve(rondo__tracked *tracked, rondo__template *recorded) {
    rondo__node_places places;
    RETURN_IF_ERROR(rondo__node_places_init(recorded, &places));
    for (size_t i = 0; i < tracked->count; ++i) {
        tracked->nodes[i] = rondo__node_places_find(&places, tracked->nodes[i]);
    }
    rondo__node_places_deinit(&places);
    rondo__free(tracked->slots);
    tracked->slots = NULL;
    tracked->slot_count = 0;
    return RONDO_STATUS_OK;
}

rondo__tracked *rondo__tracked_detach(rondo__participant **list) {
    while (*list != NULL && (*list)->type != &tracked_type) {
        list = &(*list)->next;
    }
    rondo__tracked *tracked = (rondo__tracked *)*list;
    if (tracked != NULL) {
        *list = tracked->participant.next;
        tracked->participant.next = NULL;
    }
    return tracked;
}

void rondo__tracked_destroy(rondo__tracked *tracked) {
    if (tracked != NULL) {
        rondo__free(tracked->slots);
        rondo__free(tracked->by_index);
        rondo__free(tracked->nodes);
        rondo__free(tracked);
    }
}

static rondo_status index_nodes(rondo__tracked *tracked, size_t node_count) {
    if (tracked->by_index != NULL) {
        return RONDO_STATUS_OK;
    }
    tracked->by_index = rondo__calloc(node_count + 1, sizeof *tracked->by_index);
    if (tracked->by_index == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < tracked->count; ++i) {
        if (tracked->nodes[i] < node_count) {
            tracked->by_index[tracked->nodes[i]] = i + 1;
        }
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__tracked_of_index(rondo__tracked **in_out_tracked, size_t index,
                                     size_t node_count, rondo_node *out_node) {
    rondo__tracked *tracked = *in_out_tracked;
    if (tracked == NULL) {
        tracked = rondo__calloc(1, sizeof *tracked);
        if (tracked == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
        tracked->participant.type = &tracked_type;
        pthread_mutex_lock(&g_lock);
        tracked->recording = ++g_last_recording;
        pthread_mutex_unlock(&g_lock);
        *in_out_tracked = tracked;
    }
    RETURN_IF_ERROR(index_nodes(tracked, node_count));
    if (tracked->by_index[index] == 0) {
        rondo_status status =
            RONDO__ARRAY_RESERVE(tracked->nodes, tracked->capacity, tracked->count + 1);
        RETURN_IF_ERROR(status);
        tracked->nodes[tracked->count++] = index;
        tracked->by_index[index] = tracked->count;
    }
    *out_node = (rondo_node){.recording = tracked->recording, .number = tracked->by_index[index]};
    return RONDO_STATUS_OK;
}

size_t rondo__tracked_get_index(const rondo__tracked *tracked, rondo_node node) {
    return holds(tracked, node) ? (size_t)tracked->nodes[node.number - 1] : SIZE_MAX;
}

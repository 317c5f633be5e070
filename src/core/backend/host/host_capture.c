// backend/host/host_capture.c — recording instead of running, with CUDA's rules.
//
// A capture begins on one stream, its origin. While it lasts, work put on the origin becomes nodes
// of a template. A stream that waits for an event recorded inside the capture joins it (a fork);
// when the origin later waits for an event of that stream, the branch is joined again:
//
//      origin:  a ---- event ---- b ------------ wait ---- c           a -> b -> c
//                         \                       /                     \       ^
//      other:               wait ---- d ---- event                       -> d --/
//
// Each taking-part stream has a frontier: the nodes that its next node will depend on. Recording a
// node makes the node the whole frontier; recording an event copies the frontier into the event;
// waiting for such an event adds its nodes to the frontier.
//
// A call that cannot be recorded fails and changes nothing. That the capture is of no use then, and
// what else captures forbid, is the generic layer's to know (capture/forbid.h, capture/blame.h).
//
// At the end every node must be a predecessor of the origin's frontier or in it; otherwise some
// branch was never joined, and the error names its stream.
//
// Invariants (device->capture_lock): a stream is in capture->streams exactly while stream->capture
// is that capture; each stream and each event that points to a capture holds a reference.
//
// Source: CUDA Programming Guide, "Creating a Graph Using Stream Capture"; Driver API, Stream
// Management.
// SPDX-License-Identifier: Apache-2.0
#include "backend/host/host_capture.h"
#include "backend/cause.h"
#include "backend/host/host_device.h"
#include "base/error.h"
#include "base/memory.h"

// ---- life -------------------------------------------------------------------------------------

void rondo__host_capture_unreference(rondo__host_capture *capture) {
    if (capture != NULL && --capture->reference_count == 0) {
        if (capture->recorded != NULL) {
            rondo__host_destroy_template(&capture->recorded->head);
        }
        rondo__free(capture);
    }
}

static void add_stream(rondo__host_capture *capture, rondo__host_stream *stream) {
    stream->next_in_capture = capture->streams;
    capture->streams = stream;
    stream->frontier_count = 0;
    ++capture->reference_count;
    atomic_store(&stream->capture, capture);
}

static void remove_stream(rondo__host_capture *capture, rondo__host_stream *stream) {
    rondo__host_stream **link = &capture->streams;
    while (*link != stream) {
        link = &(*link)->next_in_capture;
    }
    *link = stream->next_in_capture;
    stream->next_in_capture = NULL;
    stream->frontier_count = 0;
    atomic_store(&stream->capture, NULL);
    rondo__host_capture_unreference(capture);
}

// Takes all streams out. The caller holds a reference of its own.
static void close_capture(rondo__host_capture *capture) {
    while (capture->streams != NULL) {
        remove_stream(capture, capture->streams);
    }
}

void rondo__host_capture_leave(rondo__host_stream *stream) {
    rondo__host_capture *capture = atomic_load(&stream->capture);
    if (capture == NULL) {
        return;
    }
    ++capture->reference_count;
    if (capture->origin == stream) {
        close_capture(capture);
    } else {
        remove_stream(capture, stream);
    }
    rondo__host_capture_unreference(capture);
}

// ---- beginning and joining --------------------------------------------------------------------

rondo_status rondo__host_begin_capture(rondo_stream *stream_, rondo_capture_mode mode,
                                       uint64_t *out_id) {
    (void)mode;  // says what is forbidden to others
    rondo__host_stream *stream = (rondo__host_stream *)stream_;
    rondo__host_device *device = rondo__host_device_of(stream_->device);
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    rondo__host_capture *capture = rondo__calloc(1, sizeof *capture);
    if (capture == NULL) {
        return status;
    }
    capture->recorded = rondo__calloc(1, sizeof *capture->recorded);
    if (capture->recorded == NULL) {
        goto free_capture;
    }
    capture->recorded->head.device = stream_->device;
    static _Atomic(uint64_t) last_id;
    capture->id = atomic_fetch_add(&last_id, 1) + 1;
    capture->origin = stream;

    pthread_mutex_lock(&device->capture_lock);
    if (atomic_load(&stream->capture) != NULL) {
        status = RONDO_FAIL_AS("rondo_graph_capture_begin", STATE,
                               "stream %u records already; end that capture first",
                               (unsigned)stream_->number);
        pthread_mutex_unlock(&device->capture_lock);
        goto free_template;
    }
    add_stream(capture, stream);
    if (out_id != NULL) {
        *out_id = capture->id;
    }
    pthread_mutex_unlock(&device->capture_lock);
    return RONDO_STATUS_OK;

free_template:
    rondo__free(capture->recorded);
free_capture:
    rondo__free(capture);
    return status;
}

rondo_status rondo__host_get_capture_state(rondo_stream *stream, rondo__capture_state *out_state) {
    const rondo__host_capture *capture =
        atomic_load_explicit(&((rondo__host_stream *)stream)->capture, memory_order_acquire);
    *out_state = capture != NULL ? RONDO__CAPTURE_ACTIVE : RONDO__CAPTURE_NONE;
    return RONDO_STATUS_OK;
}

rondo_status rondo__host_get_capture_id(rondo_stream *stream_, rondo__capture_state *out_state,
                                        uint64_t *out_id) {
    rondo__host_stream *stream = (rondo__host_stream *)stream_;
    *out_state = RONDO__CAPTURE_NONE;
    *out_id = 0;
    if (atomic_load_explicit(&stream->capture, memory_order_acquire) != NULL) {
        rondo__host_device *device = rondo__host_device_of(stream_->device);
        pthread_mutex_lock(&device->capture_lock);
        rondo__host_capture *capture = atomic_load(&stream->capture);
        if (capture != NULL) {
            *out_state = RONDO__CAPTURE_ACTIVE;
            *out_id = capture->id;
        }
        pthread_mutex_unlock(&device->capture_lock);
    }
    return RONDO_STATUS_OK;
}

static rondo_status fail_not_recording(const rondo_stream *stream, const char *call) {
    return RONDO_FAIL_AS(call, STATE, "stream %u does not record", (unsigned)stream->number);
}

// The caller holds the capture lock.
static size_t copy_frontier(const rondo__host_stream *stream, rondo__node_handle *nodes,
                            size_t capacity) {
    for (size_t i = 0; i < stream->frontier_count && i < capacity; ++i) {
        nodes[i] = stream->frontier[i];
    }
    return stream->frontier_count;
}

rondo_status rondo__host_get_frontier(rondo_stream *stream_, rondo__node_handle *nodes,
                                      size_t capacity, size_t *out_count) {
    rondo__host_stream *stream = (rondo__host_stream *)stream_;
    rondo__host_device *device = rondo__host_device_of(stream_->device);
    rondo_status status = RONDO_STATUS_OK;
    *out_count = 0;
    pthread_mutex_lock(&device->capture_lock);
    if (atomic_load(&stream->capture) == NULL) {
        status = fail_not_recording(stream_, __func__);
    } else {
        *out_count = copy_frontier(stream, nodes, capacity);
    }
    pthread_mutex_unlock(&device->capture_lock);
    return status;
}

rondo_status rondo__host_get_position(rondo_stream *stream_, rondo__capture_state *out_state,
                                      uint64_t *out_id, rondo__node_handle *nodes, size_t capacity,
                                      size_t *out_count) {
    rondo__host_stream *stream = (rondo__host_stream *)stream_;
    *out_state = RONDO__CAPTURE_NONE;
    *out_id = 0;
    *out_count = 0;
    if (atomic_load_explicit(&stream->capture, memory_order_acquire) != NULL) {
        rondo__host_device *device = rondo__host_device_of(stream_->device);
        pthread_mutex_lock(&device->capture_lock);
        const rondo__host_capture *capture = atomic_load(&stream->capture);
        if (capture != NULL) {
            *out_state = RONDO__CAPTURE_ACTIVE;
            *out_id = capture->id;
            *out_count = copy_frontier(stream, nodes, capacity);
        }
        pthread_mutex_unlock(&device->capture_lock);
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__host_get_predecessors(rondo_stream *stream_, rondo__node_handle node,
                                          rondo__node_handle *nodes, size_t capacity,
                                          size_t *out_count) {
    rondo__host_device *device = rondo__host_device_of(stream_->device);
    rondo_status status = RONDO_STATUS_OK;
    *out_count = 0;
    pthread_mutex_lock(&device->capture_lock);
    const rondo__host_capture *capture = atomic_load(&((rondo__host_stream *)stream_)->capture);
    if (capture == NULL) {
        status = fail_not_recording(stream_, __func__);
    } else if (node >= capture->recorded->node_count) {
        status = RONDO_FAIL(INVALID, "the capture has no node %zu", (size_t)node);
    } else {
        const rondo__host_node *entry = &capture->recorded->nodes[node];
        for (size_t i = 0; i < entry->edge_count && i < capacity; ++i) {
            nodes[i] = capture->recorded->predecessors[entry->first_edge + i];
        }
        *out_count = entry->edge_count;
    }
    pthread_mutex_unlock(&device->capture_lock);
    return status;
}

static bool holds_node(const size_t *nodes, size_t count, size_t node) {
    for (size_t i = 0; i < count; ++i) {
        if (nodes[i] == node) {
            return true;
        }
    }
    return false;
}

rondo_status rondo__host_capture_join(rondo__host_capture *capture, rondo__host_stream *stream,
                                      const size_t *nodes, size_t node_count) {
    size_t kept = atomic_load(&stream->capture) == capture ? stream->frontier_count : 0;
    rondo_status status =
        RONDO__ARRAY_RESERVE(stream->frontier, stream->frontier_capacity, kept + node_count);
    RETURN_IF_ERROR(status);
    if (atomic_load(&stream->capture) == NULL) {
        add_stream(capture, stream);
    }
    for (size_t i = 0; i < node_count; ++i) {
        if (!holds_node(stream->frontier, stream->frontier_count, nodes[i])) {
            stream->frontier[stream->frontier_count++] = nodes[i];
        }
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__host_add_dependencies(rondo_stream *stream_, const rondo__node_handle *nodes,
                                          size_t count) {
    rondo__host_stream *stream = (rondo__host_stream *)stream_;
    rondo__host_device *device = rondo__host_device_of(stream_->device);
    rondo_status status = RONDO_STATUS_OK;
    pthread_mutex_lock(&device->capture_lock);
    rondo__host_capture *capture = atomic_load(&stream->capture);
    if (capture == NULL) {
        status = fail_not_recording(stream_, __func__);
    }
    for (size_t i = 0; i < count && status == RONDO_STATUS_OK; ++i) {
        size_t node = nodes[i];
        status = node < capture->recorded->node_count
                     ? rondo__host_capture_join(capture, stream, &node, 1)
                     : RONDO_FAIL(INVALID, "the capture has no node %zu", node);
    }
    pthread_mutex_unlock(&device->capture_lock);
    return status;
}

rondo_status rondo__host_set_frontier(rondo_stream *stream_, const rondo__node_handle *nodes,
                                      size_t count) {
    rondo__host_stream *stream = (rondo__host_stream *)stream_;
    rondo__host_device *device = rondo__host_device_of(stream_->device);
    pthread_mutex_lock(&device->capture_lock);
    rondo__host_capture *capture = atomic_load(&stream->capture);
    rondo_status status =
        capture != NULL
            ? RONDO__ARRAY_RESERVE(stream->frontier, stream->frontier_capacity, count + 1)
            : fail_not_recording(stream_, __func__);
    if (status == RONDO_STATUS_OK) {
        stream->frontier_count = 0;
        for (size_t i = 0; i < count; ++i) {
            stream->frontier[stream->frontier_count++] = nodes[i];
        }
    }
    pthread_mutex_unlock(&device->capture_lock);
    return status;
}

// ---- recording --------------------------------------------------------------------------------

rondo_status rondo__host_record_node(rondo__host_stream *stream, const rondo__host_node *node,
                                     bool *out_was_recorded) {
    *out_was_recorded = false;
    rondo__host_device *device = rondo__host_device_of(stream->head.device);
    rondo_status status = RONDO_STATUS_OK;
    pthread_mutex_lock(&device->capture_lock);
    rondo__host_capture *capture = atomic_load(&stream->capture);
    if (capture == NULL) {
        goto unlock;
    }
    // Room for the one node of the new frontier before the template changes.
    status = RONDO__ARRAY_RESERVE(stream->frontier, stream->frontier_capacity, 1);
    if (status == RONDO_STATUS_OK) {
        status = rondo__host_template_append(capture->recorded, node, stream->frontier,
                                             stream->frontier_count);
    }
    if (status != RONDO_STATUS_OK) {
        rondo__error_set_op(node->name);
        goto unlock;
    }
    stream->frontier[0] = capture->recorded->node_count - 1;
    stream->frontier_count = 1;
    *out_was_recorded = true;
unlock:
    pthread_mutex_unlock(&device->capture_lock);
    return status;
}

rondo_status rondo__host_refuse_in_body(rondo__host_stream *stream, const char *call,
                                        const char *what) {
    rondo__host_device *device = rondo__host_device_of(stream->head.device);
    rondo_status status = RONDO_STATUS_OK;
    pthread_mutex_lock(&device->capture_lock);
    rondo__host_capture *capture = atomic_load(&stream->capture);
    if (capture != NULL && capture->is_body) {
        status = RONDO_FAIL_AS(call, UNSUPPORTED,
                               "there are no %s inside conditional bodies; do this before or "
                               "after the scope",
                               what);
    }
    pthread_mutex_unlock(&device->capture_lock);
    return status;
}

// ---- ending -----------------------------------------------------------------------------------

// Marks every node that the nodes of `frontier` depend on, and those themselves. Predecessors have
// smaller indices, so one sweep from the back does it.
static void mark_ancestors(const rondo__host_template *recorded, const size_t *frontier,
                           size_t frontier_count, bool *marks) {
    for (size_t i = 0; i < frontier_count; ++i) {
        marks[frontier[i]] = true;
    }
    for (size_t i = recorded->node_count; i-- > 0;) {
        if (marks[i]) {
            const rondo__host_node *node = &recorded->nodes[i];
            for (size_t edge = 0; edge < node->edge_count; ++edge) {
                marks[recorded->predecessors[node->first_edge + edge]] = true;
            }
        }
    }
}

static const char *name_end(const rondo__host_capture *capture) {
    return capture->is_body ? "rondo_scope_leave" : "rondo_graph_capture_end";
}

// OK when every branch came back to the origin.
static rondo_status check_joined(const rondo__host_capture *capture) {
    const rondo__host_template *recorded = capture->recorded;
    bool *marks = rondo__calloc(recorded->node_count, sizeof *marks);
    if (marks == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo_status status = RONDO_STATUS_OK;
    mark_ancestors(recorded, capture->origin->frontier, capture->origin->frontier_count, marks);
    for (const rondo__host_stream *stream = capture->streams;
         stream != NULL && status == RONDO_STATUS_OK; stream = stream->next_in_capture) {
        for (size_t i = 0; i < stream->frontier_count; ++i) {
            size_t node = stream->frontier[i];
            if (!marks[node]) {
                status = RONDO_FAIL_AS(
                    name_end(capture), STATE,
                    "stream %u was forked from stream %u and not joined: record an event on it and "
                    "let stream %u wait for that before the end",
                    (unsigned)stream->head.number, (unsigned)capture->origin->head.number,
                    (unsigned)capture->origin->head.number);
                rondo__cause_set_unjoined(stream->head.number);
                rondo__error_set_op(recorded->nodes[node].name);
                break;
            }
        }
    }
    // A branch may also end in an event whose stream went on elsewhere and came back otherwise.
    for (size_t i = 0; i < recorded->node_count && status == RONDO_STATUS_OK; ++i) {
        if (!marks[i]) {
            status = RONDO_FAIL_AS(name_end(capture), STATE,
                                   "node %zu was recorded on a branch that was not joined to "
                                   "stream %u",
                                   i, (unsigned)capture->origin->head.number);
            rondo__cause_set_unjoined(0);
            rondo__error_set_op(recorded->nodes[i].name);
        }
    }
    rondo__free(marks);
    return status;
}

rondo_status rondo__host_end_capture(rondo_stream *stream_, rondo__template **out_template) {
    rondo__host_stream *stream = (rondo__host_stream *)stream_;
    rondo__host_device *device = rondo__host_device_of(stream_->device);
    *out_template = NULL;
    rondo_status status = RONDO_STATUS_OK;
    pthread_mutex_lock(&device->capture_lock);
    rondo__host_capture *capture = atomic_load(&stream->capture);
    if (capture == NULL) {
        status = RONDO_FAIL_AS("rondo_graph_capture_end", STATE, "stream %u does not record",
                               (unsigned)stream_->number);
        goto unlock;
    }
    if (capture->origin != stream) {
        status =
            RONDO_FAIL_AS("rondo_graph_capture_end", STATE,
                          "the capture began on stream %u and ends there, not on stream %u that "
                          "joined it",
                          (unsigned)capture->origin->head.number, (unsigned)stream_->number);
        goto unlock;
    }
    status = check_joined(capture);
    ++capture->reference_count;
    if (status == RONDO_STATUS_OK) {
        *out_template = &capture->recorded->head;
        capture->recorded = NULL;
    }
    close_capture(capture);
    rondo__host_capture_unreference(capture);
unlock:
    pthread_mutex_unlock(&device->capture_lock);
    return status;
}

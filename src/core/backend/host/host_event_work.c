// backend/host/host_event_work.c — events as positions in a stream's work, or in a capture.
//
// Outside a capture an event is a host lane and a position, so that recording one is no command at
// all and waiting is a comparison. Only timed events put a command on the stream, which takes the
// time.
// SPDX-License-Identifier: Apache-2.0

#include "backend/host/host_event_work.h"

#include <string.h>

#include "backend/host/host_device.h"
#include "backend/host/host_external.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/use_count.h"

static rondo__host_event *event_of(rondo_event *event) {
    return (rondo__host_event *)event;
}

// ---- recording --------------------------------------------------------------------------------

typedef struct stamp_arguments {
    rondo__host_event *event;  // retained
    uint64_t serial;
} stamp_arguments;

static void run_stamp(void *data) {
    const stamp_arguments *arguments = data;
    rondo__host_stamp_event(arguments->event, arguments->serial);
    rondo__host_release_event(arguments->event);
}

static rondo_status submit_stamp(rondo__host_event *event, rondo__host_stream *stream,
                                 uint64_t serial) {
    void *room;
    RETURN_IF_ERROR(rondo__host_submit(stream, run_stamp, sizeof(stamp_arguments), &room));
    stamp_arguments *arguments = room;
    arguments->event = event;
    arguments->serial = serial;
    rondo__reference_take(&event->reference_count);
    rondo__host_publish(stream);
    return RONDO_STATUS_OK;
}

static rondo_status record_eagerly(rondo__host_event *event, rondo__host_stream *stream) {
    rondo__host_device *device = rondo__host_device_of(stream->head.device);
    bool is_timed = (event->head.flags & RONDO_EVENT_TIMED) != 0;
    if (is_timed) {
        pthread_mutex_lock(&event->lock);
        uint64_t serial = ++event->record_serial;
        pthread_mutex_unlock(&event->lock);
        RETURN_IF_ERROR(submit_stamp(event, stream, serial));
    }
    // An event changes its capture only under both locks.
    pthread_mutex_lock(&event->lock);
    bool was_captured = event->capture != NULL;
    pthread_mutex_unlock(&event->lock);
    if (was_captured) {
        pthread_mutex_lock(&device->capture_lock);
    }
    rondo__host_lane *former = NULL;
    pthread_mutex_lock(&event->lock);
    if (was_captured) {
        rondo__host_capture_unreference(event->capture);
        event->capture = NULL;
    }
    if (event->lane != stream->lane) {
        former = event->lane;
        event->lane = rondo__host_lane_retain(stream->lane);
    }
    // `published`, not `submitted`: another thread than the stream's may record here, too.
    event->position = atomic_load(&stream->published);
    pthread_mutex_unlock(&event->lock);
    if (was_captured) {
        pthread_mutex_unlock(&device->capture_lock);
    }
    rondo__host_lane_release(former);
    return RONDO_STATUS_OK;
}

// The caller holds the capture lock.
static rondo_status record_in_capture(rondo__host_event *event, rondo__host_stream *stream,
                                      rondo__host_capture *capture) {
    rondo__host_lane *former_lane = NULL;
    pthread_mutex_lock(&event->lock);
    rondo_status status =
        RONDO__ARRAY_RESERVE(event->nodes, event->node_capacity, stream->frontier_count);
    if (status == RONDO_STATUS_OK) {
        rondo__host_capture *former = event->capture;
        ++capture->reference_count;
        event->capture = capture;
        if (stream->frontier_count > 0) {
            memcpy(event->nodes, stream->frontier, stream->frontier_count * sizeof(size_t));
        }
        event->node_count = stream->frontier_count;
        former_lane = event->lane;
        event->lane = NULL;
        rondo__host_capture_unreference(former);
    }
    pthread_mutex_unlock(&event->lock);
    rondo__host_lane_release(former_lane);
    return status;
}

rondo_status rondo__host_record_event(rondo_event *event_, rondo_stream *stream_) {
    rondo__host_stream *stream = (rondo__host_stream *)stream_;
    if (rondo__host_is_external(event_)) {
        return rondo__host_record_external(event_of(event_), stream);
    }
    if (atomic_load_explicit(&stream->capture, memory_order_acquire) != NULL) {
        rondo__host_device *device = rondo__host_device_of(stream_->device);
        pthread_mutex_lock(&device->capture_lock);
        rondo__host_capture *capture = atomic_load(&stream->capture);
        rondo_status status = RONDO_STATUS_OK;
        if (capture != NULL) {
            status = record_in_capture(event_of(event_), stream, capture);
        }
        pthread_mutex_unlock(&device->capture_lock);
        if (capture != NULL) {
            return status;
        }
    }
    return record_eagerly(event_of(event_), stream);
}

// Behind the eager work, also if a capture begins meanwhile: that leaves the lane alone.
rondo_status rondo__host_record_from_outside(rondo_event *event, rondo_stream *stream) {
    if (atomic_load(&((rondo__host_stream *)stream)->capture) != NULL) {
        return rondo__stream_fail_recording(stream);
    }
    return record_eagerly(event_of(event), (rondo__host_stream *)stream);
}

// ---- waiting on a stream ----------------------------------------------------------------------

// Waiting for an event of a capture. The caller holds the capture lock; the event's capture cannot
// change meanwhile, since that needs the lock, too.
static rondo_status wait_in_capture(rondo__host_stream *stream, rondo__host_event *event) {
    rondo__host_capture *own = atomic_load(&stream->capture);
    rondo__host_capture *other = event->capture;
    if (other == NULL || other->streams == NULL || (own != NULL && own != other)) {
        return RONDO_FAIL_AS("rondo_stream_wait_event", STATE,
                             "stream %u cannot wait for an event that is not of its capture",
                             (unsigned)stream->head.number);
    }
    return rondo__host_capture_join(other, stream, event->nodes, event->node_count);
}

rondo_status rondo__host_wait_event(rondo_stream *stream_, rondo_event *event_) {
    rondo__host_stream *stream = (rondo__host_stream *)stream_;
    rondo__host_event *event = event_of(event_);
    rondo__host_device *device = rondo__host_device_of(stream_->device);
    if (rondo__host_is_external(event_)) {
        return rondo__host_wait_external(stream, event);
    }

    pthread_mutex_lock(&event->lock);
    bool is_captured = event->capture != NULL;
    uint64_t position = event->position;
    rondo__host_lane *lane = event->lane;
    if (lane != NULL) {
        rondo__host_lane_retain(lane);
    }
    pthread_mutex_unlock(&event->lock);

    rondo_status status = RONDO_STATUS_OK;
    if (is_captured || atomic_load_explicit(&stream->capture, memory_order_acquire) != NULL) {
        pthread_mutex_lock(&device->capture_lock);
        if (event->capture != NULL || atomic_load(&stream->capture) != NULL) {
            status = wait_in_capture(stream, event);
            rondo__host_lane_release(lane);
            lane = NULL;
        }
        pthread_mutex_unlock(&device->capture_lock);
    }
    if (lane != NULL) {
        status = rondo__host_submit_wait(stream, lane, position);
        rondo__host_lane_release(lane);
    }
    return status;
}

// ---- asking and waiting on the host -----------------------------------------------------------

// The position the event stands for; *out_lane is retained, or NULL when there is nothing to wait
// for.
static void get_place(rondo__host_event *event, rondo__host_lane **out_lane,
                      uint64_t *out_position) {
    *out_lane = NULL;
    *out_position = 0;
    pthread_mutex_lock(&event->lock);
    if (event->lane != NULL) {
        *out_lane = rondo__host_lane_retain(event->lane);
        *out_position = event->position;
    }
    pthread_mutex_unlock(&event->lock);
}

rondo_status rondo__host_query_event(rondo_event *event, bool *out_is_complete) {
    if (rondo__host_is_external(event)) {
        *out_is_complete = rondo__host_has_happened(event_of(event));
        return RONDO_STATUS_OK;
    }
    rondo__host_lane *lane;
    uint64_t position;
    get_place(event_of(event), &lane, &position);
    *out_is_complete = lane == NULL || rondo__host_lane_has_passed(lane, position);
    rondo__host_lane_release(lane);
    return RONDO_STATUS_OK;
}

rondo_status rondo__host_synchronize_event(rondo_event *event) {
    if (rondo__host_is_external(event)) {
        rondo__host_wait_happened(event_of(event));
        return RONDO_STATUS_OK;
    }
    rondo__host_lane *lane;
    uint64_t position;
    get_place(event_of(event), &lane, &position);
    const rondo_status status =
        lane != NULL ? rondo__host_lane_wait_outside(lane, position) : RONDO_STATUS_OK;
    rondo__host_lane_release(lane);
    return status;
}

static rondo_status get_stamp(rondo__host_event *event, uint64_t *out_ns) {
    *out_ns = 0;
    bool has_happened = false;
    RETURN_IF_ERROR(rondo__host_query_event(&event->head, &has_happened));
    pthread_mutex_lock(&event->lock);
    bool was_recorded = event->record_serial != 0;
    bool has_stamp = was_recorded && event->stamp_serial == event->record_serial;
    *out_ns = event->stamp_ns;
    pthread_mutex_unlock(&event->lock);
    if (!was_recorded) {
        return RONDO_FAIL_AS("rondo_event_get_elapsed_ns", STATE,
                             "an event was never recorded; record it on a stream first");
    }
    if (!has_happened || !has_stamp) {
        return RONDO_FAIL_AS("rondo_event_get_elapsed_ns", STATE,
                             "an event has not happened yet; wait for it first");
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__host_get_elapsed_ns(rondo_event *start, rondo_event *end, int64_t *out_ns) {
    uint64_t start_ns;
    uint64_t end_ns;
    RETURN_IF_ERROR(get_stamp(event_of(start), &start_ns));
    RETURN_IF_ERROR(get_stamp(event_of(end), &end_ns));
    *out_ns = (int64_t)(end_ns - start_ns);
    return RONDO_STATUS_OK;
}

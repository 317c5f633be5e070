// backend/host/host_event.c — events as objects.
// SPDX-License-Identifier: Apache-2.0
#include "backend/host/host_event.h"

#include "backend/host/host_device.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/use_count.h"

static rondo__host_event *event_of(rondo_event *event) {
    return (rondo__host_event *)event;
}

void rondo__host_release_event(rondo__host_event *event) {
    if (!rondo__reference_drop(&event->reference_count)) {
        return;
    }
    rondo__host_lane_release(event->lane);
    rondo__free(event->nodes);
    rondo__free(event->early);
    pthread_mutex_destroy(&event->lock);
    if (rondo__host_is_external(&event->head)) {
        pthread_cond_destroy(&event->happened);
    }
    rondo__free(event);
}

rondo_status rondo__host_create_event(rondo_device *device, uint32_t flags,
                                      rondo_event **out_event) {
    rondo__host_event *event = rondo__calloc(1, sizeof *event);
    if (event == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    event->head.device = device;
    event->head.native = event;
    event->head.flags = flags;
    atomic_init(&event->reference_count, 1);
    pthread_mutex_init(&event->lock, NULL);
    if (rondo__host_is_external(&event->head)) {
        pthread_cond_init(&event->happened, NULL);
    }
    *out_event = &event->head;
    return RONDO_STATUS_OK;
}

void rondo__host_destroy_event(rondo_event *event_) {
    rondo__host_event *event = event_of(event_);
    rondo__host_device *device = rondo__host_device_of(event_->device);
    if (event->capture != NULL) {
        pthread_mutex_lock(&device->capture_lock);
        rondo__host_capture_unreference(event->capture);
        pthread_mutex_unlock(&device->capture_lock);
        event->capture = NULL;
    }
    rondo__host_release_event(event);
}

void rondo__host_stamp_event(rondo__host_event *event, uint64_t serial) {
    uint64_t now = rondo__clock_now_ns();
    pthread_mutex_lock(&event->lock);
    // A later record on another stream may have been faster; its time stands.
    if (serial > event->stamp_serial) {
        event->stamp_serial = serial;
        event->stamp_ns = now;
    }
    pthread_mutex_unlock(&event->lock);
}

// backend/event.c — events: argument checks and ownership.
#include "backend/backend.h"
#include "backend/check.h"

rondo_status rondo_event_create(rondo_device *device, uint32_t flags, rondo_event **out_event) {
    RETURN_IF_ERROR(rondo__check_pointer(out_event, __func__, "out_event"));
    *out_event = NULL;
    RETURN_IF_ERROR(rondo__check_device(device, __func__));
    if ((flags & ~(uint32_t)RONDO_EVENT_TIMED) != 0) {
        return RONDO_FAIL(INVALID, "event flags 0x%x have unknown bits; there is RONDO_EVENT_TIMED",
                          (unsigned)flags);
    }
    rondo_event *event = NULL;
    RETURN_IF_ERROR(device->backend->create_event(device, flags, &event));
    rondo_device_retain(device);
    *out_event = event;
    return RONDO_STATUS_OK;
}

void rondo_event_destroy(rondo_event *event) {
    if (event == NULL || atomic_load(&event->device->is_forked)) {
        return;
    }
    rondo_device *device = event->device;
    device->backend->destroy_event(event);
    rondo_device_release(device);
}

rondo_status rondo_event_record(rondo_event *event, rondo_stream *stream) {
    RETURN_IF_ERROR(rondo__check_event(event, __func__));
    RETURN_IF_ERROR(rondo__check_stream(stream, __func__));
    if (event->device != stream->device) {
        return RONDO_FAIL(INVALID, "an event of %s cannot be recorded on a stream of %s",
                          event->device->name, stream->device->name);
    }
    atomic_store_explicit(&event->may_be_captured,
                          atomic_load_explicit(&stream->may_record, memory_order_relaxed),
                          memory_order_relaxed);
    return stream->device->backend->record_event(event, stream);
}

rondo_status rondo_event_query(rondo_event *event, bool *out_is_complete) {
    RETURN_IF_ERROR(rondo__check_pointer(out_is_complete, __func__, "out_is_complete"));
    *out_is_complete = false;
    RETURN_IF_ERROR(rondo__check_event(event, __func__));
    return event->device->backend->query_event(event, out_is_complete);
}

rondo_status rondo_event_synchronize(rondo_event *event) {
    RETURN_IF_ERROR(rondo__check_event(event, __func__));
    return event->device->backend->synchronize_event(event);
}

rondo_status rondo_event_get_elapsed_ms(rondo_event *start, rondo_event *end,
                                        float *out_milliseconds) {
    RETURN_IF_ERROR(rondo__check_pointer(out_milliseconds, __func__, "out_milliseconds"));
    *out_milliseconds = 0;
    RETURN_IF_ERROR(rondo__check_event(start, __func__));
    RETURN_IF_ERROR(rondo__check_event(end, __func__));
    if (start->device != end->device) {
        return RONDO_FAIL(INVALID, "events of %s and %s have no common clock", start->device->name,
                          end->device->name);
    }
    if ((start->flags & end->flags & RONDO_EVENT_TIMED) == 0) {
        return RONDO_FAIL(STATE,
                          "the event keeps no time; create it with the flag RONDO_EVENT_TIMED");
    }
    return start->device->backend->get_elapsed_ms(start, end, out_milliseconds);
}

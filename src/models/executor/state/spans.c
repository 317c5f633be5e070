// executor/state/spans.c — see spans.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/state/spans.h"

// A body that runs without waiting has no timing events.
static bool has_events(const rondo__unit *unit) {
    return unit->events[0] != NULL && !unit->stays_on_device;
}

rondo_status rondo__unit_mark(rondo__unit *unit, size_t index, bool has_put) {
    const bool is_same = index > 0 && !has_put;
    unit->event_of[index] = is_same ? unit->event_of[index - 1] : (uint8_t)index;
    return has_events(unit) && !is_same ? rondo_event_record(unit->events[index], unit->stream)
                                        : RONDO_STATUS_OK;
}

static uint64_t get_span_ns(rondo__unit *unit, size_t first) {
    rondo_event *begin = unit->events[unit->event_of[first]];
    rondo_event *end = unit->events[unit->event_of[first + 1]];
    int64_t span_ns = 0;
    if (!has_events(unit) || begin == end ||
        rondo_event_get_elapsed_ns(begin, end, &span_ns) != RONDO_STATUS_OK) {
        return 0;
    }
    return span_ns > 0 ? (uint64_t)span_ns : 0;
}

void rondo__unit_read_spans(rondo__unit *unit) {
    rondo_run_times *times = &unit->runs.times;
    if (unit->runs.has_unread_spans && has_events(unit)) {
        times->host_to_device_ns = get_span_ns(unit, 0);
        times->compute_ns = get_span_ns(unit, 1);
        times->device_to_host_ns = get_span_ns(unit, 2);
    }
    unit->runs.has_unread_spans = false;
}

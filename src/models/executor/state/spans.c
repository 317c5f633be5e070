// executor/state/spans.c — see spans.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/state/spans.h"

// A body that runs without waiting has no timing events.
static bool has_events(const rondo__unit *unit) {
    return unit->events[0] != NULL && !unit->is_near;
}

rondo_status rondo__unit_mark(rondo__unit *unit, size_t index) {
    return has_events(unit) ? rondo_event_record(unit->events[index], unit->stream)
                            : RONDO_STATUS_OK;
}

static uint64_t get_span_ns(rondo__unit *unit, size_t first) {
    int64_t span_ns = 0;
    if (!has_events(unit) ||
        rondo_event_get_elapsed_ns(unit->events[first], unit->events[first + 1], &span_ns) !=
            RONDO_STATUS_OK) {
        return 0;
    }
    return span_ns > 0 ? (uint64_t)span_ns : 0;
}

void rondo__unit_read_spans(rondo__unit *unit, rondo_run_times *times) {
    times->host_to_device_ns = get_span_ns(unit, 0);
    times->compute_ns = has_events(unit) ? get_span_ns(unit, 1) : times->compute_ns;
    times->device_to_host_ns = get_span_ns(unit, 2);
}

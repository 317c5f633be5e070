// cache/device_time.h — how long a run takes on the device, between two events around it. One run
// at a time is measured, if the stream is busy before it. No call waits for the result: a later run
// looks whether it is there.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>

#include "cache/governor.h"
#include "rondo/device.h"

// All zeroes: off.
typedef struct rondo__device_time {
    rondo_event *start;  // NULL: off
    rondo_event *end;
    rondo__cost *target;  // where the time goes once it is known; NULL: nothing is under way
    bool is_begun;        // the start is recorded, the end is not yet
} rondo__device_time;

// Errors:    NO_MEMORY, DRIVER, LOST.
RONDO_MUST_USE rondo_status rondo__device_time_init(rondo__device_time *out_time,
                                                    rondo_device *device);
void rondo__device_time_deinit(rondo__device_time *time);

// Around a run on `stream`, which does not record. The time is added to *target later. Does nothing
// while another run is measured. A failure switches the measurement off and leaves no error record.
void rondo__device_time_begin(rondo__device_time *time, rondo_stream *stream, rondo__cost *target);
void rondo__device_time_end(rondo__device_time *time, rondo_stream *stream);
// Looks whether the run under way is over.
void rondo__device_time_collect(rondo__device_time *time);
// The run failed, or the target goes.
void rondo__device_time_drop(rondo__device_time *time, const rondo__cost *target);

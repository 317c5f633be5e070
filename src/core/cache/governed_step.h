// cache/governed_step.h — a stepper or a learned step whose runs are measured: eager ones against
// replays, by the rules of governor.h. What is compared is the longer of the calls, from the
// beginning of a step to its end, and of the device's time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/text.h"
#include "cache/device_time.h"
#include "cache/governor.h"

typedef struct rondo_stepper rondo_stepper;

typedef struct rondo__governed_step {
    rondo__governor governor;
    rondo__measures measures;
    rondo__device_time device_time;
    rondo__choice choice;  // of the run under way
    uint64_t start_ns;     // of it; 0: it is not timed
} rondo__governed_step;

// Ownership: end with rondo__governed_step_destroy.
RONDO_MUST_USE rondo_status rondo__governed_step_create(rondo_device *device,
                                                        rondo__governed_step **out_step);
void rondo__governed_step_destroy(rondo__governed_step *step);

// A run begins on the stream: what it does.
rondo__choice rondo__governed_step_begin(rondo__governed_step *step, rondo_stream *stream);
// The run that chose CAPTURE has made its graph.
void rondo__governed_step_note_graph(rondo__governed_step *step);
// The run is over. A failed one counts for nothing.
void rondo__governed_step_end(rondo__governed_step *step, rondo_stream *stream, bool is_done);
// The graph has gone for another reason than time, or none came of the capture.
void rondo__governed_step_lose(rondo__governed_step *step);

// Test hook: NULL where it is not measured.
rondo__governed_step *rondo__stepper_get_governed(rondo_stepper *stepper);

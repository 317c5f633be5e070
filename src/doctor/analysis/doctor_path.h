// doctor/analysis/doctor_path.h — the works of a step as a graph: what follows what, how long each
// works, and how long a replay takes then.
//
// Works of one stream follow each other; events and waits of the host order streams. Works that are
// not ordered run at the same time, as far as the device has room for both.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "doctor/analysis/doctor_steps.h"

typedef struct rondo__doctor_path {
    bool is_known;  // the device's time of each work was found; without, the rest is zero
    size_t stream_count;
    size_t work_count;  // on the critical path
    double device_us;   // all of its works, one after the other
    double path_us;     // the device's time along it: no replay is shorter, however large a device
    double replay_us;   // with gaps, and with works that share the device; without the launch
    double replay_low_us;
    double replay_high_us;
} rondo__doctor_path;

// False: out of memory.
bool rondo__doctor_find_path(const rondo__doctor_steps *steps, rondo__doctor_path *out_path);

// A work of the step, and those that it follows. One that follows more has lost the eldest.
enum { RONDO__DOCTOR_AFTER_MAX = 16 };
typedef struct rondo__doctor_part {
    const rondo__doctor_event *call;
    double length_us;  // on the device
    uint32_t after[RONDO__DOCTOR_AFTER_MAX];
    uint32_t after_count;
} rondo__doctor_part;

// As many as the step has works, to be freed; NULL: device times are not known, or no memory.
rondo__doctor_part *rondo__doctor_list_parts(const rondo__doctor_steps *steps);

// The gap ahead of a work of a graph, where nothing more is known of it.
double rondo__doctor_typical_gap_us(void);

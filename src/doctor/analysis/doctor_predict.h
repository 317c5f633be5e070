// doctor/analysis/doctor_predict.h — what a step takes, what it would take as one graph, and why.
//
// The model of a replayed step: its works as they were timed, each behind those that it follows,
// gaps between them, and a launch. docs/doctor.md states the constants and where they come from.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "doctor/analysis/doctor_path.h"
#include "doctor/analysis/doctor_steps.h"

typedef enum rondo__doctor_verdict {
    RONDO__DOCTOR_NO_STEP,       // nothing repeats
    RONDO__DOCTOR_NO_TIMES,      // a step, and no device times to judge it by
    RONDO__DOCTOR_LAUNCH_BOUND,  // the device waits for launches
    RONDO__DOCTOR_HOST_BOUND,    // the device waits for the host's own work between launches
    RONDO__DOCTOR_KERNEL_BOUND,  // the device works nearly all of the time
    RONDO__DOCTOR_COPY_BOUND,    // likewise, and mostly copies
    RONDO__DOCTOR_IS_GRAPH,      // it launches graphs already
} rondo__doctor_verdict;

typedef struct rondo__doctor_costs {
    double step_us;      // the median of typical steps, without those while device times were taken
    double step_low_us;  // a tenth of the steps takes less,
    double step_high_us;  // and a tenth more
    double calls_us;      // time inside calls that put work on a device
    double waits_us;      // time inside waits
    double away_us;       // pauses of 100 us and more between calls
    double between_us;  // of those, behind the step's last work or wait: a replay keeps these alone
    double launch_us;   // median of a launch's call
    size_t launch_count;  // a step
    size_t graph_launch_count;
    bool has_times;
    double device_us;   // the device worked, a step; overlapping works once
    double copy_us;     // of that, copies
    double idle_share;  // of the step
    rondo__doctor_path path;
    double model_us;    // likewise, by constants alone
    bool is_rehearsed;  // by replays of a graph like it, which the log has
    double graph_us;    // predicted: one replay, from its launch to its end
    double graph_low_us;
    double graph_high_us;
    double after_us;    // predicted: the whole step with it
    double break_even;  // replays until capture and instantiation are paid for
    rondo__doctor_verdict verdict;
} rondo__doctor_costs;

// False: out of memory.
bool rondo__doctor_predict(const rondo__doctor_steps *steps, rondo__doctor_costs *out_costs);

// "launch-bound"
const char *rondo__doctor_verdict_name(rondo__doctor_verdict verdict);

// Whether graphs would make the step clearly shorter.
bool rondo__doctor_is_worth_it(const rondo__doctor_costs *costs);

// doctor/analysis/doctor_steps.h — the repeated step of a log: where each begins, and how much
// of it is the same each time.
//
// A step is counted in its works: launches, graph launches, copies and fills. What else is called
// belongs to the step in which it is called; a step begins with the work behind the longest wait.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "doctor/analysis/doctor_log.h"

// A part of the log.
typedef struct rondo__doctor_step {
    size_t first;       // event
    size_t last;        // the event behind it
    size_t work_first;  // in the list of works
    size_t work_count;
    uint64_t begin_ns;
    uint64_t length_ns;  // until the next one begins
    bool is_typical;     // as many works as most have, nothing lost in it
    bool is_timed;       // device times were taken
} rondo__doctor_step;

typedef struct rondo__doctor_steps {
    const rondo__doctor_log *log;
    size_t *works;  // events that are works
    size_t work_count;
    size_t *marks;  // events that are works or waits, by which the period is found
    size_t mark_count;
    rondo__doctor_step *steps;
    size_t count;
    size_t period;  // works of a typical step; 0: no step was found
    double match;   // the share of works that equal those of the step before
    bool is_loose;  // shapes of launches differ from step to step
    size_t typical_count;
    size_t quiet_count;  // steps ahead of device times, whose taking leaves a program slower; all
                         // of them where too few are
    size_t reference;    // the typical step that others are compared with
    uint32_t name;       // of the NVTX range that comes once a step; 0: none does
} rondo__doctor_steps;

// Finds them. False: out of memory.
bool rondo__doctor_find_steps(const rondo__doctor_log *log, rondo__doctor_steps *out_steps);
void rondo__doctor_steps_clear(rondo__doctor_steps *steps);

// Names them by a range of the program. False: out of memory.
bool rondo__doctor_name_step(rondo__doctor_steps *steps);

bool rondo__doctor_is_work(uint16_t call);

// Which typical steps are meant.
typedef enum rondo__doctor_choice {
    RONDO__DOCTOR_QUIET,    // without device times, and before any were taken: what the host takes
    RONDO__DOCTOR_UNTIMED,  // without them
    RONDO__DOCTOR_TYPICAL,  // any
} rondo__doctor_choice;

bool rondo__doctor_is_chosen(const rondo__doctor_steps *steps, size_t step,
                             rondo__doctor_choice choice);

// Whether graphs are half of its works, or more.
bool rondo__doctor_launches_graphs(const rondo__doctor_steps *steps);

// What makes two works the same: call, kernel, block, and, unless `is_loose`, grid and bytes.
uint64_t rondo__doctor_token(const rondo__doctor_event *event, bool is_loose);

// The innermost NVTX range in which a thread made a call; 0: none.
uint32_t rondo__doctor_find_range(const rondo__doctor_log *log, const rondo__doctor_event *event);

// Whether the event stands behind the last work of its step, where a wait harms no capture.
bool rondo__doctor_is_behind(const rondo__doctor_steps *steps, const rondo__doctor_step *step,
                             size_t event);

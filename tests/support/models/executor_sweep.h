// support/models/executor_sweep.h — fail the nth for one executor on the fake driver: every driver
// call and every allocation fails once while a program is built, compiled, run, captured and
// replayed. Afterwards it runs twice, unless the device is lost, and nothing is left.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rondo/models.h"
#include "support/sweep.h"

// What a round makes; destroyed behind it.
typedef struct executor_world {
    rondo_device *device;
    rondo_builder *builder;
    rondo_program *program;
    rondo_executor *executor;
} executor_world;

typedef struct executor_sweep {
    void (*work)(executor_world *w, const char *device_name);
    rondo_status (*run)(rondo_executor *executor);  // once, afterwards
    int device_count;
    size_t dense;      // see sweep_subject
    size_t count_min;  // more driver calls than this, and more allocations
} executor_sweep;

void executor_sweep_on_fake(const char *name, const executor_sweep *sweep);

// A builder with an input: a row of f32.
rondo_status executor_world_begin(executor_world *w, const char *input, int64_t count);

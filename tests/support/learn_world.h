// support/learn_world.h — what tests of learned steps share: a device with three buffers, arguments
// x, y, n and f, and a run compared with what the step does eagerly.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rondo/rondo.h"

enum { LEARN_BYTES = 4096, LEARN_BUFFERS = 3, LEARN_ARGUMENTS = 4 };

typedef struct learn_world {
    rondo_device *device;
    rondo_stream *stream;
    unsigned char *buffers[LEARN_BUFFERS];  // of the device's, which the processor reaches, too
} learn_world;

// Pointers x and y, an int32 n of 1 to 512, a float f; a step may take the first ones only.
extern const rondo_argument learn_arguments[LEARN_ARGUMENTS];

// Each fails the running test where something fails.
void learn_world_open(learn_world *w, const char *device_name);
void learn_world_close(learn_world *w);
// x and y: numbers of buffers.
void learn_world_set(const learn_world *w, rondo_value *values, size_t x, size_t y, int64_t n,
                     float f);
rondo_learned_report learn_world_report(const rondo_learned *learned);
// Runs and compares every byte with what the step does eagerly.
void learn_world_expect_same(const learn_world *w, rondo_learned *learned,
                             rondo_learned_function step, void *user_data,
                             const rondo_value *values, size_t value_count);

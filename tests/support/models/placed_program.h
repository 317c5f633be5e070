// support/models/placed_program.h — small programs whose ops are placed, and runs beside the
// host's.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "rondo/models.h"
#include "support/fake/fake_cuda.h"

enum { PLACED_COUNT = 8, PLACED_RUNS = 5, PLACED_NODES_MAX = 12 };

typedef struct placed_node {
    const char *op;
    const char *inputs[3];
    const char *output;  // and the node's name
    const char *place;   // NULL: nobody says
} placed_node;

typedef struct placed_feeds {
    float x[PLACED_COUNT];
    int64_t i;
    rondo_binding list[2];
} placed_feeds;

// Inputs x [PLACED_COUNT] f32 and i [1] i64; each node has the output of its name.
rondo_program *placed_build(const placed_node *nodes, const char *const *outputs);

// Inputs of the run of this number.
void placed_fill(placed_feeds *f, int run);

// Runs both executors a few times, with other inputs each time, and compares.
void placed_compare(rondo_executor *gpu, rondo_executor *host, const char *const *outputs,
                    const char *what, bool waits);

// The GPUs of a fake driver (NULL: one) and the host; and nothing may be left of them.
void placed_open(const fake_cuda_options *options, rondo_device **out_gpus,
                 rondo_device **out_host);
void placed_close(rondo_device *const *gpus, int count, rondo_device *host);

void placed_expect_place(rondo_executor *executor, rondo_placement_kind kind, const char *name,
                         const char *place, const char *reason);

// random/random_host.h — the kernels as host functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "random/random_loops.h"
#include "rondo/device.h"

// The names of the CUDA kernels, and the C functions that do the same on the host.
extern const char *const rondo__random_kernel_names[RONDO__RANDOM_KERNEL_COUNT];
rondo_host_function rondo__random_get_host_function(rondo__random_kernel kernel);

typedef struct rondo__random_set_arguments {
    uint64_t *state;
    uint64_t seed;
    uint64_t offset;
} rondo__random_set_arguments;

typedef struct rondo__random_advance_arguments {
    uint64_t *state;
    uint64_t count;
} rondo__random_advance_arguments;

// doctor/inject/inject_launch.h — launches of kernels, which are most of a program's calls.
//
// A launch is hashed ahead of the driver's call: kernel, shape, stream, argument words. One that
// was recorded before just so is told in short, without a record being made up.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/driver/cuda_abi.h"
#include "doctor/inject/inject_record.h"

typedef struct rondo__inject_launch {
    const rondo__cu_launch_config *config;  // its shape and stream
    void *function;
    uint64_t hash;  // 0: it is recorded whole
    uint64_t begin_ns;
    uint64_t entered_ns;
    uint32_t name;
    uint32_t word_count;
    uint16_t call;
    uint8_t flags;
    uint64_t words[RONDO__DOCTOR_WORDS_MAX];
} rondo__inject_launch;

// Ahead of the driver's call. `launch` has its config, function and call.
void rondo__inject_begin_launch(rondo__inject_launch *launch, bool is_per_thread, void **parameters,
                                void **extra);

void rondo__inject_end_launch(rondo__inject_launch *launch, int status);

// Addresses of functions come again after an unload.
void rondo__inject_forget_functions(void);

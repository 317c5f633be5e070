// support/device_crew.h — executors of one program on several devices, from several threads.
//
// Each thread has an executor on each device and runs them in turn, with three batch sizes,
// eagerly, captured and replayed. Every result must be, bit for bit, that of the same device used
// by one thread alone.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>

#include "rondo/models.h"

// Element-wise ops, ops that draw, an op whose result's shape depends on data, and a loop: input
// "x" [batch, 8], outputs "y" (numbers), "places" (what NonZero finds) and "sum".
//
// Errors:    those of the builder.
// Ownership: the caller destroys it.
RONDO_MUST_USE rondo_status device_crew_build(rondo_program **out_program);

// Fails the running test where a call fails or a result differs.
void device_crew_run(rondo_program *program, rondo_device *const *devices, size_t device_count,
                     size_t thread_count, size_t rounds, rondo_dtype dtype);

// Bytes that go once round all GPUs of `devices`, by copies from one to the next, and come back.
void device_crew_pass_round(rondo_device *const *devices, size_t device_count);

// kernel/random_kernel.h — ops that draw random numbers, as ops of a generator; the same on every
// device.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_KERNEL_RANDOM_KERNEL_H
#define RONDO_KERNEL_RANDOM_KERNEL_H

#include "kernel/kernel.h"

// Errors:    as rondo__kernel_prepare.
// Threads:   safe.
RONDO_MUST_USE rondo_status rondo__kernel_prepare_random(const rondo__kernel_request *request,
                                                         rondo__kernel **out_kernel);

#endif  // RONDO_KERNEL_RANDOM_KERNEL_H

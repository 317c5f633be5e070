// kernel/random_kernel.h — ops that draw random numbers, as ops of a generator; the same on every
// device.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/kernel.h"

// Errors:    as rondo__kernel_prepare.
RONDO_MUST_USE rondo_status rondo__kernel_prepare_random(const rondo__kernel_request *request,
                                                         rondo__kernel **out_kernel);

// kernel/all_reduce_kernel.h — rondo.AllReduce on any device, by the executor's communicator.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/kernel.h"

// Errors:    UNSUPPORTED (no communicator; another device than its own; in a body), NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__kernel_prepare_all_reduce(const rondo__kernel_request *request,
                                                             rondo__kernel **out_kernel);

// kernel/all_reduce_kernel.h — ops that several ranks make together, by the executor's
// communicator: rondo.AllReduce and rondo.AllGather.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/kernel.h"

static inline bool rondo__op_is_collective(const rondo__op *op) {
    return op->def->id == RONDO__FUSED_AllReduce || op->def->id == RONDO__FUSED_AllGather;
}

// Errors:    UNSUPPORTED (no communicator; another device than its own; in a body), NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__kernel_prepare_all_reduce(const rondo__kernel_request *request,
                                                             rondo__kernel **out_kernel);

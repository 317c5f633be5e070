// executor/constants.h — weights on the device, shared by an executor's plans.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_EXECUTOR_CONSTANTS_H
#define RONDO_EXECUTOR_CONSTANTS_H

#include "executor/plan.h"

// Puts `tensor` on the device, or finds it there; adds one use.
//
// Errors:    NO_MEMORY, NO_DEVICE_MEMORY, DRIVER, LOST.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__constant_acquire(rondo_executor *executor,
                                                    const rondo_tensor *tensor,
                                                    rondo__device_constant **out_constant);
void rondo__constant_release(rondo_executor *executor, rondo__device_constant *constant);

#endif  // RONDO_EXECUTOR_CONSTANTS_H

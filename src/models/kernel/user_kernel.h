// kernel/user_kernel.h — kernels of ops that the program has registered.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/kernel.h"

// Prepares the program's own kernel for the request's kind of device.
//
// Errors:    UNSUPPORTED (it has none), NO_MEMORY, and what its prepare function returns.
RONDO_MUST_USE rondo_status rondo__kernel_prepare_user(const rondo__kernel_request *request,
                                                       rondo__kernel **out_kernel);

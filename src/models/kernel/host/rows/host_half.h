// kernel/host/rows/host_half.h — f16 on the host: a tuned f32 kernel between conversions.
//
// Processors of today widen and narrow f16, but few calculate in it. So inputs are widened into the
// workspace, the kernel for f32 runs, and its results are rounded to f16 once: what the reference
// does, at the speed of f32 plus the conversions. Constants are widened when the kernel is
// prepared.
//
//   workspace   | of the f32 kernel | widened inputs | f32 results |
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/kernel.h"

// Begins the kernel of a request with inputs or outputs in f16: *out_wide is the same request in
// f32. The caller prepares a kernel for that, and gives it to rondo__host_half_end.
//
// Errors:    UNSUPPORTED, without a record (nothing is f16), NO_MEMORY.
// Ownership: *out_half, which may be there after a failure too, is freed with
//            rondo__kernel_destroy; *out_wide is borrowed from it.
RONDO_MUST_USE rondo_status rondo__host_half_begin(const rondo__kernel_request *request,
                                                   rondo__kernel **out_half,
                                                   rondo__kernel_request *out_wide);
// Takes the kernel in f32.
void rondo__host_half_end(rondo__kernel *half, rondo__kernel *inner);

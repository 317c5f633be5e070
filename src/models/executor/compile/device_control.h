// executor/compile/device_control.h — If, Loop and Scan decided on the device: kernels whose launch
// puts a conditional node and its bodies on the stream.
//
// Such a kernel is an item of a segment like others. It is possible where all shapes in the bodies
// are known, each of their ops has a kernel that a graph can hold, none draws random numbers, and
// the device has conditional nodes. Everything else runs by host control (control.h), which gives
// the same results bit for bit.
//
//   If     choose; if node: then-part | else-part, which write the op's outputs in place
//   Loop   initial values to their addresses; enter; while node:
//            body-part; rows out; next; carried values back to their addresses
//   Scan   as Loop, with slices in at the turn's begin
//
// A carried value has one address for all turns: the op's output, if that is used. An If whose
// condition is known ahead has one part and no node.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/compile/body_plan.h"

// Prepares control node `n` of a plan for the device. NULL, with a refusal: it is the host's.
//
// request    of the node: its inputs and outputs, borrowed for the call.
//
// Errors:    as rondo__body_plan_init.
// Ownership: free with rondo__kernel_destroy, after the stream has passed its launches.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__device_control_prepare(
    rondo__unit *unit, const rondo__planner *planner, const rondo__plan *plan, size_t n,
    const rondo__kernel_request *request, rondo__kernel **out_kernel, rondo__refusal *out_refusal);

// The part of body attribute `name` of a prepared control op; NULL when it has none, because the
// branch is never taken, or when the kernel is none of these.
const rondo__body_plan *rondo__device_control_get_part(const rondo__kernel *kernel,
                                                       const char *name);

// After the stream was waited for: what stopped a loop, if anything did, or who met data that its
// op does not allow. The plan that ran, or NULL where it is gone, tells which.
//
// Errors:    BAD_DATA (more turns than loop_limit allows; data), CANCELLED.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__device_control_check(rondo_executor *executor,
                                                        const rondo__plan *plan);

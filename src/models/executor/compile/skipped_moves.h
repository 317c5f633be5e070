// executor/compile/skipped_moves.h — moves that are saved where the kernel beside them can do
// without.
//
//   a = Conv(x), b = Conv(y), c = Concat(a, b)       c |a b|a b|a b|    rows along the last axis
//
// Where a has no other user and its kernel can leave room between rows, it lies in c from the
// beginning, and the Concat has nothing to copy of it. So does what lies in c in one piece,
// whatever the kernel.
//
//   t = Transpose(x, to channels last), y = Conv(t)
//
// Where t has no other user and the kernel can read x as it is, it does. Host only.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_EXECUTOR_COMPILE_SKIPPED_MOVES_H
#define RONDO_EXECUTOR_COMPILE_SKIPPED_MOVES_H

#include "executor/state/plan.h"

// Joins what can be, and tells the kernels. The places of first and last uses, by value, follow.
// Called while every slot's root is itself or what it is a view of.
//
// Errors:    NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__skipped_moves_join(const rondo_executor *executor,
                                                      rondo__plan *plan, size_t *first_uses,
                                                      size_t *last_uses);

#endif  // RONDO_EXECUTOR_COMPILE_SKIPPED_MOVES_H

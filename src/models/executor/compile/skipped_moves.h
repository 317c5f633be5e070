// executor/compile/skipped_moves.h — Concats and Transposes that the neighbouring kernel makes
// unnecessary.
//
//   a = Conv(x), b = Conv(y), c = Concat(a, b)       c |a b|a b|a b|    rows along the last axis
//
// If a has no other user and its kernel can leave gaps between rows, the kernel writes it into c,
// and the Concat has no copy to make. So does any kernel whose output is one piece of c.
//
//   t = Transpose(x, to channels last), y = Conv(t)
//
// If t has no other user and the kernel can read x as it is, it does. Host only.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/state/plan.h"

// Joins the values that can be joined, and tells the kernels. Updates the positions of first and
// last uses, by value. Called while the root of every value slot is itself or its view's source.
//
// Errors:    NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__skipped_moves_join(const rondo__unit *unit, rondo__plan *plan,
                                                      size_t *first_uses, size_t *last_uses);

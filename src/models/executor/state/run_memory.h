// executor/state/run_memory.h — memory for values of a run, which the plans of an executor share:
// plans run one after the other, and none needs the values that another left behind.
//
// So plans of similar size use the same piece. Graphs keep addresses, hence a piece never grows: a
// plan that finds no piece large enough gets a new one, a little larger than it needs, for later
// plans. A plan takes no piece that is four times too large, so that small plans do not keep a
// large plan's memory alive. A piece is freed with its last plan.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/state/plan.h"

// Memory of `kind` of the executor's device or, where `peer` is given, of that one.
//
// Errors:    NO_MEMORY, NO_DEVICE_MEMORY, DRIVER, LOST.
// Ownership: give back with rondo__run_memory_release.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__run_memory_acquire(rondo__unit *unit, rondo_memory_kind kind,
                                                      rondo__peer *peer, size_t bytes,
                                                      rondo__run_memory **out_memory);
// Memory of the executor's device for weights that are brought, beside the values of the same plan.
RONDO_MUST_USE rondo_status rondo__run_memory_acquire_buffers(rondo__unit *unit, size_t bytes,
                                                              rondo__run_memory **out_memory);
// Pinned memory for outputs of late shapes, beside what else a plan has there.
RONDO_MUST_USE rondo_status rondo__run_memory_acquire_late(rondo__unit *unit, size_t bytes,
                                                           rondo__run_memory **out_memory);
void rondo__run_memory_release(rondo__unit *unit,
                               rondo__run_memory *memory);  // NULL is fine

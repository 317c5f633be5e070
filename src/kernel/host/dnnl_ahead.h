// kernel/host/dnnl_ahead.h — oneDNN primitives made beside the thread that prepares kernels.
//
// Most of the time in which a plan's kernels are prepared goes into machine code that oneDNN writes
// for convolutions, one after the other. So a plan says first what it will want, and threads make
// it from the end while the plan's own thread prepares kernels from the beginning:
//
//   rondo__kernel_survey   want 1, want 2, ... want n
//   the plan's thread      make 1, make 2, make 3 ->
//   helpers                                       <- make n - 1, make n
//
// oneDNN keeps primitives by content, and lets who wants one wait for another thread that makes it:
// nothing is handed over but through its cache. What a helper cannot make is wanted again, and then
// its failure is told.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_KERNEL_HOST_DNNL_AHEAD_H
#define RONDO_KERNEL_HOST_DNNL_AHEAD_H

#include <stddef.h>
#include <stdint.h>

#include "kernel/host/dnnl_compat.h"
#include "kernel/kernel.h"

// Describes a primitive, as its kernel will, from what was wanted.
//
// Threads:   helpers call it.
typedef dnnl_status_t (*rondo__dnnl_describe)(const void *wanted, dnnl_engine_t engine,
                                              dnnl_primitive_desc_t *out_description);

// Has a primitive made; without memory it is not.
//
// wanted     copied.
// threads    that its kernel will use: oneDNN makes another primitive for another number.
void rondo__dnnl_ahead_want(rondo__kernel_ahead *ahead, rondo__dnnl_describe describe,
                            const void *wanted, size_t bytes, int32_t threads);

// Primitives that helpers have made until now.
size_t rondo__dnnl_ahead_count(const rondo__kernel_ahead *ahead);

#endif  // RONDO_KERNEL_HOST_DNNL_AHEAD_H

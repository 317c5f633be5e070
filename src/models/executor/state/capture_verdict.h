// executor/state/capture_verdict.h — which ops may be captured: what their entries say, and what
// earlier tries have shown.
//
// The process keeps the results of tries, by op, attributes and device, so that other plans and
// executors do not try again: the last RONDO__VERDICT_MAX of them, in static memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>

#include "kernel/kernel.h"

enum { RONDO__VERDICT_MAX = 256 };

// What entry and kernel say together.
rondo__capture_rule rondo__verdict_get_rule(const rondo__op *op, const rondo__kernel *kernel);

// Whether the op may be put into a segment. False: it is launched between two graphs.
//
// is_strict  an op that says yes is believed, whatever a try has shown: its failure is an error.
bool rondo__verdict_allows(rondo_device *device, const rondo__op *op, const rondo__kernel *kernel,
                           bool is_strict);

// Writes why it may not, naming the op.  Threads: safe.
void rondo__verdict_explain(rondo_device *device, const rondo__op *op, const rondo__kernel *kernel,
                            char *buffer, size_t bytes);

// The op breaks captures on the device; `why` is kept as far as it fits.  Threads: safe.
void rondo__verdict_remember(rondo_device *device, const rondo__op *op, const char *why);

// For tests: nothing was found out yet.  Threads: safe.
void rondo__verdict_forget_all(void);

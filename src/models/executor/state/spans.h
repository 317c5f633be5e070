// executor/state/spans.h — device times of a run, by events around its transfers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/state/plan.h"

// Marks the present end of the stream's work with one of the four events; nothing on the host.
//
// Errors:    DRIVER, LOST.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__unit_mark(rondo__unit *unit, size_t index);

// Sets what the events tell of the last run, which is done; on the host compute_ns stays.
void rondo__unit_read_spans(rondo__unit *unit, rondo_run_times *times);

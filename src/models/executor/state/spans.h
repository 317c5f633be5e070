// executor/state/spans.h — device times of a run, by events around its transfers. To ask a driver
// for them takes a while, so they are read when somebody wants them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/state/plan.h"

// Marks the present end of the stream's work with one of the four events; nothing on the host.
//
// has_put    something is on the stream since the mark before; otherwise its event does for both.
//
// Errors:    DRIVER, LOST.
// Threads:   one thread per executor; as below.
RONDO_MUST_USE rondo_status rondo__unit_mark(rondo__unit *unit, size_t index, bool has_put);

// Sets in `runs.times` what the events tell of the last run, which is done, unless that was done
// before; on the host compute_ns stays.
void rondo__unit_read_spans(rondo__unit *unit);

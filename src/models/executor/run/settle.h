// executor/run/settle.h — waits for earlier runs before a call that waits or reads the last run's
// results.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/state/plan.h"

// STATE while the stream of a caller's executor records: `call` cannot run there.
//
// Errors:    STATE, DRIVER, LOST.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__unit_refuse_recording(const rondo__unit *unit, const char *call);

// The same, and waits for the runs under way.
//
// Errors:    those, and what the runs met.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__executor_settle(rondo_executor *executor, const char *call);

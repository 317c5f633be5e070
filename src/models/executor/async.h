// executor/async.h — runs that are put on the stream and not waited for.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/run/fetch.h"

// Puts a run on the stream whose plan was found; fetch->waits is false.
//
// Errors:    as rondo_executor_run_async.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__executor_put_fetch(rondo_executor *executor,
                                                      const rondo__fetch *fetch,
                                                      const rondo_tensor *feeds, rondo_event *done);

// INVALID when `done` is an event of another device.
RONDO_MUST_USE rondo_status rondo__executor_check_done(const rondo_executor *executor,
                                                       const rondo_event *done, const char *call);

// executor/run/transfer.h — one run of an executor: inputs, steps, outputs, and their times.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/run/fetch.h"

// Runs the executor on tensors in input order; results in output order: with `data` NULL it is
// allocated, otherwise written.
//
// wants      which outputs are asked for; NULL: all
//
// Errors:    as rondo_executor_run.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__unit_run_tensors(rondo__unit *unit, const rondo_tensor *feeds,
                                                    rondo_tensor *results, const bool *wants);

// The same where the plan was found; fetch->waits is true.
RONDO_MUST_USE rondo_status rondo__unit_run_fetch(const rondo__fetch *fetch,
                                                  const rondo_tensor *feeds);

// The same without a wait at the end: results are written in stream order.
//
// done       recorded behind the run; NULL: none.
//
// Errors:    as rondo_executor_run_async.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__unit_put_fetch(const rondo__fetch *fetch,
                                                  const rondo_tensor *feeds, rondo_event *done,
                                                  rondo_run_times *out_times);

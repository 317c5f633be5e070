// learn/run_here.h — a learned step run by a thread that waits for it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.h"
#include "rondo/learn.h"

// rondo_learned_run, where the calling thread does the work if it can: see
// rondo__graph_replay_here.
RONDO_MUST_USE rondo_status rondo__learned_run_here(rondo_learned *learned, rondo_stream *stream,
                                                    const rondo_value *values, size_t count,
                                                    bool *out_ran_here);

// executor/state/verbosity.h — how much the log says about graphs (run/verbose.h): reads the
// environment.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/state/plan.h"

// Reads RONDO_GRAPHS_VERBOSE and RONDO_GRAPHS_MAX_LOG_ENTRIES, for an executor of the caller's.
void rondo__verbose_init(rondo_executor *executor);

// graph/watchdog.h — which device a watchdog is of, and graphs that go.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_GRAPH_WATCHDOG_H
#define RONDO_GRAPH_WATCHDOG_H

#include "rondo/inspect.h"

rondo_device *rondo__watchdog_get_device(const rondo_watchdog *watchdog);

// A watched graph is destroyed.
void rondo__watchdogs_forget(const rondo_graph *graph);

#endif  // RONDO_GRAPH_WATCHDOG_H

// graph/watchdog.h — which device a watchdog is of, and graphs that go.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_GRAPH_WATCHDOG_H
#define RONDO_GRAPH_WATCHDOG_H

#include "rondo/inspect.h"

rondo_device *rondo__watchdog_get_device(const rondo_watchdog *watchdog);

// The list of all watchdogs, which hear of a watched graph that is destroyed.
typedef struct rondo__watchdog_link {
    struct rondo__watchdog_link *next;
    void (*forget)(struct rondo__watchdog_link *link, const rondo_graph *graph);
} rondo__watchdog_link;
void rondo__watchdog_list_add(rondo__watchdog_link *link);
void rondo__watchdog_list_remove(rondo__watchdog_link *link);
void rondo__watchdog_list_forget(const rondo_graph *graph);

#endif  // RONDO_GRAPH_WATCHDOG_H

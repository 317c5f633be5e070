// graph/watchdog.h — which device a watchdog is of.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_GRAPH_WATCHDOG_H
#define RONDO_GRAPH_WATCHDOG_H

#include "rondo/inspect.h"

rondo_device *rondo__watchdog_get_device(const rondo_watchdog *watchdog);

#endif  // RONDO_GRAPH_WATCHDOG_H

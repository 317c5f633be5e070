// graph/watchdog.h — a watchdog's device, other recordings of a watched graph's work, and what a
// watchdog does when a graph is destroyed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rondo/inspect.h"

rondo_device *rondo__watchdog_get_device(const rondo_watchdog *watchdog);

// Puts mark `number` (from 1) of `graph` into another recording of the same work, which replays by
// rondo__watchdog_watch only. `graph` must stay as long as that recording.
//
// Errors:    those of the fill.
// Threads:   one thread per graph.
RONDO_MUST_USE rondo_status rondo__watchdog_mark_again(rondo_watchdog *watchdog, rondo_graph *graph,
                                                       uint32_t number, rondo_stream *stream);

// What `put` puts on the stream is watched as a replay of `graph`, until it is over.
//
// Errors:    NO_MEMORY; those of `put`.
// Threads:   one thread per graph.
typedef rondo_status (*rondo__watchdog_put)(void *user_data);
RONDO_MUST_USE rondo_status rondo__watchdog_watch(rondo_watchdog *watchdog, rondo_graph *graph,
                                                  rondo_stream *stream, rondo__watchdog_put put,
                                                  void *user_data);

// The list of all watchdogs, which hear of a watched graph that is destroyed.
typedef struct rondo__watchdog_link {
    struct rondo__watchdog_link *next;
    void (*forget)(struct rondo__watchdog_link *link, const rondo_graph *graph);
} rondo__watchdog_link;
void rondo__watchdog_list_add(rondo__watchdog_link *link);
void rondo__watchdog_list_remove(rondo__watchdog_link *link);
void rondo__watchdog_list_forget(const rondo_graph *graph);

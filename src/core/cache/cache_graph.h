// cache/cache_graph.h — the empty graphs that a cache's captures are made with, and the clock.
//
// A step is recorded into a graph that keeps only its template (the recorder). Another graph, which
// the cache holds, takes the template over: an empty graph makes a new executable, a graph that is
// being evicted patches its own. Then the recorder is empty again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rondo/graph_cache.h"

// Any thread may ask.
typedef struct rondo__cache_clock {
    uint64_t (*now_ns)(void *user_data);
    void *user_data;
} rondo__cache_clock;

// An empty graph as the cache's options want it.
//
// Errors:    NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__cache_create_graph(rondo_device *device,
                                                      const rondo_graph_cache_options *options,
                                                      rondo_graph_keeps keep,
                                                      rondo_graph **out_graph);

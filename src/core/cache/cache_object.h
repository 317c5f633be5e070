// cache/cache_object.h — the cache object, and one key's record.
//
// A key is in one of two maps (base/lru_map.h), and its record moves from one to the other:
//
//               captured: rondo__cache_hold
//      waiting ------------------------------> held         the record has a graph
//         ^                                      |
//         +--------------------------------------+          evicted, given up, its executable
//                                                           patched for another key
//
// So a hit is one look-up; `held` bounds the graphs, and `waiting` the memories of other keys. A
// waiting key that is evicted is forgotten.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/lru_map.h"
#include "cache/background.h"
#include "cache/cache_graph.h"
#include "cache/device_time.h"
#include "cache/governor.h"
#include "rondo/graph_cache.h"

typedef struct rondo__cache_record {
    rondo_graph *graph;       // NULL: none is held
    rondo__lru_entry *entry;  // in `held` where there is a graph, otherwise in `waiting`
    bool is_pinned;           // by the program
    rondo__measures measures;
    uint64_t node_count;  // of the graph
    uint64_t bytes;       // of the graph
    char *failure;        // why the latest capture failed; NULL: none did, or memory was short
} rondo__cache_record;

// Clocks, for tests that plant times. Of any thread.
typedef struct rondo__cache_meter {
    rondo__cache_clock clock;
    // A run's time on the device, 0: not known; NULL: none is.
    uint64_t (*device_ns)(void *user_data, bool is_replay);
} rondo__cache_meter;

struct rondo_graph_cache {
    rondo_device *device;  // retained
    rondo__lru_map held;
    rondo__lru_map waiting;
    rondo_graph_cache_options options;  // label, arena: owned, retained
    rondo_graph *recorder;              // what captures record into; NULL: not made yet
    rondo__background *background;      // NULL: captures are made by the run itself
    rondo__experience experience;
    rondo__device_time device_time;
    rondo__cache_meter meter;
    rondo_graph_cache_stats stats;  // those that the maps do not count
    bool is_in_step;
};

static inline uint64_t rondo__cache_now_ns(const rondo_graph_cache *cache) {
    return cache->meter.clock.now_ns(cache->meter.clock.user_data);
}

// Test hook: times come from `meter`, and no more from the device's events.
void rondo__graph_cache_set_meter(rondo_graph_cache *cache, const rondo__cache_meter *meter);

// rondo/graph_cache.h — graphs found by what they were captured for, captured where that pays.
//
//   rondo_graph_cache_create(device, NULL, &cache);
//   for (;;) {
//       shapes key = {.batch = batch, .length = length};   // zeroed before, so that gaps are equal
//       rondo_graph_cache_run(cache, &key, sizeof key, stream, put_step_on_stream, &step, NULL);
//   }
//
// The first use of a key runs the step eagerly and measures it. A key that comes back is captured
// once that is expected to pay back; then it is replayed. Where a replay turns out slower than the
// step itself, the key goes back to running eagerly. rondo_graph_cache_get_entry says what was
// measured, what was chosen and why.
//
// A graph is bound to the addresses and values that it was captured with. So the key must hold all
// that the step depends on, but for what stands in memory: shapes, element types, flags, and
// addresses that change. The key is compared by its bytes. The device is the cache's own.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_GRAPH_CACHE_H
#define RONDO_GRAPH_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rondo/device.h"
#include "rondo/export.h"
#include "rondo/graph.h"
#include "rondo/pool.h"
#include "rondo/status.h"

RONDO_EXTERN_C_BEGIN

typedef struct rondo_graph_cache rondo_graph_cache;

// When a key is captured.
typedef int32_t rondo_cache_policy;
enum {
    // Where it pays, by what was measured (docs/changing_arguments.md has the rules).
    RONDO_CACHE_MEASURED = 0,
    RONDO_CACHE_ALWAYS_CAPTURE = 1,  // at its first use, and again whenever its graph was evicted
    RONDO_CACHE_NEVER_CAPTURE = 2,   // each run is eager: to compare
};

typedef struct rondo_graph_cache_options {
    size_t struct_size;   // sizeof(rondo_graph_cache_options)
    const char *label;    // shown in errors and reports; copied; NULL means "graph cache"
    size_t entry_limit;   // graphs held at a time; 0 means 64
    uint64_t byte_limit;  // bytes of all graphs (rondo_graph_cache_entry); 0 means no limit
    size_t key_limit;     // keys without a graph whose measurements are kept; 0 means 1024
    rondo_cache_policy policy;
    rondo_capture_mode mode;  // of captures; default: thread_local
    // Where captures take memory from: shared by all graphs of the cache, retained. NULL means an
    // arena for each graph. See rondo/pool.h.
    rondo_arena *arena;
    rondo_pageable_sources pageable_sources;  // as rondo_graph_options has it
    // Another thread captures, on a stream of the cache's own, while the caller's run goes on
    // eagerly; the graph is used from the first run on that finds it done. The step function may
    // then be called on that thread, also beside itself, and until rondo_graph_cache_wait or the
    // end of the cache: see user_data_bytes. Not with an arena, nor in global mode.
    bool capture_in_background;
    // For captures in the background: that many bytes of *user_data are copied, and the step gets
    // the copy; what they point to must stay. 0: the step gets user_data itself, which must then
    // stay as it is until the capture is over (rondo_graph_cache_wait).
    size_t user_data_bytes;
} rondo_graph_cache_options;

// What a run did.
typedef int32_t rondo_cache_outcome;
enum {
    RONDO_CACHE_NOTHING = 0,                // the call failed
    RONDO_CACHE_RAN_EAGERLY = 1,            // the step was put on the stream as it is
    RONDO_CACHE_REPLAYED = 2,               // a graph was there
    RONDO_CACHE_CAPTURED_AND_REPLAYED = 3,  // the step was recorded, and a new executable made
    RONDO_CACHE_UPDATED = 4,  // recorded, and the executable of the graph it replaces was patched
};

// Counted since the cache was made; clear does not reset them.
typedef struct rondo_graph_cache_stats {
    size_t struct_size;           // sizeof(rondo_graph_cache_stats)
    uint64_t hit_count;           // runs that found a graph
    uint64_t miss_count;          // runs that found none
    uint64_t eager_count;         // runs that were eager
    uint64_t capture_count;       // captures that became a graph
    uint64_t capture_fail_count;  // captures that did not
    uint64_t instantiate_count;   // executables made
    uint64_t update_count;        // executables patched instead
    uint64_t eviction_count;      // graphs evicted for others
    uint64_t give_up_count;       // graphs dropped because they were slower than eager
    uint64_t entry_count;         // graphs held now
    uint64_t pinned_count;        // of them pinned
    uint64_t key_count;           // keys known now, with a graph or without
    uint64_t bytes;               // of the graphs held now
} rondo_graph_cache_stats;

// What is known of one key. Times are medians over the latest runs that were measured, in
// nanoseconds; 0: not measured. Measured are the first eight runs of each kind, then one in 64.
typedef struct rondo_graph_cache_entry {
    size_t struct_size;         // sizeof(rondo_graph_cache_entry)
    bool has_graph;             // the next run replays, unless it is one to measure the eager step
    bool is_pinned;             // rondo_graph_cache_pin
    uint64_t run_count;         // all runs, also those that failed: not eager + replayed
    uint64_t eager_count;       // of them eager
    uint64_t replay_count;      // of them replayed
    uint64_t capture_count;     // how often it was captured
    uint64_t eager_ns;          // the step's call
    uint64_t replay_ns;         // the replay's call
    uint64_t eager_device_ns;   // from the step's begin to its end on the device
    uint64_t replay_device_ns;  // the same of a replay
    uint64_t capture_ns;        // of the latest capture: recording
    uint64_t instantiate_ns;    // making the executable; 0: it was patched
    uint64_t update_ns;         // patching it; 0: it was made anew
    // Runs after which the capture has paid for itself; 0: not known, or never.
    uint64_t payback_run_count;
    uint64_t node_count;  // of the graph held
    // Of the graph held: the executable on the device (rondo_graph_stats), an estimate for each
    // node on the host, and the memory that the capture took, unless the arena is shared.
    uint64_t bytes;
    char reason[256];  // of the choice: "replay: 12 us against 85 us eager; paid back after 7 runs"
} rondo_graph_cache_entry;

// Makes an empty cache.
//
// Errors:    INVALID (a background capture with an arena or in global mode).
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_cache_create(
    rondo_device *device, const rondo_graph_cache_options *options, rondo_graph_cache **out_cache);

// Waits for a capture in the background and for replays in flight, and frees everything. Inside a
// step that the cache runs it does nothing but warn.
RONDO_API void rondo_graph_cache_destroy(rondo_graph_cache *cache);

// Puts the step of a key on the stream: by a replay, or as the step does it.
//
// When the key is to be captured the step is recorded as by rondo_graph_capture_step; when that
// fails the step is run at once, and the key stays eager: it is tried again after 16 more runs,
// then after 64, and so on. The step must not use the cache, and rondo_graph_capture_step says what
// else it must not do.
//
// Equal keys must mean equal steps; see above.
//
// key          compared by content, copied where needed.
// key_bytes    at least 1.
// out_outcome  may be NULL.
//
// Errors:    STATE (`stream` records; called from inside a step of the cache; as rondo_graph_replay
//            has it for graphs that share an arena), INVALID (other device, no key); also those of
//            the step.
// Capture:   not legal while `stream` records. Refused, it breaks nothing.
// Cost:      of a hit: hashing the key, a look-up of constant cost, rondo_graph_replay. Of an
//            eviction: waits for the last replay of the evicted graph.
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_cache_run(
    rondo_graph_cache *cache, const void *key, size_t key_bytes, rondo_stream *stream,
    rondo_step_function step, void *user_data, rondo_cache_outcome *out_outcome);

// Waits until no capture runs in the background; what came of it is in the cache then.
//
// Errors:    STATE (from inside a step).
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_cache_wait(rondo_graph_cache *cache);

// A pinned key is never evicted. It may be pinned before its first use. Pinned ones count, and may
// exceed the limits by themselves; then nothing else is captured.
//
// Errors:    STATE (from inside a step).
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_cache_pin(rondo_graph_cache *cache,
                                                            const void *key, size_t key_bytes);
// Harmless for a key that is not pinned, or not known.
//
// Errors:    STATE (from inside a step).
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_cache_unpin(rondo_graph_cache *cache,
                                                              const void *key, size_t key_bytes);

// Drops the key's graph and measurements, pinned or not: when the work that the key stands for has
// changed. Harmless for a key that is not known. Waits for its replays in flight, and for a capture
// in the background.
//
// Errors:    STATE (from inside a step).
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_cache_forget(rondo_graph_cache *cache,
                                                               const void *key, size_t key_bytes);
// The same for all keys.
//
// Errors:    STATE (from inside a step).
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_cache_clear(rondo_graph_cache *cache);

// Fills *out_stats; O(1).
RONDO_API RONDO_MUST_USE rondo_status
rondo_graph_cache_get_stats(rondo_graph_cache *cache, rondo_graph_cache_stats *out_stats);

// Fills *out_entry with what is known of a key. Does not count as a use.
//
// Errors:    INVALID (no such key: never run, forgotten, or evicted).
RONDO_API RONDO_MUST_USE rondo_status
rondo_graph_cache_get_entry(rondo_graph_cache *cache, const void *key, size_t key_bytes,
                            rondo_graph_cache_entry *out_entry);

// A key that the cache knows, borrowed until its next call that runs, pins, forgets or waits.
typedef struct rondo_cache_key {  // ABI: fixed
    const void *bytes;
    size_t byte_count;
} rondo_cache_key;

// Lists the keys that the cache knows: those with a graph, the one used last first, then the
// others likewise. Does not count as a use.
//
// Errors:    STATE (from inside a step).
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_cache_list_keys(rondo_graph_cache *cache,
                                                                  rondo_cache_key *keys,
                                                                  size_t capacity,
                                                                  size_t *out_count);

RONDO_EXTERN_C_END

#endif  // RONDO_GRAPH_CACHE_H

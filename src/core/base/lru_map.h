// base/lru_map.h — values found by the content of a key, bounded in number and in bytes: the one
// used least recently goes first.
//
//   newest                                      oldest
//   [entry] <-> [entry] <-> [entry] <-> [entry] <-> [entry]    one list, in the order of use
//      ^           ^                       ^
//   +--|--+-----+--|--+-----+-----+-----+--|--+-----+
//   |  *  |     |  *  |     |     |     |  *  |     |          buckets, by the hash of the key
//   +-----+-----+-----+-----+-----+-----+-----+-----+          (at least as many as entries)
//
// Key and entry are one allocation. Finding, adding, removing take O(1).
//
// Threads:   one thread at a time; nothing is locked.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rondo/status.h"

// One key and its value. The address stays the same until the entry is gone.
typedef struct rondo__lru_entry rondo__lru_entry;

// Destroys a value whose entry is being evicted or removed: the entry is out of the map already,
// and can be read until this returns. It may not use the map.
typedef void (*rondo__lru_destroy_function)(void *user_data, void *value);

typedef struct rondo__lru_stats {
    uint64_t hit_count;       // of rondo__lru_map_find
    uint64_t miss_count;      // of rondo__lru_map_find
    uint64_t eviction_count;  // entries that had to go for others; not those that were removed
    size_t entry_count;
    size_t pinned_count;  // entries that are pinned
    uint64_t bytes;       // what the values cost, and bookkeeping and keys
} rondo__lru_stats;

// Fields are private, but for `stats`, which anyone may read. All zeroes: an empty map without
// limits and without a destroy function.
typedef struct rondo__lru_map {
    rondo__lru_stats stats;
    size_t entry_limit;
    uint64_t byte_limit;
    rondo__lru_destroy_function destroy;
    void *user_data;
    rondo__lru_entry **buckets;
    size_t bucket_count;  // 0, or a power of two
    rondo__lru_entry *newest;
    rondo__lru_entry *oldest;
} rondo__lru_map;

// entry_limit, byte_limit   0 means none. Pinned entries count, and may exceed them.
// destroy                   NULL: values are not owned.
void rondo__lru_map_init(rondo__lru_map *out_map, size_t entry_limit, uint64_t byte_limit,
                         rondo__lru_destroy_function destroy, void *user_data);
// Removes all entries, pinned ones too. The map is empty afterwards, with its limits.
void rondo__lru_map_clear(rondo__lru_map *map);
// The same, and frees the map's own memory.
void rondo__lru_map_deinit(rondo__lru_map *map);

// The entry of a key, which is the newest now; counts a hit or a miss. NULL: there is none.
rondo__lru_entry *rondo__lru_map_find(rondo__lru_map *map, const void *key, size_t key_bytes);
// The same, without a count and leaving the order as it is.
rondo__lru_entry *rondo__lru_map_peek(const rondo__lru_map *map, const void *key, size_t key_bytes);
// Makes an entry the newest.
void rondo__lru_map_touch(rondo__lru_map *map, rondo__lru_entry *entry);

// Adds an entry as the newest, and evicts as many of the oldest as the limits ask for, but never
// the new one.
//
// key         copied; must not be in the map yet.
// value       belongs to the map after success.
// byte_cost   of the value; the bytes of key and entry are added by the map.
//
// Errors:    NO_MEMORY; then the map is as before, and the value the caller's.
RONDO_MUST_USE rondo_status rondo__lru_map_add(rondo__lru_map *map, const void *key,
                                               size_t key_bytes, void *value, uint64_t byte_cost,
                                               rondo__lru_entry **out_entry);
// Removes an entry and destroys its value.
void rondo__lru_map_remove(rondo__lru_map *map, rondo__lru_entry *entry);

// Removes an entry and gives the value back to the caller.
void *rondo__lru_map_take(rondo__lru_map *map, rondo__lru_entry *entry);

// Sets the present cost of the value. If that exceeds the limit, other entries are evicted, never
// this one.
void rondo__lru_map_set_bytes(rondo__lru_map *map, rondo__lru_entry *entry, uint64_t byte_cost);
// Changes the limits and evicts what exceeds them.
void rondo__lru_map_set_limits(rondo__lru_map *map, size_t entry_limit, uint64_t byte_limit);
// Evicts the oldest entry that is not pinned, for a caller that runs out of memory elsewhere.
// False:
// there is none.  Cost: pinned entries that are older are passed over.
bool rondo__lru_map_evict_oldest(rondo__lru_map *map);

// A pinned entry is never evicted, until it was unpinned as often as pinned.
void rondo__lru_map_pin(rondo__lru_map *map, rondo__lru_entry *entry);
void rondo__lru_map_unpin(rondo__lru_map *map, rondo__lru_entry *entry);

// The value of an entry. An entry that is unpinned may be evicted at once.
void *rondo__lru_entry_get_value(const rondo__lru_entry *entry);
const void *rondo__lru_entry_get_key(const rondo__lru_entry *entry, size_t *out_key_bytes);
bool rondo__lru_entry_is_pinned(const rondo__lru_entry *entry);
// The next older and the next newer one; NULL: none. To start: map->newest, map->oldest.
rondo__lru_entry *rondo__lru_entry_get_older(const rondo__lru_entry *entry);
rondo__lru_entry *rondo__lru_entry_get_newer(const rondo__lru_entry *entry);

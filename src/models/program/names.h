// program/names.h — a map from names to small numbers: open addressing, at most half full.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rondo/status.h"

// Zero-initialise to start. Names are borrowed: they must outlive the map, or until it is cleared.
typedef struct rondo__namemap {
    struct rondo__named {
        const char *name;  // NULL: free
        int32_t number;
    } * slots;
    size_t slot_count;  // 0 or a power of two
    size_t entry_count;
    uint64_t seed;  // differs from map to map, so that no file can choose collisions
} rondo__namemap;

// Room for `count` names in all, so that putting them cannot fail.
//
// Errors:    NO_MEMORY.
// Threads:   one thread per map, as all functions below.
RONDO_MUST_USE rondo_status rondo__namemap_reserve(rondo__namemap *map, size_t count);
// Enters a name for which there is room. One that is there keeps its number; false then.
bool rondo__namemap_put(rondo__namemap *map, const char *name, int32_t number);
// Both.
RONDO_MUST_USE rondo_status rondo__namemap_add(rondo__namemap *map, const char *name,
                                               int32_t number, bool *out_is_new);
// The number of a name, or `fallback` when it is not there.
int32_t rondo__namemap_find(const rondo__namemap *map, const char *name, int32_t fallback);
// Forgets all names and keeps the room.
void rondo__namemap_clear(rondo__namemap *map);
void rondo__namemap_deinit(rondo__namemap *map);

// base/lru_map.c — see lru_map.h.
// SPDX-License-Identifier: Apache-2.0
#include "base/lru_map.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"

struct rondo__lru_entry {
    uint64_t hash;
    rondo__lru_entry *next_in_bucket;
    rondo__lru_entry *newer;
    rondo__lru_entry *older;
    void *value;
    uint64_t byte_cost;  // of the value
    size_t pin_count;
    size_t key_bytes;
    uint8_t key[];
};

enum {
    FIRST_BUCKET_COUNT = 16,
    // A look-up reads one line of the processor's cache of an entry, and its key.
    ENTRY_ALIGNMENT = 64
};

// ---- order of use -----------------------------------------------------------------------------

static void unlink_entry(rondo__lru_map *map, rondo__lru_entry *entry) {
    *(entry->newer != NULL ? &entry->newer->older : &map->newest) = entry->older;
    *(entry->older != NULL ? &entry->older->newer : &map->oldest) = entry->newer;
}

static void link_as_newest(rondo__lru_map *map, rondo__lru_entry *entry) {
    entry->newer = NULL;
    entry->older = map->newest;
    *(map->newest != NULL ? &map->newest->newer : &map->oldest) = entry;
    map->newest = entry;
}

void rondo__lru_map_touch(rondo__lru_map *map, rondo__lru_entry *entry) {
    if (map->newest != entry) {
        unlink_entry(map, entry);
        link_as_newest(map, entry);
    }
}

// ---- buckets ----------------------------------------------------------------------------------

static rondo__lru_entry **get_bucket(const rondo__lru_map *map, uint64_t hash) {
    return &map->buckets[hash & (map->bucket_count - 1)];
}

static uint64_t hash_key(const void *key, size_t key_bytes) {
    return rondo__hash128_bytes(key, key_bytes).low;
}

static rondo__lru_entry *look_up(const rondo__lru_map *map, uint64_t hash, const void *key,
                                 size_t key_bytes) {
    if (map->bucket_count == 0) {
        return NULL;
    }
    rondo__lru_entry *entry = *get_bucket(map, hash);
    while (entry != NULL && (entry->hash != hash || entry->key_bytes != key_bytes ||
                             (key_bytes > 0 && memcmp(entry->key, key, key_bytes) != 0))) {
        entry = entry->next_in_bucket;
    }
    return entry;
}

static void put_into_bucket(rondo__lru_map *map, rondo__lru_entry *entry) {
    rondo__lru_entry **bucket = get_bucket(map, entry->hash);
    entry->next_in_bucket = *bucket;
    *bucket = entry;
}

static void take_from_bucket(rondo__lru_map *map, const rondo__lru_entry *entry) {
    rondo__lru_entry **link = get_bucket(map, entry->hash);
    while (*link != entry) {
        link = &(*link)->next_in_bucket;
    }
    *link = entry->next_in_bucket;
}

// Room for one more entry. The buckets double when they are as many as the entries.
static rondo_status reserve_bucket(rondo__lru_map *map) {
    if (map->stats.entry_count < map->bucket_count) {
        return RONDO_STATUS_OK;
    }
    size_t count = map->bucket_count > 0 ? map->bucket_count * 2 : FIRST_BUCKET_COUNT;
    rondo__lru_entry **buckets = rondo__calloc(count, sizeof(rondo__lru_entry *));
    if (buckets == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo__free(map->buckets);
    map->buckets = buckets;
    map->bucket_count = count;
    for (rondo__lru_entry *entry = map->newest; entry != NULL; entry = entry->older) {
        put_into_bucket(map, entry);
    }
    return RONDO_STATUS_OK;
}

// ---- leaving the map --------------------------------------------------------------------------

static uint64_t get_total_bytes(const rondo__lru_entry *entry) {
    return entry->byte_cost + sizeof *entry + entry->key_bytes;
}

// The entry is still there, outside of the map.
static void take_out(rondo__lru_map *map, rondo__lru_entry *entry) {
    unlink_entry(map, entry);
    take_from_bucket(map, entry);
    map->stats.entry_count -= 1;
    map->stats.pinned_count -= entry->pin_count > 0 ? 1 : 0;
    map->stats.bytes -= get_total_bytes(entry);
}

void *rondo__lru_map_take(rondo__lru_map *map, rondo__lru_entry *entry) {
    void *value = entry->value;
    take_out(map, entry);
    rondo__free(entry);
    return value;
}

void rondo__lru_map_remove(rondo__lru_map *map, rondo__lru_entry *entry) {
    take_out(map, entry);
    if (map->destroy != NULL) {
        map->destroy(map->user_data, entry->value);
    }
    rondo__free(entry);
}

// Evicts the oldest entry that is neither pinned nor `kept`.
static bool evict(rondo__lru_map *map, const rondo__lru_entry *kept) {
    rondo__lru_entry *entry = map->oldest;
    while (entry != NULL && (entry == kept || entry->pin_count > 0)) {
        entry = entry->newer;
    }
    if (entry == NULL) {
        return false;
    }
    map->stats.eviction_count += 1;
    rondo__lru_map_remove(map, entry);
    return true;
}

static bool is_too_much(const rondo__lru_map *map) {
    return (map->entry_limit > 0 && map->stats.entry_count > map->entry_limit) ||
           (map->byte_limit > 0 && map->stats.bytes > map->byte_limit);
}

static void keep_limits(rondo__lru_map *map, const rondo__lru_entry *kept) {
    while (is_too_much(map) && evict(map, kept)) {
    }
}

bool rondo__lru_map_evict_oldest(rondo__lru_map *map) {
    return evict(map, NULL);
}

void rondo__lru_map_clear(rondo__lru_map *map) {
    while (map->newest != NULL) {
        rondo__lru_map_remove(map, map->newest);
    }
}

// ---- the map ----------------------------------------------------------------------------------

void rondo__lru_map_init(rondo__lru_map *out_map, size_t entry_limit, uint64_t byte_limit,
                         rondo__lru_destroy_function destroy, void *user_data) {
    *out_map = (rondo__lru_map){.entry_limit = entry_limit,
                                .byte_limit = byte_limit,
                                .destroy = destroy,
                                .user_data = user_data};
}

void rondo__lru_map_deinit(rondo__lru_map *map) {
    rondo__lru_map_clear(map);
    rondo__free(map->buckets);
    map->buckets = NULL;
    map->bucket_count = 0;
}

rondo__lru_entry *rondo__lru_map_peek(const rondo__lru_map *map, const void *key,
                                      size_t key_bytes) {
    return look_up(map, hash_key(key, key_bytes), key, key_bytes);
}

rondo__lru_entry *rondo__lru_map_find(rondo__lru_map *map, const void *key, size_t key_bytes) {
    rondo__lru_entry *entry = rondo__lru_map_peek(map, key, key_bytes);
    if (entry == NULL) {
        map->stats.miss_count += 1;
        return NULL;
    }
    map->stats.hit_count += 1;
    rondo__lru_map_touch(map, entry);
    return entry;
}

rondo_status rondo__lru_map_add(rondo__lru_map *map, const void *key, size_t key_bytes, void *value,
                                uint64_t byte_cost, rondo__lru_entry **out_entry) {
    *out_entry = NULL;
    size_t bytes;
    if (!rondo__add_size(sizeof(rondo__lru_entry), key_bytes, &bytes)) {
        return RONDO_FAIL(NO_MEMORY, "a key of %zu bytes is too large", key_bytes);
    }
    RETURN_IF_ERROR(reserve_bucket(map));
    rondo__lru_entry *entry = rondo__malloc_aligned(bytes, ENTRY_ALIGNMENT);
    if (entry == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    *entry = (rondo__lru_entry){.hash = hash_key(key, key_bytes),
                                .value = value,
                                .byte_cost = byte_cost,
                                .key_bytes = key_bytes};
    if (key_bytes > 0) {
        memcpy(entry->key, key, key_bytes);
    }
    put_into_bucket(map, entry);
    link_as_newest(map, entry);
    map->stats.entry_count += 1;
    map->stats.bytes += get_total_bytes(entry);
    keep_limits(map, entry);
    *out_entry = entry;
    return RONDO_STATUS_OK;
}

void rondo__lru_map_set_bytes(rondo__lru_map *map, rondo__lru_entry *entry, uint64_t byte_cost) {
    map->stats.bytes += byte_cost - entry->byte_cost;
    entry->byte_cost = byte_cost;
    keep_limits(map, entry);
}

void rondo__lru_map_set_limits(rondo__lru_map *map, size_t entry_limit, uint64_t byte_limit) {
    map->entry_limit = entry_limit;
    map->byte_limit = byte_limit;
    keep_limits(map, NULL);
}

void rondo__lru_map_pin(rondo__lru_map *map, rondo__lru_entry *entry) {
    map->stats.pinned_count += entry->pin_count == 0 ? 1 : 0;
    entry->pin_count += 1;
}

void rondo__lru_map_unpin(rondo__lru_map *map, rondo__lru_entry *entry) {
    if (entry->pin_count > 0) {
        entry->pin_count -= 1;
        map->stats.pinned_count -= entry->pin_count == 0 ? 1 : 0;
    }
    keep_limits(map, NULL);
}

void *rondo__lru_entry_get_value(const rondo__lru_entry *entry) {
    return entry->value;
}

const void *rondo__lru_entry_get_key(const rondo__lru_entry *entry, size_t *out_key_bytes) {
    *out_key_bytes = entry->key_bytes;
    return entry->key;
}

bool rondo__lru_entry_is_pinned(const rondo__lru_entry *entry) {
    return entry->pin_count > 0;
}

rondo__lru_entry *rondo__lru_entry_get_older(const rondo__lru_entry *entry) {
    return entry->older;
}

rondo__lru_entry *rondo__lru_entry_get_newer(const rondo__lru_entry *entry) {
    return entry->newer;
}

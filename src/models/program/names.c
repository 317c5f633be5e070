// program/names.c — see names.h.
// SPDX-License-Identifier: Apache-2.0

#include "program/names.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"

// The entry that holds `name`, or the free one where it belongs. There is always a free one.
static struct rondo__named *find_slot(const rondo__namemap *map, const char *name) {
    const uint64_t hash = rondo__hash64(map->seed, name, strlen(name));
    const size_t mask = map->slot_count - 1;
    size_t slot = (size_t)((hash ^ hash >> 29) * UINT64_C(0x9E3779B97F4A7C15) >> 20) & mask;
    while (map->slots[slot].name != NULL && strcmp(map->slots[slot].name, name) != 0) {
        slot = (slot + 1) & mask;
    }
    return &map->slots[slot];
}

rondo_status rondo__namemap_reserve(rondo__namemap *map, size_t count) {
    if (count * 2 <= map->slot_count) {
        return RONDO_STATUS_OK;
    }
    rondo__namemap grown = {.slot_count = map->slot_count == 0 ? 16 : map->slot_count};
    while (grown.slot_count < count * 2) {
        grown.slot_count *= 2;
    }
    grown.slots = rondo__calloc(grown.slot_count, sizeof *grown.slots);
    if (grown.slots == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    const uint64_t salt[2] = {(uint64_t)(uintptr_t)grown.slots, rondo__clock_now_ns()};
    grown.seed = rondo__hash64(RONDO__HASH_SEED, salt, sizeof salt);
    for (size_t i = 0; i < map->slot_count; ++i) {
        if (map->slots[i].name != NULL) {
            (void)rondo__namemap_put(&grown, map->slots[i].name, map->slots[i].number);
        }
    }
    rondo__namemap_deinit(map);
    *map = grown;
    return RONDO_STATUS_OK;
}

bool rondo__namemap_put(rondo__namemap *map, const char *name, int32_t number) {
    struct rondo__named *slot = find_slot(map, name);
    const bool is_new = slot->name == NULL;
    if (is_new) {
        *slot = (struct rondo__named){name, number};
        map->entry_count += 1;
    }
    return is_new;
}

rondo_status rondo__namemap_add(rondo__namemap *map, const char *name, int32_t number,
                                bool *out_is_new) {
    *out_is_new = false;
    RETURN_IF_ERROR(rondo__namemap_reserve(map, map->entry_count + 1));
    *out_is_new = rondo__namemap_put(map, name, number);
    return RONDO_STATUS_OK;
}

int32_t rondo__namemap_find(const rondo__namemap *map, const char *name, int32_t fallback) {
    const struct rondo__named *slot = map->slot_count > 0 ? find_slot(map, name) : NULL;
    return slot == NULL || slot->name == NULL ? fallback : slot->number;
}

void rondo__namemap_clear(rondo__namemap *map) {
    if (map->slot_count > 0) {
        memset(map->slots, 0, map->slot_count * sizeof *map->slots);
    }
    map->entry_count = 0;
}

void rondo__namemap_deinit(rondo__namemap *map) {
    rondo__free(map->slots);
    *map = (rondo__namemap){0};
}

// SPDX-License-Identifier: Apache-2.0

#include "onnx/namemap.h"

#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/memory.h"

// The slot that holds `name`, or the free one where it belongs. There is always a free one.
static size_t find_slot(const rondo__namemap *map, const char *name) {
    uint64_t hash = rondo__hash64(map->seed, name, strlen(name));
    size_t mask = map->slot_count - 1;
    size_t slot = (size_t)((hash ^ hash >> 29) * UINT64_C(0x9E3779B97F4A7C15) >> 20) & mask;
    while (map->names[slot] != NULL && strcmp(map->names[slot], name) != 0) {
        slot = (slot + 1) & mask;
    }
    return slot;
}

static rondo_status grow(rondo__namemap *map) {
    rondo__namemap grown = {
        .slot_count = map->slot_count == 0 ? 16 : 2 * map->slot_count,
        .entry_count = map->entry_count,
    };
    grown.names = rondo__calloc(grown.slot_count, sizeof(*grown.names));
    if (grown.names == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    grown.numbers = rondo__calloc(grown.slot_count, sizeof(*grown.numbers));
    if (grown.numbers == NULL) {
        rondo__free(grown.names);
        return RONDO_STATUS_NO_MEMORY;
    }
    uint64_t salt[2] = {(uint64_t)(uintptr_t)grown.names, rondo__clock_now_ns()};
    grown.seed = rondo__hash64(RONDO__HASH_SEED, salt, sizeof(salt));
    for (size_t i = 0; i < map->slot_count; ++i) {
        if (map->names[i] != NULL) {
            size_t slot = find_slot(&grown, map->names[i]);
            grown.names[slot] = map->names[i];
            grown.numbers[slot] = map->numbers[i];
        }
    }
    rondo__namemap_deinit(map);
    *map = grown;
    return RONDO_STATUS_OK;
}

rondo_status rondo__namemap_add(rondo__namemap *map, const char *name, int32_t number,
                                bool *out_is_new) {
    *out_is_new = false;
    if (map->entry_count * 2 >= map->slot_count) {
        rondo_status status = grow(map);
        if (status != RONDO_STATUS_OK) {
            return status;
        }
    }
    size_t slot = find_slot(map, name);
    if (map->names[slot] == NULL) {
        map->names[slot] = name;
        map->numbers[slot] = number;
        map->entry_count += 1;
        *out_is_new = true;
    }
    return RONDO_STATUS_OK;
}

int32_t rondo__namemap_find(const rondo__namemap *map, const char *name, int32_t fallback) {
    if (map->slot_count == 0) {
        return fallback;
    }
    size_t slot = find_slot(map, name);
    return map->names[slot] == NULL ? fallback : map->numbers[slot];
}

void rondo__namemap_deinit(rondo__namemap *map) {
    rondo__free(map->names);
    rondo__free(map->numbers);
    *map = (rondo__namemap){0};
}

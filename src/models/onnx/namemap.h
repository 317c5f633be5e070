// onnx/namemap.h — a map from names to small numbers.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_ONNX_NAMEMAP_H
#define RONDO_ONNX_NAMEMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rondo/status.h"

// Zero-initialise to start. Names are borrowed: they must outlive the map.
typedef struct rondo__namemap {
    const char **names;  // NULL for a free slot
    int32_t *numbers;
    size_t slot_count;  // 0 or a power of two
    size_t entry_count;
    uint64_t seed;  // differs from map to map, so that no file can choose collisions
} rondo__namemap;

// Enters a name; one that is there keeps its number.
//
// out_is_new   whether it was not there yet.
//
// Errors:    NO_MEMORY.
// Threads:   one thread per map.
RONDO_MUST_USE rondo_status rondo__namemap_add(rondo__namemap *map, const char *name,
                                               int32_t number, bool *out_is_new);

// The number of a name, or `fallback` when it is not there.
int32_t rondo__namemap_find(const rondo__namemap *map, const char *name, int32_t fallback);

void rondo__namemap_deinit(rondo__namemap *map);

#endif  // RONDO_ONNX_NAMEMAP_H

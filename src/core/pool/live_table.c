// pool/live_table.c — see live_table.h.
// SPDX-License-Identifier: Apache-2.0
#include "pool/live_table.h"

#include <stdint.h>
#include <string.h>

#include "base/memory.h"

// Fibonacci hashing of the address; blocks are at least 512 bytes apart.
static size_t get_home(const rondo__live_table *table, const void *address) {
    uint64_t bits = (uint64_t)(uintptr_t)address >> 9;
    return (size_t)(bits * UINT64_C(0x9E3779B97F4A7C15) >> 20) & (table->capacity - 1);
}

void rondo__live_table_put(rondo__live_table *table, void *address, void *block) {
    size_t i = get_home(table, address);
    while (table->entries[i].address != NULL) {
        i = (i + 1) & (table->capacity - 1);
    }
    table->entries[i].address = address;
    table->entries[i].block = block;
    table->count += 1;
}

rondo_status rondo__live_table_reserve(rondo__live_table *table) {
    if (2 * (table->count + 1) <= table->capacity) {
        return RONDO_STATUS_OK;
    }
    rondo__live_table grown = {.capacity = table->capacity > 0 ? 2 * table->capacity : 64};
    grown.entries = rondo__calloc(grown.capacity, sizeof *grown.entries);
    if (grown.entries == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < table->capacity; ++i) {
        if (table->entries[i].address != NULL) {
            rondo__live_table_put(&grown, table->entries[i].address, table->entries[i].block);
        }
    }
    rondo__free(table->entries);
    *table = grown;
    return RONDO_STATUS_OK;
}

static size_t find(const rondo__live_table *table, const void *address) {
    if (table->capacity == 0) {
        return SIZE_MAX;
    }
    size_t i = get_home(table, address);
    while (table->entries[i].address != NULL) {
        if (table->entries[i].address == address) {
            return i;
        }
        i = (i + 1) & (table->capacity - 1);
    }
    return SIZE_MAX;
}

void *rondo__live_table_get(const rondo__live_table *table, const void *address) {
    size_t i = find(table, address);
    return i != SIZE_MAX ? table->entries[i].block : NULL;
}

void *rondo__live_table_take(rondo__live_table *table, const void *address) {
    size_t hole = find(table, address);
    if (hole == SIZE_MAX) {
        return NULL;
    }
    void *block = table->entries[hole].block;
    // Entries behind the hole move up unless that would put them before their home.
    for (size_t i = (hole + 1) & (table->capacity - 1); table->entries[i].address != NULL;
         i = (i + 1) & (table->capacity - 1)) {
        size_t home = get_home(table, table->entries[i].address);
        if (((i - home) & (table->capacity - 1)) >= ((i - hole) & (table->capacity - 1))) {
            table->entries[hole] = table->entries[i];
            hole = i;
        }
    }
    memset(&table->entries[hole], 0, sizeof table->entries[hole]);
    table->count -= 1;
    return block;
}

void rondo__live_table_deinit(rondo__live_table *table) {
    rondo__free(table->entries);
    memset(table, 0, sizeof *table);
}

// pool/live_table.h — address to block, for blocks that are handed out. Open addressing; not
// thread-safe.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>

#include "rondo/status.h"

typedef struct rondo__live_table {
    struct rondo__live_entry {
        void *address;  // NULL: empty
        void *block;
    } * entries;
    size_t capacity;  // a power of two, or 0
    size_t count;
} rondo__live_table;

// Room for one more entry, so that the next put cannot fail.
//
// Errors:    NO_MEMORY.
// Threads:   one at a time.
RONDO_MUST_USE rondo_status rondo__live_table_reserve(rondo__live_table *table);
void rondo__live_table_put(rondo__live_table *table, void *address, void *block);
void *rondo__live_table_get(const rondo__live_table *table,
                            const void *address);                             // NULL when absent
void *rondo__live_table_take(rondo__live_table *table, const void *address);  // and removes it
void rondo__live_table_deinit(rondo__live_table *table);

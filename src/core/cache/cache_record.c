// cache/cache_record.c — see cache_record.h.
// SPDX-License-Identifier: Apache-2.0
#include "cache/cache_record.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"

enum {
    // What a graph takes on the host, with its record, besides what its statistics say: measured by
    // bench/graph_cache on the host backend, for graphs of 1 to 61 fills.
    GRAPH_BYTES = 2350,
    NODE_BYTES = 100
};

static void free_record(rondo_graph_cache *cache, rondo__cache_record *record) {
    rondo__device_time_drop(&cache->device_time, &record->measures.eager_device);
    rondo__device_time_drop(&cache->device_time, &record->measures.replay_device);
    rondo_graph_destroy(record->graph);
    rondo__free(record->failure);
    rondo__free(record);
}

// The record has no graph any more: its entry of `waiting` takes the place of the one of `held`,
// which the caller removes.
static rondo_status add_waiting(rondo_graph_cache *cache, rondo__cache_record *record) {
    size_t key_bytes;
    const void *key = rondo__lru_entry_get_key(record->entry, &key_bytes);
    rondo__lru_entry *entry = NULL;
    RETURN_IF_ERROR(rondo__lru_map_add(&cache->waiting, key, key_bytes, record, 0, &entry));
    if (record->is_pinned) {
        rondo__lru_map_pin(&cache->waiting, entry);
    }
    record->entry = entry;
    return RONDO_STATUS_OK;
}

static void lose_graph(rondo_graph_cache *cache, rondo__cache_record *record) {
    rondo__governor_note_loss(&record->measures, &cache->experience);
    rondo__device_time_drop(&cache->device_time, &record->measures.replay_device);
    record->graph = NULL;
    record->bytes = 0;
    record->node_count = 0;
}

// ---- the maps ---------------------------------------------------------------------------------

static void destroy_waiting(void *user_data, void *value) {
    free_record(user_data, value);
}

// A held record is evicted. Where memory is short for an entry that waits, the key is forgotten.
static void destroy_held(void *user_data, void *value) {
    rondo_graph_cache *cache = user_data;
    rondo__cache_record *record = value;
    rondo_error saved;
    rondo__error_save(&saved);
    rondo_graph_destroy(record->graph);
    lose_graph(cache, record);
    if (add_waiting(cache, record) != RONDO_STATUS_OK) {
        free_record(cache, record);
    }
    rondo__error_restore(&saved);
}

void rondo__cache_init_maps(rondo_graph_cache *cache) {
    const rondo_graph_cache_options *options = &cache->options;
    rondo__lru_map_init(&cache->held, options->entry_limit, options->byte_limit, destroy_held,
                        cache);
    rondo__lru_map_init(&cache->waiting, options->key_limit, 0, destroy_waiting, cache);
}

void rondo__cache_forget_all(rondo_graph_cache *cache) {
    while (cache->held.newest != NULL) {
        free_record(cache, rondo__lru_map_take(&cache->held, cache->held.newest));
    }
    rondo__lru_map_clear(&cache->waiting);
}

void rondo__cache_forget(rondo_graph_cache *cache, rondo__cache_record *record) {
    rondo__lru_map *map = record->graph != NULL ? &cache->held : &cache->waiting;
    free_record(cache, rondo__lru_map_take(map, record->entry));
}

// ---- finding ----------------------------------------------------------------------------------

rondo__cache_record *rondo__cache_peek(const rondo_graph_cache *cache, const void *key,
                                       size_t key_bytes) {
    const rondo__lru_entry *entry = rondo__lru_map_peek(&cache->held, key, key_bytes);
    if (entry == NULL) {
        entry = rondo__lru_map_peek(&cache->waiting, key, key_bytes);
    }
    return entry != NULL ? rondo__lru_entry_get_value(entry) : NULL;
}

rondo_status rondo__cache_wait_for(rondo_graph_cache *cache, const void *key, size_t key_bytes,
                                   rondo__cache_record **out_record) {
    *out_record = NULL;
    rondo__lru_entry *entry = rondo__lru_map_find(&cache->waiting, key, key_bytes);
    if (entry != NULL) {
        *out_record = rondo__lru_entry_get_value(entry);
        return RONDO_STATUS_OK;
    }
    // The members that a hit reads are one line of the processor's cache.
    rondo__cache_record *record = rondo__calloc_lines(sizeof *record);
    if (record == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo_status status =
        rondo__lru_map_add(&cache->waiting, key, key_bytes, record, 0, &record->entry);
    if (status != RONDO_STATUS_OK) {
        rondo__free(record);
        return status;
    }
    *out_record = record;
    return RONDO_STATUS_OK;
}

void rondo__cache_set_pinned(rondo_graph_cache *cache, rondo__cache_record *record,
                             bool is_pinned) {
    rondo__lru_map *map = record->graph != NULL ? &cache->held : &cache->waiting;
    if (record->is_pinned != is_pinned) {
        record->is_pinned = is_pinned;
        (is_pinned ? rondo__lru_map_pin : rondo__lru_map_unpin)(map, record->entry);
    }
}

// ---- from one map to the other ----------------------------------------------------------------

static rondo_status measure_graph(const rondo_graph_cache *cache, const rondo_graph *graph,
                                  uint64_t *out_node_count, uint64_t *out_bytes) {
    rondo_graph_stats stats = {.struct_size = sizeof stats};
    RETURN_IF_ERROR(rondo_graph_get_stats(graph, &stats));
    *out_node_count = stats.node_count;
    *out_bytes = GRAPH_BYTES + stats.node_count * NODE_BYTES + stats.device_bytes +
                 (cache->options.arena == NULL ? stats.arena_reserved_bytes : 0);
    return RONDO_STATUS_OK;
}

static rondo_status fail_too_large(const rondo_graph_cache *cache, uint64_t bytes) {
    return RONDO_FAIL_AS("rondo_graph_cache_run", NO_DEVICE_MEMORY,
                         "the graph takes %llu bytes, and byte_limit lets the cache \"%s\" hold "
                         "%llu, some of them perhaps pinned",
                         (unsigned long long)bytes, cache->options.label,
                         (unsigned long long)cache->options.byte_limit);
}

rondo_status rondo__cache_hold(rondo_graph_cache *cache, rondo__cache_record *record,
                               rondo_graph *graph) {
    size_t key_bytes;
    const void *key = rondo__lru_entry_get_key(record->entry, &key_bytes);
    const uint64_t limit = cache->options.byte_limit;
    uint64_t node_count;
    uint64_t bytes;
    RETURN_IF_ERROR(measure_graph(cache, graph, &node_count, &bytes));
    if (limit > 0 && bytes > limit && !record->is_pinned) {
        return fail_too_large(cache, bytes);
    }
    rondo__lru_entry *entry = NULL;
    RETURN_IF_ERROR(rondo__lru_map_add(&cache->held, key, key_bytes, record, bytes, &entry));
    if (limit > 0 && cache->held.stats.bytes > limit && !record->is_pinned) {
        (void)rondo__lru_map_take(&cache->held, entry);
        return fail_too_large(cache, bytes);
    }
    (void)rondo__lru_map_take(&cache->waiting, record->entry);
    record->entry = entry;
    record->graph = graph;
    record->node_count = node_count;
    record->bytes = bytes;
    if (record->is_pinned) {
        rondo__lru_map_pin(&cache->held, entry);
    }
    rondo__free(record->failure);
    record->failure = NULL;
    return RONDO_STATUS_OK;
}

rondo_status rondo__cache_let_go(rondo_graph_cache *cache, rondo__cache_record *record,
                                 rondo_graph **out_graph) {
    rondo__lru_entry *entry = record->entry;
    RETURN_IF_ERROR(add_waiting(cache, record));
    (void)rondo__lru_map_take(&cache->held, entry);
    if (out_graph != NULL) {
        *out_graph = record->graph;
    } else {
        rondo_graph_destroy(record->graph);
    }
    lose_graph(cache, record);
    return RONDO_STATUS_OK;
}

void rondo__cache_note_failure(rondo_graph_cache *cache, rondo__cache_record *record,
                               const char *message) {
    rondo_error saved;
    rondo__error_save(&saved);
    rondo__governor_note_failure(&record->measures, &cache->experience);
    rondo__free(record->failure);
    record->failure = rondo__strdup(message);
    rondo__error_restore(&saved);
    cache->stats.capture_fail_count += 1;
}

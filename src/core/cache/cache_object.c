// cache/cache_object.c — the cache as an object: made, asked, emptied, destroyed. Runs are in
// cache_run.c, what they decide in governor.c.
// SPDX-License-Identifier: Apache-2.0
#include <stdatomic.h>

#include "backend/check.h"
#include "base/clock.h"
#include "base/log/logging.h"
#include "base/memory.h"
#include "base/read_options.h"
#include "base/write_struct.h"
#include "cache/cache_record.h"
#include "cache/cache_run.h"

enum { ENTRY_LIMIT = 64, KEY_LIMIT = 1024 };

// ---- life -------------------------------------------------------------------------------------

static uint64_t get_now_ns(void *user_data) {
    (void)user_data;
    return rondo__clock_now_ns();
}

static rondo_status check_options(const rondo_graph_cache_options *options) {
    static const char call[] = "rondo_graph_cache_create";
    if (options->policy < RONDO_CACHE_MEASURED || options->policy > RONDO_CACHE_NEVER_CAPTURE) {
        return RONDO_FAIL_AS(call, INVALID, "options.policy is %d, not a rondo_cache_policy",
                             (int)options->policy);
    }
    if (options->mode < RONDO_CAPTURE_THREAD_LOCAL || options->mode > RONDO_CAPTURE_RELAXED) {
        return RONDO_FAIL_AS(call, INVALID, "%d is not a capture mode", (int)options->mode);
    }
    if (options->pageable_sources != RONDO_PAGEABLE_REFUSE &&
        options->pageable_sources != RONDO_PAGEABLE_SNAPSHOT) {
        return RONDO_FAIL_AS(call, INVALID, "%d is not a rondo_pageable_sources",
                             (int)options->pageable_sources);
    }
    if (options->capture_in_background && options->mode == RONDO_CAPTURE_GLOBAL) {
        return RONDO_FAIL_AS(
            call, INVALID,
            "a capture in the background cannot be in global mode, which the eager "
            "run beside it breaks; use RONDO_CAPTURE_THREAD_LOCAL");
    }
    if (options->capture_in_background && options->arena != NULL) {
        return RONDO_FAIL_AS(call, INVALID,
                             "a capture in the background cannot share an arena, whose graphs are "
                             "replayed meanwhile; leave options.arena NULL");
    }
    return RONDO_STATUS_OK;
}

// Everything that can fail, in a cache that can be destroyed from its first line on.
static rondo_status prepare(rondo_graph_cache *cache) {
    rondo_graph_cache_options *options = &cache->options;
    options->label = rondo__strdup(options->label != NULL ? options->label : "graph cache");
    if (options->label == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    if (options->arena != NULL) {
        // Also says whether the arena is of this device.
        RETURN_IF_ERROR(rondo__cache_create_graph(cache->device, options, RONDO_KEEP_TEMPLATE_ONLY,
                                                  &cache->recorder));
    }
    if (options->policy == RONDO_CACHE_MEASURED) {
        RETURN_IF_ERROR(rondo__device_time_init(&cache->device_time, cache->device));
    }
    return options->capture_in_background
               ? rondo__background_create(cache->device, options, &cache->background)
               : RONDO_STATUS_OK;
}

rondo_status rondo_graph_cache_create(rondo_device *device,
                                      const rondo_graph_cache_options *options,
                                      rondo_graph_cache **out_cache) {
    RETURN_IF_ERROR(rondo__check_pointer(out_cache, __func__, "out_cache"));
    *out_cache = NULL;
    RETURN_IF_ERROR(rondo__check_device(device, __func__));
    rondo_graph_cache_options wanted = {.struct_size = sizeof wanted};
    RETURN_IF_ERROR(rondo__read_options(options, &wanted, sizeof wanted, __func__,
                                        "rondo_graph_cache_options"));
    RETURN_IF_ERROR(check_options(&wanted));
    wanted.entry_limit = wanted.entry_limit > 0 ? wanted.entry_limit : ENTRY_LIMIT;
    wanted.key_limit = wanted.key_limit > 0 ? wanted.key_limit : KEY_LIMIT;
    rondo_graph_cache *cache = rondo__calloc(1, sizeof *cache);
    if (cache == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo_device_retain(device);
    cache->device = device;
    cache->options = wanted;
    cache->meter.clock.now_ns = get_now_ns;
    rondo__cache_init_maps(cache);
    if (wanted.arena != NULL) {
        rondo_arena_retain(wanted.arena);
    }
    rondo_status status = prepare(cache);
    if (status != RONDO_STATUS_OK) {
        rondo_graph_cache_destroy(cache);
        return status;
    }
    *out_cache = cache;
    return RONDO_STATUS_OK;
}

void rondo_graph_cache_destroy(rondo_graph_cache *cache) {
    if (cache == NULL || atomic_load(&cache->device->is_forked)) {
        return;
    }
    if (rondo__background_is_here(cache->background) || cache->is_in_step) {
        RONDO_LOG_WARN_F("the cache \"%s\" is in use by a run, whose step must not destroy it",
                         cache->options.label);
        return;
    }
    rondo_error saved;
    rondo__error_save(&saved);
    rondo__background_destroy(cache->background);
    rondo__cache_forget_all(cache);
    rondo__lru_map_deinit(&cache->held);
    rondo__lru_map_deinit(&cache->waiting);
    rondo__device_time_deinit(&cache->device_time);
    rondo_graph_destroy(cache->recorder);
    rondo_arena_release(cache->options.arena);
    rondo_device_release(cache->device);
    rondo__free((char *)(uintptr_t)cache->options.label);
    rondo__free(cache);
    rondo__error_restore(&saved);
}

void rondo__graph_cache_set_meter(rondo_graph_cache *cache, const rondo__cache_meter *meter) {
    cache->meter = *meter;
    rondo__device_time_deinit(&cache->device_time);
}

// ---- keys -------------------------------------------------------------------------------------

static void wait_for_background(rondo_graph_cache *cache) {
    if (cache->background != NULL) {
        rondo__background_wait(cache->background);
        rondo__cache_adopt(cache);
    }
}

rondo_status rondo_graph_cache_wait(rondo_graph_cache *cache) {
    RETURN_IF_ERROR(rondo__cache_check(cache, __func__));
    wait_for_background(cache);
    return RONDO_STATUS_OK;
}

rondo_status rondo_graph_cache_pin(rondo_graph_cache *cache, const void *key, size_t key_bytes) {
    RETURN_IF_ERROR(rondo__cache_check_key(cache, key, key_bytes, __func__));
    rondo__cache_record *record = rondo__cache_peek(cache, key, key_bytes);
    if (record == NULL) {
        RETURN_IF_ERROR(rondo__cache_wait_for(cache, key, key_bytes, &record));
    }
    rondo__cache_set_pinned(cache, record, true);
    return RONDO_STATUS_OK;
}

rondo_status rondo_graph_cache_unpin(rondo_graph_cache *cache, const void *key, size_t key_bytes) {
    RETURN_IF_ERROR(rondo__cache_check_key(cache, key, key_bytes, __func__));
    rondo__cache_record *record = rondo__cache_peek(cache, key, key_bytes);
    if (record != NULL) {
        rondo__cache_set_pinned(cache, record, false);
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo_graph_cache_forget(rondo_graph_cache *cache, const void *key, size_t key_bytes) {
    RETURN_IF_ERROR(rondo__cache_check_key(cache, key, key_bytes, __func__));
    wait_for_background(cache);
    rondo__cache_record *record = rondo__cache_peek(cache, key, key_bytes);
    if (record != NULL) {
        rondo__cache_forget(cache, record);
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo_graph_cache_clear(rondo_graph_cache *cache) {
    RETURN_IF_ERROR(rondo__cache_check(cache, __func__));
    wait_for_background(cache);
    rondo__cache_forget_all(cache);
    return RONDO_STATUS_OK;
}

// ---- what is known ----------------------------------------------------------------------------

rondo_status rondo_graph_cache_get_stats(rondo_graph_cache *cache,
                                         rondo_graph_cache_stats *out_stats) {
    RETURN_IF_ERROR(
        rondo__clear_struct(out_stats, sizeof *out_stats, __func__, "rondo_graph_cache_stats"));
    RETURN_IF_ERROR(rondo__check_pointer(cache, __func__, "cache"));
    rondo_graph_cache_stats stats = cache->stats;
    stats.hit_count = cache->held.stats.hit_count;
    stats.miss_count = cache->held.stats.miss_count;
    stats.eviction_count += cache->held.stats.eviction_count;
    stats.entry_count = cache->held.stats.entry_count;
    stats.pinned_count = cache->held.stats.pinned_count;
    stats.key_count = stats.entry_count + cache->waiting.stats.entry_count;
    stats.bytes = cache->held.stats.bytes;
    rondo__write_struct(out_stats, &stats);
    return RONDO_STATUS_OK;
}

rondo_status rondo_graph_cache_get_entry(rondo_graph_cache *cache, const void *key,
                                         size_t key_bytes, rondo_graph_cache_entry *out_entry) {
    RETURN_IF_ERROR(
        rondo__clear_struct(out_entry, sizeof *out_entry, __func__, "rondo_graph_cache_entry"));
    RETURN_IF_ERROR(rondo__cache_check_key(cache, key, key_bytes, __func__));
    const rondo__cache_record *record = rondo__cache_peek(cache, key, key_bytes);
    if (record == NULL) {
        return RONDO_FAIL(INVALID,
                          "the cache \"%s\" does not know this key of %zu bytes: it was never run, "
                          "was forgotten, or had to go (options.key_limit)",
                          cache->options.label, key_bytes);
    }
    const rondo__measures *m = &record->measures;
    rondo_graph_cache_entry entry = {
        .has_graph = record->graph != NULL,
        .is_pinned = record->is_pinned,
        .run_count = m->run_count,
        .eager_count = m->eager_count,
        .replay_count = m->replay_count,
        .capture_count = m->capture_count,
        .eager_ns = m->eager.median_ns,
        .replay_ns = m->replay.median_ns,
        .eager_device_ns = m->eager_device.median_ns,
        .replay_device_ns = m->replay_device.median_ns,
        .capture_ns = m->capture_ns,
        .instantiate_ns = m->instantiate_ns,
        .update_ns = m->update_ns,
        .payback_run_count = rondo__governor_get_payback(m, &cache->experience),
        .node_count = record->node_count,
        .bytes = record->bytes,
    };
    rondo__governor_explain(m, &cache->experience, cache->options.policy, record->failure,
                            entry.reason, sizeof entry.reason);
    rondo__write_struct(out_entry, &entry);
    return RONDO_STATUS_OK;
}

static size_t list_map(const rondo__lru_map *map, rondo_cache_key *keys, size_t capacity,
                       size_t count) {
    for (const rondo__lru_entry *entry = map->newest; entry != NULL;
         entry = rondo__lru_entry_get_older(entry)) {
        if (count < capacity) {
            keys[count].bytes = rondo__lru_entry_get_key(entry, &keys[count].byte_count);
        }
        count += 1;
    }
    return count;
}

rondo_status rondo_graph_cache_list_keys(rondo_graph_cache *cache, rondo_cache_key *keys,
                                         size_t capacity, size_t *out_count) {
    RETURN_IF_ERROR(rondo__check_pointer(out_count, __func__, "out_count"));
    *out_count = 0;
    RETURN_IF_ERROR(rondo__cache_check(cache, __func__));
    if (capacity > 0) {
        RETURN_IF_ERROR(rondo__check_pointer(keys, __func__, "keys"));
    }
    const size_t held = list_map(&cache->held, keys, capacity, 0);
    *out_count = list_map(&cache->waiting, keys, capacity, held);
    return RONDO_STATUS_OK;
}

// cache/cache_record.h — records: found, made, moved between waiting and held keys.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cache/cache_object.h"

// Prepares both maps; the limits are those of the options.
void rondo__cache_init_maps(rondo_graph_cache *cache);
// Forgets all keys.
void rondo__cache_forget_all(rondo_graph_cache *cache);
// Forgets one.
void rondo__cache_forget(rondo_graph_cache *cache, rondo__cache_record *record);

// The record of a key, wherever it is; no use of it. NULL: none.
rondo__cache_record *rondo__cache_peek(const rondo_graph_cache *cache, const void *key,
                                       size_t key_bytes);
// The waiting record of a key that is not held, made where there is none; the newest now.
//
// Errors:    NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__cache_wait_for(rondo_graph_cache *cache, const void *key,
                                                  size_t key_bytes,
                                                  rondo__cache_record **out_record);

void rondo__cache_set_pinned(rondo_graph_cache *cache, rondo__cache_record *record, bool is_pinned);

// The waiting record gets `graph`, which then belongs to the cache, and is held; others are evicted
// where the limits ask for it.
//
// Errors:    NO_MEMORY, NO_DEVICE_MEMORY (the graph alone exceeds the bytes that the cache may
//            hold); then the graph is the caller's, and the record still waits.
RONDO_MUST_USE rondo_status rondo__cache_hold(rondo_graph_cache *cache, rondo__cache_record *record,
                                              rondo_graph *graph);
// A held record waits again. Its graph is destroyed, or the caller's when `out_graph` is given.
//
// Errors:    NO_MEMORY; then it is still held.
RONDO_MUST_USE rondo_status rondo__cache_let_go(rondo_graph_cache *cache,
                                                rondo__cache_record *record,
                                                rondo_graph **out_graph);

// Notes why a capture gave no graph.
void rondo__cache_note_failure(rondo_graph_cache *cache, rondo__cache_record *record,
                               const char *message);

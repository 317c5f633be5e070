// cache/cache_run.h — what a background capture has left for the user of the cache.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cache/cache_object.h"

// STATE from inside a step, LOST in a forked process or on a lost device.
RONDO_MUST_USE rondo_status rondo__cache_check(const rondo_graph_cache *cache, const char *call);
// The same, and INVALID without a key.
RONDO_MUST_USE rondo_status rondo__cache_check_key(const rondo_graph_cache *cache, const void *key,
                                                   size_t key_bytes, const char *call);

// Takes over what a capture in the background gave, if one has ended.
void rondo__cache_adopt(rondo_graph_cache *cache);

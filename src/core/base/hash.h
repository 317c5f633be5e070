// base/hash.h — content hashes for cache keys. Stable across processes and machines.
//
// Contents are hashed by XXH3 (libxxhash-dev, a header that is compiled in: 19 GB/s). Keys that
// come in parts use FNV-1a, which continues from a value. The core links no library for it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct rondo__hash128 {
    uint64_t low;
    uint64_t high;
} rondo__hash128;

// 64-bit FNV-1a, continued from `seed` (use RONDO__HASH_SEED to start).
#define RONDO__HASH_SEED UINT64_C(14695981039346656037)
uint64_t rondo__hash64(uint64_t seed, const void *bytes, size_t byte_count);

// 128 bits for content addressed files: XXH3.
rondo__hash128 rondo__hash128_bytes(const void *bytes, size_t byte_count);

// 32 lower-case hex digits and a zero.
void rondo__hash128_format(rondo__hash128 hash, char out_text[33]);

// hash_bytes.h — FNV-1a, for tables and for telling files apart.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>
#include <stdint.h>

#define CLI_HASH_SEED UINT64_C(0xcbf29ce484222325)

// Goes on from `hash`, which is CLI_HASH_SEED for the first bytes.
static inline uint64_t cli_hash(uint64_t hash, const void *bytes, size_t count) {
    const unsigned char *at = bytes;
    for (size_t i = 0; i < count; ++i) {
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

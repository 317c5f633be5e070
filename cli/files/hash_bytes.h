// hash_bytes.h — a hash of bytes, eight at a time: for tables, and for telling files apart.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define CLI_HASH_SEED UINT64_C(0xcbf29ce484222325)

// Goes on from `hash`, which is CLI_HASH_SEED for the first bytes, or 0 where checkpoints keep it.
static inline uint64_t cli_hash(uint64_t hash, const void *bytes, size_t count) {
    const unsigned char *at = bytes;
    while (count > 0) {
        const size_t taken = count < 8 ? count : 8;
        uint64_t word = count;  // a part of a word is told from zeros behind it
        memcpy(&word, at, taken);
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
        at += taken;
        count -= taken;
    }
    return hash;
}

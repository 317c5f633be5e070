// base/hash.c — FNV-1a for short keys and keys in parts, XXH3 for contents of files and longer keys.
// Not for adversaries: the caches are the user's own.
// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#define XXH_INLINE_ALL  // no library to link
#include <xxhash.h>

uint64_t rondo__hash64(uint64_t seed, const void *bytes, size_t byte_count) {
    const uint8_t *cursor = bytes;
    uint64_t hash = seed;
    for (size_t i = 0; i < byte_count; ++i) {
        hash = (hash ^ cursor[i]) * UINT64_C(1099511628211);
    }
    return hash;
}

rondo__hash128 rondo__hash128_bytes(const void *bytes, size_t byte_count) {
    const XXH128_hash_t hash = XXH3_128bits(bytes, byte_count);
    return (rondo__hash128){.low = hash.low64, .high = hash.high64};
}

void rondo__hash128_format(rondo__hash128 hash, char out_text[33]) {
    static const char digits[] = "0123456789abcdef";
    for (unsigned i = 0; i < 16; ++i) {
        out_text[i] = digits[(hash.high >> (60 - 4 * i)) & 15];
        out_text[16 + i] = digits[(hash.low >> (60 - 4 * i)) & 15];
    }
    out_text[32] = '\0';
}

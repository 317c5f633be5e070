// base/hash.c — FNV-1a for short keys, and a fast two-lane 128-bit hash for file contents and
// longer keys. Not for adversaries: the caches are the user's own.
// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include <string.h>

uint64_t rondo__hash64(uint64_t seed, const void *bytes, size_t byte_count) {
    const uint8_t *cursor = bytes;
    uint64_t hash = seed;
    for (size_t i = 0; i < byte_count; ++i) {
        hash = (hash ^ cursor[i]) * UINT64_C(1099511628211);
    }
    return hash;
}

static uint64_t rotate(uint64_t value, unsigned bits) {
    return (value << bits) | (value >> (64 - bits));
}

// Source: Appleby, MurmurHash3, the 64-bit finaliser: every input bit flips each output bit with
// probability near one half.
static uint64_t finalise(uint64_t value) {
    value ^= value >> 33;
    value *= UINT64_C(0xff51afd7ed558ccd);
    value ^= value >> 33;
    value *= UINT64_C(0xc4ceb9fe1a85ec53);
    value ^= value >> 33;
    return value;
}

// Little-endian whatever the machine, so that a cache can be shared.
static uint64_t load_word(const uint8_t *bytes, size_t count) {
    uint64_t word = 0;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (count == sizeof word) {
        memcpy(&word, bytes, sizeof word);
        return word;
    }
#endif
    for (size_t i = 0; i < count; ++i) {
        word |= (uint64_t)bytes[i] << (8 * i);
    }
    return word;
}

rondo__hash128 rondo__hash128_bytes(const void *bytes, size_t byte_count) {
    const uint8_t *cursor = bytes;
    uint64_t low = RONDO__HASH_SEED ^ byte_count;
    uint64_t high = UINT64_C(0x9e3779b97f4a7c15) + byte_count;
    size_t left = byte_count;
    while (left > 0) {
        size_t step = left < 8 ? left : 8;
        uint64_t word = load_word(cursor, step);
        low =
            rotate(low ^ (word * UINT64_C(0x87c37b91114253d5)), 31) * UINT64_C(0x4cf5ad432745937f) +
            UINT64_C(0x52dce729);
        high = rotate(high + (word ^ UINT64_C(0xc2b2ae3d27d4eb4f)) * UINT64_C(0x9fb21c651e98df25),
                      27) *
                   UINT64_C(0x165667b19e3779f9) +
               UINT64_C(0x38495ab5);
        cursor += step;
        left -= step;
    }
    rondo__hash128 hash = {.low = finalise(low + rotate(high, 17)),
                           .high = finalise(high ^ rotate(low, 41))};
    return hash;
}

void rondo__hash128_format(rondo__hash128 hash, char out_text[33]) {
    static const char digits[] = "0123456789abcdef";
    for (unsigned i = 0; i < 16; ++i) {
        out_text[i] = digits[(hash.high >> (60 - 4 * i)) & 15];
        out_text[16 + i] = digits[(hash.low >> (60 - 4 * i)) & 15];
    }
    out_text[32] = '\0';
}

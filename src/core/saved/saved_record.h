// saved/saved_record.h — numbers, texts and lists as bytes, one behind the other.
//
// A number takes seven bits of each byte, the lowest first; the top bit says that more follow. A
// text has its length in front and a zero behind, so that a reader may point to it where it lies.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

// Writers append to a text, which keeps a failure until its end.
void rondo__record_put(rondo__text *out, uint64_t number);
void rondo__record_put_signed(rondo__text *out, int64_t number);  // small ones are short, too
void rondo__record_put_text(rondo__text *out, const char *text);
void rondo__record_put_bytes(rondo__text *out, const void *bytes, size_t byte_count);

// What is left to read. Once something did not fit, `is_bad` stays set and all that is read is 0.
typedef struct rondo__record {
    const uint8_t *at, *past;
    bool is_bad;
} rondo__record;

// Of more than one byte, or behind the end.
uint64_t rondo__record_get_long(rondo__record *record);
// Makes it bad, and ends it.
uint64_t rondo__record_fail(rondo__record *record);

// Most numbers are a byte.
static inline uint64_t rondo__record_get(rondo__record *record) {
    return record->at != record->past && *record->at < 0x80 ? *record->at++
                                                            : rondo__record_get_long(record);
}

int64_t rondo__record_get_signed(rondo__record *record);
// A number of at most `most`.
static inline uint64_t rondo__record_get_most(rondo__record *record, uint64_t most) {
    const uint64_t number = rondo__record_get(record);
    return number <= most ? number : rondo__record_fail(record);
}

// How many entries follow, of which each has a byte at least.
size_t rondo__record_get_count(rondo__record *record);
const char *rondo__record_get_text(rondo__record *record);  // "" when it is bad
// NULL when it is bad.
const void *rondo__record_get_bytes(rondo__record *record, size_t *out_byte_count);

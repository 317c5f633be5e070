// saved/saved_record.c — see saved_record.h.
// SPDX-License-Identifier: Apache-2.0
#include "saved/saved_record.h"

#include <string.h>

enum { DIGIT_BITS = 7, DIGIT_MORE = 0x80, NUMBER_BYTES_MAX = 10 };

void rondo__record_put(rondo__text *out, uint64_t number) {
    char bytes[NUMBER_BYTES_MAX];
    size_t count = 0;
    do {
        const uint64_t rest = number >> DIGIT_BITS;
        const unsigned digit = (unsigned)(number & (DIGIT_MORE - 1));
        bytes[count++] = (char)(digit | (rest != 0 ? DIGIT_MORE : 0));
        number = rest;
    } while (number != 0);
    rondo__text_append_bytes(out, bytes, count);
}

// 0, -1, 1, -2 become 0, 1, 2, 3.
void rondo__record_put_signed(rondo__text *out, int64_t number) {
    const uint64_t bits = (uint64_t)number;
    rondo__record_put(out, number < 0 ? ~(bits << 1) : bits << 1);
}

void rondo__record_put_bytes(rondo__text *out, const void *bytes, size_t byte_count) {
    rondo__record_put(out, byte_count);
    rondo__text_append_bytes(out, bytes, byte_count);
}

void rondo__record_put_text(rondo__text *out, const char *text) {
    rondo__record_put_bytes(out, text, strlen(text) + 1);
}

uint64_t rondo__record_fail(rondo__record *record) {
    record->is_bad = true;
    record->at = record->past;
    return 0;
}

uint64_t rondo__record_get_long(rondo__record *record) {
    const uint8_t *at = record->at;
    const size_t left = (size_t)(record->past - at);
    const uint8_t *most = at + (left < NUMBER_BYTES_MAX ? left : NUMBER_BYTES_MAX);
    uint64_t number = 0;
    for (unsigned shift = 0; at != most; shift += DIGIT_BITS) {
        const uint64_t byte = *at++;
        number |= (byte & (DIGIT_MORE - 1)) << shift;
        if ((byte & DIGIT_MORE) == 0) {
            record->at = at;
            return number;
        }
    }
    return rondo__record_fail(record);
}

int64_t rondo__record_get_signed(rondo__record *record) {
    const uint64_t bits = rondo__record_get(record);
    return (int64_t)((bits & 1) != 0 ? ~(bits >> 1) : bits >> 1);
}

size_t rondo__record_get_count(rondo__record *record) {
    const uint64_t count = rondo__record_get(record);
    return count <= (uint64_t)(record->past - record->at) ? (size_t)count
                                                          : (size_t)rondo__record_fail(record);
}

const void *rondo__record_get_bytes(rondo__record *record, size_t *out_byte_count) {
    *out_byte_count = rondo__record_get_count(record);
    const uint8_t *bytes = record->at;
    record->at += *out_byte_count;
    return record->is_bad ? NULL : bytes;
}

const char *rondo__record_get_text(rondo__record *record) {
    size_t byte_count = 0;
    const char *text = rondo__record_get_bytes(record, &byte_count);
    if (text == NULL || byte_count == 0 ||
        memchr(text, '\0', byte_count) != text + byte_count - 1) {
        (void)rondo__record_fail(record);
        return "";
    }
    return text;
}

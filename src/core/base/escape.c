// base/escape.c — see rondo/text.h.
// SPDX-License-Identifier: Apache-2.0
#include "base/escape.h"

#include <stdio.h>
#include <string.h>

#include "rondo/text.h"

size_t rondo__utf8_read(const char *bytes, uint32_t *out_character) {
    const unsigned char *at = (const unsigned char *)bytes;
    unsigned char lead = at[0];
    size_t length = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    *out_character = lead;
    if (length <= 1 || lead > 0xf4) {
        return lead > 0xf4 ? 0 : length;
    }
    uint32_t character = lead & (0x7fu >> length);
    for (size_t i = 1; i < length; ++i) {
        if ((at[i] & 0xc0) != 0x80) {
            return 0;
        }
        character = character << 6 | (at[i] & 0x3fu);
    }
    // Longer than needed, half of a surrogate pair, or behind the last character.
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    if (character < smallest[length] || (character >= 0xd800 && character <= 0xdfff) ||
        character > 0x10ffff) {
        return 0;
    }
    *out_character = character;
    return length;
}

bool rondo__is_showable(uint32_t character) {
    static const struct {
        uint32_t first, last;
    } hidden[] = {
        {0x0000, 0x001f},    // C0 controls
        {0x007f, 0x009f},    // DEL and C1 controls: U+009B begins a terminal's sequences
        {0x061c, 0x061c},    // Arabic letter mark
        {0x200e, 0x200f},    // left-to-right and right-to-left marks
        {0x2028, 0x202e},    // separators of lines and paragraphs, embeddings and overrides
        {0x2066, 0x2069},    // isolates
        {0xfeff, 0xfeff},    // byte order mark
        {0xfff9, 0xfffb},    // interlinear annotation
        {0xe0000, 0xe007f},  // tags
    };
    for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; ++i) {
        if (character >= hidden[i].first && character <= hidden[i].last) {
            return false;
        }
    }
    return true;
}

size_t rondo__escape_next(const char *text, char out_piece[RONDO__ESCAPED_MAX]) {
    uint32_t character = 0;
    const size_t length = rondo__utf8_read(text, &character);
    if (length > 0 && rondo__is_showable(character)) {
        memcpy(out_piece, text, length);
        out_piece[length] = '\0';
        return length;
    }
    if (character == '\n' || character == '\r' || character == '\t') {
        const char letter = character == '\n' ? 'n' : character == '\r' ? 'r' : 't';
        (void)snprintf(out_piece, RONDO__ESCAPED_MAX, "\\%c", letter);
    } else if (character <= 0xff) {
        (void)snprintf(out_piece, RONDO__ESCAPED_MAX, "\\x%02x", (unsigned)character);
    } else if (character <= 0xffff) {
        (void)snprintf(out_piece, RONDO__ESCAPED_MAX, "\\u%04x", (unsigned)character);
    } else {
        (void)snprintf(out_piece, RONDO__ESCAPED_MAX, "\\U%08x", (unsigned)character);
    }
    return length > 0 ? length : 1;
}

size_t rondo_text_escape(const char *text, char *buffer, size_t buffer_bytes) {
    buffer_bytes = buffer != NULL ? buffer_bytes : 0;
    const size_t dots = buffer_bytes > 3 ? 3 : buffer_bytes > 0 ? buffer_bytes - 1 : 0;
    size_t total = 0;  // of the whole result
    size_t kept = 0;   // written
    size_t cut = 0;    // where to put the dots: behind the last piece that leaves room for them
    for (const char *cursor = text != NULL ? text : ""; *cursor != '\0';) {
        char piece[RONDO__ESCAPED_MAX];
        cursor += rondo__escape_next(cursor, piece);
        const size_t length = strlen(piece);
        if (kept == total && total + length < buffer_bytes) {
            memcpy(buffer + kept, piece, length);
            kept += length;
            cut = kept + dots < buffer_bytes ? kept : cut;
        }
        total += length;
    }
    if (kept < total && buffer_bytes > 0) {
        memcpy(buffer + cut, "...", dots);
        kept = cut + dots;
    }
    if (buffer_bytes > 0) {
        buffer[kept] = '\0';
    }
    return total;
}

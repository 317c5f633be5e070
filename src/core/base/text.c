// base/text.c — a growing string.
// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/escape.h"
#include "base/memory.h"

// Makes room for `more` bytes and the terminator.
static int reserve(rondo__text *text, size_t more) {
    size_t needed;
    if (text->failed || !rondo__add_size(text->length, more, &needed) ||
        !rondo__add_size(needed, 1, &needed)) {
        text->failed = 1;
        return 0;
    }
    if (RONDO__ARRAY_RESERVE(text->bytes, text->capacity, needed) != RONDO_STATUS_OK) {
        text->failed = 1;
        return 0;
    }
    return 1;
}

// In any locale of the program's a decimal point is a point: JSON has no other.
RONDO_PRINTF(3, 0)
static int format_text(char *bytes, size_t capacity, const char *format, va_list arguments) {
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);  // which is there already
    locale_t before = uselocale(plain);
    int length = vsnprintf(bytes, capacity, format, arguments);
    (void)uselocale(before);
    if (plain != (locale_t)0) {
        freelocale(plain);
    }
    return length;
}

int rondo__text_print(char *buffer, size_t bytes, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int length = format_text(buffer, bytes, format, arguments);
    va_end(arguments);
    return length;
}

void rondo__text_append(rondo__text *text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = format_text(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0) {
        text->failed = 1;
    }
    if (length < 0 || !reserve(text, (size_t)length)) {
        return;
    }
    va_start(arguments, format);
    (void)format_text(text->bytes + text->length, (size_t)length + 1, format, arguments);
    va_end(arguments);
    text->length += (size_t)length;
}

void rondo__text_append_bytes(rondo__text *text, const char *bytes, size_t length) {
    if (!reserve(text, length)) {
        return;
    }
    if (length > 0) {
        memcpy(text->bytes + text->length, bytes, length);
    }
    text->length += length;
    text->bytes[text->length] = '\0';
}

void rondo__text_append_escaped(rondo__text *text, const char *string) {
    while (*string != '\0') {
        char piece[RONDO__ESCAPED_MAX];
        string += rondo__escape_next(string, piece);
        rondo__text_append_bytes(text, piece, strlen(piece));
    }
}

void rondo__text_append_markup(rondo__text *text, const char *string) {
    while (*string != '\0') {
        char piece[RONDO__ESCAPED_MAX];
        string += rondo__escape_next(string, piece);
        if (strchr("<>&\"'", piece[0]) != NULL) {  // never the first of a longer piece
            rondo__text_append(text, "&#%d;", piece[0]);
        } else {
            rondo__text_append_bytes(text, piece, strlen(piece));
        }
    }
}

// As JSON writes characters that cannot stand for themselves: two halves beyond U+FFFF.
static void append_json_number(rondo__text *text, uint32_t character) {
    if (character > 0xffff) {
        rondo__text_append(text, "\\u%04x", 0xd800u + ((character - 0x10000u) >> 10));
        character = 0xdc00u + ((character - 0x10000u) & 0x3ffu);
    }
    rondo__text_append(text, "\\u%04x", character);
}

void rondo__text_append_json(rondo__text *text, const char *string) {
    rondo__text_append_bytes(text, "\"", 1);
    while (*string != '\0') {
        uint32_t character = 0;
        size_t length = rondo__utf8_read(string, &character);
        if (length == 0) {
            append_json_number(text, 0xfffd);  // names may hold any bytes, but JSON must be UTF-8
            length = 1;
        } else if (character == '"' || character == '\\') {
            rondo__text_append(text, "\\%c", *string);
        } else if (character == '\n') {
            rondo__text_append_bytes(text, "\\n", 2);
        } else if (character == '<' || !rondo__is_showable(character)) {
            append_json_number(text, character);
        } else {
            rondo__text_append_bytes(text, string, length);
        }
        string += length;
    }
    rondo__text_append_bytes(text, "\"", 1);
}

rondo_status rondo__text_get_status(const rondo__text *text) {
    if (text->failed && rondo_error_get_last()->status == RONDO_STATUS_NO_MEMORY) {
        rondo__error_prefix("a text of more than %zu bytes", text->length);  // which limit it was
        return RONDO_STATUS_NO_MEMORY;
    }
    if (text->failed) {
        return RONDO_FAIL(NO_MEMORY, "no host memory for a text of more than %zu bytes",
                          text->length);
    }
    return RONDO_STATUS_OK;
}

void rondo__text_deinit(rondo__text *text) {
    if (text != NULL) {
        rondo__free(text->bytes);
        *text = (rondo__text){0};
    }
}

void rondo__text_fit(char *field, size_t capacity, const char *text) {
    size_t length = text != NULL ? strlen(text) : 0;
    if (length < capacity) {
        memcpy(field, length > 0 ? text : "", length);
        field[length] = '\0';
        return;
    }
    length = capacity - sizeof "...";
    while (length > 0 && ((unsigned char)text[length] & 0xC0) == 0x80) {
        --length;  // in the middle of a character
    }
    memcpy(field, text, length);
    memcpy(field + length, "...", sizeof "...");
}

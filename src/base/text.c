// base/text.c — a growing string.
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/memory.h"

// Makes room for `more` bytes and the terminator.
static int reserve(rondo__text *text, size_t more) {
    size_t needed;
    if (text->failed || !rondo__add_size(text->length, more, &needed) ||
        !rondo__add_size(needed, 1, &needed)) {
        text->failed = 1;
        return 0;
    }
    void *bytes = text->bytes;
    if (rondo__array_reserve(&bytes, &text->capacity, needed, 1) != RONDO_STATUS_OK) {
        text->failed = 1;
        return 0;
    }
    text->bytes = bytes;
    return 1;
}

void rondo__text_append(rondo__text *text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0) {
        text->failed = 1;
    }
    if (length < 0 || !reserve(text, (size_t)length)) {
        return;
    }
    va_start(arguments, format);
    vsnprintf(text->bytes + text->length, (size_t)length + 1, format, arguments);
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

// Length of the well-formed UTF-8 sequence at `bytes`; 0 when it is none. Names of a hostile model
// may hold any bytes, but JSON must be UTF-8.
static size_t measure_utf8(const unsigned char *bytes) {
    unsigned char lead = bytes[0];
    size_t length = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    if (lead > 0xf4) {
        return 0;
    }
    for (size_t i = 1; i < length; ++i) {
        if ((bytes[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    if ((lead == 0xe0 && bytes[1] < 0xa0) || (lead == 0xed && bytes[1] > 0x9f) ||
        (lead == 0xf0 && bytes[1] < 0x90) || (lead == 0xf4 && bytes[1] > 0x8f)) {
        return 0;
    }
    return length;
}

void rondo__text_append_json(rondo__text *text, const char *string) {
    const unsigned char *cursor = (const unsigned char *)string;
    rondo__text_append_bytes(text, "\"", 1);
    while (*cursor != '\0') {
        size_t length = measure_utf8(cursor);
        if (length == 0) {
            rondo__text_append(text, "\\ufffd");
            ++cursor;
            continue;
        }
        if (*cursor == '"' || *cursor == '\\') {
            rondo__text_append(text, "\\%c", *cursor);
        } else if (*cursor == '\n') {
            rondo__text_append_bytes(text, "\\n", 2);
        } else if (*cursor < 0x20 || *cursor == 0x7f) {
            rondo__text_append(text, "\\u%04x", *cursor);
        } else {
            rondo__text_append_bytes(text, (const char *)cursor, length);
        }
        cursor += length;
    }
    rondo__text_append_bytes(text, "\"", 1);
}

rondo_status rondo__text_get_status(const rondo__text *text) {
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

// base/text.h — a growing string, for dumps and messages.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>

#include "rondo/status.h"

// Zero-initialise to start. After a failed append `failed` stays set and later appends do nothing,
// so that a writer checks once at the end.
typedef struct rondo__text {
    char *bytes;  // terminated; NULL until the first append
    size_t length;
    size_t capacity;
    int failed;
} rondo__text;

// snprintf, but a decimal point is a point in any locale of the program's.
RONDO_PRINTF(3, 4) int rondo__text_print(char *buffer, size_t bytes, const char *format, ...);
RONDO_PRINTF(2, 3) void rondo__text_append(rondo__text *text, const char *format, ...);
void rondo__text_append_bytes(rondo__text *text, const char *bytes, size_t length);
void rondo__text_append_escaped(rondo__text *text, const char *string);  // as rondo/text.h does
// Quoted and escaped, "<" too, so that JSON may stand in the script of a page.
void rondo__text_append_json(rondo__text *text, const char *string);
// Escaped as rondo/text.h does, and so that XML and HTML see nothing but text.
void rondo__text_append_markup(rondo__text *text, const char *string);
// Copies a terminated text into a field of at least 4 bytes, in whole characters, "..." at the end
// of one that is cut. NULL is an empty text.
void rondo__text_fit(char *field, size_t capacity, const char *text);
rondo_status rondo__text_get_status(const rondo__text *text);  // NO_MEMORY when an append failed
void rondo__text_deinit(rondo__text *text);

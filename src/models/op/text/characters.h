// op/text/characters.h — the characters of strings: UTF-8, and upper and lower case.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <locale.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "op/op.h"

enum { RONDO__UTF8_MAX = 4 };  // bytes of a character

// Reads the character that starts at byte `at` of `string`, which has one there. A byte that is no
// UTF-8 counts as one of its own: *out_character is then 0xDC00 + the byte, which no text holds.
//
// Returns:   its bytes, 1 to 4.
size_t rondo__string_read(const rondo_string *string, size_t at, uint32_t *out_character);
// Writes a character; what rondo__string_read makes of a stray byte becomes that byte again.
//
// Returns:   its bytes, 1 to 4.
size_t rondo__string_write(uint32_t character, char out_bytes[RONDO__UTF8_MAX]);

// How letters beyond ASCII pair up: one to one, the same everywhere, whatever locale the program
// has. Zero-initialised it knows ASCII only.
typedef struct rondo__letters {
    locale_t table;
} rondo__letters;

// Finds the table of the C library's own C.UTF-8.
//
// Errors:    UNSUPPORTED (this system has none).
// Ownership: end with rondo__letters_deinit.
RONDO_MUST_USE rondo_status rondo__letters_init(const rondo__op *op, rondo__letters *out_letters);
void rondo__letters_deinit(rondo__letters *letters);
uint32_t rondo__letters_lower(const rondo__letters *letters, uint32_t character);
uint32_t rondo__letters_upper(const rondo__letters *letters, uint32_t character);

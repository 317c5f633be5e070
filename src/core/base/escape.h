// base/escape.h — decides which characters of untrusted text may reach a terminal.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Length of the well-formed UTF-8 sequence at `bytes` (terminated), with its character in
// *out_character; 0 when it is none.
size_t rondo__utf8_read(const char *bytes, uint32_t *out_character);

// Whether a character can be shown as it is: neither a control character nor one that changes the
// direction or the lines of the text around it, or marks it without being seen.
bool rondo__is_showable(uint32_t character);

enum { RONDO__ESCAPED_MAX = 12 };  // the longest piece of rondo__escape_next, and its terminator

// Writes the first character of `text` (not empty) as rondo_text_escape shows it, terminated.
// Returns the bytes of `text` that it stands for.
size_t rondo__escape_next(const char *text, char out_piece[RONDO__ESCAPED_MAX]);

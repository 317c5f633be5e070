// rondo/text.h — texts that Rondo writes, and names from strangers made fit to show.
//
// Names, dimensions and labels come from the model's author. Rondo's own messages (the error
// record, the log, dumps and descriptions) show them escaped; what hands them out as data, such as
// rondo_port.name, keeps every byte. A program that shows those itself escapes them with this call.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_TEXT_H
#define RONDO_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rondo/export.h"

RONDO_EXTERN_C_BEGIN

// The forms in which graphs and plans are written.
typedef int32_t rondo_text_format;
enum {
    RONDO_TEXT_PLAIN = 0,  // for people
    RONDO_TEXT_JSON = 1,
    RONDO_TEXT_DOT = 2,  // Graphviz
    RONDO_TEXT_SVG = 3,  // a picture; of plans only
};

// Receives text piece by piece; returns false to stop early, which is no failure.
typedef bool (*rondo_write_function)(void *user_data, const char *text, size_t bytes);

// Writes `text` so that a terminal, a log or a file name shows it and nothing obeys it.
//
// Characters that can be seen stay as they are. The rest becomes visible: line breaks, tabs and
// carriage returns as \n, \t and \r; other control characters up to U+009F, and bytes that are no
// UTF-8, as \x and two digits; what changes the direction or the lines of a text, or marks it
// unseen, as \u and four digits (\U and eight). Backslashes stay, so that escaping twice changes
// nothing more; so the result is for eyes, and is not a name to look up.
//
// text           NULL counts as "".
// buffer         always terminated; NULL where buffer_bytes is 0. A text that does not fit is cut
//                between two characters and ends in "..." (as far as that fits).
//
// Returns:   bytes of the whole result without its terminator; the buffer was too small when that
//            is buffer_bytes or more.
// Cost:      one pass; no heap use.
RONDO_API size_t rondo_text_escape(const char *text, char *buffer, size_t buffer_bytes);

RONDO_EXTERN_C_END

#endif  // RONDO_TEXT_H

// support/text_sink.h — a text that a write function of the library puts together.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

typedef struct text_sink {
    char text[32768];  // ended by a NUL; all zeroes: empty
    size_t length;
} text_sink;

// A rondo_write_function; user_data is a text_sink. False when it is full.
static inline bool text_sink_append(void *user_data, const char *text, size_t bytes) {
    text_sink *sink = user_data;
    if (bytes >= sizeof sink->text - sink->length) {
        return false;
    }
    memcpy(sink->text + sink->length, text, bytes);
    sink->length += bytes;
    sink->text[sink->length] = '\0';
    return true;
}

// One that takes all and keeps nothing; user_data is not looked at.
static inline bool text_sink_ignore(void *user_data, const char *text, size_t bytes) {
    (void)user_data, (void)text, (void)bytes;
    return true;
}

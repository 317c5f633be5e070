// base/error.c — the thread-local error record. Fixed size; nothing here allocates or fails.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "rondo/text.h"

static _Thread_local rondo_error last_error = {.struct_size = sizeof last_error, .file = ""};

enum { FORMATTED_MAX = 1024 };  // of a message before it is escaped and cut to its field

static void copy_text(char *destination, size_t capacity, const char *source) {
    size_t length = strnlen(source, capacity - 1);
    memcpy(destination, source, length);
    destination[length] = '\0';
}

static bool is_inside_character(char byte) {
    return ((unsigned char)byte & 0xc0u) == 0x80u;
}

// Copies a text that is too long without its middle: what is wrong stands at its beginning, and
// what to do at its end.
static void copy_ends(char *destination, size_t capacity, const char *source, size_t length) {
    static const char gap[] = "...";
    enum { GAP_BYTES = sizeof gap - 1 };
    const size_t room = capacity - 1 - GAP_BYTES;
    size_t head = room - room * 2 / 5;
    size_t tail = length - (room - head);
    while (head > 0 && is_inside_character(source[head])) {
        --head;
    }
    while (tail < length && is_inside_character(source[tail])) {
        ++tail;
    }
    memcpy(destination, source, head);
    memcpy(destination + head, gap, GAP_BYTES);
    memcpy(destination + head + GAP_BYTES, source + tail, length - tail + 1);
}

// Turns line breaks into spaces, so that a message (a driver's log, say) stays one line, and
// escapes what else should reach no terminal.
static void store_text(char *destination, size_t capacity, char *source) {
    for (char *cursor = source; *cursor != '\0'; ++cursor) {
        if (*cursor == '\n' || *cursor == '\r' || *cursor == '\t') {
            *cursor = ' ';
        }
    }
    char escaped[4 * FORMATTED_MAX];  // of control characters each takes four
    (void)rondo_text_escape(source, escaped, sizeof escaped);
    const size_t length = strlen(escaped);
    if (length < capacity) {
        memcpy(destination, escaped, length + 1);
    } else {
        copy_ends(destination, capacity, escaped, length);
    }
}

const rondo_error *rondo_error_get_last(void) {
    return &last_error;
}

rondo_status rondo__error_set(rondo_status status, int32_t driver_code, const char *driver_name,
                              const char *file, int32_t line, const char *call, const char *format,
                              ...) {
    // Formatted aside first: an argument may be a text of the former record.
    rondo_error fresh = {.struct_size = sizeof fresh,
                         .status = status,
                         .driver_code = driver_code,
                         .file = file,
                         .line = line,
                         .sequence = last_error.sequence + 1};
    char formatted[FORMATTED_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(formatted, sizeof formatted, format, arguments);
    va_end(arguments);
    store_text(fresh.message, sizeof fresh.message, formatted);
    copy_text(fresh.driver_name, sizeof fresh.driver_name, driver_name != NULL ? driver_name : "");
    copy_text(fresh.call, sizeof fresh.call, call != NULL ? call : "");
    last_error = fresh;
    return status;
}

void rondo__error_set_op(const char *op) {
    if (last_error.op[0] == '\0' && op != NULL) {
        char name[FORMATTED_MAX];
        copy_text(name, sizeof name, op);
        store_text(last_error.op, sizeof last_error.op, name);
    }
}

void rondo__error_prefix(const char *format, ...) {
    char joined[FORMATTED_MAX + sizeof last_error.message + 2];
    char prefix[FORMATTED_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(prefix, sizeof prefix, format, arguments);
    va_end(arguments);
    snprintf(joined, sizeof joined, "%s: %s", prefix, last_error.message);
    store_text(last_error.message, sizeof last_error.message, joined);
}

void rondo__error_suffix(const char *format, ...) {
    char joined[FORMATTED_MAX + sizeof last_error.message];
    char suffix[FORMATTED_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(suffix, sizeof suffix, format, arguments);
    va_end(arguments);
    snprintf(joined, sizeof joined, "%s%s", last_error.message, suffix);
    store_text(last_error.message, sizeof last_error.message, joined);
}

void rondo__error_save(rondo_error *out_saved) {
    *out_saved = last_error;
}

void rondo__error_restore(const rondo_error *saved) {
    // The sequence never goes back: a reader that compares sequences must see every failure.
    uint64_t sequence = last_error.sequence;
    last_error = *saved;
    if (last_error.sequence < sequence) {
        last_error.sequence = sequence;
    }
}

rondo_status rondo__error_note_callback(rondo_status status, uint64_t sequence, const char *call,
                                        const char *what) {
    if (status != RONDO_STATUS_OK &&
        (last_error.sequence == sequence || last_error.status != status)) {
        (void)rondo__error_set(status, 0, "", __FILE__, __LINE__, call,
                               "%s returned %d (%s) without a failed call of Rondo's; look there",
                               what, (int)status, rondo_status_get_name(status));
    }
    return status;
}

rondo_status rondo__error_adopt(const rondo_error *record) {
    uint64_t sequence = last_error.sequence + 1;
    last_error = *record;
    last_error.sequence = sequence;
    return last_error.status;
}

// base/error.h — writing the error record. The place that decides a failure writes it; others
// pass it on.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>

#include "rondo/status.h"

// Of a message; who keeps one has as much room, so that its end, the advice, is not lost.
enum { RONDO__MESSAGE_BYTES = sizeof((rondo_error *)0)->message };

// Writes this thread's error record and returns `status`. `call` names the function that failed.
RONDO_PRINTF(7, 8)
rondo_status rondo__error_set(rondo_status status, int32_t driver_code, const char *driver_name,
                              const char *file, int32_t line, const char *call, const char *format,
                              ...);

// Names the op, node or label at fault in the latest record, if it names none yet. Keeps everything
// else.
void rondo__error_set_op(const char *op);

// Puts "prefix: " in front of the latest record's message (a file name, say).
RONDO_PRINTF(1, 2) void rondo__error_prefix(const char *format, ...);
// Puts more behind it; of what does not fit the beginning stays.
RONDO_PRINTF(1, 2) void rondo__error_suffix(const char *format, ...);

// Saves and restores the record around clean-up that may itself fail: first error wins.
void rondo__error_save(rondo_error *out_saved);
void rondo__error_restore(const rondo_error *saved);

// Takes the status that a function of the program returned. If the function failed and wrote no
// record after the thread's record number `sequence`, this writes one in the name of the public
// `call`, so that an older record is not mistaken for it. Returns `status`.
rondo_status rondo__error_note_callback(rondo_status status, uint64_t sequence, const char *call,
                                        const char *what);

// Makes a record that another thread wrote this thread's latest failure; returns its status.
rondo_status rondo__error_adopt(const rondo_error *record);

static inline bool rondo__is_out_of_memory(rondo_status status) {
    return status == RONDO_STATUS_NO_MEMORY || status == RONDO_STATUS_NO_DEVICE_MEMORY;
}

// RONDO_FAIL(INVALID, "feed \"%s\" has rank %d, ...", ...): records and yields the status.
#define RONDO_FAIL(status_name, ...) \
    rondo__error_set(RONDO_STATUS_##status_name, 0, "", __FILE__, __LINE__, __func__, __VA_ARGS__)

// The same in a function that is not public itself: `call` is the public one that fails.
#define RONDO_FAIL_AS(call, status_name, ...) \
    rondo__error_set(RONDO_STATUS_##status_name, 0, "", __FILE__, __LINE__, (call), __VA_ARGS__)

// The same with the driver's code, its name and the driver call that failed.
#define RONDO_FAIL_DRIVER(status_value, code, code_name, call, ...) \
    rondo__error_set((status_value), (code), (code_name), __FILE__, __LINE__, (call), __VA_ARGS__)

// Only before the first acquisition of a function; after it, use one exit with labels.
#define RETURN_IF_ERROR(expression)          \
    do {                                     \
        rondo_status status_ = (expression); \
        if (status_ != RONDO_STATUS_OK) {    \
            return status_;                  \
        }                                    \
    } while (0)

// rondo/status.h — every failure the library can report, and the record behind the latest one.
//
// Each fallible call returns a rondo_status; zero is success. The place that decided the failure
// also wrote a record for the calling thread: which op, which call, the driver's own code and name,
// and a message that says what to do. Read it with rondo_error_get_last().
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_STATUS_H
#define RONDO_STATUS_H

#include <stddef.h>
#include <stdint.h>

#include "rondo/export.h"

RONDO_EXTERN_C_BEGIN

// One list makes the enum (RONDO_STATUS_<name>), the names and the messages. Values are permanent.
#define RONDO_STATUS_MAP(X)                                                 \
    X(OK, 0, "ok")                                                          \
    X(INVALID, 1, "an argument is wrong; the same call fails again")        \
    X(STATE, 2, "the object is not in a state that allows this")            \
    X(UNSUPPORTED, 3, "this device or build cannot do it; query first")     \
    X(NO_MEMORY, 4, "host memory is exhausted")                             \
    X(NO_DEVICE_MEMORY, 5, "device memory or the pool budget is exhausted") \
    X(UNAVAILABLE, 6, "driver library or device is absent")                 \
    X(DRIVER, 7, "the driver failed; see the error record")                 \
    X(LOST, 8, "the device is poisoned; only destroy is valid")             \
    X(BAD_DATA, 9, "a file or model is malformed")                          \
    X(INTERNAL, 10, "a library invariant broke; please report")             \
    X(CANCELLED, 11, "another thread ended the call; it can be made again")

enum {
#define RONDO_STATUS_ENUM(name, value, text) RONDO_STATUS_##name = (value),
    RONDO_STATUS_MAP(RONDO_STATUS_ENUM)
#undef RONDO_STATUS_ENUM
};

// A rondo_status_value in a fixed width, so that the ABI does not depend on enum size.
typedef int32_t rondo_status;

// The record of the latest failure on one thread. Plain data; never allocates.
typedef struct rondo_error {
    size_t struct_size;    // of the library's struct, which may be longer than the program's
    rondo_status status;   // RONDO_STATUS_OK when this thread has not failed yet
    int32_t driver_code;   // the driver's or library's own code; 0 when none was involved
    char driver_name[48];  // its symbolic name, for example CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
    char op[64];           // op, node or label at fault, escaped; empty when none
    char call[48];         // the rondo or driver call that failed; "a recorded call": any of those
    char message[240];     // one line, escaped (rondo/text.h): what is wrong and what to do
    const char *file;      // source file in this library; never NULL after a failure
    int32_t line;          // line in `file`
    uint64_t sequence;     // grows with each failure on this thread, also within calls
} rondo_error;

// The record of the latest failed rondo call on this thread.
//
// Returns:   a borrowed pointer to thread-local storage; never NULL. Successful calls leave it
//            alone.
// Threads:   each thread sees its own record.
RONDO_API const rondo_error *rondo_error_get_last(void);

// The symbolic name of a status, for example "INVALID"; "UNKNOWN" for a value not in the list.
RONDO_API const char *rondo_status_get_name(rondo_status status);

// One sentence on a status from the list above.
RONDO_API const char *rondo_status_get_text(rondo_status status);

RONDO_EXTERN_C_END

#endif  // RONDO_STATUS_H

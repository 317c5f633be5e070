// rondo/status.h — every failure the library can report, and the record behind the latest one.
//
// Each fallible call returns a rondo_status; zero is success. A failure also leaves a record for
// the calling thread.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_STATUS_H
#define RONDO_STATUS_H

#include <stddef.h>
#include <stdint.h>

#include "rondo/export.h"

RONDO_EXTERN_C_BEGIN

// Values are permanent.
typedef int32_t rondo_status;
enum {
    RONDO_STATUS_OK = 0,
    RONDO_STATUS_INVALID = 1,           // an argument is wrong; the same call fails again
    RONDO_STATUS_STATE = 2,             // the object is not in a state that allows this
    RONDO_STATUS_UNSUPPORTED = 3,       // this device or build cannot do it; query first
    RONDO_STATUS_NO_MEMORY = 4,         // host memory is exhausted
    RONDO_STATUS_NO_DEVICE_MEMORY = 5,  // device memory or the pool budget is exhausted
    RONDO_STATUS_UNAVAILABLE = 6,       // driver library or device is absent
    RONDO_STATUS_DRIVER = 7,            // the driver failed; see the error record
    RONDO_STATUS_LOST = 8,              // the device is poisoned; only destroy is valid
    RONDO_STATUS_BAD_DATA = 9,          // a file or model is malformed
    RONDO_STATUS_INTERNAL = 10,         // a library invariant broke; please report
    RONDO_STATUS_CANCELLED = 11,        // another thread ended the call; it can be made again
    RONDO_STATUS_MISMATCH = 12,         // a self-check found a replay that computes something else
};

typedef struct rondo_error {
    size_t struct_size;    // of the library's struct, which may be longer than the program's
    rondo_status status;   // RONDO_STATUS_OK when this thread has not failed yet
    int32_t driver_code;   // the driver's or another library's code; 0: none was involved
    char driver_name[48];  // its symbolic name
    char op[64];           // op, node or label at fault
    char call[48];         // the rondo or driver call that failed; "a recorded call": any of those
    char message[480];     // one line: what is wrong and what to do
    const char *file;      // source file of Rondo, and the line in it
    int32_t line;
    uint64_t sequence;  // counts failures on this thread, also inside calls that succeed
} rondo_error;

// The record of the latest failed call on this thread; never NULL. Borrowed: the thread's next
// failure overwrites it, successes leave it alone.
RONDO_API const rondo_error *rondo_error_get_last(void);

// "INVALID" and so on; "UNKNOWN" for a value not in the list.
RONDO_API const char *rondo_status_get_name(rondo_status status);

RONDO_EXTERN_C_END

#endif  // RONDO_STATUS_H

// rondo/log.h — where the library's messages go. The library itself never prints to stdout.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_LOG_H
#define RONDO_LOG_H

#include <stdint.h>

#include "rondo/export.h"

RONDO_EXTERN_C_BEGIN

typedef int32_t rondo_log_level;
enum {
    RONDO_LOG_ERROR = 0,
    RONDO_LOG_WARNING = 1,
    RONDO_LOG_INFO = 2,
    RONDO_LOG_DEBUG = 3,
};

typedef void (*rondo_log_function)(void *user_data, rondo_log_level level, const char *message);

// Replaces the log sink; NULL restores the default, which writes to stderr. A call of the former
// one may still be under way on another thread.
//
// Any thread may call `function`. `message` is one escaped line without a newline, valid during the
// call. The function calls nothing of Rondo but rondo_error_get_last: locks may be held.
RONDO_API void rondo_log_set_sink(rondo_log_function function, void *user_data);

// Sets the most detailed level that is delivered. The default is what the environment variable
// RONDO_LOG names (error, warning, info, debug), or RONDO_LOG_WARNING. (By room, and with time,
// thread and place: rondo/log_record.h.)
RONDO_API void rondo_log_set_level(rondo_log_level level);

RONDO_EXTERN_C_END

#endif  // RONDO_LOG_H

// base/logging.h — sending messages to the log sink.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_BASE_LOGGING_H
#define RONDO_BASE_LOGGING_H

#include <stdbool.h>

#include "rondo/log.h"

// Formats and delivers one line when `level` is wanted; keeps errno and the error record.
RONDO_PRINTF(2, 3) void rondo__log(rondo_log_level level, const char *format, ...);
// The same for what the user asked for by name, such as RONDO_GRAPHS_VERBOSE: it comes at
// RONDO_LOG_INFO, whatever level is wanted.
RONDO_PRINTF(1, 2) void rondo__log_asked(const char *format, ...);
bool rondo__log_is_wanted(rondo_log_level level);

#define RONDO_LOG_WARN_F(...) rondo__log(RONDO_LOG_WARNING, __VA_ARGS__)
#define RONDO_LOG_INFO_F(...) rondo__log(RONDO_LOG_INFO, __VA_ARGS__)
#define RONDO_LOG_DEBUG_F(...) rondo__log(RONDO_LOG_DEBUG, __VA_ARGS__)

#endif  // RONDO_BASE_LOGGING_H

// base/log/logging.h — sending messages to the log sink.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>

#include "base/log/log_levels.h"
#include "rondo/log.h"

// Formats and delivers one line when `level` is wanted of that source file's room; keeps errno and
// the error record.
RONDO_PRINTF(4, 5)
void rondo__log(rondo_log_level level, const char *file, int32_t line, const char *format, ...);
// The same for what the user asked for by name, such as RONDO_GRAPHS_VERBOSE: it comes at
// RONDO_LOG_INFO, whatever level is wanted.
RONDO_PRINTF(3, 4)
void rondo__log_asked(const char *file, int32_t line, const char *format, ...);

#define RONDO_LOG_IS_WANTED(level) rondo__log_is_wanted_in((level), __FILE__)
#define RONDO_LOG_WARN_F(...) rondo__log(RONDO_LOG_WARNING, __FILE__, __LINE__, __VA_ARGS__)
#define RONDO_LOG_INFO_F(...) rondo__log(RONDO_LOG_INFO, __FILE__, __LINE__, __VA_ARGS__)
#define RONDO_LOG_DEBUG_F(...) rondo__log(RONDO_LOG_DEBUG, __FILE__, __LINE__, __VA_ARGS__)
#define RONDO_LOG_ASKED_F(...) rondo__log_asked(__FILE__, __LINE__, __VA_ARGS__)

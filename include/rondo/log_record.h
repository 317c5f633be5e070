// rondo/log_record.h — messages with their particulars, and levels by room.
//
// Each message has a level and comes from a room of the library, which is the folder of its source
// file: executor, graph, capture, pool, device, backend, kernel, onnx and so on. Levels hold for
// all rooms or for one: RONDO_LOG=info,executor=debug,pool=warn. At debug, "device" tells of each
// copy: for which op, of which variable, shape and type, from where to where, and how many bytes.
// Where debug messages go to stderr, each line ends with time, thread, room, file and line.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_LOG_RECORD_H
#define RONDO_LOG_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "rondo/export.h"
#include "rondo/log.h"
#include "rondo/status.h"

RONDO_EXTERN_C_BEGIN

// A message and what is known of it; texts live as long as the call.
typedef struct rondo_log_record {
    size_t struct_size;  // of the library's struct, which may be longer than the program's
    rondo_log_level level;
    const char *message;  // one escaped line without a newline
    const char *room;     // "executor"
    const char *file;     // source file of Rondo, and the line in it
    int32_t line;
    uint64_t thread;   // the operating system's number
    uint64_t time_ns;  // since 1970, UTC
} rondo_log_record;

typedef void (*rondo_log_record_function)(void *user_data, const rondo_log_record *record);

// The same as rondo_log_set_sink for a sink that gets records; it takes the other's place, and the
// other way round.
RONDO_API void rondo_log_set_record_sink(rondo_log_record_function function, void *user_data);

// Sets levels by a text as RONDO_LOG has it: "info,executor=debug". Rooms that it does not name get
// the level that stands by itself, or warning.
//
// levels     names of levels: error, warning (or warn), info, debug.
//
// Errors:    INVALID (no such level, no such room); then nothing is changed.
RONDO_API RONDO_MUST_USE rondo_status rondo_log_set_levels(const char *levels);

RONDO_EXTERN_C_END

#endif  // RONDO_LOG_RECORD_H

// support/sweep.h — what the fail-the-nth sweeps share.
#ifndef RONDO_TESTS_SUPPORT_SWEEP_H
#define RONDO_TESTS_SUPPORT_SWEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rondo/log.h"
#include "rondo/status.h"

// True when a call that may fail did not. When it did, its record must be new and say the same;
// otherwise the running test fails. `sequence_before` is that of the record before the call.
bool sweep_step(rondo_status status, uint64_t sequence_before, const char *text);

// A log sink: a sweep fails on purpose, thousands of times. Only one line is noted, see below.
void sweep_ignore_line(void *user_data, rondo_log_level level, const char *message);

// Whether a body's graph was given up since the last call of this: the driver frees the graph of a
// body whose capture broke, and would free it again with the graph around (cuda_body.c). Then
// objects of the driver are left, on purpose, and the log has said so to sweep_ignore_line.
bool sweep_take_lost_body(void);

// Collects what rondo_graph_dump writes, ended by a zero; takes nothing from the heap.
typedef struct sweep_text {
    char bytes[8192];
    size_t length;
} sweep_text;
bool sweep_append_text(void *text, const char *bytes, size_t count);  // a rondo_write_function

#endif  // RONDO_TESTS_SUPPORT_SWEEP_H

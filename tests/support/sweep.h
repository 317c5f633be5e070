// support/sweep.h — what the fail-the-nth sweeps share.
#ifndef RONDO_TESTS_SUPPORT_SWEEP_H
#define RONDO_TESTS_SUPPORT_SWEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "rondo/log.h"
#include "rondo/status.h"

// True when a call that may fail did not. When it did, its record must be new and say the same;
// otherwise the running test fails. `sequence_before` is that of the record before the call.
bool sweep_step(rondo_status status, uint64_t sequence_before, const char *text);

// A log sink: a sweep fails on purpose, thousands of times. Notes that a body was lost (see
// backend/cuda/cuda_body.c): then objects of the driver may stay, and the library has said so.
extern bool sweep_has_lost_body;
void sweep_ignore_line(void *user_data, rondo_log_level level, const char *message);

#endif  // RONDO_TESTS_SUPPORT_SWEEP_H

// support/sweep.h — what the fail-the-nth sweeps share.
//
// A sweep runs a round again and again: first with the first driver call (or allocation) failing,
// then with the second, and so on, until a round in which none failed. A round makes everything
// anew, works, and destroys everything, whatever failed on the way:
//
//   an empty fake driver -> the nth will fail -> open, work -> [sweep_lift, recover] -> close
//                                                          -> nothing left, nothing illegal asked
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rondo/inspect.h"
#include "rondo/log.h"
#include "rondo/status.h"
#include "support/expect_ok.h"
#include "support/fake/fake_cuda.h"

// ---- steps of a scenario ----------------------------------------------------------------------

// True when a call that may fail did not. When it did, its record must be new and say the same;
// otherwise the running test fails. `sequence_before` is that of the record before the call.
bool sweep_step(rondo_status status, uint64_t sequence_before, const char *text);

// A call of a scenario that may fail; then the function returns. A file whose scenarios return
// something defines STEP_RESULT, what they return then, before it includes this.
#ifndef STEP_RESULT
#define STEP_RESULT
#endif
#define STEP(call)                                             \
    do {                                                       \
        uint64_t sequence_ = rondo_error_get_last()->sequence; \
        if (!sweep_step((call), sequence_, #call)) {           \
            return STEP_RESULT;                                \
        }                                                      \
    } while (0)

// ---- rounds -----------------------------------------------------------------------------------

// What fails in a round.
typedef struct sweep_point {
    const char *device_name;  // "cuda:0", which is the fake driver, or "host"
    const char *what;         // "driver call" or "allocation"
    size_t n;                 // which of them; the first is 0
    rondo__cu_result code;    // of a driver call; RONDO__CU_SUCCESS: it is an allocation
    const void *data;         // the subject's
} sweep_point;

enum { SWEEP_CODES_MAX = 6 };

typedef struct sweep_subject {
    void (*run)(const sweep_point *point);    // a round
    const void *data;                         // for it
    void (*prepare)(void);                    // NULL, or what each fresh fake driver needs
    const fake_cuda_options *options;         // of the fake driver
    rondo__cu_result codes[SWEEP_CODES_MAX];  // up to the first zero; none: the usual four
    size_t dense;  // 0: every point is taken; otherwise the further behind it, the fewer
} sweep_subject;

size_t sweep_allocations(const sweep_subject *subject, const char *device_name);

typedef struct sweep_count {
    size_t driver_calls;
    size_t allocations;
} sweep_count;

// Both on the fake driver, and a line with the counts.
sweep_count sweep_on_fake(const char *name, const sweep_subject *subject);

// A sanitizer makes a point take ten times as long: RONDO_SWEEP_PART=2/3 takes each third point,
// beginning with the second (every is 3, first is 1). Without it every point is taken.
size_t sweep_get_every(void);
size_t sweep_get_first(void);

// Inside a round: the failure is over, so that recovery is not swept. True when it came.
bool sweep_lift(void);

// Fails the running test, naming the point.
RONDO_PRINTF(2, 3) void sweep_fail(const sweep_point *point, const char *format, ...);

// ---- parts, for sweeps of other forms ---------------------------------------------------------

// Fails allocation `n` from now on (0 is the next), once: of this thread, or of any.
void sweep_fail_allocation(size_t n, bool is_of_any_thread);
// Until here. True when it failed.
bool sweep_end_allocations(void);

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

// rondo/self_check.h — an executor that compares its replays with eager runs.
//
// A replay repeats what was recorded. An op that looked at something while it was recorded (a
// number in host memory, a clock, its own state) then computes something else than it would now.
// A checked run does each segment twice from the same state, op by op and as a graph, and compares
// what is left, bit for bit: NaN is equal to a NaN of the same bits only.
//
//   options.self_check_every = 1000;                     // one run in 1000, or:
//   rondo_executor_self_check(executor, feeds, feed_count, fetches, fetch_count, &report);
//
// Both start from the same values in the executor's memory, inputs included, and from the same
// generators, which end where one run leaves them. State that a program's own ops keep elsewhere is
// not restored: such an op runs twice. Ops between segments run once.
//
// A checked run takes some four times as long, and the memory of intermediate values thrice. Runs
// that do not wait (rondo_executor_run_async) are checked like others; a checked one waits.
// Recorded runs (rondo_executor_record) are replayed by the program, among nodes that may make
// their feeds and write over them: check the same shapes by rondo_executor_self_check, which runs
// the kernels that are recorded.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_SELF_CHECK_H
#define RONDO_SELF_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rondo/executor.h"
#include "rondo/export.h"
#include "rondo/status.h"
#include "rondo/tensor.h"

RONDO_EXTERN_C_BEGIN

// What a checked run found.
typedef struct rondo_self_check_report {
    size_t struct_size;      // sizeof(rondo_self_check_report)
    uint64_t segment_count;  // compared, those of bodies each time they ran; 0: nothing is replayed
    uint64_t value_count;    // values compared
    bool is_different;       // what follows says where; otherwise it is empty
    bool is_first;           // no earlier op made another value
    char op[48];             // type of the op that made the value
    char node[160];          // its name
    char value[160];         // the value's name; "" for a generator that ended at another offset
    rondo_dtype dtype;
    uint64_t element;          // the first that differs, row by row
    uint64_t different_count;  // elements of the value that differ
    char eager[48];            // its value: "1.5 (0x3fc00000)"
    char replayed[48];
} rondo_self_check_report;

// rondo_executor_run with a check, whatever self_check_every says. A difference is no error here,
// the results are those of the eager run, and the segment has no graph from then on.
//
// Of segments with control flow, and of those captured before the first check of an executor
// without self_check_every, it names the first value that is still there at the segment's end
// (is_first may be false).
//
// Errors:    STATE (graphs are off), and as rondo_executor_run, whose fetches it fills.
RONDO_API RONDO_MUST_USE rondo_status rondo_executor_self_check(
    rondo_executor *executor, const rondo_binding *feeds, size_t feed_count, rondo_binding *fetches,
    size_t fetch_count, rondo_self_check_report *out_report);

// The report of the latest checked run, also of one that failed for a difference.
//
// Errors:    STATE (no run was checked).
RONDO_API RONDO_MUST_USE rondo_status
rondo_executor_get_self_check(const rondo_executor *executor, rondo_self_check_report *out_report);

RONDO_EXTERN_C_END

#endif  // RONDO_SELF_CHECK_H

// backend/host/host_timing.h — the worker's clock, for a profile: how long commands take, and nodes
// inside a replay.
//
// While a profile runs, each command goes into the ring inside another command, which reads the
// clock before and after it. A replay carries its span. The thread that runs a piece of its program
// reads the clock between two nodes and reports them after the piece, so that reporting takes no
// node's time:
//
//      clock | node 0 | clock | node 1 | clock | node 2 | clock   tell 0, 1, 2
//
// Programs that were made while labels were held (rondo__hook_hold_labels) keep the names of their
// nodes; other programs are reported as a whole.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/host/host_program.h"
#include "backend/host/host_stream.h"
#include "base/log/hook.h"

// Makes room for a command, as rondo__host_submit does for the node's function; `extra_bytes`
// follow its arguments. It is timed if a profile or the watchdog asks.
//
// Errors:    NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__host_submit_node(rondo__host_stream *stream,
                                                    const rondo__host_node *node,
                                                    size_t extra_bytes, void **out_arguments);

// ---- programs ---------------------------------------------------------------------------------

// The replay that a thread works on.
typedef struct rondo__host_timing {
    uint64_t span;
    uint32_t stream;
    bool is_wanted;
} rondo__host_timing;

// NULL: none that is timed.
extern _Thread_local const rondo__host_timing *rondo__host_timing_now;

// For a replay that the calling thread puts on the stream.
rondo__host_timing rondo__host_timing_make(const rondo__host_stream *stream);

// The names of a program's nodes; NULL, with a record: no memory.
rondo__host_notes *rondo__host_notes_create(const rondo__host_template *recorded);
// The node stands at this place of the program.
void rondo__host_notes_set(rondo__host_notes *notes, size_t place, const rondo__host_node *node);

// Runs these instructions of a program with notes, and tells how long each took.
void rondo__host_run_timed(const rondo__host_program *program, uint32_t first, uint32_t count);
// Tells of a program without notes as a whole.
void rondo__host_tell_program(const rondo__host_program *program, uint64_t begin_ns);

static inline bool rondo__host_is_timed(const rondo__host_program *program) {
    return rondo__hook_is_on(RONDO__HOOK_WORK) && program->notes != NULL &&
           rondo__host_timing_now != NULL;
}

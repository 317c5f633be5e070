// collective/meeting.h — how the ranks of a job find each other: rank 0 listens, the others come.
//
//   rank 0                       rank k
//   listens; writes place file   reads it, as soon as it is there     (or both know HOST:PORT)
//             <── hello: token, rank, number of ranks, traits, twice
//   noted, each time ──>
//   all are there: welcome, or why not ──>
//
// Each other rank has two connections with rank 0, one for what controls the job and one for data.
// The token is in the file, which only the user can read; who does not know it is sent away.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

#include "collective/launcher.h"

enum { RONDO__TRAITS_BYTES = 2048 };

typedef struct rondo__meeting {
    int32_t rank, size;
    int *control;  // by rank: of rank 0 all others, of the others rank 0 alone; else -1
    int *data;     // the same
} rondo__meeting;

// How long to wait, and whom to ask meanwhile (rondo_communicator_options).
typedef struct rondo__patience {
    uint64_t begun_ns, deadline_ns;
    rondo_waiting_function waiting;  // NULL: no call
    void *data;
} rondo__patience;

// Waits until all ranks are there.
//
// place       a file, or "HOST:PORT"; NULL: as the launcher says (docs/training.md).
// traits      what all ranks must have in common, a line for each; below RONDO__TRAITS_BYTES.
//
// Errors:    UNAVAILABLE (some did not come in time; rank 0 cannot listen), INVALID (place; traits
//            or numbers of ranks differ: the message has both), CANCELLED (by patience->waiting).
// Ownership: rondo__meeting_end.
RONDO_MUST_USE rondo_status rondo__meeting_hold(const rondo_ranks *ranks,
                                                rondo__launcher_id launcher, const char *place,
                                                const char *traits, const rondo__patience *patience,
                                                rondo__meeting *out_meeting);
void rondo__meeting_end(rondo__meeting *meeting);  // zeroed is fine

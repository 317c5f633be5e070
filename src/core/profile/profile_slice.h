// profile/profile_slice.h — a part of a profile: what lies within one event.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "profile/records.h"
#include "rondo/status.h"

typedef struct rondo__profile_slice {
    rondo__profile_records records;
    rondo__profile_span *spans;  // as in records, owned; texts and threads are those of the whole
    rondo__profile_work *works;
} rondo__profile_slice;

// The first of the program's events at the top of a thread that is called `name`; NULL: none.
const rondo__profile_span *rondo__profile_find_event(const rondo__profile_records *records,
                                                     const char *name);

// The records of the time of `event`, which is itself not among them: the events inside it become
// the top ones. From other threads it takes the events that began in that time. Later ends are cut.
//
// Errors:    NO_MEMORY.
// Ownership: deinit it, while `records` lives.
RONDO_MUST_USE rondo_status rondo__profile_slice_init(const rondo__profile_records *records,
                                                      const rondo__profile_span *event,
                                                      rondo__profile_slice *out_slice);
void rondo__profile_slice_deinit(rondo__profile_slice *slice);

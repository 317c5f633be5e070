// profile/collector.h — records the reports of the hooks, for one profile at a time.
//
// Each thread writes into a log of its own, under a lock that only the end of the profile contends
// for. A record is a copy in a chunk and a number for each text, so that it costs some tens of
// nanoseconds and moves nothing that was written before. Logs stand in a table that is never freed:
// a thread that comes late finds its log in other hands, sees that by the session, and goes.
//
//      thread 1 ──> log 1: spans, work, samples, texts ──┐
//      thread 2 ──> log 2                                ├──> at the end: one list of each,
//      worker   ──> log 3                                ┘    by time, nested, texts made one
//
// What does not fit (the limit of records, memory, more than LOG_COUNT threads) is dropped and
// counted.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "profile/profile_source.h"
#include "profile/records.h"
#include "rondo/status.h"

// What a profile keeps when it has stopped; zeroed: nothing.
typedef struct rondo__profile_store {
    rondo__profile_records records;
    rondo__profile_span *spans;  // as in records, owned
    rondo__profile_work *works;
    rondo__profile_sample *samples;
    rondo__profile_thread *threads;
    struct rondo__profile_chunk *texts;
} rondo__profile_store;

// Begins to listen.
//
// source      NULL: none.
// what        bits of the hooks' mask.
//
// Errors:    STATE (something else listens).
RONDO_MUST_USE rondo_status rondo__collector_start(uint64_t record_limit,
                                                   const rondo__profile_source *source,
                                                   uint32_t what);
// The region ends: spans that are open end now, later ones do not count; work still does.
void rondo__collector_end_region(void);
// Listens no more, and hands over what was kept; the collector is empty, also after a failure.
//
// Errors:    NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__collector_stop(rondo__profile_store *out_store);
// The same without a result.
void rondo__collector_abandon(void);

void rondo__profile_store_deinit(rondo__profile_store *store);

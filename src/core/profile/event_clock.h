// profile/event_clock.h — the time of one device's work, by timed events around it.
//
//   stream   begin  [work]  end  [work]  end           begin  [work]  end
//   device   |<- elapsed ->|<- elapsed ->|             |<- elapsed ->|
//   base ----------------->|                  mark, waited for: the host's clock is known here
//
// Work right behind other work needs no begin: it begins where that one ended. A record costs the
// processor a microsecond, so this is nearly half of what a measured op costs.
//
// Events know only how far two of them are apart, in a float of milliseconds. So each pair is
// measured against a base, which moves along before the float gets coarse; and at the start and the
// end of the region an event is recorded and waited for, which ties the device's time to the
// host's. Between the two ties time runs straight. Nothing waits inside the region.
//
// A pair is taken, recorded by its stream's thread, and given back; those that have happened are
// read when many wait, and at the end. The first that was ended is read first.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/backend.h"
#include "base/log/hook.h"

typedef struct rondo__event_clock rondo__event_clock;

// Two events around something. The clock's lock guards the count.
typedef struct rondo__event_pair {
    struct rondo__event_pair *next;       // in the list that it is in
    struct rondo__event_pair *next_made;  // of all of the clock
    struct rondo__event_pair *former;     // it begins where this one ended; NULL: at `begin`
    rondo_event *begin;                   // NULL: not needed so far
    rondo_event *end;
    unsigned user_count;  // its thread, as the latest; the clock, until it is read; the pair behind
    bool is_read;
    int64_t end_ns;  // read: on the device's clock, since the first base
    uint64_t span;
    uint64_t stream;
    uint64_t bytes;
    uint32_t name;  // a number of the caller's
    rondo__work_kind kind;
    rondo__way way;
} rondo__event_pair;

// What a pair measured; times are the host's.
typedef struct rondo__event_time {
    uint64_t span;
    uint64_t stream;
    uint64_t bytes;
    uint64_t begin_ns;
    uint64_t end_ns;
    uint32_t name;
    rondo__work_kind kind;
    rondo__way way;
} rondo__event_time;

// A clock of the device, which it retains.
//
// stream      of the device, and not recording; the base is recorded there.
// pair_count  that it makes at most; when half of them wait, the oldest are read.
//
// Returns:   NULL: no memory, or no events to be had. Leaves no error record, as all below.
rondo__event_clock *rondo__event_clock_create(rondo_device *device, rondo_stream *stream,
                                              size_t pair_count);
void rondo__event_clock_destroy(rondo__event_clock *clock);
rondo_device *rondo__event_clock_get_device(const rondo__event_clock *clock);

// Ties the device's time to the host's; waits for an event on a stream of its own.
void rondo__event_clock_tie(rondo__event_clock *clock);

// A pair whose begin is recorded now; NULL: none is left, and the loss is counted.
//
// former     that was ended on the same stream, with nothing put there since, and is not released:
//            nothing is recorded. NULL: none.
// Threads:   safe, as the next ones.
rondo__event_pair *rondo__event_clock_begin(rondo__event_clock *clock, rondo_stream *stream,
                                            rondo__event_pair *former);
// Records its end. True: the pair may be `former` of another until it is released; false: it is
// lost, and gone.
bool rondo__event_clock_end(rondo__event_clock *clock, rondo__event_pair *pair,
                            rondo_stream *stream);
void rondo__event_clock_release(rondo__event_clock *clock, rondo__event_pair *pair);

// Waits for all pairs that were ended, ties again, and shows what was measured since the start.
void rondo__event_clock_read(rondo__event_clock *clock,
                             void (*visit)(void *user_data, const rondo__event_clock *clock,
                                           const rondo__event_time *time),
                             void *user_data);
uint64_t rondo__event_clock_count_lost(rondo__event_clock *clock);

// doctor/stream/doctor_ring.h — the file that a watched process shares with the doctor: a header
// and a ring of records. What was written stays when the process dies, however it does.
//
// One process writes, under a lock of its own; the doctor reads. Positions count bytes from the
// start and never wrap; a record may lie across the end of the ring. A call that was made before
// just so, but for its times, takes 16 bytes: memory that two processors share is slow.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdatomic.h>
#include <string.h>

#include "doctor/stream/doctor_event.h"

enum {
    RONDO__DOCTOR_RING_BYTES = 8 << 20,
    RONDO__DOCTOR_RING_FRONT = 4096,
    RONDO__DOCTOR_KNOWN_MAX = 1 << 12,  // calls that both sides keep, each in its place
};

// A call again: `line` of the whole record was its place, plus one.
typedef struct rondo__doctor_again {
    uint64_t begin_ns;  // and RONDO__DOCTOR_AGAIN
    uint64_t duration_and_place;
} rondo__doctor_again;

#define RONDO__DOCTOR_AGAIN ((uint64_t)1 << 63)

// What the doctor asks of the recorder: it counts up, and odd numbers mean that device times shall
// be taken.

typedef struct rondo__doctor_ring {
    rondo__doctor_header header;
    uint32_t process;
    int32_t problem;  // errno of why nothing is recorded; 0: none
    _Atomic uint32_t times;
    _Atomic uint32_t lost_count;    // records for which there was no room
    _Atomic uint32_t sample_count;  // calls of which it is known what watching them took
    _Atomic uint64_t cost_ns;       // all of those together
    _Atomic uint64_t written;
    _Alignas(64) _Atomic uint64_t read;  // where the writer's line is not
    char program[256];
} rondo__doctor_ring;

_Static_assert(sizeof(rondo__doctor_ring) <= RONDO__DOCTOR_RING_FRONT, "the header has a page");

static inline char *rondo__doctor_ring_data(rondo__doctor_ring *ring) {
    return (char *)ring + RONDO__DOCTOR_RING_FRONT;
}

static inline void rondo__doctor_ring_put(rondo__doctor_ring *ring, uint64_t position,
                                          const void *bytes, size_t count) {
    const size_t start = (size_t)(position % RONDO__DOCTOR_RING_BYTES);
    const size_t room = RONDO__DOCTOR_RING_BYTES - start;
    const size_t first = count < room ? count : room;
    memcpy(rondo__doctor_ring_data(ring) + start, bytes, first);
    memcpy(rondo__doctor_ring_data(ring), (const char *)bytes + first, count - first);
}

static inline void rondo__doctor_ring_get(rondo__doctor_ring *ring, uint64_t position, void *bytes,
                                          size_t count) {
    const size_t start = (size_t)(position % RONDO__DOCTOR_RING_BYTES);
    const size_t room = RONDO__DOCTOR_RING_BYTES - start;
    const size_t first = count < room ? count : room;
    memcpy(bytes, rondo__doctor_ring_data(ring) + start, first);
    memcpy((char *)bytes + first, rondo__doctor_ring_data(ring), count - first);
}

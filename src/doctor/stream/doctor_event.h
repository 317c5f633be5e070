// doctor/stream/doctor_event.h — what a stream of the doctor is made of: records of one size, some
// with words or a text behind them.
//
// The recorder (doctor/inject) writes them into a ring in shared memory, `rondo doctor --record`
// into a file. Records are in the byte order of the machine; version and size stand at the front of
// both, and another version is refused.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>
#include <stdint.h>

#define RONDO__DOCTOR_MAGIC 0x3144636f44646e52ull  // "RndDocD1"

enum {
    RONDO__DOCTOR_VERSION = 1,
    RONDO__DOCTOR_WORDS_MAX = 32,   // of a launch's arguments that are kept
    RONDO__DOCTOR_TEXT_MAX = 1000,  // bytes of a name or place
};

typedef enum rondo__doctor_call {
    RONDO__DOCTOR_NO_CALL,
    RONDO__DOCTOR_TEXT,  // `name`: its number; `word_count`: bytes of the text behind, padded to 8
    RONDO__DOCTOR_WORK,  // what a device did: `begin_ns`, `duration_ns`, `stream`, `name`, `bytes`,
                         // `source`: its place among all works by when they were asked for; or 0
    RONDO__DOCTOR_NOTE,  // something that the recorder has to say: `name`
    RONDO__DOCTOR_LINE,  // of a Python program: made the thread's latest call `object`; `name`
#define RONDO__DOCTOR_CALL(name, kind) RONDO__DOCTOR_##name,
#include "doctor/stream/doctor_calls.h"
#undef RONDO__DOCTOR_CALL
    RONDO__DOCTOR_CALL_COUNT,
    // What is neither call nor time; numbers of their own, so that calls can be added.
    RONDO__DOCTOR_RANGE_PUSH =
        1000,  // NVTX: `name`; `object`: of one that any thread may end; or 0
    RONDO__DOCTOR_RANGE_POP,
    RONDO__DOCTOR_LAYOUT,  // of the arguments of kernel `name`: `object`, a bit for each word that
                           // belongs to a struct passed by value; bits 32 to 63: to one of a byte
    RONDO__DOCTOR_BLOCK,   // of a file: memory that was allocated before; `object`, `bytes`
    RONDO__DOCTOR_DEVICE,  // grid: multiprocessors, threads of one, blocks of one; `bytes`: shared;
                           // `stream`, `object`: its UUID
    RONDO__DOCTOR_HEAP,    // of the program's malloc: `object`, `bytes`
    RONDO__DOCTOR_REHEARSAL,  // replays of a graph like the step: `object`: its works;
                              // `duration_ns`: the median; `begin_ns`, `bytes`: low and high
} rondo__doctor_call;

typedef enum rondo__doctor_kind {
    RONDO__DOCTOR_KIND_NONE,
    RONDO__DOCTOR_KIND_LAUNCH,
    RONDO__DOCTOR_KIND_GRAPH_LAUNCH,
    RONDO__DOCTOR_KIND_COPY,
    RONDO__DOCTOR_KIND_FILL,
    RONDO__DOCTOR_KIND_COPY_WAIT,
    RONDO__DOCTOR_KIND_FILL_WAIT,
    RONDO__DOCTOR_KIND_WAIT,
    RONDO__DOCTOR_KIND_QUERY,
    RONDO__DOCTOR_KIND_EVENT_RECORD,
    RONDO__DOCTOR_KIND_EVENT_WAIT,
    RONDO__DOCTOR_KIND_ALLOCATE,
    RONDO__DOCTOR_KIND_FREE,
    RONDO__DOCTOR_KIND_HOST_MEMORY,
    RONDO__DOCTOR_KIND_STREAM_MEMORY,
    RONDO__DOCTOR_KIND_MAP_MEMORY,
    RONDO__DOCTOR_KIND_MODULE,
    RONDO__DOCTOR_KIND_MAKE_STREAM,
    RONDO__DOCTOR_KIND_MAKE_EVENT,
    RONDO__DOCTOR_KIND_HOST_FUNCTION,
    RONDO__DOCTOR_KIND_STREAM_CALLBACK,
    RONDO__DOCTOR_KIND_ATTACH,
    RONDO__DOCTOR_KIND_BEGIN_CAPTURE,
    RONDO__DOCTOR_KIND_END_CAPTURE,
    RONDO__DOCTOR_KIND_GRAPH_BUILD,
} rondo__doctor_kind;

// Flags of a record.
enum {
    RONDO__DOCTOR_PAGEABLE = 1,      // a copy whose host side is no pinned memory
    RONDO__DOCTOR_IN_CALLBACK = 2,   // the call was made inside a host function of a stream
    RONDO__DOCTOR_IN_CAPTURE = 4,    // a stream of this process was recording
    RONDO__DOCTOR_TIMED = 8,         // device times were being taken, so host times are not typical
    RONDO__DOCTOR_AFTER_LOSS = 16,   // records before this one were lost
    RONDO__DOCTOR_PER_THREAD = 32,   // the form with a default stream for each thread
    RONDO__DOCTOR_WORDS_WHOLE = 64,  // the words are all of the arguments
};

typedef struct rondo__doctor_event {
    uint64_t begin_ns;
    uint64_t duration_ns;  // of the call, or of the device's work
    uint64_t stream;
    uint64_t object;  // function, event, graph executable, address
    uint64_t source;  // of a copy; an address
    uint64_t bytes;
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t shared_bytes;
    uint32_t name;   // of the kernel: the number of a text; 0: none
    uint32_t place;  // where the call was made: the number of a text; 0: not looked at
    uint32_t thread;
    int32_t status;  // what the call returned
    uint16_t call;   // rondo__doctor_call
    uint8_t flags;
    uint8_t padding;
    uint32_t word_count;  // words behind the record; of a text, its bytes
    uint32_t line;        // of Python, that made the call: the number of a text; 0: not known
} rondo__doctor_event;

_Static_assert(sizeof(rondo__doctor_event) == 104, "the size is part of the format");

// The front of a file or a ring.
typedef struct rondo__doctor_header {
    uint64_t magic;
    uint32_t version;
    uint32_t event_bytes;
} rondo__doctor_header;

// How many bytes stand behind a record.
static inline size_t rondo__doctor_tail_bytes(const rondo__doctor_event *event) {
    return event->call == RONDO__DOCTOR_TEXT ? ((size_t)event->word_count + 7) / 8 * 8
                                             : (size_t)event->word_count * 8;
}

// "cuLaunchKernel"; "" for what is no call.
const char *rondo__doctor_call_name(uint16_t call);
rondo__doctor_kind rondo__doctor_call_kind(uint16_t call);

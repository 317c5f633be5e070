// random/generator_state.h — a generator: who uses it now, and its state in device memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "backend/backend.h"
#include "random/random_host.h"
#include "rondo/random.h"

// One thread uses a generator at a time; members without another rule are that thread's.
struct rondo_generator {
    // First what each replay looks at.
    _Atomic uint64_t user;  // number of the thread that is inside a call or a replay; 0: none
    uint32_t depth;         // how often that thread entered
    // The stream of the last use, when that left the state as the next replay needs it. A graph may
    // be replayed there as it is. 0: look closer.
    uint32_t settled_stream;
    // The same for life, but for the count.
    uint32_t number;  // for messages: "generator 3"
    atomic_int reference_count;
    rondo_device *device;  // retained
    uint64_t *state;       // in device memory: seed, offset
    void *functions[RONDO__RANDOM_KERNEL_COUNT];
    rondo_event *event;  // orders one stream after another
    // What the host knows of the state.
    rondo_generator_state start;  // is_dirty: what the state is to be set to
    bool is_dirty;
    uint64_t pending;                // counters that eager ops took beyond the state's offset
    uint64_t epoch;                  // counts changes of the state, for marks
    rondo__stream_tag *last_stream;  // retained: of the last use; NULL: not used yet
    // For rondo_generator_get_state; made when first needed.
    rondo_stream *reader;
    uint64_t *read_words;  // pinned: seed, offset
};

// Begins a use of the generator by this thread, which may be inside one already; `call` is for the
// message. rondo__generator_leave ends it.
//
// Errors:    STATE: another thread is inside a use.
// Threads:   safe; does not wait.
RONDO_MUST_USE rondo_status rondo__generator_enter(rondo_generator *generator, const char *call);
void rondo__generator_leave(rondo_generator *generator);

// Lets an eager op read the state on `stream`: orders the op after the last use, and writes a new
// seed.
//
// Errors:    STATE, NO_MEMORY, DRIVER, LOST.
// Threads:   the one that entered.
RONDO_MUST_USE rondo_status rondo__generator_follow(rondo_generator *generator,
                                                    rondo_stream *stream);

// Lets a graph be replayed on `stream`: orders that after the last use, and writes what is to be
// written of the state. The caller has entered, and leaves once the graph is launched.
//
// Errors:    STATE, NO_MEMORY, DRIVER, LOST.
// Threads:   the one that entered.
RONDO_MUST_USE rondo_status rondo__generator_settle(rondo_generator *generator,
                                                    rondo_stream *stream);

// Launches the kernel that adds `count` to the offset. Reads what is the same for life.
RONDO_MUST_USE rondo_status rondo__generator_launch_advance(const rondo_generator *generator,
                                                            rondo_stream *stream, uint64_t count);

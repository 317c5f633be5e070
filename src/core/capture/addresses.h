// capture/addresses.h — telling participants which addresses recorded work uses.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "capture/capture.h"

// False while no capture of the device wants addresses, which is one load.  Threads: safe.
static inline bool rondo__addresses_are_wanted(const rondo_stream *stream) {
    return __builtin_expect(
        atomic_load_explicit(&stream->device->watcher_count, memory_order_acquire) > 0, 0);
}

// After work was put on the stream: it uses `address`, or addresses that stand in `words`. `what`
// names the work.
//
// Errors:    those of the participants.
// Threads:   one thread per stream.
// Cost:      one load unless a capture of the device wants to know.
RONDO_MUST_USE rondo_status rondo__addresses_note(rondo_stream *stream, const void *address,
                                                  const char *what);
RONDO_MUST_USE rondo_status rondo__addresses_note_words(rondo_stream *stream, const void *words,
                                                        size_t bytes, const char *what);

// The capture wants addresses noted, to its end.  Threads: safe.
void rondo__addresses_want(rondo__capture *capture);

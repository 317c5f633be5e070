// backend/captured.h — memory that recorded work will touch at each replay.
//
// Three things are looked after, each only for streams that record a capture of a graph:
//
//   - A copy from pageable host memory would read whatever stands there at a replay. Where the
//     graph wants that, the bytes are copied now, into pinned memory that lives as long as the
//     graph; otherwise the backend refuses the copy.
//   - Pinned host memory of a recorded copy is in use as long as the graph lives. Pools ask before
//     they give a block out again.
//   - Addresses are told to participants that want to know them, such as the guard of a checked
//     graph.
#ifndef RONDO_BACKEND_CAPTURED_H
#define RONDO_BACKEND_CAPTURED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/areas.h"
#include "backend/capture.h"

// Before a host-to-device or device-to-host copy: *source may become the address of a snapshot.
//
// Errors:    NO_MEMORY, DRIVER, LOST; STATE when the capture is broken.
// Threads:   one thread per stream.
RONDO_MUST_USE rondo_status rondo__captured_prepare_copy(rondo_stream *stream,
                                                         const void **in_out_source,
                                                         const void *destination, size_t bytes,
                                                         rondo_copy_kind kind);

// False while no capture of the device wants addresses, which is one load.  Threads: safe.
static inline bool rondo__captured_is_watched(const rondo_stream *stream) {
    return __builtin_expect(
        atomic_load_explicit(&stream->device->watcher_count, memory_order_acquire) > 0, 0);
}

// After work was put on the stream: it uses `address`, or addresses that stand in `words`. `what`
// names the work.
//
// Errors:    those of the participants.
// Threads:   one thread per stream.
// Cost:      one load unless a capture of the device wants to know.
RONDO_MUST_USE rondo_status rondo__captured_note(rondo_stream *stream, const void *address,
                                                 const char *what);
RONDO_MUST_USE rondo_status rondo__captured_note_words(rondo_stream *stream, const void *words,
                                                       size_t bytes, const char *what);

// The capture wants addresses noted, to its end.  Threads: safe.
void rondo__captured_watch(rondo__capture *capture);

// True while a graph's recorded copy uses host memory of this range.
//
// Threads:   safe.
// Cost:      one load when no graph uses any.
bool rondo__captured_covers(rondo_device *device, const void *address, size_t bytes);

// Pinned memory that is not wanted any more but that a graph still uses: freed with the last graph
// that does. `record` is heap memory of at least RONDO__CAPTURED_RECORD_BYTES to keep that in mind.
enum { RONDO__CAPTURED_RECORD_BYTES = 32 };
void rondo__captured_leave_behind(rondo_device *device, void *base, size_t bytes, void *record);

#endif  // RONDO_BACKEND_CAPTURED_H

// capture/host_memory.h — host memory that recorded copies will touch at each replay.
//
// A recorded copy reads host memory at each replay, when pageable memory may hold other bytes. If
// the graph's options say so, the bytes are copied now into pinned memory that lives as long as the
// graph; otherwise the copy is refused. Pinned host memory of a recorded copy is in use as long as
// the graph lives: pools ask before they give a block out again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/areas.h"
#include "capture/capture.h"

// Before a host-to-device or device-to-host copy: *source may become the address of a snapshot.
//
// Errors:    NO_MEMORY, DRIVER, LOST; STATE when the capture is broken.
// Threads:   one thread per stream.
RONDO_MUST_USE rondo_status rondo__host_memory_prepare_copy(rondo_stream *stream,
                                                            const void **in_out_source,
                                                            const void *destination, size_t bytes,
                                                            rondo_copy_kind kind);

// Whether such a copy may be recorded, for a caller that checks before the first of several calls.
// True if the stream does not record.
//
// Errors:    DRIVER, LOST.
// Threads:   one thread per stream.
RONDO_MUST_USE rondo_status rondo__host_memory_may_record(rondo_stream *stream, const void *host,
                                                          size_t bytes, bool is_source,
                                                          bool *out_may);

// A recorded copy is patched: from now on it uses this host memory, whichever end that is. `list`
// holds the participants of its graph.
//
// Errors:    STATE (pageable memory), NO_MEMORY, DRIVER.
// Threads:   one thread per graph.
RONDO_MUST_USE rondo_status rondo__host_memory_patch_copy(rondo_device *device,
                                                          rondo__participant **list,
                                                          const void *host, size_t bytes,
                                                          const char *call);

// True while a graph's recorded copy uses host memory of this range.
//
// Cost:      one load when no graph uses any.
bool rondo__host_memory_covers(rondo_device *device, const void *address, size_t bytes);

// Pinned memory that is not wanted any more but that a graph still uses: freed with the last graph
// that does. `record` is heap memory of at least RONDO__HOST_MEMORY_RECORD_BYTES, to note that.
enum { RONDO__HOST_MEMORY_RECORD_BYTES = 32 };
void rondo__host_memory_leave_behind(rondo_device *device, void *base, size_t bytes, void *record);

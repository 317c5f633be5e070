// kernel/weights/weight_upload.h — forms of constants on their way to a GPU: made row by row in
// pinned memory, half of which is filled while the other half is copied.
//
//   rows of the constant ── crew ──> half A ── copy ──> GPU
//                           crew ──> half B ── copy ──> GPU     and A again
//
// So no form is ever whole on the host, no fresh pages are taken for it, and the driver copies
// nothing once more before it sends it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/weights/weight_store.h"

// Zeroed at first.
typedef struct rondo__weight_upload {
    char *pinned;  // both halves; NULL until something is sent
} rondo__weight_upload;

// Whether the form is worth the way: its rows are known one by one, and it is not small, all the
// less where memory has to be pinned first.
bool rondo__weight_upload_suits(const rondo__weight_upload *upload, const rondo__weight_want *want);

// Makes the form in `memory` on the device of the stream, and waits for it.
//
// Errors:    NO_DEVICE_MEMORY, NO_MEMORY, DRIVER, LOST.
// Threads:   one thread at a time.
RONDO_MUST_USE rondo_status rondo__weight_upload_send(rondo__weight_upload *upload,
                                                      rondo_stream *stream,
                                                      const rondo__weight_want *want, void *memory);

// Frees the pinned memory, until something is sent again.
void rondo__weight_upload_end(rondo__weight_upload *upload, rondo_device *device);

// Makes all rows of the form in host memory, by the crew of the thread (base/crew.h).
void rondo__weight_fill_rows(const rondo__weight_want *want, void *bytes);

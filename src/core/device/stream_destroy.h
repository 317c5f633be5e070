// device/stream_destroy.h — the end of a stream.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_DEVICE_STREAM_DESTROY_H
#define RONDO_DEVICE_STREAM_DESTROY_H

#include "backend/backend.h"

// Destroys the streams that a capture kept, which has ended.
void rondo__stream_destroy_kept(rondo_stream *list);

#endif  // RONDO_DEVICE_STREAM_DESTROY_H

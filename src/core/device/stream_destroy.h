// device/stream_destroy.h — the end of a stream.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/backend.h"

// Destroys a stream of the library's own, also one that it lends. NULL is fine.
void rondo__stream_destroy_own(rondo_stream *stream);
// Destroys the streams that a capture kept, which has ended.
void rondo__stream_destroy_kept(rondo_stream *list);

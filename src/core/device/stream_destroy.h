// device/stream_destroy.h — the end of a stream.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/backend.h"

// Destroys the streams that a capture kept, which has ended.
void rondo__stream_destroy_kept(rondo_stream *list);

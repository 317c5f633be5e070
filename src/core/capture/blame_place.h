// capture/blame_place.h — where the step was when its capture broke: open labels, the latest node.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "capture/capture.h"

// Writes into capture->blame where `stream` is, unless something stands there. `call` noticed it.
// Without `asks` it goes by the stream's marks alone, which costs nothing. The caller holds
// capture->lock and may use the stream. The thread's error record may change.
void rondo__blame_fill_place(rondo__capture *capture, rondo_stream *stream, const char *call,
                             bool asks);

// device/stream.h — streams that record.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/backend.h"

// STATE when the stream records; `call` names what cannot be recorded. Costs one load when
// may_record is false. The capture goes on.
RONDO_MUST_USE rondo_status rondo__stream_refuse_recording(rondo_stream *stream, const char *call);

// Around a call of a function of the program, which gets the stream and must not destroy it. The
// result goes to rondo__stream_take_back.
static inline bool rondo__stream_lend(rondo_stream *stream) {
    const bool was_lent = stream->is_lent;
    stream->is_lent = true;
    return was_lent;
}

static inline void rondo__stream_take_back(rondo_stream *stream, bool was_lent) {
    stream->is_lent = was_lent;
}

// device/stream.h — streams that record, or did when they were destroyed.
#ifndef RONDO_DEVICE_STREAM_H
#define RONDO_DEVICE_STREAM_H

#include "backend/backend.h"

// STATE when the stream records; `call` names what cannot be recorded. Costs one load when
// may_record is false. The capture goes on.
RONDO_MUST_USE rondo_status rondo__stream_refuse_recording(rondo_stream *stream, const char *call);

// Destroys the streams that a capture kept, which has ended.
void rondo__stream_destroy_kept(rondo_stream *list);

#endif  // RONDO_DEVICE_STREAM_H

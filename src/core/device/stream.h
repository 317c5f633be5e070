// device/stream.h — streams that record.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/backend.h"

// STATE when the stream records; `call` names what cannot be recorded. Costs one load when
// may_record is false. The capture goes on.
RONDO_MUST_USE rondo_status rondo__stream_refuse_recording(rondo_stream *stream, const char *call);

// device/stream_tag.h — what others keep of a stream.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/backend.h"

// A stream may be destroyed while its work still matters, so others keep its tag. For stream.c: the
// tag of a new stream, NULL without memory; and the end of a stream, which waits for calls that
// wait for the stream or come after it.
rondo__stream_tag *rondo__stream_tag_create(rondo_stream *stream);
void rondo__stream_tag_destroy_stream(rondo_stream *stream);
// The program has destroyed the stream, which its capture keeps until its end.
void rondo__stream_tag_note_kept(rondo_stream *stream);

rondo__stream_tag *rondo__stream_tag_retain(rondo_stream *stream);
rondo__stream_tag *rondo__stream_tag_retain_again(rondo__stream_tag *tag);
void rondo__stream_tag_release(rondo__stream_tag *tag);  // NULL is fine
// Retains it for rondo__stream_tag_follow.
//
// Threads:   the one that uses the stream.
rondo__stream_tag *rondo__stream_tag_watch(rondo_stream *stream);
// True once the program has destroyed the stream; its work was waited for unless it recorded.
bool rondo__stream_tag_is_finished(const rondo__stream_tag *tag);
// True once the stream is destroyed and its work was waited for: none of it can run any more.
bool rondo__stream_tag_is_done(const rondo__stream_tag *tag);
// Waits for the stream's work unless the stream is gone, records, or its device is lost. Failures
// stay for the stream's own waits to report. False: it records, or went while it did, so its work
// may still run.
bool rondo__stream_tag_wait(rondo__stream_tag *tag);
// The same for callers that must wait. If the stream records, it waits for the work before the
// capture, if the stream left an event then (rondo__stream_tag_watch). If the stream was destroyed
// and left no event, it waits for the whole device, unless a capture is open there.
bool rondo__stream_tag_wait_at_any_price(rondo__stream_tag *tag);

// The id of the capture that the stream takes part in, also of a broken one as far as that is
// known; 0: none, or it is gone.
//
// Cost:      a lock; one question to the driver where the stream may record.
uint64_t rondo__stream_tag_get_capture_id(rondo__stream_tag *tag);

// The id of the capture that the stream takes part in; 0: none, a broken one, or it is gone. Also
// the nodes that the next one on it will depend on: writes at most `capacity`, *out_count is how
// many there are.
//
// Cost:      a lock; one question to the driver while a capture is open.
uint64_t rondo__stream_tag_get_position(rondo__stream_tag *tag, rondo__node_handle *nodes,
                                        size_t capacity, size_t *out_count);

// Records `event`, one of the library's own, on the tag's stream, which may be in use by another
// thread. *out_was_recorded is false when the stream is gone and its work done.
//
// Errors:    STATE (the stream records a capture now, or went while it did), DRIVER, LOST,
//            NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__stream_tag_record(rondo__stream_tag *tag, rondo_event *event,
                                                     bool *out_was_recorded);

// Work put on `stream` from now on comes after the work that the tag's stream has so far. The
// device waits; this call does not. `tag` comes from rondo__stream_tag_watch, and its stream may be
// in use by another thread, may record, and may be destroyed. `event` is the caller's, on the
// device of both streams.
//
// Errors:    STATE (the tag's stream records a capture that is not Rondo's, or was destroyed in
//            one), DRIVER, LOST, NO_MEMORY.
// Threads:   safe; one thread per event, and `stream` is the caller's and does not record.
// Cost:      none when it is the same stream; else two driver calls, and two to look.
RONDO_MUST_USE rondo_status rondo__stream_tag_follow(rondo_stream *stream, rondo__stream_tag *tag,
                                                     rondo_event *event);

// The backend's begin_capture and wait_event, for a stream that may be watched: it leaves an event
// for those who follow it while it records.
RONDO_MUST_USE rondo_status rondo__stream_tag_begin_capture(rondo_stream *stream,
                                                            rondo_capture_mode mode,
                                                            uint64_t *out_id);
RONDO_MUST_USE rondo_status rondo__stream_tag_join(rondo_stream *stream, rondo_event *event);

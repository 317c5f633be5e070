// capture/forbid.h — what captures forbid to calls that are not recorded.
//
// A capture forbids waits and questions about what it records, since that work runs only in a
// replay. In global mode it also forbids every thread, on any device, to wait, to ask and to take
// memory from the driver. Such calls are refused here, before the backend hears of them, and break
// the captures that forbid them. So the rules are the same on every backend, and a driver need not
// be told.
//
// Captures that the program began by its own driver calls are not known here; the driver decides
// what they forbid.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/backend.h"
#include "rondo/report.h"

// For a call that takes memory from the driver (cause ALLOCATION), waits or asks (SYNCHRONIZE).
//
// Errors:    STATE (a capture in global mode forbids it, and is broken by it).
// Cost:      a load while no capture in global mode is open.
RONDO_MUST_USE rondo_status rondo__forbid_unsafe(rondo_device *device, const char *call,
                                                 rondo_capture_cause cause);

// For a wait for a stream, or a question about it; `what` says why it cannot be recorded.
//
// Errors:    STATE (the stream records, and its capture is broken by this, or was before; or as
//            rondo__forbid_unsafe), DRIVER, LOST.
// Threads:   one thread per stream.
RONDO_MUST_USE rondo_status rondo__forbid_stream_question(rondo_stream *stream, const char *call,
                                                          const char *what);

// The same for an event.
//
// Errors:    STATE.
RONDO_MUST_USE rondo_status rondo__forbid_event_question(rondo_event *event, const char *call);

// For a wait for the whole device. It breaks the captures of this thread, unless they are relaxed,
// and those in global mode; others only refuse it.
//
// Errors:    STATE (a stream of the device records).
RONDO_MUST_USE rondo_status rondo__forbid_device_wait(rondo_device *device, const char *call);

// For a stream's wait for an event that is not external. *out_is_done: there is nothing left to do.
//
// Errors:    STATE (the wait would join two captures, or one that is over or broken, or make
//            recorded work wait for work outside), DRIVER, LOST.
// Threads:   one thread per stream.
RONDO_MUST_USE rondo_status rondo__forbid_stream_wait(rondo_stream *stream, rondo_event *event,
                                                      bool *out_is_done);

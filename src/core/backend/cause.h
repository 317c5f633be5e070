// backend/cause.h — why this thread's latest failure breaks captures.
//
// The code that decides a failure stores here why it breaks a capture, beside the error record. The
// call that finds the capture broken reads it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/backend.h"
#include "rondo/report.h"

// Stores why this thread's latest error record breaks captures. Called where the failure is
// decided.
void rondo__cause_set(rondo_capture_cause cause);
// The same for records whose own code tells nothing: what it says itself, or else `fallback`.
rondo_capture_cause rondo__cause_classify(const rondo_error *record, rondo_capture_cause fallback);
// Says of this thread's latest error record that it is about a stream that was forked and not
// joined; its number may be 0, not known. And who that was; 0: the record is about none.
void rondo__cause_set_unjoined(uint32_t stream_number);
uint32_t rondo__cause_get_unjoined(const rondo_error *record);

// STATE for `call` on a stream whose capture is broken. If the cause is unknown, the report names
// this call as the one that noticed.
rondo_status rondo__cause_fail_broken(const rondo_stream *stream, const char *call);

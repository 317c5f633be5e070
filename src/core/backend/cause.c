// backend/cause.c — why this thread's latest failure breaks captures.
// SPDX-License-Identifier: Apache-2.0

#include "backend/cause.h"

#include <string.h>

#include "base/error.h"

static _Thread_local struct {
    uint64_t sequence;  // of the error record it is about
    rondo_capture_cause cause;
    uint32_t unjoined;  // number of the stream that was not joined
} g_decided;

void rondo__cause_set(rondo_capture_cause cause) {
    g_decided.sequence = rondo_error_get_last()->sequence;
    g_decided.cause = cause;
    g_decided.unjoined = 0;
}

void rondo__cause_set_unjoined(uint32_t stream_number) {
    rondo__cause_set(RONDO_CAUSE_UNJOINED_STREAM);
    g_decided.unjoined = stream_number;
}

uint32_t rondo__cause_get_unjoined(const rondo_error *record) {
    return g_decided.sequence == record->sequence ? g_decided.unjoined : 0;
}

rondo_capture_cause rondo__cause_classify(const rondo_error *record, rondo_capture_cause fallback) {
    static const struct {
        const char *driver_name;
        rondo_capture_cause cause;
    } codes[] = {
        {"CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", RONDO_CAUSE_UNSEEN_CALL},
        {"CUDA_ERROR_STREAM_CAPTURE_MERGE", RONDO_CAUSE_MERGE},
        {"CUDA_ERROR_STREAM_CAPTURE_UNJOINED", RONDO_CAUSE_UNJOINED_STREAM},
        {"CUDA_ERROR_STREAM_CAPTURE_ISOLATION", RONDO_CAUSE_OUTSIDE_WORK},
        {"CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", RONDO_CAUSE_LEGACY_STREAM},
        {"CUDA_ERROR_CAPTURED_EVENT", RONDO_CAUSE_SYNCHRONIZE},
    };
    if (g_decided.sequence == record->sequence && g_decided.sequence != 0) {
        return g_decided.cause;
    }
    for (size_t i = 0; i < sizeof codes / sizeof *codes; ++i) {
        if (strcmp(record->driver_name, codes[i].driver_name) == 0) {
            return codes[i].cause;
        }
    }
    if (rondo__is_out_of_memory(record->status)) {
        return RONDO_CAUSE_OUT_OF_MEMORY;
    }
    return fallback;
}

rondo_status rondo__cause_fail_broken(const rondo_stream *stream, const char *call) {
    rondo_status status = RONDO_FAIL_AS(
        call, STATE, "the capture that stream %u takes part in is broken; end it to learn why",
        (unsigned)stream->number);
    rondo__cause_set(RONDO_CAUSE_UNSEEN_CALL);
    return status;
}

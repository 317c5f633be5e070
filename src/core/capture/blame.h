// capture/blame.h — which call broke a capture, and where in the step.
//
// A driver says only that a capture is broken. So the public calls of this room leave marks: a call
// that recorded something leaves its name on the stream (two stores), a label scope counts the
// nodes so far, and a call that failed looks whether a capture broke by it. The first failure is
// the cause:
//
//   launch gemm      push "attention"     cuStreamSynchronize      launch softmax
//   mark: gemm       mark: 12 nodes       (the program's own)      fails: broken, not by a call
//                                                                  that Rondo saw; so between
//                                                                  gemm, node 12, and softmax
//
// A public call that should have put work, an order or draws into a capture and failed breaks it,
// even if the driver would go on. So do wrong arguments, as far as the stream is known. These break
// nothing by failing: questions, labels, a lack of memory, calls that are never recorded, and
// scopes that stay open (the end looks for them).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "backend/backend.h"
#include "rondo/report.h"

enum { RONDO__BLAME_LABEL_BYTES = 128, RONDO__BLAME_NAME_BYTES = 64 };

// Guarded by the lock of the capture that it is part of; zeroed: nothing is wrong.
typedef struct rondo__blame {
    atomic_bool is_broken;  // no graph may come of it; written under the lock
    // The first failure.
    bool has_cause;
    rondo_capture_cause cause;
    rondo_error record;
    uint64_t thread_number;
    char thread_name[16];
    uint32_t stream_number;  // 0: no stream of ours
    // A failure that broke nothing, such as memory that was not to be had: the likely reason when
    // the program gives up.
    bool has_suspect;
    rondo_capture_cause suspect_cause;
    rondo_error suspect;
    // Where the step was when that was noticed.
    bool has_place;
    char noticed_by[48];  // call
    char label[RONDO__BLAME_LABEL_BYTES];
    bool has_node;
    bool is_index_exact;
    uint64_t node_index;  // in the body, when it lies in one
    uint32_t node_depth;  // bodies around it
    char node_name[RONDO__BLAME_NAME_BYTES];
    char node_label[RONDO__BLAME_LABEL_BYTES];
} rondo__blame;

// ---- marks on streams -------------------------------------------------------------------------

// The slow half of rondo__mark_work.
void rondo__blame_work(rondo_stream *stream, const char *work);

// For each call that should have been recorded: leaves its name, or blames it. Returns `status`.
static inline rondo_status rondo__mark_work(rondo_stream *stream, const char *work,
                                            rondo_status status) {
    if (__builtin_expect(status == RONDO_STATUS_OK, 1)) {
        if (__builtin_expect(atomic_load_explicit(&stream->may_record, memory_order_relaxed), 0)) {
            stream->marks.work = work;
            ++stream->marks.work_count;
        }
        return status;
    }
    rondo__blame_work(stream, work);
    return status;
}

// For calls that make no node of their own, or whose node is counted by the call that makes it, but
// without which the step would not be what was asked for. Returns `status`. `stream` may be NULL.
static inline rondo_status rondo__mark_missing(rondo_stream *stream, const char *work,
                                               rondo_status status) {
    if (__builtin_expect(status != RONDO_STATUS_OK, 0) && stream != NULL) {
        rondo__blame_work(stream, work);
    }
    return status;
}

// ---- failures ---------------------------------------------------------------------------------

// This thread's latest record breaks the capture, which is the caller's to use: it is the calling
// thread's own, or the lock of the list is held. `stream` is where the program was, which the
// thread uses; NULL: elsewhere. The record stays.
void rondo__blame_break(rondo__capture *capture, rondo_stream *stream, rondo_capture_cause cause);

// The slow half of rondo__mark_call.
void rondo__blame_call(rondo_device *device, rondo_stream *stream, rondo_capture_cause cause);

// For each call that is not recorded but can break captures of the device; `stream` may be NULL.
static inline rondo_status rondo__mark_call(rondo_device *device, rondo_stream *stream,
                                            rondo_capture_cause cause, rondo_status status) {
    if (__builtin_expect(status != RONDO_STATUS_OK, 0)) {
        rondo__blame_call(device, stream, cause);
    }
    return status;
}

// The capture is given up, and this is where the program was, in `call`.
void rondo__blame_note_place(rondo__capture *capture, rondo_stream *stream, const char *call);
// A call on the stream failed. When its capture is broken, by nothing that was seen: keeps the
// place, and returns true.
bool rondo__blame_notice(rondo_stream *stream, const char *call);
// Whether the stream records; true, too, where the backend cannot tell.
bool rondo__blame_may_record(rondo_stream *stream);
// The capture that a stream which the program destroys takes part in, or, where it does not record,
// the one that began on it: a capture that the program ended by a call of its own still has its
// graph here. NULL: none.
rondo__capture *rondo__blame_find_capture(rondo_stream *stream, bool is_recording);
// The destruction of the stream breaks the capture. This thread's record becomes that failure.
void rondo__blame_destruction(rondo__capture *capture, rondo_stream *stream);
// A thread that cannot end the capture has given it up: it is broken, and yields that as the cause.
// The thread's error record stays.
void rondo__blame_given_up(rondo__capture *capture);
// Whether the capture is broken, as far as is known before its end. One driver call, where there
// are participants.
bool rondo__blame_is_broken(rondo__capture *capture);
// The capture is about to be ended by `call`, or was just ended by it, in vain perhaps: fills in
// what is missing and copies the result.
void rondo__blame_conclude(rondo__capture *capture, const char *call, bool is_given_up,
                           rondo__blame *out_blame);

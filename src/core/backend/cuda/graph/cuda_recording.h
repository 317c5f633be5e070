// backend/cuda/graph/cuda_recording.h — what is noted of captures that run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/driver/cuda_stream.h"
#include "backend/cuda/graph/cuda_template.h"

enum { RONDO__CUDA_MEMBERS_MAX = 16 };
#define RONDO__CUDA_CAPTURE_IS_ROOT UINT64_MAX  // as `root`, until the serial is known

// All guarded by device->capture_lock while listed.
struct rondo__cuda_capture {
    rondo__cuda_capture *next;
    uint64_t serial;
    uint64_t root;  // serial of the outermost capture around a body; its own otherwise; 0: unknown
    uint64_t driver_id;  // what the driver calls it; 0: a body, which is not asked about
    int mode;
    rondo__cuda_note *notes;  // of the outermost capture: conditional nodes so far
    size_t member_count;
    bool has_inner;  // a recorded graph or a conditional node
    // Bodies, see cuda_body.c.
    uint32_t depth;              // of bodies around, itself included; 0: outermost
    rondo__cu_stream native;     // in limbo: the stream that records it
    rondo__cuda_capture *limbo;  // of the outermost: bodies that are ended after it, by `next`
    struct {
        uint32_t stream_number;
        bool is_joined;
    } members[RONDO__CUDA_MEMBERS_MAX];  // forked streams; further ones are not named
};

// The caller holds the lock. NULL when the capture has ended.
rondo__cuda_capture *rondo__cuda_find_capture(rondo__cuda_device *device, uint64_t serial);

// Whether the driver has that capture still, also as a body in limbo or a lost one.
bool rondo__cuda_is_unended(rondo__cuda_device *device, uint64_t serial);

// Lists it; its serial. The first form holds the lock, the second's caller does.
uint64_t rondo__cuda_add_capture(rondo__cuda_device *device, rondo__cuda_capture *capture);
uint64_t rondo__cuda_list_capture(rondo__cuda_device *device, rondo__cuda_capture *capture);

// Takes it out of the list; NULL when it has ended. The first form holds the lock, the second's
// caller does.
rondo__cuda_capture *rondo__cuda_take_capture(rondo__cuda_device *device, uint64_t serial);
// The record of a capture that yields nothing: what broke it when that was seen, otherwise what the
// driver says about the end.
rondo_status rondo__cuda_fail_end(rondo__cuda_device *device, rondo__cu_result code,
                                  const rondo__cuda_capture *capture);
// True for the codes that say what a capture forbids.
bool rondo__cuda_is_capture_code(rondo__cu_result code);

// Ends the capture that began on the stream, and takes it out of the list. *out_graph is the
// caller's (a body's: its node's); *out_capture, too, NULL when none is listed.
rondo__cu_result rondo__cuda_end_native(rondo_stream *stream, rondo__cu_graph *out_graph,
                                        rondo__cuda_capture **out_capture);

// "stream 3, stream 5": the forked streams that no stream waited for. If each was waited for once,
// all of them: then one of them went on afterwards. Returns the number of the first.
uint32_t rondo__cuda_list_members(const rondo__cuda_capture *capture, char *out_text, size_t bytes);

// Notes that the capture, by the driver's id, holds a recorded graph or a conditional node.
void rondo__cuda_note_inner(rondo__cuda_device *device, uint64_t driver_id);
// Whether the stream records the body of a conditional node.
bool rondo__cuda_records_body(const rondo_stream *stream);
// Refuses what no body can hold. OK when the stream records none.
RONDO_MUST_USE rondo_status rondo__cuda_refuse_node_in_body(rondo_stream *stream, const char *call,
                                                            const char *what);
// Gives the note to the outermost capture around `serial`; false when Rondo began none, then it
// stays the caller's.
bool rondo__cuda_keep_note(rondo__cuda_device *device, uint64_t serial, rondo__cuda_note *note);

// device/copy_note.h — reports copies to a profile, and, if the log's level asks for it, in a line
// for each.
//
//   transfer: Slice "/crop" takes "shape" i64 [4] from cuda:0 to the host, 32 bytes, waited for
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/log/hook.h"
#include "rondo/device.h"
#include "rondo/tensor.h"

// Why a copy is made. NULL ones are not known.
typedef struct rondo__copy_note {
    const char *op;    // type of the op for which, or "feed" and "fetch"
    const char *name;  // of the op
    const char *variable;
    rondo_dtype dtype;  // of the variable
    const rondo_shape *shape;
} rondo__copy_note;

// rondo_stream_copy, told of by what the note says; NULL: nothing is known.
RONDO_MUST_USE rondo_status rondo__stream_copy_noted(rondo_stream *stream, void *destination,
                                                     const void *source, size_t bytes,
                                                     rondo_copy_kind kind,
                                                     const rondo__copy_note *note);

// The same for rondo_stream_copy_between.
RONDO_MUST_USE rondo_status rondo__stream_copy_between_noted(rondo_stream *stream, rondo_device *to,
                                                             void *destination, rondo_device *from,
                                                             const void *source, size_t bytes,
                                                             const rondo__copy_note *note);

// A copy that is about to be put on a stream, or is done by the processor.
typedef struct rondo__copy_tale {
    const char *from;  // names of places
    const char *to;
    rondo__way way;
    uint64_t bytes;
    bool is_async;
    rondo_stream *stream;  // that it is put on; NULL: the processor does it
} rondo__copy_tale;

// Whether the log's level asks for copies; whether a listener is registered.
bool rondo__copy_is_logged(void);
bool rondo__copy_is_told(void);
// Logs one that a replayed graph makes; a profile sees it elsewhere. Only the places and the bytes
// of the tale count.
void rondo__copy_log_replayed(const rondo__copy_tale *tale, const rondo__copy_note *note);
// Reports a copy; the scope ends when the call that makes the copy is done.
rondo__hook_scope rondo__copy_tell(const rondo__copy_tale *tale, const rondo__copy_note *note);

// A copy within host memory that the processor makes, for a profile only.
rondo__hook_scope rondo__copy_tell_host(uint64_t bytes, const rondo__copy_note *note);

// rondo/control.h — if, switch and while, decided on the device.
//
// A recorded graph can choose whether a part of it runs, which part, and how often. It chooses
// during the replay, by a number in device memory that earlier work wrote, without the processor.
// There are two ways to record that:
//
//   Functions, which work the same in a capture (they record) and outside one (they run):
//
//     static rondo_status relax(rondo_stream *stream, void *user_data) {
//         ... put one step on `stream`; its last kernel writes *go_on ...
//     }
//     rondo_control_while(stream, go_on, relax, &solver);
//
//   Scopes (experimental), inside a capture only. A body is recorded on a stream of its own:
//
//     rondo_scope scope;
//     rondo_scope_begin(stream, RONDO_SCOPE_IF_ELSE, flag, 0, &scope);
//     rondo_scope_enter(scope, 0, &body);  ... put the "then" part on `body` ...
//     rondo_scope_leave(scope);
//     rondo_scope_enter(scope, 1, &body);  ... put the "else" part on `body` ...
//     rondo_scope_leave(scope);
//     rondo_scope_end(scope);              // `stream` goes on behind both
//
// Both nest to any depth: a body stream is a stream like others, also for engines that launch on
// its native handle. Work may fork from it to other streams and must join it again before the body
// ends.
//
// The predicate is a uint32_t in device memory (an int32_t for a switch), aligned to 4 bytes. Zero
// is false. It is read once where the scope stands, and by a while again after each turn.
//
// Label scopes (rondo/label.h) that are open around a body hold in it, too; it may open its own.
//
// On CUDA a body may hold kernels, copies and fills of device or pinned memory, and further scopes;
// no host functions (RONDO_FEATURE_HOST_IN_BODY), external events, or memory that the program or a
// library takes in stream order.
//
// A conditional node costs 0.9 us of the processor at each replay of its graph, and 3 us of the GPU
// where it runs nothing, 7 us where it runs a body (H100, driver 580).
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_CONTROL_H
#define RONDO_CONTROL_H

#include <stdint.h>

#include "rondo/device.h"
#include "rondo/export.h"
#include "rondo/status.h"

RONDO_EXTERN_C_BEGIN

typedef int32_t rondo_scope_kind;
enum {
    RONDO_SCOPE_IF = 0,       // branch 0 runs when the predicate is not zero
    RONDO_SCOPE_IF_ELSE = 1,  // branch 0 runs when it is not zero, branch 1 when it is
    RONDO_SCOPE_SWITCH = 2,   // branch n runs when it is n; none when it is out of range
    RONDO_SCOPE_WHILE = 3,    // branch 0 runs again and again while it is not zero
};

// ---- functions: recorded in a capture, run outside one ----------------------------------------

// Puts the work of a body on `stream`. Outside a capture it is called for each turn; inside one it
// is called once, and `stream` is then the body's. A failure it returns is passed on; it breaks the
// capture. So does a wrong argument of the calls below, because the step would lack the node. A
// device without conditional nodes (UNSUPPORTED) does not break it, because the program may have
// another way.
typedef rondo_status (*rondo_body_function)(rondo_stream *stream, void *user_data);

// Runs `then_body` when the predicate is not zero, otherwise `else_body`. One of them may be NULL.
//
// Outside a capture the call waits for the stream, reads the predicate and calls the function: this
// works on every driver, and costs a wait.
//
// Errors:    UNSUPPORTED (in a capture: ask rondo_device_supports), STATE; what the function
//            returned.
RONDO_API RONDO_MUST_USE rondo_status rondo_control_if(rondo_stream *stream, const void *predicate,
                                                       rondo_body_function then_body,
                                                       rondo_body_function else_body,
                                                       void *user_data);

// Runs bodies[index]; nothing when the index is below 0 or not below body_count, or the entry NULL.
//
// body_count   1 to 1024
//
// Errors:    as rondo_control_if.
RONDO_API RONDO_MUST_USE rondo_status rondo_control_switch(rondo_stream *stream, const void *index,
                                                           const rondo_body_function *bodies,
                                                           uint32_t body_count, void *user_data);

// Runs `body` again and again while the predicate is not zero; not at all if it is zero at first.
//
// A body that never clears the predicate never ends.
//
// Errors:    as rondo_control_if.
RONDO_API RONDO_MUST_USE rondo_status rondo_control_while(rondo_stream *stream,
                                                          const void *predicate,
                                                          rondo_body_function body,
                                                          void *user_data);

#if defined(RONDO_EXPERIMENTAL)

// ---- scopes: inside a capture -----------------------------------------------------------------

// A conditional node that is being recorded. Plain data to be handed back; once the scope or its
// capture has ended, it stands for nothing and calls with it fail harmlessly.
typedef struct rondo_scope {  // ABI: fixed
    rondo_device *device;
    uint64_t id;
} rondo_scope;

// Records a conditional node on `stream`.
//
// Until rondo_scope_end nothing else may be put on `stream`: bodies have streams of their own. Work
// on other streams of the capture goes on beside the node.
//
// predicate     device memory; must be valid whenever the graph is replayed.
// branch_count  of a switch, 1 to 1024; of the other kinds 0.
// out_scope     cleared on entry, written only on success.
//
// Errors:    STATE (the stream does not record, or has a scope already), UNSUPPORTED (ask
//            rondo_device_supports). After any of them but UNSUPPORTED the capture is broken: it
//            would lack the node.
// Ownership: ended by rondo_scope_end, or with the capture; `stream` is borrowed until then. In a
//            capture that the program began itself, end it before that ends; what is left open
//            goes when `stream` is destroyed, which must come before the graph's end.
// Threads:   one thread per capture.
// Capture:   legal only while `stream` records.
RONDO_API RONDO_MUST_USE rondo_status rondo_scope_begin(rondo_stream *stream, rondo_scope_kind kind,
                                                        const void *predicate,
                                                        uint32_t branch_count,
                                                        rondo_scope *out_scope);

// Begins the body of one branch. Each branch has one body; one that is never entered is empty.
//
// out_body   the stream that records the body; borrowed until rondo_scope_leave.
//
// Errors:    STATE (a body is open, the branch was recorded already, the scope is over, the capture
//            is broken), INVALID (no such branch). Unless the scope is over, the capture is broken
//            then: it would lack the body.
// Threads:   one thread per capture.
RONDO_API RONDO_MUST_USE rondo_status rondo_scope_enter(rondo_scope scope, uint32_t branch,
                                                        rondo_stream **out_body);

// Ends the open body. An empty body is fine.
//
// Errors:    STATE (no body is open, the scope is over, a scope inside is open, which breaks
//            nothing; a stream forked inside the body was not joined, the stream outside was used
//            meanwhile, the body was broken: then the whole capture is broken).
// Threads:   one thread per capture.
RONDO_API rondo_status rondo_scope_leave(rondo_scope scope);

// Ends the scope; the stream that it began on goes on behind it.
//
// Errors:    STATE (a body is open: leave it first; a while without a body, which would never end:
//            either way the scope stays open; the scope is over; the stream was used meanwhile, or
//            the capture is broken: the scope ends, and no graph comes of the capture).
// Threads:   one thread per capture.
RONDO_API rondo_status rondo_scope_end(rondo_scope scope);

#endif  // RONDO_EXPERIMENTAL

RONDO_EXTERN_C_END

#endif  // RONDO_CONTROL_H

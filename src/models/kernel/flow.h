// kernel/flow.h — the small kernels around the bodies of If, Loop and Scan on a device.
//
// A control op on the device is a conditional node (rondo/control.h) with a few tiny kernels that
// do what the host would do between the turns: read the condition, count, and move one slice:
//
//   If       choose -> [if: then | else]
//   Loop     enter -> [while: slices in -> body -> rows out -> next]
//
// What they share is a rondo__flow_state in device memory. Every kernel is a C function, too, with
// the same arguments: the host backend runs that.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rondo/device.h"
#include "rondo/status.h"

// One control op while it runs. The device text (cu/flow.cu) declares the same members.
typedef struct rondo__flow_state {
    int64_t turn;         // turns that have ended; the body reads it as its iteration number
    int64_t count;        // turns to be taken at most
    int64_t taken;        // of an outermost op: turns of its loops and of those inside
    uint32_t predicate;   // of the conditional node
    uint32_t is_stopped;  // of an outermost op: too many turns, or cancelled
    uint8_t condition;    // 1: what the body reads as its condition
    uint8_t unused[7];
} rondo__flow_state;

enum { RONDO__FLOW_CANCELLED = 2, RONDO__FLOW_POLL_TURNS = 16 };

// Messages between the host and a running graph, in pinned memory.
typedef struct rondo__flow_watch {
    atomic_int call;  // RONDO__FLOW_CANCELLED ends every loop within RONDO__FLOW_POLL_TURNS
    _Atomic(uint64_t) stopped;  // 0; RONDO__FLOW_CANCELLED; or who had too many turns: an `owner`
    // 0, or who met data that its op does not allow: its rondo__kernel's address | a rondo__fault
    _Atomic(uint64_t) faulty;
} rondo__flow_watch;

// Kinds of data that an op does not allow. A kernel of a GPU notes the kind and goes on with a
// value that stays inside of its tensors.
typedef enum rondo__fault {
    RONDO__FAULT_INDEX = 1,  // outside of its axis
    RONDO__FAULT_DIVISOR,    // the integer 0
    RONDO__FAULT_LABEL,      // no class
    RONDO__FAULT_LENGTH,     // longer than the axis, or negative
    RONDO__FAULT_BOX,        // in no image of the batch, or absurdly large
    RONDO__FAULT_MASK = 7,
} rondo__fault;

// What `enter` and `next` get.
typedef struct rondo__flow_loop {
    rondo__flow_state *state;
    rondo__flow_state *outermost;  // `state` itself, or of the op around all others
    rondo__flow_watch *watch;      // NULL: only its own count ends it
    const int64_t *count;          // device memory; NULL: `fixed_count`
    const uint8_t *condition;      // device memory; NULL: true
    int64_t fixed_count;
    int64_t limit;   // turns of all loops in `outermost`; 0: these turns do not count
    uint64_t owner;  // what `stopped` then says: an address
} rondo__flow_loop;

// A slice of `tensor`, which is [outer, length, inner bytes], and the same bytes without that axis.
typedef struct rondo__flow_slice {
    const rondo__flow_state *state;  // its turn says which slice
    void *tensor;
    void *slice;
    int64_t outer;
    int64_t length;
    int64_t inner_bytes;
    bool is_written;   // from the slice into the tensor; otherwise out of the tensor
    bool is_backward;  // the last one in the first turn
} rondo__flow_slice;

// The kernels of one device; functions of slices by the bytes of their elements (1, 2, ... 16).
typedef struct rondo__flow_kernels {
    void *choose;
    void *enter;
    void *next;
    void *slice[5];
} rondo__flow_kernels;

// Errors:    UNAVAILABLE (no NVRTC), DRIVER, NO_MEMORY.
// Ownership: the functions live as long as the device.
// Capture:   not legal while a stream of the device records.
RONDO_MUST_USE rondo_status rondo__flow_get_kernels(rondo_device *device,
                                                    rondo__flow_kernels *out_kernels);

// Each puts one kernel on the stream.
//
// Errors:    as rondo_stream_launch.
// Threads:   one thread per stream.
RONDO_MUST_USE rondo_status rondo__flow_choose(const rondo__flow_kernels *kernels,
                                               rondo_stream *stream, rondo__flow_state *state,
                                               const uint8_t *condition);
RONDO_MUST_USE rondo_status rondo__flow_enter(const rondo__flow_kernels *kernels,
                                              rondo_stream *stream, const rondo__flow_loop *loop);
// Ends a turn: `loop->condition` is what the body gave.
RONDO_MUST_USE rondo_status rondo__flow_next(const rondo__flow_kernels *kernels,
                                             rondo_stream *stream, const rondo__flow_loop *loop);
RONDO_MUST_USE rondo_status rondo__flow_move(const rondo__flow_kernels *kernels,
                                             rondo_stream *stream, const rondo__flow_slice *slice);

// The kernels' names on CUDA, and the C function of each: for stand-ins of a driver.
enum { RONDO__FLOW_KERNEL_COUNT = 4 };
extern const char *const rondo__flow_kernel_names[RONDO__FLOW_KERNEL_COUNT];
rondo_host_function rondo__flow_get_host_function(size_t index);

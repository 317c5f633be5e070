// rondo/device.h — devices, streams, events, memory, and work put on a stream.
//
// A device is a CUDA GPU ("cuda:0") or this machine's processor ("host"). Both have ordered
// asynchronous streams, events, capture and graphs with the same meaning and the same errors.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_DEVICE_H
#define RONDO_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rondo/export.h"
#include "rondo/status.h"

RONDO_EXTERN_C_BEGIN

typedef struct rondo_device rondo_device;
typedef struct rondo_stream rondo_stream;
typedef struct rondo_event rondo_event;

// ---- devices ----------------------------------------------------------------------------------

// What is known of a device, or why there is none.
typedef struct rondo_device_info {
    size_t struct_size;     // sizeof(rondo_device_info)
    char name[32];          // what rondo_device_open takes: "host", "cuda:0"
    char description[128];  // model name of the chip
    char reason[256];       // empty when `available`; otherwise why the device cannot be used
    bool available;
    uint64_t memory_bytes;  // total memory
    uint64_t free_bytes;    // memory free when asked; 0: not known, as of a GPU not in use here
    int32_t compute_units;  // GPU multiprocessors, or hardware threads of the host
    int32_t arch_major;     // CUDA compute capability; 0 on the host
    int32_t arch_minor;
    int32_t driver_version;  // 1000 * major + 10 * minor of the CUDA driver API; 0 on the host
} rondo_device_info;

// Lists every device, and one unavailable entry for each backend that has none.
//
// Writes at most `capacity` entries; *out_count is how many there are, so a first call may pass
// infos = NULL and capacity = 0.
RONDO_API RONDO_MUST_USE rondo_status rondo_device_list(rondo_device_info *infos, size_t capacity,
                                                        size_t *out_count);

// Opens a device by name: "host", "cuda:N", or "auto" (the first usable GPU, otherwise the host).
//
// Opening the same device again returns the same object with one more reference.
//
// Errors:    INVALID (no such name; the message lists the names), UNAVAILABLE (with the reason),
//            NO_DEVICE_MEMORY.
// Ownership: give back with rondo_device_release.
RONDO_API RONDO_MUST_USE rondo_status rondo_device_open(const char *name,
                                                        rondo_device **out_device);

// Adds a reference. NULL is fine.
RONDO_API void rondo_device_retain(rondo_device *device);

// Gives up a reference; the last one frees the device. NULL is fine.
//
// What is made on a device holds a reference of its own, but for memory from rondo_memory_allocate:
// free that before.
//
// Capture:   the last one waits for the device, which breaks captures that the program began there
//            itself.
RONDO_API void rondo_device_release(rondo_device *device);

// Fills *out_info afresh.
RONDO_API RONDO_MUST_USE rondo_status rondo_device_get_info(rondo_device *device,
                                                            rondo_device_info *out_info);

// "host", "cuda:0"; borrowed, lives as long as the device.
RONDO_API const char *rondo_device_get_name(const rondo_device *device);

// True for a device whose memory the processor can read and write directly.
RONDO_API bool rondo_device_is_host(const rondo_device *device);

// Waits for all work on all streams of the device.
//
// Errors:    STATE (a stream is recording).
// Threads:   Captures that other threads begin meanwhile begin when it is done.
// Capture:   not legal while a stream of the device records: refused, it breaks captures in global
//            mode and thread_local ones of its own thread.
RONDO_API RONDO_MUST_USE rondo_status rondo_device_synchronize(rondo_device *device);

// What conditional nodes (rondo/control.h) need.
// CUDA has IF and WHILE from driver 12.3 on, ELSE and SWITCH from 12.8 on; on drivers between,
// Rondo builds those of several IFs. The host has everything.
typedef int32_t rondo_feature;
enum {
    RONDO_FEATURE_IF = 0,
    RONDO_FEATURE_IF_ELSE = 1,
    RONDO_FEATURE_SWITCH = 2,
    RONDO_FEATURE_WHILE = 3,
    RONDO_FEATURE_HOST_IN_BODY = 4,  // host functions inside bodies
};

// Asks whether the device can record it.
//
// Returns:   OK: it can.
// Errors:    UNSUPPORTED (it cannot; the record says why and what to do instead), INVALID (no such
//            feature).
RONDO_API RONDO_MUST_USE rondo_status rondo_device_supports(rondo_device *device,
                                                            rondo_feature feature);

// ---- memory -----------------------------------------------------------------------------------

typedef int32_t rondo_memory_kind;
enum {
    RONDO_MEMORY_DEVICE = 0,  // memory of the device; on the host backend ordinary memory
    RONDO_MEMORY_PINNED = 1,  // host memory that the device copies from and to without a detour
};

// Allocates uninitialised memory, aligned to 256 bytes.
//
// bytes      0 gives a NULL address and success.
//
// Errors:    NO_DEVICE_MEMORY, STATE (a capture in global mode).
// Ownership: give back once with rondo_memory_free.
// Capture:   breaks captures in global mode, of any thread.
RONDO_API RONDO_MUST_USE rondo_status rondo_memory_allocate(rondo_device *device,
                                                            rondo_memory_kind kind, size_t bytes,
                                                            void **out_address);

// Frees memory from rondo_memory_allocate. NULL is fine. Work that uses it must have finished.
// Blocks of pools (rondo/pool.h) are left alone, with a warning in the log.
//
// Capture:   breaks no capture of any mode.
RONDO_API void rondo_memory_free(rondo_device *device, void *address);

// ---- streams ----------------------------------------------------------------------------------

typedef struct rondo_stream_options {
    size_t struct_size;  // sizeof(rondo_stream_options)
    // Which work a busy GPU takes first: 0 is the default, larger numbers come before it, and what
    // is beyond the GPU's few levels counts as the outermost. The host ignores it.
    int32_t priority;
} rondo_stream_options;

// Creates an ordered queue of work. On CUDA it does not synchronise with the legacy default stream.
//
// options    NULL means the defaults.
//
// Errors:    UNSUPPORTED (a priority, of a driver that has none).
// Ownership: caller destroys it.
RONDO_API RONDO_MUST_USE rondo_status rondo_stream_create(rondo_device *device,
                                                          const rondo_stream_options *options,
                                                          rondo_stream **out_stream);

// Uses the caller's own CUstream (or cudaStream_t) as a Rondo stream, without taking it over.
//
// Other libraries may go on using the stream: their work is recorded, too, while it records. Their
// allocators (PyTorch's) may reuse memory that they take meanwhile, so allocate what the step needs
// before the capture, or from a rondo_pool.
//
// native     NULL means the legacy default stream, which can run work but not record it.
//
// Errors:    UNSUPPORTED (host backend: there is no foreign stream), INVALID (no stream that lives,
//            or not of this device's primary context).
// Ownership: destroying the result leaves `native` alone; `native` must outlive it. Where a graph,
//            a pool or a generator still counts on its work, destroying waits for that; so keep
//            the result rather than wrap the stream anew for each step.
// Threads:   as for the native stream.
RONDO_API RONDO_MUST_USE rondo_status rondo_stream_wrap(rondo_device *device, void *native,
                                                        rondo_stream **out_stream);

// Waits for the stream's work and frees it. NULL is fine. A running capture is aborted first.
//
// A stream that joined a capture can be waited for only when that has ended: the capture keeps it
// until then, and pools give nobody what it uses.
//
// Threads:   the stream's; while it records, the thread that began the capture (unless the mode is
//            relaxed). On another one the capture goes on and keeps the stream until the thread
//            that began ends or aborts it; a wrapper's native stream goes on recording, for that
//            thread to end.
// Capture:   captures that the stream takes no part in go on, in every mode.
RONDO_API void rondo_stream_destroy(rondo_stream *stream);

// The device the stream belongs to; borrowed. NULL for NULL.
RONDO_API rondo_device *rondo_stream_get_device(const rondo_stream *stream);

// The CUstream behind the stream, borrowed; NULL on the host backend.
RONDO_API void *rondo_stream_get_native(const rondo_stream *stream);

// Waits until all work put on the stream so far has finished.
//
// Errors:    STATE (recording); also the failure of work that ran on the stream.
// Capture:   not legal on a stream that records, whose capture it breaks. Elsewhere it breaks
//            captures in global mode, of any thread.
RONDO_API RONDO_MUST_USE rondo_status rondo_stream_synchronize(rondo_stream *stream);

// Sets *out_is_idle to whether all work has finished; never waits.
//
// Errors:    STATE (recording).
// Capture:   as rondo_stream_synchronize.
RONDO_API RONDO_MUST_USE rondo_status rondo_stream_query(rondo_stream *stream, bool *out_is_idle);

// Makes later work on `stream` wait for `event`, and joins `stream` to the event's capture, if any.
//
// RONDO_EVENT_EXTERNAL, while `stream` records: each replay waits at this place for the records put
// on streams (also by replays) before that replay was.
//
// Errors:    INVALID (other backend), STATE (in a capture: the event was recorded outside of it),
//            UNSUPPORTED (an external event in the body of a conditional node).
RONDO_API RONDO_MUST_USE rondo_status rondo_stream_wait_event(rondo_stream *stream,
                                                              rondo_event *event);

// Tells whether the stream records now (false once its capture was broken, too).
RONDO_API RONDO_MUST_USE rondo_status rondo_stream_is_recording(rondo_stream *stream,
                                                                bool *out_is_recording);

// ---- events -----------------------------------------------------------------------------------

enum {
    RONDO_EVENT_TIMED = 1u << 0,  // the event keeps a time stamp for rondo_event_get_elapsed_ns
    // Inside a capture, recording the event and waiting for it become nodes, which happen at each
    // replay: for time stamps inside a graph, and for graphs that wait for each other or for work
    // outside. Such an event never joins a stream to a capture. Outside captures it is as any
    // other. Not inside the bodies of conditional nodes (UNSUPPORTED).
    RONDO_EVENT_EXTERNAL = 1u << 1,
};

// Creates an event that is complete until first recorded.
//
// Errors:    INVALID (unknown flag).
// Ownership: caller destroys it. A graph that records an external event or waits for it keeps it
//            alive; a capture that Rondo did not begin does not: the event must outlive its graph.
RONDO_API RONDO_MUST_USE rondo_status rondo_event_create(rondo_device *device, uint32_t flags,
                                                         rondo_event **out_event);

// Frees the event; work that waits for it is not disturbed. NULL is fine.
//
// Threads:   safe once no call uses the event any more.
// Capture:   a place in a capture that it stood for stays what it was for who waited.
RONDO_API void rondo_event_destroy(rondo_event *event);

// Marks the present end of the stream's work. While `stream` records, the event stands for that
// place in the graph and can only be waited for by streams.
//
// RONDO_EVENT_EXTERNAL, while `stream` records: each replay records the event at this place, and
// until then the event stays what it was.
//
// Errors:    INVALID (other device), UNSUPPORTED (an external event in the body of a conditional
//            node).
RONDO_API RONDO_MUST_USE rondo_status rondo_event_record(rondo_event *event, rondo_stream *stream);

// Sets *out_is_complete to whether the work before the event has finished; never waits.
//
// Errors:    STATE (recorded in a capture).
// Capture:   not legal for an event of a capture, which it breaks, unless that is external. For
//            others it breaks captures in global mode, of any thread.
RONDO_API RONDO_MUST_USE rondo_status rondo_event_query(rondo_event *event, bool *out_is_complete);

// Waits until the work before the event has finished.
//
// Errors:    STATE (recorded in a capture).
// Capture:   as rondo_event_query.
RONDO_API RONDO_MUST_USE rondo_status rondo_event_synchronize(rondo_event *event);

// Device time between two completed RONDO_EVENT_TIMED events; negative where `end` came first.
//
// Units:     nanoseconds; CUDA's clock has steps of about half a microsecond.
//
// Errors:    INVALID (events of two devices), STATE (not recorded, not complete, not timed, or
//            recorded in a capture without RONDO_EVENT_EXTERNAL).
RONDO_API RONDO_MUST_USE rondo_status rondo_event_get_elapsed_ns(rondo_event *start,
                                                                 rondo_event *end, int64_t *out_ns);

// ---- work -------------------------------------------------------------------------------------
//
// On a stream whose capture is broken all of it fails with STATE. A failure breaks the capture that
// would lack the work (rondo/report.h).
//
// Nothing of it waits for the device, as long as the stream has room: the host backend takes 8191
// calls and replays that did not run yet, a CUDA driver some thousand launches. Then a call waits.

typedef int32_t rondo_copy_kind;
enum {
    RONDO_COPY_HOST_TO_DEVICE = 0,
    RONDO_COPY_DEVICE_TO_HOST = 1,
    RONDO_COPY_DEVICE_TO_DEVICE = 2,
};

// Copies `bytes` in stream order. The two areas must not overlap.
//
// Host memory should be pinned: a copy from pageable memory waits. While recording, pageable memory
// is refused, or as a source kept in a snapshot: see rondo_pageable_sources in rondo/graph.h.
//
// Errors:    STATE (pageable memory while recording), NO_DEVICE_MEMORY.
// Ownership: both areas are borrowed until the stream passes this point (for a graph: as long as it
//            is replayed).
// Capture:   becomes a memcpy node.
RONDO_API RONDO_MUST_USE rondo_status rondo_stream_copy(rondo_stream *stream, void *destination,
                                                        const void *source, size_t bytes,
                                                        rondo_copy_kind kind);

// Sets `count` elements of `element_bytes` (1, 2 or 4) to the low bytes of `value`, in stream
// order.
//
// Capture:   becomes a memset node.
RONDO_API RONDO_MUST_USE rondo_status rondo_stream_fill(rondo_stream *stream, void *destination,
                                                        uint32_t value, uint32_t element_bytes,
                                                        size_t count);

// A C function that runs in stream order. `arguments` points at a copy of what was passed; it is
// aligned to 16 bytes, which is the graph's in a replay: what is written there, the next replay
// sees. It must not call rondo functions on the stream's device. CUDA runs host functions one after
// another, also those of different streams: none may wait for another one.
typedef void (*rondo_host_function)(void *arguments);

// Runs `function` on the processor in stream order. On the host backend this is how kernels are
// launched.
//
// name             shown in dumps and errors; borrowed for as long as the graph lives: use a
//                  literal.
// argument_bytes   up to 4096; the bytes are copied now (for a graph: once, at capture).
//
// Threads:   one thread per stream; `function` runs on a thread of the library or the driver.
// Capture:   becomes a host node. Not in bodies of conditional nodes on CUDA (UNSUPPORTED).
RONDO_API RONDO_MUST_USE rondo_status rondo_stream_call_host(rondo_stream *stream, const char *name,
                                                             rondo_host_function function,
                                                             const void *arguments,
                                                             size_t argument_bytes);

enum {
    // The kernel waits for the work before it by itself (griddepcontrol.wait, before it touches
    // memory that others use), so it may start while that work is still running. Devices that
    // cannot do it launch as usual.
    RONDO_LAUNCH_OVERLAP = 1u << 0,
};

// One launch of a device kernel.
typedef struct rondo_launch {
    size_t struct_size;     // sizeof(rondo_launch)
    const char *name;       // shown in dumps and errors; a literal
    void *function;         // CUfunction; on the host backend a rondo_host_function
    uint32_t grid[3];       // blocks; all at least 1 (ignored on the host backend)
    uint32_t block[3];      // threads per block; all at least 1 (ignored on the host backend)
    uint32_t shared_bytes;  // dynamic shared memory
    const void *arguments;  // the kernel's parameters, packed as it lays them out; copied now
    size_t argument_bytes;  // up to 4096
    uint32_t flags;         // RONDO_LAUNCH_*; 0 for none
} rondo_launch;

// Launches a kernel in stream order.
//
// Ownership: everything in *launch is borrowed for the call only, except `name`.
// Capture:   becomes a kernel node (on the host backend a host node).
RONDO_API RONDO_MUST_USE rondo_status rondo_stream_launch(rondo_stream *stream,
                                                          const rondo_launch *launch);

RONDO_EXTERN_C_END

#endif  // RONDO_DEVICE_H

// rondo/device.h — devices, streams, events, memory, and work put on a stream.
//
// A device is a CUDA GPU ("cuda:0") or this machine's processor ("host"). Both have asynchronous
// streams, events, captures and graphs with the same meaning and the same errors.
//
// "Capture: unsafe" marks the calls that break captures in global mode, of any thread, and fail
// there (STATE); docs/captures.md explains the modes.
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

// Properties of a device, or why it is absent.
typedef struct rondo_device_info {
    size_t struct_size;     // sizeof(rondo_device_info)
    char name[32];          // what rondo_device_open takes: "host", "cuda:0"
    char description[128];  // model of the chip
    char reason[480];       // why the device cannot be used; empty when `available`
    bool available;
    uint64_t memory_bytes;
    uint64_t free_bytes;    // now; 0: not known
    int32_t compute_units;  // GPU multiprocessors, or hardware threads of the host
    int32_t arch_major;     // CUDA compute capability; 0 on the host
    int32_t arch_minor;
    int32_t driver_version;  // 1000 * major + 10 * minor of the CUDA driver API; 0 on the host
} rondo_device_info;

// Lists every device, and an unavailable entry for each backend that has none.
RONDO_API RONDO_MUST_USE rondo_status rondo_device_list(rondo_device_info *infos, size_t capacity,
                                                        size_t *out_count);

// Opens a device by name: "host", "cuda:N", or "auto" (the first usable GPU, otherwise the host).
// Opened again it is the same object, with one more reference.
//
// Errors:    INVALID (the message lists the names), UNAVAILABLE (with the reason),
//            NO_DEVICE_MEMORY.
RONDO_API RONDO_MUST_USE rondo_status rondo_device_open(const char *name,
                                                        rondo_device **out_device);

// Adds a reference.
RONDO_API void rondo_device_retain(rondo_device *device);

// Gives up a reference. Objects of the device hold their own, memory from rondo_memory_allocate
// does not: free that before.
RONDO_API void rondo_device_release(rondo_device *device);

// Fills *out_info.
RONDO_API RONDO_MUST_USE rondo_status rondo_device_get_info(rondo_device *device,
                                                            rondo_device_info *out_info);

// "host", "cuda:0"; borrowed.
RONDO_API const char *rondo_device_get_name(const rondo_device *device);

// Whether the processor reads and writes the device's memory directly.
RONDO_API bool rondo_device_is_host(const rondo_device *device);

// Waits for all work on all streams of the device.
//
// Capture:   unsafe, also for thread_local captures of its own thread; STATE while any stream of
//            the device records.
RONDO_API RONDO_MUST_USE rondo_status rondo_device_synchronize(rondo_device *device);

// What conditional nodes (rondo/control.h) need.
typedef int32_t rondo_feature;
enum {
    RONDO_FEATURE_IF = 0,
    RONDO_FEATURE_IF_ELSE = 1,
    RONDO_FEATURE_SWITCH = 2,
    RONDO_FEATURE_WHILE = 3,
    RONDO_FEATURE_HOST_IN_BODY = 4,  // host functions inside bodies
};

// OK, or UNSUPPORTED with the reason and a cure in the error record.
RONDO_API RONDO_MUST_USE rondo_status rondo_device_supports(rondo_device *device,
                                                            rondo_feature feature);

// ---- memory -----------------------------------------------------------------------------------

typedef int32_t rondo_memory_kind;
enum {
    RONDO_MEMORY_DEVICE = 0,  // of the device; on the host ordinary memory
    RONDO_MEMORY_PINNED = 1,  // host memory that the device copies without a detour
};

// Allocates uninitialised memory, aligned to 256 bytes; of 0 bytes NULL.
//
// Errors:    NO_DEVICE_MEMORY.
// Capture:   unsafe.
RONDO_API RONDO_MUST_USE rondo_status rondo_memory_allocate(rondo_device *device,
                                                            rondo_memory_kind kind, size_t bytes,
                                                            void **out_address);

// Frees memory from rondo_memory_allocate; NULL is fine, any other address: a warning.
// Work that uses it must have finished.
RONDO_API void rondo_memory_free(rondo_device *device, void *address);

// ---- streams ----------------------------------------------------------------------------------

typedef struct rondo_stream_options {
    size_t struct_size;  // sizeof(rondo_stream_options)
    int32_t priority;    // 0: the default; a busy GPU takes larger numbers first
} rondo_stream_options;

// Creates an ordered queue of work, which does not wait for CUDA's legacy default stream.
//
// Errors:    UNSUPPORTED (a priority, of a driver that has none).
RONDO_API RONDO_MUST_USE rondo_status rondo_stream_create(rondo_device *device,
                                                          const rondo_stream_options *options,
                                                          rondo_stream **out_stream);

// Uses the program's own CUstream (cudaStream_t) as a Rondo stream. While it records, the work that
// other libraries put on it is recorded, too.
//
// native     NULL: the legacy default stream, which runs work but does not record.
//
// Errors:    UNSUPPORTED (the host), INVALID (not of the device's primary context).
// Ownership: `native` outlives the result. Keep that: destroying it may wait for work.
RONDO_API RONDO_MUST_USE rondo_status rondo_stream_wrap(rondo_device *device, void *native,
                                                        rondo_stream **out_stream);

// Waits for the stream's work and frees it. A capture that it began is aborted; a capture that it
// joined keeps it to the end. Not for streams that Rondo lends to a step or body: a warning.
//
// Threads:   while it records, the thread that began the capture (docs/captures.md).
RONDO_API void rondo_stream_destroy(rondo_stream *stream);

// The stream's device; borrowed.
RONDO_API rondo_device *rondo_stream_get_device(const rondo_stream *stream);

// The CUstream behind the stream, borrowed; NULL on the host.
RONDO_API void *rondo_stream_get_native(const rondo_stream *stream);

// Waits until all work put on the stream so far has finished.
//
// Errors:    also the failure of work that ran on the stream.
// Capture:   unsafe; STATE on a stream that records, whose capture it breaks.
RONDO_API RONDO_MUST_USE rondo_status rondo_stream_synchronize(rondo_stream *stream);

// Tells whether all work has finished; never waits.
//
// Capture:   as rondo_stream_synchronize.
RONDO_API RONDO_MUST_USE rondo_status rondo_stream_query(rondo_stream *stream, bool *out_is_idle);

// Makes later work on `stream` wait for `event`, and joins `stream` to the event's capture, if any.
//
// Errors:    STATE (in a capture: the event was recorded outside of it).
RONDO_API RONDO_MUST_USE rondo_status rondo_stream_wait_event(rondo_stream *stream,
                                                              rondo_event *event);

// Tells whether the stream records; false, too, once its capture was broken.
RONDO_API RONDO_MUST_USE rondo_status rondo_stream_is_recording(rondo_stream *stream,
                                                                bool *out_is_recording);

// ---- events -----------------------------------------------------------------------------------

enum {
    RONDO_EVENT_TIMED = 1u << 0,  // it keeps a time stamp
    // In captures its records and waits are nodes, which happen at each replay, and it joins no
    // stream. Not in bodies of conditional nodes (UNSUPPORTED).
    RONDO_EVENT_EXTERNAL = 1u << 1,
};

// Creates an event that is complete until first recorded. `flags` are RONDO_EVENT_*, or 0.
//
// Ownership: graphs that Rondo captured keep the external events that they use.
RONDO_API RONDO_MUST_USE rondo_status rondo_event_create(rondo_device *device, uint32_t flags,
                                                         rondo_event **out_event);

// Frees the event; streams that already wait for it are not disturbed.
RONDO_API void rondo_event_destroy(rondo_event *event);

// Marks the present end of the stream's work. While `stream` records, the event stands for that
// place in the graph and can only be waited for by streams.
RONDO_API RONDO_MUST_USE rondo_status rondo_event_record(rondo_event *event, rondo_stream *stream);

// Tells whether the work before the event has finished; never waits.
//
// Capture:   unsafe; STATE for an event of a capture, which it breaks. External ones are of none.
RONDO_API RONDO_MUST_USE rondo_status rondo_event_query(rondo_event *event, bool *out_is_complete);

// Waits until the work before the event has finished.
//
// Capture:   as rondo_event_query.
RONDO_API RONDO_MUST_USE rondo_status rondo_event_synchronize(rondo_event *event);

// Device time between two timed events; negative where `end` came first.
//
// Errors:    STATE (not timed, not complete, or of a capture and not external).
RONDO_API RONDO_MUST_USE rondo_status rondo_event_get_elapsed_ns(rondo_event *start,
                                                                 rondo_event *end, int64_t *out_ns);

// ---- work -------------------------------------------------------------------------------------
//
// While the stream records, each call becomes a node. One that fails breaks the capture, which
// would lack it; then all fail with STATE. None waits while the stream has room (some thousands).

typedef int32_t rondo_copy_kind;
enum {
    RONDO_COPY_HOST_TO_DEVICE = 0,
    RONDO_COPY_DEVICE_TO_HOST = 1,
    RONDO_COPY_DEVICE_TO_DEVICE = 2,
};

// Copies `bytes` in stream order; the areas must not overlap. Host memory should be pinned: a copy
// from pageable memory waits.
//
// Errors:    NO_DEVICE_MEMORY.
// Ownership: both areas stay until the copy has run; for a graph, as long as it is replayed.
// Capture:   STATE for pageable memory, unless it is snapshotted: rondo_pageable_sources.
RONDO_API RONDO_MUST_USE rondo_status rondo_stream_copy(rondo_stream *stream, void *destination,
                                                        const void *source, size_t bytes,
                                                        rondo_copy_kind kind);

// Sets `count` elements of `element_bytes` (1, 2 or 4) to the low bytes of `value`; the address is
// a multiple of that.
RONDO_API RONDO_MUST_USE rondo_status rondo_stream_fill(rondo_stream *stream, void *destination,
                                                        uint32_t value, uint32_t element_bytes,
                                                        size_t count);

// A C function that runs in stream order, on a thread of the library or the driver. It gets a copy
// of the arguments, aligned to 16 bytes; what it writes there the next replay sees. It calls no
// rondo function on that device and waits for no other host function: CUDA runs them one by one.
typedef void (*rondo_host_function)(void *arguments);

// Runs `function` on the processor in stream order.
//
// name             for dumps and errors; not copied: a literal.
// argument_bytes   up to 4096, copied now.
//
// Capture:   UNSUPPORTED in bodies of conditional nodes on CUDA.
RONDO_API RONDO_MUST_USE rondo_status rondo_stream_call_host(rondo_stream *stream, const char *name,
                                                             rondo_host_function function,
                                                             const void *arguments,
                                                             size_t argument_bytes);

enum {
    // The kernel may start while the work before it runs; it waits itself (griddepcontrol.wait).
    RONDO_LAUNCH_OVERLAP = 1u << 0,
    // `arguments` are one parameter: a struct aligned to more than 16 bytes, say for a CUtensorMap.
    RONDO_LAUNCH_ONE_PARAMETER = 1u << 1,
    RONDO_LAUNCH_COOPERATIVE = 1u << 2,  // all blocks at once: they may wait for each other
};

// One launch of a device kernel.
typedef struct rondo_launch {
    size_t struct_size;     // sizeof(rondo_launch)
    const char *name;       // for dumps and errors; not copied: a literal
    void *function;         // CUfunction; on the host (void *)rondo_host_function
    uint32_t grid[3];       // blocks, at least 1; the host ignores both
    uint32_t block[3];      // threads of a block, at least 1
    uint32_t shared_bytes;  // dynamic shared memory
    const void *arguments;  // packed as the kernel has them; copied now
    size_t argument_bytes;  // up to 4096
    uint32_t flags;         // RONDO_LAUNCH_*; 0 for none
    uint32_t cluster[3];    // blocks of a cluster, which divide the grid; zeroes: none
    int32_t priority;       // in a graph, as of streams; 0: the stream's
} rondo_launch;

// Launches a kernel in stream order.
RONDO_API RONDO_MUST_USE rondo_status rondo_stream_launch(rondo_stream *stream,
                                                          const rondo_launch *launch);

RONDO_EXTERN_C_END

#endif  // RONDO_DEVICE_H

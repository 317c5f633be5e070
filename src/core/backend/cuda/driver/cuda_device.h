// backend/cuda/driver/cuda_device.h — a CUDA device and its context.
//
// Each object embeds the common head of backend/backend.h. A device stands for the GPU's primary
// context, the one the runtime API, PyTorch and CuPy use too, so foreign streams and addresses are
// at home in it. Every entry that needs a current context brackets its driver calls with
// rondo__cuda_enter and rondo__cuda_leave; where the context is current already, as it is on a hot
// path, that is one thread-local read.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/backend.h"
#include "backend/cuda/compile/compile_ahead.h"
#include "backend/cuda/driver/cuda_api.h"
#include "backend/cuda/driver/cuda_error.h"
#include "base/hash.h"

// A constant text that kernels are made of.
typedef struct rondo__cuda_text {
    const char *text;
    rondo__hash128 hash;
} rondo__cuda_text;

// A loaded module and the text it came from, by content.
// A kernel of a module that was asked for; its attributes are set.
typedef struct rondo__cuda_found {
    char *name;
    rondo__cu_function function;
} rondo__cuda_found;

typedef struct rondo__cuda_module {
    rondo__hash128 key;
    rondo__cuda_found *found;
    size_t found_count, found_capacity;
    rondo__hash128 file_key;  // with the compiler's version: of the disk cache; zero: none
    rondo__cu_module module;
    rondo__cuda_image image;  // where there is no disk cache; empty otherwise
} rondo__cuda_module;

// A host function waiting for its turn on a stream, with its copy of the arguments behind it.
typedef struct rondo__cuda_host_call rondo__cuda_host_call;

// A capture begun here and not ended: what the driver will not tell when it fails.
typedef struct rondo__cuda_capture rondo__cuda_capture;

// Whether this device reaches the memory of another one; see cuda_peer.c.
typedef struct rondo__cuda_peer {
    uint64_t serial;  // of the other; 0: not asked yet
    bool is_reached;
} rondo__cuda_peer;

enum {
    RONDO__CUDA_PEERS_MAX = 32,   // where there are more, some are asked again
    RONDO__CUDA_SCRATCH_MAX = 56  // each twice as large as the one before
};

struct rondo__cuda_device {
    rondo_device head;
    uint64_t serial;  // never used twice in the process
    const rondo__cuda_api *api;
    rondo__cu_device ordinal;
    rondo__cu_context context;   // primary, retained
    int32_t arch;                // 10 * major + minor
    atomic_bool has_priorities;  // a stream of another priority than 0 was made or wrapped
    int32_t shared_bytes_max;    // dynamic shared memory a block may ask for
    pthread_mutex_t lock;
    rondo__cuda_module *modules;  // guarded by lock
    size_t module_count;          // guarded by lock
    size_t module_capacity;       // guarded by lock
    uint32_t *module_table;       // places among them and 1, by key; 0: free; guarded by lock
    size_t module_table_size;     // a power of two, or 0
    rondo__cuda_text *texts;      // guarded by lock; so are their numbers
    size_t text_count, text_capacity;
    rondo__compile_ahead *ahead;
    // For cuda_patch.c. It is a lock of its own: cuda_patch.c calls the driver under it, the driver
    // may hold its own lock while it runs a host function, and that function takes the lock above.
    pthread_mutex_t scratch_lock;
    rondo__cu_address scratch[RONDO__CUDA_SCRATCH_MAX];
    size_t scratch_count;
    uint64_t scratch_bytes;                // of the last one
    rondo__cuda_host_call *pending_calls;  // eager host calls not yet run; guarded by lock
    rondo__cu_function condition;          // the kernel of cuda_conditional.c; guarded by lock
    rondo__cuda_peer peers[RONDO__CUDA_PEERS_MAX];  // by ordinal; guarded by lock
    // Guards what follows, and is held where a stream begins to record, joins or ends a capture,
    // where the driver is asked about one, and where a thread records an event on a stream of
    // another one: the driver (580) crashes when a capture ends meanwhile, and an event that lands
    // in a capture stands for nothing.
    pthread_mutex_t capture_lock;
    rondo__cuda_capture *captures;
    int wait_count;                    // threads that wait for the whole device
    pthread_cond_t has_waited;         // one less of them
    uint64_t last_capture;             // serial of the latest capture
    rondo__cuda_capture *lost_bodies;  // see cuda_body.c; where there are any, the context must
                                       // outlive the device
};

static inline rondo__cuda_device *rondo__cuda_device_of(rondo_device *device) {
    return (rondo__cuda_device *)device;
}

static inline rondo__cu_stream rondo__cuda_native_stream(const rondo_stream *stream) {
    return (rondo__cu_stream)stream->native;
}

// Whether a launch may begin before the one in front of it has finished.
static inline bool rondo__cuda_overlaps(const rondo__cuda_device *device) {
    return (device->api->capabilities & RONDO__CUDA_CAN_OVERLAP_LAUNCHES) != 0 &&
           device->arch >= 90;
}

// ---- context ----------------------------------------------------------------------------------

// Makes the device's context current when it is not; the slow half of rondo__cuda_enter.
//
// Errors:    DRIVER, LOST.
// Threads:   safe.
RONDO_MUST_USE rondo_status rondo__cuda_push_context(rondo__cuda_device *device);

// Selects the device for this thread until rondo__cuda_leave.
//
// Errors:    DRIVER, LOST.
// Threads:   safe.
static inline rondo_status rondo__cuda_enter(rondo__cuda_device *device, bool *out_was_pushed) {
    rondo__cu_context current = NULL;
    if (device->api->cuCtxGetCurrent(&current) == RONDO__CU_SUCCESS && current == device->context) {
        *out_was_pushed = false;
        return RONDO_STATUS_OK;
    }
    rondo_status status = rondo__cuda_push_context(device);
    *out_was_pushed = status == RONDO_STATUS_OK;
    return status;
}

// True when launches into the stream, the begin and end of a capture on it and questions about that
// need no current context: the driver takes the stream's own. The default streams (NULL, legacy,
// per-thread) are whatever the current context says. Measured on driver 580 with no context and
// with another one current; a driver that does want the context says so
// (rondo__cuda_wants_context) before it does anything, and is then asked again inside it.
static inline bool rondo__cuda_knows_context(const rondo_stream *stream) {
    return (uintptr_t)stream->native > 2;
}
static inline bool rondo__cuda_wants_context(rondo__cu_result code) {
    return code == RONDO__CU_ERROR_INVALID_CONTEXT || code == RONDO__CU_ERROR_INVALID_HANDLE;
}

// The same for clean-up, which goes on when the context cannot be selected: most handles know their
// context anyway, and keeping the object would be a leak for certain.
static inline void rondo__cuda_enter_cleanup(rondo__cuda_device *device, bool *out_was_pushed) {
    if (rondo__cuda_enter(device, out_was_pushed) != RONDO_STATUS_OK) {
        *out_was_pushed = false;
    }
}

// Lets this thread make calls that captures forbid: what they forbid to Rondo's own calls was
// checked before (capture/forbid.h), and none of these touches what is recorded. Returns what to
// give back to the second.
int rondo__cuda_relax(const rondo__cuda_device *device);
void rondo__cuda_restore(const rondo__cuda_device *device, int mode);

static inline void rondo__cuda_leave(rondo__cuda_device *device, bool was_pushed) {
    if (was_pushed) {
        rondo__cu_context popped = NULL;
        (void)device->api->cuCtxPopCurrent(&popped);
    }
}

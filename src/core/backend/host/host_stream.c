// backend/host/host_stream.c — ordered asynchronous work: a ring of commands and one worker
// thread.
//
//   submitting thread                                   worker thread
//   -----------------                                   -------------
//   submit: write [run|bytes|arguments...]  --ring-->   run(arguments), in order
//   publish: published = submitted          ------->    while position != published
//   wait: sleep on the lane                 <-------    lane.completed = position
//
// The ring holds the commands with their arguments inline, so putting work on a stream copies the
// arguments once and never touches the heap. Positions are byte counts that only grow; a command
// never wraps around the end (a filler takes the rest). When the ring is full, submitting waits, as
// a driver's queue does.
//
// Hand-over. The worker spins for a while after its last command, since in a run of small ops the
// next one is under way; then it sleeps. How long it spins adapts: a spin that met work doubles the
// next one, a spin in vain halves it. The submitter wakes it only if it said that it sleeps. Both
// sides use sequentially consistent accesses there, so that either the worker sees the new position
// or the submitter sees the sleeper.
//
// The thread is started by the first command: a stream that only ever records costs no thread.
//
// Turned down: a shared pool of workers, in which the ops of other streams could delay an op.
// SPDX-License-Identifier: Apache-2.0

#include <stdio.h>
#include <string.h>

#include "backend/backend.h"
#include "backend/host/host_capture.h"
#include "backend/host/host_device.h"
#include "backend/host/host_stream.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/futex.h"
#include "base/memory.h"
#include "base/thread.h"
#include "base/thread_count.h"

enum {
    RING_BYTES = 256 * 1024,  // a power of two
    COMMAND_ALIGNMENT = 16,
    SPIN_NS_MIN = 1000,
    SPIN_NS_MAX = 30000,
    SPINS_PER_LOOK = 16,  // at the clock
};

// run == NULL: a filler of `bytes` bytes, or, when bytes is 0, the end of the worker.
typedef struct host_command {
    void (*run)(void *arguments);
    uint64_t bytes;  // of the whole command
} host_command;

_Static_assert(sizeof(host_command) == COMMAND_ALIGNMENT, "arguments follow aligned to 16");

static host_command *command_at(rondo__host_stream *stream, uint64_t position) {
    void *address = stream->ring + (position & (RING_BYTES - 1));
    return address;
}

// ---- the worker -------------------------------------------------------------------------------

// Returns a position beyond `position`, spinning for *spin_ns at most, then sleeping.
static uint64_t wait_for_work(rondo__host_stream *stream, uint64_t position, uint64_t *spin_ns) {
    uint64_t published = atomic_load_explicit(&stream->published, memory_order_acquire);
    if (published != position) {
        return published;
    }
    if (rondo__host_get_processor_count() > 1) {
        uint64_t start = rondo__clock_now_ns();
        do {
            for (int i = 0; i < SPINS_PER_LOOK; ++i) {
                rondo__cpu_relax();
                published = atomic_load_explicit(&stream->published, memory_order_acquire);
                if (published != position) {
                    *spin_ns = *spin_ns * 2 < SPIN_NS_MAX ? *spin_ns * 2 : SPIN_NS_MAX;
                    return published;
                }
            }
        } while (rondo__clock_now_ns() - start < *spin_ns);
        *spin_ns = *spin_ns / 2 > SPIN_NS_MIN ? *spin_ns / 2 : SPIN_NS_MIN;
    }
    for (;;) {
        atomic_store(&stream->is_asleep, 1);
        published = atomic_load(&stream->published);
        if (published != position) {
            atomic_store(&stream->is_asleep, 0);
            return published;
        }
        rondo__futex_wait(&stream->is_asleep, 1);
    }
}

static void *run_worker(void *argument) {
    rondo__host_stream *stream = argument;
    rondo__host_lane *lane = stream->lane;
    uint64_t position = 0;
    uint64_t spin_ns = SPIN_NS_MAX;
    rondo__failure_enter(&lane->failure);
    rondo__workers_set_home(rondo__host_device_of(stream->head.device)->workers);
    for (;;) {
        uint64_t end = wait_for_work(stream, position, &spin_ns);
        while (position != end) {
            host_command *command = command_at(stream, position);
            if (command->run == NULL) {
                if (command->bytes == 0) {
                    return NULL;
                }
                position += command->bytes;
                continue;
            }
            command->run(command + 1);
            position += command->bytes;
            rondo__host_lane_complete(lane, position);
        }
    }
}

static rondo_status start_worker(rondo__host_stream *stream) {
    char name[16];
    snprintf(name, sizeof name, "rondo-s%u", (unsigned)(stream->head.number % 100000u));
    RETURN_IF_ERROR(rondo__thread_start(name, run_worker, stream, &stream->worker));
    stream->has_worker = true;
    return RONDO_STATUS_OK;
}

// ---- submitting -------------------------------------------------------------------------------

// Waits until `bytes` more fit behind the submitted ones.
static void wait_for_room(rondo__host_stream *stream, uint64_t bytes) {
    uint64_t end = stream->submitted + bytes;
    if (end - stream->known_completed <= RING_BYTES) {
        return;
    }
    if (!rondo__host_lane_has_passed(stream->lane, end - RING_BYTES)) {
        rondo__host_publish(stream);
        rondo__host_lane_wait(stream->lane, end - RING_BYTES);
    }
    stream->known_completed = atomic_load_explicit(&stream->lane->completed, memory_order_acquire);
}

rondo_status rondo__host_submit(rondo__host_stream *stream, void (*run)(void *),
                                size_t argument_bytes, void **out_arguments) {
    if (!stream->has_worker) {
        RETURN_IF_ERROR(start_worker(stream));
    }
    uint64_t bytes =
        sizeof(host_command) + rondo__align_up(argument_bytes, (size_t)COMMAND_ALIGNMENT);
    uint64_t rest = RING_BYTES - (stream->submitted & (RING_BYTES - 1));
    if (rest < bytes) {
        wait_for_room(stream, rest);
        *command_at(stream, stream->submitted) = (host_command){.bytes = rest};
        stream->submitted += rest;
    }
    wait_for_room(stream, bytes);
    host_command *command = command_at(stream, stream->submitted);
    *command = (host_command){.run = run, .bytes = bytes};
    stream->submitted += bytes;
    *out_arguments = command + 1;
    return RONDO_STATUS_OK;
}

void rondo__host_publish(rondo__host_stream *stream) {
    atomic_store(&stream->published, stream->submitted);
    if (atomic_load(&stream->is_asleep) != 0 && atomic_exchange(&stream->is_asleep, 0) != 0) {
        rondo__futex_wake_one(&stream->is_asleep);
    }
}

typedef struct wait_arguments {
    rondo__host_lane *lane;  // retained
    uint64_t position;
} wait_arguments;

static void run_wait(void *data) {
    wait_arguments *arguments = data;
    rondo__host_lane_wait(arguments->lane, arguments->position);
    rondo__host_lane_release(arguments->lane);
}

rondo_status rondo__host_submit_wait(rondo__host_stream *stream, rondo__host_lane *lane,
                                     uint64_t position) {
    if (lane == stream->lane || rondo__host_lane_has_passed(lane, position)) {
        return RONDO_STATUS_OK;
    }
    void *room;
    RETURN_IF_ERROR(rondo__host_submit(stream, run_wait, sizeof(wait_arguments), &room));
    wait_arguments *arguments = room;
    arguments->lane = rondo__host_lane_retain(lane);
    arguments->position = position;
    rondo__host_publish(stream);
    return RONDO_STATUS_OK;
}

// ---- the table's entries ----------------------------------------------------------------------

rondo_status rondo__host_create_stream(rondo_device *device_, int32_t priority,
                                       rondo_stream **out_stream) {
    (void)priority;  // all threads of a processor are alike
    rondo__host_device *device = rondo__host_device_of(device_);
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    rondo__host_stream *stream = rondo__calloc_lines(sizeof *stream);
    if (stream == NULL) {
        return status;
    }
    stream->head.device = device_;
    stream->lane = rondo__host_lane_create();
    if (stream->lane == NULL) {
        goto free_stream;
    }
    stream->ring = rondo__malloc_aligned(RING_BYTES, RONDO__CACHE_LINE_BYTES);
    if (stream->ring == NULL) {
        goto release_lane;
    }
    pthread_mutex_lock(&device->lock);
    stream->next = device->streams;
    if (stream->next != NULL) {
        stream->next->previous = stream;
    }
    device->streams = stream;
    pthread_mutex_unlock(&device->lock);
    *out_stream = &stream->head;
    return RONDO_STATUS_OK;

release_lane:
    rondo__host_lane_release(stream->lane);
free_stream:
    rondo__free(stream);
    return status;
}

static void stop_worker(rondo__host_stream *stream) {
    // Room for the end mark: a full ring is waited for.
    wait_for_room(stream, sizeof(host_command));
    *command_at(stream, stream->submitted) = (host_command){0};
    stream->submitted += sizeof(host_command);
    rondo__host_publish(stream);
    pthread_join(stream->worker, NULL);
    // The mark itself counts as passed for later questions to the lane.
    rondo__host_lane_complete(stream->lane, stream->submitted);
}

bool rondo__host_destroy_stream(rondo_stream *stream_) {
    rondo__host_stream *stream = (rondo__host_stream *)stream_;
    rondo__host_device *device = rondo__host_device_of(stream_->device);
    pthread_mutex_lock(&device->capture_lock);
    rondo__host_capture_leave(stream);
    pthread_mutex_unlock(&device->capture_lock);
    pthread_mutex_lock(&device->lock);
    if (stream->previous != NULL) {
        stream->previous->next = stream->next;
    } else {
        device->streams = stream->next;
    }
    if (stream->next != NULL) {
        stream->next->previous = stream->previous;
    }
    pthread_mutex_unlock(&device->lock);
    if (stream->has_worker) {
        stop_worker(stream);
    }
    rondo__host_lane_release(stream->lane);
    rondo__free(stream->ring);
    rondo__free(stream->frontier);
    rondo__free(stream);
    return true;
}

rondo_status rondo__host_drain_stream(rondo_stream *stream_) {
    rondo__host_stream *stream = (rondo__host_stream *)stream_;
    // `published`, not `submitted`: a thread that destroys a graph may wait here, too.
    rondo__host_lane_wait(stream->lane, atomic_load(&stream->published));
    return rondo__failure_take(&stream->lane->failure);
}

rondo_status rondo__host_synchronize_stream(rondo_stream *stream_) {
    rondo__host_stream *stream = (rondo__host_stream *)stream_;
    RETURN_IF_ERROR(rondo__host_lane_wait_outside(stream->lane, atomic_load(&stream->published)));
    return rondo__failure_take(&stream->lane->failure);
}

rondo_status rondo__host_query_stream(rondo_stream *stream_, bool *out_is_idle) {
    rondo__host_stream *stream = (rondo__host_stream *)stream_;
    *out_is_idle = rondo__host_lane_has_passed(stream->lane, atomic_load(&stream->published));
    return RONDO_STATUS_OK;
}

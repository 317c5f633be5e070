// random/generator_state.c — generators: their state in device memory, and the order of its uses.
//
//      device memory:  seed | offset                       host:  pending, start, is_dirty
//                             ^        ^        ^
//      eager ops read it:  op: +0   op: +3   op: +7        pending counts what they took: 9
//      flush:              offset += pending               pending = 0
//      a graph's ops:      op: +0   op: +5  ... and, as its last node: offset += 8
//
// The truth is in device memory, because only the device knows how often a graph's conditional
// bodies ran. Eager ops are launched with their distance from the offset, so they write nothing. A
// replayed graph counts its distances from 0; so what eager ops took must be added to the offset
// first: a flush, one tiny launch, which only the first replay after eager ops makes. A new seed is
// only noted by the host, and written by the next use.
//
// Order. The generator remembers the stream of its last use. A use on another stream first makes
// that stream wait for the last one, by an event put there now (device/stream_tag.c). So all uses
// run in the order of their calls. On a single stream that is one comparison.
//
// Threads. A generator is used by one thread at a time. `user` is the number of the thread that is
// inside a call, or between the look before a replay and its launch; another thread's call finds it
// there and is refused. No thread waits.
//
// A replay on the stream of the last replay costs one exchange of that word and one comparison:
// `settled_stream` is set to 0 by every use that the next replay has to prepare for.
//
// Turned down: the offset as an argument of the launch (a replay repeats it); the offset kept by
// the host and written before each replay, as PyTorch does (two launches per replay and generator,
// and no conditional bodies); an event recorded by each use (a driver call each, and more than the
// whole cost of a replay); locks, so that threads may share a generator (a generator for each
// thread is one call).
// SPDX-License-Identifier: Apache-2.0
#include "random/generator_state.h"

#include "backend/check.h"
#include "base/memory.h"
#include "base/thread.h"
#include "base/use_count.h"
#include "core_cu_sources.h"
#include "device/device.h"
#include "device/stream_tag.h"

static atomic_uint last_generator_number;

// ---- life -------------------------------------------------------------------------------------

static rondo_status get_functions(rondo_generator *generator) {
    static const char *const options[] = {"--fmad=false"};
    for (int i = 0; i < RONDO__RANDOM_KERNEL_COUNT; ++i) {
        if (rondo_device_is_host(generator->device)) {
            union {
                rondo_host_function function;
                void *address;
            } target = {.function = rondo__random_get_host_function((rondo__random_kernel)i)};
            generator->functions[i] = target.address;
        } else {
            RETURN_IF_ERROR(rondo__device_get_function(generator->device, rondo__cu_random, options,
                                                       1, rondo__random_kernel_names[i],
                                                       &generator->functions[i]));
        }
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo_generator_create(rondo_device *device, uint64_t seed,
                                    rondo_generator **out_generator) {
    RETURN_IF_ERROR(rondo__check_pointer(out_generator, __func__, "out_generator"));
    *out_generator = NULL;
    RETURN_IF_ERROR(rondo__check_device(device, __func__));
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    rondo_generator *generator = rondo__calloc(1, sizeof *generator);
    if (generator == NULL) {
        return status;
    }
    generator->device = device;
    generator->number = atomic_fetch_add(&last_generator_number, 1) + 1;
    atomic_init(&generator->user, 0);
    status = get_functions(generator);
    if (status != RONDO_STATUS_OK) {
        goto free_generator;
    }
    void *state = NULL;
    status = rondo_memory_allocate(device, RONDO_MEMORY_DEVICE, 2 * sizeof(uint64_t), &state);
    if (status != RONDO_STATUS_OK) {
        goto free_generator;
    }
    status = rondo_event_create(device, 0, &generator->event);
    if (status != RONDO_STATUS_OK) {
        goto free_state;
    }
    generator->state = state;
    generator->start.seed = seed;
    generator->is_dirty = true;
    atomic_init(&generator->reference_count, 1);
    rondo_device_retain(device);
    *out_generator = generator;
    return RONDO_STATUS_OK;

free_state:
    rondo_memory_free(device, state);
free_generator:
    rondo__free(generator);
    return status;
}

void rondo_generator_retain(rondo_generator *generator) {
    if (generator != NULL) {
        rondo__reference_take(&generator->reference_count);
    }
}

void rondo_generator_release(rondo_generator *generator) {
    if (generator == NULL || atomic_load(&generator->device->is_forked) ||
        !rondo__reference_drop(&generator->reference_count)) {
        return;
    }
    if (generator->last_stream != NULL) {
        (void)rondo__stream_tag_wait_at_any_price(generator->last_stream);
    }
    rondo__stream_tag_release(generator->last_stream);
    rondo_stream_destroy(generator->reader);
    rondo_event_destroy(generator->event);
    rondo_memory_free(generator->device, generator->read_words);
    rondo_memory_free(generator->device, generator->state);
    rondo_device_release(generator->device);
    rondo__free(generator);
}

// ---- one thread at a time ---------------------------------------------------------------------

rondo_status rondo__generator_enter(rondo_generator *generator, const char *call) {
    const uint64_t self = rondo__thread_get_number();
    uint64_t user = 0;
    if (__builtin_expect(
            !atomic_compare_exchange_strong_explicit(&generator->user, &user, self,
                                                     memory_order_acquire, memory_order_relaxed),
            0) &&
        user != self) {
        return RONDO_FAIL_AS(call, STATE,
                             "thread %llu uses generator %u at this moment, and a generator is "
                             "used by one thread at a time; create one for each thread",
                             (unsigned long long)user, (unsigned)generator->number);
    }
    ++generator->depth;
    return RONDO_STATUS_OK;
}

void rondo__generator_leave(rondo_generator *generator) {
    if (--generator->depth == 0) {
        atomic_store_explicit(&generator->user, 0, memory_order_release);
    }
}

// ---- one stream after the other ---------------------------------------------------------------

// Later work on `stream` comes after the last use, and becomes the last use itself.
static rondo_status move_to(rondo_generator *generator, rondo_stream *stream) {
    if (generator->last_stream == stream->tag) {
        return RONDO_STATUS_OK;
    }
    if (generator->last_stream != NULL) {
        RETURN_IF_ERROR(rondo__stream_tag_follow(stream, generator->last_stream, generator->event));
    }
    rondo__stream_tag_release(generator->last_stream);
    generator->last_stream = rondo__stream_tag_watch(stream);
    return RONDO_STATUS_OK;
}

// ---- writing ----------------------------------------------------------------------------------

static rondo_status launch_single(const rondo_generator *generator, rondo_stream *stream,
                                  rondo__random_kernel kernel, const void *arguments,
                                  size_t argument_bytes) {
    const rondo_launch launch = {.struct_size = sizeof launch,
                                 .name = rondo__random_kernel_names[kernel],
                                 .function = generator->functions[kernel],
                                 .grid = {1, 1, 1},
                                 .block = {1, 1, 1},
                                 .arguments = arguments,
                                 .argument_bytes = argument_bytes};
    return rondo_stream_launch(stream, &launch);
}

rondo_status rondo__generator_launch_advance(const rondo_generator *generator, rondo_stream *stream,
                                             uint64_t count) {
    const rondo__random_advance_arguments arguments = {.state = generator->state, .count = count};
    return launch_single(generator, stream, RONDO__RANDOM_ADVANCE, &arguments, sizeof arguments);
}

// Writes a new seed on the stream of the last use.
static rondo_status write_start(rondo_generator *generator, rondo_stream *stream) {
    const rondo__random_set_arguments arguments = {.state = generator->state,
                                                   .seed = generator->start.seed,
                                                   .offset = generator->start.offset};
    RETURN_IF_ERROR(
        launch_single(generator, stream, RONDO__RANDOM_SET, &arguments, sizeof arguments));
    generator->is_dirty = false;
    generator->pending = 0;
    return RONDO_STATUS_OK;
}

rondo_status rondo__generator_follow(rondo_generator *generator, rondo_stream *stream) {
    RETURN_IF_ERROR(move_to(generator, stream));
    generator->settled_stream = 0;
    return generator->is_dirty ? write_start(generator, stream) : RONDO_STATUS_OK;
}

rondo_status rondo__generator_settle(rondo_generator *generator, rondo_stream *stream) {
    if (generator->settled_stream == stream->number) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(move_to(generator, stream));
    if (generator->is_dirty) {
        RETURN_IF_ERROR(write_start(generator, stream));
    } else if (generator->pending > 0) {
        RETURN_IF_ERROR(rondo__generator_launch_advance(generator, stream, generator->pending));
        generator->pending = 0;
    }
    ++generator->epoch;
    generator->settled_stream = stream->number;
    return RONDO_STATUS_OK;
}

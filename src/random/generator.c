// random/generator.c — generators: their state in device memory, and the order of its uses.
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
// first: a flush, one tiny launch, made by the first replay after eager ops and by nobody else. A
// new seed is only noted by the host, and written by the next use.
//
// Order. Eager ops only read the state and may run side by side on any streams. A write (flush, new
// seed, replay) must come after the reads so far and before the later ones. The generator therefore
// remembers which streams read the state since the last write, and who wrote; a write on one stream
// makes it wait for the others, by an event put on them then (backend/stream_tag.c). On a single
// stream all that is a look at a list of one.
//
// Threads. What the host says of the state holds only in the order in which work reaches the
// streams, so the lock is held until it has: an eager op's launch, and a replay from where it is
// prepared to where it was launched. Whoever comes meanwhile waits, and then finds that work on its
// stream.
//
//      thread 1, stream A:   [ prepare   launch ]
//      thread 2, stream B:        lock ..........[ event on A, wait, launch ]
//
// On one stream a replay costs one lock for all generators of the graph (generator_group.c) and a
// comparison for each: `settled_stream`, the stream on which the state was written last, is set to
// 0 by every other use.
//
// What was rejected: the offset as an argument of the launch (a replay repeats it); the offset kept
// by the host and written before each replay, as PyTorch does (two launches per replay and
// generator, and no conditional bodies); an event recorded by each use (a driver call each, and
// more than the whole cost of a replay); an atomic word instead of the lock (between the look and
// the launch another thread's work could come in, and both would draw the same numbers).
#include "backend/blame.h"
#include "backend/check.h"
#include "base/error.h"
#include "base/memory.h"
#include "cu_sources.h"
#include "random/random_internal.h"

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
    generator->own_group = rondo__random_group_create(generator->number);
    if (generator->own_group == NULL) {
        goto free_generator;
    }
    atomic_init(&generator->group, generator->own_group);
    status = get_functions(generator);
    if (status != RONDO_STATUS_OK) {
        goto free_group;
    }
    void *state = NULL;
    status = rondo_memory_allocate(device, RONDO_MEMORY_DEVICE, 2 * sizeof(uint64_t), &state);
    if (status != RONDO_STATUS_OK) {
        goto free_group;
    }
    status = rondo_event_create(device, 0, &generator->event);
    if (status != RONDO_STATUS_OK) {
        goto free_state;
    }
    generator->state = state;
    generator->start.seed = seed;
    generator->is_dirty = true;
    atomic_init(&generator->reference_count, 1);
    pthread_mutex_init(&generator->reader_lock, NULL);
    rondo_device_retain(device);
    *out_generator = generator;
    return RONDO_STATUS_OK;

free_state:
    rondo_memory_free(device, RONDO_MEMORY_DEVICE, state);
free_group:
    rondo__random_group_release(generator->own_group);
free_generator:
    rondo__free(generator);
    return status;
}

void rondo_generator_retain(rondo_generator *generator) {
    if (generator != NULL) {
        atomic_fetch_add_explicit(&generator->reference_count, 1, memory_order_relaxed);
    }
}

static void forget_users(rondo_generator *generator) {
    for (size_t i = 0; i < generator->user_count; ++i) {
        rondo__stream_tag_release(generator->users[i].tag);
    }
    generator->user_count = 0;
}

void rondo_generator_release(rondo_generator *generator) {
    if (generator == NULL || atomic_load(&generator->device->is_forked) ||
        atomic_fetch_sub_explicit(&generator->reference_count, 1, memory_order_acq_rel) != 1) {
        return;
    }
    for (size_t i = 0; i < generator->user_count; ++i) {
        (void)rondo__stream_tag_wait_at_any_price(generator->users[i].tag);
    }
    forget_users(generator);
    rondo_stream_destroy(generator->reader);
    rondo_event_destroy(generator->event);
    rondo_memory_free(generator->device, RONDO_MEMORY_PINNED, generator->read_words);
    rondo_memory_free(generator->device, RONDO_MEMORY_DEVICE, generator->state);
    pthread_mutex_destroy(&generator->reader_lock);
    rondo__random_group_release(generator->own_group);
    rondo__free(generator->users);
    rondo_device_release(generator->device);
    rondo__free(generator);
}

uint32_t rondo_generator_get_number(const rondo_generator *generator) {
    return generator != NULL ? generator->number : 0;
}

// ---- order ------------------------------------------------------------------------------------

static rondo_status reserve_user(rondo_generator *generator) {
    void *users = generator->users;
    rondo_status status = rondo__array_reserve(&users, &generator->user_capacity,
                                               generator->user_count + 1, sizeof *generator->users);
    generator->users = users;
    return status;
}

// Leaves out streams that are gone: their work was waited for.
static void drop_finished(rondo_generator *generator) {
    size_t kept = 0;
    for (size_t i = 0; i < generator->user_count; ++i) {
        if (rondo__stream_tag_is_done(generator->users[i].tag)) {
            rondo__stream_tag_release(generator->users[i].tag);
        } else {
            generator->users[kept++] = generator->users[i];
        }
    }
    generator->user_count = kept;
}

// `stream` is about to read the state.
static rondo_status add_reader(rondo_generator *generator, rondo_stream *stream) {
    for (size_t i = 0; i < generator->user_count; ++i) {
        if (generator->users[i].number == stream->number) {
            return RONDO_STATUS_OK;
        }
    }
    drop_finished(generator);
    RETURN_IF_ERROR(reserve_user(generator));
    if (generator->user_count > 0 && generator->users[0].is_writer) {
        RETURN_IF_ERROR(
            rondo__stream_tag_follow(stream, generator->users[0].tag, generator->event));
    }
    generator->users[generator->user_count++] =
        (rondo__random_user){.tag = rondo__stream_tag_watch(stream), .number = stream->number};
    return RONDO_STATUS_OK;
}

// `stream` is about to write the state: it waits for all other users.
static rondo_status prepare_write(rondo_generator *generator, rondo_stream *stream) {
    drop_finished(generator);
    RETURN_IF_ERROR(reserve_user(generator));
    for (size_t i = 0; i < generator->user_count; ++i) {
        RETURN_IF_ERROR(
            rondo__stream_tag_follow(stream, generator->users[i].tag, generator->event));
    }
    return RONDO_STATUS_OK;
}

static void note_write(rondo_generator *generator, rondo_stream *stream) {
    rondo__stream_tag *tag = rondo__stream_tag_watch(stream);
    forget_users(generator);
    generator->users[generator->user_count++] =
        (rondo__random_user){.tag = tag, .number = stream->number, .is_writer = true};
}

// ---- writing ----------------------------------------------------------------------------------

static rondo_status launch_single(rondo_generator *generator, rondo_stream *stream,
                                  rondo__random_kernel kernel, const void *arguments,
                                  size_t argument_bytes) {
    const rondo_launch launch = {.name = rondo__random_kernel_names[kernel],
                                 .function = generator->functions[kernel],
                                 .grid = {1, 1, 1},
                                 .block = {1, 1, 1},
                                 .arguments = arguments,
                                 .argument_bytes = argument_bytes};
    return rondo_stream_launch(stream, &launch);
}

rondo_status rondo__generator_launch_advance(rondo_generator *generator, rondo_stream *stream,
                                             uint64_t count) {
    const rondo__random_advance_arguments arguments = {.state = generator->state, .count = count};
    return launch_single(generator, stream, RONDO__RANDOM_ADVANCE, &arguments, sizeof arguments);
}

// Writes a new seed, if there is one, on a stream that waits for all users.
static rondo_status write_start(rondo_generator *generator, rondo_stream *stream) {
    const rondo__random_set_arguments arguments = {.state = generator->state,
                                                   .seed = generator->start.seed,
                                                   .offset = generator->start.offset};
    RETURN_IF_ERROR(prepare_write(generator, stream));
    RETURN_IF_ERROR(
        launch_single(generator, stream, RONDO__RANDOM_SET, &arguments, sizeof arguments));
    generator->is_dirty = false;
    generator->pending = 0;
    note_write(generator, stream);
    return RONDO_STATUS_OK;
}

// The state is what the host says, and `stream` wrote it last.
static rondo_status settle(rondo_generator *generator, rondo_stream *stream) {
    if (generator->is_dirty) {
        RETURN_IF_ERROR(write_start(generator, stream));
    } else {
        RETURN_IF_ERROR(prepare_write(generator, stream));
        if (generator->pending > 0) {
            RETURN_IF_ERROR(rondo__generator_launch_advance(generator, stream, generator->pending));
            generator->pending = 0;
        }
        note_write(generator, stream);
    }
    ++generator->epoch;
    generator->settled_stream = stream->number;
    return RONDO_STATUS_OK;
}

// ---- taking turns -----------------------------------------------------------------------------

static rondo_status refuse_issuing(const rondo_generator *generator, const char *call) {
    if (__builtin_expect(!generator->is_issuing, 1)) {
        return RONDO_STATUS_OK;
    }
    return RONDO_FAIL_AS(call, STATE,
                         "a function that rondo_generator_launch calls for generator %u uses "
                         "the generator itself; do that before or after",
                         (unsigned)generator->number);
}

rondo_status rondo__generator_enter(rondo_generator *generator, const char *call) {
    rondo__random_group *group = rondo__generator_lock(generator);
    rondo_status status = refuse_issuing(generator, call);
    if (status != RONDO_STATUS_OK) {
        rondo__random_group_unlock(group);
    }
    return status;
}

rondo_status rondo__generator_prepare_replay(rondo_generator *generator, rondo_stream *stream) {
    RETURN_IF_ERROR(refuse_issuing(generator, "rondo_graph_replay"));
    return generator->settled_stream == stream->number ? RONDO_STATUS_OK
                                                       : settle(generator, stream);
}

// ---- drawing ----------------------------------------------------------------------------------

// OK when work put on `stream` runs or enters `*out_capture`.
static rondo_status find_capture(rondo_generator *generator, rondo_stream *stream, const char *call,
                                 rondo__capture **out_capture, uint64_t *out_id) {
    RETURN_IF_ERROR(rondo__check_pointer(generator, call, "generator"));
    RETURN_IF_ERROR(rondo__check_stream(stream, call));
    if (stream->device != generator->device) {
        return RONDO_FAIL_AS(call, INVALID, "generator %u is of %s, the stream of %s",
                             (unsigned)generator->number, generator->device->name,
                             stream->device->name);
    }
    RETURN_IF_ERROR(rondo__capture_find(stream, out_capture, out_id));
    if (*out_capture != NULL || !(stream->is_wrapped || atomic_load(&stream->may_record))) {
        return RONDO_STATUS_OK;
    }
    rondo__capture_state state;
    RETURN_IF_ERROR(rondo__capture_get_state(stream, &state));
    if (state != RONDO__CAPTURE_NONE) {
        return RONDO_FAIL_AS(
            call, STATE,
            "stream %u records into a capture that Rondo did not begin, which nobody would tell "
            "generator %u to move on; begin the capture with rondo_graph_capture_begin",
            (unsigned)stream->number, (unsigned)generator->number);
    }
    return RONDO_STATUS_OK;
}

static rondo_status draw_eagerly(rondo_generator *generator, rondo_stream *stream,
                                 uint64_t counters, rondo__random_issue issue, void *data,
                                 uint64_t *out_relative) {
    if (generator->is_dirty) {
        RETURN_IF_ERROR(write_start(generator, stream));
    }
    RETURN_IF_ERROR(add_reader(generator, stream));
    generator->settled_stream = 0;
    *out_relative = generator->pending;
    if (issue != NULL) {
        RETURN_IF_ERROR(issue(generator, stream, generator->pending, data));
    }
    generator->pending += counters;
    return RONDO_STATUS_OK;
}

rondo_status rondo__generator_draw(rondo_generator *generator, rondo_stream *stream,
                                   uint64_t counters, const char *call, rondo__random_issue issue,
                                   void *data, uint64_t *out_relative) {
    rondo__capture *capture = NULL;
    uint64_t id = 0;
    RETURN_IF_ERROR(find_capture(generator, stream, call, &capture, &id));
    RETURN_IF_ERROR(rondo__generator_enter(generator, call));
    rondo_status status = capture == NULL
                              ? draw_eagerly(generator, stream, counters, issue, data, out_relative)
                              : rondo__generator_draw_recorded(generator, stream, capture, id,
                                                               counters, issue, data, out_relative);
    rondo__generator_unlock(generator);
    return status;
}

// ---- the state --------------------------------------------------------------------------------

// The caller holds the lock.
static rondo_status refuse_recording(const rondo_generator *generator, const char *call) {
    if (generator->recordings == NULL) {
        return RONDO_STATUS_OK;
    }
    return RONDO_FAIL_AS(call, STATE,
                         "graph \"%s\" records and draws from generator %u, whose state belongs "
                         "to the replays; call this before the capture or after its end",
                         generator->recordings->label, (unsigned)generator->number);
}

static rondo_status set_state(rondo_generator *generator, rondo_generator_state state,
                              const char *call) {
    RETURN_IF_ERROR(rondo__check_pointer(generator, call, "generator"));
    RETURN_IF_ERROR(rondo__check_alive(generator->device, call));
    RETURN_IF_ERROR(rondo__generator_enter(generator, call));
    rondo_status status = refuse_recording(generator, call);
    if (status == RONDO_STATUS_OK) {
        generator->start = state;
        generator->is_dirty = true;
        generator->pending = 0;
        ++generator->epoch;
        generator->settled_stream = 0;
    }
    rondo__generator_unlock(generator);
    return status;
}

rondo_status rondo_generator_set_seed(rondo_generator *generator, uint64_t seed) {
    return set_state(generator, (rondo_generator_state){.seed = seed}, __func__);
}

rondo_status rondo_generator_set_state(rondo_generator *generator,
                                       const rondo_generator_state *state) {
    RETURN_IF_ERROR(rondo__check_pointer(state, __func__, "state"));
    return set_state(generator, *state, __func__);
}

// The caller holds the reader lock, here and below.
static rondo_status make_reader(rondo_generator *generator) {
    void *words = generator->read_words;
    if (words == NULL) {
        RETURN_IF_ERROR(rondo_memory_allocate(generator->device, RONDO_MEMORY_PINNED,
                                              2 * sizeof(uint64_t), &words));
        generator->read_words = words;
    }
    return generator->reader != NULL ? RONDO_STATUS_OK
                                     : rondo_stream_create(generator->device, &generator->reader);
}

// Puts a copy of the state on the reader, as one more use of it; *out_pending goes on top. Nothing
// is copied when the host knows the state: then *out_is_known is true.
static rondo_status put_copy(rondo_generator *generator, const char *call,
                             rondo_generator_state *out_state, bool *out_is_known) {
    RETURN_IF_ERROR(rondo__generator_enter(generator, call));
    rondo_status status = refuse_recording(generator, call);
    *out_state = (rondo_generator_state){.offset = generator->pending};
    *out_is_known = generator->is_dirty;
    if (status != RONDO_STATUS_OK) {
        goto unlock;
    }
    if (generator->is_dirty) {
        out_state->seed = generator->start.seed;
        out_state->offset += generator->start.offset;
    } else if (generator->reader != NULL) {
        status = add_reader(generator, generator->reader);
        generator->settled_stream = 0;
        if (status == RONDO_STATUS_OK) {
            status = rondo_stream_copy(generator->reader, generator->read_words, generator->state,
                                       2 * sizeof(uint64_t), RONDO_COPY_DEVICE_TO_HOST);
        }
    }
unlock:
    rondo__generator_unlock(generator);
    return status;
}

static rondo_status read_state(rondo_generator *generator, const char *call,
                               rondo_generator_state *out_state) {
    bool is_known = false;
    bool has_reader = generator->reader != NULL;
    RETURN_IF_ERROR(put_copy(generator, call, out_state, &is_known));
    if (!is_known && !has_reader) {
        // Not made with the generator's lock held, because that may wait for the device.
        RETURN_IF_ERROR(make_reader(generator));
        RETURN_IF_ERROR(put_copy(generator, call, out_state, &is_known));
    }
    if (!is_known) {
        RETURN_IF_ERROR(rondo_stream_synchronize(generator->reader));
        out_state->seed = generator->read_words[0];
        out_state->offset += generator->read_words[1];
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo_generator_get_state(rondo_generator *generator,
                                       rondo_generator_state *out_state) {
    RETURN_IF_ERROR(rondo__check_pointer(out_state, __func__, "out_state"));
    *out_state = (rondo_generator_state){0};
    RETURN_IF_ERROR(rondo__check_pointer(generator, __func__, "generator"));
    RETURN_IF_ERROR(rondo__check_alive(generator->device, __func__));
    rondo_generator_state state;
    // A launch function holds the other lock, and must not wait for this one.
    RETURN_IF_ERROR(rondo__generator_enter(generator, __func__));
    rondo__generator_unlock(generator);
    pthread_mutex_lock(&generator->reader_lock);
    rondo_status status = read_state(generator, __func__, &state);
    pthread_mutex_unlock(&generator->reader_lock);
    if (status == RONDO_STATUS_OK) {
        *out_state = state;
    }
    return status;
}

// ---- marks ------------------------------------------------------------------------------------

rondo_status rondo_generator_get_mark(rondo_generator *generator, rondo_stream *stream,
                                      rondo_generator_mark *out_mark) {
    RETURN_IF_ERROR(rondo__check_pointer(out_mark, __func__, "out_mark"));
    *out_mark = (rondo_generator_mark){0};
    rondo__capture *capture = NULL;
    uint64_t id = 0;
    RETURN_IF_ERROR(find_capture(generator, stream, __func__, &capture, &id));
    rondo_status status = RONDO_STATUS_OK;
    RETURN_IF_ERROR(rondo__generator_enter(generator, __func__));
    if (capture != NULL) {
        status = rondo__generator_mark_recorded(generator, capture, id, out_mark);
    } else {
        out_mark->epoch = generator->epoch;
        out_mark->relative = generator->pending;
        // The next replay shall count as a change.
        generator->settled_stream = 0;
    }
    rondo__generator_unlock(generator);
    return status;
}

static rondo_status rewind_to(rondo_generator *generator, rondo_stream *stream,
                              const rondo_generator_mark *mark, const char *call) {
    RETURN_IF_ERROR(rondo__check_pointer(mark, call, "mark"));
    rondo__capture *capture = NULL;
    uint64_t id = 0;
    RETURN_IF_ERROR(find_capture(generator, stream, call, &capture, &id));
    rondo_status status = RONDO_STATUS_OK;
    RETURN_IF_ERROR(rondo__generator_enter(generator, call));
    if (capture != NULL) {
        status = rondo__generator_rewind_recorded(generator, capture, id, mark);
    } else if (mark->scope != 0) {
        status =
            RONDO_FAIL_AS(call, STATE, "the mark is of a capture, and stream %u records none now",
                          (unsigned)stream->number);
    } else if (mark->epoch != generator->epoch) {
        status = RONDO_FAIL_AS(call, STATE,
                               "a replay or a new seed moved generator %u since the mark; use "
                               "rondo_generator_get_state and rondo_generator_set_state instead",
                               (unsigned)generator->number);
    } else {
        generator->pending = mark->relative;
        generator->settled_stream = 0;
    }
    rondo__generator_unlock(generator);
    return status;
}

rondo_status rondo_generator_rewind(rondo_generator *generator, rondo_stream *stream,
                                    const rondo_generator_mark *mark) {
    // The ops that follow would draw other numbers than was asked for.
    return rondo__mark_missing(stream, "", rewind_to(generator, stream, mark, __func__));
}

// random/generator.c — what the program asks of a generator: numbers, its state, and marks, each
// eagerly or on a stream that records.
// SPDX-License-Identifier: Apache-2.0
#include "random/generator.h"

#include "backend/check.h"
#include "device/stream_tag.h"
#include "random/generator_state.h"

// ---- drawing ----------------------------------------------------------------------------------

// OK when work put on `stream` runs or enters `*out_capture`.
static rondo_status find_capture(rondo_generator *generator, rondo_stream *stream, const char *call,
                                 rondo__capture **out_capture, uint64_t *out_id) {
    RETURN_IF_ERROR(rondo__check_pointer(generator, call, "generator"));
    RETURN_IF_ERROR(rondo__check_stream(stream, call));
    RETURN_IF_ERROR(
        rondo__check_same_device(generator->device, stream, call, "the generator", NULL));
    RETURN_IF_ERROR(rondo__capture_find(stream, out_capture, out_id));
    if (*out_capture != NULL || !(stream->is_wrapped || atomic_load(&stream->may_record))) {
        return RONDO_STATUS_OK;
    }
    rondo__capture_state state;
    RETURN_IF_ERROR(rondo__capture_get_state(stream, &state));
    if (state != RONDO__CAPTURE_NONE) {
        return RONDO_FAIL_AS(call, STATE,
                             "stream %u records into a capture that Rondo did not begin, whose "
                             "replays would not move "
                             "generator %u on; begin the capture with rondo_graph_capture_begin",
                             (unsigned)stream->number, (unsigned)generator->number);
    }
    return RONDO_STATUS_OK;
}

static rondo_status draw_eagerly(rondo_generator *generator, rondo_stream *stream,
                                 uint64_t counters, rondo__random_issue issue, void *data,
                                 uint64_t *out_relative) {
    RETURN_IF_ERROR(rondo__generator_follow(generator, stream));
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
    rondo__generator_leave(generator);
    return status;
}

// ---- the state --------------------------------------------------------------------------------

static rondo_status set_state(rondo_generator *generator, rondo_generator_state state,
                              const char *call) {
    RETURN_IF_ERROR(rondo__check_pointer(generator, call, "generator"));
    RETURN_IF_ERROR(rondo__check_alive(generator->device, call));
    RETURN_IF_ERROR(rondo__generator_enter(generator, call));
    rondo_status status = rondo__generator_refuse_recording(generator, call);
    if (status == RONDO_STATUS_OK) {
        generator->start = state;
        generator->is_dirty = true;
        generator->pending = 0;
        ++generator->epoch;
        generator->settled_stream = 0;
    }
    rondo__generator_leave(generator);
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

static rondo_status make_reader(rondo_generator *generator) {
    void *words = generator->read_words;
    if (words == NULL) {
        RETURN_IF_ERROR(rondo_memory_allocate(generator->device, RONDO_MEMORY_PINNED,
                                              2 * sizeof(uint64_t), &words));
        generator->read_words = words;
    }
    return generator->reader != NULL
               ? RONDO_STATUS_OK
               : rondo_stream_create(generator->device, NULL, &generator->reader);
}

// Copies the state when the last use is done, on a stream of its own: that of the last use may
// record by now. Waits for the copy, so that later uses need not come after it.
static rondo_status copy_state(rondo_generator *generator) {
    RETURN_IF_ERROR(make_reader(generator));
    RETURN_IF_ERROR(
        rondo__stream_tag_follow(generator->reader, generator->last_stream, generator->event));
    RETURN_IF_ERROR(rondo_stream_copy(generator->reader, generator->read_words, generator->state,
                                      2 * sizeof(uint64_t), RONDO_COPY_DEVICE_TO_HOST));
    return rondo_stream_synchronize(generator->reader);
}

static rondo_status read_state(rondo_generator *generator, const char *call,
                               rondo_generator_state *out_state) {
    RETURN_IF_ERROR(rondo__generator_refuse_recording(generator, call));
    rondo_generator_state base = generator->start;
    if (!generator->is_dirty) {
        RETURN_IF_ERROR(copy_state(generator));
        base.seed = generator->read_words[0];
        base.offset = generator->read_words[1];
    }
    out_state->seed = base.seed;
    out_state->offset = base.offset + generator->pending;
    return RONDO_STATUS_OK;
}

rondo_status rondo_generator_get_state(rondo_generator *generator,
                                       rondo_generator_state *out_state) {
    RETURN_IF_ERROR(rondo__check_pointer(out_state, __func__, "out_state"));
    *out_state = (rondo_generator_state){0};
    RETURN_IF_ERROR(rondo__check_pointer(generator, __func__, "generator"));
    RETURN_IF_ERROR(rondo__check_alive(generator->device, __func__));
    RETURN_IF_ERROR(rondo__generator_enter(generator, __func__));
    rondo_status status = read_state(generator, __func__, out_state);
    rondo__generator_leave(generator);
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
    rondo__generator_leave(generator);
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
    rondo__generator_leave(generator);
    return status;
}

rondo_status rondo_generator_rewind(rondo_generator *generator, rondo_stream *stream,
                                    const rondo_generator_mark *mark) {
    // The ops that follow would draw other numbers than was asked for.
    return rondo__mark_missing(stream, "", rewind_to(generator, stream, mark, __func__));
}

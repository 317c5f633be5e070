// learn/fallback.c — see fallback.h.
// SPDX-License-Identifier: Apache-2.0
#include "learn/fallback.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "backend/areas.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log/logging.h"
#include "base/memory.h"
#include "learn/learned.h"
#include "rondo/update.h"

static const char call_run[] = "rondo_learned_run";

enum { REPEATS = 3 };

// ---- life -------------------------------------------------------------------------------------

static bool uses_cache(const rondo__fallback *fallback) {
    return fallback->kind == RONDO_LEARN_CACHE || fallback->kind == RONDO_LEARN_FIXED;
}

static rondo_status create_cache(rondo_learned *learned, const rondo_learned_options *options) {
    const rondo_graph_cache_options usual = {.struct_size = sizeof usual,
                                             .label = options->label,
                                             .mode = options->mode,
                                             .arena = options->arena};
    const rondo_graph_cache_options *wanted = options->cache != NULL ? options->cache : &usual;
    if (wanted->struct_size == sizeof *wanted && wanted->capture_in_background) {
        return RONDO_FAIL_AS("rondo_learned_create", INVALID,
                             "options.cache->capture_in_background: the values of a run are not "
                             "kept for another thread");
    }
    return rondo_graph_cache_create(learned->device, wanted, &learned->fallback.cache);
}

rondo_status rondo__fallback_init(rondo_learned *learned, const rondo_learned_options *options) {
    rondo__fallback *fallback = &learned->fallback;
    const rondo__arguments *arguments = &learned->arguments;
    fallback->kind = options->fallback;
    if (!uses_cache(fallback)) {
        return RONDO_STATUS_OK;
    }
    fallback->key_bytes = arguments->count * sizeof(uint64_t) + arguments->struct_bytes;
    fallback->key_bytes += fallback->key_bytes == 0;  // there is no empty key
    fallback->key = rondo__calloc(1, fallback->key_bytes);
    if (fallback->key == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    RETURN_IF_ERROR(rondo__values_init(arguments, &fallback->fixed_values));
    return create_cache(learned, options);
}

static void free_buffers(rondo_learned *learned) {
    rondo__fallback *fallback = &learned->fallback;
    for (size_t i = 0; fallback->buffers != NULL && i < learned->arguments.count; ++i) {
        if (fallback->buffers[i].memory != NULL) {
            (void)rondo__areas_free(learned->device, fallback->buffers[i].memory);
        }
    }
    rondo__free(fallback->buffers);
    fallback->buffers = NULL;
}

void rondo__fallback_deinit(rondo_learned *learned) {
    rondo__fallback *fallback = &learned->fallback;
    rondo_error saved;
    rondo__error_save(&saved);
    if (fallback->end != NULL) {
        rondo_status ignored = rondo_event_synchronize(fallback->end);
        (void)ignored;
        rondo_event_destroy(fallback->end);
    }
    rondo_graph_cache_destroy(fallback->cache);
    rondo_graph_destroy(fallback->spare);
    free_buffers(learned);
    rondo__values_deinit(&fallback->fixed_values);
    rondo__free(fallback->key);
    *fallback = (rondo__fallback){.kind = fallback->kind};
    rondo__error_restore(&saved);
}

rondo_status rondo__fallback_make_spare(rondo_learned *learned) {
    const rondo_graph_options options = {.struct_size = sizeof options,
                                         .keep = RONDO_KEEP_TEMPLATE_ONLY,
                                         .label = learned->graph->label,
                                         .check_addresses = learned->graph->checks_addresses};
    return learned->fallback.spare != NULL
               ? RONDO_STATUS_OK
               : rondo_graph_create(learned->device, &options, &learned->fallback.spare);
}

static bool is_measuring(const rondo__fallback *fallback) {
    return fallback->kind == RONDO_LEARN_CHEAPEST;
}

// ---- whether it will do -----------------------------------------------------------------------

// Records the step once more for the values of this run. *out_is_same: as it did in the first
// recording, or this is the first.
static rondo_status record_again(rondo_learned *learned, rondo_stream *stream,
                                 const rondo__recording *first, rondo__recording *recording,
                                 bool *out_is_same) {
    static const rondo__solution nothing_changes = {.count = 0};
    rondo__finding finding = {.refusal = RONDO_REFUSAL_NONE};
    rondo_status step_status = RONDO_STATUS_OK;
    *out_is_same = false;
    RETURN_IF_ERROR(rondo__values_init(&learned->arguments, &recording->values));
    rondo__values_copy(&learned->arguments, &recording->values, &learned->next);
    ++learned->stats.recording_count;
    RETURN_IF_ERROR(rondo__step_record(&learned->step, learned->fallback.spare, stream, NULL,
                                       recording, &step_status, &finding));
    *out_is_same = finding.refusal == RONDO_REFUSAL_NONE &&
                   rondo__recordings_match(first, recording, &finding);
    return *out_is_same && first != recording
               ? rondo__solution_check(&nothing_changes, &learned->arguments, first, recording,
                                       NULL, out_is_same, &finding)
               : RONDO_STATUS_OK;
}

static rondo_status look_whether_repeats(rondo_learned *learned, rondo_stream *stream,
                                         bool *out_repeats) {
    rondo__recording recordings[REPEATS] = {{.count = 0}};
    rondo_status status = rondo__fallback_make_spare(learned);
    *out_repeats = true;
    for (size_t i = 0; i < REPEATS && status == RONDO_STATUS_OK && *out_repeats; ++i) {
        status = record_again(learned, stream, &recordings[0], &recordings[i], out_repeats);
    }
    for (size_t i = 0; i < REPEATS; ++i) {
        rondo__recording_deinit(&recordings[i]);
    }
    return status;
}

// A cached graph is right for equal values only if the step records the same for them. A replay
// does not repeat what the step writes to memory by itself.
static rondo_status decide(rondo_learned *learned, rondo_stream *stream) {
    rondo__fallback *fallback = &learned->fallback;
    const rondo_refusal refusal = learned->lesson.finding.refusal;
    bool will_do = refusal != RONDO_REFUSAL_TABLE;
    if (!fallback->is_decided && uses_cache(fallback)) {
        if (will_do) {
            RETURN_IF_ERROR(look_whether_repeats(learned, stream, &will_do));
        }
        fallback->kind = will_do ? fallback->kind : RONDO_LEARN_RECAPTURE;
    }
    // A step that cannot be recorded is not tried.
    if (is_measuring(fallback) && refusal == RONDO_REFUSAL_STEP_FAILED) {
        fallback->kind = RONDO_LEARN_EAGER;
    }
    fallback->is_decided = true;
    return RONDO_STATUS_OK;
}

// ---- without a cache --------------------------------------------------------------------------

// " at node 3 "scale", parameter 2, bytes 0 to 7" of a refusal; "" when it is about no node.
static void format_place(const rondo_learned_report *report, char *place, size_t capacity) {
    place[0] = '\0';
    if (report->has_node) {
        snprintf(place, capacity, " at node %" PRIu64 " \"%.60s\"%s%.60s", report->node,
                 report->node_name, report->word[0] != '\0' ? ", " : "", report->word);
    }
}

static rondo_status fail_refused(const rondo_learned *learned) {
    const rondo__finding *finding = &learned->lesson.finding;
    rondo_learned_report report = {.struct_size = sizeof report};
    char place[160] = "";
    const char *advice = "";
    if (rondo_learned_get_report(learned, &report) == RONDO_STATUS_OK) {
        format_place(&report, place, sizeof place);
        advice = report.advice;
    }
    return RONDO_FAIL_AS(call_run, UNSUPPORTED, "the step was not learned (%s%s): %.180s; %s",
                         rondo_refusal_get_name(finding->refusal), place, finding->message, advice);
}

static rondo_status call_step(rondo_stream *stream, void *user_data) {
    const rondo_learned *learned = user_data;
    return rondo__step_call(&learned->step, stream, learned->fallback.values);
}

static rondo_status run_eagerly(rondo_learned *learned, rondo_stream *stream) {
    RETURN_IF_ERROR(rondo__step_call(&learned->step, stream, &learned->next));
    ++learned->stats.fallback_eager_count;
    return RONDO_STATUS_OK;
}

// A step that was refused may depend on anything, so it is recorded for unchanged values, too.
static rondo_status recapture(rondo_learned *learned, rondo_stream *stream) {
    const rondo_step_options options = {.struct_size = sizeof options, .mode = learned->step.mode};
    rondo_graph *spare;
    rondo_step_outcome outcome = RONDO_STEP_NOTHING;
    RETURN_IF_ERROR(rondo__fallback_make_spare(learned));
    spare = learned->fallback.spare;
    learned->fallback.values = &learned->next;
    ++learned->stats.recording_count;
    RETURN_IF_ERROR(
        rondo_graph_capture_step(spare, stream, &options, call_step, learned, &outcome));
    if (outcome != RONDO_STEP_CAPTURED) {
        ++learned->stats.fallback_eager_count;
        return RONDO_STATUS_OK;
    }
    rondo_status status = rondo_graph_update(learned->graph, spare, NULL);
    if (status != RONDO_STATUS_OK) {
        rondo_error saved;
        rondo__error_save(&saved);
        rondo__graph_clear(spare);
        rondo__error_restore(&saved);
        return status;
    }
    return rondo_graph_replay(learned->graph, stream);
}

// ---- with one ---------------------------------------------------------------------------------

static bool is_fixed(const rondo__fallback *fallback, const rondo__argument *argument) {
    return fallback->kind == RONDO_LEARN_FIXED && argument->kind == RONDO_ARGUMENT_POINTER &&
           argument->memory == RONDO_MEMORY_DEVICE && !argument->is_unchecked;
}

static rondo_status run_cached(rondo_learned *learned, rondo_stream *stream,
                               const rondo__values *values) {
    rondo__fallback *fallback = &learned->fallback;
    const rondo__arguments *arguments = &learned->arguments;
    const size_t bits_bytes = arguments->count * sizeof(uint64_t);
    rondo_cache_outcome outcome = RONDO_CACHE_NOTHING;
    fallback->values = values;
    if (bits_bytes > 0) {
        memcpy(fallback->key, values->bits, bits_bytes);
    }
    if (arguments->struct_bytes > 0) {
        memcpy(fallback->key + bits_bytes, values->bytes, arguments->struct_bytes);
    }
    RETURN_IF_ERROR(rondo_graph_cache_run(fallback->cache, fallback->key, fallback->key_bytes,
                                          stream, call_step, learned, &outcome));
    learned->stats.fallback_eager_count += outcome == RONDO_CACHE_RAN_EAGERLY;
    learned->stats.recording_count +=
        outcome == RONDO_CACHE_CAPTURED_AND_REPLAYED || outcome == RONDO_CACHE_UPDATED;
    return RONDO_STATUS_OK;
}

static rondo_status make_buffer(rondo_learned *learned, const rondo__argument *argument,
                                rondo__fixed_buffer *buffer) {
    size_t bytes = 0;
    if (!rondo__add_size((size_t)argument->extent, (size_t)argument->alignment, &bytes)) {
        return RONDO_FAIL_AS(call_run, NO_MEMORY, "argument \"%s\" has too large an extent",
                             argument->name);
    }
    RETURN_IF_ERROR(
        rondo__areas_allocate(learned->device, RONDO_MEMORY_DEVICE, bytes, &buffer->memory));
    buffer->begin = rondo__align_up((size_t)(uintptr_t)buffer->memory, (size_t)argument->alignment);
    return RONDO_STATUS_OK;
}

static rondo_status make_buffers(rondo_learned *learned) {
    rondo__fallback *fallback = &learned->fallback;
    const rondo__arguments *arguments = &learned->arguments;
    if (fallback->buffers != NULL) {
        return RONDO_STATUS_OK;
    }
    fallback->buffers = rondo__calloc(arguments->count + 1, sizeof *fallback->buffers);
    rondo_status status = fallback->buffers != NULL ? RONDO_STATUS_OK : RONDO_STATUS_NO_MEMORY;
    for (size_t i = 0; i < arguments->count && status == RONDO_STATUS_OK; ++i) {
        if (is_fixed(fallback, &arguments->list[i])) {
            status = make_buffer(learned, &arguments->list[i], &fallback->buffers[i]);
        }
    }
    if (status == RONDO_STATUS_OK && fallback->end == NULL) {
        status = rondo_event_create(learned->device, 0, &fallback->end);
    }
    if (status != RONDO_STATUS_OK) {
        rondo_error saved;
        rondo__error_save(&saved);
        free_buffers(learned);
        rondo__error_restore(&saved);
    }
    return status;
}

// Whether two pointers lead to memory in common: with a buffer for each, what is written through
// one would not be seen through the other.
static bool do_overlap(const rondo_learned *learned) {
    const rondo__arguments *arguments = &learned->arguments;
    for (size_t i = 0; i < arguments->count; ++i) {
        const rondo__argument *one = &arguments->list[i];
        for (size_t k = 0; k < i && one->kind == RONDO_ARGUMENT_POINTER; ++k) {
            const rondo__argument *other = &arguments->list[k];
            const bool has_buffer =
                is_fixed(&learned->fallback, one) || is_fixed(&learned->fallback, other);
            const uint64_t begin = learned->next.bits[i];
            const uint64_t other_begin = learned->next.bits[k];
            if (has_buffer && other->kind == RONDO_ARGUMENT_POINTER &&
                begin < other_begin + other->extent && other_begin < begin + one->extent) {
                return true;
            }
        }
    }
    return false;
}

// Copies between the memory of the run and the fixed buffers.
static rondo_status copy_all(const rondo_learned *learned, rondo_stream *stream, bool is_before) {
    const rondo__fallback *fallback = &learned->fallback;
    for (size_t i = 0; i < learned->arguments.count; ++i) {
        void *fixed = (void *)fallback->buffers[i].begin;
        void *own = (void *)(uintptr_t)learned->next.bits[i];
        if (fallback->buffers[i].memory == NULL) {
            continue;
        }
        RETURN_IF_ERROR(rondo_stream_copy(stream, is_before ? fixed : own, is_before ? own : fixed,
                                          (size_t)learned->arguments.list[i].extent,
                                          RONDO_COPY_DEVICE_TO_DEVICE));
    }
    return RONDO_STATUS_OK;
}

static rondo_status run_fixed(rondo_learned *learned, rondo_stream *stream) {
    rondo__fallback *fallback = &learned->fallback;
    if (do_overlap(learned)) {
        return run_eagerly(learned, stream);
    }
    RETURN_IF_ERROR(make_buffers(learned));
    rondo__values_copy(&learned->arguments, &fallback->fixed_values, &learned->next);
    for (size_t i = 0; i < learned->arguments.count; ++i) {
        if (fallback->buffers[i].memory != NULL) {
            fallback->fixed_values.bits[i] = fallback->buffers[i].begin;
        }
    }
    // The run before may have been on another stream.
    RETURN_IF_ERROR(rondo_stream_wait_event(stream, fallback->end));
    RETURN_IF_ERROR(copy_all(learned, stream, true));
    rondo_status status = run_cached(learned, stream, &fallback->fixed_values);
    if (status == RONDO_STATUS_OK) {
        status = copy_all(learned, stream, false);
    }
    rondo_error saved;
    rondo__error_save(&saved);
    const rondo_status recorded = rondo_event_record(fallback->end, stream);
    if (status != RONDO_STATUS_OK) {
        rondo__error_restore(&saved);
        return status;
    }
    return recorded;
}

// ---- all of them ------------------------------------------------------------------------------

static rondo_status refuse_recording(rondo_stream *stream) {
    bool is_recording = false;
    RETURN_IF_ERROR(rondo_stream_is_recording(stream, &is_recording));
    return !is_recording ? RONDO_STATUS_OK
                         : RONDO_FAIL_AS(call_run, STATE,
                                         "stream %u records; end or abort that capture first",
                                         (unsigned)stream->number);
}

enum { WARM_TURNS = 2, TURNS = 8 };

// What this run does: the two by turns, as long as they are measured.
static rondo_learned_fallback choose(const rondo_learned *learned) {
    const rondo__fallback *fallback = &learned->fallback;
    if (!is_measuring(fallback)) {
        return fallback->kind;
    }
    return fallback->turn_count % 2 == 0 ? RONDO_LEARN_EAGER : RONDO_LEARN_RECAPTURE;
}

// The first turn of each makes what the others use.
static void note_turn(rondo__fallback *fallback, uint64_t ns) {
    uint64_t *least = &fallback->turn_ns[fallback->turn_count % 2];
    if (fallback->turn_count >= WARM_TURNS && (*least == 0 || ns < *least)) {
        *least = ns;
    }
    if (++fallback->turn_count == TURNS) {
        const bool is_eager = fallback->turn_ns[0] <= fallback->turn_ns[1];
        fallback->kind = is_eager ? RONDO_LEARN_EAGER : RONDO_LEARN_RECAPTURE;
        fallback->mean_ns = fallback->turn_ns[!is_eager];
    }
}

static void note_cost(rondo__fallback *fallback, uint64_t ns) {
    const bool is_first = fallback->mean_ns == 0;
    if (is_measuring(fallback)) {
        note_turn(fallback, ns);
    }
    fallback->mean_ns = is_first ? ns : fallback->mean_ns - fallback->mean_ns / 8 + ns / 8;
}

static rondo_status run_chosen(rondo_learned *learned, rondo_stream *stream) {
    switch (choose(learned)) {
        case RONDO_LEARN_EAGER:
            return run_eagerly(learned, stream);
        case RONDO_LEARN_CACHE:
            return run_cached(learned, stream, &learned->next);
        case RONDO_LEARN_FIXED:
            return run_fixed(learned, stream);
        default:
            return recapture(learned, stream);
    }
}

// Once: why, and what it costs.
static void tell(rondo_learned *learned) {
    static const char *const does[] = {
        [RONDO_LEARN_CHEAPEST] = "put it on the stream and record it anew in turns at first",
        [RONDO_LEARN_EAGER] = "put it on the stream",
        [RONDO_LEARN_REFUSE] = "fail",
        [RONDO_LEARN_CACHE] = "replay a graph for each list of values",
        [RONDO_LEARN_FIXED] = "copy to fixed buffers, and replay a graph for each list of values",
        [RONDO_LEARN_RECAPTURE] = "record it anew",
    };
    rondo__fallback *fallback = &learned->fallback;
    const rondo__lesson *lesson = &learned->lesson;
    const uint64_t count = lesson->recording_count > 0 ? lesson->recording_count : 1;
    if (fallback->is_told) {
        return;
    }
    fallback->is_told = true;
    char cost[80] = "";
    if (fallback->mean_ns > 0) {
        snprintf(cost, sizeof cost, ", this one in %.1f us; to record the step takes %.1f us",
                 (double)fallback->mean_ns / 1e3,
                 (double)lesson->recording_ns / 1e3 / (double)count);
    }
    rondo_learned_report report = {.struct_size = sizeof report};
    char where[160] = "";
    if (rondo_learned_get_report(learned, &report) == RONDO_STATUS_OK) {
        format_place(&report, where, sizeof where);
    }
    RONDO_LOG_WARN_F("learned step \"%s\" was refused (%s%s: %.200s); its runs %s%s; cure: %s",
                     learned->graph->label, rondo_refusal_get_name(lesson->finding.refusal), where,
                     lesson->finding.message, does[fallback->kind], cost, report.advice);
}

rondo_status rondo__fall_back(rondo_learned *learned, rondo_stream *stream) {
    if (learned->fallback.kind == RONDO_LEARN_REFUSE) {
        tell(learned);
        return fail_refused(learned);
    }
    RETURN_IF_ERROR(refuse_recording(stream));
    RETURN_IF_ERROR(decide(learned, stream));
    const uint64_t start = rondo__clock_now_ns();
    RETURN_IF_ERROR(run_chosen(learned, stream));
    note_cost(&learned->fallback, rondo__clock_now_ns() - start);
    tell(learned);
    ++learned->stats.run_count;
    ++learned->stats.fallback_count;
    return RONDO_STATUS_OK;
}

rondo_status rondo__fall_back_once(rondo_learned *learned, rondo_stream *stream) {
    const rondo__finding failure = learned->lesson.finding;
    learned->lesson.finding = (rondo__finding){.refusal = RONDO_REFUSAL_NONE};
    learned->lesson.step_status = RONDO_STATUS_OK;
    if (learned->fallback.kind == RONDO_LEARN_REFUSE) {
        return RONDO_FAIL_AS(call_run, UNSUPPORTED, "the step fails for these values: %.180s",
                             failure.message);
    }
    RETURN_IF_ERROR(refuse_recording(stream));
    RETURN_IF_ERROR(run_eagerly(learned, stream));
    ++learned->stats.run_count;
    ++learned->stats.fallback_count;
    return RONDO_STATUS_OK;
}

rondo_status rondo__fall_back_measured(rondo_learned *learned, rondo_stream *stream) {
    RETURN_IF_ERROR(refuse_recording(stream));
    RETURN_IF_ERROR(rondo__step_call(&learned->step, stream, &learned->next));
    ++learned->stats.run_count;
    return RONDO_STATUS_OK;
}

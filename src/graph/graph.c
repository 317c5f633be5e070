// graph/graph.c — the graph object: what it holds, and what may be done with it when.
//
//                begin                end
//      EMPTY ------------> RECORDING -------> READY --- replay, upload, instantiate, dump
//        ^  ^                  |  fails or       |
//        |  +------------------+  is aborted     |
//        +---------------------------------------+  reset
//
// A failed or aborted capture is rolled back: the backend has taken its streams out of recording,
// what was recorded is freed, and the graph is EMPTY again.
//
// The replay path checks the state, the device and the lost flag and calls the backend: no lock but
// those that participants hold meanwhile (generators), no allocation. A graph is used by one thread
// at a time, so nothing here is locked.
#include "graph/conditional.h"
#include "graph/graph_internal.h"

#include <string.h>

#include "backend/check.h"
#include "backend/label.h"
#include "base/clock.h"
#include "base/logging.h"
#include "base/memory.h"
#include "base/nvtx.h"
#include "base/read_options.h"
#include "base/thread.h"
#include "pool/arena.h"
#include "pool/guard.h"

// ---- life -------------------------------------------------------------------------------------

rondo_graph_options rondo_graph_options_default(void) {
    return (rondo_graph_options){.struct_size = sizeof(rondo_graph_options)};
}

rondo_status rondo_graph_create(rondo_device *device, const rondo_graph_options *options,
                                rondo_graph **out_graph) {
    RETURN_IF_ERROR(rondo__check_pointer(out_graph, __func__, "out_graph"));
    *out_graph = NULL;
    RETURN_IF_ERROR(rondo__check_device(device, __func__));
    rondo_graph_options wanted = rondo_graph_options_default();
    RETURN_IF_ERROR(rondo__read_options(options, &wanted, sizeof wanted, __func__,
                                        "rondo_graph_options_default"));
    if (wanted.defer_instantiation && !wanted.keep_template) {
        return RONDO_FAIL(INVALID,
                          "defer_instantiation needs keep_template: there is nothing else to make "
                          "the executable from");
    }
    if (wanted.pageable_sources != RONDO_PAGEABLE_REFUSE &&
        wanted.pageable_sources != RONDO_PAGEABLE_SNAPSHOT) {
        return RONDO_FAIL(INVALID, "%d is not a rondo_pageable_sources",
                          (int)wanted.pageable_sources);
    }
    if (wanted.arena != NULL) {
        RETURN_IF_ERROR(rondo__arena_check_device(wanted.arena, device));
    }
    rondo_graph *graph = rondo__calloc(1, sizeof *graph);
    if (graph == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    graph->label = rondo__strdup(wanted.label != NULL ? wanted.label : "graph");
    if (graph->label == NULL) {
        rondo__free(graph);
        return RONDO_STATUS_NO_MEMORY;
    }
    if (wanted.arena != NULL) {
        rondo_arena_retain(wanted.arena);
        graph->arena = wanted.arena;
    } else if (rondo__arena_create_private(device, &graph->arena) != RONDO_STATUS_OK) {
        rondo__free(graph->label);
        rondo__free(graph);
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo_device_retain(device);
    graph->device = device;
    graph->keeps_template = wanted.keep_template;
    graph->checks_addresses = wanted.check_addresses;
    graph->snapshots_pageable = wanted.pageable_sources == RONDO_PAGEABLE_SNAPSHOT;
    graph->defers_instantiation = wanted.defer_instantiation;
    graph->state = RONDO__GRAPH_EMPTY;
    *out_graph = graph;
    return RONDO_STATUS_OK;
}

void rondo__graph_wait(rondo_graph *graph) {
    if (graph->last_stream != NULL) {
        if (!rondo__stream_tag_wait(graph->last_stream)) {
            // The stream records by now; the driver keeps what it runs, and the arena its memory.
            rondo__arena_hold_back(rondo__graph_get_participants(graph), graph->last_stream);
        }
        rondo__stream_tag_release(graph->last_stream);
        graph->last_stream = NULL;
    }
}

void rondo__graph_clear(rondo_graph *graph) {
    const rondo__backend *backend = graph->device->backend;
    rondo__graph_wait(graph);
    if (graph->executable != NULL) {
        backend->destroy_executable(graph->executable);
        graph->executable = NULL;
    }
    if (graph->recorded != NULL) {
        backend->destroy_template(graph->recorded);
        graph->recorded = NULL;
    }
    rondo__participants_destroy(graph->participants);
    graph->participants = NULL;
    memset(&graph->stats, 0, sizeof graph->stats);
    graph->executed_before = 0;
    graph->state = RONDO__GRAPH_EMPTY;
}

static bool may_end(const rondo_graph *graph);
static void give_up(rondo_graph *graph);

void rondo_graph_destroy(rondo_graph *graph) {
    if (graph == NULL || atomic_load(&graph->device->is_forked)) {
        return;
    }
    if (graph->state == RONDO__GRAPH_RECORDING) {
        if (!may_end(graph) && graph->capture->origin != NULL) {
            RONDO_LOG_WARN_F(
                "graph \"%s\" was destroyed by another thread than the one that records; only that "
                "one can make stream %u usable again, or destroy it",
                graph->label, (unsigned)graph->capture->origin->number);
        }
        give_up(graph);
    }
    rondo__graph_clear(graph);
    rondo_arena_release(graph->arena);
    rondo_device_release(graph->device);
    rondo__free(graph->label);
    rondo__free(graph);
}

rondo_status rondo_graph_reset(rondo_graph *graph) {
    RETURN_IF_ERROR(rondo__check_pointer(graph, __func__, "graph"));
    RETURN_IF_ERROR(rondo__check_alive(graph->device, __func__));
    if (graph->state == RONDO__GRAPH_RECORDING) {
        return RONDO_FAIL(STATE, "graph \"%s\" records; end or abort the capture before a reset",
                          graph->label);
    }
    rondo__graph_clear(graph);
    return RONDO_STATUS_OK;
}

// ---- capture ----------------------------------------------------------------------------------

// Takes the stream out of recording and forgets what was recorded. Whatever the backend says of
// that, the stream is free afterwards; the error record stays as it was.
static void end_unwanted(rondo_graph *graph, rondo_stream *stream) {
    rondo_error saved;
    rondo__error_save(&saved);
    (void)graph->device->backend->end_capture(stream, &graph->recorded);
    if (graph->capture != NULL) {
        graph->participants = rondo__capture_close(graph->capture, false);
        graph->capture = NULL;
    }
    rondo__graph_clear(graph);
    rondo__error_restore(&saved);
}

// Takes the capture, which has ended, out of the list; its participants are the graph's, and hear
// whether a graph came of it.
static void close_capture(rondo_graph *graph, bool has_succeeded) {
    graph->participants = rondo__capture_close(graph->capture, has_succeeded);
    graph->capture = NULL;
    graph->stream = NULL;
    if (graph->has_range) {
        rondo__nvtx_end_range(graph->range);
        graph->has_range = false;
    }
}

static rondo_status refuse_second_capture(rondo_stream *stream) {
    rondo__capture_state state;
    RETURN_IF_ERROR(rondo__capture_get_state(stream, &state));
    return state == RONDO__CAPTURE_NONE
               ? RONDO_STATUS_OK
               : RONDO_FAIL_AS("rondo_graph_capture_begin", STATE,
                               "stream %u records already; end that capture first",
                               (unsigned)stream->number);
}

rondo_status rondo_graph_capture_begin(rondo_graph *graph, rondo_stream *stream,
                                       rondo_capture_mode mode) {
    RETURN_IF_ERROR(rondo__check_pointer(graph, __func__, "graph"));
    RETURN_IF_ERROR(rondo__check_stream(stream, __func__));
    if (mode != RONDO_CAPTURE_THREAD_LOCAL && mode != RONDO_CAPTURE_GLOBAL &&
        mode != RONDO_CAPTURE_RELAXED) {
        return RONDO_FAIL(INVALID, "%d is not a capture mode", (int)mode);
    }
    if (graph->state == RONDO__GRAPH_RECORDING) {
        return RONDO_FAIL(STATE, "graph \"%s\" records already; end or abort that capture first",
                          graph->label);
    }
    if (graph->state == RONDO__GRAPH_READY || graph->state == RONDO__GRAPH_RECORDED) {
        return RONDO_FAIL(STATE, "graph \"%s\" holds a capture; reset it first, or use another",
                          graph->label);
    }
    if (stream->device != graph->device) {
        return RONDO_FAIL(INVALID, "graph \"%s\" is of %s, the stream of %s", graph->label,
                          graph->device->name, stream->device->name);
    }
    if (stream->is_legacy) {
        return RONDO_FAIL(INVALID,
                          "the legacy default stream cannot record; use a stream from "
                          "rondo_stream_create or a non-default one of your own");
    }
    if (atomic_load_explicit(&stream->may_record, memory_order_relaxed)) {
        RETURN_IF_ERROR(refuse_second_capture(stream));
    }
    rondo__arena_settle(graph->arena);
    uint64_t id = 0;
    rondo_status status = rondo__stream_tag_begin_capture(stream, mode, &id);
    if (status == RONDO_STATUS_STATE && stream->is_wrapped) {
        // Perhaps a capture of the program's own: then say so. Asking first would cost every begin.
        rondo_error failure;
        rondo__error_save(&failure);
        RETURN_IF_ERROR(refuse_second_capture(stream));
        rondo__error_restore(&failure);
    }
    RETURN_IF_ERROR(status);
    status = rondo__capture_open(stream, id, mode, graph->label, &graph->capture);
    if (status == RONDO_STATUS_OK) {
        graph->capture->arena = graph->arena;
        graph->capture->snapshots_pageable = graph->snapshots_pageable;
        status = rondo__arena_join(graph->arena, graph->capture);
    }
    if (status == RONDO_STATUS_OK && graph->checks_addresses) {
        status = rondo__guard_join(graph->capture);
    }
    if (status != RONDO_STATUS_OK) {
        end_unwanted(graph, stream);
        return status;
    }
    if (graph->report.struct_size != 0) {
        memset(&graph->report, 0, sizeof graph->report);
    }
    atomic_store_explicit(&stream->may_record, true, memory_order_relaxed);
    graph->state = RONDO__GRAPH_RECORDING;
    graph->stream = stream;
    graph->mode = mode;
    graph->thread_number = rondo__thread_get_number();
    graph->begin_ns = rondo__clock_now_ns();
    graph->has_range = rondo__nvtx_is_on();
    if (graph->has_range) {
        graph->range = rondo__nvtx_start_range("capture", graph->label);
    }
    return RONDO_STATUS_OK;
}

// The driver lets a capture end on the thread that began it only, unless the mode is relaxed.
static bool may_end(const rondo_graph *graph) {
    return graph->mode == RONDO_CAPTURE_RELAXED ||
           graph->thread_number == rondo__thread_get_number();
}

// An end in stages. What is known of the origin has to be asked before the backend ends the
// capture; what is known of the failure (`blame`) while the capture is there.
typedef struct ending {
    rondo_stream *origin;  // NULL: destroyed meanwhile
    uint64_t work_count;
    size_t label_depth;
    rondo_capture_cause fallback;
    bool has_blame;  // otherwise nothing was wrong when it was looked at last
    rondo__blame blame;
} ending;

static void start_ending(const rondo_graph *graph, ending *it) {
    const rondo__capture *capture = graph->capture;
    it->origin = capture->origin;
    it->work_count = capture->origin != NULL ? capture->origin->marks.work_count : 0;
    it->label_depth = capture->label_depth;
    it->fallback = RONDO_CAUSE_OTHER;
    it->has_blame = false;
}

static void conclude(rondo_graph *graph, ending *it) {
    if (!it->has_blame) {
        rondo__blame_conclude(graph->capture, "rondo_graph_capture_end", false, &it->blame);
        it->has_blame = true;
    }
}

// What they record is not the program's: to a report the last work is what came before.
static rondo_status finish_participants(rondo__capture *capture, rondo_stream *origin) {
    if (origin == NULL || !rondo__capture_has_participants(capture)) {
        return rondo__capture_finish(capture);
    }
    rondo__stream_marks marks = origin->marks;
    rondo_status status = rondo__capture_finish(capture);
    origin->marks = marks;
    return status;
}

// Takes the stream out of recording. The graph holds what the backend recorded.
static rondo_status end_recording(rondo_graph *graph, ending *it) {
    const rondo__backend *backend = graph->device->backend;
    rondo_status finish_status = RONDO_STATUS_OK;
    rondo_error finish_error;
    rondo__scopes_refuse_open(graph->capture);
    bool is_broken = rondo__blame_is_broken(graph->capture);
    if (is_broken) {
        conclude(graph, it);
    } else {
        finish_status = finish_participants(graph->capture, it->origin);
        if (finish_status != RONDO_STATUS_OK) {
            rondo__error_save(&finish_error);
        }
    }
    rondo_status status = RONDO_STATUS_OK;
    if (it->origin != NULL) {
        status = backend->end_capture(it->origin, &graph->recorded);
    }
    // Where both fail, the end of the capture knows the cause.
    if (status == RONDO_STATUS_OK && finish_status != RONDO_STATUS_OK) {
        rondo__error_restore(&finish_error);
        status = finish_status;
    }
    if (status == RONDO_STATUS_OK && is_broken) {
        status = RONDO_FAIL_AS("rondo_graph_capture_end", STATE,
                               "the capture was found broken, though its end went well");
    }
    if (status != RONDO_STATUS_OK) {
        conclude(graph, it);
    }
    return status;
}

// Work that Rondo was asked for counts itself; other work, such as the program's own launches, has
// to be looked for.
static rondo_status warn_if_empty(rondo_graph *graph, const ending *it) {
    size_t node_count = 1;
    if (it->work_count == 0) {
        RETURN_IF_ERROR(graph->device->backend->count_nodes(graph->recorded, &node_count));
    }
    if (node_count == 0) {
        RONDO_LOG_WARN_F(
            "graph \"%s\" is empty: nothing was put on stream %u between begin and "
            "end. Did the work go to another stream or device?",
            graph->label, (unsigned)it->origin->number);
    }
    return RONDO_STATUS_OK;
}

// Makes of what was recorded what the graph is to hold.
static rondo_status make_graph(rondo_graph *graph, ending *it) {
    graph->stats.capture_ns = rondo__clock_now_ns() - graph->begin_ns;
    graph->has_kinds = false;
    graph->participants = graph->capture->participants;
    RETURN_IF_ERROR(warn_if_empty(graph, it));
    // Without a template nobody can ask for a node's label.
    if (graph->keeps_template || graph->defers_instantiation) {
        RETURN_IF_ERROR(rondo__label_resolve(graph->participants, graph->recorded));
    }
    if (graph->checks_addresses) {
        RETURN_IF_ERROR(rondo__graph_guard_nodes(graph));
    }
    if (graph->defers_instantiation) {
        return RONDO_STATUS_OK;
    }
    it->fallback = RONDO_CAUSE_INSTANTIATION;
    RETURN_IF_ERROR(rondo__graph_instantiate(graph));
    if (!graph->keeps_template) {
        graph->device->backend->destroy_template(graph->recorded);
        graph->recorded = NULL;
    }
    return RONDO_STATUS_OK;
}

static rondo_status check_end(const rondo_graph *graph) {
    static const char call[] = "rondo_graph_capture_end";
    RETURN_IF_ERROR(rondo__check_pointer(graph, call, "graph"));
    RETURN_IF_ERROR(rondo__check_process(graph->device, call));
    if (graph->state != RONDO__GRAPH_RECORDING) {
        return RONDO_FAIL_AS(call, STATE,
                             "graph \"%s\" does not record; call rondo_graph_capture_begin first",
                             graph->label);
    }
    if (!may_end(graph)) {
        // Harmless: the thread that began can still end it.
        return RONDO_FAIL_AS(call, STATE,
                             "graph \"%s\": the thread that began the capture must end it, unless "
                             "the mode is relaxed",
                             graph->label);
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo_graph_capture_end(rondo_graph *graph) {
    RETURN_IF_ERROR(check_end(graph));
    ending it;
    start_ending(graph, &it);
    rondo_status status = end_recording(graph, &it);
    if (status == RONDO_STATUS_OK) {
        status = make_graph(graph, &it);
    }
    if (status != RONDO_STATUS_OK) {
        conclude(graph, &it);
        status = rondo__graph_report_failure(graph, &it.blame, it.fallback);
    }
    if (status != RONDO_STATUS_OK && it.origin != NULL) {
        rondo__label_close_above(it.origin, it.label_depth);
    }
    close_capture(graph, status == RONDO_STATUS_OK);
    if (status != RONDO_STATUS_OK) {
        rondo__graph_clear(graph);
        return status;
    }
    atomic_store_explicit(&it.origin->may_record, false, memory_order_relaxed);
    graph->state = graph->defers_instantiation ? RONDO__GRAPH_RECORDED : RONDO__GRAPH_READY;
    return RONDO_STATUS_OK;
}

void rondo_graph_capture_abort(rondo_graph *graph) {
    if (graph == NULL || graph->state != RONDO__GRAPH_RECORDING ||
        atomic_load(&graph->device->is_forked)) {
        return;
    }
    if (may_end(graph)) {
        give_up(graph);
    } else {
        rondo__blame_given_up(graph->capture);
    }
}

static void give_up(rondo_graph *graph) {
    rondo_error saved;
    rondo__error_save(&saved);
    rondo_stream *stream = graph->stream;
    bool has_origin = graph->capture->origin != NULL;
    size_t label_depth = graph->capture->label_depth;
    rondo__blame blame;
    rondo__scopes_note_place(graph->capture, "rondo_graph_capture_abort");
    rondo__blame_conclude(graph->capture, "rondo_graph_capture_abort", true, &blame);
    rondo__scopes_roll_back(graph->capture);  // what fails from now on is not the program's
    if (has_origin) {
        // Whatever the backend says of that, the stream is free afterwards.
        (void)graph->device->backend->end_capture(stream, &graph->recorded);
        rondo__label_close_above(stream, label_depth);
    }
    close_capture(graph, false);
    rondo__graph_report_abort(graph, &blame);
    rondo__graph_clear(graph);
    rondo__error_restore(&saved);
}

// ---- replay -----------------------------------------------------------------------------------

static rondo_status fail_not_ready(const rondo_graph *graph, const char *call) {
    return RONDO_FAIL_AS(call, STATE,
                         graph->state == RONDO__GRAPH_RECORDING
                             ? "graph \"%s\" still records; call rondo_graph_capture_end first"
                             : "graph \"%s\" holds nothing: it was not captured yet, or was reset",
                         graph->label);
}

static rondo_status fail_other_device(const rondo_graph *graph, const rondo_stream *stream,
                                      const char *call) {
    return RONDO_FAIL_AS(call, INVALID, "graph \"%s\" is of %s, the stream of %s", graph->label,
                         graph->device->name, stream->device->name);
}

static rondo_status refuse_recording(rondo_stream *stream, const char *call) {
    rondo__capture_state state;
    RETURN_IF_ERROR(rondo__capture_get_state(stream, &state));
    if (state == RONDO__CAPTURE_NONE) {
        return rondo__stream_refuse_recording(stream, call);  // which then need not ask again
    }
    return RONDO_FAIL_AS(call, STATE,
                         "stream %u records, and this is not recorded; rondo_graph_record puts "
                         "a graph's work into a capture",
                         (unsigned)stream->number);
}

// What replay and upload share. Only a stream that may record is asked whether it does: one that
// took part in a capture of Rondo's, or that is the program's own.
static inline rondo_status check_ready(rondo_graph *graph, rondo_stream *stream, const char *call) {
    RETURN_IF_ERROR(rondo__check_pointer(graph, call, "graph"));
    RETURN_IF_ERROR(rondo__check_stream(stream, call));
    bool is_deferred = false;
    if (__builtin_expect(graph->state != RONDO__GRAPH_READY, 0)) {
        is_deferred = graph->state == RONDO__GRAPH_RECORDED;
        if (!is_deferred) {
            return fail_not_ready(graph, call);
        }
    }
    if (__builtin_expect(graph->device != stream->device, 0)) {
        return fail_other_device(graph, stream, call);
    }
    if (__builtin_expect(
            atomic_load_explicit(&stream->may_record, memory_order_relaxed) || stream->is_wrapped,
            0)) {
        RETURN_IF_ERROR(refuse_recording(stream, call));
    }
    return __builtin_expect(is_deferred, 0) ? rondo__graph_instantiate(graph) : RONDO_STATUS_OK;
}

// Remembers the stream, to wait for it before the executable is freed.
static void note_stream(rondo_graph *graph, rondo_stream *stream) {
    rondo__stream_tag_release(graph->last_stream);
    graph->last_stream = rondo__stream_tag_retain(stream);
}

static inline rondo_status replay(rondo_graph *graph, rondo_stream *stream) {
    RETURN_IF_ERROR(check_ready(graph, stream, "rondo_graph_replay"));
    rondo_status status = RONDO_STATUS_OK;
    if (graph->participants != NULL) {
        status = rondo__participants_prepare_replay(graph->participants, stream);
    }
    if (__builtin_expect(status == RONDO_STATUS_OK, 1)) {
        status = graph->device->backend->replay(graph->executable, stream);
        if (__builtin_expect(status != RONDO_STATUS_OK, 0)) {
            rondo__participants_cancel_replay(graph->participants, NULL);
        }
    }
    if (__builtin_expect(status != RONDO_STATUS_OK, 0)) {
        rondo__error_set_op(graph->label);
        return status;
    }
    if (graph->participants != NULL) {
        rondo__participants_note_replay(graph->participants, stream);
    }
    ++graph->stats.replay_count;
    if (__builtin_expect(graph->last_stream != stream->tag, 0)) {
        note_stream(graph, stream);
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo_graph_replay(rondo_graph *graph, rondo_stream *stream) {
    if (__builtin_expect(!rondo__nvtx_is_on() || graph == NULL, 1)) {
        return replay(graph, stream);
    }
    rondo__nvtx_push_named("replay", graph->label);
    rondo_status status = replay(graph, stream);
    rondo__nvtx_pop();
    return status;
}

rondo_status rondo_graph_upload(rondo_graph *graph, rondo_stream *stream) {
    RETURN_IF_ERROR(check_ready(graph, stream, __func__));
    return graph->device->backend->upload(graph->executable, stream);
}

// ---- the template and what is known of the graph ----------------------------------------------

rondo_status rondo__graph_check_template(const rondo_graph *graph, const char *call) {
    RETURN_IF_ERROR(rondo__check_pointer(graph, call, "graph"));
    if (graph->state != RONDO__GRAPH_READY && graph->state != RONDO__GRAPH_RECORDED) {
        return fail_not_ready(graph, call);
    }
    if (graph->recorded == NULL) {
        return RONDO_FAIL_AS(call, STATE,
                             "graph \"%s\" did not keep its template; create it with the option "
                             "keep_template",
                             graph->label);
    }
    return rondo__check_alive(graph->device, call);
}

rondo_status rondo_graph_instantiate(rondo_graph *graph) {
    RETURN_IF_ERROR(rondo__graph_check_template(graph, __func__));
    // The caller may have edited the template through its raw handle.
    rondo_graph_stats stats = {.replay_count = graph->stats.replay_count,
                               .capture_ns = graph->stats.capture_ns};
    RETURN_IF_ERROR(rondo__graph_count_kinds(graph->recorded, &stats));
    graph->has_kinds = true;
    RETURN_IF_ERROR(rondo__graph_instantiate(graph));
    stats.instantiate_ns = graph->stats.instantiate_ns;
    stats.device_bytes = graph->stats.device_bytes;
    stats.device_bytes_is_estimate = graph->stats.device_bytes_is_estimate;
    graph->stats = stats;
    return RONDO_STATUS_OK;
}

// Where its memory lies; after an update that is the arena of the graph it was updated by.
static rondo_arena *get_arena(const rondo_graph *graph) {
    rondo_arena *arena = rondo__arena_find(rondo__graph_get_participants(graph));
    return arena != NULL ? arena : graph->arena;
}

rondo_status rondo_graph_get_stats(const rondo_graph *graph, rondo_graph_stats *out_stats) {
    RETURN_IF_ERROR(rondo__check_pointer(out_stats, __func__, "out_stats"));
    *out_stats = (rondo_graph_stats){0};
    RETURN_IF_ERROR(rondo__check_pointer(graph, __func__, "graph"));
    *out_stats = graph->stats;
    if (graph->recorded != NULL && !graph->has_kinds) {
        RETURN_IF_ERROR(rondo__graph_count_kinds(graph->recorded, out_stats));
    }
    if (graph->executable != NULL && graph->device->backend->count_executed != NULL) {
        out_stats->executed_count =
            graph->executed_before + graph->device->backend->count_executed(graph->executable);
    }
    rondo_arena_stats memory;
    RETURN_IF_ERROR(rondo_arena_get_stats(get_arena(graph), &memory));
    out_stats->arena_live_bytes = memory.live_bytes;
    out_stats->arena_reserved_bytes = memory.reserved_bytes;
    out_stats->arena_peak_bytes = memory.live_peak_bytes;
    return RONDO_STATUS_OK;
}

rondo_status rondo_graph_get_arena(rondo_graph *graph, rondo_arena **out_arena) {
    RETURN_IF_ERROR(rondo__check_pointer(out_arena, __func__, "out_arena"));
    *out_arena = NULL;
    RETURN_IF_ERROR(rondo__check_pointer(graph, __func__, "graph"));
    rondo__arena_expose(get_arena(graph));
    *out_arena = get_arena(graph);
    return RONDO_STATUS_OK;
}

// OK when the graph has an executable.
static rondo_status check_executable(const rondo_graph *graph, const char *call) {
    RETURN_IF_ERROR(rondo__check_pointer(graph, call, "graph"));
    if (graph->state == RONDO__GRAPH_RECORDED) {
        return RONDO_FAIL_AS(call, STATE,
                             "graph \"%s\" has no executable yet; call rondo_graph_instantiate, "
                             "or replay it once",
                             graph->label);
    }
    if (graph->state != RONDO__GRAPH_READY) {
        return fail_not_ready(graph, call);
    }
    return rondo__check_alive(graph->device, call);
}

rondo_status rondo_graph_get_flags(rondo_graph *graph, uint64_t *out_flags) {
    RETURN_IF_ERROR(rondo__check_pointer(out_flags, __func__, "out_flags"));
    *out_flags = 0;
    RETURN_IF_ERROR(check_executable(graph, __func__));
    const rondo__backend *backend = graph->device->backend;
    return backend->get_flags != NULL ? backend->get_flags(graph->executable, out_flags)
                                      : RONDO_STATUS_OK;
}

rondo_status rondo_graph_get_native(rondo_graph *graph, void **out_template,
                                    void **out_executable) {
    if (out_template != NULL) {
        *out_template = NULL;
    }
    if (out_executable != NULL) {
        *out_executable = NULL;
    }
    if (out_executable != NULL) {
        RETURN_IF_ERROR(check_executable(graph, __func__));
    }
    if (out_executable == NULL || out_template != NULL) {
        RETURN_IF_ERROR(rondo__graph_check_template(graph, __func__));
    }
    const rondo__backend *backend = graph->device->backend;
    if (backend->get_native_template == NULL || backend->get_native_executable == NULL) {
        return RONDO_FAIL(UNSUPPORTED, "graphs of %s have no raw handles", graph->device->name);
    }
    if (out_template != NULL) {
        *out_template = backend->get_native_template(graph->recorded);
    }
    if (out_executable != NULL) {
        *out_executable = backend->get_native_executable(graph->executable);
    }
    return RONDO_STATUS_OK;
}

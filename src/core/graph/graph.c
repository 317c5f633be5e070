// graph/graph.c — the graph object: what it holds, and what may be done with it when.
//
//                begin                end
//      EMPTY ------------> RECORDING -------> READY --- replay, upload, instantiate, dump
//        ^  ^                  |  fails or       |
//        |  +------------------+  is aborted     |
//        +---------------------------------------+  reset
//
// Captures are in graph_capture.c. A failed or aborted one is rolled back: the graph is EMPTY
// again.
//
// The replay path checks the state, the device and the lost flag and calls the backend: no
// allocation, and no lock but an arena's that graphs share. A graph is used by one thread at a
// time, so nothing here is locked.
// SPDX-License-Identifier: Apache-2.0

#include <stdio.h>
#include <string.h>

#include "backend/check.h"
#include "base/log/hook.h"
#include "base/log/logging.h"
#include "base/memory.h"
#include "base/read_options.h"
#include "base/write_struct.h"
#include "device/stream.h"
#include "device/stream_destroy.h"
#include "device/stream_tag.h"
#include "graph/executable.h"
#include "graph/graph_capture.h"
#include "graph/graph_share.h"
#include "graph/images.h"
#include "graph/watchdog.h"
#include "pool/arena_graph.h"
#include "rondo/inspect.h"

// ---- life -------------------------------------------------------------------------------------

rondo_status rondo_graph_create(rondo_device *device, const rondo_graph_options *options,
                                rondo_graph **out_graph) {
    RETURN_IF_ERROR(rondo__check_pointer(out_graph, __func__, "out_graph"));
    *out_graph = NULL;
    RETURN_IF_ERROR(rondo__check_device(device, __func__));
    rondo_graph_options wanted = {.struct_size = sizeof wanted};
    RETURN_IF_ERROR(
        rondo__read_options(options, &wanted, sizeof wanted, __func__, "rondo_graph_options"));
    if (wanted.keep < RONDO_KEEP_EXECUTABLE || wanted.keep > RONDO_KEEP_TEMPLATE_ONLY) {
        return RONDO_FAIL(INVALID, "options.keep is %d, not a rondo_graph_keeps", (int)wanted.keep);
    }
    if (wanted.pageable_sources != RONDO_PAGEABLE_REFUSE &&
        wanted.pageable_sources != RONDO_PAGEABLE_SNAPSHOT) {
        return RONDO_FAIL(INVALID, "%d is not a rondo_pageable_sources",
                          (int)wanted.pageable_sources);
    }
    if (wanted.arena != NULL) {
        RETURN_IF_ERROR(rondo__arena_check_device(wanted.arena, device));
    }
    rondo_graph *graph = rondo__calloc_lines(sizeof *graph);
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
        graph->has_given_arena = true;
    } else if (rondo__arena_create_private(device, &graph->arena) != RONDO_STATUS_OK) {
        rondo__free(graph->label);
        rondo__free(graph);
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo_device_retain(device);
    graph->device = device;
    graph->keeps_template = wanted.keep != RONDO_KEEP_EXECUTABLE;
    graph->checks_addresses = wanted.check_addresses;
    graph->snapshots_pageable = wanted.pageable_sources == RONDO_PAGEABLE_SNAPSHOT;
    graph->defers_instantiation = wanted.keep == RONDO_KEEP_TEMPLATE_ONLY;
    graph->state = RONDO__GRAPH_EMPTY;
    *out_graph = graph;
    return RONDO_STATUS_OK;
}

void rondo_graph_destroy(rondo_graph *graph) {
    if (graph == NULL || atomic_load(&graph->device->is_forked)) {
        return;
    }
    if (graph->is_in_step) {
        RONDO_LOG_WARN_F(
            "rondo_graph_destroy: graph \"%s\" is in use by the call of a step or body, which must "
            "not destroy it",
            graph->label);
        return;
    }
    if (graph->state == RONDO__GRAPH_RECORDING) {
        if (!rondo__graph_may_end(graph) && graph->capture->origin != NULL) {
            RONDO_LOG_WARN_F(
                "graph \"%s\" was destroyed by another thread than the one that records; only that "
                "one can make stream %u usable again, or destroy it",
                graph->label, (unsigned)graph->capture->origin->number);
        }
        rondo__graph_give_up(graph);
    }
    if (graph->is_watched) {
        rondo__watchdog_list_forget(graph);
    }
    rondo__graph_clear(graph);
    rondo_graph_destroy(graph->spare);
    rondo__stream_destroy_own(graph->builder);
    rondo__capture_destroy(graph->capture_memory);
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

// ---- replay -----------------------------------------------------------------------------------

static rondo_status refuse_recording(rondo_stream *stream, const char *call) {
    rondo__capture_state state;
    RETURN_IF_ERROR(rondo__capture_get_state(stream, &state));
    if (state == RONDO__CAPTURE_NONE) {
        return rondo__stream_refuse_recording(stream, call);  // which then need not ask again
    }
    return RONDO_FAIL_AS(call, STATE,
                         "stream %u records, and this is not recorded; rondo_stream_add_graph puts "
                         "a graph's work into a capture",
                         (unsigned)stream->number);
}

// The checks of replay and upload. Only a stream that may record is asked whether it does: a stream
// that took part in a capture of Rondo's, or a native stream of the program.
static inline rondo_status check_ready(rondo_graph *graph, rondo_stream *stream, const char *call) {
    RETURN_IF_ERROR(rondo__check_pointer(graph, call, "graph"));
    RETURN_IF_ERROR(rondo__check_stream(stream, call));
    bool is_deferred = false;
    if (__builtin_expect(graph->state != RONDO__GRAPH_READY, 0)) {
        is_deferred = graph->state == RONDO__GRAPH_RECORDED;
        if (!is_deferred) {
            return rondo__graph_fail_not_ready(graph, call);
        }
    }
    RETURN_IF_ERROR(rondo__check_same_device(graph->device, stream, call, "graph", graph->label));
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

// `out_ran_here`: NULL where the calling thread is not to do the work.
static inline rondo_status replay(rondo_graph *graph, rondo_stream *stream, bool *out_ran_here) {
    RETURN_IF_ERROR(check_ready(graph, stream, "rondo_graph_replay"));
    rondo_status status = RONDO_STATUS_OK;
    if (graph->participants != NULL) {
        status = rondo__participants_prepare_replay(graph->participants, stream);
    }
    if (__builtin_expect(status == RONDO_STATUS_OK, 1)) {
        const rondo__backend *backend = graph->device->backend;
        if (out_ran_here != NULL && backend->replay_here != NULL) {
            *out_ran_here = backend->replay_here(graph->executable, stream);
        }
        if (out_ran_here == NULL || !*out_ran_here) {
            status = backend->replay(graph->executable, stream);
        }
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
    ++graph->replay_count;
    if (__builtin_expect(graph->last_stream != stream->tag, 0)) {
        note_stream(graph, stream);
    }
    return RONDO_STATUS_OK;
}

static inline rondo_status replay_in_span(rondo_graph *graph, rondo_stream *stream,
                                          bool *out_ran_here) {
    if (!rondo__hook_is_on(RONDO__HOOK_SPANS | RONDO__HOOK_RANGES) || graph == NULL) {
        return replay(graph, stream, out_ran_here);
    }
    char name[256];
    (void)snprintf(name, sizeof name, "replay %.240s", graph->label);
    const rondo__hook_scope scope = rondo__hook_begin(&(rondo__hook_span){
        .category = RONDO__SPAN_REPLAY, .name = name, .stream = stream, .graph = graph});
    const rondo_status status = replay(graph, stream, out_ran_here);
    rondo__hook_leave(&scope);
    return status;
}

rondo_status rondo_graph_replay(rondo_graph *graph, rondo_stream *stream) {
    return replay_in_span(graph, stream, NULL);
}

rondo_status rondo__graph_replay_here(rondo_graph *graph, rondo_stream *stream,
                                      bool *out_ran_here) {
    *out_ran_here = false;
    return replay_in_span(graph, stream, out_ran_here);
}

rondo_status rondo_graph_upload(rondo_graph *graph, rondo_stream *stream) {
    RETURN_IF_ERROR(check_ready(graph, stream, __func__));
    return graph->device->backend->upload(graph->executable, stream);
}

// ---- the template and what is known of the graph ----------------------------------------------

rondo_status rondo_graph_instantiate(rondo_graph *graph) {
    RETURN_IF_ERROR(rondo__graph_check_template(graph, __func__));
    // The caller may have edited the template through its native handle.
    rondo_graph_stats stats = {.capture_ns = graph->stats.capture_ns};
    RETURN_IF_ERROR(rondo__graph_count_kinds(graph->recorded, &stats));
    graph->has_kinds = true;
    RETURN_IF_ERROR(rondo__graph_instantiate(graph));
    rondo__graph_forget_nodes(graph);
    stats.instantiate_ns = graph->stats.instantiate_ns;
    graph->stats = stats;
    return RONDO_STATUS_OK;
}

// Where its memory lies; after an update that is the arena of the graph it was updated by.
static rondo_arena *get_arena(const rondo_graph *graph) {
    rondo_arena *arena = rondo__arena_find(rondo__graph_get_participants(graph));
    return arena != NULL ? arena : graph->arena;
}

rondo_status rondo_graph_get_stats(const rondo_graph *graph, rondo_graph_stats *out_stats) {
    RETURN_IF_ERROR(
        rondo__clear_struct(out_stats, sizeof *out_stats, __func__, "rondo_graph_stats"));
    RETURN_IF_ERROR(rondo__check_pointer(graph, __func__, "graph"));
    rondo_graph_stats stats = graph->stats;
    stats.replay_count = graph->replay_count;
    if (graph->recorded != NULL && !graph->has_kinds) {
        RETURN_IF_ERROR(rondo__graph_count_kinds(graph->recorded, &stats));
    }
    if (graph->executable == NULL) {
        stats.device_bytes = 0;
        stats.device_bytes_is_estimate = false;
    }
    if (graph->executable != NULL && graph->device->backend->count_executed != NULL) {
        stats.executed_count =
            graph->executed_before + graph->device->backend->count_executed(graph->executable);
    }
    rondo_arena_stats memory = {.struct_size = sizeof memory};
    RETURN_IF_ERROR(rondo_arena_get_stats(get_arena(graph), &memory));
    stats.arena_live_bytes = memory.live_bytes;
    stats.arena_reserved_bytes = memory.reserved_bytes;
    stats.arena_peak_bytes = memory.live_peak_bytes;
    rondo__write_struct(out_stats, &stats);
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
        return rondo__graph_fail_not_ready(graph, call);
    }
    return rondo__check_alive(graph->device, call);
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
        return RONDO_FAIL(UNSUPPORTED, "graphs of %s have no native handles", graph->device->name);
    }
    if (out_template != NULL) {
        *out_template = backend->get_native_template(graph->recorded);
    }
    if (out_executable != NULL) {
        *out_executable = backend->get_native_executable(graph->executable);
    }
    return RONDO_STATUS_OK;
}

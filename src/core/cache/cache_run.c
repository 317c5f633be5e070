// cache/cache_run.c — one run of a key: replayed, captured, or eager.
// SPDX-License-Identifier: Apache-2.0
#include "cache/cache_run.h"

#include "rondo/update.h"

#include "backend/check.h"
#include "cache/cache_record.h"
#include "capture/capture.h"
#include "device/stream.h"
#include "graph/executable.h"
#include "graph/graph_object.h"

static const char run_call[] = "rondo_graph_cache_run";

// The step of this run.
typedef struct step_call {
    rondo_stream *stream;
    rondo_step_function function;
    void *user_data;
} step_call;

// ---- checks -----------------------------------------------------------------------------------

static rondo_status fail_in_step(const rondo_graph_cache *cache, const char *call) {
    return RONDO_FAIL_AS(call, STATE,
                         "the cache \"%s\" is in use by a run, whose step must not use it",
                         cache->options.label);
}

static rondo_status fail_no_key(const char *call) {
    return RONDO_FAIL_AS(call, INVALID, "a key has at least one byte");
}

rondo_status rondo__cache_check(const rondo_graph_cache *cache, const char *call) {
    RETURN_IF_ERROR(rondo__check_pointer(cache, call, "cache"));
    RETURN_IF_ERROR(rondo__check_alive(cache->device, call));
    return __builtin_expect(cache->is_in_step, 0) ? fail_in_step(cache, call) : RONDO_STATUS_OK;
}

rondo_status rondo__cache_check_key(const rondo_graph_cache *cache, const void *key,
                                    size_t key_bytes, const char *call) {
    RETURN_IF_ERROR(rondo__cache_check(cache, call));
    RETURN_IF_ERROR(rondo__check_pointer(key, call, "key"));
    return __builtin_expect(key_bytes == 0, 0) ? fail_no_key(call) : RONDO_STATUS_OK;
}

static rondo_status check_run(const rondo_graph_cache *cache, const void *key, size_t key_bytes,
                              const step_call *step) {
    RETURN_IF_ERROR(rondo__cache_check_key(cache, key, key_bytes, run_call));
    RETURN_IF_ERROR(rondo__check_stream(step->stream, run_call));
    if (__builtin_expect(step->function == NULL, 0)) {
        return rondo__check_fail_null(run_call, "step");
    }
    return rondo__check_same_device(cache->device, step->stream, run_call, "graph cache",
                                    cache->options.label);
}

static rondo_status refuse_recording(rondo_stream *stream) {
    if (!rondo__stream_may_record(stream)) {
        return RONDO_STATUS_OK;
    }
    rondo__capture_state state;
    RETURN_IF_ERROR(rondo__capture_get_state(stream, &state));
    return state == RONDO__CAPTURE_NONE
               ? RONDO_STATUS_OK
               : RONDO_FAIL_AS(run_call, STATE,
                               "stream %u records, and a cache captures by itself; call the step, "
                               "or run the cache on another stream",
                               (unsigned)stream->number);
}

// ---- runs, measured ---------------------------------------------------------------------------

// The device's time is measured in the first runs only: two events may wake a thread, or the GPU.
static void begin_device_time(rondo_graph_cache *cache, rondo_stream *stream, rondo__cost *cost,
                              uint64_t count) {
    if (count < RONDO__SAMPLED_FIRST) {
        rondo__device_time_begin(&cache->device_time, stream, cost);
    } else {
        rondo__device_time_collect(&cache->device_time);
    }
}

static void note_device_time(rondo_graph_cache *cache, rondo__cost *cost, bool is_replay) {
    uint64_t ns = cache->meter.device_ns != NULL
                      ? cache->meter.device_ns(cache->meter.clock.user_data, is_replay)
                      : 0;
    if (ns > 0) {
        rondo__cost_add(cost, ns);
    }
}

static rondo_status call_step(rondo_graph_cache *cache, const step_call *step) {
    uint64_t sequence = rondo_error_get_last()->sequence;
    bool was_lent = rondo__stream_lend(step->stream);
    cache->is_in_step = true;
    rondo_status status = step->function(step->stream, step->user_data);
    cache->is_in_step = false;
    rondo__stream_take_back(step->stream, was_lent);
    return rondo__error_note_callback(status, sequence, run_call, "the step");
}

static rondo_status run_eagerly(rondo_graph_cache *cache, rondo__cache_record *record,
                                const step_call *step, rondo_cache_outcome *out_outcome) {
    rondo__measures *m = &record->measures;
    rondo_status status;
    if (rondo__governor_is_sampled(m->eager_count) || record->graph != NULL) {
        begin_device_time(cache, step->stream, &m->eager_device, m->eager_count);
        uint64_t start = rondo__cache_now_ns(cache);
        status = call_step(cache, step);
        uint64_t end = rondo__cache_now_ns(cache);
        if (status != RONDO_STATUS_OK) {
            rondo__device_time_drop(&cache->device_time, &m->eager_device);
            return status;
        }
        rondo__cost_add(&m->eager, end - start);
        rondo__device_time_end(&cache->device_time, step->stream);
        note_device_time(cache, &m->eager_device, false);
    } else {
        status = call_step(cache, step);
        if (status != RONDO_STATUS_OK) {
            return status;
        }
    }
    m->eager_count += 1;
    m->waiting_count += record->graph == NULL ? 1 : 0;
    cache->stats.eager_count += 1;
    *out_outcome = RONDO_CACHE_RAN_EAGERLY;
    return RONDO_STATUS_OK;
}

static rondo_status replay_measured(rondo_graph_cache *cache, rondo__cache_record *record,
                                    rondo_stream *stream) {
    rondo__measures *m = &record->measures;
    begin_device_time(cache, stream, &m->replay_device, m->held_replay_count);
    uint64_t start = rondo__cache_now_ns(cache);
    rondo_status status = rondo_graph_replay(record->graph, stream);
    uint64_t end = rondo__cache_now_ns(cache);
    if (status != RONDO_STATUS_OK) {
        rondo__device_time_drop(&cache->device_time, &m->replay_device);
        return status;
    }
    rondo__device_time_end(&cache->device_time, stream);
    note_device_time(cache, &m->replay_device, true);
    rondo__governor_note_replay(m, &cache->experience, end - start, cache->options.policy);
    return RONDO_STATUS_OK;
}

static rondo_status replay(rondo_graph_cache *cache, rondo__cache_record *record,
                           rondo_stream *stream) {
    rondo__measures *m = &record->measures;
    RETURN_IF_ERROR(__builtin_expect(rondo__governor_is_sampled(m->held_replay_count), 0)
                        ? replay_measured(cache, record, stream)
                        : rondo_graph_replay(record->graph, stream));
    m->held_replay_count += 1;
    m->replay_count += 1;
    return RONDO_STATUS_OK;
}

// ---- captures ---------------------------------------------------------------------------------

// The held graph that has to go for another one, if its executable may be patched for that.
static rondo__cache_record *find_base(rondo_graph_cache *cache, const rondo_graph *recorder) {
    const rondo__lru_entry *entry = cache->held.oldest;
    if (cache->held.stats.entry_count < cache->options.entry_limit) {
        return NULL;
    }
    while (entry != NULL && rondo__lru_entry_is_pinned(entry)) {
        entry = rondo__lru_entry_get_newer(entry);
    }
    if (entry == NULL) {
        return NULL;
    }
    rondo__cache_record *record = rondo__lru_entry_get_value(entry);
    const rondo_graph_stats *old = &record->graph->stats;
    const rondo_graph_stats *new = &recorder->stats;
    bool is_alike = old->node_count == new->node_count && old->kernel_count == new->kernel_count &&
                    old->copy_count == new->copy_count;
    return is_alike && rondo__governor_prefers_update(&cache->experience) ? record : NULL;
}

// An executable of what was recorded, in *out_graph: that of a graph which goes, patched, or a new
// one, whose time is that of the other graph's end, too.
static rondo_status make_graph(rondo_graph_cache *cache, rondo_graph **out_graph, uint64_t *out_ns,
                               bool *out_was_patched) {
    rondo_graph *recorder = cache->recorder;
    rondo_graph *graph = NULL;
    rondo_update_report report = {.struct_size = sizeof report};
    if (!recorder->has_kinds) {
        RETURN_IF_ERROR(rondo__graph_count_kinds(recorder->recorded, &recorder->stats));
        recorder->has_kinds = true;
    }
    uint64_t node_count = recorder->stats.node_count;
    uint64_t start = rondo__cache_now_ns(cache);
    rondo__cache_record *base = find_base(cache, recorder);
    if (base != NULL) {
        RETURN_IF_ERROR(rondo__cache_let_go(cache, base, &graph));
        cache->stats.eviction_count += 1;
    } else {
        while (cache->held.stats.entry_count >= cache->options.entry_limit &&
               rondo__lru_map_evict_oldest(&cache->held)) {
        }
        RETURN_IF_ERROR(rondo__cache_create_graph(cache->device, &cache->options,
                                                  RONDO_KEEP_EXECUTABLE, &graph));
    }
    rondo_status status = rondo_graph_update(graph, recorder, &report);
    *out_ns = rondo__cache_now_ns(cache) - start;
    if (status != RONDO_STATUS_OK) {
        rondo_graph_destroy(graph);
        return status;
    }
    *out_was_patched = report.result == RONDO_UPDATE_PATCHED;
    rondo__governor_note_executable(&cache->experience, base != NULL, *out_ns, node_count);
    *out_graph = graph;
    return RONDO_STATUS_OK;
}

static void note_graph(rondo_graph_cache *cache, rondo__cache_record *record, uint64_t capture_ns,
                       uint64_t executable_ns, bool was_patched) {
    cache->stats.capture_count += 1;
    *(was_patched ? &cache->stats.update_count : &cache->stats.instantiate_count) += 1;
    rondo__governor_note_graph(&record->measures, &cache->experience, capture_ns, executable_ns,
                               was_patched);
}

// Makes the recording the record's graph. If memory is short, other graphs are evicted for it.
static rondo_status hold(rondo_graph_cache *cache, rondo__cache_record *record, uint64_t capture_ns,
                         rondo_cache_outcome *out_outcome) {
    rondo_graph *graph = NULL;
    uint64_t ns = 0;
    bool was_patched = false;
    rondo_status status = make_graph(cache, &graph, &ns, &was_patched);
    while (rondo__is_out_of_memory(status) && rondo__lru_map_evict_oldest(&cache->held)) {
        status = make_graph(cache, &graph, &ns, &was_patched);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__cache_hold(cache, record, graph);
        if (status != RONDO_STATUS_OK) {
            rondo_graph_destroy(graph);
        }
    }
    if (status == RONDO_STATUS_OK) {
        note_graph(cache, record, capture_ns, ns, was_patched);
        *out_outcome = was_patched ? RONDO_CACHE_UPDATED : RONDO_CACHE_CAPTURED_AND_REPLAYED;
    }
    return status;
}

// The step has run: its capture broke.
static void note_broken(rondo_graph_cache *cache, rondo__cache_record *record) {
    rondo__cache_note_failure(cache, record, cache->recorder->report.message);
    record->measures.eager_count += 1;
    cache->stats.eager_count += 1;
}

static rondo_status capture(rondo_graph_cache *cache, rondo__cache_record *record,
                            const step_call *step, rondo_cache_outcome *out_outcome) {
    rondo_step_options options = {.struct_size = sizeof options, .mode = cache->options.mode};
    rondo_step_outcome outcome;
    if (cache->recorder == NULL) {
        RETURN_IF_ERROR(rondo__cache_create_graph(cache->device, &cache->options,
                                                  RONDO_KEEP_TEMPLATE_ONLY, &cache->recorder));
    }
    uint64_t start = rondo__cache_now_ns(cache);
    cache->is_in_step = true;
    rondo_status status = rondo_graph_capture_step(cache->recorder, step->stream, &options,
                                                   step->function, step->user_data, &outcome);
    cache->is_in_step = false;
    uint64_t capture_ns = rondo__cache_now_ns(cache) - start;
    RETURN_IF_ERROR(status);
    if (outcome == RONDO_STEP_RAN_EAGERLY) {
        note_broken(cache, record);
        *out_outcome = RONDO_CACHE_RAN_EAGERLY;
        return RONDO_STATUS_OK;
    }
    status = hold(cache, record, capture_ns, out_outcome);
    if (status == RONDO_STATUS_OK) {
        return replay(cache, record, step->stream);
    }
    if (status == RONDO_STATUS_LOST) {
        return status;
    }
    rondo__cache_note_failure(cache, record, rondo_error_get_last()->message);
    RETURN_IF_ERROR(rondo_graph_reset(cache->recorder));
    return run_eagerly(cache, record, step, out_outcome);
}

// ---- captures in the background ---------------------------------------------------------------

void rondo__cache_adopt(rondo_graph_cache *cache) {
    rondo__background_result result;
    if (cache->background == NULL || !rondo__background_take(cache->background, &result)) {
        return;
    }
    rondo_error saved;
    rondo__error_save(&saved);
    rondo__cache_record *record = result.subject;
    const char *failure = result.message;
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    if (result.graph != NULL) {
        status = rondo__cache_hold(cache, record, result.graph);
        failure = rondo_error_get_last()->message;
    }
    if (status == RONDO_STATUS_OK) {
        note_graph(cache, record, result.capture_ns, result.executable_ns, false);
    } else {
        rondo_graph_destroy(result.graph);
        rondo__cache_note_failure(cache, record, failure);
        rondo__lru_map_unpin(&cache->waiting, record->entry);
    }
    rondo__error_restore(&saved);
}

// The record stays where it is until the result is taken.
static void ask_background(rondo_graph_cache *cache, rondo__cache_record *record,
                           const step_call *step) {
    if (rondo__background_start(cache->background, record, cache->meter.clock, step->function,
                                step->user_data)) {
        record->measures.reason = RONDO__REASON_BACKGROUND;
        rondo__lru_map_pin(&cache->waiting, record->entry);
    }
}

// ---- a run ------------------------------------------------------------------------------------

static bool may_capture(rondo_graph_cache *cache, rondo__cache_record *record,
                        const rondo_stream *stream) {
    if (record->measures.reason == RONDO__REASON_BACKGROUND ||
        !rondo__governor_wants_capture(&record->measures, &cache->experience,
                                       cache->options.policy)) {
        return false;
    }
    if (stream->is_legacy && cache->background == NULL) {
        rondo__cache_note_failure(cache, record, "the legacy default stream cannot record");
        return false;
    }
    if (!record->is_pinned && cache->held.stats.pinned_count >= cache->options.entry_limit) {
        record->measures.reason = RONDO__REASON_PINNED;
        return false;
    }
    return true;
}

// The key has no graph. Nobody evicts its record meanwhile.
static rondo_status run_waiting(rondo_graph_cache *cache, rondo__cache_record *record,
                                const step_call *step, rondo_cache_outcome *out_outcome) {
    rondo_status status;
    rondo__lru_map_pin(&cache->waiting, record->entry);
    rondo__governor_note_run(&record->measures, &cache->experience);
    bool captures = may_capture(cache, record, step->stream);
    if (captures && cache->background == NULL) {
        status = capture(cache, record, step, out_outcome);
    } else {
        if (captures) {
            ask_background(cache, record, step);
        }
        status = run_eagerly(cache, record, step, out_outcome);
    }
    if (record->graph == NULL) {
        rondo__lru_map_unpin(&cache->waiting, record->entry);
    }
    return status;
}

// The key has a graph.
static rondo_status run_held(rondo_graph_cache *cache, rondo__cache_record *record,
                             const step_call *step, rondo_cache_outcome *out_outcome) {
    rondo__measures *m = &record->measures;
    if (__builtin_expect(m->is_slower, 0)) {
        RETURN_IF_ERROR(refuse_recording(step->stream));
        RETURN_IF_ERROR(rondo__cache_let_go(cache, record, NULL));
        cache->stats.give_up_count += 1;
        return run_waiting(cache, record, step, out_outcome);
    }
    rondo__governor_note_run(m, &cache->experience);
    if (__builtin_expect(rondo__governor_wants_eager(m, cache->options.policy), 0)) {
        RETURN_IF_ERROR(refuse_recording(step->stream));
        return run_eagerly(cache, record, step, out_outcome);
    }
    RETURN_IF_ERROR(replay(cache, record, step->stream));
    *out_outcome = RONDO_CACHE_REPLAYED;
    return RONDO_STATUS_OK;
}

static rondo_status run(rondo_graph_cache *cache, const void *key, size_t key_bytes,
                        const step_call *step, rondo_cache_outcome *out_outcome) {
    RETURN_IF_ERROR(check_run(cache, key, key_bytes, step));
    rondo__cache_adopt(cache);
    const rondo__lru_entry *entry = rondo__lru_map_find(&cache->held, key, key_bytes);
    if (__builtin_expect(entry != NULL, 1)) {
        return run_held(cache, rondo__lru_entry_get_value(entry), step, out_outcome);
    }
    rondo__cache_record *record = NULL;
    RETURN_IF_ERROR(refuse_recording(step->stream));
    RETURN_IF_ERROR(rondo__cache_wait_for(cache, key, key_bytes, &record));
    return run_waiting(cache, record, step, out_outcome);
}

rondo_status rondo_graph_cache_run(rondo_graph_cache *cache, const void *key, size_t key_bytes,
                                   rondo_stream *stream, rondo_step_function step, void *user_data,
                                   rondo_cache_outcome *out_outcome) {
    step_call call = {.stream = stream, .function = step, .user_data = user_data};
    rondo_cache_outcome outcome = RONDO_CACHE_NOTHING;
    if (out_outcome != NULL) {
        *out_outcome = RONDO_CACHE_NOTHING;
    }
    RETURN_IF_ERROR(run(cache, key, key_bytes, &call, &outcome));
    if (out_outcome != NULL) {
        *out_outcome = outcome;
    }
    return RONDO_STATUS_OK;
}

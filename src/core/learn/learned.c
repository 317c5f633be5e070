// learn/learned.c — learned steps: made, learned, run.
//
//   NOT_YET ── learn ──> PROVED ── run: compare where watch.h says so, patch, replay
//                 │         │ a comparison finds something else
//                 v         v
//                 REFUSED ──── run: as the fallback says
//
// A run looks at all values before it changes anything. Words go into the graph's images at once;
// the nodes stay dirty until the executable has them, so that the next run makes a failed one good.
// SPDX-License-Identifier: Apache-2.0
#include "learn/learned.h"
#include "learn/run_here.h"

#include <inttypes.h>
#include <string.h>

#include "backend/check.h"
#include "base/clock.h"
#include "base/log/logging.h"
#include "base/memory.h"
#include "base/read_options.h"
#include "capture/label_stack.h"
#include "device/stream.h"
#include "graph/node/patch.h"
#include "learn/learned_patch.h"

static const char call_run[] = "rondo_learned_run";

static const uint64_t usual_draws = 688;  // (1 - 0.01)^688 < 0.001
static const uint64_t usual_spare_ns = 50000000;
static const uint64_t usual_seed = UINT64_C(0x72d1f3a95b8c6e47);

// ---- life -------------------------------------------------------------------------------------

static rondo_status check_options(const rondo_learned_options *options) {
    if (options->fallback < RONDO_LEARN_CHEAPEST || options->fallback > RONDO_LEARN_RECAPTURE) {
        return RONDO_FAIL_AS("rondo_learned_create", INVALID,
                             "options.fallback is %d, not a rondo_learned_fallback",
                             (int)options->fallback);
    }
    return options->mode == RONDO_CAPTURE_THREAD_LOCAL || options->mode == RONDO_CAPTURE_GLOBAL ||
                   options->mode == RONDO_CAPTURE_RELAXED
               ? RONDO_STATUS_OK
               : RONDO_FAIL_AS("rondo_learned_create", INVALID, "%d is not a capture mode",
                               (int)options->mode);
}

static rondo_status make_parts(rondo_learned *learned, const rondo_learned_options *options,
                               const rondo_argument *arguments, size_t count) {
    RETURN_IF_ERROR(rondo__arguments_init(arguments, count, &learned->arguments));
    const rondo_graph_options graph_options = {
        .struct_size = sizeof graph_options,
        .keep = RONDO_KEEP_TEMPLATE,
        .label = options->label != NULL ? options->label : "learned",
        .arena = options->arena,
        .check_addresses = options->check_addresses};
    RETURN_IF_ERROR(rondo_graph_create(learned->device, &graph_options, &learned->graph));
    RETURN_IF_ERROR(rondo__values_init(&learned->arguments, &learned->values));
    RETURN_IF_ERROR(rondo__values_init(&learned->arguments, &learned->next));
    learned->given = rondo__calloc(count + 1, sizeof *learned->given);
    return learned->given != NULL ? rondo__fallback_init(learned, options) : RONDO_STATUS_NO_MEMORY;
}

rondo_status rondo_learned_create(rondo_device *device, const rondo_learned_options *options,
                                  const rondo_argument *arguments, size_t argument_count,
                                  rondo_learned_function function, void *user_data,
                                  rondo_learned **out_learned) {
    RETURN_IF_ERROR(rondo__check_pointer(out_learned, __func__, "out_learned"));
    *out_learned = NULL;
    RETURN_IF_ERROR(rondo__check_device(device, __func__));
    if (function == NULL) {
        return rondo__check_fail_null(__func__, "function");
    }
    if (arguments == NULL && argument_count > 0) {
        return rondo__check_fail_null(__func__, "arguments");
    }
    rondo_learned_options wanted = {.struct_size = sizeof wanted};
    RETURN_IF_ERROR(
        rondo__read_options(options, &wanted, sizeof wanted, __func__, "rondo_learned_options"));
    RETURN_IF_ERROR(check_options(&wanted));
    if (device->backend->read_node == NULL || device->backend->patch_nodes == NULL) {
        return RONDO_FAIL(UNSUPPORTED, "nodes of %s can be neither read nor patched", device->name);
    }
    rondo_learned *learned = rondo__calloc_lines(sizeof *learned);
    if (learned == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo_device_retain(device);
    learned->device = device;
    learned->seed = wanted.seed != 0 ? wanted.seed : usual_seed;
    learned->spare_ns = wanted.learn_ns != 0 ? wanted.learn_ns : usual_spare_ns;
    rondo_status status = make_parts(learned, &wanted, arguments, argument_count);
    if (status != RONDO_STATUS_OK) {
        rondo_learned_destroy(learned);
        return status;
    }
    learned->step = (rondo__step){.device = device,
                                  .arguments = &learned->arguments,
                                  .function = function,
                                  .user_data = user_data,
                                  .mode = wanted.mode};
    learned->has_structs = learned->arguments.struct_bytes > 0;
    for (size_t i = 0; i < argument_count; ++i) {
        learned->has_exclusive |= learned->arguments.list[i].is_exclusive;
    }
    rondo__watch_init(&learned->watch, &learned->arguments,
                      wanted.draws_wanted != 0 ? wanted.draws_wanted : usual_draws,
                      wanted.check_every);
    if (wanted.measures) {
        status = rondo__governed_step_create(device, true, &learned->governed);
        if (status != RONDO_STATUS_OK) {
            rondo_learned_destroy(learned);
            return status;
        }
    }
    *out_learned = learned;
    return RONDO_STATUS_OK;
}

// The state of the executable.
static void forget_executable(rondo_learned *learned) {
    rondo__free(learned->images);
    rondo__free(learned->dirt);
    rondo__free(learned->formers);
    rondo__free(learned->dirty);
    rondo__free(learned->dirty_nodes);
    rondo__free(learned->words);
    rondo__free(learned->first_words);
    learned->images = NULL;
    learned->dirt = NULL;
    learned->formers = NULL;
    learned->dirty = NULL;
    learned->dirty_nodes = NULL;
    learned->words = NULL;
    learned->first_words = NULL;
    learned->dirty_count = 0;
    learned->is_current = false;
}

void rondo_learned_destroy(rondo_learned *learned) {
    if (learned == NULL || atomic_load(&learned->device->is_forked)) {
        return;
    }
    if (learned->is_running) {
        RONDO_LOG_WARN_F(
            "rondo_learned_destroy: the step \"%s\" is running, and must not destroy what runs it",
            learned->graph->label);
        return;
    }
    rondo__fallback_deinit(learned);
    rondo_graph_destroy(learned->graph);
    forget_executable(learned);
    rondo__lesson_deinit(&learned->lesson);
    rondo__watch_deinit(&learned->watch);
    rondo__values_deinit(&learned->values);
    rondo__values_deinit(&learned->next);
    rondo__arguments_deinit(&learned->arguments);
    rondo__free(learned->given);
    rondo__governed_step_destroy(learned->governed);
    rondo_device_release(learned->device);
    rondo__free(learned);
}

rondo_graph *rondo_learned_get_graph(rondo_learned *learned) {
    return learned != NULL ? learned->graph : NULL;
}

rondo_graph_cache *rondo_learned_get_cache(rondo_learned *learned) {
    return learned != NULL ? learned->fallback.cache : NULL;
}

// ---- values of a run --------------------------------------------------------------------------

static rondo_status check_room(const rondo__argument *argument, uintptr_t address, uintptr_t begin,
                               size_t bytes, const char *call) {
    const size_t room = bytes - (size_t)(address - begin);
    return argument->extent <= room
               ? RONDO_STATUS_OK
               : RONDO_FAIL_AS(call, INVALID,
                               "argument \"%s\" is 0x%" PRIxPTR
                               ", with %zu bytes behind it in its allocation; its extent is "
                               "%" PRIu64,
                               argument->name, address, room, argument->extent);
}

// Whether there is memory of the extent behind the pointer.
static rondo_status check_memory(const rondo_learned *learned, const rondo__argument *argument,
                                 uintptr_t address, const char *call) {
    rondo_device *device = learned->device;
    rondo__area area;
    if (argument->is_unchecked) {
        return RONDO_STATUS_OK;
    }
    if (rondo__areas_find(device, (const void *)address, &area)) {
        if (area.kind != argument->memory) {
            return RONDO_FAIL_AS(
                call, INVALID, "argument \"%s\" is 0x%" PRIxPTR ", which is %s memory",
                argument->name, address, area.kind == RONDO_MEMORY_PINNED ? "pinned" : "device");
        }
        return check_room(argument, address, area.begin, area.bytes, call);
    }
    rondo__allocation allocation = {.id = 0};
    if (device->backend->find_allocation != NULL) {
        RETURN_IF_ERROR(
            device->backend->find_allocation(device, (const void *)address, &allocation));
    }
    if (allocation.id == 0) {
        return RONDO_FAIL_AS(call, INVALID,
                             "argument \"%s\" is 0x%" PRIxPTR
                             ", which lies outside any known allocation, or was freed since; "
                             "say is_unchecked for memory of another kind",
                             argument->name, address);
    }
    return check_room(argument, address, allocation.begin, allocation.bytes, call);
}

static bool has_changed(const rondo_learned *learned, size_t index) {
    const rondo__argument *argument = &learned->arguments.list[index];
    if (argument->kind == RONDO_ARGUMENT_STRUCT) {
        return memcmp(learned->values.bytes + argument->struct_offset,
                      learned->next.bytes + argument->struct_offset, argument->struct_bytes) != 0;
    }
    return learned->values.bits[index] != learned->next.bits[index];
}

static rondo_status check_list(const rondo_learned *learned, const rondo_value *values,
                               size_t count, const char *call) {
    if (count != learned->arguments.count) {
        return RONDO_FAIL_AS(call, INVALID, "%zu values; the step has %zu arguments", count,
                             learned->arguments.count);
    }
    return values != NULL || count == 0 ? RONDO_STATUS_OK : rondo__check_fail_null(call, "values");
}

// Takes a value over into `next`.
static inline rondo_status read_value(rondo_learned *learned, size_t index,
                                      const rondo_value *value, const char *call) {
    const rondo__argument *argument = &learned->arguments.list[index];
    learned->next.bits[index] = rondo__value_get_bits(argument, value);
    if (argument->kind == RONDO_ARGUMENT_STRUCT) {
        if (value->bytes == NULL) {
            return RONDO_FAIL_AS(call, INVALID, "argument \"%s\" is NULL", argument->name);
        }
        memcpy(learned->next.bytes + argument->struct_offset, value->bytes, argument->struct_bytes);
    }
    return RONDO_STATUS_OK;
}

// Whether the value in `next` is one that the step may have.
static rondo_status check_value(const rondo_learned *learned, size_t index, const char *call) {
    const rondo__argument *argument = &learned->arguments.list[index];
    const uint64_t bits = learned->next.bits[index];
    RETURN_IF_ERROR(
        rondo__argument_check(argument, bits, learned->next.bytes + argument->struct_offset, call));
    return argument->kind == RONDO_ARGUMENT_POINTER
               ? check_memory(learned, argument, (uintptr_t)bits, call)
               : RONDO_STATUS_OK;
}

// Whether a pointer that shares no memory does.
static rondo_status check_exclusive(const rondo_learned *learned, uint64_t changed) {
    const rondo__arguments *arguments = &learned->arguments;
    const uint64_t pointers = learned->watch.pointers;
    for (uint64_t rest = changed & pointers; rest != 0; rest &= rest - 1) {
        const size_t i = (size_t)__builtin_ctzll(rest);
        for (uint64_t others = pointers & ~(UINT64_C(1) << i); others != 0; others &= others - 1) {
            const size_t k = (size_t)__builtin_ctzll(others);
            const rondo__argument *one = &arguments->list[i];
            const rondo__argument *other = &arguments->list[k];
            if ((one->is_exclusive || other->is_exclusive) &&
                rondo__relation_shares(rondo__relation_find(arguments, &learned->next,
                                                            i < k ? i : k, i < k ? k : i))) {
                return RONDO_FAIL_AS(call_run, INVALID,
                                     "arguments \"%s\" and \"%s\" share memory, and \"%s\" is "
                                     "described as is_exclusive",
                                     arguments->list[i < k ? i : k].name,
                                     arguments->list[i < k ? k : i].name,
                                     one->is_exclusive ? one->name : other->name);
            }
        }
    }
    return RONDO_STATUS_OK;
}

// Takes the values over into `next`, and checks those that are new: which, *out_changed says by
// bits. The memory behind all pointers is looked at where some was freed since.
static rondo_status read_values(rondo_learned *learned, const rondo_value *values, size_t count,
                                uint64_t *out_changed) {
    const bool is_proved = learned->state == RONDO_LEARNED_PROVED;
    const uint64_t removal_count = rondo__areas_count_removals(&learned->device->areas);
    const bool was_freed = removal_count != learned->removal_count;
    uint64_t changed = 0;
    RETURN_IF_ERROR(check_list(learned, values, count, call_run));
    for (size_t i = 0; i < count; ++i) {
        RETURN_IF_ERROR(read_value(learned, i, &values[i], call_run));
        const bool is_new = !is_proved || has_changed(learned, i);
        if (is_new || (was_freed && (learned->watch.pointers >> i & 1) != 0)) {
            RETURN_IF_ERROR(check_value(learned, i, call_run));
        }
        changed |= (uint64_t)is_new << i;
    }
    if (learned->has_exclusive) {
        RETURN_IF_ERROR(check_exclusive(learned, changed));
    }
    learned->removal_count = removal_count;
    *out_changed = changed;
    return RONDO_STATUS_OK;
}

// ---- the recording of the first run -----------------------------------------------------------

// Slots by argument, images by node.
static rondo_status index_slots(rondo_learned *learned) {
    const rondo__solution *solution = &learned->lesson.solution;
    const rondo__recording *recording = &learned->lesson.reference;
    const size_t argument_count = learned->arguments.count;
    learned->images = rondo__calloc(recording->count + 1, sizeof(rondo__node_image *));
    learned->dirt = rondo__calloc(recording->count + 1, sizeof *learned->dirt);
    learned->dirty = rondo__calloc(recording->count + 1, sizeof(rondo__node_image *));
    learned->dirty_nodes = rondo__calloc(recording->count + 1, sizeof *learned->dirty_nodes);
    learned->words = rondo__calloc(2 * solution->count + 1, sizeof *learned->words);
    learned->first_words = rondo__calloc(argument_count + 1, sizeof *learned->first_words);
    if (learned->images == NULL || learned->dirt == NULL || learned->dirty == NULL ||
        learned->dirty_nodes == NULL || learned->words == NULL || learned->first_words == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    learned->changing_count = 0;
    learned->has_copies = false;
    for (size_t i = 0; i < solution->count; ++i) {
        const size_t node = solution->slots[i].node;
        if (learned->images[node] == NULL) {
            RETURN_IF_ERROR(rondo__graph_get_image(
                learned->graph, recording->nodes[node].image.index, &learned->images[node]));
            learned->has_copies |= learned->images[node]->info.kind == RONDO__NODE_COPY;
            ++learned->changing_count;
        }
    }
    size_t filled = 0;
    for (size_t a = 0; a < argument_count; ++a) {
        learned->first_words[a] = filled;
        for (size_t i = 0; i < solution->count; ++i) {
            const rondo__learned_slot *slot = &solution->slots[i];
            if (rondo__formula_uses(&slot->formula, a)) {
                const bool is_plain = rondo__formula_is_plain(&slot->formula, &learned->arguments);
                learned->words[filled++] = (rondo__changing_word){
                    .place = rondo__image_find_word(learned->images[slot->node], &slot->word),
                    .formula = is_plain ? NULL : &slot->formula,
                    .node = slot->node,
                    .width = slot->word.width};
            }
        }
    }
    learned->first_words[argument_count] = filled;
    return RONDO_STATUS_OK;
}

// Whether the recording holds what was foretold for it. Then it is the reference from now on.
static rondo_status verify(rondo_learned *learned, rondo__recording *recording) {
    rondo__lesson *lesson = &learned->lesson;
    bool is_right = false;
    if (!rondo__recordings_match(&lesson->reference, recording, &lesson->finding)) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(rondo__solution_check(&lesson->solution, &learned->arguments,
                                          &lesson->reference, recording, NULL, &is_right,
                                          &lesson->finding));
    if (is_right) {
        rondo__recording former = lesson->reference;
        lesson->reference = *recording;
        *recording = former;
    }
    return RONDO_STATUS_OK;
}

static rondo_status capture(rondo_learned *learned, rondo_stream *stream,
                            rondo__recording *recording) {
    rondo_graph *graph = learned->graph;
    RETURN_IF_ERROR(rondo_graph_capture_begin(graph, stream, learned->step.mode));
    graph->capture->is_step = true;
    graph->capture->blocks = &recording->blocks;
    const size_t label_depth = rondo__label_get_depth(stream);
    rondo_status status = rondo__step_call(&learned->step, stream, &recording->values);
    if (status != RONDO_STATUS_OK) {
        rondo_graph_capture_abort(graph);
    } else if (graph->state != RONDO__GRAPH_RECORDING) {
        status = RONDO_FAIL_AS(call_run, STATE, "the step ended or aborted its capture by itself");
    } else {
        status = rondo_graph_capture_end(graph);
    }
    rondo__label_close_above(stream, label_depth);
    ++learned->stats.recording_count;
    RETURN_IF_ERROR(status);
    if (recording->blocks.is_incomplete) {
        return RONDO_FAIL_AS(call_run, NO_MEMORY, "no memory to note a block");
    }
    return rondo__recording_read(recording, graph->recorded, graph->participants, NULL);
}

// Records the step for `next`, as what is replayed from now on.
static rondo_status record_first_run(rondo_learned *learned, rondo_stream *stream) {
    rondo__recording recording = {0};
    rondo_status status = rondo__values_init(&learned->arguments, &recording.values);
    if (status == RONDO_STATUS_OK) {
        rondo__values_copy(&learned->arguments, &recording.values, &learned->next);
        status = capture(learned, stream, &recording);
    }
    if (status == RONDO_STATUS_OK) {
        status = verify(learned, &recording);
    }
    if (status == RONDO_STATUS_OK && learned->lesson.finding.refusal == RONDO_REFUSAL_NONE) {
        status = index_slots(learned);
    }
    rondo__recording_deinit(&recording);
    return status;
}

static void drop_graph(rondo_learned *learned) {
    rondo_error saved;
    rondo__error_save(&saved);
    forget_executable(learned);
    rondo__graph_clear(learned->graph);
    rondo__error_restore(&saved);
}

// ---- learning ---------------------------------------------------------------------------------

// Whether the step failed for the values of the first run, as it did in a trial for such: then
// there is nothing to replay.
static bool is_first_excluded(rondo_learned *learned, rondo_status failure) {
    rondo__lesson *lesson = &learned->lesson;
    const rondo__exclusion *exclusion =
        rondo__exclusions_find(&lesson->exclusions, &learned->arguments, &learned->next);
    if (failure == RONDO_STATUS_OK || rondo__step_is_outer_failure(failure) || exclusion == NULL) {
        return false;
    }
    rondo__finding_set(&lesson->finding, RONDO_REFUSAL_STEP_FAILED, SIZE_MAX, "%s",
                       exclusion->message);
    return true;
}

static rondo_status learn(rondo_learned *learned, rondo_stream *stream) {
    const uint64_t start = rondo__clock_now_ns();
    const rondo__lesson_plan plan = {.seed = learned->seed,
                                     .draws_wanted = learned->watch.draws_wanted,
                                     .spare_ns = learned->spare_ns,
                                     .tried = learned->watch.tried,
                                     .tried_count = learned->watch.tried_count};
    RETURN_IF_ERROR(rondo__learn(&learned->step, &plan, stream, &learned->next, &learned->lesson));
    learned->stats.recording_count += learned->lesson.recording_count;
    rondo_status status = RONDO_STATUS_OK;
    if (learned->lesson.is_proved) {
        status = record_first_run(learned, stream);
        status = is_first_excluded(learned, status) ? RONDO_STATUS_OK : status;
    }
    if (status == RONDO_STATUS_OK && learned->lesson.finding.refusal == RONDO_REFUSAL_NONE) {
        status = rondo__watch_begin(learned, &learned->next);
    }
    if (status != RONDO_STATUS_OK) {
        drop_graph(learned);
        rondo__lesson_deinit(&learned->lesson);
        return status;
    }
    if (learned->lesson.finding.refusal == RONDO_REFUSAL_NONE) {
        rondo__values_copy(&learned->arguments, &learned->values, &learned->next);
        learned->state = RONDO_LEARNED_PROVED;
    } else {
        drop_graph(learned);
        learned->state = RONDO_LEARNED_REFUSED;
    }
    learned->learn_ns = rondo__clock_now_ns() - start;
    return RONDO_STATUS_OK;
}

static rondo_status check_idle(const rondo_learned *learned, const char *call) {
    RETURN_IF_ERROR(rondo__check_pointer(learned, call, "learned"));
    return !learned->is_running
               ? RONDO_STATUS_OK
               : RONDO_FAIL_AS(call, STATE, "the step \"%s\" is running, and calls what runs it",
                               learned->graph->label);
}

static rondo_status check_call(const rondo_learned *learned, rondo_stream *stream,
                               const char *call) {
    RETURN_IF_ERROR(check_idle(learned, call));
    RETURN_IF_ERROR(rondo__check_stream(stream, call));
    return stream->device == learned->device
               ? RONDO_STATUS_OK
               : RONDO_FAIL_AS(call, INVALID, "the step is learned on %s, the stream is of %s",
                               learned->device->name, stream->device->name);
}

rondo_status rondo_learned_learn(rondo_learned *learned, rondo_stream *stream,
                                 const rondo_value *values, size_t count) {
    uint64_t changed;
    RETURN_IF_ERROR(check_call(learned, stream, __func__));
    RETURN_IF_ERROR(read_values(learned, values, count, &changed));
    if (learned->state != RONDO_LEARNED_NOT_YET) {
        return RONDO_STATUS_OK;
    }
    learned->is_running = true;
    const rondo_status status = learn(learned, stream);
    learned->is_running = false;
    return status;
}

rondo_status rondo_learned_try(rondo_learned *learned, const rondo_value *values, size_t count) {
    RETURN_IF_ERROR(check_idle(learned, __func__));
    const rondo__arguments *arguments = &learned->arguments;
    RETURN_IF_ERROR(check_list(learned, values, count, __func__));
    for (size_t i = 0; i < count; ++i) {
        const rondo__argument *argument = &arguments->list[i];
        RETURN_IF_ERROR(read_value(learned, i, &values[i], __func__));
        if (argument->kind != RONDO_ARGUMENT_POINTER || learned->next.bits[i] != 0) {
            RETURN_IF_ERROR(check_value(learned, i, __func__));
        }
    }
    learned->is_current = false;
    return rondo__watch_add_tried(&learned->watch, arguments, &learned->next);
}

// ---- runs -------------------------------------------------------------------------------------

static void refuse(rondo_learned *learned) {
    learned->state = RONDO_LEARNED_REFUSED;
    drop_graph(learned);
}

static rondo_status replay(rondo_learned *learned, rondo_stream *stream) {
    RETURN_IF_ERROR(learned->ran_here == NULL
                        ? rondo_graph_replay(learned->graph, stream)
                        : rondo__graph_replay_here(learned->graph, stream, learned->ran_here));
    ++learned->stats.run_count;
    return RONDO_STATUS_OK;
}

// Brings the executable to `next`, and compares both with a recording. *out_failed: the step fails
// for these values. Otherwise the step is refused where something differs.
static rondo_status compare_and_patch(rondo_learned *learned, rondo_stream *stream,
                                      uint64_t changed, bool *out_failed) {
    rondo__recording recording;
    const rondo__finding *finding = &learned->lesson.finding;
    rondo_status status =
        rondo__watch_record(learned, stream, &learned->next, &recording, out_failed);
    if (status == RONDO_STATUS_OK && finding->refusal == RONDO_REFUSAL_NONE) {
        status = rondo__learned_patch(learned, changed);
        if (status == RONDO_STATUS_OK) {
            status = rondo__watch_compare(learned, &recording, true);
        }
    }
    rondo__recording_deinit(&recording);
    if (status == RONDO_STATUS_OK && finding->refusal != RONDO_REFUSAL_NONE && !*out_failed) {
        refuse(learned);
    }
    return status;
}

// Makes the executable ready. *out_falls_back: this run does not replay.
static rondo_status prepare(rondo_learned *learned, rondo_stream *stream, uint64_t changed,
                            bool *out_falls_back) {
    learned->is_current = false;
    if (learned->watch.tried_done < learned->watch.tried_count) {
        RETURN_IF_ERROR(rondo__watch_try_all(learned, stream));
        if (learned->lesson.finding.refusal != RONDO_REFUSAL_NONE) {
            refuse(learned);
            return RONDO_STATUS_OK;
        }
    }
    return rondo__watch_wants(learned, changed)
               ? compare_and_patch(learned, stream, changed, out_falls_back)
               : rondo__learned_patch(learned, changed);
}

// Logs the warnings about a learned step: once, when it runs.
static void warn(rondo_learned *learned) {
    const rondo__findings *findings = &learned->lesson.findings;
    for (size_t i = 0; i < findings->count && !learned->has_warned; ++i) {
        const rondo__finding *finding = &findings->list[i];
        const bool is_usual = finding->refusal == RONDO_REFUSAL_EXCLUDED;
        rondo__log(is_usual ? RONDO_LOG_INFO : RONDO_LOG_WARNING, __FILE__, __LINE__,
                   "learned step \"%s\": %s: %s", learned->graph->label,
                   rondo_refusal_get_name(finding->refusal), finding->message);
    }
    learned->has_warned = true;
}

static rondo_status run_idle(rondo_learned *learned, rondo_stream *stream,
                             const rondo_value *values, size_t count) {
    uint64_t changed;
    bool falls_back = false;
    RETURN_IF_ERROR(read_values(learned, values, count, &changed));
    if (learned->state == RONDO_LEARNED_PROVED) {
        RETURN_IF_ERROR(prepare(learned, stream, changed, &falls_back));
    } else if (learned->state == RONDO_LEARNED_NOT_YET) {
        RETURN_IF_ERROR(learn(learned, stream));
        changed = UINT64_MAX;  // also of a step without arguments
    }
    if (learned->state == RONDO_LEARNED_REFUSED) {
        return rondo__fall_back(learned, stream);
    }
    warn(learned);
    if (falls_back) {
        return rondo__fall_back_once(learned, stream);
    }
    RETURN_IF_ERROR(replay(learned, stream));
    learned->stats.unchanged_count += changed == 0;
    for (size_t i = 0; i < count; ++i) {
        learned->given[i] = values[i];
    }
    learned->is_current = !learned->has_structs;
    return RONDO_STATUS_OK;
}

static rondo_status run(rondo_learned *learned, rondo_stream *stream, const rondo_value *values,
                        size_t count) {
    RETURN_IF_ERROR(check_call(learned, stream, call_run));
    learned->is_running = true;
    const rondo_status status = run_idle(learned, stream, values, count);
    learned->is_running = false;
    return status;
}

// Without a graph. What the executable holds stays, and with it what was looked at for that.
static rondo_status run_eagerly(rondo_learned *learned, rondo_stream *stream,
                                const rondo_value *values, size_t count) {
    const uint64_t removal_count = learned->removal_count;
    uint64_t changed;
    rondo_status status = read_values(learned, values, count, &changed);
    learned->removal_count = removal_count;
    RETURN_IF_ERROR(status);
    learned->is_running = true;
    status = rondo__fall_back_measured(learned, stream);
    learned->is_running = false;
    return status;
}

static rondo_status run_unmeasured(rondo_learned *learned, rondo_stream *stream,
                                   const rondo_value *values, size_t count) {
    if (__builtin_expect(
            learned != NULL && learned->is_current && values != NULL &&
                count == learned->arguments.count &&
                learned->removal_count == rondo__areas_count_removals(&learned->device->areas) &&
                memcmp(values, learned->given, count * sizeof *values) == 0,
            1)) {
        RETURN_IF_ERROR(replay(learned, stream));
        ++learned->stats.unchanged_count;
        return RONDO_STATUS_OK;
    }
    return run(learned, stream, values, count);
}

// Learning is over when runs are measured.
static rondo_status run_measured(rondo_learned *learned, rondo_stream *stream,
                                 const rondo_value *values, size_t count) {
    RETURN_IF_ERROR(check_call(learned, stream, call_run));
    if (learned->state != RONDO_LEARNED_PROVED) {
        return run(learned, stream, values, count);
    }
    RETURN_IF_ERROR(rondo__stream_refuse_recording(stream, call_run));
    const rondo__choice choice = rondo__governed_step_begin(learned->governed, stream);
    const uint64_t recording_count = learned->stats.recording_count;
    const rondo_status status = choice >= RONDO__CHOICE_CAPTURE
                                    ? run_unmeasured(learned, stream, values, count)
                                    : run_eagerly(learned, stream, values, count);
    // A run that was compared with a recording says nothing of those that are not.
    rondo__governed_step_end(
        learned->governed, stream,
        status == RONDO_STATUS_OK && recording_count == learned->stats.recording_count);
    return status;
}

rondo_status rondo_learned_run(rondo_learned *learned, rondo_stream *stream,
                               const rondo_value *values, size_t count) {
    return __builtin_expect(learned == NULL || learned->governed == NULL, 1)
               ? run_unmeasured(learned, stream, values, count)
               : run_measured(learned, stream, values, count);
}

rondo_status rondo__learned_run_here(rondo_learned *learned, rondo_stream *stream,
                                     const rondo_value *values, size_t count, bool *out_ran_here) {
    *out_ran_here = false;
    learned->ran_here = out_ran_here;
    const rondo_status status = rondo_learned_run(learned, stream, values, count);
    learned->ran_here = NULL;
    return status;
}

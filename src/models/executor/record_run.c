// executor/record_run.c — runs that are recorded into a capture of the program's.
//
// The kernels of the plan are launched once more, on the stream that records. Feeds and fetches in
// device memory replace the arena's addresses if they can; values between ops are in memory that
// belongs to the recording, so that its replays and the executor's runs have only the kernels in
// common.
//
// The executor and the plan live as long as the graph: a participant of the capture counts on both.
// The executor sets aside plans and variants that are given up meanwhile, and frees them when no
// recorded run uses them (retire.h).
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "backend/check.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/log/hook.h"
#include "base/memory.h"
#include "capture/capture.h"
#include "capture/host_memory.h"
#include "device/device.h"
#include "executor/compile/destroy.h"
#include "executor/compile/plan_cache.h"
#include "executor/compile/retire.h"
#include "executor/devices/stand_ins.h"
#include "executor/devices/streamed_weights.h"
#include "executor/devices/transfers.h"
#include "executor/feeds.h"
#include "executor/run/fetch.h"
#include "executor/state/arena_plan.h"
#include "executor/state/limits.h"
#include "executor/state/states.h"
#include "executor/variants.h"
#include "rondo/executor_stream.h"

static const char call_name[] = "rondo_executor_record";

// What the nodes of one recorded run need.
typedef struct recorded_run {
    rondo__participant base;
    rondo_executor *executor;
    bool is_counted;    // the executor has one reference more for it
    rondo__plan *plan;  // in use
    void *arena;
    size_t arena_bytes;
    void *constants;   // pinned memory: outputs that are known ahead
    void *host_arena;  // pinned memory: values of the processor
    size_t host_arena_bytes;
    void **lists;  // addresses that host functions find
    bool uses_states;
} recorded_run;

// What a recording needs until it ends.
typedef struct recording {
    rondo__unit *unit;  // the main one or a variant
    rondo_stream *stream;
    rondo__plan *plan;
    const rondo__call_lists *lists;
    recorded_run *run;
    rondo__stand_ins places;
} recording;

// ---- what the nodes need ----------------------------------------------------------------------

// Lets states know that a graph has their addresses, or that it has gone.
static void pin_states(recorded_run *run, int count) {
    for (rondo__state *state = run->executor->caller.states; run->uses_states && state != NULL;
         state = state->next) {
        (void)atomic_fetch_add(&state->pin_count, count);
    }
}

static void free_run(recorded_run *run) {
    pin_states(run, -1);
    rondo_device *device = run->executor->device;
    rondo__executor_free(run->executor, RONDO__OWNER_RECORDED, run->arena, run->arena_bytes);
    rondo_memory_free(device, run->constants);
    rondo__executor_free_pinned(run->executor, run->host_arena, run->host_arena_bytes);
    rondo__free(run->lists);
    rondo__plan_unpin(run->plan);
    if (run->is_counted) {
        rondo__executor_release(run->executor);
    }
    rondo__free(run);
}

static void destroy_participant(rondo__participant *participant) {
    free_run((recorded_run *)participant);
}

static const rondo__participant_type recorded_run_type = {
    .name = "executor",
    .destroy = destroy_participant,
};

// Memory during a capture, which forbids none of the library's own.
static rondo_status take_arena(recorded_run *run, size_t bytes) {
    rondo__budget *budget = run->executor->resources.device_budget;
    if (bytes == 0) {
        return RONDO_STATUS_OK;
    }
    if (!rondo__budget_take(budget, RONDO__OWNER_RECORDED, bytes)) {
        return RONDO_STATUS_NO_MEMORY;
    }
    const rondo_status status =
        rondo__memory_take(run->executor->device, RONDO_MEMORY_DEVICE, bytes, &run->arena);
    if (status != RONDO_STATUS_OK) {
        rondo__budget_give_back(budget, RONDO__OWNER_RECORDED, bytes);
        rondo__name_largest_on_gpu(budget, status);
        return status;
    }
    run->arena_bytes = bytes;
    return RONDO_STATUS_OK;
}

// Takes the memory that ops of the processor need in a plan of a GPU.
static rondo_status take_host_side(recording *r) {
    const size_t bytes = r->plan->memory.host_arena_bytes;
    const size_t count = rondo__stand_ins_count_lists(r->plan);
    rondo_executor *executor = r->run->executor;
    r->run->lists = rondo__calloc(count + 1, sizeof *r->run->lists);
    if (r->run->lists == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    if (bytes == 0 || rondo_device_is_host(executor->device)) {
        return RONDO_STATUS_OK;
    }
    if (!rondo__budget_take(executor->resources.budget, RONDO__OWNER_PINNED, bytes)) {
        return RONDO_STATUS_NO_MEMORY;
    }
    const rondo_status status =
        rondo__memory_take(executor->device, RONDO_MEMORY_PINNED, bytes, &r->run->host_arena);
    if (status != RONDO_STATUS_OK) {
        rondo__budget_give_back(executor->resources.budget, RONDO__OWNER_PINNED, bytes);
        return status;
    }
    r->run->host_arena_bytes = bytes;
    return RONDO_STATUS_OK;
}

// Outputs that are known ahead, for those that go to a GPU.
static rondo_status take_constants(recording *r) {
    const rondo_program *program = r->plan->program;
    size_t bytes = 0;
    for (size_t i = 0; i < program->output_count; ++i) {
        const rondo__slot *slot = &r->plan->slots[program->outputs[i]];
        if (r->lists->wants[i] && slot->kind == RONDO__SLOT_CONSTANT &&
            !rondo_tensor_is_on_host(&r->lists->results[i])) {
            bytes += rondo__align_up(rondo_tensor_get_bytes(&r->lists->results[i]),
                                     RONDO__ARENA_ALIGNMENT);
        }
    }
    return bytes > 0 ? rondo__memory_take(r->unit->executor->device, RONDO_MEMORY_PINNED, bytes,
                                          &r->run->constants)
                     : RONDO_STATUS_OK;
}

// ---- what can be recorded ---------------------------------------------------------------------

static rondo_status check_outputs(const recording *r) {
    const rondo_program *program = r->plan->program;
    for (size_t i = 0; i < program->output_count; ++i) {
        const rondo__slot_kind kind = r->plan->slots[program->outputs[i]].kind;
        const char *name = program->values[program->outputs[i]].name;
        if (r->lists->wants[i] && r->lists->results[i].data == NULL) {
            return RONDO_FAIL_AS(call_name, INVALID,
                                 "fetch \"%s\" has no data; a graph writes to memory that is there",
                                 name);
        }
        if (r->lists->wants[i] && kind == RONDO__SLOT_DYNAMIC) {
            return RONDO_FAIL_AS(call_name, UNSUPPORTED,
                                 "output \"%s\" is made by the processor in each run", name);
        }
    }
    const rondo__fetch fetch = {
        .unit = r->unit, .plan = r->plan, .results = r->lists->results, .wants = r->lists->wants};
    return rondo__fetch_prepare_known(&fetch);
}

static rondo_status check_near(const recording *r, const rondo_tensor *tensor, size_t bytes,
                               const char *name, bool is_feed) {
    bool may = true;
    if (bytes > 0 && !rondo__stand_ins_is_near(r->unit->executor, tensor)) {
        RETURN_IF_ERROR(
            rondo__host_memory_may_record(r->stream, tensor->data, bytes, is_feed, &may));
    }
    return may ? RONDO_STATUS_OK
               : RONDO_FAIL_AS(call_name, STATE,
                               "%s \"%s\" lies in pageable host memory, which may be gone at a "
                               "replay; allocate it with RONDO_MEMORY_PINNED, or pass a tensor of "
                               "the device",
                               is_feed ? "feed" : "fetch", name);
}

// Nothing is recorded before all memory is known to do.
static rondo_status check_memory(const recording *r) {
    const rondo_program *program = r->plan->program;
    for (size_t i = 0; i < program->input_count; ++i) {
        const rondo__slot *slot = &r->plan->slots[program->inputs[i]];
        if (slot->kind == RONDO__SLOT_ARENA) {
            RETURN_IF_ERROR(check_near(r, &r->lists->feeds[i], slot->bytes,
                                       program->values[program->inputs[i]].name, true));
        }
    }
    for (size_t i = 0; i < program->output_count; ++i) {
        if (r->lists->wants[i]) {
            RETURN_IF_ERROR(check_near(r, &r->lists->results[i],
                                       rondo_tensor_get_bytes(&r->lists->results[i]),
                                       program->values[program->outputs[i]].name, false));
        }
    }
    return RONDO_STATUS_OK;
}

// Where a state lies, and the root of what it becomes; NULL: it stays what it is.
static const rondo__slot *get_old(const recording *r, const rondo__state *state) {
    return &r->plan->slots[r->plan->program->inputs[state->input]];
}

static const rondo__slot *get_update(const recording *r, const rondo__state *state) {
    return state->output != RONDO__STATE_NO_OUTPUT
               ? &r->plan->slots[r->plan->program->outputs[state->output]]
               : NULL;
}

// Whether the new value of a state lies in the memory of another state.
static bool is_borrowed(const recording *r, const rondo__state *state) {
    const rondo__slot *update = get_update(r, state);
    const rondo__slot *root = update != NULL ? &r->plan->slots[update->root] : NULL;
    return root != NULL && root->is_kept && root != get_old(r, state);
}

// The plan's arena, room for new values that lie in other states' memory, and a buffer for weights
// that are brought in.
static size_t measure_arena(const recording *r, bool has_buffer) {
    size_t bytes = r->plan->memory.arena_bytes;
    for (const rondo__state *state = r->unit->executor->caller.states; state != NULL;
         state = state->next) {
        bytes += is_borrowed(r, state)
                     ? rondo__align_up(get_old(r, state)->bytes, RONDO__ARENA_ALIGNMENT)
                     : 0;
    }
    bytes = rondo__align_up(bytes, RONDO__ARENA_ALIGNMENT);
    return bytes + (has_buffer ? rondo__streamed_get_buffer_bytes(r->plan) / 2 : 0);
}

// A plan must read a state where it lies, and what that becomes must be as large.
static rondo_status check_state(const recording *r, const rondo__state *state) {
    const rondo__slot *old = get_old(r, state);
    const rondo__slot *update = get_update(r, state);
    const char *name = r->plan->program->values[r->plan->program->inputs[state->input]].name;
    if (!old->is_kept) {
        return RONDO_FAIL_AS(call_name, UNSUPPORTED,
                             "input \"%s\" is kept from run to run, and the plan does not read it "
                             "on the device: its value decides shapes, or the processor reads it",
                             name);
    }
    return update == NULL || (update->kind == RONDO__SLOT_ARENA && update->bytes == old->bytes)
               ? RONDO_STATUS_OK
               : RONDO_FAIL_AS(call_name, UNSUPPORTED,
                               "input \"%s\" is kept from run to run, and what it becomes is of "
                               "another size",
                               name);
}

static rondo_status check_states(const recording *r) {
    for (const rondo__state *state = r->unit->executor->caller.states; state != NULL;
         state = state->next) {
        RETURN_IF_ERROR(check_state(r, state));
    }
    return RONDO_STATUS_OK;
}

// ---- nodes ------------------------------------------------------------------------------------

// From where a tensor or value lies to where another does.
static rondo_status record_copy(const recording *r, void *to, bool is_to_near, const void *from,
                                bool is_from_near, size_t bytes) {
    if (!is_to_near && !is_from_near) {
        return rondo__transfers_put_bytes(r->stream, to, from, bytes);
    }
    return rondo_stream_copy(r->stream, to, from, bytes,
                             !is_from_near ? RONDO_COPY_HOST_TO_DEVICE
                             : !is_to_near ? RONDO_COPY_DEVICE_TO_HOST
                                           : RONDO_COPY_DEVICE_TO_DEVICE);
}

// Where ops of the processor read an input.
static rondo_status record_host_feed(const recording *r, size_t i) {
    const rondo__slot *slot = rondo__plan_get_host_input(r->plan, i);
    const rondo_tensor *feed = &r->lists->feeds[i];
    return slot == NULL
               ? RONDO_STATUS_OK
               : record_copy(r, (char *)r->run->host_arena + slot->offset, false, feed->data,
                             rondo__stand_ins_is_near(r->unit->executor, feed), slot->bytes);
}

static rondo_status record_feeds(const recording *r) {
    const rondo_program *program = r->plan->program;
    for (size_t i = 0; i < program->input_count; ++i) {
        const rondo__slot *slot = &r->plan->slots[program->inputs[i]];
        const rondo_tensor *feed = &r->lists->feeds[i];
        RETURN_IF_ERROR(record_host_feed(r, i));
        if (slot->is_on_host) {
            continue;
        }
        void *place = rondo__stand_ins_find(&r->places, program->inputs[i]);
        if (slot->kind == RONDO__SLOT_ARENA && slot->bytes > 0 && place != feed->data) {
            RETURN_IF_ERROR(record_copy(r, place, true, feed->data,
                                        rondo__stand_ins_is_near(r->unit->executor, feed),
                                        slot->bytes));
        }
    }
    return RONDO_STATUS_OK;
}

// An output that is known ahead. `offset` counts what pinned memory was used.
static rondo_status record_constant(const recording *r, size_t i, size_t *offset) {
    const rondo__plan *plan = r->plan;
    const rondo_tensor *to = &r->lists->results[i];
    const size_t bytes = rondo_tensor_get_bytes(to);
    const void *from =
        plan->program->values[plan->slots[plan->program->outputs[i]].root].constant.data;
    if (rondo_tensor_is_on_host(to)) {
        return rondo__transfers_put_bytes(r->stream, to->data, from, bytes);
    }
    char *pinned = (char *)r->run->constants + *offset;
    *offset += rondo__align_up(bytes, RONDO__ARENA_ALIGNMENT);
    memcpy(pinned, from, bytes);
    return rondo_stream_copy(r->stream, to->data, pinned, bytes, RONDO_COPY_HOST_TO_DEVICE);
}

static rondo_status record_fetches(const recording *r) {
    const rondo_program *program = r->plan->program;
    size_t offset = 0;
    for (size_t i = 0; i < program->output_count; ++i) {
        const rondo__slot *slot = &r->plan->slots[program->outputs[i]];
        const rondo_tensor *to = &r->lists->results[i];
        if (!r->lists->wants[i] || rondo_tensor_get_bytes(to) == 0) {
            continue;
        }
        const void *from = rondo__stand_ins_find(&r->places, program->outputs[i]);
        if (slot->kind == RONDO__SLOT_CONSTANT) {
            RETURN_IF_ERROR(record_constant(r, i, &offset));
        } else if (from != to->data) {
            RETURN_IF_ERROR(record_copy(r, to->data,
                                        rondo__stand_ins_is_near(r->unit->executor, to), from,
                                        !slot->is_on_host, slot->bytes));
        }
    }
    return RONDO_STATUS_OK;
}

// Copies new values of states that the kernels did not write in place. A new value that is in
// another state's memory is first copied to room behind the arena.
static rondo_status record_states(const recording *r, bool is_first) {
    char *room = (char *)r->run->arena + r->plan->memory.arena_bytes;
    for (const rondo__state *state = r->unit->executor->caller.states; state != NULL;
         state = state->next) {
        const rondo__slot *update = get_update(r, state);
        const bool is_other = is_borrowed(r, state);
        if (update == NULL || (is_first && !is_other)) {
            continue;
        }
        const rondo__slot *old = get_old(r, state);
        const void *made =
            rondo__stand_ins_find(&r->places, r->plan->program->outputs[state->output]);
        const void *from = is_other && !is_first ? room : made;
        void *to = is_first ? room : old->address;
        room += is_other ? rondo__align_up(old->bytes, RONDO__ARENA_ALIGNMENT) : 0;
        if (from != to) {
            RETURN_IF_ERROR(
                rondo_stream_copy(r->stream, to, from, old->bytes, RONDO_COPY_DEVICE_TO_DEVICE));
        }
    }
    return RONDO_STATUS_OK;
}

// Calls of the executor do not end loops in a graph of the program's, nor tell what its data was.
static rondo_status record_nodes(recording *r) {
    rondo_executor *executor = r->unit->executor;
    rondo__flow_watch *watch = executor->resources.watch;
    RETURN_IF_ERROR(record_feeds(r));
    executor->resources.watch = NULL;
    const rondo_status status = rondo__stand_ins_launch(&r->places, r->stream);
    executor->resources.watch = watch;
    RETURN_IF_ERROR(status);
    RETURN_IF_ERROR(record_fetches(r));
    RETURN_IF_ERROR(record_states(r, true));
    return record_states(r, false);
}

// ---- the call ---------------------------------------------------------------------------------

// Everything that can fail before the first node.
static rondo_status prepare(recording *r) {
    RETURN_IF_ERROR(rondo__stand_ins_check(r->plan, call_name, true));
    RETURN_IF_ERROR(check_outputs(r));
    RETURN_IF_ERROR(check_memory(r));
    RETURN_IF_ERROR(check_states(r));
    RETURN_IF_ERROR(rondo__stand_ins_init(r->unit, r->plan, &r->places));
    recorded_run *run = rondo__calloc(1, sizeof *run);
    if (run == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    run->base.type = &recorded_run_type;
    run->executor = r->unit->executor;
    run->plan = r->plan;
    run->is_counted = true;
    run->uses_states = run->executor->caller.states != NULL;
    rondo__executor_retain(run->executor);
    rondo__plan_pin(run->plan);
    pin_states(run, 1);
    r->run = run;
    rondo_status status = take_arena(run, measure_arena(r, true));
    if (status == RONDO_STATUS_OK) {
        status = take_constants(r);
    }
    if (status == RONDO_STATUS_OK) {
        status = take_host_side(r);
    }
    if (status != RONDO_STATUS_OK) {
        free_run(run);
        r->run = NULL;
    }
    return status;
}

// The capture keeps what the nodes need; if the capture is not Rondo's, the executor does.
static rondo_status hand_over(recording *r) {
    rondo__capture *capture = NULL;
    rondo_status status = rondo__capture_find(r->stream, &capture, NULL);
    if (status != RONDO_STATUS_OK) {
        free_run(r->run);
        return status;
    }
    if (capture != NULL) {
        rondo__capture_add_participant(capture, &r->run->base);
        return RONDO_STATUS_OK;
    }
    // A reference would keep the executor from ever being freed.
    r->run->is_counted = false;
    rondo__executor_release(r->run->executor);
    rondo__executor_adopt(r->run->executor, &r->run->base);
    return RONDO_STATUS_OK;
}

static rondo_status record_run(recording *r) {
    rondo__unit *unit = r->unit;
    RETURN_IF_ERROR(rondo__unit_look_up_plan(unit, r->lists->feeds, &r->plan));
    if (r->plan == NULL || r->plan->run.count == 0) {
        return RONDO_FAIL_AS(call_name, STATE,
                             "the executor has not run with these shapes yet, and compiling is not "
                             "possible in a capture; run it once before");
    }
    rondo_status status = prepare(r);
    if (status == RONDO_STATUS_OK) {
        status = hand_over(r);
    }
    if (status == RONDO_STATUS_OK) {
        r->places.arena = r->run->arena;
        r->places.host_arena = r->run->host_arena;
        r->places.lists = r->run->lists;
        r->places.buffer = (char *)r->run->arena + measure_arena(r, false);
        rondo__stand_ins_choose(&r->places, r->lists->feeds, r->lists->results, r->lists->wants);
        status = rondo__mark_work(r->stream, "executor", record_nodes(r));
    }
    rondo__stand_ins_deinit(&r->places);
    return status;
}

static rondo_status check_stream(const rondo_executor *executor, rondo_stream *stream) {
    RETURN_IF_ERROR(rondo__check_stream(stream, call_name));
    RETURN_IF_ERROR(
        rondo__check_same_device(executor->device, stream, call_name, "the executor", NULL));
    rondo__place place;
    RETURN_IF_ERROR(rondo__capture_locate(stream, &place));
    return place.state == RONDO__CAPTURE_ACTIVE
               ? RONDO_STATUS_OK
               : RONDO_FAIL_AS(call_name, STATE, "stream %u %s", (unsigned)stream->number,
                               place.state == RONDO__CAPTURE_NONE
                                   ? "does not record; begin a capture first"
                                   : "takes part in a capture that is broken already");
}

// A variant that was made for the recording may have taken the place of the one that ran last.
static bool is_kept(const rondo_executor *executor, const rondo__unit *active) {
    bool is_kept = active == &executor->main;
    for (size_t v = 0; v < executor->variants.count; ++v) {
        is_kept = is_kept || executor->variants.list[v] == active;
    }
    return is_kept;
}

rondo_status rondo_executor_record(rondo_executor *executor, rondo_stream *stream,
                                   const rondo_binding *feeds, size_t feed_count,
                                   const rondo_binding *fetches, size_t fetch_count) {
    RETURN_IF_ERROR(
        rondo__executor_order_call(executor, feeds, feed_count, fetches, fetch_count, __func__));
    RETURN_IF_ERROR(check_stream(executor, stream));
    if (executor->options.communicator != NULL) {
        return RONDO_FAIL(UNSUPPORTED,
                          "the executor runs with other ranks, who could not compare what replays "
                          "of the program's own graph do; let it run by itself");
    }
    rondo__unit *active = executor->variants.active;
    const rondo__hook_scope scope = rondo__hook_enter(RONDO__SPAN_CAPTURE, "record a run");
    rondo__budget *before = rondo__executor_begin_call(executor, feeds, feed_count);
    rondo_status status = rondo__executor_choose_variant(executor, executor->ports.lists.feeds);
    recording r = {
        .unit = executor->variants.active, .stream = stream, .lists = &executor->ports.lists};
    if (status == RONDO_STATUS_OK) {
        status = record_run(&r);
    }
    executor->variants.active = is_kept(executor, active) ? active : &executor->main;
    rondo__executor_end_call(executor, before, status);
    rondo__hook_leave(&scope);
    return status;
}

// backend/host/host_executable.c — instantiating, updating and replaying.
//
// An executable is a reference to a program and the position of its last replay. A replay puts one
// command on the stream, which holds a reference of its own, so that updating, patching and
// destroying need not wait for replays in flight. Replays of one executable run one after the
// other, also on different streams, as on a GPU: each waits for the one before.
// SPDX-License-Identifier: Apache-2.0

#include "backend/host/host_executable.h"

#include <string.h>

#include "backend/host/host_child.h"
#include "backend/host/host_external.h"
#include "backend/host/host_patch.h"
#include "backend/host/host_team.h"
#include "backend/host/host_timing.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/float_scope.h"
#include "base/memory.h"
#include "base/use_count.h"

static rondo_status append_shape(rondo__host_shape *shape, const rondo__host_template *recorded);

static rondo_status append_branches(rondo__host_shape *shape,
                                    const rondo__host_branches *branches) {
    shape->words[shape->count++] = (size_t)branches->kind;
    shape->words[shape->count++] = branches->count;
    for (uint32_t i = 0; i < branches->count; ++i) {
        RETURN_IF_ERROR(append_shape(shape, branches->bodies[i]));
    }
    return RONDO_STATUS_OK;
}

static rondo_status append_flat_shape(rondo__host_shape *shape,
                                      const rondo__host_template *recorded) {
    size_t node_count = recorded->node_count;
    for (size_t i = 0; i <= node_count; ++i) {
        // The first turn writes the number of nodes; further ones a node each.
        const rondo__host_node *node = i > 0 ? &recorded->nodes[i - 1] : NULL;
        size_t needed = node != NULL ? node->edge_count + 4 : 1;
        rondo_status status =
            RONDO__ARRAY_RESERVE(shape->words, shape->capacity, shape->count + needed);
        RETURN_IF_ERROR(status);
        if (node == NULL) {
            shape->words[shape->count++] = node_count;
            continue;
        }
        shape->words[shape->count++] = (size_t)node->kind;
        shape->words[shape->count++] = node->edge_count;
        for (size_t edge = 0; edge < node->edge_count; ++edge) {
            shape->words[shape->count++] = recorded->predecessors[node->first_edge + edge];
        }
        if (node->branches != NULL) {
            RETURN_IF_ERROR(append_branches(shape, node->branches));
        }
    }
    return RONDO_STATUS_OK;
}

// `recorded` may be NULL: nothing.
static rondo_status append_shape(rondo__host_shape *shape, const rondo__host_template *recorded) {
    static const rondo__host_template nothing;
    const rondo__host_template *whole = recorded != NULL ? recorded : &nothing;
    const rondo__host_template *flat;
    RETURN_IF_ERROR(rondo__host_flatten(whole, &flat));
    rondo_status status = append_flat_shape(shape, flat);
    rondo__host_unflatten(whole, flat);
    return status;
}

rondo_status rondo__host_instantiate(rondo__template *template_,
                                     rondo__executable **out_executable) {
    const rondo__host_template *recorded = (const rondo__host_template *)template_;
    rondo__host_executable *executable = rondo__calloc_lines(sizeof *executable);
    if (executable == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    executable->head.device = template_->device;
    rondo_status status = append_shape(&executable->shape, recorded);
    if (status == RONDO_STATUS_OK) {
        status = rondo__host_program_create(recorded, &executable->program);
    }
    if (status != RONDO_STATUS_OK) {
        rondo__host_destroy_executable(&executable->head);
        return status;
    }
    executable->program->executed_count = &executable->executed_count;
    *out_executable = &executable->head;
    return RONDO_STATUS_OK;
}

rondo_status rondo__host_update(rondo__executable *executable_, rondo__template *template_,
                                bool *out_was_updated) {
    rondo__host_executable *executable = (rondo__host_executable *)executable_;
    const rondo__host_template *recorded = (const rondo__host_template *)template_;
    *out_was_updated = false;
    rondo__host_shape shape = {0};
    rondo_status status = append_shape(&shape, recorded);
    bool is_same = status == RONDO_STATUS_OK && shape.count == executable->shape.count &&
                   memcmp(shape.words, executable->shape.words, shape.count * sizeof(size_t)) == 0;
    rondo__free(shape.words);
    if (!is_same) {
        return status;
    }
    rondo__host_program *program;
    RETURN_IF_ERROR(rondo__host_program_create(recorded, &program));
    rondo__host_program_release(executable->program);
    rondo__free(executable->changes);
    executable->changes = NULL;
    program->executed_count = &executable->executed_count;
    executable->program = program;
    *out_was_updated = true;
    return RONDO_STATUS_OK;
}

rondo_status rondo__host_upload(rondo__executable *executable, rondo_stream *stream) {
    (void)executable;  // the program lies where it runs
    (void)stream;
    return RONDO_STATUS_OK;
}

static void run_and_release(rondo__host_program *program) {
    uint64_t executed = rondo__host_executed_count;
    rondo__host_program_run(program);
    executed = rondo__host_executed_count - executed;
    atomic_fetch_add_explicit(program->executed_count, executed, memory_order_relaxed);
    rondo__host_program_release(program);
}

static void run_program(void *data) {
    run_and_release(*(rondo__host_program **)data);
}

// The same for a program that is patched first, or timed, or uses external events: their serials
// follow.
typedef struct prepared_run {
    rondo__host_program *program;
    rondo__host_changes *changes;  // owned; NULL: none
    rondo__host_timing timing;
    uint64_t serials[];
} prepared_run;

static void run_prepared_program(void *data) {
    const prepared_run *run = data;
    rondo__host_make_changes(run->program, run->changes);
    for (size_t i = 0; i < run->program->external_count; ++i) {
        run->program->externals[i]->serial = run->serials[i];
    }
    if (run->timing.is_wanted) {
        rondo__host_program *program = run->program;
        const uint64_t begin_ns = rondo__clock_now_ns();
        rondo__reference_take(&program->reference_count);
        rondo__host_timing_now = &run->timing;
        run_and_release(program);
        rondo__host_tell_program(program, begin_ns);
        rondo__host_timing_now = NULL;
        rondo__host_program_release(program);
        return;
    }
    run_and_release(run->program);
}

static rondo_status submit_program(rondo__host_stream *stream, rondo__host_executable *executable) {
    rondo__host_program *program = executable->program;
    void *room;
    const bool is_plain = program->external_count == 0 && executable->changes == NULL;
    if (is_plain && !rondo__hook_is_on(RONDO__HOOK_WORK)) {
        RETURN_IF_ERROR(rondo__host_submit(stream, run_program, sizeof program, &room));
        *(rondo__host_program **)room = program;
    } else {
        size_t bytes = sizeof(prepared_run) + program->external_count * sizeof(uint64_t);
        RETURN_IF_ERROR(rondo__host_promise_externals(program->externals, program->external_count));
        rondo_status status = rondo__host_submit(stream, run_prepared_program, bytes, &room);
        if (status != RONDO_STATUS_OK) {
            rondo__host_break_promises(program->externals, program->external_count);
            return status;
        }
        prepared_run *run = room;
        run->program = program;
        run->changes = executable->changes;
        run->timing = rondo__host_timing_make(stream);
        executable->changes = NULL;
        rondo__host_ask_externals(program->externals, program->external_count, run->serials);
    }
    rondo__reference_take(&program->reference_count);
    return RONDO_STATUS_OK;
}

// Whether the calling thread can run the work itself at once: nothing is on the stream, and no
// other thread is needed. Waking a worker takes 5 us, and 40 on a virtual machine.
static bool can_run_here(const rondo__host_stream *stream,
                         const rondo__host_executable *executable) {
    return executable->program->width <= 1 && executable->program->external_count == 0 &&
           executable->changes == NULL && !rondo__hook_is_on(RONDO__HOOK_WORK) &&
           (executable->last_lane == NULL || executable->last_lane == stream->lane) &&
           rondo__host_lane_has_passed(stream->lane, stream->submitted);
}

bool rondo__host_replay_here(rondo__executable *executable_, rondo_stream *stream_) {
    const rondo__host_executable *executable = (const rondo__host_executable *)executable_;
    rondo__host_stream *stream = (rondo__host_stream *)stream_;
    rondo__host_program *program = executable->program;
    if (!can_run_here(stream, executable)) {
        return false;
    }
    rondo__failure_slot *former = rondo__failure_enter(&stream->lane->failure);
    const rondo__float_scope scope = rondo__float_enter();
    rondo__reference_take(&program->reference_count);
    run_and_release(program);
    rondo__float_leave(&scope);
    (void)rondo__failure_enter(former);
    return true;
}

rondo_status rondo__host_replay(rondo__executable *executable_, rondo_stream *stream_) {
    rondo__host_executable *executable = (rondo__host_executable *)executable_;
    rondo__host_stream *stream = (rondo__host_stream *)stream_;
    if (executable->last_lane != NULL && executable->last_lane != stream->lane) {
        RETURN_IF_ERROR(
            rondo__host_submit_wait(stream, executable->last_lane, executable->last_position));
    }
    RETURN_IF_ERROR(submit_program(stream, executable));
    if (executable->last_lane != stream->lane) {
        rondo__host_lane_release(executable->last_lane);
        executable->last_lane = rondo__host_lane_retain(stream->lane);
    }
    executable->last_position = stream->submitted;
    bool was_idle = atomic_load_explicit(&stream->is_asleep, memory_order_relaxed) != 0;
    rondo__host_publish(stream);
    if (was_idle && executable->program->width > 1) {
        rondo__host_team_rouse(executable->program->team, executable->program);
    }
    return RONDO_STATUS_OK;
}

uint64_t rondo__host_count_executed(rondo__executable *executable) {
    return atomic_load_explicit(&((rondo__host_executable *)executable)->executed_count,
                                memory_order_relaxed);
}

void rondo__host_destroy_executable(rondo__executable *executable_) {
    rondo__host_executable *executable = (rondo__host_executable *)executable_;
    if (executable->last_lane != NULL) {
        rondo__host_lane_wait(executable->last_lane, executable->last_position);
        rondo__host_lane_release(executable->last_lane);
    }
    rondo__host_program_release(executable->program);
    rondo__free(executable->changes);
    rondo__free(executable->shape.words);
    rondo__free(executable);
}

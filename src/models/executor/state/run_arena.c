// executor/state/run_arena.c — see run_arena.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/state/run_arena.h"

#include "backend/check.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/read_options.h"
#include "base/use_count.h"
#include "executor/state/arena_plan.h"
#include "rondo/executor_stream.h"

// ---- life -------------------------------------------------------------------------------------

static rondo_status check_given(const rondo_run_arena_options *options, const char *call) {
    if (options->address != NULL && options->bytes == 0) {
        return RONDO_FAIL_AS(call, INVALID, "options.address is given, options.bytes is 0");
    }
    return (uintptr_t)options->address % RONDO__ARENA_ALIGNMENT == 0
               ? RONDO_STATUS_OK
               : RONDO_FAIL_AS(call, INVALID, "options.address is no multiple of %d",
                               RONDO__ARENA_ALIGNMENT);
}

rondo_status rondo_run_arena_create(rondo_device *device, const rondo_run_arena_options *options,
                                    rondo_run_arena **out_arena) {
    RETURN_IF_ERROR(rondo__check_pointer(out_arena, __func__, "out_arena"));
    *out_arena = NULL;
    RETURN_IF_ERROR(rondo__check_device(device, __func__));
    rondo_run_arena_options given = {.struct_size = sizeof given};
    RETURN_IF_ERROR(
        rondo__read_options(options, &given, sizeof given, __func__, "rondo_run_arena_options"));
    RETURN_IF_ERROR(check_given(&given, __func__));
    rondo_run_arena *arena = rondo__calloc(1, sizeof *arena);
    rondo__run_memory *piece = given.address != NULL ? rondo__calloc(1, sizeof *piece) : NULL;
    if (arena == NULL || (given.address != NULL && piece == NULL)) {
        rondo__free(arena);
        rondo__free(piece);
        return RONDO_STATUS_NO_MEMORY;
    }
    if (piece != NULL) {
        *piece = (rondo__run_memory){.kind = RONDO_MEMORY_DEVICE,
                                     .use = RONDO__MEMORY_FOR_VALUES,
                                     .bytes = given.bytes,
                                     .address = given.address,
                                     .arena = arena};
    }
    rondo_device_retain(device);
    arena->device = device;
    arena->pieces = piece;
    arena->bytes = piece != NULL ? given.bytes : 0;
    arena->piece_bytes = given.bytes;
    arena->is_given = piece != NULL;
    atomic_init(&arena->reference_count, 1);
    atomic_init(&arena->is_busy, false);
    *out_arena = arena;
    return RONDO_STATUS_OK;
}

void rondo__run_arena_retain(rondo_run_arena *arena) {
    if (arena != NULL) {
        rondo__reference_take(&arena->reference_count);
    }
}

void rondo_run_arena_destroy(rondo_run_arena *arena) {
    if (arena == NULL || !rondo__reference_drop(&arena->reference_count)) {
        return;
    }
    // Plans give back the other pieces, and every executor holds a reference.
    if (arena->is_given) {
        rondo__free(arena->pieces);
    }
    rondo_event_destroy(arena->ended);
    rondo_device_release(arena->device);
    rondo__free(arena);
}

uint64_t rondo_run_arena_get_bytes(const rondo_run_arena *arena) {
    return arena != NULL ? arena->bytes : 0;
}

// ---- runs -------------------------------------------------------------------------------------

static rondo_status wait_for_others(const rondo_run_arena *arena, rondo_executor *executor,
                                    bool by_thread) {
    if (!arena->is_pending || arena->latest == executor) {
        return RONDO_STATUS_OK;
    }
    return by_thread ? rondo_event_synchronize(arena->ended)
                     : rondo_stream_wait_event(executor->main.stream, arena->ended);
}

rondo_status rondo__run_arena_enter(rondo_executor *executor, bool by_thread) {
    rondo_run_arena *arena = executor->options.run_arena;
    if (arena == NULL) {
        return RONDO_STATUS_OK;
    }
    if (atomic_exchange(&arena->is_busy, true)) {
        return RONDO_FAIL_AS("rondo_executor_run", STATE,
                             "another thread runs an executor that shares the run arena; such "
                             "executors are used by one thread at a time, as one would be");
    }
    const rondo_status status = wait_for_others(arena, executor, by_thread);
    arena->latest = executor;
    if (status != RONDO_STATUS_OK) {
        atomic_store(&arena->is_busy, false);
    }
    return status;
}

rondo_status rondo__run_arena_leave(rondo_executor *executor, bool is_waited_for) {
    rondo_run_arena *arena = executor->options.run_arena;
    rondo_status status = RONDO_STATUS_OK;
    if (arena == NULL) {
        return status;
    }
    if (!is_waited_for && arena->ended == NULL) {
        status = rondo_event_create(arena->device, 0, &arena->ended);
    }
    if (!is_waited_for && status == RONDO_STATUS_OK) {
        status = rondo_event_record(arena->ended, executor->main.stream);
    }
    arena->is_pending = !is_waited_for && status == RONDO_STATUS_OK;
    atomic_store(&arena->is_busy, false);
    return status;
}

bool rondo__run_arena_holds(const rondo_executor *executor) {
    const rondo_run_arena *arena = executor->options.run_arena;
    return arena == NULL || arena->latest == executor;
}

void rondo__run_arena_forget(const rondo_executor *executor) {
    rondo_run_arena *arena = executor->options.run_arena;
    if (arena != NULL && arena->latest == executor) {
        arena->latest = NULL;
    }
}

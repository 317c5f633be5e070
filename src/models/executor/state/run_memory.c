// executor/state/run_memory.c — see run_memory.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/state/run_memory.h"

#include <inttypes.h>

#include "base/error.h"
#include "base/memory.h"
#include "executor/state/limits.h"
#include "executor/state/run_arena.h"

// Sizes of pieces: powers of two up to here, then steps of an eighth of one.
enum { DOUBLED_BYTES_MAX = 16 << 20, SMALLEST_BYTES = 4096, SPARE_FACTOR_MAX = 4 };

// Whether both are memory of one kind and device, for the same use.
static bool is_alike(const rondo__run_memory *a, const rondo__run_memory *b) {
    return a->kind == b->kind && a->peer == b->peer && a->use == b->use;
}

// The list that a piece is in: the unit's, or for values of whole runs that of a shared run arena.
typedef struct piece_list {
    rondo__run_memory **first;
    uint64_t *bytes;
    uint64_t limit;  // of plans; 0: none
    rondo_run_arena *arena;
} piece_list;

static piece_list find_list(rondo__unit *unit, const rondo__run_memory *wanted) {
    rondo_run_arena *arena = unit->executor->options.run_arena;
    if (arena != NULL && unit->depth == 0 && unit->part == RONDO__PART_NONE &&
        wanted->kind == RONDO_MEMORY_DEVICE && wanted->peer == NULL &&
        wanted->use == RONDO__MEMORY_FOR_VALUES) {
        return (piece_list){&arena->pieces, &arena->bytes, 0, arena};
    }
    return (piece_list){&unit->run_memory, &unit->run_memory_bytes, unit->plan_limit_bytes, NULL};
}

// Where a piece a little smaller is there, shapes are growing: then powers of two, so that all
// pieces together are at most twice the last one, and most new shapes touch no new memory. Not
// where that would take half of what plans may take.
static bool is_growing(const piece_list *list, const rondo__run_memory *wanted, size_t power) {
    const uint64_t limit = list->limit;
    const size_t bytes = wanted->bytes;
    bool has_smaller = false;
    for (const rondo__run_memory *m = *list->first; m != NULL; m = m->next) {
        has_smaller = has_smaller || (is_alike(m, wanted) && m->bytes < bytes &&
                                      m->bytes >= bytes / SPARE_FACTOR_MAX);
    }
    return has_smaller && (limit == 0 || *list->bytes + power <= limit / 2);
}

static size_t round_up(const piece_list *list, const rondo__run_memory *wanted) {
    const size_t bytes = wanted->bytes;
    if (list->arena != NULL) {
        return bytes > list->arena->piece_bytes ? bytes : list->arena->piece_bytes;
    }
    size_t power = SMALLEST_BYTES;
    while (power < bytes && power <= SIZE_MAX / 2) {
        power *= 2;
    }
    if (power <= DOUBLED_BYTES_MAX || power < bytes) {
        return power < bytes ? bytes : power;
    }
    if (is_growing(list, wanted, power)) {
        return power;
    }
    const size_t step = power / 16;  // an eighth of the power of two below
    return (bytes + step - 1) / step * step;
}

// A run arena has one piece where it can: no plan of another executor is too small for it.
static rondo__run_memory *find_best(const piece_list *list, const rondo__run_memory *wanted) {
    const size_t bytes = wanted->bytes;
    rondo__run_memory *best = NULL;
    for (rondo__run_memory *m = *list->first; m != NULL; m = m->next) {
        const bool fits = is_alike(m, wanted) && m->bytes >= bytes &&
                          (list->arena != NULL || m->bytes <= SMALLEST_BYTES ||
                           m->bytes / SPARE_FACTOR_MAX <= bytes);
        if (fits && (best == NULL || m->bytes < best->bytes)) {
            best = m;
        }
    }
    return best;
}

// Of a piece in the memory of a device.
static rondo__owner get_owner(const rondo__run_memory *memory) {
    return memory->use == RONDO__MEMORY_FOR_VALUES ? RONDO__OWNER_ARENA : RONDO__OWNER_STAGING;
}

// Memory that executors share counts for none of them.
static rondo_status allocate_shared(rondo__run_memory *memory) {
    rondo__budget *entered = rondo__budget_get_entered();
    (void)rondo__budget_enter(NULL);
    const rondo_status status = rondo_memory_allocate(memory->arena->device, RONDO_MEMORY_DEVICE,
                                                      memory->bytes, &memory->address);
    (void)rondo__budget_enter(entered);
    return status;
}

static rondo_status allocate(rondo_executor *executor, rondo__run_memory *memory) {
    const rondo__owner owner = get_owner(memory);
    if (memory->arena != NULL) {
        return allocate_shared(memory);
    }
    if (memory->peer != NULL) {
        return rondo__peer_allocate(memory->peer, owner, memory->bytes, &memory->address);
    }
    return memory->kind == RONDO_MEMORY_DEVICE
               ? rondo__executor_allocate(executor, owner, memory->bytes, &memory->address)
               : rondo__executor_allocate_pinned(executor, memory->bytes, &memory->address);
}

static rondo_status add_piece(rondo__unit *unit, const piece_list *list,
                              const rondo__run_memory *wanted, rondo__run_memory **out_memory) {
    const size_t bytes = wanted->bytes;
    if (list->arena != NULL && list->arena->is_given) {
        return RONDO_FAIL(NO_MEMORY,
                          "the plan needs %zu bytes of the run arena, which was given %" PRIu64,
                          bytes, list->arena->bytes);
    }
    rondo__run_memory *memory = rondo__calloc(1, sizeof *memory);
    if (memory == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo_error saved;
    rondo__error_save(&saved);
    *memory = *wanted;
    memory->arena = list->arena;
    memory->bytes = round_up(list, wanted);
    rondo_status status = allocate(unit->executor, memory);
    if (status != RONDO_STATUS_OK && status != RONDO_STATUS_LOST && memory->bytes > bytes) {
        rondo__error_restore(&saved);
        memory->bytes = bytes;
        status = allocate(unit->executor, memory);
    }
    if (status != RONDO_STATUS_OK) {
        rondo__free(memory);
        return status;
    }
    memory->next = *list->first;
    *list->first = memory;
    *list->bytes += memory->bytes;
    *out_memory = memory;
    return RONDO_STATUS_OK;
}

static rondo_status acquire(rondo__unit *unit, const rondo__run_memory *wanted,
                            rondo__run_memory **out_memory) {
    rondo_status status = RONDO_STATUS_OK;
    const piece_list list = find_list(unit, wanted);
    rondo__run_memory *memory = find_best(&list, wanted);
    if (memory == NULL) {
        const int64_t taken = rondo__memory_get_thread_bytes();
        status = add_piece(unit, &list, wanted, &memory);
        rondo__memory_set_thread_bytes(taken);  // it is counted here, and is no plan's own
    }
    if (status == RONDO_STATUS_OK) {
        memory->use_count += 1;
    }
    *out_memory = memory;
    return status;
}

rondo_status rondo__run_memory_acquire(rondo__unit *unit, rondo_memory_kind kind, rondo__peer *peer,
                                       size_t bytes, rondo__run_memory **out_memory) {
    return acquire(unit, &(rondo__run_memory){.kind = kind, .peer = peer, .bytes = bytes},
                   out_memory);
}

rondo_status rondo__run_memory_acquire_buffers(rondo__unit *unit, size_t bytes,
                                               rondo__run_memory **out_memory) {
    const rondo__run_memory wanted = {
        .kind = RONDO_MEMORY_DEVICE, .use = RONDO__MEMORY_FOR_WEIGHTS, .bytes = bytes};
    return acquire(unit, &wanted, out_memory);
}

rondo_status rondo__run_memory_acquire_late(rondo__unit *unit, size_t bytes,
                                            rondo__run_memory **out_memory) {
    const rondo__run_memory wanted = {
        .kind = RONDO_MEMORY_PINNED, .use = RONDO__MEMORY_FOR_LATE, .bytes = bytes};
    return acquire(unit, &wanted, out_memory);
}

void rondo__run_memory_release(rondo__unit *unit, rondo__run_memory *memory) {
    if (memory == NULL || --memory->use_count > 0 ||
        (memory->arena != NULL && memory->arena->is_given)) {
        return;
    }
    const piece_list list = find_list(unit, memory);
    rondo__run_memory **link = list.first;
    while (*link != memory) {
        link = &(*link)->next;
    }
    *link = memory->next;
    *list.bytes -= memory->bytes;
    const int64_t taken = rondo__memory_get_thread_bytes();
    if (memory->arena != NULL) {
        rondo_memory_free(memory->arena->device, memory->address);
    } else if (memory->peer != NULL) {
        rondo__peer_free(memory->peer, get_owner(memory), memory->address, memory->bytes);
    } else if (memory->kind == RONDO_MEMORY_DEVICE) {
        rondo__executor_free(unit->executor, get_owner(memory), memory->address, memory->bytes);
    } else {
        rondo__executor_free_pinned(unit->executor, memory->address, memory->bytes);
    }
    rondo__free(memory);
    rondo__memory_set_thread_bytes(taken);
}

// executor/state/run_memory.c — see run_memory.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/state/run_memory.h"

#include "base/error.h"
#include "base/memory.h"
#include "executor/state/limits.h"

// Sizes of pieces: powers of two up to here, then steps of an eighth of one.
enum { DOUBLED_BYTES_MAX = 16 << 20, SMALLEST_BYTES = 4096, SPARE_FACTOR_MAX = 4 };

// Whether both are memory of one kind and device, for the same use.
static bool is_alike(const rondo__run_memory *a, const rondo__run_memory *b) {
    return a->kind == b->kind && a->peer == b->peer && a->use == b->use;
}

// Where a piece a little smaller is there, shapes are growing: then powers of two, so that all
// pieces together are at most twice the last one, and most new shapes touch no new memory. Not
// where that would take half of what plans may take.
static bool is_growing(const rondo__unit *unit, const rondo__run_memory *wanted, size_t power) {
    const uint64_t limit = unit->plan_limit_bytes;
    const size_t bytes = wanted->bytes;
    bool has_smaller = false;
    for (const rondo__run_memory *m = unit->run_memory; m != NULL; m = m->next) {
        has_smaller = has_smaller || (is_alike(m, wanted) && m->bytes < bytes &&
                                      m->bytes >= bytes / SPARE_FACTOR_MAX);
    }
    return has_smaller && (limit == 0 || unit->run_memory_bytes + power <= limit / 2);
}

static size_t round_up(const rondo__unit *unit, const rondo__run_memory *wanted) {
    const size_t bytes = wanted->bytes;
    size_t power = SMALLEST_BYTES;
    while (power < bytes && power <= SIZE_MAX / 2) {
        power *= 2;
    }
    if (power <= DOUBLED_BYTES_MAX || power < bytes) {
        return power < bytes ? bytes : power;
    }
    if (is_growing(unit, wanted, power)) {
        return power;
    }
    const size_t step = power / 16;  // an eighth of the power of two below
    return (bytes + step - 1) / step * step;
}

static rondo__run_memory *find_best(const rondo__unit *unit, const rondo__run_memory *wanted) {
    const size_t bytes = wanted->bytes;
    rondo__run_memory *best = NULL;
    for (rondo__run_memory *m = unit->run_memory; m != NULL; m = m->next) {
        const bool fits = is_alike(m, wanted) && m->bytes >= bytes &&
                          (m->bytes <= SMALLEST_BYTES || m->bytes / SPARE_FACTOR_MAX <= bytes);
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

static rondo_status allocate(rondo_executor *executor, rondo__run_memory *memory) {
    const rondo__owner owner = get_owner(memory);
    if (memory->peer != NULL) {
        return rondo__peer_allocate(memory->peer, owner, memory->bytes, &memory->address);
    }
    return memory->kind == RONDO_MEMORY_DEVICE
               ? rondo__executor_allocate(executor, owner, memory->bytes, &memory->address)
               : rondo__executor_allocate_pinned(executor, memory->bytes, &memory->address);
}

static rondo_status add_piece(rondo__unit *unit, const rondo__run_memory *wanted,
                              rondo__run_memory **out_memory) {
    const size_t bytes = wanted->bytes;
    rondo__run_memory *memory = rondo__calloc(1, sizeof *memory);
    if (memory == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo_error saved;
    rondo__error_save(&saved);
    *memory = *wanted;
    memory->bytes = round_up(unit, wanted);
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
    memory->next = unit->run_memory;
    unit->run_memory = memory;
    unit->run_memory_bytes += memory->bytes;
    *out_memory = memory;
    return RONDO_STATUS_OK;
}

static rondo_status acquire(rondo__unit *unit, const rondo__run_memory *wanted,
                            rondo__run_memory **out_memory) {
    rondo_status status = RONDO_STATUS_OK;
    rondo__run_memory *memory = find_best(unit, wanted);
    if (memory == NULL) {
        const int64_t taken = rondo__memory_get_thread_bytes();
        status = add_piece(unit, wanted, &memory);
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
    if (memory == NULL || --memory->use_count > 0) {
        return;
    }
    rondo__run_memory **link = &unit->run_memory;
    while (*link != memory) {
        link = &(*link)->next;
    }
    *link = memory->next;
    unit->run_memory_bytes -= memory->bytes;
    const int64_t taken = rondo__memory_get_thread_bytes();
    if (memory->peer != NULL) {
        rondo__peer_free(memory->peer, get_owner(memory), memory->address, memory->bytes);
    } else if (memory->kind == RONDO_MEMORY_DEVICE) {
        rondo__executor_free(unit->executor, get_owner(memory), memory->address, memory->bytes);
    } else {
        rondo__executor_free_pinned(unit->executor, memory->address, memory->bytes);
    }
    rondo__free(memory);
    rondo__memory_set_thread_bytes(taken);
}
